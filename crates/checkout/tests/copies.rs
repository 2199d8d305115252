//! Checkouts of real repositories and of plain directories: what they hold, what they say about themselves, and that the person's
//! files and repository are as they were, byte for byte.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use runyard_checkout::{
    Base, CheckoutError, ContentId, Contents, FileMode, How, Limits, Made, Options, RelPath, Root, Source,
    Why, make,
};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

const FILE_BYTES_MAX: u64 = 1_000_000;

struct Place {
    _kept: tempfile::TempDir,
    home: PathBuf,
    workspace: PathBuf,
    checkout: PathBuf,
    base: PathBuf,
}

/// A workspace that is a plain directory, and room for a run beside it.
fn plain() -> Place {
    let kept = tempfile::tempdir().unwrap();
    let of = |name: &str| kept.path().join(name);
    for name in ["home", "workspace", "run"] {
        fs::create_dir(of(name)).unwrap();
    }
    let (home, workspace) = (of("home"), of("workspace"));
    Place { checkout: of("run/checkout"), base: of("run/base"), home, workspace, _kept: kept }
}

/// A workspace that is a repository with a commit.
fn repository() -> Place {
    let place = plain();
    place.git(&["init", "-q", "-b", "main"]);
    place.put("kept", "as committed\n");
    place.put("src/main.rs", "fn main() {}\n");
    place.put("run.sh", "#!/bin/sh\n");
    place.put("gone", "soon gone\n");
    place.put("old-name", "moves on\n");
    place.put(".gitignore", "target\n*.log\n");
    place.commit("first");
    place
}

impl Place {
    fn put(&self, name: &str, content: &str) {
        let path = self.workspace.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.workspace, arguments)
    }

    #[track_caller]
    fn git_in(&self, directory: &Path, arguments: &[&str]) -> String {
        let output = self.git_says(directory, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn git_says(&self, directory: &Path, arguments: &[&str]) -> Output {
        let mut command = Command::new("git");
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", &self.home);
        command.envs([("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_OPTIONAL_LOCKS", "0"), ("LC_ALL", "C")]);
        for name in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{name}_NAME"), "Ada")
                .env(format!("GIT_{name}_EMAIL"), "ada@example.com");
        }
        command.args(["-c", "protocol.file.allow=always"]).arg("-C").arg(directory).args(arguments);
        command.stdin(Stdio::null()).output().unwrap()
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
    }

    fn make(&self) -> Result<Made, CheckoutError> {
        self.make_with(&Options::default())
    }

    fn make_with(&self, options: &Options) -> Result<Made, CheckoutError> {
        make(&self.workspace, &self.checkout, &self.base, options, &AtomicBool::new(false))
    }

    /// Makes it, and proves what holds for every checkout of a repository: `git status` and `git log` say there what they say in the
    /// workspace, and every file of the base is in the checkout and can be read back.
    #[track_caller]
    fn check(&self) -> Made {
        let before = snapshot(&self.workspace);
        let made = self.make().unwrap();
        unchanged(&self.workspace, &before);
        let status = ["status", "--porcelain=v2", "--untracked-files=all", "-z"];
        assert_eq!(self.git_in(&self.checkout, &status), self.git(&status));
        if let How::Clone { head: Some(_), .. } = &made.how {
            let log = ["log", "--all", "--oneline", "--decorate-refs-exclude=refs/remotes/origin/HEAD"];
            assert_eq!(self.git_in(&self.checkout, &log), self.git(&log));
            self.git_in(&self.checkout, &["fsck", "--connectivity-only"]);
        }
        self.base_is_the_checkout();
        made
    }

    /// Every entry of the base is what the checkout holds, by stamp and by content.
    #[track_caller]
    fn base_is_the_checkout(&self) -> Base {
        let base = Base::read(&self.base).unwrap();
        let root = Root::open(&self.checkout).unwrap();
        let mut contents = Contents::open(&base, &self.base).unwrap();
        for entry in &base.entries {
            let content = contents.read(entry, FILE_BYTES_MAX).unwrap();
            match entry.mode {
                FileMode::Submodule => continue,
                FileMode::Link => assert_eq!(root.read_link(&entry.path).unwrap(), content),
                FileMode::Plain | FileMode::Executable => {
                    let read = root.read(&entry.path, FILE_BYTES_MAX).unwrap();
                    assert_eq!(read.bytes, content, "{}", entry.path);
                    assert_eq!(read.found.executable, entry.mode == FileMode::Executable, "{}", entry.path);
                }
            }
            let found = root.look(&entry.path).unwrap().unwrap();
            assert_eq!((found.stamp, found.bytes), (entry.stamp, entry.bytes), "{}", entry.path);
        }
        base
    }

    fn source(&self, name: &str) -> Source {
        let base = Base::read(&self.base).unwrap();
        base.find(&RelPath::parse(name.as_bytes()).unwrap()).unwrap().source.clone()
    }

    fn has(&self, name: &str) -> bool {
        self.checkout.join(name).symlink_metadata().is_ok()
    }
}

