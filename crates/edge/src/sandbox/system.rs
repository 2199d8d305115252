//! What every sandbox shows of this machine, and what it hides in that.

use std::path::{Path, PathBuf};

/// Where programs and what they need are, on the distributions that we know.
const DIRECTORIES: [&str; 14] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/gnu",
    "/home/linuxbrew/.linuxbrew",
    "/run/current-system",
    // Where the file that says which servers know names often leads.
    "/run/systemd/resolve",
];
/// What only the superuser may read in them; an edge that is the superuser's must not show it.
const SECRETS: [&str; 14] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/krb5.keytab",
    "/etc/kubernetes",
    "/etc/letsencrypt",
    "/etc/NetworkManager/system-connections",
    "/etc/rancher",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/wireguard",
];
/// Toolchains in a person's home, and the variable by which each is found from another home. Never a whole `~/.cargo` or
/// `~/.local`: they hold credentials.
const TOOLCHAINS: [(&str, Option<&str>); 14] = [
    (".cargo/bin", None),
    (".cargo/registry", None),
    (".rustup", Some("RUSTUP_HOME")),
    (".nvm", Some("NVM_DIR")),
    (".volta", Some("VOLTA_HOME")),
    (".bun/bin", None),
    (".deno/bin", None),
    (".pyenv", Some("PYENV_ROOT")),
    (".rbenv", Some("RBENV_ROOT")),
    (".asdf", Some("ASDF_DATA_DIR")),
    (".sdkman/candidates", None),
    (".local/share/mise", Some("MISE_DATA_DIR")),
    (".local/bin", None),
    ("go/bin", None),
];

/// A toolchain in the person's home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Toolchain {
    pub(super) at: PathBuf,
    /// What says to programs where it is.
    pub(super) variable: Option<&'static str>,
}

/// What every sandbox shows of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct System {
    /// Shown read-only.
    pub(super) directories: Vec<PathBuf>,
    /// Links to them: where each leads, and where it is.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
    /// What is hidden in them.
    pub(super) secret_files: Vec<PathBuf>,
    /// The same for whole directories.
    pub(super) secret_directories: Vec<PathBuf>,
    pub(super) toolchains: Vec<Toolchain>,
    /// The data directory, of which nothing is shown.
    pub(super) data: Option<PathBuf>,
    /// The person's home, of which nothing but toolchains and the program is shown.
    pub(super) home: Option<PathBuf>,
    /// What else nothing is shown of, wherever it lies.
    pub(super) hidden: Vec<PathBuf>,
    /// Whether this process is the superuser's.
    pub(super) superuser: bool,
}

impl System {
    /// Looks at this machine. `home` is the person's, `data` the data directory.
    pub fn look(home: Option<&Path>, data: &Path) -> Self {
        let superuser = rustix::process::geteuid().is_root();
        let mut system = System { superuser, ..System::default() };
        for directory in DIRECTORIES.map(PathBuf::from) {
            match directory.read_link() {
                Ok(target) => system.links.push((target, directory)),
                Err(_) if directory.is_dir() => system.directories.push(directory),
                Err(_) => {}
            }
        }
        // The file that says which servers know names may lie anywhere.
        if let Ok(names) = Path::new("/etc/resolv.conf").canonicalize()
            && !system.shows(&names)
        {
            system.directories.push(names);
        }
        for secret in SECRETS.map(PathBuf::from).into_iter().filter(|_| superuser) {
            if secret.is_dir() {
                system.secret_directories.push(secret);
            } else if secret.is_file() {
                system.secret_files.push(secret);
            }
        }
        system.data = data.canonicalize().ok();
        // Some users' home is a directory of programs.
        system.home = home.and_then(|home| home.canonicalize().ok()).filter(|home| !home.starts_with("/usr"));
        for (name, variable) in TOOLCHAINS {
            let at = home.map(|home| home.join(name)).filter(|at| at.is_absolute());
            let place = at.as_ref().and_then(|at| at.canonicalize().ok()).filter(|place| place.is_dir());
            if let (Some(at), Some(place)) = (at, place)
                && !system.reveals(&place)
            {
                system.toolchains.push(Toolchain { at, variable });
            }
        }
        system
    }

    /// Hides this directory too, such as one of secrets, also where it is made only later.
    pub fn hiding(mut self, directory: impl Into<PathBuf>) -> Self {
        self.hidden.push(directory.into());
        self
    }

    /// The same with what is hidden by its real place, as far as it is there, for only that can be covered; and without toolchains
    /// that would show it.
    pub(super) fn as_it_is_now(&self) -> Self {
        let real = self.hidden.iter().filter_map(|directory| directory.canonicalize().ok());
        let mut now =
            System { hidden: real.filter(|directory| directory.is_dir()).collect(), ..self.clone() };
        let mut toolchains = std::mem::take(&mut now.toolchains);
        toolchains.retain(|toolchain| toolchain.at.canonicalize().is_ok_and(|place| !now.reveals(&place)));
        System { toolchains, ..now }
    }

    /// Whether showing this directory would show what is private.
    pub(super) fn reveals(&self, directory: &Path) -> bool {
        directory.parent().is_none()
            || self.home.as_ref().is_some_and(|home| home.starts_with(directory))
            || self.data.iter().chain(&self.hidden).any(|private| overlap(private, directory))
    }

    /// Whether a path is shown with the system.
    pub(super) fn shows(&self, path: &Path) -> bool {
        let links = self.links.iter().map(|(_, link)| link);
        self.directories.iter().chain(links).any(|directory| path.starts_with(directory))
    }

    /// What tells programs where the toolchains are: the home that they have is their run's.
    pub(super) fn variables(&self) -> impl Iterator<Item = (&'static str, String)> {
        let told = |toolchain: &Toolchain| Some((toolchain.variable?, toolchain.at.to_str()?.to_owned()));
        self.toolchains.iter().filter_map(told)
    }
}

/// Whether one of two paths lies in the other.
pub(super) fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}
