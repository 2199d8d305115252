//! A workspace on disk, the checkout that was made of it, and what is said to have changed there.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use runyard_checkout::{
    Base, Change, Changes, CheckoutError, CompareLimits, ContentChange, Contents, Options, ProblemKind,
    RelPath, Root, compare, make, unified,
};
use tempfile::TempDir;

/// A workspace, and the checkout that was made of it.
pub struct Place {
    pub directory: TempDir,
}

impl Place {
    pub fn new() -> Place {
        let place = Place { directory: tempfile::tempdir().unwrap() };
        fs::create_dir(place.workspace()).unwrap();
        place
    }

    /// A workspace that is a repository, with some files that are committed.
    pub fn repository(files: &[(&str, &[u8])]) -> Place {
        let place = Place::new();
        place.git(&["init", "--quiet", "--initial-branch=main"]);
        for (path, content) in files {
            put(&place.workspace().join(path), content);
        }
        place.commit();
        place
    }

    pub fn commit(&self) {
        self.git(&["add", "--all", "--force"]);
        self.git(&[
            "-c",
            "user.name=Ada",
            "-c",
            "user.email=ada@example.com",
            "commit",
            "--quiet",
            "--message=x",
        ]);
    }

    pub fn workspace(&self) -> PathBuf {
        self.directory.path().join("workspace")
    }

    pub fn checkout(&self) -> PathBuf {
        self.directory.path().join("checkout")
    }

    pub fn base_dir(&self) -> PathBuf {
        self.directory.path().join("base")
    }

    pub fn git(&self, arguments: &[&str]) -> Vec<u8> {
        git(&self.workspace(), arguments)
    }

    pub fn make(self) -> Place {
        let never = AtomicBool::new(false);
        make(&self.workspace(), &self.checkout(), &self.base_dir(), &Options::default(), &never).unwrap();
        self
    }

    pub fn put(&self, path: &str, content: &[u8]) {
        put(&self.checkout().join(path), content);
    }

    pub fn remove(&self, path: &str) {
        fs::remove_file(self.checkout().join(path)).unwrap();
    }

    pub fn rename(&self, from: &str, to: &str) {
        fs::create_dir_all(self.checkout().join(to).parent().unwrap()).unwrap();
        fs::rename(self.checkout().join(from), self.checkout().join(to)).unwrap();
    }

    pub fn compare(&self) -> Changes {
        self.compare_within(&CompareLimits::default()).unwrap()
    }

    pub fn compare_within(&self, limits: &CompareLimits) -> Result<Changes, CheckoutError> {
        let base = Base::read(&self.base_dir()).unwrap();
        let mut contents = Contents::open(&base, &self.base_dir()).unwrap();
        let root = Root::open(&self.checkout()).unwrap();
        compare(&base, &mut contents, &root, limits, &AtomicBool::new(false))
    }

    /// What a path was at the beginning; empty where it was not there.
    pub fn before(&self, path: &RelPath) -> Vec<u8> {
        let base = Base::read(&self.base_dir()).unwrap();
        let mut contents = Contents::open(&base, &self.base_dir()).unwrap();
        base.find(path).map(|entry| contents.read(entry, u64::MAX).unwrap()).unwrap_or_default()
    }

    /// The patch of one change.
    pub fn patch(&self, change: &Change) -> Vec<u8> {
        let before = self.before(change.old_path.as_ref().unwrap_or(&change.path));
        let after =
            change.after.map(|_| content(&self.checkout().join(change.path.as_path()))).unwrap_or_default();
        unified(change, &before, &after)
    }
}

pub fn git(directory: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("git")
        .args(["-c", "core.autocrlf=false", "-c", "core.fsync=none"])
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("LC_ALL", "C")
        .env("HOME", directory.parent().unwrap())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CEILING_DIRECTORIES", directory.parent().unwrap())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

pub fn put(path: &Path, content: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// What a file holds, or where a link leads.
pub fn content(path: &Path) -> Vec<u8> {
    match fs::read_link(path) {
        Ok(target) => target.as_os_str().as_bytes().to_vec(),
        Err(_) => fs::read(path).unwrap(),
    }
}

pub fn executable(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

/// All changes, one line each.
pub fn said(changes: &Changes) -> Vec<String> {
    changes.files.iter().map(say).collect()
}

pub fn say(change: &Change) -> String {
    let kind = format!("{:?}", change.kind).to_lowercase();
    let from = change.old_path.as_ref().map(|path| format!(" from {path}")).unwrap_or_default();
    let content = match &change.content {
        ContentChange::Same => "same".to_owned(),
        ContentChange::Text { insertions, deletions, hunks } => {
            format!("+{insertions} -{deletions} in {hunks}")
        }
        ContentChange::Binary => "whole".to_owned(),
        ContentChange::TooLarge => "too large".to_owned(),
    };
    let mode =
        |version: Option<runyard_checkout::Version>| version.map_or("-", |version| version.mode.as_git());
    let modes = match (mode(change.before), mode(change.after)) {
        (old, new) if old == new => String::new(),
        (old, new) => format!(" {old}>{new}"),
    };
    format!("{kind} {}{from}: {content}{modes}", change.path)
}

pub fn problems(changes: &Changes) -> Vec<(String, ProblemKind)> {
    changes.problems.iter().map(|problem| (problem.path.to_string(), problem.why)).collect()
}

/// Everything below a directory but `.git`: what it is and holds.
pub fn tree(directory: &Path) -> BTreeMap<Vec<u8>, (u32, Vec<u8>)> {
    let mut tree = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(next).unwrap().map(Result::unwrap) {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if kind.is_dir() {
                left.extend((entry.file_name() != ".git").then_some(path));
                continue;
            }
            let mode = entry.metadata().unwrap().mode() & 0o170_100;
            let name = path.strip_prefix(directory).unwrap().as_os_str().as_bytes().to_vec();
            tree.insert(name, (mode, content(&path)));
        }
    }
    tree
}
