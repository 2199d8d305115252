//! What confines the processes of a run: bubblewrap, where it works.
//!
//! ```text
//! sandbox.rs              what works here (found once, when the edge starts), and what is in force for a run
//! sandbox/bubblewrap.rs   bounds → bubblewrap's argument vector; pure
//! sandbox/system.rs       what every sandbox shows of this machine, and what it hides
//! sandbox/program.rs      the program that is started in it
//! sandbox/step.rs         one program in a sandbox, from its start to its end
//! ```
//!
//! A confined process has its own user, process, IPC, host name and (where the network is denied) network namespaces, no
//! capability and no way to a new one, a private `/tmp`, and sees: the system, read-only; its program; toolchains of the person's
//! home, read-only; its run's home, writable; its checkout, writable where the policy says so. Nothing else is there: not the
//! data directory, not the person's home, not the workspace, not another run. It dies with its supervisor, which stays outside.
//! An agent that brings bubblewrap itself can use it inside. Where the network is denied and the agent calls its provider through
//! the edge's gateway, that gateway is all that can be reached: by the same address as outside, through a forwarder in the
//! sandbox ([`custody`](crate::custody)).
//!
//! It decides nothing about what is asked or allowed, filters no system calls, and limits neither memory nor processor time. Where
//! the network is not denied, every host is in reach, this machine's own ports among them: what may be asked is the gate's matter.

mod bubblewrap;
mod program;
mod step;
mod system;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use runyard_backend::Launch;
use runyard_domain::{ExecutionPolicy, Network, Sandbox};
use tokio::process::Command;
use tokio::time::timeout;

pub(crate) use self::bubblewrap::Wrapped;
use self::bubblewrap::arguments;
pub use self::step::{OUTPUT_BYTES_MAX, Step, run_step};
pub use self::system::System;
use crate::custody::forwarder_words;

/// The program's name.
const BUBBLEWRAP: &str = "bwrap";
/// How long the one try may take.
const TRY_MAX: Duration = Duration::from_secs(10);
/// How much of what bubblewrap says is repeated, in characters.
const SAID_CHARS_MAX: usize = 200;

/// The places of one run, as far as a sandbox cares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The run's checkout.
    pub checkout: PathBuf,
    /// Directories that are the run's own, and always writable.
    pub homes: Vec<PathBuf>,
    /// What else it may read, such as objects that the checkout borrows.
    pub readable: Vec<PathBuf>,
    /// What it must not see, also where it lies inside something that it sees: the person's workspace.
    pub hidden: Vec<PathBuf>,
}

/// What a backend's processes cannot do without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing of its own.
    Nothing,
    /// A provider somewhere in the network.
    Network,
    /// The edge's gateway to a provider, and nothing else in the network.
    Gateway {
        /// Where the gateway also listens for this run. It must be there before a process is started.
        socket: PathBuf,
        /// By which port of the loopback the processes call it, whether their network is cut or not.
        port: u16,
    },
}

/// Whether a sandbox has the machine's network.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Net {
    /// None but a loopback of its own.
    Cut,
    /// The same, with a forwarder to the gateway's socket behind one of its ports.
    Gateway { socket: PathBuf, port: u16 },
    /// The machine's.
    Shared,
}

/// Why none bounds a run that is an action.
pub(crate) const OF_ACTIONS: &str = "an action does what it was declared to do";

/// What holds for the processes of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bounds {
    writable: bool,
    net: Net,
    places: Places,
}

/// How a run's processes are started.
#[derive(Clone, Debug)]
pub enum Confinement {
    /// As any other process of this user.
    None,
    /// Within bounds.
    Within(Arc<Bounded>),
}

/// Bounds with what enforces them.
#[derive(Debug)]
pub struct Bounded {
    bubblewrap: PathBuf,
    system: Arc<System>,
    bounds: Bounds,
}

impl Confinement {
    /// How a launch becomes one within the bounds. The program is looked for here, as the system would.
    pub(crate) fn wrap(&self, launch: Launch) -> io::Result<Wrapped> {
        let Confinement::Within(bounded) = self else { return Ok(Wrapped::plain(launch)) };
        let Bounded { bubblewrap, system, bounds } = &**bounded;
        let system = system.as_it_is_now();
        let program = program::find(&launch)?;
        let shown = program::shown(&program, &system, &bounds.places.hidden);
        let mut wrapper = vec![bubblewrap.clone().into_os_string()];
        wrapper.extend(arguments(bounds, &shown, &system, &launch.directory));
        let mut gateway = None;
        if let Net::Gateway { socket, port } = &bounds.net {
            wrapper.extend(forwarder_words(*port));
            gateway = Some(socket.clone());
        }
        let mut launch = Launch { program, ..launch };
        for (name, value) in system.variables() {
            launch.environment.entry(name.to_owned()).or_insert(value);
        }
        Ok(Wrapped { wrapper, gateway, launch })
    }
}

/// Why nothing confines processes on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absent {
    /// There is no bubblewrap in the `PATH`.
    NotInstalled,
    /// It is there and does not work.
    Fails {
        /// What it said.
        said: String,
    },
}

impl Absent {
    /// What to do about it.
    pub fn next(&self) -> &'static str {
        match self {
            Absent::NotInstalled => {
                "Install bubblewrap (apt install bubblewrap, dnf install bubblewrap) and start the hub again."
            }
            Absent::Fails { .. } => {
                "Let unprivileged processes make user namespaces (kernel.unprivileged_userns_clone=1, \
                 user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns=0 or an AppArmor profile for bwrap; in a \
                 container its seccomp profile), then start the hub again."
            }
        }
    }
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Absent::NotInstalled => f.write_str("bubblewrap is not installed (apt install bubblewrap)"),
            Absent::Fails { said } => write!(f, "bubblewrap does not work here ({said})"),
        }
    }
}

