//! A whole installation copied while it is used, and put back: with its runs, its workspaces, its trust and its keys.
//!
//! clause: B06
//! clause: C08
//! clause: J07

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Child;

use rustix::process::Signal;
use serde_json::{Value, json};

use support::api::{Api, Scripted, Yard};
use support::{Home, Ran, eventually, send};

const EDITS: &str = r#"
[[turn]]
[[turn.step]]
write = "README.md"
content = "Another text.\n"
"#;

/// Waits for a person before it writes.
const ASKS: &str = r#"
[[turn]]
[[turn.step]]
write = "first.txt"
content = "first\n"
[[turn.step]]
write = ".mcp.json"
content = "{}\n"
"#;

fn yard() -> Yard {
    let agent = |name, script| Scripted { name, profile: "", script };
    Yard::new("", &[agent("editor", EDITS), agent("asker", ASKS)])
}

/// Another home, with nothing in it yet.
fn restored(backup: &Path) -> Home {
    let home = Home::new();
    let done = home.run(["restore", backup.to_str().unwrap()]).data();
    assert_eq!(done["movedAside"], Value::Null, "{done}");
    home
}

fn backed_up(yard: &Yard, more: &[&str]) -> (PathBuf, Value) {
    let backup = yard.home.beside(&format!("backup{}", more.len()));
    let arguments = [&["backup", backup.to_str().unwrap()], more].concat();
    let made = yard.home.run(arguments).data();
    (backup, made)
}

/// Every file below a directory, with what it holds.
fn content(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut directories) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                found.insert(path.strip_prefix(root).unwrap().to_owned(), std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn c08_what_is_restored_is_the_installation_with_its_record_keys_and_workspaces() {
    let yard = yard();
    let (hub, api) = yard.up();
    let run = api.start("editor", yard.place());
    api.until(&run, "completed");
    let key = yard.home.run(["audit", "key"]).data();
    let project = yard.home.beside("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("runyard.toml"), "").unwrap();
    yard.home.run(["trust", project.to_str().unwrap(), "--confirm"]).data();
    let workspaces = api.get("/workspaces");

    let (backup, made) = backed_up(&yard, &[]);
    assert_eq!((&made["database"], &made["checkouts"]), (&json!("sqlite"), &json!(false)), "{made}");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&backup), mode(&backup.join("data/token"))), (0o700, 0o600), "it is its owner's alone");
    let before = yard.home.run(["log", "verify", &run]).data();
    hub.signal(Signal::TERM);
    hub.ended();

    let home = restored(&backup);
    assert_eq!(home.run(["log", "verify", &run]).data(), before);
    home.run(["log", "verify"]).data();
    assert_eq!(home.run(["audit", "key"]).data(), key);
    for name in ["token", "tag.key", "trust.json", "edge/digest.key", "runyard.toml"] {
        assert_eq!(
            std::fs::read(home.path(name)).unwrap(),
            std::fs::read(yard.home.path(name)).unwrap(),
            "{name}"
        );
    }
    let doctor = home.run(["doctor", "--output", "json"]);
    assert_eq!((doctor.exit, &doctor.data()["usable"]), (0, &json!(true)));
    let hub = home.up();
    let api = Api::owner(&home, &hub);
    assert_eq!(api.get("/workspaces"), workspaces);
    assert_eq!(api.run(&run)["state"], "completed");
    assert_eq!(api.get(&format!("/runs/{run}/diff"))["diff"]["files"], 1, "the blobs are there");
    let undone = home.run(["undo", &run, "--confirm", "--output", "json"]);
    assert_eq!(undone.exit, 0, "{}{}", undone.stdout, undone.stderr);
    let readme = std::fs::read_to_string(yard.workspace.path().join("README.md")).unwrap();
    assert_eq!(readme, "A place to look around in.\n", "what was applied can still be taken back");
}

#[test]
fn c08_a_run_that_waited_goes_on_where_its_checkout_is_in_the_backup_and_ends_clearly_where_it_is_not() {
    let yard = yard();
    let (hub, api) = yard.up();
    let run = api.start("asker", yard.place());
    let asked = api.asked(&run, &[]);
    let ((with, _), (without, _)) = (backed_up(&yard, &["--checkouts"]), backed_up(&yard, &[]));
    hub.signal(Signal::KILL);
    hub.ended();

    let home = restored(&with);
    let hub = home.up();
    let api = Api::owner(&home, &hub);
    api.approve(&asked);
    api.until(&run, "completed");
    assert!(yard.workspace.path().join("first.txt").exists());
    drop(hub);

    let home = restored(&without);
    let hub = home.up();
    let api = Api::owner(&home, &hub);
    api.approve(&asked);
    let ended = eventually("the run ends", || {
        let found = api.run(&run);
        ["completed", "failed", "cancelled"].contains(&found["state"].as_str().unwrap()).then_some(found)
    });
    assert_eq!(ended["state"], "failed", "{ended}");
    assert!(ended["message"].as_str().unwrap().contains("checkout is gone"), "{ended}");
    home.run(["log", "verify"]).data();
}

