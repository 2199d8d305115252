//! What is said of our own agent's provider, and `runyard run` with such an agent, through the real binary.
//!
//! clause: C17
//! clause: C22
//! clause: J01

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use runyard_demo_provider::{DemoProvider, Options};
use serde_json::json;

use support::api::Yard;
use support::native::{KEY, Native, of_type};
use support::terminal::Terminal;

const WIRES: [&str; 3] = ["responses", "chat", "messages"];

#[test]
fn c17_what_an_agent_of_ours_says_of_its_provider_counts() {
    let shared = json!({ "OPENAI_API_KEY": KEY }).to_string();
    for wire in WIRES {
        // The agent's own key is nobody's here: whose is used is said.
        let own = json!({ "OPENAI_API_KEY": "of-nobody-plain-words-77" }).to_string();
        let table = [
            ("provider.secret = \"shared\"", ["shared/auth.json: gateway"]),
            ("provider.secret = \"shared\"\nprovider.gateway = false", ["shared/auth.json: home"]),
        ];
        for (said, projected) in table {
            let native = Native::new(&format!("provider.wire = {wire:?}\nlimits.retries_max = 0\n{said}"));
            for (name, value) in [("mine", &own), ("shared", &shared)] {
                let ran = native.yard.home.run_with(["secrets", "set", name, "auth.json"], value.as_bytes());
                assert_eq!(ran.exit, 0, "{}", ran.stderr);
            }
            let (_hub, api) = native.yard.up();
            let run = native.start(&api, "[[scenario:text]]", &json!({}));
            let done = api.until(&run, "completed");
            assert_eq!(done["response"], "Hello from the demo provider.", "{wire} {said}: {done}");
            let events = api.events(&run);
            let told: Vec<String> = of_type(&events, "run.secrets.projected")
                .iter()
                .map(|told| {
                    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
                    format!("{}/{}: {}", text(&told["profile"]), text(&told["keys"][0]), text(&told["how"]))
                })
                .collect();
            assert_eq!(told, projected, "{wire} {said}");
            let asked = native.provider.requests();
            assert!(asked.iter().all(|request| request.key() == Some(KEY)), "{wire} {said}");
        }
    }
}

/// A provider that asks for no key, and a yard with this configuration behind its address.
fn keyless(configuration: impl Fn(&str) -> String) -> (DemoProvider, Yard) {
    let executor = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let provider = executor.block_on(DemoProvider::start_with(Options::default())).unwrap();
    let yard = Yard::new(&configuration(&provider.url()), &[]);
    (provider, yard)
}

#[test]
fn c17_a_provider_that_asks_for_no_key_is_given_none() {
    for wire in WIRES {
        for gateway in [true, false] {
            let (provider, yard) = keyless(|url| {
                format!(
                    "[agent.mine]\nbackend = \"native\"\nmodel = \"demo\"\nlimits.retries_max = 0\n\
                     provider = {{ base_url = {url:?}, wire = {wire:?}, keyless = true, gateway = {gateway} }}\n"
                )
            });
            let (_hub, api) = yard.up();
            let new = json!({"task": "hello", "agent": "mine", "workspace": yard.place(),
                "executionPolicy": {"changes": "keep"}});
            let run = api.post("/runs", &new)["run"]["id"].as_str().unwrap().to_owned();
            let done = api.until(&run, "completed");
            assert_eq!(done["response"], "Hello from the demo provider.", "{wire} {gateway}: {done}");
            assert_eq!(of_type(&api.events(&run), "run.secrets.projected").len(), 0, "{wire} {gateway}");
            let [asked] = &provider.requests()[..] else { panic!("{wire} {gateway}: one question") };
            assert_eq!(asked.key(), None, "{wire} {gateway}");
        }
    }
}

#[test]
fn c17_agents_of_ours_may_share_a_backend_profile() {
    for wire in WIRES {
        let (provider, yard) = keyless(|url| {
            format!(
                "[backend.house]\nkind = \"native\"\nmodel = \"house-large\"\nbase_url = {url:?}\nwire = {wire:?}\n\
                 required_secret_keys = []\nsettings = {{ rounds_max = \"1\", tools = \"list\" }}\n\
                 [agent.one]\nbackend = \"house\"\n[agent.two]\nbackend = \"house\"\n"
            )
        });
        let checked = yard.home.run(["backends", "check", "house"]);
        assert_eq!(checked.exit, 0, "{} {}", checked.stdout, checked.stderr);
        let (_hub, api) = yard.up();
        for agent in ["one", "two"] {
            let new = json!({"task": "[[scenario:tool list {}]]", "agent": agent, "workspace": yard.place(),
                "executionPolicy": {"changes": "keep"}});
            let run = api.post("/runs", &new)["run"]["id"].as_str().unwrap().to_owned();
            api.until(&run, "completed");
            let told = of_type(&api.events(&run), "runtime.error")[0]["message"].clone();
            assert!(told.as_str().unwrap().contains("its limit max_rounds"), "{wire} {agent}: {told}");
        }
        let asked = provider.requests();
        assert_eq!(asked.len(), 2, "{wire}: each once");
        assert!(asked.iter().all(|request| request.json()["model"] == "house-large"), "{wire}");
    }
}

#[test]
fn c22_j01_a_run_with_our_own_agent_at_a_terminal_asks_completes_and_says_what_it_did() {
    let native = Native::new("");
    let (_hub, api) = native.yard.up();
    let task = r#"[[scenario:tool shell {"command": "echo hello > made.txt; cat made.txt"}]]"#;
    let arguments = ["run", task, "--agent", "mine", "--keep", "--workspace", native.yard.place()];
    let mut terminal = Terminal::of(&mut native.yard.home.command(arguments));
    terminal.wait_for("command: echo hello > made.txt; cat made.txt");
    terminal.wait_for("[n] reject > ");
    terminal.type_line("y");
    terminal.wait_for("$ echo hello > made.txt; cat made.txt");
    terminal.wait_for("hello");
    terminal.wait_for("The tool was called.");
    let (exit, screen) = terminal.ended();
    assert_eq!(exit, Some(0), "{screen}");
    assert!(screen.contains("completed in "), "{screen}");
    assert_eq!(screen.matches("The tool was called.").count(), 1, "what it says is printed once: {screen}");
    let run = api.get("/runs")["runs"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(native.file(&run, "made.txt").as_deref(), Some("hello\n"));
    let events = api.events(&run);
    let [request] = &of_type(&events, "run.approval.requested")[..] else { panic!("one question") };
    assert_eq!(request["request"]["kind"], "shell");

    // Where nobody can be asked at the terminal and its rules say no, it goes on, and its last word is the output.
    api.post("/policy/rules", &json!({"effect": "deny", "kind": "shell"}));
    let arguments = ["run", task, "--agent", "mine", "--keep", "--workspace", native.yard.place()];
    let ran = native.yard.home.run(arguments.into_iter().chain(["--output", "text"]));
    assert_eq!(ran.exit, 0, "{} {}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("The tool was called."), "{}", ran.stdout);
}
