//! What an edge checks and prepares before a run's backend starts, in the order in which the run says so.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use runyard_backend::link::{OpenRun, Report, Stage};
use runyard_backend::{Access, Backend, JournalError, Launch, Probe, Runs, failpoint};
use runyard_checkout::{How, Made};
use runyard_domain::gate::Preset;
use runyard_domain::run::{Failure, FailureKind};
use runyard_domain::{Code, Sandbox};
use runyard_redact::{Kind, Known, Redactor};
use tokio::sync::watch;

use crate::blocking::blocking;
use crate::edge::Shared;
use crate::gateway::Lease;
use crate::granted::Granted;
use crate::outbox::Outbox;
use crate::owner::Owner;
use crate::places::Places;
use crate::private;
use crate::sandbox::{self, Confinement, InForce, Needs, OF_ACTIONS};
use crate::session::environment;
use crate::session_home::SessionHome;
use crate::setup::Setup;

/// What is checked, in order; setting up only where something is to be set up.
const CHECKS: [&str; 8] =
    ["processes", "workspace", "backend", "policy", "credentials", "checkout", "sandbox", "setup"];

/// What is checked for a run, in order.
pub(crate) fn checks(open: &OpenRun) -> Vec<String> {
    let wanted = |check: &&str| *check != "setup" || !open.preparation.setup.is_empty();
    CHECKS.iter().copied().filter(wanted).map(str::to_owned).collect()
}

/// Why a backend that cannot ask does not run here.
const CANNOT_ASK: &str = "the backend cannot ask people, so it runs only in a sandbox that denies what they would be asked about: \
                          install bubblewrap, and give its agent network = \"deny\" (and sandbox = \"read-only\" under the strict preset)";
/// What is said of a run whose backend reports no tool calls.
const UNTOLD: &str =
    "the backend does not tell what steps it takes: only what it says and changes is on record";

/// Why a run of a session that another one uses does not start.
const IN_USE: &str = "another run of the session is at work; give that one a further turn, wait for its end, or start a run in a \
                      session of its own";

/// A run that is ready to start.
pub(crate) struct Prepared {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) redactor: Redactor,
    /// What was found, by check.
    pub(crate) found: BTreeMap<String, String>,
    /// What cannot be relied on.
    pub(crate) degraded: Vec<String>,
    /// How its processes are started.
    pub(crate) confinement: Confinement,
    /// How its agent reaches its provider.
    pub(crate) access: Access,
    /// The way through the gateway, as long as the session lasts.
    pub(crate) lease: Option<Lease>,
    /// That secrets were made available, to be recorded.
    pub(crate) projected: Option<Report>,
    /// What the session's runs share.
    pub(crate) session_home: SessionHome,
    /// Keeps its directory from being collected.
    pub(crate) _held: File,
}

/// Why a run does not start.
pub(crate) enum Unprepared {
    /// It cannot.
    Failed(Failure),
    /// Nothing more is recorded.
    Journal(JournalError),
}

impl From<Failure> for Unprepared {
    fn from(failure: Failure) -> Self {
        Unprepared::Failed(failure)
    }
}

impl From<JournalError> for Unprepared {
    fn from(error: JournalError) -> Self {
        Unprepared::Journal(error)
    }
}

