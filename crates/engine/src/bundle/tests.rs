//! A bundle of a small story, and everything that can be done to it: clauses C07, C13, C24.

use std::sync::Arc;

use proptest::prelude::*;
use runyard_domain::run::{Resolution, RunEvent, Who};
use runyard_domain::{ApprovalId, RunId, Timestamp};
use runyard_redact::{Kind, Redactor, TagKey};
use runyard_store::{Blobs, ManualClock, MemoryStore, Store};
use serde_json::{Value, json};

use super::format::{SealLine, SealedLog};
use super::lines::Tally;
use super::*;
use crate::installation::{ActionRefused, AuditFact, DecisionMade, Installation};
use crate::options::Limits;
use crate::record::{Decided, Fact, Recorder};

const ASKED: ApprovalId = ApprovalId::from_parts(1, &[1; 10]);
const APPLY: ApprovalId = ApprovalId::from_parts(1, &[2; 10]);
const RUN: RunId = RunId::from_parts(1_000, &[3; 10]);
const CHILD: RunId = RunId::from_parts(2_000, &[4; 10]);
const STRANGER: RunId = RunId::from_parts(3_000, &[5; 10]);

/// A store with a run that was asked about, changed a file and was applied, one that took that back, and a stranger.
struct Story {
    store: Arc<MemoryStore>,
    recorder: Recorder,
}

impl Story {
    async fn told() -> Self {
        let redactor = Redactor::builder(TagKey::from_bytes([7; 32])).build().unwrap();
        let (store, clock) = (Arc::new(MemoryStore::new()), Arc::new(ManualClock::at(5_000)));
        let recorder = Recorder {
            store: Arc::clone(&store) as Arc<dyn Store>,
            redactor,
            clock,
            limits: Limits::default(),
        };
        let story = Story { store, recorder };
        let ada = json!({"id": "ada", "kind": "person"});
        let files = json!([{"id": "a", "path": "a.txt", "change": "modified", "content": "text", "insertions": 2,
            "deletions": 1, "hunks": 1, "bytes": [1, 2], "protected": false, "part": 0}]);
        let files = story.put(files.to_string().as_bytes()).await;
        let texts = story.put(b"no text: \xff\xfe").await;
        let resolved = |id: ApprovalId| json!({"approvalId": id, "resolution": "approved", "decidedBy": ada, "scope": "once"});
        story.create(RUN, None).await;
        let shell = json!({"kind": "shell", "command": "cargo test", "cwd": "."});
        let stats = json!({"files": 1, "insertions": 2, "deletions": 1});
        let apply = json!({"kind": "apply", "base": "b", "target": "t", "stats": stats, "files": ["a.txt"], "to": "files"});
        let diff = json!({"base": "b", "target": "t", "paths": ["a.txt"], "summary": "1 file", "digest": "00ff",
            "stats": stats, "parts": {"files": [files], "texts": [texts]}});
        let end = json!({"response": "Done.", "artifacts": [], "diff": "applied", "metrics": {"wallMs": 1, "activeMs": 1}});
        for (kind, payload) in [
            ("run.accepted", json!({"edgeId": "local"})),
            ("run.preparing", json!({"checks": ["workspace"]})),
            (
                "run.started",
                json!({"backendKind": "scripted", "protocol": "p", "checks": {"workspace": "allowed"}}),
            ),
            ("run.turn.started", json!({})),
            ("run.approval.requested", asked(ASKED, shell)),
            ("run.approval.resolved", resolved(ASKED)),
            ("run.approval.used", json!({"approvalId": ASKED})),
            ("run.message.completed", json!({"item": "m1", "text": "Grüße.\n\"sha256:…\""})),
            ("run.turn.ended", json!({"outcome": "completed"})),
            ("run.diff.ready", diff),
            ("run.approval.requested", asked(APPLY, apply)),
            ("run.approval.resolved", resolved(APPLY)),
            ("run.applying", json!({"approvalId": APPLY, "digest": "00ff"})),
            ("run.applied", json!({"approvalId": APPLY, "digest": "00ff"})),
            ("run.completed", end),
        ] {
            story.tell(RUN, kind, payload).await;
        }
        story.create(CHILD, Some(RUN)).await;
        let cancelled =
            json!({"by": ada, "reason": "changed my mind", "metrics": {"wallMs": 1, "activeMs": 1}});
        story.tell(CHILD, "run.cancelled", cancelled).await;
        story.create(STRANGER, None).await;
        story.audit().await;
        story
    }