#[test]
fn a_backup_is_refused_where_something_is_in_its_way() {
    let home = Home::new();
    let (_, code, message) = home.run(["backup", "copy"]).failure();
    assert!(code == "NOT_FOUND" && message.contains("nothing to back up"), "{code}: {message}");
    home.run(["audit", "key"]).data();
    let made = home.run(["backup", "copy"]).data();
    assert_eq!((&made["database"], &made["files"]), (&json!("none"), &json!(1)), "{made}");
    let before = content(&home.beside("copy"));
    assert_eq!(home.run(["backup", "copy"]).failure().1, "CONFLICT");
    assert_eq!(content(&home.beside("copy")), before);
    let inside = home.path("copy");
    assert_eq!(home.run(["backup", inside.to_str().unwrap()]).failure().1, "VALIDATION_ERROR");
    assert_eq!(home.run(["backup", "no/such/place"]).failure().1, "NOT_FOUND");
    std::fs::create_dir(home.beside("other.unfinished")).unwrap();
    std::fs::write(home.beside("other.unfinished").join("mine"), "").unwrap();
    assert_eq!(home.run(["backup", "other"]).failure().1, "CONFLICT", "nobody else's directory is emptied");
    assert!(
        home.beside("other.unfinished").join("mine").exists() && !home.beside("copy.unfinished").exists()
    );
}

#[test]
fn a_restore_is_refused_beside_a_hub_and_over_data_unless_that_is_moved_aside() {
    let yard = yard();
    let (hub, _) = yard.up();
    let (backup, _) = backed_up(&yard, &[]);
    let backup = backup.to_str().unwrap();
    let (_, code, message) = yard.home.run(["restore", backup, "--force"]).failure();
    assert!(code == "CONFLICT" && message.contains("Stop it first"), "{code}: {message}");
    hub.signal(Signal::TERM);
    hub.ended();
    std::fs::write(yard.home.path("mine.txt"), "mine").unwrap();
    let (_, code, message) = yard.home.run(["restore", backup]).failure();
    assert!(code == "CONFLICT" && message.contains("--force"), "{code}: {message}");
    let done = yard.home.run(["restore", backup, "--force"]).data();
    let aside = PathBuf::from(done["movedAside"].as_str().unwrap());
    assert_eq!(std::fs::read(aside.join("mine.txt")).unwrap(), b"mine");
    assert!(!yard.home.path("mine.txt").exists() && aside.join("runyard.db").exists());
    assert_eq!(std::fs::metadata(yard.home.path("")).unwrap().permissions().mode() & 0o777, 0o700);
    yard.home.run(["log", "verify"]).data();
    let nothing = yard.home.beside("nothing");
    assert_eq!(yard.home.run(["restore", nothing.to_str().unwrap(), "--force"]).failure().1, "NOT_FOUND");
}

#[test]
fn c07_a_backup_of_which_anything_was_changed_added_or_removed_is_not_restored() {
    let yard = yard();
    let (hub, api) = yard.up();
    api.until(&api.start("editor", yard.place()), "completed");
    let (backup, _) = backed_up(&yard, &[]);
    drop(hub);
    let files = content(&backup);
    assert!(files.len() > 8, "{:?}", files.keys());
    let home = Home::with("# what is there");
    let refused = |what: &str| {
        let ran = home.run(["restore", backup.to_str().unwrap(), "--force"]);
        assert_eq!(ran.exit, 1, "{what} was not noticed: {}", ran.stdout);
        assert_eq!(std::fs::read_to_string(home.path("runyard.toml")).unwrap(), "# what is there");
        assert!(!home.path("runyard.db").exists() && !home.beside("home.restoring").exists());
    };
    for (path, content) in &files {
        let place = backup.join(path);
        let mode = std::fs::metadata(&place).unwrap().permissions();
        let mut changed = content.clone();
        match changed.last_mut() {
            Some(last) => *last ^= 1,
            None => changed.push(b' '),
        }
        std::fs::write(&place, &changed).unwrap();
        refused(&format!("a change of {}", path.display()));
        std::fs::remove_file(&place).unwrap();
        refused(&format!("the loss of {}", path.display()));
        std::fs::write(&place, content).unwrap();
        std::fs::set_permissions(&place, mode).unwrap();
    }
    std::fs::write(backup.join("data/edge/more"), "").unwrap();
    refused("a file more");
    std::fs::remove_file(backup.join("data/edge/more")).unwrap();
    home.run(["restore", backup.to_str().unwrap(), "--force"]).data();
}

