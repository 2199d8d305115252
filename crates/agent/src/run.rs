//! The loop: a conversation goes to the model, what it calls is made, and so on until there is nothing left to do.
//!
//! A run never fails to end: whatever goes wrong, its last phase is run, its end is recorded and told, and the calls of the
//! conversation have their results. What is durable before what: a call's intent before the call, its result before the
//! model is asked again.
//!
//! Which agent runs on which thread, and whether it may, is not decided here.

mod asking;
mod calling;
mod clock;
mod context;
mod conversation;
mod deciding;
mod ending;
mod events;
mod following;
mod inbox;
mod keeping;
mod limits;
mod pieces;
mod record;
mod reports;
mod result;
mod summarising;
mod waiting;
pub(crate) mod weighing;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use runyard_domain::{Actor, Code};
use runyard_llm::inference::{InferenceExecutionError, Message};
use runyard_llm::usage::Usage;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use self::clock::Clock;
pub use self::context::{ContextPolicy, Summarised, Summary};
use self::conversation::Conversation;
pub use self::conversation::left_over;
pub use self::deciding::repeat_ticket;
pub(crate) use self::ending::{END_STEP_MAX, first_of};
pub(crate) use self::events::Teller;
pub use self::events::{AgentEvent, OBSERVED_MAX, Observer, Unobserved};
use self::following::NotFollowed;
use self::inbox::LaterUpdate;
pub use self::inbox::{INBOX_MAX, Inbox, LaterWords};
use self::keeping::Step;
pub(crate) use self::keeping::{CANCELLED_MAX, Patience};
pub use self::limits::{Cost, Limits, REPETITION_WINDOW_MAX, Repetition, Stop};
use self::limits::{Counters, Watch};
pub(crate) use self::pieces::{Stored, stored};
pub use self::record::{RecordedUsage, RunEnd, RunRecord, RunStatus};
use self::summarising::Shortening;
use self::waiting::{AnsweredQuestions, waits_for_its_tool};
pub use self::waiting::{Asker, Decision, DecisionKind, Suspended, SuspendedCalls};
use crate::agent::Agent;
use crate::budget::Budget;
use crate::caught::caught;
use crate::checkpoint::{CallNote, CallPlace, Checkpoint, CheckpointError, Opened};
use crate::phase::{
    ActionFailure, EFFECTS_CANCELLED_MAX, EffectFailure, Moment, Occasion, PhaseError, PhaseReport,
    RunIdentity, TerminationReason,
};
use crate::plugin::Environment;
use crate::state::{KeyOptions, MutationBatch, StateError, StateStore};
use crate::tool::SuspendTicket;

/// What a model is told when its answer was cut.
const GO_ON: &str = "Your answer was cut at its length limit. Go on exactly where it ended, in the middle of a word if need \
                     be. Do not repeat anything of it, do not comment on the interruption, and make any tool call again \
                     that you were about to make.";
/// The same where its answers have a form: half a document with the rest in another answer is none, and neither is half of one
/// with a whole one behind it.
const ANEW: &str = "Your answer was cut at its length limit, so it is of no use. Give the whole of it again from its \
                    beginning, and make it shorter.";

/// Everything that a run needs beside its conversation.
pub struct RunParts {
    /// Who runs.
    pub agent: Agent,
    /// Which run it is.
    pub identity: RunIdentity,
    /// Who calls its tools.
    pub actor: Arc<Actor>,
    /// Where its steps become durable.
    pub checkpoint: Arc<dyn Checkpoint>,
    /// What is said to it while it is under way.
    pub inbox: Arc<Inbox>,
    /// Who hears of it.
    pub observer: Arc<dyn Observer>,
    /// Cancelled when it is not wanted any more.
    pub cancellation: CancellationToken,
}

/// Where a run begins.
#[derive(Debug, Default)]
pub struct Begin {
    /// What is stored of its thread, and of itself where it goes on.
    pub opened: Opened,
    /// Whether it goes on after a wait or a crash.
    pub resumed: bool,
    /// What is said to the agent.
    pub input: Vec<Message>,
    /// Answers to calls that wait.
    pub decisions: Vec<Decision>,
}

/// How a run ended, or why it waits.
#[derive(Debug, Clone)]
pub struct RunOutcome {
    /// How.
    pub reason: TerminationReason,
    /// What the agent said last in this run, and nothing of an earlier one. Of an answer that came in pieces, since it was cut
    /// and gone on with, all of them as one.
    pub message: Option<Arc<Message>>,
    /// What it cost, with what it had cost before.
    pub usage: Usage,
    /// How many times its model was asked, with those before.
    pub rounds: u32,
    /// The calls that wait.
    pub waiting: Vec<(CallPlace, SuspendTicket)>,
    /// The thread as it is now, for whoever goes on with it in the same process.
    pub thread: Opened,
}

