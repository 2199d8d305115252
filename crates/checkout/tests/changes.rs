//! What changed in a checkout, found on real trees.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod place;

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::sync::atomic::AtomicBool;

use place::{Place, executable, git, problems, put, said, tree};
use runyard_checkout::{
    Base, Change, CheckoutError, CompareLimits, ContentId, Contents, ProblemKind, Root, compare,
};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

const LINES: &[u8] = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n";

/// Lines with some of them replaced.
fn lines_with(replaced: &[(usize, &str)]) -> Vec<u8> {
    let mut lines: Vec<String> = (1..=20).map(|line| format!("{line}\n")).collect();
    for (at, text) in replaced {
        lines[*at - 1] = format!("{text}\n");
    }
    lines.concat().into_bytes()
}

/// A tree with one of each, changed in every way there is.
fn every_kind_of_change() -> Place {
    let place = Place::repository(&[
        ("binary", b"\0one"),
        ("crlf", b"one\r\ntwo\r\nthree\r\n"),
        ("empty-gone", b""),
        ("file-to-link", b"was a file\n"),
        ("gone/a", b"gone a\n"),
        ("gone/deep/b", b"gone b\n"),
        ("kept", b"kept\n"),
        ("lines", LINES),
        ("mode", b"#!/bin/sh\n"),
        ("move", &[LINES, b"moved"].concat()),
        ("no-newline", b"end"),
        ("source", &[LINES, b"source"].concat()),
        ("to-edit", &[LINES, b"edited"].concat()),
        ("touched", b"touched\n"),
    ]);
    let workspace = place.workspace();
    symlink("kept", workspace.join("link-to-file")).unwrap();
    symlink("old", workspace.join("relinked")).unwrap();
    put(&workspace.join(OsStr::from_bytes(b"caf\xe9")), b"latin\n");
    place.commit();
    let place = place.make();
    let checkout = place.checkout();

    place.put("added/deep/new file", b"new\n");
    place.put("empty", b"");
    place.put("binary", b"\0two");
    place.put("crlf", b"one\r\ntwo\nthree\r\n");
    place.remove("empty-gone");
    place.remove("file-to-link");
    symlink("kept", checkout.join("file-to-link")).unwrap();
    fs::remove_dir_all(checkout.join("gone")).unwrap();
    place.put("lines", &lines_with(&[(1, "one"), (19, "nineteen")]));
    executable(&checkout.join("mode"));
    place.rename("move", "moved/here");
    place.put("no-newline", b"end\n");
    place.put("source", &[&lines_with(&[(7, "seven")])[..], b"source"].concat());
    place.put("copied", &[LINES, b"source"].concat());
    place.put("copied-and-edited", &[&lines_with(&[(3, "three")])[..], b"source"].concat());
    place.rename("to-edit", "edited");
    place.put("edited", &[&lines_with(&[(2, "two")])[..], b"edited"].concat());
    executable(&checkout.join("edited"));
    place.put("touched", b"touched\n");
    place.remove("link-to-file");
    place.put("link-to-file", b"is a file\n");
    place.remove("relinked");
    symlink("new", checkout.join("relinked")).unwrap();
    put(&checkout.join(OsStr::from_bytes(b"caf\xe9")), b"other\n");
    put(&checkout.join(OsStr::from_bytes(b"n\xe9w")), b"new\n");
    place
}

#[test]
fn c14_every_kind_of_change_is_found_and_said() {
    let changes = every_kind_of_change().compare();
    assert_eq!(
        said(&changes),
        [
            "added added/deep/new file: +1 -0 in 1 ->100644",
            "modified binary: whole",
            "modified caf\\xe9: +1 -1 in 1",
            "copied copied from source: same",
            "copied copied-and-edited from source: +1 -1 in 1",
            "modified crlf: +1 -1 in 1",
            "renamed edited from to-edit: +1 -1 in 1 100644>100755",
            "added empty: +0 -0 in 0 ->100644",
            "deleted empty-gone: +0 -0 in 0 100644>-",
            "retyped file-to-link: whole 100644>120000",
            "deleted gone/a: +0 -1 in 1 100644>-",
            "deleted gone/deep/b: +0 -1 in 1 100644>-",
            "modified lines: +2 -2 in 2",
            "retyped link-to-file: whole 120000>100644",
            "modified mode: same 100644>100755",
            "renamed moved/here from move: same",
            "modified no-newline: +1 -1 in 1",
            "added n\\xe9w: +1 -0 in 1 ->100644",
            "modified relinked: whole",
            "modified source: +1 -1 in 1",
        ]
    );
    assert_eq!((problems(&changes), changes.ignored), (Vec::new(), 0));
    assert_eq!(changes.lines(), (10, 10));
}

