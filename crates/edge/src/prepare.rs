//! What an edge checks and prepares before a run's backend starts, in the order in which the run says so.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use runyard_backend::Backend;
use runyard_backend::link::{OpenRun, Stage};
use runyard_domain::Code;
use runyard_domain::run::{Failure, FailureKind};
use runyard_redact::{Kind, Known, Redactor};
use tokio::sync::watch;

use crate::checkout::{self, CheckoutError, Copied, Limits};
use crate::edge::Shared;
use crate::places::Places;
use crate::private;

/// What is checked, in order.
pub(crate) const CHECKS: [&str; 7] =
    ["processes", "workspace", "backend", "policy", "credentials", "sandbox", "checkout"];

/// A run that is ready to start.
pub(crate) struct Prepared {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) redactor: Redactor,
    /// What was found, by check.
    pub(crate) found: BTreeMap<String, String>,
    /// What cannot be relied on.
    pub(crate) degraded: Vec<String>,
}

/// Checks everything, and makes the checkout of a run that has not started yet.
pub(crate) async fn prepare(
    edge: &Shared,
    open: &OpenRun,
    places: &Places,
    living: &Arc<watch::Sender<()>>,
) -> Result<Prepared, Failure> {
    let mut found = BTreeMap::new();
    let mut note = |check: &str, what: String| found.insert(check.to_owned(), what);

    places.make().map_err(|error| own_fault("the run's directory cannot be made", &error))?;
    let shared = Places::of_session(&edge.home, open.session, &open.backend_profile.profile);
    private::make_directory(&shared)
        .map_err(|error| own_fault("the session's directory cannot be made", &error))?;
    let settled = edge.supervision.settled(&places.lock()).await;
    settled.map_err(|error| own_fault("processes of an earlier session are still there", &error))?;
    note("processes", "none of an earlier session is left".to_owned());

    let root = edge.workspaces.root(open.workspace.id).await.map_err(|error| {
        let message = format!("the workspace {} is not on this edge's allow-list", open.workspace.label);
        tracing::info!(run = %open.run, %error, "a run's workspace was refused");
        Failure::new(Code::WorkspaceOutsideAllowlist, message)
    })?;
    note("workspace", format!("{} is on the allow-list", open.workspace.label));
    let redactor = redactor(edge, open, places, &root)?;
    let safe = |text: &str| redactor.text(Kind::Text, text).into_inner();

    let kind = &open.backend_profile.backend_kind;
    let backend = edge.backends.get(kind).cloned().ok_or_else(|| {
        Failure::of_backend(
            FailureKind::BackendSpawnFailed,
            format!("this edge has no backend of kind {kind}"),
        )
    })?;
    let checked = backend.check(&open.backend_profile).await;
    let checked = checked.map_err(|error| Failure::of_backend(error.failure_kind, safe(&error.message)))?;
    note("backend", safe(&checked));

    let policy = edge.policies.current();
    let policy =
        policy.ok_or_else(|| Failure::new(Code::PermissionDenied, "the edge holds no policy to judge by"))?;
    note("policy", format!("version {}, preset {}", policy.version, open.approval_policy.preset));
    note("credentials", "no secret is projected".to_owned());
    note("sandbox", edge.sandbox.clone());

    let (checkout, degraded) = match open.stage {
        Stage::Running => (kept(places)?, Vec::new()),
        Stage::Planned | Stage::Accepted | Stage::Preparing => {
            let copied = copy(&root, places, Arc::clone(living)).await?;
            runyard_backend::failpoint::reach("checkout.made");
            (described(&copied), copied.degraded().iter().map(|reason| safe(reason)).collect())
        }
    };
    note("checkout", checkout);
    Ok(Prepared { backend, redactor, found, degraded })
}

/// A redactor that knows this run's token and places.
fn redactor(edge: &Shared, open: &OpenRun, places: &Places, root: &Path) -> Result<Redactor, Failure> {
    let known = [Known::named("RUNYARD_RUN_TOKEN", open.run_token.clone())];
    let built = (edge.redactors)()
        .known(known)
        .workspace(places.checkout())
        .workspace(root)
        .private_path(places.directory(), "<run>")
        .private_path(&edge.home, "<edge>")
        .build();
    built.map_err(|error| {
        tracing::error!(run = %open.run, %error, "no redactor for a run");
        Failure::new(error.code(), "what the run says could not be redacted")
    })
}

/// The checkout of a run that had started, as it is.
fn kept(places: &Places) -> Result<String, Failure> {
    match places.checkout().is_dir() {
        true => Ok("kept as it was".to_owned()),
        false => Err(Failure::new(Code::OutcomeUnknown, "the run had started, and its checkout is gone")),
    }
}

async fn copy(root: &Path, places: &Places, living: Arc<watch::Sender<()>>) -> Result<Copied, Failure> {
    /// Stops the copy when nobody waits for it any more.
    struct Stop(Arc<AtomicBool>);
    impl Drop for Stop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = Stop(Arc::default());
    let (root, to, stopped) = (root.to_owned(), places.checkout(), Arc::clone(&stop.0));
    let copied = tokio::task::spawn_blocking(move || {
        let copied = checkout::make(&root, &to, Limits::default(), &stopped);
        // The session is not over before its copy is: the next one would use the same place.
        drop(living);
        copied
    })
    .await;
    let code = |error: &CheckoutError| match error {
        CheckoutError::TooManyFiles(_) | CheckoutError::TooLarge(_) | CheckoutError::TooDeep { .. } => {
            Code::ValidationError
        }
        CheckoutError::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
            Code::StorageDiskFull
        }
        CheckoutError::Io { .. } | CheckoutError::Stopped => Code::StorageIo,
    };
    match copied {
        Ok(copied) => copied.map_err(|error| Failure::new(code(&error), error.to_string())),
        Err(error) => Err(own_fault("the checkout could not be made", &error)),
    }
}

fn described(copied: &Copied) -> String {
    let mut described = format!("a private copy of {} files, {} bytes", copied.files, copied.bytes);
    if copied.special > 0 {
        described.push_str(&format!("; {} special files are left out", copied.special));
    }
    described
}

/// A failure of the edge itself. The detail may hold private paths and goes to the edge's own log.
fn own_fault(message: &str, error: &(dyn std::error::Error + 'static)) -> Failure {
    tracing::error!(error, "{message}");
    Failure::new(Code::StorageIo, message)
}