/// What is known about a file: its content, its mode and when it was changed.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    content: ContentId,
    mode: u32,
    modified: (i64, i64),
}

/// Everything in a directory.
fn snapshot(directory: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut found = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let content = match metadata.file_type() {
                kind if kind.is_dir() => {
                    left.push(path.clone());
                    Vec::new()
                }
                kind if kind.is_symlink() => fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec(),
                kind if kind.is_file() => fs::read(&path).unwrap_or_default(),
                _ => Vec::new(),
            };
            let modified = (metadata.mtime(), metadata.mtime_nsec());
            found.insert(path, Seen { content: ContentId::of(&content), mode: metadata.mode(), modified });
        }
    }
    found
}

/// Nothing is there that was not, nothing is gone, and everything is as it was, also when it was last changed.
#[track_caller]
fn unchanged(directory: &Path, before: &BTreeMap<PathBuf, Seen>) {
    let after = snapshot(directory);
    let other = |one: &BTreeMap<PathBuf, Seen>, other: &BTreeMap<PathBuf, Seen>| -> Vec<PathBuf> {
        one.iter()
            .filter(|(path, seen)| other.get(*path) != Some(seen))
            .map(|(path, _)| path.clone())
            .collect()
    };
    assert_eq!((other(&after, before), other(before, &after)), (Vec::new(), Vec::new()));
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Git looks again at what was written in the second in which it wrote its index; an hour ago is long past.
fn long_ago(path: &Path) {
    let then = SystemTime::now() - Duration::from_secs(3_600);
    File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
}

#[test]
fn c11_a_clean_repository_is_borrowed_and_nothing_of_it_is_kept_twice() {
    let place = repository();
    let made = place.check();
    let head = place.git(&["rev-parse", "HEAD"]).trim().to_owned();
    assert_eq!(made.how, How::Clone { head: Some(head.clone()), branch: Some("main".to_owned()) });
    assert_eq!((made.files, made.uncommitted, made.untracked), (6, 0, 0));
    assert_eq!(made.degraded(), Vec::<String>::new());
    let base = Base::read(&place.base).unwrap();
    assert_eq!((base.head, base.id), (Some(head), made.base));
    assert!(base.entries.iter().all(|entry| matches!(entry.source, Source::Git(_))));
    assert_eq!(fs::read_dir(place.base.join("kept")).unwrap().count(), 0);
    assert_eq!(made.borrowed, [place.workspace.join(".git/objects").canonicalize().unwrap()]);
}

#[test]
fn c11_the_checkout_begins_with_everything_that_the_person_has_not_committed() {
    let place = repository();
    place.put("kept", "changed, not staged\n");
    place.put("src/main.rs", "fn main() { staged() }\n");
    place.git(&["add", "src/main.rs"]);
    place.put("src/main.rs", "fn main() { staged(); and_changed_again() }\n");
    fs::remove_file(place.workspace.join("gone")).unwrap();
    place.git(&["mv", "old-name", "new-name"]);
    set_mode(&place.workspace.join("run.sh"), 0o755);
    place.put("new file", "untracked\n");
    place.put("dir/deeper/new", "untracked\n");
    place.put("intended", "will be added\n");
    place.git(&["add", "-N", "intended"]);
    place.put("target/debug/app", "ignored");
    place.put("build.log", "ignored");
    symlink("src/main.rs", place.workspace.join("link")).unwrap();

    let made = place.check();
    // kept, src/main.rs, gone, old-name, new-name, run.sh, intended
    assert_eq!((made.uncommitted, made.untracked), (7, 3));
    assert!(!place.has("target") && !place.has("build.log") && !place.has("gone"));
    assert!(matches!(place.source("kept"), Source::Kept(_)));
    assert!(matches!(place.source("new-name"), Source::Git(_)));
    assert_eq!(place.source("link"), Source::Link(b"src/main.rs".to_vec()));
    assert!(place.git_in(&place.checkout, &["diff", "--cached"]).contains("+fn main() { staged() }"));
}

#[test]
fn c11_what_the_agent_commits_stays_in_the_checkout() {
    let place = repository();
    // Git may mark a borrowed object as still in use where nothing keeps it from doing so: by its time, and by nothing else.
    let contents = |place: &Place| -> BTreeMap<PathBuf, ContentId> {
        snapshot(&place.workspace).into_iter().map(|(path, seen)| (path, seen.content)).collect()
    };
    let before = contents(&place);
    place.make().unwrap();
    fs::write(place.checkout.join("kept"), "by the agent\n").unwrap();
    place.git_in(&place.checkout, &["commit", "-q", "-a", "-m", "by the agent"]);
    place.git_in(&place.checkout, &["branch", "another"]);
    place.git_in(&place.checkout, &["tag", "v1"]);
    place.git_in(&place.checkout, &["gc", "-q", "--prune=now"]);
    assert!(place.git_in(&place.checkout, &["log", "--oneline"]).lines().count() == 2);
    assert_eq!(contents(&place), before);
    assert_eq!(place.git_in(&place.checkout, &["remote"]), "", "and there is nowhere to push to");
}

#[test]
fn c11_a_hostile_configuration_runs_nothing() {
    let place = repository();
    let ran = place.home.join("ran");
    let program = place.home.join("program");
    fs::write(&program, format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", ran.display())).unwrap();
    set_mode(&program, 0o755);
    let named = program.to_str().unwrap();
    fs::create_dir_all(place.workspace.join(".git/evil")).unwrap();
    for hook in
        ["post-index-change", "post-checkout", "pre-commit", "reference-transaction", "fsmonitor-watchman"]
    {
        for directory in [".git/hooks", ".git/evil"] {
            fs::create_dir_all(place.workspace.join(directory)).unwrap();
            fs::copy(&program, place.workspace.join(directory).join(hook)).unwrap();
        }
    }
    for (name, value) in [
        ("core.fsmonitor", named),
        ("core.hooksPath", ".git/evil"),
        ("core.pager", named),
        ("core.editor", named),
        ("core.sshCommand", named),
        ("core.alternateRefsCommand", named),
        ("core.askPass", named),
        ("diff.external", named),
        ("filter.evil.clean", named),
        ("filter.evil.smudge", named),
        ("filter.evil.process", named),
        ("filter.evil.required", "true"),
        ("diff.evil.textconv", named),
        ("diff.evil.command", named),
        ("credential.helper", named),
        ("gpg.program", named),
        ("commit.gpgSign", "true"),
        ("log.showSignature", "true"),
        ("alias.status", "!false"),
        ("extensions.partialClone", "evil"),
        ("remote.evil.promisor", "true"),
        ("remote.evil.url", "ssh://localhost/evil"),
        ("remote.evil.uploadpack", named),
    ] {
        // Not by git, which would meet some of it itself.
        let mut config = fs::read_to_string(place.workspace.join(".git/config")).unwrap();
        let (section, key) = name.rsplit_once('.').unwrap();
        let section = match section.split_once('.') {
            Some((section, sub)) => format!("[{section} \"{sub}\"]"),
            None => format!("[{section}]"),
        };
        config.push_str(&format!("{section}\n\t{key} = \"{value}\"\n"));
        fs::write(place.workspace.join(".git/config"), config).unwrap();
    }
    place.put(".gitattributes", "* filter=evil diff=evil\n");
    place.put("kept", "changed\n");
    place.put("new", "new\n");
    let before = snapshot(&place.workspace);
    let made = place.make().unwrap();
    assert!(matches!(made.how, How::Clone { .. }));
    unchanged(&place.workspace, &before);
    assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap());
    // Nor does the checkout's own repository when an agent uses it.
    place.git_in(&place.checkout, &["status"]);
    place.git_in(&place.checkout, &["add", "-A"]);
    place.git_in(&place.checkout, &["commit", "-q", "-m", "by the agent"]);
    place.git_in(&place.checkout, &["checkout", "-q", "-b", "other"]);
    assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap());
    let config = fs::read_to_string(place.checkout.join(".git/config")).unwrap();
    assert!(!config.contains("evil") && !config.contains(named), "{config}");
    place.base_is_the_checkout();
    // All of that was no idle threat.
    place.git_says(&place.workspace, &["status"]);
    assert!(ran.exists());
}

