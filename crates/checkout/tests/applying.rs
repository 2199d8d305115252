//! Applying what an agent changed to a person's files: whole, by file and by hunk, on files that changed meanwhile, and refused.
//!
//! clause: C13
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod scene;

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use proptest::test_runner::Config;
use runyard_checkout::apply::{ApplyError, ApplyLimits, FileConflict, Selection, Why, carry_out, plan};
use runyard_checkout::{ChangeKind, CheckoutError, Conflict, ContentChange};
use runyard_domain::Code;
use scene::{PLACEHOLDER, Scene, chmod, hunks_of, is_placeholder, nothing, path, put, tree, whole};

fn lines(count: u32) -> String {
    (0..count).map(|line| format!("line {line}\n")).collect()
}

fn cases() -> Config {
    let cases = match std::env::var("RUNYARD_PROOF").as_deref() {
        Ok("quick") => 8,
        Ok("soak") => 1_000,
        _ => 32,
    };
    Config { cases, failure_persistence: None, ..Config::default() }
}

/// Says that something was refused and nothing at all written.
#[track_caller]
fn refused(scene: &Scene, selection: Option<&Selection>) -> ApplyError {
    let before = scene.tree();
    let error = scene.apply(selection).unwrap_err();
    assert_eq!(scene.tree(), before, "{error}");
    error
}

#[test]
fn c22_everything_that_changed_is_applied_and_the_files_are_those_of_the_checkout() {
    let scene = scene::everything();
    let before = scene.tree();
    carry_out(&scene.path("journal"), &scene.root(), &scene::GO, &nothing).unwrap();
    let mut expected = tree(&scene.path("checkout"));
    let merged = lines(40).replace("line 3\n", "line three\n").replace("line 30\n", "line thirty\n");
    expected.get_mut("merged").unwrap().2 = merged;
    // What a file may be used for is the person's affair; a directory that is left empty goes.
    expected.get_mut("private").unwrap().1 = 0o600;
    expected.retain(|name, _| !name.starts_with("deep"));
    let after = scene.tree();
    assert_eq!(after, expected);
    assert!(before.contains_key("deep/er/removed") && !after.contains_key("deep"));
}

#[test]
fn a_repository_is_applied_to_like_any_directory_and_its_index_stays() {
    let scene = Scene::repository(&[("a", "1\n2\n3\n"), ("b", "b\n"), ("c", "c\n")]);
    scene.person("b", "staged\n");
    scene.git(&["add", "b"]);
    scene.person("untracked", "mine\n");
    scene.begin();
    scene.agent("a", "1\n2\nthree\n");
    scene.agent("untracked", "mine and theirs\n");
    scene.agent_removes("c");
    scene.apply(None).unwrap();
    let status = scene.git(&["status", "--porcelain"]);
    assert_eq!(status, " M a\nM  b\n D c\n?? untracked\n");
    assert_eq!(
        (scene.text("a"), scene.text("untracked")),
        ("1\n2\nthree\n".into(), "mine and theirs\n".into())
    );
    scene.undo().unwrap();
    assert_eq!(scene.git(&["status", "--porcelain"]), "M  b\n?? untracked\n");
}

#[test]
fn only_the_chosen_files_are_applied() {
    let scene = Scene::plain(&[("a", "a\n"), ("b", "b\n"), ("c", "c\n")]);
    scene.begin();
    for name in ["a", "b", "c", "d"] {
        scene.agent(name, "changed\n");
    }
    let done = scene.apply(Some(&whole(&["d", "b"]))).unwrap();
    assert_eq!(done.paths, [path("b"), path("d")]);
    assert_eq!(
        [scene.text("a"), scene.text("b"), scene.text("c"), scene.text("d")],
        ["a\n", "changed\n", "c\n", "changed\n"]
    );
}

