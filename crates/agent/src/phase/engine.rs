//! Runs one phase to its rest: the hooks, their merged commit, the scheduled actions, the effects.

use std::future::Future;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::join::join_all;
use super::{
    ACTIONS_PENDING_MAX, EffectReport, Emitted, FailedAction, FailedActions, Fault, Occasion, PendingActions,
    PendingUpdate, Phase, PhaseContext, PhaseError, PhaseHook, Scheduled, StateCommand,
};
use crate::caught::{caught, caught_now};
use crate::plugin::{Environment, Part};
use crate::state::{MutationBatch, StateError, StateStore};

/// So many times the scheduled actions of a phase are gone through, with those that came of it.
pub const PHASE_ROUNDS_MAX: usize = 16;

/// What a phase did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PhaseReport {
    /// How many revisions it made.
    pub commits: usize,
    /// How many times scheduled actions were gone through.
    pub rounds: usize,
    /// Those of them that failed; they are among the [`FailedActions`].
    pub failed_actions: Vec<ActionFailure>,
    /// What became of the effects.
    pub effects: EffectReport,
}

/// A scheduled action that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionFailure {
    /// Its kind.
    pub key: String,
    /// Why.
    pub message: String,
}

impl Environment {
    /// Runs a phase to its rest. One phase at a time: another one of the same run waits.
    ///
    /// The hooks run side by side on one revision, and their answers become one commit. One whose answer meets an earlier
    /// one's at an exclusive key is asked again after that commit, alone, in the order of registration. Then the scheduled
    /// actions of the phase are handled until none is left, in at most [`PHASE_ROUNDS_MAX`] rounds. An answer that names an
    /// unknown key, action or effect is an error before anything of the hooks' answers is committed.
    ///
    /// Cancellation is looked at before, between and during all that, but never between a commit and its effects. What was
    /// committed by then stays.
    pub async fn run_phase(&self, store: &StateStore, at: Occasion<'_>) -> Result<PhaseReport, PhaseError> {
        let mut report = PhaseReport::default();
        self.run_phase_reporting(store, at, &mut report).await?;
        Ok(report)
    }

    /// The same, with a report of what it did also where it failed, or was left.
    pub(crate) async fn run_phase_reporting(
        &self,
        store: &StateStore,
        at: Occasion<'_>,
        report: &mut PhaseReport,
    ) -> Result<(), PhaseError> {
        if at.cancellation.is_cancelled() {
            return Err(StateError::Cancelled.into());
        }
        let phase = at.moment.phase();
        // Most phases have nothing to do, and should cost as much.
        if !self.has_something_to_do(store, phase) {
            return Ok(());
        }
        Box::pin(async {
            let _turn = unless_cancelled(at.cancellation, store.phase()).await?;
            let mut turn = Turn { environment: self, store, at, report };
            turn.gather().await?;
            turn.handle_actions().await
        })
        .await
    }

    /// Whether a phase would do anything now.
    pub(crate) fn has_something_to_do(&self, store: &StateStore, phase: Phase) -> bool {
        !self.hooks(phase).is_empty() || is_waited_for(store, phase)
    }

    /// Commits what a tool wants, and sends its effects. Actions that it schedules wait for their phase. Not cancelled: what
    /// the tool did is done.
    pub async fn submit(
        &self,
        store: &StateStore,
        command: StateCommand,
        at: Occasion<'_>,
    ) -> Result<PhaseReport, PhaseError> {
        if command.is_empty() {
            return Ok(PhaseReport::default());
        }
        let _turn = store.phase().await;
        let mut report = PhaseReport::default();
        let mut turn = Turn { environment: self, store, at, report: &mut report };
        turn.check(&command)?;
        turn.commit(command).await?;
        Ok(report)
    }
}

impl Environment {
    /// Commits what a tool wants, but for its effects, which it gives back: they are for [`Self::send`].
    pub(crate) async fn accept(
        &self,
        store: &StateStore,
        command: StateCommand,
        at: Occasion<'_>,
    ) -> Result<Vec<Emitted>, PhaseError> {
        let _turn = store.phase().await;
        let mut turn = Turn { environment: self, store, at, report: &mut PhaseReport::default() };
        turn.check(&command)?;
        turn.commit_changes(command)
    }

