//! One question and its answer: models are asked, again and one after the other, until there is an answer or none can be had.
//!
//! A turn goes on only while it is asked for what is next; it owns no task. Dropping it ends the request. It calls no tools,
//! and stores nothing.

mod spent;
mod waiting;

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use runyard_domain::Code;
use tokio_util::sync::CancellationToken;

use self::spent::Spent;
use self::waiting::{Alarm, Cancel};
use super::accumulator::Accumulator;
use super::executor::Inference;
use super::permit::Permit;
use super::pool::Choice;
use super::recovery::{Recovery, continued};
use super::retry::{Backoff, Others, Verdict};
use super::update::{Answer, Partial, Update};
use super::{
    Fault, InferenceExecutionError, InferenceRequest, InterruptCause, ModelEvent, ModelStream, Refusal,
    StopReason,
};

/// The shortest wait for a circuit breaker, and the wait when it depends on those who are trying.
const BREAKER_WAIT_MIN: Duration = Duration::from_millis(250);

type Opening = Pin<Box<dyn Future<Output = Result<ModelStream, Refusal>> + Send>>;

/// One question and its answer.
pub struct Turn {
    inference: Inference,
    question: Arc<InferenceRequest>,
    /// How the model is asked next: the question, or for the rest of the answer.
    asking: Arc<InferenceRequest>,
    phase: Phase,
    /// Who was asked last, or should have been first.
    asked: usize,
    /// How often they were.
    attempts: u32,
    /// The first who may still be asked.
    from: usize,
    permit: Option<Permit>,
    opening: Backoff,
    streaming: Backoff,
    gathered: Accumulator,
    /// How what broke off is saved, as soon as somebody can be asked again.
    recovery: Option<Recovery>,
    updates: VecDeque<Update>,
    usage: Spent,
    last_error: Option<InferenceExecutionError>,
    held: Duration,
    alarm: Alarm,
    cancel: Cancel,
}

enum Phase {
    Choosing,
    Waiting(Duration),
    Opening(Opening),
    Streaming(ModelStream),
    Answered(Answer),
    Failed(InferenceExecutionError),
}

impl Turn {
    pub(super) fn new(inference: Inference, request: InferenceRequest, cancel: CancellationToken) -> Self {
        let question = Arc::new(request);
        Turn {
            asking: Arc::clone(&question),
            question,
            phase: Phase::Choosing,
            asked: 0,
            attempts: 0,
            from: 0,
            permit: None,
            opening: Backoff::opening(inference.policy()),
            streaming: Backoff::streaming(inference.policy()),
            inference,
            gathered: Accumulator::default(),
            recovery: None,
            updates: VecDeque::new(),
            usage: Spent::default(),
            last_error: None,
            held: Duration::ZERO,
            alarm: Alarm::default(),
            cancel: Cancel::new(cancel),
        }
    }

