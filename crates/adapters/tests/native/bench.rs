//! Our own agent loop on a loopback model provider, and what tests ask about it.

use std::sync::Arc;

use runyard_adapters::native::{NATIVE_KIND, NativeBackend};
use runyard_backend::conformance::{Bench, Decide, Part, Recorder, Scene, Stage};
use runyard_backend::{Backend, Signal, Start};
use runyard_demo_provider::{DemoProvider, Options};
use runyard_domain::BackendProfile;
use runyard_domain::run::{Task, ThreadRecorded};

pub(crate) struct Native {
    pub(crate) provider: DemoProvider,
    backend: Arc<NativeBackend>,
}

impl Native {
    pub(crate) async fn new() -> Self {
        Native { provider: DemoProvider::start().await.unwrap(), backend: Arc::new(NativeBackend::new()) }
    }

    /// One whose model also plays this scenario, which is called `own`.
    pub(crate) async fn playing(scenario: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("own.toml"), scenario).unwrap();
        let options = Options { scenarios: Some(folder.path().to_owned()), ..Options::default() };
        let provider = DemoProvider::start_with(options).await.unwrap();
        Native { provider, backend: Arc::new(NativeBackend::new()) }
    }

    /// The texts of the last question to the model.
    pub(crate) fn last_asked(&self) -> String {
        self.provider.requests().last().unwrap().body.to_string()
    }

    pub(crate) fn part_of(&self, task: &str) -> Part {
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
    pub(crate) async fn played(&self, task: &str) -> Vec<Signal> {
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
        self.backend.clone()
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

/// What is recorded of the conversation, after checking that nothing is missing in it and nothing doubled.
#[track_caller]
pub(crate) fn conversation(signals: &[Signal]) -> Vec<String> {
    let mut said = Vec::new();
    let mut after = 0;
    for signal in signals {
        let Signal::Thread(ThreadRecorded { after: from, messages, .. }) = signal else { continue };
        assert_eq!(*from, after, "nothing is missing and nothing doubled");
        after += messages.len() as u64;
        said.extend(messages.iter().map(|message| message["role"].as_str().unwrap().to_owned()));
    }
    said
}

pub(crate) fn errors(signals: &[Signal]) -> Vec<&str> {
    let mut told = Vec::new();
    for signal in signals {
        if let Signal::Error { message, .. } = signal {
            told.push(message.as_str());
        }
    }
    told
}

pub(crate) fn ends(signals: &[Signal]) -> usize {
    signals.iter().filter(|signal| matches!(signal, Signal::TurnEnded { .. })).count()
}

pub(crate) fn resumed(part: &Part, turn_active: bool) -> Start {
    Start::Resume { task: part.task.clone(), thread: Some("thread-1".to_owned()), turn_active }
}
