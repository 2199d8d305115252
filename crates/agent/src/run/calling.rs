//! Making the calls of an answer: noted before and after, one by one or side by side.

use std::any::TypeId;
use std::collections::HashSet;
use std::sync::Arc;

use runyard_domain::Class;
use runyard_llm::inference::ToolCall;
use tokio::sync::mpsc;

use super::deciding::{Making, Plan};
use super::reports::Reports;
use super::result::Ended;
use super::waiting::{Asker, Suspended, SuspendedCalls, SuspendedUpdate};
use super::{AgentEvent, Course, Halt};
use crate::agent::CallOrder;
use crate::checkpoint::{CallNote, CallPlace};
use crate::phase::{Emitted, Moment, PhaseError, SideBySide, StateCommand};
use crate::state::{MutationBatch, StateError};
use crate::tool::{Refusal, ToolError, ToolOutput, ToolResult, execute};

/// What a tool gave, or why it did not.
type Outcome = Result<ToolOutput, Refusal>;

/// A call of which it is decided that it is made.
struct Made {
    place: CallPlace,
    call: Arc<ToolCall>,
    making: Box<Making>,
}

/// A call that was made: what came of it stands in the conversation, and the rest is to follow when that is durable.
struct Kept {
    ended: Ended,
    effects: Vec<Emitted>,
}

/// What calls have changed that were made side by side, on one revision.
struct Siblings {
    revision: u64,
    exclusive: HashSet<TypeId>,
}

impl Course {
    /// Makes the calls that have no result. Says whether the run waits.
    pub(super) async fn call_all(&mut self) -> Result<bool, Halt> {
        match self.parts.agent.calls {
            CallOrder::OneByOne => self.one_by_one().await,
            CallOrder::Parallel => self.side_by_side().await,
        }
    }

