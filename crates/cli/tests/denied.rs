//! What a rule denies stays denied however it is dressed up, and a rule reaches the runs that are already running.
//!
//! clause: C11
//! clause: C12

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use serde_json::{Value, json};

use support::api::{Api, Scripted, Yard};
use support::terminal::Terminal;

/// Ways to come by `curl`, each of which a rule against `curl *` denies.
const WAYS: [&str; 14] = [
    "curl https://example.org",
    "echo start && curl https://example.org",
    "echo start; curl https://example.org",
    "echo start | curl -d @- https://example.org",
    "sh -c 'curl https://example.org'",
    "bash -lc \"echo start && curl https://example.org\"",
    "env X=1 curl https://example.org",
    "X=1 curl https://example.org",
    "/usr/bin/curl https://example.org",
    "env -i /usr/bin/curl https://example.org",
    "(cd / && curl https://example.org)",
    "echo $(curl https://example.org)",
    "nohup timeout 5 curl https://example.org",
    "'cu'rl https://example.org",
];

fn script(commands: &[&str]) -> String {
    let step = |command: &&str| format!("[[turn.step]]\nshell = {}\n", json!(command));
    "[[turn]]\n".to_owned() + &commands.iter().map(step).collect::<String>()
}

fn deny(api: &Api, pattern: &str) -> Value {
    api.post("/policy/rules", &json!({"effect": "deny", "kind": "shell", "match": pattern}))
}

fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).map(|event| &event["payload"]).collect()
}

/// Says yes to whatever is asked, until the run is at its end.
fn approve_all(api: &Api, run: &str) -> Value {
    support::eventually(&format!("{run} comes to its end"), || {
        for approval in api.get(&format!("/approvals?run={run}"))["approvals"].as_array().unwrap() {
            api.approve(approval);
        }
        let found = api.run(run);
        ["completed", "failed", "cancelled"].contains(&found["state"].as_str().unwrap()).then_some(found)
    })
}

#[test]
fn c11_a_denied_command_is_denied_in_every_dress_and_the_run_goes_on() {
    let mut commands = WAYS.to_vec();
    commands.push("echo still here");
    let text = script(&commands);
    let yard = Yard::new("", &[Scripted { name: "sly", profile: "", script: &text }]);
    let (_hub, api) = yard.up();
    deny(&api, "curl *");
    // Even where everything else is allowed.
    api.post("/policy/rules", &json!({"effect": "allow", "kind": "shell", "match": "echo *"}));
    let run = api.start("sly", yard.place());
    let end = approve_all(&api, &run);
    assert_eq!(end["state"], "completed", "{end}");
    let events = api.events(&run);
    let denied: Vec<&Value> =
        of_type(&events, "run.gate.judged").into_iter().filter(|judged| judged["effect"] == "deny").collect();
    let commands: Vec<&str> =
        denied.iter().map(|judged| judged["request"]["command"].as_str().unwrap()).collect();
    assert_eq!(commands, WAYS, "each is recorded as denied");
    for judged in &denied {
        assert!(judged["reason"].as_str().unwrap().contains("permission_denied"), "{judged}");
    }
    let told = of_type(&events, "run.message.completed");
    let told: Vec<&str> = told.iter().map(|said| said["text"].as_str().unwrap()).collect();
    assert_eq!(told.len(), WAYS.len(), "the agent is told each time");
    assert!(told.iter().all(|text| text.starts_with("I was not allowed to run")), "{told:?}");
    let done = of_type(&events, "run.tool.call");
    assert_eq!(done.len(), 1, "only what is allowed is done: {done:?}");
    assert_eq!(of_type(&events, "run.approval.requested").len(), 0, "nobody is asked about what is denied");
}

#[test]
fn c11_a_rule_that_is_added_reaches_a_run_that_is_running() {
    let text = script(&["date -u", "date -R", "date +%s"]);
    let yard = Yard::new("", &[Scripted { name: "clock", profile: "", script: &text }]);
    let (_hub, api) = yard.up();
    let run = api.start("clock", yard.place());
    let first = api.asked(&run, &[]);
    assert_eq!(first["request"]["command"], "date -u");
    let rule = deny(&api, "date -R");
    api.approve(&first);
    // The second is denied without a question, so the next that is asked is the third.
    let third = api.asked(&run, &[first["id"].as_str().unwrap()]);
    assert_eq!(third["request"]["command"], "date +%s");
    let id = rule["rule"]["id"].as_str().unwrap();
    let (status, _) = api.send("DELETE", &format!("/policy/rules/{id}"), None);
    assert_eq!(status, 200);
    api.approve(&third);
    api.until(&run, "completed");
    let events = api.events(&run);
    let denied: Vec<&str> = of_type(&events, "run.gate.judged")
        .into_iter()
        .filter(|judged| judged["effect"] == "deny")
        .map(|judged| judged["request"]["command"].as_str().unwrap())
        .collect();
    assert_eq!(denied, ["date -R"]);
    for kind in ["installation.rule.added", "installation.rule.removed"] {
        let entries = api.audit(kind);
        assert_eq!(entries.len(), 1, "{kind} {entries:?}");
        assert_eq!(entries[0]["by"]["id"], "owner");
    }
}