/// Checks everything, and makes the checkout of a run that has not started yet.
pub(crate) async fn prepare(
    edge: &Shared,
    open: &OpenRun,
    places: &Places,
    outbox: &mut Outbox,
    living: &Arc<watch::Sender<()>>,
) -> Result<Prepared, Unprepared> {
    let mut found = BTreeMap::new();
    let mut note = |check: &str, what: String| found.insert(check.to_owned(), what);

    places.make().map_err(|error| own_fault("the run's directory cannot be made", &error))?;
    let held = places.held().await.map_err(|error| own_fault("the run's directory is in use", &error))?;
    let settled = edge.supervision.settled(&places.lock()).await;
    settled.map_err(|error| own_fault("processes of an earlier session are still there", &error))?;
    note("processes", "none of an earlier session is left".to_owned());

    let root = allowed_root(edge, open).await?;
    note("workspace", format!("{} is on the allow-list", open.workspace.label));
    let kind = &open.backend_profile.backend_kind;
    let backend = edge.backends.get(kind).cloned().ok_or_else(|| {
        Failure::of_backend(
            FailureKind::BackendSpawnFailed,
            format!("this edge has no backend of kind {kind}"),
        )
    })?;
    let shared = Places::of_session(&edge.home, open.session, &open.backend_profile.profile);
    let session_home = SessionHome::enter(&shared, backend.info().private_files).await;
    let session_home = session_home.map_err(|error| match error.kind() {
        ErrorKind::ResourceBusy => Failure::new(Code::Conflict, IN_USE),
        _ => own_fault("the session's directory cannot be made", &error),
    })?;
    // What the secrets hold is known before anything is said, also that they are missing.
    let granted = Granted::to(edge, open, places, &backend.info()).await;
    let known = granted.as_ref().map(Granted::known).unwrap_or_default();
    let redactor = redactor(edge, open, places, &root, known)?;
    let safe = |text: &str| redactor.text(Kind::Text, text).into_inner();

    let checked = backend.check(&open.backend_profile, &probe(edge, open, places, &root)).await;
    let checked = checked.map_err(|error| Failure::of_backend(error.failure_kind, safe(&error.message)))?;
    note("backend", safe(&checked));

    let policy = edge.policies.current();
    let policy =
        policy.ok_or_else(|| Failure::new(Code::PermissionDenied, "the edge holds no policy to judge by"))?;
    let preset = match policy.preset_of(&open.agent_id, &open.workspace.label) {
        Preset::Strict => Preset::Strict.as_str(),
        Preset::Default => &open.approval_policy.preset,
    };
    note("policy", format!("version {}, preset {preset}", policy.version));
    let Granted { access, lease, projected, said, degraded: in_reach, .. } = granted?;
    note("credentials", safe(&said));

    let needs = match &lease {
        Some(lease) => Needs::Gateway { socket: places.gateway(), port: lease.port() },
        None if backend.info().needs_network => Needs::Network,
        None => Needs::Nothing,
    };
    let mut within = sandbox::Places {
        checkout: places.checkout(),
        homes: vec![places.home(), shared],
        readable: Vec::new(),
        hidden: vec![root.clone()],
    };
    // What it may read is known when there is a checkout; nobody is asked about that.
    let bounds = edge.sandboxes.for_run(&open.execution_policy, needs.clone(), within.clone());
    let unasked = (!backend.info().asks).then(|| unasked(&bounds, preset)).transpose()?;
    let Checkout { found: in_checkout, borrowed, mut degraded } =
        checkout(edge, &*backend, open, &root, places, living).await?;
    note("checkout", safe(&in_checkout));
    degraded.extend(unasked);
    degraded.extend((!backend.info().tells_steps).then(|| UNTOLD.to_owned()));
    degraded.extend(in_reach.map(str::to_owned));

    within.readable = borrowed;
    let in_force = match backend.info().runs {
        Runs::Agent => edge.sandboxes.for_run(&open.execution_policy, needs.clone(), within.clone()),
        Runs::Action => InForce::not(&OF_ACTIONS),
    };
    let InForce { confinement, found: in_force, degraded: unconfined } = in_force;
    note("sandbox", safe(&in_force));
    degraded.extend(unconfined);
    if backend.info().checkout && open.stage != Stage::Running && !open.preparation.setup.is_empty() {
        let setup = setup(edge, open, places, within, redactor.clone());
        note("setup", safe(&setup.run(places, outbox, living).await?));
    }
    let degraded = degraded.iter().map(|reason| safe(reason)).collect();
    Ok(Prepared {
        backend,
        redactor,
        found,
        degraded,
        confinement,
        access,
        lease,
        projected,
        session_home,
        _held: held,
    })
}

