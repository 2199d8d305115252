//! The control plane for an MCP client, through `runyard mcp`: runs as tasks and resources, approvals answered by people and by
//! nobody else, and a relay that ends nothing in silence.
//!
//! clause: J01
//! clause: J06
//! clause: A20
//! clause: A22

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};

use rustix::process::Signal;
use serde_json::{Value, json};

use support::api::{Api, Scripted, Yard};
use support::spy::Spy;
use support::{Home, Hub, PATIENCE, eventually};

const NEWER: &str = "2026-07-28";
const OLDER: &str = "2025-11-25";
const APPROVALS: &str = "runyard://approvals";
const UPDATED: &str = "notifications/resources/updated";

/// Asks once, then ends.
const WAITS: &str = "[[turn]]\n[[turn.step]]\nshell = \"true\"\n";
/// Leaves its token for the test, then waits for another answer.
const SLY: &str = r#"
[[turn]]
[[turn.step]]
shell = 'printf %s "$RUNYARD_RUN_TOKEN" > left.txt'
[[turn.step]]
shell = "true"
"#;

/// Changes a file, which is asked about at its end.
const WRITES: &str = "[[turn]]\n[[turn.step]]\nwrite = \"note.md\"\ncontent = \"a note\\n\"\n";

fn yard() -> Yard {
    let agents = [
        Scripted { name: "waits", profile: "", script: WAITS },
        Scripted { name: "sly", profile: "", script: SLY },
        Scripted { name: "writes", profile: "", script: WRITES },
    ];
    Yard::new("", &agents)
}

/// An MCP client that started `runyard mcp`.
struct Client {
    relay: Child,
    lines: Receiver<String>,
    /// What came without being asked for.
    came: Vec<Value>,
    next: u64,
    /// What the person in front of it says when they are asked to confirm.
    says: &'static str,
}

impl Client {
    fn start(home: &Home, environment: &[(&str, &str)]) -> Self {
        Client::start_with(home, environment, Stdio::inherit())
    }

