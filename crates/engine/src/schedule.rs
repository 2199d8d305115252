//! Which runs are active, which wait for a place, and who may have the next one.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use runyard_domain::run::{Failure, Run, RunState};
use runyard_domain::{Code, RunId, Timestamp};
use tokio::sync::mpsc;

use crate::driver::{Driver, INBOX_MAX, ToDriver};
use crate::endings::{failed, withdrawn};
use crate::record::{Decided, Standing};
use crate::{Engine, EngineError};

/// Where a run runs and as what: what the limits count by.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    edge: String,
    agent: String,
    /// The workspace's label: its own configuration may want fewer at a time.
    workspace: String,
}

struct Active {
    place: Place,
    inbox: mpsc::Sender<ToDriver>,
    /// Somebody wanted it to go on while it was just ending.
    again: bool,
    /// Its session is being closed: what ends now did not give up by itself.
    closing: bool,
}

#[derive(Default)]
struct Books {
    active: HashMap<RunId, Active>,
    /// By id, so the oldest comes first; since when each waits.
    waiting: BTreeMap<RunId, (Place, Timestamp)>,
}

/// The books of what is active and what waits.
#[derive(Default)]
pub(crate) struct Schedule(Mutex<Books>);

impl Schedule {
    fn books(&self) -> std::sync::MutexGuard<'_, Books> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn active_on(&self, edge: &str) -> usize {
        self.books().active.values().filter(|active| active.place.edge == edge).count()
    }

    pub(crate) fn counts(&self) -> (usize, usize) {
        let books = self.books();
        (books.active.len(), books.waiting.len())
    }

    /// Tells the driver of a run; false when it has none.
    fn tell(&self, run: RunId, message: ToDriver) -> bool {
        let mut books = self.books();
        let Some(active) = books.active.get_mut(&run) else { return false };
        match &message {
            // One that is not looked at yet stands for this one too.
            ToDriver::Changed if std::mem::replace(&mut active.again, true) => return true,
            _ => {}
        }
        // An edge has one batch of a run on its way, so there is room for whatever it says: losing it would stop the run.
        let _ = active.inbox.try_send(message);
        true
    }

    pub(crate) fn tell_all_on(&self, edge: &str, message: impl Fn() -> ToDriver) {
        for active in self.books().active.values().filter(|active| active.place.edge == edge) {
            let _ = active.inbox.try_send(message());
        }
    }

    /// Tells the run's driver, or puts the run among those that wait for one; at once, so that it never has two.
    fn tell_or_wait(&self, run: RunId, place: Place, now: Timestamp) {
        let mut books = self.books();
        match books.active.get_mut(&run) {
            Some(active) => {
                if !std::mem::replace(&mut active.again, true) {
                    let _ = active.inbox.try_send(ToDriver::Changed);
                }
            }
            None => {
                books
                    .waiting
                    .entry(run)
                    .and_modify(|(known, _)| *known = place.clone())
                    .or_insert((place, now));
            }
        }
    }

    /// Since when a run waits for a place here, if it does.
    pub(crate) fn waits_since(&self, run: RunId) -> Option<Timestamp> {
        self.books().waiting.get(&run).map(|(_, since)| *since)
    }

    /// How long it waited by now is recorded: from here on it is counted anew.
    pub(crate) fn waits_from(&self, run: RunId, now: Timestamp) {
        if let Some((_, since)) = self.books().waiting.get_mut(&run) {
            *since = now;
        }
    }

    /// The next run that may start, since when it waited, and its inbox, if there is a place for it.
    fn take(&self, engine: &Engine) -> Option<(RunId, Timestamp, mpsc::Receiver<ToDriver>)> {
        let mut books = self.books();
        let fits = |place: &Place, active: &HashMap<RunId, Active>| {
            let on_edge = active.values().filter(|other| other.place.edge == place.edge).count();
            let of_agent = active.values().filter(|other| other.place.agent == place.agent).count();
            let agent_max =
                engine.catalog().agents.get(&place.agent).map_or(usize::MAX, |agent| agent.runs_max);
            let in_place = active.values().filter(|other| {
                (&other.place.agent, &other.place.workspace) == (&place.agent, &place.workspace)
            });
            let project_max = engine
                .projects()
                .and_then(|projects| projects.runs_max(&place.workspace, &place.agent))
                .unwrap_or(usize::MAX);
            on_edge < engine.limits().runs_per_edge_max
                && of_agent < agent_max
                && in_place.count() < project_max
        };
        let run =
            books.waiting.iter().find(|(_, (place, _))| fits(place, &books.active)).map(|(run, _)| *run)?;
        let (place, since) = books.waiting.remove(&run)?;
        let (inbox, messages) = mpsc::channel(INBOX_MAX);
        books.active.insert(run, Active { place, inbox, again: false, closing: false });
        Some((run, since, messages))
    }

    /// Starts looking at news: what came before this is seen by the look that follows.
    pub(crate) fn looks(&self, run: RunId) {
        if let Some(active) = self.books().active.get_mut(&run) {
            active.again = false;
        }
    }

    /// The run's session is being closed.
    pub(crate) fn closes(&self, run: RunId) {
        if let Some(active) = self.books().active.get_mut(&run) {
            active.closing = true;
        }
    }

    /// Whether the run has a session here that goes on.
    pub(crate) fn is_live(&self, run: RunId) -> bool {
        self.books().active.get(&run).is_some_and(|active| !active.closing)
    }

    /// The run is to be looked at again when its driver has ended.
    pub(crate) fn again(&self, run: RunId) {
        if let Some(active) = self.books().active.get_mut(&run) {
            active.again = true;
        }
    }

    /// The driver has ended. True when somebody wanted the run to go on meanwhile.
    fn end(&self, run: RunId) -> bool {
        self.books().active.remove(&run).is_some_and(|active| active.again)
    }
}