    /// What is next; `None` when the answer is whole. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// Why there is no answer, each time it is asked from then on. What had come is in [`partial`](Self::partial).
    pub async fn next(&mut self) -> Result<Option<Update>, InferenceExecutionError> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// Goes on to the end, without looking at what comes by.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub async fn finish(mut self) -> Result<Answer, InferenceExecutionError> {
        while let Ok(Some(_)) = self.next().await {}
        self.into_answer()
    }

    /// The answer, when it is whole.
    pub fn answer(&self) -> Option<&Answer> {
        match &self.phase {
            Phase::Answered(answer) => Some(answer),
            _ => None,
        }
    }

    /// The answer.
    ///
    /// # Errors
    /// Why there is none. A turn that is not over is given up: [`InferenceExecutionError::Cancelled`].
    pub fn into_answer(self) -> Result<Answer, InferenceExecutionError> {
        match self.phase {
            Phase::Answered(answer) => Ok(answer),
            Phase::Failed(error) => Err(error),
            _ => Err(InferenceExecutionError::Cancelled),
        }
    }

    /// What there is of an answer that is not whole. It is what clients saw since the last reset.
    pub fn partial(&self) -> Partial {
        Partial {
            message: self.gathered.said(),
            snapshot: self.gathered.snapshot(),
            usage: self.usage.total(),
        }
    }

    /// Takes back what clients saw of an answer that will not be: what they are to be told of that. Afterwards there is no
    /// [`partial`](Self::partial).
    pub fn take_back(&mut self) -> impl Iterator<Item = Update> {
        self.gathered.reset(&mut self.updates);
        self.updates.drain(..)
    }

    /// What last went wrong with a model, also when it went well in the end or the turn's own error is another.
    pub fn last_error(&self) -> Option<&InferenceExecutionError> {
        self.last_error.as_ref()
    }

    /// The first of the models that is left alone, and what last failed of all that was asked of it, also for others.
    pub fn left_alone(&self) -> Option<(&str, Code)> {
        let members = self.inference.pool().members().iter();
        let mut left_alone = members.filter(|member| member.breaker().refuses().is_some());
        left_alone.find_map(|member| Some((member.name(), member.breaker().last_failure()?)))
    }

    /// As [`next`](Self::next).
    pub fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Update>, InferenceExecutionError>> {
        loop {
            // What is kept must be seen, so this comes even before a cancellation.
            if let Some(update) = self.updates.pop_front() {
                return Poll::Ready(Ok(Some(update)));
            }
            match &self.phase {
                Phase::Answered(_) => return Poll::Ready(Ok(None)),
                Phase::Failed(error) => return Poll::Ready(Err(error.clone())),
                _ if self.cancel.is_cancelled() => self.fail(InferenceExecutionError::Cancelled),
                _ => ready!(self.poll_step(context)),
            }
        }
    }

    /// Goes on by one step. Pending only when neither the model, nor the alarm, nor a cancellation has come.
    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.phase {
            Phase::Choosing => self.choose(),
            Phase::Waiting(wait) => {
                let wait = *wait;
                match self.alarm.poll(wait, context) {
                    Poll::Ready(()) => self.go(Phase::Choosing),
                    Poll::Pending => return self.cancel.poll(context),
                }
            }
            Phase::Opening(opening) => match opening.as_mut().poll(context) {
                Poll::Ready(Ok(stream)) => self.go(Phase::Streaming(stream)),
                Poll::Ready(Err(refusal)) => self.refused(refusal),
                Poll::Pending => {
                    let limit = self.inference.policy().open_limit();
                    if self.alarm.poll(limit, context).is_pending() {
                        return self.cancel.poll(context);
                    }
                    let message = format!("it did not begin to answer within {limit:?}");
                    self.refused(InferenceExecutionError::Timeout(message).into());
                }
            },
            Phase::Streaming(stream) => match stream.as_mut().poll_next(context) {
                Poll::Ready(Some(Ok(event))) => self.heard(event),
                Poll::Ready(Some(Err(fault))) => self.broke_off(fault),
                Poll::Ready(None) => self.broke_off(Fault::Interrupted(InterruptCause::ConnectionReset)),
                Poll::Pending => {
                    let limit = self.inference.policy().idle_limit();
                    if self.alarm.poll(limit, context).is_pending() {
                        return self.cancel.poll(context);
                    }
                    self.broke_off(Fault::Interrupted(InterruptCause::IdleStall));
                }
            },
            Phase::Answered(_) | Phase::Failed(_) => {}
        }
        Poll::Ready(())
    }

    /// Asks the first who may be asked.
    fn choose(&mut self) {
        match self.inference.pool().choose(self.from) {
            Choice::Member { at, permit } => {
                if at != self.asked {
                    self.fall_back(at);
                }
                self.attempts += 1;
                self.permit = Some(permit);
                self.apply_recovery();
                let model = Arc::clone(self.inference.pool().members()[at].model());
                let request = Arc::clone(&self.asking);
                self.go(Phase::Opening(Box::pin(async move { model.open(&request).await })));
            }
            Choice::Nobody { left } => {
                let wait = left.unwrap_or_default().max(BREAKER_WAIT_MIN);
                let held = self.held.saturating_add(wait);
                if self.from >= self.inference.pool().members().len()
                    || held > self.inference.policy().breaker_wait_max()
                {
                    return self.fail_without_models();
                }
                self.held = held;
                self.updates.push_back(Update::Held { wait });
                self.go(Phase::Waiting(wait));
            }
        }
    }

    /// Goes on to another model, which starts with a clean slate.
    fn fall_back(&mut self, at: usize) {
        let members = self.inference.pool().members();
        let name = |at: usize| members.get(at).map(|member| member.name().to_owned()).unwrap_or_default();
        let code = self.last_error.as_ref().map(InferenceExecutionError::code);
        self.updates.push_back(Update::Fallback { from: name(self.asked), to: name(at), code });
        self.asked = at;
        self.attempts = 0;
        self.from = at;
        self.opening = Backoff::opening(self.inference.policy());
        self.streaming = Backoff::streaming(self.inference.policy());
    }

    fn apply_recovery(&mut self) {
        match self.recovery.take() {
            Some(Recovery::ContinueText | Recovery::ContinueWithoutCall) => {
                let said = self.gathered.continue_text(&mut self.updates);
                self.asking = Arc::new(continued(&self.question, said));
            }
            Some(Recovery::Restart) => {
                self.gathered.reset(&mut self.updates);
                self.asking = Arc::clone(&self.question);
            }
            // An answer with whole calls has ended.
            Some(Recovery::UseCalls) | None => {}
        }
    }

    fn heard(&mut self, event: ModelEvent) {
        self.alarm.reset();
        if let ModelEvent::Usage(usage) = event {
            self.usage.of_attempt(usage);
            self.updates.push_back(Update::Usage(self.usage.total()));
        }
        if let ModelEvent::Stopped(stop) = event {
            let stop = self.gathered.stop(stop, &mut self.updates);
            if let Some(permit) = self.permit.take() {
                permit.succeeded();
            }
            return self.end(stop);
        }
        if let Err(fault) = self.gathered.take(event, &mut self.updates) {
            self.broke_off(fault);
        }
    }

    /// The model did not begin to answer.
    fn refused(&mut self, Refusal { error, retry_after }: Refusal) {
        self.settle(&error);
        if !error.is_retryable() {
            return self.fail(error);
        }
        let (others, roll) = (self.others(), self.inference.jitter().roll());
        let verdict = self.opening.after_asked(&error, retry_after, self.inference.policy(), others, roll);
        self.try_again(error, verdict);
    }

    /// The answer does not go on.
    fn broke_off(&mut self, fault: Fault) {
        self.gathered.break_off();
        self.usage.end_attempt();
        let snapshot = self.gathered.snapshot();
        let recovery = match fault {
            // What would come of half of it cannot be known, and to go on with it would be over the limit again.
            Fault::Endless(_) => Recovery::Restart,
            _ => Recovery::choose(&snapshot, &self.question),
        };
        let mut back_later = None;
        let error = match fault {
            Fault::BackLater { cause, retry_after } => {
                back_later = Some(retry_after);
                InferenceExecutionError::StreamInterrupted { cause, snapshot: Box::new(snapshot) }
            }
            Fault::Interrupted(cause)
            | Fault::Failed(InferenceExecutionError::StreamInterrupted { cause, .. }) => {
                InferenceExecutionError::StreamInterrupted { cause, snapshot: Box::new(snapshot) }
            }
            Fault::Endless(why) => InferenceExecutionError::Provider(why.to_owned()),
            Fault::Failed(error) => error,
        };
        self.settle(&error);
        if !error.is_retryable() {
            return self.fail(error);
        }
        if recovery == Recovery::UseCalls {
            self.last_error = Some(error);
            self.gathered.use_calls(&mut self.updates);
            return self.end(StopReason::ToolUse);
        }
        self.recovery = Some(recovery);
        // It did begin to answer, so that is not what it is short of.
        self.opening = Backoff::opening(self.inference.policy());
        let (others, roll) = (self.others(), self.inference.jitter().roll());
        let asked = back_later.or(error.retry_after());
        let verdict = self.streaming.after_asked(&error, asked, self.inference.policy(), others, roll);
        self.try_again(error, verdict);
    }

    /// Waits for the same model, or goes on to the next.
    fn try_again(&mut self, error: InferenceExecutionError, verdict: Verdict) {
        let member = &self.inference.pool().members()[self.asked];
        // To wait for a model that will be left alone for longer than that is to wait in vain.
        let left_alone = member.breaker().refuses().and_then(|refused| refused.left).unwrap_or_default();
        match verdict {
            Verdict::Wait(wait) if left_alone <= wait => {
                let (model, attempt, code) = (member.name().to_owned(), self.attempts + 1, error.code());
                self.updates.push_back(Update::Retrying { model, attempt, wait, code });
                self.go(Phase::Waiting(wait));
            }
            Verdict::Wait(_) => self.go(Phase::Choosing),
            Verdict::GiveUp => {
                self.from = self.asked + 1;
                self.go(Phase::Choosing);
            }
        }
        self.last_error = Some(error);
    }

    fn others(&self) -> Others {
        if self.inference.pool().has_other(self.asked) { Others::Ready } else { Others::None }
    }

    fn settle(&mut self, error: &InferenceExecutionError) {
        if let Some(permit) = self.permit.take() {
            permit.failed(error);
        }
    }

    fn end(&mut self, stop: StopReason) {
        let message = self.gathered.take_message();
        let model = self.inference.pool().members()[self.asked].name().to_owned();
        self.go(Phase::Answered(Answer { message, stop, usage: self.usage.total(), model }));
    }

    /// Nobody is left. With one model its own error says more; with several, each may have failed in its own way.
    fn fail_without_models(&mut self) {
        let error = match &self.last_error {
            Some(error) if self.inference.pool().members().len() == 1 => error.clone(),
            _ => InferenceExecutionError::AllModelsUnavailable,
        };
        self.fail(error);
    }

    fn fail(&mut self, error: InferenceExecutionError) {
        self.permit = None;
        self.gathered.break_off();
        if !matches!(
            error,
            InferenceExecutionError::Cancelled | InferenceExecutionError::AllModelsUnavailable
        ) {
            self.last_error = Some(error.clone());
        }
        self.go(Phase::Failed(error));
    }

    fn go(&mut self, phase: Phase) {
        self.alarm.reset();
        self.phase = phase;
    }
}