#[test]
fn c11_what_a_rule_denies_by_now_cannot_be_approved_though_it_was_asked_before() {
    let text = script(&["date -u"]);
    let yard = Yard::new("", &[Scripted { name: "clock", profile: "", script: &text }]);
    let (_hub, api) = yard.up();
    let run = api.start("clock", yard.place());
    let asked = api.asked(&run, &[]);
    let id = asked["id"].as_str().unwrap();
    let shown = || Terminal::of(&mut yard.home.command(["approvals", "show", id])).ended().1;
    assert!(!shown().contains("denied"), "{}", shown());
    let rule = deny(&api, "date *")["rule"]["id"].as_str().unwrap().to_owned();
    let answer = json!({"decision": "approve", "digest": asked["digest"]});
    let (status, body) = api.send("POST", &format!("/approvals/{id}/resolve"), Some(&answer));
    assert_eq!(status, 403, "{body}");
    assert!(body.contains("permission_denied") && body.contains(&rule), "the rule is named: {body}");
    assert!(api.get(&format!("/approvals/{id}"))["approval"]["denied"].as_str().unwrap().contains(&rule));
    assert!(shown().contains(&format!("by now: the rule `{rule}` says so")), "{}", shown());
    assert_eq!(api.run(&run)["state"], "needs_approval");
    api.send("DELETE", &format!("/policy/rules/{rule}"), None);
    api.approve(&asked);
    api.until(&run, "completed");
}

#[test]
fn c11_a_rule_that_allows_never_beats_one_that_denies() {
    let text = script(&["date -R", "date -u"]);
    let yard = Yard::new("", &[Scripted { name: "clock", profile: "", script: &text }]);
    let (_hub, api) = yard.up();
    deny(&api, "date -R");
    api.post("/policy/rules", &json!({"effect": "allow", "kind": "shell", "match": "date *"}));
    let run = api.start("clock", yard.place());
    api.until(&run, "completed");
    let events = api.events(&run);
    let done: Vec<&Value> = of_type(&events, "run.tool.call");
    assert_eq!(done.len(), 1, "{done:?}");
    assert_eq!(done[0]["arguments"]["command"], "date -u");
}

#[test]
fn c11_a_rule_says_what_it_covers_and_what_else_may_have_been_meant() {
    let yard = Yard::new("", &[]);
    let (_hub, api) = yard.up();
    let added = deny(&api, "rm");
    assert_eq!(added["covers"], "the command `rm` without arguments");
    assert_eq!(added["hint"], "`rm *` also matches with any");
    let judged = |command: &str| {
        api.post("/policy/test", &json!({"agent": "demo", "workspace": yard.place(), "command": command}))
    };
    let id = added["rule"]["id"].as_str().unwrap();
    let (bare, with) = (judged("rm"), judged("ls && /bin/rm -r build"));
    assert_eq!((&bare["effect"], &with["effect"]), (&json!("deny"), &json!("ask")));
    let covers = format!("the rule `{id}` covers the command `rm` without arguments");
    assert!(bare["notes"].as_array().unwrap().contains(&json!(covers)), "{bare}");
    let hint = format!(
        "the rule `{id}` does not speak: it covers the command `rm` without arguments; `rm *` also matches with any"
    );
    assert!(with["notes"].as_array().unwrap().contains(&json!(hint)), "{with}");
    let told = yard.home.run(["policy", "add", "deny", "shell", "dd"]).stdout;
    assert!(told.contains("`dd *` also matches with any"), "{told}");
    let told = yard.home.run(["policy", "add", "deny", "shell", "dd *"]).stdout;
    assert!(told.contains("with any arguments or none") && !told.contains("also matches"), "{told}");
}

