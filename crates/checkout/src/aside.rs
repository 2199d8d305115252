//! Work that lies in a checkout's own repository and not in its files: a stash, a tag, or a branch that is not checked out.
//!
//! What the files hold is found by comparing; this is only to be known before a checkout goes. Nothing in the repository is
//! executed, and nothing there is believed but that something is there: every name counts that it did not begin with, or that
//! stands for something else now. Of the branch that is checked out the files tell. Objects without a name are not looked for.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::base::REFS;
use crate::{CheckoutError, Descend, FILE_BYTES_MAX, Kind, RelPath, Root};

/// How long a file is at most that says what is checked out.
const HEAD_BYTES_MAX: u64 = 4 * 1024;
/// What a repository has that keeps names where they are not looked for.
const ELSEWHERE: [(&[u8], &str); 3] = [
    (b".git/reftable", "names in a form that is not read"),
    (b".git/commondir", "names elsewhere"),
    (b".git/worktrees", "another working tree"),
];

/// The name of something that was put aside in a checkout's repository, if there is something or if that cannot be told. What it
/// began with is in `base_dir`.
pub fn put_aside(checkout: &Root, base_dir: &Path) -> Result<Option<String>, CheckoutError> {
    match checkout.look(&RelPath::parse(b".git")?)?.map(|found| found.kind) {
        None => return Ok(None),
        Some(Kind::Directory) => {}
        Some(_) => return Ok(Some("its own directory elsewhere".to_owned())),
    }
    for (path, what) in ELSEWHERE {
        if checkout.look(&RelPath::parse(path)?)?.is_some() {
            return Ok(Some(what.to_owned()));
        }
    }
    let head = read(checkout, b".git/HEAD", HEAD_BYTES_MAX)?;
    let current = head.strip_prefix(b"ref: ").map(<[u8]>::trim_ascii_end);
    let current = current.filter(|name| name.starts_with(b"refs/heads/"));
    match loose(checkout, current)? {
        None => packed(checkout, base_dir, current),
        aside => Ok(aside),
    }
}

/// All names were packed when it was made, so one that stands alone is new.
fn loose(checkout: &Root, current: Option<&[u8]>) -> Result<Option<String>, CheckoutError> {
    let refs = RelPath::parse(b".git/refs")?;
    match checkout.look(&refs)?.map(|found| found.kind) {
        None => return Ok(None),
        Some(Kind::Directory) => {}
        Some(_) => return Ok(Some("names elsewhere".to_owned())),
    }
    let mut aside = None;
    checkout.beneath(&refs)?.walk(|path, found| {
        let name = [b"refs/", path.as_bytes()].concat();
        if found.kind != Kind::Directory && Some(name.as_slice()) != current {
            aside.get_or_insert_with(|| called(&name));
        }
        Ok(Descend::Into)
    })?;
    Ok(aside)
}

/// Git may have packed new names too.
fn packed(checkout: &Root, base_dir: &Path, current: Option<&[u8]>) -> Result<Option<String>, CheckoutError> {
    let begun = match fs::read(base_dir.join(REFS)) {
        // Then no name is known to be an old one.
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        begun => begun.map_err(|source| {
            let path = "the names that the checkout began with".to_owned();
            CheckoutError::Io { doing: "read", path, source }
        })?,
    };
    let known: HashSet<&[u8]> = lines(&begun).collect();
    let now = read(checkout, b".git/packed-refs", FILE_BYTES_MAX)?;
    // What a tag leads to follows it, and is no name.
    let names = lines(&now).filter(|line| !line.starts_with(b"#") && !line.starts_with(b"^"));
    let new = names.filter(|line| !known.contains(line));
    let mut new = new.map(|line| line.splitn(2, |byte| *byte == b' ').nth(1).unwrap_or(line));
    Ok(new.find(|name| Some(*name) != current).map(called))
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// Nothing where it is not there.
fn read(checkout: &Root, path: &[u8], bytes_max: u64) -> Result<Vec<u8>, CheckoutError> {
    match checkout.read(&RelPath::parse(path)?, bytes_max) {
        Err(error) if error.is_missing() => Ok(Vec::new()),
        read => read.map(|read| read.bytes),
    }
}

/// A name of git, for people.
fn called(name: &[u8]) -> String {
    let Ok(path) = RelPath::parse(name) else { return "a name that is none".to_owned() };
    let path = path.to_string();
    match (path.strip_prefix("refs/heads/"), path.strip_prefix("refs/tags/")) {
        _ if path == "refs/stash" => "a stash".to_owned(),
        (Some(branch), _) => format!("the branch {branch}"),
        (_, Some(tag)) => format!("the tag {tag}"),
        _ => format!("the name {path}"),
    }
}