    async fn audit(&self) {
        let recorder = self.recorder.clone();
        let log = Installation::open(recorder.store, recorder.redactor, recorder.clock).await.unwrap();
        let decided = |approval_id, run_id| {
            let (resolution, digest) = (Resolution::Approved, "00ff".to_owned());
            AuditFact::Decision(DecisionMade { approval_id, run_id, resolution, digest, reason: None })
        };
        let refused = |run_id| AuditFact::Refused(ActionRefused { action: "x".into(), run_id, repeated: 0 });
        for fact in [
            decided(ASKED, RUN),
            refused(Some(STRANGER)),
            decided(APPLY, RUN),
            refused(None),
            refused(Some(CHILD)),
        ] {
            log.record(&Who::runyard(), fact).await.unwrap();
        }
    }

    async fn put(&self, content: &[u8]) -> String {
        self.store.put(self.recorder.redactor.bytes(Kind::Diff, content)).await.unwrap().to_string()
    }

    async fn create(&self, run: RunId, parent: Option<RunId>) {
        let mut created = json!({"task": {"kind": "text", "text": "Tidy up.", "redacted": false},
            "actor": {"id": "ada", "kind": "person"}, "workspace": {"id": "wsp_018bcfe5680077078707070707070707", "label": "shop"},
            "agentId": "demo", "backendProfile": "demo", "sessionId": "ses_018bcfe5680077078707070707070707",
            "executionPolicy": {"sandbox": "workspace-write", "network": "ask", "approval": "ask", "timeoutMs": 1, "idleMs": 1,
            "secretScope": {"providerCredentials": []}}, "onReject": "cancel"});
        if let Some(parent) = parent {
            created["parentRunId"] = json!(parent);
        }
        let planned = json!({"edgeId": "local", "workspacePolicy": "allowlist", "runtimeProfile": "demo",
            "approvalPolicy": {"preset": "default", "version": 3}});
        let facts = vec![fact("run.created", &created), fact("run.planned", &planned)];
        self.recorder.create(run, facts, None).await.unwrap();
    }

    async fn tell(&self, run: RunId, kind: &str, payload: Value) {
        let fact = fact(kind, &payload);
        let decide = move |_: &_, _| Ok(Decided { facts: vec![fact.clone()], result: None });
        self.recorder.head(run, decide).await.unwrap();
    }

    async fn export(&self, key: &SigningKey) -> Result<(Vec<u8>, Exported), BundleError> {
        let mut bundle = Vec::new();
        let exported = export(&*self.store, key, origin(RUN), &mut bundle).await?;
        Ok((bundle, exported))
    }
}

fn origin(run: RunId) -> Origin {
    let made_at = Timestamp::from_unix_ms(9_000);
    Origin { run, made_at, made_by: "ada".to_owned(), runyard: "0.1.0".to_owned() }
}

fn fact(kind: &str, payload: &Value) -> Fact {
    RunEvent::read(kind, payload).unwrap().into()
}

fn asked(id: ApprovalId, request: Value) -> Value {
    json!({"approvalId": id, "key": "r1", "request": request, "redacted": false, "digest": "00ff", "risk": "low",
        "reason": "asked about", "workspace": {"id": "wsp_018bcfe5680077078707070707070707", "label": "shop"},
        "actor": {"id": "demo", "kind": "agent", "runId": RUN}, "expiresAt": "2099-01-01T00:00:00.000Z"})
}

fn key() -> SigningKey {
    SigningKey::from_pkcs8(&SigningKey::generate().unwrap()).unwrap()
}

async fn bundle() -> (Vec<u8>, SigningKey) {
    let key = key();
    let (bundle, _) = Story::told().await.export(&key).await.unwrap();
    (bundle, key)
}

fn check(bundle: &[u8]) -> Result<Checked, BundleBreak> {
    verify(bundle).unwrap()
}

#[track_caller]
fn refused(bundle: &[u8], what: &str) {
    assert!(check(bundle).is_err(), "{what} was not noticed");
}

