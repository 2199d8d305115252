//! `runyard demo provider` as a process: what it says, whom it answers, and how it ends.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr, ChildStdout};

use rustix::process::Signal;
use serde_json::{Value, json};

use support::{Home, PATIENCE, send};

const KEY: &str = "sk-planted-0123456789";

/// A provider that runs; it is killed when the test lets go of it.
struct Provider {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: BufReader<ChildStderr>,
    /// All that it said at the start.
    said: String,
}

impl Provider {
    fn start(home: &Home, arguments: &[&str]) -> Self {
        let anywhere = ["demo", "provider", "--listen", "127.0.0.1:0"];
        let mut child = home.command(anywhere.iter().chain(arguments)).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.ends_with("stop with Ctrl-C\n") {
            assert!(stdout.read_line(&mut said).unwrap() > 0, "it ended: {said}");
        }
        Provider { child, stdout, stderr, said }
    }

    fn url(&self) -> &str {
        self.said.lines().next().unwrap().strip_prefix("listening on ").unwrap()
    }

    /// The status and the body of an answer.
    fn ask(&self, method: &str, path: &str, key: &str, body: &str) -> (u16, String) {
        let address = self.url().strip_prefix("http://").unwrap().strip_suffix("/v1").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer {key}\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line
    }

    /// Its exit code, and the rest of what it said on both streams.
    fn ended(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        self.stderr.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn it_says_where_it_is_answers_on_both_wires_and_tells_each_request_without_its_key() {
    let home = Home::new();
    let mut provider = Provider::start(&home, &[]);
    let input = json!({"input": "[[scenario:secret-echo]] the content"}).to_string();
    let (status, body) = provider.ask("POST", "/v1/responses?key=sk-planted-query", KEY, &input);
    assert_eq!(status, 200);
    assert!(body.contains(KEY), "the model said it: {body}");
    let messages = json!({"messages": [{"role": "user", "content": "[[scenario:http-503]]"}]}).to_string();
    assert_eq!(provider.ask("POST", "/v1/chat/completions", KEY, &messages).0, 503);
    let (status, models) = provider.ask("GET", "/v1/models", KEY, "");
    assert_eq!((status, models.contains("gpt-5.5")), (200, true), "{models}");
    assert_eq!(provider.next_line(), "   1  POST /v1/responses  200  secret-echo, step 1\n");
    assert_eq!(provider.next_line(), "   2  POST /v1/chat/completions  503  http-503, step 1\n");
    assert_eq!(provider.next_line(), "   3  GET /v1/models  200\n");
    provider.ask("POST", "/v1/responses", KEY, &json!({"input": "[[scenario:nope]]"}).to_string());
    assert_eq!(
        provider.next_line(),
        "   4  POST /v1/responses  200  text, step 1, as there is none as named\n"
    );
    assert!(!home.path("hub.json").exists() && !home.path("token").exists(), "it is no hub");
}

#[test]
fn what_it_says_to_put_into_the_configuration_is_a_configuration() {
    let home = Home::new();
    let provider = Provider::start(&home, &[]);
    assert!(provider.said.contains(&home.path("runyard.toml").display().to_string()), "{}", provider.said);
    let (_, snippet) = provider.said.split_once(":\n\n").unwrap();
    let (snippet, rest) = snippet.split_once("\n\n2. ").unwrap();
    for part in
        ["echo any | runyard secrets set codex\n", "restart `runyard up` if it runs\n", "--list shows all"]
    {
        assert!(rest.contains(part), "{part} is not in {rest}");
    }
    let parsed: toml::Table = snippet.parse().unwrap();
    assert_eq!(parsed["backend"]["codex"]["base_url"].as_str(), Some(provider.url()));
    assert!(parsed["backend"]["codex"]["model"].is_str());
    assert_eq!(parsed["backend"]["deepseek"]["base_url"].as_str(), Some(provider.url()));
    assert_eq!(parsed["backend"]["deepseek"]["wire"].as_str(), Some("chat"));
    let configured = Home::with(snippet);
    let ran = configured.run(["config", "show"]);
    assert_eq!(ran.exit, 0, "{} {}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains(provider.url()), "{}", ran.stdout);
}

#[test]
fn a_polite_end_is_a_success() {
    for signal in [Signal::INT, Signal::TERM] {
        let home = Home::new();
        let provider = Provider::start(&home, &[]);
        send(provider.child.id(), signal);
        assert_eq!(provider.ended(), (Some(0), String::new()));
    }
}

#[test]
fn the_scenarios_are_listed_for_people_and_for_programs() {
    let home = Home::new();
    let directory = home.beside("scenarios");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("mine.toml"), "about = 'My own.'\n[[step]]\nanswer.say = ['hello']")
        .unwrap();
    let directory = directory.to_str().unwrap();
    let data = home.run(["demo", "provider", "--list", "--scenarios", directory]).data();
    let rows = data["scenarios"].as_array().unwrap();
    assert!(rows.contains(&json!({"name": "mine", "about": "My own."})), "{data}");
    for name in
        ["text", "reasoning", "shell", "patch", "http-429", "quota", "cut", "stall", "malformed", "key"]
    {
        assert!(rows.iter().any(|row| row["name"] == name), "{name} is not in {data}");
    }
    let ran = home.run(["demo", "provider", "--list", "--output", "text"]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    assert!(
        ran.stdout.lines().any(|line| line.starts_with("shell ") && line.ends_with("the command.")),
        "{}",
        ran.stdout
    );

    let provider = Provider::start(&home, &["--scenarios", directory]);
    assert!(
        provider.said.contains("\n  mine ") && provider.said.contains("  My own.\n"),
        "{}",
        provider.said
    );
    assert!(!provider.said.contains("\n  cut "), "the others are listed when asked for: {}", provider.said);
    let (_, body) =
        provider.ask("POST", "/v1/responses", KEY, &json!({"input": "[[scenario:mine]]"}).to_string());
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(answer["output"][0]["content"][0]["text"], "hello");
}

#[test]
fn with_keys_only_those_are_let_in_and_none_is_said() {
    let home = Home::new();
    let keys = home.beside("keys");
    std::fs::write(&keys, format!("{KEY}\nsk-other-0123456789\n")).unwrap();
    let mut provider = Provider::start(&home, &["--keys", keys.to_str().unwrap()]);
    for (key, status) in [(KEY, 200), ("sk-other-0123456789", 200), ("sk-wrong-0123456789", 401)] {
        assert_eq!(provider.ask("POST", "/v1/responses", key, "{}").0, status);
    }
    let told: String = (0..3).map(|_| provider.next_line()).collect();
    assert!(told.ends_with("  401  text, step 1\n"), "{told}");
    assert!(!provider.said.contains("0123456789") && !told.contains("0123456789"), "{}{told}", provider.said);
}

#[test]
fn what_cannot_be_served_is_refused_with_its_reason() {
    let home = Home::new();
    #[track_caller]
    fn check(home: &Home, arguments: &[&str], exit: i32, code: &str, reason: &str) {
        let ran = home.run(["demo", "provider"].iter().chain(arguments));
        let envelope = ran.envelope();
        let told = envelope["error"].to_string();
        assert_eq!((ran.exit, &envelope["error"]["code"]), (exit, &json!(code)), "{told}");
        assert!(told.contains(reason) && !told.contains(KEY), "{told}");
    }
    check(&home, &["--listen", "0.0.0.0:0"], 2, "VALIDATION_ERROR", "0.0.0.0:0 is not a loopback address");
    check(&home, &["--listen", "nowhere"], 2, "VALIDATION_ERROR", "nowhere");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    check(&home, &["--listen", &address], 1, "CONFLICT", &format!("cannot listen on {address}"));
    check(&home, &["--listen", &address], 1, "CONFLICT", "--listen 127.0.0.1:0 takes any free port");
    check(&home, &["--keys", "no-such-file"], 2, "VALIDATION_ERROR", "no-such-file");
    check(&home, &["--list", "--scenarios", "no-such-directory"], 2, "VALIDATION_ERROR", "no-such-directory");
    let directory = home.beside("broken");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("bad.toml"), "[[step]]\nwait = 1").unwrap();
    let directory = directory.to_str().unwrap();
    check(
        &home,
        &["--scenarios", directory],
        2,
        "VALIDATION_ERROR",
        "the scenario `bad` does not parse: TOML",
    );
    check(&home, &[KEY], 2, "VALIDATION_ERROR", "Unexpected argument");
}

#[test]
fn help_says_what_it_is_and_half_a_command_is_refused() {
    let home = Home::new();
    let help = home.run(["demo", "provider", "--help"]);
    assert_eq!(help.exit, 0);
    for part in
        ["--listen", "127.0.0.1:4711", "--scenarios", "--keys", "--list", "[[scenario:shell touch a.txt]]"]
    {
        assert!(help.stdout.contains(part), "{part} is not in {}", help.stdout);
    }
    assert_eq!(home.run(["demo"]).exit, 2);
}