#[test]
fn some_hunks_leave_the_mode_and_all_of_them_are_the_whole_file() {
    let scene = Scene::plain(&[("a", &lines(40))]);
    chmod(&scene.workspace().join("a"), 0o640);
    scene.begin();
    scene.agent("a", &lines(40).replace("line 5\n", "five\n").replace("line 30\n", "thirty\n"));
    chmod(&scene.path("checkout").join("a"), 0o755);
    let changes = scene.changes();
    assert!(matches!(changes.files[0].content, ContentChange::Text { hunks: 2, .. }));
    let some = scene.plan(&changes, Some(&hunks_of("a", [1]))).unwrap();
    assert_eq!(some.edits[0].after.unwrap().permissions, 0o640);
    let all = scene.plan(&changes, Some(&hunks_of("a", [1, 0]))).unwrap();
    assert_eq!(all, scene.plan(&changes, None).unwrap());
    assert_eq!(all.edits[0].after.unwrap().permissions, 0o750);
    assert_eq!(scene.plan(&changes, Some(&hunks_of("a", []))).unwrap().edits, []);
    scene.apply(Some(&hunks_of("a", [1]))).unwrap();
    assert_eq!(scene.text("a"), lines(40).replace("line 30\n", "thirty\n"));
}

#[test]
fn c13_what_is_described_depends_on_the_result_and_not_on_the_order_of_the_choice() {
    let scene = Scene::plain(&[("a", "a\n"), ("b", &lines(40))]);
    scene.begin();
    scene.agent("a", "changed\n");
    scene.agent("b", &lines(40).replace("line 5\n", "five\n").replace("line 30\n", "thirty\n"));
    let changes = scene.changes();
    let describe = |selection: Selection| scene.plan(&changes, Some(&selection)).unwrap().describe();
    let of = |parts: &[Selection]| Selection(parts.iter().flat_map(|part| part.0.clone()).collect());
    let one = describe(of(&[whole(&["a"]), hunks_of("b", [0]), hunks_of("b", [1])]));
    let other = describe(of(&[hunks_of("b", [1, 0]), whole(&["a"])]));
    assert_eq!(one, other);
    assert_eq!(one, describe(of(&[hunks_of("b", [0]), whole(&["b"]), whole(&["a", "a"])])));
    assert_ne!(one, describe(of(&[hunks_of("b", [1]), whole(&["a"])])));
    scene.person("b", &lines(41));
    assert_ne!(one, describe(whole(&["a", "b"])));
}

#[test]
fn what_the_person_changed_elsewhere_is_kept() {
    let scene = Scene::plain(&[("a", &lines(40)), ("moved", &lines(30))]);
    scene.begin();
    scene.agent("a", &lines(40).replace("line 30\n", "thirty\n"));
    fs::rename(scene.path("checkout").join("moved"), scene.path("checkout").join("here")).unwrap();
    scene.person("a", &lines(40).replace("line 3\n", "three\n"));
    scene.person("moved", &lines(30).replace("line 3\n", "three\n"));
    chmod(&scene.workspace().join("moved"), 0o600);
    assert_eq!(
        scene.changes().files.iter().map(|change| change.kind).collect::<Vec<_>>(),
        [ChangeKind::Modified, ChangeKind::Renamed]
    );
    scene.apply(None).unwrap();
    assert_eq!(scene.text("a"), lines(40).replace("line 3\n", "three\n").replace("line 30\n", "thirty\n"));
    assert_eq!(scene.text("here"), lines(30).replace("line 3\n", "three\n"));
    assert_eq!(scene.tree()["here"].1, 0o600);
    assert!(!scene.workspace().join("moved").exists());
}