#[test]
fn c11_line_endings_and_filters_that_git_applies_leave_the_files_as_the_person_sees_them() {
    let place = repository();
    place.put(".gitattributes", "*.txt text=auto eol=crlf\n*.secret filter=upper\n");
    place.git(&["config", "filter.upper.clean", "tr a-z A-Z"]);
    place.git(&["config", "filter.upper.smudge", "tr A-Z a-z"]);
    place.put("windows.txt", "one\r\ntwo\r\n");
    place.put("some.secret", "lower\n");
    long_ago(&place.workspace.join("windows.txt"));
    long_ago(&place.workspace.join("some.secret"));
    place.commit("converted");
    assert_eq!(place.git(&["cat-file", "-p", "HEAD:windows.txt"]), "one\ntwo\n");
    assert_eq!(place.git(&["cat-file", "-p", "HEAD:some.secret"]), "LOWER\n");

    let made = place.check();
    assert_eq!(made.uncommitted, 0);
    assert_eq!(fs::read(place.checkout.join("windows.txt")).unwrap(), b"one\r\ntwo\r\n");
    assert_eq!(fs::read(place.checkout.join("some.secret")).unwrap(), b"lower\n");
    // What git has is another form of it, so what the person sees is kept.
    assert!(matches!(place.source("windows.txt"), Source::Kept(_)));
    assert!(matches!(place.source("some.secret"), Source::Kept(_)));
    assert!(matches!(place.source("kept"), Source::Git(_)));

    place.git(&["config", "core.autocrlf", "true"]);
    place.put("plain.md", "one\r\n");
    place.commit("by configuration");
    place.put("plain.md", "one\r\ntwo\r\n");
    assert_eq!(place.check().uncommitted, 1);
}

