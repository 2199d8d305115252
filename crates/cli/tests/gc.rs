//! `runyard gc` and the disk budget: checkouts go only when nothing can be lost.
//!
//! clause: C13
//! clause: C14

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use support::api::{Api, Scripted, Yard};
use support::{Hub, Ran};

const WRITES: &str = "[[turn]]\n[[turn.step]]\nwrite = \"note.md\"\ncontent = \"by the agent\\n\"\n";
const SAYS: &str = "[[turn]]\n[[turn.step]]\nsay = \"Done.\"\n";

struct Site {
    yard: Yard,
    hub: Option<Hub>,
    api: Api,
}

impl Site {
    fn new(configuration: &str) -> Self {
        let writer = Scripted { name: "writer", profile: "on_reject = \"continue\"", script: WRITES };
        let yard = Yard::new(configuration, &[writer, Scripted { name: "sayer", profile: "", script: SAYS }]);
        let place = yard.workspace.path();
        git(place, &["init", "-q", "-b", "main"]);
        git(place, &["config", "user.name", "Ada"]);
        git(place, &["config", "user.email", "ada@example.com"]);
        git(place, &["add", "-A"]);
        git(place, &["commit", "-q", "-m", "first"]);
        let (hub, api) = yard.up();
        Site { yard, hub: Some(hub), api }
    }

    fn place(&self) -> &Path {
        self.yard.workspace.path()
    }

    fn directory(&self, run: &str) -> PathBuf {
        self.yard.home.path("edge").join("runs").join(run)
    }

    fn checkout(&self, run: &str) -> PathBuf {
        self.directory(run).join("checkout")
    }

    /// A run that has ended, and whose changes nobody wanted yet.
    fn kept(&self) -> String {
        let run = self.api.start("writer", self.yard.place());
        let asked = self.api.asked(&run, &[]);
        let path = format!("/approvals/{}/resolve", asked["id"].as_str().unwrap());
        self.api.post(&path, &json!({"decision": "reject", "digest": asked["digest"]}));
        self.api.until(&run, "completed");
        run
    }

    /// Waits until the edge has let go of a run that is over.
    fn settled(&self, run: &str) {
        support::eventually("the run is tidied up", || {
            let owner = std::fs::read_to_string(self.directory(run).join("owner.json")).ok()?;
            owner.contains("endedAt").then_some(())
        });
    }

    fn command(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.yard.home.command(arguments).current_dir(self.place()))
    }

    /// What gc says about one run, and its exit code.
    fn gc(&self, run: &str, more: &[&str]) -> (i32, Value) {
        let ran = self.command(&[&["gc", run, "--output", "json"], more].concat());
        let told: Value =
            serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}{}", ran.stdout, ran.stderr));
        (ran.exit, told["data"]["runs"][0].clone())
    }

    #[track_caller]
    fn is_kept(&self, run: &str, why: &str) {
        let (exit, told) = self.gc(run, &[]);
        assert_eq!((exit, &told["done"]), (1, &json!("kept")), "{told}");
        assert!(told["reason"].as_str().unwrap().contains(why), "{told}");
        assert!(self.checkout(run).join("note.md").exists(), "it is as it was");
    }
}