    /// Sends effects of what is committed.
    pub(crate) async fn send(
        &self,
        store: &StateStore,
        effects: Vec<Emitted>,
        at: Occasion<'_>,
    ) -> PhaseReport {
        let mut report = PhaseReport::default();
        if !effects.is_empty() {
            let _turn = store.phase().await;
            Turn { environment: self, store, at, report: &mut report }.send(effects).await;
        }
        report
    }
}

struct Turn<'a> {
    environment: &'a Environment,
    store: &'a StateStore,
    at: Occasion<'a>,
    report: &'a mut PhaseReport,
}

type Hook = Part<dyn PhaseHook>;

impl<'a> Turn<'a> {
    async fn gather(&mut self) -> Result<(), PhaseError> {
        let hooks = self.environment.hooks(self.at.moment.phase());
        let (accepted, deferred) = self.ask_all(hooks).await?;
        self.commit(accepted).await?;
        for hook in deferred {
            let command = self.ask_again(hook).await?;
            self.check(&command)?;
            self.commit(command).await?;
        }
        Ok(())
    }

    /// Asks all hooks on one revision: what can be committed together, and the hooks whose answer cannot.
    async fn ask_all(&self, hooks: &'a [Hook]) -> Result<(StateCommand, Vec<&'a Hook>), PhaseError> {
        let context = self.context();
        let asked = hooks.iter().map(|hook| ask(&hook.part, &context));
        let answers = unless_cancelled(self.at.cancellation, join_all(asked)).await?;
        let mut commands = Vec::with_capacity(hooks.len());
        for (hook, answer) in hooks.iter().zip(answers) {
            let command = self.answer(hook, answer)?;
            self.check(&command)?;
            commands.push((hook, command));
        }
        let mut accepted = StateCommand::none();
        let mut deferred = Vec::new();
        for (hook, command) in commands {
            match accepted.batch.conflict(&command.batch) {
                Some(_) => deferred.push(hook),
                None => accepted = accepted.merge_parallel(command)?,
            }
        }
        Ok((accepted, deferred))
    }

    async fn ask_again(&self, hook: &Hook) -> Result<StateCommand, PhaseError> {
        let context = self.context();
        let answer = unless_cancelled(self.at.cancellation, ask(&hook.part, &context)).await?;
        self.answer(hook, answer)
    }

    fn answer(&self, hook: &Hook, answer: Answer) -> Result<StateCommand, PhaseError> {
        let (plugin, phase) = (|| hook.owner.to_string(), self.at.moment.phase());
        match answer {
            Ok(Ok(command)) => Ok(command),
            Ok(Err(fault)) => Err(PhaseError::of(plugin(), phase, fault)),
            Err(message) => Err(PhaseError::Panicked { plugin: plugin(), phase, message }),
        }
    }

    async fn handle_actions(&mut self) -> Result<(), PhaseError> {
        let phase = self.at.moment.phase();
        for _ in 0..PHASE_ROUNDS_MAX {
            let snapshot = self.store.snapshot();
            let waiting = snapshot.get::<PendingActions>().map(|pending| pending.of(phase));
            let Some(waiting) = waiting.filter(|waiting| !waiting.is_empty()) else { return Ok(()) };
            self.report.rounds += 1;
            for (number, action) in waiting {
                self.handle_action(number, &action).await?;
            }
        }
        if is_waited_for(self.store, phase) {
            return Err(StateError::PhaseRunLoopExceeded { phase, max_rounds: PHASE_ROUNDS_MAX }.into());
        }
        Ok(())
    }

    /// Handles one action. That it is done is part of the commit that it leads to.
    async fn handle_action(&mut self, number: u64, action: &Arc<Scheduled>) -> Result<(), PhaseError> {
        let outcome = match self.environment.action_handler(&action.key) {
            None => Err("it has no handler".to_owned()),
            Some(handler) => {
                let context = self.context();
                let handled = caught(async { handler.handle(&action.payload, &context).await });
                match unless_cancelled(self.at.cancellation, handled).await? {
                    Ok(handled) => handled.map_err(|fault| fault.to_string()),
                    Err(panicked) => Err(panicked),
                }
            }
        };
        let mut command = match outcome {
            Ok(command) => command,
            Err(message) => {
                tracing::warn!(action = action.key, "a scheduled action failed: {message}");
                let failure = ActionFailure { key: action.key.clone(), message: message.clone() };
                self.report.failed_actions.push(failure);
                let action = Scheduled::clone(action);
                StateCommand::none().update::<FailedActions>(FailedAction { action, message })
            }
        };
        self.check(&command)?;
        command.batch.update::<PendingActions>(PendingUpdate::Done(number));
        self.commit(command).await
    }

