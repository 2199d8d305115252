//! The argument vectors as tables, what is shown of a program and of a home, and what is said to be in force.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::system::Toolchain;
use super::*;

fn paths(paths: &[&str]) -> Vec<PathBuf> {
    paths.iter().map(PathBuf::from).collect()
}

fn system() -> System {
    System {
        directories: paths(&["/usr", "/etc", "/opt"]),
        links: vec![("usr/bin".into(), "/bin".into())],
        toolchains: vec![
            Toolchain { at: "/home/ada/.cargo/bin".into(), variable: None },
            Toolchain { at: "/home/ada/.rustup".into(), variable: Some("RUSTUP_HOME") },
        ],
        data: Some("/home/ada/.runyard".into()),
        home: Some("/home/ada".into()),
        ..System::default()
    }
}

fn places() -> Places {
    Places {
        checkout: "/home/ada/.runyard/edge/runs/r/checkout".into(),
        homes: paths(&["/home/ada/.runyard/edge/runs/r/home", "/home/ada/.runyard/edge/sessions/s/demo"]),
        readable: Vec::new(),
        hidden: paths(&["/home/ada/project"]),
    }
}

fn bounds(writable: bool, net: Net) -> Bounds {
    Bounds { writable, net, places: places() }
}

fn gateway() -> Net {
    Net::Gateway { socket: "/home/ada/.runyard/edge/runs/r/gateway.sock".into(), port: 8123 }
}

/// One line for each option, after those that every sandbox begins with.
fn lines(arguments: &[std::ffi::OsString]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for argument in arguments.iter().map(|argument| argument.to_str().unwrap()) {
        match lines.last_mut() {
            Some(line) if !argument.starts_with("--") => *line = format!("{line} {argument}"),
            _ => lines.push(argument.to_owned()),
        }
    }
    let always = [
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--die-with-parent",
        "--new-session",
        "--cap-drop ALL",
    ];
    assert_eq!(lines[..always.len()], always);
    lines.split_off(always.len())
}

#[track_caller]
fn check(bounds: &Bounds, shown: &[&str], system: &System, expected: &[&str]) {
    let found =
        arguments(bounds, &paths(shown), system, Path::new("/home/ada/.runyard/edge/runs/r/checkout"));
    assert_eq!(lines(&found), expected);
}

#[test]
fn b07_each_policy_has_its_argument_vector() {
    #[rustfmt::skip]
    let shown = |checkout: &'static str| vec![
        "--ro-bind-try /usr /usr",
        "--ro-bind-try /etc /etc",
        "--ro-bind-try /opt /opt",
        "--symlink usr/bin /bin",
        "--proc /proc",
        "--dev /dev",
        "--tmpfs /tmp",
        "--ro-bind-try /home/ada/.cargo/bin /home/ada/.cargo/bin",
        "--ro-bind-try /home/ada/.rustup /home/ada/.rustup",
        checkout,
        "--bind /home/ada/.runyard/edge/runs/r/home /home/ada/.runyard/edge/runs/r/home",
        "--bind /home/ada/.runyard/edge/sessions/s/demo /home/ada/.runyard/edge/sessions/s/demo",
        "--remount-ro /",
        "--chdir /home/ada/.runyard/edge/runs/r/checkout",
        "--",
    ];
    let writable = "--bind /home/ada/.runyard/edge/runs/r/checkout /home/ada/.runyard/edge/runs/r/checkout";
    let readable =
        "--ro-bind /home/ada/.runyard/edge/runs/r/checkout /home/ada/.runyard/edge/runs/r/checkout";
    check(&bounds(true, Net::Shared), &["/usr/bin"], &system(), &shown(writable));
    check(&bounds(false, Net::Shared), &["/usr/bin"], &system(), &shown(readable));
    let cut = [&["--unshare-net"][..], &shown(writable)].concat();
    check(&bounds(true, Net::Cut), &["/bin"], &system(), &cut);
    check(&bounds(true, gateway()), &["/bin"], &system(), &cut);
    let superuser = System { superuser: true, ..system() };
    let nobody = [&["--uid 65534", "--gid 65534"][..], &shown(readable)].concat();
    check(&bounds(false, Net::Shared), &[], &superuser, &nobody);
}