#[test]
fn c13_what_both_changed_is_refused_with_every_conflict_named_and_nothing_written() {
    let files = [
        ("lines", &*lines(9)),
        ("fine", "fine\n"),
        ("gone", "g\n"),
        ("kept", "k\n"),
        ("binary", "\0"),
        ("moved", &*lines(30)),
    ];
    let scene = Scene::plain(&files);
    scene.begin();
    scene.agent("lines", &lines(9).replace("line 4\n", "theirs\n"));
    scene.agent("fine", "changed\n");
    scene.agent("gone", "changed\n");
    scene.agent_removes("kept");
    scene.agent("binary", "\0theirs");
    scene.agent("both", "theirs\n");
    fs::rename(scene.path("checkout").join("moved"), scene.path("checkout").join("taken")).unwrap();
    scene.agent("file/below", "theirs\n");
    scene.person("lines", &lines(9).replace("line 4\n", "ours\n"));
    fs::remove_file(scene.workspace().join("gone")).unwrap();
    scene.person("kept", "ours\n");
    scene.person("binary", "\0ours");
    scene.person("both", "ours\n");
    scene.person("taken", "ours\n");
    scene.person("file", "ours\n");
    let error = refused(&scene, None);
    assert_eq!(error.code(), Code::Conflict);
    let ApplyError::Conflicts(conflicts) = error else { panic!("{error}") };
    let because = |name: &str, why| FileConflict { path: path(name), why };
    let there = Conflict { base: 4..5, ours: 4..5, theirs: 4..5 };
    assert_eq!(
        conflicts,
        [
            because("binary", Why::NotText),
            because("both", Why::Exists),
            because("file", Why::Exists),
            because("gone", Why::Deleted),
            because("kept", Why::ChangedBoth),
            because("lines", Why::Lines(vec![there])),
            because("taken", Why::Exists),
        ]
    );
    scene.apply(Some(&whole(&["fine"]))).unwrap();
}

#[test]
fn what_is_there_already_is_no_conflict_and_no_edit() {
    let scene = Scene::plain(&[("a", "a\n"), ("b", "b\n"), ("old", &lines(30))]);
    scene.begin();
    scene.agent("a", "same\n");
    scene.agent("new", "same\n");
    scene.agent_removes("b");
    fs::rename(scene.path("checkout").join("old"), scene.path("checkout").join("name")).unwrap();
    let changes = scene.changes();
    scene.person("a", "same\n");
    scene.person("new", "same\n");
    fs::remove_file(scene.workspace().join("b")).unwrap();
    fs::rename(scene.workspace().join("old"), scene.workspace().join("name")).unwrap();
    assert_eq!(scene.plan(&changes, None).unwrap().edits, []);
    scene.apply(None).unwrap();
}

#[test]
fn names_that_change_places_do() {
    let (one, other) = (lines(30), lines(60).replace("line", "other"));
    let scene = Scene::plain(&[("a", &one), ("b", &other)]);
    scene.begin();
    let at = |name| scene.path("checkout").join(name);
    fs::rename(at("a"), at("c")).unwrap();
    fs::rename(at("b"), at("a")).unwrap();
    fs::rename(at("c"), at("b")).unwrap();
    let before = scene.tree();
    scene.apply(None).unwrap();
    assert_eq!((scene.text("a"), scene.text("b")), (other, one));
    scene.undo().unwrap();
    assert_eq!(scene.tree(), before);
}

#[test]
fn c13_a_checkout_that_changed_after_it_was_looked_at_is_refused() {
    let changed = |error: ApplyError, name: &str| {
        assert_eq!(error.code(), Code::Conflict);
        assert!(matches!(error, ApplyError::ContentChanged { path: found } if found == path(name)));
    };
    let scene = Scene::plain(&[("a", "a\n"), ("removed", "r\n"), ("old", &lines(30)), ("other", "o\n")]);
    scene.begin();
    scene.agent("a", "approved\n");
    scene.agent_removes("removed");
    fs::rename(scene.path("checkout").join("old"), scene.path("checkout").join("new")).unwrap();
    let approved = scene.changes();
    scene.agent("other", "not looked at\n");
    scene.plan(&approved, None).unwrap();
    scene.agent("a", "not approved\n");
    changed(scene.plan(&approved, Some(&whole(&["a"]))).unwrap_err(), "a");
    scene.agent("removed", "back\n");
    changed(scene.plan(&approved, Some(&whole(&["removed"]))).unwrap_err(), "removed");
    scene.agent("old", "back\n");
    changed(scene.plan(&approved, Some(&whole(&["new"]))).unwrap_err(), "old");
    scene.agent("a", "approved\n");
    chmod(&scene.path("checkout").join("a"), 0o755);
    changed(scene.plan(&approved, Some(&whole(&["a"]))).unwrap_err(), "a");
    scene.agent_removes("a");
    symlink("/etc/passwd", scene.path("checkout").join("a")).unwrap();
    changed(scene.plan(&approved, Some(&whole(&["a"]))).unwrap_err(), "a");
}

