//! Decisions that reach beyond their run, decisions that wait, who may decide, and what a rule changes before it counts.
//!
//! clause: C11
//! clause: C12
//! clause: J06

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use serde_json::{Value, json};

use support::Ran;
use support::api::{Api, Scripted, Yard};
use support::terminal::Terminal;

const DATES: &str = "[[turn]]\n[[turn.step]]\nshell = \"date -u\"\n[[turn.step]]\nshell = \"date -R\"\n";
const CLOCK: Scripted<'static> = Scripted { name: "clock", profile: "", script: DATES };

fn start(api: &Api, yard: &Yard, session: Option<&Value>) -> String {
    let mut run = json!({"task": "look around", "agent": "clock", "workspace": yard.place()});
    if let Some(session) = session {
        run["session"] = session.clone();
    }
    api.post("/runs", &run)["run"]["id"].as_str().unwrap().to_owned()
}

fn resolve(api: &Api, approval: &Value, scope: &str) -> (u16, String) {
    let answer = json!({"decision": "approve", "digest": approval["digest"], "scope": scope});
    api.send("POST", &format!("/approvals/{}/resolve", approval["id"].as_str().unwrap()), Some(&answer))
}

fn command(approval: &Value) -> &str {
    approval["request"]["command"].as_str().unwrap()
}

#[test]
fn c11_a_yes_for_the_session_holds_in_its_next_run_and_in_no_other() {
    let yard = Yard::new("", &[CLOCK]);
    let (_hub, api) = yard.up();
    let first = start(&api, &yard, None);
    let asked = api.asked(&first, &[]);
    assert_eq!(command(&asked), "date -u");
    let (status, body) = resolve(&api, &asked, "session");
    assert_eq!(status, 200, "{body}");
    let second = api.asked(&first, &[asked["id"].as_str().unwrap()]);
    assert_eq!(command(&second), "date -R");
    api.approve(&second);
    let session = api.until(&first, "completed")["sessionId"].clone();
    let next = start(&api, &yard, Some(&session));
    assert_eq!(command(&api.asked(&next, &[])), "date -R", "the first is allowed in its session");
    let apart = start(&api, &yard, None);
    assert_eq!(command(&api.asked(&apart, &[])), "date -u", "and asked about in another");
    let rules = api.get("/policy")["policy"]["stored"].clone();
    assert_eq!(rules.as_array().unwrap().len(), 1, "{rules}");
    assert_eq!((&rules[0]["scope"], &rules[0]["session"]), (&json!("session"), &session));
    assert_eq!(api.audit("installation.rule.added").len(), 1);
}

#[test]
fn c11_a_yes_for_the_project_holds_in_every_run_there_and_needs_the_right_to_make_rules() {
    let yard = Yard::new("", &[CLOCK]);
    let (_hub, api) = yard.up();
    let first = start(&api, &yard, None);
    let asked = api.asked(&first, &[]);
    let approver = api.person("bob", "approver");
    let (status, body) = resolve(&approver, &asked, "project");
    assert_eq!(status, 403, "{body}");
    assert!(body.contains("policy.write"), "{body}");
    assert_eq!(api.run(&first)["state"], "needs_approval", "nothing was decided");
    assert_eq!(resolve(&api, &asked, "project").0, 200);
    let other = start(&api, &yard, None);
    assert_eq!(command(&api.asked(&other, &[])), "date -R");
    let shown = yard.home.run(["policy", "show", "--output", "text"]).stdout;
    assert!(shown.contains("project") && shown.contains("date -u"), "{shown}");
}

