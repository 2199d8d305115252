//! Following a run to its end, or to the end of a turn, over whatever happens to the hub meanwhile.

mod decide;

pub(crate) use self::decide::for_somebody_else;

use std::collections::VecDeque;
use std::io::Write;
use std::time::Duration;

use runyard::{ActionError, Code};
use runyard_surfaces::cli::{Interrupts, printable};
use serde_json::{Value, json};

use super::answers::Said;
use super::ask::Asking;
use super::show::Screen;
use super::{Shown, data};
use crate::home::Home;
use crate::hub_client::HubClient;
use crate::hub_here::{AnyHub, Stay};
use crate::patches::{self, Changes};

/// How long a hub that went away is waited for.
const AWAY_MAX: Duration = Duration::from_secs(60);
/// How often it is looked for meanwhile.
const LOOK: Duration = Duration::from_millis(250);
/// What a command ends with that left its run waiting.
pub(super) const LEFT: u8 = 1;

/// What is known about applying before the run asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applying {
    /// The person is asked.
    Asked,
    /// It was confirmed with the command, so that it is not asked again.
    Confirmed,
}

/// Shows a new run until it is at its end, and gives the exit code.
pub(crate) async fn to_the_end(
    home: &Home,
    hub: &mut AnyHub,
    made: &Value,
    shown: Shown,
    applying: Applying,
    interrupts: &Interrupts,
) -> Result<u8, ActionError> {
    let mut following = Following::new(home, hub, shown, applying, interrupts);
    following.begin(made);
    following.finish().await
}

/// The same for a run that is already there, from here on. What it waits for is asked.
pub(crate) async fn from_here(
    home: &Home,
    hub: &mut AnyHub,
    run: &Value,
    shown: Shown,
    interrupts: &Interrupts,
) -> Result<u8, ActionError> {
    let mut following = Following::new(home, hub, shown, Applying::Asked, interrupts);
    following.go_on(run);
    following.take_up(&run["run"]["openApprovals"]).await?;
    following.finish().await
}

/// How far a run is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    /// To its end.
    End,
    /// To the end of a turn, where it is then kept open: all up to this event is shown then.
    Turn { over_at: Option<u64> },
}

pub(super) struct Following<'a> {
    home: &'a Home,
    hub: &'a mut AnyHub,
    pub(super) run: String,
    shown: Shown,
    until: Until,
    /// The last event's place.
    last: u64,
    pub(super) screen: Screen,
    pub(super) asking: Asking,
    interrupts: Interrupts,
    /// Whether the turn was interrupted already.
    interrupted: bool,
    pub(super) cancelled: bool,
    applying: Applying,
    /// Until when it was last said that the run is kept open.
    kept_open: Option<String>,
    /// Events that came while something was talked over with the person.
    held: VecDeque<String>,
}

/// How following a run ended.
pub(super) enum Outcome {
    /// With the event that ended the run.
    Ended(Value),
    /// With a turn; the run is kept open for another.
    TurnOver,
    /// The person left it waiting.
    Left,
}

impl<'a> Following<'a> {
    /// Nothing is followed yet.
    pub(super) fn new(
        home: &'a Home,
        hub: &'a mut AnyHub,
        shown: Shown,
        applying: Applying,
        interrupts: &Interrupts,
    ) -> Self {
        Following {
            home,
            hub,
            run: String::new(),
            shown,
            until: Until::End,
            last: 0,
            screen: Screen::new(shown == Shown::Text),
            asking: Asking::default(),
            interrupts: interrupts.clone(),
            interrupted: false,
            cancelled: false,
            applying,
            kept_open: None,
            held: VecDeque::new(),
        }
    }

    /// A new run, from its first event on.
    pub(super) fn begin(&mut self, made: &Value) {
        made["run"]["id"].as_str().unwrap_or_default().clone_into(&mut self.run);
        self.last = 0;
        self.held.clear();
        self.asking.begin();
        self.screen.begin(made);
    }

