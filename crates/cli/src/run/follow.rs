//! Following a run to its end, over whatever happens to the hub meanwhile.

use std::io::Write;
use std::time::Duration;

use runyard::{ActionError, Code};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::ask::{Asking, Choice};
use super::show::Screen;
use super::{Shown, data};
use crate::home::Home;
use crate::hub_here::{AnyHub, Stay};
use crate::patches;

/// How long a hub that went away is waited for.
const AWAY_MAX: Duration = Duration::from_secs(60);
/// How often it is looked for meanwhile.
const LOOK: Duration = Duration::from_millis(250);

/// Shows the run until it is at its end, and gives the exit code. Where applying was confirmed already it is not asked again.
pub(crate) async fn to_the_end(
    home: &Home,
    hub: &mut AnyHub,
    made: &Value,
    shown: Shown,
    confirmed: bool,
    stop: &CancellationToken,
) -> Result<u8, ActionError> {
    let run = made["run"]["id"].as_str().unwrap_or_default().to_owned();
    let mut following = Following {
        home,
        hub,
        run,
        shown,
        last: 0,
        screen: Screen::new(shown == Shown::Text, made),
        asking: Asking::default(),
        stop,
        cancelled: false,
        confirmed,
    };
    let end = following.follow().await?;
    following.screen.end(&end);
    if shown == Shown::Json {
        let envelope =
            following.hub.client().invoke("run_show", json!({"id": following.run}), false, None).await?;
        write_line(&serde_json::to_string_pretty(&envelope).unwrap_or_default());
    }
    Ok(exit_code(&end))
}

struct Following<'a> {
    home: &'a Home,
    hub: &'a mut AnyHub,
    run: String,
    shown: Shown,
    /// The last event's place.
    last: u64,
    screen: Screen,
    asking: Asking,
    stop: &'a CancellationToken,
    cancelled: bool,
    /// Whether applying was confirmed with the command, so that it is not asked again.
    confirmed: bool,
}

