//! The agent's checkpoint inside Runyard: each step is one batch of the run's journal, and so one transaction of its log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use runyard_agent::checkpoint::{
    CallEnd, CallNote, CallPlace, Checkpoint, CheckpointError, Opened, StepCommit, StepLimits,
};
use runyard_agent::plugin::Environment;
use runyard_agent::run::{RecordedUsage, RunRecord};
use runyard_agent::state::{PersistedState, StateChanges};
use runyard_backend::{JournalError, Redaction, Signal};
use runyard_domain::Code;
use runyard_domain::run::{ThreadRecorded, ToolOutcome, Usage};
use runyard_llm::inference::{Message, Part, Role, ToolCall};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ear::{Ear, Recording};
use super::question::ASK;

/// What belongs to the run, and what to its thread, in the record of a conversation.
const RUN: &str = "run/";
const THREAD: &str = "thread/";
/// Where the turn stands: how many steps it began, how often its model was asked, what it cost, also with the turns before, and how long it took.
const RECORD: &str = "loop/record";
/// The answer that is being told, by its name. It is over where messages follow.
const TOLD: &str = "loop/told";

/// What stands for an answer that will not be completed.
const BEGUN_ANEW: &str = "[This answer broke off and was begun anew.]";

/// A batch of the journal is one transaction as long as it has at most 128 signals: two for a message, two for a note, and
/// room for those that come with it.
const STEP_MESSAGES_MAX: usize = 16;
const STEP_CALLS_MAX: usize = 40;
/// So much JSON one record of the conversation may have: more is refused at the edge.
const RECORD_BYTES_MAX: usize = 768 * 1024;
/// So much of it is what a step adds; the rest is names, and what redaction makes longer.
const STEP_BYTES_MAX: usize = 760 * 1024;

/// The steps of a run, in its journal.
pub(super) struct LogCheckpoint {
    pub(super) ear: Arc<Ear>,
    pub(super) redaction: Arc<dyn Redaction>,
    pub(super) tools: Arc<Environment>,
    pub(super) thread: String,
    /// What the turns before this one cost: a turn has limits of its own.
    pub(super) before: RecordedUsage,
    pub(super) names: Arc<Names>,
    pub(super) written: Mutex<Written>,
    /// The step that is being recorded. Whoever waited for it may have gone; what was sent is sent all the same.
    pub(super) sent: tokio::sync::Mutex<Option<Recording>>,
    /// Whether nobody waited for the end of the last step: then nobody knows whether it is there.
    pub(super) unsettled: AtomicBool,
}

/// What is in the log.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// How many messages.
    pub(super) messages: u64,
    /// Calls that have no result.
    pub(super) open: BTreeMap<CallPlace, Arc<ToolCall>>,
    /// Those of them that were said to begin.
    pub(super) begun: BTreeSet<CallPlace>,
    /// What those did, in a line, that got a result though nobody knows what became of them.
    pub(super) unknown: Vec<String>,
}

/// What messages are called, the same in previews and in the end.
#[derive(Debug)]
pub(super) struct Names {
    /// What those of this session begin with: another session may have died with an answer half told.
    series: u32,
    next: AtomicU64,
    /// The last one of which a piece was told.
    told: AtomicU64,
}

impl Names {
    pub(super) fn new() -> Self {
        let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), ());
        Names { series: random as u32, next: AtomicU64::new(1), told: AtomicU64::new(0) }
    }

    pub(super) fn current(&self) -> String {
        format!("message-{:08x}.{}", self.series, self.next.load(Ordering::SeqCst))
    }

    pub(super) fn advance(&self) -> String {
        let name = self.current();
        self.next.fetch_add(1, Ordering::SeqCst);
        name
    }

    /// Whether a piece of the message was told.
    fn is_begun(&self) -> bool {
        self.told.load(Ordering::SeqCst) == self.next.load(Ordering::SeqCst)
    }

    /// Whether this is the first piece of the message to be told.
    fn begins(&self) -> bool {
        let next = self.next.load(Ordering::SeqCst);
        self.told.swap(next, Ordering::SeqCst) != next
    }
}

impl LogCheckpoint {
    /// A record of the conversation.
    fn recorded(&self, step: &StepCommit, after: u64) -> Option<ThreadRecorded> {
        let messages: Vec<Value> =
            step.messages.iter().filter_map(|message| serde_json::to_value(message.as_ref()).ok()).collect();
        let mut state = BTreeMap::new();
        for (prefix, changes) in [(THREAD, &step.thread_state), (RUN, &step.run_state)] {
            state.extend(kept(prefix, changes));
        }
        if messages.is_empty() && state.is_empty() {
            return None;
        }
        state.insert(RECORD.to_owned(), stands(&step.record, self.before));
        Some(ThreadRecorded { thread: self.thread.clone(), after, messages, state })
    }

