//! A real run handed to an auditor as one file: asked about, applied, taken back, exported beside the hub, checked without one.
//!
//! clause: C07
//! clause: C24

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;

use runyard_engine::bundle::{BundleBreakKind, verify};
use serde_json::{Value, json};

use support::api::{Api, Scripted, Yard};
use support::{Home, Hub, Ran, eventually};

const EDITS: &str = r#"
[[turn]]
[[turn.step]]
write = "README.md"
content = "Another text.\n"
[[turn.step]]
write = ".mcp.json"
content = "{}\n"
"#;

struct Site {
    yard: Yard,
    _hub: Hub,
    api: Api,
    run: String,
}

impl Site {
    /// A run that asked, changed a file, was applied and taken back.
    fn new() -> Self {
        let yard = Yard::new("", &[Scripted { name: "editor", profile: "", script: EDITS }]);
        let (hub, api) = yard.up();
        let run = api.start("editor", yard.place());
        let written = api.asked(&run, &[]);
        api.approve(&written);
        api.until(&run, "completed");
        let site = Site { yard, _hub: hub, api, run };
        let undone = site.command(&["undo", &site.run, "--confirm", "--output", "json"]);
        assert_eq!(undone.exit, 0, "{}{}", undone.stdout, undone.stderr);
        eventually("the audit knows both", || (site.api.audit("audit.applied").len() == 2).then_some(()));
        site
    }

    fn command(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.yard.home.command(arguments).current_dir(self.yard.workspace.path()))
    }

    fn file(&self) -> PathBuf {
        self.yard.workspace.path().join(format!("{}.audit.jsonl", self.run))
    }

    fn exported(&self) -> (Value, Vec<u8>) {
        let made = self.command(&["audit", "export", &self.run]).data();
        (made, std::fs::read(self.file()).unwrap())
    }
}

/// Checks a file where there is neither hub nor data directory.
fn elsewhere(site: &Site, more: &[&str]) -> Ran {
    let file = site.file();
    let arguments = [&["audit", "verify", file.to_str().unwrap()], more].concat();
    let mut command = site.yard.home.command(arguments);
    Ran::of(command.env_remove("RUNYARD_HOME").env_remove("HOME").current_dir("/"))
}

#[test]
fn c07_an_exported_run_is_checked_anywhere_and_says_who_signed_it() {
    let site = Site::new();
    let (made, bundle) = site.exported();
    assert_eq!((&made["runs"], &made["approvals"]), (&json!(2), &json!(3)), "{made}");
    assert!(made["entries"].as_u64().unwrap() >= 5 && made["blobs"].as_u64().unwrap() >= 2, "{made}");
    assert_eq!(std::fs::metadata(site.file()).unwrap().permissions().mode() & 0o777, 0o600);
    let text = String::from_utf8(bundle).unwrap();
    assert!(text.contains("+Another text."), "the diff is in it");
    let place = site.yard.place();
    assert!(!text.contains(place) && !text.contains(&site.api.token), "no secret and no private path is");

    let checked = elsewhere(&site, &[]).data();
    assert_eq!((&checked["holds"], &checked["ownKey"]), (&json!(true), &json!(false)), "{checked}");
    assert_eq!(checked["runs"][0]["state"], "completed");
    assert_eq!(checked["runs"].as_array().unwrap().len(), 2, "what took it back is in it: {checked}");
    let here = site.command(&["audit", "verify", site.file().to_str().unwrap()]).data();
    assert_eq!(here["ownKey"], true);

    let key = site.command(&["audit", "key"]).data();
    let fingerprint = key["fingerprint"].as_str().unwrap();
    assert_eq!(
        (key["fingerprint"].clone(), key["algorithm"].as_str()),
        (checked["key"].clone(), Some("Ed25519"))
    );
    assert_eq!(elsewhere(&site, &["--key", fingerprint]).data()["holds"], true);
    let other = format!("sha256:{}", "0".repeat(64));
    let envelope = elsewhere(&site, &["--key", &other]).envelope();
    assert_eq!((&envelope["ok"], &envelope["error"]["code"]), (&json!(false), &json!("storage.corrupt")));
    assert!(envelope.to_string().contains("signed it, and not"), "{envelope}");
    assert_eq!(elsewhere(&site, &["--key", "wrong"]).failure().1, "VALIDATION_ERROR");

    let said = elsewhere(&site, &["--output", "text"]);
    assert!(said.exit == 0 && said.stdout.contains("holds: nothing was changed"), "{}", said.stdout);
    assert!(said.stdout.contains(fingerprint), "{}", said.stdout);
    assert_eq!(site.command(&["audit", "verify"]).data()["ok"], site.api.get("/audit/verify")["ok"]);
}

