//! Whatever is on the command line or on standard input, the answer is an envelope and the exit code is of the table.
//!
//! clause: A19
//! clause: A12

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use proptest::prelude::*;
use serde_json::Value;

use support::{Program, assert_envelope, exit_of};

fn config() -> ProptestConfig {
    let proof = std::env::var("RUNYARD_PROOF").unwrap_or_default();
    ProptestConfig { cases: cases(&proof), failure_persistence: None, ..ProptestConfig::default() }
}

fn cases(proof: &str) -> u32 {
    match proof {
        "quick" => 16,
        "soak" => 2000,
        _ => 64,
    }
}

#[test]
fn a_proof_is_as_long_as_it_is_asked_to_be() {
    assert_eq!(["quick", "sample", "", "soak"].map(cases), [16, 64, 64, 2000]);
}

/// Texts that mean something to a command line, or nearly.
fn argument() -> impl Strategy<Value = String> {
    let flags = "--(title|priority|tags|done|limit|tag|id|json|schema|confirm|timeout-ms|deadline-ms|retry|idempotency-key|output|help|nope)";
    let values = "(|x|-x|--|=|-|@|@nosuch|null|true|\\{\\}|\\[\\]|\\[1\\]|high|text|json|ndjson|-1|1e9|99999999999999999999)";
    prop_oneof![
        4 => flags,
        2 => (flags, values).prop_map(|(flag, value)| format!("{flag}={value}")),
        4 => values,
        2 => "[^\\x00]{0,24}",
        1 => "-{0,3}[a-z=]{0,6}",
        1 => "[^\\x00]".prop_map(|text| text.repeat(30_000)),
    ]
}

/// What stands for an action: real ones, near ones, anything.
fn command() -> impl Strategy<Value = Vec<String>> {
    prop_oneof![
        6 => "task[-_](create|list|complete|delete)".prop_map(|name| vec![name]),
        2 => "task[-_](create|list|nope)".prop_map(|name| vec!["call".to_owned(), name]),
        1 => "[^\\x00]{1,12}".prop_map(|name| vec!["call".to_owned(), name]),
    ]
}

/// The envelope of a run in whichever form it was asked for, if any was.
fn envelope_of(stdout: &str) -> Option<Value> {
    if let Ok(value) = serde_json::from_str::<Value>(stdout)
        && value.get("ok").is_some()
    {
        return Some(value);
    }
    let last: Value = serde_json::from_str(stdout.lines().last()?).ok()?;
    (last["type"] == "result").then(|| last["envelope"].clone())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a19_any_command_line_gives_an_envelope_and_an_exit_code_of_the_table(
        command in command(),
        flags in prop::collection::vec(argument(), 0..8),
        stdin in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let arguments = [command, flags].concat();
        let ran = Program::new().run_with(&arguments, &stdin);
        prop_assert!([0, 1, 2, 3, 4, 5, 124, 130].contains(&ran.exit), "{} {}", ran.exit, ran.stderr);
        prop_assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        let asked = |flag: &str| arguments.iter().any(|argument| argument.starts_with(flag));
        match envelope_of(&ran.stdout) {
            Some(envelope) => {
                assert_envelope(&envelope);
                prop_assert_eq!(ran.exit, exit_of(&envelope));
                prop_assert_eq!(&envelope["meta"]["surface"], "cli");
            }
            // Help, the schema, or text instead of it.
            None if asked("--schema") || asked("--help") || asked("-h") => {}
            None => {
                prop_assert!(asked("--output"), "neither an envelope nor asked for text: {:?}", ran.stdout);
                prop_assert_eq!(ran.exit == 0, !ran.stderr.contains("error["), "{}", ran.stderr);
            }
        }
    }

    #[test]
    fn a17_any_bytes_on_standard_input_give_an_envelope_a_line_and_an_end(input in input()) {
        let ran = Program::new().run_with(["json"], &input);
        prop_assert_eq!(&ran.stderr, "");
        prop_assert!(ran.stdout.is_empty() || ran.stdout.ends_with('\n'));
        let mut first_failure = 0;
        for line in ran.stdout.lines() {
            let envelope: Value = serde_json::from_str(line).unwrap();
            assert_envelope(&envelope);
            prop_assert_eq!(&envelope["meta"]["surface"], "json");
            if first_failure == 0 {
                first_failure = exit_of(&envelope);
            }
        }
        prop_assert_eq!(ran.exit, first_failure);
        let blank = input.iter().all(u8::is_ascii_whitespace);
        prop_assert_eq!(ran.stdout.is_empty(), blank, "an answer if and only if something was asked");
    }

    #[test]
    fn a17_every_whole_payload_of_a_stream_is_answered_in_order(
        payloads in prop::collection::vec((any::<bool>(), 0..1000_u32), 1..8),
    ) {
        let mut input = String::new();
        for (pretty, number) in &payloads {
            let payload = serde_json::json!({"action": format!("n{number}"), "input": {"list": [number]}});
            input += &if *pretty { format!("{payload:#}\n") } else { format!("{payload}\n") };
        }
        let ran = Program::new().run_with(["json"], input.as_bytes());
        let named: Vec<String> = ran.stdout.lines().map(|line| {
            let envelope: Value = serde_json::from_str(line).unwrap();
            envelope["meta"]["action"].as_str().unwrap().to_owned()
        }).collect();
        prop_assert_eq!(named, payloads.iter().map(|(_, number)| format!("n{number}")).collect::<Vec<_>>());
    }
}

/// Bytes of all kinds, and lines that are nearly payloads.
fn input() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just("{\"action\":\"task_list\"}".to_owned()),
        Just("{\"action\":\"task_list\",\"input\":{\"limit\":1}}".to_owned()),
        "[\\[\\]{}:,\"\\\\ \n\r\ta1n-]{0,20}",
        "\\{\"action\":\"[a-z_]{0,8}\"(,\"(input|confirm|retry|timeoutMs|idempotencyKey|x)\":(\\{\\}|\\[\\]|true|3|null|\"\"))?\\}?",
        Just("\n".to_owned()),
    ];
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat().into_bytes()),
        (any::<u8>(), 0..100_000_usize).prop_map(|(byte, count)| vec![byte; count % 3000]),
    ]
}
