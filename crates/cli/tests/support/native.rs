//! A hub whose agent is our own loop, on a model provider on this machine.

use std::path::Path;

use runyard_demo_provider::{DemoProvider, Options};
use serde_json::{Value, json};

use super::api::{Api, Yard};

/// The provider's key. No form gives it away: only who knows it can take it out.
pub(crate) const KEY: &str = "b4ttery-staple-plain-words-2218";

/// A hub whose agent `mine` is our own loop, on a provider of ours.
pub(crate) struct Native {
    pub(crate) yard: Yard,
    pub(crate) provider: DemoProvider,
}

impl Native {
    pub(crate) fn new(more: &str) -> Self {
        Native::playing(more, &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/native"))
    }

    /// One whose model plays the scenarios of this directory.
    pub(crate) fn playing(more: &str, scenarios: &Path) -> Self {
        let executor = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let scenarios = Some(scenarios.to_owned());
        let options = Options { keys: vec![KEY.to_owned()], scenarios, ..Options::default() };
        let provider = executor.block_on(DemoProvider::start_with(options)).unwrap();
        let configuration = format!(
            "[agent.mine]\nbackend = \"native\"\nmodel = \"demo\"\nprovider.base_url = {:?}\n{more}\n",
            provider.url()
        );
        let native = Native { yard: Yard::new(&configuration, &[]), provider };
        let auth = json!({ "OPENAI_API_KEY": KEY }).to_string();
        let ran = native.yard.home.run_with(["secrets", "set", "mine", "auth.json"], auth.as_bytes());
        assert_eq!(ran.exit, 0, "{} {}", ran.stdout, ran.stderr);
        native
    }

    pub(crate) fn start(&self, api: &Api, task: &str, more: &Value) -> String {
        let mut new = json!({"task": task, "agent": "mine", "workspace": self.yard.place(),
            "executionPolicy": {"changes": "keep"}});
        new.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        api.post("/runs", &new)["run"]["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn file(&self, run: &str, name: &str) -> Option<String> {
        std::fs::read_to_string(self.yard.home.path(&format!("edge/runs/{run}/checkout/{name}"))).ok()
    }
}

/// Says no, with a reason.
#[track_caller]
pub(crate) fn reject(api: &Api, approval: &Value, reason: &str) {
    let path = format!("/approvals/{}/resolve", approval["id"].as_str().unwrap());
    api.post(&path, &json!({"decision": "reject", "digest": approval["digest"], "reason": reason}));
}

/// What events of this type say.
pub(crate) fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).map(|event| &event["payload"]).collect()
}

/// The messages of the conversation that a run's log holds, after checking that nothing is missing in it.
#[track_caller]
pub(crate) fn messages(events: &[Value], mut after: u64) -> Vec<Value> {
    let mut messages = Vec::new();
    for recorded in of_type(events, "run.thread.recorded") {
        assert_eq!(recorded["after"], after, "nothing is missing and nothing doubled: {recorded}");
        let more = recorded["messages"].as_array().unwrap();
        after += more.len() as u64;
        messages.extend(more.iter().cloned());
    }
    messages
}

pub(crate) fn roles(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["role"].as_str().unwrap()).collect()
}

/// What the model read of its calls, in their order.
pub(crate) fn results(messages: &[Value]) -> Vec<String> {
    let parts = messages.iter().flat_map(|message| message["content"].as_array().unwrap());
    let results = parts.filter(|part| part["type"] == "tool_output");
    results.map(|part| part["content"].as_str().unwrap().to_owned()).collect()
}
