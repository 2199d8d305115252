//! Applying or taking back the changes of a run that has ended: a new run, with its own approval and its own record.

use std::collections::BTreeSet;

use runyard_domain::run::{ApplyStatus, Carries, Created, OnReject, Run, RunEvent, Task, Who};
use runyard_domain::{Actor, ApplyTo, Event, ExecutionPolicy, RunId, SelectedFile};
use serde_json::json;

use crate::create::CreatedRun;
use crate::fresh::fresh;
use crate::keys::Key;
use crate::{Engine, EngineError, Standing};

/// So many runs are looked at for one that carried the changes of another.
const PAGE: u32 = 200;
const PAGES_MAX: usize = 20;
/// How far from a run's end its applying began at most; nothing of an agent comes after it.
const EVENTS_AFTER_MAX: u32 = 200;

/// What is to be done with a run's changes.
#[derive(Clone, Debug)]
pub enum Carry {
    /// Bring them to the workspace.
    Apply {
        /// The digest of what was looked at.
        digest: String,
        /// Which part of them; without it all of them.
        selection: Option<Vec<SelectedFile>>,
        /// Where to.
        to: ApplyTo,
    },
    /// Take them back.
    Undo,
}

impl Engine {
    /// Makes a run that applies or takes back what another run changed. It asks before it does.
    pub async fn carry(
        &self,
        of: RunId,
        carry: Carry,
        key: Option<&str>,
        actor: &Actor,
    ) -> Result<CreatedRun, EngineError> {
        if actor.is_agent() {
            return Err(EngineError::ForPeopleOnly);
        }
        let (selection, to, digest, undo) = match carry {
            Carry::Apply { digest, selection, to } => (selection, to, Some(digest), false),
            Carry::Undo => (None, ApplyTo::Files, None, true),
        };
        let key = Key::of("run_carry", actor, key, &json!([of, undo, selection, to, digest]))?;
        if let Some(made) = self.made_before(key.as_ref()).await? {
            return Ok(made);
        }
        let asked = self.run(of).await?.run;
        // Whoever says which run they want to have taken back may mean the one that made the changes.
        let parent = if undo { self.applied_by(asked).await? } else { asked };
        let of = parent.id;
        let state = parent.state.name();
        let conflict = |what| EngineError::Conflict { run: of, state, what };
        let Some(review) = parent.review.as_ref() else {
            return Err(conflict("its checkout was not looked at, so there is nothing to apply"));
        };
        if !parent.state.is_terminal() {
            return Err(conflict("answer its own approval, or wait until it has ended"));
        }
        if undo && review.status != ApplyStatus::Applied {
            return Err(conflict("nothing of it was applied, so there is nothing to take back"));
        }
        if let Some(digest) = digest.as_ref().filter(|digest| **digest != review.diff.digest) {
            tracing::debug!(run = %of, %digest, "a digest that is not the diff's");
            return Err(conflict("its changes are not those that were looked at"));
        }
        // What it was brought to is where it is taken back from.
        let to = match &parent.created.carries {
            Some(carries) if undo => carries.to.clone(),
            _ => to,
        };
        let verb = if undo { "Take back" } else { "Apply" };
        let created = Created {
            task: Task::Text { text: format!("{verb} the changes of {of}"), redacted: false },
            actor: Who::from(actor),
            workspace: parent.created.workspace.clone(),
            agent_id: parent.created.agent_id.clone(),
            backend_profile: parent.created.backend_profile.clone(),
            session_id: parent.created.session_id,
            execution_policy: ExecutionPolicy::default(),
            on_reject: OnReject::Cancel,
            parent_run_id: Some(of),
            thread: None,
            carries: Some(Carries { of, undo, selection, to, digest }),
        };
        let run = fresh!(RunId, self.now());
        self.create_planned(run, created, false, key).await
    }

    /// The run that applied the changes of a run and whose work is there to be taken back: itself, or the last one that carried them.
    async fn applied_by(&self, made: Run) -> Result<Run, EngineError> {
        let own = made.review.as_ref().is_some_and(|review| review.status == ApplyStatus::Applied);
        let own_wrote = own && self.wrote(&made).await?;
        let (mut taken_back, mut before, of) = (BTreeSet::new(), None, made.id);
        // The newest first: who takes something back comes after who applied it.
        for _ in 0..PAGES_MAX {
            let (runs, more) = self.runs(None, before, PAGE).await?;
            before = runs.last().map(|last| last.run.id);
            for Standing { run, .. } in runs {
                let Some(carries) = &run.created.carries else { continue };
                match run.review.as_ref().map(|review| review.status) {
                    Some(ApplyStatus::Undone) => drop(taken_back.insert(carries.of)),
                    // What was all in place already is not what somebody wants to have taken back.
                    Some(ApplyStatus::Applied)
                        if carries.of == of && !taken_back.contains(&run.id) && self.wrote(&run).await? =>
                    {
                        return Ok(run);
                    }
                    _ => {}
                }
            }
            if !more || before.is_none_or(|before| before < of) {
                break;
            }
        }
        let (run, state) = (of, made.state.name());
        if own && taken_back.contains(&of) {
            return Err(EngineError::Conflict { run, state, what: "what it applied was taken back already" });
        }
        if own && !own_wrote {
            let what = "all of it was in place before it was applied, so there is nothing to take back";
            return Err(EngineError::Conflict { run, state, what });
        }
        Ok(made)
    }

    /// Whether what a run applied changed anything.
    async fn wrote(&self, run: &Run) -> Result<bool, EngineError> {
        let after = self.run(run.id).await?.sequence.saturating_sub(u64::from(EVENTS_AFTER_MAX));
        for event in self.events(run.id, after, EVENTS_AFTER_MAX).await?.iter().rev() {
            let event: Event = serde_json::from_slice(&event.body)?;
            if let Ok(RunEvent::Applying(applying)) = RunEvent::read(&event.kind, &event.payload) {
                return Ok(applying.to != ApplyTo::Files || applying.stats.files > 0);
            }
        }
        Ok(true)
    }
}
