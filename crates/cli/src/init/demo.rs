//! The demo agent, once, in a directory of its own: the same hub, edge, gate and record as for any other run.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use runyard::{ActionError, Code};
use serde_json::{Value, json};

use crate::home::Home;
use crate::hub_client::HubClient;
use crate::hub_here::{AnyHub, Stay};
use crate::run::{DEFAULT_AGENT, absolute};

/// The most events of the demo that are followed.
const EVENTS_MAX: usize = 10_000;

/// Runs it to its end, and gives the run.
pub(super) async fn run(home: &Home) -> Result<String, ActionError> {
    let place = Place::make()?;
    let path = absolute(&place.0)?;
    let mut hub = AnyHub::get(home, Stay::WithCommand).await?;
    let outcome = in_place(&mut hub, &path).await;
    hub.stop().await;
    outcome
}

async fn in_place(hub: &mut AnyHub, path: &str) -> Result<String, ActionError> {
    let client = hub.client();
    let added = call(client, "workspace_add", json!({"path": path})).await?;
    let outcome = to_the_end(client, path).await;
    let id = added["workspace"]["id"].clone();
    // It is gone in a moment, and is no place for other runs.
    let removed = call(client, "workspace_remove", json!({"id": id})).await;
    outcome.and_then(|run| removed.map(|_| run))
}

async fn to_the_end(client: &HubClient, path: &str) -> Result<String, ActionError> {
    let input = json!({
        "task": "look around",
        "agent": DEFAULT_AGENT,
        "workspace": path,
        // Nobody is asked, and nothing reaches the directory.
        "executionPolicy": {"approval": "never", "changes": "keep"},
    });
    let made = call(client, "run_create", input).await?;
    let run = made["run"]["id"].as_str().unwrap_or_default().to_owned();
    let mut events = client.follow(&run, 0).await?;
    for _ in 0..EVENTS_MAX {
        if events.next().await?.is_none() {
            break;
        }
    }
    let ended = call(client, "run_show", json!({"id": run})).await?;
    match ended["run"]["state"].as_str() {
        Some("completed") => Ok(run),
        state => {
            let why = ended["run"]["message"].as_str().unwrap_or_default();
            let message = format!("{run} is {}. {why}", state.unwrap_or("unknown").replace('_', " "));
            Err(ActionError::new(Code::Conflict, message))
        }
    }
}

/// Calls an action of the hub, for the person who said so with this command.
pub(super) async fn call(client: &HubClient, action: &str, input: Value) -> Result<Value, ActionError> {
    client.invoke(action, input, true, None).await?.outcome.map_err(ActionError::from)
}

/// Whether runs may work on this directory: asked by asking something else about it, since hubs tell no paths.
pub(super) async fn is_allowed(client: &HubClient, path: &str) -> Result<bool, ActionError> {
    let input = json!({"command": "true", "agent": DEFAULT_AGENT, "workspace": path});
    match call(client, "policy_test", input).await {
        Err(error) if *error.code() == Code::WorkspaceOutsideAllowlist => Ok(false),
        answered => answered.map(|_| true),
    }
}

/// A directory that is gone when this is.
struct Place(PathBuf);

impl Place {
    fn make() -> Result<Self, ActionError> {
        let path = std::env::temp_dir().join(format!("runyard-init-{}", std::process::id()));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        let made = made.and_then(|()| std::fs::write(path.join("README.md"), "A place for the demo.\n"));
        match made {
            Ok(()) => Ok(Place(path)),
            Err(error) => {
                let message = format!("Cannot make {}: {error}.", path.display());
                Err(ActionError::new(Code::StorageIo, message))
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(Path::new(&self.0));
    }
}
