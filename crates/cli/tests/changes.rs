//! What a run changed: looked at, applied whole, by file and by hunk, taken back, committed; on a real repository with work in it.
//!
//! clause: C13
//! clause: C14
//! clause: C22

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use support::api::{Api, Scripted, Yard};
use support::poem::{EDITS, POEM};
use support::{Hub, Ran};

struct Site {
    yard: Yard,
    hub: Hub,
    api: Api,
}

impl Site {
    /// A repository with a commit, and with work that is not committed.
    fn new() -> Self {
        let agent = |name, profile| Scripted { name, profile, script: EDITS };
        let yard = Yard::new("", &[agent("editor", ""), agent("patient", "on_reject = \"continue\"")]);
        let place = yard.workspace.path();
        std::fs::write(place.join("poem.txt"), POEM).unwrap();
        std::fs::write(place.join(".gitignore"), "*.log\n").unwrap();
        git(place, &["init", "-q", "-b", "main"]);
        git(place, &["config", "user.name", "Ada"]);
        git(place, &["config", "user.email", "ada@example.com"]);
        git(place, &["add", "-A"]);
        git(place, &["commit", "-q", "-m", "first"]);
        // As long as what is committed, and hardly later: only a look into it tells them apart.
        std::fs::write(place.join("README.md"), "Changed and not committed.\n").unwrap();
        std::fs::write(place.join("notes.txt"), "untracked\n").unwrap();
        std::fs::write(place.join("debug.log"), "ignored\n").unwrap();
        let (hub, api) = yard.up();
        Site { yard, hub, api }
    }

    fn place(&self) -> &Path {
        self.yard.workspace.path()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.place().join(name)).unwrap_or_default()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.place().join(name), text).unwrap();
    }

    /// A run that waits for its changes to be applied, and what it asks.
    fn changed(&self, agent: &str) -> (String, Value) {
        let run = self.api.start(agent, self.yard.place());
        let written = self.api.asked(&run, &[]);
        assert_eq!(
            written["request"]["path"], ".mcp.json",
            "what configures agents is asked about: {written}"
        );
        self.api.approve(&written);
        let asked = self.api.asked(&run, &[written["id"].as_str().unwrap()]);
        assert_eq!(asked["request"]["kind"], "apply", "{asked}");
        (run, asked)
    }

    fn file(&self, run: &str, path: &str) -> Value {
        let found = self.api.get(&format!("/runs/{run}/diff"));
        let files = found["files"].as_array().unwrap().clone();
        files.into_iter().find(|file| file["path"] == path).unwrap_or_else(|| panic!("{path} in {found}"))
    }

    fn resolve(&self, asked: &Value, answer: Value) {
        let mut body = json!({"digest": asked["digest"]});
        body.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
        self.api.post(&format!("/approvals/{}/resolve", asked["id"].as_str().unwrap()), &body);
    }

    fn command(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.yard.home.command(arguments).current_dir(self.place()))
    }
}

