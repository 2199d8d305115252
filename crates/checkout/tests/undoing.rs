//! Taking back what was applied, and what a kill, a full disk or somebody else's write in the middle of it leaves.
//!
//! clause: J05
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod scene;

use std::cell::Cell;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use runyard_checkout::Root;
use runyard_checkout::apply::{self, ApplyError, ApplyLimits, FileConflict, Settled, Why, carry_out, settle};
use runyard_domain::Code;
use rustix::process::{Signal, getpid, kill_process};
use scene::{Scene, Tree, chmod, copy, everything, nothing, path, put, tree, whole};

/// So many steps there are at most in what is killed at each of them.
const STEPS_MAX: u32 = 400;
/// Tells the child what to do, where, and at which step to die: the act, the folder and the number.
const PLAY: &str = "RUNYARD_CHECKOUT_PLAY";

/// A workspace and its journals, as copies that can be spoiled.
struct Stage {
    folder: PathBuf,
}

impl Stage {
    fn of(scene: &Scene, name: &str) -> Stage {
        let folder = scene.stages().join(name);
        for part in ["workspace", "journal", "undo"] {
            if scene.path(part).exists() {
                copy(&scene.path(part), &folder.join(part));
            }
        }
        Stage { folder }
    }

    fn workspace(&self) -> Root {
        Root::open(&self.folder.join("workspace")).unwrap()
    }

    fn tree(&self) -> Tree {
        tree(&self.folder.join("workspace"))
    }