#[test]
fn c11_names_that_are_no_text_are_brought_as_they_are() {
    let place = repository();
    for name in [&b"caf\xe9"[..], b"new\nline", b"tab\there", b"quote\"d", b"-rf", b" ", b"*.c", b":(top)x"] {
        fs::write(place.workspace.join(OsStr::from_bytes(name)), name).unwrap();
    }
    place.git(&["add", "--", "-rf"]);
    place.git(&["commit", "-q", "-m", "odd"]);
    fs::create_dir(place.workspace.join(OsStr::from_bytes(b"d\xff"))).unwrap();
    fs::write(place.workspace.join(OsStr::from_bytes(b"d\xff/\xfe")), "x").unwrap();
    assert_eq!(place.check().untracked, 8);
    assert_eq!(fs::read(place.checkout.join(OsStr::from_bytes(b"d\xff/\xfe"))).unwrap(), b"x");
}

#[test]
fn c11_a_submodule_is_named_and_its_content_stays_where_it_is() {
    let place = repository();
    let other = place.home.join("other");
    fs::create_dir(&other).unwrap();
    place.git_in(&other, &["init", "-q"]);
    fs::write(other.join("inside"), "of another repository").unwrap();
    place.git_in(&other, &["add", "."]);
    place.git_in(&other, &["commit", "-q", "-m", "other"]);
    place.git(&["submodule", "add", "-q", other.to_str().unwrap(), "sub"]);
    place.git(&["commit", "-q", "-m", "with a submodule"]);
    let made = place.check();
    assert_eq!((made.submodules.count, made.submodules.to_string()), (1, "sub".to_owned()));
    assert!(made.degraded().concat().contains("submodules: sub"));
    assert_eq!(fs::read_dir(place.checkout.join("sub")).unwrap().count(), 0);
    let commit = place.git_in(&other, &["rev-parse", "HEAD"]);
    assert!(matches!(place.source("sub"), Source::Submodule(oid) if oid.as_str() == commit.trim()));

    // A repository inside that nobody told git about.
    fs::create_dir(place.workspace.join("nested")).unwrap();
    place.git_in(&place.workspace.join("nested"), &["init", "-q"]);
    place.put("nested/file", "of yet another");
    let made = place.make().unwrap();
    assert_eq!(made.left_out.to_string(), "nested/");
    assert!(!place.has("nested"));
}

