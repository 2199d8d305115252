//! Known values are found in every form, wherever they stand: the one layer that must be complete.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use proptest::prelude::*;
use proptest::test_runner::Config;
use runyard_redact::{Kind, Known, RedactError, Redactor, TagKey, holds_placeholder};
use serde_json::{Value, json};

fn cases() -> Config {
    let cases = match std::env::var("RUNYARD_PROOF").as_deref() {
        Ok("quick") => 64,
        Ok("soak") => 20_000,
        _ => 192,
    };
    Config { cases, failure_persistence: None, ..Config::default() }
}

fn redactor(known: impl IntoIterator<Item = Known>) -> Redactor {
    Redactor::builder(TagKey::from_bytes([5; 32])).known(known).build().unwrap()
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// The encoders here are written apart from the crate's, so that a mistake there is not repeated.
mod encoders {
    const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    pub(crate) fn base64(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for chunk in bytes.chunks(3) {
            let group = chunk.iter().fold(0u32, |group, byte| group << 8 | u32::from(*byte))
                << (8 * (3 - chunk.len()));
            for digit in 0..4 {
                out.push(if digit <= chunk.len() {
                    STANDARD[(group >> (18 - 6 * digit) & 63) as usize]
                } else {
                    b'='
                });
            }
        }
        out
    }

    pub(crate) fn base64_url(bytes: &[u8]) -> Vec<u8> {
        let standard = base64(bytes).into_iter().filter(|byte| *byte != b'=');
        standard
            .map(|byte| {
                if byte == b'+' {
                    b'-'
                } else if byte == b'/' {
                    b'_'
                } else {
                    byte
                }
            })
            .collect()
    }

    pub(crate) fn hex(bytes: &[u8], upper: bool) -> Vec<u8> {
        let digits =
            bytes.iter().map(|byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") });
        digits.collect::<String>().into_bytes()
    }

    pub(crate) fn percent(bytes: &[u8], all: bool, upper: bool) -> Vec<u8> {
        let mut out = Vec::new();
        for byte in bytes {
            if !all && (byte.is_ascii_alphanumeric() || b"-._~".contains(byte)) {
                out.push(*byte);
            } else {
                out.push(b'%');
                out.extend(hex(&[*byte], upper));
            }
        }
        out
    }

    pub(crate) fn wrapped(text: &[u8], columns: usize, line_break: &[u8]) -> Vec<u8> {
        text.chunks(columns).collect::<Vec<_>>().join(line_break)
    }
}

fn secret() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => "[A-Za-z0-9+/_=-]{8,200}".prop_map(String::into_bytes),
        3 => "[ -~]{10,120}".prop_map(String::into_bytes),
        2 => "[a-zA-Zäöüßéñ漢字🔑\"'\\\\/&<>%$ ]{12,60}".prop_map(String::into_bytes),
        1 => prop::collection::vec("[A-Za-z0-9+/]{16,64}", 2..6).prop_map(|lines| lines.join("\n").into_bytes()),
        2 => prop::collection::vec(any::<u8>(), 16..200),
    ]
    // What is too short without line breaks and the blanks around it counts as short.
    .prop_filter("long enough", |value| {
        value.iter().filter(|byte| !byte.is_ascii_whitespace()).count() >= 8 && value[0] != b' '
    })
}

/// Some text around it that is in no way special.
fn surroundings() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let around = || "[a-z ,.:;=\\[\\]()\n-]{0,40}".prop_map(String::into_bytes);
    (around(), around())
}

/// Whether anything of the encoded secret is left: eight of its characters in a row, from wherever.
fn is_left(shown: &[u8], encoded: &[u8], sure: std::ops::Range<usize>) -> bool {
    let encoded: Vec<u8> = encoded[sure].to_vec();
    let flat: Vec<u8> = shown.iter().copied().filter(|byte| !b"\r\n".contains(byte)).collect();
    encoded.windows(12.min(encoded.len())).any(|part| contains(&flat, part))
}