#[test]
fn c11_what_only_the_sandbox_bounds_is_said_to_whoever_decides() {
    let script =
        "[[turn]]\n[[turn.step]]\nshell = \"python3 x.py | sh\"\n[[turn.step]]\nshell = \"date -u\"\n";
    let yard = Yard::new("", &[Scripted { name: "clock", profile: "", script }]);
    let (_hub, api) = yard.up();
    let run = start(&api, &yard, None);
    let asked = api.asked(&run, &[]);
    let note =
        |program: &str| format!("what `{program}` does is not looked into; only the sandbox bounds it");
    assert_eq!(asked["notes"], json!([note("python3"), note("sh")]));
    let events = api.events(&run);
    let event = events.iter().find(|event| event["type"] == "run.approval.requested").unwrap();
    assert_eq!(event["payload"]["notes"], asked["notes"]);
    let id = asked["id"].as_str().unwrap();
    let shown = yard.home.run(["approvals", "show", id, "--output", "text"]).stdout;
    assert!(shown.contains(&note("python3")) && shown.contains(&note("sh")), "{shown}");
    api.approve(&asked);
    let plain = api.asked(&run, &[id]);
    assert_eq!(plain["notes"], Value::Null, "there is nothing else to know");

    let arguments = ["run", "look around", "--agent", "clock", "--workspace", yard.place()];
    let mut terminal = Terminal::of(&mut yard.home.command(arguments));
    terminal.wait_for("[n] reject > ");
    let screen = terminal.screen();
    assert!(screen.contains(&note("python3")), "{screen}");
}

#[test]
fn c11_a_rule_is_tried_on_what_agents_asked_for_before_it_is_stored() {
    let yard = Yard::new("", &[CLOCK]);
    let (_hub, api) = yard.up();
    let run = start(&api, &yard, None);
    api.approve(&api.asked(&run, &[]));
    let second = api.asked(&run, &[api.events(&run).iter().find(|event| event["type"] == "run.approval.requested").unwrap()["payload"]["approvalId"].as_str().unwrap()]);
    api.approve(&second);
    api.until(&run, "completed");

    let rule = json!({"effect": "allow", "kind": "shell", "match": "date *", "dryRun": true});
    let looked = api.post("/policy/rules", &rule);
    assert_eq!((&looked["dryRun"], &looked["rule"]["effect"]), (&json!(true), &json!("allow")));
    assert!(api.get("/policy")["policy"]["stored"].as_array().unwrap().is_empty(), "nothing is stored");
    let changed = looked["preview"]["changed"].as_array().unwrap();
    let mut found: Vec<(&str, &str, &str, &str)> = changed
        .iter()
        .map(|one| {
            let text = |name: &str| one[name].as_str().unwrap();
            (text("what"), text("before"), text("after"), text("decided"))
        })
        .collect();
    found.sort_unstable();
    let expected = [("date -R", "ask", "allow", "approved"), ("date -u", "ask", "allow", "approved")];
    assert_eq!(found, expected, "{looked}");
    assert!(changed.iter().all(|one| one["runId"] == run.as_str() && one["times"] == 1), "{looked}");

    let wide = api.post("/policy/test", &json!({"rule": "allow shell git *"}));
    let also: Vec<&str> =
        wide["replay"]["also"].as_array().unwrap().iter().map(|one| one["what"].as_str().unwrap()).collect();
    assert!(also.contains(&"git clean -fdx") && also.contains(&"git reset --hard"), "{wide}");
    // A push is a deed of its own, which no rule for commands covers.
    assert!(
        !also.contains(&"npm publish")
            && !also.contains(&"git push")
            && wide["replay"]["changed"] == json!([]),
        "{wide}"
    );
    let told = yard.home.run(["policy", "test", "--rule", "deny shell date *", "--output", "text"]).stdout;
    assert!(told.contains("ask → deny  date -u"), "{told}");
    let tried = json!({"rule": "allow shell date -u", "command": "date -u", "agent": "clock", "workspace": yard.place()});
    assert_eq!(api.post("/policy/test", &tried)["effect"], "allow", "as if it were added");
    for wrong in ["", "allow", "permit shell x", "allow dance x", "allow secret x"] {
        let (status, body) = api.send("POST", "/policy/test", Some(&json!({"rule": wrong})));
        assert_eq!(status, 400, "{wrong}: {body}");
    }
}

