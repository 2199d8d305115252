//! Bringing what a person approved to their files.
//!
//! What was approved must still be what is in the checkout: it is looked at again, and its digest compared. Everything that is needed
//! to finish or to take back is on disk before the hub hears that it begins, and it begins when the hub has recorded that. After a
//! death the files themselves say how far it came.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use runyard_backend::JournalError;
use runyard_backend::failpoint;
use runyard_backend::link::Report;
use runyard_checkout::apply::{self, ApplyError, ApplyLimits, Chosen, Edit, Plan, Selection, Settled, Sides};
use runyard_checkout::{Changes, CheckoutError, FileId, Root, commit, discard};
use runyard_domain::run::Failure;
use runyard_domain::{ApplyTo, Code, DiffStats, SelectedFile};
use runyard_redact::holds_placeholder;
use tokio::sync::watch;

use crate::blocking::blocking;
use crate::digest::DigestKey;
use crate::outbox::Outbox;
use crate::places::Places;
use crate::prepare::own_fault;
use crate::review;

/// How many conflicts are named.
const NAMED_MAX: usize = 5;
const IN_PLACE: &str = "All of it is in your files already, so there is nothing to apply.";
const CHANGED: &str = "What is there changed after it was approved; nothing was applied.";

/// What is to be applied, and to where.
#[derive(Clone)]
pub(crate) struct Job {
    /// The run that applies: its directory holds the journal.
    pub(crate) own: Places,
    /// The run that made the changes, or that applied what is taken back.
    pub(crate) source: Places,
    pub(crate) undo: bool,
    /// The person's files.
    pub(crate) workspace: PathBuf,
    pub(crate) key: DigestKey,
}

/// What was approved of it.
pub(crate) struct Approved {
    /// Stands for all that was looked at.
    pub(crate) digest: String,
    pub(crate) selection: Option<Vec<SelectedFile>>,
    pub(crate) to: ApplyTo,
    /// What a commit says.
    pub(crate) message: String,
    /// Stands for the part whose applying had begun.
    pub(crate) begun: Option<String>,
}

/// Applies what was approved, and tells the hub.
pub(crate) async fn apply_approved(
    job: Job,
    approved: Approved,
    outbox: &mut Outbox,
    stop_applying: Arc<AtomicBool>,
    living: &Arc<watch::Sender<()>>,
) -> Result<(), JournalError> {
    let commits = approved.to != ApplyTo::Files;
    let staged = match &approved.begun {
        // Everything was ready when it began; the files say how far it came.
        Some(begun) => Ok((begun.clone(), DiffStats::default())),
        None => {
            let job = job.clone();
            let staged = blocking(living, move |stop| job.stage(&approved, stop)).await;
            staged.unwrap_or_else(|error| Err(own_fault("what was approved could not be prepared", &error)))
        }
    };
    let (digest, stats) = match staged {
        Ok(staged) => staged,
        Err(failure) => return outbox.put(vec![Report::Failed { failure }]).await.map(drop),
    };
    outbox.put(vec![Report::Applying { digest: digest.clone(), stats }]).await?;
    failpoint::reach("apply.begin");
    // A hub that only goes away lets it come to its end; the files are never left half way.
    let carried = blocking(living, move |_| job.carry_out(commits, &stop_applying));
    let report = match carried.await {
        Ok(Ok(commit)) => {
            failpoint::reach("apply.done");
            Report::Applied { digest, commit }
        }
        Ok(Err(ApplyError::Checkout(CheckoutError::Stopped))) => Report::TakenBack,
        Ok(Err(error)) => Report::Failed { failure: failure(&error) },
        Err(error) => Report::Failed { failure: own_fault("applying broke down", &error) },
    };
    outbox.put(vec![report]).await.map(drop)
}

/// Finds out what became of an apply that somebody stopped, takes back what is not all in place, and tells the hub.
pub(crate) async fn take_back(
    job: Job,
    to: &ApplyTo,
    begun: &str,
    outbox: &mut Outbox,
    living: &Arc<watch::Sender<()>>,
) -> Result<(), JournalError> {
    let commits = *to != ApplyTo::Files;
    let report = match blocking(living, move |stop| job.take_back(commits, stop)).await {
        Ok(Ok(Some(commit))) => Report::Applied { digest: begun.to_owned(), commit },
        Ok(Ok(None)) => Report::TakenBack,
        Ok(Err(error)) => Report::Failed { failure: failure(&error) },
        Err(error) => Report::Failed { failure: own_fault("taking back broke down", &error) },
    };
    outbox.put(vec![report]).await.map(drop)
}

