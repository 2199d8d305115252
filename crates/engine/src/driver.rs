//! Who drives a live run: one task per open session, which records what the edge reports and hands on what people decide.
//!
//! A driver holds the run's lease and its folded state. It ends when the run does, or when the session is parked; a run that
//! waits for people has none.

use std::collections::HashSet;
use std::time::Duration;

use runyard_backend::link::{OpenRun, Report, Stage, ToEdge};
use runyard_backend::{Answer, BackendInfo, Command, Resumes, Start, failpoint};
use runyard_domain::run::{Degraded, Failure, FailureKind, Run, RunEvent, RunState, RuntimeDied, Work};
use runyard_domain::{ApprovalId, Code, CommandId, DiffParts, Preparation, RunId, Timestamp};
use runyard_store::{StorageError, Subscription};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use crate::approvals::waits;
use crate::edges::EdgeHandle;
use crate::endings::{failed, withdrawn};
use crate::owning::Kept;
use crate::record::{Fact, Standing};
use crate::recovery::{AWAY_MS_MIN, queued, reopening};
use crate::review::{keep, link_work};
use crate::threads::History;
use crate::timers;
use crate::translate::{
    DEATHS_MAX, Terms, Translated, answer, batch_append, runtime_error, status, translate,
};
use crate::used_once::Checked;
use crate::{Engine, EngineError};

/// How many messages wait for a driver.
pub(crate) const INBOX_MAX: usize = 64;
/// After how long a run is tried again that could not be driven.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(2);

/// What a driver hears.
#[derive(Debug)]
pub(crate) enum ToDriver {
    /// What happened in the run.
    Batch { generation: u64, edge_sequence: u64, reports: Vec<Report> },
    /// Nothing is left of the session.
    Closed { generation: u64 },
    /// Somebody else has written to the run.
    Changed,
    /// The edge can no longer be reached.
    EdgeGone,
}

/// Why a session is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    /// The run is at its end.
    Over,
    /// It waits for people.
    Parked,
    /// Another hub drives it now.
    Fenced,
    /// Its backend died, and is opened again where the run does not wait for people.
    Died,
    /// Its agent is done, or its checkout was looked at, and something else comes next.
    Done,
    /// Its edge cannot be reached, and so cannot be asked to close it.
    EdgeGone,
}

pub(crate) struct Driver<'a> {
    engine: &'a Engine,
    standing: Standing,
    generation: u64,
    info: BackendInfo,
    edge: EdgeHandle,
    /// Approvals that this session asked for: each is answered by its own decision.
    asked_here: HashSet<ApprovalId>,
    /// Those of them whose decision was handed to the edge.
    decided: HashSet<ApprovalId>,
    turn_sent: Option<CommandId>,
    /// Words that the session was told, or that its turn is to end.
    told: HashSet<CommandId>,
    /// What the session does.
    work: Work,
    /// Where the diff that it reported so far is kept.
    parts: DiffParts,
    /// The last batch that was recorded, with what it was answered.
    recorded: (u64, Vec<(String, Answer)>),
    /// Wakes when something is written to the run, also by another hub.
    written: Subscription,
    accept_by: Instant,
    idle_at: Instant,
    park_at: Option<Instant>,
    renew_at: Instant,
}

impl<'a> Driver<'a> {
    /// Drives a run, which waited for its place since then, until its session is closed.
    pub(crate) async fn drive(
        engine: &'a Engine,
        run: RunId,
        since: Timestamp,
        mut inbox: mpsc::Receiver<ToDriver>,
    ) -> Result<(), EngineError> {
        engine.schedule().looks(run);
        let standing = engine.run(run).await?;
        if standing.run.state.is_terminal() || waits(&standing.run) {
            return Ok(());
        }
        let Some(generation) = engine.lease(run).await? else { return Ok(()) };
        // Between the reading and the lease somebody may have driven it.
        let standing = engine.run(run).await?;
        let outcome = match Driver::begin(engine, standing, generation, since).await? {
            Some(driver) => driver.session(&mut inbox).await,
            None => Ok(()),
        };
        engine.release(run, generation).await?;
        outcome
    }