#[test]
fn c11_a_linked_worktree_is_checked_out_as_it_stands() {
    let place = repository();
    let main = place.home.join("main");
    fs::rename(&place.workspace, &main).unwrap();
    place.git_in(&main, &["worktree", "add", "-q", "-b", "side", place.workspace.to_str().unwrap()]);
    assert!(place.workspace.join(".git").is_file());
    place.put("kept", "changed in the worktree\n");
    let before = snapshot(&main);
    let made = place.check();
    unchanged(&main, &before);
    assert!(matches!(made.how, How::Clone { branch: Some(branch), .. } if branch == "side"));
    assert!(place.checkout.join(".git").is_dir());
    assert_eq!(made.borrowed, [main.join(".git/objects").canonicalize().unwrap()]);
}

#[test]
fn c11_a_part_of_a_repository_is_copied_as_git_lists_it_and_said_to_have_no_history() {
    let place = repository();
    place.put("src/new.rs", "untracked\n");
    place.put("src/target/app", "ignored\n");
    let part = Place {
        workspace: place.workspace.join("src"),
        home: place.home.clone(),
        checkout: place.checkout.clone(),
        base: place.base.clone(),
        _kept: tempfile::tempdir().unwrap(),
    };
    let before = snapshot(&place.workspace);
    let made = part.make().unwrap();
    unchanged(&place.workspace, &before);
    assert_eq!((made.how.clone(), made.files, made.untracked), (How::Copy(Why::Inside), 2, 1));
    assert!(made.degraded().concat().contains("without history"));
    assert!(part.has("main.rs") && part.has("new.rs") && !part.has("target") && !part.has(".git"));
    assert!(matches!(part.source("main.rs"), Source::Git(_)));
    part.base_is_the_checkout();

    // What the repository around it ignores is something of its own.
    let ignored = Place { workspace: place.workspace.join("src/target"), ..part };
    assert_eq!(ignored.make().unwrap().how, How::Copy(Why::NoRepository));
    assert!(ignored.has("app"));
}