    fn start_with(home: &Home, environment: &[(&str, &str)], stderr: Stdio) -> Self {
        let mut command = home.command(["mcp"]);
        command.envs(environment.iter().copied()).stdin(Stdio::piped()).stderr(stderr);
        let mut relay = command.spawn().unwrap();
        let stdout = BufReader::new(relay.stdout.take().unwrap());
        let (said, lines) = channel();
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| said.send(line)));
        Client { relay, lines, came: Vec::new(), next: 0, says: "accept" }
    }

    /// With somebody's token.
    fn of(home: &Home, hub: &Hub, api: &Api) -> Self {
        Client::start(home, &[("RUNYARD_URL", &hub.url), ("RUNYARD_TOKEN", api.token.trim())])
    }

    fn line(&mut self, text: &str) {
        writeln!(self.relay.stdin.as_mut().unwrap(), "{text}").unwrap();
    }

    /// The next message, which is nothing but JSON-RPC.
    #[track_caller]
    fn message(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("the relay says something");
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        message
    }

    fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let (id, params) = (self.next, params);
        self.line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        id
    }

    #[track_caller]
    fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.message();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            if message["method"] == "elicitation/create" {
                let said = json!({"jsonrpc": "2.0", "id": message["id"], "result": self.confirmation()});
                self.line(&said.to_string());
                continue;
            }
            self.came.push(message);
        }
    }

    fn confirmation(&self) -> Value {
        match self.says {
            "accept" => json!({"action": "accept", "content": {"confirm": true}}),
            other => json!({ "action": other }),
        }
    }

    fn older(mut self) -> Self {
        self.begin_session();
        self
    }

    /// Begins a session of the older wire.
    fn begin_session(&mut self) {
        let about = json!({"protocolVersion": OLDER, "capabilities": {"elicitation": {}},
                           "clientInfo": {"name": "test", "version": "1"}});
        let id = self.ask("initialize", about);
        let answer = self.answer(id);
        assert_eq!(answer["result"]["protocolVersion"], OLDER, "{answer}");
        self.line(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
    }

    /// A request on the older wire.
    #[track_caller]
    fn old(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    fn ask_new(&mut self, method: &str, mut params: Value) -> u64 {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": NEWER,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities":
                {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
        });
        self.ask(method, params)
    }

    /// A request on the newer wire, by a client that can follow tasks and fill in forms.
    #[track_caller]
    fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask_new(method, params);
        self.answer(id)
    }

    #[track_caller]
    fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let call = json!({"name": name, "arguments": arguments});
        let mut answer = self.call("tools/call", call.clone());
        if answer["result"]["resultType"] == "input_required" {
            let mut again = call;
            again["requestState"] = answer["result"]["requestState"].take();
            again["inputResponses"] = json!({"io.runyard/confirm": self.confirmation()});
            answer = self.call("tools/call", again);
        }
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// The code with which a tool refuses.
    #[track_caller]
    fn refused(&mut self, name: &str, arguments: Value) -> String {
        let result = self.tool(name, arguments);
        assert_eq!(result["isError"], true, "{result}");
        assert!(result["structuredContent"].is_null(), "{result}");
        result["_meta"]["io.runyard/envelope"]["error"]["code"].as_str().unwrap().to_owned()
    }

    /// The resource at this address.
    #[track_caller]
    fn read(&mut self, uri: &str) -> Value {
        let answer = self.call("resources/read", json!({ "uri": uri }));
        let text = answer["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        serde_json::from_str(text).unwrap()
    }

    /// Waits for a notification about this address.
    #[track_caller]
    fn hears(&mut self, uri: &str) {
        let about = |message: &Value| message["method"] == UPDATED && message["params"]["uri"] == uri;
        while !self.came.iter().any(about) {
            let message = self.message();
            self.came.push(message);
        }
        self.came.retain(|message| !about(message));
    }

    /// Begins a run as a task; the task's id.
    #[track_caller]
    fn begin(&mut self, agent: &str, place: &str) -> String {
        let run = json!({"task": "look around", "agent": agent, "workspace": place});
        let task = self.tool("run_create", run);
        assert_eq!(task["resultType"], "task", "{task}");
        task["taskId"].as_str().unwrap().to_owned()
    }

    /// Waits until the task has this status.
    #[track_caller]
    fn until(&mut self, task: &str, status: &str) -> Value {
        eventually(&format!("the task is {status}"), || {
            let found = self.call("tasks/get", json!({ "taskId": task }));
            let over =
                ["completed", "failed", "cancelled"].iter().any(|over| found["result"]["status"] == *over);
            let reached = found["result"]["status"] == status;
            assert!(reached || !over, "{found}");
            reached.then(|| found["result"].clone())
        })
    }

    fn answers(&mut self, task: &str, key: &str, answer: Value) -> Value {
        self.call("tasks/update", json!({"taskId": task, "inputResponses": {key: answer}}))
    }

    /// Says no more, and waits for the relay's end.
    fn ends(mut self) -> Option<i32> {
        drop(self.relay.stdin.take());
        self.relay.wait().unwrap().code()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.relay.kill();
        let _ = self.relay.wait();
    }
}

fn form(decision: &str) -> Value {
    json!({"action": "accept", "content": {"decision": decision, "reason": "I looked"}})
}