#[test]
fn c11_a_request_is_tried_as_one_of_a_run_whose_own_rules_count() {
    let yard = Yard::new("", &[CLOCK]);
    let (_hub, api) = yard.up();
    let run = start(&api, &yard, None);
    let asked = api.asked(&run, &[]);
    let session = api.run(&run)["sessionId"].clone();
    api.post(
        "/policy/rules",
        &json!({"effect": "deny", "kind": "shell", "match": "ls", "scope": "run", "run": run}),
    );
    let of_session =
        json!({"effect": "allow", "kind": "shell", "match": "date", "scope": "session", "session": session});
    api.post("/policy/rules", &of_session);
    let of_agent = json!({"effect": "deny", "kind": "shell", "match": "cal", "agent": "clock"});
    api.post("/policy/rules", &of_agent);
    let judged = |with: Value, command: &str| {
        let mut request = with;
        request["command"] = command.into();
        api.post("/policy/test", &request)["effect"].clone()
    };
    for (command, in_run, apart) in [("ls", "deny", "ask"), ("date", "allow", "ask"), ("cal", "deny", "deny")]
    {
        assert_eq!(judged(json!({"run": run}), command), in_run, "{command}");
        assert_eq!(judged(json!({"agent": "clock", "workspace": yard.place()}), command), apart, "{command}");
    }
    let words = ["policy", "test", "--run", run.as_str(), "ls", "--output", "json"];
    assert_eq!(yard.home.run(words).data()["effect"], "deny");
    for wrong in [json!({"run": run, "agent": "clock"}), json!({"run": run, "workspace": yard.place()})] {
        let mut wrong = wrong;
        wrong["command"] = "ls".into();
        let (status, body) = api.send("POST", "/policy/test", Some(&wrong));
        assert!(status == 400 && body.contains("either a run"), "{status}: {body}");
    }
    let nobody = json!({"run": "run_018bcfe5680077078707070707070707", "command": "ls"});
    assert_eq!(api.send("POST", "/policy/test", Some(&nobody)).0, 404);
    api.approve(&asked);
}

#[test]
fn c11_on_a_terminal_a_rule_is_shown_with_what_else_it_allows_before_it_is_stored() {
    let yard = Yard::new("", &[CLOCK]);
    let (_hub, api) = yard.up();
    let stored = || api.get("/policy")["policy"]["stored"].as_array().unwrap().len();
    let add = || Terminal::of(&mut yard.home.command(["policy", "add", "allow", "shell", "git *"]));
    let mut terminal = add();
    terminal.wait_for("Add it? [y/N]");
    assert!(terminal.screen().contains("ask → allow  git clean -fdx"), "{}", terminal.screen());
    assert_eq!(stored(), 0, "it waits for the answer");
    terminal.type_line("n");
    assert_ne!(terminal.ended().0, Some(0));
    assert_eq!(stored(), 0);
    let mut terminal = add();
    terminal.wait_for("Add it? [y/N]");
    terminal.type_line("y");
    assert_eq!(terminal.ended().0, Some(0));
    assert_eq!(stored(), 1);
}

#[test]
fn c12_a_snoozed_approval_leaves_the_inbox_and_is_answered_all_the_same() {
    let yard = Yard::new("", &[CLOCK]);
    let (_hub, api) = yard.up();
    let run = start(&api, &yard, None);
    let asked = api.asked(&run, &[]);
    let path = format!("/approvals/{}", asked["id"].as_str().unwrap());
    let snooze = format!("{path}/snooze");
    let snoozed = api.post(&snooze, &json!({"forMs": 3_600_000, "reason": "lunch"}))["approval"].clone();
    assert_eq!(snoozed["state"], "open");
    assert!(snoozed["snoozedUntil"].is_string(), "{snoozed}");
    assert!(snoozed["expiresAt"].as_str() > asked["expiresAt"].as_str(), "{snoozed} {asked}");
    let inbox = |query: &str| api.get(&format!("/approvals{query}"))["approvals"].as_array().unwrap().len();
    assert_eq!((inbox(""), inbox("?snoozed=true")), (0, 1));
    assert_eq!(api.run(&run)["state"], "needs_approval", "it is no rejection");
    let viewer = api.person("eve", "viewer");
    assert_eq!(viewer.send("POST", &snooze, Some(&json!({"forMs": 1}))).0, 403);
    for wrong in [json!({}), json!({"forMs": 0}), json!({"forMs": -1}), json!({"forMs": 1e18})] {
        assert_eq!(api.send("POST", &snooze, Some(&wrong)).0, 400, "{wrong}");
    }
    api.approve(&asked);
    let (status, body) = api.send("POST", &snooze, Some(&json!({"forMs": 1})));
    assert_eq!(status, 409, "{body}");
    let kinds: Vec<Value> = api.events(&run).iter().map(|event| event["type"].clone()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == json!("run.approval.snoozed")).count(), 1);
}

