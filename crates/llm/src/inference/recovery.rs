//! How an answer that broke off is saved, and how the model is asked to go on.
//!
//! It only chooses. Whether the model may be asked again at all is not decided here.

use std::sync::Arc;

use super::{InferenceRequest, InterruptSnapshot, Message};

/// What the model is told when it should go on.
pub const CONTINUE: &str = "Your last answer broke off before its end. Go on exactly where it stops, in the middle of a word \
                            if need be. Do not repeat anything of it, do not comment on the interruption, and make any tool \
                            call again that you were about to make.";

/// How an answer that broke off is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// Some calls are whole: the answer ends with them, and the model is not asked again.
    UseCalls,
    /// There is text, and a call that is not whole: the text is kept and continued, the call is not.
    ContinueWithoutCall,
    /// There is text: it is continued.
    ContinueText,
    /// Nothing can be used: the model begins anew.
    Restart,
}

impl Recovery {
    /// How to save what had come of the answer to `request`.
    pub fn choose(snapshot: &InterruptSnapshot, request: &InferenceRequest) -> Self {
        if !snapshot.completed_tool_calls.is_empty() {
            return Recovery::UseCalls;
        }
        // Providers refuse an answer of blanks. And where they force a form, what they let the model say begins anew each
        // time: half a document with a whole one after it would be neither.
        let has_text = snapshot.text.as_ref().is_some_and(|text| !text.trim().is_empty());
        match (has_text && request.format.is_none(), snapshot.in_flight_tools.is_empty()) {
            (true, false) => Recovery::ContinueWithoutCall,
            (true, true) => Recovery::ContinueText,
            (false, _) => Recovery::Restart,
        }
    }
}

/// The request that asks for the rest of an answer that began with `said`. What was thought is in it: some providers refuse what came
/// of a thought without the thought.
pub(super) fn continued(request: &InferenceRequest, said: Message) -> InferenceRequest {
    let mut request = request.clone();
    request.messages.push(Arc::new(said));
    request.messages.push(Arc::new(Message::user(CONTINUE)));
    request
}
