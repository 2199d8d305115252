//! The suite can fail: a journal that breaks one promise is caught by the promise that it breaks, and the same journal without
//! its flaw passes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use runyard_backend::conformance::journal::{self, Durable, Given, JournalBench, Lever};
use runyard_backend::{Answer, COMMANDS_MAX, Command, Journal, JournalError, Signal};
use tokio::sync::{Mutex, mpsc};

use crate::bench::HubBench;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Flaw {
    None,
    AcknowledgesAtOnce,
    RecordsNothing,
    SwallowsRefusals,
    RefusesOnce,
    SplitsBatches,
    SendsBatchesTwice,
    AnswersTwice,
    AnswersByItself,
    RemembersAnswers,
    LosesPieces,
    HidesNothing,
}

struct Flawed {
    inner: HubBench,
    flaw: Flaw,
}

/// The sound journal with one flaw built in between it and its backend.
struct FlawedJournal {
    inner: Arc<dyn Journal>,
    flaw: Flaw,
    hand_on: mpsc::UnboundedSender<Vec<Signal>>,
    /// Does not keep a closed session's queue open.
    commands: mpsc::WeakSender<Command>,
    refused: Mutex<bool>,
    seen: Mutex<Vec<String>>,
}

fn yes(key: &str) -> Command {
    Command::Answer { key: key.to_owned(), answer: Answer { approved: true, reason: None, answer: None } }
}

#[async_trait]
impl Journal for FlawedJournal {
    async fn record(&self, mut batch: Vec<Signal>) -> Result<(), JournalError> {
        match self.flaw {
            Flaw::AcknowledgesAtOnce => {
                return self.hand_on.send(batch).map_err(|_| JournalError::Stopped);
            }
            Flaw::RecordsNothing => return Ok(()),
            Flaw::SplitsBatches => {
                for signal in batch {
                    self.inner.record(vec![signal]).await?;
                }
                return Ok(());
            }
            Flaw::SendsBatchesTwice
                if batch.iter().all(|signal| matches!(signal, Signal::FileRead { .. })) =>
            {
                self.inner.record(batch.clone()).await?;
            }
            Flaw::LosesPieces => {
                let first = batch.iter().position(|signal| matches!(signal, Signal::Delta { .. }));
                first.map(|first| batch.remove(first));
            }
            Flaw::AnswersByItself | Flaw::RemembersAnswers => self.answer(&mut batch).await,
            _ => {}
        }
        let recorded = self.inner.record(batch).await;
        let mut refused = self.refused.lock().await;
        let before = std::mem::replace(&mut *refused, recorded.is_err());
        match self.flaw {
            Flaw::SwallowsRefusals => Ok(()),
            Flaw::RefusesOnce if before => Ok(()),
            _ => recorded,
        }
    }
}

impl FlawedJournal {
    /// Answers requests: each before it is recorded, or one that was asked before without asking again.
    async fn answer(&self, batch: &mut Vec<Signal>) {
        let mut seen = self.seen.lock().await;
        let mut kept = Vec::new();
        for signal in batch.drain(..) {
            let Signal::Ask { key, request } = &signal else {
                kept.push(signal);
                continue;
            };
            let request = format!("{request:?}");
            let known = seen.contains(&request);
            seen.push(request);
            if known || self.flaw == Flaw::AnswersByItself {
                let commands = self.commands.upgrade().expect("the session is open");
                commands.send(yes(key)).await.unwrap();
            }
            if !known || self.flaw == Flaw::AnswersByItself {
                kept.push(signal);
            }
        }
        *batch = kept;
    }
}

