//! Keeping what the model reads within what it takes. The thread itself keeps everything.

use std::sync::Arc;

use runyard_domain::Class;
use runyard_llm::inference::{
    InferenceExecutionError, InferenceRequest, Message, Messages, StopReason, ToolChoice,
};

use super::context::{Summarised, Summary, clipped, cut, cut_until, less, standing_in};
use super::record::sum;
use super::{AgentEvent, Course, Halt};
use crate::state::MutationBatch;

/// So often less is summarised where the older part itself is longer than the model takes.
const HALVINGS_MAX: u32 = 8;
/// So many times the room that it should need a summary gets where it was cut. After that it has as much as there is.
const ROOM: u64 = 4;
/// What stands behind a summary that was cut with all the room that there is.
const CUT: &str = "\n[the summary was cut here]";

/// What a run has found out about making what its model reads shorter.
#[derive(Debug, Default)]
pub(super) struct Shortening {
    /// So many bytes of each result are read, where not all.
    result_bytes: Option<usize>,
    /// So often a summary was cut: this run asks for the next one with more room at once.
    cuts: u32,
    /// The model summarises nothing, or refuses to. It is not asked again, and not paid for, in every step.
    is_in_vain: bool,
}

impl Course {
    /// What the model reads of the conversation.
    pub(super) fn read(&self) -> Messages {
        let messages = self.conversation.messages();
        let snapshot = self.store.snapshot();
        let summary = snapshot.get::<Summarised>().filter(|summary| summary.messages > 0);
        if summary.is_none() && self.shortening.result_bytes.is_none() {
            return self.conversation.shared();
        }
        let from = summary.map_or(0, |summary| left_out(summary, messages));
        let before = summary.map(|summary| Arc::new(standing_in(&summary.text)));
        before.into_iter().chain(clip(&messages[from..], self.shortening.result_bytes)).collect()
    }

    /// Makes what the model reads shorter, since it is longer than it takes: with a summary that leaves at least `recent`
    /// messages as they are, then one that leaves fewer, and at last with less of each result. Says whether it is shorter.
    pub(super) async fn shorten(&mut self, recent: &mut usize) -> Result<bool, Halt> {
        loop {
            if self.summarise(*recent).await? {
                return Ok(true);
            }
            if *recent <= 1 {
                break;
            }
            *recent /= 2;
        }
        let less = less(&self.read(), self.shortening.result_bytes);
        self.shortening.result_bytes = less.or(self.shortening.result_bytes);
        Ok(less.is_some())
    }

    /// Whether the model would read more than it should.
    pub(super) fn is_long(&mut self) -> bool {
        let Some(max) = self.parts.agent.context.tokens_max else { return false };
        let snapshot = self.store.snapshot();
        let summary = snapshot.get::<Summarised>().filter(|summary| summary.messages > 0);
        let from = summary.map_or(0, |summary| left_out(summary, self.conversation.messages()));
        let standing_in = summary.map_or(0, |summary| super::context::estimate(&standing_in(&summary.text)));
        self.conversation.tokens_from(from).saturating_add(standing_in) > max
    }

