//! `runyard chat` as people and programs use it: on a terminal and on a pipe, with a scripted agent and with our own.
//!
//! clause: C22
//! clause: J02
//! clause: J05

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use rustix::process::Signal;
use serde_json::{Value, json};

use support::api::{Api, Scripted, Yard};
use support::native::Native;
use support::terminal::Terminal;
use support::{Ran, eventually, send};

const PROMPT: &str = "you> ";

const TALKS: Scripted<'_> = Scripted {
    name: "talks",
    profile: "",
    script: r#"
[[turn]]
[[turn.step]]
say = "One."
[[turn]]
[[turn.step]]
write = "two.txt"
content = "two\n"
[[turn.step]]
say = "Two."
[[turn]]
[[turn.step]]
say = "Three."
"#,
};

const WORKS: Scripted<'_> = Scripted {
    name: "works",
    profile: "",
    script: r#"
[[turn]]
[[turn.step]]
shell = "ls"
[[turn.step]]
say = "I have looked."
[[turn]]
[[turn.step]]
say = "I wait."
[[turn.step]]
wait_for_command = true
[[turn.step]]
say = "This is never said."
[[turn]]
[[turn.step]]
write = "three.txt"
content = "three\n"
[[turn.step]]
say = "I have written."
"#,
};

/// What it runs takes its time to be stopped: it heeds no gentle signal.
const HOLDS: Scripted<'_> = Scripted {
    name: "holds",
    profile: "",
    script: r#"
[[turn]]
[[turn.step]]
shell = "trap '' INT TERM; printf 'be%s\\n' gun; sleep 600"
"#,
};

const FAILS: Scripted<'_> = Scripted {
    name: "fails",
    profile: "",
    script: r#"
[[turn]]
[[turn.step]]
say = "One."
[[turn]]
[[turn.step]]
fail = "backend-failed"
message = "It broke."
[[turn]]
[[turn.step]]
say = "Three."
"#,
};

fn on_pipe(yard: &Yard, more: &[&str], input: &str) -> Ran {
    yard.home.run(["workspaces", "add", yard.place()]).data();
    let arguments = ["chat", "--workspace", yard.place()];
    yard.home.run_with(arguments.iter().chain(more), input.as_bytes())
}

fn on_terminal(yard: &Yard, more: &[&str]) -> Terminal {
    let arguments = ["chat", "--workspace", yard.place()];
    Terminal::of(&mut yard.home.command(arguments.iter().chain(more)))
}

fn events(ran: &Ran) -> Vec<Value> {
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).map(|event| &event["payload"]).collect()
}

