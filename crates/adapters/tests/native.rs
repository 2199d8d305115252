//! Our own agent loop as a backend, on a loopback model provider: the suite of every backend, and what is its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::sync::Arc;

use runyard_adapters::native::{NATIVE_KIND, NativeBackend};
use runyard_backend::Backend;
use runyard_backend::conformance::{Bench, Decide, Part, Recorder, Scene, Stage};
use runyard_backend::{Ending, Signal};
use runyard_demo_provider::DemoProvider;
use runyard_domain::run::{FailureKind, Task};
use runyard_domain::{BackendProfile, Code};

struct Native {
    provider: DemoProvider,
}

impl Native {
    async fn new() -> Self {
        Native { provider: DemoProvider::start().await.unwrap() }
    }

    fn part_of(&self, task: &str) -> Part {
        let profile = BackendProfile {
            profile: "mine".to_owned(),
            backend_kind: NATIVE_KIND.to_owned(),
            base_url: Some(self.provider.url()),
            model: Some("demo".to_owned()),
            ..BackendProfile::default()
        };
        Part { profile, task: Task::Text { text: task.to_owned(), redacted: false } }
    }

    /// What is recorded of a run of this task until it is over; whatever is asked is approved.
    async fn played(&self, task: &str) -> Vec<Signal> {
        let stage = Stage::new(self);
        let recorder = Recorder::new();
        let mut live = stage.fresh(self, &self.part_of(task), &recorder).await;
        let over = |signal: &Signal| matches!(signal, Signal::Ended { .. } | Signal::TurnEnded { .. });
        live.until(Decide::Approve, "it is over", |signals, _| signals.iter().any(over)).await;
        recorder.signals()
    }
}

impl Bench for Native {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::new(NativeBackend::new())
    }

    fn part(&self, scene: Scene, _: &Stage) -> Part {
        self.part_of(match scene {
            Scene::Talk => "hello",
            Scene::Act => r#"[[scenario:tool shell {"command": "echo - >> marker"}]]"#,
            Scene::Linger => r#"[[scenario:tool shell {"command": "echo $$ >> marker; exec sleep 1000"}]]"#,
            Scene::Chatter => r#"[[scenario:tool shell {"command": "seq 1 40000"}]]"#,
        })
    }
}

runyard_backend::backend_conformance_tests!(Native::new);

/// How each failure of a provider ends a run: its kind, and as cause the code of our own loop's error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c16_d05_a_providers_failure_ends_the_run_with_its_kind_and_the_loops_own_cause() {
    let native = Native::new().await;
    for (scenario, kind, cause) in [
        ("http-401", FailureKind::ProviderAuthFailed, Code::InferenceUnauthorized),
        ("http-404", FailureKind::BackendFailed, Code::InferenceModelNotFound),
        ("http-400", FailureKind::BackendFailed, Code::InferenceInvalidRequest),
    ] {
        let signals = native.played(&format!("[[scenario:{scenario}]]")).await;
        let Some(Signal::Ended { ending: Ending::Failed { failure_kind, cause: found, .. } }) =
            signals.last()
        else {
            panic!("{scenario}: {signals:#?}");
        };
        assert_eq!((*failure_kind, *found), (kind, Some(cause)), "{scenario}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn j02_what_the_agent_did_is_told_and_its_conversation_is_in_the_log() {
    let native = Native::new().await;
    let signals = native.played(r#"[[scenario:tool shell {"command": "echo hello"}]]"#).await;
    let recorded: Vec<_> = signals
        .iter()
        .filter_map(|signal| match signal {
            Signal::Thread(recorded) => Some(recorded),
            _ => None,
        })
        .collect();
    let mut after = 0;
    for record in &recorded {
        assert_eq!(record.after, after, "nothing is missing and nothing doubled");
        after += record.messages.len() as u64;
    }
    let roles: Vec<&str> = recorded
        .iter()
        .flat_map(|record| &record.messages)
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    let printed: String = signals
        .iter()
        .filter_map(|signal| match signal {
            Signal::ToolOutput { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(printed, "hello\n");
}