#[test]
fn c12_where_it_is_configured_so_nobody_approves_what_their_own_run_asks() {
    let yard = Yard::new("[hub]\nown_runs = \"refuse\"\n", &[CLOCK]);
    let (_hub, api) = yard.up();
    let (ada, bob) = (api.person("ada", "admin"), api.person("bob", "approver"));
    let run = start(&ada, &yard, None);
    let asked = ada.asked(&run, &[]);
    let (status, body) = resolve(&ada, &asked, "once");
    assert_eq!(status, 403, "{body}");
    assert!(body.contains("somebody else"), "{body}");
    assert_eq!(resolve(&bob, &asked, "once").0, 200);
    let second = bob.asked(&run, &[asked["id"].as_str().unwrap()]);
    let reject = json!({"decision": "reject", "digest": second["digest"]});
    let path = format!("/approvals/{}/resolve", second["id"].as_str().unwrap());
    assert_eq!(ada.send("POST", &path, Some(&reject)).0, 200, "whoever started it may say no");
    ada.until(&run, "cancelled");
}

// Else two people could bring in what one of them made: the one starts the run, the other only the run that applies it.
#[test]
fn c12_who_started_a_run_does_not_approve_the_run_of_somebody_else_that_applies_it() {
    let script = "[[turn]]\n[[turn.step]]\nwrite = \"a.txt\"\ncontent = \"a\\n\"\n";
    let writer = Scripted { name: "writer", profile: "", script };
    let yard = Yard::new("[hub]\nown_runs = \"refuse\"\n", &[writer]);
    let (_hub, api) = yard.up();
    let (ada, bob, eve) =
        (api.person("ada", "admin"), api.person("bob", "admin"), api.person("eve", "admin"));
    let kept = json!({"task": "write", "agent": "writer", "workspace": yard.place(), "executionPolicy": {"changes": "keep"}});
    let kept = ada.post("/runs", &kept)["run"]["id"].as_str().unwrap().to_owned();
    ada.until(&kept, "completed");
    let digest = ada.get(&format!("/runs/{kept}/diff"))["diff"]["digest"].clone();
    let applies = bob.post(&format!("/runs/{kept}/apply"), &json!({ "digest": digest }));
    let applies = applies["run"]["id"].as_str().unwrap().to_owned();
    let asked = bob.asked(&applies, &[]);
    for own in [&ada, &bob] {
        let (status, body) = resolve(own, &asked, "once");
        assert_eq!(status, 403, "{body}");
    }
    assert_eq!(resolve(&eve, &asked, "once").0, 200);
    eve.until(&applies, "completed");
}

#[test]
fn c12_a19_what_its_owner_may_not_approve_is_left_to_somebody_else_and_not_asked_again() {
    let script = "[[turn]]\n[[turn.step]]\nwrite = \"a.txt\"\ncontent = \"a\\n\"\n";
    let yard = Yard::new(
        "[hub]\nown_runs = \"refuse\"\n",
        &[CLOCK, Scripted { name: "writer", profile: "", script }],
    );
    let (_hub, api) = yard.up();
    let run = |arguments: &[&str]| {
        let mut command = yard.home.command(arguments);
        command.current_dir(yard.workspace.path());
        command
    };
    // Nobody can be asked: the command ends with the refusal, also where a run of its own applies what was kept.
    let kept = json!({"task": "write", "agent": "writer", "workspace": yard.place(), "executionPolicy": {"changes": "keep"}});
    let kept = api.post("/runs", &kept)["run"]["id"].as_str().unwrap().to_owned();
    api.until(&kept, "completed");
    let waiting = api.start("writer", yard.place());
    api.asked(&waiting, &[]);
    for of in [&kept, &waiting] {
        let (exit, code, message) =
            Ran::of(&mut run(&["apply", of, "--confirm", "--output", "json"])).failure();
        assert_eq!((exit, code.as_str()), (3, "AUTHORIZATION_ERROR"), "{message}");
        assert!(message.contains("somebody else: \"runyard approvals approve apr_"), "{message}");
    }
    // At a terminal it is left open.
    for (agent, question) in [("writer", "Apply these changes"), ("clock", "Run this command")] {
        let mut terminal = Terminal::of(&mut run(&["run", "go", "--agent", agent]));
        terminal.wait_for(question);
        terminal.wait_for("[n] reject > ");
        terminal.type_line("y");
        terminal.wait_for("It stays open and waits for somebody else");
        let (exit, screen) = terminal.ended();
        assert_eq!(exit, Some(1), "{screen}");
        assert_eq!(screen.matches(question).count(), 1, "it is asked once: {screen}");
    }
}

