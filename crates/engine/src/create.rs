//! Making runs: checked, planned and recorded in one change, before anything happens.

use runyard_backend::Runs;
use runyard_domain::run::{ApprovalPolicyRef, Created as CreatedFacts, Planned, Run, RunEvent, Task, Who};
use runyard_domain::{Actor, RunId, SessionId, WantedExecution};
use runyard_store::StorageError;
use serde_json::{Value, json};

use crate::execution::execution_policy;
use crate::fresh::fresh;
use crate::keys::{Key, Keyed};
use crate::record::{Fact, Standing};
use crate::{Engine, EngineError};

/// The longest task or turn.
pub(crate) const TEXT_BYTES_MAX: usize = 256 * 1024;

/// A run that somebody wants.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// What is to be done.
    pub task: Task,
    /// The agent profile.
    pub agent: String,
    /// A workspace's id or label, or an absolute path inside one.
    pub workspace: String,
    /// The backend profile, where it is not the agent profile's.
    pub backend_profile: Option<String>,
    /// The conversation that it goes on with: after the last run in it of its backend in its place. A new one without.
    pub session: Option<SessionId>,
    /// The run that it goes on from, where it is not that one: same session, same thread.
    pub continues: Option<RunId>,
    /// What it may do, within the agent profile's, which counts where this says nothing.
    pub execution_policy: Option<WantedExecution>,
    /// The caller's idempotency key.
    pub key: Option<String>,
}

/// A run that was made.
#[derive(Clone, Debug)]
pub struct CreatedRun {
    /// Where it stands.
    pub standing: Standing,
    /// Whether its text was redacted: it is executed as stored.
    pub redacted: bool,
}

impl Engine {
    /// Makes a run and plans it.
    pub async fn create_run(&self, new: NewRun, actor: &Actor) -> Result<CreatedRun, EngineError> {
        let key = Key::of("run_create", actor, new.key.as_deref(), &fingerprint(&new)?)?;
        if let Some(made) = self.made_before(key.as_ref()).await? {
            return Ok(made);
        }
        let now = self.now();
        let run = fresh!(RunId, now);
        let (created, redacted) = self.facts(&new, actor).await?;
        self.create_planned(run, created, redacted, key).await
    }

