//! Runs as tasks: how one stands, what it waits for, answers to that, and its end.
//!
//! Every step is an action, called as the client: who may see, decide or end a run is decided where it always is.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use runyard_control::{Answer, Envelope, Invocation};
use runyard_engine::Engine;
use runyard_surfaces::http::{ActionError, Actor, Runtime, Surface};
use runyard_surfaces::mcp::{Describe, FollowedTasks, TaskState, TaskView};
use serde_json::{Value, json};

use super::approvals;

/// The action whose call begins a run.
const BEGINS: &str = "run_create";
/// So many approvals of a run are asked about at a time. The next ones follow when these are answered.
const QUESTIONS_MAX: usize = 16;
/// So many of a run's last events are read as a resource.
const EVENTS_MAX: u64 = 100;

/// The runs of a hub.
pub(super) struct RunTasks {
    engine: Engine,
    runtime: Runtime,
}

impl RunTasks {
    pub(super) fn new(engine: Engine, runtime: Runtime) -> Self {
        RunTasks { engine, runtime }
    }

    async fn call(&self, actor: &Arc<Actor>, action: &str, input: Value) -> Envelope {
        let mut call = Invocation::new(action, input, Surface::Mcp, Arc::clone(actor));
        // A person who answers a form or ends a task means it; an agent's word does not count, whatever it says.
        call.options.confirm = true;
        self.runtime.invoke(call).await
    }

    async fn data(&self, actor: &Arc<Actor>, action: &str, input: Value) -> Option<Value> {
        self.call(actor, action, input).await.outcome.ok()
    }

    /// The run as this caller sees it, if there is one for them.
    async fn shown(&self, actor: &Arc<Actor>, id: &str) -> Option<Value> {
        self.data(actor, "run_show", json!({ "id": id })).await.map(|mut data| data["run"].take())
    }

    async fn questions(
        &self,
        actor: &Arc<Actor>,
        run: &Value,
    ) -> BTreeMap<String, runyard_control::Question> {
        let mut questions = BTreeMap::new();
        let open = run["openApprovals"].as_array().into_iter().flatten().take(QUESTIONS_MAX);
        for id in open {
            let Some(mut shown) = self.data(actor, "approval_show", json!({ "id": id })).await else {
                continue;
            };
            let approval = shown["approval"].take();
            if approval["state"] != "open" {
                continue;
            }
            let changes = self.changes(actor, &approval).await;
            questions.insert(approvals::key(&approval), approvals::question(&approval, &changes));
        }
        questions
    }

    /// The changes that an approval is about, as lines; none where it is about something else.
    async fn changes(&self, actor: &Arc<Actor>, approval: &Value) -> Vec<String> {
        if !approvals::is_about_changes(approval) {
            return Vec::new();
        }
        let run = &approval["runId"];
        let shown = async {
            let diff = json!({"id": run, "limit": approvals::FILES_MAX});
            let diff = self.data(actor, "run_diff", diff).await?;
            let first = self.data(actor, "run_events", json!({"id": run, "limit": 1})).await?;
            // A run that carries a part of another's changes asks about that part.
            let part = &first["events"][0]["payload"]["carries"]["selection"];
            let mut changes = approvals::Shown::of(approval, &diff, part);
            for file in approvals::files(&diff, part) {
                if changes.is_full() {
                    break;
                }
                let asked = json!({"id": run, "file": file["id"]});
                changes.file(file, &self.data(actor, "run_diff_file", asked).await?);
            }
            Some(changes.lines())
        };
        shown.await.unwrap_or_else(|| vec![approvals::unseen(approval)])
    }
}

#[async_trait]
impl FollowedTasks for RunTasks {
    fn follows(&self, action: &str) -> bool {
        action == BEGINS
    }

    fn begun(&self, action: &str, data: &Value) -> Option<String> {
        let id = data["run"]["id"].as_str().filter(|_| self.follows(action));
        id.map(str::to_owned)
    }

