//! The suite can fail: a backend that breaks one promise is caught by the promise that it breaks, and the same backend without
//! its flaw passes.

use std::sync::Arc;
use std::time::Duration;

use crate::bench::ScriptedBench;
use async_trait::async_trait;
use runyard_backend::conformance::{self, Bench, Part, Scene, Stage};
use runyard_backend::{
    Answer, Backend, BackendError, BackendInfo, COMMANDS_MAX, Command, Journal, JournalError, Probe, Session,
    SessionSpec, Signal, Start,
};
use runyard_domain::BackendProfile;
use tokio::sync::mpsc;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Flaw {
    None,
    ActsBeforeItIsDurable,
    IgnoresClosing,
    SwallowsDenials,
    ForgetsItsThread,
    GoesOnAfterARefusal,
    WithdrawsWhenClosed,
}

struct Flawed(Flaw);

impl Bench for Flawed {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::new(FlawedBackend { inner: ScriptedBench.backend(), flaw: self.0 })
    }

    fn part(&self, scene: Scene, stage: &Stage) -> Part {
        ScriptedBench.part(scene, stage)
    }

    fn patience(&self) -> Duration {
        // What never comes about is waited for in vain.
        let in_vain = matches!(self.0, Flaw::IgnoresClosing | Flaw::GoesOnAfterARefusal);
        Duration::from_secs(if in_vain { 5 } else { 30 })
    }

    fn vigil(&self) -> Duration {
        // Who acts too early is given the time to do it on a busy machine.
        if self.0 == Flaw::ActsBeforeItIsDurable { self.patience() } else { ScriptedBench.vigil() }
    }
}

/// The scripted backend with one flaw built in between it and its hub.
struct FlawedBackend {
    inner: Arc<dyn Backend>,
    flaw: Flaw,
}

#[async_trait]
impl Backend for FlawedBackend {
    fn info(&self) -> BackendInfo {
        self.inner.info()
    }

    async fn check(&self, profile: &BackendProfile, probe: &Probe) -> Result<String, BackendError> {
        self.inner.check(profile, probe).await
    }

    async fn open(&self, mut spec: SessionSpec, journal: Arc<dyn Journal>) -> Result<Session, BackendError> {
        let flaw = self.flaw;
        if let (Flaw::ForgetsItsThread, Start::Resume { thread, .. }) = (flaw, &mut spec.start) {
            *thread = None;
        }
        let between: Arc<dyn Journal> = match flaw {
            Flaw::ActsBeforeItIsDurable => Arc::new(Hasty(hand_on(journal.clone()))),
            Flaw::GoesOnAfterARefusal => Arc::new(Deaf(journal.clone())),
            _ => journal.clone(),
        };
        let inner = self.inner.open(spec, between).await?;
        let (commands, mut receiver) = mpsc::channel(COMMANDS_MAX);
        let task = tokio::spawn(async move {
            let mut inside = inner.task;
            loop {
                let command = tokio::select! {
                    command = receiver.recv() => command,
                    _ = &mut inside => return,
                };
                let Some(mut command) = command else { break };
                if let (Flaw::SwallowsDenials, Command::Answer { answer, .. }) = (flaw, &mut command) {
                    *answer = Answer { approved: true, reason: None, answer: None };
                }
                inner.commands.send(command).await.ok();
            }
            match flaw {
                Flaw::IgnoresClosing => std::future::pending::<()>().await,
                Flaw::WithdrawsWhenClosed => {
                    journal.record(vec![Signal::Withdraw { key: "ask-1.2".to_owned() }]).await.ok();
                }
                _ => {}
            }
            drop(inner.commands);
            inside.await.unwrap();
        });
        Ok(Session { commands, task })
    }
}

/// Says yes at once, and hands on what it was given when it gets to it.
struct Hasty(mpsc::UnboundedSender<Vec<Signal>>);

fn hand_on(journal: Arc<dyn Journal>) -> mpsc::UnboundedSender<Vec<Signal>> {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(batch) = receiver.recv().await {
            if journal.record(batch).await.is_err() {
                return;
            }
        }
    });
    sender
}

#[async_trait]
impl Journal for Hasty {
    async fn record(&self, batch: Vec<Signal>) -> Result<(), JournalError> {
        self.0.send(batch).map_err(|_| JournalError::Stopped)
    }
}

/// Does not hear a no.
struct Deaf(Arc<dyn Journal>);

#[async_trait]
impl Journal for Deaf {
    async fn record(&self, batch: Vec<Signal>) -> Result<(), JournalError> {
        let (Ok(()) | Err(_)) = self.0.record(batch).await;
        Ok(())
    }
}

async fn sound() -> Flawed {
    Flawed(Flaw::None)
}

runyard_backend::backend_conformance_tests!(sound);

macro_rules! caught {
    ($($test:ident: $flaw:ident breaks $promise:ident says $said:literal)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[should_panic(expected = $said)]
            async fn $test() {
                conformance::$promise(&Flawed(Flaw::$flaw)).await;
            }
        )+
    };
}

caught! {
    who_acts_before_the_call_is_durable_is_caught:
        ActsBeforeItIsDurable breaks j05_nothing_is_done_before_its_call_is_durable
        says "before its call was durable"
    who_acts_before_the_request_is_durable_is_caught:
        ActsBeforeItIsDurable breaks j05_nothing_is_done_before_its_request_is_durable
        says "before its request was durable"
    who_ignores_closing_is_caught:
        IgnoresClosing breaks c17_closing_between_turns_leaves_nothing
        says "the session is closed, and its task ends"
    who_keeps_a_step_running_is_caught:
        IgnoresClosing breaks c17_closing_stops_the_step_that_runs
        says "the session is closed, and its task ends"
    who_swallows_a_denial_is_caught:
        SwallowsDenials breaks c11_a_denied_step_is_not_done_and_the_turn_comes_to_its_end
        says "what was denied is not done"
    who_forgets_its_thread_is_caught:
        ForgetsItsThread breaks j05_a_killed_session_goes_on_after_the_last_recorded_step
        says "killed at batch"
    who_goes_on_after_a_refusal_is_caught:
        GoesOnAfterARefusal breaks j05_a_refused_batch_ends_the_session_and_nothing_is_done_after
        says "the session stops, and its task ends"
    who_withdraws_when_it_is_closed_is_caught:
        WithdrawsWhenClosed breaks c17_closing_while_it_asks_leaves_the_request_open
        says "who is closed may be opened again"
}
