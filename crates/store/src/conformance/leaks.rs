//! Nothing leaks: secrets of every form are planted in every kind of payload, and none of them may be anywhere afterwards.

use std::sync::Arc;
use std::time::Duration;

use runyard_domain::Timestamp;
use runyard_redact::{Kind, Known, Redactor, Safe, TagKey};
use serde_json::{Value, json};

use super::fixtures::{at, event, fresh_approval, fresh_run};
use crate::{
    ApprovalWrite, Deltas, EventLog, FeedCursor, KeyDigest, KeyedResult, Projection, Store, Tail, TimerWrite,
    Writes, bounded_text,
};

/// Values that the run was given: a token, a password with everything that is escaped, a key of several lines, binary.
const KNOWN: [&str; 4] = [
    "canary-7f3e9a1c5b-token",
    "can\"ary\\pass/word & <späce>'s?=+%",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nY2FuYXJ5Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5\n\
     cGxhbnRlZHBsYW50ZWRwbGFudGVkcGxhbnRlZHBsYW50ZWRwbGFudGVkcGxhbnRl\n-----END OPENSSH PRIVATE KEY-----\n",
    "\u{1}\u{2}canary\u{7f}\tbinary\u{3}",
];

/// Values that nobody knows, in forms that say what they are. What must be gone is the part between the marks.
const FORMS: [&str; 14] = [
    "Authorization: Bearer «canaryBearer0123456789abcdef»",
    "Cookie: session=«canaryCookie0123456789»; theme=dark",
    "Set-Cookie: sid=«canarySetCookie0123456789»; HttpOnly",
    "postgres://app:«canaryUrl0123456789»@db.example/app",
    "DB_PASSWORD=«canaryEnv0123456789»",
    "curl -u ada:«canaryCurl0123456789» https://api.example/",
    "https://api.example/x?access_token=«canaryQuery0123456789»&page=2",
    "-----BEGIN PRIVATE KEY-----\n«canaryPem0123456789canaryPem0123456789canaryPem0123456789canary01»\n-----END PRIVATE KEY-----",
    "jwt «eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.canaryJwt0123456789abcdefghijklmnopqr»",
    "«ghp_canary0123456789canary0123456789Abcd»",
    "«AKIACANARY0123456789»",
    "«sk-proj-canary0123456789canary0123456789AbCdEf»",
    "«glpat-canary0123456789Ab»",
    "{\"password\": \"«canaryJson0123456789»\"}",
];

/// Plants secrets in every kind of payload, checks what a tail and the feed deliver, and gives what must be found nowhere.
pub async fn plant_secrets(store: Arc<dyn Store>) -> Vec<Vec<u8>> {
    let (redactor, texts) = (redactor_of_secrets(), texts_with_secrets());
    let needles = needles();
    let run = fresh_run();
    let mut after = 0;
    for text in &texts {
        let writes = everywhere(&*store, &redactor, text).await;
        after = store.append(at(run, after, writes)).await.unwrap().last;
        let lease = format!("runner with {text}");
        let owner = redactor.text(Kind::Text, &lease);
        store.acquire(run, owner, Duration::ZERO).await.unwrap();
    }
    after = streamed(&*store, &redactor, run, after, &texts).await;

    let log: Arc<dyn EventLog> = store.clone();
    let mut tail = Tail::open(log, run, 0).await.unwrap();
    let mut delivered = Vec::new();
    while tail.after() < after {
        delivered.extend(tail.next().await.unwrap().into_iter().flat_map(|event| event.body.to_vec()));
    }
    let feed = store.feed(&FeedCursor::start(), 5000).await.unwrap();
    delivered.extend(feed.entries.into_iter().flat_map(|entry| entry.event.body.to_vec()));
    assert!(delivered.windows(10).any(|part| part == b"[REDACTED:"), "nothing was taken out");
    assert_holds_none("what a tail delivers", &delivered, &needles);
    needles
}

/// Fails when `haystack` holds one of the needles.
#[track_caller]
pub fn assert_holds_none(place: &str, haystack: &[u8], needles: &[Vec<u8>]) {
    let haystack = String::from_utf8_lossy(haystack);
    for needle in needles {
        let needle = String::from_utf8_lossy(needle);
        if let Some(at) = haystack.find(&*needle) {
            let around = haystack.floor_char_boundary(at.saturating_sub(120));
            panic!("{place} holds {needle:?}: …{}", &haystack[around..at + needle.len()]);
        }
    }
}

/// A redactor that knows the values to plant.
pub fn redactor_of_secrets() -> Redactor {
    Redactor::builder(TagKey::from_bytes([3; 32])).known(KNOWN.map(Known::value)).build().unwrap()
}

/// The texts to plant: each form, each known value, and each known value in each of its encodings.
pub fn texts_with_secrets() -> Vec<String> {
    let forms = FORMS.map(|form| form.replace(['«', '»'], ""));
    let known = KNOWN
        .iter()
        .flat_map(|value| encodings(value).into_iter().map(|form| format!("here: {form} and on")));
    forms.into_iter().chain(known).collect()
}