#[test]
fn j01_a_run_is_a_task_and_a_persons_answer_to_its_question_lets_it_go_on() {
    let yard = yard();
    let (hub, owner) = yard.up();
    let mut client = Client::of(&yard.home, &hub, &owner);
    let task = client.begin("waits", yard.place());
    let asked = client.until(&task, "input_required");
    let requests = asked["inputRequests"].as_object().unwrap_or_else(|| panic!("{asked}"));
    let (key, request) = requests.iter().next().unwrap();
    let message = request["params"]["message"].as_str().unwrap();
    assert!(key.starts_with("approval:apr_") && message.contains("command: true"), "{asked}");
    let approvals = client.read(APPROVALS);
    let approval = approvals["approvals"][0].clone();
    let (id, run) = (approval["id"].as_str().unwrap(), approval["runId"].as_str().unwrap());
    assert_eq!(*key, format!("approval:{id}:{}", approval["digest"].as_str().unwrap()));

    let declined = client.answers(&task, key, json!({"action": "decline"}));
    assert!(declined["error"].is_null(), "{declined}");
    let stale = client.answers(&task, &format!("approval:{id}:other"), form("approve"));
    assert!(stale["error"].is_object(), "an answer to other content is none: {stale}");
    assert_eq!(client.read(&format!("runyard://approvals/{id}"))["approval"]["state"], "open");

    let answered = client.answers(&task, key, form("approve"));
    assert!(answered["error"].is_null(), "{answered}");
    let done = client.until(&task, "completed");
    assert_eq!(done["result"]["structuredContent"]["run"]["state"], "completed", "{done}");
    assert_eq!(done["result"]["structuredContent"]["redacted"], false, "{done}");
    let decided = client.read(&format!("runyard://approvals/{id}"))["approval"].clone();
    assert_eq!([&decided["state"], &decided["decidedBy"]["id"]], ["approved", "owner"], "{decided}");
    assert_eq!(decided["decisionReason"], "I looked", "{decided}");
    let events = client.read(&format!("runyard://runs/{run}/events"))["events"].clone();
    assert_eq!(events.as_array().unwrap(), &owner.events(run), "what is read is what is stored");
    let prompt = client.call("prompts/get", json!({"name": "review_run", "arguments": {"run": run}}));
    let prompt =
        prompt["result"]["messages"][0]["content"]["text"].as_str().unwrap_or_else(|| panic!("{prompt}"));
    assert!(prompt.contains("| task: look around") && prompt.contains("approved by owner"), "{prompt}");
    let prompt = client.call("prompts/get", json!({"name": "summarise_failures"}));
    assert!(prompt["result"]["messages"][0]["content"]["text"].is_string(), "{prompt}");
    assert_eq!(client.ends(), Some(0));
}

#[test]
fn j07_changes_are_shown_in_the_question_before_they_reach_a_persons_files() {
    let yard = yard();
    let (hub, owner) = yard.up();
    let mut client = Client::of(&yard.home, &hub, &owner);
    let task = client.begin("writes", yard.place());
    let file = yard.workspace.path().join("note.md");
    // Whatever it asks before, the last question is about its changes.
    let (key, message) = eventually("the changes are asked about", || {
        let asked = client.until(&task, "input_required");
        let (key, request) = asked["inputRequests"].as_object()?.iter().next()?;
        let message = request["params"]["message"].as_str()?.to_owned();
        if !message.starts_with("Apply") {
            client.answers(&task, key, form("approve"));
            return None;
        }
        Some((key.clone(), message))
    });
    assert!(message.contains("added note.md") && message.contains("+a note"), "{message}");
    assert!(!file.exists());
    assert!(client.answers(&task, &key, form("approve"))["error"].is_null());
    let done = client.until(&task, "completed");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "a note\n");
    let run = done["result"]["structuredContent"]["run"]["id"].as_str().unwrap();
    let diff = client.read(&format!("runyard://runs/{run}/diff"));
    assert_eq!([&diff["files"][0]["path"], &diff["diff"]["applyStatus"]], ["note.md", "applied"], "{diff}");
}

#[test]
fn j01_a_task_that_is_cancelled_is_a_run_that_is_and_a_no_is_a_rejection() {
    let yard = yard();
    let (hub, owner) = yard.up();
    let mut client = Client::of(&yard.home, &hub, &owner);
    let task = client.begin("waits", yard.place());
    let asked = client.until(&task, "input_required");
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let approval = owner.get("/approvals")["approvals"][0].clone();
    assert!(client.answers(&task, &key, form("reject"))["error"].is_null());
    let decided = owner.get(&format!("/approvals/{}", approval["id"].as_str().unwrap()));
    assert_eq!(decided["approval"]["state"], "rejected", "{decided}");

    let task = client.begin("waits", yard.place());
    client.until(&task, "input_required");
    let cancelled = client.call("tasks/cancel", json!({ "taskId": task }));
    assert!(cancelled["error"].is_null(), "{cancelled}");
    client.until(&task, "cancelled");
}

