//! One run at the edge: it is accepted, prepared and driven, and everything that happens in it goes through here in one order.
//!
//! A session is one task. It takes the backend's batches, the hub's words and the time one after the other, and does nothing
//! before the hub has said that what justifies it is durable.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use runyard_backend::failpoint;
use runyard_backend::link::{OpenRun, Report, Stage, Work};
use runyard_backend::{Access, Answer, Command, Ending, JournalError, Runs, Session, SessionSpec, Signal};
use runyard_domain::ApprovalId;
use runyard_domain::gate::Preset;
use runyard_domain::run::{Failure, FailureKind};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep_until, timeout};

use crate::asks::{Asks, Judge};
use crate::edge::Shared;
use crate::ending;
use crate::gateway::Lease;
use crate::journal::{Entries, Entry, journal};
use crate::metered::Metered;
use crate::outbox::{Closing, Outbox};
use crate::places::Places;
use crate::prepare::{Prepared, Unprepared, checks, prepare};
use crate::raw::Raw;
use crate::sandbox::Confinement;
use crate::scribe::{Breach, Scribe};
use crate::session_home::SessionHome;

/// How many commands and answers wait for a backend at most.
pub(crate) const OUTGOING_MAX: usize = 1_024;
/// A backend that is closed has so long to stop what it started, which custody does within half of it.
pub(crate) const CLOSE_PATIENCE: Duration = Duration::from_secs(90);

const OVERRUN: &str = "too much was said to the session at once";

/// What the hub says to a session.
pub(crate) enum Said {
    Command(Command),
    Decision { approval: ApprovalId, key: String, digest: String, answer: Answer },
}

/// Drives a run until it is over at this edge, and leaves nothing running. What cannot be dropped at once holds `living`.
pub(crate) async fn run(
    edge: Arc<Shared>,
    open: OpenRun,
    mut outbox: Outbox,
    said: mpsc::Receiver<Said>,
    mut closing: watch::Receiver<Closing>,
    stop_applying: Arc<AtomicBool>,
    living: &Arc<watch::Sender<()>>,
) {
    if open.work != Work::Drive {
        return ending::run(&edge, open, outbox, closing, stop_applying, living).await;
    }
    let places = Places::of(&edge.home, open.run);
    let prepared = tokio::select! {
        biased;
        closing = closed(&mut closing) => Err(closing),
        prepared = accept_and_prepare(&edge, &open, &places, &mut outbox, living) => Ok(prepared),
    };
    let mut prepared = match prepared {
        Ok(Ok(Some(prepared))) => prepared,
        Err(Closing::Overrun) => {
            let failure = Failure::of_backend(FailureKind::BackendFailed, OVERRUN);
            let _ = outbox.put(vec![Report::Failed { failure }]).await;
            return;
        }
        Ok(_) | Err(_) => return,
    };
    let lock = places.lock();
    let session_home =
        Drive::new(&edge, open, outbox, said, closing, &mut prepared).go(&edge, prepared, &places).await;
    if let Err(error) = edge.supervision.settled(&lock).await {
        tracing::error!(%error, "processes of a closed session are still there");
    }
    // Not before: what is stopped may write until then.
    drop(session_home);
}

/// Waits until the session is to close.
pub(crate) async fn closed(closing: &mut watch::Receiver<Closing>) -> Closing {
    let closing = closing.wait_for(|closing| *closing != Closing::Open).await;
    closing.map_or(Closing::Closed, |closing| *closing)
}

