//! What changed in a checkout, held against the real git, against the trees themselves, and at the size it has to bear.
//!
//! `RUNYARD_PROOF=quick` runs few cases and a smaller tree, `RUNYARD_PROOF=soak` many more cases.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod place;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use place::{Place, content, executable, git, problems, put, tree};
use proptest::prelude::*;
use proptest::test_runner::Config;
use runyard_checkout::{
    Base, ChangeKind, CompareLimits, ContentId, Contents, Entry, FileMode, RelPath, Root, Source, compare,
};

fn cases() -> Config {
    let cases = match std::env::var("RUNYARD_PROOF").as_deref() {
        Ok("quick") => 16,
        Ok("soak") => 2_000,
        _ => 64,
    };
    Config { cases, failure_persistence: None, ..Config::default() }
}

/// Rules in every shape, of few names, so that they often match.
fn rule() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        6 => "[abc]{1,2}",
        1 => Just("*".to_owned()),
        1 => Just("a*".to_owned()),
        1 => Just("?b".to_owned()),
        1 => Just("[ab]".to_owned()),
        1 => Just("[!a]".to_owned()),
        1 => Just("{a,b}".to_owned()),
        1 => Just("**".to_owned()),
        1 => Just("\\a".to_owned()),
    ];
    let path = proptest::collection::vec(name, 1..4).prop_map(|names| names.join("/"));
    let edge = prop_oneof![3 => Just(""), 1 => Just("/")];
    let not = prop_oneof![4 => Just(""), 1 => Just("!"), 1 => Just("#")];
    let end = prop_oneof![6 => Just(""), 1 => Just("  "), 1 => Just("\r")];
    (not, edge.clone(), path, edge, end)
        .prop_map(|(not, first, path, last, end)| format!("{not}{first}{path}{last}{end}"))
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn what_is_ignored_is_what_git_ignores(
        root in proptest::collection::vec(rule(), 0..4),
        sub in proptest::collection::vec(rule(), 0..3),
        paths in proptest::collection::btree_set("[abc]{1,2}(/[abc]{1,2}){0,3}", 1..16),
    ) {
        let place = Place::new().make();
        let checkout = place.checkout();
        git(&checkout, &["init", "--quiet", "--template="]);
        put(&checkout.join(".gitignore"), root.join("\n").as_bytes());
        put(&checkout.join("a/.gitignore"), sub.join("\n").as_bytes());
        for path in paths {
            // A file may be where a directory would have to be.
            if fs::create_dir_all(checkout.join(&path).parent().unwrap()).is_ok() && !checkout.join(&path).exists() {
                fs::write(checkout.join(&path), &path).unwrap();
            }
        }
        let listed = git(&checkout, &["ls-files", "-z", "--others", "--exclude-standard"]);
        let by_git: Vec<&[u8]> = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).collect();
        let changes = place.compare();
        let by_us: Vec<&[u8]> = changes.files.iter().map(|change| change.path.as_bytes()).collect();
        prop_assert_eq!(by_us, by_git);
    }

    #[test]
    fn c22_all_changes_together_lead_from_the_base_to_the_checkout(
        begin in tree_of_files(),
        end in tree_of_files(),
        kept in any::<u64>(),
    ) {
        let place = Place::new();
        grow(&place.workspace(), &begin);
        let place = place.make();
        // Some of what was there stays where it was; the rest is replaced by the other tree.
        let mut now = begin.clone();
        for (at, path) in begin.keys().enumerate() {
            if kept & (1 << (at % 64)) == 0 {
                now.remove(path);
                fs::remove_file(place.checkout().join(path)).unwrap();
            }
        }
        for (path, file) in end {
            let lower = path.to_lowercase();
            let clashes = now.keys().any(|there| {
                let there = there.to_lowercase();
                there != lower && (there.starts_with(&format!("{lower}/")) || lower.starts_with(&format!("{there}/")))
            });
            if !clashes {
                now.insert(path, file);
            }
        }
        grow(&place.checkout(), &now);
        let changes = place.compare();
        prop_assert_eq!(problems(&changes), Vec::new());
        let mut brought = tree(&place.workspace());
        for change in &changes.files {
            if change.kind == ChangeKind::Renamed {
                prop_assert!(brought.remove(change.old_path.as_ref().unwrap().as_bytes()).is_some());
            }
            let there = brought.remove(change.path.as_bytes());
            let was_there = matches!(change.kind, ChangeKind::Modified | ChangeKind::Retyped | ChangeKind::Deleted);
            prop_assert_eq!(there.is_some(), was_there);
            if let Some(after) = change.after {
                let bytes = content(&place.checkout().join(change.path.as_path()));
                prop_assert_eq!((after.content, after.bytes), (ContentId::of(&bytes), bytes.len() as u64));
                let mode = match after.mode {
                    FileMode::Plain => 0o100_000,
                    FileMode::Executable => 0o100_100,
                    FileMode::Link => 0o120_100,
                    FileMode::Submodule => 0,
                };
                brought.insert(change.path.as_bytes().to_vec(), (mode, bytes));
            }
        }
        prop_assert_eq!(brought, tree(&place.checkout()));
    }
}

