//! `runyard redact` as a process: from standard input to standard output.
//!
//! clause: B11
//! clause: C09
//! clause: C15

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use support::{Home, Ran};

const TOKEN: &str = "ghp_0123456789abcdefABCDEF0123456789abcd";

#[track_caller]
fn redacted(home: &Home, arguments: &[&str], input: &str) -> String {
    let arguments: Vec<&str> = ["redact"].iter().chain(arguments).copied().collect();
    let ran = home.run_with(arguments, input.as_bytes());
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    ran.stdout
}

#[test]
fn b11_known_values_and_forms_are_taken_out_and_the_tag_stays_the_same() {
    let home = Home::new();
    let known = home.path("").with_file_name("known");
    std::fs::write(&known, "tulip-Harbor-93\r\n\n   \nsecond-Value-7\n").unwrap();
    let known = known.to_str().unwrap();
    let text = format!("a tulip-Harbor-93 b dHVsaXAtSGFyYm9yLTkz c {TOKEN} d second-Value-7\n");
    let first = redacted(&home, &["--known", known], &text);
    let pieces: Vec<&str> = first.split(' ').collect();
    assert!(pieces[1].starts_with("[REDACTED:known:") && pieces[1] == pieces[3], "{first}");
    assert!(pieces[5].starts_with("[REDACTED:token:"), "{first}");
    assert_ne!(pieces[1], pieces[7].trim_end());
    assert_eq!(redacted(&home, &["--known", known], &text), first);
    for chunk in ["1", "7", "1000000"] {
        assert_eq!(redacted(&home, &["--known", known, "--chunk", chunk], &text), first);
    }
    let key = std::fs::metadata(home.path("tag.key")).unwrap();
    assert_eq!((key.len(), std::os::unix::fs::PermissionsExt::mode(&key.permissions()) & 0o777), (32, 0o600));
}

#[test]
fn b11_the_kind_says_what_is_looked_for() {
    let home = Home::new();
    let text = "password=hunter2\n";
    assert!(redacted(&home, &[], text).starts_with("password=[REDACTED:password:"));
    assert_eq!(redacted(&home, &["--kind", "diff"], text), text);
    let headers = redacted(&home, &["--kind", "headers"], "Host: x\r\nX-Api-Key: k\r\n");
    assert!(
        headers.starts_with("Host: x\r\nX-Api-Key: [REDACTED:key:") && headers.ends_with("]\r\n"),
        "{headers}"
    );
    let json = redacted(&home, &["--kind", "json"], "{\"token\": 12, \"n\": 1.50}\n");
    let read: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(
        read["token"].as_str().unwrap().starts_with("[REDACTED:token:") && json.contains("\"n\": 1.50"),
        "{json}"
    );
}

#[test]
fn c15_private_paths_are_shown_by_their_short_names() {
    let home = Home::new();
    let data = home.path("x.db");
    let ran = home
        .command(["redact"])
        .env("HOME", "/home/ada")
        .stdin(Stdio::piped())
        .spawn()
        .and_then(|mut child| {
            let text = format!("/home/ada/a {} /var/tmp/b /etc/c\n", data.display());
            child.stdin.take().unwrap().write_all(text.as_bytes())?;
            child.wait_with_output()
        })
        .unwrap();
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), "<home>/a <data>/x.db <tmp>/b /etc/c\n");
}

#[test]
fn bytes_that_are_no_text_pass_through() {
    let home = Home::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(200_000).collect();
    let mut child = home.command(["redact"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let written = bytes.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&written));
    assert_eq!(child.wait_with_output().unwrap().stdout, bytes);
    writer.join().unwrap().unwrap();
}

#[test]
fn live_text_is_shown_as_it_comes() {
    let home = Home::new();
    let mut child = home.command(["redact"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for line in ["first line\n", "second line\n"] {
        stdin.write_all(line.as_bytes()).unwrap();
        let mut shown = String::new();
        stdout.read_line(&mut shown).unwrap();
        assert_eq!(shown, line);
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn what_cannot_be_done_is_refused_with_a_code_and_no_value_is_repeated() {
    let home = Home::new();
    let failure = |arguments: &[&str]| {
        let arguments: Vec<&str> = ["redact"].iter().chain(arguments).copied().collect();
        let ran = home.run_with(arguments, b"");
        assert_eq!(ran.stdout, "", "standard output is the data");
        let said = ran.stderr.strip_prefix("error[").unwrap_or_else(|| panic!("{}", ran.stderr)).to_owned();
        let (code, message) = said.split_once("]: ").unwrap();
        (ran.exit, code.to_owned(), message.to_owned())
    };
    let (exit, code, message) = failure(&["--known", "missing.txt"]);
    assert_eq!((exit, code.as_str()), (2, "VALIDATION_ERROR"), "{message}");
    assert!(message.contains("missing.txt"), "{message}");
    let (exit, code, message) = failure(&["--known", "/proc"]);
    assert_eq!((exit, code.as_str()), (2, "VALIDATION_ERROR"), "{message}");
    let (exit, code, message) = failure(&["--known", "-"]);
    assert_eq!((exit, code.as_str()), (2, "VALIDATION_ERROR"), "{message}");
    let (exit, code, message) = failure(&["--kind", "xml"]);
    assert_eq!((exit, code.as_str()), (2, "VALIDATION_ERROR"), "{message}");
    assert!(message.contains("text, json, diff and headers"), "{message}");
    let (exit, code, _) = failure(&["--chunk", "0"]);
    assert_eq!((exit, code.as_str()), (2, "VALIDATION_ERROR"));
    let long = home.path("").with_file_name("long");
    std::fs::write(&long, "swordfish".repeat(20_000)).unwrap();
    let (_, code, message) = failure(&["--known", long.to_str().unwrap()]);
    assert_eq!(code, "VALIDATION_ERROR");
    assert!(message.contains("number 1") && !message.contains("swordfish"), "{message}");
}

#[test]
fn short_values_are_warned_of_and_a_home_that_cannot_be_written_is_no_reason_to_fail() {
    let home = Home::new();
    let known = home.path("").with_file_name("known");
    std::fs::write(&known, "hush\n").unwrap();
    let mut command = home.command(["redact", "--kind", "diff", "--known", known.to_str().unwrap()]);
    // Nobody can make a folder there.
    let mut child = command.env("RUNYARD_HOME", "/proc/nowhere").stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"password = 'hush'; hush\n").unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.exit, 0);
    assert!(ran.stderr.contains("1 known value has fewer than 8 bytes"), "{}", ran.stderr);
    assert!(ran.stderr.contains("warning: tags will differ from run to run: "), "{}", ran.stderr);
    assert!(
        ran.stdout.starts_with("password = '[REDACTED:known:") && ran.stdout.ends_with("'; hush\n"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let home = Home::new();
    let mut child = home.command(["redact"]).stdin(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    let _ = stdin.write_all(&vec![b'x'; 1_000_000]);
    drop(stdin);
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), String::from_utf8_lossy(&ended.stderr).as_ref()), (Some(0), ""));
}