    fn act(&self, act: &str, reached: &dyn Fn(&'static str)) -> Result<(), ApplyError> {
        let (journal, undo) = (self.folder.join("journal"), self.folder.join("undo"));
        match act {
            "apply" => carry_out(&journal, &self.workspace(), &scene::GO, reached).map(drop),
            "undo" => {
                apply::undo(&journal, &undo, &self.workspace(), &ApplyLimits::default(), reached).map(drop)
            }
            "settle" => settle(&journal, &self.workspace(), reached).map(drop),
            other => panic!("{other}"),
        }
    }

    /// Another process does it, and is killed at the step of that number. Says whether it was.
    fn killed_at(&self, act: &str, step: u32) -> bool {
        let play = format!("{act}\n{}\n{step}", self.folder.display());
        let mut child = Command::new(std::env::current_exe().unwrap());
        let status = child.args(["--exact", "child", "--nocapture"]).env(PLAY, play).output().unwrap().status;
        assert!(status.success() || status.signal() == Some(9), "{status}");
        status.signal() == Some(9)
    }
}

#[test]
fn child() {
    let Ok(play) = std::env::var(PLAY) else { return };
    let [act, folder, step] = play.split('\n').collect::<Vec<_>>()[..] else { panic!("{play}") };
    let left = Cell::new(step.parse::<u32>().unwrap());
    let done = Stage { folder: folder.into() }.act(act, &|_| {
        left.set(left.get().saturating_sub(1));
        if left.get() == 0 {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
    });
    if let Err(error) = done {
        fs::write(Path::new(folder).join("error"), format!("{}: {error}", error.code().as_str())).unwrap();
    }
}

/// What is there before and after an act.
fn ends(scene: &Scene, act: &str) -> (Tree, Tree) {
    let stage = Stage::of(scene, "whole");
    let before = stage.tree();
    stage.act(act, &nothing).unwrap();
    (before, stage.tree())
}

/// Kills an act at every step of it; what is found then is all before or all after, and is said to be.
fn survives_every_kill(scene: &Scene, act: &str) {
    let (before, after) = ends(scene, act);
    assert_ne!(before, after);
    let journal = if act == "undo" { "undo" } else { "journal" };
    let (mut applied, mut not_applied) = (0, 0);
    for step in 1..STEPS_MAX {
        let stage = Stage::of(scene, &step.to_string());
        if !stage.killed_at(act, step) {
            assert!(applied > 2 && not_applied > 10, "{applied} {not_applied}");
            return;
        }
        let found = settle(&stage.folder.join(journal), &stage.workspace(), &nothing).unwrap();
        match found {
            Settled::Applied => {
                applied += 1;
                assert_eq!(stage.tree(), after, "killed at step {step}");
            }
            Settled::NotApplied => {
                not_applied += 1;
                assert_eq!(stage.tree(), before, "killed at step {step}");
            }
            Settled::Torn { paths } => panic!("killed at step {step}: {paths:?}"),
        }
        // The answer stays the same, and there is a way on from it.
        assert_eq!(settle(&stage.folder.join(journal), &stage.workspace(), &nothing).unwrap(), found);
        stage.act(act, &nothing).unwrap();
        assert_eq!(stage.tree(), after, "killed at step {step}, and done again");
        fs::remove_dir_all(&stage.folder).unwrap();
    }
    panic!("it has more steps than {STEPS_MAX}");
}

#[test]
fn j05_a_kill_at_every_step_of_applying_leaves_all_or_nothing_and_says_which() {
    survives_every_kill(&everything(), "apply");
}

#[test]
fn j05_a_kill_at_every_step_of_undoing_leaves_all_or_nothing_and_says_which() {
    let scene = everything();
    carry_out(&scene.path("journal"), &scene.root(), &scene::GO, &nothing).unwrap();
    survives_every_kill(&scene, "undo");
}

#[test]
fn j05_a_kill_while_a_killed_one_is_settled_changes_nothing_about_the_end() {
    let scene = everything();
    let (before, after) = ends(&scene, "apply");
    let steps = Cell::new(0);
    Stage::of(&scene, "counted").act("apply", &|_| steps.set(steps.get() + 1)).unwrap();
    // In the middle of putting things in place, and at the end of it.
    for first in [steps.get() / 2, steps.get() - 12, steps.get() - 3] {
        for second in 1..STEPS_MAX {
            let stage = Stage::of(&scene, &format!("{first}-{second}"));
            assert!(stage.killed_at("apply", first));
            let again = stage.killed_at("settle", second);
            match settle(&stage.folder.join("journal"), &stage.workspace(), &nothing).unwrap() {
                Settled::Applied => assert_eq!(stage.tree(), after, "{first} {second}"),
                Settled::NotApplied => assert_eq!(stage.tree(), before, "{first} {second}"),
                Settled::Torn { paths } => panic!("{first} {second}: {paths:?}"),
            }
            fs::remove_dir_all(&stage.folder).unwrap();
            if !again {
                break;
            }
        }
    }
}

/// Puts a file at a path as an editor does: beside it, then over it. Nothing where a directory is in the way.
fn third_party(workspace: &Path, name: &str, text: &str) -> bool {
    let (target, beside) = (workspace.join(name), workspace.join("third party"));
    let written = fs::create_dir_all(target.parent().unwrap())
        .and_then(|()| fs::write(&beside, text))
        .and_then(|()| fs::rename(&beside, &target));
    let _ = fs::remove_file(&beside);
    written.is_ok()
}

#[test]
fn j05_what_somebody_else_writes_at_any_step_is_never_overwritten() {
    let scene = everything();
    let (before, after) = ends(&scene, "apply");
    let steps = Cell::new(0);
    Stage::of(&scene, "counted").act("apply", &|_| steps.set(steps.get() + 1)).unwrap();
    for name in ["changed", "link", "new/one", "deep/er/removed", "becomes a directory", "becomes a file"] {
        for step in 1..=steps.get() {
            let stage = Stage::of(&scene, &format!("{name} {step}").replace('/', " "));
            let (at, written) = (Cell::new(0), Cell::new(false));
            let done = stage.act("apply", &|_| {
                at.set(at.get() + 1);
                if at.get() == step {
                    written.set(third_party(&stage.folder.join("workspace"), name, "somebody else's\n"));
                }
            });
            if !written.get() {
                continue;
            }
            let mut found = stage.tree();
            let theirs = found.remove(name).unwrap_or_else(|| panic!("{name} at {step}: gone; {done:?}"));
            assert_eq!(theirs.2, "somebody else's\n", "{name} at {step}: {done:?}");
            let expected = match &done {
                Ok(()) => &after,
                Err(ApplyError::Torn { paths }) => {
                    assert!(
                        paths.iter().any(|torn| related(torn.as_path(), Path::new(name))),
                        "{name} at {step}: {paths:?}"
                    );
                    &before
                }
                Err(error) => panic!("{name} at {step}: {error}"),
            };
            // Directories on the way to what they wrote, and what cannot be beneath a file of theirs, are theirs too.
            let others = |tree: &Tree| -> Tree {
                // What was in a directory of which they made a file cannot go back, and stays beside it.
                let is_kept = |path: &str| name == "becomes a file" && path.starts_with(".runyard-draft-");
                let is_other = |path: &String| !related(Path::new(path), Path::new(name)) && !is_kept(path);
                tree.clone().into_iter().filter(|(path, _)| is_other(path)).collect()
            };
            assert_eq!(others(&found), others(expected), "{name} at {step}: {done:?}");
            fs::remove_dir_all(&stage.folder).unwrap();
        }
    }
}

/// Whether one lies beneath the other.
fn related(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

#[test]
fn what_was_applied_is_taken_back_byte_for_byte_with_permissions_and_directories() {
    let scene = everything();
    let before = scene.tree();
    carry_out(&scene.path("journal"), &scene.root(), &scene::GO, &nothing).unwrap();
    let after = scene.tree();
    assert_ne!(after, before);
    scene.undo().unwrap();
    assert_eq!(scene.tree(), before);
    // Once more is no harm, and taking back the taking back is applying again.
    scene.undo().unwrap();
    apply::undo(&scene.path("undo"), &scene.path("redo"), &scene.root(), &ApplyLimits::default(), &nothing)
        .unwrap();
    assert_eq!(scene.tree(), after);
}

#[test]
fn a_directory_that_the_person_filled_or_emptied_meanwhile_is_theirs() {
    let scene = Scene::plain(&[("kept/a", "a\n"), ("going/b", "b\n")]);
    fs::create_dir(scene.workspace().join("empty")).unwrap();
    scene.begin();
    scene.agent_removes("going/b");
    scene.agent("made/c", "c\n");
    scene.agent("empty/d", "d\n");
    scene.apply(None).unwrap();
    assert!(!scene.workspace().join("going").exists());
    scene.person("made/mine", "mine\n");
    scene.undo().unwrap();
    let names: Vec<String> = scene.tree().into_keys().collect();
    assert_eq!(names, ["empty", "going", "going/b", "kept", "kept/a", "made", "made/mine"]);
}

#[test]
fn what_was_changed_since_keeps_its_changes_when_it_is_taken_back() {
    let lines = |count: u32| (0..count).map(|line| format!("line {line}\n")).collect::<String>();
    let scene = Scene::plain(&[("a", &lines(40)), ("mode", "m\n")]);
    scene.begin();
    scene.agent("a", &lines(40).replace("line 5\n", "five\n"));
    chmod(&scene.path("checkout").join("mode"), 0o755);
    scene.apply(None).unwrap();
    scene.person("a", &lines(40).replace("line 5\n", "five\n").replace("line 30\n", "thirty\n"));
    chmod(&scene.workspace().join("mode"), 0o711);
    scene.undo().unwrap();
    assert_eq!(scene.text("a"), lines(40).replace("line 30\n", "thirty\n"));
    assert_eq!(scene.tree()["mode"].1, 0o600);
}

#[test]
fn what_cannot_be_taken_back_is_named_and_nothing_is_written() {
    let scene = Scene::plain(&[("a", "1\n2\n3\n"), ("b", "b\n"), ("gone", "g\n"), ("fine", "f\n")]);
    scene.begin();
    scene.agent("a", "1\ntwo\n3\n");
    scene.agent("new", "n\n");
    scene.agent("fine", "fine\n");
    scene.agent("b", "changed\n");
    scene.agent_removes("gone");
    scene.apply(None).unwrap();
    scene.person("a", "1\nzwei\n3\n");
    scene.person("new", "mine\n");
    scene.person("gone", "mine\n");
    fs::remove_file(scene.workspace().join("b")).unwrap();
    let before = scene.tree();
    let error = scene.undo().unwrap_err();
    assert_eq!((error.code(), scene.tree()), (Code::Conflict, before));
    let ApplyError::Conflicts(conflicts) = error else { panic!("{error}") };
    let because: Vec<(String, bool)> = conflicts
        .iter()
        .map(|FileConflict { path, why }| (path.to_string(), matches!(why, Why::Lines(_))))
        .collect();
    let expected = [("a", true), ("b", false), ("gone", false), ("new", false)];
    assert_eq!(because, expected.map(|(name, lines)| (name.to_owned(), lines)));
}

#[test]
fn only_what_was_applied_can_be_taken_back() {
    let scene = everything();
    let before = scene.tree();
    assert!(matches!(scene.undo().unwrap_err(), ApplyError::NotApplied));
    assert_eq!(
        (scene.settle("journal"), scene.settle("no such journal")),
        (Settled::NotApplied, Settled::NotApplied)
    );
    assert_eq!(scene.tree(), before);
    carry_out(&scene.path("journal"), &scene.root(), &scene::GO, &nothing).unwrap();
    let after = scene.tree();
    assert_eq!(scene.settle("journal"), Settled::Applied);
    carry_out(&scene.path("journal"), &scene.root(), &scene::GO, &nothing).unwrap();
    assert_eq!(scene.tree(), after);
}

#[test]
fn what_was_staged_and_not_carried_out_is_staged_anew() {
    let scene = Scene::plain(&[("a", "a\n"), ("b", "b\n")]);
    scene.begin();
    scene.agent("a", "changed\n");
    scene.agent("b", "changed\n");
    let changes = scene.changes();
    scene.plan(&changes, None).unwrap().stage(&scene.path("journal"), &scene.root()).unwrap();
    let done = scene.apply(Some(&whole(&["b"]))).unwrap();
    assert_eq!(
        (done.paths, scene.text("a"), scene.text("b")),
        (vec![path("b")], "a\n".into(), "changed\n".into())
    );
    assert!(
        matches!(scene.apply(None), Err(ApplyError::Checkout(_))),
        "what was carried out is needed to take it back"
    );
    scene.undo().unwrap();
    assert_eq!(scene.text("b"), "b\n");
}

#[test]
fn a_journal_that_was_damaged_is_refused_and_nothing_is_written() {
    let scene = everything();
    let before = scene.tree();
    let contents = scene.path("journal").join("contents");
    let mut bytes = fs::read(&contents).unwrap();
    bytes.iter_mut().for_each(|byte| *byte ^= 1);
    fs::write(&contents, bytes).unwrap();
    carry_out(&scene.path("journal"), &scene.root(), &scene::GO, &nothing).unwrap_err();
    assert_eq!(scene.tree(), before);
}

/// A child may write no file of more than so many blocks: what a full disk says, at every write that is larger.
#[test]
fn a_disk_that_takes_no_more_is_an_error_and_everything_is_as_it_was() {
    let scene = Scene::plain(&[("a", "a\n"), ("large", "l\n"), ("z", "z\n")]);
    scene.begin();
    scene.agent("a", "changed\n");
    scene.agent("large", &"0123456789abcdef".repeat(1 << 16));
    scene.agent("z", "changed\n");
    let plan = scene.plan(&scene.changes(), None).unwrap();
    plan.stage(&scene.path("journal"), &scene.root()).unwrap();
    let before = scene.tree();
    let shell = "trap '' XFSZ; ulimit -f 64; exec \"$0\" --exact child --nocapture";
    let play = format!("apply\n{}\n{STEPS_MAX}", scene.folder.path().display());
    let status =
        Command::new("sh").args(["-c", shell]).arg(std::env::current_exe().unwrap()).env(PLAY, play).output();
    assert!(status.unwrap().status.success());
    let said = fs::read_to_string(scene.path("error")).unwrap();
    assert!(said.starts_with("storage.io: cannot write"), "{said}");
    assert_eq!(scene.tree(), before);
    assert_eq!(scene.settle("journal"), Settled::NotApplied);
    carry_out(&scene.path("journal"), &scene.root(), &scene::GO, &nothing).unwrap();
    assert_eq!(scene.text("z"), "changed\n");
}

/// Lets go of the right to write where permissions say no, which only root has, and only of this thread.
fn as_anybody<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let acting = scope.spawn(|| {
            let mut sets = rustix::thread::capabilities(None).unwrap();
            sets.effective.remove(rustix::thread::CapabilitySet::DAC_OVERRIDE);
            rustix::thread::set_capabilities(None, sets).unwrap();
            act()
        });
        acting.join().unwrap()
    })
}

