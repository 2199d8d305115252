//! Asking the person at the terminal: exactly what will happen, by verb, object and scope.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};

use runyard_surfaces::cli::one_line;
use rustix::termios::{QueueSelector, tcflush};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::show::Screen;

/// Whether there is somebody to ask.
pub(super) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks whether a directory may be worked on from now on. `None` when interrupted.
pub(super) async fn allow_workspace(path: &str, stop: &CancellationToken) -> Option<bool> {
    let mut stderr = std::io::stderr();
    let question =
        format!("{} is no workspace yet. Allow agents to work on copies of it? [y/N] ", one_line(path));
    forget_typed();
    let _ = stderr.write_all(question.as_bytes()).and_then(|()| stderr.flush());
    tokio::select! {
        () = stop.cancelled() => {
            // What follows does not belong on the line of the question.
            let _ = stderr.write_all(b"\n");
            None
        }
        answer = line() => {
            let answer = answer.ok().flatten().unwrap_or_default();
            Some(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
        }
    }
}

/// Forgets what was typed so far: it cannot have been meant for a question that nobody had seen.
fn forget_typed() {
    let (Ok(()) | Err(_)) = tcflush(std::io::stdin(), QueueSelector::IFlush);
}

/// Reads a line, on a thread of its own; nothing when standard input is at its end.
fn line() -> oneshot::Receiver<Option<String>> {
    let (sender, answer) = oneshot::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = std::io::stdin().read_line(&mut text);
        let _ = sender.send(read.ok().filter(|bytes| *bytes > 0).map(|_| text));
    });
    answer
}

/// A decision that the person made.
pub(super) struct Choice {
    pub(super) approval: String,
    pub(super) open: Open,
    pub(super) approve: bool,
    pub(super) scope: &'static str,
    pub(super) answer: Option<Value>,
}

/// An approval that is asked about.
#[derive(Clone)]
pub(super) struct Open {
    pub(super) digest: String,
    is_question: bool,
    /// Whether it is looked at each time anew.
    once_only: bool,
    question: String,
}

/// The approvals that the run waits for, and the one that is being asked about.
#[derive(Default)]
pub(super) struct Asking {
    open: BTreeMap<String, Open>,
    reading: Option<Reading>,
    closed: bool,
}

struct Reading {
    /// What the line will stand for: nothing, once somebody answered elsewhere.
    asked: Option<String>,
    line: oneshot::Receiver<Option<String>>,
    /// Whether the person was told that a line still has to be ended.
    told: bool,
}

impl Asking {
    /// Takes in what an event says about approvals, after the event was shown.
    pub(super) fn event(&mut self, event: &Value, screen: &mut Screen) {
        let payload = &event["payload"];
        let id = payload["approvalId"].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str() {
            Some("run.approval.requested") => {
                let label = payload["workspace"]["label"].as_str().unwrap_or_default();
                let open = Open {
                    digest: payload["digest"].as_str().unwrap_or_default().to_owned(),
                    is_question: payload["request"]["kind"] == "question",
                    once_only: payload["request"]["kind"] == "apply",
                    question: question(&payload["request"], label),
                };
                self.again(id, open);
            }
            Some("run.approval.resolved") => {
                self.open.remove(&id);
                if let Some(reading) = &mut self.reading
                    && reading.asked.as_ref() == Some(&id)
                {
                    // Somebody answered elsewhere: the line that is still being read stands for nothing.
                    reading.asked = None;
                    screen.withdrawn();
                }
            }
            _ => {}
        }
    }

    /// Asks about it, also if it was answered and the answer did not arrive.
    pub(super) fn again(&mut self, id: String, open: Open) {
        self.open.insert(id, open);
    }

