//! What the binary is made of: the only place that names concrete parts.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use runyard::{Runtime, RuntimeBuilder, command_actions};
use runyard_example_tasks as tasks;
use runyard_store::Store;

use crate::builtin;
use crate::home::Home;
use crate::installation;
use crate::kept_results::KeptResults;

/// The actions of a command: idempotency keys last as long as the process.
pub(crate) fn runtime(home: &Home) -> anyhow::Result<Runtime> {
    actions(home)?.build().context("the actions are not well defined")
}

/// The actions of a hub: what idempotency keys stand for is in its store.
pub(crate) fn hub_runtime(home: &Home, store: Arc<dyn Store>) -> anyhow::Result<Runtime> {
    let key = installation::tag_key(home)?;
    let redactor = installation::redactor(home, key).build().context("cannot redact")?;
    runyard_redact::process::set(redactor.clone());
    let results = KeptResults::new(store, redactor);
    actions(home)?.idempotency(results).build().context("the actions are not well defined")
}

/// The built-in actions, the example's, and those that the installation's configuration declares.
fn actions(home: &Home) -> anyhow::Result<RuntimeBuilder> {
    let file = home.configuration();
    let declared = match read_own(&file) {
        Ok(text) => command_actions(&text, home.path()).with_context(|| format!("in {}", file.display()))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
    };
    Ok(Runtime::builder()
        .actions(builtin::actions())
        .service(tasks::Tasks::in_file(home.tasks()))
        .actions(tasks::actions())
        .actions(declared)
        .exposure(tasks::exposure()))
}

/// Reads a file that names commands to run, so nobody else may be able to write it.
fn read_own(file: &Path) -> std::io::Result<String> {
    let mode = std::fs::metadata(file)?.permissions().mode();
    if mode & 0o022 != 0 {
        let problem = "others can write it; take that away with chmod go-w";
        return Err(std::io::Error::new(std::io::ErrorKind::PermissionDenied, problem));
    }
    std::fs::read_to_string(file)
}
