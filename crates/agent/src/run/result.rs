//! What came of calls: in the conversation, noted and told. No call is left without a result.

use std::sync::Arc;

use runyard_llm::inference::{Message, Part, ToolCall, ToolOutput as Output};

use super::{AgentEvent, Course, Halt, weighing};
use crate::checkpoint::{CallEnd, CallNote, CallPlace};
use crate::phase::Moment;
use crate::tool::{Refusal, ToolError, ToolResult};

/// How long the line that stands for a result is, in bytes.
const SUMMARY_BYTES_MAX: usize = 200;

/// What the model reads of a call that may have been made, when its run ends before anybody was asked.
const NEVER_KNOWN: &str = "the process died while this call was made, and nobody knows whether it was: look before you make it again";

/// Of a call that may have been made before: why it is not made again.
pub(super) fn not_made_again(why: &str) -> ToolError {
    ToolError::OutcomeUnknown(format!("{NEVER_KNOWN}; it is not made again now: {why}"))
}

/// How a call ended: what the model is told of an error may be more than the error itself.
pub(super) type Ended = Result<ToolResult, Refusal>;

impl Course {
    /// A call is over.
    pub(super) async fn over(&mut self, place: CallPlace, call: &ToolCall, ended: Ended) -> Result<(), Halt> {
        self.come_of(place, call, &ended)?;
        self.follow_up(place, call, ended, Ok(())).await
    }

    /// What came of a call, noted and counted, so that both are durable together.
    pub(super) fn come_of(&mut self, place: CallPlace, call: &ToolCall, ended: &Ended) -> Result<(), Halt> {
        self.note_result(place, call, ended);
        let ok = matches!(ended, Ok(ToolResult::Success { .. }));
        let limits = Arc::clone(&self.parts.agent.limits);
        self.watch.called(&limits, self.conversation.call_at(place).unwrap_or(call), ok);
        Ok(self.keep_count()?)
    }

    /// What follows when a call is over and noted. Where that cannot be durable, no hook hears of it.
    pub(super) async fn follow_up(
        &mut self,
        place: CallPlace,
        call: &ToolCall,
        ended: Ended,
        durable: Result<(), Halt>,
    ) -> Result<(), Halt> {
        self.forget_answers(place)?;
        let outcome = ended.map_err(|refusal| refusal.error);
        let phase = match durable {
            Ok(()) => self.phase(Moment::AfterToolExecute { call, outcome: &outcome }).await,
            failed => failed,
        };
        self.tell(AgentEvent::ToolEnded { place, call: call.clone(), outcome }).await;
        phase?;
        Ok(self.has_followed(place)?)
    }

    /// A call is over, and so is the run.
    pub(super) async fn block(&mut self, place: CallPlace, call: &ToolCall, reason: String) -> Halt {
        let error = match self.is_unknown(place, call) {
            false => ToolError::Denied(reason.clone()),
            true => {
                self.note_unknown(place, call);
                not_made_again(&reason)
            }
        };
        self.give_no_chance(place, call, error).await;
        Halt::Blocked { reason }
    }

    /// Gives every call that has no result one that says so: providers take no conversation without.
    pub(super) async fn pair(&mut self, why: &str) {
        for (place, call) in self.conversation.unanswered().to_vec() {
            let error = match self.is_unknown(place, &call) {
                false => ToolError::Cancelled(why.to_owned()),
                true => {
                    self.note_unknown(place, &call);
                    ToolError::OutcomeUnknown(NEVER_KNOWN.to_owned())
                }
            };
            self.give_no_chance(place, &call, error).await;
        }
    }

    fn note_unknown(&mut self, place: CallPlace, call: &ToolCall) {
        self.never_known.push(format!("{} ({place})", call.name));
    }

    /// Whether a call may have been made, and nobody said that it is to be left at that. Of one that is as good twice as once
    /// nobody needs to know.
    pub(super) fn is_unknown(&self, place: CallPlace, call: &ToolCall) -> bool {
        let tool = self.parts.agent.environment.tool(&call.name);
        self.unknown.contains(&place) && !tool.is_some_and(|tool| tool.descriptor().idempotent)
    }

    async fn give_no_chance(&mut self, place: CallPlace, call: &ToolCall, error: ToolError) {
        self.note_result(place, call, &Err(error.clone().into()));
        self.tell(AgentEvent::ToolEnded { place, call: call.clone(), outcome: Err(error) }).await;
    }

    /// Puts a result into the conversation, as it will be stored.
    pub(super) fn note_result(&mut self, place: CallPlace, call: &ToolCall, ended: &Ended) {
        let (content, is_error, code) = match ended {
            Ok(result) => {
                let said = result.model_text().unwrap_or_default();
                (said, matches!(result, ToolResult::Error { .. }), None)
            }
            Err(refusal) => (refusal.model_text(), true, Some(refusal.error.code())),
        };
        // Half of what a message may have is for what stands beside it, and for what redaction adds.
        let content = bounded(content, self.parts.checkpoint.limits().message_bytes_max / 2);
        let output = Output { call_id: call.id.clone(), content, is_error };
        let message = self.parts.checkpoint.stored(Message::tool(output));
        let said = match message.content.first() {
            Some(Part::ToolOutput(output)) => output.content.as_str(),
            _ => "",
        };
        let end = said.floor_char_boundary(SUMMARY_BYTES_MAX);
        let how = CallEnd { ok: !is_error, code, summary: said[..end].replace('\n', " ") };
        self.unknown.remove(&place);
        self.conversation.result(place, message);
        self.notes.push(CallNote::Ended { place, how });
    }
}

/// The text as far as it is not more than so many bytes of JSON, with a word about the rest.
fn bounded(mut text: String, bytes_max: usize) -> String {
    let end = weighing::fits(&text, bytes_max);
    if end < text.len() {
        let rest = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("\n[{rest} more bytes are left out]"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULT_BYTES_MAX: usize = 512 * 1024;

    #[track_caller]
    fn check(text: &str, kept: usize) {
        let bounded = bounded(text.to_owned(), RESULT_BYTES_MAX);
        assert!(bounded.starts_with(&text[..kept]));
        assert_eq!(bounded.len() == text.len(), kept == text.len());
        let json = serde_json::to_string(&bounded).unwrap();
        assert!(json.len() <= RESULT_BYTES_MAX + 100, "{}", json.len());
        if kept < text.len() {
            assert!(bounded.ends_with(&format!("\n[{} more bytes are left out]", text.len() - kept)));
        }
    }

    #[test]
    fn a_result_is_cut_where_it_could_not_be_stored() {
        check("short", 5);
        check(&"x".repeat(RESULT_BYTES_MAX), RESULT_BYTES_MAX);
        check(&"x".repeat(RESULT_BYTES_MAX + 1), RESULT_BYTES_MAX);
        check(&"\u{1}".repeat(RESULT_BYTES_MAX), RESULT_BYTES_MAX / 6);
        check(&"\"".repeat(RESULT_BYTES_MAX), RESULT_BYTES_MAX / 2);
        check(&"é".repeat(RESULT_BYTES_MAX), RESULT_BYTES_MAX);
    }
}