impl Following<'_> {
    /// Gives the event that ended the run.
    async fn follow(&mut self) -> Result<Value, ActionError> {
        loop {
            let mut events = match self.hub.client().follow(&self.run, self.last).await {
                Ok(events) => events,
                Err(error) if *error.code() == Code::ExternalServiceError => {
                    self.wait_for_the_hub().await?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            loop {
                let heard = tokio::select! {
                    heard = events.next() => heard,
                    choice = self.asking.chosen(&mut self.screen) => {
                        self.answer(choice).await;
                        continue;
                    }
                    () = self.stop.cancelled(), if !self.cancelled => {
                        self.cancel().await;
                        continue;
                    }
                };
                match heard {
                    Ok(Some(text)) => {
                        self.before(&text).await;
                        if let Some(end) = self.event(&text) {
                            return Ok(end);
                        }
                    }
                    // The stream is over without an end of the run, or the hub is gone: its next one goes on.
                    Ok(None) | Err(_) => break,
                }
            }
            self.wait_for_the_hub().await?;
        }
    }

    /// Changes are shown before they are asked about; what was confirmed is answered.
    async fn before(&mut self, text: &str) {
        let Ok(event) = serde_json::from_str::<Value>(text) else { return };
        let (kind, payload) = (&event["type"], &event["payload"]);
        if kind != "run.approval.requested" || payload["request"]["kind"] != "apply" {
            return;
        }
        if self.confirmed {
            let input =
                json!({"id": payload["approvalId"], "decision": "approve", "digest": payload["digest"]});
            let outcome =
                self.hub.client().invoke("approval_resolve", input, true, None).await.and_then(data);
            if let Err(error) = outcome {
                self.screen.say(&format!("Not answered: {}", said(&error)));
            }
        } else if self.shown == Shown::Text && payload["request"]["undo"] != true {
            let found = self.hub.client().invoke("run_diff", json!({"id": self.run}), true, None).await;
            let Ok(found) = found.and_then(data) else { return };
            if let Ok(lines) =
                patches::lines(self.hub.client(), &self.run, &found, patches::LINES_SHOWN).await
            {
                self.screen.changes(&lines);
            }
        }
    }

    fn event(&mut self, text: &str) -> Option<Value> {
        let event: Value = serde_json::from_str(text).ok()?;
        self.last = event["sequence"].as_u64().unwrap_or(self.last);
        match self.shown {
            Shown::Events => write_line(text),
            Shown::Text => {
                self.screen.event(&event);
                self.asking.event(&event, &mut self.screen);
            }
            Shown::Json => {}
        }
        let kind = event["type"].as_str().unwrap_or_default();
        matches!(kind, "run.completed" | "run.failed" | "run.cancelled").then_some(event)
    }

    async fn answer(&mut self, choice: Choice) {
        let Choice { approval, open, approve, scope, answer } = choice;
        let decision = if approve { "approve" } else { "reject" };
        let mut input = json!({"id": approval, "decision": decision, "digest": open.digest, "scope": scope});
        if let Some(answer) = answer {
            input["answer"] = answer;
        }
        let outcome = self.hub.client().invoke("approval_resolve", input, true, None).await.and_then(data);
        if let Err(error) = outcome {
            self.screen.say(&format!("Not answered: {}", said(&error)));
            // Somebody else's decision counts, and comes as an event. Whatever else was wrong, it is still open.
            if *error.code() != Code::Conflict {
                self.asking.again(approval, open);
            }
        }
    }

    async fn cancel(&mut self) {
        self.cancelled = true;
        self.screen.say("Cancelling the run; press Ctrl-C again to leave at once.");
        let input = json!({"id": self.run, "reason": "Ctrl-C at the terminal"});
        let outcome = self.hub.client().invoke("run_cancel", input, true, None).await.and_then(data);
        if let Err(error) = outcome {
            self.screen.say(&format!("Not cancelled: {}", said(&error)));
        }
    }

    async fn wait_for_the_hub(&mut self) -> Result<(), ActionError> {
        if self.hub.is_here() {
            // It is there as long as this process; only the stream was cut.
            tokio::time::sleep(LOOK).await;
            return Ok(());
        }
        if self.hub.client().stay() == Stay::WithCommand {
            // It went with the command that had it. Now this one has it, or a third.
            *self.hub = AnyHub::get(self.home, Stay::WithCommand).await?;
            return Ok(());
        }
        self.screen
            .say("The hub is away; waiting for it. The run is recorded and goes on with the next hub.");
        let looks = AWAY_MAX.as_millis() / LOOK.as_millis();
        for _ in 0..looks {
            if let Some(hub) = AnyHub::find(self.home).await {
                *self.hub = hub;
                return Ok(());
            }
            if self.stop.is_cancelled() {
                break;
            }
            tokio::time::sleep(LOOK).await;
        }
        let message = format!(
            "The hub went away. The run is recorded: start \"runyard up\" and see \"runyard runs show {}\".",
            self.run
        );
        Err(ActionError::new(Code::ExternalServiceError, message))
    }
}

/// A failure in one line, with where the input is wrong.
fn said(error: &ActionError) -> String {
    let issues = error.issues().iter().map(|issue| format!(" {issue}"));
    std::iter::once(error.message().to_owned()).chain(issues).collect()
}

fn write_line(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
}

/// What the run's end means for whoever started it.
fn exit_code(end: &Value) -> u8 {
    let payload = &end["payload"];
    match end["type"].as_str() {
        Some("run.completed") => 0,
        Some("run.cancelled") if payload["code"].is_null() && payload["by"]["kind"] == "person" => {
            Code::Cancelled.row().exit
        }
        Some("run.failed") if payload["code"] == Code::RunTimeout.as_str() => Code::RunTimeout.row().exit,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a19_the_exit_code_says_how_the_run_ended() {
        #[track_caller]
        fn check(kind: &str, payload: Value, exit: u8) {
            assert_eq!(exit_code(&json!({"type": kind, "payload": payload})), exit, "{kind} {payload}");
        }
        let person = json!({"id": "ada", "kind": "person"});
        check("run.completed", json!({}), 0);
        check("run.failed", json!({"code": "run_timeout"}), 124);
        check("run.failed", json!({"code": "runtime_unavailable"}), 1);
        check("run.cancelled", json!({"by": person}), 130);
        check("run.cancelled", json!({"by": person, "code": "approval_rejected"}), 1);
        check("run.cancelled", json!({"by": {"id": "runyard", "kind": "service"}}), 1);
    }
}
