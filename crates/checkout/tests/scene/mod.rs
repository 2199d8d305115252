//! A workspace, the checkout that was made of it, and a person and an agent who change the two.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use runyard_checkout::apply::{
    self, ApplyError, ApplyLimits, Chosen, Outcome, Plan, Selection, Settled, Sides, carry_out, plan,
};
use runyard_checkout::{Base, Changes, CompareLimits, Contents, Options, RelPath, Root, compare, make};
use tempfile::TempDir;

/// What stands in for a secret.
pub const PLACEHOLDER: &[u8] = b"[redacted:token]";

pub fn is_placeholder(bytes: &[u8]) -> bool {
    bytes.windows(PLACEHOLDER.len()).any(|window| window == PLACEHOLDER)
}

pub fn nothing(_: &'static str) {}

/// Nobody wants it taken back.
pub static GO: AtomicBool = AtomicBool::new(false);

pub struct Scene {
    pub folder: TempDir,
    /// In memory where there is a place for that: what is tried hundreds of times need not reach a disk.
    pub stages: TempDir,
}

impl Scene {
    /// A plain directory with these files.
    pub fn plain(files: &[(&str, &str)]) -> Scene {
        let scene = Scene {
            folder: tempfile::tempdir().unwrap(),
            stages: tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap(),
        };
        fs::create_dir(scene.workspace()).unwrap();
        for (path, text) in files {
            put(&scene.workspace().join(path), text.as_bytes());
        }
        scene
    }

    /// A repository with these files, committed.
    pub fn repository(files: &[(&str, &str)]) -> Scene {
        let scene = Scene::plain(files);
        scene.git(&["init", "--quiet", "--initial-branch=main"]);
        scene.git(&["config", "user.name", "A Person"]);
        scene.git(&["config", "user.email", "person@example.com"]);
        scene.git(&["add", "--all"]);
        scene.git(&["commit", "--quiet", "--message", "first"]);
        scene
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn stages(&self) -> &Path {
        self.stages.path()
    }

    pub fn workspace(&self) -> PathBuf {
        self.path("workspace")
    }

    pub fn root(&self) -> Root {
        Root::open(&self.workspace()).unwrap()
    }

    /// Makes the checkout.
    pub fn begin(&self) {
        let stop = AtomicBool::new(false);
        make(&self.workspace(), &self.path("checkout"), &self.path("base"), &Options::default(), &stop)
            .unwrap();
    }

    /// The agent writes.
    pub fn agent(&self, path: &str, text: &str) {
        put(&self.path("checkout").join(path), text.as_bytes());
    }

    pub fn agent_removes(&self, path: &str) {
        fs::remove_file(self.path("checkout").join(path)).unwrap();
    }

    /// The person writes.
    pub fn person(&self, path: &str, text: &str) {
        put(&self.workspace().join(path), text.as_bytes());
    }

    pub fn text(&self, path: &str) -> String {
        fs::read_to_string(self.workspace().join(path)).unwrap()
    }

    pub fn changes(&self) -> Changes {
        let base = Base::read(&self.path("base")).unwrap();
        let mut contents = Contents::open(&base, &self.path("base")).unwrap();
        let checkout = Root::open(&self.path("checkout")).unwrap();
        compare(&base, &mut contents, &checkout, &CompareLimits::default(), &AtomicBool::new(false)).unwrap()
    }

    /// Gives everything that a plan is made from.
    pub fn with_sides<T>(&self, act: impl FnOnce(&mut Sides<'_>) -> T) -> T {
        let base = Base::read(&self.path("base")).unwrap();
        let mut contents = Contents::open(&base, &self.path("base")).unwrap();
        let (checkout, workspace) = (Root::open(&self.path("checkout")).unwrap(), self.root());
        act(&mut Sides { base: &base, contents: &mut contents, checkout: &checkout, workspace: &workspace })
    }

    pub fn plan(&self, changes: &Changes, selection: Option<&Selection>) -> Result<Plan, ApplyError> {
        self.with_sides(|sides| plan(changes, selection, sides, &is_placeholder, &ApplyLimits::default()))
    }

    /// Applies a selection of what changed.
    pub fn apply(&self, selection: Option<&Selection>) -> Result<Outcome, ApplyError> {
        let plan = self.plan(&self.changes(), selection)?;
        plan.stage(&self.path("journal"), &self.root())?;
        carry_out(&self.path("journal"), &self.root(), &GO, &nothing)
    }

    pub fn undo(&self) -> Result<Outcome, ApplyError> {
        let limits = ApplyLimits::default();
        apply::undo(&self.path("journal"), &self.path("undo"), &self.root(), &limits, &nothing)
    }

    pub fn settle(&self, journal: &str) -> Settled {
        apply::settle(&self.path(journal), &self.root(), &nothing).unwrap()
    }

    pub fn tree(&self) -> Tree {
        tree(&self.workspace())
    }

    /// The real git, in the workspace.
    #[track_caller]
    pub fn git(&self, arguments: &[&str]) -> String {
        git(&self.workspace(), arguments)
    }
}

#[track_caller]
pub fn git(directory: &Path, arguments: &[&str]) -> String {
    let answer = Command::new("git").arg("-C").arg(directory).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&answer.stderr).into_owned();
    assert!(answer.status.success(), "git {arguments:?}: {said}");
    String::from_utf8(answer.stdout).unwrap()
}

/// All of some files, by path.
pub fn whole(paths: &[&str]) -> Selection {
    Selection(paths.iter().map(|text| Chosen { file: path(text).id(), hunks: None }).collect())
}

/// Some hunks of a file.
pub fn hunks_of(text: &str, hunks: impl IntoIterator<Item = u32>) -> Selection {
    let hunks: BTreeSet<u32> = hunks.into_iter().collect();
    Selection(vec![Chosen { file: path(text).id(), hunks: Some(hunks) }])
}

pub fn path(text: &str) -> RelPath {
    RelPath::parse(text.as_bytes()).unwrap()
}

pub fn put(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

pub fn chmod(path: &Path, permissions: u32) {
    fs::set_permissions(path, Permissions::from_mode(permissions)).unwrap();
}

/// Everything in a directory but a repository: what it is, its permissions and what it holds.
pub type Tree = BTreeMap<String, (&'static str, u32, String)>;

pub fn tree(root: &Path) -> Tree {
    fn add(tree: &mut Tree, root: &Path, directory: &Path) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            if name == ".git" {
                continue;
            }
            let permissions = meta.permissions().mode() & 0o7777;
            if meta.is_dir() {
                tree.insert(name, ("directory", permissions, String::new()));
                add(tree, root, &path);
            } else if meta.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                tree.insert(name, ("link", 0, target.to_string_lossy().into_owned()));
            } else {
                tree.insert(name, ("file", permissions, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let mut found = Tree::new();
    add(&mut found, root, root);
    found
}

/// A copy of a directory, with permissions and links.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let source = entry.unwrap().path();
        let target = to.join(source.file_name().unwrap());
        let meta = fs::symlink_metadata(&source).unwrap();
        if meta.is_dir() {
            copy(&source, &target);
        } else if meta.is_symlink() {
            symlink(fs::read_link(&source).unwrap(), target).unwrap();
        } else {
            fs::copy(&source, target).unwrap();
        }
    }
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
}

/// Every kind of change at once: staged, and nothing carried out.
pub fn everything() -> Scene {
    let lines = |count: u32| (0..count).map(|line| format!("line {line}\n")).collect::<String>();
    let scene = Scene::plain(&[
        ("changed", &lines(40)),
        ("merged", &lines(40)),
        ("deep/er/removed", "gone soon\n"),
        ("old name", &lines(30)),
        ("mode", "#!/bin/sh\n"),
        ("private", "mine\n"),
        ("becomes a directory", "a file\n"),
        ("becomes a file/one", "1\n"),
        ("becomes a file/two", "2\n"),
        ("binary", "\0\u{1}\u{2}"),
        ("untouched", "as it is\n"),
    ]);
    symlink("changed", scene.workspace().join("link")).unwrap();
    chmod(&scene.workspace().join("private"), 0o600);
    chmod(&scene.workspace().join("deep"), 0o750);
    chmod(&scene.workspace().join("deep/er"), 0o711);
    fs::create_dir(scene.workspace().join("empty")).unwrap();
    scene.begin();
    let checkout = scene.path("checkout");
    scene.agent("changed", &lines(40).replace("line 20\n", "line twenty\n"));
    scene.agent("merged", &lines(40).replace("line 30\n", "line thirty\n"));
    scene.person("merged", &lines(40).replace("line 3\n", "line three\n"));
    scene.agent_removes("deep/er/removed");
    fs::rename(checkout.join("old name"), checkout.join("new name")).unwrap();
    chmod(&checkout.join("mode"), 0o755);
    scene.agent("private", "mine, changed\n");
    scene.agent_removes("becomes a directory");
    scene.agent("becomes a directory/with/file", "deep\n");
    scene.agent_removes("becomes a file/one");
    scene.agent_removes("becomes a file/two");
    fs::remove_dir(checkout.join("becomes a file")).unwrap();
    scene.agent("becomes a file", "a file now\n");
    scene.agent("binary", "\0\u{3}");
    fs::remove_file(checkout.join("link")).unwrap();
    symlink("merged", checkout.join("link")).unwrap();
    scene.agent("new/one", "new\n");
    scene.agent("empty/not any more", "new\n");
    let changes = scene.changes();
    assert_eq!(changes.problems, []);
    scene.plan(&changes, None).unwrap().stage(&scene.path("journal"), &scene.root()).unwrap();
    scene
}