/// How the run's program is asked what it is: in the run's sandbox, as far as there is one before there is a checkout, and under its
/// custody. It calls no hub, so it has no token.
fn probe(edge: &Shared, open: &OpenRun, places: &Places, root: &Path) -> Probe {
    let within = sandbox::Places {
        checkout: places.home(),
        homes: vec![places.home()],
        readable: Vec::new(),
        hidden: vec![root.to_owned()],
    };
    let InForce { confinement, .. } = edge.sandboxes.for_run(&open.execution_policy, Needs::Nothing, within);
    Probe {
        directory: places.home(),
        environment: environment_without_hub(edge, open, places),
        processes: edge.supervision.under(&places.lock(), confinement),
    }
}

/// What is in the environment of what is started before the agent is.
fn environment_without_hub(edge: &Shared, open: &OpenRun, places: &Places) -> BTreeMap<String, String> {
    let mut environment = environment(edge, open, places);
    environment.retain(|name, _| !matches!(name.as_str(), "RUNYARD_URL" | "RUNYARD_RUN_TOKEN"));
    environment
}

/// Whether a backend that cannot ask may run, under the stricter of the run's preset and the policy's, as the gate judges; and what
/// is said of it then.
fn unasked(bounds: &InForce, preset: &str) -> Result<String, Failure> {
    match bounds.denies_what_is_asked(preset) {
        true => Ok("the backend cannot ask: what it does is bounded by the sandbox, and approved by nobody"
            .to_owned()),
        false => Err(Failure::new(Code::RuntimeUnavailable, CANNOT_ASK)),
    }
}

/// What sets up a checkout: in the run's sandbox, but that it may write there, which is what it is for, and that it needs no
/// provider. It calls no hub, so it has no token.
fn setup<'a>(
    edge: &Shared,
    open: &'a OpenRun,
    places: &Places,
    within: sandbox::Places,
    redactor: Redactor,
) -> Setup<'a> {
    let mut policy = open.execution_policy.clone();
    if policy.sandbox == Sandbox::ReadOnly {
        policy.sandbox = Sandbox::WorkspaceWrite;
    }
    let InForce { confinement, .. } = edge.sandboxes.for_run(&policy, Needs::Nothing, within);
    let environment = environment_without_hub(edge, open, places);
    let launch =
        Launch { program: PathBuf::new(), arguments: Vec::new(), directory: places.checkout(), environment };
    let processes = edge.supervision.under(&places.lock(), confinement);
    Setup { steps: &open.preparation.setup, processes, launch, redactor }
}

/// The workspace's directory, which only its edge knows.
pub(crate) async fn allowed_root(edge: &Shared, open: &OpenRun) -> Result<PathBuf, Failure> {
    edge.workspaces.root(open.workspace.id).await.map_err(|error| {
        let message = format!("the workspace {} is not on this edge's allow-list", open.workspace.label);
        tracing::info!(run = %open.run, %error, "a run's workspace was refused");
        Failure::new(Code::WorkspaceOutsideAllowlist, message)
    })
}

/// A redactor that knows this run's token, secrets and places.
pub(crate) fn redactor(
    edge: &Shared,
    open: &OpenRun,
    places: &Places,
    root: &Path,
    secrets: Vec<Known>,
) -> Result<Redactor, Failure> {
    let known = [Known::named("RUNYARD_RUN_TOKEN", open.run_token.clone())];
    let built = (edge.redactors)()
        .known(known)
        .known(secrets)
        .workspace(places.checkout())
        .workspace(root)
        .private_path(places.directory(), "<run>")
        .private_path(&edge.home, "<edge>")
        .build();
    built.map_err(|error| {
        tracing::error!(run = %open.run, %error, "no redactor for a run");
        Failure::new(error.code(), "what the run says could not be redacted")
    })
}