#[test]
fn a_directory_that_may_not_be_written_to_is_an_error_and_everything_is_as_it_was() {
    let scene = Scene::plain(&[("a", "a\n"), ("closed/b", "b\n"), ("z", "z\n")]);
    scene.begin();
    for name in ["a", "closed/b", "z"] {
        scene.agent(name, "changed\n");
    }
    let plan = scene.plan(&scene.changes(), None).unwrap();
    plan.stage(&scene.path("journal"), &scene.root()).unwrap();
    chmod(&scene.workspace().join("closed"), 0o555);
    let before = scene.tree();
    let error =
        as_anybody(|| carry_out(&scene.path("journal"), &scene.root(), &scene::GO, &nothing)).unwrap_err();
    assert!(matches!(&error, ApplyError::Checkout(error) if error.is_denied()), "{error}");
    assert_eq!(scene.tree(), before);
    // It becomes so only after the drafts are there.
    chmod(&scene.workspace().join("closed"), 0o755);
    let close = |at| {
        if at == "drafts durable" {
            chmod(&scene.workspace().join("closed"), 0o555);
        }
    };
    let stopped = as_anybody(|| {
        let error = carry_out(&scene.path("journal"), &scene.root(), &scene::GO, &close).unwrap_err();
        chmod(&scene.workspace().join("closed"), 0o755);
        error
    });
    assert!(matches!(&stopped, ApplyError::Unsettled { .. }), "{stopped}");
    assert_eq!(stopped.code(), Code::OutcomeUnknown);
    assert_eq!(scene.settle("journal"), Settled::NotApplied);
    chmod(&scene.workspace().join("closed"), 0o555);
    assert_eq!(scene.tree(), before);
}

