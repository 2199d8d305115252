//! Calls that are followed: answered at once with an id, looked at until they end.
//!
//! Tasks of ordinary actions live in this process and are kept for a while after their end. Those that live elsewhere, such as
//! runs, are looked at there. The id of one that lives here is sealed for the caller who began it, so to anybody else it does not exist.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use rmcp::ErrorData;
use rmcp::model::{DetailedTask, Task, TaskPayload, TaskStatus};
use runyard_actions::{ActionError, Answer, Caller, Envelope, Question, QuestionKind};
use runyard_domain::{Actor, Code};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::answers::tool_result;
use super::callers::{Abilities, Wire, input_request, unable};
use super::rounds::Answers;
use crate::seal::{Seal, random_text};

/// So many tasks are held, running ones and those that ended a while ago.
const TASKS_MAX: usize = 1_000;
/// So many of them may be one caller's.
const TASKS_OF_CALLER_MAX: usize = 100;
/// So long a task is kept after its end.
const KEPT_AFTER_END: SignedDuration = SignedDuration::from_mins(15);
/// How often a client should look.
const LOOK_EVERY_MS: u64 = 500;
/// What a client is told of a question that it cannot put to anybody.
const ASKED_ELSEWHERE: &str = "It waits for a person, whom this client cannot ask; answer elsewhere.";

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// It goes on.
    Working,
    /// It ended with a result.
    Completed,
    /// It could not be carried out.
    Failed,
    /// Somebody ended it.
    Cancelled,
}

/// A task as it stands.
#[derive(Clone, Debug)]
pub struct TaskView {
    /// Its id.
    pub id: String,
    /// How far it is.
    pub state: TaskState,
    /// What it does, for people.
    pub message: Option<String>,
    /// When it began.
    pub created_at: Timestamp,
    /// When something changed last.
    pub updated_at: Timestamp,
    /// What it waits for; while there is something it does not go on.
    pub questions: BTreeMap<String, Question>,
    /// What came of it, when it ended.
    pub result: Option<Envelope>,
}

/// Tasks that live elsewhere. An id that is not one of these, or not the caller's, is `None`.
#[async_trait]
pub trait FollowedTasks: Send + Sync {
    /// Whether a call of this action begins one.
    fn follows(&self, action: &str) -> bool;
    /// The task that a call began, by what it gave.
    fn begun(&self, action: &str, data: &Value) -> Option<String>;
    /// How it stands.
    async fn look(&self, actor: &Arc<Actor>, id: &str) -> Option<TaskView>;
    /// Takes answers to its questions.
    async fn answer(
        &self,
        actor: &Arc<Actor>,
        id: &str,
        answers: BTreeMap<String, Answer>,
    ) -> Option<Result<(), ActionError>>;
    /// Ends it.
    async fn cancel(&self, actor: &Arc<Actor>, id: &str) -> Option<Result<(), ActionError>>;
}

/// The tasks of this process.
#[derive(Default)]
pub(crate) struct TaskTable(Arc<Mutex<HashMap<String, Entry>>>);

struct Entry {
    owner: String,
    view: TaskView,
    waiting: HashMap<String, oneshot::Sender<Answer>>,
    cancel: CancellationToken,
}

/// A task that has a place in the table.
pub(super) struct Begun {
    pub(super) id: String,
    pub(super) caller: Arc<TaskCaller>,
    pub(super) cancel: CancellationToken,
    table: Arc<Mutex<HashMap<String, Entry>>>,
}

