//! Calls over `/mcp` that ask, that take long and that are taken back.
//!
//! clause: A02
//! clause: A04
//! clause: A21
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a failed expectation fails the test"
)]

mod mcp_support;
mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use jiff::Timestamp;
use mcp_support::{Defined, McpServer, call, mcp_server_of, newer, older, result};
use runyard_actions::{
    Action, ActionError, Answer, Context, Exposure, Question, Runtime, SideEffects, TaskUse, Visibility,
};
use runyard_domain::{Actor, Surface};
use runyard_surfaces::mcp::{FollowedTasks, McpApi, TaskState, TaskView};
use serde_json::{Value, json};
use support::server::ADA;

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const OPTIONS: &str = "io.runyard/options";
const CONFIRM: &str = "io.runyard/confirm";
/// So long a task is kept after its end.
const KEPT_MS: i64 = 15 * 60 * 1000;

fn form(message: &str) -> Question {
    let schema = json!({"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]});
    Question::form(message, schema)
}

/// The capabilities of a client that follows tasks and can ask nobody.
fn blind() -> Value {
    json!({CAPABILITIES: {"extensions": {"io.modelcontextprotocol/tasks": {}}}})
}

fn actions(next: &Arc<Mutex<&'static str>>) -> Vec<Defined> {
    let erasing = |name: &str, task| {
        let action = Action::define(name, "Erases.").side_effects(SideEffects::Destructive).task(task);
        let input = json!({"type": "object", "properties": {"what": {"type": "string"}}});
        action.input_schema(input).handler(|input, _| async move { Ok(json!({"erased": input["what"]})) })
    };
    let hidden = |name: &str, task| {
        let action = Action::define(name, "Is for this machine only.").visibility(Visibility::Local);
        action.task(task).handler(|_, _| async { Ok(Value::Null) })
    };
    let next = Arc::clone(next);
    vec![
        erasing("erase", TaskUse::Never),
        erasing("erase_in_task", TaskUse::Possible),
        hidden("hidden", TaskUse::Possible),
        hidden("hidden_task", TaskUse::Required),
        Action::define("delete_next", "Deletes what is next.").handler(move |_, ctx: Context| {
            let file = *next.lock().unwrap();
            async move {
                let answer = ctx.ask("sure", form(&format!("Delete {file}?"))).await?;
                let sure = answer.filled_in().is_some_and(|content| content["sure"] == true);
                Ok(json!(if sure { format!("deleted {file}") } else { "nothing".to_owned() }))
            }
        }),
        Action::define("ask_in_task", "Asks.").task(TaskUse::Possible).handler(
            |_, ctx: Context| async move {
                ctx.ask("sure", form("Sure?")).await?;
                Ok(Value::Null)
            },
        ),
    ]
}

/// A run that waits for a person.
struct Waiting;

#[async_trait]
impl FollowedTasks for Waiting {
    fn follows(&self, _: &str) -> bool {
        false
    }

    fn begun(&self, _: &str, _: &Value) -> Option<String> {
        None
    }

    async fn look(&self, _: &Arc<Actor>, id: &str) -> Option<TaskView> {
        let questions = [("sure".to_owned(), form("Go on?"))].into();
        let at = Timestamp::UNIX_EPOCH;
        let (state, message) = (TaskState::Working, Some("The run waits.".to_owned()));
        let view = TaskView {
            id: id.to_owned(),
            state,
            message,
            created_at: at,
            updated_at: at,
            questions,
            result: None,
        };
        (id == "run").then_some(view)
    }

    async fn answer(
        &self,
        _: &Arc<Actor>,
        _: &str,
        _: BTreeMap<String, Answer>,
    ) -> Option<Result<(), ActionError>> {
        None
    }

    async fn cancel(&self, _: &Arc<Actor>, _: &str) -> Option<Result<(), ActionError>> {
        None
    }
}

/// The server, and what `delete_next` is about.
async fn server() -> (McpServer, Arc<Mutex<&'static str>>) {
    let next = Arc::new(Mutex::new("A"));
    let mut exposure = Exposure::new();
    for name in ["erase", "erase_in_task"] {
        exposure = exposure.destructive(name, [Surface::Mcp]);
    }
    let runtime = Runtime::builder().actions(actions(&next)).exposure(exposure).build().unwrap();
    let api = McpApi::new("tasks", "1.2.3", runtime).followed_tasks(Arc::new(Waiting));
    (mcp_server_of(api).await, next)
}

/// Calls a tool on the newer wire, with more parameters than its arguments.
async fn called(server: &McpServer, name: &str, arguments: Value, more: Value) -> Value {
    let mut asked = call(name, arguments);
    asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server.result(newer(server, ADA, 1, "tools/call", asked)).await
}

#[track_caller]
fn code(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "{result}");
    result["_meta"]["io.runyard/envelope"]["error"]["code"].as_str().unwrap()
}

#[track_caller]
fn task_id(begun: &Value) -> String {
    assert_eq!(begun["resultType"], "task", "{begun}");
    begun["taskId"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a21_a_task_that_waits_for_a_confirmation_is_cancelled() {
    let (server, _) = server().await;
    let task = task_id(&called(&server, "erase_in_task", json!({"what": "all"}), json!({})).await);
    let asking = server.until_task_asks(ADA, &task).await;
    assert!(asking["inputRequests"][CONFIRM].is_object(), "{asking}");
    server.result(newer(&server, ADA, 2, "tasks/cancel", json!({ "taskId": task }))).await;
    let ended = server.until_task(ADA, &task, |status| status != "input_required").await;
    assert_eq!((&ended["status"], &ended["inputRequests"]), (&json!("cancelled"), &Value::Null), "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confirmation_in_a_task_is_waited_for_until_the_deadline() {
    let (server, _) = server().await;
    let options = json!({"_meta": {OPTIONS: {"deadlineMs": 50}}});
    let task = task_id(&called(&server, "erase_in_task", json!({"what": "all"}), options).await);
    let ended = server.until_task_ends(ADA, &task).await;
    assert_eq!(code(&ended["result"]), "TIMEOUT");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confirmation_in_a_session_is_waited_for_until_the_deadline() {
    let (server, _) = server().await;
    let session = server.session(ADA, json!({"elicitation": {}})).await;
    let mut params = call("erase", json!({"what": "all"}));
    params["_meta"] = json!({OPTIONS: {"deadlineMs": 50}});
    let asked = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let mut stream = server.stream(&older(&server, ADA, Some(&session), &asked)).await;
    let question = stream.message().await.unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    assert_eq!(code(result(&stream.last_message().await)), "TIMEOUT");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_counts_for_the_question_that_it_was_given_to_and_for_no_other() {
    let (server, next) = server().await;
    let question = |asked: &Value| asked["inputRequests"]["sure"]["params"]["message"].clone();
    let yes = json!({"sure": {"action": "accept", "content": {"sure": true}}});
    let with = |asked: &Value| json!({"requestState": asked["requestState"], "inputResponses": yes});
    let first = called(&server, "delete_next", json!({}), json!({})).await;
    assert_eq!(question(&first), "Delete A?", "{first}");
    *next.lock().unwrap() = "B";
    let second = called(&server, "delete_next", json!({}), with(&first)).await;
    assert_eq!(question(&second), "Delete B?", "{second}");
    let done = called(&server, "delete_next", json!({}), with(&second)).await;
    assert_eq!(done["content"][0]["text"], "deleted B", "{done}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_holds_what_was_asked_and_nothing_else_that_a_client_brought() {
    let (server, _) = server().await;
    let junk = json!({"junk": {"action": "accept", "content": "x".repeat(500_000)}});
    let state = |asked: Value| asked["requestState"].as_str().unwrap().to_owned();
    let first = state(called(&server, "delete_next", json!({}), json!({"inputResponses": junk})).await);
    let brought = json!({"requestState": first, "inputResponses": junk});
    let second = state(called(&server, "delete_next", json!({}), brought).await);
    assert!(first.len() < 1_000 && second.len() < 1_000, "{} {}", first.len(), second.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_of_a_client_that_can_ask_nobody_fails_where_it_asks() {
    let (server, _) = server().await;
    let task = task_id(&called(&server, "ask_in_task", json!({}), json!({"_meta": blind()})).await);
    let ended = server.until_task_ends(ADA, &task).await;
    assert_eq!(code(&ended["result"]), "UNSUPPORTED_SURFACE");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_can_ask_nobody_sees_a_run_that_waits_going_on_and_is_told_why() {
    let (server, _) = server().await;
    let look =
        |meta| server.result(newer(&server, ADA, 1, "tasks/get", json!({"taskId": "run", "_meta": meta})));
    let able = look(json!({})).await;
    assert_eq!(
        (&able["status"], &able["statusMessage"]),
        (&json!("input_required"), &json!("The run waits."))
    );
    assert!(able["inputRequests"]["sure"].is_object(), "{able}");
    let unable = look(blind()).await;
    assert_eq!((&unable["status"], &unable["inputRequests"]), (&json!("working"), &Value::Null), "{unable}");
    assert!(unable["statusMessage"].as_str().unwrap().contains("answer elsewhere"), "{unable}");
    assert_eq!(able.get("ttlMs"), Some(&Value::Null), "a run is kept elsewhere");
}

#[tokio::test(flavor = "multi_thread")]
async fn how_long_a_task_is_kept_is_known_once_it_has_ended() {
    let (server, _) = server().await;
    let begun = called(&server, "ask_in_task", json!({}), json!({})).await;
    let task = task_id(&begun);
    assert_eq!(begun.get("ttlMs"), Some(&Value::Null), "{begun}");
    assert_eq!(server.until_task_asks(ADA, &task).await.get("ttlMs"), Some(&Value::Null));
    let answers = json!({"sure": {"action": "decline"}});
    let update = json!({"taskId": task, "inputResponses": answers});
    server.result(newer(&server, ADA, 2, "tasks/update", update)).await;
    let ended = server.until_task_ends(ADA, &task).await;
    let at = |field: &str| ended[field].as_str().unwrap().parse::<Timestamp>().unwrap();
    let took = at("lastUpdatedAt").duration_since(at("createdAt")).as_millis();
    assert_eq!(i128::from(ended["ttlMs"].as_i64().unwrap()), took + i128::from(KEPT_MS), "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a04_a_person_who_confirms_sees_every_character_and_where_it_goes_on() {
    let (server, _) = server().await;
    let what = format!("\u{202e}\u{2066}\u{200b}\u{9b}{}", "x".repeat(10_000));
    let asked = called(&server, "erase", json!({ "what": what }), json!({})).await;
    let message = asked["inputRequests"][CONFIRM]["params"]["message"].as_str().unwrap();
    assert!(message.contains(r"\u202e\u2066\u200b\u009bxxx"), "{message}");
    assert!(
        message.chars().all(|shown| shown.is_ascii_graphic() || shown == ' ' || shown == '\n'),
        "{message}"
    );
    assert!(message.contains("more characters are not shown"), "{message}");
    assert!(message.len() < 5_000, "{}", message.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a02_a_hidden_action_is_not_found_whether_or_not_it_is_followed_as_a_task() {
    let (server, _) = server().await;
    let session = server.session(ADA, json!({})).await;
    for name in ["hidden", "hidden_task", "absent"] {
        for meta in [json!({}), blind(), json!({CAPABILITIES: {}})] {
            let told = called(&server, name, json!({}), json!({"_meta": meta})).await;
            assert_eq!(code(&told), "ACTION_NOT_FOUND", "{name}");
        }
        let asked =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call(name, json!({}))});
        let told = server.told(older(&server, ADA, Some(&session), &asked)).await;
        assert_eq!(code(result(told.last().unwrap())), "ACTION_NOT_FOUND", "{name}");
    }
}
