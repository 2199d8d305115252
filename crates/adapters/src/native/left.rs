//! Calls that an earlier run of the conversation left without a result, and what the model is told of them.
//!
//! A person's no, a cancel or a deadline ends a run at once: what its model had called by then is in the log, and no result of it.
//! Providers take no conversation like that, and the model must not guess what became of a call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use runyard_agent::Agent;
use runyard_agent::checkpoint::CallPlace;
use runyard_agent::run::{Decision, DecisionKind, left_over, repeat_ticket};
use runyard_agent::tool::ToolError;
use runyard_backend::LeftOver;
use runyard_llm::inference::{Message, ToolCall, ToolOutput};
use serde_json::Value;

use super::log::Written;

/// The results of calls that have none, in their order.
pub(super) fn results(messages: &[Arc<Message>], left: Option<&LeftOver>, agent: &Agent) -> Vec<Message> {
    let idempotent =
        |call: &ToolCall| agent.environment.tool(&call.name).is_some_and(|tool| tool.descriptor().idempotent);
    let result = |(place, call): (CallPlace, Arc<ToolCall>)| {
        let error = became(place, left, idempotent(&call));
        Message::tool(ToolOutput { call_id: call.id.clone(), content: error.model_text(), is_error: true })
    };
    left_over(messages).into_iter().map(result).collect()
}

/// What is in the log, with the calls without a result, and those of them that were begun and whose end is still to be told.
pub(super) fn written(messages: &[Arc<Message>], left: Option<&LeftOver>) -> Written {
    let open: BTreeMap<CallPlace, Arc<ToolCall>> = left_over(messages).into_iter().collect();
    Written { messages: messages.len() as u64, open, begun: begun(messages, left), unknown: Vec::new() }
}

/// The calls without a result that were begun: nobody knows how far they came.
pub(super) fn begun(messages: &[Arc<Message>], left: Option<&LeftOver>) -> BTreeSet<CallPlace> {
    let places = left_over(messages).into_iter().map(|(place, _)| place);
    places.filter(|place| left.is_some_and(|left| left.begun.contains(&place.to_string()))).collect()
}

/// A turn goes on with calls that nobody knows of only when a person said that they are to be made again.
pub(super) fn made_again(unknown: &BTreeSet<CallPlace>) -> Vec<Decision> {
    let again = |place: &CallPlace| Decision {
        ticket: repeat_ticket(*place),
        kind: DecisionKind::Resume,
        value: Value::Null,
        reason: None,
    };
    unknown.iter().map(again).collect()
}

/// What became of a call, as far as anybody knows.
fn became(place: CallPlace, left: Option<&LeftOver>, idempotent: bool) -> ToolError {
    let may_have_begun = left.is_none_or(|left| left.begun.contains(&place.to_string()));
    match left.and_then(|left| left.rejected.as_deref()) {
        _ if may_have_begun && !idempotent => ToolError::OutcomeUnknown(
            "the run ended while this call was made, and nobody knows how far it came: look before you make it again"
                .to_owned(),
        ),
        _ if may_have_begun => {
            ToolError::Cancelled("the run ended while this call was made; it may be made again".to_owned())
        }
        Some(reason) => ToolError::Denied(format!(
            "this call was not made: a person rejected what was asked for, and that ended the run: {reason}"
        )),
        None => ToolError::Cancelled("this call was not made: the run ended before it was".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use runyard_domain::Code;

    use super::*;

    #[test]
    fn c16_nothing_is_said_of_a_call_that_is_not_known() {
        let place = CallPlace { message: 2, index: 0 };
        let left = |begun: bool, rejected: Option<&str>| LeftOver {
            begun: begun.then(|| place.to_string()).into_iter().collect::<BTreeSet<_>>(),
            rejected: rejected.map(str::to_owned),
        };
        #[rustfmt::skip]
        let table = [
            // what is known              idempotent  told
            (None,                              false, Code::OutcomeUnknown),
            (None,                              true,  Code::ToolCancelled),
            (Some(left(true, None)),            false, Code::OutcomeUnknown),
            (Some(left(true, Some("no"))),      false, Code::OutcomeUnknown),
            (Some(left(true, None)),            true,  Code::ToolCancelled),
            (Some(left(false, None)),           false, Code::ToolCancelled),
            (Some(left(false, None)),           true,  Code::ToolCancelled),
            (Some(left(false, Some("no"))),     false, Code::ToolDenied),
        ];
        for (left, idempotent, told) in table {
            assert_eq!(became(place, left.as_ref(), idempotent).code(), told, "{left:?} {idempotent}");
        }
        let other = CallPlace { message: 2, index: 1 };
        assert_eq!(became(other, Some(&left(true, None)), false).code(), Code::ToolCancelled);
    }
}
