//! What this installation redacts with: its own key for tags, and the paths that nobody else is shown.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use runyard_backend::failpoint;
use runyard_redact::{Known, Redactor, RedactorBuilder, TagKey};
use sha2::{Digest, Sha256};

use crate::home::Home;

const KEY_BYTES: usize = 32;

/// The key of this installation's tags, made on first use. It is as secret as the token.
pub(crate) fn tag_key(home: &Home) -> anyhow::Result<TagKey> {
    let path = home.tag_key();
    match std::fs::read(&path) {
        Ok(bytes) => match <[u8; KEY_BYTES]>::try_from(bytes) {
            Ok(bytes) => Ok(TagKey::from_bytes(bytes)),
            Err(_) => {
                bail!("{} does not hold {KEY_BYTES} bytes; remove it to have a new key made", path.display())
            }
        },
        Err(error) if error.kind() == ErrorKind::NotFound => {
            make(home, &path).with_context(|| format!("cannot make {}", path.display()))
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// The key of the digests that this hub makes: another one than that of the tags, and as secret.
pub(crate) fn digest_key(home: &Home) -> anyhow::Result<[u8; KEY_BYTES]> {
    tag_key(home)?;
    let bytes = std::fs::read(home.tag_key()).context("cannot read the key of the tags")?;
    Ok(Sha256::new_with_prefix(b"digests of calls").chain_update(bytes).finalize().into())
}

/// Written beside and linked into place, so that of two processes one makes it and both use it, and nobody reads half.
fn make(home: &Home, path: &Path) -> anyhow::Result<TagKey> {
    home.make()?;
    let mut bytes = [0; KEY_BYTES];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let draft = path.with_extension(format!("{}.draft", std::process::id()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    let written = file.write_all(&bytes).and_then(|()| file.sync_all());
    failpoint::reach("key.make");
    let linked = written.and_then(|()| std::fs::hard_link(&draft, path));
    failpoint::reach("key.made");
    let _ = std::fs::remove_file(&draft);
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error.into()),
        Err(_) => tag_key(home),
        Ok(()) => Ok(TagKey::from_bytes(bytes)),
    }
}

/// A redactor that knows this installation's private paths, before it is told values.
pub(crate) fn redactor(home: &Home, key: TagKey) -> RedactorBuilder {
    // Whoever holds this token owns the installation. There is none before the first hub.
    let token = std::fs::read_to_string(home.token()).ok();
    let token = token.map(|text| Known::named("token", text.trim()));
    let mut builder = Redactor::builder(key).known(token);
    for (path, shown) in private_paths(home) {
        builder = builder.private_path(path, shown);
    }
    builder
}

fn private_paths(home: &Home) -> Vec<(PathBuf, &'static str)> {
    let user = std::env::var_os("HOME").map(PathBuf::from);
    let own = [(Some(home.path().to_owned()), "<data>"), (user, "<home>")];
    let temporary = [std::env::temp_dir(), PathBuf::from("/tmp"), PathBuf::from("/var/tmp")];
    let temporary = temporary.into_iter().map(|path| (Some(path), "<tmp>"));
    // The root directory, say, is nobody's own: everything lies below it.
    let usable = |path: &PathBuf| path.is_absolute() && path.as_os_str().len() > 2;
    let all = own.into_iter().chain(temporary);
    all.filter_map(|(path, shown)| Some((path.filter(usable)?, shown))).collect()
}