    /// A run that is already there, from here on.
    pub(super) fn go_on(&mut self, run: &Value) {
        self.begin(run);
        self.last = run["run"]["lastSequence"].as_u64().unwrap_or_default();
    }

    pub(super) fn client(&self) -> &HubClient {
        self.hub.client()
    }

    /// Follows until a turn is over and the run kept open for another, or until the run ends.
    pub(super) async fn turn(&mut self) -> Result<Outcome, ActionError> {
        (self.until, self.interrupted) = (Until::Turn { over_at: None }, false);
        let outcome = self.follow().await;
        self.until = Until::End;
        outcome
    }

    /// Follows to the end of the run, shows it, and gives the exit code.
    pub(super) async fn finish(&mut self) -> Result<u8, ActionError> {
        let end = match self.follow().await? {
            Outcome::Ended(end) => end,
            Outcome::Left | Outcome::TurnOver => return Ok(LEFT),
        };
        self.show_end(&end);
        self.show_json().await?;
        Ok(exit_code(&end))
    }

    /// The end of the run; where only the agent's words are shown, an end that is none of a success is said.
    pub(super) fn show_end(&mut self, end: &Value) {
        self.screen.end(end);
        let payload = &end["payload"];
        let why = payload["message"].as_str().or(payload["reason"].as_str()).unwrap_or_default();
        if self.shown == Shown::Words && end["type"] != "run.completed" {
            let how = if end["type"] == "run.failed" { "failed" } else { "was cancelled" };
            self.screen.say(&format!("{} {how}: {why}", self.run));
        }
    }

    /// Where only the end is shown, this is it.
    pub(super) async fn show_json(&self) -> Result<(), ActionError> {
        if self.shown == Shown::Json {
            let envelope = self.hub.client().invoke("run_show", json!({"id": self.run}), false, None).await?;
            write_line(&serde_json::to_string_pretty(&envelope).unwrap_or_default());
        }
        Ok(())
    }

    /// What a run that is already there waits for, as if it were asked just now.
    async fn take_up(&mut self, open: &Value) -> Result<(), ActionError> {
        let first = self.call("run_events", json!({"id": self.run, "limit": 1})).await?;
        self.asking.event(&first["events"][0]);
        for id in open.as_array().into_iter().flatten() {
            let found = self.call("approval_show", json!({"id": id})).await?;
            let mut asked = found["approval"].clone();
            asked["approvalId"] = id.clone();
            let event = json!({"type": "run.approval.requested", "payload": asked});
            // What is taken up is asked about, so that nothing ends here.
            self.before(&event).await?;
            self.screen.event(&event);
            self.asking.event(&event);
        }
        Ok(())
    }

    pub(super) async fn call(&self, action: &str, input: Value) -> Result<Value, ActionError> {
        data(self.hub.client().invoke(action, input, true, None).await?)
    }

