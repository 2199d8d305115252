//! Artifacts on a real store: recorded, listed, read back, and everything that is refused.
//!
//! clause: C14
//! clause: C05

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use runyard_backend::link::{OpenRun, Report};
use runyard_domain::run::{ApplyStatus, RunState};
use runyard_domain::{
    ARTIFACTS_MAX, Actor, ApprovalId, ArtifactFacts, Code, DiffStats, PrivacyReview, RunId, Timestamp,
    Viewport,
};
use runyard_engine::{
    ARTIFACT_BYTES_MAX, ARTIFACTS_BYTES_MAX, ArtifactRecord, Decision, Engine, EngineError, NewArtifact,
    Resolve,
};
use runyard_redact::Safe;
use runyard_store_sqlite::{OpenOptions, SqliteStore};
use support::*;

const KEY: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x05\0\0\0\x02\xd0\x08\x06\0\0\0";

/// A store in a directory, and a run in the middle of its work on it.
struct Yard {
    directory: tempfile::TempDir,
    engine: Engine,
    edge: PlayedEdge,
    open: OpenRun,
    run: RunId,
}

fn world(directory: &Path, checkout: bool) -> World {
    let store = SqliteStore::open(OpenOptions::new(directory.join("runs.db"), "the test")).unwrap();
    World { store: Arc::new(store), checkout, ..World::default() }
}