impl Job {
    /// Looks once more, and puts everything on disk that applying needs.
    fn stage(&self, approved: &Approved, stop: &AtomicBool) -> Result<(String, DiffStats), Failure> {
        let journal = self.own.applied();
        failpoint::reach("apply.stage");
        // What an attempt left behind that never began.
        discard(&journal).map_err(|error| own_fault("applying cannot be prepared", &error))?;
        let (described, files) = match self.undo {
            true => self.stage_undo(&approved.digest, &journal)?,
            false => self.stage_changes(approved, &journal, stop)?,
        };
        failpoint::reach("apply.staged");
        let stats = DiffStats { files: files as u64, ..DiffStats::default() };
        Ok((self.key.of_changes(&described), stats))
    }

    fn stage_changes(
        &self,
        approved: &Approved,
        journal: &Path,
        stop: &AtomicBool,
    ) -> Result<(Vec<u8>, usize), Failure> {
        let mut looked =
            review::look(&self.source, &self.key, stop).map_err(|error| review::failure(&error))?;
        if looked.digest != approved.digest {
            return Err(Failure::new(Code::Conflict, CHANGED));
        }
        let selection = approved.selection.as_deref().map(|chosen| selected(chosen, &looked.changes));
        let selection = selection.transpose()?;
        let workspace = Root::open(&self.workspace).map_err(|error| review::failure(&error))?;
        let mut sides = Sides {
            base: &looked.base,
            contents: &mut looked.contents,
            checkout: &looked.checkout,
            workspace: &workspace,
        };
        let (changes, selection, limits) = (&looked.changes, selection.as_ref(), ApplyLimits::default());
        let placeholder = |bytes: &[u8]| holds_placeholder(bytes);
        let onto = match &approved.to {
            ApplyTo::Files => {
                let plan = apply::plan(changes, selection, &mut sides, &placeholder, &limits);
                let plan = plan.map_err(|error| failure(&error))?;
                // A run's own changes end with it, whoever brought them; a second time is a mistake to be told.
                if plan.edits.is_empty() && self.is_carried() {
                    return Err(Failure::new(Code::Conflict, IN_PLACE));
                }
                plan.stage(journal, &workspace).map_err(|error| failure(&error))?;
                return Ok((plan.describe(), plan.edits.len()));
            }
            ApplyTo::Commit => commit::Onto::Head,
            ApplyTo::Branch(name) => commit::Onto::Branch(name.clone()),
        };
        let place = commit::Place { path: &self.workspace, workspace: &workspace, stop };
        let request = commit::Request { place, journal, onto, message: &approved.message };
        let plan = commit::plan(&request, changes, selection, &mut sides, &placeholder, &limits);
        let plan = plan.map_err(|error| failure(&error))?;
        plan.stage(place, journal).map_err(|error| failure(&error))?;
        Ok((plan.describe(), plan.tree.edits.len()))
    }

    /// Whether another run made the changes.
    fn is_carried(&self) -> bool {
        self.own.directory() != self.source.directory()
    }

    fn stage_undo(&self, digest: &str, journal: &Path) -> Result<(Vec<u8>, usize), Failure> {
        let workspace = Root::open(&self.workspace).map_err(|error| review::failure(&error))?;
        let back = self.undo_plan(&workspace).map_err(|error| failure(&error))?;
        if self.key.of_changes(&back.describe()) != digest {
            return Err(Failure::new(Code::Conflict, CHANGED));
        }
        // Taking a commit back stages itself, in one go with carrying it out.
        if let Back::Files(plan) = &back {
            plan.stage(journal, &workspace).map_err(|error| failure(&error))?;
        }
        Ok((back.describe(), back.edits().len()))
    }

    /// What taking back would write.
    pub(crate) fn undo_plan(&self, workspace: &Root) -> Result<Back, ApplyError> {
        let (journal, limits) = (self.source.applied(), ApplyLimits::default());
        if !commit::is_there(&journal) {
            return apply::plan_undo(&journal, workspace, &limits).map(Back::Files);
        }
        let stop = AtomicBool::new(false);
        let place = commit::Place { path: &self.workspace, workspace, stop: &stop };
        commit::plan_undo(place, &journal, &limits).map(Back::Commit)
    }

    /// Brings what is staged to the person's files, all of it or nothing. Gives the commit, where one was asked for.
    fn carry_out(&self, commits: bool, stop: &AtomicBool) -> Result<Option<String>, ApplyError> {
        let (journal, workspace) = (self.own.applied(), Root::open(&self.workspace)?);
        let place = commit::Place { path: &self.workspace, workspace: &workspace, stop };
        let applied = self.source.applied();
        if self.undo && commit::is_there(&applied) {
            return commit::undo(place, &applied, &journal, &ApplyLimits::default(), &reached).map(|_| None);
        }
        if !commits {
            return apply::carry_out(&journal, &workspace, stop, &reached).map(|_| None);
        }
        let made = commit::carry_out(place, &journal, &reached)?;
        Ok(Some(made.commit.as_str().to_owned()))
    }