    /// The next decision of the person. It never comes where nobody can be asked or nothing is open.
    pub(super) async fn chosen(&mut self, screen: &mut Screen) -> Choice {
        loop {
            let next = self.open.iter().next().filter(|_| can_ask() && !self.closed);
            let reading = match (&mut self.reading, next) {
                (Some(reading), next) => {
                    if reading.asked.is_none() && next.is_some() && !reading.told {
                        reading.told = true;
                        screen.say("Something else is asked; press Enter to see it.");
                    }
                    reading
                }
                (None, None) => return std::future::pending().await,
                (empty, Some((id, open))) => {
                    forget_typed();
                    screen.ask(&open.question);
                    empty.insert(Reading { asked: Some(id.clone()), line: line(), told: false })
                }
            };
            let text = (&mut reading.line).await.ok().flatten();
            let asked = self.reading.take().and_then(|reading| reading.asked);
            screen.answered();
            let Some(text) = text else {
                self.closed = true;
                screen.say("Standard input ended; answer with \"runyard approvals\" in another terminal.");
                continue;
            };
            let Some((id, open)) = asked.and_then(|id| Some((id.clone(), self.open.get(&id)?.clone())))
            else {
                continue;
            };
            match choose(&open, text.trim()) {
                Some((approve, scope, answer)) => {
                    self.open.remove(&id);
                    return Choice { approval: id, open, approve, scope, answer };
                }
                None if open.once_only => screen.say("Answer with y or n."),
                None => screen.say("Answer with y, r or n."),
            }
        }
    }
}

/// What a line means as an answer.
fn choose(open: &Open, text: &str) -> Option<(bool, &'static str, Option<Value>)> {
    if open.is_question {
        // JSON where it is JSON, else the text itself.
        let answer = || serde_json::from_str(text).unwrap_or_else(|_| text.into());
        return Some(if text.is_empty() { (false, "once", None) } else { (true, "once", Some(answer())) });
    }
    if open.once_only && text.eq_ignore_ascii_case("r") {
        return None;
    }
    match text.to_ascii_lowercase().as_str() {
        "y" | "yes" => Some((true, "once", None)),
        "r" | "run" => Some((true, "run", None)),
        "n" | "no" => Some((false, "once", None)),
        _ => None,
    }
}

/// The question, by verb, object and scope.
fn question(request: &Value, workspace: &str) -> String {
    let text = |name: &str| one_line(request[name].as_str().unwrap_or_default());
    let verb = match request["kind"].as_str().unwrap_or_default() {
        "shell" => "Run this command".to_owned(),
        "write" => format!("Write {}", text("path")),
        "patch" => "Apply this patch".to_owned(),
        "network" => format!("Connect to {}", text("host")),
        "git_commit" => "Make this commit".to_owned(),
        "git_push" => format!("Push to {} {}", text("remote"), text("branch")),
        "publish" => format!("Publish {}", text("target")),
        "deploy" => format!("Deploy {}", text("target")),
        "action" => format!("Call the action {}", text("action")),
        "repeat" => format!("Repeat the step \"{}\"", text("step")),
        "apply" if request["undo"] == true => {
            let workspace = one_line(workspace);
            return format!(
                "Take this back from your files in \"{workspace}\"? [y] take back  [n] reject > "
            );
        }
        "apply" => {
            let to = match &request["to"] {
                Value::String(to) if to == "commit" => "your files and a commit",
                Value::Object(_) => "a new branch",
                _ => "your files",
            };
            let workspace = one_line(workspace);
            return format!("Apply these changes to {to} in \"{workspace}\"? [y] apply all  [n] reject > ");
        }
        "question" => return "Your answer (empty to reject) > ".to_owned(),
        other => format!("Allow this {}", one_line(other)),
    };
    format!(
        "{verb} in \"{}\"? [y] once  [r] whenever it comes in this run  [n] reject > ",
        one_line(workspace)
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn c12_only_a_clear_answer_is_one() {
        #[track_caller]
        fn check(is_question: bool, text: &str, expected: Option<(bool, &str, Option<Value>)>) {
            let open = Open { digest: String::new(), is_question, once_only: false, question: String::new() };
            assert_eq!(choose(&open, text), expected, "{text:?}");
        }
        check(false, "y", Some((true, "once", None)));
        check(false, "YES", Some((true, "once", None)));
        check(false, "r", Some((true, "run", None)));
        check(false, "n", Some((false, "once", None)));
        for unclear in ["", "ok", "yy", "continue"] {
            check(false, unclear, None);
        }
        check(true, "", Some((false, "once", None)));
        check(true, "blue", Some((true, "once", Some(json!("blue")))));
        check(true, "[1]", Some((true, "once", Some(json!([1])))));
    }

    #[test]
    fn c12_a_question_names_verb_object_and_scope() {
        let asked = question(&json!({"kind": "write", "path": "a\n.md"}), "site");
        assert_eq!(
            asked,
            "Write a\\n.md in \"site\"? [y] once  [r] whenever it comes in this run  [n] reject > "
        );
    }
}