async fn yard(checkout: bool) -> Yard {
    let directory = tempfile::tempdir().unwrap();
    let (engine, mut edge) = world(directory.path(), checkout).hub_and_edge().await;
    let run = engine.create_run(new_run("look around"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    Yard { directory, engine, edge, open, run }
}

impl Yard {
    async fn add(&self, new: NewArtifact) -> Result<ArtifactRecord, EngineError> {
        self.engine.add_artifact(self.run, new, &person()).await
    }

    async fn refused(&self, new: NewArtifact) -> (Code, String) {
        let error = self.add(new).await.unwrap_err();
        (error.code(), error.to_string())
    }

    async fn content(&self, id: &str) -> Vec<u8> {
        self.engine.artifact_content(self.run, id, 0..u64::MAX).await.unwrap()
    }

    async fn state(&self) -> RunState {
        self.engine.run(self.run).await.unwrap().run.state
    }
}

fn file(name: &str, content: impl Into<Vec<u8>>) -> NewArtifact {
    let facts = ArtifactFacts::File { path: None };
    NewArtifact { name: name.into(), summary: None, facts, content: content.into(), key: None }
}

fn screenshot(privacy_review: PrivacyReview, content: &[u8]) -> NewArtifact {
    let facts = ArtifactFacts::Screenshot {
        viewport: Viewport { width: 1280, height: 720 },
        route: "/settings".into(),
        theme: "dark".into(),
        language: "en".into(),
        privacy_review,
    };
    NewArtifact { facts, ..file("settings.png", content) }
}

/// All files beneath a directory that hold these bytes.
fn holding(directory: &Path, text: &[u8]) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path());
    let (directories, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let holds = |file: &PathBuf| std::fs::read(file).unwrap().windows(text.len()).any(|part| part == text);
    let inside = directories.iter().flat_map(|inner| holding(inner, text));
    inside.chain(files.into_iter().filter(holds)).collect()
}

#[tokio::test]
async fn c14_an_artifact_is_recorded_listed_and_read_back_and_the_end_of_the_run_names_it() {
    let mut yard = yard(false).await;
    let before = yard.engine.run(yard.run).await.unwrap().run;
    let new = NewArtifact { summary: Some("what was found".into()), ..file("report.txt", "all is well\n") };
    let added = yard.add(new).await.unwrap();
    let id = added.ready.artifact_id.clone();
    assert_eq!(yard.engine.artifacts(yard.run).await.unwrap(), std::slice::from_ref(&added));
    assert_eq!(yard.engine.artifact(yard.run, &id).await.unwrap(), added);
    let content = added.ready.content.as_ref().unwrap();
    assert_eq!((content.bytes, content.media_type.as_str(), content.redacted), (12, "text/plain", false));
    assert_eq!(content.blob, runyard_store::blob_id(b"all is well\n"));
    assert_eq!(yard.content(&id).await, b"all is well\n");
    let part = |range| yard.engine.artifact_content(yard.run, &id, range);
    assert_eq!(part(4..6).await.unwrap(), b"is");
    assert_eq!(part(7..1_000).await.unwrap(), b"well\n");
    assert_eq!(part(12..20).await.unwrap(), b"");
    let after = yard.engine.run(yard.run).await.unwrap().run;
    assert_eq!((after.state, after.turns, after.open_steps), (before.state, before.turns, before.open_steps));

    yard.edge.recorded(&yard.open, 4, vec![turn_ended()]).await;
    let done = until(&yard.engine, yard.run, "completed").await;
    assert_eq!(done.artifacts, std::slice::from_ref(&id));
    let events = yard.engine.events(yard.run, 0, 1_000).await.unwrap();
    let last: serde_json::Value = serde_json::from_slice(&events.last().unwrap().body).unwrap();
    assert_eq!(last["payload"]["artifacts"], serde_json::json!([id]), "C05: {last}");

    let late = yard.refused(file("late.txt", "late")).await;
    assert_eq!(late.0, Code::Conflict, "{}", late.1);
    assert_eq!(yard.content(&id).await, b"all is well\n", "what was recorded stays readable");
}

#[tokio::test]
async fn c14_a_file_preview_is_an_artifact_and_tells_that_a_preview_is_ready() {
    let yard = yard(false).await;
    let read_at: Timestamp = "2026-11-15T12:00:00.000Z".parse().unwrap();
    let facts = ArtifactFacts::FilePreview { path: "docs/a.md".into(), read_at };
    let added = yard.add(NewArtifact { facts, ..file("a.md", "# A\n") }).await.unwrap();
    let events = yard.engine.events(yard.run, 0, 1_000).await.unwrap();
    let told: Vec<serde_json::Value> =
        events[events.len() - 2..].iter().map(|event| serde_json::from_slice(&event.body).unwrap()).collect();
    assert_eq!([&told[0]["type"], &told[1]["type"]], ["run.artifact.ready", "run.preview.ready"]);
    assert_eq!(
        told[1]["payload"],
        serde_json::json!({"path": "docs/a.md", "readAt": read_at, "artifactId": added.ready.artifact_id})
    );
    assert_eq!(told[0]["payload"]["content"]["mediaType"], "text/markdown");
}

#[tokio::test]
async fn c14_a_runs_own_diff_and_patch_are_among_its_artifacts_and_say_how_far_it_is_applied() {
    let mut yard = yard(true).await;
    assert_eq!(yard.engine.artifacts(yard.run).await.unwrap(), [], "it has changed nothing yet");
    yard.add(file("note.txt", "n")).await.unwrap();
    yard.edge.recorded(&yard.open, 4, vec![turn_ended()]).await;
    yard.edge.closes(yard.run).await;
    let open = yard.edge.opened().await;
    let diff = Report::Diff {
        base: "base".into(),
        target: "target".into(),
        digest: "d".into(),
        stats: DiffStats { files: 1, insertions: 1, ..DiffStats::default() },
        paths: vec!["0.txt".into()],
        problems: Vec::new(),
    };
    yard.edge.recorded(&open, 1, vec![diff]).await;
    until(&yard.engine, yard.run, "needs_approval").await;
    let patch = async || {
        let listed = yard.engine.artifacts(yard.run).await.unwrap();
        let kinds: Vec<&str> = listed.iter().map(|artifact| artifact.ready.kind.as_str()).collect();
        assert_eq!(kinds, ["diff", "patch", "file"]);
        assert_eq!((&listed[0].ready.content, &listed[1].ready.content), (&None, &None));
        for own in &listed[..2] {
            own.ready.facts.as_ref().unwrap().check().unwrap();
        }
        match listed[1].ready.facts.clone().unwrap() {
            ArtifactFacts::Patch { files, apply_status, approval_id } => {
                assert_eq!(files, ["0.txt"]);
                (apply_status, approval_id)
            }
            other => panic!("{other:?}"),
        }
    };
    let review = yard.engine.run(yard.run).await.unwrap().run.review.unwrap();
    let asked = review.approval_id.unwrap();
    assert_eq!(patch().await, (ApplyStatus::Proposed, Some(asked)));
    yard.engine.resolve(asked, Resolve::new(Decision::Approve, "d"), &person()).await.unwrap();
    assert_eq!(patch().await, (ApplyStatus::Approved, Some(asked)));
    let missing = yard.engine.artifact_content(yard.run, "diff", 0..1).await.unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);

    let applied = |approval_id| ArtifactFacts::Patch {
        files: vec!["a".into()],
        apply_status: ApplyStatus::Applied,
        approval_id: Some(approval_id),
    };
    let mine = NewArtifact { facts: applied(asked), ..file("a.patch", "+a\n") };
    yard.add(mine).await.unwrap();
    let made_up = applied(ApprovalId::from_parts(1, &[9; 10]));
    let refused = yard.refused(NewArtifact { facts: made_up, ..file("a.patch", "+a\n") }).await;
    assert_eq!(refused.0, Code::ValidationError, "{}", refused.1);
}