impl RunOutcome {
    /// What the agent said last in this run, as a text.
    pub fn text(&self) -> String {
        self.message.as_ref().map(|message| message.said()).unwrap_or_default()
    }
}

/// An environment with the keys of the loop itself, and the sections of an agent's definition for the plugins to come.
pub fn loop_environment(sections: Map<String, Value>) -> Result<Environment, StateError> {
    let mut environment = Environment::new(sections);
    add_keys(&mut environment)?;
    Ok(environment)
}

/// Adds the keys of the loop itself to an environment.
fn add_keys(environment: &mut Environment) -> Result<(), StateError> {
    environment.add_key::<Summarised>(KeyOptions::DEFAULT)?;
    environment.add_key::<SuspendedCalls>(KeyOptions::DEFAULT)?;
    environment.add_key::<AnsweredQuestions>(KeyOptions::DEFAULT)?;
    environment.add_key::<Counters>(KeyOptions::DEFAULT)?;
    environment.add_key::<NotFollowed>(KeyOptions::DEFAULT)?;
    environment.add_key::<LaterWords>(KeyOptions::DEFAULT)
}

/// Runs an agent until it ends or waits.
///
/// Dropping the future is a crash: what is durable by then is what the run can go on from.
pub async fn run(parts: RunParts, mut begin: Begin) -> RunOutcome {
    let mut course = Course::new(parts, &mut begin);
    let resumed = begin.resumed;
    course.tell(AgentEvent::RunStarted { resumed }).await;
    let reason = course.within(begin).await;
    course.end(reason).await
}

/// Why a run does not go on.
type Halt = TerminationReason;

impl From<PhaseError> for Halt {
    fn from(error: PhaseError) -> Self {
        match error {
            PhaseError::State(StateError::Cancelled) => Halt::Cancelled,
            PhaseError::Failed { ref fault, .. } => {
                Halt::Failed { code: error.code(), message: format!("{error}: {fault}") }
            }
            error => Halt::Failed { code: error.code(), message: error.to_string() },
        }
    }
}

impl From<StateError> for Halt {
    fn from(error: StateError) -> Self {
        PhaseError::State(error).into()
    }
}

impl From<InferenceExecutionError> for Halt {
    fn from(error: InferenceExecutionError) -> Self {
        match error {
            InferenceExecutionError::Cancelled => Halt::Cancelled,
            error => Halt::Failed { code: error.code(), message: error.to_string() },
        }
    }
}

impl From<CheckpointError> for Halt {
    fn from(error: CheckpointError) -> Self {
        match error.code {
            Code::InferenceCancelled | Code::StateCancelled => Halt::Cancelled,
            code => Halt::Failed { code, message: error.message },
        }
    }
}

/// A run that is under way.
struct Course {
    parts: RunParts,
    /// Cancelled with the run, and when its time is up.
    cancellation: CancellationToken,
    teller: Teller,
    store: StateStore,
    conversation: Conversation,
    /// So many messages of it were there before what this run is to answer.
    before: usize,
    /// What is not durable yet.
    notes: Vec<CallNote>,
    /// A step of which nobody knows whether it is durable. No other one goes before it.
    unsettled: Option<Box<Step>>,
    /// The revision whose state is durable.
    stored_revision: u64,
    /// Whether anything was recorded of this run yet.
    recorded: bool,
    /// Whether the last answer that was recorded was not recorded whole.
    incomplete: bool,
    watch: Watch,
    shortening: Shortening,
    usage: Usage,
    clock: Arc<Clock>,
    step: u32,
    decisions: Vec<Decision>,
    /// Calls that may have been made before, and of which nobody said yet what is to be done about that.
    unknown: BTreeSet<CallPlace>,
    /// Those of them that are over without that.
    never_known: Vec<String>,
}

impl Course {
    fn new(parts: RunParts, begin: &mut Begin) -> Self {
        let Opened { messages, unknown, record, .. } = &mut begin.opened;
        let before = record.take();
        let recorded = before.is_some();
        let before = before.unwrap_or_default();
        let cancellation = parts.cancellation.child_token();
        let store = StateStore::new(&parts.agent.environment);
        store.bound_effects(Budget::new(cancellation.clone(), EFFECTS_CANCELLED_MAX));
        Course {
            teller: Teller::new(Arc::clone(&parts.observer), cancellation.clone()),
            cancellation,
            store,
            conversation: Conversation::new(std::mem::take(messages)),
            before: usize::try_from(before.before).unwrap_or(usize::MAX),
            notes: Vec::new(),
            unsettled: None,
            stored_revision: 0,
            recorded,
            incomplete: before.incomplete,
            watch: Watch::new(&parts.agent.limits, before.rounds),
            shortening: Shortening::default(),
            usage: before.usage.into(),
            clock: Clock::new(Duration::from_millis(before.elapsed_ms)),
            step: before.steps,
            decisions: std::mem::take(&mut begin.decisions),
            unknown: std::mem::take(unknown),
            never_known: Vec::new(),
            parts,
        }
    }

