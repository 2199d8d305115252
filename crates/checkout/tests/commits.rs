//! Chosen changes as a branch or a commit of real repositories, clean and dirty, told by the real git.
//!
//! clause: C13
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod scene;

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use runyard_checkout::Root;
use runyard_checkout::apply::{ApplyError, ApplyLimits, Selection, Settled, Why};
use runyard_checkout::commit::{
    self, CommitPlan, Committed, Onto, Place, RepositoryError, Request, carry_out, settle,
};
use runyard_domain::Code;
use rustix::process::{Signal, getpid, kill_process};
use scene::{Scene, chmod, copy, git, hunks_of, is_placeholder, nothing, path, put, tree, whole};

static GO_ON: AtomicBool = AtomicBool::new(false);
const MESSAGE: &str = "What the agent did\n\nAnd why.\n";
/// So many steps there are at most in what is killed at each of them.
const STEPS_MAX: u32 = 400;
const PLAY: &str = "RUNYARD_CHECKOUT_PLAY";

fn branch(name: &str) -> Onto {
    Onto::Branch(name.to_owned())
}

/// Plans a commit in the workspace, or in a directory beneath it.
fn plan_at(scene: &Scene, onto: Onto, selection: Option<&Selection>) -> Result<CommitPlan, ApplyError> {
    let (workspace, root, journal) = (scene.workspace(), scene.root(), scene.path("commit"));
    let place = Place { path: &workspace, workspace: &root, stop: &GO_ON };
    let request = Request { place, journal: &journal, onto, message: MESSAGE };
    let changes = scene.changes();
    scene.with_sides(|sides| {
        commit::plan(&request, &changes, selection, sides, &is_placeholder, &ApplyLimits::default())
    })
}

fn stage(scene: &Scene, plan: &CommitPlan) -> Result<(), ApplyError> {
    let (workspace, root) = (scene.workspace(), scene.root());
    let place = Place { path: &workspace, workspace: &root, stop: &GO_ON };
    plan.stage(place, &scene.path("commit")).map(drop)
}

fn commit(scene: &Scene, onto: Onto, selection: Option<&Selection>) -> Result<Committed, ApplyError> {
    stage(scene, &plan_at(scene, onto, selection)?)?;
    Folder(scene.folder.path().to_owned()).act("commit", &nothing)
}

fn undo(scene: &Scene) -> Result<Committed, ApplyError> {
    Folder(scene.folder.path().to_owned()).act("undo", &nothing)
}

/// A workspace with the journals of its commit.
struct Folder(PathBuf);