/// The ids of the runs, the oldest first.
fn runs(api: &Api) -> Vec<String> {
    let runs = api.get("/runs");
    let runs = runs["runs"].as_array().unwrap().iter().rev();
    runs.map(|run| run["id"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn say(terminal: &mut Terminal, text: &str) {
    terminal.wait_for(PROMPT);
    terminal.type_line(text);
}

#[test]
fn c22_each_line_of_the_input_is_a_turn_of_one_run_and_its_events_are_printed() {
    let yard = Yard::new("", &[TALKS]);
    let ran = on_pipe(&yard, &["--agent", "talks", "--keep"], "one\n\n  \ntwo\nthree");
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    let events = events(&ran);
    let sequences: Vec<u64> = events.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequences, (1..=events.len() as u64).collect::<Vec<_>>(), "of one run, all of them");
    assert_eq!(of_type(&events, "run.turn.started").len(), 3);
    assert_eq!(of_type(&events, "run.created")[0]["task"]["text"], "one");
    let told: Vec<&Value> =
        of_type(&events, "run.command.received").iter().map(|told| &told["command"]).collect();
    assert_eq!(told, ["turn", "turn", "finish"]);
    assert_eq!(events.last().unwrap()["type"], "run.completed");

    let ran = on_pipe(&yard, &["one", "--agent", "talks", "--keep", "--output", "text"], "two\nthree\n");
    assert_eq!((ran.exit, ran.stdout.as_str()), (0, "One.\nTwo.\nThree.\n"), "{}", ran.stderr);
    let ran = on_pipe(&yard, &["one", "--agent", "talks", "--keep", "--output", "json"], "");
    assert_eq!(ran.data()["run"]["state"], "completed");
    let none = on_pipe(&yard, &["--agent", "talks"], "\n");
    assert_eq!((none.exit, none.stdout.as_str(), none.stderr.as_str()), (0, "", ""), "nothing was said");
}

#[test]
fn c22_a_run_that_failed_is_gone_on_from_and_the_last_run_is_the_exit_code() {
    let yard = Yard::new("", &[FAILS]);
    let ran = on_pipe(&yard, &["--agent", "fails", "--keep"], "one\ntwo\n");
    assert_eq!(ran.exit, 1, "{} {}", ran.stdout, ran.stderr);
    assert_eq!(of_type(&events(&ran), "run.failed").len(), 1);
    let ran = on_pipe(&yard, &["--agent", "fails", "--keep"], "one\ntwo\nthree\n");
    assert_eq!(ran.exit, 0, "{} {}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("the conversation goes on in a new one"), "{}", ran.stderr);
    let events = events(&ran);
    let made = of_type(&events, "run.created");
    let first = &events[0]["runId"];
    assert_eq!((made.len(), &made[1]["parentRunId"]), (2, first));
    assert!(made[1]["thread"].is_string(), "it is the same conversation: {}", made[1]);
    assert_eq!(of_type(&events, "run.message.completed").last().unwrap()["text"], "Three.");
    let words = on_pipe(&yard, &["--agent", "fails", "--keep", "--output", "text"], "one\ntwo\n");
    assert_eq!((words.exit, words.stdout.as_str()), (1, "One.\n"));
    assert!(words.stderr.contains(" failed: It broke."), "{}", words.stderr);
    let help = yard.home.run(["--help"]);
    assert!(help.stdout.contains("\n  chat "), "{}", help.stdout);
    assert!(yard.home.run(["completions", "bash"]).stdout.contains("runyard__subcmd__chat"));
}

#[test]
fn c22_an_agent_that_takes_no_messages_is_refused_with_what_to_do() {
    let yard = Yard::new("", &[]);
    yard.home.run(["workspaces", "add", yard.place()]).data();
    let ran = yard.home.run(["chat", "hello", "--agent", "action", "--workspace", yard.place()]);
    let (exit, code, message) = ran.failure();
    assert_eq!((exit, code.as_str()), (2, "VALIDATION_ERROR"), "{message}");
    assert!(message.contains("takes no messages") && message.contains("runyard agents list"), "{message}");
    assert_eq!(yard.home.run(["runs", "list"]).data()["runs"], json!([]), "nothing was made");
    let ran = yard.home.run(["chat", "hello", "--agent", "nobody", "--workspace", yard.place()]);
    let why = ran.envelope()["error"]["issues"][0]["message"].clone();
    assert!(why.as_str().unwrap().starts_with("Expected an agent profile: "), "{why}");
}

#[test]
fn c22_a_conversation_at_a_terminal_asks_is_interrupted_and_ends_with_what_it_changed() {
    let yard = Yard::new("", &[WORKS]);
    let (_hub, api) = yard.up();
    let mut terminal = on_terminal(&yard, &["--agent", "works"]);
    say(&mut terminal, "hello");
    terminal.wait_for("Run this command in ");
    terminal.wait_for("[n] reject > ");
    terminal.type_line("y");
    terminal.wait_for("I have looked.");
    say(&mut terminal, "");
    say(&mut terminal, "/help");
    terminal.wait_for("/quit");
    say(&mut terminal, "now wait");
    terminal.wait_for("I wait.");
    send(terminal.pid(), Signal::INT);
    terminal.wait_for("Interrupting the turn");
    say(&mut terminal, "write");
    terminal.wait_for("I have written.");
    terminal.wait_for(PROMPT);
    assert!(!yard.workspace.path().join("three.txt").exists(), "it works on a copy");
    terminal.end_input();
    terminal.wait_for("Apply these changes to your files");
    terminal.wait_for("[n] reject > ");
    terminal.type_line("y");
    let (exit, screen) = terminal.ended();
    assert_eq!(exit, Some(0), "{screen}");
    assert!(screen.contains("completed in ") && !screen.contains("never said"), "{screen}");
    assert_eq!(std::fs::read_to_string(yard.workspace.path().join("three.txt")).unwrap(), "three\n");
    let [run] = &runs(&api)[..] else { panic!("one run: {:?}", runs(&api)) };
    let events = api.events(run);
    let outcomes: Vec<&Value> =
        of_type(&events, "run.turn.ended").iter().map(|ended| &ended["outcome"]).collect();
    assert_eq!(outcomes, ["completed", "interrupted", "completed"]);
}

#[test]
fn c22_ctrl_c_while_a_lasting_yes_is_talked_over_withdraws_what_was_asked() {
    let yard = Yard::new("", &[WORKS]);
    let (_hub, _api) = yard.up();
    let mut terminal = on_terminal(&yard, &["look", "--agent", "works", "--keep"]);
    terminal.wait_for("[n] reject > ");
    terminal.type_line("p");
    terminal.wait_for("[n] not yet > ");
    send(terminal.pid(), Signal::INT);
    terminal.wait_for("Interrupting the turn");
    terminal.wait_for(PROMPT);
    terminal.end_input();
    assert_eq!(terminal.ended().0, Some(0));
}

#[test]
fn c22_a_line_that_is_no_text_is_said_all_the_same_and_ends_nothing() {
    let yard = Yard::new("", &[TALKS]);
    let (_hub, api) = yard.up();
    let arguments = ["chat", "--agent", "talks", "--workspace", yard.place(), "--keep"];
    let ran = yard.home.run_with(arguments, b"one\n\xff\xfe\nthree\n");
    assert_eq!(ran.exit, 0, "{} {}", ran.stdout, ran.stderr);
    let [run] = &runs(&api)[..] else { panic!("one run: {:?}", runs(&api)) };
    assert_eq!(of_type(&api.events(run), "run.turn.ended").len(), 3);
}

#[test]
fn c22_ctrl_c_at_the_prompt_ends_the_conversation_and_twice_at_work_cancels_the_run() {
    let yard = Yard::new("", &[TALKS, HOLDS]);
    let (_hub, api) = yard.up();
    let mut terminal = on_terminal(&yard, &["one", "--agent", "talks", "--keep"]);
    terminal.wait_for("One.");
    terminal.wait_for(PROMPT);
    send(terminal.pid(), Signal::INT);
    let (exit, screen) = terminal.ended();
    assert_eq!(exit, Some(0), "{screen}");
    assert!(screen.contains("completed in "), "{screen}");

    let mut terminal = on_terminal(&yard, &["hold", "--agent", "holds"]);
    terminal.wait_for("[n] reject > ");
    terminal.type_line("y");
    terminal.wait_for("begun");
    send(terminal.pid(), Signal::INT);
    terminal.wait_for("Interrupting the turn");
    send(terminal.pid(), Signal::INT);
    let (exit, screen) = terminal.ended();
    assert_eq!(exit, Some(130), "{screen}");
    let state = |run: &String| api.run(run)["state"].clone();
    assert_eq!(runs(&api).iter().map(state).collect::<Vec<_>>(), ["completed", "cancelled"]);

    let mut terminal = on_terminal(&yard, &["--agent", "talks"]);
    say(&mut terminal, "/quit");
    assert_eq!(terminal.ended().0, Some(0));
    assert_eq!(runs(&api).len(), 2, "nothing was said, and nothing made");
}

#[test]
fn j02_three_turns_with_our_own_agent_are_one_conversation_and_the_model_is_sent_all_of_it() {
    let native = Native::new("");
    let arguments = ["--agent", "mine", "--keep", "--output", "text"];
    let ran = on_pipe(&native.yard, &arguments, "tell me of alpha\nand of beta\nand of gamma\n");
    let said = "Hello from the demo provider.\n";
    assert_eq!((ran.exit, ran.stdout), (0, said.repeat(3)), "{}", ran.stderr);
    let asked = native.provider.requests();
    assert_eq!(asked.len(), 3);
    let last = asked.last().unwrap().body.to_string();
    let places = ["tell me of alpha", "and of beta", "and of gamma"].map(|text| last.find(text));
    assert!(places.is_sorted() && places[0].is_some(), "{last}");
    assert_eq!(last.matches(said.trim_end()).count(), 2, "with what it answered: {last}");
    let listed = native.yard.home.run(["runs", "list"]).data();
    let [run] = listed["runs"].as_array().unwrap().as_slice() else { panic!("{listed}") };
    let replay = native.yard.home.run(["replay", run["id"].as_str().unwrap()]).data()["replay"].clone();
    assert_eq!((&replay["same"], &replay["thread"]["messages"]), (&json!(true), &json!(6)), "{replay}");
}

#[test]
fn d10_what_stands_for_an_answer_that_broke_off_is_not_printed_as_the_agents_words() {
    let scenarios = tempfile::tempdir().unwrap();
    // Blanks are told, and cannot be gone on with.
    let blank = "[[step]]\nanswer = { say = [\"  \"], end = \"cut\" }\n";
    std::fs::write(scenarios.path().join("blank.toml"), blank).unwrap();
    let native = Native::playing("limits.retries_max = 1", scenarios.path());
    let arguments = ["--agent", "mine", "--keep", "--output", "text"];
    let ran = on_pipe(&native.yard, &arguments, "[[scenario:blank]]\n");
    assert!(!ran.stdout.contains("broke off"), "{}", ran.stdout);
    let (_hub, api) = native.yard.up();
    let run = runs(&api).pop().unwrap();
    let events = api.events(&run);
    let broke_off = of_type(&events, "run.message.completed");
    assert!(broke_off.iter().any(|message| message["brokeOff"] == true), "{broke_off:?}");
    let shown = api.until(&run, "failed");
    assert!(!shown["response"].as_str().unwrap_or_default().contains("broke off"), "{shown}");
}

#[test]
fn d16_the_tokens_of_a_turn_are_its_own_and_every_turn_of_a_run_has_as_many() {
    let message = "[[scenario:tool list {}]]\n";
    let arguments = ["--agent", "mine", "--keep", "--output", "text"];
    let tokens = |native: &Native| {
        let listed = native.yard.home.run(["runs", "list"]).data();
        let metrics = &listed["runs"][0]["metrics"];
        ["inputTokens", "outputTokens"].map(|name| metrics[name].as_u64().unwrap()).iter().sum::<u64>()
    };
    let native = Native::new("");
    assert_eq!(on_pipe(&native.yard, &arguments, message).exit, 0);
    let one = tokens(&native);

    // A turn is asked twice: with a limit of what both cost no first question meets it.
    let native = Native::new(&format!("limits.tokens_max = {one}"));
    let ran = on_pipe(&native.yard, &arguments, &message.repeat(2));
    assert_eq!((ran.exit, ran.stdout), (0, "The tool was called.\n".repeat(2)), "{}", ran.stderr);
    assert!(tokens(&native) > 2 * one, "the run counts all of them");

    let native = Native::new("limits.tokens_max = 1");
    let ran = on_pipe(&native.yard, &arguments, message);
    assert_eq!((ran.exit, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    let (_hub, api) = native.yard.up();
    let [run] = &runs(&api)[..] else { panic!("one run: {:?}", runs(&api)) };
    let events = api.events(run);
    let [told] = &of_type(&events, "runtime.error")[..] else { panic!("one error: {events:#?}") };
    let said = told["message"].as_str().unwrap();
    assert!(said.starts_with("the agent stopped at its limit token_budget: "), "{said}");
    assert_eq!(api.run(run)["state"], "completed");
}

#[test]
fn j05_a_conversation_goes_on_after_its_hub_was_killed_between_two_turns() {
    let native = Native::new("");
    let (hub, _) = native.yard.up();
    let mut terminal = on_terminal(&native.yard, &["--agent", "mine", "--keep"]);
    say(&mut terminal, "tell me of alpha");
    terminal.wait_for("demo provider.");
    terminal.wait_for(PROMPT);
    hub.signal(Signal::KILL);
    hub.ended();
    let (hub, api) = native.yard.up();
    terminal.type_line("and of beta");
    terminal.wait_for("demo provider.");
    terminal.wait_for(PROMPT);
    // Nobody is there when it is said; the next hub hears it.
    hub.signal(Signal::KILL);
    hub.ended();
    terminal.type_line("and of gamma");
    terminal.wait_for("The hub is away");
    let (_hub, api) = (native.yard.up().0, api);
    terminal.wait_for("demo provider.");
    terminal.wait_for(PROMPT);
    terminal.end_input();
    let (exit, screen) = terminal.ended();
    assert_eq!(exit, Some(0), "{screen}");
    let last = native.provider.requests().last().unwrap().body.to_string();
    let places = ["tell me of alpha", "and of beta", "and of gamma"].map(|text| last.find(text));
    assert!(places.is_sorted() && places[0].is_some(), "{last}");
    drop(api);
    let listed = native.yard.home.run(["runs", "list"]).data();
    let [run] = listed["runs"].as_array().unwrap().as_slice() else { panic!("one run: {listed}") };
    let replay = native.yard.home.run(["replay", run["id"].as_str().unwrap()]).data()["replay"].clone();
    assert_eq!((&replay["same"], &replay["thread"]["messages"]), (&json!(true), &json!(6)), "{replay}");
}

#[test]
fn j02_a_run_that_ended_meanwhile_is_gone_on_from_in_a_new_one_that_knows_what_was_said() {
    let native = Native::new("");
    let (_hub, api) = native.yard.up();
    let mut terminal = on_terminal(&native.yard, &["--agent", "mine", "--keep"]);
    say(&mut terminal, "tell me of alpha");
    terminal.wait_for("demo provider.");
    terminal.wait_for(PROMPT);
    let first = runs(&api).remove(0);
    api.post(&format!("/runs/{first}/commands"), &json!({"kind": "finish"}));
    api.until(&first, "completed");
    terminal.type_line("and of beta");
    terminal.wait_for("The last run has ended: the conversation goes on in a new one.");
    terminal.wait_for("demo provider.");
    terminal.wait_for(PROMPT);
    terminal.end_input();
    let (exit, screen) = terminal.ended();
    assert_eq!(exit, Some(0), "{screen}");
    assert!(!screen.contains("kept nothing of the conversation"), "{screen}");
    let second = &runs(&api)[1];
    assert_eq!(api.run(second)["parentRunId"], *first);
    let last = native.provider.requests().last().unwrap().body.to_string();
    assert!(last.contains("tell me of alpha") && last.contains("and of beta"), "{last}");

    // And so it is from another command, later.
    let more = ["--agent", "mine", "--keep", "--continue", second, "--output", "text"];
    let ran = on_pipe(&native.yard, &more, "and of gamma\n");
    assert_eq!((ran.exit, ran.stdout.as_str()), (0, "Hello from the demo provider.\n"), "{}", ran.stderr);
    let last = native.provider.requests().last().unwrap().body.to_string();
    assert!(["alpha", "beta", "gamma"].iter().all(|word| last.contains(word)), "{last}");
}

#[test]
fn j02_a_person_who_says_no_goes_on_with_the_same_conversation() {
    let native = Native::new("provider.wire = \"chat\"\nlimits.retries_max = 0");
    let (_hub, api) = native.yard.up();
    let mut terminal = on_terminal(&native.yard, &["--agent", "mine", "--keep"]);
    say(&mut terminal, r#"make it [[scenario:tool shell {"command": "echo - > made.txt"}]]"#);
    terminal.wait_for("[n] reject > ");
    terminal.type_line("n");
    say(&mut terminal, "leave it [[scenario:text]]");
    terminal.wait_for("The last run has ended: the conversation goes on in a new one.");
    terminal.wait_for("demo provider.");
    terminal.wait_for(PROMPT);
    terminal.end_input();
    let (exit, screen) = terminal.ended();
    assert_eq!(exit, Some(0), "{screen}");
    let states = runs(&api).iter().map(|run| api.run(run)["state"].clone()).collect::<Vec<_>>();
    assert_eq!(states, ["cancelled", "completed"], "{screen}");
    let last = native.provider.requests().last().unwrap().body.to_string();
    assert!(last.contains("make it") && last.contains("tool.denied"), "{last}");
}

#[test]
fn c22_a_run_that_is_still_kept_open_is_gone_on_with_itself() {
    let yard = Yard::new("", &[TALKS]);
    let (_hub, api) = yard.up();
    let new = json!({"task": "one", "agent": "talks", "workspace": yard.place(),
        "executionPolicy": {"keepOpenMs": 3_600_000, "changes": "keep"}});
    let run = api.post("/runs", &new)["run"]["id"].as_str().unwrap().to_owned();
    eventually("it is kept open", || api.run(&run)["keptOpenUntil"].is_string().then_some(()));
    let ran = on_pipe(&yard, &["--continue", &run, "--output", "text"], "two\n");
    assert_eq!((ran.exit, ran.stdout.as_str()), (0, "Two.\n"), "{}", ran.stderr);
    assert_eq!(runs(&api), [run.as_str()]);
    assert_eq!(api.run(&run)["state"], "completed");
}
