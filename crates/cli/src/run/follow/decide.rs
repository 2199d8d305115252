//! What the person decides while a run is followed: said to the hub, or talked over first.

use std::collections::VecDeque;

use runyard::{ActionError, Code};
use serde_json::{Value, json};

use super::{Following, Outcome, said};
use crate::hub_client::Events;
use crate::run::Shown;
use crate::run::answers::{Said, Wish};
use crate::run::ask::{Choice, Open};
use crate::run::review::{self, Desk};
use crate::run::typed::can_ask;

/// How many events are held back while something is talked over with the person.
const HELD_MAX: usize = 256;

impl Following<'_> {
    /// An answer did not count. What this person may not answer is not asked again; where nobody is asked at all, there is
    /// nothing to wait for but the decision of somebody who was faster.
    pub(super) fn refused(
        &mut self,
        approval: &str,
        error: ActionError,
    ) -> Result<Option<Outcome>, ActionError> {
        let asks = self.shown == Shown::Text && can_ask();
        if !asks && *error.code() != Code::Conflict {
            return Err(for_somebody_else(error, approval));
        }
        let may_not = *error.code() == Code::AuthorizationError;
        self.screen.say(&format!("Not answered: {}", said(&for_somebody_else(error, approval))));
        Ok(may_not.then_some(Outcome::Left))
    }

    /// Answers as the person said; says where that ends the command.
    pub(super) async fn answer(
        &mut self,
        choice: Choice,
        events: &mut Events,
    ) -> Result<Option<Outcome>, ActionError> {
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
        let error = match self.call("approval_resolve", input).await {
            Ok(resolved) => {
                if resolved["redacted"] == true {
                    self.screen
                        .say("What you said held something secret; the agent is told it without that.");
                }
                return Ok(None);
            }
            Err(error) => error,
        };
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
        let next_interrupt = self.interrupts.next();
        let mut desk = Desk {
            client: self.hub.client(),
            run: &self.run,
            screen: &mut self.screen,
            keyboard: &mut self.asking.keyboard,
        };
        let (mut listens, mut interrupted) = (true, false);
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
                    () = next_interrupt.cancelled(), if !self.cancelled => {
                        interrupted = true;
                        break None;
                    }
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
                // Whoever interrupts has not decided: where the run goes on, it is asked again.
                if interrupted { Reviewed::NotYet } else { Reviewed::Gone }
            }
        }
    }

    /// The run stays as it is, and so does what it asks.
    pub(super) fn leave(&mut self, approval: &str) {
        let run = &self.run;
        self.screen.say(&format!(
            "Left open: \"runyard apply {run}\" asks again, \"runyard approvals reject {approval}\" rejects it."
        ));
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