impl Folder {
    fn act(&self, act: &str, reached: &dyn Fn(&'static str)) -> Result<Committed, ApplyError> {
        let (workspace, journal) = (self.0.join("workspace"), self.0.join("commit"));
        let root = Root::open(&workspace).unwrap();
        let place = Place { path: &workspace, workspace: &root, stop: &GO_ON };
        match act {
            "commit" => carry_out(place, &journal, reached),
            _ => commit::undo(place, &journal, &self.0.join("undo"), &ApplyLimits::default(), reached),
        }
    }

    fn settle(&self, journal: &str) -> Settled {
        let workspace = self.0.join("workspace");
        let root = Root::open(&workspace).unwrap();
        let place = Place { path: &workspace, workspace: &root, stop: &GO_ON };
        settle(place, &self.0.join(journal), &nothing).unwrap()
    }

    /// Everything that the real git tells, and the files.
    fn seen(&self) -> (String, scene::Tree) {
        let workspace = self.0.join("workspace");
        let told = [
            &["for-each-ref"][..],
            &["ls-files", "--stage"],
            &["status", "--porcelain"],
            &["symbolic-ref", "HEAD"],
            &["log", "--oneline", "HEAD", "--"],
        ];
        let told = told.map(|asked| git(&workspace, asked)).join("--\n");
        let locks = fs::read_dir(workspace.join(".git")).unwrap().flatten();
        let odd = locks.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let odd: Vec<String> = odd.filter(|name| name.contains("lock") || name.contains("runyard")).collect();
        assert_eq!(odd, [""; 0], "nothing is left in the repository");
        (told, tree(&workspace))
    }
}

fn refused(scene: &Scene, onto: Onto, selection: Option<&Selection>) -> RepositoryError {
    let before = (
        git(&scene.workspace(), &["for-each-ref"]),
        git(&scene.workspace(), &["status", "--porcelain"]),
        scene.tree(),
    );
    let error = commit(scene, onto, selection).unwrap_err();
    let after = (
        git(&scene.workspace(), &["for-each-ref"]),
        git(&scene.workspace(), &["status", "--porcelain"]),
        scene.tree(),
    );
    assert_eq!(after, before, "{error}");
    match error {
        ApplyError::Repository(error) => error,
        error => panic!("{error}"),
    }
}

#[test]
fn a_branch_holds_head_and_the_changes_and_nothing_of_the_persons_is_touched() {
    let scene =
        Scene::repository(&[("a", "1\n2\n3\n4\n5\n"), ("b", "b\n"), ("c/d", "d\n"), ("staged", "s\n")]);
    scene.person("a", "one\n2\n3\n4\n5\n");
    scene.person("staged", "staged\n");
    scene.git(&["add", "staged"]);
    scene.person("untracked", "mine\n");
    scene.begin();
    scene.agent("a", "one\n2\n3\n4\nfive\n");
    scene.agent_removes("c/d");
    scene.agent("new", "new\n");
    chmod(&scene.path("checkout").join("b"), 0o755);
    symlink("a", scene.path("checkout").join("link")).unwrap();
    let (status, files) = (scene.git(&["status", "--porcelain"]), scene.tree());
    let done = commit(&scene, branch("agent/work"), None).unwrap();
    assert_eq!(done.reference, "refs/heads/agent/work");
    assert_eq!((scene.git(&["status", "--porcelain"]), scene.tree()), (status, files));
    let shown = scene.git(&["show", "--format=%an %ae %cn|%s|%b|%P", "--raw", "--abbrev=4", "agent/work"]);
    let parent = scene.git(&["rev-parse", "main"]);
    let mut lines = shown.lines();
    assert_eq!(lines.next().unwrap(), "A Person person@example.com A Person|What the agent did|And why.");
    assert!(shown.contains(parent.trim()));
    let modes: Vec<String> = shown
        .lines()
        .filter(|line| line.starts_with(':'))
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            format!("{} {} {}", &words[0][1..], words[1], words[4..].join(" "))
        })
        .collect();
    assert_eq!(
        modes,
        [
            "100644 100644 M a",
            "100644 100755 M b",
            "100644 000000 D c/d",
            "000000 120000 A link",
            "000000 100644 A new"
        ]
    );
    // What the person changed and did not commit is not in it.
    assert_eq!(scene.git(&["show", "agent/work:a"]), "1\n2\n3\n4\nfive\n");
    assert_eq!(scene.git(&["show", "agent/work:staged"]), "s\n");
    scene.git(&["fsck", "--strict"]);
    undo(&scene).unwrap();
    assert_eq!(scene.git(&["branch", "--list"]), "* main\n");
}