#[test]
fn where_the_old_file_is_no_longer_beside_the_new_one_it_comes_from_the_journal() {
    let scene = Scene::plain(&[("a", "a\n"), ("b", "b\n"), ("c", "c\n")]);
    scene.begin();
    scene.agent("a", "changed\n");
    scene.agent_removes("b");
    scene.agent("c", "changed\n");
    let plan = scene.plan(&scene.changes(), None).unwrap();
    plan.stage(&scene.path("journal"), &scene.root()).unwrap();
    chmod(&scene.workspace().join("a"), 0o644);
    let before = scene.tree();
    let placed = Cell::new(0);
    // As on a file system that cannot trade two names: what was replaced is gone. Then something goes wrong.
    let error = carry_out(&scene.path("journal"), &scene.root(), &scene::GO, &|at| {
        if at == "placed" {
            placed.set(placed.get() + 1);
        }
        if at == "placed" && placed.get() == 2 {
            for entry in fs::read_dir(scene.workspace()).unwrap().flatten() {
                let is_draft = entry.file_name().to_string_lossy().starts_with(".runyard-draft-");
                if is_draft && fs::read_to_string(entry.path()).unwrap() != "changed\n" {
                    fs::remove_file(entry.path()).unwrap();
                }
            }
            put(&scene.workspace().join("c"), b"somebody else's\n");
        }
    })
    .unwrap_err();
    assert!(matches!(&error, ApplyError::Torn { paths } if *paths == [path("c")]), "{error}");
    let mut found = scene.tree();
    found.insert("c".to_owned(), before["c"].clone());
    assert_eq!(found, before);
    assert!(
        matches!(scene.apply(Some(&whole(&["a"]))), Err(ApplyError::Checkout(_))),
        "the journal is in use"
    );
}