    /// A piece of an answer. That it is being told is recorded before its first one: a process that dies over it leaves it open, and
    /// the next one has to know its name to say so.
    pub(super) fn told(&self, text: String) -> Vec<Signal> {
        let piece = Signal::Delta { item: self.names.current(), text };
        if !self.names.begins() {
            return vec![piece];
        }
        let after = self.written.lock().unwrap_or_else(PoisonError::into_inner).messages;
        vec![tells(&self.thread, after, self.names.current().into()), piece]
    }

    /// The answer begins anew. Where only thoughts were told of it, or nothing, nobody has seen anything.
    pub(super) fn begun_anew(&self) -> Vec<Signal> {
        if !self.names.is_begun() {
            return Vec::new();
        }
        let after = self.written.lock().unwrap_or_else(PoisonError::into_inner).messages;
        broken_off(self.names.advance(), &self.thread, after)
    }

    /// A step as signals. What is too much for one record is refused as a whole: a message is not divided.
    fn signals(&self, step: &StepCommit, written: &mut Written) -> Result<Vec<Signal>, CheckpointError> {
        let recorded = self.recorded(step, written.messages);
        let bytes = recorded.as_ref().map_or(0, weight);
        if bytes > RECORD_BYTES_MAX {
            let message = format!(
                "a step of the conversation has {bytes} bytes, and {RECORD_BYTES_MAX} can be recorded"
            );
            return Err(CheckpointError { code: Code::StorageValidation, message });
        }
        let mut signals = Vec::new();
        for message in step.messages.iter().filter(|message| message.role == Role::Assistant) {
            let item = self.names.advance();
            let thought: Vec<&str> = message.content.iter().filter_map(thought).collect();
            if !thought.is_empty() {
                signals.push(Signal::Reasoning { item: item.clone(), text: thought.join("\n\n") });
            }
            let text = message.said();
            if !text.is_empty() {
                signals.push(Signal::Message { item, text });
            }
        }
        signals.extend(recorded.map(Signal::Thread));
        signals.extend(self.ear.heard_in(step, self.redaction.as_ref()));
        written.say(&step.messages);
        for note in &step.calls {
            match note {
                // To ask is no step: its request says it.
                CallNote::Intent { call, .. } if call.name == ASK => {}
                CallNote::Intent { place, call, idempotent, .. } => {
                    signals.push(begins(*place, call, *idempotent));
                    written.begun.insert(*place);
                }
                CallNote::Ended { place, how } => {
                    let call = written.open.remove(place);
                    if how.code == Some(Code::OutcomeUnknown) {
                        written.unknown.extend(call.as_deref().map(super::gate::summary));
                    }
                    if !written.begun.remove(place) {
                        // It was not made, and is over all the same.
                        let Some(call) = call.filter(|call| is_step(call, how)) else { continue };
                        signals.push(begins(*place, &call, self.is_idempotent(&call)));
                    } else if how.ok {
                        signals.extend(call.as_deref().and_then(touched));
                    }
                    signals.push(ends(*place, how));
                }
            }
        }
        let spent = sum(self.before, step.record.usage);
        let usage = Usage {
            input_tokens: Some(spent.input_tokens),
            output_tokens: Some(spent.output_tokens),
            ..Usage::default()
        };
        signals.push(Signal::Status {
            phase: "working".to_owned(),
            model: None,
            version: None,
            thread: None,
            usage: Some(usage),
        });
        Ok(signals)
    }

    /// What the calls did that got a result though nobody knows what became of them, in a line.
    pub(super) fn unknown(&self) -> Option<String> {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        (!written.unknown.is_empty()).then(|| written.unknown.join("; "))
    }

    fn is_idempotent(&self, call: &ToolCall) -> bool {
        self.tools.tool(&call.name).is_some_and(|tool| tool.descriptor().idempotent)
    }
}

impl Written {
    /// Messages are written, with the calls in them.
    fn say(&mut self, messages: &[Arc<Message>]) {
        for message in messages {
            self.messages += 1;
            let places = (0..).map(|index| CallPlace { message: self.messages, index });
            self.open.extend(places.zip(message.tool_calls().cloned().map(Arc::new)));
        }
    }
}

#[async_trait]
impl Checkpoint for LogCheckpoint {
    fn stored(&self, message: Message) -> Message {
        redacted(self.redaction.as_ref(), message)
    }

