//! A bench for the edge's journal: one run on a hub whose store outlives it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use runyard_backend::Workspaces;
use runyard_backend::conformance::journal::{Durable, Given, JournalBench, Lever};
use runyard_domain::run::{Task, Who};
use runyard_domain::{Actor, ApprovalId, Event, RunId};
use runyard_edge::AllowList;
use runyard_engine::{Decision, NewCancel, NewRun, Resolve};
use runyard_redact::{Redactor, TagKey};
use runyard_store::{Acquired, ManualClock, MemoryStore, PAGE_MAX, Store};
use runyard_store_sqlite::{OpenOptions, SqliteStore};
use tokio::sync::{Mutex, mpsc};
use tokio::time::sleep;

use crate::hub::{AGENT, EDGE, Hub, Kept, LEASE_MS, SECRET};

/// So often is looked whether a session was parked, before more time goes by.
const LOOKS: usize = 200;
const PAUSE: Duration = Duration::from_millis(5);

/// Where a store lies.
enum Shelf {
    Memory(Arc<MemoryStore>),
    File { path: PathBuf, open: Arc<SqliteStore> },
}

impl Shelf {
    fn store(&self) -> Arc<dyn Store> {
        match self {
            Shelf::Memory(store) => store.clone(),
            Shelf::File { open, .. } => open.clone(),
        }
    }
}

pub(crate) struct HubBench {
    kept: Kept,
    label: String,
    world: Mutex<World>,
    opened: Mutex<mpsc::UnboundedReceiver<Given>>,
    _files: tempfile::TempDir,
}

struct World {
    shelf: Shelf,
    hub: Option<Hub>,
    run: Option<RunId>,
}

fn sqlite(path: &PathBuf, clock: &Arc<ManualClock>) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(OpenOptions::new(path, "bench").clock(clock.clone())).unwrap())
}

fn person() -> Actor {
    Actor::owner("ada")
}

impl HubBench {
    pub(crate) async fn in_memory() -> Self {
        HubBench::on(|_, clock| Shelf::Memory(Arc::new(MemoryStore::with_clock(clock.clone())))).await
    }

    pub(crate) async fn in_sqlite() -> Self {
        HubBench::on(|files, clock| {
            let path = files.join("store.db");
            Shelf::File { open: sqlite(&path, clock), path }
        })
        .await
    }

    async fn on(shelf: impl FnOnce(&std::path::Path, &Arc<ManualClock>) -> Shelf) -> Self {
        let files = tempfile::tempdir().unwrap();
        let root = files.path().canonicalize().unwrap();
        let (home, project) = (root.join("home"), root.join("project"));
        std::fs::create_dir(&project).unwrap();
        std::fs::write(project.join("notes.txt"), "seven").unwrap();
        let workspaces = AllowList::open(&home, EDGE, &[]).unwrap();
        let label = workspaces.add(project.to_str().unwrap(), None, &Who::runyard()).await.unwrap().label;
        let clock = Arc::new(ManualClock::at(1_700_000_000_000));
        let (sender, opened) = mpsc::unbounded_channel();
        let shelf = shelf(&root, &clock);
        let kept = Kept { home, workspaces, clock, opened: sender };
        let hub = Some(Hub::start(kept.clone(), shelf.store()).await);
        let world = Mutex::new(World { shelf, hub, run: None });
        HubBench { kept, label, world, opened: Mutex::new(opened), _files: files }
    }

    async fn make_run(&self) {
        let mut world = self.world.lock().await;
        if world.run.is_some() {
            return;
        }
        let new = NewRun {
            task: Task::Text { text: "tidy up".to_owned(), redacted: false },
            agent: AGENT.to_owned(),
            workspace: self.label.clone(),
            backend_profile: None,
            session: None,
            continues: None,
            execution_policy: None,
            key: None,
        };
        let made = world.hub().within(|engine| async move { engine.create_run(new, &person()).await }).await;
        world.run = Some(made.unwrap().standing.run.id);
    }