#[test]
fn c11_b12_what_is_private_is_hidden_also_inside_the_system() {
    let system = System {
        directories: paths(&["/usr", "/etc", "/opt"]),
        secret_files: paths(&["/etc/shadow"]),
        secret_directories: paths(&["/etc/ssh"]),
        data: Some("/opt/runyard".into()),
        home: Some("/opt/ada".into()),
        hidden: paths(&["/etc/runyard-secrets", "/mnt/secrets"]),
        toolchains: vec![Toolchain { at: "/opt/ada/.rustup".into(), variable: None }],
        ..System::default()
    };
    let places = Places {
        checkout: "/opt/runyard/checkout".into(),
        homes: paths(&["/opt/runyard/home"]),
        readable: paths(&["/opt/ada/project/.git/objects"]),
        hidden: paths(&["/opt/ada/project"]),
    };
    let bounds = Bounds { writable: true, net: Net::Shared, places };
    let arguments = arguments(&bounds, &paths(&["/opt/agent/bin"]), &system, Path::new("/"));
    #[rustfmt::skip]
    assert_eq!(lines(&arguments), [
        "--ro-bind-try /usr /usr",
        "--ro-bind-try /etc /etc",
        "--ro-bind-try /opt /opt",
        "--proc /proc",
        "--dev /dev",
        "--tmpfs /tmp",
        "--ro-bind /dev/null /etc/shadow",
        "--tmpfs /etc/runyard-secrets",
        "--tmpfs /etc/ssh",
        "--tmpfs /opt/ada",
        "--tmpfs /opt/runyard",
        "--ro-bind-try /opt/ada/.rustup /opt/ada/.rustup",
        "--ro-bind /opt/ada/project/.git/objects /opt/ada/project/.git/objects",
        "--bind /opt/runyard/checkout /opt/runyard/checkout",
        "--bind /opt/runyard/home /opt/runyard/home",
        "--remount-ro /etc/runyard-secrets",
        "--remount-ro /etc/ssh",
        "--remount-ro /opt/ada",
        "--remount-ro /opt/runyard",
        "--remount-ro /",
        "--chdir /",
        "--",
    ]);
}

#[test]
fn c11_a_toolchain_in_which_the_workspace_lies_is_not_shown() {
    let mut bounds = bounds(true, Net::Shared);
    bounds.places.hidden = paths(&["/home/ada/.rustup/toolchains/mine"]);
    let found = lines(&arguments(&bounds, &[], &system(), Path::new("/")));
    assert!(found.contains(&"--ro-bind-try /home/ada/.cargo/bin /home/ada/.cargo/bin".to_owned()));
    assert!(!found.iter().any(|line| line.contains("/home/ada/.rustup")), "{found:?}");
}

#[test]
fn c11_a_program_is_shown_with_its_directory_unless_that_shows_more() {
    let system = system();
    #[track_caller]
    fn check(system: &System, program: &str, shown: &[&str]) {
        let hidden = paths(&["/home/ada/project"]);
        assert_eq!(program::shown(Path::new(program), system, &hidden), paths(shown));
    }
    check(&system, "/srv/agents/agent", &["/srv/agents"]);
    check(&system, "/home/ada/bin/agent", &["/home/ada/bin"]);
    check(&system, "/home/ada/agent", &["/home/ada/agent"]);
    check(&system, "/home/agent", &["/home/agent"]);
    check(&system, "/agent", &["/agent"]);
    check(&system, "/home/ada/project/agent", &["/home/ada/project/agent"]);
    check(&system, "/home/ada/project/bin/agent", &["/home/ada/project/bin/agent"]);
    check(&system, "/home/ada/.runyard/bin/agent", &["/home/ada/.runyard/bin/agent"]);
    check(
        &system,
        "/srv/node_modules/@maker/agent-x64/vendor/bin/a",
        &["/srv/node_modules/@maker/agent-x64"],
    );
    check(&system, "/srv/node_modules/agent/bin/a", &["/srv/node_modules/agent"]);
    check(&system, "/srv/node_modules/agent", &["/srv/node_modules"]);
}

#[test]
fn a_linked_program_is_shown_where_it_is_and_where_it_lies() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    let (bin, real) = (root.join("bin"), root.join("share/agent"));
    fs::create_dir(&bin).unwrap();
    fs::create_dir_all(&real).unwrap();
    fs::write(real.join("agent"), "").unwrap();
    symlink(real.join("agent"), bin.join("agent")).unwrap();
    assert_eq!(program::shown(&bin.join("agent"), &System::default(), &[]), [bin, real]);
}