/// Each report is durable before the next step. None where the run failed.
async fn accept_and_prepare(
    edge: &Shared,
    open: &OpenRun,
    places: &Places,
    outbox: &mut Outbox,
    living: &Arc<watch::Sender<()>>,
) -> Result<Option<Prepared>, JournalError> {
    if open.stage == Stage::Planned {
        outbox.put(vec![Report::Accepted]).await?;
    }
    if matches!(open.stage, Stage::Planned | Stage::Accepted) {
        outbox.put(vec![Report::Preparing { checks: checks(open) }]).await?;
    }
    let prepared = match prepare(edge, open, places, outbox, living).await {
        Ok(prepared) => prepared,
        Err(Unprepared::Journal(error)) => return Err(error),
        Err(Unprepared::Failed(failure)) => {
            outbox.put(vec![Report::Failed { failure }]).await?;
            return Ok(None);
        }
    };
    let mut reports: Vec<Report> = prepared.projected.iter().cloned().collect();
    if open.stage != Stage::Running {
        let info = prepared.backend.info();
        let (backend_kind, protocol) = (info.backend_kind.to_owned(), info.protocol.to_owned());
        reports.push(Report::Started { backend_kind, protocol, checks: prepared.found.clone() });
    }
    // Also of a run that goes on: what confined it may be gone meanwhile.
    let degraded = prepared.degraded.iter().cloned();
    reports.extend(degraded.map(|reason| Report::Signal(Signal::Degraded { reason })));
    if !reports.is_empty() {
        outbox.put(reports).await?;
    }
    Ok(Some(prepared))
}

/// Why a session stops being driven.
enum Over {
    /// Nothing more is recorded.
    Journal(JournalError),
    /// Everything was said.
    Ended,
    /// The backend does what it must not.
    Breach(Breach),
    /// More was said to the session than it can take.
    Overrun,
    /// It could not be opened.
    Failed(Failure),
    /// The backend's task ended, and the backend had not said that it does.
    Unsaid { panicked: bool },
}

/// What a session waits for.
enum Happened {
    Closing(Closing),
    Said(Said),
    Entry(Entry),
    TextIsDue,
    Used,
}

impl From<JournalError> for Over {
    fn from(error: JournalError) -> Self {
        Over::Journal(error)
    }
}

impl From<Breach> for Over {
    fn from(breach: Breach) -> Self {
        Over::Breach(breach)
    }
}

/// A run whose backend is started.
struct Drive {
    open: OpenRun,
    outbox: Outbox,
    said: mpsc::Receiver<Said>,
    closing: watch::Receiver<Closing>,
    scribe: Scribe,
    asks: Asks,
    /// What the backend is to be told, as soon as it takes it.
    outgoing: VecDeque<Command>,
    /// The way through the gateway, as long as the agent is there.
    lease: Option<Lease>,
    /// What the gateway counts, where the agent goes through it.
    metered: Option<Metered>,
    /// What its program says and is told, where that is kept.
    raw: Raw,
}

impl Drive {
    fn new(
        edge: &Shared,
        open: OpenRun,
        outbox: Outbox,
        said: mpsc::Receiver<Said>,
        closing: watch::Receiver<Closing>,
        prepared: &mut Prepared,
    ) -> Self {
        let judge = Judge {
            run: open.run,
            session: open.session,
            agent: open.agent_id.clone(),
            workspace: open.workspace.label.clone(),
            // A preset that this version does not know is taken for the stricter one.
            preset: if open.approval_policy.preset == "default" { Preset::Default } else { Preset::Strict },
            execution: open.execution_policy.clone(),
            policies: Arc::clone(&edge.policies),
            used: Arc::new(Mutex::new(open.rules_used.clone())),
            clock: Arc::clone(&edge.clock),
        };
        let asks = Asks { judge, key: edge.key.clone(), waiting: HashMap::new(), asked: HashSet::new() };
        let scribe = Scribe::new(prepared.redactor.clone());
        let lease = prepared.lease.take();
        let metered = lease.as_ref().map(|lease| Metered::new(&open, lease));
        let raw = Raw::new(prepared.redactor.clone());
        Drive { open, outbox, said, closing, scribe, asks, outgoing: VecDeque::new(), lease, metered, raw }
    }

