//! Work that lies in a checkout's own repository and not in its files: a stash, or a branch that is not checked out.
//!
//! What the files hold is found by comparing; this is only to be known before a checkout goes. Nothing in the repository is
//! believed or executed: names are read, and whoever has hidden work otherwise has hidden it.

use crate::{CheckoutError, Descend, Kind, RelPath, Root};

/// How long a file is at most that says what is checked out.
const HEAD_BYTES_MAX: u64 = 4 * 1024;

/// The name of something that was put aside in a checkout's repository, if there is something. All names were packed when it was
/// made, so one that stands alone is new.
pub fn put_aside(checkout: &Root) -> Result<Option<String>, CheckoutError> {
    let stash = RelPath::parse(b".git/refs/stash")?;
    if checkout.look(&stash)?.is_some() {
        return Ok(Some("a stash".to_owned()));
    }
    let heads = RelPath::parse(b".git/refs/heads")?;
    let Some(true) = checkout.look(&heads)?.map(|found| found.kind == Kind::Directory) else {
        return Ok(None);
    };
    let head = checkout.read(&RelPath::parse(b".git/HEAD")?, HEAD_BYTES_MAX)?.bytes;
    let current = head.strip_prefix(b"ref: refs/heads/").map(<[u8]>::trim_ascii_end);
    let mut aside = None;
    checkout.beneath(&heads)?.walk(|path, found| {
        if found.kind != Kind::Directory && Some(path.as_bytes()) != current {
            aside.get_or_insert_with(|| format!("the branch {path}"));
        }
        Ok(Descend::Into)
    })?;
    Ok(aside)
}
