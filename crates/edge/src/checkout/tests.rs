//! Copies of nasty trees: links, loops, pipes, what cannot be read, what is too much, what a killed edge left.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::time::{Duration, SystemTime};

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use super::*;

struct Trees {
    _kept: tempfile::TempDir,
    root: PathBuf,
    to: PathBuf,
}

fn trees() -> Trees {
    let kept = tempfile::tempdir().unwrap();
    let (root, to) = (kept.path().join("root"), kept.path().join("run/checkout"));
    fs::create_dir(&root).unwrap();
    fs::create_dir(kept.path().join("run")).unwrap();
    Trees { _kept: kept, root, to }
}

impl Trees {
    fn make(&self) -> Result<Copied, CheckoutError> {
        self.make_within(Limits::default())
    }

    fn make_within(&self, limits: Limits) -> Result<Copied, CheckoutError> {
        make(&self.root, &self.to, limits, &AtomicBool::new(false))
    }

    /// What is in the copy, by path: the content of files, the target of links.
    fn found(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        let mut left = vec![self.to.clone()];
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let entry = entry.unwrap();
                let name = entry.path().strip_prefix(&self.to).unwrap().display().to_string();
                let kind = entry.file_type().unwrap();
                if kind.is_dir() {
                    found.insert(name, "a directory".to_owned());
                    left.push(entry.path());
                } else if kind.is_symlink() {
                    found.insert(name, format!("-> {}", fs::read_link(entry.path()).unwrap().display()));
                } else {
                    found.insert(name, fs::read_to_string(entry.path()).unwrap());
                }
            }
        }
        found
    }

    #[track_caller]
    fn check(&self, expected: &[(&str, &str)]) {
        let expected = expected.iter().map(|(path, what)| ((*path).to_owned(), (*what).to_owned())).collect();
        assert_eq!(self.found(), expected);
    }
}

#[test]
fn c11_everything_is_copied_with_its_mode_and_time_and_the_original_is_not_touched() {
    let trees = trees();
    fs::create_dir_all(trees.root.join("src/.git/hooks")).unwrap();
    fs::write(trees.root.join("src/main.rs"), "fn main() {}").unwrap();
    fs::write(trees.root.join("src/.git/hooks/post-checkout"), "#!/bin/sh\ntouch ran").unwrap();
    let hook = trees.root.join("src/.git/hooks/post-checkout");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o4755)).unwrap();
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    File::options().write(true).open(&hook).unwrap().set_modified(then).unwrap();

    let copied = trees.make().unwrap();
    trees.check(&[
        ("src", "a directory"),
        ("src/.git", "a directory"),
        ("src/.git/hooks", "a directory"),
        ("src/.git/hooks/post-checkout", "#!/bin/sh\ntouch ran"),
        ("src/main.rs", "fn main() {}"),
    ]);
    assert_eq!((copied.files, copied.bytes, copied.degraded()), (5, 31, Vec::new()));
    let hook = fs::metadata(trees.to.join("src/.git/hooks/post-checkout")).unwrap();
    assert_eq!(hook.permissions().mode() & 0o7777, 0o755, "executable, and nobody else's rights");
    assert_eq!(hook.modified().unwrap(), then);
    fs::write(trees.to.join("src/main.rs"), "changed").unwrap();
    assert_eq!(fs::read_to_string(trees.root.join("src/main.rs")).unwrap(), "fn main() {}");
}

#[test]
fn c11_links_are_copied_as_links_and_those_that_lead_out_are_named() {
    let trees = trees();
    fs::create_dir(trees.root.join("a")).unwrap();
    fs::write(trees.root.with_file_name("outside"), "private").unwrap();
    for (target, link) in [
        (".", "a/loop"),
        ("a", "a/../twice"),
        ("../a/none", "a/dangling"),
        ("../../outside", "a/out"),
        ("/etc/passwd", "absolute"),
    ] {
        symlink(target, trees.root.join(link)).unwrap();
    }
    let copied = trees.make().unwrap();
    trees.check(&[
        ("a", "a directory"),
        ("a/dangling", "-> ../a/none"),
        ("a/loop", "-> ."),
        ("a/out", "-> ../../outside"),
        ("absolute", "-> /etc/passwd"),
        ("twice", "-> a"),
    ]);
    assert_eq!(copied.leaving.count, 2);
    let reason = copied.degraded().concat();
    assert!(reason.contains("a/out") && reason.contains("absolute"), "{reason}");
}