impl TaskTable {
    /// A place for a task of this caller, who has answered this already.
    pub(super) fn begin(
        &self,
        actor: &Actor,
        abilities: Abilities,
        answers: Answers,
    ) -> Result<Begun, ActionError> {
        let now = Timestamp::now();
        let owner = actor.to_string();
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.retain(|_, entry| {
            entry.view.state == TaskState::Working || entry.view.updated_at + KEPT_AFTER_END > now
        });
        let own = tasks.values().filter(|entry| entry.owner == owner).count();
        if tasks.len() >= TASKS_MAX || own >= TASKS_OF_CALLER_MAX {
            return Err(ActionError::new(
                Code::ConcurrencyLimit,
                "Too many tasks are held; wait for some to end.",
            )
            .retryable());
        }
        let id = random_text();
        let cancel = CancellationToken::new();
        let view = TaskView {
            id: id.clone(),
            state: TaskState::Working,
            message: None,
            created_at: now,
            updated_at: now,
            questions: BTreeMap::new(),
            result: None,
        };
        let entry = Entry { owner, view, waiting: HashMap::new(), cancel: cancel.clone() };
        tasks.insert(id.clone(), entry);
        let table = Arc::clone(&self.0);
        let caller = Arc::new(TaskCaller { id: id.clone(), table: Arc::clone(&table), abilities, answers });
        Ok(Begun { id, caller, cancel, table })
    }

    /// How a task stands.
    pub(super) fn look(&self, actor: &Actor, id: &str) -> Option<TaskView> {
        self.entry(actor, id, |entry| entry.view.clone())
    }

    /// Takes answers to a task's questions. One that does not fit leaves its question open.
    pub(super) fn answer(&self, actor: &Actor, id: &str, answers: BTreeMap<String, Answer>) -> Option<()> {
        self.entry(actor, id, |entry| {
            for (key, answer) in answers {
                let fits = entry.view.questions.get(&key).is_some_and(|question| question.takes(&answer));
                if fits && let Some(waiting) = entry.waiting.remove(&key) {
                    entry.view.questions.remove(&key);
                    entry.view.updated_at = Timestamp::now();
                    let _ = waiting.send(answer);
                }
            }
        })
    }

    /// Ends a task.
    pub(super) fn cancel(&self, actor: &Actor, id: &str) -> Option<()> {
        self.entry(actor, id, |entry| entry.cancel.cancel())
    }

    fn entry<T>(&self, actor: &Actor, id: &str, then: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.get_mut(id).filter(|entry| entry.owner == actor.to_string()).map(then)
    }
}

impl Begun {
    /// The task has ended with this.
    pub(super) fn end(self, envelope: Envelope) {
        let mut tasks = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = tasks.get_mut(&self.id) {
            entry.view.state = match envelope.error() {
                Some(failure) if failure.code == Code::Cancelled => TaskState::Cancelled,
                // The action could not be carried out at all; any other failure is a result to be read.
                Some(failure) if failure.code == Code::InternalError => TaskState::Failed,
                _ => TaskState::Completed,
            };
            entry.view.updated_at = Timestamp::now();
            entry.view.questions.clear();
            entry.waiting.clear();
            entry.view.result = Some(envelope);
        }
    }
}

/// Asks by leaving the question in the task.
pub(super) struct TaskCaller {
    id: String,
    table: Arc<Mutex<HashMap<String, Entry>>>,
    abilities: Abilities,
    /// What was answered before the task began.
    answers: Answers,
}

#[async_trait]
impl Caller for TaskCaller {
    fn can_answer(&self, kind: QuestionKind) -> bool {
        self.abilities.can_answer(kind)
    }

    async fn ask(
        &self,
        questions: BTreeMap<String, Question>,
    ) -> Result<BTreeMap<String, Answer>, ActionError> {
        let (mut answers, mut open, mut waiting) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        for (key, question) in questions {
            if let Some(answer) = self.answers.to(&key, &question) {
                answers.insert(key, answer.clone());
                continue;
            }
            if !self.can_answer(question.kind()) {
                return Err(unable());
            }
            input_request(&question)?;
            open.insert(key, question);
        }
        {
            let mut tasks = self.table.lock().unwrap_or_else(PoisonError::into_inner);
            let entry = tasks.get_mut(&self.id).ok_or_else(ActionError::cancelled)?;
            for (key, question) in open {
                let (answered, answer) = oneshot::channel();
                entry.waiting.insert(key.clone(), answered);
                entry.view.questions.insert(key.clone(), question);
                waiting.push((key, answer));
            }
            entry.view.updated_at = Timestamp::now();
        }
        for (key, answer) in waiting {
            answers.insert(key, answer.await.map_err(|_| ActionError::cancelled())?);
        }
        Ok(answers)
    }
}

