//! A journal in memory that can be told to wait, or to refuse.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::watch;

use crate::{Journal, JournalError, Signal};

/// When something goes wrong with a journal.
#[derive(Clone, Copy, Debug)]
pub enum When {
    /// At the batch with this number, from 0 on.
    Batch(usize),
    /// At the first batch with such a signal.
    Has(fn(&Signal) -> bool),
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The batch is not answered until the journal is [released](Recorder::release).
    Hold(Kept),
    /// The batch is refused, and every later one.
    Refuse(JournalError),
}

/// Whether a batch that is not answered is durable by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    Yes,
    No,
}

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub when: When,
    pub what: What,
}

/// A journal in memory.
#[derive(Debug)]
pub struct Recorder {
    state: Mutex<State>,
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    batches: Vec<Vec<Signal>>,
    fault: Option<Fault>,
    asked: usize,
    busy: bool,
    held: bool,
    refusal: Option<JournalError>,
    violations: Vec<&'static str>,
}

impl Recorder {
    /// One that works.
    pub fn new() -> Arc<Self> {
        Recorder::build(None)
    }

    /// One with a fault.
    pub fn with(when: When, what: What) -> Arc<Self> {
        Recorder::build(Some(Fault { when, what }))
    }

    fn build(fault: Option<Fault>) -> Arc<Self> {
        let state = Mutex::new(State { fault, ..State::default() });
        Arc::new(Recorder { state, changes: watch::Sender::new(0) })
    }

    /// Everything that is durable, in order.
    pub fn signals(&self) -> Vec<Signal> {
        self.lock().batches.concat()
    }

    /// The same, batch by batch.
    pub fn batches(&self) -> Vec<Vec<Signal>> {
        self.lock().batches.clone()
    }

    /// Whether a batch waits for its answer.
    pub fn is_held(&self) -> bool {
        self.lock().held
    }

    /// Whether a batch was refused.
    pub fn has_refused(&self) -> bool {
        self.lock().refusal.is_some()
    }

    /// Answers what waits; from now on everything is recorded.
    pub fn release(&self) {
        self.lock().fault = None;
        self.changed();
    }

    /// What a backend did with the journal that it may not do.
    pub fn violations(&self) -> Vec<&'static str> {
        self.lock().violations.clone()
    }

    /// Tells of every change.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.changes.send_modify(|version| *version += 1);
    }

    /// Whether the batch is to be held, or why it is refused.
    fn take(&self, batch: &[Signal]) -> Result<Option<Kept>, JournalError> {
        let mut state = self.lock();
        if let Some(refusal) = state.refusal {
            state.violations.push("it recorded again after a batch was refused");
            return Err(refusal);
        }
        if std::mem::replace(&mut state.busy, true) {
            state.violations.push("it recorded a batch before the one before was answered");
        }
        let number = state.asked;
        state.asked += 1;
        let due = state.fault.filter(|fault| match fault.when {
            When::Batch(at) => at == number,
            When::Has(is) => batch.iter().any(is),
        });
        match due.map(|fault| fault.what) {
            None => Ok(None),
            Some(What::Refuse(refusal)) => {
                state.refusal = Some(refusal);
                state.busy = false;
                drop(state);
                self.changed();
                Err(refusal)
            }
            Some(What::Hold(kept)) => {
                state.held = true;
                if kept == Kept::Yes {
                    state.batches.push(batch.to_vec());
                }
                drop(state);
                self.changed();
                Ok(Some(kept))
            }
        }
    }
}

/// A call of `record` that has not returned; one that is given up is over, too.
struct Busy<'a>(&'a Recorder);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.lock().busy = false;
    }
}

#[async_trait]
impl Journal for Recorder {
    async fn record(&self, batch: Vec<Signal>) -> Result<(), JournalError> {
        let held = self.take(&batch)?;
        let busy = Busy(self);
        if held.is_some() {
            let mut changes = self.changes();
            while self.lock().fault.is_some() {
                changes.changed().await.map_err(|_| JournalError::Stopped)?;
            }
        }
        let mut state = self.lock();
        state.held = false;
        if held != Some(Kept::Yes) {
            state.batches.push(batch);
        }
        drop(state);
        drop(busy);
        self.changed();
        Ok(())
    }
}
