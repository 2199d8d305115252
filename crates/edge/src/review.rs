//! What changed in a run's checkout, on its way to the hub: the text of each file first, then the files, then all of it in short.
//!
//! It is found by looking at the files. What is told is for people, without secrets; what is applied never comes from it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use runyard_backend::JournalError;
use runyard_backend::link::Report;
use runyard_checkout::apply::ApplyError;
use runyard_checkout::{
    Base, Change, Changes, CheckoutError, CompareLimits, ContentChange, Contents, FileMode, ProblemKind,
    RelPath, Root, TEXT_BYTES_MAX, Version, compare, unified,
};
use runyard_domain::run::Failure;
use runyard_domain::{DiffFile, DiffStats, DiffText};
use runyard_redact::{Kind, Redactor};
use tokio::sync::{mpsc, watch};

use crate::applying::{self, Job};
use crate::blocking::blocking;
use crate::digest::DigestKey;
use crate::outbox::Outbox;
use crate::places::Places;
use crate::prepare::own_fault;

/// How much of the text of one file's change is told.
const PATCH_BYTES_MAX: usize = 1024 * 1024;
/// A part that holds so much is full.
const PART_BYTES: usize = 2 * 1024 * 1024;
/// How many parts there are at most; of further files only the numbers are told.
const PARTS_MAX: u32 = 32;
/// How many files are told at a time.
const FILES_TOLD: usize = 2_000;
/// How many files are told at most; of further ones there is only the count.
const FILES_MAX: usize = 50_000;
/// How many files and problems are named in short.
const NAMED_MAX: usize = 20;
/// How many reports wait to be told.
const WAITING_MAX: usize = 2;

/// A checkout that can be looked at.
pub(crate) struct Looked {
    pub(crate) base: Base,
    pub(crate) contents: Contents,
    pub(crate) checkout: Root,
    pub(crate) changes: Changes,
    /// Stands for all that changed.
    pub(crate) digest: String,
}

/// Looks at a run's checkout.
pub(crate) fn look(places: &Places, key: &DigestKey, stop: &AtomicBool) -> Result<Looked, CheckoutError> {
    let base = Base::read(&places.base())?;
    let mut contents = Contents::open(&base, &places.base())?;
    let checkout = Root::open(&places.checkout())?;
    let changes = compare(&base, &mut contents, &checkout, &CompareLimits::default(), stop)?;
    let digest = key.of_changes(&serde_json::to_vec(&changes).unwrap_or_default());
    Ok(Looked { base, contents, checkout, changes, digest })
}

/// Looks at the run's checkout and tells the hub what changed in it.
pub(crate) async fn tell(
    job: Job,
    redactor: Redactor,
    outbox: &mut Outbox,
    living: &Arc<watch::Sender<()>>,
) -> Result<(), JournalError> {
    let (reports, mut told) = mpsc::channel(WAITING_MAX);
    let looking = blocking(living, move |stop| {
        let mut looked = look(&job.source, &job.key, stop)?;
        Teller { redactor, reports, part: Vec::new(), part_bytes: 0, parts: 0 }.tell(&mut looked)
    });
    let telling = async {
        while let Some(report) = told.recv().await {
            outbox.put(vec![report]).await?;
        }
        Ok(())
    };
    let (looked, telling) = tokio::join!(looking, telling);
    telling?;
    let failure = match looked {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => failure(&error),
        Err(error) => own_fault("the checkout could not be looked at", &error),
    };
    outbox.put(vec![Report::Failed { failure }]).await.map(drop)
}

/// Looks at what taking back would change, and tells the hub.
pub(crate) async fn tell_undo(
    job: Job,
    redactor: Redactor,
    outbox: &mut Outbox,
    living: &Arc<watch::Sender<()>>,
) -> Result<(), JournalError> {
    let planned = blocking(living, move |_| {
        let plan = job.undo_plan(&Root::open(&job.workspace)?)?;
        Ok::<_, ApplyError>((job.key.of_changes(&plan.describe()), plan))
    });
    let report = match planned.await {
        Ok(Ok((digest, plan))) => {
            let line = |path: &RelPath| redactor.content(&path.to_string()).into_inner();
            Report::Diff {
                base: "applied".to_owned(),
                target: plan.target(),
                digest,
                stats: DiffStats { files: plan.edits().len().max(1) as u64, ..DiffStats::default() },
                paths: plan.edits().iter().take(NAMED_MAX).map(|edit| line(&edit.path)).collect(),
                problems: Vec::new(),
            }
        }
        Ok(Err(error)) => Report::Failed { failure: applying::failure(&error) },
        Err(error) => {
            Report::Failed { failure: own_fault("what was applied could not be looked at", &error) }
        }
    };
    outbox.put(vec![report]).await.map(drop)
}

/// What a run says about a checkout that cannot be looked at or brought back.
pub(crate) fn failure(error: &CheckoutError) -> Failure {
    tracing::error!(%error, "a checkout cannot be used");
    Failure::new(error.code(), format!("What the run changed cannot be looked at: {error}."))
}

struct Teller {
    redactor: Redactor,
    reports: mpsc::Sender<Report>,
    part: Vec<DiffText>,
    part_bytes: usize,
    parts: u32,
}

