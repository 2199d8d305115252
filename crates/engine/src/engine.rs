//! The engine itself: what it holds, how it starts and stops, and what it reads for others.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use runyard_backend::Workspaces;
use runyard_domain::run::Run;
use runyard_domain::{Actor, ApprovalId, RunId, Timestamp};
use runyard_redact::Safe;
use runyard_store::{LoggedEvent, RunsQuery, Store, Tail, Timer};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::catalog::Catalog;
use crate::edges::Edges;
use crate::installation::{Installation, is_installation};
use crate::options::{EngineOptions, Limits};
use crate::policy::PolicyNow;
use crate::projects::Projects;
use crate::record::{Decided, Recorder, Standing};
use crate::recovery::{Looks, queued};
use crate::refused::Refused;
use crate::run_tokens::RunTokens;
use crate::schedule::Schedule;
use crate::{EngineError, timers};

/// How many due timers are taken at a time.
const TIMERS_AT_ONCE: u32 = 100;
/// How often it is looked for what other hubs changed.
const OTHERS_PAUSE: Duration = Duration::from_secs(2);
/// How long at most until timers are looked at again.
const TIMER_PAUSE_MAX: Duration = Duration::from_millis(500);

/// The hub's heart. Cloning is cheap; all clones are the same engine.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    recorder: Recorder,
    owner: Safe<String>,
    own_edges: BTreeSet<String>,
    shared_store: bool,
    catalog: Catalog,
    policy: PolicyNow,
    workspaces: Arc<dyn Workspaces>,
    installation: Installation,
    digest_key: [u8; 32],
    projects: OnceLock<Arc<dyn Projects>>,
    edges: Edges,
    schedule: Schedule,
    run_tokens: RunTokens,
    /// The approvals that calls of agents wait for just now.
    awaited: Mutex<HashSet<ApprovalId>>,
    stopping: AtomicBool,
    batches: AtomicU64,
}

/// What an engine is doing, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Runs with a live session.
    pub runs_active: u64,
    /// Runs that wait for a place.
    pub runs_waiting: u64,
    /// Batches recorded since the start.
    pub batches_recorded: u64,
}

impl Engine {
    /// An engine that has recovered what an earlier process left. Runs go on as soon as their edge is attached.
    pub async fn start(options: EngineOptions) -> Result<Self, EngineError> {
        let EngineOptions { store, redactor, clock, owner, catalog, policy, .. } = options;
        let EngineOptions { own_edges, shared_store, workspaces, installation, digest_key, limits, .. } =
            options;
        let owner = redactor.content(&owner);
        let recorder = Recorder { store, redactor, clock, limits };
        let engine = Engine(Arc::new(Inner {
            recorder,
            owner,
            own_edges,
            shared_store,
            catalog,
            policy: PolicyNow::new(policy, &installation),
            workspaces,
            installation,
            digest_key,
            projects: OnceLock::new(),
            edges: Edges::default(),
            schedule: Schedule::default(),
            run_tokens: RunTokens::default(),
            awaited: Mutex::default(),
            stopping: AtomicBool::new(false),
            batches: AtomicU64::new(0),
        }));
        Ok(engine)
    }

    /// Goes on with what an earlier process left, and keeps deadlines and the audit from now on. To be called once, when the
    /// edges are attached.
    pub async fn go(&self) -> Result<Vec<JoinHandle<()>>, EngineError> {
        let recovered = self.recover(Looks::First).await?;
        if recovered > 0 {
            tracing::info!(runs = recovered, "went on with unfinished runs");
        }
        let (timers, audit, policy) = (self.clone(), self.clone(), self.clone());
        let others = self.clone();
        Ok(vec![
            tokio::spawn(async move { others.follow_others().await }),
            tokio::spawn(async move { timers.keep_timers().await }),
            tokio::spawn(async move { audit.deliver_audit().await }),
            tokio::spawn(async move { policy.follow_policy().await }),
        ])
    }

    /// Starts nothing new, and lets what runs be recovered by the next process.
    pub fn stop(&self) {
        self.0.stopping.store(true, Ordering::SeqCst);
    }

    /// One run.
    pub async fn run(&self, run: RunId) -> Result<Standing, EngineError> {
        if is_installation(run) {
            return Err(EngineError::NotFound { what: format!("run {run}") });
        }
        self.0.recorder.load(run).await
    }

    /// Runs, newest first, and whether there are more.
    pub async fn runs(
        &self,
        state: Option<&str>,
        before: Option<RunId>,
        limit: u32,
    ) -> Result<(Vec<Standing>, bool), EngineError> {
        let query = RunsQuery { status: state.map(str::to_owned), before, limit };
        let page = self.0.recorder.store.runs(query).await?;
        let own = page.runs.iter().filter(|row| !is_installation(row.run));
        Ok((own.map(Standing::of).collect::<Result<_, _>>()?, page.more))
    }

    /// Events of a run after a place, oldest first.
    pub async fn events(&self, run: RunId, after: u64, limit: u32) -> Result<Vec<LoggedEvent>, EngineError> {
        self.run(run).await?;
        Ok(self.0.recorder.store.read(run, after, limit).await?)
    }

    /// Follows a run from a place on.
    pub async fn follow(&self, run: RunId, after: u64) -> Result<Tail<dyn Store>, EngineError> {
        self.run(run).await?;
        Ok(Tail::open(Arc::clone(&self.0.recorder.store), run, after).await?)
    }

    /// Told whenever something was committed, here or by another hub on the same store; it does not say what.
    pub fn committed(&self) -> watch::Receiver<u64> {
        self.0.recorder.store.live().subscribe_feed()
    }