#[test]
fn a_commit_on_head_is_applied_to_the_files_too_and_the_index_follows_for_its_paths_only() {
    let lines = |count: u32| (0..count).map(|line| format!("line {line}\n")).collect::<String>();
    let scene = Scene::repository(&[
        ("a", &lines(20)),
        ("b", &lines(20)),
        ("gone", "g\n"),
        ("other", "o\n"),
        ("old", &lines(40)),
    ]);
    scene.person("a", &lines(20).replace("line 2\n", "mine\n"));
    scene.person("b", &lines(20).replace("line 2\n", "staged\n"));
    scene.person("other", "staged\n");
    scene.git(&["add", "b", "other"]);
    scene.person("untracked", "mine\n");
    scene.begin();
    let checkout = scene.path("checkout");
    scene.agent("a", &lines(20).replace("line 2\n", "mine\n").replace("line 15\n", "theirs\n"));
    scene.agent("b", &lines(20).replace("line 2\n", "staged\n").replace("line 15\n", "theirs\n"));
    scene.agent_removes("gone");
    fs::rename(checkout.join("old"), checkout.join("moved")).unwrap();
    scene.agent("new", "new\n");
    let folder = Folder(scene.folder.path().to_owned());
    let before = folder.seen();
    let done = commit(&scene, Onto::Head, None).unwrap();
    assert_eq!(done.reference, "refs/heads/main");
    assert_eq!(scene.git(&["rev-parse", "HEAD"]).trim(), done.commit.as_str());
    assert_eq!(scene.git(&["status", "--porcelain"]), " M a\nM  b\nM  other\n?? untracked\n");
    assert_eq!(scene.git(&["show", "HEAD:a"]), lines(20).replace("line 15\n", "theirs\n"));
    assert_eq!(
        scene.git(&["show", ":b"]),
        lines(20).replace("line 2\n", "staged\n").replace("line 15\n", "theirs\n")
    );
    assert_eq!(scene.git(&["diff", "--cached", "--stat", "--", "b"]).lines().count(), 2);
    assert_eq!(scene.text("a"), lines(20).replace("line 2\n", "mine\n").replace("line 15\n", "theirs\n"));
    assert!(scene.git(&["log", "-1", "--format=%gs", "--walk-reflogs"]).starts_with("runyard"));
    scene.git(&["fsck", "--strict"]);
    undo(&scene).unwrap();
    assert_eq!(folder.seen(), before);
}

#[test]
fn only_what_was_chosen_is_committed() {
    let lines = |count: u32| (0..count).map(|line| format!("line {line}\n")).collect::<String>();
    let scene = Scene::repository(&[("a", &lines(40)), ("b", "b\n")]);
    scene.begin();
    scene.agent("a", &lines(40).replace("line 3\n", "three\n").replace("line 30\n", "thirty\n"));
    scene.agent("b", "changed\n");
    commit(&scene, branch("some"), Some(&hunks_of("a", [1]))).unwrap();
    assert_eq!(scene.git(&["show", "some:a"]), lines(40).replace("line 30\n", "thirty\n"));
    assert_eq!(scene.git(&["diff", "--name-only", "main", "some"]), "a\n");
}

#[test]
fn c13_what_is_described_names_the_place_the_parent_and_the_message() {
    let scene = Scene::repository(&[("a", "a\n"), ("b", "b\n")]);
    scene.begin();
    scene.agent("a", "changed\n");
    let described = |onto| plan_at(&scene, onto, None).unwrap().describe();
    let one = described(branch("one"));
    assert_eq!(one, described(branch("one")));
    assert_ne!(one, described(branch("other")));
    assert_ne!(one, described(Onto::Head));
    scene.git(&["commit", "--quiet", "--allow-empty", "--message", "more"]);
    assert_ne!(one, described(branch("one")));
}

#[test]
fn a_detached_head_moves_and_no_branch_does() {
    let scene = Scene::repository(&[("a", "a\n")]);
    scene.git(&["checkout", "--quiet", "--detach"]);
    scene.begin();
    scene.agent("a", "changed\n");
    let main = scene.git(&["rev-parse", "main"]);
    let done = commit(&scene, Onto::Head, None).unwrap();
    assert_eq!(done.reference, "HEAD");
    assert_eq!(
        (scene.git(&["rev-parse", "HEAD^"]), scene.git(&["rev-parse", "main"])),
        (main.clone(), main.clone())
    );
    assert_eq!(scene.git(&["status", "--porcelain"]), "");
    undo(&scene).unwrap();
    assert_eq!(scene.git(&["rev-parse", "HEAD"]), main);
    assert_eq!((scene.git(&["status", "--porcelain"]), scene.text("a")), (String::new(), "a\n".to_owned()));
}