/// What must be found nowhere, as bytes that would be found if it were stored in any of the ways that payloads are.
pub(super) fn needles() -> Vec<Vec<u8>> {
    let forms = FORMS.iter().map(|form| form.split(['«', '»']).nth(1).unwrap().to_owned());
    let known = KNOWN.iter().flat_map(|value| encodings(value));
    let mut needles: Vec<String> = forms.chain(known).collect();
    // Stored in JSON a text is escaped, and a value of several lines shows line by line.
    let escaped: Vec<String> =
        needles.iter().map(|needle| json!(needle).to_string()[1..].to_owned()).collect();
    needles.extend(escaped.iter().map(|needle| needle[..needle.len() - 1].to_owned()));
    let lines: Vec<String> = needles.iter().flat_map(|needle| needle.lines().map(str::to_owned)).collect();
    needles.extend(lines.into_iter().filter(|line| line.len() >= 16 && !line.starts_with("-----")));
    needles.into_iter().map(String::into_bytes).collect()
}

fn encodings(value: &str) -> Vec<String> {
    let base64 = |prefix: &str| base64(format!("{prefix}{value}").as_bytes());
    let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    let percent: String = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let wrapped = |columns: usize, end: &str| {
        let whole = base64("");
        whole
            .as_bytes()
            .chunks(columns)
            .map(|line| String::from_utf8_lossy(line).into_owned() + end)
            .collect::<String>()
    };
    vec![
        value.to_owned(),
        base64(""),
        // The first characters belong to the prefix as well.
        base64("a")[2..].to_owned(),
        base64("ab")[3..].to_owned(),
        base64("").replace('+', "-").replace('/', "_").trim_end_matches('=').to_owned(),
        hex.to_uppercase(),
        hex,
        percent,
        json!(value).to_string().trim_matches('"').to_owned(),
        wrapped(64, "\n"),
        wrapped(76, "\r\n"),
    ]
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let three = [chunk[0], *chunk.get(1).unwrap_or(&0), *chunk.get(2).unwrap_or(&0)];
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for (digit, index) in (0..4).rev().zip(0..) {
            let known = index <= chunk.len();
            text.push(if known { DIGITS[(bits >> (6 * digit)) as usize & 63] as char } else { '=' });
        }
    }
    text
}

/// A change with the text in every row that it can write.
async fn everywhere(store: &dyn Store, redactor: &Redactor, text: &str) -> Writes {
    let far = Timestamp::from_unix_ms(4_000_000_000_000);
    let safe = |value: Value| redactor.json(value);
    let nested = || safe(json!({"text": text, "deep": [{"list": [text, 1, null]}], text: "as a key"}));
    let mut plain = event(Value::Null);
    plain.payload = nested();
    plain.agent = Some(redactor.text(Kind::Text, text));
    let mut kinds = event(Value::Null);
    kinds.payload = Safe::object([
        ("diff", in_a_diff(redactor, text)),
        ("headers", redactor.text(Kind::Headers, text).into()),
        (
            "json",
            redactor.text(Kind::Json, &json!({"inner": json!({"x": text}).to_string()}).to_string()).into(),
        ),
    ]);
    let mut long = event(Value::Null);
    let padded = format!("{}\n{text}\n{}", "padding ".repeat(4_000), "padding ".repeat(4_000));
    (long.payload, long.blobs) = bounded_text(store, redactor.text(Kind::Text, &padded)).await.unwrap();
    let approval = fresh_approval();
    Writes {
        events: vec![plain, kinds, long],
        projection: Some(Projection { status: "running", state: nested() }),
        approvals: vec![
            ApprovalWrite::Open { id: approval, expires: far, request: nested() },
            ApprovalWrite::Resolve { id: approval, decision: nested() },
        ],
        timers: vec![TimerWrite::Set { name: redactor.text(Kind::Text, text), due: far, payload: nested() }],
        outbox: vec![nested()],
        result: Some(KeyedResult {
            key: KeyDigest::of(&["leak", text]),
            fingerprint: [0; 32],
            result: nested(),
            expires: far,
        }),
    }
}

/// As added lines of a diff, where guesses by name do not count: only known values are planted in them.
fn in_a_diff(redactor: &Redactor, text: &str) -> Safe<Value> {
    if FORMS.iter().any(|form| form.replace(['«', '»'], "") == text) {
        return redactor.text(Kind::Text, text).into();
    }
    let added: String = text.lines().map(|line| format!("+{line}\n")).collect();
    redactor.content(&added).into()
}

/// Everything once more as a stream of small pieces, as an agent's words come.
async fn streamed(
    store: &dyn Store,
    redactor: &Redactor,
    run: runyard_domain::RunId,
    mut after: u64,
    texts: &[String],
) -> u64 {
    let mut deltas = Deltas::new(redactor);
    let mut pieces = Vec::new();
    let stream = texts.join("\nand ");
    for (piece, now_ms) in stream.as_bytes().chunks(7).zip((0..).step_by(30)) {
        pieces.extend(deltas.push(piece, now_ms));
    }
    pieces.extend(deltas.finish());
    for batch in pieces.chunks(100) {
        let events = batch.iter().map(|piece| {
            let mut delta = event(Value::Null);
            delta.payload = Safe::object([("text", piece.clone().into())]);
            delta
        });
        let writes = Writes { events: events.collect(), ..Writes::default() };
        after = store.append(at(run, after, writes)).await.unwrap().last;
    }
    after
}
