//! A hub with scripted agents, and people who speak HTTP with it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Barrier;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Home, Hub, PATIENCE, eventually};

/// A data directory with agents that are scripts, and a directory to work on.
pub(crate) struct Yard {
    pub(crate) home: Home,
    pub(crate) workspace: TempDir,
    _scripts: TempDir,
}

/// An agent that is a script: its name, what else its profile says, and the script.
pub(crate) struct Scripted<'a> {
    pub(crate) name: &'a str,
    pub(crate) profile: &'a str,
    pub(crate) script: &'a str,
}

impl Yard {
    pub(crate) fn new(configuration: &str, agents: &[Scripted<'_>]) -> Self {
        let (scripts, workspace) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(workspace.path().join("README.md"), "A place to look around in.\n").unwrap();
        let mut text = configuration.to_owned();
        for Scripted { name, profile, script } in agents {
            let file = scripts.path().join(format!("{name}.toml"));
            std::fs::write(&file, script).unwrap();
            text.push_str(&format!(
                "\n[backend.{name}]\nkind = \"scripted\"\nsettings.scriptFile = {:?}\n\n[agent.{name}]\nbackend = \"{name}\"\n{profile}\n",
                file.to_str().unwrap()
            ));
        }
        Yard { home: Home::with(&text), workspace, _scripts: scripts }
    }

    pub(crate) fn place(&self) -> &str {
        self.workspace.path().to_str().unwrap()
    }

    /// Starts a hub, with the workspace on its list, and gives its owner's way in.
    pub(crate) fn up(&self) -> (Hub, Api) {
        let hub = self.home.up();
        let api = Api::owner(&self.home, &hub);
        api.add_workspace(self.workspace.path());
        (hub, api)
    }
}

/// Somebody with a token.
#[derive(Clone)]
pub(crate) struct Api {
    address: String,
    pub(crate) token: String,
}

impl Api {
    pub(crate) fn owner(home: &Home, hub: &Hub) -> Self {
        let token = std::fs::read_to_string(home.path("token")).unwrap();
        Api { address: hub.address().to_owned(), token }
    }

    /// Somebody else.
    pub(crate) fn with_token(&self, token: &str) -> Self {
        Api { address: self.address.clone(), token: token.to_owned() }
    }

    /// A person with a token of their own.
    pub(crate) fn person(&self, name: &str, role: &str) -> Self {
        let made = self.post("/tokens", &json!({"name": name, "role": role}));
        self.with_token(made["text"].as_str().unwrap_or_else(|| panic!("{made}")))
    }

