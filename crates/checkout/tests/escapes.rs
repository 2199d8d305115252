//! Ways out of a root, all refused: links in every position, `..`, swaps during reads and writes, `/proc/self`, spellings of
//! `.git`, and what a hard link tells about itself.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use runyard_checkout::{BadPath, CheckoutError, Descend, Kind, New, RelPath, Root, WALK_DEPTH_MAX};
use runyard_domain::Code;

const FILE_BYTES_MAX: u64 = 1_000;
/// So often a race is run, where nothing has to become durable.
const READS: u64 = 3_000;
/// And where something does.
const WRITES: u64 = 300;

struct Place {
    _kept: tempfile::TempDir,
    root: PathBuf,
    outside: PathBuf,
}

/// A root with a file and a directory in it, and a directory beside it that nobody may get at.
fn place() -> Place {
    let kept = tempfile::tempdir().unwrap();
    let (root, outside) = (kept.path().join("root"), kept.path().join("outside"));
    fs::create_dir_all(root.join("dir")).unwrap();
    fs::create_dir_all(outside.join("dir")).unwrap();
    fs::write(root.join("dir/file"), "inside").unwrap();
    fs::write(outside.join("file"), "private").unwrap();
    fs::write(outside.join("dir/file"), "private").unwrap();
    Place { _kept: kept, root, outside }
}

impl Place {
    /// The root, resolved by the kernel and by ourselves.
    fn roots(&self) -> [Root; 2] {
        [Root::open(&self.root).unwrap(), Root::open(&self.root).unwrap().name_by_name()]
    }

    fn outside_is_untouched(&self) {
        assert_eq!(fs::read_to_string(self.outside.join("file")).unwrap(), "private");
        assert_eq!(fs::read_to_string(self.outside.join("dir/file")).unwrap(), "private");
        let names = |path: &Path| fs::read_dir(path).unwrap().count();
        assert_eq!((names(&self.outside), names(&self.outside.join("dir"))), (2, 1));
    }
}

fn path(text: &str) -> RelPath {
    RelPath::parse(text.as_bytes()).unwrap()
}

fn file(bytes: &[u8]) -> New<'_> {
    New::File { bytes, executable: false, permissions: None }
}

#[track_caller]
fn escapes<T: std::fmt::Debug>(what: &str, done: Result<T, CheckoutError>) {
    match done {
        Err(error @ CheckoutError::Escapes { .. }) => {
            assert_eq!(error.code(), Code::WorkspaceOutsideAllowlist)
        }
        other => panic!("{what}: {other:?}"),
    }
}

/// Every way to a file outside that a link in the root makes: where the link stands, where it leads, and what is asked for.
fn links(place: &Place) -> Vec<(&'static str, PathBuf, &'static str)> {
    vec![
        ("absolute", place.outside.clone(), "absolute/file"),
        ("relative", "../outside".into(), "relative/file"),
        ("deep", "../outside".into(), "deep/dir/file"),
        ("dir/inner", "../../outside".into(), "dir/inner/file"),
        ("self", "/proc/self/cwd".into(), "self/Cargo.toml"),
        ("root", "/proc/self/root".into(), "root/etc/passwd"),
        ("fd", "/proc/self/fd".into(), "fd/0"),
        ("loop", "loop".into(), "loop/file"),
        ("above", "..".into(), "above/outside/file"),
        // It stays inside, and is refused all the same: what it leads to has a path of its own.
        ("alias", "dir".into(), "alias/file"),
        ("chain", "alias".into(), "chain/file"),
    ]
}

#[test]
fn c11_a_link_on_the_way_is_never_followed_by_any_operation() {
    let place = place();
    for (name, target, _) in links(&place) {
        symlink(target, place.root.join(name)).unwrap();
    }
    for root in place.roots() {
        for (_, _, asked) in links(&place) {
            let asked = path(asked);
            escapes("look", root.look(&asked));
            escapes("read", root.read(&asked, FILE_BYTES_MAX));
            escapes("open", root.open_file(&asked));
            escapes("read link", root.read_link(&asked));
            escapes("write", root.write(&asked, file(b"written")));
            escapes("write a link", root.write(&asked, New::Link(b"x")));
            escapes("remove", root.remove(&asked));
            escapes("remove a directory", root.remove_directory(&asked));
            escapes("make a directory", root.make_directory(&asked.join(b"new").unwrap()));
            escapes("sync", root.sync(&asked));
            escapes("go beneath", root.beneath(&asked));
        }
    }
    place.outside_is_untouched();
    assert_eq!(fs::read_to_string(place.root.join("dir/file")).unwrap(), "inside");
}

