//! What prepared a checkout is no change of it, and what changed in one is kept whole as a patch before it may go.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod place;
mod scene;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use place::{Place, executable, git, put, said, tree};
use runyard_checkout::{
    Archived, Base, CheckoutError, Contents, Limits, Options, Retaken, Root, make, put_aside, retake,
};
use scene::Scene;

static NEVER: AtomicBool = AtomicBool::new(false);

fn retaken(place: &Place) -> Retaken {
    retake(&place.checkout(), &place.base_dir(), &Limits::default(), &NEVER).unwrap()
}

/// Keeps the patch of a place, and says where.
fn archived(place: &Place) -> Result<PathBuf, CheckoutError> {
    let changes = place.compare();
    let base = Base::read(&place.base_dir()).unwrap();
    let mut contents = Contents::open(&base, &place.base_dir()).unwrap();
    let checkout = Root::open(&place.checkout()).unwrap();
    let patch = place.directory.path().join("kept.patch");
    let kept = Archived { base: &base, contents: &mut contents, checkout: &checkout, changes: &changes };
    kept.keep(&patch, &NEVER).map(|_| patch)
}

#[test]
fn c13_what_prepared_a_checkout_is_part_of_its_beginning_and_what_comes_after_is_a_change() {
    let place = Place::repository(&[
        (".gitignore", b"node_modules\n"),
        ("lock", b"one\ntwo\n"),
        ("gone", b"gone\n"),
        ("kept", b"kept\n"),
    ]);
    let place = place.make();
    place.put("lock", b"one\ntwo\nthree\n");
    place.put("made/by/setup", b"made\n");
    place.put("node_modules/x/index.js", b"x\n");
    place.put("kept", b"kept\n");
    place.remove("gone");
    symlink("lock", place.checkout().join("link")).unwrap();
    let taken = retaken(&place);
    assert_eq!((taken.changed, taken.added, taken.removed, taken.problems), (1, 2, 1, 0));
    assert_eq!(said(&place.compare()), [""; 0], "nothing of it is a change");

    place.put("lock", b"one\ntwo\nthree\nfour\n");
    place.put("made/by/setup", b"made by an agent\n");
    place.put("new", b"new\n");
    assert_eq!(
        said(&place.compare()),
        ["modified lock: +1 -0 in 1", "modified made/by/setup: +1 -1 in 1", "added new: +1 -0 in 1 ->100644"]
    );
}

