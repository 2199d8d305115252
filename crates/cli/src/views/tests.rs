//! How what people look at is laid out.

use serde_json::json;

use super::*;

#[test]
fn a_list_has_the_columns_that_people_need() {
    let data = json!({"runs": [{
        "id": "run_1", "state": "running", "agentId": "demo", "workspace": {"id": "wsp_1", "label": "site"},
        "lastEventAt": "2020-01-01T00:00:00.000Z", "task": "x", "metrics": {"wallMs": 1}
    }], "next": "run_1"});
    let shown = for_people("run_list", data);
    let columns: Vec<&str> = shown["rows"][0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(columns, ["id", "state", "agent", "workspace", "updated", "task"]);
    assert_eq!(shown["more"], "runyard runs list --before run_1");
    assert_eq!(shown["rows"][0]["workspace"], "site");
}

#[test]
fn an_empty_list_says_what_to_do() {
    let shown = for_people("workspace_list", json!({"workspaces": []}));
    assert_eq!(shown, "No workspaces. Allow one with: runyard workspaces add DIRECTORY");
}

#[test]
fn no_text_of_others_passes_for_a_line_of_ours() {
    let run =
        json!({"run": {"id": "run_1", "state": "running\nstate  completed", "response": "one\nstate  done"}});
    let shown = for_people("run_show", run);
    let shown = shown.as_str().unwrap();
    assert!(shown.contains("running\\nstate  completed"), "{shown}");
    assert!(shown.contains("one\n            state  done"), "{shown}");
}

#[test]
fn what_has_no_view_is_shown_as_it_is() {
    assert_eq!(for_people("version_show", json!({"version": "1"})), json!({"version": "1"}));
}

#[test]
fn an_age_is_in_the_largest_unit_that_says_something() {
    #[track_caller]
    fn check(seconds: i64, expected: &str) {
        let at = Timestamp::from_unix_ms(SystemClock.now().unix_ms() - seconds * 1000 - 500);
        assert_eq!(age(&Value::from(at.to_string())), expected);
    }
    check(90, "1 min ago");
    check(7_300, "2 h ago");
    check(3 * 86_400 + 10, "3 days ago");
    check(-3 * 86_400 - 60, "in 3 days");
}

#[test]
fn c16_a_run_shows_what_failed_in_its_backend_and_the_tokens_of_its_budget() {
    let run = json!({"run": {
        "id": "run_1", "code": "runtime_unavailable", "failureKind": "secret-unavailable", "message": "No key.",
        "metrics": {"inputTokens": 9599, "outputTokens": 8}, "budget": {"tokens": 10_000}
    }});
    let shown = for_people("run_show", run);
    let shown = shown.as_str().unwrap();
    assert!(shown.contains("[runtime_unavailable, secret-unavailable] No key."), "{shown}");
    assert!(shown.contains("9599 in, 8 out of a budget of 10000"), "{shown}");
    let unknown = for_people("run_show", json!({"run": {"id": "run_1"}}));
    assert!(!unknown.as_str().unwrap().contains("tokens"), "{unknown}");
}
