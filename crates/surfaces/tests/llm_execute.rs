//! Executing a model's tool call: the provider's shapes, the one runtime, and approvals.
//!
//! clause: A04
//! clause: A18
//! clause: A21
//! clause: J01
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation fails the test"
)]

mod llm_support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use llm_support::{ada, call, execute, execute_as};
use runyard_actions::{
    Action, ActionError, CallGate, Context, Exposure, Runtime, RuntimeBuilder, SideEffects,
};
use runyard_domain::{Actor, Code, RunId, Surface};
use runyard_surfaces::llm_tools::{Format, LlmTools, ToolReply, ToolRequest};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// `echo`, `count` with an optional field, `shout` of a text, and `erase`, which asks and counts how often it ran.
fn app(erased: &Arc<AtomicUsize>) -> RuntimeBuilder {
    let erased = Arc::clone(erased);
    let echo = |name: &str, schema: Value| {
        Action::define(name, "Gives back.").input_schema(schema).handler(|input, _| async move { Ok(input) })
    };
    let target = json!({
        "type": "object",
        "properties": {"target": {"type": "string"}, "force": {"type": "boolean"}},
        "required": ["target"],
        "additionalProperties": false,
    });
    let count =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false});
    let erase = Action::define("erase", "Erases.")
        .input_schema(target)
        .side_effects(SideEffects::Destructive)
        .handler(move |input, context: Context| {
            erased.fetch_add(1, Ordering::SeqCst);
            async move { Ok(json!({"erased": input["target"], "surface": context.surface()})) }
        });
    let fail = Action::define("fail", "Fails.")
        .input_schema(json!({"type": "object"}))
        .handler(|_, _| async { Err::<Value, _>(ActionError::new(Code::Conflict, "It has changed.")) });
    Runtime::builder()
        .action(echo("echo", json!({"type": "object"})))
        .action(echo("count", count))
        .action(echo("shout", json!({"type": "string", "minLength": 2})))
        .action(erase)
        .action(fail)
        .exposure(Exposure::new().destructive("erase", [Surface::AiSdk]))
}

fn tools() -> (LlmTools, Arc<AtomicUsize>) {
    let erased = Arc::new(AtomicUsize::new(0));
    (LlmTools::new(app(&erased).build().unwrap()), erased)
}

fn erase(target: &str) -> Value {
    call(Format::OpenaiChat, "erase", &json!({"target": target, "force": null}))
}

#[track_caller]
fn code(reply: &ToolReply) -> &str {
    reply.envelope.error().map_or("OK", |failure| failure.code.as_str())
}

async fn plain(tools: &LlmTools, format: Format, name: &str, arguments: Value) -> ToolReply {
    execute(tools, format, call(format, name, &arguments), json!({})).await
}

fn answer(reply: &ToolReply, approved: bool) -> Value {
    let request = reply.approval.as_ref().expect("an approval request");
    json!({"approval": {"approvalId": request.approval_id, "approved": approved}})
}

