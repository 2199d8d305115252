//! What stands for the raw content of a request: a digest that only this edge can make.
//!
//! Hub and people compare digests; nobody can try out which content a digest stands for without the key.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use runyard_backend::failpoint;
use runyard_domain::gate::Request;
use serde_json::Value;
use sha2::Sha256;

use crate::EdgeError;
use crate::private;

const KEY_BYTES: usize = 32;
const KEY_FILE: &str = "digest.key";
/// What a digest is for stands before the content, so that none can be taken for another's.
const REQUEST: &[u8] = b"runyard request 1\n";
const CHANGES: &[u8] = b"runyard changes 1\n";

/// The key of an edge's digests.
#[derive(Clone)]
pub(crate) struct DigestKey(Hmac<Sha256>);

impl DigestKey {
    /// The edge's own, made on first use.
    pub(crate) fn of(home: &Path) -> Result<Self, EdgeError> {
        let failed = |source| EdgeError::Io { what: "the digest key", source };
        let path = home.join(KEY_FILE);
        match fs::read(&path) {
            Ok(bytes) => Self::from_bytes(&bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                make(home, &path).map_err(failed)?;
                Self::from_bytes(&fs::read(&path).map_err(failed)?)
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, EdgeError> {
        let wrong = EdgeError::Key { expected: KEY_BYTES };
        if bytes.len() != KEY_BYTES {
            return Err(wrong);
        }
        Hmac::new_from_slice(bytes).map(DigestKey).map_err(|_| wrong)
    }

    /// The digest of a request as the backend made it, in hexadecimal digits.
    pub(crate) fn of_request(&self, request: &Request) -> String {
        // It can always be written as JSON; were it not so, its content still tells it apart.
        let value = serde_json::to_value(request).unwrap_or_else(|_| format!("{request:?}").into());
        self.signed(REQUEST, sorted(value).to_string().as_bytes())
    }

    /// The digest of what changed in a run's checkout, or of a part of it that was chosen.
    pub(crate) fn of_changes(&self, described: &[u8]) -> String {
        self.signed(CHANGES, described)
    }

    fn signed(&self, purpose: &[u8], content: &[u8]) -> String {
        let mut mac = self.0.clone();
        mac.update(purpose);
        mac.update(content);
        let mut digest = String::with_capacity(64);
        for byte in mac.finalize().into_bytes() {
            let _ = write!(digest, "{byte:02x}");
        }
        digest
    }
}

/// Of two processes one makes it and both use it.
fn make(home: &Path, path: &Path) -> std::io::Result<()> {
    // A draft of its own for each: the file that is linked into place is never written again.
    let unique = u64::from_ne_bytes(private::random()?);
    let draft = home.join(format!("{KEY_FILE}.{unique:x}.draft"));
    let written = private::write_draft(&draft, &private::random::<KEY_BYTES>()?);
    failpoint::reach("key.make");
    let linked = written.and_then(|()| fs::hard_link(&draft, path));
    failpoint::reach("key.made");
    let _ = fs::remove_file(&draft);
    match linked.and_then(|()| private::sync_directory(home)) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    }
}

/// The value with the members of every object in one order: how a backend happens to write them is no difference.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(members.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        plain => plain,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use runyard_domain::gate::SideEffects;
    use serde_json::json;

    use super::*;

    fn shell(command: &str, cwd: &str) -> Request {
        Request::Shell { command: command.to_owned(), cwd: cwd.to_owned() }
    }

    #[test]
    fn c13_the_same_request_has_the_same_digest_after_a_restart_and_any_other_another() {
        let home = tempfile::tempdir().unwrap();
        let digest = |request: &Request| DigestKey::of(home.path()).unwrap().of_request(request);
        let asked = digest(&shell("make", "."));
        assert_eq!(asked, digest(&shell("make", ".")));
        assert_eq!(asked.len(), 64);
        for other in [
            shell("make ", "."),
            shell("make", "src"),
            Request::Write { path: "make".to_owned(), content: None },
            Request::Write { path: "make".to_owned(), content: Some(String::new()) },
        ] {
            assert_ne!(asked, digest(&other), "{other:?}");
        }
    }

    #[test]
    fn c13_the_order_of_an_inputs_members_is_no_difference() {
        let key = DigestKey::from_bytes(&[7; KEY_BYTES]).unwrap();
        let action =
            |input| Request::Action { action: "a".to_owned(), side_effects: SideEffects::Write, input };
        let one = action(json!({"a": 1, "b": {"c": [1, 2], "d": null}}));
        let same = action(json!({"b": {"d": null, "c": [1, 2]}, "a": 1}));
        let other = action(json!({"a": 1, "b": {"c": [2, 1], "d": null}}));
        assert_eq!(key.of_request(&one), key.of_request(&same));
        assert_ne!(key.of_request(&one), key.of_request(&other));
    }

    #[test]
    fn the_key_is_the_owners_alone_made_once_and_never_half() {
        let home = tempfile::tempdir().unwrap();
        let digests: Vec<String> = std::thread::scope(|scope| {
            let made: Vec<_> = (0..8).map(|_| scope.spawn(|| DigestKey::of(home.path()))).collect();
            let made = made.into_iter().map(|key| key.join().unwrap().unwrap());
            made.map(|key| key.of_request(&shell("make", "."))).collect()
        });
        assert!(digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");
        let mode = fs::metadata(home.path().join(KEY_FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::write(home.path().join(KEY_FILE), b"short").unwrap();
        assert!(matches!(DigestKey::of(home.path()), Err(EdgeError::Key { .. })));
    }
}