    /// Plans a run and records it, with the caller's key.
    pub(crate) async fn create_planned(
        &self,
        run: RunId,
        created: CreatedFacts,
        redacted: bool,
        key: Option<Key>,
    ) -> Result<CreatedRun, EngineError> {
        let now = self.now();
        let workspace = self.workspaces().resolve(&created.workspace.id.to_string()).await?;
        let agent = self.agent_in(&workspace, &created.agent_id).await?;
        let preparation = self.planned_preparation(&workspace, &created)?;
        let planned = Planned {
            edge_id: workspace.edge_id,
            workspace_policy: "allowlist".to_owned(),
            runtime_profile: created.backend_profile.clone(),
            approval_policy: ApprovalPolicyRef {
                preset: agent.preset.as_str().to_owned(),
                version: self.policy().version,
            },
            preparation,
            backend: Some(self.planned_backend(&created.backend_profile)?),
        };
        let facts = vec![Fact::from(RunEvent::Created(created)), Fact::from(RunEvent::Planned(planned))];
        let result = key
            .as_ref()
            .map(|key| key.result(&self.recorder().redactor, &Keyed { id: run, redacted }, now))
            .transpose()?;
        match self.recorder().create(run, facts, result).await {
            Ok(standing) => {
                self.changed(&standing);
                Ok(CreatedRun { standing, redacted })
            }
            // The same key at the same time: the first one counts.
            Err(EngineError::Storage(StorageError::AlreadyExists(..))) if key.is_some() => {
                let made = self.made_before(key.as_ref()).await?;
                made.ok_or(EngineError::KeyTaken)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn made_before(&self, key: Option<&Key>) -> Result<Option<CreatedRun>, EngineError> {
        match self.kept(key).await? {
            Some(Keyed { id, redacted }) => Ok(Some(CreatedRun { standing: self.run(id).await?, redacted })),
            None => Ok(None),
        }
    }

    /// What the run begins with, and whether its text was redacted.
    async fn facts(&self, new: &NewRun, actor: &Actor) -> Result<(CreatedFacts, bool), EngineError> {
        let named = match new.continues {
            Some(parent) => Some(over(self.run(parent).await?)?),
            None => None,
        };
        // Whoever names no agent that there is learns so before anything is asked about the place.
        self.catalog().agent(&new.agent)?;
        let workspace = self.workspaces().resolve(&new.workspace).await?;
        let agent = self.agent_in(&workspace, &new.agent).await?;
        let backend_profile = new.backend_profile.clone().unwrap_or_else(|| agent.backend_profile.clone());
        let backend = self.catalog().backend(&backend_profile)?;
        let execution_policy = execution_policy(new.execution_policy.as_ref(), &agent, backend)?;
        let (task, redacted) = self.stored_task(&new.task)?;
        check_task(&task, backend.1.runs, &new.agent)?;
        let is_its_own = |run: &Run| {
            run.created.backend_profile == backend_profile && run.created.workspace.id == workspace.id
        };
        // One that only carries what another made has no conversation.
        let has_talked = |run: &Run| is_its_own(run) && run.created.carries.is_none();
        let parent = match (named, new.session) {
            (None, Some(session)) => self.last_in(session, has_talked).await?.map(over).transpose()?,
            (named, _) => named,
        };
        let session_id = match (&parent, new.session) {
            (Some(parent), None) => parent.run.created.session_id,
            (_, Some(session)) => session,
            (None, None) => fresh!(SessionId, self.now()),
        };
        // A conversation belongs to its session, its backend and its place.
        let same =
            |parent: &&Standing| parent.run.created.session_id == session_id && is_its_own(&parent.run);
        let thread = parent.as_ref().filter(same).and_then(|parent| parent.run.thread.clone());
        let created = CreatedFacts {
            task,
            actor: Who::from(actor),
            workspace: workspace.reference(),
            agent_id: agent.id.clone(),
            backend_profile,
            session_id,
            execution_policy,
            on_reject: agent.on_reject,
            parent_run_id: parent.as_ref().map(|parent| parent.run.id),
            thread,
            carries: None,
        };
        Ok((created, redacted))
    }

    /// The task as it will be stored and executed. A text is executed as stored; an action's input must not differ.
    fn stored_task(&self, task: &Task) -> Result<(Task, bool), EngineError> {
        let invalid = |message: String| EngineError::Invalid { path: "task", message };
        match task {
            Task::Text { text, .. } if text.trim().is_empty() => {
                Err(invalid("Expected what is to be done.".to_owned()))
            }
            Task::Text { text, .. } if text.len() > TEXT_BYTES_MAX => {
                Err(invalid(format!("Expected at most {TEXT_BYTES_MAX} bytes.")))
            }
            Task::Text { text, .. } => {
                let stored = self.recorder().redacted_text(text);
                let redacted = stored != *text;
                Ok((Task::Text { text: stored, redacted }, redacted))
            }
            Task::Action { action, input } => {
                if *self.recorder().redactor.json(input.clone()) != *input {
                    return Err(EngineError::RedactedContent);
                }
                Ok((Task::Action { action: action.clone(), input: input.clone() }, false))
            }
        }
    }
}

/// Refuses a task that is nothing to this kind of backend.
fn check_task(task: &Task, runs: Runs, agent: &str) -> Result<(), EngineError> {
    let expected = match (task, runs) {
        (Task::Text { .. }, Runs::Agent) | (Task::Action { .. }, Runs::Action) => return Ok(()),
        (Task::Action { .. }, Runs::Agent) => {
            "a text: the agent \"{agent}\" is told in words what is to be done"
        }
        (Task::Text { .. }, Runs::Action) => {
            "an action with its input, as in {\"action\": \"task_list\", \"input\": {}}: that is what \"{agent}\" runs"
        }
    };
    let message = format!("Expected {}.", expected.replace("{agent}", agent));
    Err(EngineError::Invalid { path: "task", message })
}

/// A run that another one may go on from.
fn over(parent: Standing) -> Result<Standing, EngineError> {
    if parent.run.state.is_terminal() {
        return Ok(parent);
    }
    let what = "give it a further turn, or continue it when it has ended";
    Err(EngineError::Conflict { run: parent.run.id, state: parent.run.state.name(), what })
}

fn fingerprint(new: &NewRun) -> Result<Value, EngineError> {
    Ok(json!([
        new.task,
        new.agent,
        new.workspace,
        new.backend_profile,
        new.session,
        new.continues,
        serde_json::to_value(&new.execution_policy)?
    ]))
}
