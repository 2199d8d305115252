//! What can be asked of the next question to the model: messages to go with it, the tools it offers, its settings.
//!
//! Anybody who can schedule an action can ask for it; it is gathered at [`Phase::BeforeInference`] and taken by the loop, as
//! [`InferenceAdjustments`], when it makes the request.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use runyard_llm::inference::{Effort, InferenceRequest, Message, ToolSpec};
use serde::{Deserialize, Serialize};

use super::{ActionHandler, Fault, Phase, PhaseContext, ScheduledAction, StateCommand};
use crate::state::{MutationBatch, StateError, StateKey, StateStore};

/// So many context messages of each lifetime are kept.
pub const CONTEXT_MESSAGES_MAX: usize = 256;
/// So many tools can be excluded, or named as the only ones.
pub const TOOL_NAMES_MAX: usize = 1024;

/// A message that goes with a question, and is no part of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContextMessage {
    /// One with the same name takes its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The message.
    pub message: Message,
    /// Where it stands.
    pub place: Place,
    /// How long it goes with questions.
    pub lifetime: Lifetime,
}

/// Where a context message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Before the conversation.
    Before,
    /// After it.
    After,
}

/// How long a context message goes with questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifetime {
    /// With all questions of the run from now on.
    Persistent,
    /// With the next one alone.
    Ephemeral,
}

/// Settings of the next question. What is none stays as the agent has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InferenceOverride {
    /// How freely the model chooses.
    pub temperature: Option<f64>,
    /// How long the answer may be, in tokens.
    pub output_tokens_max: Option<u64>,
    /// How much it should think.
    pub effort: Option<Effort>,
}

/// Adds a message that goes with questions.
pub struct AddContextMessage;

impl ScheduledAction for AddContextMessage {
    const KEY: &'static str = "runtime.add_context_message";
    const PHASE: Phase = Phase::BeforeInference;
    type Payload = ContextMessage;
}

/// Does not offer these tools with the next question. It wins over [`IncludeOnlyTools`].
pub struct ExcludeTool;

impl ScheduledAction for ExcludeTool {
    const KEY: &'static str = "runtime.exclude_tool";
    const PHASE: Phase = Phase::BeforeInference;
    type Payload = String;
}

/// Offers no other tools with the next question. Asked for more than once, all that were named are offered.
pub struct IncludeOnlyTools;

impl ScheduledAction for IncludeOnlyTools {
    const KEY: &'static str = "runtime.include_only_tools";
    const PHASE: Phase = Phase::BeforeInference;
    type Payload = Vec<String>;
}

/// Changes settings of the next question. Of each setting the last word counts.
pub struct SetInferenceOverride;

impl ScheduledAction for SetInferenceOverride {
    const KEY: &'static str = "runtime.set_inference_override";
    const PHASE: Phase = Phase::BeforeInference;
    type Payload = InferenceOverride;
}

/// The messages that go with all questions.
pub(crate) struct ContextMessages;

impl StateKey for ContextMessages {
    const KEY: &'static str = "runtime.context_messages";
    type Value = Vec<Arc<ContextMessage>>;
    type Update = ContextMessage;

    fn apply(messages: &mut Self::Value, message: ContextMessage) {
        put(messages, message);
    }
}

/// What goes with the next question alone.
pub(crate) struct NextInference;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Next {
    messages: Vec<Arc<ContextMessage>>,
    #[serde(flatten)]
    offer: Offer,
    overrides: InferenceOverride,
}

pub(crate) enum NextUpdate {
    Message(ContextMessage),
    Exclude(String),
    IncludeOnly(Vec<String>),
    Override(InferenceOverride),
    Taken,
}

impl StateKey for NextInference {
    const KEY: &'static str = "runtime.next_inference";
    type Value = Next;
    type Update = NextUpdate;

    fn apply(next: &mut Next, update: NextUpdate) {
        match update {
            NextUpdate::Message(message) => put(&mut next.messages, message),
            NextUpdate::Exclude(tool) => drop(next.offer.excluded.insert(tool)),
            NextUpdate::IncludeOnly(tools) => next.offer.included.get_or_insert_default().extend(tools),
            NextUpdate::Override(word) => {
                let overrides = &mut next.overrides;
                overrides.temperature = word.temperature.or(overrides.temperature);
                overrides.output_tokens_max = word.output_tokens_max.or(overrides.output_tokens_max);
                overrides.effort = word.effort.or(overrides.effort);
            }
            NextUpdate::Taken => *next = Next::default(),
        }
    }
}

/// Which tools the last question did not offer. What was not offered is not there, also when a run goes on elsewhere.
pub(crate) struct LastOffer;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Offer {
    excluded: BTreeSet<String>,
    included: Option<BTreeSet<String>>,
}

impl StateKey for LastOffer {
    const KEY: &'static str = "runtime.last_offer";
    type Value = Offer;
    type Update = Offer;

    fn apply(offer: &mut Offer, last: Offer) {
        *offer = last;
    }
}

impl Offer {
    /// Whether a tool was offered.
    pub(crate) fn has(&self, tool: &str) -> bool {
        self.included.as_ref().is_none_or(|only| only.contains(tool)) && !self.excluded.contains(tool)
    }
}