    async fn look(&self, actor: &Arc<Actor>, id: &str) -> Option<TaskView> {
        let mut shown = self.call(actor, "run_show", json!({ "id": id })).await;
        let run = shown.outcome.as_ref().ok()?["run"].clone();
        let text = |name: &str| run[name].as_str().unwrap_or_default().to_owned();
        let mut view = TaskView {
            id: id.to_owned(),
            state: TaskState::Working,
            message: Some(format!("The run is {}.", text("state").replace('_', " "))),
            created_at: text("createdAt").parse().ok()?,
            updated_at: text("lastEventAt").parse().ok()?,
            questions: BTreeMap::new(),
            result: None,
        };
        match text("state").as_str() {
            "needs_approval" => {
                view.questions = self.questions(actor, &run).await;
                view.message = Some("The run waits for a person's decision.".to_owned());
            }
            "completed" => {
                view.state = TaskState::Completed;
                // What a call of that action gives, as it stands now.
                let redacted = run["taskRedacted"] == true;
                shown.outcome = Ok(json!({"run": run, "redacted": redacted}));
                view.result = Some(shown);
            }
            // It was carried out, and this is what came of it: a result to be read.
            "failed" => {
                view.state = TaskState::Completed;
                let message = format!("Run {id} failed: {} {}", text("message"), text("recovery"));
                view.message = Some(message.clone());
                let failed = ActionError::application(&text("code"), message.trim_end());
                view.result = Some(Envelope::refusal(Surface::Mcp, Some(BEGINS), failed));
            }
            "cancelled" => {
                view.state = TaskState::Cancelled;
                view.message = Some(text("message"));
            }
            _ => {}
        }
        Some(view)
    }

    async fn answer(
        &self,
        actor: &Arc<Actor>,
        id: &str,
        answers: BTreeMap<String, Answer>,
    ) -> Option<Result<(), ActionError>> {
        self.shown(actor, id).await?;
        let mut outcome = Ok(());
        for (key, answer) in answers {
            // What answers nothing, or says nothing, leaves what was asked open.
            let (Some((approval, digest)), Some(content)) =
                (approvals::asked_under(&key), answer.filled_in())
            else {
                continue;
            };
            let shown = self.data(actor, "approval_show", json!({ "id": approval })).await;
            let Some(shown) = shown.filter(|shown| shown["approval"]["runId"] == id) else { continue };
            let input = approvals::decision(approval, digest, content, &shown["approval"]);
            let resolved = self.call(actor, "approval_resolve", input).await.outcome;
            outcome = outcome.and(resolved.map(drop).map_err(ActionError::from));
        }
        Some(outcome)
    }

    async fn cancel(&self, actor: &Arc<Actor>, id: &str) -> Option<Result<(), ActionError>> {
        let run = self.shown(actor, id).await?;
        // To end what has ended is to say so once more.
        if ["completed", "failed", "cancelled"].iter().any(|over| run["state"] == *over) {
            return Some(Ok(()));
        }
        let ended = self.call(actor, "run_cancel", json!({ "id": id })).await.outcome;
        Some(ended.map(drop).map_err(ActionError::from))
    }
}

#[async_trait]
impl Describe for RunTasks {
    /// A decision names an approval; whoever confirms it reads what that asks.
    async fn describe(&self, actor: &Arc<Actor>, action: &str, input: &Value) -> Option<String> {
        if action != "approval_resolve" {
            return None;
        }
        let approval =
            self.data(actor, "approval_show", json!({ "id": input["id"] })).await?["approval"].take();
        let shown = approvals::shown(&approval, &self.changes(actor, &approval).await);
        Some(match approval["digest"] == input["digest"] {
            true => shown,
            false => format!("The decision names other content than what is asked:\n\n{shown}"),
        })
    }

    /// Whoever reads the events of a run by their address wants the last ones: it has no place for where to go on.
    async fn reading(&self, action: &str, mut input: Value) -> Value {
        let run = input["id"].as_str().and_then(|id| id.parse().ok());
        if let Some(run) = run.filter(|_| action == "run_events")
            && let Ok(standing) = self.engine.run(run).await
        {
            input["after"] = standing.sequence.saturating_sub(EVENTS_MAX).into();
            input["limit"] = EVENTS_MAX.into();
        }
        input
    }
}
