//! Making the calls of an answer: noted before and after, one by one or side by side.

use std::sync::Arc;

use runyard_llm::inference::ToolCall;
use tokio::sync::mpsc;

use super::deciding::{Making, Plan};
use super::result::Ended;
use super::waiting::{Asker, Suspended, SuspendedCalls, SuspendedUpdate};
use super::{AgentEvent, Course, Halt};
use crate::agent::CallOrder;
use crate::checkpoint::{CallNote, CallPlace};
use crate::phase::{Moment, StateCommand, join_all};
use crate::state::{MutationBatch, StateError};
use crate::tool::{Refusal, Report, Reporter, ToolError, ToolOutput, ToolResult, execute};

/// So many reports of a tool wait to be told; what comes faster is left out.
const REPORTS_MAX: usize = 64;

/// What a tool gave, or why it did not.
type Outcome = Result<ToolOutput, Refusal>;

/// A call of which it is decided that it is made.
struct Made {
    place: CallPlace,
    call: Arc<ToolCall>,
    making: Box<Making>,
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
                    let outcome = self.make(place, &call, *making).await;
                    let ended = match outcome {
                        Ok(output) => self.submit(&call, output).await,
                        Err(refusal) => Err(refusal),
                    };
                    if let Some(waiting) = waits(&ended) {
                        self.wait(place, waiting).await?;
                        return Ok(true);
                    }
                    self.over(place, &call, ended).await?;
                }
            }
        }
        Ok(false)
    }

    /// Each is decided on in its turn; those that are made are noted together, and made together on one revision.
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
                Plan::Make(making) => {
                    self.intend(place, &call, &making);
                    made.push(Made { place, call, making });
                }
            }
        }
        if made.is_empty() {
            return Ok(waiting);
        }
        self.flush().await?;
        // Until then it is as before: one that may have been made in an earlier life may have been.
        self.unknown.retain(|place| made.iter().all(|made| made.place != *place));
        let snapshot = self.store.snapshot();
        let calls: Vec<(CallPlace, Arc<ToolCall>)> =
            made.iter().map(|made| (made.place, Arc::clone(&made.call))).collect();
        let this = &*self;
        let running = made.into_iter().map(|Made { place, call, mut making }| {
            making.context.snapshot = snapshot.clone();
            async move { this.make(place, &call, *making).await }
        });
        let outcomes = join_all(running).await;
        let ended = self.submit_all(&calls, outcomes).await;
        let waits = self.conclude(calls, ended).await?;
        Ok(waits || waiting)
    }

    /// Notes what came of calls that were made side by side. Says whether any of them waits.
    ///
    /// All are noted before anything can go wrong: they were made.
    async fn conclude(
        &mut self,
        calls: Vec<(CallPlace, Arc<ToolCall>)>,
        ended: Vec<Ended>,
    ) -> Result<bool, Halt> {
        let (mut waiting, mut over) = (Vec::new(), Vec::new());
        for ((place, call), ended) in calls.into_iter().zip(ended) {
            match waits(&ended) {
                Some(call) => waiting.push((place, call)),
                None => {
                    self.note_result(place, &call, &ended);
                    over.push((place, call, ended));
                }
            }
        }
        let waits = !waiting.is_empty();
        for (place, call) in waiting {
            self.wait(place, call).await?;
        }
        let mut failed = Ok(());
        for (place, call, ended) in over {
            let followed = self.follow_up(place, &call, ended).await;
            failed = failed.and(followed);
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

    /// Makes a call whose intent is durable.
    async fn make(&self, place: CallPlace, call: &ToolCall, mut making: Making) -> Outcome {
        let idempotent = making.tool.descriptor().idempotent;
        self.tell(AgentEvent::ToolStarted { place, call: call.clone(), idempotent }).await;
        let (reports, mut told) = mpsc::channel::<Report>(REPORTS_MAX);
        making.context.reporter = Reporter::new(move |report| drop(reports.try_send(report)));
        let running = execute(making.tool.as_ref(), call.arguments.clone(), &making.context);
        tokio::pin!(running);
        let outcome = loop {
            tokio::select! {
                biased;
                Some(report) = told.recv() => self.tell(AgentEvent::ToolReported { place, report }).await,
                outcome = &mut running => break outcome,
            }
        };
        while let Ok(report) = told.try_recv() {
            self.tell(AgentEvent::ToolReported { place, report }).await;
        }
        outcome.map_err(Refusal::from)
    }

    /// Commits what a tool wants in the state. Where that cannot be, the call has failed.
    async fn submit(&mut self, call: &ToolCall, ToolOutput { result, command }: ToolOutput) -> Ended {
        let outcome = Ok(result);
        self.commit_command(command, Moment::AfterToolExecute { call, outcome: &outcome }).await?;
        outcome.map_err(Refusal::from)
    }

    async fn commit_command(&self, command: StateCommand, moment: Moment<'_>) -> Result<(), ToolError> {
        let submitted =
            self.parts.agent.environment.submit(&self.store, command, self.occasion(moment)).await;
        let report = submitted.map_err(|error| ToolError::Internal(error.to_string()))?;
        self.tell_failures(report).await;
        Ok(())
    }

    /// Commits what tools want that ran side by side, as one. Of two that meet at an exclusive key the first counts. The effects
    /// go out after it, each as its own call's.
    async fn submit_all(
        &mut self,
        calls: &[(CallPlace, Arc<ToolCall>)],
        outcomes: Vec<Outcome>,
    ) -> Vec<Ended> {
        let mut merged = StateCommand::none();
        let mut ended: Vec<Ended> = Vec::with_capacity(outcomes.len());
        let mut wanting = Vec::new();
        for outcome in outcomes {
            ended.push(match outcome {
                Err(refusal) => Err(refusal),
                Ok(ToolOutput { result, command }) if command.is_empty() => Ok(result),
                Ok(ToolOutput { result, mut command }) => match self.goes_with(&merged, &command) {
                    Ok(()) => {
                        wanting.push((ended.len(), std::mem::take(&mut command.effects)));
                        // It is checked, so nothing of it can be refused: both are for this revision, or for any.
                        merged = merged.merge_parallel(command).unwrap_or_default();
                        Ok(result)
                    }
                    Err(error) => Err(ToolError::Internal(error.to_string()).into()),
                },
            });
        }
        let committed = self.commit_command(merged, Moment::StepEnd).await;
        for (at, effects) in wanting {
            let told = match (&committed, &ended[at]) {
                (Ok(()), Ok(result)) => {
                    let (call, outcome) = (calls[at].1.as_ref(), Ok(result.clone()));
                    let command = StateCommand { effects, ..StateCommand::none() };
                    self.commit_command(command, Moment::AfterToolExecute { call, outcome: &outcome }).await
                }
                (Ok(()), Err(_)) => Ok(()),
                (Err(error), _) => Err(error.clone()),
            };
            if let Err(error) = told {
                ended[at] = Err(error.into());
            }
        }
        ended
    }

    /// Whether a command can be committed, and together with another one.
    fn goes_with(&self, before: &StateCommand, command: &StateCommand) -> Result<(), StateError> {
        let environment = &self.parts.agent.environment;
        if let Some(key) = before.batch.conflict(&command.batch) {
            return Err(StateError::ParallelMergeConflict { key: key.to_owned() });
        }
        let mut actions = command.actions.iter();
        if let Some(action) = actions.find(|action| environment.action_handler(&action.key).is_none()) {
            return Err(StateError::UnknownScheduledActionHandler { key: action.key.clone() });
        }
        let mut effects = command.effects.iter();
        if let Some(effect) = effects.find(|effect| environment.effect_handler(effect.key()).is_none()) {
            return Err(StateError::UnknownEffectHandler { key: effect.key().to_owned() });
        }
        self.store.check(&command.batch)
    }

    /// A call waits from now on.
    async fn wait(&mut self, place: CallPlace, waiting: Suspended) -> Result<(), Halt> {
        let ticket = waiting.ticket.clone();
        let wait = SuspendedUpdate::Wait(place, Box::new(waiting));
        self.store.commit(MutationBatch::new().with::<SuspendedCalls>(wait))?;
        self.tell(AgentEvent::Suspended { place, ticket }).await;
        Ok(())
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
