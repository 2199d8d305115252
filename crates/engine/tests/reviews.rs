//! The end of a run whose agent worked in a checkout: its changes are looked at, asked about and applied.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use runyard_backend::link::{ChangesOf, OpenRun, Report, Stage, ToEdge, Work};
use runyard_backend::{Command, Signal, Start};
use runyard_domain::gate::Request;
use runyard_domain::run::{ApplyStatus, CommandKind, DiffState, Failure, RunState};
use runyard_domain::{
    ApplyTo, Approval, Code, Comment, DiffFile, DiffStats, DiffText, ExecutionPolicy, RunId, SelectedFile,
};
use runyard_engine::{
    ApprovalRecord, Carry, Decision, Engine, EngineError, Limits, NewCancel, NewCommand, NewRun, Resolve,
};
use support::*;

const DIGEST: &str = "digest of the changes";
const KEY: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

async fn world() -> (Engine, PlayedEdge) {
    World { checkout: true, ..World::default() }.hub_and_edge().await
}

/// A run whose agent is done. The session that looks at its checkout is open.
async fn reviewing(engine: &Engine, edge: &mut PlayedEdge, new: NewRun) -> OpenRun {
    let run = engine.create_run(new, &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![turn_ended()]).await;
    assert!(!edge.closes(run).await, "the agent is done, and the run is not over");
    let open = edge.opened().await;
    assert_eq!((open.run, &open.work, open.stage), (run, &own_changes(run), Stage::Running));
    open
}

fn own_changes(run: RunId) -> Work {
    Work::Review { changes: ChangesOf { run, undo: false } }
}

fn file(path: &str, part: Option<u32>) -> DiffFile {
    DiffFile {
        id: format!("id-{path}"),
        path: path.into(),
        old_path: None,
        change: "modified".into(),
        old_mode: Some("100644".into()),
        new_mode: Some("100644".into()),
        content: "text".into(),
        insertions: 1,
        deletions: 0,
        hunks: 1,
        bytes: (1, 2),
        protected: false,
        part,
    }
}

fn text(path: &str, patch: &str) -> DiffText {
    DiffText { id: format!("id-{path}"), patch: patch.into(), omitted: 0 }
}

fn diff(files: u64) -> Report {
    Report::Diff {
        base: "base".into(),
        target: "target".into(),
        digest: DIGEST.into(),
        stats: DiffStats { files, insertions: files, ..DiffStats::default() },
        paths: (0..files.min(3)).map(|number| format!("{number}.txt")).collect(),
        problems: Vec::new(),
    }
}

/// Reports two changed files in two parts, and takes the end of that session.
async fn found(edge: &mut PlayedEdge, open: &OpenRun) {
    let texts = |path: &str, patch: &str| Report::DiffTexts { texts: vec![text(path, patch)] };
    edge.recorded(open, 1, vec![texts("0.txt", "@@ -1 +1,2 @@\n a\n+b\n")]).await;
    edge.recorded(open, 2, vec![texts("1.txt", &format!("@@ -0,0 +1 @@\n+key = {KEY}\n"))]).await;
    let files = vec![file("0.txt", Some(0)), file("1.txt", Some(1))];
    edge.recorded(open, 3, vec![Report::DiffFiles { files }, diff(2)]).await;
    assert!(!edge.closes(open.run).await, "nothing of the session is left while people look");
}

async fn asked_about(engine: &Engine) -> ApprovalRecord {
    let mut open = engine.open_approvals(None, None, 10, false).await.unwrap();
    assert_eq!(open.len(), 1);
    open.remove(0)
}

async fn answer(engine: &Engine, answer: Resolve) {
    let id = asked_about(engine).await.asked.approval_id;
    engine.resolve(id, answer, &person()).await.unwrap();
}

fn approve() -> Resolve {
    Resolve::new(Decision::Approve, DIGEST)
}

fn applying() -> Report {
    Report::Applying {
        digest: "digest of the part".into(),
        stats: DiffStats { files: 1, ..DiffStats::default() },
    }
}

fn applied() -> Report {
    Report::Applied { digest: "digest of the part".into(), commit: None }
}

fn new() -> NewRun {
    new_run("tidy up")
}

async fn diff_state(engine: &Engine, run: RunId) -> serde_json::Value {
    let events = engine.events(run, 0, 1_000).await.unwrap();
    let last: serde_json::Value = serde_json::from_slice(&events.last().unwrap().body).unwrap();
    last["payload"]["diff"].clone()
}

