//! Two turns over two models, in whatever order things happen to them: each ends, no leave to ask is lost, and a model that is
//! well again is asked again.
//!
//! All orders up to a length are gone through, one state once. What is asked is held against two plain circuit breakers to which
//! the same is told: where the shared ones stand elsewhere, a permit was lost or given back twice.

use std::collections::{HashSet, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use futures_core::Stream;
use runyard_llm::inference::{
    Answer, Breaker, BreakerPolicy, Breakers, Clock, Fault, FixedJitter, Health, Inference,
    InferenceExecutionError, InferenceRequest, InterruptCause, ManualClock, Model, ModelEvent, ModelStream,
    Pool, Refusal, RetryPolicy, StopReason, Ticket, Turn,
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::support::{invalid, provider, question};

/// Longer than any wait between two questions, and than a wait for a circuit breaker.
const TICK: Duration = Duration::from_millis(300);
const OPEN: Duration = Duration::from_millis(600);
const PROBE: Duration = Duration::from_millis(900);
/// After so many steps whatever goes on has to have ended.
const STEPS_MAX: usize = 64;

type Opened = Result<ModelStream, Refusal>;
type Said = Result<ModelEvent, Fault>;
/// Who waits for a model to begin, and for which.
type Asked = Arc<Mutex<VecDeque<(usize, oneshot::Sender<Opened>)>>>;

/// A model that does what it is told, when it is told.
struct Puppet {
    name: &'static str,
    at: usize,
    asked: Asked,
}

#[async_trait]
impl Model for Puppet {
    fn name(&self) -> &str {
        self.name
    }

    async fn open(&self, _: &InferenceRequest) -> Opened {
        let (sender, opened) = oneshot::channel();
        self.asked.lock().unwrap().push_back((self.at, sender));
        opened.await.expect("it is told what to do")
    }
}

struct Saying(mpsc::UnboundedReceiver<Said>);

impl Stream for Saying {
    type Item = Said;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Said>> {
        self.0.poll_recv(context)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Event {
    Begin,
    Open,
    RefuseForAWhile,
    RefuseForGood,
    BreakOff,
    End,
    Drop,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Of(usize, Event),
    Tick,
}

/// What a turn is at.
enum Doing {
    Asking(oneshot::Sender<Opened>),
    Hearing(mpsc::UnboundedSender<Said>),
    Waiting,
}

struct Running {
    turn: Turn,
    doing: Doing,
    /// Who is asked, and with which leave of the plain breaker.
    asked: Option<(usize, Ticket)>,
    /// What happened to it, at which model: what it still may do follows from that.
    past: Vec<(usize, Event)>,
    /// How long it has been waiting.
    ticks: u32,
}

struct World {
    inference: Inference,
    clock: Arc<ManualClock>,
    asked: Asked,
    plain: [Breaker; 2],
    turns: [Option<Running>; 2],
    /// How the last turn ended.
    last: Option<Result<Answer, InferenceExecutionError>>,
}

impl World {
    fn new(breaker: &BreakerPolicy, retry: &RetryPolicy) -> Self {
        let (clock, asked) = (Arc::new(ManualClock::default()), Arc::default());
        let breakers = Breakers::new(breaker.clone(), Arc::clone(&clock) as Arc<dyn Clock>);
        let puppet = |name, at| Arc::new(Puppet { name, at, asked: Arc::clone(&asked) }) as Arc<dyn Model>;
        let pool = Pool::new([puppet("first", 0), puppet("second", 1)], &breakers);
        let inference = Inference::with_jitter(pool, retry.clone(), Arc::new(FixedJitter(0)));
        let plain = [Breaker::new(breaker), Breaker::new(breaker)];
        World { inference, clock, asked, plain, turns: [None, None], last: None }
    }

    /// Both turns begin, and then this happens.
    async fn after(breaker: &BreakerPolicy, retry: &RetryPolicy, steps: &[Step]) -> Self {
        let mut world = World::new(breaker, retry);
        for at in 0..2 {
            world.step(Step::Of(at, Event::Begin)).await;
        }
        for step in steps {
            world.step(*step).await;
        }
        world
    }

    fn events(&self, at: usize) -> &'static [Event] {
        match self.turns[at].as_ref().map(|running| &running.doing) {
            None => &[Event::Begin],
            Some(Doing::Asking(_)) => {
                &[Event::Open, Event::RefuseForAWhile, Event::RefuseForGood, Event::Drop]
            }
            Some(Doing::Hearing(_)) => &[Event::End, Event::BreakOff, Event::Drop],
            Some(Doing::Waiting) => &[Event::Drop],
        }
    }

    fn steps(&self) -> Vec<Step> {
        let of = |at| self.events(at).iter().map(move |event| Step::Of(at, *event));
        [Step::Tick].into_iter().chain(of(0)).chain(of(1)).collect()
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Tick => {
                self.clock.advance(TICK);
                tokio::time::advance(TICK).await;
                for at in 0..2 {
                    if let Some(running) = &mut self.turns[at] {
                        running.ticks += 1;
                    }
                    self.go_on(at).await;
                }
            }
            Step::Of(at, Event::Begin) => {
                let turn = self.inference.start(question(), CancellationToken::new());
                let doing = Doing::Waiting;
                self.turns[at] = Some(Running { turn, doing, asked: None, past: Vec::new(), ticks: 0 });
                self.go_on(at).await;
            }
            Step::Of(at, event) => {
                let mut running = self.turns[at].take().expect("it runs");
                let model = running.asked.as_ref().map(|(model, _)| *model);
                running.past.extend(model.map(|model| (model, event)));
                match (event, std::mem::replace(&mut running.doing, Doing::Waiting)) {
                    (Event::Open, Doing::Asking(sender)) => {
                        let (said, saying) = mpsc::unbounded_channel();
                        said.send(Ok(ModelEvent::Text("Well, ".into()))).unwrap();
                        sender.send(Ok(Box::pin(Saying(saying)))).ok().unwrap();
                        running.doing = Doing::Hearing(said);
                    }
                    (Event::RefuseForAWhile, Doing::Asking(sender)) => {
                        let refusal = Refusal::from(InferenceExecutionError::from(provider()));
                        sender.send(Err(refusal)).ok().unwrap();
                        self.settle(&mut running, Health::Ill);
                    }
                    (Event::RefuseForGood, Doing::Asking(sender)) => {
                        let refusal = Refusal::from(InferenceExecutionError::from(invalid()));
                        sender.send(Err(refusal)).ok().unwrap();
                        self.settle(&mut running, Health::Unknown);
                    }
                    (Event::End, Doing::Hearing(said)) => {
                        said.send(Ok(ModelEvent::Stopped(StopReason::EndTurn))).unwrap();
                        self.settle(&mut running, Health::Well);
                    }
                    (Event::BreakOff, Doing::Hearing(said)) => {
                        said.send(Err(Fault::Interrupted(InterruptCause::GoAway))).unwrap();
                        self.settle(&mut running, Health::Ill);
                    }
                    (Event::Drop, _) => {
                        self.settle(&mut running, Health::Unknown);
                        return;
                    }
                    (event, _) => panic!("{event:?} cannot happen now"),
                }
                self.turns[at] = Some(running);
                self.go_on(at).await;
            }
        }
    }

    /// The plain breaker is told what came of a request.
    fn settle(&mut self, running: &mut Running, health: Health) {
        if let Some((model, ticket)) = running.asked.take() {
            self.plain[model].settle(ticket, health, self.clock.now());
        }
    }

    /// Lets a turn do what it can do by itself, and sees whom it asks.
    async fn go_on(&mut self, at: usize) {
        let Some(mut running) = self.turns[at].take() else { return };
        let ended = loop {
            let polled = poll_fn(|context| Poll::Ready(running.turn.poll_next(context))).await;
            match polled {
                Poll::Ready(Ok(Some(_))) => {}
                Poll::Ready(_) => break true,
                Poll::Pending => break false,
            }
        };
        if let Some((model, sender)) = self.asked.lock().unwrap().pop_front() {
            let ticket = self.plain[model].admit(self.clock.now());
            running.asked = Some((model, ticket.expect("a model that rests is not asked")));
            (running.doing, running.ticks) = (Doing::Asking(sender), 0);
        }
        assert!(self.asked.lock().unwrap().is_empty(), "a turn asks one model at a time");
        match ended {
            true => {
                assert!(running.asked.is_none(), "it ended, and nobody is being asked");
                self.last = Some(running.turn.into_answer());
            }
            false => self.turns[at] = Some(running),
        }
    }

    /// No permit is lost, and none counted twice.
    fn check(&self) {
        for (member, plain) in self.inference.pool().members().iter().zip(&self.plain) {
            assert_eq!(member.breaker().standing(), plain.standing(self.clock.now()), "{}", member.name());
        }
    }

    /// All that can tell two worlds apart from now on.
    fn print(&self) -> String {
        let turns = self.turns.iter().map(|running| {
            let asked = |running: &Running| (running.past.clone(), running.asked.clone(), running.ticks);
            running.as_ref().map(asked)
        });
        format!("{:?} {:?} {:?}", self.plain, turns.collect::<Vec<_>>(), self.clock.now())
    }

    /// Every model does this from now on: both turns end.
    async fn ends_with(&mut self, asking: Event, hearing: Event) {
        for _ in 0..STEPS_MAX {
            let doing = |at: usize| self.turns[at].as_ref().map(|running| (at, &running.doing));
            let step = match (doing(0), doing(1)) {
                (None, None) => return,
                (Some((at, Doing::Asking(_))), _) | (_, Some((at, Doing::Asking(_)))) => Step::Of(at, asking),
                (Some((at, Doing::Hearing(_))), _) | (_, Some((at, Doing::Hearing(_)))) => {
                    Step::Of(at, hearing)
                }
                _ => Step::Tick,
            };
            self.step(step).await;
            self.check();
        }
        panic!("a turn does not end");
    }

    /// After a while the first model is asked again, and answers.
    async fn is_well_again(&mut self) {
        for _ in 0..OPEN.as_millis() / TICK.as_millis() {
            self.step(Step::Tick).await;
        }
        self.step(Step::Of(0, Event::Begin)).await;
        let asked = self.turns[0].as_ref().and_then(|running| running.asked.as_ref());
        assert_eq!(asked.map(|(model, _)| *model), Some(0), "the first model is asked again");
        self.ends_with(Event::Open, Event::End).await;
        let answer = self.last.take().expect("it ended").expect("an answer");
        assert_eq!((answer.model.as_str(), answer.message.said().as_str()), ("first", "Well, "));
    }
}

/// Every state that so many steps lead to. Says how many there are.
async fn explore(breaker: &BreakerPolicy, retry: &RetryPolicy, length: usize) -> usize {
    let mut seen = HashSet::new();
    let mut next = VecDeque::from([Vec::new()]);
    while let Some(steps) = next.pop_front() {
        let mut world = World::after(breaker, retry, &steps).await;
        world.check();
        if !seen.insert(world.print()) {
            continue;
        }
        if steps.len() < length {
            next.extend(world.steps().into_iter().map(|step| [steps.as_slice(), &[step]].concat()));
        }
        // Whether all goes well from now on, or nothing does any more.
        world.ends_with(Event::Open, Event::End).await;
        world.is_well_again().await;
        let mut world = World::after(breaker, retry, &steps).await;
        world.ends_with(Event::RefuseForAWhile, Event::BreakOff).await;
        world.is_well_again().await;
    }
    seen.len()
}

// clause: D07
#[tokio::test(start_paused = true)]
async fn d07_no_order_of_events_leaves_a_turn_without_end_or_a_model_unasked() {
    let length = match std::env::var("RUNYARD_PROOF").as_deref() {
        Ok("soak") => 9,
        Ok("quick") => 5,
        _ => 7,
    };
    let all = async {
        for (failures_max, probes_max) in [(1, 1), (2, 1), (1, 2)] {
            for breaker_wait_max_ms in [0, 1_000] {
                let (open_ms, probe_ms) = (OPEN.as_millis() as u64, PROBE.as_millis() as u64);
                let breaker = BreakerPolicy { failures_max, open_ms, probes_max, probe_ms };
                let (retries_max, stream_retries_max, base_ms) = (1, 1, 100);
                let retry = RetryPolicy {
                    retries_max,
                    stream_retries_max,
                    base_ms,
                    overloaded_base_ms: base_ms,
                    breaker_wait_max_ms,
                    ..RetryPolicy::default()
                };
                let states = explore(&breaker, &retry, length).await;
                assert!(states > 100, "only {states} states were reached with {breaker:?}");
            }
        }
    };
    // What is polled here does not wait for others, so it must not be told to let them go first.
    tokio::task::unconstrained(all).await;
}
