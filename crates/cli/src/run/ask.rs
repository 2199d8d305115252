//! Asking the person at the terminal: exactly what will happen, by verb, object and scope.

use std::collections::BTreeMap;
use std::io::Write;

use runyard_surfaces::cli::one_line;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::answers::{About, Said, Source, help, hint, question, said};
use super::form::{Form, Heard};
use super::show::Screen;
use super::typed::{Keyboard, can_ask, is_yes, show_question};

/// Asks whether a directory may be worked on from now on. `None` when interrupted.
pub(super) async fn allow_workspace(path: &str, stop: &CancellationToken) -> Option<bool> {
    let question =
        format!("{} is no workspace yet. Allow agents to work on copies of it? [y/N] ", one_line(path));
    let mut keyboard = Keyboard::default();
    show_question(&keyboard, &question);
    tokio::select! {
        () = stop.cancelled() => {
            // What follows does not belong on the line of the question.
            let _ = std::io::stderr().write_all(b"\n");
            None
        }
        answer = keyboard.line() => Some(is_yes(answer.as_deref())),
    }
}

/// What the person said to something that is asked.
pub(super) struct Choice {
    pub(super) approval: String,
    pub(super) open: Open,
    pub(super) said: Said,
}

/// An approval that is asked about.
#[derive(Clone)]
pub(super) struct Open {
    pub(super) digest: String,
    asks: Asks,
}

/// What an approval asks for.
#[derive(Clone)]
enum Asks {
    /// An answer.
    Answer(Form),
    /// A decision.
    Decision { about: About, question: String },
}

impl Open {
    fn question(&self) -> String {
        match &self.asks {
            Asks::Answer(form) => form.question(),
            Asks::Decision { question, .. } => question.clone(),
        }
    }

    /// What a line says that answers what is asked now; nothing where there is more to ask.
    fn hear(&mut self, text: &str, screen: &mut Screen) -> Option<Said> {
        let form = match &mut self.asks {
            Asks::Answer(form) => form,
            Asks::Decision { about, .. } => {
                let said = said(*about, text);
                match said {
                    Some(Said::Help) => help(*about).iter().for_each(|line| screen.say(line)),
                    None => screen.say(hint(*about)),
                    Some(_) => {}
                }
                return said.filter(|said| *said != Said::Help);
            }
        };
        let (approve, answer) = match form.hear(text) {
            Heard::Answer(answer) => (true, Some(answer)),
            Heard::Rejected => (false, None),
            Heard::More => return None,
            Heard::Wrong(hint) => {
                screen.say(&hint);
                return None;
            }
        };
        Some(Said::Decided { approve, scope: "once", answer })
    }
}

/// The approvals that the run waits for, and the one that is being asked about.
#[derive(Default)]
pub(super) struct Asking {
    open: BTreeMap<String, Open>,
    pub(super) keyboard: Keyboard,
    reading: Option<Reading>,
    source: Source,
    closed: bool,
}

struct Reading {
    /// What the line will stand for: nothing, once somebody answered elsewhere.
    asked: Option<String>,
    /// Whether the person was told that a line still has to be ended.
    told: bool,
}

impl Asking {
    /// Another run: nothing is open in it yet.
    pub(super) fn begin(&mut self) {
        self.open.clear();
        self.source = Source::default();
    }

    /// A message is asked for. What was typed for a question that somebody else answered is none, and whoever ended the input at a
    /// question did not end the conversation.
    pub(super) fn begin_message(&mut self) {
        if self.reading.take().is_some() {
            self.keyboard.forget();
        }
        self.closed = false;
    }

    /// Takes in what an event says about approvals, after the event was shown.
    pub(super) fn event(&mut self, event: &Value) {
        let payload = &event["payload"];
        let id = payload["approvalId"].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str() {
            Some("run.created") => {
                self.source = Source::of(&payload["carries"]);
            }
            Some("run.approval.requested") => {
                let label = payload["workspace"]["label"].as_str().unwrap_or_default();
                let about = About::of(payload, self.source);
                let digest = payload["digest"].as_str().unwrap_or_default().to_owned();
                let decision =
                    || Asks::Decision { about, question: question(&payload["request"], label, about) };
                let asks = Form::of(payload).map_or_else(decision, Asks::Answer);
                self.again(id, Open { digest, asks });
            }
            _ => {}
        }
    }

    /// Takes in that an approval is decided, before the event is shown: what nobody has to answer is not asked again below it.
    pub(super) fn settled(&mut self, event: &Value, screen: &mut Screen) {
        if event["type"] != "run.approval.resolved" {
            return;
        }
        let id = event["payload"]["approvalId"].as_str().unwrap_or_default();
        self.open.remove(id);
        if let Some(reading) = &mut self.reading
            && reading.asked.as_deref() == Some(id)
        {
            // Somebody answered elsewhere: the line that is still being read stands for nothing.
            reading.asked = None;
            screen.withdrawn();
        }
    }

    /// Asks about it, also if it was answered and the answer did not arrive.
    pub(super) fn again(&mut self, id: String, open: Open) {
        self.open.insert(id, open);
    }

    /// Nobody waits any more for the line that is being read: it stands for nothing.
    pub(super) fn leave_off(&mut self, screen: &mut Screen) {
        if self.keyboard.is_reading() {
            self.reading = Some(Reading { asked: None, told: false });
            screen.withdrawn();
        }
    }

    /// The next decision of the person. It never comes where nobody can be asked or nothing is open.
    pub(super) async fn chosen(&mut self, screen: &mut Screen) -> Choice {
        loop {
            let next = self.open.iter().next().filter(|_| can_ask() && !self.closed);
            match (&mut self.reading, next) {
                (Some(reading), next) => {
                    if reading.asked.is_none() && next.is_some() && !reading.told {
                        reading.told = true;
                        screen.say("Something else is asked; press Enter to see it.");
                    }
                }
                (None, None) => return std::future::pending().await,
                (empty, Some((id, open))) => {
                    self.keyboard.forget();
                    screen.ask(&open.question());
                    *empty = Some(Reading { asked: Some(id.clone()), told: false });
                }
            }
            let text = self.keyboard.line().await;
            let asked = self.reading.take().and_then(|reading| reading.asked);
            screen.answered();
            let Some(text) = text else {
                self.closed = true;
                screen.say("Standard input ended; answer with \"runyard approvals\" in another terminal.");
                continue;
            };
            let Some(id) = asked else { continue };
            let said = self.open.get_mut(&id).and_then(|open| open.hear(text.trim(), screen));
            if let Some((said, open)) = said.and_then(|said| Some((said, self.open.remove(&id)?))) {
                return Choice { approval: id, open, said };
            }
        }
    }
}