#[test]
fn j01_an_approval_is_heard_of_and_answered_on_the_older_wire() {
    let yard = yard();
    let (hub, owner) = yard.up();
    let mut client = Client::of(&yard.home, &hub, &owner).older();
    let subscribed = client.old("resources/subscribe", json!({ "uri": APPROVALS }));
    assert!(subscribed["error"].is_null(), "{subscribed}");
    let run = json!({"task": "look around", "agent": "waits", "workspace": yard.place()});
    let made = client.old("tools/call", json!({"name": "run_create", "arguments": run}));
    let run = made["result"]["structuredContent"]["run"]["id"]
        .as_str()
        .unwrap_or_else(|| panic!("{made}"))
        .to_owned();
    client.hears(APPROVALS);
    let read = client.old("resources/read", json!({ "uri": APPROVALS }));
    let read: Value = serde_json::from_str(read["result"]["contents"][0]["text"].as_str().unwrap()).unwrap();
    let approval = &read["approvals"][0];
    assert_eq!(approval["runId"], run.as_str(), "{read}");
    let yes = json!({"id": approval["id"], "decision": "approve", "digest": approval["digest"]});
    // What a model asks for is no decision: the person in front of the client is asked.
    client.says = "decline";
    let declined = client.old("tools/call", json!({"name": "approval_resolve", "arguments": yes}));
    let code = &declined["result"]["_meta"]["io.runyard/envelope"]["error"]["code"];
    assert_eq!(code, "CONFIRMATION_REQUIRED", "{declined}");
    client.says = "accept";
    let answered = client.old("tools/call", json!({"name": "approval_resolve", "arguments": yes}));
    assert_eq!(answered["result"]["structuredContent"]["approval"]["state"], "approved", "{answered}");
    client.hears(APPROVALS);
    owner.until(&run, "completed");
    assert_eq!(client.ends(), Some(0));
}

#[test]
fn j01_an_approval_is_heard_of_on_the_newer_wire() {
    let yard = yard();
    let (hub, owner) = yard.up();
    let mut client = Client::of(&yard.home, &hub, &owner);
    let listening = client
        .ask_new("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": [APPROVALS]}}));
    let first = client.message();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    owner.start("waits", yard.place());
    client.hears(APPROVALS);
    // To cancel it is to close its stream: nothing more is said of it, and what comes next is answered.
    client.line(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": listening}})
            .to_string(),
    );
    assert!(client.call("server/discover", json!({}))["result"].is_object());
    assert!(client.came.iter().all(|message| message["id"] != listening), "{:?}", client.came);
}

