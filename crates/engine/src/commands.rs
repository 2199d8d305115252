//! Instructions to a live run: turn, steer, interrupt, finish, cancel.

use runyard_domain::run::{
    CancelRequested, CommandKind, CommandReceived, DiffState, QUEUED_TURNS_MAX, Run, RunEvent, RunState,
    Stopping, UNHEARD_MAX, Who,
};
use runyard_domain::{Actor, CommandId, RunId, Timestamp};

use runyard_store::StorageError;

use crate::create::TEXT_BYTES_MAX;
use crate::endings::{cancelled, completed, withdrawal, withdrawn};
use crate::fresh::fresh;
use crate::keys::{Key, Keyed};
use crate::record::{Decided, Fact, Standing};
use crate::{Engine, EngineError};

/// How many of the places for what is not heard yet are kept for interrupts.
const INTERRUPTS_MAX: usize = 4;

/// An instruction to a live run.
#[derive(Clone, Debug)]
pub struct NewCommand {
    /// Which.
    pub kind: CommandKind,
    /// What is said, with a turn or a steer.
    pub text: Option<String>,
    /// The caller's idempotency key.
    pub key: Option<String>,
}

/// The end of a run that somebody wants.
#[derive(Clone, Debug)]
pub struct NewCancel {
    /// Why.
    pub reason: String,
    /// The caller's idempotency key.
    pub key: Option<String>,
}

impl Engine {
    /// Gives an instruction. The answer is the command's id, and whether its text was redacted.
    pub async fn command(
        &self,
        run: RunId,
        command: NewCommand,
        actor: &Actor,
    ) -> Result<(CommandId, bool), EngineError> {
        let NewCommand { kind, text, key } = command;
        let invalid = |message: &str| EngineError::Invalid { path: "text", message: message.to_owned() };
        let text = match (kind, text) {
            (CommandKind::Interrupt | CommandKind::Finish, None) => None,
            (CommandKind::Interrupt, Some(_)) => return Err(invalid("Expected no text with an interrupt.")),
            (CommandKind::Finish, Some(_)) => return Err(invalid("Expected no text with a finish.")),
            (_, Some(text)) if text.len() > TEXT_BYTES_MAX => {
                return Err(invalid(&format!("Expected at most {TEXT_BYTES_MAX} bytes.")));
            }
            (_, Some(text)) if !text.trim().is_empty() => Some(text),
            (_, _) => return Err(invalid("Expected what to tell the agent.")),
        };
        let input = serde_json::json!([run, kind, text]);
        let key = Key::of("run_command", actor, key.as_deref(), &input)?;
        if let Some(Keyed { id, redacted }) = self.kept(key.as_ref()).await? {
            return Ok((id, redacted));
        }
        let id = fresh!(CommandId, self.recorder().clock.now());
        let stored = text.as_deref().map(|text| self.recorder().redacted_text(text));
        let redacted = stored != text;
        let result = key
            .map(|key| key.result(&self.recorder().redactor, &Keyed { id, redacted }, self.now()))
            .transpose()?;
        let received = CommandReceived {
            command_id: id,
            command: kind,
            text: stored,
            // A turn waits in the run itself until it begins, and so does a finish.
            until_heard: matches!(kind, CommandKind::Steer | CommandKind::Interrupt),
            actor: Who::from(actor),
        };
        let engine = self.clone();
        let decide = move |run: &Run, now| {
            takes(run, kind)?;
            let mut facts = vec![RunEvent::CommandReceived(received.clone()).into()];
            match kind {
                CommandKind::Turn => facts.extend(out_of_date(run, received.actor.clone())),
                CommandKind::Finish => {
                    let (_, info) = engine.catalog().backend(&run.created.backend_profile)?;
                    facts.extend(ended_if_idle(run, info.checkout, now));
                }
                // What it waits for belongs to the turn that is to end.
                CommandKind::Interrupt => facts.extend(withdrawn(run)),
                CommandKind::Steer => {}
            }
            Ok(Decided { facts, result: result.clone() })
        };
        let standing = match self.recorder().head(run, decide).await {
            // The same key at the same time: the first one counts.
            Err(EngineError::Storage(StorageError::AlreadyExists(..))) if key.is_some() => {
                let kept: Option<Keyed<CommandId>> = self.kept(key.as_ref()).await?;
                return kept.map(|kept| (kept.id, kept.redacted)).ok_or(EngineError::KeyTaken);
            }
            recorded => recorded?,
        };
        // Whoever drives the run finds in it what is to be said to the agent.
        self.changed(&standing);
        Ok((id, redacted))
    }

