//! `$RUNYARD_HOME`: where an installation keeps what is its own.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// The data directory, `~/.runyard` unless `RUNYARD_HOME` says otherwise. Made on first use, for its owner alone.
#[derive(Clone, Debug)]
pub(crate) struct Home(PathBuf);

impl Home {
    pub(crate) fn find() -> anyhow::Result<Self> {
        if let Some(home) = std::env::var_os("RUNYARD_HOME").filter(|home| !home.is_empty()) {
            let path = std::path::absolute(PathBuf::from(home)).context("RUNYARD_HOME is no usable path")?;
            return Ok(Home(path));
        }
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
        let home = home.context("neither RUNYARD_HOME nor HOME is set: say where Runyard keeps its data")?;
        Ok(Home(PathBuf::from(home).join(".runyard")))
    }

    /// Nowhere, for commands that touch nothing.
    pub(crate) fn unknown() -> Self {
        Home(PathBuf::new())
    }

    /// The bearer token of this installation.
    pub(crate) fn token(&self) -> PathBuf {
        self.0.join("token")
    }

    /// The key of this installation's tags.
    pub(crate) fn tag_key(&self) -> PathBuf {
        self.0.join("tag.key")
    }

    /// `{url, pid, version, stay, flags}` while a hub runs.
    pub(crate) fn hub(&self) -> PathBuf {
        self.0.join("hub.json")
    }

    /// Locked while a process waits to be the next hub.
    pub(crate) fn hub_next_lock(&self) -> PathBuf {
        self.0.join("hub.next.lock")
    }

    /// What hubs in the background say.
    pub(crate) fn hub_log(&self) -> PathBuf {
        self.0.join("hub.log")
    }

    /// Locked while a hub runs.
    pub(crate) fn hub_lock(&self) -> PathBuf {
        self.0.join("hub.lock")
    }

    /// Everything that is recorded, unless PostgreSQL has it.
    pub(crate) fn database(&self) -> PathBuf {
        self.0.join("runyard.db")
    }

    /// What the edge in the hub's own process keeps.
    pub(crate) fn edge(&self) -> PathBuf {
        self.0.join("edge")
    }

    /// What collected checkouts had changed.
    pub(crate) fn archive(&self) -> PathBuf {
        self.0.join("archive")
    }

    /// The example's tasks.
    pub(crate) fn tasks(&self) -> PathBuf {
        self.0.join("tasks.json")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the directory, readable for its owner alone.
    pub(crate) fn make(&self) -> std::io::Result<()> {
        use std::os::unix::fs::DirBuilderExt;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0)
    }
}