#[test]
fn the_patch_of_every_kind_of_change_is_taken_by_git_apply_and_gives_the_same_tree() {
    let place = every_kind_of_change();
    let (changes, workspace) = (place.compare(), place.workspace());
    let (whole, text): (Vec<&Change>, Vec<&Change>) =
        changes.files.iter().partition(|change| change.path.as_bytes() == b"binary");
    let patch: Vec<u8> = text.iter().flat_map(|change| place.patch(change)).collect();
    fs::write(place.directory.path().join("patch"), &patch).unwrap();
    git(&workspace, &["apply", "--whitespace=nowarn", "../patch"]);
    // Content that is no text is only said to differ.
    assert_eq!(
        place.patch(whole[0]),
        b"diff --git a/binary b/binary\nBinary files a/binary and b/binary differ\n"
    );
    fs::copy(place.checkout().join("binary"), workspace.join("binary")).unwrap();
    assert_eq!(tree(&workspace), tree(&place.checkout()));
}

#[test]
fn the_same_changes_have_the_same_target_and_others_another() {
    let place = Place::repository(&[("a", b"a\n"), ("b", b"b\n")]).make();
    let none = place.compare();
    assert_eq!((said(&none), none.target == place.compare().target), (Vec::new(), true));
    place.put("a", b"x\n");
    let one = place.compare();
    place.put("b", b"x\n");
    place.put("b", b"b\n");
    // Written again with what it held: it is looked at, and did not change.
    assert_eq!(place.compare(), one);
    place.put("b", b"x\n");
    assert!(place.compare().target != one.target && one.target != none.target);
    assert_eq!((&one.base, one.files[0].after.unwrap().content), (&none.base, ContentId::of(b"x\n")));
}

#[test]
fn an_edit_that_keeps_length_and_time_is_found() {
    let place = Place::repository(&[("a", b"one\n")]).make();
    let path = place.checkout().join("a");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    let mut file = File::options().write(true).open(&path).unwrap();
    file.write_all(b"two\n").unwrap();
    file.set_modified(modified).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), modified);
    assert_eq!(said(&place.compare()), ["modified a: +1 -1 in 1"]);
}

#[test]
fn a_workspace_that_is_no_repository_is_compared_like_one() {
    let place = Place::new();
    put(&place.workspace().join("a"), LINES);
    put(&place.workspace().join("big"), &[b'x'; 100]);
    let place = place.make();
    assert_eq!(said(&place.compare()), Vec::<String>::new());
    place.rename("a", "b");
    place.put("big", &[b'y'; 100]);
    let limits = CompareLimits { text_bytes_max: 99, ..CompareLimits::default() };
    let changes = place.compare_within(&limits).unwrap();
    assert_eq!(said(&changes), ["renamed b from a: same", "modified big: too large"]);
}

#[test]
fn what_was_not_committed_is_part_of_the_base_and_no_change() {
    let place = Place::repository(&[("a", b"one\n"), ("b", b"one\n")]);
    put(&place.workspace().join("a"), b"two\n");
    put(&place.workspace().join("new"), b"new\n");
    fs::remove_file(place.workspace().join("b")).unwrap();
    let place = place.make();
    assert_eq!(said(&place.compare()), Vec::<String>::new());
    place.put("a", b"three\n");
    place.put("b", b"one\n");
    let changes = place.compare();
    assert_eq!(said(&changes), ["modified a: +1 -1 in 1", "added b: +1 -0 in 1 ->100644"]);
    assert_eq!(
        place.patch(&changes.files[0]),
        b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-two\n+three\n"
    );
}

#[test]
fn a_submodule_is_its_commit_and_nothing_in_it_is_a_change() {
    let place = Place::repository(&[("a", b"a\n")]);
    let commit = "0123456789012345678901234567890123456789";
    for name in ["gone", "kept", "retyped", "filled"] {
        place.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{commit},{name}")]);
        fs::create_dir(place.workspace().join(name)).unwrap();
    }
    place.git(&["-c", "user.name=Ada", "-c", "user.email=a@b", "commit", "--quiet", "--message=x"]);
    let place = place.make();
    assert_eq!(said(&place.compare()), Vec::<String>::new());
    fs::remove_dir(place.checkout().join("gone")).unwrap();
    fs::remove_dir(place.checkout().join("retyped")).unwrap();
    place.put("retyped", b"a file\n");
    place.put("filled/new", b"new\n");
    let changes = place.compare();
    assert_eq!(said(&changes), ["deleted gone: whole 160000>-", "retyped retyped: whole 160000>100644"]);
    assert_eq!(problems(&changes), [("filled".to_owned(), ProblemKind::InsideGit)]);
    let patch = place.patch(&changes.files[0]);
    let expected = format!(
        "diff --git a/gone b/gone\ndeleted file mode 160000\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-Subproject commit {commit}\n"
    );
    assert_eq!(String::from_utf8(patch).unwrap(), expected);
}

