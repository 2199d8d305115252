//! The agent's tools, which are actions: they work in the run's checkout, beneath its root, and commands run where the edge lets
//! them.
//!
//! Whether a call may be made is the gate's to say; here is only what it does.

mod patch;
mod read;
mod search;
mod shell;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use runyard_actions::{ActionError, Context, Exposure, Runtime, action};
use runyard_backend::beneath;
use runyard_backend::{Processes, Sight};
use runyard_domain::Surface;
use serde::Deserialize;

use self::patch::patch;
pub(super) use self::patch::{Edits, patch_text};
use self::read::{list, read};
use self::search::search;
use self::shell::shell;

/// So much of a file is looked through. A larger one cannot be edited.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Where the tools work.
pub(super) struct Workspace {
    pub(super) root: PathBuf,
    pub(super) sight: Arc<dyn Sight>,
    pub(super) processes: Arc<dyn Processes>,
    pub(super) environment: BTreeMap<String, String>,
}

impl Workspace {
    /// The beginning of a file, and whether it is all of it.
    fn beginning(&self, path: &str) -> io::Result<(Vec<u8>, bool)> {
        let mut bytes = beneath::read(&self.root, path, FILE_BYTES_MAX + 1)?;
        let max = usize::try_from(FILE_BYTES_MAX).unwrap_or(usize::MAX);
        let whole = bytes.len() <= max;
        bytes.truncate(max);
        Ok((bytes, whole))
    }
}

/// The tools as a runtime of actions.
pub(super) fn runtime(workspace: Workspace) -> Result<Runtime, String> {
    let actions = [read(), list(), search(), write(), patch(), shell()];
    // The agent's own model is who calls it, and the gate decides on every call.
    let exposure = Exposure::new().destructive("shell", [Surface::AiSdk]);
    let runtime = Runtime::builder().service(workspace).actions(actions).exposure(exposure).build();
    runtime.map_err(|error| error.to_string())
}

fn here() -> String {
    ".".to_owned()
}

#[derive(Deserialize, schemars::JsonSchema)]
struct WriteInput {
    /// The file, from the root of the workspace on.
    path: String,
    /// All that it holds from now on.
    content: String,
}

/// Writes a file of the workspace whole, with the directories on the way to it.
#[action(crate = "runyard_actions", side_effects = "write", idempotency = "idempotent")]
async fn write(input: WriteInput, ctx: &Context) -> Result<String, ActionError> {
    let workspace = ctx.service::<Workspace>()?;
    let WriteInput { path, content } = input;
    let (target, bytes) = (path.clone(), content.len());
    ctx.blocking(move || beneath::write(&workspace.root, &target, content.as_bytes()))
        .await?
        .map_err(|error| failed(format!("cannot write {path}: {error}")))?;
    Ok(format!("wrote {bytes} bytes to {path}"))
}

fn failed<T: Into<String>>(message: T) -> ActionError {
    ActionError::application("TOOL_FAILED", message)
}