#[test]
fn j06_a_runs_token_decides_nothing_over_mcp_and_sees_no_other_run() {
    let yard = yard();
    let (hub, owner) = yard.up();
    let mut person = Client::of(&yard.home, &hub, &owner);
    let task = person.begin("waits", yard.place());
    person.until(&task, "input_required");
    let other_asked = owner.get("/approvals")["approvals"][0].clone();
    let (other, other_approval) =
        (other_asked["runId"].as_str().unwrap(), other_asked["id"].as_str().unwrap());

    let own = owner.start("sly", yard.place());
    let first = owner.asked(&own, &[]);
    owner.approve(&first);
    let asked = owner.asked(&own, &[first["id"].as_str().unwrap()]);
    let left = yard.home.path("edge").join("runs").join(&own).join("checkout").join("left.txt");
    let token = std::fs::read_to_string(left).unwrap();
    // The owner's token is there too, and does not count.
    let mut agent = Client::start(
        &yard.home,
        &[
            ("RUNYARD_URL", &hub.url),
            ("RUNYARD_RUN_ID", &own),
            ("RUNYARD_RUN_TOKEN", &token),
            ("RUNYARD_TOKEN", owner.token.trim()),
        ],
    );
    let tools = agent.call("tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<&str> =
        tools.as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(names.contains(&"run_show") && !names.contains(&"approval_resolve"), "{names:?}");
    assert_eq!(agent.read(&format!("runyard://runs/{own}"))["run"]["id"], own.as_str());

    let denied = "AUTHORIZATION_ERROR";
    for approval in [&asked, &other_asked] {
        let yes = json!({"id": approval["id"], "decision": "approve", "digest": approval["digest"]});
        assert_eq!(agent.refused("approval_resolve", yes), denied);
    }
    let more = json!({"task": "more", "agent": "sly", "workspace": yard.place()});
    assert_eq!(agent.refused("run_create", more), denied, "no task begins");
    assert_eq!(agent.refused("run_show", json!({ "id": other })), "NOT_FOUND");
    for uri in [
        format!("runyard://runs/{other}"),
        format!("runyard://runs/{other}/events"),
        format!("runyard://runs/{other}/diff"),
        format!("runyard://approvals/{other_approval}"),
    ] {
        let answer = agent.call("resources/read", json!({ "uri": uri }));
        assert_eq!(answer["error"]["message"], "There is no such resource.", "{uri}: {answer}");
    }
    assert_eq!(agent.read("runyard://runs")["runs"].as_array().unwrap().len(), 1);
    for (method, more) in [
        ("tasks/get", json!({})),
        ("tasks/update", json!({"inputResponses": {}})),
        ("tasks/cancel", json!({})),
    ] {
        let mut params = more;
        params["taskId"] = task.clone().into();
        let answer = agent.call(method, params);
        assert_eq!(answer["error"]["message"], "There is no such task.", "{method}: {answer}");
    }
    let prompt = agent.call("prompts/get", json!({"name": "review_run", "arguments": {"run": other}}));
    assert!(prompt["error"].is_object(), "{prompt}");
    let prompt = agent.call("prompts/get", json!({"name": "review_run", "arguments": {"run": own}}));
    assert!(prompt["result"].is_object(), "{prompt}");
    let mut watching = agent;
    let listening = json!({"notifications": {"resourceSubscriptions": [format!("runyard://runs/{other}")]}});
    let refused = watching.call("subscriptions/listen", listening);
    assert!(refused["error"].is_object(), "nobody watches what they may not read: {refused}");

    assert_eq!(watching.refused("secret_read", json!({})), "ACTION_NOT_FOUND");
    for uri in ["runyard://secrets", "file:///etc/passwd"] {
        assert!(watching.call("resources/read", json!({ "uri": uri }))["error"].is_object());
    }

    check_recorded(&owner, &own);
    assert_eq!(owner.run(&own)["state"], "needs_approval", "nothing of it had an effect");
    assert_eq!(owner.run(other)["state"], "needs_approval");
}

/// What the agent was refused stands in the audit, as its own.
#[track_caller]
fn check_recorded(owner: &Api, own: &str) {
    let refused = owner.audit("audit.refused");
    for action in [
        "approval_resolve",
        "run_create",
        "run_show",
        "run_events",
        "run_diff",
        "approval_show",
        "review_run",
        "POST /mcp tools/call of an unknown tool",
        "POST /mcp of an unknown resource",
    ] {
        let entry = refused.iter().find(|entry| entry["what"]["action"] == action);
        let entry = entry.unwrap_or_else(|| panic!("{action} is not in the audit: {refused:?}"));
        assert_eq!([&entry["by"]["kind"], &entry["by"]["runId"]], ["agent", own], "{entry}");
    }
}

#[test]
fn a22_a_viewers_token_reads_and_decides_nothing() {
    let yard = yard();
    let (hub, owner) = yard.up();
    let run = owner.start("waits", yard.place());
    let asked = owner.asked(&run, &[]);
    let mut viewer = Client::of(&yard.home, &hub, &owner.person("vera", "viewer"));
    assert_eq!(viewer.read(APPROVALS)["approvals"][0]["id"], asked["id"]);
    let yes = json!({"id": asked["id"], "decision": "approve", "digest": asked["digest"]});
    assert_eq!(viewer.refused("approval_resolve", yes), "AUTHORIZATION_ERROR");
    let run_input = json!({"task": "x", "agent": "waits", "workspace": yard.place()});
    assert_eq!(viewer.refused("run_create", run_input), "AUTHORIZATION_ERROR");
    assert_eq!(owner.run(&run)["state"], "needs_approval");
}

#[test]
fn a_hub_that_dies_while_it_is_relayed_to_gives_errors_and_no_silence() {
    let yard = yard();
    let (hub, owner) = yard.up();
    let mut client = Client::of(&yard.home, &hub, &owner).older();
    assert!(client.old("tools/list", json!({}))["result"].is_object());
    let listening = client
        .ask_new("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": [APPROVALS]}}));
    while !client.came.iter().any(|message| message["method"] == "notifications/subscriptions/acknowledged") {
        let message = client.message();
        client.came.push(message);
    }
    hub.signal(Signal::KILL);
    let broken = client.answer(listening);
    assert!(broken["error"]["code"].is_i64(), "what was running: {broken}");
    hub.ended();
    for answer in [client.old("tools/list", json!({})), client.call("tools/list", json!({}))] {
        let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(message.starts_with("The hub cannot be talked to"), "{answer}");
    }
    assert_eq!(client.ends(), Some(0));
}

