//! Applying or taking back the changes of a run that has ended: a new run, with its own approval and its own record.

use runyard_domain::run::{ApplyStatus, Carries, Created, OnReject, Task, Who};
use runyard_domain::{Actor, ApplyTo, ExecutionPolicy, RunId, SelectedFile};
use serde_json::json;

use crate::create::CreatedRun;
use crate::fresh::fresh;
use crate::keys::Key;
use crate::{Engine, EngineError};

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
        let parent = self.run(of).await?.run;
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
}