#[tokio::test]
async fn c22_the_usual_end_is_diff_ready_apply_asked_approved_applied_completed() {
    let (engine, mut edge) = world().await;
    let open = reviewing(&engine, &mut edge, new()).await;
    found(&mut edge, &open).await;
    let asked = asked_about(&engine).await.asked;
    assert_eq!((asked.digest.as_str(), asked.request.kind()), (DIGEST, "apply"));
    let Request::Apply { stats, files, .. } = &asked.request else { panic!("{asked:?}") };
    assert_eq!((stats.files, files.len()), (2, 2));

    let chosen = vec![SelectedFile { file: "id-0.txt".into(), hunks: Some(vec![1]) }];
    answer(&engine, Resolve { selection: Some(chosen.clone()), ..approve() }).await;
    let open = edge.opened().await;
    let Work::Apply { approval, digest, selection, begun, .. } = &open.work else { panic!("{open:?}") };
    assert_eq!((*approval, digest.as_str()), (asked.approval_id, DIGEST));
    assert_eq!((selection.as_ref(), begun.as_ref()), (Some(&chosen), None));
    edge.recorded(&open, 1, vec![applying()]).await;
    until(&engine, open.run, "applying").await;
    edge.recorded(&open, 2, vec![applied()]).await;
    assert!(edge.closes(open.run).await, "the run is over");

    let done = until(&engine, open.run, "completed").await;
    assert_eq!(done.review.unwrap().status, ApplyStatus::Applied);
    assert_eq!(diff_state(&engine, open.run).await, "applied");
    #[rustfmt::skip]
    assert_eq!(kinds(&engine, open.run).await[6..], [
        "run.turn.ended", "run.diff.ready", "run.approval.requested", "run.approval.resolved", "run.applying",
        "run.applied", "run.completed",
    ]);
}

#[tokio::test]
async fn c05_what_nobody_approved_is_not_applied_whatever_an_edge_says() {
    let (engine, mut edge) = world().await;
    let open = reviewing(&engine, &mut edge, new()).await;
    found(&mut edge, &open).await;
    answer(&engine, Resolve { revise: true, ..Resolve::new(Decision::Reject, DIGEST) }).await;
    let open = edge.opened().await;
    let ToEdge::Command { .. } = edge.hear().await else { panic!("expected the turn") };
    edge.report(&open, 1, vec![applying()]).await;
    let said = edge.hear().await;
    assert!(matches!(said, ToEdge::Refused { edge_sequence: 1, fenced: false, .. }), "{said:?}");
    assert!(!kinds(&engine, open.run).await.contains(&"run.applying".to_owned()));
}

#[tokio::test]
async fn c14_the_diff_is_kept_by_file_without_secrets_and_given_in_pages() {
    let (engine, mut edge) = world().await;
    let open = reviewing(&engine, &mut edge, new()).await;
    found(&mut edge, &open).await;
    let first = engine.diff(open.run, 0, 1).await.unwrap();
    assert_eq!((first.files[0].path.as_str(), first.next), ("0.txt", Some(1)));
    let rest = engine.diff(open.run, 1, 10).await.unwrap();
    assert_eq!((rest.files[0].path.as_str(), rest.files.len(), rest.next), ("1.txt", 1, None));
    assert_eq!(first.review.diff.digest, DIGEST);
    let (_, text) = engine.diff_file(open.run, "id-1.txt").await.unwrap();
    let patch = text.unwrap().patch;
    assert!(patch.starts_with("@@ -0,0 +1 @@\n+key = ") && !patch.contains(KEY), "{patch}");
    let missing = engine.diff_file(open.run, "id-9.txt").await.unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);
}

#[tokio::test]
async fn c22_a_run_that_changed_nothing_or_may_ask_nobody_completes_at_once() {
    let (engine, mut edge) = world().await;
    let open = reviewing(&engine, &mut edge, new()).await;
    edge.recorded(&open, 1, vec![diff(0)]).await;
    assert!(edge.closes(open.run).await);
    until(&engine, open.run, "completed").await;
    assert_eq!(diff_state(&engine, open.run).await, serde_json::to_value(DiffState::Unchanged).unwrap());

    let policy = ExecutionPolicy { approval: Approval::Never, ..ExecutionPolicy::default() };
    let open = reviewing(&engine, &mut edge, NewRun { execution_policy: Some(policy.into()), ..new() }).await;
    edge.recorded(&open, 1, vec![diff(1)]).await;
    assert!(edge.closes(open.run).await);
    until(&engine, open.run, "completed").await;
    assert_eq!(diff_state(&engine, open.run).await, "kept", "it stays in the checkout, to be applied later");
}