fn lines(bundle: &[u8]) -> Vec<Vec<u8>> {
    bundle.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// What somebody with a key of their own makes of these lines: the last one is sealed anew, as if the rest held.
fn sealed_again(mut lines: Vec<Vec<u8>>, key: &SigningKey, change: impl Fn(&mut format::Seal)) -> Vec<u8> {
    let last = lines.pop().unwrap();
    let SealLine { seal, .. } = serde_json::from_slice(&last).unwrap();
    let mut tally = Tally::new();
    for line in &lines {
        let line = line.strip_suffix(b"\n").unwrap();
        tally.take(format::Part::of(line).unwrap_or(format::Part::Blobs), line);
    }
    let mut seal = tally.seal(seal.run_id, seal.chains, seal.installation, key.public_key());
    change(&mut seal);
    let content = serde_json::to_vec(&seal).unwrap();
    let line = SealLine { seal, signature: key.sign(&content) };
    let mut bundle = lines.concat();
    bundle.extend(serde_json::to_vec(&line).unwrap());
    bundle.push(b'\n');
    bundle
}

/// The first line with this in it.
fn at(lines: &[Vec<u8>], what: &str) -> usize {
    lines.iter().position(|line| String::from_utf8_lossy(line).contains(what)).unwrap()
}

fn replaced(line: &mut Vec<u8>, from: &str, to: &str) {
    let text = String::from_utf8(line.clone()).unwrap();
    assert!(text.contains(from), "{text}");
    *line = text.replacen(from, to, 1).into_bytes();
}

#[tokio::test]
async fn c07_a_bundle_holds_the_run_and_what_came_from_it_and_nothing_of_others() {
    let key = key();
    let (bundle, exported) = Story::told().await.export(&key).await.unwrap();
    let checked = check(&bundle).unwrap();
    assert_eq!((checked.run, checked.key), (RUN, key.fingerprint()));
    let runs: Vec<_> = checked.runs.iter().map(|run| (run.run, run.state.as_str(), run.events)).collect();
    assert_eq!(runs, [(RUN, "completed", 17), (CHILD, "cancelled", 3)]);
    assert_eq!(
        (exported.runs, exported.events, exported.approvals, exported.entries, exported.blobs),
        (2, 20, 2, 3, 2)
    );
    assert_eq!((checked.approvals, checked.entries, checked.blobs), (2, 3, 2));
    assert!(checked.left_out.is_empty() && exported.left_out.is_empty());
    let text = String::from_utf8(bundle.clone()).unwrap();
    assert!(!text.contains(&STRANGER.to_string()));
    for line in text.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
    assert!(lines(&bundle)[2].starts_with(b"{\"sequence\":2,\"prevHash\":\""), "the exact stored bytes");
}

#[tokio::test]
async fn c07_a_bundle_with_any_bit_changed_is_refused() {
    let (bundle, _) = bundle().await;
    let mut changed = bundle.clone();
    for place in 0..bundle.len() {
        // Each place one bit, and over eight places all of them.
        changed[place] ^= 1 << (place % 8);
        refused(&changed, &format!("a bit of byte {place}"));
        changed[place] = bundle[place];
    }
    assert!(check(&changed).is_ok());
}

#[tokio::test]
async fn c07_a_bundle_with_any_byte_removed_or_added_is_refused() {
    let (bundle, _) = bundle().await;
    for place in 0..bundle.len() {
        let mut without = bundle.clone();
        without.remove(place);
        refused(&without, &format!("the loss of byte {place}"));
    }
    for place in 0..=bundle.len() {
        let mut more = bundle.clone();
        more.insert(place, if place % 2 == 0 { b' ' } else { b'\n' });
        refused(&more, &format!("a byte more at {place}"));
    }
}

#[tokio::test]
async fn c07_a_bundle_that_is_cut_anywhere_is_refused_and_says_where() {
    let (bundle, _) = bundle().await;
    let all = lines(&bundle);
    for end in 0..bundle.len() {
        let found = check(&bundle[..end]).unwrap_err();
        let whole = bundle[..end].iter().filter(|byte| **byte == b'\n').count();
        assert!(matches!(found.kind, BundleBreakKind::Cut), "{end}: {found}");
        assert_eq!(found.line, whole as u64 + 1);
    }
    assert!(check(&all.concat()).is_ok());
}

#[tokio::test]
async fn c07_lines_that_are_removed_repeated_swapped_or_moved_are_noticed() {
    let (bundle, _) = bundle().await;
    let all = lines(&bundle);
    for place in 0..all.len() {
        let mut without = all.clone();
        let line = without.remove(place);
        refused(&without.concat(), &format!("the loss of line {}", place + 1));
        let mut twice = all.clone();
        twice.insert(place, line);
        refused(&twice.concat(), &format!("line {} twice", place + 1));
        for to in 0..all.len() {
            if to != place {
                let mut moved = all.clone();
                moved.swap(place, to);
                refused(&moved.concat(), &format!("lines {} and {} swapped", place + 1, to + 1));
            }
        }
    }
}

#[tokio::test]
async fn c07_the_first_break_is_named() {
    let (bundle, _) = bundle().await;
    let all = lines(&bundle);
    let said = |change: &dyn Fn(&mut Vec<Vec<u8>>)| {
        let mut changed = all.clone();
        change(&mut changed);
        check(&changed.concat()).unwrap_err().to_string()
    };
    let child = at(&all, "changed my mind");
    let blob = at(&all, "{\"blob\":");
    let said_of = [
        (said(&|lines| drop(lines.remove(4))), format!("line 5: event 4 of {RUN}: it is missing")),
        (
            said(&|lines| drop(lines.remove(child))),
            format!("line {}: {CHILD} does not end with", all.len() - 1),
        ),
        (
            said(&|lines| replaced(&mut lines[0], "ada", "bob")),
            format!("line {}: the header of this bundle", all.len()),
        ),
        (
            said(&|lines| replaced(&mut lines[7], "cargo test", "cargo nest")),
            format!("line 9: event 8 of {RUN}: "),
        ),
        (
            said(&|lines| drop(lines.remove(at(lines, "{\"approval\":")))),
            format!("{ASKED} is not as the events tell it"),
        ),
        (
            said(&|lines| replaced(&mut lines[blob], "a.txt", "b.txt")),
            format!("line {}: the content of blob", blob + 1),
        ),
        (said(&|lines| drop(lines.remove(blob))), "which an event refers to, is missing".to_owned()),
        (said(&|lines| drop(lines.pop())), format!("line {}: the bundle is cut off here", all.len())),
        (
            said(&|lines| lines.push(b"\n".to_vec())),
            format!("line {}: there is something after the seal", all.len() + 1),
        ),
    ];
    for (found, expected) in said_of {
        assert!(found.contains(&expected), "{found}, expected {expected}");
    }
    let version = said(&|lines| replaced(&mut lines[0], "\"version\":1", "\"version\":2"));
    assert!(version.contains("version 2"), "{version}");
}

#[tokio::test]
async fn c13_what_does_not_follow_from_the_events_is_refused_whoever_signs_it() {
    let (bundle, key) = bundle().await;
    let all = lines(&bundle);
    let again = |change: &dyn Fn(&mut Vec<Vec<u8>>)| {
        let mut changed = all.clone();
        change(&mut changed);
        check(&sealed_again(changed, &key, |_| {}))
    };
    assert!(again(&|_| {}).is_ok(), "what was not changed holds");
    assert!(
        again(&|lines| replaced(&mut lines[0], "ada", "bob")).is_ok(),
        "the header is the signer's own word"
    );
    let kind = |change: &dyn Fn(&mut Vec<Vec<u8>>)| again(change).unwrap_err().kind;
    use BundleBreakKind as K;
    let rejected = |lines: &mut Vec<Vec<u8>>| {
        let place = at(lines, "{\"approval\":");
        replaced(&mut lines[place], "\"approved\"", "\"rejected\"");
    };
    assert!(matches!(kind(&rejected), K::Approval { approval: ASKED }));
    assert!(matches!(kind(&|lines| drop(lines.remove(6))), K::Event { sequence: 6, .. }));
    assert!(matches!(
        kind(&|lines| drop(lines.remove(at(lines, "changed my mind")))),
        K::Head { run: CHILD }
    ));
    let other_entry = |lines: &mut Vec<Vec<u8>>| {
        let place = at(lines, "{\"audit\":");
        let stored = format::audit_entry(lines[place].strip_suffix(b"\n").unwrap()).unwrap();
        let stored = String::from_utf8(stored.to_vec()).unwrap().replace("approved", "rejected");
        lines[place] = format::audit_line(stored.as_bytes());
        lines[place].push(b'\n');
    };
    assert!(matches!(kind(&other_entry), K::AuditDecision { approval: ASKED, .. }));
    let unlike = |lines: &mut Vec<Vec<u8>>| {
        let place = at(lines, "{\"blob\":");
        lines[place] = format!("{{\"leftOut\":\"{}\",\"why\":\"too_large\"}}\n", runyard_store::blob_id(b""))
            .into_bytes();
    };
    assert!(matches!(kind(&unlike), K::BlobUnasked { .. }));
    let state = sealed_again(all.clone(), &key, |seal| seal.chains[0].state = "failed".to_owned());
    assert!(matches!(check(&state).unwrap_err().kind, K::Head { run: RUN }));
    let log = SealedLog { entries: 1, head: "0".repeat(64) };
    let shorter = sealed_again(all, &key, |seal| seal.installation = Some(log.clone()));
    assert!(matches!(check(&shorter).unwrap_err().kind, K::Sealed));
}

#[tokio::test]
async fn another_signature_shows_as_another_key_and_a_foreign_one_does_not_hold() {
    let (bundle, key) = bundle().await;
    let other = self::key();
    let resealed = sealed_again(lines(&bundle), &other, |_| {});
    assert_eq!(check(&resealed).unwrap().key, other.fingerprint());
    assert_ne!(other.fingerprint(), key.fingerprint());
    let pretended = sealed_again(lines(&bundle), &other, |seal| seal.public_key = key.public_key());
    assert!(matches!(check(&pretended).unwrap_err().kind, BundleBreakKind::Signature));
}

#[tokio::test]
async fn a_run_that_goes_on_is_exported_as_far_as_it_is_and_one_that_is_not_there_not_at_all() {
    let story = Story::told().await;
    let mut bundle = Vec::new();
    export(&*story.store, &key(), origin(STRANGER), &mut bundle).await.unwrap();
    let checked = check(&bundle).unwrap();
    assert_eq!((checked.runs[0].state.as_str(), checked.runs.len(), checked.entries), ("planned", 1, 1));
    for absent in [RunId::from_parts(9, &[9; 10]), crate::INSTALLATION] {
        let error = export(&*story.store, &key(), origin(absent), &mut Vec::new()).await.unwrap_err();
        assert_eq!(error.code(), runyard_domain::Code::StorageNotFound);
    }
}

#[tokio::test]
async fn a_blob_that_is_too_large_is_named_and_left_out() {
    let story = Story::told().await;
    let large = story.put(&vec![b'x'; BLOB_BYTES_MAX + 1]).await;
    let run = RunId::from_parts(4_000, &[6; 10]);
    story.create(run, None).await;
    for (kind, payload) in [
        ("run.accepted", json!({"edgeId": "local"})),
        ("run.preparing", json!({"checks": ["workspace"]})),
        (
            "run.started",
            json!({"backendKind": "scripted", "protocol": "p", "checks": {"workspace": "allowed"}}),
        ),
        (
            "run.diff.ready",
            json!({"base": "b", "target": "t", "paths": [], "summary": "1", "parts": {"files": [], "texts": [large]}}),
        ),
    ] {
        story.tell(run, kind, payload).await;
    }
    let mut bundle = Vec::new();
    let exported = export(&*story.store, &key(), origin(run), &mut bundle).await.unwrap();
    assert!(bundle.len() < 10_000, "{}", bundle.len());
    assert_eq!((exported.blobs, exported.left_out[0].to_string()), (0, large.clone()));
    let checked = check(&bundle).unwrap();
    assert_eq!((checked.blobs, checked.left_out), (0, exported.left_out));
    let mut without = lines(&bundle);
    without.remove(at(&without, "{\"leftOut\":"));
    assert!(matches!(check(&without.concat()).unwrap_err().kind, BundleBreakKind::BlobMissing { .. }));
}

#[tokio::test]
async fn c24_a_screenshot_that_nobody_passed_is_named_and_left_out_whatever_else_it_is_called() {
    let story = Story::told().await;
    let run = RunId::from_parts(5_000, &[7; 10]);
    story.create(run, None).await;
    for (kind, payload) in [
        ("run.accepted", json!({"edgeId": "local"})),
        ("run.preparing", json!({"checks": ["workspace"]})),
        (
            "run.started",
            json!({"backendKind": "scripted", "protocol": "p", "checks": {"workspace": "allowed"}}),
        ),
    ] {
        story.tell(run, kind, payload).await;
    }
    let screenshot = |review: &str| {
        json!({"kind": "screenshot", "viewport": {"width": 1, "height": 1}, "route": "/",
        "theme": "dark", "language": "en", "privacyReview": review})
    };
    let (file, mut blobs) = (json!({"kind": "file"}), Vec::new());
    for (id, content, facts) in [
        ("one", "pending picture", screenshot("pending")),
        ("two", "pending picture", file.clone()),
        ("three", "failed picture", screenshot("failed")),
        ("four", "passed picture", screenshot("pending")),
        ("five", "passed picture", screenshot("passed")),
        ("six", "a file", file.clone()),
    ] {
        let blob = story.put(content.as_bytes()).await;
        let artifact = json!({"artifactId": id, "kind": facts["kind"], "summary": "s", "facts": facts, "name": "a",
            "content": {"blob": blob, "bytes": content.len(), "mediaType": "image/png", "redacted": false},
            "by": {"id": "ada", "kind": "person"}});
        story.tell(run, "run.artifact.ready", artifact).await;
        blobs.push(blob);
    }
    let (mut bundle, key) = (Vec::new(), key());
    let exported = export(&*story.store, &key, origin(run), &mut bundle).await.unwrap();
    let left_out: Vec<String> = exported.left_out.iter().map(ToString::to_string).collect();
    assert_eq!(left_out, [blobs[0].clone(), blobs[2].clone()]);
    assert_eq!((exported.private, exported.blobs), (2, 2));
    let text = String::from_utf8(bundle.clone()).unwrap();
    assert!(!text.contains("pending picture") && !text.contains("failed picture"));
    assert!(text.contains("passed picture") && text.contains("a file"));
    let checked = check(&bundle).unwrap();
    assert_eq!((checked.left_out, checked.private, checked.blobs), (exported.left_out, 2, 2));
    let mut hidden = lines(&bundle);
    let place = at(&hidden, "passed picture");
    hidden[place] = format!("{{\"leftOut\":\"{}\",\"why\":\"private\"}}\n", blobs[4]).into_bytes();
    let found = check(&sealed_again(hidden, &key, |_| {})).unwrap_err();
    assert!(matches!(found.kind, BundleBreakKind::BlobNotPrivate { .. }), "{found}");
}

#[test]
fn a_line_that_is_too_long_is_refused_before_it_fills_the_memory() {
    let endless = std::io::BufReader::new(std::io::repeat(b'x'));
    let found = verify(endless).unwrap().unwrap_err();
    assert!(matches!(found, BundleBreak { line: 1, kind: BundleBreakKind::TooLong }), "{found}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(check(&bytes).is_err());
    }

    #[test]
    fn lines_that_look_like_ours_are_refused_without_a_panic(
        begins in prop::collection::vec(0..8_usize, 0..12),
        rest in "[ -~]{0,80}",
    ) {
        const BEGINS: [&str; 8] = ["{\"bundle\":", "{\"sequence\":", "{\"approval\":", "{\"audit\":\"", "{\"blob\":",
            "{\"leftOut\":", "{\"seal\":", "{"];
        let header = format!("{{\"bundle\":{{\"format\":\"runyard.audit\",\"version\":1,\"runId\":\"{RUN}\",\"madeAt\":\"2026-01-31T12:00:00.000Z\",\"madeBy\":\"a\",\"runyard\":\"0\"}}}}\n");
        let lines: String = begins.iter().map(|begin| format!("{}{rest}\n", BEGINS[*begin])).collect();
        prop_assert!(check((header + &lines).as_bytes()).is_err());
    }
}