#[tokio::test]
async fn every_provider_gets_its_own_message_for_what_went_well_and_what_did_not() {
    let (tools, _) = tools();
    let arguments = json!({"n": 1});
    let failure = json!({"code": "CONFLICT", "message": "It has changed.", "issues": [], "retryable": false});
    let failed = json!({ "error": failure }).to_string();
    let expected = [
        (
            Format::OpenaiChat,
            json!({"role": "tool", "tool_call_id": "c1", "content": r#"{"n":1}"#}),
            json!({"role": "tool", "tool_call_id": "c1", "content": failed}),
        ),
        (
            Format::OpenaiResponses,
            json!({"type": "function_call_output", "call_id": "c1", "output": r#"{"n":1}"#}),
            json!({"type": "function_call_output", "call_id": "c1", "output": failed}),
        ),
        (
            Format::Anthropic,
            json!({"type": "tool_result", "tool_use_id": "c1", "content": r#"{"n":1}"#, "is_error": false}),
            json!({"type": "tool_result", "tool_use_id": "c1", "content": failed, "is_error": true}),
        ),
        (
            Format::AiSdk,
            json!({
                "type": "tool-result", "toolCallId": "c1", "toolName": "count", "input": {"n": 1}, "output": {"n": 1},
            }),
            json!({"type": "tool-error", "toolCallId": "c1", "toolName": "fail", "input": {}, "error": failure}),
        ),
    ];
    for (format, well, badly) in expected {
        let reply = plain(&tools, format, "count", arguments.clone()).await;
        assert_eq!((&reply.message, code(&reply)), (&well, "OK"));
        assert_eq!(reply.envelope.meta.surface, Surface::AiSdk);
        let reply = plain(&tools, format, "fail", json!({})).await;
        assert_eq!((&reply.message, code(&reply)), (&badly, "CONFLICT"));
    }
}

#[tokio::test]
async fn a18_arguments_that_are_no_json_are_a_failed_call_and_no_crash() {
    let (tools, _) = tools();
    for format in Format::ALL {
        for (text, message) in [
            ("{\"n\": 1", "The arguments are not valid JSON: EOF while parsing an object."),
            ("nope", "The arguments are not valid JSON: expected ident."),
            ("[1]", "Expected object."),
        ] {
            let mut call = call(format, "count", &json!({}));
            let place = match format {
                Format::OpenaiChat => "/function/arguments",
                Format::OpenaiResponses => "/arguments",
                _ => "/input",
            };
            *call.pointer_mut(place).unwrap() = text.into();
            let reply = execute(&tools, format, call, json!({})).await;
            let failure = reply.envelope.error().unwrap();
            assert_eq!(failure.code, Code::ValidationError);
            assert_eq!(failure.issues[0].message, message, "{format}");
            assert_eq!(reply.envelope.meta.action.as_deref(), Some("count"));
        }
    }
}

#[tokio::test]
async fn no_arguments_are_an_empty_object_and_texts_are_read_for_every_provider() {
    let (tools, _) = tools();
    for (call, expected) in [
        (json!({"toolCallId": "c1", "toolName": "echo"}), json!({})),
        (json!({"toolCallId": "c1", "toolName": "echo", "input": ""}), json!({})),
        (json!({"toolCallId": "c1", "toolName": "echo", "input": "{\"a\": null}"}), json!({"a": null})),
    ] {
        let reply = execute(&tools, Format::AiSdk, call, json!({})).await;
        assert_eq!(reply.envelope.data(), Some(&expected));
    }
}

#[tokio::test]
async fn a_null_that_strict_mode_forced_goes_and_any_other_stays() {
    let (tools, _) = tools();
    let forced = json!({"n": null});
    let reply = plain(&tools, Format::OpenaiResponses, "count", forced.clone()).await;
    assert_eq!(reply.envelope.data(), Some(&json!({})));
    // These providers do not force it, so it is what the model said.
    for format in [Format::Anthropic, Format::AiSdk] {
        assert_eq!(code(&plain(&tools, format, "count", forced.clone()).await), "VALIDATION_ERROR");
    }
    // An open schema is not strict, so its nulls are the model's own.
    let reply = plain(&tools, Format::OpenaiChat, "echo", forced.clone()).await;
    assert_eq!(reply.envelope.data(), Some(&forced));
}

#[tokio::test]
async fn where_null_is_a_value_it_stays_and_the_default_is_written_out() {
    let schema = json!({
        "type": "object",
        "properties": {"x": {"type": ["string", "null"], "default": "zz"}},
        "additionalProperties": false,
    });
    let it = Action::define("it", "Gives back.").input_schema(schema).handler(|input, _| async { Ok(input) });
    let tools = LlmTools::new(Runtime::builder().action(it).build().unwrap());
    for given in [json!({"x": null}), json!({"x": "zz"})] {
        let reply = plain(&tools, Format::OpenaiChat, "it", given.clone()).await;
        assert_eq!(reply.envelope.data(), Some(&given));
    }
    // Where nothing forces it, it can be left out.
    let reply = plain(&tools, Format::Anthropic, "it", json!({})).await;
    assert_eq!(reply.envelope.data(), Some(&json!({"x": "zz"})));
}

#[tokio::test]
async fn an_input_that_is_no_object_is_taken_out_of_its_wrapper() {
    let (tools, _) = tools();
    for format in Format::ALL {
        let reply = plain(&tools, format, "shout", json!({"input": "hey"})).await;
        assert_eq!(reply.envelope.data(), Some(&json!("hey")));
        for wrong in [
            json!({}),
            json!({"input": "h"}),
            json!({"input": "hey", "more": 1}),
            json!("hey"),
            json!({"input": 1}),
        ] {
            let reply = plain(&tools, format, "shout", wrong.clone()).await;
            assert_eq!(code(&reply), "VALIDATION_ERROR", "{wrong}");
        }
    }
}

#[tokio::test]
async fn names_that_a_provider_refuses_stand_in_the_wrapper_too() {
    let schema = json!({
        "type": "object",
        "properties": {"filter[id]": {"type": "string"}, "größe": {"type": "integer"}},
        "required": ["filter[id]"],
        "additionalProperties": false,
    });
    let list = Action::define("list", "Lists.").input_schema(schema).handler(|input, _| async { Ok(input) });
    let tools = LlmTools::new(Runtime::builder().action(list).build().unwrap());
    for format in Format::ALL {
        let reply = plain(&tools, format, "list", json!({"input": {"filter[id]": "a", "größe": 2}})).await;
        assert_eq!(reply.envelope.data(), Some(&json!({"filter[id]": "a", "größe": 2})));
    }
    let forced = json!({"input": {"filter[id]": "a", "größe": null}});
    let reply = plain(&tools, Format::OpenaiChat, "list", forced).await;
    assert_eq!(reply.envelope.data(), Some(&json!({"filter[id]": "a"})));
}

#[test]
fn what_is_no_tool_call_is_refused_with_its_place() {
    let issues = |format, call| {
        let error = ToolRequest::new(format, call).unwrap_err();
        assert_eq!(*error.code(), Code::ValidationError);
        json!(error.issues())
    };
    assert_eq!(
        issues(Format::OpenaiChat, json!({"function": {"name": 5}})),
        json!([
            {"path": ["call", "id"], "message": "Required value is missing."},
            {"path": ["call", "function", "name"], "message": "Expected string."},
        ])
    );
    for format in Format::ALL {
        assert_eq!(issues(format, json!("call")).as_array().unwrap().len(), 2, "{format}");
    }
    let payload = |payload: Value| {
        let error = ToolRequest::from_payload(payload.as_object().unwrap().clone(), None).unwrap_err();
        json!(error.issues()[0].path)
    };
    let call = call(Format::AiSdk, "echo", &json!({}));
    assert_eq!(payload(json!({ "call": call })), json!(["format"]));
    assert_eq!(payload(json!({"format": "openai", "call": call})), json!(["format"]));
    assert_eq!(payload(json!({"format": "ai-sdk"})), json!(["call"]));
    for approval in [json!(true), json!({"approvalId": "x"}), json!({"approvalId": "x", "approved": "yes"})] {
        assert_eq!(
            payload(json!({"format": "ai-sdk", "call": call, "approval": approval})),
            json!(["approval"])
        );
    }
}

#[tokio::test]
async fn a04_nothing_in_a_models_arguments_can_confirm() {
    let (tools, erased) = tools();
    let approval = json!({"approvalId": "x", "approved": true});
    for arguments in [
        json!({"target": "x", "confirm": true}),
        json!({"target": "x", "approval": approval}),
        json!({"target": "x", "force": true}),
        json!({"input": {"target": "x"}, "confirm": true}),
    ] {
        for format in Format::ALL {
            let mut call = call(format, "erase", &arguments);
            call["confirm"] = true.into();
            call["approval"] = approval.clone();
            let reply = execute(&tools, format, call, json!({})).await;
            assert!(matches!(code(&reply), "CONFIRMATION_REQUIRED" | "VALIDATION_ERROR"), "{arguments}");
        }
    }
    let only_true = execute(&tools, Format::OpenaiChat, erase("x"), json!({"confirm": "true"})).await;
    assert_eq!((code(&only_true), erased.load(Ordering::SeqCst)), ("CONFIRMATION_REQUIRED", 0));
    // The program can: that is its own word.
    let reply = execute(&tools, Format::OpenaiChat, erase("x"), json!({"confirm": true})).await;
    assert_eq!((code(&reply), erased.load(Ordering::SeqCst)), ("OK", 1));
}

#[tokio::test]
async fn a04_a_call_that_needs_a_confirmation_asks_and_runs_once_when_the_person_says_yes() {
    let (tools, erased) = tools();
    let asked = execute(&tools, Format::OpenaiChat, erase("x"), json!({})).await;
    assert_eq!((code(&asked), erased.load(Ordering::SeqCst)), ("CONFIRMATION_REQUIRED", 0));
    let mut request = json!(asked.approval);
    assert!(request["approvalId"].take().as_str().unwrap().starts_with("tap_"));
    let expected = json!({
        "approvalId": null, "toolCallId": "c1", "action": "erase", "title": request["title"],
        "sideEffects": "destructive", "input": {"target": "x"}, "expiresInMs": 600_000,
    });
    assert_eq!(request, expected);

    let yes = answer(&asked, true);
    let done = execute(&tools, Format::OpenaiChat, erase("x"), yes.clone()).await;
    assert_eq!(done.envelope.data(), Some(&json!({"erased": "x", "surface": "ai-sdk"})));
    assert_eq!((&done.approval, erased.load(Ordering::SeqCst)), (&None, 1));

    let again = execute(&tools, Format::OpenaiChat, erase("x"), yes).await;
    assert_eq!((code(&again), erased.load(Ordering::SeqCst)), ("CONFIRMATION_REQUIRED", 1));
    let message = &again.envelope.error().unwrap().message;
    assert_eq!(
        message,
        "Action \"erase\" requires explicit confirmation. The approval was used already; ask the person again."
    );
    assert_ne!(again.approval.map(|it| it.approval_id), asked.approval.map(|it| it.approval_id));
}

#[tokio::test]
async fn an_approval_is_for_the_same_call_of_the_same_actor_only() {
    let (tools, erased) = tools();
    let asked = execute(&tools, Format::OpenaiChat, erase("x"), json!({})).await;
    let yes = answer(&asked, true);
    let mut confirmed_too = yes.clone();
    confirmed_too["confirm"] = true.into();
    let eve = Arc::new(Actor::service("ada", ["x"]));
    for (who, call, beside) in [
        (ada(), erase("y"), &yes),
        (ada(), call(Format::OpenaiChat, "erase", &json!({"target": "x", "force": false})), &yes),
        (eve, erase("x"), &yes),
        (ada(), erase("y"), &confirmed_too),
    ] {
        let reply = execute_as(who, &tools, Format::OpenaiChat, call, beside.clone()).await;
        let message = &reply.envelope.error().unwrap().message;
        assert!(message.contains("The approval is not for this call"), "{message}");
        assert_eq!((code(&reply), erased.load(Ordering::SeqCst)), ("CONFIRMATION_REQUIRED", 0));
    }
    let (elsewhere, _) = self::tools();
    let reply = execute(&elsewhere, Format::OpenaiChat, erase("x"), yes.clone()).await;
    assert_eq!(code(&reply), "CONFIRMATION_REQUIRED");
    // In another provider's shape it is still the same call.
    let same = call(Format::Anthropic, "erase", &json!({"target": "x"}));
    assert_eq!(code(&execute(&tools, Format::Anthropic, same, yes).await), "OK");
}

#[tokio::test]
async fn a_no_is_told_to_the_model_and_ends_the_question() {
    let (tools, erased) = tools();
    let sdk = || call(Format::AiSdk, "erase", &json!({"target": "x"}));
    let asked = execute(&tools, Format::AiSdk, sdk(), json!({})).await;
    let id = &asked.approval.as_ref().unwrap().approval_id;
    assert_eq!(
        asked.message,
        json!({
            "type": "tool-approval-request", "approvalId": id, "toolCallId": "c1",
            "toolCall": {"type": "tool-call", "toolCallId": "c1", "toolName": "erase", "input": {"target": "x"}},
            "reason": "Action \"erase\" requires explicit confirmation.",
        })
    );
    let no = json!({"approval": {"approvalId": id, "approved": false, "reason": "Not today."}});
    let said = execute(&tools, Format::AiSdk, sdk(), no.clone()).await;
    assert_eq!(
        said.message,
        json!({
            "type": "tool-output-denied", "toolCallId": "c1", "toolName": "erase",
            "reason": "A person was asked and said no: Not today.",
        })
    );
    assert_eq!(code(&said), "approval_rejected");
    let yes = execute(&tools, Format::AiSdk, sdk(), answer(&asked, true)).await;
    assert_eq!((code(&yes), erased.load(Ordering::SeqCst)), ("CONFIRMATION_REQUIRED", 0));
    // A no needs no valid id: nothing is done either way.
    let no = json!({"approval": {"approvalId": "?", "approved": false}});
    let said = execute(&tools, Format::Anthropic, call(Format::Anthropic, "echo", &json!({})), no).await;
    assert_eq!((code(&said), &said.message["is_error"]), ("approval_rejected", &json!(true)));
}

struct Gate(Result<(), Code>, AtomicUsize);

#[async_trait]
impl CallGate for &'static Gate {
    async fn pass(&self, _: &Action, _: &Value, _: &Context) -> Result<(), ActionError> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.map_err(|code| ActionError::new(code, "The gate says no."))
    }
}

#[tokio::test]
async fn j01_an_agent_is_asked_nothing_and_can_answer_nothing_inside_a_run_the_gate_decides() {
    let agent = || Arc::new(Actor::agent("ada", RunId::from_parts(1, &[2; 10]), ["x"]));
    let (tools, erased) = tools();
    let asked = execute(&tools, Format::OpenaiChat, erase("x"), json!({})).await;
    let mut beside = answer(&asked, true);
    beside["confirm"] = true.into();
    let reply = execute_as(agent(), &tools, Format::OpenaiChat, erase("x"), beside).await;
    assert_eq!((code(&reply), &reply.approval), ("CONFIRMATION_REQUIRED", &None));
    assert_eq!(erased.load(Ordering::SeqCst), 0);

    for (verdict, expected) in [(Ok(()), "OK"), (Err(Code::PermissionDenied), "permission_denied")] {
        let gate: &'static Gate = Box::leak(Box::new(Gate(verdict, AtomicUsize::new(0))));
        let gated = LlmTools::new(app(&erased).call_gate(gate).build().unwrap());
        let beside = json!({"approval": {"approvalId": "x", "approved": false}});
        let reply = execute_as(agent(), &gated, Format::OpenaiChat, erase("x"), beside).await;
        assert_eq!((code(&reply), gate.1.load(Ordering::SeqCst), &reply.approval), (expected, 1, &None));
    }
}

#[tokio::test]
async fn a21_cancelling_ends_the_running_call() {
    let (begun, dropped) = (CancellationToken::new(), CancellationToken::new());
    let (begins, ends) = (begun.clone(), dropped.clone());
    let endless = Action::define("endless", "Never ends.").input_schema(json!({"type": "object"})).handler(
        move |_, _: Context| {
            let guard = ends.clone().drop_guard();
            begins.cancel();
            async move {
                std::future::pending::<()>().await;
                drop(guard);
                Ok(Value::Null)
            }
        },
    );
    let tools = LlmTools::new(Runtime::builder().action(endless).build().unwrap());
    let request = ToolRequest::new(Format::AiSdk, call(Format::AiSdk, "endless", &json!({}))).unwrap();
    let cancel = CancellationToken::new();
    let cancelling = async {
        begun.cancelled().await;
        cancel.cancel();
    };
    let (reply, ()) = tokio::join!(tools.execute(ada(), request, cancel.clone()), cancelling);
    assert_eq!(code(&reply), "CANCELLED");
    assert!(dropped.is_cancelled());
    assert_eq!(reply.message["error"]["code"], "CANCELLED");
}