#[test]
fn a_program_is_found_as_the_system_finds_it() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path();
    for (name, mode) in [("one/plain", 0o644), ("two/plain", 0o755), ("two/other", 0o600)] {
        let file = root.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    }
    let find = |program: &str| {
        let path = format!("two:{0}/one:{0}/two", root.display());
        program::find(&Launch {
            program: program.into(),
            arguments: Vec::new(),
            directory: root.to_owned(),
            environment: BTreeMap::from([("PATH".to_owned(), path)]),
        })
        .map_err(|error| error.kind())
    };
    assert_eq!(find("plain"), Ok(root.join("two/plain")));
    assert_eq!(find("two/plain"), Ok(root.join("two/plain")));
    assert_eq!(find("other"), Err(io::ErrorKind::NotFound));
    assert_eq!(find("two/other"), Err(io::ErrorKind::PermissionDenied));
    assert_eq!(find("two/none"), Err(io::ErrorKind::NotFound));
}

#[test]
fn c11_of_a_home_only_toolchains_are_shown_and_never_what_holds_credentials() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    let (home, data) = (root.join("ada"), root.join("ada/.runyard"));
    for directory in [".cargo/bin", ".cargo/registry", ".rustup", ".ssh", ".runyard", ".local"] {
        fs::create_dir_all(home.join(directory)).unwrap();
    }
    fs::write(home.join(".cargo/credentials.toml"), "token").unwrap();
    // What leads back to the home, or to the data directory, is not shown.
    symlink(&home, home.join(".local/bin")).unwrap();
    symlink(&data, home.join(".nvm")).unwrap();
    let system = System::look(Some(&home), &data);
    let shown: Vec<&Path> = system.toolchains.iter().map(|toolchain| &*toolchain.at).collect();
    assert_eq!(shown, [home.join(".cargo/bin"), home.join(".cargo/registry"), home.join(".rustup")]);
    let variables: Vec<_> = system.variables().collect();
    assert_eq!(variables, [("RUSTUP_HOME", home.join(".rustup").to_str().unwrap().to_owned())]);
    assert_eq!((system.home, system.data), (Some(home), Some(data)));
}

#[test]
fn b07_what_is_in_force_is_said_and_what_is_not_is_degraded() {
    let works = Sandboxes::by("/usr/bin/bwrap".into(), system());
    let missing = Sandboxes::absent(Absent::NotInstalled);
    let broken = Sandboxes::absent(Absent::Fails { said: "no permission".to_owned() });
    let unconfined = |why: &str| {
        let degraded = format!(
            "no sandbox is in force: {why}; what a command does that was allowed is bounded by your own rights alone"
        );
        (format!("none in force: {why}"), vec![degraded])
    };
    #[track_caller]
    fn check(
        sandboxes: &Sandboxes,
        (sandbox, network, needs): (Sandbox, Network, Needs),
        (found, degraded): (String, Vec<String>),
        expected: Option<(bool, Net)>,
    ) {
        let policy = ExecutionPolicy { sandbox, network, ..ExecutionPolicy::default() };
        let in_force = sandboxes.for_run(&policy, needs, places());
        let cut = expected.as_ref().is_some_and(|(_, net)| *net != Net::Shared);
        assert_eq!(in_force.denies_what_is_asked("default"), cut);
        assert_eq!((in_force.found, in_force.degraded), (found, degraded));
        let bounds = match in_force.confinement {
            Confinement::None => None,
            Confinement::Within(bounded) => Some((bounded.bounds.writable, bounded.bounds.net.clone())),
        };
        assert_eq!(bounds, expected);
    }
    let by_gateway =
        || Needs::Gateway { socket: "/home/ada/.runyard/edge/runs/r/gateway.sock".into(), port: 8123 };
    let fine = |found: &str| (format!("bubblewrap: {found}"), Vec::new());
    use {Needs as P, Network as N, Sandbox as S};
    #[rustfmt::skip]
    let table = [
        ((S::WorkspaceWrite, N::Ask,   P::Network),  fine("writes only in its checkout and home, the machine's network"), (true, Net::Shared)),
        ((S::WorkspaceWrite, N::Allow, P::Nothing), fine("writes only in its checkout and home, the machine's network"), (true, Net::Shared)),
        ((S::WorkspaceWrite, N::Deny,  P::Nothing), fine("writes only in its checkout and home, no network"),            (true, Net::Cut)),
        ((S::ReadOnly,       N::Deny,  P::Nothing), fine("writes only in its home, no network"),                         (false, Net::Cut)),
        ((S::WorkspaceWrite, N::Deny,  by_gateway()), fine("writes only in its checkout and home, no network but the gateway"), (true, gateway())),
        ((S::ReadOnly,       N::Deny,  by_gateway()), fine("writes only in its home, no network but the gateway"),       (false, gateway())),
        ((S::ReadOnly,       N::Ask,   by_gateway()), fine("writes only in its home, the machine's network"),            (false, Net::Shared)),
        ((S::WorkspaceWrite, N::Allow, by_gateway()), fine("writes only in its checkout and home, the machine's network"), (true, Net::Shared)),
    ];
    for (asked, said, expected) in table {
        check(&works, asked, said, Some(expected));
    }
    let not_cut = (
        "bubblewrap: writes only in its checkout and home, the network is not cut".to_owned(),
        vec![NOT_CUT.to_owned()],
    );
    check(&works, (S::WorkspaceWrite, N::Deny, P::Network), not_cut, Some((true, Net::Shared)));
    let none = unconfined("the run's execution policy asks for none");
    check(&works, (S::None, N::Deny, P::Nothing), none.clone(), None);
    check(&works, (S::None, N::Deny, by_gateway()), none.clone(), None);
    check(&missing, (S::None, N::Ask, P::Nothing), none, None);
    let not_installed = unconfined("bubblewrap is not installed (apt install bubblewrap)");
    check(&missing, (S::ReadOnly, N::Ask, P::Nothing), not_installed, None);
    let fails = unconfined("bubblewrap does not work here (no permission)");
    check(&broken, (S::WorkspaceWrite, N::Ask, P::Network), fails, None);
}