/// What confines processes on this machine.
#[derive(Clone, Debug)]
pub struct Sandboxes {
    found: Result<(PathBuf, Arc<System>), Absent>,
}

/// What is in force for a run.
#[derive(Clone, Debug)]
pub struct InForce {
    /// How its processes are started.
    pub confinement: Confinement,
    /// That in words.
    pub found: String,
    /// What cannot be relied on.
    pub degraded: Vec<String>,
}

impl Sandboxes {
    /// Looks for bubblewrap in these directories and tries it once, with the network cut: what works then works always.
    pub async fn look(search_path: &str, system: System) -> Self {
        let Some(bubblewrap) = program::on_path(BUBBLEWRAP, search_path) else {
            return Sandboxes::absent(Absent::NotInstalled);
        };
        match try_once(&bubblewrap, &system).await {
            Ok(()) => Sandboxes::by(bubblewrap, system),
            Err(said) => Sandboxes::absent(Absent::Fails { said }),
        }
    }

    /// By this bubblewrap, which is known to work.
    pub fn by(bubblewrap: PathBuf, system: System) -> Self {
        Sandboxes { found: Ok((bubblewrap, Arc::new(system))) }
    }

    /// Nothing confines anything here.
    pub fn absent(why: Absent) -> Self {
        Sandboxes { found: Err(why) }
    }

    /// Why there is none, where there is none.
    pub fn why_absent(&self) -> Option<&Absent> {
        self.found.as_ref().err()
    }

    /// What is in force for a run.
    pub fn for_run(&self, policy: &ExecutionPolicy, needs: Needs, places: Places) -> InForce {
        let writable = match policy.sandbox {
            Sandbox::None => return InForce::not(&"the run's execution policy asks for none"),
            Sandbox::ReadOnly => false,
            Sandbox::WorkspaceWrite => true,
        };
        let (bubblewrap, system) = match &self.found {
            Ok(found) => found.clone(),
            Err(why) => return InForce::not(why),
        };
        let (net, network, degraded) = match (policy.network, needs) {
            (Network::Deny, Needs::Nothing) => (Net::Cut, "no network", None),
            (Network::Deny, Needs::Network) => (Net::Shared, "the network is not cut", Some(NOT_CUT)),
            (Network::Deny, Needs::Gateway { socket, port }) => {
                (Net::Gateway { socket, port }, "no network but the gateway", None)
            }
            (Network::Ask | Network::Allow, _) => (Net::Shared, "the machine's network", None),
        };
        let files = if writable { "writes only in its checkout and home" } else { "writes only in its home" };
        let bounds = Bounds { writable, net, places };
        InForce {
            confinement: Confinement::Within(Arc::new(Bounded { bubblewrap, system, bounds })),
            found: format!("bubblewrap: {files}, {network}"),
            degraded: degraded.map(str::to_owned).into_iter().collect(),
        }
    }
}

impl InForce {
    /// None, and why.
    pub(crate) fn not(why: &dyn fmt::Display) -> Self {
        InForce {
            confinement: Confinement::None,
            found: format!("none in force: {why}"),
            degraded: vec![format!(
                "no sandbox is in force: {why}; what a command does that was allowed is bounded by your own rights alone"
            )],
        }
    }

    /// Whether it denies what the gate would ask about: then also a backend may run that cannot ask. What is done in the run's own
    /// checkout is a proposal, unless the gate is to ask for every write.
    pub(crate) fn denies_what_is_asked(&self, preset: &str) -> bool {
        match &self.confinement {
            Confinement::None => false,
            Confinement::Within(within) => {
                within.bounds.net != Net::Shared && (preset == "default" || !within.bounds.writable)
            }
        }
    }
}

/// What is said of a run whose network is to be denied and cannot be.
const NOT_CUT: &str = "the network is denied and not cut: without the gateway the agent must reach its provider itself, so what it \
                       starts can reach the network too, and only the gate keeps commands from it";

impl fmt::Display for Sandboxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.found {
            Ok(_) => f.write_str("bubblewrap: a process sees its checkout, its run's home and the system"),
            Err(why) => write!(f, "none in force: {why}"),
        }
    }
}

/// Starts the most that is ever asked of it: everything read-only, and no network. Gives what it said if that fails.
async fn try_once(bubblewrap: &Path, system: &System) -> Result<(), String> {
    let directory = Path::new("/");
    let places = Places {
        checkout: bubblewrap.parent().unwrap_or(directory).to_owned(),
        homes: Vec::new(),
        readable: Vec::new(),
        hidden: Vec::new(),
    };
    let bounds = Bounds { writable: false, net: Net::Cut, places };
    let system = &system.as_it_is_now();
    let shown = program::shown(bubblewrap, system, &[]);
    let mut command = Command::new(bubblewrap);
    command.args(arguments(&bounds, &shown, system, directory)).arg(bubblewrap).arg("--version");
    command.env_clear().current_dir(directory).kill_on_drop(true);
    let output = command.stdin(Stdio::null()).output();
    match timeout(TRY_MAX, output).await {
        Err(_) => Err(format!("no answer within {} s", TRY_MAX.as_secs())),
        Ok(Err(error)) => Err(error.to_string()),
        Ok(Ok(output)) if output.status.success() => Ok(()),
        Ok(Ok(output)) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.trim().lines().next_back().unwrap_or_default();
            let last = last.strip_prefix("bwrap: ").unwrap_or(last);
            Err(match last.chars().take(SAID_CHARS_MAX).collect::<String>() {
                said if said.is_empty() => output.status.to_string(),
                said => said,
            })
        }
    }
}

#[cfg(test)]
mod tests;