    /// Whether everything that a command names is known.
    fn check(&self, command: &StateCommand) -> Result<(), StateError> {
        let unhandled = |action: &&Scheduled| self.environment.action_handler(&action.key).is_none();
        if let Some(action) = command.actions.iter().find(unhandled) {
            return Err(StateError::UnknownScheduledActionHandler { key: action.key.clone() });
        }
        let effects = command.effects.iter();
        if let Some(effect) =
            effects.map(Emitted::key).find(|key| self.environment.effect_handler(key).is_none())
        {
            return Err(StateError::UnknownEffectHandler { key: effect.to_owned() });
        }
        self.store.check(&command.batch)
    }

    async fn commit(&mut self, command: StateCommand) -> Result<(), PhaseError> {
        let effects = self.commit_changes(command)?;
        self.send(effects).await;
        Ok(())
    }

    /// Commits what is changed and scheduled, and gives back the effects.
    fn commit_changes(&mut self, command: StateCommand) -> Result<Vec<Emitted>, PhaseError> {
        let StateCommand { mut batch, actions, effects } = command;
        if let Some(first) = actions.first() {
            let waiting = self.store.snapshot().get::<PendingActions>().map_or(0, |all| all.waiting.len());
            if waiting + actions.len() > ACTIONS_PENDING_MAX {
                let (phase, max_rounds) = (first.phase, PHASE_ROUNDS_MAX);
                return Err(StateError::PhaseRunLoopExceeded { phase, max_rounds }.into());
            }
            batch.update::<PendingActions>(PendingUpdate::Add(actions));
        }
        if !batch.is_empty() || batch.base_revision().is_some() {
            self.commit_batch(batch)?;
        }
        Ok(effects)
    }

    async fn send(&mut self, effects: Vec<Emitted>) {
        if effects.is_empty() {
            return;
        }
        let context = self.context();
        for effect in effects {
            let handler = self.environment.effect_handler(effect.key());
            self.report.effects.dispatch(handler, effect, &context, self.store.effects()).await;
        }
    }

    fn commit_batch(&mut self, batch: MutationBatch) -> Result<(), PhaseError> {
        let changes = !batch.is_empty();
        match caught_now(|| self.store.commit(batch)) {
            Ok(committed) => {
                committed?;
                self.report.commits += usize::from(changes);
                Ok(())
            }
            Err(message) => {
                let (plugin, phase) = ("a state key".to_owned(), self.at.moment.phase());
                Err(PhaseError::Panicked { plugin, phase, message })
            }
        }
    }

    fn context(&self) -> PhaseContext<'a> {
        PhaseContext { at: self.at, snapshot: self.store.snapshot() }
    }
}

/// What a hook answered, or what its panic said.
type Answer = Result<Result<StateCommand, Fault>, String>;

fn ask(hook: &Arc<dyn PhaseHook>, context: &PhaseContext<'_>) -> impl Future<Output = Answer> {
    caught(async move { hook.run(context).await })
}

fn is_waited_for(store: &StateStore, phase: Phase) -> bool {
    let waits = |action: &Arc<Scheduled>| action.phase == phase;
    store.look(|now| now.get::<PendingActions>().is_some_and(|pending| pending.waiting.values().any(waits)))
}

/// The future's output, unless it is cancelled before it or while it waits: then it is dropped where it is.
pub(super) async fn unless_cancelled<F: Future>(
    cancellation: &CancellationToken,
    future: F,
) -> Result<F::Output, StateError> {
    tokio::select! {
        biased;
        () = cancellation.cancelled() => Err(StateError::Cancelled),
        output = future => Ok(output),
    }
}
