//! The key that this installation signs with: made once, whoever comes first, and for its owner alone.

use std::fs::DirBuilder;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use runyard::{ActionError, Code};
use runyard_engine::bundle::{Fingerprint, SigningKey};

use super::draft::Draft;
use crate::home::Home;

fn path(home: &Home) -> PathBuf {
    home.path().join("keys").join("audit").with_extension("ed25519")
}

/// The key, made where there is none.
pub(super) fn own(home: &Home) -> Result<SigningKey, ActionError> {
    let path = path(home);
    let kept = match std::fs::read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            make(home).and_then(|()| std::fs::read(&path)).map_err(|error| refused(home, "made", &error))?
        }
        kept => kept.map_err(|error| refused(home, "read", &error))?,
    };
    SigningKey::from_pkcs8(&kept).map_err(|error| {
        let message = format!("{} is not usable: {error}. Restore it from a backup.", path.display());
        ActionError::new(error.code(), message)
    })
}

/// Whose key it is, if there is one.
pub(super) fn known(home: &Home) -> Option<Fingerprint> {
    let kept = std::fs::read(path(home)).ok()?;
    Some(SigningKey::from_pkcs8(&kept).ok()?.fingerprint())
}

/// Written beside and given its name, so that of two processes one makes it and both use it, and nobody reads half.
fn make(home: &Home) -> std::io::Result<()> {
    home.make()?;
    DirBuilder::new().recursive(true).mode(0o700).create(home.path().join("keys"))?;
    let kept = SigningKey::generate().map_err(std::io::Error::other)?;
    let mut draft = Draft::beside(&path(home))?;
    draft.file().write_all(&kept)?;
    // Where another made it first, that one is used.
    draft.publish(false).map(|_| ())
}

fn refused(home: &Home, what: &str, error: &std::io::Error) -> ActionError {
    let message = format!("{} cannot be {what}: {error}.", path(home).display());
    ActionError::new(Code::StorageIo, message)
}