#[test]
fn c11_repositories_in_unusual_states_are_checked_out_as_they_stand() {
    // Without a commit.
    let place = plain();
    place.git(&["init", "-q", "-b", "first"]);
    place.put("staged", "a\n");
    place.git(&["add", "staged"]);
    place.put("other", "b\n");
    let made = place.check();
    assert_eq!(made.how, How::Clone { head: None, branch: Some("first".to_owned()) });
    assert_eq!((made.uncommitted, made.untracked), (1, 1));

    // On no branch, with a tag, and with a history that was cut off.
    let origin = repository();
    origin.commit("second");
    origin.git(&["tag", "-a", "v1", "-m", "annotated"]);
    let place = plain();
    let url = format!("file://{}", origin.workspace.display());
    place.git(&["clone", "-q", "--depth", "1", &url, "."]);
    place.git(&["checkout", "-q", "--detach"]);
    let made = place.check();
    assert!(matches!(made.how, How::Clone { head: Some(_), branch: None }));

    // Borrowing from another itself.
    let place = plain();
    place.git(&["clone", "-q", "--shared", origin.workspace.to_str().unwrap(), "."]);
    place.put("kept", "changed\n");
    assert_eq!(place.check().borrowed.len(), 2);

    // With objects that are named in the newer way.
    let place = plain();
    place.git(&["init", "-q", "--object-format=sha256"]);
    place.put("file", "content\n");
    place.commit("first");
    place.put("file", "changed\n");
    assert_eq!(place.check().uncommitted, 1);

    // In the middle of a conflict.
    let place = repository();
    place.git(&["checkout", "-q", "-b", "side"]);
    place.put("kept", "theirs\n");
    place.commit("theirs");
    place.git(&["checkout", "-q", "main"]);
    place.put("kept", "ours\n");
    place.commit("ours");
    assert!(!place.git_says(&place.workspace, &["merge", "-q", "side"]).status.success());
    assert!(place.git(&["status", "--porcelain"]).contains("UU kept"));
    place.check();
}

#[test]
fn c11_what_the_person_took_out_of_the_work_tree_stays_out_of_the_checkout() {
    let place = repository();
    place.put("docs/guide", "text\n");
    place.commit("docs");
    place.git(&["sparse-checkout", "set", "src"]);
    assert!(!place.workspace.join("docs").exists());
    let made = place.check();
    assert_eq!(made.uncommitted, 0);
    assert!(place.has("src/main.rs") && !place.has("docs"));

    place.git(&["sparse-checkout", "disable"]);
    place.git(&["update-index", "--assume-unchanged", "kept"]);
    place.put("kept", "nobody looks\n");
    place.check();
    assert_eq!(fs::read_to_string(place.checkout.join("kept")).unwrap(), "nobody looks\n");
}

#[test]
fn c11_secrets_of_an_environment_come_only_where_they_are_tracked_or_asked_for() {
    let place = repository();
    place.put(".env", "TOKEN=untracked");
    place.put("app/.env.local", "TOKEN=untracked");
    place.put("app/.env.example", "TOKEN=");
    place.put("config/local.log", "ignored and wanted");
    place.put("target/cache/deep/file", "ignored and wanted");
    place.put("tracked/.env", "MODE=test");
    place.git(&["add", "tracked/.env"]);
    let made = place.make().unwrap();
    assert_eq!(made.left_out.to_string(), ".env, app/.env.local");
    assert!(!place.has(".env") && !place.has("app/.env.local") && place.has("app/.env.example"));
    assert!(place.has("tracked/.env") && !place.has("target"));

    let copy = ["/.env", "config/*.log", "target/"].map(str::to_owned).into();
    let made = place.make_with(&Options { copy, ..Options::default() }).unwrap();
    assert_eq!(made.left_out.to_string(), "app/.env.local");
    assert!(place.has(".env") && place.has("config/local.log") && place.has("target/cache/deep/file"));
    assert_eq!(fs::read(place.checkout.join(".env")).unwrap(), b"TOKEN=untracked");
    place.base_is_the_checkout();
}