#[test]
fn b07_with_a_gateway_the_program_is_started_by_a_forwarder_that_has_its_socket() {
    let launch = Launch {
        program: "/bin/sh".into(),
        arguments: vec!["-c".to_owned(), "true".to_owned()],
        directory: "/".into(),
        environment: BTreeMap::new(),
    };
    let wrap = |net: Net| {
        let (bubblewrap, system) = ("/usr/bin/bwrap".into(), Arc::new(system()));
        let bounded = Bounded { bubblewrap, system, bounds: bounds(true, net) };
        Confinement::Within(Arc::new(bounded)).wrap(launch.clone()).unwrap()
    };
    let (cut, forwarded) = (wrap(Net::Cut), wrap(gateway()));
    let added: Vec<&str> =
        forwarded.wrapper[cut.wrapper.len()..].iter().map(|word| word.to_str().unwrap()).collect();
    assert_eq!(added, ["/proc/self/fd/60", "child", "forwarder", "8123"]);
    assert_eq!(forwarded.wrapper[..cut.wrapper.len()], cut.wrapper);
    assert_eq!(forwarded.gateway.as_deref(), Some(Path::new("/home/ada/.runyard/edge/runs/r/gateway.sock")));
    assert_eq!((cut.gateway, forwarded.launch.arguments), (None, launch.arguments));
}

#[test]
fn b12_a_directory_of_secrets_is_hidden_also_when_it_is_made_later_and_nothing_that_shows_it_is_shown() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    let (home, tools, secrets) = (root.join("ada"), root.join("tools"), root.join("tools/secrets"));
    fs::create_dir_all(home.join(".rustup")).unwrap();
    fs::create_dir(&tools).unwrap();
    symlink(&tools, home.join(".nvm")).unwrap();
    symlink(&secrets, root.join("link")).unwrap();
    let system = System::look(Some(&home), &root.join("data")).hiding(root.join("link"));
    let toolchains = |system: &System| -> Vec<PathBuf> {
        system.toolchains.iter().map(|toolchain| toolchain.at.clone()).collect()
    };
    let before = system.as_it_is_now();
    assert_eq!(
        (&before.hidden, toolchains(&before)),
        (&vec![], vec![home.join(".rustup"), home.join(".nvm")])
    );
    assert_eq!(program::shown(&tools.join("agent"), &before, &[]), [tools.as_path()]);
    fs::create_dir(&secrets).unwrap();
    let after = system.as_it_is_now();
    assert_eq!((&after.hidden, toolchains(&after)), (&vec![secrets], vec![home.join(".rustup")]));
    assert_eq!(program::shown(&tools.join("agent"), &after, &[]), [tools.join("agent")]);
}