#[test]
fn the_first_commit_of_all_can_be_made_and_taken_back() {
    let scene = Scene::plain(&[("mine", "m\n")]);
    scene.git(&["init", "--quiet", "--initial-branch=main"]);
    scene.git(&["config", "user.name", "A Person"]);
    scene.git(&["config", "user.email", "person@example.com"]);
    scene.begin();
    scene.agent("new", "new\n");
    let done = commit(&scene, Onto::Head, None).unwrap();
    assert_eq!(scene.git(&["rev-list", "--all"]).trim(), done.commit.as_str());
    assert_eq!(scene.git(&["status", "--porcelain"]), "?? mine\n");
    undo(&scene).unwrap();
    assert_eq!(
        (scene.git(&["for-each-ref"]), scene.git(&["status", "--porcelain"])),
        (String::new(), "?? mine\n".into())
    );
}

#[test]
fn a_branch_that_is_there_or_a_name_that_is_none_is_refused() {
    let scene = Scene::repository(&[("a", "a\n")]);
    scene.git(&["branch", "taken"]);
    scene.begin();
    scene.agent("a", "changed\n");
    assert!(matches!(refused(&scene, branch("taken"), None), RepositoryError::BranchExists { .. }));
    // CVE-2025-68144 among them: a name that git takes for an option.
    for name in
        ["", "-f", "--output=/tmp/x", "--upload-pack=touch x", "a..b", "a b", "HEAD", "a.lock", "@{-1}"]
    {
        let error = refused(&scene, branch(name), None);
        assert!(matches!(error, RepositoryError::BadBranch { .. }), "{name:?}: {error}");
    }
    // And one that came between plan and carrying out.
    stage(&scene, &plan_at(&scene, branch("late"), None).unwrap()).unwrap();
    scene.git(&["branch", "late"]);
    let error = Folder(scene.folder.path().to_owned()).act("commit", &nothing).unwrap_err();
    assert!(matches!(error, ApplyError::Repository(RepositoryError::Moved { .. })), "{error}");
    assert_eq!(scene.git(&["rev-parse", "late"]), scene.git(&["rev-parse", "main"]));
}

#[test]
fn c13_a_branch_that_moved_meanwhile_is_refused_and_the_files_are_as_they_were() {
    let move_on = |scene: &Scene| {
        scene.git(&["commit", "--quiet", "--allow-empty", "--message", "meanwhile"]);
    };
    for late in [false, true] {
        let scene = Scene::repository(&[("a", "a\n"), ("b", "b\n")]);
        scene.begin();
        scene.agent("a", "changed\n");
        stage(&scene, &plan_at(&scene, Onto::Head, None).unwrap()).unwrap();
        let folder = Folder(scene.folder.path().to_owned());
        if !late {
            move_on(&scene);
        }
        let files = scene.tree();
        let error = folder
            .act("commit", &|at| {
                if late && at == "files applied" {
                    move_on(&scene);
                }
            })
            .unwrap_err();
        assert!(matches!(&error, ApplyError::Repository(RepositoryError::Moved { .. })), "{error}");
        assert_eq!(error.code(), Code::Conflict);
        assert_eq!((scene.tree(), scene.git(&["status", "--porcelain"])), (files, String::new()));
        assert_eq!(scene.git(&["log", "-1", "--format=%s"]), "meanwhile\n");
        assert_eq!(folder.settle("commit"), Settled::NotApplied);
        folder.seen();
    }
    // Another branch at the same commit is another place.
    let scene = Scene::repository(&[("a", "a\n")]);
    scene.begin();
    scene.agent("a", "changed\n");
    stage(&scene, &plan_at(&scene, Onto::Head, None).unwrap()).unwrap();
    scene.git(&["checkout", "--quiet", "-b", "other"]);
    let error = Folder(scene.folder.path().to_owned()).act("commit", &nothing).unwrap_err();
    assert!(matches!(error, ApplyError::Repository(RepositoryError::Moved { .. })), "{error}");
    assert_eq!(scene.text("a"), "a\n");
}