/// Waits until it has begun, lets it go on for a while, a little longer each time, and kills it. Whether that was in the middle.
fn killed(mut child: Child, begun: &Path, attempt: u32) -> bool {
    eventually("it begins or ends", || (begun.exists() || child.try_wait().unwrap().is_some()).then_some(()));
    for _ in 0..attempt * attempt * 50 {
        std::thread::yield_now();
    }
    if child.try_wait().unwrap().is_none() {
        send(child.id(), Signal::KILL);
        child.wait().unwrap();
    }
    begun.exists()
}

#[test]
fn a_kill_at_any_moment_leaves_a_whole_backup_or_none_and_the_old_data_or_the_new() {
    let yard = yard();
    let (hub, api) = yard.up();
    api.until(&api.start("editor", yard.place()), "completed");
    let (good, _) = backed_up(&yard, &[]);
    let (backup, unfinished) = (yard.home.beside("again"), yard.home.beside("again.unfinished"));
    let mut in_the_middle = 0;
    for attempt in 0..14 {
        let child = yard.home.command(["backup", backup.to_str().unwrap()]).spawn().unwrap();
        in_the_middle += u32::from(killed(child, &unfinished, attempt));
        if backup.exists() {
            restored(&backup).run(["log", "verify"]).data();
            std::fs::remove_dir_all(&backup).unwrap();
        }
    }
    assert!(in_the_middle > 0);
    yard.home.run(["backup", backup.to_str().unwrap()]).data();
    assert!(!unfinished.exists(), "what was left is used up");
    restored(&backup).run(["log", "verify"]).data();
    drop(hub);

    let mut in_the_middle = 0;
    for attempt in 0..14 {
        let home = Home::with("# what is there");
        let child = home.command(["restore", good.to_str().unwrap(), "--force"]).spawn().unwrap();
        in_the_middle += u32::from(killed(child, &home.beside("home.restoring"), attempt));
        if std::fs::read_to_string(home.path("runyard.toml")).unwrap() == "# what is there" {
            assert!(
                !home.path("runyard.db").exists() && !home.path("token").exists(),
                "the old data as it was"
            );
            home.run(["restore", good.to_str().unwrap(), "--force"]).data();
            assert!(!home.beside("home.restoring").exists(), "what was left is used up");
        }
        home.run(["log", "verify"]).data();
        assert!(home.path("token").exists());
    }
    assert!(in_the_middle > 0);
}

#[test]
fn with_postgresql_everything_else_is_kept_and_the_database_is_said_to_be_its_own_affair() {
    let home = Home::with("");
    let url = "postgres://ada:canary-password@127.0.0.1:1/none";
    let run = |arguments: &[&str]| Ran::of(home.command(arguments).env("RUNYARD_DATABASE_URL", url));
    let made = run(&["backup", "copy", "--output", "text"]);
    assert_eq!(made.exit, 0, "{}", made.stderr);
    assert!(made.stdout.contains("pg_dump"), "{}", made.stdout);
    let other = Home::new();
    let copy = home.beside("copy");
    let put = other.run(["restore", copy.to_str().unwrap(), "--output", "text"]);
    assert!(put.exit == 0 && put.stdout.contains("pg_restore"), "{}{}", put.stdout, put.stderr);
    assert!(other.path("runyard.toml").exists());
}

const KEY: &str = "pl4nted-and-quite-plain-words-8841";

/// Puts a key wherever one may lie while agents work.
fn plant(home: &Home) {
    let auth = json!({ "OPENAI_API_KEY": KEY }).to_string();
    assert_eq!(home.run_with(["secrets", "set", "codex", "auth.json"], auth.as_bytes()).exit, 0);
    let session = "edge/sessions/ses_01/codex/codex";
    for name in ["auth.json", "config.toml", "shell_snapshots/a.sh", "tmp/a", "sessions/rollout.jsonl"] {
        let path = home.path(session).join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, if name.starts_with("sessions") { "a thread" } else { KEY }).unwrap();
    }
    let check = home.path("edge/checks/ab/session");
    std::fs::create_dir_all(&check).unwrap();
    std::fs::write(check.join("auth.json"), KEY).unwrap();
}

