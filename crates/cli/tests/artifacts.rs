//! Artifacts from the command line and from inside a run, with a real hub: files go in, are looked at, and come out again.
//!
//! clause: C14
//! clause: C15
//! clause: C05

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::path::Path;

use serde_json::{Value, json};

use support::Ran;
use support::api::{Api, Scripted, Yard};

const KEY: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x05\0\0\0\x02\xd0\x08\x06\0\0\0";

const WAITS: &str = "[[turn]]\n[[turn.step]]\nshell = \"true\"\n";

/// From inside the run: it adds a note to its own run, and tries to add one to another, whose id lies in the workspace.
const ADDS: &str = r##"
[[turn]]
[[turn.step]]
shell = '''
add() {
  curl -s -o "$2" -w "$2 %{http_code}\n" -H "Authorization: Bearer $RUNYARD_RUN_TOKEN" -H 'Content-Type: application/json' \
    -d '{"name":"note.md","facts":{"kind":"file","path":"docs/note.md"},"text":"# from inside\n"}' "$RUNYARD_URL/api/v1/runs/$1/artifacts"
}
add "$RUNYARD_RUN_ID" own.json
add "$(cat other.txt)" other.json
'''
"##;

struct Site {
    yard: Yard,
    api: Api,
    _hub: support::Hub,
}

impl Site {
    fn new() -> Self {
        let agents = [
            Scripted { name: "waits", profile: "", script: WAITS },
            Scripted { name: "adds", profile: "", script: ADDS },
        ];
        let yard = Yard::new("", &agents);
        let (hub, api) = yard.up();
        Site { yard, api, _hub: hub }
    }

    /// A file beside the data directory.
    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.yard.home.beside(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let arguments = ["artifacts"].iter().chain(arguments).chain(&["--output", "json"]);
        self.yard.home.run(arguments)
    }

    #[track_caller]
    fn added(&self, arguments: &[&str]) -> Value {
        self.run(&[&["add"], arguments].concat()).data()["artifact"].clone()
    }
}

fn id(artifact: &Value) -> &str {
    artifact["id"].as_str().unwrap()
}

#[test]
fn c14_a_file_goes_in_is_looked_at_and_comes_out_as_it_was() {
    let site = Site::new();
    let run = site.api.start("waits", site.yard.place());
    let shot = site.file("start.png", PNG);
    #[rustfmt::skip]
    let artifact = site.added(&[
        &run, &shot, "--kind", "screenshot", "--viewport", "1280x720", "--route", "/", "--theme", "dark",
        "--language", "en", "--privacy-review", "pending", "--summary", "the first page",
    ]);
    assert_eq!([&artifact["name"], &artifact["mediaType"]], ["start.png", "image/png"]);
    assert_eq!(artifact["facts"]["viewport"], json!({"width": 1280, "height": 720}));
    let listed = site.run(&["list", &run]).data();
    assert_eq!(listed["artifacts"], json!([artifact]));
    let shown = site.run(&["show", &run, id(&artifact)]).data();
    assert_eq!(shown["preview"], json!({"truncated": false, "width": 1280, "height": 720}));
    let text = site.yard.home.run(["artifacts", "show", &run, id(&artifact), "--output", "text"]).stdout;
    assert!(text.contains("1280 x 720") && text.contains("shown to people only"), "{text}");
    let text = site.yard.home.run(["artifacts", "list", &run, "--output", "text"]).stdout;
    assert!(text.contains("screenshot") && text.contains("the first page"), "{text}");

    let to = site.yard.home.beside("copy.png");
    let to = to.to_str().unwrap();
    let get = |more: &[&str]| site.run(&[&["get", &run, id(&artifact), "--to", to], more].concat());
    assert_eq!(get(&[]).data()["file"], to);
    assert_eq!(std::fs::read(to).unwrap(), PNG);
    std::fs::write(to, "mine").unwrap();
    let (exit, code, message) = get(&[]).failure();
    assert_eq!((exit, code.as_str()), (1, "CONFLICT"), "{message}");
    assert!(message.contains("--force"), "{message}");
    assert_eq!(std::fs::read(to).unwrap(), b"mine", "nothing is written over");
    get(&["--force"]).data();
    assert_eq!(std::fs::read(to).unwrap(), PNG);
    assert_eq!(std::fs::read(&shot).unwrap(), PNG, "the file itself stays as it is");
}

