//! Whose a run's directory is, and what became of it: two small files beside the checkout, where no agent writes.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use runyard_backend::failpoint;
use runyard_domain::{RunId, Timestamp, WorkspaceId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::private;

/// Whose a checkout is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// The run.
    pub run: RunId,
    /// The workspace that it was made from.
    pub workspace: WorkspaceId,
    /// The edge that made it.
    pub edge: String,
    /// When.
    pub made_at: Timestamp,
    /// When the run was over.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ended_at: Option<Timestamp>,
    /// How much of the disk its directory took then.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bytes: Option<u64>,
}

/// That a checkout was collected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gone {
    /// When.
    pub at: Timestamp,
    /// The name of the patch in the archive that holds what it changed; none where nothing was lost without one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub patch: Option<String>,
}

/// Reads one of the two; none where it is not there.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes one of the two, at once and durably.
pub(crate) fn write(path: &Path, what: &impl Serialize) -> io::Result<()> {
    let draft = path.with_extension("draft");
    private::write_draft(&draft, &serde_json::to_vec(what)?)?;
    failpoint::reach("owner.write");
    fs::rename(&draft, path)?;
    failpoint::reach("owner.written");
    private::sync_directory(path.parent().unwrap_or(Path::new("/")))
}