    async fn one_by_one(&mut self) -> Result<bool, Halt> {
        for (place, call) in self.conversation.unanswered().to_vec() {
            match self.plan(place, &call).await? {
                Plan::Wait(waiting) => {
                    self.wait(place, waiting).await?;
                    return Ok(true);
                }
                Plan::Block(reason) => return Err(self.block(place, &call, reason).await),
                Plan::Over(ended) => self.over(place, &call, ended).await?,
                Plan::Make(making) => {
                    self.intend(place, &call, &making);
                    self.flush().await?;
                    self.unknown.remove(&place);
                    if self.make_all(vec![Made { place, call, making }]).await? {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Each is decided on in its turn; those that are made are noted together, and made together on one revision. None is noted
    /// before the last one is decided on: that may take a person days, and nothing has begun meanwhile.
    async fn side_by_side(&mut self) -> Result<bool, Halt> {
        let (mut waiting, mut made) = (false, Vec::new());
        for (place, call) in self.conversation.unanswered().to_vec() {
            match self.plan(place, &call).await? {
                Plan::Wait(call) => {
                    self.wait(place, call).await?;
                    waiting = true;
                }
                Plan::Block(reason) => return Err(self.block(place, &call, reason).await),
                Plan::Over(ended) => self.over(place, &call, ended).await?,
                Plan::Make(making) => made.push(Made { place, call, making }),
            }
        }
        if made.is_empty() {
            return Ok(waiting);
        }
        for Made { place, call, making } in &made {
            self.intend(*place, call, making);
        }
        self.flush().await?;
        // Until then it is as before: one that may have been made in an earlier life may have been.
        self.unknown.retain(|place| made.iter().all(|made| made.place != *place));
        let waits = self.make_all(made).await?;
        Ok(waits || waiting)
    }

    /// Makes calls side by side. What came of each is durable as soon as it is there, and the rest follows when all are over.
    /// What they report is told all the while: a listener may have to hear the end of one before it hears of another.
    /// Says whether any of them waits.
    async fn make_all(&mut self, made: Vec<Made>) -> Result<bool, Halt> {
        let snapshot = self.store.snapshot();
        let mut siblings = Siblings::on(snapshot.revision());
        let calls: Vec<(CallPlace, Arc<ToolCall>)> =
            made.iter().map(|made| (made.place, Arc::clone(&made.call))).collect();
        let (ends, mut outcomes) = mpsc::channel(calls.len().max(1));
        let mut running = SideBySide::new(made.into_iter().zip(0..).map(|(made, at)| {
            let Made { place, call, mut making } = made;
            making.context.snapshot = snapshot.clone();
            self.make(place, call, *making, (at, ends.clone()))
        }));
        drop(ends);
        let mut kept: Vec<Option<Kept>> = calls.iter().map(|_| None).collect();
        let mut durable = Ok(());
        while let Some(first) = running.beside(outcomes.recv()).await {
            let mut done = vec![first];
            done.extend(std::iter::from_fn(|| outcomes.try_recv().ok()));
            done.sort_by_key(|(at, _)| *at);
            for (at, outcome) in done {
                let (place, call) = &calls[at];
                kept[at] = Some(self.keep(*place, call, outcome, &mut siblings).await?);
            }
            let flushed = running.beside(self.flush()).await;
            durable = durable.and(flushed);
        }
        while running.next().await.is_some() {}
        let (mut waits, mut failed) = (false, Ok(()));
        for ((place, call), kept) in calls.iter().zip(kept) {
            let Some(kept) = kept else { continue };
            match self.conclude(*place, call, kept, durable.clone()).await {
                Ok(waiting) => waits |= waiting,
                Err(halt) => failed = failed.and(Err(halt)),
            }
        }
        failed.map(|()| waits)
    }

    fn intend(&mut self, place: CallPlace, call: &ToolCall, making: &Making) {
        self.notes.push(CallNote::Intent {
            place,
            call: call.clone(),
            idempotency_key: making.context.idempotency_key.clone(),
            idempotent: making.tool.descriptor().idempotent,
        });
    }

    /// Makes a call whose intent is durable. It says what came of it there, and is over when all that was reported is told.
    fn make(
        &self,
        place: CallPlace,
        call: Arc<ToolCall>,
        making: Making,
        (at, ends): (usize, mpsc::Sender<(usize, Outcome)>),
    ) -> impl Future<Output = ()> + use<> {
        let teller = self.teller.clone();
        let is_in_order = self.parts.checkpoint.is_one_with_observers();
        async move {
            let Making { tool, mut context } = making;
            let idempotent = tool.descriptor().idempotent;
            teller.tell(AgentEvent::ToolStarted { place, call: ToolCall::clone(&call), idempotent }).await;
            let (reporter, mut reports) = Reports::of(place, teller);
            context.reporter = reporter;
            let running = execute(tool.as_ref(), call.arguments.clone(), &context);
            tokio::pin!(running);
            let outcome = loop {
                tokio::select! {
                    biased;
                    outcome = &mut running => break outcome,
                    () = reports.tell_next() => {}
                }
            };
            if is_in_order {
                reports.tell_rest().await;
            }
            // There is room for one of each call. Nobody waits for more of this one, whoever hears of it.
            let _ = ends.try_send((at, outcome.map_err(Refusal::from)));
            drop(ends);
            reports.tell_rest().await;
        }
    }

    /// What came of a call goes into the state and the conversation, so that the next step has all of it.
    async fn keep(
        &mut self,
        place: CallPlace,
        call: &ToolCall,
        outcome: Outcome,
        siblings: &mut Siblings,
    ) -> Result<Kept, Halt> {
        let (ended, effects) = match outcome {
            Err(refusal) => (Err(refusal), Vec::new()),
            Ok(ToolOutput { result, command }) => self.accept(call, result, command, siblings).await,
        };
        match waits(&ended) {
            Some(waiting) => self.note_wait(place, waiting)?,
            None => {
                self.come_of(place, call, &ended)?;
                self.is_to_follow(place, ended.as_ref().err().map(|refusal| refusal.error.code()))?;
            }
        }
        Ok(Kept { ended, effects })
    }

    /// Commits what a tool wants in the state, and gives back its effects. What meets another call's changes is left out, and
    /// the model is told: the call was made, and its result stands. A tool that wants what cannot be is broken.
    async fn accept(
        &mut self,
        call: &ToolCall,
        result: ToolResult,
        command: StateCommand,
        siblings: &mut Siblings,
    ) -> (Ended, Vec<Emitted>) {
        if command.is_empty() {
            return (Ok(result), Vec::new());
        }
        let outcome = Ok(result.clone());
        let at = self.occasion(Moment::AfterToolExecute { call, outcome: &outcome });
        let changed: Vec<TypeId> = command.batch.exclusive().map(|(key, _)| key).collect();
        let accepted = match siblings.join(command) {
            Ok(command) => self.parts.agent.environment.accept(&self.store, command, at).await,
            Err(conflict) => Err(conflict.into()),
        };
        match accepted {
            Ok(effects) => {
                siblings.exclusive.extend(changed);
                (Ok(result), effects)
            }
            Err(PhaseError::State(conflict)) if conflict.code().row().class == Class::Conflict => {
                let code = conflict.code().as_str();
                let word = format!(
                    "[{code}: {conflict}. What this call was to change in the state is left out; what it gave stands:]"
                );
                (Ok(result.saying_first(&word)), Vec::new())
            }
            Err(error) => (Err(ToolError::Internal(error.to_string()).into()), Vec::new()),
        }
    }

    /// What follows when it is durable what came of a call, or cannot be. Says whether the call waits.
    async fn conclude(
        &mut self,
        place: CallPlace,
        call: &ToolCall,
        kept: Kept,
        durable: Result<(), Halt>,
    ) -> Result<bool, Halt> {
        let Kept { ended, effects } = kept;
        if let Ok(result) = &ended {
            let outcome = Ok(result.clone());
            let at = self.occasion(Moment::AfterToolExecute { call, outcome: &outcome });
            let report = self.parts.agent.environment.send(&self.store, effects, at).await;
            self.tell_failures(report).await;
        }
        match waits(&ended) {
            Some(Suspended { ticket, .. }) => {
                self.tell(AgentEvent::Suspended { place, ticket }).await;
                durable.map(|()| true)
            }
            None => self.follow_up(place, call, ended, durable).await.map(|()| false),
        }
    }

    /// A call waits from now on.
    async fn wait(&mut self, place: CallPlace, waiting: Suspended) -> Result<(), Halt> {
        let ticket = waiting.ticket.clone();
        self.note_wait(place, waiting)?;
        self.tell(AgentEvent::Suspended { place, ticket }).await;
        Ok(())
    }

    fn note_wait(&mut self, place: CallPlace, waiting: Suspended) -> Result<(), StateError> {
        let wait = SuspendedUpdate::Wait(place, Box::new(waiting));
        self.store.commit(MutationBatch::new().with::<SuspendedCalls>(wait)).map(drop)
    }
}

impl Siblings {
    fn on(revision: u64) -> Self {
        Siblings { revision, exclusive: HashSet::new() }
    }

    /// The command as one of theirs, where it meets none of them at an exclusive key. Their revision is behind them by now.
    fn join(&self, mut command: StateCommand) -> Result<StateCommand, StateError> {
        let met = command.batch.exclusive().find(|(key, _)| self.exclusive.contains(key));
        if let Some((_, key)) = met {
            return Err(StateError::ParallelMergeConflict { key: key.to_owned() });
        }
        command.batch = command.batch.not_only_for(self.revision);
        Ok(command)
    }
}

fn waits(ended: &Ended) -> Option<Suspended> {
    match ended {
        Ok(ToolResult::Suspended { ticket }) => {
            Some(Suspended { asker: Asker::Tool, ticket: (**ticket).clone() })
        }
        _ => None,
    }
}