/// Where the key is in a backup.
fn with_key(backup: &Path) -> Vec<PathBuf> {
    let holds = |(_, bytes): &(PathBuf, Vec<u8>)| bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes());
    content(backup).into_iter().filter(holds).map(|(path, _)| path).collect()
}

#[test]
fn b06_no_key_to_a_provider_is_in_a_backup_unless_that_is_asked_for_and_both_ways_it_is_said() {
    let home = Home::with("");
    plant(&home);
    let made = home.run(["backup", "plain"]).data();
    assert_eq!((&made["secrets"], &made["secretsElsewhere"]), (&json!(false), &Value::Null), "{made}");
    let plain = home.beside("plain");
    assert_eq!(with_key(&plain), Vec::<PathBuf>::new());
    let thread = "edge/sessions/ses_01/codex/codex/sessions/rollout.jsonl";
    assert_eq!(std::fs::read(plain.join("data").join(thread)).unwrap(), b"a thread");
    let told = home.run(["backup", "told", "--output", "text"]).stdout;
    assert!(told.contains("The keys to model providers are not in it (--secrets)"), "{told}");

    let other = Home::new();
    let put = other.run(["restore", plain.to_str().unwrap(), "--output", "text"]);
    assert!(put.exit == 0 && put.stdout.contains("runyard secrets check"), "{}{}", put.stdout, put.stderr);
    assert!(!other.path("secrets").exists());
    assert_eq!(other.run(["secrets", "check", "codex"]).exit, 1, "it is to be set again");

    let made = home.run(["backup", "whole", "--secrets"]).data();
    assert_eq!(made["secrets"], true, "{made}");
    let (whole, secret) = (home.beside("whole"), Path::new("data/secrets/codex/auth.json"));
    assert_eq!(with_key(&whole), [secret], "and what a run was given is not in it");
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(whole.join(secret)), mode(whole.join("data/secrets"))), (0o600, 0o700));
    let told = home.run(["backup", "told-whole", "--secrets", "--output", "text"]).stdout;
    assert!(told.contains("whoever reads it has them"), "{told}");
    let other = Home::new();
    let put = other.run(["restore", whole.to_str().unwrap()]).data();
    assert_eq!(put["secrets"], true, "{put}");
    assert_eq!(mode(other.path("secrets/codex/auth.json")), 0o600);
    assert_eq!(other.run(["secrets", "check", "codex"]).exit, 0);
}

#[test]
fn b06_secrets_in_a_directory_of_their_own_are_never_copied_and_it_is_said_where_they_are() {
    for (place, link) in [("outside", None), ("home/inside", None), ("beyond", Some("home/secrets"))] {
        let home = Home::with("");
        let directory = home.beside(place);
        match link {
            Some(link) => std::os::unix::fs::symlink(&directory, home.beside(link)).unwrap(),
            None => {
                let configuration = format!("[edge]\nsecrets_directory = {directory:?}\n");
                std::fs::write(home.path("runyard.toml"), configuration).unwrap();
            }
        }
        std::fs::create_dir_all(directory.join("codex")).unwrap();
        std::fs::write(directory.join("codex/auth.json"), KEY).unwrap();
        for (name, more) in [("plain", None), ("asked", Some("--secrets"))] {
            let made = home.run(["backup", name].into_iter().chain(more)).data();
            assert_eq!(made["secrets"], false, "{made}");
            assert_eq!(made["secretsElsewhere"], directory.canonicalize().unwrap().to_str().unwrap());
            assert_eq!(with_key(&home.beside(name)), Vec::<PathBuf>::new(), "{place}");
        }
        let told = home.run(["backup", "told", "--secrets", "--output", "text"]).stdout;
        assert!(told.contains("yours to back up"), "{told}");
    }
    let home = Home::new();
    let configuration = format!("[edge]\nsecrets_directory = {:?}\n", home.path(""));
    std::fs::create_dir(home.path("")).unwrap();
    std::fs::write(home.path("runyard.toml"), configuration).unwrap();
    assert_eq!(home.run(["backup", "copy"]).failure().1, "VALIDATION_ERROR", "they cannot be told apart");
}