#[tokio::test]
async fn c12_changes_that_are_rejected_end_the_run_or_leave_it_completed_with_them_kept() {
    let (engine, mut edge) = world().await;
    let open = reviewing(&engine, &mut edge, new()).await;
    found(&mut edge, &open).await;
    answer(&engine, Resolve::new(Decision::Reject, DIGEST)).await;
    let ended = until(&engine, open.run, "cancelled").await;
    assert!(
        matches!(&ended.state, RunState::Cancelled { cancelled } if cancelled.code == Some(Code::ApprovalRejected))
    );
    assert_eq!(ended.review.unwrap().status, ApplyStatus::Rejected);

    let open = reviewing(&engine, &mut edge, NewRun { agent: "patient".into(), ..new() }).await;
    found(&mut edge, &open).await;
    answer(&engine, Resolve::new(Decision::Reject, DIGEST)).await;
    until(&engine, open.run, "completed").await;
    assert_eq!(diff_state(&engine, open.run).await, "kept");
}

#[tokio::test]
async fn c22_what_the_person_rejected_is_told_to_the_agent_as_its_next_turn_and_looked_at_again() {
    let (engine, mut edge) = world().await;
    let open = reviewing(&engine, &mut edge, new()).await;
    found(&mut edge, &open).await;
    let comments = vec![Comment { file: "0.txt".into(), line: Some(2), text: "Not b, but c.".into() }];
    let reason = Some("Almost.".to_owned());
    answer(&engine, Resolve { revise: true, comments, reason, ..Resolve::new(Decision::Reject, DIGEST) })
        .await;
    let open = edge.opened().await;
    assert!(matches!((&open.work, &open.start), (Work::Drive, Start::Resume { turn_active: false, .. })));
    let ToEdge::Command { command: Command::Turn { id, text }, .. } = edge.hear().await else {
        panic!("expected the turn")
    };
    assert_eq!(text, "Your changes were not accepted. Almost.\n- 0.txt:2: Not b, but c.");
    edge.recorded(&open, 1, vec![Report::Signal(Signal::TurnStarted { command: Some(id) }), turn_ended()])
        .await;
    assert!(!edge.closes(open.run).await);
    let open = edge.opened().await;
    assert_eq!(open.work, own_changes(open.run), "a further turn is looked at anew");
    edge.recorded(&open, 1, vec![diff(0)]).await;
    edge.closes(open.run).await;
    until(&engine, open.run, "completed").await;
}

#[tokio::test]
async fn c22_a_further_turn_withdraws_what_was_asked_and_none_is_taken_while_applying() {
    let (engine, mut edge) = world().await;
    let open = reviewing(&engine, &mut edge, new()).await;
    found(&mut edge, &open).await;
    let turn = |text: &str| NewCommand { kind: CommandKind::Turn, text: Some(text.into()), key: None };
    engine.command(open.run, turn("and the tests"), &person()).await.unwrap();
    assert!(engine.open_approvals(None, None, 10, false).await.unwrap().is_empty(), "it is out of date");
    let open = edge.opened().await;
    let ToEdge::Command { command: Command::Turn { id, .. }, .. } = edge.hear().await else { panic!() };
    edge.recorded(&open, 1, vec![Report::Signal(Signal::TurnStarted { command: Some(id) }), turn_ended()])
        .await;
    edge.closes(open.run).await;
    let open = edge.opened().await;
    found(&mut edge, &open).await;
    answer(&engine, approve()).await;
    let open = edge.opened().await;
    edge.recorded(&open, 1, vec![applying()]).await;
    let refused = engine.command(open.run, turn("more"), &person()).await.unwrap_err();
    assert_eq!(refused.code(), Code::Conflict);
}

/// A run whose changes are being applied, in a session that is open.
async fn being_applied(engine: &Engine, edge: &mut PlayedEdge) -> OpenRun {
    let open = reviewing(engine, edge, new()).await;
    found(edge, &open).await;
    answer(engine, approve()).await;
    let open = edge.opened().await;
    edge.recorded(&open, 1, vec![applying()]).await;
    open
}

/// The session that applies is stopped, and the next one is to find out what is there.
async fn taken_back(edge: &mut PlayedEdge, applies: &OpenRun) -> OpenRun {
    let ToEdge::StopApplying { run, generation } = edge.hear().await else {
        panic!("expected to be stopped")
    };
    assert_eq!((run, generation), (applies.run, applies.generation));
    assert!(!edge.closes(applies.run).await, "it is not known yet what became of it");
    let open = edge.opened().await;
    let changes = ChangesOf { run: applies.run, undo: false };
    let begun = "digest of the part".to_owned();
    assert_eq!(open.work, Work::TakeBack { changes, to: ApplyTo::Files, begun });
    open
}

