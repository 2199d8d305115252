//! What a handler may use: logger, progress, artifacts, services, and who called.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use runyard_domain::{Actor, Code, InvocationId, Surface};
use tokio_util::sync::CancellationToken;

use crate::programs::Programs;
use crate::record::Record;
use crate::{
    ActionError, Answer, Artifact, Caller, Fields, LogLevel, Progress, QUESTIONS_MAX, Question, QuestionKind,
};

/// The context of one invocation. Cloning is cheap; a clone that outlives the invocation can do no harm to its envelope.
#[derive(Clone)]
pub struct Context(pub(crate) Arc<Call>);

/// All that belongs to one invocation.
pub(crate) struct Call {
    /// The action's name as asked.
    pub(crate) action: Arc<str>,
    pub(crate) id: InvocationId,
    pub(crate) surface: Surface,
    pub(crate) actor: Arc<Actor>,
    pub(crate) services: Arc<Services>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) caller: Option<Arc<dyn Caller>>,
    pub(crate) programs: Option<Arc<dyn Programs>>,
    pub(crate) record: Record,
}

impl Context {
    /// This invocation.
    pub fn invocation_id(&self) -> InvocationId {
        self.0.id
    }

    /// The action's name.
    pub fn action(&self) -> &str {
        &self.0.action
    }

    /// Where it was called from.
    pub fn surface(&self) -> Surface {
        self.0.surface
    }

    /// Who called.
    pub fn actor(&self) -> &Actor {
        &self.0.actor
    }

    /// Who starts the programs of this call, where that is not this process.
    pub(crate) fn programs(&self) -> Option<&dyn Programs> {
        self.0.programs.as_deref()
    }

    /// The caller's idempotency key, for actions that take care of it themselves.
    pub fn idempotency_key(&self) -> Option<&str> {
        self.0.idempotency_key.as_deref()
    }

    /// Writes structured logs into the envelope.
    pub fn logger(&self) -> Logger<'_> {
        Logger(&self.0.record)
    }

    /// Reports progress.
    pub fn progress(&self) -> ProgressReporter<'_> {
        ProgressReporter(&self.0.record)
    }

    /// Adds artifacts to the envelope.
    pub fn artifacts(&self) -> Artifacts<'_> {
        Artifacts(&self.0.record)
    }

    /// Whether whoever called can be asked such a question.
    pub fn can_ask(&self, kind: QuestionKind) -> bool {
        self.0.caller.as_ref().is_some_and(|caller| caller.can_answer(kind))
    }

    /// Asks whoever called, and waits for the answer.
    ///
    /// On some surfaces the action begins anew with the answer: what it changes belongs after its last question. The key tells
    /// one question of the action from another. A question that is asked anew must be the same, or it is put to the caller again.
    pub async fn ask(&self, key: &str, question: Question) -> Result<Answer, ActionError> {
        let mut answers = self.ask_all([(key.to_owned(), question)].into()).await?;
        answers.remove(key).ok_or_else(|| ActionError::internal("a question came back without its answer"))
    }

    /// Asks several questions at once, each under a key of its own.
    pub async fn ask_all(
        &self,
        questions: BTreeMap<String, Question>,
    ) -> Result<BTreeMap<String, Answer>, ActionError> {
        if questions.len() > QUESTIONS_MAX {
            return Err(ActionError::internal("an action asked too many questions at once"));
        }
        match &self.0.caller {
            Some(caller) => caller.ask(questions).await,
            None => Err(ActionError::new(
                Code::UnsupportedSurface,
                format!(
                    "Action \"{}\" asks its caller, which surface \"{}\" cannot do.",
                    self.0.action, self.0.surface
                ),
            )),
        }
    }

    /// A service that was registered with the runtime.
    pub fn service<T: Any + Send + Sync>(&self) -> Result<Arc<T>, ActionError> {
        self.0.services.get::<T>().ok_or_else(|| {
            ActionError::internal(format!("no service of type {} is registered", std::any::type_name::<T>()))
        })
    }

    /// Runs code that blocks (files, locks, a synchronous driver) where it holds up nobody else.
    ///
    /// A handler's own future must never block: while it does, no timeout, no cancellation and no other call can run on its
    /// thread. When the attempt is stopped nobody waits for the blocking code any more, but it runs to its end.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ActionError> {
        Ok(tokio::task::spawn_blocking(work).await?)
    }

    /// Cancelled when this attempt ends, for whatever a handler started outside its own future.
    ///
    /// The handler itself need not look at it: its future is dropped when the attempt is stopped.
    pub fn cancellation(&self) -> CancellationToken {
        self.0.record.attempt_token()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = &self.0;
        write!(f, "Context({} {} on {} by {})", call.action, call.id, call.surface, call.actor)
    }
}

/// Writes structured logs.
#[derive(Clone, Copy, Debug)]
pub struct Logger<'a>(&'a Record);

impl Logger<'_> {
    /// For those who look for a fault.
    pub fn debug(&self, message: impl Into<String>, fields: Fields) {
        self.log(LogLevel::Debug, message, fields);
    }

    /// What goes on.
    pub fn info(&self, message: impl Into<String>, fields: Fields) {
        self.log(LogLevel::Info, message, fields);
    }

    /// Something to look at.
    pub fn warn(&self, message: impl Into<String>, fields: Fields) {
        self.log(LogLevel::Warn, message, fields);
    }

    /// Something failed.
    pub fn error(&self, message: impl Into<String>, fields: Fields) {
        self.log(LogLevel::Error, message, fields);
    }

    /// With the level as a value.
    pub fn log(&self, level: LogLevel, message: impl Into<String>, fields: Fields) {
        self.0.log(level, message.into(), fields);
    }
}

/// Reports progress.
#[derive(Clone, Copy, Debug)]
pub struct ProgressReporter<'a>(&'a Record);

impl ProgressReporter<'_> {
    /// Appends a log entry with `fields.type = "progress"`.
    pub fn report(&self, progress: Progress) {
        self.0.progress(progress);
    }
}

/// Adds artifacts.
#[derive(Clone, Copy, Debug)]
pub struct Artifacts<'a>(&'a Record);

impl Artifacts<'_> {
    /// Adds an artifact, filling in what is missing, and returns it as it stands in the envelope.
    pub fn add(&self, artifact: Artifact) -> Artifact {
        self.0.artifact(artifact)
    }
}

/// The services that handlers can ask for, one of each type.
#[derive(Clone, Default)]
pub(crate) struct Services(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Services {
    pub(crate) fn insert<T: Any + Send + Sync>(&mut self, service: Arc<T>) {
        self.0.insert(TypeId::of::<T>(), service);
    }

    fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.0.get(&TypeId::of::<T>()).and_then(|service| Arc::clone(service).downcast().ok())
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Services({})", self.0.len())
    }
}
