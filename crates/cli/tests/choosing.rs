//! What a run changed, reviewed by a person: chosen hunk by hunk at the terminal, by name on the command line, sent back with
//! comments, or left for later; on real terminals, with a real hub.
//!
//! clause: C12
//! clause: C13
//! clause: C22

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use rustix::process::Signal;
use serde_json::{Value, json};

use support::api::{Api, Scripted, Yard};
use support::poem::{EDITS, POEM};
use support::terminal::Terminal;
use support::{Hub, Ran, send};

/// How the question about changes ends.
const ASKED: &str = "[s] send back  [l] later  [?] help  [n] reject > ";
const KEYS: &str = "[y,n,a,d,q,?] > ";

struct Site {
    yard: Yard,
    api: Api,
    _hub: Hub,
}

impl Site {
    fn new() -> Self {
        let asks = "[[turn]]\n[[turn.step]]\nshell = \"date -u\"\n";
        let long = format!(
            "[[turn]]\n[[turn.step]]\nwrite = \"long.txt\"\ncontent = {}\n",
            json!((1..=120).map(|line| format!("line {line}\n")).collect::<String>())
        );
        let agent = |name, profile, script| Scripted { name, profile, script };
        let agents = [
            agent("editor", "", EDITS),
            agent("patient", "on_reject = \"continue\"", EDITS),
            agent("clock", "", asks),
            agent("writer", "", &long),
        ];
        let yard = Yard::new("", &agents);
        std::fs::write(yard.workspace.path().join("poem.txt"), POEM).unwrap();
        let (hub, api) = yard.up();
        Site { yard, api, _hub: hub }
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.yard.workspace.path().join(name)).unwrap_or_default()
    }

    /// What is in the person's files: the poem, the new file and the one that configures agents.
    fn files(&self) -> [String; 3] {
        ["poem.txt", "docs/new.md", ".mcp.json"].map(|name| self.read(name))
    }

    fn command(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.yard.home.command(arguments).current_dir(self.yard.workspace.path()))
    }

    fn terminal(&self, arguments: &[&str]) -> Terminal {
        Terminal::of(self.yard.home.command(arguments).current_dir(self.yard.workspace.path()))
    }

    /// An agent at work on a terminal, until its changes are asked about.
    fn edited(&self) -> Terminal {
        let mut terminal = self.terminal(&["run", "edit", "--agent", "editor"]);
        terminal.wait_for("Write .mcp.json in");
        answer(&mut terminal, "[n] reject > ", "y");
        terminal.wait_for("Apply these changes to your files in");
        terminal
    }

    /// A run that waits for its changes to be applied, and what it asks.
    fn changed(&self, agent: &str) -> (String, Value) {
        let run = self.api.start(agent, self.yard.place());
        let written = self.api.asked(&run, &[]);
        self.api.approve(&written);
        let asked = self.api.asked(&run, &[written["id"].as_str().unwrap()]);
        assert_eq!(asked["request"]["kind"], "apply", "{asked}");
        (run, asked)
    }

    fn state(&self, approval: &str) -> Value {
        self.api.get(&format!("/approvals/{approval}"))["approval"]["state"].clone()
    }

    /// The only open approval.
    fn open(&self) -> Value {
        let open = self.api.get("/approvals");
        let [approval] = &open["approvals"].as_array().unwrap()[..] else { panic!("{open}") };
        approval.clone()
    }

    /// What the agent was told.
    fn told(&self, run: &str) -> String {
        let events = self.api.events(run);
        let told = events.iter().find(|event| event["type"] == "run.command.received");
        told.expect("a command was given")["payload"]["text"].as_str().unwrap().to_owned()
    }
}

#[track_caller]
fn answer(terminal: &mut Terminal, question: &str, line: &str) {
    terminal.wait_for(question);
    terminal.type_line(line);
}

#[track_caller]
fn completed(terminal: Terminal) {
    let (exit, screen) = terminal.ended();
    assert_eq!(exit, Some(0), "{screen}");
}