/// The id as the caller knows it.
pub(super) fn sealed_id(seal: &Seal, actor: &Actor, id: &str) -> String {
    seal.close(&["task", &actor.to_string()], id.as_bytes())
}

/// A task as it stands for one client.
pub(super) struct Looked {
    view: TaskView,
    /// Whether this process holds it, and forgets it some time after its end.
    here: bool,
}

impl Looked {
    /// At a task of this process.
    pub(super) fn here(view: TaskView) -> Self {
        Looked { view, here: true }
    }

    /// At a task that lives elsewhere.
    pub(super) fn elsewhere(view: TaskView) -> Self {
        Looked { view, here: false }
    }

    /// Without the questions that a client cannot answer. Somebody else may, so the task goes on for it.
    pub(super) fn shown_to(mut self, abilities: &Abilities) -> Self {
        let asked = self.view.questions.len();
        self.view.questions.retain(|_, question| abilities.can_answer(question.kind()));
        if self.view.questions.len() < asked {
            self.view.message = Some(ASKED_ELSEWHERE.to_owned());
        }
        self
    }

    /// In the protocol's words.
    pub(super) fn task(&self, id: String) -> Task {
        let view = &self.view;
        let status = match view.state {
            TaskState::Working if !view.questions.is_empty() => TaskStatus::InputRequired,
            TaskState::Working => TaskStatus::Working,
            TaskState::Completed => TaskStatus::Completed,
            TaskState::Failed => TaskStatus::Failed,
            TaskState::Cancelled => TaskStatus::Cancelled,
        };
        let mut task = Task::new(id, status, view.created_at.to_string(), view.updated_at.to_string())
            .with_poll_interval_ms(LOOK_EVERY_MS);
        task.ttl_ms = self.kept_ms();
        task.status_message.clone_from(&view.message);
        task
    }

    /// From its creation on, as the protocol counts; nothing where no end is known.
    fn kept_ms(&self) -> Option<u64> {
        let ended = self.here && self.view.state != TaskState::Working;
        let took = self.view.updated_at.duration_since(self.view.created_at);
        ended.then(|| u64::try_from((took + KEPT_AFTER_END).as_millis()).ok()).flatten()
    }

    /// With what it waits for or what came of it.
    pub(super) fn detailed(&self, id: String) -> Result<DetailedTask, ErrorData> {
        let view = &self.view;
        let payload = match (view.state, &view.result) {
            (TaskState::Working, _) if !view.questions.is_empty() => {
                let requests =
                    view.questions.iter().map(|(key, question)| Ok((key.clone(), input_request(question)?)));
                let unfit = |error: ActionError| ErrorData::internal_error(error.to_string(), None);
                TaskPayload::InputRequired {
                    input_requests: requests.collect::<Result<_, ActionError>>().map_err(unfit)?,
                }
            }
            (TaskState::Working, _) => TaskPayload::Working,
            (TaskState::Cancelled, _) => TaskPayload::Cancelled,
            (TaskState::Completed, Some(envelope)) => {
                TaskPayload::Completed { result: object(json!(tool_result(envelope, Wire::Rounds))) }
            }
            (_, Some(envelope)) => {
                TaskPayload::Failed { error: object(json!(super::answers::failed(envelope))) }
            }
            (_, None) => {
                let nothing = ErrorData::internal_error("The task has no result.", None);
                TaskPayload::Failed { error: object(json!(nothing)) }
            }
        };
        Ok(DetailedTask::new(self.task(id), payload))
    }
}

fn object(value: Value) -> rmcp::model::JsonObject {
    match value {
        Value::Object(object) => object,
        _ => rmcp::model::JsonObject::new(),
    }
}
