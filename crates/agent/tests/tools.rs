//! Tools: arguments against their schema, deadlines, cancellation, panics, results, and tools that are actions.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use runyard_actions::{
    Action, ActionError, Artifact, CallGate, Context, Exposure, Fields, Idempotency, Progress, Runtime,
    SideEffects,
};
use runyard_agent::phase::{Moment, StateCommand};
use runyard_agent::state::StateStore;
use runyard_agent::tool::{
    ActionTool, Report, Reporter, ResumeMode, SuspendTicket, Tool, ToolContext, ToolDescriptor, ToolError,
    ToolOutput, ToolResult, TypedTool, check, execute, typed,
};
use runyard_domain::{Code, Surface};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use support::{Tally, at, environment, tool_context};
use tokio_util::sync::CancellationToken;

fn context() -> ToolContext {
    tool_context(&StateStore::new(&environment()))
}

#[derive(Deserialize, JsonSchema)]
struct Sum {
    numbers: Vec<u8>,
    #[serde(default)]
    bonus: i64,
}

struct Adding;

#[async_trait]
impl TypedTool for Adding {
    const ID: &'static str = "add";
    const DESCRIPTION: &'static str = "Adds numbers.";
    const IDEMPOTENT: bool = true;
    type Args = Sum;

    async fn run(&self, args: Sum, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let sum = args.numbers.iter().copied().map(i64::from).sum::<i64>() + args.bonus;
        context.reporter.progress(50.0, "half");
        context.reporter.output("sum");
        if sum > 500 {
            return Ok(ToolResult::error("That is too much.").into());
        }
        Ok(ToolOutput::new(ToolResult::success(sum), StateCommand::none().update::<Tally>(sum)))
    }
}

/// A tool of a schema and a function, as somebody without types would write it.
struct Plain<F> {
    descriptor: ToolDescriptor,
    run: F,
}

#[async_trait]
impl<F: Fn(&Value) -> Result<ToolOutput, ToolError> + Send + Sync> Tool for Plain<F> {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn validate_args(&self, args: &Value) -> Result<(), ToolError> {
        match args["path"].as_str() {
            Some("panic") => panic!("while looking"),
            Some(path) if path.contains("..") => Err(ToolError::Denied("outside".to_owned())),
            _ => Ok(()),
        }
    }

    async fn execute(&self, args: Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        (self.run)(&args)
    }
}

fn reading() -> impl Tool {
    let schema = json!({
        "type": "object",
        "properties": { "path": { "type": "string" }, "lines": { "type": "integer", "minimum": 1 } },
        "required": ["path", "lines"],
        "additionalProperties": false,
    });
    let descriptor = ToolDescriptor::new("read", "Reads a file.", schema).unwrap();
    Plain { descriptor, run: |args: &Value| Ok(ToolResult::success(args["path"].clone()).into()) }
}