fn git(place: &Path, arguments: &[&str]) -> String {
    let ran = Command::new("git").arg("-C").arg(place).args(arguments).output().unwrap();
    assert!(ran.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn c22_a_chosen_hunk_and_nothing_else_reaches_the_persons_files_and_is_taken_back_byte_for_byte() {
    let site = Site::new();
    let (run, asked) = site.changed("editor");
    assert_eq!(site.read("poem.txt"), POEM, "nothing is there before it is approved");
    let found = site.api.get(&format!("/runs/{run}/diff"));
    assert_eq!((&found["diff"]["files"], &found["diff"]["protected"]), (&json!(3), &json!(1)), "{found}");
    assert_eq!(found["diff"]["approvalId"], asked["id"]);
    let poem = site.file(&run, "poem.txt");
    assert_eq!((&poem["hunks"], &poem["insertions"], &poem["deletions"]), (&json!(2), &json!(2), &json!(2)));
    let body = site.api.get(&format!("/runs/{run}/diff/{}", poem["id"].as_str().unwrap()));
    assert_eq!(body["hunks"][1]["lines"].as_array().unwrap().last().unwrap()["text"], "TWELVE", "{body}");

    let selection = json!([{"file": poem["id"], "hunks": [2]}]);
    site.resolve(&asked, json!({"decision": "approve", "selection": selection}));
    site.api.until(&run, "completed");
    assert_eq!(site.read("poem.txt"), POEM.replace("twelve", "TWELVE"), "exactly that hunk");
    assert!(!site.place().join("docs").exists() && !site.place().join(".mcp.json").exists());
    assert_eq!(site.read("README.md"), "Changed and not committed.\n");
    let events = site.api.events(&run);
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let order =
        ["run.diff.ready", "run.approval.requested", "run.approval.resolved", "run.applying", "run.applied"];
    assert!(kinds.ends_with(&[&order[..], &["run.completed"]].concat()), "{kinds:?}");
    let applying = events.iter().find(|event| event["type"] == "run.applying").unwrap();
    assert_ne!(applying["payload"]["digest"], asked["digest"], "the part has a digest of its own");

    let audited =
        support::eventually("the audit names who applied it", || site.api.audit("audit.applied").pop());
    assert_eq!(audited["what"]["runId"], json!(run), "{audited}");
    assert_eq!(audited["by"]["id"], "owner", "{audited}");

    let undone = site.command(&["undo", &run, "--confirm", "--output", "json"]);
    assert_eq!(undone.exit, 0, "{}{}", undone.stdout, undone.stderr);
    assert_eq!(site.read("poem.txt"), POEM);
}

#[test]
fn c22_all_is_applied_but_what_configures_agents_which_must_be_named() {
    let site = Site::new();
    let (run, asked) = site.changed("editor");
    site.api.approve(&asked);
    site.api.until(&run, "completed");
    assert_eq!(site.read("docs/new.md"), "new\n");
    assert!(site.read("poem.txt").starts_with("ONE\n"));
    assert!(!site.place().join(".mcp.json").exists(), "nobody named it");
    assert_eq!(site.file(&run, ".mcp.json")["protected"], true);

    let applied = site.command(&["apply", &run, "--file", ".mcp.json", "--confirm", "--output", "json"]);
    assert_eq!(applied.exit, 0, "{}{}", applied.stdout, applied.stderr);
    assert_eq!(site.read(".mcp.json"), "{}\n");
}

#[test]
fn c13_approve_then_change_the_checkout_or_the_file_is_refused_and_nothing_is_written() {
    let site = Site::new();
    let (run, asked) = site.changed("editor");
    let checkout = site.yard.home.path("edge").join("runs").join(&run).join("checkout");
    std::fs::write(checkout.join("docs/new.md"), "something else\n").unwrap();
    site.api.approve(&asked);
    let failed = site.api.until(&run, "failed");
    assert_eq!(failed["code"], "CONFLICT", "{failed}");
    assert_eq!((site.read("poem.txt").as_str(), site.place().join("docs").exists()), (POEM, false));

    let (run, asked) = site.changed("editor");
    let mine = POEM.replace("one", "mine");
    site.write("poem.txt", &mine);
    site.api.approve(&asked);
    let failed = site.api.until(&run, "failed");
    assert_eq!(failed["code"], "CONFLICT", "{failed}");
    assert!(failed["message"].as_str().unwrap().contains("poem.txt"), "{failed}");
    assert_eq!((site.read("poem.txt"), site.place().join("docs").exists()), (mine, false), "all or nothing");
}

#[test]
fn c22_changes_elsewhere_in_the_same_file_are_kept() {
    let site = Site::new();
    let (run, asked) = site.changed("editor");
    site.write("poem.txt", &POEM.replace("six", "my six"));
    site.api.approve(&asked);
    site.api.until(&run, "completed");
    let both = POEM.replace("six", "my six").replace("one", "ONE").replace("twelve", "TWELVE");
    assert_eq!(site.read("poem.txt"), both);
}

#[test]
fn c22_what_was_kept_is_applied_later_to_a_branch_or_as_a_commit_by_a_run_of_its_own() {
    let site = Site::new();
    let (run, asked) = site.changed("patient");
    site.resolve(&asked, json!({"decision": "reject"}));
    site.api.until(&run, "completed");
    assert_eq!(site.read("poem.txt"), POEM);

    let arguments =
        ["apply", &run, "--file", "poem.txt", "--branch", "agent/poem", "--confirm", "--output", "json"];
    let applied = site.command(&arguments);
    assert_eq!(applied.exit, 0, "{}{}", applied.stdout, applied.stderr);
    assert_eq!(site.read("poem.txt"), POEM, "a branch leaves the files as they are");
    assert!(git(site.place(), &["show", "agent/poem:poem.txt"]).starts_with("ONE\n"));
    let message = git(site.place(), &["log", "-1", "--format=%an%n%B", "agent/poem"]);
    assert!(message.starts_with("Ada\n"), "{message}");
    let envelope = applied.envelope();
    let carried = &envelope["data"]["run"];
    assert_eq!(
        (&carried["parentRunId"], &carried["state"]),
        (&json!(run), &json!("completed")),
        "{envelope}"
    );

    let applied = site.command(&["apply", &run, "--file", "docs/new.md", "--commit", "--confirm"]);
    assert_eq!(applied.exit, 0, "{}{}", applied.stdout, applied.stderr);
    assert_eq!(git(site.place(), &["show", "--name-only", "--format=", "HEAD"]), "docs/new.md\n");
    assert_eq!(site.read("docs/new.md"), "new\n");
    assert_eq!(site.read("README.md"), "Changed and not committed.\n");
    let status = git(site.place(), &["status", "--porcelain"]);
    assert_eq!(status, " M README.md\n?? notes.txt\n", "the person's own work is as it was");
}

#[test]
fn c22_what_a_later_run_applied_is_taken_back_by_the_id_of_the_run_that_made_it_and_once() {
    let site = Site::new();
    let (run, asked) = site.changed("patient");
    site.resolve(&asked, json!({"decision": "reject"}));
    site.api.until(&run, "completed");
    let (exit, code, message) = site.command(&["undo", &run, "--confirm", "--output", "json"]).failure();
    assert_eq!((exit, code.as_str()), (1, "CONFLICT"), "{message}");
    assert!(message.contains("nothing of it was applied"), "{message}");

    let applied = site.command(&["apply", &run, "--branch", "agent/poem", "--confirm"]);
    assert_eq!(applied.exit, 0, "{}{}", applied.stdout, applied.stderr);
    let undone = site.command(&["undo", &run, "--confirm", "--output", "json"]);
    assert_eq!(undone.exit, 0, "{}{}", undone.stdout, undone.stderr);
    assert_eq!(git(site.place(), &["branch", "--list", "agent/poem"]), "");
    let back = undone.envelope()["data"]["run"]["id"].as_str().unwrap().to_owned();
    let events = site.api.events(&back);
    let asked = events.iter().find(|event| event["type"] == "run.approval.requested").unwrap();
    let title = site.api.get(&format!("/approvals/{}", asked["payload"]["approvalId"].as_str().unwrap()));
    let title = title["approval"]["title"].as_str().unwrap().to_owned();
    assert!(title.starts_with("Take back the branch `agent/poem`"), "{title}");

    let (run, asked) = site.changed("editor");
    site.api.approve(&asked);
    site.api.until(&run, "completed");
    let undone = site.command(&["undo", &run, "--confirm", "--output", "json"]);
    assert_eq!(undone.exit, 0, "{}{}", undone.stdout, undone.stderr);
    let (exit, code, message) = site.command(&["undo", &run, "--confirm", "--output", "json"]).failure();
    assert_eq!((exit, code.as_str()), (1, "CONFLICT"), "{message}");
    assert!(message.contains("taken back already"), "{message}");
}

#[test]
fn c22_what_is_in_place_already_is_not_applied_again_and_an_undo_is_about_what_was_written() {
    let site = Site::new();
    let (run, asked) = site.changed("editor");
    site.api.approve(&asked);
    site.api.until(&run, "completed");
    let again = site.command(&["apply", &run, "--confirm", "--output", "json"]);
    assert_eq!(again.exit, 1, "{}{}", again.stdout, again.stderr);
    let envelope: Value = serde_json::from_str(&again.stdout).unwrap();
    let again = &envelope["data"]["run"];
    let failure = (&again["state"], &again["code"]);
    assert_eq!(failure, (&json!("failed"), &json!("CONFLICT")), "{envelope}");
    let message = again["message"].as_str().unwrap();
    assert!(message.contains("in your files already"), "{message}");

    let undone = site.command(&["undo", &run, "--confirm", "--output", "json"]);
    assert_eq!(undone.exit, 0, "{}{}", undone.stdout, undone.stderr);
    assert_eq!((site.read("poem.txt").as_str(), site.place().join("docs/new.md").exists()), (POEM, false));

    // Whoever has the same changes already has nothing of them to take back.
    let (run, asked) = site.changed("editor");
    site.write("poem.txt", &POEM.replace("one", "ONE").replace("twelve", "TWELVE"));
    std::fs::create_dir_all(site.place().join("docs")).unwrap();
    site.write("docs/new.md", "new\n");
    site.api.approve(&asked);
    site.api.until(&run, "completed");
    let (exit, code, message) = site.command(&["undo", &run, "--confirm", "--output", "json"]).failure();
    assert_eq!((exit, code.as_str()), (1, "CONFLICT"), "{message}");
    assert!(message.contains("nothing to take back"), "{message}");
    assert_eq!(site.read("docs/new.md"), "new\n");

    let applied = site.command(&["apply", &run, "--file", ".mcp.json", "--confirm"]);
    assert_eq!(applied.exit, 0, "{}{}", applied.stdout, applied.stderr);
    let undone = site.command(&["undo", &run, "--confirm"]);
    assert_eq!(undone.exit, 0, "{}{}", undone.stdout, undone.stderr);
    assert!(!site.place().join(".mcp.json").exists() && site.place().join("docs/new.md").exists());
}

#[test]
fn c22_a_hub_whose_directory_is_gone_looks_at_changes_all_the_same() {
    let site = Site::new();
    let gone = site.yard.home.beside("gone");
    std::fs::create_dir(&gone).unwrap();
    site.hub.signal(rustix::process::Signal::TERM);
    let Site { yard, hub, .. } = site;
    hub.ended();
    let hub = Hub::of(yard.home.command_up().current_dir(&gone).spawn().unwrap()).unwrap();
    std::fs::remove_dir(&gone).unwrap();
    let site = Site { api: Api::owner(&yard.home, &hub), yard, hub };
    let (run, asked) = site.changed("editor");
    site.api.approve(&asked);
    site.api.until(&run, "completed");
    assert!(site.read("poem.txt").starts_with("ONE\n"));
}

#[test]
fn c22_what_was_rejected_is_told_to_the_agent_as_its_next_turn() {
    let site = Site::new();
    let (run, asked) = site.changed("editor");
    let poem = site.file(&run, "poem.txt");
    let comments = json!([{"file": poem["id"], "line": 1, "text": "Keep it small."}]);
    site.resolve(
        &asked,
        json!({"decision": "reject", "reason": "Almost.", "revise": true, "comments": comments}),
    );
    let again = site.api.asked(&run, &[asked["id"].as_str().unwrap()]);
    assert_ne!(again["digest"], asked["digest"], "it was looked at anew");
    let events = site.api.events(&run);
    let told = events.iter().find(|event| event["type"] == "run.command.received").unwrap();
    let text = told["payload"]["text"].as_str().unwrap();
    assert_eq!(text, "Your changes were not accepted. Almost.\n- poem.txt:1: Keep it small.");
    site.api.approve(&again);
    site.api.until(&run, "completed");
    assert_eq!(site.read("docs/new.md"), "newer\n");
}

#[test]
fn the_diff_is_shown_on_the_command_line_and_unknown_files_are_said() {
    let site = Site::new();
    let (run, _) = site.changed("editor");
    let shown = site.command(&["diff", &run, "--output", "text"]);
    assert_eq!(shown.exit, 0, "{}", shown.stderr);
    for line in
        ["added docs/new.md +1 −0", "-one", "+ONE", "@@ line 9 @@  hunk 2", "3 files changed, +4 −2 lines"]
    {
        assert!(shown.stdout.lines().any(|found| found == line), "{line} in\n{}", shown.stdout);
    }
    let (exit, code, _) =
        site.command(&["diff", &run, "--file", "nothing.txt", "--output", "json"]).failure();
    assert_eq!((exit, code.as_str()), (1, "NOT_FOUND"));
    let (_, code, message) = site.command(&["apply", &run, "--output", "json"]).failure();
    assert_eq!(code, "CONFIRMATION_REQUIRED", "{message}");
    drop(site.hub);
}

#[test]
fn c22_where_a_link_leads_and_a_newline_that_is_gone_are_seen_before_they_are_applied() {
    let script = "[[turn]]\n[[turn.step]]\nshell = \"ln -s /etc/passwd pw; ln -sf README.md was; printf bare > bare.txt\"\n";
    let yard = Yard::new("", &[Scripted { name: "linker", profile: "", script }]);
    std::fs::write(yard.workspace.path().join("bare.txt"), "bare\n").unwrap();
    std::fs::write(yard.workspace.path().join("was"), "a file\n").unwrap();
    let (_hub, api) = yard.up();
    let run = api.start("linker", yard.place());
    let command = api.asked(&run, &[]);
    api.approve(&command);
    let asked = api.asked(&run, &[command["id"].as_str().unwrap()]);
    assert_eq!(asked["request"]["kind"], "apply", "{asked}");
    let shown = yard.home.run(["diff", &run, "--output", "text"]).stdout;
    let expected = [
        "modified bare.txt +1 −1",
        "@@ line 1 @@",
        "-bare",
        "+bare",
        "\\ No newline at end of file",
        "added pw (symlink)",
        "+symlink → /etc/passwd (points outside the workspace)",
        "retyped was (mode 100644 → 120000) (symlink)",
        "+symlink → README.md",
    ];
    assert_eq!(shown.lines().take(expected.len()).collect::<Vec<_>>(), expected, "{shown}");
}