#[test]
fn pipes_and_sockets_are_left_out_and_nobody_waits_for_them() {
    let trees = trees();
    let fifo = FileType::Fifo;
    rustix::fs::mknodat(CWD, trees.root.join("pipe"), fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let _listening = UnixListener::bind(trees.root.join("socket")).unwrap();
    fs::write(trees.root.join("file"), "kept").unwrap();
    let copied = trees.make().unwrap();
    trees.check(&[("file", "kept")]);
    assert_eq!(copied.special, 2);
}

#[test]
fn c04_what_cannot_be_read_is_left_out_and_said_to_be() {
    let trees = trees();
    fs::create_dir(trees.root.join("closed")).unwrap();
    fs::write(trees.root.join("closed/file"), "hidden").unwrap();
    fs::write(trees.root.join("secret"), "hidden").unwrap();
    fs::write(trees.root.join("open"), "seen").unwrap();
    for name in ["closed", "secret"] {
        fs::set_permissions(trees.root.join(name), fs::Permissions::from_mode(0o000)).unwrap();
    }
    let copied = std::thread::scope(|scope| {
        let without_privileges = || {
            // A thread's own: who may read everything gives that up here.
            let own = capabilities(None).unwrap();
            let reads_all = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
            let effective = own.effective - reads_all;
            set_capabilities(None, CapabilitySets { effective, ..own }).unwrap();
            trees.make().unwrap()
        };
        scope.spawn(without_privileges).join().unwrap()
    });
    trees.check(&[("open", "seen")]);
    assert_eq!(copied.unreadable.count, 2);
    let reason = copied.degraded().concat();
    assert!(reason.contains("closed") && reason.contains("secret"), "{reason}");
    fs::set_permissions(trees.root.join("closed"), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_workspace_beyond_a_limit_leaves_nothing_behind() {
    let trees = trees();
    for number in 0..4 {
        fs::write(trees.root.join(number.to_string()), "12345").unwrap();
    }
    let limits = Limits { files_max: 4, bytes_max: 20, depth_max: 2 };
    trees.make_within(limits).unwrap();
    fs::remove_dir_all(&trees.to).unwrap();

    #[track_caller]
    fn check(trees: &Trees, limits: Limits, expected: &str) {
        let error = trees.make_within(limits).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(fs::read_dir(trees.to.parent().unwrap()).unwrap().count(), 0);
    }
    check(&trees, Limits { files_max: 3, ..limits }, "more than 3 files");
    check(&trees, Limits { bytes_max: 19, ..limits }, "more than 19 bytes");
    fs::create_dir_all(trees.root.join("a/b/c")).unwrap();
    check(&trees, Limits { files_max: 9, ..limits }, "a/b/c lies more than 2 directories deep");
    let stopped = make(&trees.root, &trees.to, Limits::default(), &AtomicBool::new(true));
    assert!(matches!(stopped, Err(CheckoutError::Stopped)));
}

#[test]
fn a_deep_tree_is_refused_before_it_takes_too_many_open_files() {
    let trees = trees();
    let deep: PathBuf = std::iter::repeat_n("d", DEPTH_MAX + 1).collect();
    fs::create_dir_all(trees.root.join(&deep)).unwrap();
    assert!(matches!(trees.make(), Err(CheckoutError::TooDeep { .. })));
    fs::remove_dir(trees.root.join(&deep)).unwrap();
    assert_eq!(trees.make().unwrap().files, DEPTH_MAX as u64);
}

#[test]
fn j05_what_a_killed_edge_left_is_thrown_away_and_made_anew() {
    let trees = trees();
    fs::write(trees.root.join("file"), "new").unwrap();
    fs::create_dir_all(trees.to.with_extension("draft").join("half")).unwrap();
    fs::create_dir_all(trees.to.join("old")).unwrap();
    trees.make().unwrap();
    trees.check(&[("file", "new")]);
    assert!(!trees.to.with_extension("draft").exists());
}