#[test]
fn c11_a_link_at_the_end_is_looked_at_and_replaced_but_not_followed() {
    for by_name in [false, true] {
        let place = place();
        let root = if by_name {
            Root::open(&place.root).unwrap().name_by_name()
        } else {
            Root::open(&place.root).unwrap()
        };
        let target = place.outside.join("file");
        for (name, target) in [("link", target.as_path()), ("magic", Path::new("/proc/self/exe"))] {
            symlink(target, place.root.join(name)).unwrap();
            let link = path(name);
            assert_eq!(root.look(&link).unwrap().unwrap().kind, Kind::Link);
            assert_eq!(root.read_link(&link).unwrap(), target.as_os_str().as_encoded_bytes());
            escapes("read", root.read(&link, FILE_BYTES_MAX));
            root.write(&link, file(b"mine")).unwrap();
            assert_eq!(root.look(&link).unwrap().unwrap().kind, Kind::File);
            assert_eq!(root.read(&link, FILE_BYTES_MAX).unwrap().bytes, b"mine");
            symlink(target, place.root.join("other")).unwrap();
            root.remove(&path("other")).unwrap();
        }
        place.outside_is_untouched();
    }
}

#[test]
fn c11_names_that_lead_up_or_elsewhere_are_no_paths() {
    for bytes in [
        &b"../outside/file"[..],
        b"dir/../../outside/file",
        b"/etc/passwd",
        b"./dir",
        b"dir//file",
        b"dir/",
        b"dir\0/file",
    ] {
        let wrong = RelPath::parse(bytes).unwrap_err();
        assert!(matches!(wrong, BadPath::Leads | BadPath::Empty | BadPath::Zero));
        assert_eq!(CheckoutError::from(wrong).code(), Code::WorkspaceOutsideAllowlist);
    }
}

#[test]
fn c11_nothing_is_written_into_a_repositorys_own_directory_in_any_spelling() {
    let place = place();
    fs::create_dir_all(place.root.join(".git/hooks")).unwrap();
    fs::create_dir_all(place.root.join("sub")).unwrap();
    fs::write(place.root.join("sub/.git"), "gitdir: ../.git/modules/sub").unwrap();
    for root in place.roots() {
        for name in [
            ".git",
            ".git/config",
            ".git/hooks/pre-commit",
            ".GIT/config",
            ".Git",
            "sub/.git",
            "sub/.giT/x",
            "git~1/config",
            ".git./config",
            ".git /x",
        ] {
            let refused = |done: Result<(), CheckoutError>| {
                let error = done.unwrap_err();
                assert!(matches!(error, CheckoutError::InsideGit { .. }), "{name}: {error}");
                assert_eq!(error.code(), Code::WorkspaceOutsideAllowlist);
            };
            refused(root.write(&path(name), file(b"[core] fsmonitor = evil")));
            refused(root.write(&path(name), New::Link(b"x")));
            refused(root.write_file_with(&path(name), 0o644, |_| panic!("nothing is opened")));
            refused(root.remove(&path(name)));
            refused(root.remove_directory(&path(name)));
            refused(root.make_directory(&path(name)));
        }
    }
    assert_eq!(fs::read_dir(place.root.join(".git/hooks")).unwrap().count(), 0);
    assert_eq!(fs::read_to_string(place.root.join("sub/.git")).unwrap(), "gitdir: ../.git/modules/sub");
}

#[test]
fn c11_a_file_with_a_second_name_elsewhere_says_so_and_a_write_leaves_the_other_alone() {
    let place = place();
    fs::hard_link(place.outside.join("file"), place.root.join("shared")).unwrap();
    for root in place.roots() {
        let found = root.look(&path("shared")).unwrap().unwrap();
        let read = root.read(&path("shared"), FILE_BYTES_MAX).unwrap();
        assert_eq!((found.links, read.found.links), (2, 2));
    }
    let root = Root::open(&place.root).unwrap();
    root.write(&path("shared"), file(b"mine")).unwrap();
    assert_eq!(root.look(&path("shared")).unwrap().unwrap().links, 1);
    place.outside_is_untouched();
}

