//! Looking whether a backend profile could be used here: its program, its secrets, what confines it, and whether it answers.
//!
//! The program is asked for its version and started once, in the sandbox of a run and in a directory that is gone afterwards, without
//! any secret. Of secrets
//! it is told whether a run could use them, and no value. No provider is called.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use runyard_backend::link::CheckLine;
use runyard_backend::{Backend, BackendError, BackendInfo, HandshakeSpec, Probe};
use runyard_checkout::discard;
use runyard_domain::{BackendProfile, ExecutionPolicy};
use runyard_redact::{Kind, Redactor};
use tokio::time::timeout;

use crate::edge::Shared;
use crate::private;
use crate::projection::check_projection;
use crate::sandbox::{self, InForce, Needs};

/// How many profiles are looked at at a time.
pub(crate) const CHECKS_MAX: usize = 4;
/// How long a program may take to introduce itself. An adapter gives up before.
const HANDSHAKE_MAX: Duration = Duration::from_secs(60);
/// How much is said about one thing, in characters.
const FOUND_CHARS_MAX: usize = 2_000;

/// What is needed for a run, in order, and whether it is there.
pub(crate) async fn check(edge: &Shared, profile: &BackendProfile) -> Vec<CheckLine> {
    let Some(backend) = edge.backends.get(&profile.backend_kind) else {
        let found = format!("this edge has no backend of kind {}", profile.backend_kind);
        let kinds: Vec<&str> = edge.backends.keys().map(String::as_str).collect();
        return vec![missing("program", found, format!("Choose one of these kinds: {}.", kinds.join(", ")))];
    };
    let place = match Place::make(&edge.home) {
        Ok(place) => place,
        Err(error) => {
            tracing::error!(%error, "a backend profile cannot be looked at");
            let next = "Make the data directory writable, with room on its disk.";
            return vec![missing("program", "there is no place to try it in".to_owned(), next.to_owned())];
        }
    };
    let redactor = (edge.redactors)()
        .private_path(&place.directory, "<check>")
        .private_path(&edge.home, "<edge>")
        .build();
    let Ok(redactor) = redactor else {
        let next = "Look into the edge's log.".to_owned();
        return vec![missing("program", "what it says could not be redacted".to_owned(), next)];
    };
    let info = backend.info();
    let in_force = in_force(edge, &info, &place);
    let program = program(edge, &**backend, profile, &in_force, &place).await;
    let starts = info.command.is_some();
    let handshake = match (starts, program.ok) {
        (false, _) => None,
        (true, false) => {
            let next = "Get the program first.".to_owned();
            Some(missing("handshake", "not tried, since the program cannot be started".to_owned(), next))
        }
        (true, true) => Some(handshake(edge, &**backend, profile, &in_force, &place).await),
    };
    let sandbox = confined(edge, in_force);
    let lines = [Some(program), Some(secrets(edge, profile, info.clone()).await), Some(sandbox), handshake];
    lines.into_iter().flatten().map(|line| safe(&redactor, line)).collect()
}

/// Whether its program is there, and which version.
async fn program(
    edge: &Shared,
    backend: &dyn Backend,
    profile: &BackendProfile,
    in_force: &InForce,
    place: &Place,
) -> CheckLine {
    let check = if backend.info().command.is_some() { "program" } else { "backend" };
    let probe = Probe {
        directory: place.checkout(),
        environment: environment(edge, place),
        processes: edge.supervision.under(&place.lock(), in_force.confinement.clone()),
    };
    match backend.check(profile, &probe).await {
        Ok(found) => there(check, found),
        Err(error) => {
            let recovery = error.failure_kind.code().row().recovery;
            let next = match backend.install().filter(|_| error.message.contains("there is no program")) {
                Some(install) => format!(
                    "Get it with: {install} — or name it in \"command\" of [backend.{}].",
                    profile.profile
                ),
                None => recovery.to_owned(),
            };
            missing(check, error.message, next)
        }
    }
}

/// Whether a run would be given what it needs: there, readable, and in a form that can be used.
async fn secrets(edge: &Shared, profile: &BackendProfile, info: BackendInfo) -> CheckLine {
    let check = "secrets";
    if profile.required_secret_keys.is_empty() {
        return there(check, "it needs none".to_owned());
    }
    let next = format!("Run: runyard secrets set {} {}", profile.profile, profile.required_secret_keys[0]);
    let (secrets, profile) = (edge.secrets.clone(), profile.clone());
    // What lies on a file system elsewhere may take its time.
    let found = tokio::task::spawn_blocking(move || check_projection(&secrets, &profile, &info)).await;
    match found {
        Ok(Ok(found)) => there(check, found),
        Ok(Err(failure)) => missing(check, failure.message, next),
        Err(_) => {
            missing(check, "they could not be looked at".to_owned(), "Look into the edge's log.".to_owned())
        }
    }
}