#[test]
fn c13_a_file_that_the_person_changed_after_the_plan_is_refused_before_anything_is_written() {
    for (name, act) in [
        ("changed", (|root| put(&root.join("changed"), b"mine")) as fn(&std::path::Path)),
        ("mode", |root| chmod(&root.join("mode"), 0o600)),
        ("deep/er/removed", |root| fs::remove_file(root.join("deep/er/removed")).unwrap()),
        ("new/one", |root| put(&root.join("new/one"), b"mine")),
        ("link", |root| {
            fs::remove_file(root.join("link")).unwrap();
            symlink("elsewhere", root.join("link")).unwrap();
        }),
    ] {
        let scene = scene::everything();
        act(&scene.workspace());
        let before = scene.tree();
        let error = carry_out(&scene.path("journal"), &scene.root(), &scene::GO, &nothing).unwrap_err();
        assert!(
            matches!(&error, ApplyError::ContentChanged { path: found } if *found == path(name)),
            "{name}: {error}"
        );
        assert_eq!(scene.tree(), before);
    }
}

/// Stopped at every step in turn: before the last file is in place nothing of it is left, from then on all of it is there.
#[test]
fn c02_what_is_stopped_while_it_is_applied_is_taken_back_whole_unless_all_of_it_is_in_place() {
    let (mut taken_back, mut applied) = (0, 0);
    for step in 0.. {
        let scene = scene::everything();
        let before = scene.tree();
        let (stop, left, placed) = (AtomicBool::new(step == 0), Cell::new(step), Cell::new(false));
        let carried = carry_out(&scene.path("journal"), &scene.root(), &stop, &|at| {
            placed.set(placed.get() || at == "all placed");
            left.set(left.get() - 1);
            if left.get() == 0 {
                stop.store(true, Ordering::Relaxed);
            }
        });
        match carried {
            Err(ApplyError::Checkout(CheckoutError::Stopped)) => {
                assert_eq!(scene.tree(), before, "stopped at step {step}");
                assert!(!placed.get());
                taken_back += 1;
            }
            carried => {
                carried.unwrap();
                assert_ne!(scene.tree(), before);
                applied += 1;
            }
        }
        if left.get() > 0 {
            break;
        }
    }
    assert!(taken_back > 20 && applied > 1, "{taken_back} taken back, {applied} applied");
}

#[test]
fn c13_a_file_that_the_person_changed_between_plan_and_staging_is_refused() {
    let scene = Scene::plain(&[("a", "a\n")]);
    scene.begin();
    scene.agent("a", "theirs\n");
    let plan = scene.plan(&scene.changes(), None).unwrap();
    scene.person("a", "ours\n");
    let error = plan.stage(&scene.path("journal"), &scene.root()).unwrap_err();
    assert!(matches!(error, ApplyError::ContentChanged { .. }), "{error}");
}