#[test]
fn c22_one_hunk_of_two_is_chosen_at_the_terminal_and_exactly_that_reaches_the_file() {
    let site = Site::new();
    let mut terminal = site.edited();
    answer(&mut terminal, ASKED, "c");
    answer(&mut terminal, &format!("(1/3) .mcp.json configures who may do what; take it? {KEYS}"), "n");
    // What is no key takes nothing.
    answer(&mut terminal, &format!("(2/3) docs/new.md: take it? {KEYS}"), "ok");
    terminal.wait_for("q  take neither this nor anything after it");
    answer(&mut terminal, &format!("(2/3) docs/new.md: take it? {KEYS}"), "n");
    answer(&mut terminal, &format!("(3/3) poem.txt, hunk 1 of 2: take it? {KEYS}"), "n");
    answer(&mut terminal, &format!("(3/3) poem.txt, hunk 2 of 2: take it? {KEYS}"), "y");
    terminal.wait_for("Chosen: poem.txt (hunk 2 of 2)");
    assert_eq!(site.read("poem.txt"), POEM, "nothing is there before it is meant");
    answer(&mut terminal, "[n] not yet > ", "y");
    completed(terminal);
    assert_eq!(site.files(), [&POEM.replace("twelve", "TWELVE"), "", ""]);
}

#[test]
fn c22_a_choice_can_be_made_anew_and_takes_whole_files_with_a_and_d_and_q() {
    let site = Site::new();
    let mut terminal = site.edited();
    answer(&mut terminal, ASKED, "c");
    answer(&mut terminal, KEYS, "q");
    terminal.wait_for("Nothing is chosen.");
    answer(&mut terminal, ASKED, "c");
    answer(&mut terminal, "(1/3) .mcp.json", "d");
    answer(&mut terminal, "(2/3) docs/new.md", "n");
    answer(&mut terminal, "(3/3) poem.txt, hunk 1 of 2", "a");
    terminal.wait_for("Chosen: poem.txt\r\n");
    answer(&mut terminal, "[n] not yet > ", "n");
    answer(&mut terminal, ASKED, "c");
    answer(&mut terminal, "(1/3) .mcp.json", "n");
    answer(&mut terminal, "(2/3) docs/new.md", "y");
    answer(&mut terminal, "(3/3) poem.txt, hunk 1 of 2", "q");
    terminal.wait_for("Chosen: docs/new.md\r\n");
    answer(&mut terminal, "[n] not yet > ", "y");
    completed(terminal);
    assert_eq!(site.files(), [POEM, "new\n", ""]);
}

#[test]
fn c22_what_is_sent_back_with_comments_is_heard_and_all_leaves_out_what_is_protected() {
    let site = Site::new();
    let mut terminal = site.edited();
    answer(&mut terminal, ASKED, "s");
    let first = site.open();
    answer(&mut terminal, "(empty when done) > ", "nothing.txt: What is this?");
    terminal.wait_for(
        "Among the changes there is no file nothing.txt; there are: .mcp.json, docs/new.md, poem.txt.",
    );
    answer(&mut terminal, "(empty when done) > ", "poem.txt:1: Keep it small.");
    answer(&mut terminal, "(empty when done) > ", "docs/new.md: Newer!");
    answer(&mut terminal, "(empty when done) > ", "");
    answer(&mut terminal, "in general (may be empty) > ", "Almost.");
    answer(&mut terminal, "[e] reject, and the run ends  [n] not yet > ", "y");
    // The agent tries again, and what it did is asked about anew.
    terminal.wait_for("sent back");
    terminal.wait_for("+newer");
    terminal.wait_for(ASKED);
    let second = site.open();
    assert_ne!(second["digest"], first["digest"]);
    let told = site.told(second["runId"].as_str().unwrap());
    let heard =
        "Your changes were not accepted. Almost.\n- poem.txt:1: Keep it small.\n- docs/new.md: Newer!";
    assert_eq!(told, heard);
    terminal.type_line("y");
    answer(&mut terminal, "(1/1) .mcp.json configures who may do what; take it?", "n");
    completed(terminal);
    let all = POEM.replace("one", "ONE").replace("twelve", "TWELVE");
    assert_eq!(site.files(), [&all, "newer\n", ""]);
}

#[test]
fn c22_what_is_protected_is_applied_where_it_is_taken_by_itself() {
    let site = Site::new();
    let mut terminal = site.edited();
    answer(&mut terminal, ASKED, "y");
    answer(&mut terminal, "(1/1) .mcp.json configures who may do what; take it?", "q");
    terminal.wait_for("Nothing is applied yet.");
    answer(&mut terminal, ASKED, "y");
    answer(&mut terminal, "(1/1) .mcp.json configures who may do what; take it?", "y");
    terminal.wait_for("Chosen: .mcp.json, docs/new.md, poem.txt");
    answer(&mut terminal, "[n] not yet > ", "y");
    completed(terminal);
    let all = POEM.replace("one", "ONE").replace("twelve", "TWELVE");
    assert_eq!(site.files(), [&all, "new\n", "{}\n"]);
}