#[tokio::test]
async fn a_secret_in_a_text_is_taken_out_and_one_in_anything_else_is_refused() {
    let yard = yard(false).await;
    let added = yard.add(file("env.txt", format!("key = {KEY}\n"))).await.unwrap();
    let content = added.ready.content.as_ref().unwrap();
    let stored = String::from_utf8(yard.content(&added.ready.artifact_id).await).unwrap();
    assert!(content.redacted && stored.starts_with("key = [REDACTED:") && !stored.contains(KEY), "{stored}");
    assert_eq!(content.bytes, stored.len() as u64);
    assert_eq!(content.blob, runyard_store::blob_id(stored.as_bytes()), "the digest is that of what is kept");

    let picture = [PNG, b"\0\0\0\x40tEXtComment\0", KEY.as_bytes(), b"\0"].concat();
    let refused = yard.refused(screenshot(PrivacyReview::Pending, &picture)).await;
    assert_eq!(refused.0, Code::RedactedContent, "{}", refused.1);
    assert_eq!(yard.engine.artifacts(yard.run).await.unwrap().len(), 1);
    assert_eq!(holding(yard.directory.path(), KEY.as_bytes()), Vec::<PathBuf>::new());

    let named = NewArtifact { summary: Some(format!("the key is {KEY}")), ..file("a.txt", "a") };
    let named = yard.add(named).await.unwrap();
    assert!(!named.ready.summary.contains(KEY), "{}", named.ready.summary);
    assert_eq!(holding(yard.directory.path(), KEY.as_bytes()), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn what_an_artifact_is_comes_from_its_bytes_and_a_screenshot_is_a_picture() {
    let yard = yard(false).await;
    let added = yard.add(screenshot(PrivacyReview::Passed, PNG)).await.unwrap();
    assert_eq!(added.ready.content.unwrap().media_type, "image/png");
    for fake in [&b"<svg onload=alert(1)>"[..], b"hello", b"%PDF-1.7"] {
        let refused = yard.refused(screenshot(PrivacyReview::Pending, fake)).await;
        assert_eq!(refused.0, Code::ValidationError, "{}", refused.1);
    }
    let page = yard.add(file("picture.png", "<html><script>1</script>")).await.unwrap();
    assert_eq!(page.ready.content.unwrap().media_type, "text/html");
}

#[tokio::test]
async fn c14_an_agent_cannot_say_what_people_decide() {
    let yard = yard(false).await;
    let agent = Actor::agent("demo", yard.run, ["runs.read"]);
    let add = async |new| yard.engine.add_artifact(yard.run, new, &agent).await;
    add(screenshot(PrivacyReview::Pending, PNG)).await.unwrap();
    let passed = add(screenshot(PrivacyReview::Passed, PNG)).await.unwrap_err();
    assert_eq!(passed.code(), Code::ValidationError, "{passed}");
    let applied = ArtifactFacts::Patch {
        files: vec!["a".into()],
        apply_status: ApplyStatus::Applied,
        approval_id: Some(ApprovalId::from_parts(1, &[9; 10])),
    };
    let applied = add(NewArtifact { facts: applied, ..file("a.patch", "+a") }).await.unwrap_err();
    assert!(matches!(applied, EngineError::Invalid { path: "facts.applyStatus", .. }), "{applied}");
}

#[tokio::test]
async fn c14_c15_what_is_wrong_is_refused_by_name_and_nothing_is_recorded() {
    let yard = yard(false).await;
    let before = kinds(&yard.engine, yard.run).await;
    let preview = |path: &str| ArtifactFacts::FilePreview {
        path: path.into(),
        read_at: Timestamp::from_unix_ms(1_700_000_000_000),
    };
    let path = async |new: NewArtifact| match yard.add(new).await.unwrap_err() {
        EngineError::Invalid { path, .. } => path,
        other => panic!("{other:?}"),
    };
    for name in ["../../etc/passwd", "/etc/passwd", "a\\b", "..", "", "a\nb"] {
        assert_eq!(path(file(name, "x")).await, "name", "{name:?}");
    }
    for wrong in ["/home/ada/site/a.md", "../a.md", "C:\\a.md", ""] {
        let new = NewArtifact { facts: preview(wrong), ..file("a.md", "x") };
        assert_eq!(path(new).await, "facts.path", "{wrong:?}");
    }
    assert_eq!(path(file("a", "")).await, "content");
    assert_eq!(path(file("a", vec![b'a'; ARTIFACT_BYTES_MAX + 1])).await, "content");
    assert_eq!(path(NewArtifact { summary: Some(" ".into()), ..file("a", "x") }).await, "summary");
    assert_eq!(kinds(&yard.engine, yard.run).await, before);
    yard.add(file("a", vec![b'a'; ARTIFACT_BYTES_MAX])).await.unwrap();
}

#[tokio::test]
async fn a_run_has_only_so_many_artifacts_and_so_many_bytes_of_them() {
    let yard = yard(false).await;
    for number in 0..ARTIFACTS_MAX {
        yard.add(file("a", number.to_string())).await.unwrap();
    }
    let refused = yard.refused(file("one more", "x")).await;
    assert_eq!(refused.0, Code::Conflict, "{}", refused.1);

    let mut yard = yard_again(yard).await;
    let full = ARTIFACTS_BYTES_MAX / ARTIFACT_BYTES_MAX as u64;
    for number in 0..full {
        let mut content = vec![b'a'; ARTIFACT_BYTES_MAX];
        content[0] = b'0' + number as u8;
        yard.add(file("a", content)).await.unwrap();
    }
    let rest = (ARTIFACTS_BYTES_MAX - full * ARTIFACT_BYTES_MAX as u64) as usize;
    let refused = yard.refused(file("one more", vec![b'b'; rest + 1])).await;
    assert_eq!(refused.0, Code::Conflict, "{}", refused.1);
    yard.add(file("just so", vec![b'b'; rest])).await.unwrap();
    yard.edge.recorded(&yard.open, 4, vec![turn_ended()]).await;
}

/// Another run in the same world.
async fn yard_again(yard: Yard) -> Yard {
    let Yard { directory, engine, mut edge, .. } = yard;
    let run = engine.create_run(new_run("look again"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    Yard { directory, engine, edge, open, run }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_same_key_is_the_same_artifact_also_at_the_same_time() {
    let yard = yard(false).await;
    let keyed = |content: &str| NewArtifact { key: Some("k1".into()), ..file("a.txt", content) };
    let first = yard.add(keyed("once")).await.unwrap();
    assert_eq!(yard.add(keyed("once")).await.unwrap(), first);
    let other = yard.refused(keyed("twice")).await;
    assert_eq!(other.0, Code::Conflict, "{}", other.1);
    let together = (0..8).map(|_| {
        let (engine, run) = (yard.engine.clone(), yard.run);
        let new = NewArtifact { key: Some("k2".into()), ..file("b.txt", "together") };
        tokio::spawn(async move { engine.add_artifact(run, new, &person()).await.unwrap().ready.artifact_id })
    });
    let together: Vec<_> = together.collect();
    let mut ids = Vec::new();
    for added in together {
        ids.push(added.await.unwrap());
    }
    ids.dedup();
    assert_eq!(ids.len(), 1, "{ids:?}");
    let listed = yard.engine.artifacts(yard.run).await.unwrap();
    assert_eq!(listed.len(), 2);
    assert_eq!(yard.state().await, RunState::Running);
}

#[tokio::test]
async fn a_damaged_content_is_an_error_and_not_a_wrong_answer() {
    let yard = yard(false).await;
    let added = yard.add(file("a.txt", "exactly this")).await.unwrap();
    let files = holding(yard.directory.path(), b"exactly this");
    assert_eq!(files.len(), 1, "{files:?}");
    std::fs::set_permissions(&files[0], std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::write(&files[0], b"exactly that").unwrap();
    let error = yard.engine.artifact_content(yard.run, &added.ready.artifact_id, 0..4).await.unwrap_err();
    assert_eq!(error.code(), Code::StorageCorrupt, "{error}");
}

#[tokio::test]
async fn c15_an_artifact_names_the_files_of_the_workspace_from_its_root_on() {
    let yard = yard(false).await;
    let text = format!("see /srv/site/src/lib.rs, key = {KEY}\n");
    let new = NewArtifact { summary: Some("of /srv/site/src".into()), ..file("notes.txt", text) };
    let added = yard.add(new).await.unwrap().ready;
    assert_eq!(added.summary, "of src");
    assert!(added.content.unwrap().redacted);
    let stored = String::from_utf8(yard.content(&added.artifact_id).await).unwrap();
    assert!(stored.starts_with("see src/lib.rs, key = [REDACTED:"), "{stored}");
    assert!(holding(yard.directory.path(), b"/srv/site").is_empty());
}

#[tokio::test]
async fn c14_what_an_artifact_holds_stays_while_the_record_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let world = world(directory.path(), false);
    let (engine, mut edge) = world.hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    edge.start().await;
    let added = engine.add_artifact(run, file("report.txt", "all is well\n"), &person()).await.unwrap().ready;
    let unnamed = world.store.put(Safe::<String>::from("nobody names it").into()).await.unwrap();
    world.store.collect(std::time::Duration::ZERO).await.unwrap();
    assert!(world.store.get(unnamed).await.is_err(), "what nobody names is gone");
    assert_eq!(engine.artifact_content(run, &added.artifact_id, 0..99).await.unwrap(), b"all is well\n");
}