#[test]
fn without_a_hub_one_runs_as_long_as_the_client_is_there() {
    let home = Home::new();
    let mut client = Client::start(&home, &[]).older();
    client.line("{ this is not JSON");
    assert_eq!(client.message()["error"]["code"], -32700);
    client.line("[]");
    assert_eq!(client.message()["error"]["code"], -32600);
    client.line(&"x".repeat(17 * 1024 * 1024));
    assert_eq!(client.message()["error"]["code"], -32600);
    // What the hub takes no more is refused under its own id, so that nobody waits for it.
    let large = json!({"name": "task_create", "arguments": {"title": "x".repeat(3 * 1024 * 1024)}});
    assert_eq!(client.old("tools/call", large)["error"]["code"], -32600);
    let answer = client.old("tools/call", json!({"name": "run_list", "arguments": {}}));
    assert_eq!(answer["result"]["structuredContent"]["runs"], json!([]), "{answer}");
    // Requests are answered as they end, each under its own id.
    let ids: Vec<u64> = (0..20).map(|_| client.ask("tools/call", json!({"name": "health"}))).collect();
    let mut answered: Vec<u64> = ids.iter().map(|_| client.message()["id"].as_u64().unwrap()).collect();
    answered.sort_unstable();
    assert_eq!(answered, ids);
    assert!(home.path("hub.json").exists());
    assert_eq!(client.ends(), Some(0));
    assert!(!home.path("hub.json").exists(), "the hub went with its client");
}

#[test]
fn j01_a_client_goes_on_and_hears_what_it_watches_when_the_hub_that_it_used_goes_with_another_client() {
    let yard = yard();
    let mut first = Client::start(&yard.home, &[]).older();
    assert!(first.old("tools/list", json!({}))["result"].is_object());
    let mut second = Client::start(&yard.home, &[]).older();
    let subscribed = second.old("resources/subscribe", json!({ "uri": APPROVALS }));
    assert!(subscribed["error"].is_null(), "{subscribed}");
    assert_eq!(first.ends(), Some(0));
    // It has a hub of its own by now, and is still the same session to its client.
    let place = json!({"path": yard.place()});
    let added = second.old("tools/call", json!({"name": "workspace_add", "arguments": place}));
    assert!(added["result"]["structuredContent"]["workspace"].is_object(), "{added}");
    let run = json!({"task": "look around", "agent": "waits", "workspace": yard.place()});
    let made = second.old("tools/call", json!({"name": "run_create", "arguments": run}));
    assert!(made["result"]["structuredContent"]["run"].is_object(), "{made}");
    second.hears(APPROVALS);
    assert_eq!(second.ends(), Some(0));
}

#[test]
fn a20_a_session_that_the_hub_dropped_is_made_again_and_its_client_hears_nothing_of_it() {
    let yard = yard();
    let (hub, owner) = yard.up();
    let spy = Spy::before(&hub);
    let token = owner.token.trim();
    let mut client =
        Client::start(&yard.home, &[("RUNYARD_URL", &spy.url), ("RUNYARD_TOKEN", token)]).older();
    let subscribed = client.old("resources/subscribe", json!({ "uri": APPROVALS }));
    assert!(subscribed["error"].is_null(), "{subscribed}");
    spy.end_session(&hub, token);
    let answer = client.old("tools/list", json!({}));
    assert!(answer["result"].is_object(), "{answer}");
    // Also where only the relay itself listens.
    spy.sees("another session", |seen| seen.sessions.len() == 2 && seen.begun("GET") >= 2);
    spy.end_session(&hub, token);
    spy.sees("a third session", |seen| seen.sessions.len() == 3 && seen.begun("GET") >= 3);
    owner.start("waits", yard.place());
    client.hears(APPROVALS);
    assert_eq!(client.ends(), Some(0));
}