#[test]
fn c07_a_real_bundle_with_any_byte_changed_any_event_removed_or_the_tail_cut_is_refused() {
    let site = Site::new();
    let (_, bundle) = site.exported();
    assert!(verify(&*bundle).unwrap().is_ok());
    let parts = std::thread::available_parallelism().map_or(2, usize::from);
    let refused = |changed: &[u8], what: &dyn Fn() -> String| {
        assert!(verify(changed).unwrap().is_err(), "{} was not noticed", what());
    };
    std::thread::scope(|scope| {
        for part in 0..parts {
            let (bundle, refused) = (&bundle, &refused);
            scope.spawn(move || {
                let mut changed = bundle.clone();
                for place in (part..bundle.len()).step_by(parts) {
                    changed[place] ^= 1 << (place % 7);
                    refused(&changed, &|| format!("a bit of byte {place}"));
                    changed[place] = bundle[place];
                }
            });
        }
    });
    for end in (0..bundle.len()).step_by(97) {
        let found = verify(&bundle[..end]).unwrap().unwrap_err();
        assert!(matches!(found.kind, BundleBreakKind::Cut), "{end}: {found}");
    }
    let lines: Vec<&[u8]> = bundle.split_inclusive(|byte| *byte == b'\n').collect();
    for place in 0..lines.len() {
        let mut changed = lines.clone();
        changed.remove(place);
        refused(&changed.concat(), &|| format!("the loss of line {}", place + 1));
        if place > 0 {
            let mut changed = lines.clone();
            changed.swap(place - 1, place);
            refused(&changed.concat(), &|| format!("line {} before the one before it", place + 1));
        }
    }
}

#[test]
fn a_broken_file_is_refused_by_the_command_with_the_line() {
    let site = Site::new();
    let (_, bundle) = site.exported();
    let text = String::from_utf8(bundle).unwrap().replace("+Another text.", "+Another word.");
    std::fs::write(site.file(), &text).unwrap();
    let envelope = elsewhere(&site, &[]).envelope();
    let issue = envelope["error"]["issues"][0]["message"].as_str().unwrap();
    let line = text.lines().position(|line| line.contains("+Another word.")).unwrap() + 1;
    assert!(issue.starts_with(&format!("line {line}: the content of blob sha256:")), "{envelope}");
    std::fs::write(site.file(), "").unwrap();
    assert!(elsewhere(&site, &[]).stdout.contains("line 1: the bundle is cut off here"));
    std::fs::remove_file(site.file()).unwrap();
    assert_eq!(elsewhere(&site, &[]).failure().1, "NOT_FOUND");
}

