//! What the agent tells while it works, as signals: previews of what its steps record.

use std::sync::Arc;

use async_trait::async_trait;
use runyard_actions::LogLevel;
use runyard_agent::checkpoint::CallPlace;
use runyard_agent::run::{AgentEvent, Observer};
use runyard_agent::tool::Report;
use runyard_backend::{Signal, Stream};
use runyard_llm::inference::Update;

use super::ear::Ear;
use super::log::LogCheckpoint;

pub(super) struct Told {
    pub(super) ear: Arc<Ear>,
    pub(super) log: Arc<LogCheckpoint>,
}

#[async_trait]
impl Observer for Told {
    async fn observe(&self, event: AgentEvent) {
        let signals = match event {
            AgentEvent::Inference(update) => self.update(update),
            AgentEvent::ToolReported { place, report } => reported(place, report),
            AgentEvent::Summarised { messages } => {
                let message =
                    format!("the first {messages} messages are summarised for the model from now on");
                vec![Signal::Error { failure_kind: None, message, retrying: false }]
            }
            _ => return,
        };
        // Who cannot record it stops everything, which the agent hears of.
        let _ = self.ear.record(signals).await;
    }
}

impl Told {
    fn update(&self, update: Update) -> Vec<Signal> {
        let said = |message: String| vec![Signal::Error { failure_kind: None, message, retrying: true }];
        match update {
            Update::Text(text) => self.log.told(text),
            Update::Reset => self.log.begun_anew(),
            Update::Retrying { model, attempt, wait, code } => said(format!(
                "{model} failed with {}; attempt {attempt} follows in {} ms",
                code.as_str(),
                wait.as_millis()
            )),
            Update::Fallback { from, to, code } => {
                let why =
                    code.map_or_else(|| "it is given a rest".to_owned(), |code| code.as_str().to_owned());
                said(format!("{to} is asked instead of {from}: {why}"))
            }
            Update::Held { wait } => {
                said(format!("no model may be asked now; the next try follows in {} ms", wait.as_millis()))
            }
            // A cancelled call leaves nothing dangling: that one begins is not told either, only that it is recorded.
            _ => Vec::new(),
        }
    }
}

fn reported(place: CallPlace, report: Report) -> Vec<Signal> {
    let (stream, text) = match report {
        Report::Output(text) => (Stream::Stdout, text),
        Report::Log(entry) if entry.level >= LogLevel::Warn => (Stream::Stderr, entry.message),
        Report::Log(entry) => (Stream::Stdout, entry.message),
        Report::Progress { message, .. } => (Stream::Stdout, format!("{message}\n")),
        Report::Artifact(_) => return Vec::new(),
    };
    vec![Signal::ToolOutput { call: place.to_string(), stream, text }]
}