// clause: D02
#[test]
fn d02_arguments_are_held_against_the_schema_and_every_violation_is_told_with_its_place() {
    let refused = check(&reading(), &json!({ "path": 7, "lines": 0, "mode": "x" })).unwrap_err();
    assert_eq!(refused.error.code(), Code::ToolInvalidArguments);
    let told: Value = serde_json::from_str(&refused.model_text()).unwrap();
    assert_eq!(told["error"], "tool.invalid_arguments");
    let mut paths: Vec<_> =
        told["issues"].as_array().unwrap().iter().map(|issue| issue["path"].to_string()).collect();
    paths.sort();
    assert_eq!(paths, [r#"["lines"]"#, r#"["mode"]"#, r#"["path"]"#]);
    assert!(check(&reading(), &json!("no object")).is_err());
    assert!(check(&reading(), &json!({ "path": "a", "lines": 1 })).is_ok());
}

#[test]
fn d02_the_tool_itself_may_refuse_what_its_schema_allows_and_its_panic_is_an_error() {
    let refused = |path: &str| check(&reading(), &json!({ "path": path, "lines": 1 })).unwrap_err().error;
    assert_eq!(refused("../x"), ToolError::Denied("outside".to_owned()));
    assert_eq!(refused("panic"), ToolError::Internal("panicked: while looking".to_owned()));
}

#[test]
fn d02_a_schema_that_does_not_hold_together_makes_no_tool() {
    assert!(ToolDescriptor::new("x", "x", json!({ "type": "no such type" })).is_err());
}

#[tokio::test]
async fn d02_a_typed_tool_has_the_schema_of_its_type_and_reads_its_arguments() {
    let tool = typed(Adding);
    let spec = tool.descriptor().spec();
    assert_eq!((spec.name.as_str(), tool.descriptor().idempotent), ("add", true));
    assert_eq!(spec.parameters["required"], json!(["numbers"]));
    assert_eq!(check(&*tool, &json!({ "numbers": [1, 300] })).unwrap_err().issues.len(), 1);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&heard);
    let context =
        ToolContext { reporter: Reporter::new(move |report| log.lock().unwrap().push(report)), ..context() };
    let args = json!({ "numbers": [1, 2], "bonus": 4 });
    check(&*tool, &args).unwrap();
    let output = execute(&*tool, args, &context).await.unwrap();
    assert_eq!(output.result, ToolResult::success(7));
    let expected = [
        Report::Progress { percent: Some(50.0), message: "half".to_owned() },
        Report::Output("sum".to_owned()),
    ];
    assert_eq!(*heard.lock().unwrap(), expected);

    let environment = environment();
    let store = StateStore::new(&environment);
    environment.submit(&store, output.command, at(Moment::StepEnd)).await.unwrap();
    assert_eq!(store.snapshot().get::<Tally>(), Some(&7));

    let told = execute(&*tool, json!({ "numbers": [255, 255] }), &context).await.unwrap().result;
    assert_eq!(told, ToolResult::error("That is too much."), "a result of a call that ran");
}

#[test]
fn d02_what_a_model_reads_of_a_result() {
    let ticket = SuspendTicket::new("t", "confirm", "May it?");
    assert_eq!(ticket.resume, ResumeMode::ReplayToolCall);
    let reads = |result: &ToolResult| result.for_model("c").map(|output| (output.content, output.is_error));
    let says = |text: &str, is_error| Some((text.to_owned(), is_error));
    assert_eq!(reads(&ToolResult::success("plain")), says("plain", false));
    assert_eq!(reads(&ToolResult::success(json!({ "a": 1 }))), says(r#"{"a":1}"#, false));
    assert_eq!(reads(&ToolResult::success_saying(json!({ "a": 1 }), "One.")), says("One.", false));
    assert_eq!(reads(&ToolResult::error("No.")), says("No.", true));
    assert_eq!(reads(&ToolResult::suspended(ticket.clone())), None);
    for result in [ToolResult::success(1), ToolResult::error("No."), ToolResult::suspended(ticket)] {
        let kept: ToolResult = serde_json::from_value(serde_json::to_value(&result).unwrap()).unwrap();
        assert_eq!(kept, result);
    }
}

#[tokio::test]
async fn d02_a_call_of_a_cancelled_run_does_not_begin() {
    let context = context();
    context.cancellation.cancel();
    let tool = Plain { descriptor: reading().descriptor().clone(), run: |_: &Value| panic!("it ran") };
    let error = execute(&tool, json!({}), &context).await.unwrap_err();
    assert_eq!(error, ToolError::Cancelled("the run was cancelled".to_owned()));
}

// Tools that are actions

fn raising() -> Action {
    let raise = |input: Value, _| async move {
        let code = input["code"].as_str().unwrap_or_default().to_owned();
        Err(ActionError::application(&code, "It did not work."))
    };
    let open = json!({ "type": "object" });
    // It only reads, so that its idempotency key does not answer for it.
    plain("raise").side_effects(SideEffects::Read).input_schema(open).handler(raise).unwrap()
}

fn tool(runtime: &Runtime, name: &str) -> ActionTool {
    ActionTool::new(runtime, name).unwrap()
}

async fn call(runtime: &Runtime, name: &str, args: Value) -> Result<ToolResult, ToolError> {
    execute(&tool(runtime, name), args, &context()).await.map(|output| output.result)
}

// clause: D02
#[tokio::test]
async fn d02_what_an_action_fails_with_is_the_tools_error_row_by_row() {
    let runtime = Runtime::builder().action(raising()).build().unwrap();
    #[rustfmt::skip]
    let settled = [
        ("VALIDATION_ERROR",           Code::ToolInvalidArguments),
        ("ACTION_NOT_FOUND",           Code::ToolNotFound),
        ("AUTHORIZATION_ERROR",        Code::ToolDenied),
        ("CONFIRMATION_REQUIRED",      Code::ToolDenied),
        ("UNSUPPORTED_SURFACE",        Code::ToolDenied),
        ("permission_denied",          Code::ToolDenied),
        ("approval_rejected",          Code::ToolDenied),
        ("TIMEOUT",                    Code::ToolCancelled),
        ("CANCELLED",                  Code::ToolCancelled),
        ("OUTPUT_SERIALIZATION_ERROR", Code::ToolInternal),
        ("OUTPUT_VALIDATION_ERROR",    Code::ToolInternal),
        ("INTERNAL_ERROR",             Code::ToolInternal),
    ];
    let mut codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    codes.push("PAYMENT_DECLINED");
    for code in codes {
        let expected =
            settled.iter().find(|row| row.0 == code).map_or(Code::ToolExecutionFailed, |row| row.1);
        let error = call(&runtime, "raise", json!({ "code": code })).await.unwrap_err();
        assert_eq!(error.code(), expected, "{code}: {error}");
        assert!(error.to_string().ends_with("It did not work."), "{error}");
    }
}

struct Gate(Result<(), Code>);

#[async_trait]
impl CallGate for Gate {
    async fn pass(&self, _: &Action, _: &Value, _: &Context) -> Result<(), ActionError> {
        self.0.map_err(|code| ActionError::new(code, "Not this one."))
    }
}

fn plain(name: &str) -> runyard_actions::ActionBuilder {
    Action::define(name, "An action.")
}

async fn fine(_: Value, _: Context) -> Result<Value, ActionError> {
    Ok(json!({ "fine": true }))
}

#[tokio::test(start_paused = true)]
async fn d02_the_runtimes_own_refusals_come_as_the_tools_errors() {
    let runtime = Runtime::builder()
        .action(plain("confirmed").requires_confirmation(true).handler(fine))
        .action(plain("permitted").permissions(["shop.write"]).handler(fine))
        .action(plain("elsewhere").surfaces([Surface::Cli]).handler(fine))
        .action(plain("destroy").side_effects(SideEffects::Destructive).handler(fine))
        .action(plain("people").people_only().handler(fine))
        .action(plain("slow").timeout_ms(10).handler(|_, _| std::future::pending()))
        .action(plain("panics").handler(|_, _| async { panic!("deep inside") }))
        .action(plain("wrong").output_schema(json!({ "type": "string" })).handler(fine))
        .action(plain("narrow").input_schema(json!({ "type": "object", "required": ["x"] })).handler(fine))
        .build()
        .unwrap();
    #[rustfmt::skip]
    let rows = [
        ("confirmed", Code::ToolDenied),
        ("permitted", Code::ToolDenied),
        ("elsewhere", Code::ToolDenied),
        ("people",    Code::ToolDenied),
        ("slow",      Code::ToolCancelled),
        ("panics",    Code::ToolInternal),
        ("wrong",     Code::ToolInternal),
        ("narrow",    Code::ToolInvalidArguments),
    ];
    for (name, expected) in rows {
        let error = call(&runtime, name, json!({})).await.unwrap_err();
        assert_eq!(error.code(), expected, "{name}: {error}");
    }
    for hidden in ["destroy", "no_such_action"] {
        let error = ActionTool::new(&runtime, hidden).err().unwrap();
        assert_eq!(error, ToolError::NotFound(hidden.to_owned()));
    }
    let narrow = tool(&runtime, "narrow");
    assert_eq!(
        check(&narrow, &json!({})).unwrap_err().issues.len(),
        1,
        "the loop finds it before the action does"
    );
}

#[tokio::test]
async fn d02_a_gate_that_denies_is_denied_and_a_call_that_was_approved_is_not_asked_about() {
    let exposure = || Exposure::new().destructive("destroy", [Surface::AiSdk]);
    let destroy = || plain("destroy").side_effects(SideEffects::Destructive).handler(fine);
    let gated = Runtime::builder()
        .exposure(exposure())
        .action(destroy())
        .call_gate(Gate(Err(Code::PermissionDenied)));
    let gated = gated.build().unwrap();
    assert_eq!(
        call(&gated, "destroy", json!({})).await.unwrap_err(),
        ToolError::Denied("Not this one.".to_owned())
    );
    let approved = ToolContext { approved: true, ..context() };
    let output = execute(&tool(&gated, "destroy"), json!({}), &approved).await.unwrap();
    assert_eq!(output.result, ToolResult::success(json!({ "fine": true })));
    assert!(output.command.is_empty());
}

#[tokio::test]
async fn d02_a_call_that_is_made_again_under_its_key_has_its_effect_once() {
    let (made, surfaces) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (count, seen) = (Arc::clone(&made), Arc::clone(&surfaces));
    let pay = plain("pay").side_effects(SideEffects::Write).handler(move |_, context: Context| {
        seen.lock().unwrap().push((context.surface(), context.idempotency_key().map(str::to_owned)));
        let paid = count.fetch_add(1, Ordering::SeqCst) + 1;
        async move { Ok(json!({ "paid": paid })) }
    });
    let look = plain("look").side_effects(SideEffects::Read).handler(fine);
    let set =
        plain("set").side_effects(SideEffects::Write).idempotency(Idempotency::Idempotent).handler(fine);
    let runtime = Runtime::builder().actions([pay, look, set]).build().unwrap();
    for _ in 0..2 {
        assert_eq!(
            call(&runtime, "pay", json!({})).await.unwrap(),
            ToolResult::success(json!({ "paid": 1 }))
        );
    }
    let other = ToolContext { idempotency_key: "key-2".to_owned(), ..context() };
    execute(&tool(&runtime, "pay"), json!({}), &other).await.unwrap();
    assert_eq!(made.load(Ordering::SeqCst), 2);
    assert_eq!(surfaces.lock().unwrap()[0], (Surface::AiSdk, Some("key-1".to_owned())));
    let idempotent = ["pay", "look", "set"].map(|name| tool(&runtime, name).descriptor().idempotent);
    assert_eq!(idempotent, [false, true, true]);
}

#[tokio::test]
async fn d02_what_an_action_reports_is_heard_while_it_runs() {
    let report = plain("report").handler(|_, context: Context| async move {
        context.logger().info("began", Fields::new());
        context.progress().report(Progress::percent(40.0).message("copying"));
        context.artifacts().add(Artifact {
            id: "a".to_owned(),
            kind: "file".to_owned(),
            name: None,
            mime_type: None,
            uri: None,
            size_bytes: None,
            metadata: Default::default(),
        });
        Ok(json!("done"))
    });
    let runtime = Runtime::builder().action(report).build().unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&heard);
    let context =
        ToolContext { reporter: Reporter::new(move |report| log.lock().unwrap().push(report)), ..context() };
    let output = execute(&tool(&runtime, "report"), json!({}), &context).await.unwrap();
    assert_eq!(output.result, ToolResult::success("done"));
    let heard = heard.lock().unwrap();
    assert!(matches!(&heard[0], Report::Log(entry) if entry.message == "began"));
    assert_eq!(heard[1], Report::Progress { percent: Some(40.0), message: "copying".to_owned() });
    assert!(matches!(&heard[2], Report::Artifact(artifact) if artifact.id == "a"));
    assert_eq!(heard.len(), 3);
}

#[tokio::test]
async fn d02_cancelling_a_call_drops_the_actions_invocation() {
    struct Dropped(Arc<AtomicUsize>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let (drops, began) = (Arc::new(AtomicUsize::new(0)), Arc::new(tokio::sync::Notify::new()));
    let (count, begin) = (Arc::clone(&drops), Arc::clone(&began));
    let wait = plain("wait").handler(move |_, _| {
        let held = Dropped(Arc::clone(&count));
        let begin = Arc::clone(&begin);
        async move {
            begin.notify_one();
            std::future::pending::<()>().await;
            drop(held);
            Ok(Value::Null)
        }
    });
    let runtime = Runtime::builder().action(wait).build().unwrap();
    for heard in [false, true] {
        let cancel = CancellationToken::new();
        let reporter = if heard { Reporter::new(|_| {}) } else { Reporter::none() };
        let context = ToolContext { cancellation: cancel.clone(), reporter, ..context() };
        let tool = tool(&runtime, "wait");
        let (outcome, ()) = tokio::join!(execute(&tool, json!({}), &context), async {
            began.notified().await;
            cancel.cancel();
        });
        assert_eq!(outcome.unwrap_err().code(), Code::ToolCancelled);
    }
    assert_eq!(drops.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn d02_a_deadline_ends_the_call_and_not_a_moment_before() {
    struct Slow;
    #[derive(Deserialize, JsonSchema)]
    struct Wait {
        ms: u64,
    }
    #[async_trait]
    impl TypedTool for Slow {
        const ID: &'static str = "slow";
        const DESCRIPTION: &'static str = "Waits.";
        const DEADLINE: Option<Duration> = Some(Duration::from_millis(100));
        type Args = Wait;

        async fn run(&self, args: Wait, _: &ToolContext) -> Result<ToolOutput, ToolError> {
            tokio::time::sleep(Duration::from_millis(args.ms)).await;
            Ok(ToolResult::success(args.ms).into())
        }
    }
    let slow = typed(Slow);
    assert!(execute(&*slow, json!({ "ms": 99 }), &context()).await.is_ok());
    let late = execute(&*slow, json!({ "ms": 101 }), &context()).await.unwrap_err();
    assert_eq!(late, ToolError::Cancelled("not done within 100 ms".to_owned()));
}