#[test]
fn an_export_replaces_nothing_unless_it_is_told_to_and_leaves_nothing_half() {
    let site = Site::new();
    std::fs::write(site.file(), "mine").unwrap();
    let (exit, code, message) = site.command(&["audit", "export", &site.run]).failure();
    assert!((exit, code.as_str()) == (1, "CONFLICT") && message.contains("--force"), "{code}: {message}");
    assert_eq!(std::fs::read(site.file()).unwrap(), b"mine");
    site.command(&["audit", "export", &site.run, "--force"]).data();
    assert_eq!(elsewhere(&site, &[]).data()["holds"], true);
    let nobody = format!("run_{}", "0".repeat(32));
    for absent in [nobody.as_str(), "run_01983c6b7d5e7a1f8e1b2c3d4e5f6071"] {
        let refused = site.command(&["audit", "export", absent, "--to", "x.jsonl"]);
        assert_eq!(refused.failure().1, "storage.not_found");
    }
    assert_eq!(site.command(&["audit", "export", "what"]).failure().1, "VALIDATION_ERROR");
    assert_ne!(site.command(&["audit", "export", &site.run, "--to", "no/such/place"]).exit, 0);
    let left: Vec<String> = std::fs::read_dir(site.yard.workspace.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("draft") || name == "x.jsonl")
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn the_key_is_made_once_whoever_comes_first_and_is_for_its_owner_alone() {
    let home = Home::new();
    let asking: Vec<_> =
        (0..8).map(|_| home.command(["audit", "key"]).stdin(Stdio::null()).spawn().unwrap()).collect();
    let told: Vec<Value> = asking
        .into_iter()
        .map(|child| Ran::from(child.wait_with_output().unwrap()).data()["publicKey"].clone())
        .collect();
    assert!(told.iter().all(|key| *key == told[0] && key.is_string()), "{told:?}");
    let mode = |name: &str| std::fs::metadata(home.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("keys"), mode("keys/audit.ed25519")), (0o700, 0o600));
    std::fs::write(home.path("keys/audit.ed25519"), "not a key").unwrap();
    let (_, code, message) = home.run(["audit", "key"]).failure();
    assert!(code == "storage.io" && message.contains("is not usable"), "{code}: {message}");
}

/// The entries of the audit of this type, asked for without a hub that stays.
fn entries(yard: &Yard, kind: &str) -> Vec<Value> {
    let shown = yard.home.run(["audit", "show", "--limit", "499"]).data();
    shown["entries"].as_array().unwrap().iter().filter(|entry| entry["type"] == kind).cloned().collect()
}

/// What a run's exported file holds of this type.
fn exported(yard: &Yard, run: &str, kind: &str) -> usize {
    let file = yard.home.beside("exported.jsonl");
    yard.home.run(["audit", "export", run, "--force", "--to", file.to_str().unwrap()]).data();
    std::fs::read_to_string(file).unwrap().matches(&format!("\"type\":\"{kind}\"")).count()
}

#[test]
fn c24_a_decision_made_without_a_hub_that_stays_is_in_the_audit_at_once() {
    let yard = Yard::new("", &[Scripted { name: "editor", profile: "", script: EDITS }]);
    let (hub, api) = yard.up();
    let run = api.start("editor", yard.place());
    let asked = api.asked(&run, &[]);
    hub.signal(rustix::process::Signal::TERM);
    hub.ended();
    yard.home.run(["approvals", "reject", asked["id"].as_str().unwrap(), "--confirm"]).data();
    assert_eq!(exported(&yard, &run, "audit.decision"), 1);
    let decisions = entries(&yard, "audit.decision");
    assert_eq!((decisions.len(), &decisions[0]["what"]["runId"]), (1, &json!(run)), "{decisions:?}");
}

#[test]
fn c24_what_a_run_with_its_own_hub_applied_is_in_the_audit_when_the_command_ends() {
    let yard = Yard::new("", &[Scripted { name: "editor", profile: "", script: EDITS }]);
    yard.home.run(["workspaces", "add", yard.place()]).data();
    let arguments =
        ["run", "look around", "--agent", "editor", "--workspace", yard.place(), "--output", "json"];
    let running = yard.home.command(arguments).spawn().unwrap();
    for _ in 0..2 {
        let asked = eventually("the run asks", || {
            let listed = yard.home.run(["approvals", "list"]).data();
            listed["approvals"].as_array().unwrap().first().cloned()
        });
        yard.home.run(["approvals", "approve", asked["id"].as_str().unwrap(), "--confirm"]).data();
    }
    let ran = Ran::from(running.wait_with_output().unwrap());
    let envelope: Value = serde_json::from_str(&ran.stdout).unwrap();
    let run = &envelope["data"]["run"];
    assert_eq!(run["state"], "completed", "{envelope}");
    let found = |kind| exported(&yard, run["id"].as_str().unwrap(), kind);
    assert_eq!((found("audit.decision"), found("audit.applied")), (2, 1));
}