    /// The agents and backends.
    pub fn catalog(&self) -> &Catalog {
        &self.0.catalog
    }

    /// The allow-list.
    pub fn workspaces(&self) -> &Arc<dyn Workspaces> {
        &self.0.workspaces
    }

    /// Tokens, stored rules and the audit.
    pub fn installation(&self) -> &Installation {
        &self.0.installation
    }

    /// Lets the configurations that lie in workspaces count. To be called once, before anything runs.
    pub fn set_projects(&self, projects: Arc<dyn Projects>) {
        let _ = self.0.projects.set(projects);
    }

    pub(crate) fn projects(&self) -> Option<&Arc<dyn Projects>> {
        self.0.projects.get()
    }

    /// Who holds a run's own token.
    pub fn run_token_holder(&self, token: &str) -> Option<Arc<Actor>> {
        self.0.run_tokens.holder(token)
    }

    /// What it is doing.
    pub fn figures(&self) -> Figures {
        let (active, waiting) = self.0.schedule.counts();
        Figures {
            runs_active: active as u64,
            runs_waiting: waiting as u64,
            batches_recorded: self.0.batches.load(Ordering::Relaxed),
        }
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.0.recorder.clock.now()
    }

    pub(crate) fn recorder(&self) -> &Recorder {
        &self.0.recorder
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.recorder.limits
    }

    pub(crate) fn owner(&self) -> Safe<String> {
        self.0.owner.clone()
    }

    pub(crate) fn own_edges(&self) -> &BTreeSet<String> {
        &self.0.own_edges
    }

    pub(crate) fn schedule(&self) -> &Schedule {
        &self.0.schedule
    }

    pub(crate) fn edges_known(&self) -> &Edges {
        &self.0.edges
    }

    pub(crate) fn policy_now(&self) -> &PolicyNow {
        &self.0.policy
    }

    pub(crate) fn digest_key(&self) -> &[u8; 32] {
        &self.0.digest_key
    }

    pub(crate) fn awaited(&self) -> MutexGuard<'_, HashSet<ApprovalId>> {
        self.0.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn run_tokens(&self) -> &RunTokens {
        &self.0.run_tokens
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.0.stopping.load(Ordering::SeqCst)
    }

    pub(crate) fn count_batch(&self) {
        self.0.batches.fetch_add(1, Ordering::Relaxed);
    }

    /// Fires timers as they become due.
    async fn keep_timers(&self) {
        let mut refused = Refused::default();
        loop {
            if let Err(error) = self.fire_due(&mut refused).await {
                tracing::error!(%error, "timers cannot be looked at");
            }
            let pause = match self.0.recorder.store.next_timer().await {
                // What is due was refused: that it still is says nothing about what comes next.
                Ok(Some(_)) if !refused.is_empty() => TIMER_PAUSE_MAX,
                Ok(Some(due)) => Duration::from_millis(due.ms_since(self.now())).min(TIMER_PAUSE_MAX),
                _ => TIMER_PAUSE_MAX,
            };
            tokio::time::sleep(pause.max(Duration::from_millis(10))).await;
        }
    }

    async fn fire_due(&self, refused: &mut Refused) -> Result<(), EngineError> {
        let due = self.0.recorder.store.due_timers(TIMERS_AT_ONCE + refused.len()).await?;
        refused.keep_only(&due);
        let now = Instant::now();
        for timer in due.iter().filter(|timer| refused.may_try(timer, now)).collect::<Vec<_>>() {
            if self.is_of_another_hub(timer).await? {
                refused.again(timer, now);
                continue;
            }
            let name = timer.name.clone();
            let engine = self.clone();
            // Whoever waits for a place uses none of its time.
            let since = self.schedule().waits_since(timer.run).filter(|_| timers::is_of_time(&name));
            let decide = move |run: &Run, now| {
                let waited = since.and_then(|since| {
                    let info = engine.catalog().backend(&run.created.backend_profile).ok()?.1;
                    queued(run, info, since, now)
                });
                let facts = match waited {
                    Some(waited) => vec![waited],
                    None => timers::fire(run, &name, now, engine.limits(), engine.catalog())?,
                };
                Ok(Decided { facts, result: None })
            };
            match self.0.recorder.head(timer.run, decide).await {
                Ok(standing) => {
                    refused.forget(timer);
                    if since.is_some() {
                        self.schedule().waits_from(timer.run, standing.updated_at);
                    }
                    self.changed(&standing);
                }
                Err(error) => {
                    tracing::warn!(run = %timer.run, timer = timer.name, %error, "a timer did nothing");
                    refused.again(timer, now);
                }
            }
        }
        Ok(())
    }

    /// Whether a run's time is another hub's to end: only that one knows whether the run waits for a place just now, which is none
    /// of its time. One that does not look after it for as long as a lease lasts is not there.
    async fn is_of_another_hub(&self, timer: &Timer) -> Result<bool, EngineError> {
        let late = self.now().ms_since(timer.due);
        if !self.0.shared_store || !timers::is_of_time(&timer.name) || late > self.limits().lease_ms {
            return Ok(false);
        }
        let planned = self.run(timer.run).await?.run.planned;
        Ok(planned.is_some_and(|plan| !self.own_edges().contains(&plan.edge_id)))
    }

    /// Looks after runs that another hub has changed. A run with a driver hears of it by itself; one that was parked has none.
    async fn follow_others(&self) {
        if !self.0.shared_store {
            return;
        }
        loop {
            tokio::time::sleep(OTHERS_PAUSE).await;
            if let Err(error) = self.recover(Looks::Again).await {
                tracing::error!(%error, "runs that others changed cannot be looked at");
            }
        }
    }
}