/// What would be in force for a run that says nothing else.
fn in_force(edge: &Shared, info: &BackendInfo, place: &Place) -> InForce {
    let needs = if info.needs_network { Needs::Network } else { Needs::Nothing };
    let places = sandbox::Places {
        checkout: place.checkout(),
        homes: vec![place.home(), place.session()],
        readable: Vec::new(),
        hidden: Vec::new(),
    };
    edge.sandboxes.for_run(&ExecutionPolicy::default(), needs, places)
}

/// What confines a run. Where nothing does, runs are degraded, and not refused.
fn confined(edge: &Shared, in_force: InForce) -> CheckLine {
    match edge.sandboxes.why_absent() {
        None => there("sandbox", in_force.found),
        Some(why) => {
            let found = format!("none is in force, and runs are degraded for it: {why}");
            CheckLine { next: Some(why.next().to_owned()), ..there("sandbox", found) }
        }
    }
}

/// Whether it answers.
async fn handshake(
    edge: &Shared,
    backend: &dyn Backend,
    profile: &BackendProfile,
    in_force: &InForce,
    place: &Place,
) -> CheckLine {
    let lock = place.lock();
    let spec = HandshakeSpec {
        profile: profile.clone(),
        directory: place.checkout(),
        home: place.session(),
        environment: environment(edge, place),
        processes: edge.supervision.under(&lock, in_force.confinement.clone()),
    };
    let shaken = timeout(HANDSHAKE_MAX, backend.handshake(spec)).await;
    if let Err(error) = edge.supervision.settled(&lock).await {
        tracing::error!(%error, "processes of a check are still there");
    }
    match shaken {
        Ok(Ok(found)) => there("handshake", found),
        Ok(Err(BackendError { failure_kind, message })) => {
            missing("handshake", message, failure_kind.code().row().recovery.to_owned())
        }
        Err(_) => {
            let found = format!("no answer within {} seconds", HANDSHAKE_MAX.as_secs());
            missing("handshake", found, "Start the program by hand and look what it waits for.".to_owned())
        }
    }
}

fn environment(edge: &Shared, place: &Place) -> BTreeMap<String, String> {
    let path = |path: PathBuf| path.to_string_lossy().into_owned();
    [
        ("PATH", edge.search_path.clone()),
        ("HOME", path(place.home())),
        ("TMPDIR", path(place.temporary())),
        ("LANG", "C.UTF-8".to_owned()),
        ("TERM", "dumb".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

fn there(check: &str, found: String) -> CheckLine {
    CheckLine { check: check.to_owned(), ok: true, found, next: None }
}

fn missing(check: &str, found: String, next: String) -> CheckLine {
    CheckLine { check: check.to_owned(), ok: false, found, next: Some(next) }
}

/// A line as it may leave the edge.
fn safe(redactor: &Redactor, line: CheckLine) -> CheckLine {
    let found: String = line.found.chars().take(FOUND_CHARS_MAX).collect();
    CheckLine { found: redactor.text(Kind::Text, &found).into_inner(), ..line }
}

/// Removes what a process that died left of its checks.
pub(crate) fn sweep(home: &Path) -> io::Result<()> {
    discard(&all(home))
}

fn all(home: &Path) -> PathBuf {
    home.join("checks")
}

/// A place to try a program in, gone with this.
struct Place {
    directory: PathBuf,
}

impl Place {
    fn make(home: &Path) -> io::Result<Self> {
        let name: String = private::random::<8>()?.iter().map(|byte| format!("{byte:02x}")).collect();
        let place = Place { directory: all(home).join(name) };
        for directory in [place.checkout(), place.session(), place.temporary()] {
            private::make_directory(&directory)?;
        }
        Ok(place)
    }

    fn checkout(&self) -> PathBuf {
        self.directory.join("checkout")
    }

    fn session(&self) -> PathBuf {
        self.directory.join("session")
    }

    fn home(&self) -> PathBuf {
        self.directory.join("home")
    }

    fn temporary(&self) -> PathBuf {
        self.home().join("tmp")
    }

    fn lock(&self) -> PathBuf {
        self.directory.join("custody.lock")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Err(error) = discard(&self.directory) {
            tracing::warn!(%error, "the place of a check could not be removed");
        }
    }
}