    fn limits(&self) -> StepLimits {
        StepLimits {
            messages_max: STEP_MESSAGES_MAX,
            calls_max: STEP_CALLS_MAX,
            bytes_max: STEP_BYTES_MAX,
            message_bytes_max: STEP_BYTES_MAX,
        }
    }

    async fn commit(&self, step: StepCommit) -> Result<(), CheckpointError> {
        self.unsettled.store(true, Ordering::SeqCst);
        let written = self.write(step).await;
        self.unsettled.store(false, Ordering::SeqCst);
        written
    }

    // The journal says so when it is asked to record.
    fn lost(&self) -> Option<CheckpointError> {
        None
    }

    async fn give_up(&self) {}
}

impl LogCheckpoint {
    async fn write(&self, step: StepCommit) -> Result<(), CheckpointError> {
        let mut sent = self.sent.lock().await;
        // Where one is on its way this is the same step again.
        if sent.is_none() {
            let pen = self.ear.pen().await;
            let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
            *sent = Some(self.ear.write(pen, self.signals(&step, &mut written)?));
        }
        let recorded = match sent.as_mut() {
            Some(recording) => recording.await.unwrap_or(Err(JournalError::Stopped)),
            None => Ok(()),
        };
        *sent = None;
        recorded.map_err(|error| CheckpointError {
            code: match error {
                JournalError::Fenced => Code::StorageStaleGeneration,
                JournalError::Stopped => Code::InferenceCancelled,
            },
            message: error.to_string(),
        })
    }
}

/// A message as the log will have it.
pub(super) fn redacted(redaction: &dyn Redaction, mut message: Message) -> Message {
    for part in &mut message.content {
        match part {
            Part::Text { text } => *text = redaction.content(text),
            Part::Reasoning(reasoning) => {
                reasoning.text = redaction.content(&reasoning.text);
                // What a provider sealed is taken back whole or not at all.
                let safe = |sealed: &Value| redaction.arguments(sealed.clone()) == *sealed;
                reasoning.sealed = reasoning.sealed.take().filter(safe);
            }
            Part::ToolCall(call) => call.arguments = redaction.arguments(call.arguments.take()),
            Part::ToolOutput(output) => output.content = redaction.content(&output.content),
            Part::Image(_) => {}
        }
    }
    message
}

/// What is recorded first where a process died over an answer: it will not be completed, and begins anew under another name.
pub(super) fn broke_off(history: &[ThreadRecorded], thread: &str, messages: u64) -> Vec<Signal> {
    let last = history.iter().rev().find(|recorded| recorded.state.contains_key(TOLD));
    let open = last.filter(|recorded| recorded.after == messages).and_then(|last| last.state[TOLD].as_str());
    let Some(item) = open.map(str::to_owned) else { return Vec::new() };
    broken_off(item, thread, messages)
}

/// An answer is not completed, and is not open any more.
fn broken_off(item: String, thread: &str, messages: u64) -> Vec<Signal> {
    vec![Signal::BrokeOff { item, text: BEGUN_ANEW.to_owned() }, tells(thread, messages, Value::Null)]
}

fn tells(thread: &str, after: u64, item: Value) -> Signal {
    let (thread, state) = (thread.to_owned(), BTreeMap::from([(TOLD.to_owned(), item)]));
    Signal::Thread(ThreadRecorded { thread, after, messages: Vec::new(), state })
}

/// What the log says of a conversation, and what the turns before its last one cost; `resumed` where its run goes on.
pub(super) fn opened(history: &[ThreadRecorded], resumed: bool) -> Result<(Opened, RecordedUsage), String> {
    let mut opened = Opened::default();
    for recorded in history {
        if recorded.after != opened.messages.len() as u64 {
            let (has, says) = (opened.messages.len(), recorded.after);
            return Err(format!("the record of the conversation has {has} messages where it says {says}"));
        }
        for message in &recorded.messages {
            let message: Message = serde_json::from_value(message.clone())
                .map_err(|error| format!("a message of the conversation cannot be read: {error}"))?;
            opened.messages.push(Arc::new(message));
        }
        for (key, value) in &recorded.state {
            keep(&mut opened.thread_state, THREAD, key, value);
            if resumed {
                keep(&mut opened.run_state, RUN, key, value);
            }
        }
    }
    let stood = history.iter().rev().find_map(|recorded| recorded.state.get(RECORD)).filter(|_| resumed);
    let stood: Option<Stands> = stood.and_then(|stood| serde_json::from_value(stood.clone()).ok());
    let before = stood.as_ref().map(|stood| stood.before).unwrap_or_default();
    opened.record = stood.map(Stands::record);
    Ok((opened, before))
}