#[test]
fn where_the_branch_moved_and_the_person_wrote_too_every_file_that_is_other_than_before_is_named() {
    let scene = Scene::repository(&[("a", "a\n"), ("b", "b\n"), ("c", "c\n")]);
    scene.begin();
    scene.agent("a", "changed\n");
    scene.agent("b", "changed\n");
    stage(&scene, &plan_at(&scene, Onto::Head, None).unwrap()).unwrap();
    let folder = Folder(scene.folder.path().to_owned());
    let error = folder
        .act("commit", &|at| {
            if at == "files applied" {
                scene.person("a", "mine\n");
                scene.git(&["commit", "--quiet", "--allow-empty", "--message", "meanwhile"]);
            }
        })
        .unwrap_err();
    assert!(matches!(&error, ApplyError::Torn { paths } if *paths == [path("a"), path("b")]), "{error}");
    assert_eq!((scene.text("a"), scene.text("b")), ("mine\n".into(), "changed\n".into()));
    assert_eq!(scene.git(&["log", "-1", "--format=%s"]), "meanwhile\n");
    assert!(matches!(folder.settle("commit"), Settled::Torn { .. }));
    folder.seen();
}

#[test]
fn what_was_staged_and_came_to_nothing_is_staged_anew_and_what_was_carried_out_is_not() {
    let scene = Scene::repository(&[("a", "a\n")]);
    scene.begin();
    scene.agent("a", "changed\n");
    stage(&scene, &plan_at(&scene, Onto::Head, None).unwrap()).unwrap();
    scene.git(&["commit", "--quiet", "--allow-empty", "--message", "meanwhile"]);
    let plan = plan_at(&scene, Onto::Head, None).unwrap();
    stage(&scene, &plan).unwrap();
    Folder(scene.folder.path().to_owned()).act("commit", &nothing).unwrap();
    assert_eq!(scene.git(&["log", "--format=%s"]), "What the agent did\nmeanwhile\nfirst\n");
    assert!(matches!(stage(&scene, &plan), Err(ApplyError::Checkout(_))));
    undo(&scene).unwrap();
    assert_eq!(
        (scene.git(&["log", "-1", "--format=%s"]), scene.text("a")),
        ("meanwhile\n".into(), "a\n".into())
    );
}

#[test]
fn c13_a_file_that_changed_after_the_plan_is_refused_and_no_branch_moves() {
    let scene = Scene::repository(&[("a", "a\n")]);
    scene.begin();
    scene.agent("a", "changed\n");
    stage(&scene, &plan_at(&scene, Onto::Head, None).unwrap()).unwrap();
    scene.person("a", "mine\n");
    let folder = Folder(scene.folder.path().to_owned());
    let before = folder.seen();
    let error = folder.act("commit", &nothing).unwrap_err();
    assert!(matches!(error, ApplyError::ContentChanged { .. }), "{error}");
    assert_eq!(folder.seen(), before);
}

#[test]
fn work_that_is_not_committed_is_never_committed_by_the_way() {
    let scene = Scene::repository(&[("a", "1\n2\n3\n")]);
    scene.person("a", "1\nmine\n3\n");
    scene.person("untracked", "mine\n");
    scene.begin();
    scene.agent("a", "1\nmine, better\n3\n");
    scene.agent("untracked", "mine, better\n");
    let error = refused(&scene, branch("work"), None);
    let RepositoryError::Uncommitted(conflicts) = error else { panic!("{error}") };
    let because: Vec<_> =
        conflicts.iter().map(|conflict| (conflict.path.to_string(), &conflict.why)).collect();
    assert!(
        matches!(&because[..], [(a, Why::Lines(_)), (b, Why::Deleted)] if a == "a" && b == "untracked"),
        "{because:?}"
    );
}

