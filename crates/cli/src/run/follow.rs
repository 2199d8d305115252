//! Following a run to its end, over whatever happens to the hub meanwhile.

use std::collections::VecDeque;
use std::io::Write;
use std::time::Duration;

use runyard::{ActionError, Code};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::answers::{Said, Wish};
use super::ask::{Asking, Choice, Open};
use super::review::{self, Desk};
use super::show::Screen;
use super::typed::can_ask;
use super::{Shown, data};
use crate::home::Home;
use crate::hub_client::Events;
use crate::hub_here::{AnyHub, Stay};
use crate::patches::{self, Changes};

/// How long a hub that went away is waited for.
const AWAY_MAX: Duration = Duration::from_secs(60);
/// How often it is looked for meanwhile.
const LOOK: Duration = Duration::from_millis(250);
/// How many events are held back while something is talked over with the person.
const HELD_MAX: usize = 256;
/// What a command ends with that left its run waiting.
const LEFT: u8 = 1;

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
    stop: &CancellationToken,
) -> Result<u8, ActionError> {
    Following::of(home, hub, made, shown, applying, stop).finish().await
}

/// The same for a run that is already there, from here on. What it waits for is asked.
pub(crate) async fn from_here(
    home: &Home,
    hub: &mut AnyHub,
    run: &Value,
    shown: Shown,
    stop: &CancellationToken,
) -> Result<u8, ActionError> {
    let mut following = Following::of(home, hub, run, shown, Applying::Asked, stop);
    following.last = run["run"]["lastSequence"].as_u64().unwrap_or_default();
    following.take_up(&run["run"]["openApprovals"]).await?;
    following.finish().await
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
    applying: Applying,
    /// Until when it was last said that the run is kept open.
    kept_open: Option<String>,
    /// Events that came while something was talked over with the person.
    held: VecDeque<String>,
}

/// How following a run ended.
enum Outcome {
    /// With the event that ended the run.
    Ended(Value),
    /// The person left it waiting.
    Left,
}

impl<'a> Following<'a> {
    fn of(
        home: &'a Home,
        hub: &'a mut AnyHub,
        made: &Value,
        shown: Shown,
        applying: Applying,
        stop: &'a CancellationToken,
    ) -> Self {
        Following {
            home,
            hub,
            run: made["run"]["id"].as_str().unwrap_or_default().to_owned(),
            shown,
            last: 0,
            screen: Screen::new(shown == Shown::Text, made),
            asking: Asking::default(),
            stop,
            cancelled: false,
            applying,
            kept_open: None,
            held: VecDeque::new(),
        }
    }

    async fn finish(mut self) -> Result<u8, ActionError> {
        let end = match self.follow().await? {
            Outcome::Ended(end) => end,
            Outcome::Left => return Ok(LEFT),
        };
        self.screen.end(&end);
        if self.shown == Shown::Json {
            let envelope = self.hub.client().invoke("run_show", json!({"id": self.run}), false, None).await?;
            write_line(&serde_json::to_string_pretty(&envelope).unwrap_or_default());
        }
        Ok(exit_code(&end))
    }

    /// What a run that is already there waits for, as if it were asked just now.
    async fn take_up(&mut self, open: &Value) -> Result<(), ActionError> {
        let first = self.call("run_events", json!({"id": self.run, "limit": 1})).await?;
        self.asking.event(&first["events"][0], &mut self.screen);
        for id in open.as_array().into_iter().flatten() {
            let found = self.call("approval_show", json!({"id": id})).await?;
            let mut asked = found["approval"].clone();
            asked["approvalId"] = id.clone();
            let event = json!({"type": "run.approval.requested", "payload": asked});
            // What is taken up is asked about, so that nothing ends here.
            self.before(&event).await?;
            self.screen.event(&event);
            self.asking.event(&event, &mut self.screen);
        }
        Ok(())
    }

    async fn call(&self, action: &str, input: Value) -> Result<Value, ActionError> {
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
            loop {
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
                        () = self.stop.cancelled(), if !self.cancelled => {
                            self.cancel().await;
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
                self.screen.event(&event);
                self.asking.event(&event, &mut self.screen);
                self.say_if_kept_open(&event).await;
            }
            Shown::Json => self.say_that_it_waits(&event),
        }
        let kind = event["type"].as_str().unwrap_or_default();
        let ends = matches!(kind, "run.completed" | "run.failed" | "run.cancelled");
        Ok(ends.then_some(Outcome::Ended(event)))
    }