/// Where a turn stands, as the log has it.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Stands {
    rounds: u32,
    #[serde(default)]
    steps: u32,
    usage: RecordedUsage,
    /// What the turns before it cost.
    #[serde(default)]
    before: RecordedUsage,
    elapsed_ms: u64,
    /// Whether the last message is the beginning of an answer whose rest is not recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    incomplete: bool,
}

impl Stands {
    fn record(self) -> RunRecord {
        let Stands { rounds, steps, usage, elapsed_ms, incomplete, .. } = self;
        RunRecord { rounds, steps, usage, elapsed_ms, incomplete, ..RunRecord::default() }
    }
}

fn stands(record: &RunRecord, before: RecordedUsage) -> Value {
    let RunRecord { rounds, steps, usage, elapsed_ms, incomplete, .. } = record.clone();
    serde_json::to_value(Stands { rounds, steps, usage, before, elapsed_ms, incomplete }).unwrap_or_default()
}

/// What the log has of a turn that begins: nothing but what the run cost before.
pub(super) fn begins_turn(before: RecordedUsage) -> (String, Value) {
    (RECORD.to_owned(), stands(&RunRecord::default(), before))
}

/// What both cost.
pub(super) fn sum(one: RecordedUsage, other: RecordedUsage) -> RecordedUsage {
    RecordedUsage {
        input_tokens: one.input_tokens.saturating_add(other.input_tokens),
        output_tokens: one.output_tokens.saturating_add(other.output_tokens),
        cached_tokens: one.cached_tokens.saturating_add(other.cached_tokens),
        reasoning_tokens: one.reasoning_tokens.saturating_add(other.reasoning_tokens),
    }
}

/// What clears the state of the runs before, when another begins.
pub(super) fn cleared(history: &[ThreadRecorded]) -> BTreeMap<String, Value> {
    let keys: BTreeSet<&String> = history.iter().flat_map(|recorded| recorded.state.keys()).collect();
    keys.into_iter().filter(|key| key.starts_with(RUN)).map(|key| (key.clone(), Value::Null)).collect()
}

fn keep(state: &mut PersistedState, prefix: &str, key: &str, value: &Value) {
    let Some(key) = key.strip_prefix(prefix) else { return };
    match value {
        Value::Null => drop(state.values.remove(key)),
        value => drop(state.values.insert(key.to_owned(), value.clone())),
    }
}

fn kept(prefix: &str, changes: &StateChanges) -> impl Iterator<Item = (String, Value)> {
    let name = move |key: &String| format!("{prefix}{key}");
    let cleared = changes.cleared.iter().map(move |key| (name(key), Value::Null));
    cleared.chain(changes.set.iter().map(move |(key, value)| (name(key), value.clone())))
}

/// How many bytes of JSON a record has.
fn weight(recorded: &ThreadRecorded) -> usize {
    serde_json::to_vec(recorded).map_or(usize::MAX, |bytes| bytes.len())
}

fn thought(part: &Part) -> Option<&str> {
    match part {
        Part::Reasoning(reasoning) if !reasoning.text.is_empty() => Some(&reasoning.text),
        _ => None,
    }
}

fn begins(place: CallPlace, call: &ToolCall, idempotent: bool) -> Signal {
    Signal::ToolCall {
        call: place.to_string(),
        tool: call.name.clone(),
        summary: super::gate::summary(call),
        arguments: call.arguments.clone(),
        idempotent,
    }
}

/// Whether a call that was not made is a step of its own. What a person was asked is not: its request says it.
fn is_step(call: &ToolCall, how: &CallEnd) -> bool {
    call.name != ASK || how.code == Some(Code::ToolInvalidArguments)
}

fn ends(place: CallPlace, how: &CallEnd) -> Signal {
    let outcome = match how.code {
        None if how.ok => ToolOutcome::Succeeded,
        Some(Code::ToolDenied) => ToolOutcome::Denied,
        Some(Code::ToolCancelled) => ToolOutcome::Cancelled,
        _ => ToolOutcome::Failed,
    };
    Signal::ToolResult { call: place.to_string(), outcome, code: how.code, summary: how.summary.clone() }
}

/// The file that a call has read or changed. It is on record with the result.
fn touched(call: &ToolCall) -> Option<Signal> {
    let path = call.arguments.get("path").and_then(Value::as_str)?.to_owned();
    match call.name.as_str() {
        "read" => Some(Signal::FileRead { path }),
        "write" | "patch" => {
            let summary = format!("{} {path}", call.name);
            Some(Signal::Patch { files: vec![path], summary })
        }
        _ => None,
    }
}