#[track_caller]
fn check(
    redactor: &Redactor,
    encoded: &[u8],
    sure: std::ops::Range<usize>,
    around: &(Vec<u8>, Vec<u8>),
    shape: &str,
) {
    for (columns, line_break) in
        [(usize::MAX, "".as_bytes()), (64, b"\n"), (64, b"\r\n"), (76, b"\n"), (76, b"\r\n")]
    {
        let written = if columns == usize::MAX {
            encoded.to_vec()
        } else {
            encoders::wrapped(encoded, columns, line_break)
        };
        let text = [&around.0[..], &written, &around.1].concat();
        for kind in [Kind::Text, Kind::Diff, Kind::Headers, Kind::Json] {
            let shown = redactor.bytes(kind, &text).into_inner();
            let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert!(
                holds_placeholder(&shown),
                "{shape} {kind:?} {columns}: {:?} in {:?}",
                show(encoded),
                show(&text)
            );
            assert!(
                !is_left(&shown, encoded, sure.clone()),
                "{shape} {kind:?} {columns}: {:?} is left in {:?}",
                show(encoded),
                show(&shown)
            );
        }
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn b11_a_known_value_is_found_in_every_form_and_place(value in secret(), around in surroundings(), before in 0usize..3) {
        let redactor = redactor([Known::value(value.clone())]);
        let whole = |form: &[u8]| 0..form.len();
        let forms: [(&str, Vec<u8>); 7] = [
            ("raw", value.clone()),
            ("hex", encoders::hex(&value, false)),
            ("HEX", encoders::hex(&value, true)),
            ("percent", encoders::percent(&value, false, true)),
            ("percent lower", encoders::percent(&value, false, false)),
            ("percent all", encoders::percent(&value, true, true)),
            ("percent all lower", encoders::percent(&value, true, false)),
        ];
        for (shape, form) in &forms {
            // Raw text is not wrapped by tools, but it may be by terminals.
            check(&redactor, form, whole(form), &around, shape);
        }
        let carried = [&b"u:"[..before], &value, b"!?x"].concat();
        for (shape, form) in [("base64", encoders::base64(&carried)), ("base64url", encoders::base64_url(&carried))] {
            let sure = (before * 8).div_ceil(6)..((before + value.len()) * 8) / 6;
            check(&redactor, &form, sure, &around, shape);
        }
        if let Ok(text) = std::str::from_utf8(&value) {
            let once = serde_json::to_string(text).unwrap();
            let twice = serde_json::to_string(&once).unwrap();
            for escaped in [&once[1..once.len() - 1], &twice[3..twice.len() - 3]] {
                let text = [&around.0[..], escaped.as_bytes(), &around.1].concat();
                let shown = redactor.bytes(Kind::Text, &text).into_inner();
                prop_assert!(!contains(&shown, escaped.as_bytes()), "{escaped}");
            }
            let document = json!({"note": text, "list": [text, {"deep": once}], text: 1}).to_string();
            let shown = redactor.text(Kind::Json, &document).into_inner();
            let read: Value = serde_json::from_str(&shown).unwrap();
            prop_assert!(!read.to_string().contains(&once[1..once.len() - 1]), "{shown}");
            prop_assert!(!redactor.json(serde_json::from_str(&document).unwrap()).to_string().contains(&once[1..once.len() - 1]));
        }
    }
}

#[test]
fn b11_every_form_of_a_value_has_the_same_tag() {
    let redactor = redactor([Known::value("tulip/Harbor+93?quay")]);
    let forms = [
        "tulip/Harbor+93?quay",
        "dHVsaXAvSGFyYm9yKzkzP3F1YXk=",
        "74756c69702f486172626f722b39333f71756179",
        "tulip%2FHarbor%2B93%3Fquay",
    ];
    let shown: Vec<String> = forms.iter().map(|form| redactor.text(Kind::Text, form).into_inner()).collect();
    assert!(shown.iter().all(|one| one == &shown[0]), "{shown:?}");
    assert_eq!(shown[0].len(), "[REDACTED:known:01234567]".len());
}

#[test]
fn b11_overlapping_values_leave_nothing_behind() {
    let redactor = redactor(["abcdefgh12345678", "12345678ijklmnop", "ijklmnopqrstuvwx"].map(Known::value));
    let shown = redactor.text(Kind::Text, "<abcdefgh12345678ijklmnopqrstuvwx>");
    assert!(shown.starts_with("<[REDACTED:known:") && shown.ends_with("]>"), "{shown:?}");
    assert_eq!(shown.matches("REDACTED").count(), 1);
}

#[test]
fn b11_lines_of_a_key_are_found_in_diffs_and_quotations() {
    let key = "-----BEGIN OPAQUE-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\nAASCBKcwggSjAgEAAoIBAQC7VJTU\n-----END OPAQUE-----\n";
    let redactor = redactor([Known::value(key)]);
    for (text, kind) in [
        ("+MIIEvQIBADANBgkqhkiG9w0BAQEF\n+AASCBKcwggSjAgEAAoIBAQC7VJTU\n", Kind::Diff),
        ("> MIIEvQIBADANBgkqhkiG9w0BAQEF\n> AASCBKcwggSjAgEAAoIBAQC7VJTU\n", Kind::Text),
        ("  MIIEvQIBADANBgkqhkiG9w0BAQEF\r\n  AASCBKcwggSjAgEAAoIBAQC7VJTU\r\n", Kind::Text),
        ("\"MIIEvQIBADANBgkqhkiG9w0BAQEF\\nAASCBKcwggSjAgEAAoIBAQC7VJTU\"", Kind::Json),
    ] {
        let shown = redactor.text(kind, text);
        assert!(!shown.contains("MIIE") && !shown.contains("AASC"), "{shown:?}");
    }
}

#[test]
fn b11_a_wrapped_value_is_found_in_a_diff_whatever_the_marks_of_its_lines() {
    let value = "correct-horse-battery-staple-correct-horse-battery-staple";
    let redactor = redactor([Known::value(value)]);
    let hex: String = format!("before{value}after").bytes().map(|byte| format!("{byte:02x}")).collect();
    for (mark, columns) in [("+", 64), ("-", 76), (" ", 64), ("+", 17), ("", 64)] {
        let lines: Vec<&str> =
            hex.as_bytes().chunks(columns).map(|line| str::from_utf8(line).unwrap()).collect();
        let diff = format!("@@ -1 +1 @@\n{mark}{}\n", lines.join(&format!("\n{mark}")));
        let shown = redactor.content(&diff).replace(['\n', '+', '-'], "");
        let shown = shown.replace("[REDACTED", "").replace(' ', "");
        assert!(
            !shown.contains("636f7272656374") && !shown.contains("737461706c65"),
            "{mark}{columns}: {shown}"
        );
    }
}

#[test]
fn b11_a_value_with_blanks_is_found_where_it_is_wrapped_and_where_it_is_indented() {
    let value = [&[b'a'; 76][..], b" b c"].concat();
    let redactor =
        redactor([Known::value(value.clone()), Known::value([&[0; 70][..], b"\x0e\0\0\0\0\0 \0"].concat())]);
    for text in [
        [&value[..76], b"\n b c"].concat(),
        [&value[..77], b"\r\n\tb c"].concat(),
        [&[0; 70][..], b"\x0e\0\0\0\0\0\n \0"].concat(),
    ] {
        assert!(redactor.bytes(Kind::Text, &text).len() < 40, "{:?}", String::from_utf8_lossy(&text));
    }
}

#[test]
fn b11_a_backslash_beside_a_value_does_not_hide_it() {
    let redactor = redactor(["nectarine-Harbor-93", "quay-Lantern-77\\"].map(Known::value));
    for text in [
        "C:\\nectarine-Harbor-93",
        "a\\\\nectarine-Harbor-93",
        "quay-Lantern-77\\new",
        "quay-Lantern-77\\\nx",
    ] {
        for kind in Kind::ALL {
            let shown = redactor.text(kind, text);
            assert!(!shown.contains("Harbor") && !shown.contains("Lantern"), "{kind:?} {text}: {shown:?}");
        }
    }
}

#[test]
fn b11_a_long_value_is_one_placeholder() {
    let value: String =
        (0..9000).map(|number: u32| char::from(b'a' + (number * number % 23) as u8)).collect();
    let redactor = redactor([Known::value(value.as_str())]);
    let shown = redactor.text(Kind::Text, &format!("<{value}>"));
    assert_eq!(shown.matches("REDACTED").count(), 1, "{shown:?}");
}

#[test]
fn short_values_count_only_as_the_value_of_their_key() {
    let redactor = redactor([Known::named("DOOR_PIN", "4711"), Known::value("hush")]);
    #[track_caller]
    fn check(redactor: &Redactor, kind: Kind, text: &str, changed: bool) {
        assert_eq!(*redactor.text(kind, text) != text, changed, "{text}");
    }
    check(&redactor, Kind::Diff, "DOOR_PIN=4711", true);
    check(&redactor, Kind::Text, "door_pin: \"4711\"", true);
    check(&redactor, Kind::Diff, "password = \"hush\"", true);
    check(&redactor, Kind::Diff, "password = \"hush, now\"", false);
    check(&redactor, Kind::Text, "flight 4711, hush", false);
    check(&redactor, Kind::Diff, "FLOOR=4711", false);
    check(&redactor, Kind::Diff, "mood = \"hush\"", false);
}

#[test]
fn too_much_is_refused_and_no_error_or_debug_text_holds_a_value() {
    let build = |known: Vec<Known>| Redactor::builder(TagKey::from_bytes([5; 32])).known(known).build();
    let many = vec![Known::value("swordfish-1"); 10_001];
    assert!(matches!(build(many), Err(RedactError::TooManyKnown { count: 10_001, .. })));
    let long = vec![Known::value("a"), Known::value("swordfish".repeat(10_000))];
    let error = build(long).unwrap_err();
    assert!(matches!(error, RedactError::KnownTooLong { number: 2, length: 90_000, .. }));
    let large = (0..40).map(|_| Known::value("swordfish".repeat(5_000))).collect();
    assert!(matches!(build(large), Err(RedactError::KnownTooLarge { .. })));
    let path = Redactor::builder(TagKey::from_bytes([5; 32])).private_path("relative", "<x>").build();
    assert!(matches!(path, Err(RedactError::PathNotAbsolute)));

    let known = Known::named("NAME", "swordfish-1");
    let builder = Redactor::builder(TagKey::from_bytes([5; 32])).known([known.clone()]);
    let texts = [
        format!("{known:?}"),
        format!("{builder:?}"),
        format!("{:?}", builder.build().unwrap()),
        format!("{error:?} {error}"),
    ];
    assert!(texts.iter().all(|text| !text.contains("swordfish")), "{texts:?}");
}