impl Teller {
    fn tell(mut self, looked: &mut Looked) -> Result<(), CheckoutError> {
        let mut files = Vec::new();
        for at in 0..looked.changes.files.len().min(FILES_MAX) {
            let change = &looked.changes.files[at];
            let part = match change.content {
                _ if self.parts < PARTS_MAX && has_text(change) => {
                    let (before, after) =
                        sides(change, &looked.base, &mut looked.contents, &looked.checkout)?;
                    Some(self.add(change, &unified(change, &before, &after)))
                }
                _ => None,
            };
            files.push(self.file(change, part));
        }
        self.part_is_full();
        while !files.is_empty() {
            let rest = files.split_off(files.len().min(FILES_TOLD));
            self.say(Report::DiffFiles { files });
            files = rest;
        }
        let changes = &looked.changes;
        let paths = changes.files.iter().take(NAMED_MAX).map(|change| self.line(&change.path.to_string()));
        let problems = changes.problems.iter().take(NAMED_MAX);
        let problems =
            problems.map(|problem| self.line(&format!("{} ({})", problem.path, word(problem.why))));
        self.say(Report::Diff {
            base: changes.base.clone(),
            target: changes.target.clone(),
            digest: looked.digest.clone(),
            stats: stats(changes),
            paths: paths.collect(),
            problems: problems.collect(),
        });
        Ok(())
    }

    /// Puts a file's text into a part, and says which.
    fn add(&mut self, change: &Change, patch: &[u8]) -> u32 {
        let whole = self.redactor.bytes(Kind::Diff, patch).into_text().into_inner();
        let end = whole.floor_char_boundary(PATCH_BYTES_MAX);
        let (patch, omitted) = (whole[..end].to_owned(), (whole.len() - end) as u64);
        let part = self.parts;
        self.part_bytes += patch.len();
        self.part.push(DiffText { id: change.id.as_str().to_owned(), patch, omitted });
        if self.part_bytes >= PART_BYTES {
            self.part_is_full();
        }
        part
    }

    fn part_is_full(&mut self) {
        if !self.part.is_empty() {
            let texts = std::mem::take(&mut self.part);
            (self.part_bytes, self.parts) = (0, self.parts + 1);
            self.say(Report::DiffTexts { texts });
        }
    }

    fn file(&self, change: &Change, part: Option<u32>) -> DiffFile {
        let (content, insertions, deletions, hunks) = match change.content {
            ContentChange::Same => ("same", 0, 0, 0),
            ContentChange::Text { insertions, deletions, hunks } => ("text", insertions, deletions, hunks),
            ContentChange::Binary => ("binary", 0, 0, 0),
            ContentChange::TooLarge => ("too_large", 0, 0, 0),
        };
        let mode = |version: Option<Version>| version.map(|version| version.mode.as_git().to_owned());
        let bytes = |version: Option<Version>| version.map_or(0, |version| version.bytes);
        DiffFile {
            id: change.id.as_str().to_owned(),
            path: self.line(&change.path.to_string()),
            old_path: change.old_path.as_ref().map(|path| self.line(&path.to_string())),
            change: kind_word(change).to_owned(),
            old_mode: mode(change.before),
            new_mode: mode(change.after),
            content: content.to_owned(),
            insertions,
            deletions,
            hunks,
            bytes: (bytes(change.before), bytes(change.after)),
            protected: change.protected,
            part,
        }
    }

    fn line(&self, text: &str) -> String {
        self.redactor.content(text).into_inner()
    }

    fn say(&self, report: Report) {
        // Without a listener the session is closing, and nobody needs it any more.
        let _ = self.reports.blocking_send(report);
    }
}

/// How much changed.
pub(crate) fn stats(changes: &Changes) -> DiffStats {
    let (insertions, deletions) = changes.lines();
    DiffStats {
        files: changes.files.len() as u64,
        insertions,
        deletions,
        protected: changes.files.iter().filter(|change| change.protected).count() as u64,
        problems: changes.problems.len() as u64,
    }
}

/// Whether there is text to show: lines, or where a link leads.
fn has_text(change: &Change) -> bool {
    let is = |mode: FileMode| [change.before, change.after].iter().flatten().any(|side| side.mode == mode);
    match change.content {
        ContentChange::Text { .. } => true,
        ContentChange::Same => false,
        ContentChange::Binary | ContentChange::TooLarge => is(FileMode::Link) && !is(FileMode::Submodule),
    }
}

/// Both sides of a change that is shown as text. Of a file that became a link, or was one, only the link: its patch is two, and
/// only one of them may have hunks.
fn sides(
    change: &Change,
    base: &Base,
    contents: &mut Contents,
    checkout: &Root,
) -> Result<(Vec<u8>, Vec<u8>), CheckoutError> {
    let old = change.old_path.as_ref().unwrap_or(&change.path);
    let is_lines = matches!(change.content, ContentChange::Text { .. });
    let is_shown = |version: &Version| is_lines || version.mode == FileMode::Link;
    let before = match (change.before.filter(is_shown), base.find(old)) {
        (Some(_), Some(entry)) => contents.read(entry, TEXT_BYTES_MAX)?,
        _ => Vec::new(),
    };
    let after = match change.after.filter(is_shown).map(|version| version.mode) {
        None | Some(FileMode::Submodule) => Vec::new(),
        Some(FileMode::Link) => checkout.read_link(&change.path)?,
        Some(FileMode::Plain | FileMode::Executable) => checkout.read(&change.path, TEXT_BYTES_MAX)?.bytes,
    };
    Ok((before, after))
}

fn kind_word(change: &Change) -> &'static str {
    use runyard_checkout::ChangeKind as K;
    match change.kind {
        K::Added => "added",
        K::Deleted => "deleted",
        K::Modified => "modified",
        K::Renamed => "renamed",
        K::Copied => "copied",
        K::Retyped => "retyped",
    }
}

fn word(why: ProblemKind) -> &'static str {
    match why {
        ProblemKind::HardLink => "it has a second name, so it may be somebody else's",
        ProblemKind::Special => "it is no file",
        ProblemKind::Unreadable => "it cannot be read",
        ProblemKind::TooLarge => "it is too large",
        ProblemKind::InsideGit => "it lies in a repository's own directory",
        ProblemKind::CaseClash => "it differs from another name by case alone",
    }
}
