//! Keeping what the model reads within what it takes. The thread itself keeps everything.

use std::sync::Arc;

use runyard_llm::inference::{InferenceExecutionError, InferenceRequest, Message, Messages, ToolChoice};

use super::context::{Summarised, Summary, cut, cut_until, standing_in};
use super::record::sum;
use super::{AgentEvent, Course, Halt};
use crate::state::MutationBatch;

/// So often less is summarised where the older part itself is longer than the model takes.
const HALVINGS_MAX: u32 = 8;

impl Course {
    /// What the model reads of the conversation.
    pub(super) fn read(&self) -> Messages {
        let messages = self.conversation.messages();
        let snapshot = self.store.snapshot();
        match snapshot.get::<Summarised>() {
            Some(summary) if summary.messages > 0 => {
                let rest = messages[left_out(summary, messages)..].iter().cloned();
                std::iter::once(Arc::new(standing_in(&summary.text))).chain(rest).collect()
            }
            _ => self.conversation.shared(),
        }
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
        let before = self.store.snapshot().get::<Summarised>().cloned().unwrap_or_default();
        let from = left_out(&before, self.conversation.messages());
        let mut place = cut(self.conversation.messages(), from, recent_min);
        for _ in 0..=HALVINGS_MAX {
            let Some(at) = place else { return Ok(false) };
            match self.summary_of(&before, at).await {
                // It had nothing to say, and without the rest the model would know nothing.
                Ok(text) if text.trim().is_empty() => return Ok(false),
                Ok(text) => {
                    let summary = Summary { messages: at as u64, text };
                    self.store.commit(MutationBatch::new().with::<Summarised>(summary))?;
                    self.tell(AgentEvent::Summarised { messages: at as u64 }).await;
                    return Ok(true);
                }
                Err(InferenceExecutionError::ContextOverflow(_)) => {
                    place = cut_until(self.conversation.messages(), from, from + (at - from) / 2);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }

    /// What the model says of the conversation before `at`, as it will be stored.
    async fn summary_of(&mut self, before: &Summary, at: usize) -> Result<String, InferenceExecutionError> {
        let (agent, messages) = (&self.parts.agent, self.conversation.messages());
        let mut older = Vec::with_capacity(at + 2);
        if before.messages > 0 {
            older.push(Arc::new(standing_in(&before.text)));
        }
        older.extend(messages[left_out(before, messages).min(at)..at].iter().cloned());
        older.push(Arc::new(Message::user(agent.context.summary_instructions.clone())));
        let request = InferenceRequest {
            instructions: agent.instructions.to_string(),
            messages: older.into(),
            // Some providers take no calls in a conversation without the tools.
            tools: Arc::clone(&agent.tools),
            tool_choice: ToolChoice::None,
            output_tokens_max: Some(agent.context.summary_tokens_max),
            ..InferenceRequest::default()
        };
        let mut turn = agent.inference.start(request, self.cancellation.clone());
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
        Ok(self.parts.checkpoint.stored(answer.message).said())
    }
}

/// How many messages a summary stands for, of those that there are.
fn left_out(summary: &Summary, messages: &[Arc<Message>]) -> usize {
    usize::try_from(summary.messages).unwrap_or(usize::MAX).min(messages.len())
}