#[test]
fn c11_a_plain_directory_is_copied_whole_but_for_secrets_and_repositories_inside() {
    let place = plain();
    place.put("a/file", "content");
    place.put("a/run", "#!/bin/sh\n");
    set_mode(&place.workspace.join("a/run"), 0o4755);
    place.put(".env", "TOKEN=private");
    place.put("nested/.git/config", "[core]");
    place.put("nested/file", "of a repository inside");
    fs::create_dir(place.workspace.join("empty")).unwrap();
    symlink("../../outside", place.workspace.join("a/out")).unwrap();
    symlink("/etc/passwd", place.workspace.join("absolute")).unwrap();
    symlink("file", place.workspace.join("a/in")).unwrap();
    let pipe = place.workspace.join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    let before = snapshot(&place.workspace);
    let made = place.make().unwrap();
    unchanged(&place.workspace, &before);
    assert_eq!((made.how.clone(), made.special), (How::Copy(Why::NoRepository), 1));
    assert_eq!(made.left_out.to_string(), ".env, nested/.git");
    assert_eq!(made.leaving.to_string(), "a/out, absolute");
    assert!(made.degraded().concat().contains("a/out, absolute"));
    assert!(
        place.has("empty") && place.has("nested/file") && !place.has("nested/.git") && !place.has("pipe")
    );
    let run = fs::metadata(place.checkout.join("a/run")).unwrap();
    assert_eq!(run.mode() & 0o7000, 0, "executable, and nobody else's rights");
    let from = fs::metadata(place.workspace.join("a/run")).unwrap();
    assert_eq!(run.modified().unwrap(), from.modified().unwrap());
    place.base_is_the_checkout();
    fs::write(place.checkout.join("a/file"), "changed").unwrap();
    assert_eq!(fs::read(place.workspace.join("a/file")).unwrap(), b"content");
    assert!(matches!(place.source("a/file"), Source::Kept(_)));

    place.make_with(&Options { copy: vec![".env".to_owned()], ..Options::default() }).unwrap();
    assert!(place.has(".env"));
}

#[test]
fn c11_a_tracked_directory_that_became_a_link_is_brought_as_a_link() {
    let place = repository();
    fs::write(place.home.join("main.rs"), "private").unwrap();
    fs::remove_dir_all(place.workspace.join("src")).unwrap();
    symlink(&place.home, place.workspace.join("src")).unwrap();
    let made = place.check();
    assert_eq!(made.leaving.to_string(), "src");
    assert!(place.checkout.join("src").is_symlink());
    assert!(
        Base::read(&place.base).unwrap().entries.iter().all(|entry| entry.path.as_bytes() != b"src/main.rs")
    );
}

#[test]
fn c04_what_cannot_be_read_is_left_out_and_said_to_be() {
    for place in [plain(), repository()] {
        place.put("closed/file", "hidden");
        place.put("secret", "hidden");
        place.put("open", "seen");
        for name in ["closed", "secret"] {
            set_mode(&place.workspace.join(name), 0o000);
        }
        let made = std::thread::scope(|scope| {
            let without_privileges = || {
                // A thread's own, and that of what it starts: who may read everything gives that up here.
                let own = capabilities(None).unwrap();
                let reads_all = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
                let left = |set: CapabilitySet| set - reads_all;
                let sets = CapabilitySets {
                    effective: left(own.effective),
                    inheritable: left(own.inheritable),
                    permitted: own.permitted,
                };
                set_capabilities(None, sets).unwrap();
                place.make().unwrap()
            };
            scope.spawn(without_privileges).join().unwrap()
        });
        assert!(place.has("open") && !place.has("secret"));
        let reason = made.degraded().concat();
        assert!(reason.contains("secret"), "{reason}");
        if matches!(made.how, How::Copy(_)) {
            assert_eq!(made.unreadable.to_string(), "closed, secret");
        }
        set_mode(&place.workspace.join("closed"), 0o700);
    }
}

