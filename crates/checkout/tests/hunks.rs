//! Hunks, choosing among them, merging and patch text, held against the real git.
//!
//! `RUNYARD_PROOF=quick` runs few cases, `RUNYARD_PROOF=soak` many more. Where git is asked there are fewer, because each is a
//! process.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use proptest::prelude::*;
use proptest::test_runner::Config;
use runyard_checkout::{
    Change, ChangeKind, ContentChange, ContentId, FileMode, Hunk, LineKind, Merged, RelPath, Version, hunks,
    merge, take, unified,
};

fn cases() -> Config {
    let cases = match std::env::var("RUNYARD_PROOF").as_deref() {
        Ok("quick") => 128,
        Ok("soak") => 50_000,
        _ => 1_024,
    };
    Config { cases, failure_persistence: None, ..Config::default() }
}

fn cases_with_git() -> Config {
    let cases = match std::env::var("RUNYARD_PROOF").as_deref() {
        Ok("quick") => 16,
        Ok("soak") => 2_000,
        _ => 96,
    };
    Config { cases, ..self::cases() }
}

/// Git that knows no configuration but its own defaults.
fn git(directory: &Path, arguments: &[&str]) -> Output {
    Command::new("git")
        .args(["-c", "core.autocrlf=false", "-c", "core.safecrlf=false"])
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("LC_ALL", "C")
        .env("HOME", directory)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CEILING_DIRECTORIES", directory.parent().unwrap())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// A text of lines that are often the same, with every ending a line can have.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        8 => (0..6_u8).prop_map(|number| vec![b'a' + number]),
        2 => Just(Vec::new()),
        2 => Just(b"    indented".to_vec()),
        1 => Just(b"\ttab".to_vec()),
        1 => Just(b"-- \\ No newline at end of file".to_vec()),
        1 => proptest::collection::vec(any::<u8>().prop_filter("no newline", |byte| *byte != b'\n' && *byte != 0), 0..6),
    ];
    let ending = prop_oneof![6 => Just(&b"\n"[..]), 1 => Just(&b"\r\n"[..])];
    (proptest::collection::vec((line, ending), 0..60), any::<bool>()).prop_map(|(lines, ends)| {
        let mut text: Vec<u8> = lines.iter().flat_map(|(line, ending)| [line, *ending].concat()).collect();
        if !ends && text.ends_with(b"\n") {
            text.pop();
        }
        text
    })
}

/// Some edits of a text: lines that others stand for.
fn edited(text: &[u8], edits: &[(prop::sample::Index, usize, Vec<u8>)]) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    for (at, gone, new) in edits {
        let from = at.index(lines.len() + 1);
        let to = (from + gone).min(lines.len());
        lines.splice(from..to, new.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec));
    }
    lines.concat()
}

fn edits() -> impl Strategy<Value = Vec<(prop::sample::Index, usize, Vec<u8>)>> {
    let new = prop_oneof![
        Just(Vec::new()),
        Just(b"new\n".to_vec()),
        Just(b"a\nb\n".to_vec()),
        Just(b"one\r\ntwo\r\n".to_vec()),
        Just(b"no newline".to_vec()),
    ];
    proptest::collection::vec((any::<prop::sample::Index>(), 0..3_usize, new), 0..6)
}

/// Two texts, near each other or not.
fn two_texts() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let near = (text(), edits()).prop_map(|(before, edits)| {
        let after = edited(&before, &edits);
        (before, after)
    });
    prop_oneof![4 => near, 1 => (text(), text())]
}

/// A long text of few different lines, which is what is hardest to compare.
fn long_text() -> impl Strategy<Value = Vec<u8>> {
    (2..60_u16, proptest::collection::vec(any::<u16>(), 0..2_000)).prop_map(|(different, lines)| {
        let line = |line: &u16| format!("{}{}\n", "  ".repeat(usize::from(line % 3)), line % different);
        lines.iter().map(line).collect::<String>().into_bytes()
    })
}

/// A text with every so many of its lines left out, doubled or replaced.
fn often_edited(text: &[u8], every: usize, seed: usize) -> Vec<u8> {
    let edit = |(at, line): (usize, &[u8])| match (at.wrapping_mul(7_919) ^ seed) % every {
        0 => Vec::new(),
        1 => [line, line].concat(),
        2 => b"new\n".to_vec(),
        _ => line.to_vec(),
    };
    text.split_inclusive(|byte| *byte == b'\n').enumerate().flat_map(edit).collect()
}