    /// An answer did not count. What this person may not answer is not asked again; where nobody is asked at all, there is
    /// nothing to wait for but the decision of somebody who was faster.
    fn refused(&mut self, approval: &str, error: ActionError) -> Result<Option<Outcome>, ActionError> {
        let asks = self.shown == Shown::Text && can_ask();
        if !asks && *error.code() != Code::Conflict {
            return Err(for_somebody_else(error, approval));
        }
        let may_not = *error.code() == Code::AuthorizationError;
        self.screen.say(&format!("Not answered: {}", said(&for_somebody_else(error, approval))));
        Ok(may_not.then_some(Outcome::Left))
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

    /// A turn that ended leaves a run as it is that is kept open: that it waits for the person is said, once.
    async fn say_if_kept_open(&mut self, event: &Value) {
        if event["type"] != "run.turn.ended" {
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

    /// Answers as the person said; says where that ends the command.
    async fn answer(&mut self, choice: Choice, events: &mut Events) -> Result<Option<Outcome>, ActionError> {
        let Choice { approval, open, said: chosen } = choice;
        let input = match chosen {
            Said::Decided { approve, scope, answer } => {
                let decision = if approve { "approve" } else { "reject" };
                let mut input =
                    json!({"id": approval, "decision": decision, "digest": open.digest, "scope": scope});
                if let Some(answer) = answer {
                    input["answer"] = answer;
                }
                input
            }
            Said::Wishes(wish) => match self.dialog(&approval, &open, wish, events).await {
                Reviewed::Answer(input) => input,
                Reviewed::NotYet => {
                    self.asking.again(approval, open);
                    return Ok(None);
                }
                Reviewed::Gone => return Ok(None),
            },
            Said::Later | Said::Help => {
                self.asking.again(approval, open);
                return Ok(None);
            }
        };
        let Err(error) = self.call("approval_resolve", input).await else { return Ok(None) };
        // Somebody else's decision counts, and comes as an event. Whatever else was wrong, it is still open.
        let decided = *error.code() == Code::Conflict;
        let outcome = self.refused(&approval, error)?;
        if outcome.is_none() && !decided {
            self.asking.again(approval, open);
        }
        Ok(outcome)
    }

    /// Talks it over with the person. Events are held back meanwhile, but for the one that settles it: then there is nothing left
    /// to talk about.
    async fn dialog(&mut self, approval: &str, open: &Open, wish: Wish, events: &mut Events) -> Reviewed {
        let mut held = VecDeque::new();
        let mut desk = Desk {
            client: self.hub.client(),
            run: &self.run,
            screen: &mut self.screen,
            keyboard: &mut self.asking.keyboard,
        };
        let mut listens = true;
        let verdict = {
            let mut verdict = std::pin::pin!(desk.verdict(approval, &open.digest, wish));
            loop {
                tokio::select! {
                    verdict = &mut verdict => break Some(verdict),
                    heard = events.next(), if listens && held.len() < HELD_MAX => match heard {
                        Ok(Some(text)) => {
                            let settled = settles(&text, approval);
                            held.push_back(text);
                            if settled {
                                break None;
                            }
                        }
                        // Whoever follows finds out again.
                        Ok(None) | Err(_) => listens = false,
                    },
                    () = self.stop.cancelled(), if !self.cancelled => break None,
                }
            }
        };
        self.held.extend(held);
        match verdict {
            Some(Ok(verdict)) => {
                review::answer(approval, &open.digest, verdict).map_or(Reviewed::NotYet, Reviewed::Answer)
            }
            Some(Err(error)) => {
                self.screen.say(&format!("Not shown: {}", said(&error)));
                Reviewed::NotYet
            }
            None => {
                self.asking.leave_off(&mut self.screen);
                Reviewed::Gone
            }
        }
    }

    /// The run stays as it is, and so does what it asks.
    fn leave(&mut self, approval: &str) {
        let run = &self.run;
        self.screen.say(&format!(
            "Left open: \"runyard apply {run}\" asks again, \"runyard approvals reject {approval}\" rejects it."
        ));
    }

    async fn cancel(&mut self) {
        self.cancelled = true;
        self.screen.say("Cancelling the run; press Ctrl-C again to leave at once.");
        let input = json!({"id": self.run, "reason": "Ctrl-C at the terminal"});
        if let Err(error) = self.call("run_cancel", input).await {
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

/// What came of talking it over.
enum Reviewed {
    /// An answer.
    Answer(Value),
    /// The person has not decided.
    NotYet,
    /// There is nothing to decide any more.
    Gone,
}

/// Whether an event leaves nothing to decide about an approval.
fn settles(text: &str, approval: &str) -> bool {
    let event: Value = serde_json::from_str(text).unwrap_or_default();
    match event["type"].as_str() {
        Some("run.approval.resolved") => event["payload"]["approvalId"] == approval,
        Some("run.completed" | "run.failed" | "run.cancelled") => true,
        _ => false,
    }
}

/// The refusal of an answer that is not this person's to give, with who can.
pub(crate) fn for_somebody_else(error: ActionError, approval: &str) -> ActionError {
    if *error.code() != Code::AuthorizationError {
        return error;
    }
    let message = format!(
        "{} It stays open and waits for somebody else: \"runyard approvals approve {approval}\" by them.",
        error.message()
    );
    ActionError::new(Code::AuthorizationError, message)
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
