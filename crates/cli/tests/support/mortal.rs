//! A hub that is killed while it is used: whatever is asked of it then has no answer, and whatever it said must stay true.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::api::{left_of, times};
use super::{Home, Hub, PATIENCE};

/// How often each failpoint was passed by a hub that was started with `RUNYARD_FAILPOINT_COUNTS` naming this file.
pub(crate) fn passages(file: &Path) -> BTreeMap<String, u64> {
    let mut passed = BTreeMap::new();
    for name in std::fs::read_to_string(file).unwrap().lines() {
        *passed.entry(name.to_owned()).or_default() += 1;
    }
    passed
}

/// At which of so many passages of a failpoint a hub is killed: at some of them, from the first to the last, or in the long proof
/// at all.
pub(crate) fn chosen(passages: u64) -> BTreeSet<u64> {
    let most = times(3, 6, usize::MAX) as u64;
    if passages <= most {
        return (1..=passages).collect();
    }
    (0..most).map(|nth| 1 + nth * (passages - 1) / (most - 1)).collect()
}

/// A hub that may die any moment.
pub(crate) struct Mortal<'a> {
    hub: &'a Hub,
    token: String,
    /// The approvals that it said are resolved.
    settled: RefCell<BTreeSet<String>>,
}

/// The events of a run as they came, until the run's end or the hub's.
pub(crate) struct Watching(JoinHandle<Vec<Value>>);

impl Watching {
    pub(crate) fn seen(self) -> Vec<Value> {
        self.0.join().unwrap()
    }
}

impl<'a> Mortal<'a> {
    pub(crate) fn new(home: &Home, hub: &'a Hub) -> Self {
        Mortal {
            hub,
            token: std::fs::read_to_string(home.path("token")).unwrap(),
            settled: RefCell::default(),
        }
    }

    /// A hub that must know what another one said.
    pub(crate) fn after(home: &Home, hub: &'a Hub, settled: BTreeSet<String>) -> Self {
        Mortal { settled: RefCell::new(settled), ..Mortal::new(home, hub) }
    }

    pub(crate) fn settled(&self) -> BTreeSet<String> {
        self.settled.borrow().clone()
    }

    /// Follows a run from its first event on.
    pub(crate) fn watch(&self, run: &str) -> Watching {
        let (address, token) = (self.hub.address().to_owned(), self.token.clone());
        let path = format!("/api/v1/runs/{run}/stream");
        Watching(std::thread::spawn(move || watched(&address, &token, &path).unwrap_or_default()))
    }

    /// The data of an answer; nothing when the hub is dead.
    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        let headers = format!("Authorization: Bearer {}\r\n", self.token);
        let (status, body) = self.hub.try_request("GET", path, &headers, "")?;
        let envelope: Value = serde_json::from_str(&body).ok()?;
        assert_eq!(status, 200, "{path}: {envelope}");
        Some(envelope["data"].clone())
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Option<Value> {
        let body = body.to_string();
        let length = body.len();
        let token = &self.token;
        let headers = format!(
            "Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n"
        );
        let (_, answer) = self.hub.try_request("POST", path, &headers, &body)?;
        serde_json::from_str(&answer).ok()
    }

    /// Waits until every decision is in the audit, once; nothing when the hub is dead.
    pub(crate) fn audited(&self, decisions: usize) -> Option<()> {
        let end = Instant::now() + PATIENCE;
        loop {
            let audit = self.get("/api/v1/audit?limit=400")?;
            let entries = audit["entries"].as_array().unwrap();
            let found = entries.iter().filter(|entry| entry["type"] == "audit.decision").count();
            if found >= decisions {
                assert_eq!(found, decisions, "{audit}");
                return Some(());
            }
            assert!(Instant::now() < end, "the audit lacks decisions: {audit}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until nothing of the run is at work any more; nothing when the hub is dead.
    pub(crate) fn at_rest(&self, run: &str) -> Option<()> {
        let end = Instant::now() + PATIENCE;
        while !left_of(run).is_empty() {
            self.get("/api/v1/health")?;
            assert!(Instant::now() < end, "something of the run is left");
            std::thread::sleep(Duration::from_millis(20));
        }
        // What follows the last commit has a moment to come.
        std::thread::sleep(Duration::from_millis(100));
        self.get("/api/v1/health").map(drop)
    }

    /// Answers whatever is open with yes, until the run is at its end or the hub is dead.
    pub(crate) fn drive(&self, run: &str) -> Option<Value> {
        let end = Instant::now() + PATIENCE;
        loop {
            let open = self.get("/api/v1/approvals?state=open")?;
            for approval in open["approvals"].as_array().unwrap() {
                let id = approval["id"].as_str().unwrap();
                assert!(!self.settled.borrow().contains(id), "an answer that was taken is lost: {approval}");
                let path = format!("/api/v1/approvals/{id}/resolve");
                let answer =
                    self.post(&path, &json!({"decision": "approve", "digest": approval["digest"]}))?;
                if answer["ok"] == true {
                    self.settled.borrow_mut().insert(id.to_owned());
                }
            }
            let found = self.get(&format!("/api/v1/runs/{run}"))?["run"].clone();
            if ["completed", "failed", "cancelled"].contains(&found["state"].as_str().unwrap()) {
                return Some(found);
            }
            assert!(Instant::now() < end, "the run does not come to its end: {found}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// What comes of an event stream, as far as it comes: an event counts when its line is whole.
fn watched(address: &str, token: &str, path: &str) -> Option<Vec<Value>> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    Some(lines.filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect())
}
