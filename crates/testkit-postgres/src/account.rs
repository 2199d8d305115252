//! Whom the server runs as: never root, which PostgreSQL refuses.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Who takes root's place, in order of preference.
const STAND_INS: [&str; 2] = ["postgres", "nobody"];

/// Whom the server's programs run as.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Account {
    /// The user who runs the test.
    Own,
    /// Someone else, because the test runs as root.
    StandIn { uid: u32, gid: u32 },
}

impl Account {
    pub(crate) fn find() -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Own);
        }
        for name in STAND_INS {
            if let (Some(uid), Some(gid)) = (id("-u", name), id("-g", name)) {
                return Ok(Self::StandIn { uid, gid });
            }
        }
        bail!("PostgreSQL refuses to run as root, and there is none of the users {STAND_INS:?}")
    }

    /// The command of that account. It keeps no group of root's.
    pub(crate) fn command(self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if let Self::StandIn { uid, gid } = self {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Where its folders go. The test's own folder for such things may be closed to others.
    pub(crate) fn scratch(self) -> PathBuf {
        match self {
            Self::Own => std::env::temp_dir(),
            Self::StandIn { .. } => PathBuf::from("/tmp"),
        }
    }

    /// Gives a file or folder to the account.
    pub(crate) fn own(self, path: &Path) -> Result<()> {
        if let Self::StandIn { uid, gid } = self {
            chown(path, Some(uid), Some(gid))
                .with_context(|| format!("cannot give {} away", path.display()))?;
        }
        Ok(())
    }
}

fn id(what: &str, name: &str) -> Option<u32> {
    let output = Command::new("id").args([what, name]).output().ok()?;
    if !output.status.success() {
        return None;
    }
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