    /// Follows the run until it ends, or until the person leaves it.
    async fn follow(&mut self) -> Result<Outcome, ActionError> {
        loop {
            let mut events = match self.hub.client().follow(&self.run, self.last).await {
                Ok(events) => events,
                Err(error) if *error.code() == Code::ExternalServiceError => {
                    self.wait_for_the_hub().await?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.look_whether_over().await;
            loop {
                if self.is_over() {
                    return Ok(Outcome::TurnOver);
                }
                let next_interrupt = self.interrupts.next();
                let heard = match self.held.pop_front() {
                    Some(text) => Ok(Some(text)),
                    None => tokio::select! {
                        heard = events.next() => heard,
                        choice = self.asking.chosen(&mut self.screen) => {
                            if choice.said == Said::Later {
                                self.leave(&choice.approval);
                                return Ok(Outcome::Left);
                            }
                            match self.answer(choice, &mut events).await? {
                                Some(outcome) => return Ok(outcome),
                                None => continue,
                            }
                        }
                        () = next_interrupt.cancelled(), if !self.cancelled => {
                            self.interrupt().await;
                            continue;
                        }
                    },
                };
                match heard {
                    Ok(Some(text)) => {
                        if let Some(outcome) = self.event(&text).await? {
                            return Ok(outcome);
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
    async fn before(&mut self, event: &Value) -> Result<Option<Outcome>, ActionError> {
        let (kind, payload) = (&event["type"], &event["payload"]);
        if kind != "run.approval.requested" || payload["request"]["kind"] != "apply" {
            return Ok(None);
        }
        if self.applying == Applying::Confirmed {
            let input =
                json!({"id": payload["approvalId"], "decision": "approve", "digest": payload["digest"]});
            if let Err(error) = self.call("approval_resolve", input).await {
                return self.refused(payload["approvalId"].as_str().unwrap_or_default(), error);
            }
        } else if self.shown == Shown::Text && payload["request"]["undo"] != true {
            let (client, digest) = (self.hub.client(), payload["digest"].as_str().unwrap_or_default());
            let changes = Changes::beginning(client, &self.run).await;
            let Ok(changes) = changes.and_then(|changes| changes.with_digest(digest)) else {
                return Ok(None);
            };
            if let Ok(lines) = changes.lines(client, patches::LINES_SHOWN).await {
                self.screen.changes(&lines);
            }
        }
        Ok(None)
    }

    /// Takes in an event; says where it ends the run, or what was confirmed about it is refused.
    async fn event(&mut self, text: &str) -> Result<Option<Outcome>, ActionError> {
        let Ok(event) = serde_json::from_str::<Value>(text) else { return Ok(None) };
        if let Some(outcome) = self.before(&event).await? {
            return Ok(Some(outcome));
        }
        self.last = event["sequence"].as_u64().unwrap_or(self.last);
        match self.shown {
            Shown::Events => write_line(text),
            Shown::Text => {
                self.asking.settled(&event, &mut self.screen);
                self.screen.event(&event);
                self.asking.event(&event);
                self.say_if_kept_open(&event).await;
            }
            Shown::Json => self.say_that_it_waits(&event),
            Shown::Words => {
                self.say_that_it_waits(&event);
                // What stands for a message that was never completed are no words of the agent.
                if event["type"] == "run.message.completed" && event["payload"]["brokeOff"] != true {
                    write_line(&printable(event["payload"]["text"].as_str().unwrap_or_default()));
                }
            }
        }
        match event["type"].as_str() {
            Some("run.turn.started") if self.is_turn() => self.until = Until::Turn { over_at: None },
            Some("run.turn.ended") => self.look_whether_over().await,
            Some("run.created") if self.is_turn() => self.say_if_it_begins_anew(&event["payload"]),
            _ => {}
        }
        let kind = event["type"].as_str().unwrap_or_default();
        let ends = matches!(kind, "run.completed" | "run.failed" | "run.cancelled");
        Ok(ends.then_some(Outcome::Ended(event)))
    }

    /// Where only the end is shown, a person still learns what it waits for.
    fn say_that_it_waits(&mut self, event: &Value) {
        let payload = &event["payload"];
        let answered = self.applying == Applying::Confirmed && payload["request"]["kind"] == "apply";
        if event["type"] == "run.approval.requested" && !answered {
            let id = payload["approvalId"].as_str().unwrap_or_default();
            self.screen.say(&format!("waits for an approval: runyard approvals approve {id}"));
        }
    }

    fn is_turn(&self) -> bool {
        matches!(self.until, Until::Turn { .. })
    }

    /// Whether the turn is over and all of it was shown.
    fn is_over(&self) -> bool {
        matches!(self.until, Until::Turn { over_at: Some(over_at) } if over_at <= self.last)
    }

    /// Looks whether the run waits for another turn. Where the hub cannot say so, following it says that it is away.
    async fn look_whether_over(&mut self) {
        if !self.is_turn() {
            return;
        }
        if let Ok(shown) = self.call("run_show", json!({"id": self.run})).await {
            let run = &shown["run"];
            let over_at = run["lastSequence"].as_u64().filter(|_| run["keptOpenUntil"].is_string());
            self.until = Until::Turn { over_at };
        }
    }

    /// A run that goes on from another may find nothing of the conversation.
    fn say_if_it_begins_anew(&mut self, created: &Value) {
        if created["parentRunId"].is_string() && created["thread"].is_null() {
            self.screen.say(
                "The agent has kept nothing of the conversation: it does not know what was said before.",
            );
        }
    }

    /// A turn that ended leaves a run as it is that is kept open: that it waits for the person is said, once.
    async fn say_if_kept_open(&mut self, event: &Value) {
        if event["type"] != "run.turn.ended" || self.is_turn() {
            return;
        }
        let Ok(shown) = self.call("run_show", json!({"id": self.run})).await else { return };
        let until = shown["run"]["keptOpenUntil"].as_str().map(str::to_owned);
        if let Some(text) = until.as_ref().filter(|_| until != self.kept_open) {
            let run = &self.run;
            self.screen.say(&format!(
                "kept open until {text}; say more with: runyard runs turn {run} TEXT, or runyard runs finish {run}"
            ));
            self.screen.lively();
        }
        self.kept_open = until;
    }

    /// Ctrl-C ends what is followed: a turn first, and then its run.
    async fn interrupt(&mut self) {
        // A termination is meant for the run too: nobody is there to interrupt it again.
        if !self.is_turn() || self.interrupted || self.interrupts.terminated() {
            return self.cancel().await;
        }
        self.interrupted = true;
        self.interrupts.take_in();
        let input = json!({"id": self.run, "kind": "interrupt"});
        let told = match self.call("run_command", input).await {
            Ok(_) => "Interrupting the turn".to_owned(),
            Err(error) => format!("Not interrupted: {}", said(&error)),
        };
        self.screen.say(&format!("{told}; press Ctrl-C again to cancel the run."));
    }

    async fn cancel(&mut self) {
        self.cancelled = true;
        self.screen.say("Cancelling the run; press Ctrl-C again to leave at once.");
        let input = json!({"id": self.run, "reason": "Ctrl-C at the terminal"});
        if let Err(error) = self.call("run_cancel", input).await {
            self.screen.say(&format!("Not cancelled: {}", said(&error)));
        }
    }

    pub(super) async fn wait_for_the_hub(&mut self) -> Result<(), ActionError> {
        if self.hub.is_here() {
            // It is there as long as this process; only the stream was cut.
            tokio::time::sleep(LOOK).await;
            return Ok(());
        }
        if self.hub.is_passing() {
            // It went with the command that had it, or had nothing more to do. Now this one has it, or a third.
            *self.hub = AnyHub::get(self.home, Stay::WithCommand).await?;
            return Ok(());
        }
        self.screen.say(match self.run.is_empty() {
            true => "The hub is away; waiting for it.",
            false => "The hub is away; waiting for it. The run is recorded and goes on with the next hub.",
        });
        let looks = AWAY_MAX.as_millis() / LOOK.as_millis();
        for _ in 0..looks {
            if let Some(hub) = AnyHub::find(self.home).await {
                *self.hub = hub;
                return Ok(());
            }
            if self.interrupts.next().is_cancelled() {
                break;
            }
            tokio::time::sleep(LOOK).await;
        }
        let message = match self.run.is_empty() {
            true => {
                "The hub went away. Start \"runyard up\"; \"runyard runs list\" says whether a run was made."
                    .to_owned()
            }
            false => format!(
                "The hub went away. The run is recorded: start \"runyard up\" and see \"runyard runs show {}\".",
                self.run
            ),
        };
        Err(ActionError::new(Code::ExternalServiceError, message))
    }
}

/// A failure in one line, with where the input is wrong.
pub(super) fn said(error: &ActionError) -> String {
    let issues = error.issues().iter().map(|issue| format!(" {issue}"));
    std::iter::once(error.message().to_owned()).chain(issues).collect()
}

fn write_line(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
}

/// What the run's end means for whoever started it.
pub(super) fn exit_code(end: &Value) -> u8 {
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