    /// Drives it to its end. Gives back what the session's runs share.
    async fn go(mut self, edge: &Shared, prepared: Prepared, places: &Places) -> SessionHome {
        let runs = prepared.backend.info().runs;
        let spec = self.spec(edge, places, runs, prepared.confinement, prepared.access);
        let (journal, mut entries) = journal();
        let mut opening = prepared.backend.open(spec, journal);
        let mut session = None;
        // A backend may record while it opens.
        let over = loop {
            let happened = tokio::select! {
                biased;
                opened = &mut opening => match opened {
                    Ok(opened) => {
                        failpoint::reach("session.opened");
                        break self.follow(&mut entries, session.insert(opened)).await;
                    }
                    Err(error) => {
                        let message = self.scribe.line(&error.message);
                        break Over::Failed(Failure::of_backend(error.failure_kind, message));
                    }
                },
                happened = self.next(&mut entries) => happened,
            };
            if let Err(over) = self.act(happened).await {
                break over;
            }
        };
        drop(opening);
        if !matches!(over, Over::Journal(_) | Over::Ended)
            && let Some(used) = self.counted().await
        {
            // Where nothing more is recorded, the last word is not either.
            let _ = self.outbox.put(vec![used]).await;
        }
        entries.close(self.last_word(over).await);
        if let Some(Session { commands, task }) = session {
            drop(commands);
            stopped(task).await;
        }
        prepared.session_home
    }

    fn spec(
        &mut self,
        edge: &Shared,
        places: &Places,
        runs: Runs,
        confinement: Confinement,
        access: Access,
    ) -> SessionSpec {
        SessionSpec {
            run: self.open.run,
            profile: self.open.backend_profile.clone(),
            start: self.open.start.clone(),
            history: std::mem::take(&mut self.open.history),
            left: self.open.left.take(),
            redaction: Arc::new(self.scribe.redaction()),
            sight: Arc::new(self.asks.judge.clone()),
            directory: places.checkout(),
            home: Places::of_session(&edge.home, self.open.session, &self.open.backend_profile.profile),
            notes: places.notes(),
            policy: self.open.execution_policy.clone(),
            access,
            confined: matches!(confinement, Confinement::Within(_)),
            environment: environment(edge, &self.open, places),
            processes: match runs {
                Runs::Agent => edge.supervision.under(&places.lock(), confinement),
                // An action that is tried again, or another that waits for its place, must not find it still at work.
                Runs::Action => edge.supervision.at_once(&places.lock(), confinement),
            },
        }
    }

    /// Follows an open session to its end.
    async fn follow(&mut self, entries: &mut Entries, session: &mut Session) -> Over {
        let Session { commands, task } = session;
        loop {
            let happened = tokio::select! {
                biased;
                room = commands.reserve(), if !self.outgoing.is_empty() => {
                    // Without room its task is about to end, and nobody is left to be told.
                    if let (Some(command), Ok(room)) = (self.outgoing.pop_front(), room) {
                        if matches!(command, Command::Answer { .. }) {
                            failpoint::reach("session.answer");
                        }
                        room.send(command);
                    }
                    continue;
                },
                happened = self.next(entries) => happened,
                ended = &mut *task => break self.ended_unsaid(entries, ended.is_err()).await,
            };
            if let Err(over) = self.act(happened).await {
                break over;
            }
        }
    }