#[test]
fn c15_what_can_be_no_change_is_a_problem_and_is_always_said() {
    let place =
        Place::repository(&[("a", b"a\n"), ("linked", b"l\n"), ("piped", b"p\n"), ("readme", b"r\n")]).make();
    let checkout = place.checkout();
    fs::hard_link(checkout.join("linked"), checkout.join("second")).unwrap();
    let _socket = UnixListener::bind(checkout.join("socket")).unwrap();
    place.remove("piped");
    rustix::fs::mkfifoat(rustix::fs::CWD, checkout.join("piped"), rustix::fs::Mode::RWXU).unwrap();
    place.put("README", b"clash\n");
    place.put("vendor/x/.git/config", b"[core]\n");
    place.put("vendor/x/.git/hooks/post-checkout", b"x");
    place.put("vendor/x/file", b"x\n");
    place.put("vendor/y/.git", b"gitdir: /elsewhere\n");
    place.put(".GIT/config", b"x\n");
    place.put(".git/hooks/pre-commit", b"x\n");
    let changes = place.compare();
    assert_eq!(said(&changes), ["added vendor/x/file: +1 -0 in 1 ->100644"]);
    let expected = [
        (".GIT", ProblemKind::InsideGit),
        ("README", ProblemKind::CaseClash),
        ("linked", ProblemKind::HardLink),
        ("piped", ProblemKind::Special),
        ("second", ProblemKind::HardLink),
        ("socket", ProblemKind::Special),
        ("vendor/x/.git", ProblemKind::InsideGit),
        ("vendor/y/.git", ProblemKind::InsideGit),
    ];
    assert_eq!(problems(&changes), expected.map(|(path, why)| (path.to_owned(), why)));
}

#[test]
fn what_may_not_be_looked_at_is_a_problem_and_not_gone() {
    let place = Place::repository(&[("a", b"a\n"), ("dir/b", b"b\n"), ("dir/deep/c", b"c\n")]).make();
    let deny = |path: &str| {
        fs::set_permissions(place.checkout().join(path), Permissions::from_mode(0o000)).unwrap();
    };
    place.put("a", b"x\n");
    place.put("new", b"x\n");
    ["a", "new", "dir"].into_iter().for_each(deny);
    let changes = std::thread::scope(|scope| {
        // Whoever may read everything could read these too.
        let looking = scope.spawn(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective.remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
            set_capabilities(None, sets).unwrap();
            place.compare()
        });
        looking.join().unwrap()
    });
    fs::set_permissions(place.checkout().join("dir"), Permissions::from_mode(0o700)).unwrap();
    let expected = ["a", "dir", "new"].map(|path| (path.to_owned(), ProblemKind::Unreadable));
    assert_eq!((said(&changes), problems(&changes)), (Vec::new(), expected.to_vec()));
}

#[test]
fn c15_a_link_out_of_the_checkout_is_a_link_and_nothing_behind_it_is_looked_at() {
    let place = Place::repository(&[("dir/a", b"a\n"), ("b", b"b\n")]).make();
    fs::remove_dir_all(place.checkout().join("dir")).unwrap();
    symlink("/etc", place.checkout().join("dir")).unwrap();
    place.remove("b");
    symlink("/etc/passwd", place.checkout().join("b")).unwrap();
    let changes = place.compare();
    assert_eq!(
        said(&changes),
        ["retyped b: whole 100644>120000", "added dir: whole ->120000", "deleted dir/a: +0 -1 in 1 100644>-"]
    );
    assert_eq!(changes.files[0].after.unwrap().content, ContentId::of(b"/etc/passwd"));
}

#[test]
fn c11_moving_what_is_protected_away_is_protected_too() {
    let place = Place::repository(&[("runyard.toml", LINES), ("plain", b"p\n")]).make();
    place.rename("runyard.toml", "harmless");
    place.put("plain", b"q\n");
    place.put(".mcp.json", b"{}\n");
    let changes = place.compare();
    let protected: Vec<_> =
        changes.files.iter().map(|change| (change.path.to_string(), change.protected)).collect();
    let expected = [(".mcp.json", true), ("harmless", true), ("plain", false)];
    assert_eq!(protected, expected.map(|(path, protected)| (path.to_owned(), protected)));
}