#[test]
fn c22_what_is_left_for_later_stays_open_and_is_asked_again_as_it_was() {
    let site = Site::new();
    let mut terminal = site.edited();
    answer(&mut terminal, ASKED, "?");
    terminal.wait_for("l  later: it stays open");
    answer(&mut terminal, ASKED, "l");
    let (exit, screen) = terminal.ended();
    let open = site.open();
    let run = open["runId"].as_str().unwrap();
    let said = format!("Left open: \"runyard apply {run}\" asks again");
    assert!(screen.contains(&said), "{screen}");
    assert_eq!(exit, Some(1), "it is not completed: {screen}");
    let mut terminal = site.terminal(&["apply", run]);
    terminal.wait_for("+TWELVE");
    answer(&mut terminal, ASKED, "c");
    answer(&mut terminal, "(1/3) .mcp.json", "n");
    answer(&mut terminal, "(2/3) docs/new.md", "y");
    answer(&mut terminal, "(3/3) poem.txt, hunk 1 of 2", "d");
    answer(&mut terminal, "[n] not yet > ", "y");
    completed(terminal);
    assert_eq!(site.files(), [POEM, "new\n", ""]);
}

#[test]
fn c12_what_is_answered_elsewhere_or_interrupted_is_not_chosen_any_more() {
    let site = Site::new();
    let mut terminal = site.edited();
    answer(&mut terminal, ASKED, "c");
    terminal.wait_for(KEYS);
    site.api.approve(&site.open());
    completed(terminal);
    let all = POEM.replace("one", "ONE").replace("twelve", "TWELVE");
    assert_eq!(site.files(), [&all, "new\n", ""]);

    std::fs::write(site.yard.workspace.path().join("poem.txt"), POEM).unwrap();
    let mut terminal = site.edited();
    answer(&mut terminal, ASKED, "c");
    terminal.wait_for(KEYS);
    send(terminal.pid(), Signal::INT);
    let (exit, screen) = terminal.ended();
    assert_eq!(exit, Some(130), "{screen}");
    assert_eq!(site.read("poem.txt"), POEM);
}

#[test]
fn c22_a_long_diff_is_shown_page_by_page() {
    let site = Site::new();
    let mut terminal = site.terminal(&["run", "write", "--agent", "writer"]);
    answer(&mut terminal, ASKED, "d");
    terminal.wait_for("added long.txt +120 −0");
    answer(&mut terminal, "[Enter] more  [q] enough > ", "");
    answer(&mut terminal, "[Enter] more  [q] enough > ", "q");
    answer(&mut terminal, ASKED, "n");
    let (exit, screen) = terminal.ended();
    assert_eq!(exit, Some(1));
    let last = |line: &str| screen.lines().filter(|shown| *shown == line).count();
    assert_eq!((last("+line 94"), last("+line 120")), (2, 1), "two pages, and not the third: {screen}");
}

#[test]
fn c22_a_part_is_approved_by_name_and_what_is_not_there_is_refused_with_nothing_resolved() {
    let site = Site::new();
    let (run, asked) = site.changed("editor");
    let id = asked["id"].as_str().unwrap();
    let refused = |arguments: &[&str]| {
        let command = [&["approvals", "approve", id, "--confirm", "--output", "json"], arguments].concat();
        let (_, code, message) = site.command(&command).failure();
        assert_eq!(site.state(id), "open", "{arguments:?}");
        (code, message)
    };
    let not_found = |message: &str| ("NOT_FOUND".to_owned(), message.to_owned());
    assert_eq!(
        refused(&["--hunk", "poem.txt:2,3"]),
        not_found("There is no hunk 3 in poem.txt: it has the hunks 1 to 2.")
    );
    assert_eq!(
        refused(&["--file", "poem.md"]),
        not_found("Among the changes there is no file poem.md; there are: .mcp.json, docs/new.md, poem.txt.")
    );
    assert_eq!(refused(&["--file", "poem.txt", "--digest", "stale"]).0, "CONFLICT");

    // On a terminal the part is shown, and nothing else of the changes.
    let mut terminal = site.terminal(&["approvals", "approve", id, "--hunk", "poem.txt:2"]);
    terminal.wait_for("only: poem.txt (hunk 2 of 2)");
    answer(&mut terminal, "Approve exactly this? [y/N] ", "y");
    let (exit, screen) = terminal.ended();
    assert_eq!(exit, Some(0), "{screen}");
    assert!(screen.contains("+TWELVE") && !screen.contains("+ONE") && !screen.contains("+new"), "{screen}");
    assert!(screen.contains("approved by owner: 1 of 3 files: poem.txt (hunk 2 of 2)"), "{screen}");
    site.api.until(&run, "completed");
    assert_eq!(site.files(), [&POEM.replace("twelve", "TWELVE"), "", ""]);

    let run = site.api.start("clock", site.yard.place());
    let asked = site.api.asked(&run, &[]);
    let id = asked["id"].as_str().unwrap();
    for (verb, arguments) in
        [("approve", ["--file", "a"]), ("approve", ["--hunk", "a:1"]), ("reject", ["--comment", "a:x"])]
    {
        let command = [&["approvals", verb, id, "--confirm", "--output", "json"], &arguments[..]].concat();
        let (exit, code, message) = site.command(&command).failure();
        assert_eq!((exit, code.as_str()), (2, "VALIDATION_ERROR"), "{message}");
    }
    assert_eq!(site.state(id), "open");
}