    fn head(&self, method: &str, path: &str, more: &str) -> String {
        let Api { address, token } = self;
        format!(
            "{method} /api/v1{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n{more}\r\n"
        )
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    fn posting(&self, path: &str, body: &Value) -> String {
        let body = body.to_string();
        let length = body.len();
        let headers = format!("Content-Type: application/json\r\nContent-Length: {length}\r\n");
        self.head("POST", path, &headers) + &body
    }

    fn answer(mut stream: TcpStream) -> (u16, String) {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer}"));
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// The status and the body, whatever they are.
    pub(crate) fn send(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, String) {
        let mut stream = self.connect();
        let request = match body {
            Some(body) => self.posting(path, body).replacen("POST", method, 1),
            None => self.head(method, path, ""),
        };
        stream.write_all(request.as_bytes()).unwrap();
        Api::answer(stream)
    }

    /// Sends all of a request but its last byte, and that one when the others are ready too.
    pub(crate) fn post_together(&self, path: &str, body: &Value, ready: &Barrier) -> (u16, Value) {
        let mut stream = self.connect();
        let request = self.posting(path, body);
        let (first, last) = request.as_bytes().split_at(request.len() - 1);
        stream.write_all(first).unwrap();
        ready.wait();
        stream.write_all(last).unwrap();
        let (status, body) = Api::answer(stream);
        (status, serde_json::from_str(&body).unwrap())
    }

    fn data(status: u16, body: &str, path: &str) -> Value {
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str::<Value>(body).unwrap()["data"].take()
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Value {
        let (status, body) = self.send("GET", path, None);
        Api::data(status, &body, path)
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &Value) -> Value {
        let (status, body) = self.send("POST", path, Some(body));
        Api::data(status, &body, path)
    }

    pub(crate) fn add_workspace(&self, place: &Path) -> String {
        let made = self.post("/workspaces", &json!({"path": place.to_str().unwrap()}));
        made["workspace"]["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
    }

    /// Starts a run and gives its id.
    #[track_caller]
    pub(crate) fn start(&self, agent: &str, place: &str) -> String {
        let made = self.post("/runs", &json!({"task": "look around", "agent": agent, "workspace": place}));
        made["run"]["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
    }

    #[track_caller]
    pub(crate) fn run(&self, run: &str) -> Value {
        self.get(&format!("/runs/{run}"))["run"].clone()
    }

    /// Waits until the run is in this state. What it changed is applied where it is to complete.
    #[track_caller]
    pub(crate) fn until(&self, run: &str, state: &str) -> Value {
        let found = eventually(&format!("{run} is {state} or at its end"), || {
            let found = self.run(run);
            let now = found["state"].as_str().unwrap();
            if (now, state) == ("needs_approval", "completed") {
                let open = self.get(&format!("/approvals?run={run}"));
                let open = open["approvals"].as_array().unwrap().iter();
                open.filter(|open| open["request"]["kind"] == "apply").for_each(|open| self.approve(open));
            }
            (now == state || ["completed", "failed", "cancelled"].contains(&now)).then_some(found)
        });
        assert_eq!(found["state"], state, "{found}");
        found
    }

    /// Waits for something that the run asks, other than these.
    #[track_caller]
    pub(crate) fn asked(&self, run: &str, before: &[&str]) -> Value {
        eventually(&format!("{run} asks"), || {
            let open = self.get(&format!("/approvals?run={run}"));
            let mut open = open["approvals"].as_array().unwrap().iter();
            open.find(|one| !before.contains(&one["id"].as_str().unwrap())).cloned()
        })
    }

    /// Says yes.
    #[track_caller]
    pub(crate) fn approve(&self, approval: &Value) {
        let path = format!("/approvals/{}/resolve", approval["id"].as_str().unwrap());
        self.post(&path, &json!({"decision": "approve", "digest": approval["digest"]}));
    }

    /// All events of the run.
    #[track_caller]
    pub(crate) fn events(&self, run: &str) -> Vec<Value> {
        let mut events: Vec<Value> = Vec::new();
        loop {
            let page = self.get(&format!("/runs/{run}/events?after={}&limit=500", events.len()));
            events.extend(page["events"].as_array().unwrap().iter().cloned());
            if page["next"].is_null() {
                return events;
            }
        }
    }

    /// All entries of the audit of this type.
    #[track_caller]
    pub(crate) fn audit(&self, kind: &str) -> Vec<Value> {
        let (mut found, mut after) = (Vec::new(), 0);
        loop {
            let page = self.get(&format!("/audit?after={after}&limit=400"));
            let entries = page["entries"].as_array().unwrap();
            found.extend(entries.iter().filter(|entry| entry["type"] == kind).cloned());
            match page["next"].as_u64() {
                Some(next) => after = next,
                None => return found,
            }
        }
    }

    /// Follows a run's events from a place on.
    pub(crate) fn stream(&self, run: &str, after: Option<u64>) -> Stream {
        let last = after.map(|after| format!("Last-Event-ID: {after}\r\n")).unwrap_or_default();
        self.follow(&format!("/runs/{run}/stream"), &last)
    }

    /// Follows what changes over the whole hub.
    pub(crate) fn hub_stream(&self) -> Stream {
        self.follow("/stream", "")
    }

    fn follow(&self, path: &str, more: &str) -> Stream {
        let mut stream = self.connect();
        stream.write_all(self.head("GET", path, more).as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).unwrap();
        }
        Stream { status, reader, chunk: Vec::new() }
    }
}

/// An event stream, as its bytes come.
pub(crate) struct Stream {
    pub(crate) status: u16,
    reader: BufReader<TcpStream>,
    chunk: Vec<u8>,
}

/// One message of a stream: its id, its type and its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) id: u64,
    pub(crate) event: String,
    pub(crate) data: String,
}

impl Stream {
    /// The next message; nothing at the end of the stream.
    pub(crate) fn next(&mut self) -> Option<Message> {
        self.block().map(|block| read_message(&block))
    }

    /// What the hub's stream tells next.
    pub(crate) fn changed(&mut self) -> Value {
        let block = self.block().unwrap();
        let data = block.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        serde_json::from_str(data).unwrap()
    }

    fn block(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.chunk.windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = self.chunk.drain(..end + 2).collect();
                let block = String::from_utf8(block).unwrap();
                if block.starts_with(':') {
                    continue;
                }
                return Some(block);
            }
            if !self.more() {
                assert!(self.chunk.is_empty(), "half a message: {}", String::from_utf8_lossy(&self.chunk));
                return None;
            }
        }
    }