/// It asks for a colour and says what it was told.
const CHOICE: Scripted<'static> = Scripted {
    name: "painter",
    profile: "",
    script: "[[turn]]\n[[turn.step]]\nask = \"Which colour?\"\nthen_say = \"Told {answer}.\"\n\
             [turn.step.schema]\ntype = \"object\"\nrequired = [\"choice\"]\n\
             properties.choice = { type = \"string\", enum = [\"Red (Recommended)\", \"Blue\"] }\n",
};

fn at_a_terminal(yard: &Yard, arguments: &[&str]) -> Terminal {
    Terminal::of(yard.home.command(arguments).current_dir(yard.workspace.path()))
}

#[test]
fn c12_a_question_is_answered_in_words_where_the_run_is_followed() {
    let yard = Yard::new("", &[CHOICE]);
    let (_hub, _api) = yard.up();
    let choices = "1) Red (Recommended)  2) Blue  or type it > ";
    let mut terminal = at_a_terminal(&yard, &["run", "paint", "--agent", "painter"]);
    terminal.wait_for("question: Which colour?");
    for (question, line) in
        [(choices, "green"), (choices, ""), ("Reject the question? [y/N] ", ""), (choices, "blue")]
    {
        terminal.wait_for(question);
        terminal.type_line(line);
    }
    terminal.wait_for("Told {\"choice\":\"Blue\"}.");
    let (exit, screen) = terminal.ended();
    assert_eq!(exit, Some(0), "{screen}");
    assert!(!screen.contains("answerSchema"), "{screen}");
}

#[test]
fn c12_a_question_is_answered_from_the_inbox_at_once_and_its_command_is_told_elsewhere() {
    let yard = Yard::new("", &[CHOICE]);
    let (_hub, api) = yard.up();
    let asked = || {
        let run = api.start("painter", yard.place());
        let asked = api.asked(&run, &[])["id"].as_str().unwrap().to_owned();
        (run, asked)
    };
    let (run, id) = asked();
    let (exit, code, message) = yard.home.run(["approvals", "approve", &id, "--confirm"]).failure();
    assert_eq!((exit, code.as_str()), (2, "VALIDATION_ERROR"), "{message}");
    let command = format!(
        "Answer it with: runyard approvals approve {id} --answer '{{\"choice\": \"Red (Recommended)\"}}'"
    );
    assert!(message.contains(&command), "{message}");
    let shown = yard.home.run(["approvals", "show", &id, "--output", "text"]).stdout;
    assert!(shown.contains("answers: Red (Recommended), Blue") && !shown.contains("answerSchema"), "{shown}");
    yard.home.run(["approvals", "approve", &id, "--answer", "Blue", "--confirm"]).data();
    assert_eq!(api.until(&run, "completed")["response"], "Told {\"choice\":\"Blue\"}.");

    let (run, id) = asked();
    let mut terminal = at_a_terminal(&yard, &["approvals", "approve", &id]);
    terminal.wait_for("or type it > ");
    terminal.type_line("1");
    let (exit, screen) = terminal.ended();
    assert!(exit == Some(0) && !screen.contains("Approve exactly this?"), "{screen}");
    assert_eq!(api.until(&run, "completed")["response"], "Told {\"choice\":\"Red (Recommended)\"}.");

    let (run, id) = asked();
    let mut terminal = at_a_terminal(&yard, &["approvals", "approve", &id]);
    terminal.wait_for("or type it > ");
    terminal.type_line("");
    terminal.wait_for("Reject the question? [y/N] ");
    terminal.type_line("y");
    assert_eq!(terminal.ended().0, Some(0));
    api.until(&run, "cancelled");
}

/// A token of GitHub's form, as nobody has it.
const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ456789";

const WRITER: Scripted<'static> = Scripted {
    name: "writer",
    profile: "",
    script: "[[turn]]\n[[turn.step]]\nwrite = \"a.txt\"\ncontent = \"a\\n\"\n",
};