    /// The next thing that happens. Dropping it loses nothing.
    async fn next(&mut self, entries: &mut Entries) -> Happened {
        let due_at = self.scribe.due_at();
        let due = async {
            match due_at {
                Some(due_at) => sleep_until(due_at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            closing = closed(&mut self.closing) => Happened::Closing(closing),
            said = self.said.recv() => said.map_or(Happened::Closing(Closing::Closed), Happened::Said),
            () = Metered::changed(&mut self.metered) => Happened::Used,
            Some(entry) = entries.entries.recv() => Happened::Entry(entry),
            () = due => Happened::TextIsDue,
        }
    }

    /// Does what follows from it, and waits until that is durable.
    async fn act(&mut self, happened: Happened) -> Result<(), Over> {
        match happened {
            Happened::Closing(Closing::Overrun) => Err(Over::Overrun),
            Happened::Closing(_) => Err(Over::Journal(JournalError::Stopped)),
            Happened::TextIsDue => {
                let reports = self.scribe.waiting();
                self.put(reports, Vec::new()).await
            }
            Happened::Used => self.used().await,
            Happened::Said(Said::Command(command)) => self.tell(command),
            Happened::Said(Said::Decision { approval, key, digest, answer }) => {
                self.decide(approval, key, &digest, answer).await
            }
            Happened::Entry(Entry { batch, recorded }) => {
                let done = self.record(batch).await;
                let answer = match &done {
                    Ok(()) | Err(Over::Ended) => Ok(()),
                    Err(Over::Journal(error)) => Err(*error),
                    Err(_) => Err(JournalError::Stopped),
                };
                let _ = recorded.send(answer);
                done
            }
        }
    }

    /// Closes the way through the gateway. Gives what was counted of the requests that this cut off.
    async fn counted(&mut self) -> Option<Report> {
        self.lease.take()?.close().await;
        self.metered.as_mut()?.pending().map(Report::Signal)
    }

    /// Reports what the gateway counted. It ends the run where that is more than its budget.
    async fn used(&mut self) -> Result<(), Over> {
        let Some(metered) = &self.metered else { return Ok(()) };
        let (used, exceeded) = (metered.status(), metered.exceeded());
        let mut reports = self.scribe.waiting();
        reports.push(Report::Signal(used));
        self.put(reports, Vec::new()).await?;
        match exceeded {
            Some(exceeded) => Err(Over::Failed(Failure::of_budget(exceeded))),
            None => Ok(()),
        }
    }

    async fn record(&mut self, batch: Vec<Signal>) -> Result<(), Over> {
        let (mut reports, mut answers, mut ended) = (Vec::new(), Vec::new(), false);
        for signal in batch {
            ended |= matches!(signal, Signal::Ended { .. });
            if matches!(signal, Signal::Ended { .. } | Signal::TurnEnded { .. }) {
                reports.extend(self.raw.take());
            }
            if ended {
                reports.extend(self.counted().await);
            }
            let signal = match (signal, &self.metered) {
                // What the gateway counts is what counts.
                (Signal::Status { phase, model, version, thread, usage: Some(_) }, Some(_)) => {
                    if model.is_none() && version.is_none() && thread.is_none() {
                        continue;
                    }
                    Signal::Status { phase, model, version, thread, usage: None }
                }
                (signal, _) => signal,
            };
            match signal {
                Signal::Raw { told, line } => reports.extend(self.raw.keep(told, &line)),
                Signal::Ask { key, request } => {
                    reports.extend(self.scribe.waiting());
                    let (report, answer) = self.asks.judge(key, request, &self.scribe)?;
                    reports.push(report);
                    answers.extend(answer);
                }
                Signal::Unasked { request } => {
                    let reason = self.asks.unasked(&request, &self.scribe);
                    reports.extend(self.scribe.write(Signal::Degraded { reason })?);
                }
                Signal::Withdraw { key } => {
                    answers.retain(|(asked, _)| *asked != key);
                    // What was judged here never waited for anybody.
                    let name = self.scribe.name(&key)?;
                    if self.asks.take(&name).is_some() {
                        reports.extend(self.scribe.write(Signal::Withdraw { key })?);
                    }
                }
                signal => reports.extend(self.scribe.write(signal)?),
            }
        }
        self.put(reports, answers).await?;
        if ended { Err(Over::Ended) } else { Ok(()) }
    }

    /// Reports, and answers the backend once that is durable.
    async fn put(&mut self, reports: Vec<Report>, mut answers: Vec<(String, Answer)>) -> Result<(), Over> {
        if !reports.is_empty() {
            for (name, answer) in self.outbox.put(reports).await? {
                if let Some(key) = self.asks.take(&name) {
                    answers.push((key, answer));
                    continue;
                }
                // What was judged here waits for nobody, but the hub has the last word on it.
                for (key, own) in &mut answers {
                    if self.scribe.name(key)? == name {
                        *own = answer.clone();
                    }
                }
            }
        }
        for (key, answer) in answers {
            self.tell(Command::Answer { key, answer })?;
        }
        Ok(())
    }

    /// Hands a decision over, after it is recorded that it is.
    async fn decide(
        &mut self,
        approval: ApprovalId,
        name: String,
        digest: &str,
        answer: Answer,
    ) -> Result<(), Over> {
        if self.asks.waiting.get(&name).is_some_and(|waiting| waiting.digest != digest) {
            return Err(Over::Breach(Breach::Drifted));
        }
        // The backend may have given the request up meanwhile; then nobody is handed anything.
        let Some(key) = self.asks.take(&name) else { return Ok(()) };
        let mut reports = self.scribe.waiting();
        reports.push(Report::Used { approval });
        self.put(reports, vec![(key, answer)]).await
    }

    fn tell(&mut self, command: Command) -> Result<(), Over> {
        if self.outgoing.len() >= OUTGOING_MAX {
            return Err(Over::Breach(Breach::Deaf));
        }
        self.outgoing.push_back(command);
        Ok(())
    }

    /// The backend's task is over: what it recorded last counts, and without an end among it the edge says how it ended.
    async fn ended_unsaid(&mut self, entries: &mut Entries, panicked: bool) -> Over {
        while let Ok(entry) = entries.entries.try_recv() {
            if let Err(over) = self.act(Happened::Entry(entry)).await {
                return over;
            }
        }
        Over::Unsaid { panicked }
    }

    /// Reports why the session is over, where that was not said yet. Gives what the journal says from now on.
    async fn last_word(&mut self, over: Over) -> JournalError {
        let failed = |failure_kind, message: String| {
            let ending = Ending::failed(failure_kind, message);
            Report::Signal(Signal::Ended { ending })
        };
        let report = match over {
            Over::Journal(error) => return error,
            Over::Ended => return JournalError::Stopped,
            Over::Failed(failure) => Report::Failed { failure },
            Over::Breach(breach) => failed(FailureKind::BackendProtocolError, breach.to_string()),
            Over::Overrun => failed(FailureKind::BackendFailed, OVERRUN.to_owned()),
            Over::Unsaid { panicked: false } => {
                let ending = Ending::Died { message: "the backend ended without saying how".to_owned() };
                Report::Signal(Signal::Ended { ending })
            }
            Over::Unsaid { panicked: true } => {
                failed(FailureKind::BackendFailed, "the backend broke down".to_owned())
            }
        };
        let mut reports = self.scribe.waiting();
        reports.push(report);
        self.outbox.put(reports).await.err().unwrap_or(JournalError::Stopped)
    }
}

/// All that the processes of a run find in their environment.
pub(crate) fn environment(edge: &Shared, open: &OpenRun, places: &Places) -> BTreeMap<String, String> {
    let path = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
    [
        ("PATH", edge.search_path.clone()),
        ("HOME", path(places.home())),
        ("TMPDIR", path(places.temporary())),
        ("LANG", "C.UTF-8".to_owned()),
        ("TERM", "dumb".to_owned()),
        ("RUNYARD_URL", edge.url.clone()),
        ("RUNYARD_RUN_ID", open.run.to_string()),
        ("RUNYARD_RUN_TOKEN", open.run_token.clone()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// Waits until a backend's task is over; one that takes too long is dropped, and all that it holds with it.
async fn stopped(mut task: JoinHandle<()>) {
    // One that is over was waited for before.
    if !task.is_finished() && timeout(CLOSE_PATIENCE, &mut task).await.is_err() {
        tracing::error!("a backend did not stop in time");
        task.abort();
        let _ = task.await;
    }
}