    /// All that comes until the stream ends.
    pub(crate) fn rest(mut self) -> Vec<Message> {
        std::iter::from_fn(move || self.next()).collect()
    }

    /// Takes one chunk of the body; false at its end.
    fn more(&mut self) -> bool {
        let mut line = String::new();
        if self.reader.read_line(&mut line).unwrap() == 0 {
            return false;
        }
        let length = usize::from_str_radix(line.trim_end(), 16).unwrap();
        let mut chunk = vec![0; length + 2];
        self.reader.read_exact(&mut chunk).unwrap();
        chunk.truncate(length);
        self.chunk.extend(chunk);
        length > 0
    }
}

fn read_message(block: &str) -> Message {
    let lines: Vec<&str> = block.trim_end_matches('\n').split('\n').collect();
    let [id, event, data] = lines.as_slice() else { panic!("not a message: {block}") };
    Message {
        id: id.strip_prefix("id: ").unwrap().parse().unwrap(),
        event: event.strip_prefix("event: ").unwrap().to_owned(),
        data: data.strip_prefix("data: ").unwrap().to_owned(),
    }
}

/// What is left of the processes of a run: those that have its id in their environment, and those that work in its directory, since an
/// agent's commands need not have it.
pub(crate) fn left_of(run: &str) -> Vec<String> {
    let marker = format!("RUNYARD_RUN_ID={run}");
    processes(|process| {
        let directory = std::fs::read_link(process.join("cwd")).unwrap_or_default();
        has_in_environment(process, &marker) || directory.components().any(|part| part.as_os_str() == run)
    })
}

/// What is left of what a hub started for itself: `git`, and what that one started.
pub(crate) fn left_by(hub: u32) -> Vec<String> {
    marked(&format!("RUNYARD_STARTED_BY={hub}\0"))
}

/// The processes that have this in their environment.
pub(crate) fn marked(marker: &str) -> Vec<String> {
    processes(|process| has_in_environment(process, marker))
}

fn has_in_environment(process: &Path, marker: &str) -> bool {
    let environ = std::fs::read(process.join("environ")).unwrap_or_default();
    environ.windows(marker.len()).any(|window| window == marker.as_bytes())
}

fn processes(wanted: impl Fn(&Path) -> bool) -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| wanted(&entry.path()));
    all.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// How often something is done: the default, or fewer or more as the caller of the tests wants.
pub(crate) fn times(quick: usize, default: usize, soak: usize) -> usize {
    match std::env::var("RUNYARD_PROOF").as_deref() {
        Ok("quick") => quick,
        Ok("soak") => soak,
        _ => default,
    }
}