#[test]
fn a20_a_client_that_begins_anew_ends_the_session_that_it_had_and_what_listened_to_it() {
    let yard = yard();
    let (hub, owner) = yard.up();
    let spy = Spy::before(&hub);
    let token = owner.token.trim();
    let mut client =
        Client::start(&yard.home, &[("RUNYARD_URL", &spy.url), ("RUNYARD_TOKEN", token)]).older();
    spy.sees("the relay listens", |seen| seen.begun("GET") == 1);
    client.begin_session();
    spy.sees("one listens, and the other one does no more", |seen| {
        [seen.begun("DELETE"), seen.begun("GET"), seen.ended("GET")] == [1, 2, 1]
    });
    assert!(client.old("tools/list", json!({}))["result"].is_object());
    assert_eq!(client.ends(), Some(0));
    spy.sees("both sessions are over", |seen| seen.begun("DELETE") == 2);
}

#[test]
fn a_relay_that_nobody_asks_anything_is_not_in_the_way_of_the_next_hub() {
    let yard = yard();
    let hub = yard.home.up();
    let mut client = Client::start_with(&yard.home, &[("RUNYARD_LOG", "debug")], Stdio::piped());
    let stderr = BufReader::new(client.relay.stderr.take().unwrap());
    let (logged, log) = channel();
    std::thread::spawn(move || {
        // It is read to its end, whoever still wants to know.
        stderr.lines().map_while(Result::ok).for_each(|line| drop(logged.send(line)));
    });
    client.begin_session();
    assert!(client.old("tools/list", json!({}))["result"].is_object());
    hub.signal(Signal::INT);
    hub.ended();
    // It notices, and leaves it at that.
    while !log.recv_timeout(PATIENCE).expect("the relay looks for a hub").contains("no hub runs") {}
    assert!(!yard.home.path("hub.json").exists());
    let (hub, owner) = yard.up();
    let answer = client.old("tools/call", json!({"name": "workspace_list", "arguments": {}}));
    assert_eq!(answer["result"]["structuredContent"], owner.get("/workspaces"), "{answer}");
    let told: Value =
        serde_json::from_str(&std::fs::read_to_string(yard.home.path("hub.json")).unwrap()).unwrap();
    assert_eq!([&told["url"], &told["pid"]], [&json!(hub.url), &json!(hub.pid())], "there is one hub");
    assert_eq!(client.ends(), Some(0));
    assert!(yard.home.path("hub.json").exists(), "it is not the relay's");
}

#[test]
fn what_was_asked_before_the_input_ends_is_answered() {
    let home = Home::new();
    let mut client = Client::start(&home, &[]).older();
    let asked: Vec<u64> = (0..20).map(|_| client.ask("tools/list", json!({}))).collect();
    // It never ends by itself, and is not waited for.
    client.ask_new("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": [APPROVALS]}}));
    drop(client.relay.stdin.take());
    let said: Vec<Value> = client.lines.iter().map(|line| serde_json::from_str(&line).unwrap()).collect();
    let answers = said.iter().filter(|message| message["result"]["tools"].is_array());
    let mut answered: Vec<u64> = answers.map(|answer| answer["id"].as_u64().unwrap()).collect();
    answered.sort_unstable();
    assert_eq!(answered, asked);
    assert_eq!(client.relay.wait().unwrap().code(), Some(0));
}

#[test]
fn what_a_clients_configuration_needs_is_printed() {
    let home = Home::new();
    let ran = home.run(["mcp", "--print-config"]);
    let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
    let server = &printed["mcpServers"]["runyard"];
    assert_eq!(server["args"], json!(["mcp"]));
    assert_eq!(server["command"], env!("CARGO_BIN_EXE_runyard"));
    assert_eq!(server["env"]["RUNYARD_HOME"], home.path("").to_str().unwrap());
    let outside = home.command(["mcp"]).env("RUNYARD_RUN_ID", "run_1").output().unwrap();
    assert!(outside.stdout.is_empty() && !outside.status.success(), "{outside:?}");
}
