//! The JSON runner on byte slices: how payloads are cut out of a stream, and what each of them is answered.
//!
//! clause: A17
//! clause: A19

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::sync::Arc;

use runyard_actions::{Action, ActionError, Runtime};
use runyard_domain::{Actor, Code};
use runyard_surfaces::json_runner::{PAYLOAD_BYTES_MAX, run};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio_util::sync::CancellationToken;

/// `echo` gives its input back; `wipe` wants confirmation; `fail` fails with the code it is told.
fn runtime() -> Runtime {
    let echo = Action::define("echo", "Gives its input back.")
        .input_schema(json!({"type": "object"}))
        .handler(|input, _| async move { Ok(input) });
    let wipe = Action::define("wipe", "Wants to be confirmed.")
        .requires_confirmation(true)
        .handler(|_, _| async { Ok(json!("wiped")) });
    let fail = Action::define("fail", "Fails with the code it is told.")
        .input_schema(
            json!({"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}),
        )
        .handler(|input, _| async move {
            let code = Code::parse(input["code"].as_str().unwrap_or_default()).unwrap_or(Code::InternalError);
            Err::<Value, _>(ActionError::new(code, "As told."))
        });
    Runtime::builder().action(echo).action(wipe).action(fail).build().unwrap()
}

struct Answers {
    exit: u8,
    envelopes: Vec<Value>,
}

impl Answers {
    /// Each answer in a word: its data, or its error's code.
    fn words(&self) -> Vec<String> {
        self.envelopes
            .iter()
            .map(|envelope| match envelope["ok"] == true {
                true => envelope["data"].to_string(),
                false => envelope["error"]["code"].as_str().unwrap().to_owned(),
            })
            .collect()
    }

    fn message(&self, index: usize) -> &str {
        self.envelopes[index]["error"]["message"].as_str().unwrap()
    }
}

async fn answers(input: impl AsRef<[u8]>) -> Answers {
    let mut output = Vec::new();
    let actor = Arc::new(Actor::owner("test"));
    let exit = run(&runtime(), actor, input.as_ref(), &mut output, CancellationToken::new()).await.unwrap();
    let text = String::from_utf8(output).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    let envelopes: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for envelope in &envelopes {
        assert_eq!(envelope["meta"]["surface"], "json");
    }
    Answers { exit, envelopes }
}

#[track_caller]
fn check(input: impl AsRef<[u8]>, expected: &[&str]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(runtime.block_on(answers(input)).words(), expected);
}

const INVALID: &str = "INVALID_JSON_RUNNER_PAYLOAD";

#[test]
fn one_payload_may_stretch_over_many_lines() {
    let payload = json!({"action": "echo", "input": {"list": [1, {"deep": "}]\"\\"}], "text": "a\nb"}});
    let expected = payload["input"].to_string();
    check(format!("{payload:#}"), &[&expected]);
    check(format!("{payload:#}\n"), &[&expected]);
    check(format!("\n\n  {payload:#}\r\n\n{payload:#}"), &[&expected, &expected]);
    let without_indent = format!("{payload:#}").lines().map(str::trim_start).collect::<Vec<_>>().join("\n");
    check(without_indent, &[&expected]);
}

#[test]
fn every_line_may_be_a_payload() {
    let line = |n: u32| json!({"action": "echo", "input": {"n": n}}).to_string();
    check(format!("{}\n{}\r\n\n{}", line(1), line(2), line(3)), &[r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#]);
}

#[test]
fn several_payloads_may_share_a_line() {
    check(
        r#"{"action":"echo"}{"action":"nosuch"} {"action":"echo"} 7"#,
        &["{}", "ACTION_NOT_FOUND", "{}", INVALID],
    );
}

#[test]
fn a_garbage_line_is_answered_and_the_next_one_too() {
    check("nonsense\n{\"action\":\"echo\"}\n", &[INVALID, "{}"]);
    check(
        "{\"action\":\"echo\"} nonsense {\"action\":\"echo\"}\n{\"action\":\"echo\"}",
        &["{}", INVALID, "{}"],
    );
    check(b"\xff\xfe\x00\n{\"action\":\"echo\"}\n", &[INVALID, "{}"]);
    check(b"{\"action\":\"\xff\"}\n{\"action\":\"echo\"}\n", &[INVALID, "{}"]);
}

#[test]
fn a_truncated_line_is_answered_and_the_next_one_too() {
    for truncated in
        [r#"{"action":"echo","in"#, r#"{"action":"echo","#, r#"{"action":"echo","input":{"#, "{", "\"ech"]
    {
        check(format!("{truncated}\n{{\"action\":\"echo\"}}\n"), &[INVALID, "{}"]);
    }
    // A list goes on until its end shows that it never was one.
    check("[1,\n{\"action\":\"echo\"}\n", &[INVALID, "{}"]);
    check("[\n1,\n{\"action\":\"echo\"}\n", &[INVALID, INVALID, INVALID, "{}"]);
}

#[test]
fn what_lies_inside_a_broken_payload_is_never_taken_for_one() {
    // A payload over several lines that is broken or too large, with data in it that looks like a payload.
    let broken = "{\n  \"input\": [\n    {\"action\": \"wipe\", \"confirm\": true},\n    oops\n  ]\n}\n{\"action\":\"echo\"}\n";
    check(broken, &[INVALID, "{}"]);
    let cut_off = "{\n  \"input\": [\n    {\"action\": \"wipe\", \"confirm\": true},\n";
    check(cut_off, &[INVALID]);
    let planted = "    {\"action\": \"wipe\", \"confirm\": true},\n".repeat(PAYLOAD_BYTES_MAX / 40 + 10);
    let too_large = format!(
        "{{\n  \"action\": \"echo\",\n  \"input\": {{\"list\": [\n{planted}  ]}}\n}}\n{{\"action\":\"echo\"}}\n"
    );
    assert!(too_large.len() > PAYLOAD_BYTES_MAX);
    check(too_large, &[INVALID, "{}"]);
    let long_line = format!("{{\n  \"input\": [\n    \"{}\",\n{planted}", "x".repeat(PAYLOAD_BYTES_MAX));
    check(long_line, &[INVALID]);
}

#[tokio::test]
async fn a_line_that_is_too_long_is_answered_and_the_next_one_too() {
    let long = format!("{{\"action\":\"echo\",\"input\":{{\"x\":\"{}\"}}}}", "x".repeat(PAYLOAD_BYTES_MAX));
    let answers = answers(format!("{long}\n{{\"action\":\"echo\"}}\n")).await;
    assert_eq!(answers.words(), [INVALID, "{}"]);
    assert_eq!(answers.message(0), format!("JSON runner payload is larger than {PAYLOAD_BYTES_MAX} bytes."));
}

#[test]
fn a_value_over_very_many_lines_is_not_read_again_for_each_of_them() {
    // Read again for every line, these would take hours.
    let lines = 200_000;
    let list = format!("[\n{}1\n]\n", "1,\n".repeat(lines));
    check(list, &[INVALID]);
    let object =
        format!("{{\"action\":\"nosuch\",\"input\":{{\"list\":[\n{}1\n]}}}}\n", "1,\n".repeat(lines));
    check(object, &["ACTION_NOT_FOUND"]);
    let flat = "1 ".repeat(50_000);
    check(&flat, &vec![INVALID; 50_000]);
    check(flat.replace(' ', "\n"), &vec![INVALID; 50_000]);
}

#[tokio::test]
async fn no_payload_gives_no_answer_and_success() {
    for empty in ["", "\n", "  \n\t\r\n"] {
        let answers = answers(empty).await;
        assert_eq!((answers.exit, answers.envelopes.len()), (0, 0));
    }
}

#[tokio::test]
async fn a17_a_payload_that_is_no_object_is_refused() {
    for payload in ["[]", "[{\"action\":\"echo\"}]", "\"echo\"", "12", "null", "true"] {
        let answers = answers(payload).await;
        assert_eq!(answers.words(), [INVALID], "{payload}");
        assert_eq!(answers.message(0), "JSON runner payload must be an object.");
        assert_eq!(answers.exit, 1);
    }
}

#[tokio::test]
async fn a17_a_payload_must_name_an_action() {
    let answers =
        answers("{}\n{\"action\":7}\n{\"action\":null}\n{\"action\":{}}\n{\"Action\":\"echo\"}").await;
    assert_eq!(answers.words(), [INVALID; 5]);
    assert_eq!(answers.message(0), "JSON runner payload must name an \"action\".");
    assert_eq!(answers.message(1), "The field \"action\" of a JSON runner payload must be a string.");
    assert_eq!(answers.envelopes[0]["meta"]["action"], Value::Null);
}

#[tokio::test]
async fn a03_a_field_that_means_nothing_is_an_issue_at_its_path() {
    let answers =
        answers(r#"{"action":"echo","inputs":{},"timeoutMs":"soon","retry":3,"idempotencyKey":5}"#).await;
    assert_eq!(answers.words(), ["VALIDATION_ERROR"]);
    let mut paths: Vec<String> = answers.envelopes[0]["error"]["issues"]
        .as_array()
        .unwrap()
        .iter()
        .map(|issue| issue["path"].to_string())
        .collect();
    paths.sort();
    assert_eq!(paths, [r#"["idempotencyKey"]"#, r#"["inputs"]"#, r#"["retry"]"#, r#"["timeoutMs"]"#]);
    assert_eq!(answers.exit, 2);
}

#[tokio::test]
async fn a04_only_the_boolean_true_confirms() {
    for (confirm, expected) in
        [("true", "\"wiped\""), ("\"true\"", "CONFIRMATION_REQUIRED"), ("1", "CONFIRMATION_REQUIRED")]
    {
        assert_eq!(
            answers(format!("{{\"action\":\"wipe\",\"confirm\":{confirm}}}")).await.words(),
            [expected]
        );
    }
}

#[tokio::test]
async fn a19_the_first_failure_gives_the_exit_code() {
    let fail = |code: &str| json!({"action": "fail", "input": {"code": code}}).to_string();
    let table = [
        ("VALIDATION_ERROR", 2),
        ("AUTHENTICATION_ERROR", 3),
        ("AUTHORIZATION_ERROR", 3),
        ("ACTION_NOT_FOUND", 4),
        ("EXTERNAL_SERVICE_ERROR", 5),
        ("TIMEOUT", 124),
        ("CANCELLED", 130),
        ("CONFLICT", 1),
    ];
    for (code, exit) in table {
        let input = format!("{{\"action\":\"echo\"}}\n{}\nnonsense\n{{\"action\":\"nosuch\"}}\n", fail(code));
        let answers = answers(input).await;
        assert_eq!(answers.words(), ["{}", code, INVALID, "ACTION_NOT_FOUND"]);
        assert_eq!(answers.exit, exit, "{code}");
    }
}

#[tokio::test]
async fn a01_an_unknown_action_is_named_as_it_was_asked_for() {
    let answers = answers(r#"{"action":"No-Such Action"}"#).await;
    assert_eq!(answers.words(), ["ACTION_NOT_FOUND"]);
    assert_eq!(answers.envelopes[0]["meta"]["action"], "No-Such Action");
    assert_eq!(answers.exit, 4);
}

#[tokio::test]
async fn a21_nothing_more_is_answered_once_it_is_cancelled() {
    let mut output = Vec::new();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let input = "{\"action\":\"echo\"}\n{\"action\":\"echo\"}\n";
    let actor = Arc::new(Actor::owner("test"));
    let exit = run(&runtime(), actor, input.as_bytes(), &mut output, cancel).await.unwrap();
    let text = String::from_utf8(output).unwrap();
    assert_eq!(text.lines().count(), 1);
    assert!(text.contains("CANCELLED"));
    assert_eq!(exit, 130);
}

#[tokio::test]
async fn a_payload_is_answered_as_soon_as_it_is_whole() {
    // Whoever talks to the runner line by line waits for the answer before writing on.
    let whole = [
        "{\"action\":\"echo\"}\n",
        "{\n\"action\":\n\"echo\"\n}\n",
        "  {\"action\":\n   \"echo\"\n  }\n",
        "nonsense\n",
    ];
    let (mut to, from_test) = tokio::io::duplex(1024);
    let (output, mut answers) = tokio::io::duplex(4096);
    let runner = tokio::spawn(async move {
        let actor = Arc::new(Actor::owner("test"));
        run(&runtime(), actor, BufReader::new(from_test), output, CancellationToken::new()).await.unwrap()
    });
    let mut answers = BufReader::new(&mut answers);
    for payload in whole {
        to.write_all(payload.as_bytes()).await.unwrap();
        let mut line = String::new();
        answers.read_line(&mut line).await.unwrap();
        assert!(line.starts_with("{\"ok\":"), "{payload} gave {line}");
    }
    drop(to);
    assert_eq!(runner.await.unwrap(), 1);
}