impl Engine {
    /// Looks after a run that was changed: its driver is told, or it gets one if it needs one.
    pub(crate) fn changed(&self, standing: &Standing) {
        let run = standing.run.id;
        if self.schedule().tell(run, ToDriver::Changed) {
            return;
        }
        let wants = match standing.run.state {
            RunState::Planned | RunState::Accepted | RunState::Preparing => true,
            RunState::Running | RunState::Applying { .. } => true,
            // A waiting run is a row.
            RunState::Created | RunState::NeedsApproval { .. } => false,
            RunState::Completed | RunState::Failed { .. } | RunState::Cancelled { .. } => false,
        };
        let Some(plan) = standing.run.planned.as_ref().filter(|_| wants) else { return };
        if !self.own_edges().contains(&plan.edge_id) {
            // Its hub is told by the store.
            return;
        }
        let created = &standing.run.created;
        let (agent, workspace) = (created.agent_id.clone(), created.workspace.label.clone());
        let place = Place { edge: plan.edge_id.clone(), agent, workspace };
        self.schedule().tell_or_wait(run, place, self.now());
        self.pump();
    }

    /// Starts whatever there is a place for.
    pub(crate) fn pump(&self) {
        while !self.is_stopping()
            && let Some((run, since, inbox)) = self.schedule().take(self)
        {
            let engine = self.clone();
            tokio::spawn(async move {
                let drove = Driver::drive(&engine, run, since, inbox).await;
                engine.drove(run, drove).await;
            });
        }
    }

    /// A driver has ended: its place is free.
    async fn drove(&self, run: RunId, outcome: Result<(), EngineError>) {
        self.run_tokens().end(run);
        if let Err(error) = outcome {
            if let EngineError::Invalid { message, .. } = &error {
                self.cannot_be_driven(run, message).await;
            } else {
                tracing::error!(%run, %error, "a run cannot be driven just now; it is tried again");
                tokio::time::sleep(crate::driver::RETRY_AFTER).await;
            }
            self.schedule().end(run);
            self.look_again(run).await;
        } else if self.schedule().end(run) {
            self.look_again(run).await;
        }
        self.pump();
    }

    /// What a run was planned with is not there any more, and waiting would not bring it back.
    async fn cannot_be_driven(&self, run: RunId, why: &str) {
        let failure = Failure::new(Code::RuntimeUnavailable, why.to_owned());
        let decide = move |run: &Run, now| {
            let mut facts = withdrawn(run);
            facts.push(failed(run, failure.clone(), "failed", None, now));
            Ok(Decided { facts, result: None })
        };
        if let Err(error) = self.recorder().head(run, decide).await {
            tracing::error!(%run, %error, "a run that cannot be driven cannot be ended either");
        }
    }

    async fn look_again(&self, run: RunId) {
        match self.run(run).await {
            Ok(standing) => self.changed(&standing),
            Err(error) => tracing::error!(%run, %error, "a run cannot be read"),
        }
    }

    pub(crate) fn to_driver(&self, run: RunId, message: ToDriver) {
        self.schedule().tell(run, message);
    }
}