#[test]
fn what_is_staged_otherwise_or_meanwhile_is_in_the_way() {
    let scene = Scene::repository(&[("a", "1\n2\n3\n")]);
    scene.begin();
    scene.agent("a", "1\ntheirs\n3\n");
    scene.person("a", "1\nstaged\n3\n");
    scene.git(&["add", "a"]);
    scene.person("a", "1\n2\n3\n");
    assert!(
        matches!(refused(&scene, Onto::Head, None), RepositoryError::Staged { path: found } if found == path("a"))
    );

    let scene = Scene::repository(&[("a", "1\n2\n3\n")]);
    scene.begin();
    scene.agent("a", "1\ntheirs\n3\n");
    stage(&scene, &plan_at(&scene, Onto::Head, None).unwrap()).unwrap();
    let blob = scene.path("blob");
    put(&blob, b"staged\n");
    let oid = scene.git(&["hash-object", "-w", blob.to_str().unwrap()]);
    scene.git(&["update-index", "--cacheinfo", &format!("100644,{},a", oid.trim())]);
    let folder = Folder(scene.folder.path().to_owned());
    let before = folder.seen();
    let error = folder.act("commit", &nothing).unwrap_err();
    assert!(matches!(error, ApplyError::Repository(RepositoryError::Staged { .. })), "{error}");
    assert_eq!(folder.seen(), before);
}

#[test]
fn another_git_at_work_is_waited_for_by_the_person_and_its_lock_stays() {
    let scene = Scene::repository(&[("a", "a\n")]);
    scene.begin();
    scene.agent("a", "changed\n");
    stage(&scene, &plan_at(&scene, Onto::Head, None).unwrap()).unwrap();
    let lock = scene.workspace().join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    let error = Folder(scene.folder.path().to_owned()).act("commit", &nothing).unwrap_err();
    assert!(matches!(error, ApplyError::Repository(RepositoryError::Locked)), "{error}");
    assert!(lock.exists());
    assert_eq!((scene.text("a"), scene.git(&["rev-list", "--count", "HEAD"])), ("a\n".into(), "1\n".into()));
}

#[test]
fn who_commits_has_to_be_known_and_nothing_else_may_be_going_on() {
    let scene = Scene::repository(&[("a", "a\n")]);
    scene.begin();
    scene.agent("a", "changed\n");
    scene.git(&["config", "user.name", ""]);
    let error = refused(&scene, branch("work"), None);
    assert!(matches!(error, RepositoryError::NoIdentity), "{error}");
    assert!(error.to_string().contains("user.name"));
    scene.git(&["config", "user.name", "A Person"]);
    fs::write(scene.workspace().join(".git/MERGE_HEAD"), scene.git(&["rev-parse", "HEAD"])).unwrap();
    assert!(matches!(
        commit(&scene, Onto::Head, None),
        Err(ApplyError::Repository(RepositoryError::Unfinished { .. }))
    ));
    fs::remove_file(scene.workspace().join(".git/MERGE_HEAD")).unwrap();
    commit(&scene, Onto::Head, None).unwrap();

    let plain = Scene::plain(&[("a", "a\n")]);
    plain.begin();
    plain.agent("a", "changed\n");
    assert!(matches!(
        commit(&plain, Onto::Head, None),
        Err(ApplyError::Repository(RepositoryError::NoRepository))
    ));
}

#[test]
fn what_head_has_already_is_nothing_to_commit() {
    let scene = Scene::repository(&[("a", "a\n")]);
    scene.begin();
    scene.agent("a", "changed\n");
    scene.person("a", "changed\n");
    scene.git(&["commit", "--quiet", "--all", "--message", "the same"]);
    assert!(matches!(refused(&scene, Onto::Head, None), RepositoryError::Nothing));
}