#[async_trait]
impl JournalBench for Flawed {
    async fn session(&self) -> Given {
        let Given { journal: inner, commands: mut queue } = self.inner.session().await;
        let (commands, heard) = mpsc::channel(COMMANDS_MAX);
        let (hand_on, mut waiting) = mpsc::unbounded_channel();
        let (to_hand_on, flaw) = (inner.clone(), self.flaw);
        tokio::spawn(async move {
            while let Some(batch) = waiting.recv().await {
                let (Ok(()) | Err(_)) = to_hand_on.record(batch).await;
            }
        });
        let journal = Arc::new(FlawedJournal {
            inner,
            flaw,
            hand_on,
            commands: commands.downgrade(),
            refused: Mutex::new(false),
            seen: Mutex::default(),
        });
        tokio::spawn(async move {
            while let Some(command) = queue.recv().await {
                let times = if flaw == Flaw::AnswersTwice { 2 } else { 1 };
                for _ in 0..times {
                    let (Ok(()) | Err(_)) = commands.send(command.clone()).await;
                }
            }
        });
        Given { journal, commands: heard }
    }

    async fn durable(&self) -> Durable {
        self.inner.durable().await
    }

    async fn pull(&self, lever: Lever) {
        self.inner.pull(lever).await;
    }

    fn secrets(&self) -> Vec<String> {
        match self.flaw {
            // Nobody told the edge that this is one.
            Flaw::HidesNothing => vec!["a word that nobody keeps".to_owned()],
            _ => self.inner.secrets(),
        }
    }

    fn vigil(&self) -> Duration {
        // Who says too much is given the time to do it on a busy machine.
        if self.flaw == Flaw::AnswersTwice { Duration::from_secs(1) } else { self.inner.vigil() }
    }
}

async fn sound() -> Flawed {
    Flawed { inner: HubBench::in_memory().await, flaw: Flaw::None }
}

runyard_backend::journal_conformance_tests!(sound);

macro_rules! caught {
    ($($test:ident: $flaw:ident breaks $promise:ident says $said:literal)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[should_panic(expected = $said)]
            async fn $test() {
                let bench = Flawed { inner: HubBench::in_memory().await, flaw: Flaw::$flaw };
                journal::$promise(&bench).await;
            }
        )+
    };
}

caught! {
    who_acknowledges_before_it_is_durable_is_caught:
        AcknowledgesAtOnce breaks c18_while_the_hub_is_away_record_waits_and_then_nothing_is_missing
        says "the hub is away: record returned"
    who_records_nothing_is_caught:
        RecordsNothing breaks j05_what_is_recorded_is_durable_when_record_returns
        says "before its batch was durable"
    who_swallows_a_fence_is_caught:
        SwallowsRefusals breaks c18_a_fenced_journal_stores_nothing_and_says_so_for_ever
        says "another owner has the run"
    who_swallows_the_end_is_caught:
        SwallowsRefusals breaks c22_nothing_is_recorded_after_the_run_has_ended
        says "is refused for ever"
    who_refuses_only_once_is_caught:
        RefusesOnce breaks c22_a_cancelled_run_stores_nothing_more_and_its_journal_stops_for_ever
        says "is refused for ever"
    who_splits_a_batch_is_caught:
        SplitsBatches breaks j05_a_batch_of_many_signals_is_durable_whole_or_not_at_all
        says "a part of the batch is durable"
    who_sends_a_batch_twice_is_caught:
        SendsBatchesTwice breaks c18_a_batch_whose_answer_comes_late_is_recorded_once
        says "each batch is there once"
    who_answers_twice_is_caught:
        AnswersTwice breaks c12_a_request_is_durable_before_it_waits_and_is_answered_once
        says "an answer is handed on once"
    who_answers_before_it_is_durable_is_caught:
        AnswersByItself breaks c11_what_the_gate_decides_is_answered_only_when_that_is_durable
        says "answered before that was durable"
    who_uses_a_decision_twice_is_caught:
        RemembersAnswers breaks j07_a_parked_session_stops_and_its_grant_answers_the_same_request_once
        says "once more is not durable as a request"
    who_loses_a_piece_of_text_is_caught:
        LosesPieces breaks b09_pieces_of_text_are_put_together_and_nothing_of_the_text_is_missing
        says "nothing of the text is missing"
    who_stores_a_secret_is_caught:
        HidesNothing breaks b11_no_secret_is_stored_whatever_signal_holds_it
        says "an event holds a secret"
}