#[test]
fn c22_applying_after_a_preparation_brings_what_the_agent_did_and_nothing_that_setup_did() {
    let scene = Scene::repository(&[("file", "1\n2\n3\n4\n5\n6\n7\n8\n9\n"), ("other", "x\n")]);
    scene.begin();
    scene.agent("file", "setup\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    scene.agent("generated", "by setup\n");
    retake(&scene.path("checkout"), &scene.path("base"), &Limits::default(), &NEVER).unwrap();
    scene.agent("file", "setup\n1\n2\n3\n4\n5\n6\n7\n8\n9\nagent\n");
    scene.agent("new", "by the agent\n");
    scene.apply(None).unwrap();
    assert_eq!(scene.text("file"), "1\n2\n3\n4\n5\n6\n7\n8\n9\nagent\n");
    assert_eq!(scene.text("new"), "by the agent\n");
    assert!(!scene.workspace().join("generated").exists());
}

#[test]
fn c13_a_file_that_is_only_touched_is_still_the_repositorys() {
    let place = Place::repository(&[("file", b"text\n")]).make();
    let before = Base::read(&place.base_dir()).unwrap();
    place.put("file", b"text\n");
    let taken = retaken(&place);
    assert_eq!((taken.changed, Base::read(&place.base_dir()).unwrap().id), (0, before.id));
}

#[test]
fn c13_copies_that_were_asked_for_are_brought_though_they_are_ignored() {
    let place = Place::repository(&[(".gitignore", b"node_modules\ntarget\n"), ("file", b"text\n")]);
    put(&place.workspace().join("node_modules/x/index.js"), b"x\n");
    put(&place.workspace().join("target/cache/a"), b"a\n");
    put(&place.workspace().join("target/debug/b"), b"b\n");
    let copy = vec!["node_modules".to_owned(), "target/cache".to_owned()];
    let options = Options { copy, ..Options::default() };
    make(&place.workspace(), &place.checkout(), &place.base_dir(), &options, &NEVER).unwrap();
    let brought = |path: &str| place.checkout().join(path).exists();
    assert!(brought("node_modules/x/index.js") && brought("target/cache/a") && !brought("target/debug"));
    assert_eq!(said(&place.compare()), [""; 0]);
}

#[test]
fn c14_an_archived_patch_gives_every_kind_of_change_back_byte_for_byte() {
    let lines: Vec<u8> = (1..=40).flat_map(|line| format!("line {line}\n").into_bytes()).collect();
    let noise: Vec<u8> = (0..200_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let place = Place::repository(&[
        ("binary", b"\0one"),
        ("binary-gone", b"\0gone"),
        ("crlf", b"one\r\ntwo\r\n"),
        ("empty-gone", b""),
        ("gone/deep/b", b"gone b\n"),
        ("mode", b"#!/bin/sh\n"),
        ("move", &lines),
        ("no-newline", b"end"),
        ("to-link", b"was a file\n"),
        ("binary-to-link", b"\0was binary"),
    ]);
    put(&place.workspace().join(OsStr::from_bytes(b"caf\xe9")), b"latin\n");
    place.commit();
    let place = place.make();
    let checkout = place.checkout();
    place.put("binary", &noise);
    place.put("binary-new", b"\0\x01\x02");
    place.put("crlf", b"one\r\ntwo\nthree\r\n");
    place.put("empty", b"");
    place.put("no-newline", b"the end");
    place.put("a new file", b"new\n");
    place.put(".gitattributes", b"* text eol=crlf\n");
    put(&checkout.join(OsStr::from_bytes(b"caf\xe9")), b"changed\n");
    executable(&checkout.join("mode"));
    place.rename("move", "moved/here");
    for path in ["binary-gone", "empty-gone", "gone/deep/b", "to-link", "binary-to-link"] {
        place.remove(path);
    }
    symlink("mode", checkout.join("to-link")).unwrap();
    symlink("mode", checkout.join("binary-to-link")).unwrap();
    let patch = archived(&place).unwrap();

    // Somebody who has nothing but the repository and the patch.
    fs::remove_dir_all(&checkout).unwrap();
    let again = place.directory.path().join("again");
    git(place.directory.path(), &["clone", "--quiet", "workspace", "again"]);
    put(&again.join(".git/info/attributes"), b"* -text\n");
    git(&again, &["apply", patch.to_str().unwrap()]);
    let found = tree(&again);
    assert_eq!(found[&b"binary"[..]].1, noise);
    assert_eq!(found[&b"crlf"[..]].1, b"one\r\ntwo\nthree\r\n");
    assert_eq!((found[&b"mode"[..]].0 & 0o100, &found[&b"no-newline"[..]].1[..]), (0o100, &b"the end"[..]));
    assert_eq!(found[&b"moved/here"[..]].1, lines);
    assert_eq!(found[&b"caf\xe9"[..]].1, b"changed\n");
    assert_eq!(
        (&found[&b"to-link"[..]].1[..], &found[&b"binary-to-link"[..]].1[..]),
        (&b"mode"[..], &b"mode"[..])
    );
    assert!(found.contains_key(&b"empty"[..]) && found.contains_key(&b"a new file"[..]));
    for gone in [&b"binary-gone"[..], b"empty-gone", b"gone/deep/b", b"move"] {
        assert!(!found.contains_key(gone), "{}", String::from_utf8_lossy(gone));
    }
}

#[test]
fn c14_a_plain_directory_has_an_archived_patch_too() {
    let place = Place::new();
    put(&place.workspace().join("a"), b"\0a");
    let place = place.make();
    place.put("a", b"\0b");
    place.put("b", b"b\n");
    let patch = archived(&place).unwrap();
    git(&place.workspace(), &["apply", patch.to_str().unwrap()]);
    assert_eq!(fs::read(place.workspace().join("a")).unwrap(), b"\0b");
    assert_eq!(fs::read(place.workspace().join("b")).unwrap(), b"b\n");
}

#[test]
fn c14_what_can_be_in_no_patch_is_said_and_leaves_no_patch() {
    let place = Place::repository(&[("file", b"text\n")]).make();
    place.put("nested/.git/HEAD", b"ref: refs/heads/main\n");
    let refused = archived(&place);
    assert!(matches!(refused, Err(CheckoutError::NotInPatch { .. })), "{refused:?}");
    let left: Vec<_> =
        fs::read_dir(place.directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("kept")), "{left:?}");
}

/// A checkout of a repository that has another branch and a tag, and in which somebody commits once.
fn committed() -> Place {
    let place = Place::repository(&[("file", b"text\n")]);
    place.git(&["branch", "old"]);
    place.git(&["tag", "v1"]);
    let place = place.make();
    for (name, value) in [("user.name", "Ada"), ("user.email", "ada@example.com")] {
        git(&place.checkout(), &["config", name, value]);
    }
    place.put("file", b"text\nmore\n");
    git(&place.checkout(), &["commit", "--quiet", "--all", "--message=more"]);
    place
}

fn aside(place: &Place) -> Option<String> {
    put_aside(&Root::open(&place.checkout()).unwrap(), &place.base_dir()).unwrap()
}

#[test]
fn c13_what_a_checkouts_repository_began_with_or_has_checked_out_is_not_put_aside() {
    let place = committed();
    assert_eq!(aside(&place), None);
    git(&place.checkout(), &["switch", "--quiet", "--create", "topic"]);
    assert_eq!(
        aside(&place).as_deref(),
        Some("the branch main"),
        "it has a commit that it did not begin with"
    );
    git(&place.checkout(), &["switch", "--quiet", "main"]);
    git(&place.checkout(), &["branch", "--quiet", "-D", "topic", "old"]);
    for pack in [["pack-refs", "--all"], ["gc", "--quiet"]] {
        git(&place.checkout(), &pack);
        assert_eq!(aside(&place), None, "{pack:?}");
    }
    fs::remove_dir_all(place.checkout().join(".git")).unwrap();
    assert_eq!(aside(&place), None);
}

#[test]
fn c13_c14_what_was_put_aside_in_a_repository_is_found_also_when_git_has_packed_it() {
    let ways: [(&[&str], &str); 6] = [
        (&["stash", "--quiet"], "a stash"),
        (&["branch", "topic"], "the branch topic"),
        (&["branch", "--force", "old", "main"], "the branch old"),
        (&["tag", "v2"], "the tag v2"),
        (&["tag", "--annotate", "--force", "--message=x", "v1"], "the tag v1"),
        (&["notes", "add", "--message=x"], "the name refs/notes/commits"),
    ];
    for (way, what) in ways {
        let place = committed();
        place.put("file", b"not committed\n");
        git(&place.checkout(), way);
        assert_eq!(aside(&place).as_deref(), Some(what));
        for pack in [["pack-refs", "--all"], ["gc", "--quiet"]] {
            git(&place.checkout(), &pack);
            assert!(!place.checkout().join(".git/refs/stash").exists());
            assert_eq!(aside(&place).as_deref(), Some(what), "after {pack:?}");
        }
    }
}

#[test]
fn c13_a_repository_whose_names_cannot_be_told_counts_as_one_with_something_put_aside() {
    let place = committed();
    git(&place.checkout(), &["pack-refs", "--all"]);
    fs::remove_file(place.base_dir().join("refs")).unwrap();
    assert_eq!(aside(&place).as_deref(), Some("the branch old"), "nobody knows what it began with");

    let place = committed();
    git(&place.checkout(), &["worktree", "add", "--quiet", "--detach", "../elsewhere"]);
    assert_eq!(aside(&place).as_deref(), Some("another working tree"));

    let place = committed();
    fs::create_dir(place.checkout().join(".git/reftable")).unwrap();
    assert_eq!(aside(&place).as_deref(), Some("names in a form that is not read"));

    let place = committed();
    fs::rename(place.checkout().join(".git"), place.directory.path().join("moved")).unwrap();
    place.put(".git", b"gitdir: ../moved\n");
    assert_eq!(aside(&place).as_deref(), Some("its own directory elsewhere"));
}