#[test]
fn c22_a_rejection_with_comments_from_the_command_line_is_the_agents_next_turn() {
    let site = Site::new();
    let (run, asked) = site.changed("editor");
    let id = asked["id"].as_str().unwrap();
    let reject = ["approvals", "reject", id, "--confirm", "--output", "json", "--revise"];
    let (_, code, _) = site.command(&[&reject[..], &["--comment", "a.txt:1:x"]].concat()).failure();
    assert_eq!((code.as_str(), site.state(id)), ("NOT_FOUND", json!("open")));
    let words =
        ["--reason", "Almost.", "--comment", "poem.txt:12:Shout less.", "--comment", "docs/new.md:Newer!"];
    let data = site.command(&[&reject[..], &words].concat()).data();
    assert_eq!(data["approval"]["state"], "rejected");
    let again = site.api.asked(&run, &[id]);
    assert_ne!(again["digest"], asked["digest"]);
    let heard = "Your changes were not accepted. Almost.\n- poem.txt:12: Shout less.\n- docs/new.md: Newer!";
    assert_eq!(site.told(&run), heard);
    // C13: an answer to what was shown before is none to what is there now.
    let stale = asked["digest"].as_str().unwrap();
    let approve = ["approvals", "approve", again["id"].as_str().unwrap(), "--confirm", "--output", "json"];
    let (_, code, _) = site.command(&[&approve[..], &["--digest", stale]].concat()).failure();
    assert_eq!(code, "CONFLICT");
    let applied =
        site.command(&["apply", &run, "--file", "docs/new.md", "--confirm", "--output", "json"]).data();
    assert_eq!(applied["run"]["state"], "completed", "it is followed to its end: {applied}");
    assert_eq!(site.files(), [POEM, "newer\n", ""]);
}

#[test]
fn c22_a_part_that_is_applied_after_the_end_is_shown_as_that_part() {
    let site = Site::new();
    let (run, asked) = site.changed("patient");
    site.command(&["approvals", "reject", asked["id"].as_str().unwrap(), "--confirm", "--output", "json"])
        .data();
    site.api.until(&run, "completed");
    let mut terminal = site.terminal(&["apply", &run, "--hunk", "poem.txt:1"]);
    terminal.wait_for("only: poem.txt (hunk 1 of 2)");
    // It was chosen already, and there is no agent to send it back to.
    answer(&mut terminal, "[y] apply all  [d] diff  [l] later  [?] help  [n] reject > ", "y");
    let (exit, screen) = terminal.ended();
    assert_eq!(exit, Some(0), "{screen}");
    assert!(screen.contains("+ONE") && !screen.contains("+TWELVE") && !screen.contains("+new"), "{screen}");
    assert_eq!(site.files(), [&POEM.replace("one", "ONE"), "", ""]);
}

#[test]
fn c12_what_was_typed_before_it_was_asked_does_not_confirm_an_approval() {
    let site = Site::new();
    let run = site.api.start("clock", site.yard.place());
    let asked = site.api.asked(&run, &[]);
    let id = asked["id"].as_str().unwrap();
    let mut terminal = site.terminal(&["approvals", "approve", id]);
    terminal.type_line("y\ny");
    answer(&mut terminal, "Approve exactly this? [y/N] ", "n");
    let (exit, screen) = terminal.ended();
    assert_eq!((exit, site.state(id)), (Some(130), json!("open")), "{screen}");
    let mut terminal = site.terminal(&["approvals", "approve", id]);
    answer(&mut terminal, "Approve exactly this? [y/N] ", "y");
    completed(terminal);
    assert_eq!(site.state(id), "approved");
}