#[test]
fn what_is_missing_or_wrong_is_said_before_anything_is_sent() {
    let site = Site::new();
    let run = site.api.start("waits", site.yard.place());
    let file = site.file("a.txt", "a");
    let refused = |arguments: &[&str]| site.run(&[&["add"], arguments].concat()).failure();
    let (exit, code, message) = refused(&[&run, &file, "--kind", "screenshot", "--route", "/"]);
    assert_eq!((exit, code.as_str()), (2, "VALIDATION_ERROR"));
    assert_eq!(
        message,
        "An artifact of kind screenshot needs --viewport, --theme, --language, --privacy-review."
    );
    let missing = refused(&[&run, "/nonexistent/file"]);
    assert_eq!((missing.0, missing.1.as_str()), (2, "VALIDATION_ERROR"), "{}", missing.2);
    let directory = refused(&[&run, site.yard.place()]);
    assert_eq!(directory.1, "VALIDATION_ERROR", "{}", directory.2);
    let huge = site.file("huge", vec![b'a'; 800 * 1024]);
    assert_eq!(refused(&[&run, &huge]).1, "VALIDATION_ERROR");
    let named = refused(&[&run, &file, "--name", "../../etc/passwd"]);
    assert_eq!(named.1, "VALIDATION_ERROR", "{}", named.2);
    let outside = refused(&[&run, &file, "--path", "/etc/passwd"]);
    assert_eq!(outside.1, "VALIDATION_ERROR", "{}", outside.2);
    let secret = site.file("secret.bin", [&[0, 159, 146, 150], KEY.as_bytes()].concat());
    assert_eq!(refused(&[&run, &secret]).1, "redacted_content");
    assert_eq!(site.run(&["list", &run]).data()["artifacts"], json!([]));
}

#[test]
fn c15_no_private_absolute_path_is_in_an_artifact_or_in_what_is_recorded_of_it() {
    let site = Site::new();
    let run = site.api.start("waits", site.yard.place());
    site.api.asked(&run, &[]);
    let (home, place) = (site.yard.home.path(""), site.yard.place());
    let private = [home.to_str().unwrap(), place];
    let log = format!("opened {}/token\nread {place}/README.md\nkey = {KEY}\n", home.display());
    let file = site.file("build.log", log);
    #[rustfmt::skip]
    let docs = site.added(&[
        &run, &file, "--kind", "generated_docs", "--route", &format!("file://{place}/index.html"), "--language", "en",
        "--build-status", "succeeded", "--summary", &format!("built from {place}"),
    ]);
    let preview = site.added(&[&run, &file, "--kind", "file_preview", "--path", "out/build.log"]);
    assert_eq!((&docs["redacted"], &preview["redacted"]), (&json!(true), &json!(true)));
    let kept = site.api.get(&format!("/runs/{run}/artifacts/{}", id(&docs)))["preview"]["text"].clone();
    let events = site.api.events(&run);
    let told: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    assert!(told.ends_with(&["run.artifact.ready", "run.artifact.ready", "run.preview.ready"]), "{told:?}");
    let everything = format!("{kept} {docs} {preview} {events:?}");
    for path in private {
        assert!(!everything.contains(path), "{path} in {everything}");
    }
    assert!(!everything.contains(KEY) && kept.as_str().unwrap().contains("[REDACTED:"), "{kept}");
    let files = std::fs::read_dir(&home).unwrap().flatten().map(|entry| entry.path());
    let blobs = files.filter(|path| path.to_string_lossy().contains("blobs"));
    for blob in blobs.flat_map(|folder| below(&folder)) {
        let bytes = std::fs::read(&blob).unwrap();
        let bytes = String::from_utf8_lossy(&bytes);
        assert!(private.iter().all(|path| !bytes.contains(path)) && !bytes.contains(KEY), "{bytes}");
    }
}

fn below(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { below(&path) } else { vec![path] }).collect()
}

#[test]
fn c05_c11_an_agent_adds_to_its_own_run_alone_and_the_end_of_the_run_names_it() {
    let site = Site::new();
    let other = site.api.start("waits", site.yard.place());
    std::fs::write(site.yard.workspace.path().join("other.txt"), &other).unwrap();
    let own = site.api.start("adds", site.yard.place());
    // The command itself is asked about, as every command; what it adds is not.
    let asked = site.api.asked(&own, &[]);
    assert_eq!(asked["request"]["kind"], "shell");
    site.api.approve(&asked);
    site.api.until(&own, "completed");
    let events = site.api.events(&own);
    let printed = events.iter().filter(|event| event["type"] == "run.tool.output");
    let printed: String = printed.map(|event| event["payload"]["text"].as_str().unwrap()).collect();
    assert_eq!(printed.lines().collect::<Vec<_>>(), ["own.json 200", "other.json 404"]);
    let asked = events.iter().filter(|event| event["type"] == "run.approval.requested");
    let asked: Vec<&Value> = asked.map(|event| &event["payload"]["request"]["kind"]).collect();
    assert_eq!(asked, ["shell", "apply"]);

    let listed = site.run(&["list", &own]).data()["artifacts"].clone();
    let kinds: Vec<&str> =
        listed.as_array().unwrap().iter().map(|artifact| artifact["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["diff", "patch", "file"], "its own changes are among them");
    assert_eq!(listed[1]["facts"]["applyStatus"], "applied");
    assert!(listed[1]["facts"]["approvalId"].is_string());
    let note = &listed[2];
    assert_eq!([&note["by"]["kind"], &note["facts"]["path"]], ["agent", "docs/note.md"]);
    assert_eq!(events.last().unwrap()["payload"]["artifacts"], json!([note["id"]]));
    assert_eq!(site.run(&["list", &other]).data()["artifacts"], json!([]));
    let late = site.file("late.txt", "late");
    assert_eq!(site.run(&["add", &own, &late]).failure().1, "CONFLICT");
}