    /// Lets the model summarise all but the last messages. Says whether it reads less from now on.
    pub(super) async fn summarise(&mut self, recent_min: usize) -> Result<bool, Halt> {
        if self.shortening.is_in_vain {
            return Ok(false);
        }
        let before = self.store.snapshot().get::<Summarised>().cloned().unwrap_or_default();
        let from = left_out(&before, self.conversation.messages());
        let Some(mut at) = cut(self.conversation.messages(), from, recent_min) else { return Ok(false) };
        let (mut halvings, mut result_bytes) = (0, self.shortening.result_bytes);
        loop {
            match self.summary_of(&before, at, result_bytes).await {
                // It had nothing to say, and without the rest the model would know nothing.
                Ok(text) if text.trim().is_empty() => break,
                Ok(text) => {
                    let summary = Summary { messages: at as u64, text };
                    self.store.commit(MutationBatch::new().with::<Summarised>(summary))?;
                    self.tell(AgentEvent::Summarised { messages: at as u64 }).await;
                    return Ok(true);
                }
                Err(InferenceExecutionError::ContextOverflow(_)) => {
                    let messages = self.conversation.messages();
                    let half = cut_until(messages, from, from + (at - from) / 2);
                    if let Some(half) = half.filter(|_| halvings < HALVINGS_MAX) {
                        (at, halvings) = (half, halvings + 1);
                    } else if let Some(bytes) = less(&messages[from..at], result_bytes) {
                        result_bytes = Some(bytes);
                    } else {
                        break;
                    }
                }
                // The run goes on without it: the model may take the whole conversation, and says so if it does not.
                Err(error) if error.code().row().class == Class::Permanent => {
                    let code = error.code().as_str();
                    tracing::warn!(run = %self.parts.identity.run_id, code, "there is no summary: {error}");
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.shortening.is_in_vain = true;
        Ok(false)
    }

    /// What the model says of the conversation before `at`, as it will be stored. What was cut is asked for again, with more
    /// room: half a summary is not to be taken for a whole one.
    async fn summary_of(
        &mut self,
        before: &Summary,
        at: usize,
        result_bytes: Option<usize>,
    ) -> Result<String, InferenceExecutionError> {
        let (agent, messages) = (&self.parts.agent, self.conversation.messages());
        let mut older = Vec::with_capacity(at + 2);
        if before.messages > 0 {
            older.push(Arc::new(standing_in(&before.text)));
        }
        older.extend(clip(&messages[left_out(before, messages).min(at)..at], result_bytes));
        older.push(Arc::new(Message::user(agent.context.summary_instructions.clone())));
        let mut request = InferenceRequest {
            instructions: agent.instructions.to_string(),
            messages: older.into(),
            // Some providers take no calls in a conversation without the tools.
            tools: Arc::clone(&agent.tools),
            tool_choice: ToolChoice::None,
            ..InferenceRequest::default()
        };
        loop {
            request.output_tokens_max =
                room(self.parts.agent.context.summary_tokens_max, self.shortening.cuts);
            let is_bounded = request.output_tokens_max.is_some();
            let (text, stop) = self.summary(request.clone()).await?;
            match stop {
                StopReason::MaxTokens if is_bounded => self.shortening.cuts += 1,
                StopReason::MaxTokens if !text.trim().is_empty() => return Ok(text + CUT),
                _ => return Ok(text),
            }
        }
    }

    /// Asks for a summary.
    async fn summary(
        &mut self,
        request: InferenceRequest,
    ) -> Result<(String, StopReason), InferenceExecutionError> {
        let mut turn = self.parts.agent.inference.start(request, self.cancellation.clone());
        let outcome = loop {
            match turn.next().await {
                Ok(Some(_)) => {}
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if let Err(error) = outcome {
            self.usage = sum(self.usage, turn.partial().usage);
            return Err(error);
        }
        let answer = turn.into_answer()?;
        self.usage = sum(self.usage, answer.usage);
        Ok((self.parts.checkpoint.stored(answer.message).said(), answer.stop))
    }
}

/// How long a summary may be after it was cut so often; as long as it likes in the end.
fn room(tokens: u64, cuts: u32) -> Option<u64> {
    match cuts {
        0 => Some(tokens),
        1 => Some(tokens.saturating_mul(ROOM)),
        _ => None,
    }
}

/// The messages, with so much of each result.
fn clip(messages: &[Arc<Message>], result_bytes: Option<usize>) -> impl Iterator<Item = Arc<Message>> {
    messages.iter().map(move |message| match result_bytes {
        Some(bytes) => clipped(message, bytes),
        None => Arc::clone(message),
    })
}

/// How many messages a summary stands for, of those that there are.
fn left_out(summary: &Summary, messages: &[Arc<Message>]) -> usize {
    usize::try_from(summary.messages).unwrap_or(usize::MAX).min(messages.len())
}
