//! What can go wrong with our own agent's model, from the provider's answer to the run that people see.
//!
//! Of the errors of our loop those of inference can end a run here, and a call that is too long to be recorded: a tool's error
//! ends its call; the loop's own plugins neither share keys nor schedule anything; where the hub or its store is away the session
//! stops, and is opened again; a wrong definition of the agent is refused when the configuration is read; and a cancelled inference
//! is a cancelled run.
//!
//! clause: C16
//! clause: D05
//! clause: J02

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use runyard_domain::{Class, Code};
use serde_json::{Value, json};

use support::api::Api;
use support::eventually;
use support::native::{KEY, Native, messages};

/// The code, the failure kind and the cause that a run of this scenario ends with, as its own view and its last event say.
#[track_caller]
fn failed(native: &Native, api: &Api, scenario: &str) -> [String; 3] {
    told(native, api, scenario).0
}

/// The same, and its message.
#[track_caller]
fn told(native: &Native, api: &Api, scenario: &str) -> ([String; 3], String) {
    let run = native.start(api, &format!("[[scenario:{scenario}]]"), &json!({}));
    let found = api.until(&run, "failed");
    let events = api.events(&run);
    let told = &events.last().unwrap()["payload"];
    let words = |of: &Value| {
        ["code", "failureKind", "cause"].map(|name| of[name].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(words(&found), words(told), "{scenario}: {found} {told}");
    assert!(found["recovery"].as_str().is_some_and(|recovery| !recovery.is_empty()), "{found}");
    let shown = native.yard.home.run(["runs", "show", &run, "--output", "text"]).stdout;
    assert!(shown.contains(&words(&found).join(", ")), "{shown}");
    assert_eq!(found["message"], told["message"], "{scenario}");
    (words(&found), found["message"].as_str().unwrap_or_default().to_owned())
}

/// The class of the loop's own error, which is known from its code to the very end.
#[track_caller]
fn class(cause: &str) -> Class {
    Code::parse(cause).unwrap_or_else(|| panic!("{cause} is in no table")).row().class
}

#[test]
fn c16_d05_every_error_of_inference_ends_a_run_with_its_code_its_kind_and_its_cause() {
    let (unavailable, provider) = ("runtime_unavailable", "provider_unavailable");
    #[rustfmt::skip]
    let permanent = [
        ("http-400",            unavailable, "backend-failed",         "inference.invalid_request"),
        ("http-401",            unavailable, "provider-auth-failed",   "inference.unauthorized"),
        ("http-403",            unavailable, "provider-auth-failed",   "inference.unauthorized"),
        ("http-404",            unavailable, "backend-failed",         "inference.model_not_found"),
        ("http-413",            unavailable, "backend-failed",         "inference.context_overflow"),
        ("http-context-length", unavailable, "backend-failed",         "inference.context_overflow"),
        ("http-content-filter", unavailable, "backend-failed",         "inference.content_filtered"),
        ("filtered",            unavailable, "backend-failed",         "inference.content_filtered"),
    ];
    #[rustfmt::skip]
    let transient = [
        ("http-500",            provider, "provider-unavailable",   "inference.provider"),
        ("http-429-ms",         "provider_rate_limited", "provider-rate-limited",  "inference.rate_limited"),
        ("http-529",            provider, "provider-unavailable",   "inference.overloaded"),
        ("http-504",            provider, "provider-unavailable",   "inference.timeout"),
        ("cut",                 provider, "provider-unavailable",   "inference.stream_interrupted"),
    ];
    for wire in ["responses", "chat", "messages"] {
        // Each is asked once, so that what the provider says is what the run ends with.
        let native = Native::new(&format!("provider.wire = {wire:?}\nlimits.retries_max = 0"));
        let (_hub, api) = native.yard.up();
        for (rows, kept) in [(&permanent[..], Class::Permanent), (&transient, Class::Transient)] {
            for (scenario, code, kind, cause) in rows {
                let words = failed(&native, &api, scenario);
                assert_eq!(words, [*code, kind, cause], "{wire}: {scenario}");
                assert_eq!(class(&words[2]), kept, "{wire}: {scenario}");
            }
        }
        // Five in a row, and the model rests; errors that would come again do not count.
        let asked = native.provider.requests().len();
        let rests = failed(&native, &api, "text");
        assert_eq!(rests, [provider, "provider-unavailable", "inference.all_models_unavailable"], "{wire}");
        assert_eq!(class(&rests[2]), Class::FailFast, "{wire}");
        assert_eq!(native.provider.requests().len(), asked, "{wire}: a model that rests is not asked");
    }
}

// clause: D09
#[test]
fn d09_c16_every_interruption_of_an_answer_ends_a_run_and_is_named() {
    let interruptions = [
        ("cut", "the connection ended"),
        ("goaway", "the provider is going down"),
        ("failed-502", "the provider failed with 502"),
        ("stall", "nothing came for too long"),
    ];
    let (others, stall) = interruptions.split_at(3);
    for wire in ["responses", "chat", "messages"] {
        // The provider that stalls does so for ever, and the gateway waits for longer than the agent.
        for (idle_ms, scenarios) in [(60_000, others), (200, stall)] {
            let limits = format!("limits = {{ retries_max = 0, idle_ms = {idle_ms} }}");
            let native = Native::new(&format!("provider.wire = {wire:?}\n{limits}"));
            let (_hub, api) = native.yard.up();
            for (scenario, said) in scenarios {
                let (words, message) = told(&native, &api, scenario);
                let expected =
                    ["provider_unavailable", "provider-unavailable", "inference.stream_interrupted"];
                assert_eq!(words, expected, "{wire}: {scenario}");
                assert_eq!(class(&words[2]), Class::Transient, "{wire}: {scenario}");
                let named = interruptions.iter().filter(|(_, other)| message.contains(other));
                assert_eq!(named.collect::<Vec<_>>(), [&(*scenario, *said)], "{wire}: {message}");
            }
        }
    }
}

#[test]
fn c16_d05_a_call_that_is_too_long_to_be_recorded_ends_the_run_and_says_so() {
    let scenarios = tempfile::tempdir().unwrap();
    let content = "A line of a file that is too long. ".repeat(25_000);
    let call = format!(
        "answer.call = [{{ tool = \"write\", arguments = {{ path = \"a.txt\", content = {content:?} }} }}]"
    );
    std::fs::write(
        scenarios.path().join("write.toml"),
        format!("[[step]]\n{call}\n[[step]]\nanswer.say = [\"Done.\"]\n"),
    )
    .unwrap();
    let native = Native::playing("limits.retries_max = 0", scenarios.path());
    let (_hub, api) = native.yard.up();
    let words = failed(&native, &api, "write");
    assert_eq!(words, ["runtime_unavailable", "backend-failed", "storage.validation"]);
    let run = api.get("/runs")["runs"][0]["id"].as_str().unwrap().to_owned();
    let found = api.run(&run);
    let message = found["message"].as_str().unwrap_or_default();
    assert!(message.contains("786432 can be recorded"), "{found}");
    assert_eq!(native.file(&run, "a.txt"), None, "what is not recorded is not made");
}

#[test]
fn j02_an_answer_that_is_too_long_for_one_record_is_recorded_whole() {
    let native = Native::new("");
    let (_hub, api) = native.yard.up();
    let run = native.start(&api, "[[scenario:huge]]", &json!({}));
    api.until(&run, "completed");
    let messages = messages(&api.events(&run), 0);
    let pieces: Vec<&str> =
        messages[1..].iter().map(|message| message["content"][0]["text"].as_str().unwrap()).collect();
    assert!(pieces.len() > 1 && messages[1..].iter().all(|message| message["role"] == "assistant"));
    let said = pieces.concat();
    let times = said.matches("Of all that can be said about a harbour in the rain").count();
    assert_eq!((times, said.len()), (2_564, 2_564 * 351), "nothing is lost and nothing doubled");
}

#[test]
fn c16_d05_a_cancelled_inference_is_a_cancelled_run() {
    let native = Native::new("");
    let (_hub, api) = native.yard.up();
    let run = native.start(&api, "[[scenario:no-headers]]", &json!({}));
    eventually("the model is asked", || (!native.provider.requests().is_empty()).then_some(()));
    api.post(&format!("/runs/{run}/cancel"), &json!({}));
    let ended = api.until(&run, "cancelled");
    assert_eq!((&ended["cause"], &ended["failureKind"]), (&Value::Null, &Value::Null), "{ended}");
}

#[test]
fn c16_a_run_of_our_own_agent_ends_at_its_budget_of_tokens_on_every_wire() {
    for wire in ["responses", "chat", "messages"] {
        let native = Native::new(&format!("provider.wire = {wire:?}"));
        let (_hub, api) = native.yard.up();
        let policy = json!({"executionPolicy": {"changes": "keep", "budget": {"tokens": 1}}});
        let run = native.start(&api, r#"[[scenario:tool list {}]]"#, &policy);
        let ended = api.until(&run, "failed");
        assert_eq!(ended["code"], "budget_exceeded", "{wire}: {ended}");
        assert_eq!(native.provider.requests().len(), 1, "{wire}: nothing more is asked");
    }
}

#[test]
fn d07_d08_what_passes_is_retried_or_left_to_another_model_and_the_run_completes() {
    let native = Native::new("fallback_models = [\"other\"]\nlimits.retries_max = 1");
    let (_hub, api) = native.yard.up();
    let run = native.start(&api, "[[scenario:flaky]]", &json!({}));
    let done = api.until(&run, "completed");
    assert_eq!(done["response"], "It works now.", "{done}");
    let events = api.events(&run);
    let retried = events.iter().filter(|event| event["payload"]["retrying"] == true).count();
    assert_eq!(retried, 2, "each is told");
    let model = |request: &runyard_demo_provider::Recorded| {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        body["model"].as_str().unwrap().to_owned()
    };
    let asked: Vec<String> = native.provider.requests().iter().map(model).collect();
    assert_eq!(asked, ["demo", "demo", "other"]);
}

#[test]
fn b12_each_wire_is_spoken_through_the_gateway_and_the_key_is_nowhere_else() {
    for (wire, path, header) in [
        ("responses", "/v1/responses", "authorization"),
        ("chat", "/v1/chat/completions", "authorization"),
        ("messages", "/v1/messages", "x-api-key"),
    ] {
        let native = Native::new(&format!("provider.wire = {wire:?}\neffort = \"low\""));
        let (_hub, api) = native.yard.up();
        let run = native.start(&api, r#"[[scenario:tool shell {"command": "env > made.txt"}]]"#, &json!({}));
        let approval = api.asked(&run, &[]);
        api.approve(&approval);
        let done = api.until(&run, "completed");
        assert_eq!(done["response"], "The tool was called.", "{wire}: {done}");
        let environment = native.file(&run, "made.txt").expect("what the command found");
        assert!(
            environment.contains("RUNYARD_RUN_ID=") && !environment.contains(KEY),
            "{wire}: {environment}"
        );
        assert!(done["metrics"]["inputTokens"].as_u64().is_some_and(|tokens| tokens > 0), "{wire}: {done}");
        let asked = native.provider.requests();
        assert_eq!(asked.len(), 2, "{wire}");
        assert!(asked.iter().all(|request| request.path == path), "{wire}");
        let key = asked[0].headers.iter().find(|(name, _)| name == header).map(|(_, value)| value.as_str());
        assert!(key.is_some_and(|key| key.ends_with(KEY)), "{wire}: the provider gets the key");
        assert!(!serde_json::to_string(&api.events(&run)).unwrap().contains(KEY), "{wire}");
    }
}

#[test]
fn c17_an_agent_whose_definition_is_wrong_is_refused_before_anything_runs() {
    let native = Native::new("");
    let file = native.yard.home.path("runyard.toml");
    let right = std::fs::read_to_string(&file).unwrap();
    for (wrong, said) in [
        ("tools = [\"fly\"]", "agent.mine.tools"),
        ("limits.rounds_max = \"many\"", "agent.mine.limits.rounds_max"),
        ("provider.wire = \"smoke\"", "agent.mine.provider.wire"),
        ("provider.bas_url = \"https://x\"", "did you mean \\\"base_url\\\"?"),
    ] {
        std::fs::write(&file, format!("{right}{wrong}\n")).unwrap();
        let refused = native.yard.home.run(["run", "x", "--agent", "mine", "--output", "json"]);
        assert_ne!(refused.exit, 0);
        let told = format!("{}{}", refused.stdout, refused.stderr);
        assert!(told.contains(said), "{wrong}: {told}");
    }
}