fn git(place: &Path, arguments: &[&str]) {
    let ran = Command::new("git").arg("-C").arg(place).args(arguments).output().unwrap();
    assert!(ran.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn c14_what_changed_is_archived_before_its_checkout_goes_and_apply_says_where() {
    let site = Site::new("");
    let run = site.kept();
    std::fs::write(site.checkout(&run).join("blob.bin"), b"\0binary").unwrap();
    let (exit, told) = site.gc(&run, &["--dry-run"]);
    assert_eq!((exit, &told["done"]), (0, &json!("would_collect")), "{told}");
    assert!(site.checkout(&run).join("note.md").exists() && !site.yard.home.path("archive").exists());

    let young = site.command(&["gc", "--output", "json"]).data();
    assert_eq!(young["runs"], json!([]), "it ended a moment ago: {young}");

    let (exit, told) = site.gc(&run, &[]);
    assert_eq!((exit, &told["done"]), (0, &json!("collected")), "{told}");
    assert!(told["bytes"].as_u64().unwrap() > 0, "{told}");
    assert!(!site.checkout(&run).exists() && !site.directory(&run).join("base").exists());
    let patch = told["archive"].as_str().unwrap();

    let applied = site.command(&["apply", &run, "--confirm", "--output", "json"]);
    assert_ne!(applied.exit, 0);
    assert!(applied.stdout.contains("checkout_collected"), "{}", applied.stdout);
    assert!(applied.stdout.contains(&format!("archive/{run}.patch")), "{}", applied.stdout);
    assert!(!site.place().join("note.md").exists());
    git(site.place(), &["apply", patch]);
    assert_eq!(std::fs::read_to_string(site.place().join("note.md")).unwrap(), "by the agent\n");
    assert_eq!(std::fs::read(site.place().join("blob.bin")).unwrap(), b"\0binary");

    let (exit, told) = site.gc(&run, &[]);
    assert_eq!((exit, &told["reason"]), (1, &json!("there is nothing to collect")), "{told}");
}

#[test]
fn c13_a_run_that_has_not_ended_is_not_collected() {
    let site = Site::new("");
    let run = site.api.start("writer", site.yard.place());
    site.api.asked(&run, &[]);
    site.is_kept(&run, "it has not ended (needs_approval)");
    let told = site.command(&["gc", "--older-than", "0d", "--output", "json"]).data();
    assert_eq!(told["runs"][0]["done"], "kept", "{told}");
    site.api.until(&run, "completed");
    assert!(site.place().join("note.md").exists(), "nothing was taken from it");
}

#[test]
fn c22_what_is_in_the_persons_files_needs_no_archive_and_can_still_be_undone_also_without_a_hub() {
    let mut site = Site::new("");
    let run = site.api.start("writer", site.yard.place());
    site.api.until(&run, "completed");
    site.settled(&run);
    site.hub = None;
    let (exit, told) = site.gc(&run, &[]);
    assert_eq!((exit, &told["done"], &told["undo"]), (0, &json!("collected"), &json!(true)), "{told}");
    assert_eq!(told["reason"], "all of it is in your files", "{told}");
    assert!(!site.yard.home.path("archive").exists());
    let undone = site.command(&["undo", &run, "--confirm", "--output", "json"]);
    assert_eq!(undone.exit, 0, "{}{}", undone.stdout, undone.stderr);
    assert!(!site.place().join("note.md").exists());
}

#[test]
fn c14_work_that_can_be_in_no_patch_is_never_collected() {
    let site = Site::new("");
    let run = site.kept();
    std::fs::create_dir_all(site.checkout(&run).join("nested/.git")).unwrap();
    site.is_kept(&run, "nested/.git can be in no patch");
    std::fs::remove_dir_all(site.checkout(&run).join("nested")).unwrap();

    git(&site.checkout(&run), &["branch", "aside"]);
    site.is_kept(&run, "the branch aside");
    git(&site.checkout(&run), &["branch", "-D", "aside"]);

    std::fs::rename(site.directory(&run).join("base"), site.directory(&run).join("elsewhere")).unwrap();
    site.is_kept(&run, "what it began as is not known");
    std::fs::rename(site.directory(&run).join("elsewhere"), site.directory(&run).join("base")).unwrap();

    // Somebody works with it.
    let held = std::fs::File::open(site.directory(&run)).unwrap();
    held.lock_shared().unwrap();
    site.is_kept(&run, "it is in use");
    drop(held);
    assert_eq!(site.gc(&run, &[]).1["done"], "collected");
}

#[test]
fn c13_a_waiting_run_that_needs_anothers_checkout_keeps_it() {
    let site = Site::new("");
    let run = site.kept();
    let found = site.api.get(&format!("/runs/{run}/diff"));
    let made = site.api.post(&format!("/runs/{run}/apply"), &json!({"digest": found["diff"]["digest"]}));
    let carrying = made["run"]["id"].as_str().unwrap().to_owned();
    site.api.asked(&carrying, &[]);
    site.is_kept(&run, "a run that has not ended needs it");
    site.api.until(&carrying, "completed");
    assert!(site.place().join("note.md").exists());
}

#[test]
fn j06_an_agent_cannot_collect() {
    let site = Site::new("");
    let ran = Ran::of(site.yard.home.command(["gc", "--output", "json"]).env("RUNYARD_RUN_ID", "run_x"));
    assert_eq!(ran.failure().1, "AUTHORIZATION_ERROR");
}

#[test]
fn c13_a_run_beyond_the_disk_budget_makes_room_where_nothing_has_to_be_kept_and_else_is_refused() {
    let site = Site::new("[hub]\ncheckouts_max_bytes = 1_048_576\n");
    let noise: Vec<u8> = (0..500_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    std::fs::write(site.place().join("large"), noise).unwrap();
    let first = site.api.start("sayer", site.yard.place());
    site.api.until(&first, "completed");
    site.settled(&first);
    assert!(site.checkout(&first).exists());

    let second = site.kept();
    assert!(!site.checkout(&first).exists(), "nothing had changed there, so it made room");

    let told = site.command(&["doctor", "--output", "json"]);
    assert!(
        told.stdout.contains("No run begins before") && told.stdout.contains("runyard gc"),
        "{}",
        told.stdout
    );
    let third = site.api.start("sayer", site.yard.place());
    let refused = site.api.until(&third, "failed");
    assert_eq!(refused["code"], "checkouts_full", "{refused}");
    assert!(refused["recovery"].as_str().unwrap().contains("runyard gc"), "{refused}");
    assert!(site.checkout(&second).join("note.md").exists(), "what a person may want is not touched");

    assert_eq!(site.gc(&second, &[]).1["done"], "collected");
    let fourth = site.api.start("sayer", site.yard.place());
    site.api.until(&fourth, "completed");
}
