//! What changed in a run's checkout: on its way into the record, and out of it again.
//!
//! The edge looks at files and reports what it found in parts; the parts are kept as blobs, and the event refers to them. What is
//! applied never comes from here: these are texts for people, without secrets.

use runyard_backend::link::{self, ChangesOf, Report};
use runyard_domain::run::{Review, Run, Task, Work};
use runyard_domain::{ArtifactContent, DiffFile, DiffParts, DiffText, RunId};
use runyard_redact::{Kind, Safe};
use serde::de::DeserializeOwned;

use crate::record::Recorder;
use crate::{Engine, EngineError};

/// The key of the approval that asks to apply what changed.
pub(crate) const REVIEW_KEY: &str = "review";
/// How many files are given at a time.
pub(crate) const DIFF_FILES_MAX: usize = 500;
/// How long the first line of a commit is at most.
const COMMIT_TITLE_BYTES_MAX: usize = 72;

/// What the edge is to do for a run.
pub(crate) fn link_work(run: &Run, work: &Work) -> link::Work {
    let carries = run.created.carries.as_ref();
    let changes = ChangesOf {
        run: carries.map_or(run.id, |carries| carries.of),
        undo: carries.is_some_and(|carries| carries.undo),
    };
    match (work, &run.review) {
        (Work::Agent, _) => link::Work::Drive,
        (Work::Apply(approval), Some(review)) => link::Work::Apply {
            changes,
            approval: *approval,
            digest: review.diff.digest.clone(),
            selection: review.selection.clone().or(carries.and_then(|carries| carries.selection.clone())),
            // What is taken back says by itself what it was.
            to: carries.filter(|carries| !carries.undo).map(|carries| carries.to.clone()).unwrap_or_default(),
            begun: review.applied_digest.clone(),
            message: commit_message(run),
        },
        (Work::TakeBack, Some(Review { applied_digest: Some(begun), .. })) => link::Work::TakeBack {
            changes,
            to: carries.filter(|carries| !carries.undo).map(|carries| carries.to.clone()).unwrap_or_default(),
            begun: begun.clone(),
        },
        (Work::Review | Work::Apply(_) | Work::TakeBack, _) => link::Work::Review { changes },
    }
}

/// What a commit of the run's changes says: the task in a line, and which run it was.
fn commit_message(run: &Run) -> String {
    let task = match &run.created.task {
        Task::Text { text, .. } => text.lines().next().unwrap_or_default(),
        Task::Action { action, .. } => action,
    };
    let title = &task[..task.floor_char_boundary(COMMIT_TITLE_BYTES_MAX)];
    format!("{title}\n\nRunyard-Run: {}\n", run.id)
}

/// Keeps what of the reports is too long for an event, redacted once more: the parts of a diff, and texts that become artifacts (raw
/// lines and logs of steps), which it gives in their order.
pub(crate) async fn keep(
    recorder: &Recorder,
    parts: &mut DiffParts,
    reports: &[Report],
) -> Result<Vec<ArtifactContent>, EngineError> {
    let mut kept = Vec::new();
    for report in reports {
        match report {
            Report::DiffFiles { files } => {
                let files = recorder.redactor.serialize(files)?;
                parts.files.push(recorder.put(files.into()).await?);
            }
            Report::DiffTexts { texts } => {
                let texts = texts.iter().map(|text| {
                    Safe::object([
                        ("id", recorder.redactor.content(&text.id).into()),
                        ("patch", recorder.redactor.text(Kind::Diff, &text.patch).into()),
                        ("omitted", text.omitted.into()),
                    ])
                });
                parts.texts.push(recorder.put(Safe::array(texts).into()).await?);
            }
            Report::Debug { text, .. } | Report::Log { text, .. } => {
                let safe: Safe<Vec<u8>> = recorder.redactor.text(Kind::Text, text).into();
                let bytes = safe.len() as u64;
                let blob = recorder.put(safe).await?;
                // The edge has taken out what it knows, so that it was changed is always to be assumed.
                let media_type = "text/plain".to_owned();
                kept.push(ArtifactContent { blob, bytes, media_type, redacted: true });
            }
            _ => {}
        }
    }
    Ok(kept)
}

/// Some of the files that a run changed.
#[derive(Clone, Debug)]
pub struct DiffPage {
    /// What was found.
    pub review: Review,
    /// The files, in order.
    pub files: Vec<DiffFile>,
    /// Where the next ones begin.
    pub next: Option<usize>,
}

impl Engine {
    /// What a run changed: some of the files, from a place on.
    pub async fn diff(&self, run: RunId, after: usize, limit: usize) -> Result<DiffPage, EngineError> {
        let review = self.review(run).await?;
        let limit = limit.clamp(1, DIFF_FILES_MAX);
        let (mut files, mut begin) = (Vec::new(), 0);
        for blob in &review.diff.parts.files {
            let page: Vec<DiffFile> = self.part(*blob).await?;
            let skipped = after.saturating_sub(begin);
            begin += page.len();
            files.extend(page.into_iter().skip(skipped));
            if files.len() > limit {
                break;
            }
        }
        let next = (files.len() > limit).then_some(after + limit);
        files.truncate(limit);
        Ok(DiffPage { review, files, next })
    }

    /// What changed in one file.
    pub async fn diff_file(&self, run: RunId, id: &str) -> Result<(DiffFile, Option<DiffText>), EngineError> {
        let review = self.review(run).await?;
        for blob in &review.diff.parts.files {
            let page: Vec<DiffFile> = self.part(*blob).await?;
            let Some(file) = page.into_iter().find(|file| file.id == id) else { continue };
            let part = file.part.and_then(|part| review.diff.parts.texts.get(part as usize));
            let text = match part {
                Some(blob) => {
                    let texts: Vec<DiffText> = self.part(*blob).await?;
                    texts.into_iter().find(|text| text.id == id)
                }
                None => None,
            };
            return Ok((file, text));
        }
        Err(EngineError::NotFound { what: format!("file {id} in the diff of run {run}") })
    }

    async fn review(&self, run: RunId) -> Result<Review, EngineError> {
        let standing = self.run(run).await?;
        standing.run.review.ok_or_else(|| EngineError::NotFound { what: format!("diff of run {run}") })
    }

    async fn part<T: DeserializeOwned>(&self, blob: runyard_domain::BlobId) -> Result<T, EngineError> {
        Ok(serde_json::from_slice(&self.recorder().store.get(blob).await?)?)
    }
}