    /// Opens the session, unless the run is to end or to wait instead.
    async fn begin(
        engine: &'a Engine,
        standing: Standing,
        generation: u64,
        since: Timestamp,
    ) -> Result<Option<Driver<'a>>, EngineError> {
        let info = engine.catalog().backend(&standing.run.created.backend_profile)?.1.clone();
        let limits = *engine.limits();
        let reopen = |run: &Run, now| {
            let reopened = || [engine.replanned(run), reopening(run, &info, &limits, now)].concat();
            let reopened = if run.work(info.checkout) == Work::Agent { reopened() } else { Vec::new() };
            let queued = queued(run, &info, since, now).filter(|_| now.ms_since(since) >= AWAY_MS_MIN);
            Ok(queued.into_iter().chain(reopened).collect())
        };
        let standing = engine.record_at(standing, generation, reopen).await?;
        if standing.run.state.is_terminal() || waits(&standing.run) {
            return Ok(None);
        }
        let edge_id = standing.run.planned.as_ref().map(|plan| plan.edge_id.clone()).unwrap_or_default();
        let Some(edge) = engine.edges_known().handle(&edge_id) else {
            engine.fail(standing, generation, offline(&edge_id)).await?;
            return Ok(None);
        };
        let preparation = match engine.preparation(&standing.run).await? {
            Ok(preparation) => preparation,
            Err(failure) => {
                engine.fail(standing, generation, failure).await?;
                return Ok(None);
            }
        };
        let work = standing.run.work(info.checkout);
        let history = match info.logs_thread && work == Work::Agent {
            true => engine.history(&standing.run).await?,
            false => Ok(History::default()),
        };
        let history = match history {
            Ok(history) => history,
            Err(failure) => {
                engine.fail(standing, generation, failure).await?;
                return Ok(None);
            }
        };
        let now = Instant::now();
        let idle = Duration::from_millis(standing.run.created.execution_policy.idle_ms);
        let mut driver = Driver {
            engine,
            generation,
            edge,
            asked_here: HashSet::new(),
            decided: HashSet::new(),
            turn_sent: None,
            told: HashSet::new(),
            work,
            parts: DiffParts::default(),
            recorded: (0, Vec::new()),
            written: engine.recorder().store.live().subscribe(standing.run.id),
            accept_by: now + Duration::from_millis(limits.accept_ms),
            idle_at: now + idle,
            park_at: None,
            renew_at: now + Duration::from_millis(limits.lease_ms / 3),
            info,
            standing,
        };
        driver.open(preparation, history).await?;
        Ok(Some(driver))
    }

    async fn open(
        &mut self,
        preparation: Preparation,
        History { parts: mut history, left }: History,
    ) -> Result<(), EngineError> {
        let run = &self.standing.run;
        let created = &run.created;
        let (profile, _) = self.engine.catalog().backend(&created.backend_profile)?;
        let stage = match run.state {
            RunState::Accepted => Stage::Accepted,
            RunState::Preparing => Stage::Preparing,
            RunState::Running | RunState::Applying { .. } => Stage::Running,
            _ => Stage::Planned,
        };
        let (task, thread) = (created.task.clone(), run.thread.clone());
        let start = match run.turns {
            // What it said before its first turn is nothing to go on from.
            0 => Start::Fresh { task, thread: created.thread.clone() },
            _ => Start::Resume { task, thread, turn_active: run.turn_active },
        };
        let last = history.pop().unwrap_or_default();
        for recorded in history {
            let (run, generation) = (run.id, self.generation);
            self.edge.send(ToEdge::History { run, generation, recorded }).await;
        }
        let run_token = self.engine.run_tokens().issue(run.id, &created.agent_id);
        let run_token = run_token.map_err(|source| StorageError::io("making a run's token", source))?;
        let approval_policy = run.planned.as_ref().map(|plan| plan.approval_policy.clone());
        let open = OpenRun {
            run: run.id,
            generation: self.generation,
            session: created.session_id,
            agent_id: created.agent_id.clone(),
            backend_profile: profile.clone(),
            workspace: created.workspace.clone(),
            execution_policy: created.execution_policy.clone(),
            approval_policy: approval_policy.unwrap_or_default(),
            stage,
            preparation,
            rules_used: run.rules_used.clone(),
            work: link_work(run, &self.work),
            start,
            history: last,
            left,
            run_token,
            usage: run.usage,
        };
        failpoint::reach("link.open");
        self.edge.send(ToEdge::Open(Box::new(open))).await;
        Ok(())
    }

    /// Serves the session until it is closed. Whatever happens, nothing of it is left running.
    async fn session(mut self, inbox: &mut mpsc::Receiver<ToDriver>) -> Result<(), EngineError> {
        let served = self.serve(inbox).await;
        if self.engine.is_stopping() {
            // The edge stops everything itself.
            return Ok(());
        }
        let why = match served {
            Ok(why) => why,
            Err(EngineError::Storage(StorageError::StaleGeneration { .. })) => Closing::Fenced,
            Err(error) => {
                self.close(Closing::Fenced, inbox).await;
                return Err(error);
            }
        };
        self.close(why, inbox).await;
        match why {
            Closing::Parked => self.note_parked().await?,
            // Whoever looks after the run next sees that it is running without a driver.
            Closing::Died | Closing::Done => self.engine.schedule().again(self.standing.run.id),
            Closing::Over | Closing::Fenced | Closing::EdgeGone => {}
        }
        Ok(())
    }

    /// Until there is a reason to close.
    async fn serve(&mut self, inbox: &mut mpsc::Receiver<ToDriver>) -> Result<Closing, EngineError> {
        loop {
            if let Some(why) = self.act().await? {
                return Ok(why);
            }
            let deadline = self.next_deadline();
            let heard = tokio::select! {
                heard = inbox.recv() => heard,
                () = self.written.news() => {
                    self.written.listen();
                    if self.is_behind().await? { Some(ToDriver::Changed) } else { continue }
                }
                () = sleep_until(deadline) => {
                    match self.due().await? {
                        Some(why) => return Ok(why),
                        None => continue,
                    }
                }
            };
            // Without a sender nobody looks after the run here any more.
            let Some(message) = heard else { return Ok(Closing::Fenced) };
            if let Some(why) = self.hear(message).await? {
                return Ok(why);
            }
            if self.engine.is_stopping() {
                return Ok(Closing::Fenced);
            }
        }
    }

    /// Whether somebody wrote what this driver has not seen.
    async fn is_behind(&self) -> Result<bool, EngineError> {
        let head = self.engine.recorder().store.head(self.standing.run.id).await?;
        Ok(head.unwrap_or_default() > self.standing.sequence)
    }

    async fn hear(&mut self, message: ToDriver) -> Result<Option<Closing>, EngineError> {
        match message {
            ToDriver::Batch { generation, edge_sequence, reports } if generation == self.generation => {
                self.batch(edge_sequence, &reports).await
            }
            ToDriver::Batch { .. } => Ok(None),
            ToDriver::Changed => {
                self.engine.schedule().looks(self.standing.run.id);
                self.standing = self.engine.run(self.standing.run.id).await?;
                Ok(None)
            }
            // The session ended without a word about how.
            ToDriver::Closed { generation } if generation == self.generation => {
                self.died("The session ended without saying how.").await?;
                Ok(Some(Closing::Died))
            }
            ToDriver::Closed { .. } => Ok(None),
            ToDriver::EdgeGone if self.engine.is_stopping() => Ok(None),
            ToDriver::EdgeGone => {
                let edge = self.standing.run.planned.as_ref().map(|plan| plan.edge_id.clone());
                self.fail(offline(&edge.unwrap_or_default())).await?;
                Ok(Some(Closing::EdgeGone))
            }
        }
    }

    /// Records what the edge reports, and answers it.
    async fn batch(
        &mut self,
        edge_sequence: u64,
        reports: &[Report],
    ) -> Result<Option<Closing>, EngineError> {
        let (run, generation) = (self.standing.run.id, self.generation);
        // An edge that did not hear the answer sends its batch again.
        if edge_sequence <= self.recorded.0 {
            let granted = self.recorded.1.clone();
            self.edge.send(ToEdge::Recorded { run, generation, edge_sequence, granted }).await;
            return Ok(None);
        }
        // What is told of a run at its end is not recorded, so no rule is used up for it.
        let late = self.standing.run.state.is_terminal();
        // A rule that holds once is used up before it has served: what dies in between costs a question, not a second use.
        let Checked { reports, refused } = match late {
            false => self.engine.use_rules(&self.standing.run, reports).await?,
            true => Checked::of(reports),
        };
        let reports = &*reports;
        let texts = keep(self.engine.recorder(), &mut self.parts, reports).await?;
        let mut made = Translated::default();
        let mut ended = false;
        let terms = Terms {
            info: &self.info,
            redactor: &self.engine.recorder().redactor,
            limits: self.engine.limits(),
            waiting: &self.asked_here,
            parts: &self.parts,
            texts: &texts,
        };
        let decide = |run: &Run, now| {
            // Somebody ended it, or its time is over: late output is dropped.
            if let Some(facts) = timers::late(run, now, terms.limits) {
                ended = true;
                return Ok(facts);
            }
            let mut translated = translate(run, reports, now, &terms)?;
            let facts = std::mem::take(&mut translated.facts);
            made = translated;
            Ok(facts)
        };
        let append = batch_append(run, generation, edge_sequence);
        let recorded = self.engine.recorder().at(self.standing.clone(), generation, append, decide).await;
        match recorded {
            Ok(standing) => self.standing = standing,
            Err(EngineError::Storage(StorageError::StaleGeneration { .. })) => {
                self.refuse(edge_sequence, true).await;
                return Ok(Some(Closing::Fenced));
            }
            Err(EngineError::Illegal(illegal)) => {
                tracing::error!(%run, %illegal, "the edge reported what the run does not take");
                let message = format!("The backend reported something impossible: {illegal}.");
                self.fail_of_backend(FailureKind::BackendProtocolError, message).await?;
                ended = true;
            }
            Err(error) => return Err(error),
        }
        if ended {
            self.refuse(edge_sequence, false).await;
            return Ok(None);
        }
        self.engine.count_batch();
        self.idle_at = Instant::now() + self.idle_limit();
        let open: Vec<ApprovalId> = self.standing.run.state.open().map(|(id, _)| id).collect();
        self.asked_here.extend(open);
        failpoint::reach("link.recorded");
        let granted = [made.granted, refused].concat();
        self.recorded = (edge_sequence, granted.clone());
        self.edge.send(ToEdge::Recorded { run, generation, edge_sequence, granted }).await;
        Ok(made.died.then_some(Closing::Died))
    }

    async fn refuse(&self, edge_sequence: u64, fenced: bool) {
        let (run, generation) = (self.standing.run.id, self.generation);
        self.edge.send(ToEdge::Refused { run, generation, edge_sequence, fenced }).await;
    }

    /// Does what the run's state calls for, after whatever changed it is durable.
    async fn act(&mut self) -> Result<Option<Closing>, EngineError> {
        let run = &self.standing.run;
        if run.state.is_terminal() {
            return Ok(Some(Closing::Over));
        }
        if run.state != RunState::Planned && !waits(run) && run.work(self.info.checkout) != self.work {
            if matches!(self.work, Work::Apply(_)) {
                let (run, generation) = (run.id, self.generation);
                self.edge.send(ToEdge::StopApplying { run, generation }).await;
            }
            return Ok(Some(Closing::Done));
        }
        if self.work != Work::Agent {
            // Nothing of the session is left while people look at the changes.
            return Ok(waits(run).then_some(Closing::Done));
        }
        let (id, generation) = (run.id, self.generation);
        for grant in run.grants.iter().filter(|grant| !grant.used) {
            let approval = grant.approval_id;
            if self.asked_here.contains(&approval) && self.decided.insert(approval) {
                let (key, digest) = (grant.key.clone(), grant.digest.clone());
                let answer = answer(grant);
                failpoint::reach("link.decision");
                let decision = ToEdge::Decision { run: id, generation, approval, key, digest, answer };
                self.edge.send(decision).await;
            }
        }
        // What an earlier session was told and did not hear is said again.
        for word in &run.unheard {
            if self.told.insert(word.command_id) {
                let id = word.command_id;
                let command = match word.text.clone() {
                    Some(text) => Command::Steer { id, text },
                    None => Command::Interrupt { id },
                };
                self.edge.send(ToEdge::Command { run: run.id, generation, command }).await;
            }
        }
        if run.state == RunState::Running
            && !run.turn_active
            // The first turn is the task itself.
            && run.turns > 0
            && let Some(turn) = run.queued.first()
            && run.started.is_some()
            && self.turn_sent != Some(turn.command_id)
        {
            self.turn_sent = Some(turn.command_id);
            self.idle_at = Instant::now() + self.idle_limit();
            let command = Command::Turn { id: turn.command_id, text: turn.text.clone() };
            self.edge.send(ToEdge::Command { run: id, generation, command }).await;
        }
        let park = Duration::from_millis(self.engine.limits().park_after_ms);
        let parkable = waits(run) && self.info.resumes != Resumes::Never;
        self.park_at = match (parkable, self.park_at) {
            (false, _) => None,
            (true, None) => Some(Instant::now() + park),
            (true, set) => set,
        };
        Ok(None)
    }

    fn idle_limit(&self) -> Duration {
        Duration::from_millis(self.standing.run.created.execution_policy.idle_ms)
    }

    /// Whether the agent has something to do, so that its silence counts.
    fn must_speak(&self) -> bool {
        let run = &self.standing.run;
        run.state == RunState::Running && self.work == Work::Agent && run.kept_open_until().is_none()
    }

    fn next_deadline(&self) -> Instant {
        let mut next = self.renew_at;
        match self.standing.run.state {
            RunState::Planned => next = next.min(self.accept_by),
            _ if self.must_speak() => next = next.min(self.idle_at),
            _ => {}
        }
        self.park_at.map_or(next, |park| next.min(park))
    }

    /// Something is due: the lease, an edge that does not accept, a silent backend, a session to park.
    async fn due(&mut self) -> Result<Option<Closing>, EngineError> {
        let now = Instant::now();
        let limits = *self.engine.limits();
        let run = self.standing.run.id;
        if now >= self.renew_at {
            if self.engine.keep(run, self.generation).await? == Kept::Lost {
                return Ok(Some(Closing::Fenced));
            }
            self.renew_at = now + Duration::from_millis(limits.lease_ms / 3);
        }
        if self.standing.run.state == RunState::Planned && now >= self.accept_by {
            let edge = self.standing.run.planned.as_ref().map(|plan| plan.edge_id.clone());
            self.fail(offline(&edge.unwrap_or_default())).await?;
        }
        if self.must_speak() && now >= self.idle_at {
            self.idle_at = now + self.idle_limit();
            let ms = self.standing.run.created.execution_policy.idle_ms;
            let reason = format!("The backend was silent for more than {ms} ms.");
            self.degrade(reason).await?;
        }
        match self.park_at {
            Some(park) if now >= park && waits(&self.standing.run) => Ok(Some(Closing::Parked)),
            _ => Ok(None),
        }
    }

    async fn degrade(&mut self, reason: String) -> Result<(), EngineError> {
        let decide = |run: &Run, _| {
            let known = run.state.is_terminal() || run.degraded.contains(&reason);
            let degraded = RunEvent::Degraded(Degraded { reason: reason.clone() });
            Ok(if known { Vec::new() } else { vec![Fact::from(degraded)] })
        };
        self.standing = self.engine.record_at(self.standing.clone(), self.generation, decide).await?;
        Ok(())
    }

    async fn died(&mut self, message: &str) -> Result<(), EngineError> {
        let decide = |run: &Run, now| {
            if run.state.is_terminal() {
                return Ok(Vec::new());
            }
            let died = Fact::from(RunEvent::RuntimeDied(RuntimeDied { message: message.to_owned() }));
            if run.deaths < DEATHS_MAX {
                return Ok(vec![died]);
            }
            let mut facts = withdrawn(run);
            let failure = Failure::of_backend(FailureKind::BackendFailed, message);
            facts.extend([died, failed(run, failure, "failed", None, now)]);
            Ok(facts)
        };
        self.standing = self.engine.record_at(self.standing.clone(), self.generation, decide).await?;
        Ok(())
    }

    async fn fail(&mut self, failure: Failure) -> Result<(), EngineError> {
        self.standing = self.engine.fail(self.standing.clone(), self.generation, failure).await?;
        Ok(())
    }

    /// Fails the run for what its backend did, with the event that says so before it.
    async fn fail_of_backend(&mut self, kind: FailureKind, message: String) -> Result<(), EngineError> {
        let decide = |run: &Run, _| {
            let told = || Fact::from(runtime_error(Some(kind), &message, false));
            Ok(if run.state.is_terminal() { Vec::new() } else { vec![told()] })
        };
        self.standing = self.engine.record_at(self.standing.clone(), self.generation, decide).await?;
        self.fail(Failure::of_backend(kind, message)).await
    }

    /// Closes the session and waits until nothing of it is left.
    async fn close(&mut self, why: Closing, inbox: &mut mpsc::Receiver<ToDriver>) {
        if why == Closing::EdgeGone {
            return;
        }
        let (run, generation) = (self.standing.run.id, self.generation);
        self.engine.schedule().closes(run);
        failpoint::reach("link.close");
        self.edge.send(ToEdge::Close { run, generation, over: why == Closing::Over }).await;
        let closed = async {
            while let Some(message) = inbox.recv().await {
                match message {
                    ToDriver::Closed { generation } if generation == self.generation => return,
                    ToDriver::EdgeGone => return,
                    // Nothing that still comes is recorded.
                    ToDriver::Batch { edge_sequence, .. } => {
                        self.refuse(edge_sequence, why == Closing::Fenced).await
                    }
                    _ => {}
                }
            }
        };
        let patience = Duration::from_millis(self.engine.limits().close_ms);
        if timeout(patience, closed).await.is_err() {
            tracing::error!(%run, "the edge did not close the session in time");
        }
    }

    async fn note_parked(&mut self) -> Result<(), EngineError> {
        let status = status(&self.standing.run, &self.info, "parked");
        let decide = |run: &Run, _| {
            let ended = run.state.is_terminal();
            Ok(if ended { Vec::new() } else { vec![Fact::from(RunEvent::RuntimeStatus(status.clone()))] })
        };
        self.standing = self.engine.record_at(self.standing.clone(), self.generation, decide).await?;
        Ok(())
    }
}

fn offline(edge: &str) -> Failure {
    Failure::new(Code::TargetOffline, format!("The edge \"{edge}\" cannot be reached."))
}
