//! Asking the model: what it reads, and what becomes of its answer.

use std::sync::Arc;

use runyard_domain::Code;
use runyard_llm::inference::{
    InferenceExecutionError, InferenceRequest, Message, StopReason, ToolCall, Turn, Update,
};

use super::inbox::{LaterUpdate, LaterWords};
use super::pieces::{Stored, stored};
use super::record::sum;
use super::{AgentEvent, Course, Halt};
use crate::phase::{InferenceAdjustments, Moment, Place};
use crate::state::{MutationBatch, StateError};

/// So often what the model reads is made shorter for one question. Each time it is, and there is an end to that long before.
const SHORTENINGS_MAX: u32 = 64;

/// An answer that is in the conversation.
struct Answered {
    message: Arc<Message>,
    truncated: bool,
}

/// Why there is none.
struct Unanswered {
    error: InferenceExecutionError,
    /// Whether something was said all the same.
    said: bool,
    /// What last went wrong with a model.
    last: Option<Code>,
    /// Where no model was asked: one that is left alone, and what failed before.
    left_alone: Option<(String, Code)>,
}

impl From<Unanswered> for Halt {
    fn from(Unanswered { error, last, left_alone, .. }: Unanswered) -> Self {
        match (error, left_alone, last) {
            // That nobody is left says less than why the last of them is not.
            (error @ InferenceExecutionError::AllModelsUnavailable, _, Some(last)) => {
                let message = format!("{error}; the last one failed with {}", last.as_str());
                Halt::Failed { code: error.code(), message }
            }
            (error @ InferenceExecutionError::AllModelsUnavailable, Some((model, failed)), None) => {
                let failed = failed.as_str();
                let message = format!(
                    "{error}; {model} is left alone for a while, since it failed too often in a row, last with {failed}"
                );
                Halt::Failed { code: error.code(), message }
            }
            (error, ..) => error.into(),
        }
    }
}

impl Course {
    /// Asks the model. Says whether its answer was cut.
    pub(super) async fn ask(&mut self) -> Result<bool, Halt> {
        self.hear()?;
        self.flush().await?;
        self.phase(Moment::BeforeInference).await?;
        let adjustments = InferenceAdjustments::take(&self.store).await?;
        let mut recent = self.parts.agent.context.recent_messages_min;
        if self.is_long() {
            // Where there is no place to cut, the model may still take it.
            self.summarise(recent).await?;
        }
        let mut left = SHORTENINGS_MAX;
        let answered = loop {
            let unanswered = match self.infer(&adjustments).await {
                Ok(answered) => break answered,
                Err(unanswered) => unanswered,
            };
            let Unanswered { error: InferenceExecutionError::ContextOverflow(_), said: false, .. } =
                unanswered
            else {
                return Err(unanswered.into());
            };
            if left == 0 || !self.shorten(&mut recent).await? {
                return Err(unanswered.into());
            }
            left -= 1;
        };
        self.keep_count()?;
        self.phase(Moment::AfterInference { answer: &answered.message }).await?;
        Ok(answered.truncated)
    }

    /// Takes what was said to the run into the conversation.
    pub(super) fn hear(&mut self) -> Result<(), StateError> {
        let later = self.store.snapshot().get::<LaterWords>().filter(|words| !words.is_empty()).cloned();
        if let Some(words) = later {
            self.store.commit(MutationBatch::new().with::<LaterWords>(LaterUpdate::Said))?;
            words.into_iter().for_each(|word| self.conversation.push(word));
        }
        for word in self.parts.inbox.take() {
            let word = self.parts.checkpoint.stored(word);
            self.conversation.push(word);
        }
        Ok(())
    }

    async fn infer(&mut self, adjustments: &InferenceAdjustments) -> Result<Answered, Unanswered> {
        let mut request = self.parts.agent.question();
        request.messages = self.read();
        self.adjust(&mut request, adjustments);
        let mut turn = self.parts.agent.inference.start(request, self.cancellation.clone());
        if let Err(error) = self.follow(&mut turn).await {
            let partial = turn.partial();
            let last = turn.last_error().map(InferenceExecutionError::code);
            let left_alone = turn.left_alone().map(|(model, failed)| (model.to_owned(), failed));
            self.usage = sum(self.usage, partial.usage);
            // What clients saw is what is stored, also of an answer that came to nothing.
            let said = !partial.message.said().is_empty();
            if said {
                let Stored { whole, pieces } = stored(self.parts.checkpoint.as_ref(), partial.message);
                let from = self.conversation.messages().len();
                pieces
                    .unwrap_or_else(|| vec![whole])
                    .into_iter()
                    .for_each(|piece| self.conversation.push(piece));
                self.conversation.is_one_from(from);
            } else if matches!(error, InferenceExecutionError::ContextOverflow(_)) {
                // The same is asked again, shorter, and its answer begins anew.
                for update in turn.take_back() {
                    self.tell(AgentEvent::Inference(update)).await;
                }
            }
            return Err(Unanswered { error, said, last, left_alone });
        }
        let unanswered = |error| Unanswered { error, said: false, last: None, left_alone: None };
        let answer = turn.into_answer().map_err(unanswered)?;
        self.usage = sum(self.usage, answer.usage);
        let calls: Vec<ToolCall> = answer.message.tool_calls().cloned().collect();
        let Stored { whole, pieces } = stored(self.parts.checkpoint.as_ref(), answer.message);
        let message = Arc::new(whole);
        let mut pieces = pieces.unwrap_or_default();
        let last = pieces.pop().map_or_else(|| Arc::clone(&message), Arc::new);
        let from = self.conversation.messages().len();
        pieces.into_iter().for_each(|piece| self.conversation.push(piece));
        // Providers take no message that says nothing.
        if !last.content.is_empty() {
            self.conversation.answer(last, calls);
            self.conversation.is_one_from(from);
        }
        let limits = Arc::clone(&self.parts.agent.limits);
        self.watch.answered(&limits, &message);
        let (usage, model) = (answer.usage, answer.model);
        self.tell(AgentEvent::Answered { message: Arc::clone(&message), usage, model }).await;
        Ok(Answered { message, truncated: answer.stop == StopReason::MaxTokens })
    }

    /// Goes along with a turn to its end.
    pub(super) async fn follow(&self, turn: &mut Turn) -> Result<(), InferenceExecutionError> {
        while let Some(update) = turn.next().await? {
            // What it cost is told with the answer.
            if !matches!(update, Update::Usage(_)) {
                self.tell(AgentEvent::Inference(update)).await;
            }
        }
        Ok(())
    }

    /// Adds what was asked of the question. Messages that come with it are read as they are stored, as all others are.
    fn adjust(&self, request: &mut InferenceRequest, adjustments: &InferenceAdjustments) {
        if adjustments.messages().next().is_none() {
            return adjustments.apply(request);
        }
        let before = adjustments.messages().filter(|message| message.place == Place::Before).count();
        let after = before + request.messages.len();
        adjustments.apply(request);
        let (first, rest) = request.messages.split_at_mut(before);
        for message in first.iter_mut().chain(&mut rest[after - before..]) {
            *message = Arc::new(self.parts.checkpoint.stored(Message::clone(message)));
        }
    }
}