#[test]
fn c11_a_workspace_beyond_a_limit_leaves_nothing_behind() {
    for place in [plain(), repository()] {
        for number in 0..4 {
            place.put(&format!("deep/{number}"), "12345");
        }
        let all = place.make().unwrap();
        let limits = Limits { files_max: all.files, bytes_max: all.bytes, depth_max: 1 };
        place.make_with(&Options { limits, ..Options::default() }).unwrap();
        let refused = |limits: Limits| {
            let error = place.make_with(&Options { limits, ..Options::default() }).unwrap_err();
            assert_eq!(fs::read_dir(place.checkout.parent().unwrap()).unwrap().count(), 0);
            error
        };
        let fewer = refused(Limits { files_max: all.files - 1, ..limits });
        assert!(matches!(fewer, CheckoutError::TooManyFiles(max) if max == all.files - 1));
        let smaller = refused(Limits { bytes_max: all.bytes - 1, ..limits });
        assert!(matches!(smaller, CheckoutError::TooLarge(max) if max == all.bytes - 1));
        let flatter = refused(Limits { depth_max: 0, ..limits });
        assert!(matches!(flatter, CheckoutError::TooDeep { max: 0, .. }));
    }
}

#[test]
fn c11_a_checkout_that_nobody_wants_any_more_is_not_made() {
    for place in [plain(), repository()] {
        place.put("file", "content");
        let stopped =
            make(&place.workspace, &place.checkout, &place.base, &Options::default(), &AtomicBool::new(true));
        assert!(matches!(stopped, Err(CheckoutError::Stopped)));
        assert_eq!(fs::read_dir(place.checkout.parent().unwrap()).unwrap().count(), 0);
    }
}

#[test]
fn j05_what_a_killed_edge_left_is_thrown_away_and_made_anew() {
    let place = repository();
    for name in ["checkout/old", "checkout.draft/half", "base/old", "base.draft/kept"] {
        fs::create_dir_all(place.checkout.with_file_name(name)).unwrap();
    }
    place.check();
    assert!(!place.has("old") && !place.base.join("old").exists());
    assert_eq!(fs::read_dir(place.checkout.parent().unwrap()).unwrap().count(), 2);
}

#[test]
fn a_base_that_was_damaged_is_not_taken_for_one() {
    let place = repository();
    place.put("kept", "changed\n");
    place.make().unwrap();
    let manifest = place.base.join("base.jsonl");
    let whole = fs::read(&manifest).unwrap();
    let cut = &whole[..whole.len() - whole.iter().rev().skip(1).position(|byte| *byte == b'\n').unwrap() - 1];
    let text = String::from_utf8(whole.clone()).unwrap();
    for damaged in [
        &b""[..],
        cut,
        &whole[..whole.len() / 2],
        text.replace("src/main.rs", "src/evil.rs").as_bytes(),
        text.replacen("\"version\":1", "\"version\":2", 1).as_bytes(),
    ] {
        fs::write(&manifest, damaged).unwrap();
        assert!(matches!(Base::read(&place.base), Err(CheckoutError::Damaged(_))));
    }
    fs::write(&manifest, &whole).unwrap();
    let base = Base::read(&place.base).unwrap();

    let mut contents = Contents::open(&base, &place.base).unwrap();
    let entry = |name: &str| base.find(&RelPath::parse(name.as_bytes()).unwrap()).unwrap();
    assert!(matches!(contents.read(entry("kept"), 3), Err(CheckoutError::FileTooLarge { max: 3, .. })));
    for kept in fs::read_dir(place.base.join("kept")).unwrap() {
        fs::write(kept.unwrap().path(), "chanGed\n").unwrap();
    }
    assert!(matches!(contents.read(entry("kept"), FILE_BYTES_MAX), Err(CheckoutError::Damaged(_))));
    assert_eq!(contents.read(entry("run.sh"), FILE_BYTES_MAX).unwrap(), b"#!/bin/sh\n");
    fs::remove_dir_all(place.workspace.join(".git/objects")).unwrap();
    fs::create_dir(place.workspace.join(".git/objects")).unwrap();
    let mut contents = Contents::open(&base, &place.base).unwrap();
    assert!(matches!(contents.read(entry("run.sh"), FILE_BYTES_MAX), Err(CheckoutError::Damaged(_))));
}