    /// Ends a run. Under the same key it is ended once, and the answer is where the run stands.
    pub async fn cancel(
        &self,
        run: RunId,
        cancel: NewCancel,
        actor: &Actor,
    ) -> Result<Standing, EngineError> {
        let NewCancel { reason, key } = cancel;
        let key = Key::of("run_cancel", actor, key.as_deref(), &serde_json::json!([run, reason]))?;
        if let Some(Keyed { id, .. }) = self.kept(key.as_ref()).await? {
            return self.run(id).await;
        }
        let kept = Keyed { id: run, redacted: false };
        let result = key.map(|key| key.result(&self.recorder().redactor, &kept, self.now())).transpose()?;
        let by = Who::from(actor);
        let decide = move |run: &Run, now| {
            if run.state.is_terminal() {
                return Err(conflict(run, "it has ended"));
            }
            if let RunState::Applying { .. } = run.state {
                // It ends when it is known what is in the person's files: all of it, or nothing.
                let requested = CancelRequested { by: by.clone(), reason: reason.clone() };
                return match run.stopping {
                    Some(Stopping::Cancelled(_)) => Err(conflict(run, "it is being cancelled already")),
                    Some(Stopping::Late) | None => {
                        let facts = vec![RunEvent::CancelRequested(requested).into()];
                        Ok(Decided { facts, result: result.clone() })
                    }
                };
            }
            let mut facts = withdrawn(run);
            facts.push(cancelled(run, by.clone(), &reason, None, now).into());
            Ok(Decided { facts, result: result.clone() })
        };
        let standing = match self.recorder().head(run, decide).await {
            // The same key at the same time: the first one counts.
            Err(error) if key.is_some() => match self.kept::<RunId>(key.as_ref()).await? {
                Some(Keyed { id, .. }) => return self.run(id).await,
                None => return Err(error),
            },
            recorded => recorded?,
        };
        self.changed(&standing);
        Ok(standing)
    }
}

/// The agent works on, so what it had changed by now is out of date.
fn out_of_date(run: &Run, by: Who) -> Option<Fact> {
    let asked = run.review.as_ref().and_then(|review| review.approval_id);
    let open = asked.filter(|asked| run.state.open().any(|(id, _)| id == *asked));
    open.map(|id| withdrawal(id, by, "The agent was given a further turn.").into())
}

/// A run that is kept open is so no longer: Runyard itself says it where nobody does.
pub(crate) fn finished(run: &Run, checkout: bool, now: Timestamp) -> Vec<Fact> {
    let finish = RunEvent::CommandReceived(CommandReceived {
        command_id: fresh!(CommandId, now),
        command: CommandKind::Finish,
        text: None,
        until_heard: false,
        actor: Who::runyard(),
    });
    std::iter::once(finish.into()).chain(ended_if_idle(run, checkout, now)).collect()
}

/// What a finish does to a run whose agent does nothing and is to do nothing more. A checkout is looked at before the end.
fn ended_if_idle(run: &Run, checkout: bool, now: Timestamp) -> Vec<Fact> {
    if !run.is_idle() {
        return Vec::new();
    }
    let mut facts = withdrawn(run);
    if !checkout {
        facts.push(completed(run, DiffState::None, now).into());
    }
    facts
}

/// Whether the run takes a command of this kind where it stands.
fn takes(run: &Run, kind: CommandKind) -> Result<(), EngineError> {
    if run.state.is_terminal() {
        return Err(conflict(run, "it has ended; start a new run in its session"));
    }
    match kind {
        CommandKind::Turn if run.queued.len() >= QUEUED_TURNS_MAX => {
            Err(conflict(run, "too many turns wait already"))
        }
        CommandKind::Turn if matches!(run.state, RunState::Applying { .. }) => {
            Err(conflict(run, "what it changed is being applied; start a new run in its session"))
        }
        CommandKind::Turn => Ok(()),
        CommandKind::Finish if run.created.execution_policy.keep_open_ms.is_none() => {
            Err(conflict(run, "it is not kept open, and ends by itself"))
        }
        CommandKind::Finish if run.finishing || matches!(run.state, RunState::Applying { .. }) => {
            Err(conflict(run, "it is on its way to its end already"))
        }
        CommandKind::Finish => Ok(()),
        // An interrupt always has a place: whoever said too much can still end the turn.
        CommandKind::Steer if run.unheard.len() >= UNHEARD_MAX - INTERRUPTS_MAX => {
            Err(conflict(run, "too much waits to be heard by its agent already"))
        }
        CommandKind::Interrupt if run.unheard.len() >= UNHEARD_MAX => {
            Err(conflict(run, "it is being interrupted already"))
        }
        CommandKind::Steer | CommandKind::Interrupt if run.turn_active => Ok(()),
        CommandKind::Steer | CommandKind::Interrupt => Err(conflict(run, "no turn is running")),
    }
}

fn conflict(run: &Run, what: &'static str) -> EngineError {
    EngineError::Conflict { run: run.id, state: run.state.name(), what }
}