/// Which of some hunks are chosen, by the bits of a number.
fn chosen(hunks: &[Hunk], bits: u64) -> BTreeSet<u32> {
    (0..hunks.len() as u32).filter(|number| bits & (1 << (number % 64)) != 0).collect()
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn c22_all_hunks_give_the_new_text_and_none_the_old_one((before, after) in two_texts()) {
        let hunks = hunks(&before, &after);
        let all = (0..hunks.len() as u32).collect();
        prop_assert_eq!(take(&before, &hunks, &all), after.clone());
        prop_assert_eq!(take(&before, &hunks, &BTreeSet::new()), before.clone());
        prop_assert_eq!(hunks.is_empty(), before == after);
    }

    #[test]
    fn c22_what_is_left_after_choosing_some_hunks_is_exactly_the_others(
        (before, after) in two_texts(),
        bits in any::<u64>(),
    ) {
        let hunks = hunks(&before, &after);
        let chosen = chosen(&hunks, bits);
        let some = take(&before, &hunks, &chosen);
        // The same text by another way: the new one, with the hunks that were not chosen turned back.
        let turned: Vec<Hunk> = hunks.iter().map(turned).collect();
        let others = (0..hunks.len() as u32).filter(|number| !chosen.contains(number)).collect();
        prop_assert_eq!(take(&after, &turned, &others), some);
    }

    #[test]
    fn a_hunk_has_its_lines_where_it_says((before, after) in two_texts()) {
        let (old, new): (Vec<_>, Vec<_>) = (lines(&before), lines(&after));
        for hunk in hunks(&before, &after) {
            for (text, start, count, not) in [
                (&old, hunk.old_start, hunk.old_lines, LineKind::Added),
                (&new, hunk.new_start, hunk.new_lines, LineKind::Removed),
            ] {
                let there: Vec<_> =
                    hunk.lines.iter().filter(|line| line.kind != not).map(|line| &line.bytes[..]).collect();
                let first = start.saturating_sub(u64::from(count > 0)) as usize;
                prop_assert_eq!(&there[..], &text[first..first + count as usize]);
            }
            prop_assert!(hunk.lines.iter().any(|line| line.kind != LineKind::Context));
        }
    }

    #[test]
    fn merging_with_what_did_not_change_gives_what_did((base, one) in two_texts()) {
        prop_assert_eq!(merge(&base, &one, &base), Merged::Clean(one.clone()));
        prop_assert_eq!(merge(&base, &base, &one), Merged::Clean(one.clone()));
        prop_assert_eq!(merge(&base, &one, &one), Merged::Clean(one.clone()));
    }

    #[test]
    fn it_does_not_matter_which_side_is_ours(
        (base, ours) in two_texts(),
        others in edits(),
    ) {
        let theirs = edited(&base, &others);
        match (merge(&base, &ours, &theirs), merge(&base, &theirs, &ours)) {
            (Merged::Clean(one), Merged::Clean(other)) => prop_assert_eq!(one, other),
            (Merged::Conflict(one), Merged::Conflict(other)) => {
                let turned = |conflict: &runyard_checkout::Conflict| (conflict.theirs.clone(), conflict.ours.clone());
                let straight = |conflict: &runyard_checkout::Conflict| (conflict.ours.clone(), conflict.theirs.clone());
                prop_assert_eq!(
                    one.iter().map(straight).collect::<Vec<_>>(),
                    other.iter().map(turned).collect::<Vec<_>>()
                );
                prop_assert!(one.iter().all(|conflict| fits(&conflict.base, &base)
                    && fits(&conflict.ours, &ours) && fits(&conflict.theirs, &theirs)));
            }
            (one, other) => prop_assert!(false, "{:?} {:?}", one, other),
        }
    }
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

fn fits(range: &Range<u64>, text: &[u8]) -> bool {
    range.start <= range.end && range.end <= lines(text).len() as u64
}

/// A hunk that leads back.
fn turned(hunk: &Hunk) -> Hunk {
    let mut back = hunk.clone();
    (back.old_start, back.new_start) = (hunk.new_start, hunk.old_start);
    (back.old_lines, back.new_lines) = (hunk.new_lines, hunk.old_lines);
    for line in &mut back.lines {
        line.kind = match line.kind {
            LineKind::Context => LineKind::Context,
            LineKind::Added => LineKind::Removed,
            LineKind::Removed => LineKind::Added,
        };
    }
    back
}

/// What `git merge-file` makes of it; none where it finds a conflict.
fn merged_by_git(directory: &Path, base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    for (name, text) in [("base", base), ("ours", ours), ("theirs", theirs)] {
        fs::write(directory.join(name), text).unwrap();
    }
    let output = git(directory, &["merge-file", "-p", "ours", "base", "theirs"]);
    // It ends with the number of conflicts, at most 127; more says that it could not even try.
    match output.status.code() {
        Some(0) => Some(output.stdout),
        Some(1..128) => None,
        _ => panic!("{}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// A base of lines that are all different, and two edits of it whose lines are new: there is one way only to compare them.
fn three_unambiguous() -> impl Strategy<Value = [Vec<u8>; 3]> {
    let edits = || proptest::collection::vec((any::<prop::sample::Index>(), 0..3_usize, 0..3_usize), 0..4);
    (0..30_usize, edits(), edits(), any::<bool>(), any::<[bool; 3]>()).prop_map(
        |(length, ours, theirs, alike, ends)| {
            let base: Vec<String> = (0..length).map(|at| format!("line {at}\n")).collect();
            let side = |edits: &[(prop::sample::Index, usize, usize)], name: &str| {
                let mut lines = base.clone();
                for (at, gone, come) in edits {
                    let from = at.index(lines.len() + 1);
                    let to = (from + gone).min(lines.len());
                    // The same edit on both sides is no conflict.
                    let name = if alike && from.is_multiple_of(2) { "both" } else { name };
                    lines.splice(from..to, (0..*come).map(|line| format!("{name} {from} {line}\n")));
                }
                lines.concat().into_bytes()
            };
            let mut texts = [base.concat().into_bytes(), side(&ours, "ours"), side(&theirs, "theirs")];
            for (text, ends) in texts.iter_mut().zip(ends) {
                if !ends && text.ends_with(b"\n") {
                    text.pop();
                }
            }
            texts
        },
    )
}

/// What becomes of two texts by [`merge`]; none where there is a conflict.
fn merged(base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    match merge(base, ours, theirs) {
        Merged::Clean(text) => Some(text),
        Merged::Conflict(conflicts) => {
            assert!(!conflicts.is_empty());
            None
        }
    }
}

/// The change of one file's text.
fn modified(path: &str, before: &[u8], after: &[u8]) -> Change {
    let path = RelPath::parse(path.as_bytes()).unwrap();
    let version = |bytes: &[u8]| Version {
        mode: FileMode::Plain,
        bytes: bytes.len() as u64,
        content: ContentId::of(bytes),
    };
    Change {
        id: path.id(),
        path,
        old_path: None,
        kind: ChangeKind::Modified,
        content: ContentChange::Text { insertions: 0, deletions: 0, hunks: 0 },
        before: Some(version(before)),
        after: Some(version(after)),
        protected: false,
    }
}

/// A patch of which only some hunks are left. Where each begins in the new text then depends on those that are left before it.
fn patch_of(patch: &[u8], hunks: &[Hunk], chosen: &BTreeSet<u32>) -> Vec<u8> {
    let mut left = Vec::new();
    let (mut number, mut keeps, mut moved) = (0, true, 0);
    for line in patch.split_inclusive(|byte| *byte == b'\n') {
        // Only what stands before a hunk begins so: its own lines begin with a sign.
        if !line.starts_with(b"@@ ") {
            left.extend_from_slice(if keeps { line } else { b"" });
            continue;
        }
        let hunk = &hunks[number as usize];
        keeps = chosen.contains(&number);
        number += 1;
        if keeps {
            let Hunk { old_start, old_lines, new_lines, .. } = *hunk;
            let first = old_start as i64 + i64::from(old_lines == 0) + moved;
            let new_start = if new_lines == 0 { first - 1 } else { first };
            left.extend(format!("@@ -{old_start},{old_lines} +{new_start},{new_lines} @@\n").bytes());
            moved += new_lines as i64 - old_lines as i64;
        }
    }
    assert_eq!(number as usize, hunks.len());
    left
}

/// What `git apply` makes of a file by a patch.
fn applied_by_git(before: &[u8], patch: &[u8]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), before).unwrap();
    fs::write(directory.path().join("patch"), patch).unwrap();
    let output = git(directory.path(), &["apply", "--whitespace=nowarn", "patch"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(patch));
    fs::read(directory.path().join("file")).unwrap()
}

proptest! {
    #![proptest_config(cases_with_git())]

    #[test]
    fn c22_any_of_the_hunks_are_what_git_apply_makes_of_a_patch_of_just_those(
        (before, after) in two_texts(),
        bits in any::<u64>(),
    ) {
        let hunks = hunks(&before, &after);
        let patch = unified(&modified("file", &before, &after), &before, &after);
        for chosen in [chosen(&hunks, bits), chosen(&hunks, u64::MAX)] {
            if !chosen.is_empty() {
                let left = patch_of(&patch, &hunks, &chosen);
                prop_assert_eq!(take(&before, &hunks, &chosen), applied_by_git(&before, &left));
            }
        }
    }

    #[test]
    fn a_patch_is_taken_by_git_apply((before, after) in two_texts()) {
        let patch = unified(&modified("file", &before, &after), &before, &after);
        if before != after {
            prop_assert_eq!(applied_by_git(&before, &patch), after);
        }
    }

    #[test]
    fn merging_is_what_git_merge_file_does([base, ours, theirs] in three_unambiguous()) {
        let directory = tempfile::tempdir().unwrap();
        let by_git = merged_by_git(directory.path(), &base, &ours, &theirs);
        prop_assert_eq!(merged(&base, &ours, &theirs), by_git);
    }

    #[test]
    fn long_texts_of_few_different_lines_are_no_exception(
        (one, other) in (long_text(), long_text()),
        every in 3..200_usize,
        seeds in any::<[usize; 2]>(),
    ) {
        let [ours, theirs] = seeds.map(|seed| often_edited(&one, every, seed));
        for after in [&other, &ours] {
            let hunks = hunks(&one, after);
            prop_assert!(take(&one, &hunks, &(0..hunks.len() as u32).collect()) == *after);
        }
        prop_assert!(merged(&one, &ours, &theirs) == merged(&one, &theirs, &ours));
        prop_assert!(merged(&one, &ours, &one).as_ref() == Some(&ours));
        prop_assert!(merged(&one, &one, &theirs).as_ref() == Some(&theirs));
    }

    // Such lines can be compared in more than one way, so git may see a conflict where there is none, and the other way round. What
    // holds for every way of comparing them holds here too.
    #[test]
    fn merging_lines_that_are_often_the_same_takes_no_side_and_keeps_what_one_did_alone(
        (base, ours) in two_texts(),
        others in edits(),
    ) {
        let theirs = edited(&base, &others);
        prop_assert_eq!(merged(&base, &ours, &theirs), merged(&base, &theirs, &ours));
        prop_assert_eq!(merged(&base, &ours, &base), Some(ours.clone()));
        prop_assert_eq!(merged(&base, &base, &theirs), Some(theirs));
        prop_assert_eq!(merged(&base, &ours, &ours), Some(ours));
    }
}

#[track_caller]
fn check(before: &[u8], after: &[u8], hunks_expected: usize) {
    let hunks = hunks(before, after);
    assert_eq!(hunks.len(), hunks_expected);
    let all = (0..hunks.len() as u32).collect();
    assert!(take(before, &hunks, &all) == after && take(before, &hunks, &BTreeSet::new()) == before);
    if !hunks.is_empty() {
        let patch = unified(&modified("file", before, after), before, after);
        assert!(applied_by_git(before, &patch) == after);
    }
}

#[test]
fn texts_at_the_edges_have_hunks_too() {
    check(b"", b"", 0);
    check(b"", b"\n", 1);
    check(b"\n", b"", 1);
    check(b"a", b"a\n", 1);
    check(b"a\n", b"a", 1);
    check(b"a\r\nb\r\n", b"a\nb\n", 1);
    check(b"a\r\nb\r\n", b"a\r\nc\r\n", 1);
    check(b"a\rb", b"a\rc", 1);
    check(b"caf\xe9\n", b"caf\xc3\xa9\n", 1);
    let huge = vec![b'x'; 3 * 1024 * 1024];
    check(&huge, &[&huge[..], b"y"].concat(), 1);
    check(b"short\n", &[&huge[..], b"\n", &huge].concat(), 1);
}

#[test]
fn a_text_of_hundreds_of_thousands_of_lines_has_hunks_too() {
    let numbered = |at: usize| format!("{}\n", at / 2).into_bytes();
    let before: Vec<u8> = (0..200_000).flat_map(numbered).collect();
    let after: Vec<u8> = (0..200_000)
        .flat_map(|at| if at % 20_000 == 10 { b"new\n".to_vec() } else { numbered(at) })
        .collect();
    // Every line is there twice, so there is nowhere to cut: all from the first to the last change is one hunk.
    check(&before, &after, 1);
    let unique = |at: usize| format!("{at}\n").into_bytes();
    let before: Vec<u8> = (0..200_000).flat_map(unique).collect();
    let after: Vec<u8> =
        (0..200_000).flat_map(|at| if at % 20_000 == 10 { b"new\n".to_vec() } else { unique(at) }).collect();
    check(&before, &after, 10);
}

#[test]
fn names_that_cannot_be_seen_are_quoted_and_those_that_can_are_not() {
    for (path, expected) in [
        (&b"plain"[..], &b"--- a/plain\n"[..]),
        ("größe".as_bytes(), "--- a/größe\n".as_bytes()),
        (b"with space", b"--- a/with space\t\n"),
        (b"caf\xe9", b"--- \"a/caf\\351\"\n"),
        (b"a\nb\"\\", b"--- \"a/a\\nb\\\"\\\\\"\n"),
        ("a\u{202e}b".as_bytes(), b"--- \"a/a\\342\\200\\256b\"\n"),
    ] {
        let mut change = modified("x", b"a\n", b"b\n");
        change.path = RelPath::parse(path).unwrap();
        let patch = unified(&change, b"a\n", b"b\n");
        let there = patch.split_inclusive(|byte| *byte == b'\n').any(|line| line == expected);
        assert!(there, "{}", String::from_utf8_lossy(&patch));
    }
}
