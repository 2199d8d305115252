//! A hub that is killed while it is used: whatever is asked of it then has no answer.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Home, Hub, PATIENCE};

/// A hub that may die any moment.
pub(crate) struct Mortal<'a> {
    hub: &'a Hub,
    token: String,
}

impl<'a> Mortal<'a> {
    pub(crate) fn new(home: &Home, hub: &'a Hub) -> Self {
        Mortal { hub, token: std::fs::read_to_string(home.path("token")).unwrap() }
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

    /// Answers whatever is open with yes, until the run is at its end or the hub is dead.
    pub(crate) fn drive(&self, run: &str) -> Option<Value> {
        let end = Instant::now() + PATIENCE;
        loop {
            let open = self.get("/api/v1/approvals?state=open")?;
            for approval in open["approvals"].as_array().unwrap() {
                let path = format!("/api/v1/approvals/{}/resolve", approval["id"].as_str().unwrap());
                self.post(&path, &json!({"decision": "approve", "digest": approval["digest"]}))?;
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