#[test]
fn a_file_too_large_for_lines_is_a_change_and_one_too_large_for_a_change_is_a_problem() {
    let place =
        Place::repository(&[("a", b"a\n"), ("b", b"b\n"), ("c", &[b'c'; 3_000]), ("d", &[b'd'; 1_500])])
            .make();
    place.put("a", &[b'x'; 1_001]);
    place.put("b", &[b'x'; 2_001]);
    place.put("c", b"c\n");
    place.put("d", &[b'x'; 1_500]);
    place.put("new", &[b'y'; 1_001]);
    place.put("huge", &[b'y'; 2_001]);
    let limits = CompareLimits { text_bytes_max: 1_000, file_bytes_max: 2_000, ..CompareLimits::default() };
    let changes = place.compare_within(&limits).unwrap();
    assert_eq!(
        said(&changes),
        ["modified a: too large", "modified d: too large", "added new: too large ->100644"]
    );
    let expected = ["b", "c", "huge"].map(|path| (path.to_owned(), ProblemKind::TooLarge));
    assert_eq!(problems(&changes), expected);
    assert_eq!(changes.files[0].after.unwrap().content, ContentId::of(&[b'x'; 1_001]));
    let patch = String::from_utf8(place.patch(&changes.files[0])).unwrap();
    assert!(patch.ends_with("Binary files a/a and b/a differ\n"), "{patch}");
}

#[test]
fn more_changes_than_the_limit_and_being_stopped_are_errors_and_never_fewer_changes() {
    let place = Place::repository(&[("a", b"a\n"), ("b", b"b\n"), ("c", b"c\n")]).make();
    place.put("a", b"x\n");
    place.remove("b");
    // What was only touched is read, and is no change.
    place.put("c", b"c\n");
    let within =
        |changes_max| place.compare_within(&CompareLimits { changes_max, ..CompareLimits::default() });
    assert_eq!(within(2).unwrap().files.len(), 2);
    assert!(matches!(within(1), Err(CheckoutError::TooManyFiles(1))));
    let within = |bytes_max| place.compare_within(&CompareLimits { bytes_max, ..CompareLimits::default() });
    assert_eq!(within(4).unwrap().files.len(), 2);
    assert!(matches!(within(3), Err(CheckoutError::TooLarge(3))));
    let base = Base::read(&place.base_dir()).unwrap();
    let mut contents = Contents::open(&base, &place.base_dir()).unwrap();
    let root = Root::open(&place.checkout()).unwrap();
    let stopped = compare(&base, &mut contents, &root, &CompareLimits::default(), &AtomicBool::new(true));
    assert!(matches!(stopped, Err(CheckoutError::Stopped)));
}

#[test]
fn new_files_that_are_ignored_are_left_out_and_counted() {
    let place = Place::repository(&[
        (".gitignore", b"target/\n*.log\n!keep.log\n/only-here\n"),
        ("target/tracked", b"t\n"),
        ("sub/.gitignore", b"local\n"),
        ("gone/.gitignore", b"built\n"),
        ("tracked.log", b"t\n"),
    ])
    .make();
    // A whole directory counts once.
    place.put("sub/target/a", b"x");
    place.put("sub/target/b", b"x");
    place.put("a.log", b"x");
    place.put("sub/local", b"x");
    place.put("only-here", b"x");
    // In a directory that is ignored only what was there at the beginning counts.
    place.put("target/tracked", b"changed\n");
    place.put("target/keep.log", b"x");
    // Rules that were removed still count, so that nothing built becomes a change by it.
    place.remove("gone/.gitignore");
    place.put("gone/built", b"x");
    // Rules of the agent's own count as they do for git.
    place.put("fresh/.gitignore", b"made\n");
    place.put("fresh/made", b"x");
    place.put("keep.log", b"new keep\n");
    place.put("local", b"new local\n");
    place.put("sub/only-here", b"new only\n");
    place.put("tracked.log", b"changed\n");
    let changes = place.compare();
    assert_eq!(
        said(&changes),
        [
            "added fresh/.gitignore: +1 -0 in 1 ->100644",
            "deleted gone/.gitignore: +0 -1 in 1 100644>-",
            "added keep.log: +1 -0 in 1 ->100644",
            "added local: +1 -0 in 1 ->100644",
            "added sub/only-here: +1 -0 in 1 ->100644",
            "modified target/tracked: +1 -1 in 1",
            "modified tracked.log: +1 -1 in 1",
        ]
    );
    assert_eq!((problems(&changes), changes.ignored), (Vec::new(), 7));
}

#[test]
fn rules_from_outside_the_tree_count_and_those_of_the_checkouts_own_repository_do_not() {
    let place = Place::repository(&[("a", b"a\n")]);
    put(&place.workspace().join(".git/info/exclude"), b"*.mine\n");
    let place = place.make();
    put(&place.checkout().join(".git/info/exclude"), b"*\n");
    place.put("x.mine", b"x\n");
    place.put("x.other", b"x\n");
    let changes = place.compare();
    assert_eq!((said(&changes), changes.ignored), (vec!["added x.other: +1 -0 in 1 ->100644".to_owned()], 1));
}