    async fn park(&self, world: &World) {
        let (store, run) = (world.shelf.store(), world.run());
        let before = parked(&*store, run).await;
        for look in 0.. {
            if look % LOOKS == 0 {
                world.hub().pass_time().await;
            }
            if parked(&*store, run).await > before {
                return;
            }
            sleep(PAUSE).await;
        }
    }
}

impl World {
    fn hub(&self) -> &Hub {
        self.hub.as_ref().expect("there is a hub")
    }

    fn run(&self) -> RunId {
        self.run.expect("there is a run")
    }

    /// A rival waits until the lease has run out, and has it then.
    async fn fence(&self, clock: &ManualClock) {
        clock.advance_ms(i64::try_from(LEASE_MS).unwrap() + 1);
        let rival = Redactor::builder(TagKey::from_bytes([7; 32])).build().unwrap().content("rival");
        let term = Duration::from_millis(LEASE_MS);
        let taken = self.shelf.store().acquire(self.run(), rival, term).await.unwrap();
        assert!(matches!(taken, Acquired::Granted(_)), "{taken:?}");
    }

    async fn answer(&self, approval: ApprovalId, approved: bool) {
        let decision = if approved { Decision::Approve } else { Decision::Reject };
        let answered = self.hub().within(|engine| async move {
            let digest = engine.approval(approval).await?.asked.digest;
            let answer = Resolve::new(decision, digest);
            engine.resolve(approval, answer, &person()).await
        });
        answered.await.unwrap();
    }

    /// The file is opened anew, as the next process would.
    async fn reopen(&mut self, kept: &Kept) {
        assert!(self.hub.is_none(), "it was killed before");
        if let Shelf::File { path, open } = &mut self.shelf {
            open.close().await;
            *open = sqlite(path, &kept.clock);
        }
        self.hub = Some(Hub::start(kept.clone(), self.shelf.store()).await);
    }
}

#[async_trait]
impl JournalBench for HubBench {
    async fn session(&self) -> Given {
        self.make_run().await;
        self.opened.lock().await.recv().await.expect("the bench lives")
    }

    async fn durable(&self) -> Durable {
        let world = self.world.lock().await;
        let (store, run) = (world.shelf.store(), world.run());
        let events = events(&*store, run).await;
        let row = store.run(run).await.unwrap().expect("the run is there");
        let mut rows = String::from_utf8_lossy(&row.state).into_owned();
        for approval in store.open_approvals(Some(run), None, PAGE_MAX).await.unwrap() {
            rows.push_str(&String::from_utf8_lossy(&approval.request));
        }
        Durable { events, rows }
    }

    async fn pull(&self, lever: Lever) {
        let mut world = self.world.lock().await;
        match lever {
            Lever::HoldWords => world.hub().gates.hold_words(),
            Lever::HoldAnswers => world.hub().gates.hold_answers(),
            Lever::Connect => world.hub().gates.open(),
            Lever::Fence => world.fence(&self.kept.clock).await,
            Lever::Cancel => {
                let run = world.run();
                let cancel = NewCancel { reason: "no longer wanted".into(), key: None };
                let cancelled =
                    world.hub().within(|engine| async move { engine.cancel(run, cancel, &person()).await });
                cancelled.await.unwrap();
            }
            Lever::Park => self.park(&world).await,
            Lever::Answer { approval, approved } => world.answer(approval, approved).await,
            Lever::Kill => world.hub.take().expect("there is a hub").kill().await,
            Lever::Reopen => world.reopen(&self.kept).await,
        }
    }

    fn secrets(&self) -> Vec<String> {
        // One that the edge knows, and one that is known by its form.
        vec![SECRET.to_owned(), format!("ghp_{}", "a1B2c3D4e5F6".repeat(3))]
    }
}

async fn events(store: &dyn Store, run: RunId) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let page = store.read(run, events.len() as u64, PAGE_MAX).await.unwrap();
        if page.is_empty() {
            return events;
        }
        events.extend(page.iter().map(|event| event.envelope().unwrap()));
    }
}

/// How often a session of the run was parked.
async fn parked(store: &dyn Store, run: RunId) -> usize {
    let events = events(store, run).await;
    events.iter().filter(|event| event.kind == "runtime.status" && event.payload["phase"] == "parked").count()
}