    /// Takes the steps, within their time. A panic of whatever the run was given ends it, and not more.
    async fn within(&mut self, begin: Begin) -> Halt {
        let time_max = self.parts.agent.limits.time_max_ms.map(Duration::from_millis);
        let clock = Arc::clone(&self.clock);
        let token = self.cancellation.clone();
        let (wanted, checkpoint) = (self.parts.cancellation.clone(), Arc::clone(&self.parts.checkpoint));
        let course = caught(Box::pin(self.course(begin)));
        tokio::pin!(course);
        let (reason, late) = match time_max {
            None => (course.await, false),
            Some(time_max) => tokio::select! {
                biased;
                reason = &mut course => (reason, false),
                () = clock.reaches(time_max) => {
                    // Whatever it waits for hears of it, and what is under way comes to its end in order.
                    token.cancel();
                    (course.await, true)
                }
            },
        };
        match reason.map(|reason| first_lost(reason, checkpoint.as_ref())) {
            Ok(Halt::Cancelled) if late && !wanted.is_cancelled() => Halt::Stopped {
                code: "timeout".to_owned(),
                detail: time_max.map(|time_max| format!("not done within {} ms", time_max.as_millis())),
            },
            Ok(reason) => reason,
            Err(panicked) => Halt::Failed { code: Code::InternalError, message: panicked },
        }
    }

    async fn course(&mut self, begin: Begin) -> Halt {
        let resumed = begin.resumed;
        if let Err(halt) = self.begin(begin).await {
            return halt;
        }
        if let Err(halt) = self.follow_the_rest().await {
            return halt;
        }
        if resumed && let Some(reason) = self.was_over() {
            return reason;
        }
        loop {
            match self.step().await {
                Ok(None) => {}
                Ok(Some(reason)) | Err(reason) => return reason,
            }
        }
    }

    /// How a run that goes on had ended, if its process died before that was durable: where nothing is left over of its last step,
    /// it is looked at as at the end of that.
    fn was_over(&mut self) -> Option<Halt> {
        let is_between_steps = self.watch.rounds() > 0 && self.conversation.unanswered().is_empty();
        if let Some(stop) = self.watch.met().filter(|_| is_between_steps) {
            return Some(stopped(stop));
        }
        let is_answered = self.conversation.is_answered();
        if is_between_steps && is_answered && !self.incomplete && self.is_silent() {
            return Some(Halt::NaturalEnd);
        }
        let limits = &self.parts.agent.limits;
        if let Some(stop) = self.watch.enough(limits, self.usage).filter(|_| is_between_steps) {
            return Some(stopped(&stop));
        }
        if is_answered && self.incomplete {
            // Its process died when the beginning of an answer was durable, and before the rest was.
            self.ask_for_the_rest();
        }
        None
    }

    async fn begin(&mut self, begin: Begin) -> Result<(), Halt> {
        let restored = self.restore(&begin);
        if !begin.resumed || restored.is_err() {
            // What an earlier run left without a result never gets one from this run.
            self.pair("the run that made this call is over").await;
        }
        if !begin.resumed {
            self.before = self.conversation.messages().len();
        }
        // Whatever goes wrong from here on, what was said is kept.
        let said = self.say(begin.input);
        restored?;
        said?;
        if !begin.resumed {
            self.phase(Moment::RunStart).await?;
        }
        Ok(())
    }

    fn restore(&mut self, begin: &Begin) -> Result<(), StateError> {
        let policy = self.parts.agent.unknown_keys;
        self.store.restore(&begin.opened.thread_state, policy)?;
        if begin.resumed {
            self.store.restore(&begin.opened.run_state, policy)?;
        }
        let now = self.store.snapshot();
        self.unknown.retain(|place| !waits_for_its_tool(&now, *place));
        let kept = now.get::<LaterWords>().map_or(0, |words| weighing::messages(words));
        self.parts.inbox.begin(self.parts.checkpoint.limits().message_bytes_max, kept);
        if let Some(counted) = now.get::<Counters>() {
            self.watch.go_on(counted);
        }
        self.stored_revision = now.revision();
        Ok(())
    }

    /// Keeps what is counted with the state of the run.
    fn keep_count(&mut self) -> Result<(), StateError> {
        match self.watch.changed() {
            Some(counted) => self.store.commit(MutationBatch::new().with::<Counters>(counted)).map(drop),
            None => Ok(()),
        }
    }