// clause: C02
#[tokio::test]
async fn c02_a_person_may_cancel_also_what_is_being_applied_and_the_log_says_what_became_of_it() {
    let stop = || NewCancel { reason: "Not now.".into(), key: None };
    let count = |kinds: &[String], kind: &str| kinds.iter().filter(|found| *found == kind).count();
    for (report, applied, status) in
        [(Report::TakenBack, 0, ApplyStatus::Failed), (applied(), 1, ApplyStatus::Applied)]
    {
        let (engine, mut edge) = world().await;
        let open = being_applied(&engine, &mut edge).await;
        assert_eq!(engine.cancel(open.run, stop(), &person()).await.unwrap().run.state.name(), "applying");
        let again = engine.cancel(open.run, stop(), &person()).await.unwrap_err();
        assert_eq!(again.code(), Code::Conflict);
        let open = taken_back(&mut edge, &open).await;
        edge.recorded(&open, 1, vec![report]).await;
        assert!(edge.closes(open.run).await, "the run is over");
        let ended = until(&engine, open.run, "cancelled").await;
        let RunState::Cancelled { cancelled } = &ended.state else { panic!("{ended:?}") };
        assert_eq!((cancelled.by.id.as_str(), cancelled.reason.as_str()), (person().id.as_str(), "Not now."));
        assert_eq!(ended.review.unwrap().status, status);
        let kinds = kinds(&engine, open.run).await;
        assert_eq!((count(&kinds, "run.cancel.requested"), count(&kinds, "run.applied")), (1, applied));
        assert_eq!(engine.cancel(open.run, stop(), &person()).await.unwrap_err().code(), Code::Conflict);
    }
}

#[tokio::test]
async fn j05_a_cancel_of_what_is_being_applied_outlives_the_hub() {
    let world = World { checkout: true, ..World::default() };
    let (engine, mut edge) = world.hub_and_edge().await;
    let open = being_applied(&engine, &mut edge).await;
    let stop = NewCancel { reason: "Not now.".into(), key: None };
    engine.cancel(open.run, stop, &person()).await.unwrap();
    engine.stop();
    drop(edge);
    let (engine, mut edge) = world.hub_and_edge().await;
    let open = edge.opened().await;
    assert!(matches!(open.work, Work::TakeBack { .. }), "{:?}", open.work);
    edge.recorded(&open, 1, vec![Report::TakenBack]).await;
    edge.closes(open.run).await;
    until(&engine, open.run, "cancelled").await;
}

#[tokio::test]
async fn c05_an_apply_that_takes_too_long_is_taken_back_and_fails_the_run_unless_it_is_done_by_then() {
    for (report, state) in [(Report::TakenBack, "failed"), (applied(), "completed")] {
        let limits = Limits { apply_ms: 20, ..Limits::default() };
        let (engine, mut edge) = World { checkout: true, limits, ..World::default() }.hub_and_edge().await;
        let open = being_applied(&engine, &mut edge).await;
        let open = taken_back(&mut edge, &open).await;
        edge.recorded(&open, 1, vec![report]).await;
        edge.closes(open.run).await;
        let ended = until(&engine, open.run, state).await;
        if let RunState::Failed { failure } = ended.state {
            assert_eq!(failure.code, Code::RunTimeout);
        }
        let kinds = kinds(&engine, open.run).await;
        assert_eq!(kinds.iter().filter(|kind| *kind == "runtime.timeout").count(), 1, "it is said once");
    }
}

#[tokio::test]
async fn c05_a_run_whose_changes_cannot_be_taken_back_in_time_ends_and_says_that_nobody_knows() {
    let limits = Limits { apply_ms: 20, ..Limits::default() };
    let (engine, mut edge) = World { checkout: true, limits, ..World::default() }.hub_and_edge().await;
    let open = being_applied(&engine, &mut edge).await;
    taken_back(&mut edge, &open).await;
    // The files hang: nothing is heard of them.
    let ended = until(&engine, open.run, "failed").await;
    let RunState::Failed { failure } = ended.state else { panic!("{ended:?}") };
    assert_eq!(failure.code, Code::OutcomeUnknown);
    let events = engine.events(open.run, 0, 100).await.unwrap();
    let last: serde_json::Value = serde_json::from_slice(&events.last().unwrap().body).unwrap();
    assert_eq!(last["payload"]["step"], "apply the changes");
    let kinds = kinds(&engine, open.run).await;
    let late = kinds.iter().filter(|kind| *kind == "runtime.timeout");
    assert_eq!(late.count(), 2, "once of applying, and once of taking it back");
}