    /// Makes what was begun all or nothing. Where it is all, it stays, and gives the commit that was asked for.
    fn take_back(&self, commits: bool, stop: &AtomicBool) -> Result<Option<Option<String>>, ApplyError> {
        let (journal, workspace) = (self.own.applied(), Root::open(&self.workspace)?);
        let place = commit::Place { path: &self.workspace, workspace: &workspace, stop };
        let settled = match commit::is_there(&journal) {
            true => commit::settle(place, &journal, &reached)?,
            false => apply::settle(&journal, &workspace, &reached)?,
        };
        match settled {
            // Nothing is left to be done; what came of it is looked up.
            Settled::Applied => self.carry_out(commits, stop).map(Some),
            Settled::NotApplied => Ok(None),
            Settled::Torn { paths } => Err(ApplyError::Torn { paths }),
        }
    }
}

/// What taking back would do.
pub(crate) enum Back {
    /// To the person's files.
    Files(Plan),
    /// To a commit, and to the files that went with it.
    Commit(commit::UndoPlan),
}

impl Back {
    pub(crate) fn describe(&self) -> Vec<u8> {
        match self {
            Back::Files(plan) => plan.describe(),
            Back::Commit(plan) => plan.describe(),
        }
    }

    pub(crate) fn edits(&self) -> &[Edit] {
        match self {
            Back::Files(plan) => &plan.edits,
            Back::Commit(plan) => &plan.files,
        }
    }

    /// What it is, in a line.
    pub(crate) fn target(&self) -> String {
        match self {
            Back::Files(_) => "as it was before".to_owned(),
            Back::Commit(plan) => format!("without commit {} on {}", plan.commit.as_str(), plan.reference),
        }
    }
}

/// A person's choice, by the numbers that they see: hunks are counted from 1.
fn selected(chosen: &[SelectedFile], changes: &Changes) -> Result<Selection, Failure> {
    let chosen = chosen.iter().map(|chosen| {
        let change = changes.files.iter().find(|change| change.id.as_str() == chosen.file);
        let unknown = || Failure::new(Code::NotFound, format!("There is no change named {}.", chosen.file));
        let file: FileId = change.ok_or_else(unknown)?.id.clone();
        let hunks = chosen.hunks.as_ref().map(|hunks| {
            let hunk = |hunk: &u32| {
                hunk.checked_sub(1)
                    .ok_or_else(|| Failure::new(Code::ValidationError, "Hunks are counted from 1."))
            };
            hunks.iter().map(hunk).collect::<Result<BTreeSet<u32>, Failure>>()
        });
        Ok(Chosen { file, hunks: hunks.transpose()? })
    });
    chosen.collect::<Result<Vec<_>, Failure>>().map(Selection)
}

/// What a run says about changes that are not applied.
pub(crate) fn failure(error: &ApplyError) -> Failure {
    let named = |paths: Vec<String>| match paths.len().checked_sub(NAMED_MAX) {
        Some(more) if more > 0 => format!("{} and {more} more", paths[..NAMED_MAX].join(", ")),
        _ => paths.join(", "),
    };
    let message = match error {
        ApplyError::Conflicts(conflicts) => {
            let paths = conflicts.iter().map(|conflict| conflict.path.to_string()).collect();
            format!("The workspace changed where the run did, so nothing was applied: {}.", named(paths))
        }
        ApplyError::Torn { paths } => {
            let paths = paths.iter().map(ToString::to_string).collect();
            format!(
                "Something else wrote meanwhile, and was left as it is: {}; all else is as before.",
                named(paths)
            )
        }
        error => format!("What was approved was not applied: {error}."),
    };
    Failure::new(error.code(), message)
}

/// A process may die at any step of it.
fn reached(step: &'static str) {
    match step {
        "checked" => failpoint::reach("apply.checked"),
        "begun" => failpoint::reach("apply.begun"),
        "drafted" => failpoint::reach("apply.drafted"),
        "drafts durable" => failpoint::reach("apply.durable"),
        "placed" => failpoint::reach("apply.placed"),
        "all placed" => failpoint::reach("apply.whole"),
        "tidied" => failpoint::reach("apply.tidied"),
        // These come with other changes than one new file; the tests of applying die at each of them.
        "staged" | "directory" | "traded" | "taken away" | "draft discarded" | "taken back"
        | "directory back" | "given back" => {}
        // And these with a commit, likewise.
        "reference moved" | "files applied" | "index locked" | "index prepared" | "index replaced" => {}
        _ => {}
    }
}