fn named<'a>(messages: &'a [Arc<ContextMessage>], message: &ContextMessage) -> Option<usize> {
    messages.iter().position(|present: &'a _| present.name.is_some() && present.name == message.name)
}

fn put(messages: &mut Vec<Arc<ContextMessage>>, message: ContextMessage) {
    match named(messages, &message).and_then(|place| messages.get_mut(place)) {
        Some(present) => *present = Arc::new(message),
        None => messages.push(Arc::new(message)),
    }
}

/// Handles the actions of this module.
pub(crate) struct BuiltIn;

#[async_trait]
impl ActionHandler<AddContextMessage> for BuiltIn {
    async fn handle(
        &self,
        message: ContextMessage,
        context: &PhaseContext<'_>,
    ) -> Result<StateCommand, Fault> {
        let lasting = context.snapshot.get::<ContextMessages>();
        let present = match message.lifetime {
            Lifetime::Persistent => lasting.map(Vec::as_slice),
            Lifetime::Ephemeral => {
                context.snapshot.get::<NextInference>().map(|next| next.messages.as_slice())
            }
        };
        let present = present.unwrap_or_default();
        if present.len() >= CONTEXT_MESSAGES_MAX && named(present, &message).is_none() {
            return Err(format!("there are {CONTEXT_MESSAGES_MAX} context messages already").into());
        }
        Ok(match message.lifetime {
            Lifetime::Persistent => StateCommand::none().update::<ContextMessages>(message),
            Lifetime::Ephemeral => StateCommand::none().update::<NextInference>(NextUpdate::Message(message)),
        })
    }
}

#[async_trait]
impl ActionHandler<ExcludeTool> for BuiltIn {
    async fn handle(&self, tool: String, context: &PhaseContext<'_>) -> Result<StateCommand, Fault> {
        let excluded = context.snapshot.get::<NextInference>().map_or(0, |next| next.offer.excluded.len());
        room_for_names(excluded + 1)?;
        Ok(StateCommand::none().update::<NextInference>(NextUpdate::Exclude(tool)))
    }
}

#[async_trait]
impl ActionHandler<IncludeOnlyTools> for BuiltIn {
    async fn handle(&self, tools: Vec<String>, context: &PhaseContext<'_>) -> Result<StateCommand, Fault> {
        let next = context.snapshot.get::<NextInference>();
        let included = next.and_then(|next| next.offer.included.as_ref()).map_or(0, BTreeSet::len);
        room_for_names(included + tools.len())?;
        Ok(StateCommand::none().update::<NextInference>(NextUpdate::IncludeOnly(tools)))
    }
}

#[async_trait]
impl ActionHandler<SetInferenceOverride> for BuiltIn {
    async fn handle(
        &self,
        overrides: InferenceOverride,
        _context: &PhaseContext<'_>,
    ) -> Result<StateCommand, Fault> {
        Ok(StateCommand::none().update::<NextInference>(NextUpdate::Override(overrides)))
    }
}

fn room_for_names(names: usize) -> Result<(), Fault> {
    if names > TOOL_NAMES_MAX {
        return Err(format!("more than {TOOL_NAMES_MAX} tools are named").into());
    }
    Ok(())
}

/// What was asked of one question to the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InferenceAdjustments {
    lasting: Vec<Arc<ContextMessage>>,
    next: Next,
}

impl InferenceAdjustments {
    /// Takes what was asked of the next question. What goes with it alone is gone from the state afterwards, but for which
    /// tools it did not offer: until the next question those cannot be called.
    pub async fn take(store: &StateStore) -> Result<Self, StateError> {
        if !is_asked(store) {
            return Ok(Self::default());
        }
        let _turn = store.phase().await;
        let snapshot = store.snapshot();
        let lasting = snapshot.get::<ContextMessages>().cloned().unwrap_or_default();
        let next = snapshot.get::<NextInference>().cloned().unwrap_or_default();
        let mut batch = MutationBatch::new();
        if snapshot.get::<LastOffer>().cloned().unwrap_or_default() != next.offer {
            batch.update::<LastOffer>(next.offer.clone());
        }
        if next != Next::default() {
            batch.update::<NextInference>(NextUpdate::Taken);
        }
        store.commit(batch)?;
        Ok(InferenceAdjustments { lasting, next })
    }

    /// The messages, the lasting ones first.
    pub fn messages(&self) -> impl Iterator<Item = &ContextMessage> {
        self.lasting.iter().chain(&self.next.messages).map(AsRef::as_ref)
    }

    /// Whether a tool is offered.
    pub fn offers(&self, tool: &str) -> bool {
        self.next.offer.has(tool)
    }

    /// The settings.
    pub fn overrides(&self) -> InferenceOverride {
        self.next.overrides
    }

    /// Puts all of it into a request.
    pub fn apply(&self, request: &mut InferenceRequest) {
        let at = |place| {
            let there = self.messages().filter(move |message| message.place == place);
            there.map(|message| Arc::new(message.message.clone()))
        };
        // A conversation that is shared stays so where nothing is added.
        if self.messages().next().is_some() {
            request.messages.splice(0..0, at(Place::Before));
            request.messages.extend(at(Place::After));
        }
        if request.tools.iter().any(|tool| !self.offers(&tool.name)) {
            let offered = request.tools.iter().filter(|tool| self.offers(&tool.name));
            request.tools = offered.cloned().collect::<Vec<ToolSpec>>().into();
        }
        let InferenceOverride { temperature, output_tokens_max, effort } = self.next.overrides;
        request.temperature = temperature.or(request.temperature);
        request.output_tokens_max = output_tokens_max.or(request.output_tokens_max);
        request.effort = effort.or(request.effort);
    }
}

fn is_asked(store: &StateStore) -> bool {
    store.look(|now| {
        let is_kept = now.get::<ContextMessages>().is_some() || now.get::<NextInference>().is_some();
        is_kept || now.get::<LastOffer>().is_some()
    })
}