/// Swaps a directory for a link to the outside and back, as fast as it can, while something else is done.
fn while_swapping(place: &Place, rounds: u64, mut act: impl FnMut(u64)) {
    let (real, aside) = (place.root.join("dir"), place.root.join("aside"));
    let (swaps, over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let swapping = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                fs::rename(&real, &aside).unwrap();
                // A writer may have made a directory of that name meanwhile, which is its own good right.
                if symlink(&place.outside, &real).is_ok() {
                    fs::remove_file(&real).unwrap();
                }
                while fs::rename(&aside, &real).is_err() {
                    let _ = fs::remove_dir_all(&real);
                }
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut round = 0;
        // Not before the other had its turns: a race with nobody proves nothing.
        while round < rounds || (swaps.load(Ordering::Relaxed) < rounds / 10 && !swapping.is_finished()) {
            act(round);
            round += 1;
        }
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn c11_a_directory_that_is_swapped_for_a_link_during_reads_gives_nothing_from_outside() {
    let place = place();
    for root in place.roots() {
        while_swapping(&place, READS, |_| match root.read(&path("dir/file"), FILE_BYTES_MAX) {
            Ok(done) => assert_eq!(done.bytes, b"inside"),
            Err(error) => {
                let expected = matches!(error, CheckoutError::Escapes { .. }) || error.is_missing();
                assert!(expected, "{error}");
            }
        });
        // How often each came is the scheduler's; that it is there when nobody swaps is ours.
        assert_eq!(root.read(&path("dir/file"), FILE_BYTES_MAX).unwrap().bytes, b"inside");
    }
}

#[test]
fn c11_a_directory_that_is_swapped_for_a_link_during_writes_lets_nothing_out() {
    let place = place();
    fs::create_dir(place.root.join("dir/deep")).unwrap();
    fs::create_dir(place.outside.join("deep")).unwrap();
    for root in place.roots() {
        while_swapping(&place, WRITES, |round| {
            // Most often it is in the way; what counts is where nothing arrives.
            match round % 3 {
                0 => drop(root.write(&path("dir/deep/new"), file(b"written"))),
                1 => drop(root.remove(&path("dir/file"))),
                _ => drop(root.write(&path("dir/file"), file(b"inside"))),
            }
        });
    }
    fs::remove_dir(place.outside.join("deep")).unwrap();
    place.outside_is_untouched();
}

#[test]
fn c11_a_walk_goes_into_no_link_and_stays_in_order_whatever_is_swapped() {
    let place = place();
    symlink(&place.outside, place.root.join("out")).unwrap();
    symlink(".", place.root.join("loop")).unwrap();
    fs::write(place.root.join("dir-b"), "").unwrap();
    fs::write(place.root.join("dir.c"), "").unwrap();
    fs::write(place.root.join("dir0"), "").unwrap();
    let walked = |root: &Root| {
        let mut seen = Vec::new();
        root.walk(|path, found| {
            seen.push((path.to_string(), found.kind));
            Ok(Descend::Into)
        })
        .unwrap();
        seen
    };
    let expected = [
        ("dir-b", Kind::File),
        ("dir.c", Kind::File),
        ("dir", Kind::Directory),
        ("dir/file", Kind::File),
        ("dir0", Kind::File),
        ("loop", Kind::Link),
        ("out", Kind::Link),
    ];
    for root in place.roots() {
        assert_eq!(walked(&root), expected.map(|(name, kind)| (name.to_owned(), kind)));
    }
    let root = Root::open(&place.root).unwrap();
    while_swapping(&place, READS, |_| {
        for (name, _) in walked(&root) {
            assert!(
                ["dir", "dir/file", "aside", "aside/file", "dir-b", "dir.c", "dir0", "loop", "out"]
                    .contains(&&name[..]),
                "{name}"
            );
        }
    });
}

#[test]
fn c11_a_walk_is_bounded_in_depth_and_passes_what_it_is_told_to() {
    let place = place();
    let deep: PathBuf = std::iter::repeat_n("d", WALK_DEPTH_MAX + 1).collect();
    fs::create_dir_all(place.root.join(&deep)).unwrap();
    let root = Root::open(&place.root).unwrap();
    let error = root.walk(|_, _| Ok(Descend::Into)).unwrap_err();
    assert!(matches!(error, CheckoutError::TooDeep { max: WALK_DEPTH_MAX, .. }), "{error}");
    let mut seen = Vec::new();
    root.walk(|path, _| {
        seen.push(path.to_string());
        Ok(Descend::Past)
    })
    .unwrap();
    assert_eq!(seen, ["d", "dir"]);
}

#[test]
fn what_is_no_file_is_not_read_and_nobody_waits_for_a_pipe() {
    let place = place();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        place.root.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    for root in place.roots() {
        for name in ["pipe", "dir"] {
            let error = root.read(&path(name), FILE_BYTES_MAX).unwrap_err();
            assert!(matches!(error, CheckoutError::NotAFile { .. }), "{error}");
            assert!(matches!(root.read_link(&path(name)), Err(CheckoutError::NotAFile { .. })));
        }
        assert_eq!(root.look(&path("pipe")).unwrap().unwrap().kind, Kind::Special);
        assert_eq!(root.look(&path("none")).unwrap(), None);
        assert_eq!(root.look(&path("none/deeper")).unwrap(), None);
        assert_eq!(root.look(&path("dir/file/deeper")).unwrap(), None);
        assert!(root.read(&path("none"), FILE_BYTES_MAX).unwrap_err().is_missing());
        assert!(root.read(&path("dir/file/deeper"), FILE_BYTES_MAX).unwrap_err().is_missing());
    }
}

#[test]
fn a_file_that_is_too_large_is_told_from_one_that_is_not() {
    let place = place();
    let root = Root::open(&place.root).unwrap();
    assert_eq!(root.read(&path("dir/file"), 6).unwrap().bytes, b"inside");
    let error = root.read(&path("dir/file"), 5).unwrap_err();
    assert!(matches!(error, CheckoutError::FileTooLarge { max: 5, .. }), "{error}");
    assert_eq!(error.code(), Code::ValidationError);
    // It says that it is empty, and is not.
    let endless = Root::open(Path::new("/proc/self")).unwrap();
    assert!(matches!(endless.read(&path("maps"), 10), Err(CheckoutError::FileTooLarge { .. })));
}

#[test]
fn a_write_is_there_at_once_with_its_permissions_and_leaves_no_draft() {
    let place = place();
    let root = Root::open(&place.root).unwrap();
    root.write(&path("new/deep/file"), file(b"one")).unwrap();
    root.write(&path("new/run"), New::File { bytes: b"two", executable: true, permissions: None }).unwrap();
    root.write(&path("new/own"), New::File { bytes: b"three", executable: false, permissions: Some(0o600) })
        .unwrap();
    root.write(&path("new/link"), New::Link(b"run")).unwrap();
    let mode = |name: &str| fs::symlink_metadata(place.root.join(name)).unwrap().mode() & 0o777;
    assert_eq!((mode("new/own"), mode("new/run") & 0o100, mode("new/deep/file") & 0o111), (0o600, 0o100, 0));
    assert_eq!(fs::read_link(place.root.join("new/link")).unwrap(), Path::new("run"));
    let before = root.look(&path("new/own")).unwrap().unwrap();
    root.write(&path("new/own"), New::File { bytes: b"three", executable: false, permissions: Some(0o600) })
        .unwrap();
    let after = root.look(&path("new/own")).unwrap().unwrap();
    assert_ne!(before.stamp, after.stamp, "the same bytes, and still another file");

    // A directory is not replaced, and what could not be put there leaves nothing behind.
    root.write(&path("dir"), file(b"x")).unwrap_err();
    let failed = root.write_file_with(&path("new/failed"), 0o644, |_| Err(std::io::Error::other("no")));
    assert!(failed.is_err());
    root.write(&path("dir/file/below"), file(b"x")).unwrap_err();
    let mut names: Vec<_> =
        fs::read_dir(place.root.join("new")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["deep", "link", "own", "run"]);
    assert_eq!(fs::read_dir(&place.root).unwrap().count(), 2);

    root.remove(&path("new/deep/file")).unwrap();
    root.remove_empty_parents(&path("new/deep/file")).unwrap();
    assert!(!place.root.join("new/deep").exists() && place.root.join("new").exists());
    assert!(root.remove(&path("new/deep/file")).unwrap_err().is_missing());
}

#[test]
fn c11_no_write_gives_the_right_to_become_somebody_else() {
    let place = place();
    fs::set_permissions(place.root.join("dir/file"), fs::Permissions::from_mode(0o4755)).unwrap();
    let root = Root::open(&place.root).unwrap();
    let found = root.look(&path("dir/file")).unwrap().unwrap();
    assert_eq!((found.permissions, found.executable), (0o755, true));
    root.write(&path("dir/file"), New::File { bytes: b"x", executable: true, permissions: Some(0o4755) })
        .unwrap();
    assert_eq!(fs::metadata(place.root.join("dir/file")).unwrap().mode() & 0o7777, 0o755);
}
