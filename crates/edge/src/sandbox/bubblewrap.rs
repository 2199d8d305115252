//! The argument vector: pure, so that what a sandbox shows can be read from a table.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use runyard_backend::Launch;

use super::{Bounds, Net, System};

/// A program with what it is started through.
#[derive(Debug)]
pub(crate) struct Wrapped {
    /// A program that starts the other, with its arguments; empty where there is none.
    pub(crate) wrapper: Vec<OsString>,
    /// The socket that a forwarder in the sandbox forwards to, where there is one.
    pub(crate) gateway: Option<PathBuf>,
    pub(crate) launch: Launch,
}

impl Wrapped {
    /// Started as it is.
    pub(crate) fn plain(launch: Launch) -> Self {
        Wrapped { wrapper: Vec::new(), gateway: None, launch }
    }
}

/// Whom a sandboxed process of the superuser takes itself for. An agent's own sandbox may not map the superuser again, and some
/// agents refuse to work for it.
const NOBODY: &str = "65534";

/// What every sandbox begins with.
const ALWAYS: [&str; 9] = [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--die-with-parent",
    "--new-session",
    "--cap-drop",
    "ALL",
];

/// The arguments up to the program. The order is the meaning: what comes later lies on top.
pub(super) fn arguments(
    bounds: &Bounds,
    shown: &[PathBuf],
    system: &System,
    directory: &Path,
) -> Vec<OsString> {
    let places = &bounds.places;
    let mut list = List(ALWAYS.map(OsString::from).to_vec());
    if system.superuser {
        list.add(["--uid", NOBODY, "--gid", NOBODY]);
    }
    if bounds.net != Net::Shared {
        list.add(["--unshare-net"]);
    }
    for directory in &system.directories {
        list.bind("--ro-bind-try", directory);
    }
    for (target, link) in &system.links {
        list.add([OsString::from("--symlink"), target.into(), link.into()]);
    }
    list.add(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]);
    for file in &system.secret_files {
        list.add([OsString::from("--ro-bind"), "/dev/null".into(), file.into()]);
    }
    // A workspace that is itself a directory of the system is shown with it.
    let of_run = places.hidden.iter().filter(|path| !system.directories.contains(path));
    let private = system.data.iter().chain(&system.home).chain(&system.hidden).chain(of_run);
    let private = private.filter(|path| system.shows(path));
    let all: BTreeSet<&Path> =
        system.secret_directories.iter().chain(private).map(PathBuf::as_path).collect();
    // What lies in another is hidden with it.
    let is_outermost = |path: &&Path| !path.ancestors().skip(1).any(|around| all.contains(around));
    let hidden: Vec<&Path> = all.iter().copied().filter(is_outermost).collect();
    for directory in &hidden {
        list.add(["--tmpfs".as_ref(), directory.as_os_str()]);
    }
    let reveals = |toolchain: &Path| places.hidden.iter().any(|hidden| hidden.starts_with(toolchain));
    let toolchains = system.toolchains.iter().map(|toolchain| &toolchain.at).filter(|at| !reveals(at));
    let readable = toolchains.chain(shown);
    let hidden_again = |path: &PathBuf| hidden.iter().any(|hidden| path.starts_with(hidden));
    for path in readable.filter(|path| !system.shows(path) || hidden_again(path)) {
        list.bind("--ro-bind-try", path);
    }
    for path in &places.readable {
        list.bind("--ro-bind", path);
    }
    list.bind(if bounds.writable { "--bind" } else { "--ro-bind" }, &places.checkout);
    for home in &places.homes {
        list.bind("--bind", home);
    }
    for directory in hidden {
        list.add(["--remount-ro".as_ref(), directory.as_os_str()]);
    }
    list.add(["--remount-ro", "/"]);
    list.add([OsString::from("--chdir"), directory.into(), "--".into()]);
    list.0
}

struct List(Vec<OsString>);

impl List {
    fn add<T: Into<OsString>>(&mut self, arguments: impl IntoIterator<Item = T>) {
        self.0.extend(arguments.into_iter().map(Into::into));
    }

    /// The same path inside as outside.
    fn bind(&mut self, how: &str, path: &Path) {
        self.add([how.into(), path.as_os_str().to_owned(), path.as_os_str().to_owned()]);
    }
}