/// What a file of a made-up tree is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Made {
    Plain(Vec<u8>),
    Executable(Vec<u8>),
    Link(String),
}

fn tree_of_files() -> impl Strategy<Value = BTreeMap<String, Made>> {
    let text =
        proptest::collection::vec(prop_oneof![Just("a\n"), Just("b\n"), Just("c\n"), Just("\0\n")], 0..8)
            .prop_map(|lines| lines.concat().into_bytes());
    let made = prop_oneof![
        4 => text.clone().prop_map(Made::Plain),
        1 => text.prop_map(Made::Executable),
        1 => "[ab]{1,2}".prop_map(Made::Link),
    ];
    proptest::collection::btree_map("[abc](/[abc]){0,2}", made, 0..12).prop_map(|files| {
        let mut tree: BTreeMap<String, Made> = BTreeMap::new();
        for (path, made) in files {
            // No file lies where a directory has to be.
            if !tree.keys().any(|there| path.starts_with(&format!("{there}/"))) {
                tree.insert(path, made);
            }
        }
        tree
    })
}

/// Puts files where they are not there already as they should be.
fn grow(directory: &Path, tree: &BTreeMap<String, Made>) {
    for (path, made) in tree {
        let path = directory.join(path);
        if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            fs::remove_dir_all(&path).unwrap();
        } else if path.symlink_metadata().is_ok() {
            fs::remove_file(&path).unwrap();
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match made {
            Made::Plain(bytes) => fs::write(&path, bytes).unwrap(),
            Made::Link(target) => symlink(target, &path).unwrap(),
            Made::Executable(bytes) => {
                fs::write(&path, bytes).unwrap();
                executable(&path);
            }
        }
    }
}

/// A figure of the memory of this process, in bytes.
fn memory(figure: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(figure)).unwrap();
    line.trim_matches([':', ' ', '\t', 'k', 'B']).parse::<u64>().unwrap() * 1024
}

#[test]
fn c14_tens_of_thousands_of_files_with_thousands_of_changes_are_compared_in_little_memory() {
    let files = if std::env::var("RUNYARD_PROOF").as_deref() == Ok("quick") { 5_000 } else { 50_000 };
    let place = Place { directory: tempfile::tempdir().unwrap() };
    let kept = place.base_dir().join("kept");
    fs::create_dir_all(&kept).unwrap();
    let path = |at: usize| format!("{}/{}/{at}.txt", at % 50, at % 7);
    let text = |at: usize| format!("file {at}\n{}", "the same in all of them\n".repeat(20));
    for at in 0..files {
        place.put(&path(at), text(at).as_bytes());
    }
    // Made by hand: a checkout of so many files is another test's, and what is not changed is not read.
    let root = Root::open(&place.checkout()).unwrap();
    let entries = (0..files).map(|at| {
        let path = RelPath::parse(path(at).as_bytes()).unwrap();
        let found = root.look(&path).unwrap().unwrap();
        let content = ContentId::of(text(at).as_bytes());
        if at % 5 == 0 {
            fs::write(kept.join(content.to_string()), text(at)).unwrap();
        }
        Entry {
            path,
            mode: FileMode::Plain,
            bytes: found.bytes,
            stamp: found.stamp,
            source: Source::Kept(content),
        }
    });
    let base = Base::new(None, None, Vec::new(), entries.collect()).unwrap();
    for at in (0..files).step_by(5) {
        match at % 20 {
            0 => place.remove(&path(at)),
            5 => place.put(&format!("new/{at}"), b"new\n"),
            10 => place.rename(&path(at), &format!("moved/{at}.txt")),
            _ => place.put(&path(at), text(at + files).as_bytes()),
        }
    }
    let mut contents = Contents::open(&base, &place.base_dir()).unwrap();
    // The most that there ever was is counted from now on.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = memory("VmRSS");
    let changes =
        compare(&base, &mut contents, &root, &CompareLimits::default(), &AtomicBool::new(false)).unwrap();
    let taken = memory("VmHWM") - before;
    assert_eq!((changes.files.len(), changes.problems.len()), (files / 5, 0));
    let count = |kind| changes.files.iter().filter(|change| change.kind == kind).count();
    assert_eq!([ChangeKind::Modified, ChangeKind::Renamed].map(count), [files / 20; 2]);
    assert!(taken < 100 * 1024 * 1024, "{taken}");
}