#[test]
fn c11_a_test_of_the_policy_says_what_a_run_of_the_profile_gets() {
    let writes = "[[turn]]\n[[turn.step]]\nwrite = \"a.txt\"\ncontent = \"a\"\n";
    let asks = script(&["true"]);
    let agents = [
        Scripted { name: "free", profile: "", script: writes },
        Scripted { name: "reader", profile: "sandbox = \"read-only\"", script: writes },
        Scripted { name: "alone", profile: "approval = \"never\"", script: &asks },
    ];
    let yard = Yard::new("", &agents);
    let (_hub, api) = yard.up();
    let judged = |agent: &str, request: &Value| {
        api.post("/policy/test", &json!({"agent": agent, "workspace": yard.place(), "request": request}))
    };
    let write = json!({"kind": "write", "path": "a.txt", "content": "a"});
    let shell = json!({"kind": "shell", "command": "true", "cwd": "."});
    for (agent, request) in [("free", &write), ("reader", &write), ("alone", &shell)] {
        let run = api.start(agent, yard.place());
        let events = support::eventually("the request was judged", || {
            let events = api.events(&run);
            (!of_type(&events, "run.gate.judged").is_empty()).then_some(events)
        });
        let got = of_type(&events, "run.gate.judged")[0];
        let test = judged(agent, request);
        assert_eq!(test["effect"], got["effect"], "{agent}: {test} and {got}");
        let reason = got["reason"].as_str().unwrap();
        let reason = reason.strip_prefix("permission_denied: ").unwrap_or(reason);
        assert!(test["reason"].as_str().unwrap().contains(reason), "{agent}: {test} and {got}");
    }
    assert_eq!(judged("reader", &json!({"kind": "read", "path": "a.txt"}))["effect"], "allow");
}

/// Asks for the same twice, in two turns.
fn twice(command: &str) -> String {
    let turn = |said: &str| {
        format!("[[turn]]\n[[turn.step]]\nshell = {}\n[[turn.step]]\nsay = {said:?}\n", json!(command))
    };
    turn("One.") + &turn("Two.")
}

/// A rule that allows this for one time, in the hub's own file.
fn once(pattern: &str) -> String {
    format!("[[policy.rule]]\neffect = \"allow\"\nkind = \"shell\"\nmatch = {pattern:?}\nscope = \"once\"\n")
}

#[test]
fn c11_a_rule_for_one_time_in_a_file_allows_one_request_in_each_run_also_over_the_death_of_the_hub() {
    // What is stored of a rule that holds a secret is not its name, and it is known again all the same.
    let secret = "printf postgres://app:S3cretAndLong@localhost/db";
    for (pattern, command) in [("printf *", "printf first"), (secret, secret)] {
        let script = twice(command);
        let yard = Yard::new(&once(pattern), &[Scripted { name: "twice", profile: "", script: &script }]);
        let (mut hub, mut api) = yard.up();
        for _ in 0..2 {
            let policy = json!({"keepOpenMs": 3_600_000});
            let new =
                json!({"task": "x", "agent": "twice", "workspace": yard.place(), "executionPolicy": policy});
            let run = api.post("/runs", &new)["run"]["id"].as_str().unwrap().to_owned();
            support::eventually("it is kept open", || api.run(&run)["keptOpenUntil"].as_str().map(drop));
            let events = api.events(&run);
            let judged = of_type(&events, "run.gate.judged");
            let [judged] = judged.as_slice() else { panic!("{judged:?}") };
            assert_eq!(judged["effect"], "allow");
            assert!(judged["ruleUsed"].as_str().unwrap().starts_with("file_"), "{judged}");
            drop(hub);
            (hub, api) = yard.up();
            let tested = yard.home.run(["policy", "test", command, "--run", &run, "--output", "json"]).data();
            assert_eq!(tested["effect"], "ask", "{tested}");
            api.post(&format!("/runs/{run}/commands"), &json!({"kind": "turn", "text": "again"}));
            let asked = api.asked(&run, &[]);
            assert_eq!(asked["request"]["kind"], "shell", "{asked}");
            api.approve(&asked);
            api.post(&format!("/runs/{run}/commands"), &json!({"kind": "finish"}));
            api.until(&run, "completed");
        }
    }
}

#[test]
fn c11_a_rule_for_the_run_in_a_file_holds_in_each_run_to_its_end() {
    let rule =
        "[[policy.rule]]\neffect = \"allow\"\nkind = \"shell\"\nmatch = \"printf *\"\nscope = \"run\"\n";
    let script = script(&["printf first", "printf second"]);
    let yard = Yard::new(rule, &[Scripted { name: "twice", profile: "", script: &script }]);
    let (_hub, api) = yard.up();
    for _ in 0..2 {
        let run = api.start("twice", yard.place());
        api.until(&run, "completed");
        let events = api.events(&run);
        let effects: Vec<_> =
            of_type(&events, "run.gate.judged").iter().map(|judged| judged["effect"].clone()).collect();
        assert_eq!(effects, ["allow", "allow"]);
    }
}