#[test]
fn line_endings_are_committed_as_the_repository_has_them_and_hooks_do_not_run() {
    for (setting, attributes) in [(Some(("core.autocrlf", "true")), ""), (None, "* text=auto eol=crlf\n")] {
        let scene = Scene::repository(&[(".gitattributes", attributes), ("a", "1\n2\n3\n")]);
        if let Some((name, value)) = setting {
            scene.git(&["config", name, value]);
        }
        fs::remove_file(scene.workspace().join("a")).unwrap();
        scene.git(&["checkout", "--", "a"]);
        assert_eq!(scene.text("a"), "1\r\n2\r\n3\r\n");
        for hook in ["pre-commit", "post-commit", "reference-transaction", "post-index-change"] {
            let hook = scene.workspace().join(".git/hooks").join(hook);
            put(&hook, b"#!/bin/sh\ntouch ran\nexit 1\n");
            chmod(&hook, 0o755);
        }
        scene.begin();
        scene.agent("a", "1\r\n2\r\nthree\r\n");
        scene.agent("new", "new\r\n");
        commit(&scene, Onto::Head, None).unwrap();
        assert!(!scene.workspace().join("ran").exists());
        fs::remove_dir_all(scene.workspace().join(".git/hooks")).unwrap();
        assert_eq!(scene.git(&["show", "HEAD:a"]), "1\n2\nthree\n");
        assert_eq!(scene.git(&["show", "HEAD:new"]), "new\n");
        assert_eq!(scene.text("a"), "1\r\n2\r\nthree\r\n");
        assert_eq!(scene.git(&["status", "--porcelain"]), "");
        assert_eq!(
            scene.git(&["diff", "--stat", "HEAD^", "HEAD", "--", "a"]).lines().last().unwrap().trim(),
            "1 file changed, 1 insertion(+), 1 deletion(-)"
        );
    }
}

#[test]
fn a_workspace_inside_a_repository_commits_only_there_and_a_linked_work_tree_has_a_head_of_its_own() {
    let outer = Scene::repository(&[("workspace/a", "a\n"), ("top", "t\n")]);
    let top = outer.workspace();
    outer.person("top", "staged\n");
    outer.git(&["add", "top"]);
    let inner = Scene { folder: tempfile::tempdir().unwrap(), stages: tempfile::tempdir().unwrap() };
    symlink(top.join("workspace"), inner.workspace()).unwrap();
    inner.begin();
    inner.agent("a", "changed\n");
    inner.agent("new", "new\n");
    commit(&inner, Onto::Head, None).unwrap();
    assert_eq!(
        outer.git(&["show", "--format=", "--name-status", "HEAD"]),
        "M\tworkspace/a\nA\tworkspace/new\n"
    );
    assert_eq!(outer.git(&["status", "--porcelain"]), "M  top\n");
    undo(&inner).unwrap();
    assert_eq!(outer.git(&["status", "--porcelain"]), "M  top\n");

    let main = Scene::repository(&[("a", "a\n")]);
    let linked = Scene { folder: tempfile::tempdir().unwrap(), stages: tempfile::tempdir().unwrap() };
    main.git(&["worktree", "add", "--quiet", "-b", "side", linked.workspace().to_str().unwrap()]);
    linked.begin();
    linked.agent("a", "changed\n");
    let done = commit(&linked, Onto::Head, None).unwrap();
    assert_eq!(done.reference, "refs/heads/side");
    assert_eq!(
        (linked.git(&["status", "--porcelain"]), main.git(&["status", "--porcelain"])),
        (String::new(), String::new())
    );
    assert_eq!(main.git(&["rev-list", "--count", "main..side"]), "1\n");
}

#[test]
fn a_commit_that_others_build_on_or_a_branch_that_is_checked_out_is_not_taken_back() {
    let scene = Scene::repository(&[("a", "a\n")]);
    scene.begin();
    scene.agent("a", "changed\n");
    commit(&scene, Onto::Head, None).unwrap();
    scene.git(&["commit", "--quiet", "--allow-empty", "--message", "more"]);
    let error = undo(&scene).unwrap_err();
    assert!(matches!(error, ApplyError::Repository(RepositoryError::Moved { .. })), "{error}");
    assert_eq!(scene.text("a"), "changed\n");

    let scene = Scene::repository(&[("a", "a\n")]);
    scene.begin();
    scene.agent("a", "changed\n");
    commit(&scene, branch("work"), Some(&whole(&["a"]))).unwrap();
    scene.git(&["checkout", "--quiet", "work"]);
    let error = undo(&scene).unwrap_err();
    assert!(matches!(error, ApplyError::Repository(RepositoryError::CheckedOut { .. })), "{error}");
}