    /// Puts words into the conversation; later, where calls have no results yet: nothing may come between them.
    fn say(&mut self, words: Vec<Message>) -> Result<(), StateError> {
        if words.is_empty() {
            return Ok(());
        }
        if !self.conversation.unanswered().is_empty() {
            self.parts.inbox.put_first(words);
            return self.keep_words();
        }
        for word in words {
            let word = self.parts.checkpoint.stored(word);
            self.conversation.push(word);
        }
        Ok(())
    }

    /// Keeps words with the run's state until its model reads them: what they came in may go with the process. What cannot be
    /// stored beside those that are there stays where it is.
    fn keep_words(&mut self) -> Result<(), StateError> {
        let words = self.parts.inbox.keep();
        if words.is_empty() {
            return Ok(());
        }
        let words = words.into_iter().map(|word| self.parts.checkpoint.stored(word)).collect();
        let later = MutationBatch::new().with::<LaterWords>(LaterUpdate::Add(words));
        self.store.commit(later).map(drop)
    }

    /// Whether nothing was said to the run that its model has not read.
    fn is_silent(&self) -> bool {
        let later = self.store.snapshot().get::<LaterWords>().is_some_and(|words| !words.is_empty());
        !later && self.parts.inbox.is_empty()
    }

    /// One step: the model is asked, unless calls are left over, and its calls are made. Gives how the run ends, if it does.
    async fn step(&mut self) -> Result<Option<Halt>, Halt> {
        self.step += 1;
        self.tell(AgentEvent::StepStarted { step: self.step }).await;
        self.phase(Moment::StepStart).await?;
        let mut truncated = false;
        if self.conversation.unanswered().is_empty() {
            truncated = self.ask().await?;
        }
        let calls = !self.conversation.unanswered().is_empty();
        if calls || !truncated {
            self.watch.was_whole();
        }
        if calls && self.call_all().await? {
            return Ok(Some(Halt::Suspended));
        }
        self.phase(Moment::StepEnd).await?;
        if let Some(stop) = self.watch.met() {
            return Ok(Some(stopped(stop)));
        }
        let limits = Arc::clone(&self.parts.agent.limits);
        if !calls && !truncated && self.parts.inbox.close_if_empty() {
            return Ok(Some(Halt::NaturalEnd));
        }
        if !calls
            && truncated
            && let Some(stop) = self.watch.was_cut(&limits)
        {
            return Ok(Some(stopped(&stop)));
        }
        if let Some(stop) = self.watch.enough(&limits, self.usage) {
            return Ok(Some(stopped(&stop)));
        }
        if !calls && truncated {
            self.ask_for_the_rest();
        }
        self.keep_count()?;
        Ok(None)
    }

    /// The next question asks for the rest of the last answer, or for all of it where half of it is of no use.
    fn ask_for_the_rest(&mut self) {
        let word = if self.parts.agent.settings.format.is_some() { ANEW } else { GO_ON };
        self.conversation.push(Message::user(word));
    }

    async fn phase(&mut self, moment: Moment<'_>) -> Result<(), Halt> {
        let (mut report, environment) = (PhaseReport::default(), &self.parts.agent.environment);
        let done = environment.run_phase_reporting(&self.store, self.occasion(moment), &mut report).await;
        self.tell_failures(report).await;
        Ok(done?)
    }

    /// What a phase did not do, and went on without.
    async fn tell_failures(&self, report: PhaseReport) {
        for ActionFailure { key, message } in report.failed_actions {
            self.tell(AgentEvent::ActionFailed { key, message }).await;
        }
        for EffectFailure { key, message } in report.effects.failed {
            self.tell(AgentEvent::EffectFailed { key: key.to_owned(), message }).await;
        }
    }

    fn occasion<'a>(&'a self, moment: Moment<'a>) -> Occasion<'a> {
        Occasion {
            run: &self.parts.identity,
            step: self.step,
            moment,
            messages: self.conversation.messages(),
            cancellation: &self.cancellation,
        }
    }

    async fn tell(&self, event: AgentEvent) {
        self.teller.tell(event).await;
    }
}

/// A run that is cancelled since it lost its thread was not called off by anybody: it has failed.
pub(crate) fn first_lost(reason: Halt, checkpoint: &dyn Checkpoint) -> Halt {
    match reason {
        Halt::Cancelled => checkpoint.lost().map_or(Halt::Cancelled, Halt::from),
        reason => reason,
    }
}

fn stopped(stop: &Stop) -> Halt {
    Halt::Stopped { code: stop.code.to_string(), detail: Some(stop.detail.clone()) }
}