fn decide(api: &Api, approval: &Value, mut answer: Value) -> Value {
    answer["digest"] = approval["digest"].clone();
    let id = approval["id"].as_str().unwrap();
    let (_, body) = api.send("POST", &format!("/approvals/{id}/resolve"), Some(&answer));
    serde_json::from_str(&body).unwrap()
}

// clause: J07
#[test]
fn j07_what_is_said_with_a_decision_is_told_as_it_is_stored_and_the_answer_says_so() {
    let yard = Yard::new("", &[WRITER, CHOICE]);
    let (_hub, api) = yard.up();
    let run = api.start("writer", yard.place());
    let asked = api.asked(&run, &[]);
    let id = asked["id"].as_str().unwrap();
    let again = format!("push with {SECRET} please");
    let rejected = ["approvals", "reject", id, "--confirm", "--revise", "--reason", &again];
    assert_eq!(yard.home.run(rejected).data()["redacted"], true);
    let told = api.events(&run);
    let told = told.iter().find(|event| event["type"] == "run.command.received").unwrap();
    let text = told["payload"]["text"].as_str().unwrap();
    assert!(text.contains("push with [REDACTED:") && !text.contains(SECRET), "{text}");
    let next = api.asked(&run, &[id]);
    let shown = yard.home.run(
        [
            &["approvals", "reject", next["id"].as_str().unwrap(), "--confirm", "--output", "text"][..],
            &["--revise", "--reason", &again],
        ]
        .concat(),
    );
    assert!(shown.stdout.contains("What was secret in it is not in there."), "{}", shown.stdout);
    let last = api.asked(&run, &[id, next["id"].as_str().unwrap()]);
    let plain = decide(&api, &last, json!({"decision": "reject", "reason": "Nothing secret."}));
    assert_eq!((&plain["ok"], &plain["data"]["redacted"]), (&json!(true), &json!(false)), "{plain}");
}

// clause: J07
#[test]
fn j07_an_answer_to_a_question_is_told_as_it_is_stored_and_must_fit_as_that() {
    let question = |name, schema| {
        format!("[[turn]]\n[[turn.step]]\nask = \"{name}?\"\nschema = {{ type = \"string\"{schema} }}\n")
    };
    let (any, exact) = (question("What", ""), question("Which", ", pattern = \"^ghp_[0-9a-zA-Z]*$\""));
    let agents = [("open", any.as_str()), ("exact", exact.as_str())];
    let agents = agents.map(|(name, script)| Scripted { name, profile: "", script });
    let yard = Yard::new("", &agents);
    let (_hub, api) = yard.up();
    let answered = |agent: &str, answer: &str| {
        let run = api.start(agent, yard.place());
        let told = decide(&api, &api.asked(&run, &[]), json!({"decision": "approve", "answer": answer}));
        (run, told)
    };
    let (run, told) = answered("open", &format!("use {SECRET} now"));
    assert_eq!(told["data"]["redacted"], true, "{told}");
    api.until(&run, "completed");
    let (_, told) = answered("open", "use the other one");
    assert_eq!(told["data"]["redacted"], false, "{told}");
    let (run, told) = answered("exact", SECRET);
    assert_eq!(told["error"]["code"], "VALIDATION_ERROR", "{told}");
    assert!(told.to_string().contains("also without what is secret in it"), "{told}");
    assert_eq!(api.run(&run)["state"], "needs_approval", "nothing was decided");
}

#[test]
fn c12_a_blank_reason_is_none() {
    let yard = Yard::new("", &[CLOCK]);
    let (_hub, api) = yard.up();
    for blank in ["", " ", "\n\t"] {
        let run = start(&api, &yard, None);
        let told = decide(&api, &api.asked(&run, &[]), json!({"decision": "reject", "reason": blank}));
        assert_eq!(told["data"]["approval"]["state"], "rejected", "{blank:?}: {told}");
        assert_eq!(told["data"]["approval"]["decisionReason"], Value::Null, "{told}");
        api.until(&run, "cancelled");

        let run = start(&api, &yard, None);
        api.asked(&run, &[]);
        let ended = api.post(&format!("/runs/{run}/cancel"), &json!({"reason": blank}));
        assert_eq!(ended["run"]["state"], "cancelled", "{blank:?}: {ended}");
        assert_eq!(ended["run"]["message"], "Cancelled by owner.", "{ended}");
    }
}
