//! What an edge does for a run that has no agent, or none any more: no backend is started, and nothing but Runyard's own code runs.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use runyard_backend::JournalError;
use runyard_backend::link::{OpenRun, Report, Stage, Work};
use runyard_domain::Code;
use runyard_domain::run::Failure;
use runyard_redact::Redactor;
use tokio::sync::watch;

use crate::applying::{Approved, Job, apply_approved, take_back};
use crate::edge::Shared;
use crate::granted;
use crate::outbox::{Closing, Outbox};
use crate::owner::Gone;
use crate::places::Places;
use crate::prepare::{allowed_root, own_fault, redactor};
use crate::review;
use crate::session::closed;

/// What is checked before changes of another run are carried, in order.
const CHECKS: [&str; 5] = ["processes", "workspace", "backend", "policy", "credentials"];

/// What is found where nothing keeps it from starting.
fn found(open: &OpenRun) -> BTreeMap<String, String> {
    let workspace = format!("{} is on the allow-list", open.workspace.label);
    let found = [
        "none of an earlier session is left",
        &workspace,
        "no agent is started: only Runyard's own code runs",
        "what is brought to a person's files is asked about",
        "none are used",
    ];
    CHECKS.map(str::to_owned).into_iter().zip(found.map(str::to_owned)).collect()
}

/// Looks at what changed, or applies what was approved, and tells the hub.
pub(crate) async fn run(
    edge: &Shared,
    open: OpenRun,
    mut outbox: Outbox,
    mut closing: watch::Receiver<Closing>,
    stop_applying: Arc<AtomicBool>,
    living: &Arc<watch::Sender<()>>,
) {
    tokio::select! {
        biased;
        _ = closed(&mut closing) => {}
        done = work(edge, &open, &mut outbox, stop_applying, living) => {
            if let Err(error) = done {
                tracing::info!(run = %open.run, %error, "what a run changed is not told any more");
            }
        }
    }
}

async fn work(
    edge: &Shared,
    open: &OpenRun,
    outbox: &mut Outbox,
    stop_applying: Arc<AtomicBool>,
    living: &Arc<watch::Sender<()>>,
) -> Result<(), JournalError> {
    let (Work::Review { changes } | Work::Apply { changes, .. } | Work::TakeBack { changes, .. }) = open.work
    else {
        return Ok(());
    };
    accept(open, outbox).await?;
    let (own, source) = (Places::of(&edge.home, open.run), Places::of(&edge.home, changes.run));
    let (job, redactor, _held) = match ready(edge, open, own, source, changes.undo).await {
        Ok(ready) => ready,
        Err(failure) => return outbox.put(vec![Report::Failed { failure }]).await.map(drop),
    };
    if open.stage != Stage::Running {
        let (backend_kind, protocol) = ("runyard".to_owned(), "runyard-apply".to_owned());
        outbox.put(vec![Report::Started { backend_kind, protocol, checks: found(open) }]).await?;
    }
    match &open.work {
        Work::Apply { digest, selection, to, message, begun, .. } => {
            let approved = Approved {
                digest: digest.clone(),
                selection: selection.clone(),
                to: to.clone(),
                message: message.clone(),
                begun: begun.clone(),
            };
            apply_approved(job, approved, outbox, stop_applying, living).await
        }
        Work::TakeBack { to, begun, .. } => take_back(job, to, begun, outbox, living).await,
        _ if changes.undo => review::tell_undo(job, redactor, outbox, living).await,
        _ => review::tell(job, redactor, outbox, living).await,
    }
}

/// A run that begins with this says so first, like every other.
async fn accept(open: &OpenRun, outbox: &mut Outbox) -> Result<(), JournalError> {
    if open.stage == Stage::Planned {
        outbox.put(vec![Report::Accepted]).await?;
    }
    if matches!(open.stage, Stage::Planned | Stage::Accepted) {
        outbox.put(vec![Report::Preparing { checks: CHECKS.map(str::to_owned).to_vec() }]).await?;
    }
    Ok(())
}

async fn ready(
    edge: &Shared,
    open: &OpenRun,
    own: Places,
    source: Places,
    undo: bool,
) -> Result<(Job, Redactor, Option<File>), Failure> {
    own.make().map_err(|error| own_fault("the run's directory cannot be made", &error))?;
    let settled = edge.supervision.settled(&source.lock()).await;
    settled.map_err(|error| own_fault("processes of the run are still there", &error))?;
    let held = match source.directory().is_dir() {
        true => {
            Some(source.held().await.map_err(|error| own_fault("the run's directory is in use", &error))?)
        }
        false => None,
    };
    // What had begun is settled by this run's own journal, and needs no checkout.
    let begun = matches!(open.work, Work::Apply { begun: Some(_), .. } | Work::TakeBack { .. });
    if !undo
        && !begun
        && let Ok(Some(gone)) = source.gone()
    {
        return Err(collected(&gone));
    }
    let workspace = allowed_root(edge, open).await?;
    let redactor = redactor(edge, open, &source, &workspace, granted::known(edge, open).await)?;
    Ok((Job { own, source, undo, workspace, key: edge.key.clone() }, redactor, held))
}

/// There is nothing left to apply from, and what it was is elsewhere.
fn collected(gone: &Gone) -> Failure {
    let message = match &gone.patch {
        Some(patch) => format!(
            "The run's checkout was collected at {}. What it changed is kept as archive/{patch} in the data directory; bring it to \
             your files with \"git apply\".",
            gone.at
        ),
        None => format!(
            "The run's checkout was collected at {}: nothing had changed, or all of it was in your files.",
            gone.at
        ),
    };
    Failure::new(Code::CheckoutCollected, message)
}
