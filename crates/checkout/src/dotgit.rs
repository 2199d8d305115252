//! The directories of repositories of our own: the one that an agent works with, and the one that only reads objects.
//!
//! Both borrow the workspace's objects and have a configuration of their own: no hook, no remote, no program.

use std::fmt::Write as _;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use crate::base::{Borrowed, ObjectFormat};
use crate::repository::{Repository, Stand};

/// What a checkout takes over of what the person configured: how files look to git, and who commits.
const TAKEN: [&str; 9] = [
    "user.name",
    "user.email",
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
];

/// Makes a repository that only reads objects.
pub(crate) fn objects(git_dir: &Path, borrowed: &Borrowed) -> io::Result<()> {
    skeleton(git_dir, borrowed)?;
    put(git_dir, "HEAD", b"ref: refs/heads/none\n")?;
    put(git_dir, "config", config(borrowed.format, "true", &[]).as_bytes())
}

/// Makes the repository that an agent works with.
pub(crate) fn write(
    git_dir: &Path,
    repository: &Repository,
    stand: &Stand,
    settings: &[(String, String)],
    exclude: &[u8],
    index: &[u8],
) -> io::Result<()> {
    skeleton(git_dir, &repository.borrowed)?;
    put(git_dir, "config", config(repository.borrowed.format, "false", settings).as_bytes())?;
    let head = match (&stand.symbolic, &stand.head) {
        (Some(name), _) => format!("ref: {name}\n"),
        (None, Some(head)) => format!("{}\n", head.as_str()),
        (None, None) => "ref: refs/heads/main\n".to_owned(),
    };
    put(git_dir, "HEAD", head.as_bytes())?;
    put(git_dir, "packed-refs", &packed(stand))?;
    put(git_dir, "info/exclude", exclude)?;
    let own = [
        ("info/attributes", repository.attributes()),
        ("info/sparse-checkout", repository.sparse()),
        ("shallow", repository.shallow()),
    ];
    for (name, content) in own {
        if let Some(content) = content {
            put(git_dir, name, &content)?;
        }
    }
    put(git_dir, "index", index)
}

/// All names that the repository begins with, as git packs them.
pub(crate) fn packed(stand: &Stand) -> Vec<u8> {
    let lines = stand.refs.iter();
    lines.flat_map(|(name, oid)| [oid.as_str().as_bytes(), b" ", name, b"\n"].concat()).collect()
}

fn skeleton(git_dir: &Path, borrowed: &Borrowed) -> io::Result<()> {
    for name in ["info", "objects/info", "objects/pack", "refs/heads", "refs/tags"] {
        DirBuilder::new().recursive(true).mode(0o700).create(git_dir.join(name))?;
    }
    let mut line = quoted(borrowed.objects.as_os_str().as_bytes());
    line.push(b'\n');
    put(git_dir, "objects/info/alternates", &line)
}

/// As git reads a path that would not be one line.
fn quoted(path: &[u8]) -> Vec<u8> {
    if !path.iter().any(|byte| matches!(byte, b'\n' | b'"' | b'\\')) {
        return path.to_vec();
    }
    let mut quoted = vec![b'"'];
    for byte in path {
        match byte {
            b'\n' => quoted.extend(b"\\n"),
            b'"' | b'\\' => quoted.extend([b'\\', *byte]),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'"');
    quoted
}

fn config(format: ObjectFormat, bare: &str, settings: &[(String, String)]) -> String {
    let (version, extension) = match format {
        ObjectFormat::Sha1 => ("0", ""),
        ObjectFormat::Sha256 => ("1", "[extensions]\n\tobjectformat = sha256\n"),
    };
    let mut config = format!(
        "[core]\n\trepositoryformatversion = {version}\n\tfilemode = true\n\tbare = {bare}\n\
         \tlogallrefupdates = true\n\thooksPath = /dev/null\n\tfsmonitor = false\n{extension}\
         [gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"
    );
    for (name, value) in settings {
        if let (true, Some((section, key))) = (TAKEN.contains(&name.as_str()), name.split_once('.')) {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = writeln!(config, "[{section}]\n\t{key} = \"{value}\"");
        }
    }
    config
}

fn put(git_dir: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(git_dir.join(name))?.write_all(content)
}