#[test]
fn c15_a_link_that_was_put_in_the_way_is_refused_and_nothing_is_written_through_it() {
    let scene = Scene::plain(&[("dir/a", "a\n"), ("b", "b\n")]);
    let outside = scene.path("outside");
    put(&outside.join("a"), b"a\n");
    scene.begin();
    scene.agent("dir/a", "changed\n");
    scene.agent("b", "changed\n");
    let changes = scene.changes();
    let plan = scene.plan(&changes, None).unwrap();
    plan.stage(&scene.path("journal"), &scene.root()).unwrap();
    let swap = || {
        fs::rename(scene.workspace().join("dir"), scene.path("away")).unwrap();
        symlink(&outside, scene.workspace().join("dir")).unwrap();
    };
    // While it is being applied.
    let error = carry_out(&scene.path("journal"), &scene.root(), &scene::GO, &|at| {
        if at == "drafts durable" {
            swap();
        }
    })
    .unwrap_err();
    assert!(matches!(&error, ApplyError::Torn { paths } if *paths == [path("dir/a")]), "{error}");
    assert_eq!(
        (scene.text("b"), fs::read_to_string(outside.join("a")).unwrap()),
        ("b\n".into(), "a\n".into())
    );
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    // And before.
    let error = refused(&scene, None);
    assert!(matches!(error, ApplyError::Checkout(CheckoutError::Escapes { .. })), "{error}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}

#[test]
fn c15_a_link_of_the_agents_is_brought_as_a_link_and_never_followed() {
    let scene = Scene::plain(&[("a", "a\n")]);
    put(&scene.path("secret"), b"private\n");
    scene.begin();
    scene.agent_removes("a");
    symlink(scene.path("secret"), scene.path("checkout").join("a")).unwrap();
    scene.apply(None).unwrap();
    assert!(fs::symlink_metadata(scene.workspace().join("a")).unwrap().is_symlink());
    assert_eq!(fs::read(scene.path("secret")).unwrap(), b"private\n");
    scene.undo().unwrap();
    assert_eq!(scene.text("a"), "a\n");
}

#[test]
fn c13_a_placeholder_that_comes_with_a_change_is_refused_and_one_of_the_persons_own_is_not() {
    let with = |text: &str| text.replace("TOKEN", std::str::from_utf8(PLACEHOLDER).unwrap());
    let scene = Scene::plain(&[("own", &with("a\nb\nTOKEN\nc\n")), ("bad", &lines(40)), ("link", "l")]);
    scene.begin();
    scene.agent("own", &with("A\nb\nTOKEN\nc\n"));
    scene.apply(None).unwrap();
    fs::remove_dir_all(scene.path("journal")).unwrap();
    scene.agent("bad", &with(&lines(40).replace("line 3\n", "three\n").replace("line 30\n", "TOKEN\n")));
    let error = refused(&scene, None);
    assert_eq!(error.code(), Code::RedactedContent);
    assert!(matches!(error, ApplyError::Placeholder { path: found } if found == path("bad")));
    scene.apply(Some(&hunks_of("bad", [0]))).unwrap();
    for (name, text) in [("new", "key=TOKEN"), ("own", "TOKEN\nA\nb\nTOKEN\nc\n"), ("bin", "\0TOKEN")] {
        scene.agent(name, &with(text));
        assert!(matches!(refused(&scene, Some(&whole(&[name]))), ApplyError::Placeholder { .. }), "{name}");
    }
}

#[test]
fn c11_what_is_protected_counts_only_where_it_is_named_and_git_never() {
    let scene = Scene::plain(&[("runyard.toml", "mine\n"), ("plain", "p\n"), (".mcp.json", &lines(30))]);
    scene.begin();
    scene.agent("runyard.toml", "theirs\n");
    scene.agent("plain", "theirs\n");
    fs::rename(scene.path("checkout").join(".mcp.json"), scene.path("checkout").join("harmless")).unwrap();
    let done = scene.apply(None).unwrap();
    assert_eq!(done.paths, [path("plain")]);
    fs::remove_dir_all(scene.path("journal")).unwrap();
    scene.apply(Some(&whole(&["runyard.toml"]))).unwrap();
    assert_eq!(scene.text("runyard.toml"), "theirs\n");

    let mut changes = scene.changes();
    for name in [".git/hooks/pre-commit", "sub/.GIT/config"] {
        changes.files[0].path = path(name);
        changes.files[0].id = path(name).id();
        let error = scene.plan(&changes, Some(&whole(&[name]))).unwrap_err();
        assert_eq!(error.code(), Code::PermissionDenied);
        assert!(matches!(error, ApplyError::Protected { .. }), "{error}");
    }
}

#[test]
fn what_is_chosen_has_to_be_there() {
    let scene = Scene::plain(&[("a", "a\n"), ("binary", "\0")]);
    scene.begin();
    scene.agent("a", "b\n");
    scene.agent("binary", "\0\0");
    let error = refused(&scene, Some(&whole(&["nothing"])));
    assert!(matches!(&error, ApplyError::Unknown { .. }) && error.code() == Code::NotFound);
    for (name, hunk) in [("a", 1), ("binary", 0)] {
        let error = refused(&scene, Some(&hunks_of(name, [hunk])));
        assert!(matches!(&error, ApplyError::UnknownHunk { hunk: found, .. } if *found == hunk), "{error}");
    }
}

#[test]
fn more_than_the_limit_is_refused() {
    let scene = Scene::plain(&[("a", "a\n"), ("b", "b\n")]);
    scene.begin();
    scene.agent("a", "changed\n");
    scene.agent("b", "changed\n");
    let changes = scene.changes();
    let usual = ApplyLimits::default();
    for limits in [ApplyLimits { paths_max: 1, ..usual }, ApplyLimits { bytes_max: 15, ..usual }] {
        let error =
            scene.with_sides(|sides| plan(&changes, None, sides, &is_placeholder, &limits)).unwrap_err();
        assert!(matches!(error, ApplyError::TooMuch { .. }), "{error}");
    }
    let one = ApplyLimits { file_bytes_max: 7, ..usual };
    let error = scene.with_sides(|sides| plan(&changes, None, sides, &is_placeholder, &one)).unwrap_err();
    assert!(matches!(error, ApplyError::Checkout(CheckoutError::FileTooLarge { .. })), "{error}");
}

/// What happens to one line.
#[derive(Clone, Copy, Debug)]
enum Act {
    Replace,
    Insert,
    Remove,
}

/// Lines of a text, of which some are changed: every tenth by the agent or not, and the fifth after it by the person or not.
fn text(acts: &[Option<(Act, &str)>]) -> String {
    let mut text = String::new();
    for (number, act) in acts.iter().enumerate() {
        match act {
            Some((Act::Replace, by)) => text.push_str(&format!("{by} replaced {number}\n")),
            Some((Act::Insert, by)) => text.push_str(&format!("{by} inserted {number}\nline {number}\n")),
            Some((Act::Remove, _)) => {}
            None => text.push_str(&format!("line {number}\n")),
        }
    }
    text
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![Just(Act::Replace), Just(Act::Insert), Just(Act::Remove)]
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn exactly_the_chosen_hunks_are_applied_beside_the_persons_own_changes_and_undone_byte_for_byte(
        agent in prop::collection::vec((act(), any::<bool>()), 1..6),
        person in prop::collection::vec(prop::option::of(act()), 6),
        permissions in prop::sample::select(vec![0o644, 0o600, 0o755, 0o664]),
        ends in any::<bool>(),
    ) {
        let of = |agents: &dyn Fn(bool) -> bool, persons: bool| {
            let mut acts = vec![None; 70];
            for (number, (act, chosen)) in agent.iter().enumerate() {
                acts[number * 10 + 2] = agents(*chosen).then_some((*act, "agent"));
            }
            for (number, act) in person.iter().enumerate().filter(|_| persons) {
                acts[number * 10 + 7] = act.map(|act| (act, "person"));
            }
            let text = text(&acts);
            if ends { text } else { text.trim_end().to_owned() }
        };
        let scene = Scene::plain(&[("a", &of(&|_| false, false))]);
        scene.begin();
        scene.agent("a", &of(&|_| true, false));
        scene.person("a", &of(&|_| false, true));
        chmod(&scene.workspace().join("a"), permissions);
        let before = scene.tree();
        let chosen = (0_u32..).zip(&agent).filter(|(_, (_, chosen))| *chosen).map(|(number, _)| number);
        // The one mode that the checkout knows is whether it can be executed.
        scene.apply(Some(&hunks_of("a", chosen))).unwrap();
        prop_assert_eq!(scene.text("a"), of(&|chosen| chosen, true));
        scene.undo().unwrap();
        prop_assert_eq!(scene.tree(), before);
    }
}