#[tokio::test]
async fn j05_an_apply_that_died_half_way_is_opened_again_with_what_had_begun() {
    let world = World { checkout: true, ..World::default() };
    let (engine, mut edge) = world.hub_and_edge().await;
    let open = reviewing(&engine, &mut edge, new()).await;
    found(&mut edge, &open).await;
    answer(&engine, approve()).await;
    let open = edge.opened().await;
    edge.recorded(&open, 1, vec![applying()]).await;
    engine.stop();
    drop(edge);

    let (engine, mut edge) = world.hub_and_edge().await;
    let open = edge.opened().await;
    let Work::Apply { begun, .. } = &open.work else { panic!("{open:?}") };
    assert_eq!(begun.as_deref(), Some("digest of the part"));
    // It finds that nothing was written and begins again, which is no second beginning in the log.
    edge.recorded(&open, 1, vec![applying()]).await;
    edge.recorded(&open, 2, vec![applied()]).await;
    edge.closes(open.run).await;
    until(&engine, open.run, "completed").await;
    let count = |kind: &'static str, kinds: &[String]| kinds.iter().filter(|found| *found == kind).count();
    let kinds = kinds(&engine, open.run).await;
    assert_eq!((count("run.applying", &kinds), count("run.applied", &kinds)), (1, 1));
}

#[tokio::test]
async fn c13_what_cannot_be_applied_fails_the_run_with_the_reason() {
    let (engine, mut edge) = world().await;
    let open = reviewing(&engine, &mut edge, new()).await;
    found(&mut edge, &open).await;
    answer(&engine, approve()).await;
    let open = edge.opened().await;
    let failure = Failure::new(Code::Conflict, "the checkout changed after it was approved");
    edge.recorded(&open, 1, vec![Report::Failed { failure }]).await;
    edge.closes(open.run).await;
    let failed = until(&engine, open.run, "failed").await;
    assert_eq!(failed.review.unwrap().status, ApplyStatus::Failed);
}

#[tokio::test]
async fn c12_only_changes_are_approved_in_part_or_sent_back() {
    let (engine, mut edge) = world().await;
    engine.create_run(new(), &person()).await.unwrap();
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![asked("a1", "ls")]).await;
    let shell = asked_about(&engine).await.asked;
    let plain = |decision| Resolve::new(decision, shell.digest.clone());
    let chosen = || Some(vec![SelectedFile { file: "id".into(), hunks: None }]);
    for (wrong, path) in [
        (Resolve { selection: chosen(), ..plain(Decision::Approve) }, "selection"),
        (Resolve { revise: true, ..plain(Decision::Reject) }, "revise"),
        (
            Resolve {
                comments: vec![Comment { file: "f".into(), line: None, text: "t".into() }],
                ..plain(Decision::Reject)
            },
            "comments",
        ),
    ] {
        let error = engine.resolve(shell.approval_id, wrong, &person()).await.unwrap_err();
        assert!(matches!(error, EngineError::Invalid { path: found, .. } if found == path), "{error}");
    }
    engine.resolve(shell.approval_id, plain(Decision::Reject), &person()).await.unwrap();
    edge.closes(open.run).await;

    let open = reviewing(&engine, &mut edge, new()).await;
    found(&mut edge, &open).await;
    let id = asked_about(&engine).await.asked.approval_id;
    for (wrong, path) in [
        (Resolve { selection: chosen(), ..Resolve::new(Decision::Reject, DIGEST) }, "selection"),
        (Resolve { selection: Some(Vec::new()), ..approve() }, "selection"),
        (Resolve { revise: true, ..approve() }, "revise"),
        (Resolve { scope: runyard_domain::run::DecisionScope::Run, ..approve() }, "scope"),
    ] {
        let error = engine.resolve(id, wrong, &person()).await.unwrap_err();
        assert!(matches!(error, EngineError::Invalid { path: found, .. } if found == path), "{error}");
    }
}

#[tokio::test]
async fn c22_a_session_is_gone_on_with_where_its_agent_talked_last_also_while_its_changes_are_taken_back() {
    let (engine, mut edge) = world().await;
    let open = being_applied(&engine, &mut edge).await;
    edge.recorded(&open, 2, vec![applied()]).await;
    assert!(edge.closes(open.run).await);
    let done = until(&engine, open.run, "completed").await;
    engine.carry(open.run, Carry::Undo, None, &person()).await.unwrap();
    let next = NewRun { session: Some(done.created.session_id), ..new() };
    let next = engine.create_run(next, &person()).await.unwrap().standing.run;
    assert_eq!(next.created.parent_run_id, Some(open.run));
}
