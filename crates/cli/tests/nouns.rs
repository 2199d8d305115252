//! The commands that are a noun and a verb, as somebody types them, against a hub that runs.
//!
//! clause: A20
//! clause: C22

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use serde_json::Value;

use support::api::{Api, Scripted, Yard};
use support::eventually;

/// It hears one word, then asks for a command.
const LISTENER: &str = r#"
[[turn]]
[[turn.step]]
wait_for_command = true
[[turn.step]]
shell = "true"
"#;

fn yard() -> Yard {
    Yard::new("", &[Scripted { name: "listener", profile: "", script: LISTENER }])
}

/// The data of a command that succeeds.
#[track_caller]
fn said(yard: &Yard, words: &str) -> Value {
    yard.home.run(words.split(' ').chain(["--output", "json"])).data()
}

fn texts<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|entry| entry[field].as_str().unwrap()).collect()
}

#[test]
fn a_token_is_made_listed_used_and_revoked() {
    let yard = yard();
    let (_hub, api) = yard.up();
    let made = said(&yard, "tokens create ada viewer");
    let ada = api.with_token(made["text"].as_str().unwrap());
    assert_eq!(ada.send("GET", "/runs", None).0, 200);
    let listed = said(&yard, "tokens list");
    assert_eq!(texts(&listed["tokens"], "name"), ["ada"]);
    assert!(!listed.to_string().contains(made["text"].as_str().unwrap()), "its text is shown once");
    said(&yard, "tokens revoke ada");
    assert_eq!(ada.send("GET", "/runs", None).0, 401);
    assert_eq!(said(&yard, "tokens list")["tokens"], Value::Array(Vec::new()));
    let again = yard.home.run(["tokens", "revoke", "ada", "--output", "json"]).failure();
    assert_ne!(again.0, 0, "{again:?}");
    let help = yard.home.run(["tokens", "create", "--help"]).stdout;
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("One of: viewer, operator, approver, admin."), "{help}");
    let help = yard.home.run(["policy", "add", "--help"]).stdout;
    assert!(help.contains("--dry-run  ") && help.contains("One of: allow, ask, deny."), "{help}");
}

#[test]
fn a_rule_is_added_shown_and_removed() {
    let yard = yard();
    let (_hub, _api) = yard.up();
    let id = said(&yard, "policy add deny shell frobnicate")["rule"]["id"].as_str().unwrap().to_owned();
    let judged = |effect: &str| {
        let words = ["policy", "test", "frobnicate", "--workspace", yard.place(), "--output", "json"];
        let judged = yard.home.run(words).data();
        assert_eq!(judged["effect"], effect, "{judged}");
    };
    judged("deny");
    assert!(said(&yard, "policy show").to_string().contains(&id));
    said(&yard, &format!("policy rm {id}"));
    judged("ask");
    assert!(!said(&yard, "policy show").to_string().contains(&id));
    assert_ne!(yard.home.run(["policy", "rm", &id, "--output", "json"]).failure().0, 0);
}

#[test]
fn a_switch_before_the_words_of_a_rule_is_not_given_one_of_them() {
    let yard = yard();
    let (_hub, _api) = yard.up();
    for words in [
        "policy add --dry-run deny shell rm",
        "policy add --dry-run true deny shell rm",
        "policy add deny --dryRun shell rm",
    ] {
        let looked = said(&yard, words);
        assert_eq!((&looked["dryRun"], &looked["rule"]["match"]), (&true.into(), &"rm".into()), "{words}");
    }
    assert_eq!(said(&yard, "policy show")["policy"]["stored"], Value::Array(Vec::new()));
    said(&yard, "policy add --dry-run false deny shell rm");
    assert_eq!(said(&yard, "policy show")["policy"]["stored"].as_array().unwrap().len(), 1);
}

#[test]
fn a_workspace_is_added_listed_and_taken_off_the_list() {
    let yard = yard();
    let (_hub, api) = yard.up();
    let place = yard.home.beside("site");
    std::fs::create_dir(&place).unwrap();
    let id = said(&yard, &format!("workspaces add {}", place.display()))["workspace"]["id"].clone();
    assert!(said(&yard, "workspaces list").to_string().contains(id.as_str().unwrap()));
    said(&yard, &format!("workspaces rm {}", id.as_str().unwrap()));
    assert!(!said(&yard, "workspaces list").to_string().contains(id.as_str().unwrap()));
    said(&yard, &format!("workspaces add {} --label there", place.display()));
    said(&yard, "workspaces rm there");
    let why = yard.home.run(["workspaces", "add", "./not-there", "--output", "json"]).stdout;
    assert!(why.contains("/not-there as a workspace: it does not exist"), "{why}");
    let why = yard.home.run(["runs", "show", "run_01a1", "--output", "json"]).stdout;
    assert!(why.contains("a whole id: \\\"run_\\\" and 32 hexadecimal digits"), "{why}");
    let new = serde_json::json!({"task": "x", "agent": "listener", "workspace": place});
    let (_, refused) = api.send("POST", "/runs", Some(&new));
    assert!(refused.contains("workspace_outside_allowlist"), "{refused}");
}

/// A run whose turn waits for a word.
fn listening(api: &Api, yard: &Yard) -> String {
    let run = api.start("listener", yard.place());
    api.until(&run, "running");
    run
}

/// Says it until the run listens: a word that comes before it does is refused or only heard.
#[track_caller]
fn insisted(yard: &Yard, words: &[&str], done: impl Fn() -> bool) {
    eventually(&format!("{words:?} is heard"), || {
        yard.home.run(words.iter().chain(&["--output", "json"]));
        done().then_some(())
    });
}

#[test]
fn c22_a_run_is_steered_interrupted_and_cancelled_from_the_command_line() {
    let yard = yard();
    let (_hub, api) = yard.up();
    let state = |run: &str| api.run(run)["state"].as_str().unwrap().to_owned();

    let steered = listening(&api, &yard);
    insisted(&yard, &["runs", "steer", &steered, "go on"], || state(&steered) == "needs_approval");
    let cancelled = said(&yard, &format!("runs cancel {steered} --reason enough"));
    assert_eq!(cancelled["run"]["state"], "cancelled");
    let ended = api.run(&steered);
    assert!(ended.to_string().contains("enough"), "{ended}");
    let again = yard.home.run(["runs", "cancel", &steered, "--output", "json"]).failure();
    assert_eq!((again.0, again.1.as_str()), (1, "CONFLICT"));

    let interrupted = listening(&api, &yard);
    insisted(&yard, &["runs", "interrupt", &interrupted], || state(&interrupted) != "running");
    let kinds = api.get(&format!("/runs/{interrupted}/events"));
    assert!(kinds.to_string().contains("\"interrupt\""), "{kinds}");
}