#[test]
fn c12_a_yes_for_the_project_is_a_rule_that_is_shown_first_and_then_nobody_is_asked_again() {
    let site = Site::new();
    let mut terminal = site.terminal(&["run", "look", "--agent", "clock"]);
    let question = "[s] in this session  [p] in this project  [n] reject > ";
    answer(&mut terminal, question, "p");
    terminal.wait_for("The rule allow shell date -u would cover");
    answer(&mut terminal, "[n] not yet > ", "n");
    assert_eq!(
        site.api.get("/policy")["policy"]["stored"],
        json!([]),
        "nothing is stored before it is meant"
    );
    answer(&mut terminal, question, "p");
    answer(&mut terminal, "[n] not yet > ", "y");
    completed(terminal);
    let policy = site.api.get("/policy");
    let [rule] = &policy["policy"]["stored"].as_array().unwrap()[..] else { panic!("{policy}") };
    assert_eq!(
        [&rule["effect"], &rule["kind"], &rule["match"], &rule["agent"], &rule["scope"]],
        ["allow", "shell", "date -u", "clock", "project"]
    );
    let run = site.api.start("clock", site.yard.place());
    site.api.until(&run, "completed");
    let asked = site.api.events(&run).iter().any(|event| event["type"] == "run.approval.requested");
    assert!(!asked, "the rule answers");
}

#[test]
fn c12_a_yes_for_the_session_shows_its_rule_before_it_is_confirmed() {
    let site = Site::new();
    let run = site.api.start("clock", site.yard.place());
    let asked = site.api.asked(&run, &[]);
    let id = asked["id"].as_str().unwrap();
    let mut terminal = site.terminal(&["approvals", "approve", id, "--scope", "session"]);
    terminal.wait_for("The rule allow shell date -u would cover");
    answer(&mut terminal, "Approve exactly this? [y/N] ", "y");
    completed(terminal);
    let policy = site.api.get("/policy");
    let rule = &policy["policy"]["stored"][0];
    assert_eq!((&rule["scope"], &rule["session"]), (&json!("session"), &site.api.run(&run)["sessionId"]));
}

#[test]
fn c12_what_is_snoozed_stays_open_and_is_listed_only_where_it_is_asked_for() {
    let site = Site::new();
    let run = site.api.start("clock", site.yard.place());
    let asked = site.api.asked(&run, &[]);
    let id = asked["id"].as_str().unwrap();
    let wrong = site.command(&["approvals", "snooze", id, "--for", "soon", "--output", "json"]);
    assert!(wrong.exit == 2 && wrong.stdout.contains("like 30m, 2h or 1d"), "{}", wrong.stdout);
    let snoozed = site.command(&["approvals", "snooze", id, "--for", "2h", "--reason", "at lunch"]).data();
    assert!(snoozed["approval"]["snoozedUntil"].is_string(), "{snoozed}");
    let listed = |arguments: &[&str]| site.command(&[&["approvals", "list"], arguments].concat());
    assert_eq!(listed(&[]).data()["approvals"], json!([]));
    assert_eq!(listed(&["--snoozed"]).data()["approvals"][0]["id"], asked["id"]);
    let table = listed(&["--snoozed", "--output", "text"]).stdout;
    assert!(table.contains("SNOOZED") && table.contains("in 1 h"), "{table}");
    assert_eq!(site.state(id), "open", "it is no rejection");
    site.command(&["approvals", "approve", id, "--confirm"]).data();
    site.api.until(&run, "completed");
}

#[test]
fn c22_what_is_left_goes_on_where_each_command_is_its_own_hub() {
    let yard = Yard::new("", &[Scripted { name: "editor", profile: "", script: EDITS }]);
    std::fs::write(yard.workspace.path().join("poem.txt"), POEM).unwrap();
    let place = yard.workspace.path();
    let terminal = |arguments: &[&str]| Terminal::of(yard.home.command(arguments).current_dir(place));
    let mut first = terminal(&["run", "edit", "--agent", "editor"]);
    answer(&mut first, "[y/N] ", "y");
    answer(&mut first, "Write .mcp.json in", "y");
    answer(&mut first, ASKED, "l");
    let (exit, screen) = first.ended();
    assert_eq!(exit, Some(1), "{screen}");
    let (_, rest) = screen.split_once("\"runyard apply ").unwrap_or_else(|| panic!("{screen}"));
    let mut second = terminal(&["apply", rest.split('"').next().unwrap(), "--file", "docs/new.md"]);
    answer(&mut second, "Apply exactly this to your files? [y/N] ", "y");
    completed(second);
    assert_eq!(std::fs::read_to_string(place.join("docs/new.md")).unwrap(), "new\n");
    assert_eq!(std::fs::read_to_string(place.join("poem.txt")).unwrap(), POEM);
}