#[test]
fn child() {
    let Ok(play) = std::env::var(PLAY) else { return };
    let [act, folder, step] = play.split('\n').collect::<Vec<_>>()[..] else { panic!("{play}") };
    let left = Cell::new(step.parse::<u32>().unwrap());
    let reached = |_| {
        left.set(left.get().saturating_sub(1));
        if left.get() == 0 {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
    };
    Folder(folder.into()).act(act, &reached).unwrap();
}

/// Kills an act at every step of it; files, index and names are all before or all after, and said to be.
fn survives_every_kill(scene: &Scene, act: &str) {
    let copied = |name: &str| {
        let folder = scene.stages().join(name);
        for part in ["workspace", "commit", "undo"].iter().filter(|part| scene.path(part).exists()) {
            copy(&scene.path(part), &folder.join(part));
        }
        // Copies have other times and places than the index says.
        git(&folder.join("workspace"), &["update-index", "-q", "--refresh"]);
        Folder(folder)
    };
    let whole = copied("whole");
    let before = whole.seen();
    whole.act(act, &nothing).unwrap();
    let after = whole.seen();
    let (mut applied, mut not_applied) = (0, 0);
    for step in 1..STEPS_MAX {
        let folder = copied(&step.to_string());
        let play = format!("{act}\n{}\n{step}", folder.0.display());
        let mut child = Command::new(std::env::current_exe().unwrap());
        let status = child.args(["--exact", "child", "--nocapture"]).env(PLAY, play).output().unwrap().status;
        if status.signal() != Some(9) {
            assert!(status.success() && applied >= 2 && not_applied > 5, "{status} {applied} {not_applied}");
            return;
        }
        let settled = folder.settle(act);
        match &settled {
            Settled::Applied => {
                applied += 1;
                assert_eq!(folder.seen(), after, "killed at step {step}");
            }
            Settled::NotApplied => {
                not_applied += 1;
                assert_eq!(folder.seen(), before, "killed at step {step}");
            }
            Settled::Torn { paths } => panic!("killed at step {step}: {paths:?}"),
        }
        assert_eq!(folder.settle(act), settled);
        fs::remove_dir_all(&folder.0).unwrap();
    }
    panic!("it has more steps than {STEPS_MAX}");
}

fn dirty() -> Scene {
    let lines = |count: u32| (0..count).map(|line| format!("line {line}\n")).collect::<String>();
    let scene = Scene::repository(&[("a", &lines(20)), ("b", "b\n"), ("c/d", "d\n")]);
    scene.person("a", &lines(20).replace("line 2\n", "mine\n"));
    scene.git(&["add", "a"]);
    scene.begin();
    scene.agent("a", &lines(20).replace("line 2\n", "mine\n").replace("line 15\n", "theirs\n"));
    scene.agent_removes("c/d");
    scene.agent("new", "new\n");
    stage(&scene, &plan_at(&scene, Onto::Head, None).unwrap()).unwrap();
    scene
}

#[test]
fn j05_a_kill_at_every_step_of_a_commit_leaves_files_index_and_branch_all_or_nothing() {
    survives_every_kill(&dirty(), "commit");
}

#[test]
fn j05_a_kill_at_every_step_of_taking_a_commit_back_leaves_all_or_nothing() {
    let scene = dirty();
    Folder(scene.folder.path().to_owned()).act("commit", &nothing).unwrap();
    survives_every_kill(&scene, "undo");
}

#[test]
fn a_path_from_a_place_that_is_gone_is_an_error() {
    let scene = Scene::repository(&[("a", "a\n")]);
    let root = scene.root();
    let place = Place { path: Path::new("/nonexistent/place"), workspace: &root, stop: &GO_ON };
    assert!(matches!(
        settle(place, &scene.path("commit"), &nothing),
        Err(ApplyError::Repository(RepositoryError::NoRepository))
    ));
}
