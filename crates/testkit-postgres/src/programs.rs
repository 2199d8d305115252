//! Where the server's programs are, and which version they have.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Where Debian keeps each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// The programs of one installed PostgreSQL.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) initdb: PathBuf,
    pub(crate) postgres: PathBuf,
    pub(crate) psql: PathBuf,
}

impl Programs {
    /// The newest in Debian's folders, otherwise what stands in `PATH`.
    pub(crate) fn find() -> Result<Self> {
        let folders = versioned().into_iter().chain(path());
        let folder = folders
            .into_iter()
            .find(|folder| ["initdb", "postgres"].iter().all(|program| folder.join(program).is_file()));
        let folder = folder.context(
            "there is no PostgreSQL server: no initdb and postgres in PATH or /usr/lib/postgresql/*/bin; \
             install the package postgresql",
        )?;
        let psql = std::iter::once(folder.clone()).chain(path()).map(|folder| folder.join("psql"));
        let psql = psql.into_iter().find(|psql| psql.is_file());
        let psql = psql.context("there is no psql; install the package postgresql-client")?;
        Ok(Self { initdb: folder.join("initdb"), postgres: folder.join("postgres"), psql })
    }

    /// The full version, `15.18`.
    pub(crate) fn version(&self) -> Result<String> {
        let output = Command::new(&self.postgres).arg("--version").output();
        let output = output.with_context(|| format!("cannot start {}", self.postgres.display()))?;
        ensure!(output.status.success(), "postgres --version failed: {}", output.status);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        Ok(version.with_context(|| format!("no version in {text:?}"))?.to_owned())
    }
}

/// Debian's folders, newest first.
fn versioned() -> Vec<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = Path::new(VERSIONS)
        .read_dir()
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    found.sort_unstable_by(|left, right| right.cmp(left));
    found.into_iter().map(|(_, folder)| folder).collect()
}

fn path() -> Vec<PathBuf> {
    std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}