/// A checkout that is there.
struct Checkout {
    /// What was found.
    found: String,
    /// Directories of objects that it borrows.
    borrowed: Vec<PathBuf>,
    /// What of it cannot be relied on.
    degraded: Vec<String>,
}

/// The run's checkout: made where it has not started yet, and left as it is where it has.
async fn checkout(
    edge: &Shared,
    backend: &dyn Backend,
    open: &OpenRun,
    root: &Path,
    places: &Places,
    living: &Arc<watch::Sender<()>>,
) -> Result<Checkout, Failure> {
    let plain =
        |found: &str| Checkout { found: found.to_owned(), borrowed: Vec::new(), degraded: Vec::new() };
    if !backend.info().checkout {
        private::make_directory(&places.checkout())
            .map_err(|error| own_fault("the run's directory cannot be made", &error))?;
        return Ok(plain("none: it works on no files"));
    }
    if open.stage != Stage::Running {
        edge.disk.make_room(&edge.workspaces, living).await?;
        let owner = Owner {
            run: open.run,
            workspace: open.workspace.id,
            edge: edge.id.clone(),
            made_at: edge.clock.now(),
            ended_at: None,
            bytes: None,
        };
        places
            .own(&owner)
            .map_err(|error| own_fault("whose a checkout is cannot be written down", &error))?;
        failpoint::reach("checkout.make");
        let made = make(root, places, &open.preparation.copy, living).await?;
        failpoint::reach("checkout.made");
        let (found, degraded) = (described(&made), made.degraded());
        return Ok(Checkout { found, borrowed: made.borrowed, degraded });
    }
    if !places.checkout().is_dir() {
        return Err(Failure::new(Code::OutcomeUnknown, "the run had started, and its checkout is gone"));
    }
    let borrowed = runyard_checkout::borrowed(&places.base());
    let borrowed = borrowed.map_err(|error| own_fault("what the checkout began as is gone", &error))?;
    Ok(Checkout { borrowed, ..plain("kept as it was") })
}

/// Makes the checkout of a run that has not started yet. It appears when it is whole.
async fn make(
    root: &Path,
    places: &Places,
    copy: &[String],
    living: &Arc<watch::Sender<()>>,
) -> Result<Made, Failure> {
    let (root, checkout, base) = (root.to_owned(), places.checkout(), places.base());
    let options = runyard_checkout::Options { copy: copy.to_vec(), ..Default::default() };
    let made =
        blocking(living, move |stop| runyard_checkout::make(&root, &checkout, &base, &options, stop)).await;
    match made {
        Ok(made) => made.map_err(|error| Failure::new(error.code(), error.to_string())),
        Err(error) => Err(own_fault("the checkout could not be made", &error)),
    }
}

fn described(made: &Made) -> String {
    let mut described = match &made.how {
        How::Clone { branch, .. } => {
            let branch = branch.as_deref().map(|branch| format!(" of {branch}")).unwrap_or_default();
            format!("a private clone{branch}, {} files, {} bytes", made.files, made.bytes)
        }
        How::Copy(_) => format!("a private copy of {} files, {} bytes", made.files, made.bytes),
    };
    let more = [
        (made.uncommitted, "changed and not committed"),
        (made.untracked, "untracked"),
        (made.special, "special files left out"),
        (made.submodules.count, "submodules not brought"),
        (made.left_out.count, "left out, since they hold secrets"),
    ];
    for (count, what) in more.into_iter().filter(|(count, _)| *count > 0) {
        described.push_str(&format!("; {count} {what}"));
    }
    described
}

/// A failure of the edge itself. The detail may hold private paths and goes to the edge's own log.
pub(crate) fn own_fault(message: &str, error: &(dyn std::error::Error + 'static)) -> Failure {
    tracing::error!(error, "{message}");
    Failure::new(Code::StorageIo, message)
}
