//! The whole transition matrix, what each state must prove, and that a replay comes to the same.

use std::collections::BTreeMap;

use proptest::prelude::*;
use runyard_domain::gate::{Effect, Request, Risk, mark};
use runyard_domain::run::*;
use runyard_domain::{
    ApplyTo, ApprovalId, Code, CommandId, DiffParts, DiffStats, ExecutionPolicy, Preparation, RuleId, RunId,
    SessionId, Timestamp, WorkspaceId, WorkspaceRef,
};
use serde_json::json;

fn run_id() -> RunId {
    RunId::from_parts(1, &[1; 10])
}

fn approval(number: u8) -> ApprovalId {
    ApprovalId::from_parts(1, &[number; 10])
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_unix_ms(1_700_000_000_000 + ms)
}

fn created() -> Created {
    Created {
        task: Task::Text { text: "tidy up".into(), redacted: false },
        actor: Who::runyard(),
        workspace: WorkspaceRef { id: WorkspaceId::from_parts(1, &[2; 10]), label: "site".into() },
        agent_id: "demo".into(),
        backend_profile: "demo".into(),
        session_id: SessionId::from_parts(1, &[3; 10]),
        execution_policy: ExecutionPolicy::default(),
        on_reject: OnReject::Cancel,
        parent_run_id: None,
        thread: None,
        carries: None,
    }
}

fn planned() -> Planned {
    Planned {
        edge_id: "local".into(),
        workspace_policy: "allowlist".into(),
        runtime_profile: "demo".into(),
        approval_policy: ApprovalPolicyRef { preset: "default".into(), version: 1 },
        preparation: Preparation::default(),
        backend: None,
    }
}

fn started() -> Started {
    let checks = BTreeMap::from([("workspace".to_owned(), "allowed".to_owned())]);
    Started { backend_kind: "scripted".into(), protocol: "runyard-script".into(), checks }
}

fn requested(number: u8) -> RunEvent {
    RunEvent::ApprovalRequested(ApprovalRequested {
        approval_id: approval(number),
        key: format!("ask-{number}"),
        request: Request::Shell { command: "ls".into(), cwd: ".".into() },
        redacted: false,
        digest: format!("digest-{number}"),
        risk: Risk::Low,
        reason: "shell commands are asked about".into(),
        notes: Vec::new(),
        workspace: created().workspace,
        actor: Who::runyard(),
        expires_at: at(60_000),
    })
}

fn resolved(number: u8, resolution: Resolution) -> RunEvent {
    RunEvent::ApprovalResolved(ApprovalResolved {
        approval_id: approval(number),
        resolution,
        decided_by: Who::runyard(),
        reason: None,
        scope: None,
        answer: None,
        selection: None,
        comments: Vec::new(),
        revise: false,
    })
}

fn snoozed(number: u8, until: i64) -> RunEvent {
    RunEvent::ApprovalSnoozed(ApprovalSnoozed {
        approval_id: approval(number),
        until: at(until),
        expires_at: at(until + 1000),
        by: Who::runyard(),
        reason: None,
    })
}

fn completed() -> RunEvent {
    RunEvent::Completed(Completed {
        response: "done".into(),
        artifacts: vec![],
        diff: DiffState::None,
        metrics: Metrics::default(),
        unused_approvals: vec![],
    })
}

fn failed() -> RunEvent {
    let failure = Failure::new(Code::RunTimeout, "it took too long");
    RunEvent::Failed(Failed {
        failure,
        terminal_status: "failed".into(),
        step: None,
        metrics: Metrics::default(),
    })
}

fn cancelled() -> RunEvent {
    let (by, reason) = (Who::runyard(), "no longer wanted".to_owned());
    RunEvent::Cancelled(Cancelled { by, reason, code: None, metrics: Metrics::default() })
}

fn applying() -> RunEvent {
    RunEvent::Applying(Applying {
        approval_id: approval(1),
        digest: "d".into(),
        to: ApplyTo::Files,
        stats: DiffStats::default(),
    })
}

fn applied() -> RunEvent {
    RunEvent::Applied(Applied { approval_id: approval(1), digest: "d".into(), commit: None })
}

/// One event of every type that only tells.
fn notes() -> Vec<RunEvent> {
    let error = RuntimeError { failure_kind: None, message: "m".into(), retrying: true };
    let status = RuntimeStatus {
        phase: "ready".into(),
        profile: "demo".into(),
        backend_kind: "scripted".into(),
        protocol: "runyard-script".into(),
        capability: None,
        model: None,
        version: None,
        thread: Some("t".into()),
        usage: None,
        away_ms: None,
    };
    let request = Request::Read { path: "a".into() };
    vec![
        RunEvent::GateJudged(GateJudged {
            key: "k".into(),
            request,
            effect: Effect::Allow,
            reason: "r".into(),
            rule_used: None,
        }),
        RunEvent::ApprovalUsed(ApprovalUsed { approval_id: approval(1) }),
        RunEvent::Degraded(Degraded { reason: "r".into() }),
        RunEvent::CommandReceived(CommandReceived {
            command_id: CommandId::from_parts(1, &[9; 10]),
            command: CommandKind::Turn,
            text: Some("more".into()),
            until_heard: false,
            actor: Who::runyard(),
        }),
        RunEvent::CommandHeard(CommandHeard { command_id: CommandId::from_parts(1, &[9; 10]) }),
        RunEvent::CancelRequested(CancelRequested { by: Who::runyard(), reason: "r".into() }),
        RunEvent::TurnStarted(TurnStarted { command_id: None }),
        RunEvent::TurnEnded(TurnEnded { outcome: TurnOutcome::Completed }),
        RunEvent::MessageDelta(MessageDelta { item: "m".into(), text: "t".into(), offset: 0 }),
        RunEvent::MessageCompleted(MessageCompleted { item: "m".into(), text: "t".into(), broke_off: false }),
        RunEvent::Reasoning(Reasoning { item: "r".into(), text: "t".into() }),
        RunEvent::PlanUpdated(PlanUpdated {
            steps: vec![PlanStep { text: "s".into(), status: PlanStatus::Pending }],
        }),
        RunEvent::ThreadRecorded(ThreadRecorded {
            thread: "t".into(),
            after: 0,
            messages: vec![json!({"role": "user"})],
            state: BTreeMap::new(),
        }),
        RunEvent::SecretsProjected(SecretsProjected {
            profile: "codex".into(),
            keys: vec!["auth.json".into()],
            how: ProjectedHow::Gateway,
        }),
        RunEvent::ToolCall(ToolCall {
            call: "c".into(),
            tool: "shell".into(),
            summary: "ls".into(),
            idempotent: false,
            arguments: json!({"a": 1}),
        }),
        RunEvent::ToolOutput(ToolOutput {
            call: "c".into(),
            stream: "stdout".into(),
            text: "t".into(),
            offset: 0,
            omitted: 0,
            log_path: None,
        }),
        RunEvent::ToolResult(ToolResult {
            call: "c".into(),
            outcome: ToolOutcome::Succeeded,
            code: None,
            summary: "exit 0".into(),
        }),
        RunEvent::FileRead(FileRead { path: "a".into() }),
        RunEvent::DiffReady(DiffReady {
            base: "b".into(),
            target: "t".into(),
            paths: vec![],
            summary: "s".into(),
            digest: "d".into(),
            stats: DiffStats::default(),
            parts: DiffParts::default(),
        }),
        RunEvent::PatchProposed(PatchProposed { files: vec!["a".into()], summary: "s".into() }),
        RunEvent::ArtifactReady(ArtifactReady {
            artifact_id: "art".into(),
            kind: "log".into(),
            summary: "s".into(),
            facts: None,
            name: None,
            content: None,
            by: None,
        }),
        RunEvent::PreviewReady(PreviewReady { path: "a".into(), read_at: at(0), artifact_id: None }),
        RunEvent::RuntimeStatus(status),
        RunEvent::RuntimeDied(RuntimeDied { message: "m".into() }),
        RunEvent::RuntimeError(error.clone()),
        RunEvent::RuntimeUnavailable(error.clone()),
        RunEvent::RuntimeTimeout(error.clone()),
        RunEvent::SchemaValidationFailed(error),
    ]
}

/// The events that lead to each state, in the order of their names.
fn states() -> Vec<(&'static str, Vec<RunEvent>)> {
    let planned = [RunEvent::Created(created()), RunEvent::Planned(planned())];
    let accepted = RunEvent::Accepted(Accepted { edge_id: "local".into() });
    let preparing = RunEvent::Preparing(Preparing { checks: vec!["workspace".into()] });
    let path: Vec<RunEvent> =
        planned.into_iter().chain([accepted, preparing, RunEvent::Started(started())]).collect();
    let on = |event: RunEvent| path.iter().cloned().chain([event]).collect::<Vec<_>>();
    vec![
        ("created", path[..1].to_vec()),
        ("planned", path[..2].to_vec()),
        ("accepted", path[..3].to_vec()),
        ("preparing", path[..4].to_vec()),
        ("running", path.clone()),
        ("needs_approval", on(requested(1))),
        ("applying", on(applying())),
        ("completed", on(completed())),
        ("failed", on(failed())),
        ("cancelled", on(cancelled())),
    ]
}

fn fold(events: &[RunEvent]) -> Result<Run, Illegal> {
    let mut run = None;
    for (place, event) in events.iter().enumerate() {
        run = Some(Run::fold(run, run_id(), at(place as i64), event)?);
    }
    Ok(run.expect("there is an event"))
}

/// One event of every type that moves a run, or is about what it waits for.
fn moving() -> Vec<RunEvent> {
    vec![
        RunEvent::Created(created()),
        RunEvent::Planned(planned()),
        RunEvent::Accepted(Accepted { edge_id: "local".into() }),
        RunEvent::Preparing(Preparing { checks: vec!["workspace".into()] }),
        RunEvent::Started(started()),
        requested(2),
        resolved(1, Resolution::Approved),
        applying(),
        applied(),
        completed(),
        failed(),
        cancelled(),
        snoozed(1, 50),
    ]
}

#[test]
fn c01_c02_c22_the_whole_matrix() {
    let columns = moving();
    let table: Vec<Vec<&str>> = states()
        .iter()
        .map(|(name, events)| {
            let run = fold(events).unwrap();
            assert_eq!(run.state.name(), *name);
            columns.iter().map(|event| run.state.apply(event).map_or("-", |next| next.name())).collect()
        })
        .collect();
    let (p, a, r, n, y, x) = ("planned", "accepted", "running", "needs_approval", "applying", "failed");
    let (g, c, d) = ("preparing", "cancelled", "completed");
    #[rustfmt::skip]
    let expected = vec![
    // created planned accepted preparing started requested resolved applying applied completed failed cancelled snoozed
        vec!["-", p,   "-",     "-",      "-",    "-",      "-",     "-",     "-",    "-",      x,     c,        "-"], // created
        vec!["-", "-", a,       "-",      "-",    "-",      "-",     "-",     "-",    "-",      x,     c,        "-"], // planned
        vec!["-", "-", "-",     g,        "-",    "-",      "-",     "-",     "-",    "-",      x,     c,        "-"], // accepted
        vec!["-", "-", "-",     "-",      r,      "-",      "-",     "-",     "-",    "-",      x,     c,        "-"], // preparing
        vec!["-", "-", "-",     "-",      "-",    n,        "-",     y,       "-",    d,        x,     c,        "-"], // running
        vec!["-", "-", "-",     "-",      "-",    n,        r,       "-",     "-",    "-",      x,     c,        n], // needs approval
        vec!["-", "-", "-",     "-",      "-",    "-",      "-",     "-",     r,      "-",      x,     c,        "-"], // applying
        vec!["-"; 13],                                                                                     // completed
        vec!["-"; 13],                                                                                     // failed
        vec!["-"; 13],                                                                                     // cancelled
    ];
    assert_eq!(table, expected);
}

#[test]
fn c10_c25_every_event_type_is_named_and_is_a_note_or_in_the_matrix() {
    #[rustfmt::skip]
    let contract = [
        "run.created", "run.started", "run.completed", "run.failed", "run.cancelled", "run.message.delta",
        "run.message.completed", "run.tool.call", "run.tool.result", "run.file.read", "run.diff.ready",
        "run.patch.proposed", "run.artifact.ready", "run.preview.ready", "run.approval.requested",
        "run.approval.resolved", "runtime.unavailable", "runtime.timeout", "schema.validation_failed",
        "run.planned", "run.accepted", "run.preparing", "run.applying", "run.applied", "run.degraded",
        "runtime.status", "run.tool.output", "runtime.error",
    ];
    for kind in contract {
        assert!(RunEvent::KINDS.contains(&kind), "{kind}");
    }
    let mut told: Vec<&str> = notes().iter().chain(&moving()).map(RunEvent::kind).collect();
    told.sort_unstable();
    let mut kinds = RunEvent::KINDS.to_vec();
    kinds.sort_unstable();
    assert_eq!(told, kinds, "a new type has its place in this test");
}

#[test]
fn c02_a_note_is_taken_in_every_state_but_the_last_ones_and_moves_none() {
    for (name, events) in states() {
        let run = fold(&events).unwrap();
        for note in notes() {
            assert!(note.is_note());
            match run.state.apply(&note) {
                Ok(next) => assert_eq!(
                    (next, false),
                    (run.state.clone(), run.state.is_terminal()),
                    "{name} {}",
                    note.kind()
                ),
                Err(_) => assert!(run.state.is_terminal(), "{name} {}", note.kind()),
            }
        }
    }
}

#[test]
fn c13_only_what_is_being_applied_is_said_to_be_applied() {
    let (name, applying) = states().into_iter().find(|(name, _)| *name == "applying").unwrap();
    let run = fold(&applying).unwrap();
    let of = |number| {
        RunEvent::Applied(Applied { approval_id: approval(number), digest: "d".into(), commit: None })
    };
    assert_eq!(run.state.apply(&of(1)).unwrap().name(), "running", "{name}");
    let illegal = Illegal::Approval { event: "run.applied", approval: approval(2) };
    assert_eq!(run.state.apply(&of(2)), Err(illegal));
}

#[test]
fn c05_each_check_is_missed_by_its_name() {
    let all = CHECKED.map(str::to_owned).to_vec();
    let found = || CHECKED.map(|check| (check.to_owned(), "fine".to_owned()));
    assert_eq!(Preparing { checks: all.clone() }.lacks(), None);
    assert_eq!(Started { checks: found().into(), ..started() }.lacks(), None);
    for check in CHECKED {
        let mut checks = all.clone();
        checks.retain(|named| named != check);
        assert_eq!(Preparing { checks }.lacks(), Some(check));
        for said in [None, Some(""), Some(" ")] {
            let mut checks = BTreeMap::from(found());
            checks.remove(check);
            checks.extend(said.map(|said| (check.to_owned(), said.to_owned())));
            assert_eq!(Started { checks, ..started() }.lacks(), Some(check), "{said:?}");
        }
    }
    assert_eq!(Preparing { checks: Vec::new() }.lacks(), Some("workspace"));
}

#[test]
fn c12_needs_approval_lasts_while_any_is_open() {
    let (_, mut events) = states().remove(4);
    events.extend([requested(1), requested(2), resolved(1, Resolution::Approved)]);
    let waiting = fold(&events).unwrap();
    assert_eq!(waiting.state.open().map(|(id, _)| id).collect::<Vec<_>>(), [approval(2)]);
    events.push(resolved(2, Resolution::Rejected));
    let run = fold(&events).unwrap();
    assert_eq!(run.state, RunState::Running);
    let held: Vec<_> = run.grants.iter().map(|grant| (grant.approval_id, grant.approved)).collect();
    assert_eq!(held, [(approval(1), true), (approval(2), false)]);
}

#[test]
fn c12_a_snoozed_approval_stays_open_and_expires_later() {
    let asked = states()[5].1.clone();
    let both = [asked, vec![requested(2)]].concat();
    let run = fold(&[both.clone(), vec![snoozed(1, 5000)]].concat()).unwrap();
    let open: Vec<_> =
        run.state.open().map(|(id, asked)| (id, asked.expires_at, asked.snoozed_until)).collect();
    let other = fold(&both).unwrap().state.open().last().map(|(_, asked)| asked.expires_at).unwrap();
    assert_eq!(open, [(approval(1), at(6000), Some(at(5000))), (approval(2), other, None)]);
    assert!(run.grants.is_empty(), "nothing is decided");
    let unknown = Illegal::Approval { event: "run.approval.snoozed", approval: approval(7) };
    assert_eq!(run.state.apply(&snoozed(7, 1)), Err(unknown));
}

#[test]
fn c12_an_approval_is_asked_once_and_resolved_once() {
    let (_, mut events) = states().remove(5);
    events.push(requested(1));
    let twice = Illegal::Approval { event: "run.approval.requested", approval: approval(1) };
    assert_eq!(fold(&events).unwrap_err(), twice);
    events.pop();
    events.push(resolved(7, Resolution::Approved));
    let unknown = Illegal::Approval { event: "run.approval.resolved", approval: approval(7) };
    assert_eq!(fold(&events).unwrap_err(), unknown);
}

#[test]
fn j07_a_decision_is_handed_on_once_unless_it_is_for_the_run() {
    #[track_caller]
    fn check(scope: Option<DecisionScope>, left: usize, again: bool) {
        let (_, mut events) = states().remove(5);
        let mut decision = resolved(1, Resolution::Approved);
        if let RunEvent::ApprovalResolved(resolved) = &mut decision {
            resolved.scope = scope;
        }
        let used = RunEvent::ApprovalUsed(ApprovalUsed { approval_id: approval(1) });
        events.extend([decision, used.clone()]);
        assert_eq!(fold(&events).unwrap().grants.len(), left);
        events.push(used);
        assert_eq!(fold(&events).is_ok(), again);
    }
    check(None, 0, false);
    check(Some(DecisionScope::Once), 0, false);
    check(Some(DecisionScope::Run), 1, true);
    check(Some(DecisionScope::Session), 1, true);
    check(Some(DecisionScope::Project), 1, true);
    let words = [DecisionScope::Once, DecisionScope::Run, DecisionScope::Session, DecisionScope::Project];
    for word in words {
        assert_eq!(serde_json::to_value(word).unwrap(), word.as_str());
    }
}

#[test]
fn c11_a_run_remembers_which_rules_of_files_it_used_up_until_it_ends() {
    let judged = |rule_used: Option<&str>| {
        RunEvent::GateJudged(GateJudged {
            key: "k".into(),
            request: Request::Read { path: "a".into() },
            effect: Effect::Allow,
            reason: "r".into(),
            rule_used: rule_used.map(str::to_owned),
        })
    };
    let (_, mut events) = states().remove(4);
    // A rule that people added is gone for everybody when it is used up.
    let stored = RuleId::from_parts(1, &[1; 10]).to_string();
    let marks = [mark("look once"), mark(&stored)];
    assert!(marks[0].starts_with("file_") && marks[1] == stored, "{marks:?}");
    events.extend([judged(None), judged(Some(&marks[0])), judged(Some(&stored))]);
    assert_eq!(fold(&events).unwrap().rules_used, [marks[0].clone()]);
    events.push(cancelled());
    assert_eq!(fold(&events).unwrap().rules_used, Vec::<String>::new());
}

#[test]
fn c05_an_event_that_enters_a_state_is_refused_without_its_evidence() {
    #[track_caller]
    fn check(event: RunEvent, field: &str) {
        let (_, events) = states()
            .into_iter()
            .find(|(_, events)| fold(events).is_ok_and(|run| run.state.apply(&event).is_ok()))
            .unwrap_or(("", vec![]));
        let run = (!events.is_empty()).then(|| fold(&events).unwrap());
        match Run::fold(run, run_id(), at(9), &event) {
            Err(Illegal::Evidence { field: missing, .. }) => assert_eq!(missing, field),
            other => panic!("{}: {other:?}", event.kind()),
        }
    }
    let RunEvent::ApprovalSnoozed(mut nobody) = snoozed(1, 50) else { panic!() };
    nobody.by.id = " ".into();
    check(RunEvent::ApprovalSnoozed(nobody), "by");
    let preview = |path: &str| {
        RunEvent::PreviewReady(PreviewReady { path: path.into(), read_at: at(0), artifact_id: None })
    };
    check(preview("/etc/passwd"), "path");
    assert!(fold(&[states()[4].1.clone(), vec![preview("a/b")]].concat()).is_ok());
    let text = Task::Text { text: "  ".into(), redacted: false };
    check(RunEvent::Created(Created { task: text, ..created() }), "task");
    check(
        RunEvent::Created(Created { actor: Who { id: String::new(), ..Who::runyard() }, ..created() }),
        "actor",
    );
    let nowhere = WorkspaceRef { label: String::new(), ..created().workspace };
    check(RunEvent::Created(Created { workspace: nowhere, ..created() }), "workspace");
    check(RunEvent::Created(Created { agent_id: String::new(), ..created() }), "agentId");
    check(RunEvent::Created(Created { backend_profile: String::new(), ..created() }), "backendProfile");
    check(RunEvent::Planned(Planned { edge_id: String::new(), ..planned() }), "edgeId");
    check(RunEvent::Planned(Planned { workspace_policy: String::new(), ..planned() }), "workspacePolicy");
    check(RunEvent::Planned(Planned { runtime_profile: String::new(), ..planned() }), "runtimeProfile");
    let no_policy = ApprovalPolicyRef { preset: String::new(), version: 0 };
    check(RunEvent::Planned(Planned { approval_policy: no_policy, ..planned() }), "approvalPolicy");
    check(RunEvent::Accepted(Accepted { edge_id: String::new() }), "edgeId");
    check(RunEvent::Preparing(Preparing { checks: vec![] }), "checks");
    check(RunEvent::Started(Started { checks: BTreeMap::new(), ..started() }), "checks");
    check(RunEvent::Started(Started { backend_kind: String::new(), ..started() }), "backendKind");
    check(RunEvent::Started(Started { protocol: String::new(), ..started() }), "protocol");
    let mut silent = failed();
    if let RunEvent::Failed(failed) = &mut silent {
        failed.failure.message.clear();
    }
    check(silent, "message");
    let mut hopeless = failed();
    if let RunEvent::Failed(failed) = &mut hopeless {
        failed.failure.recovery.clear();
    }
    check(hopeless, "recovery");
    let mut nobody = cancelled();
    if let RunEvent::Cancelled(cancelled) = &mut nobody {
        cancelled.by.id.clear();
    }
    check(nobody, "by");
    let mut why = cancelled();
    if let RunEvent::Cancelled(cancelled) = &mut why {
        cancelled.reason.clear();
    }
    check(why, "reason");
}

#[test]
fn c12_time_in_needs_approval_counts_toward_no_other_timeout() {
    let (_, events) = states().remove(4);
    let mut run = None;
    for event in &events {
        run = Some(Run::fold(run, run_id(), at(0), event).unwrap());
    }
    let mut run = run.unwrap();
    for (ms, event) in
        [(1_000, requested(1)), (61_000, resolved(1, Resolution::Approved)), (63_000, requested(2))]
    {
        run = Run::fold(Some(run), run_id(), at(ms), &event).unwrap();
    }
    assert_eq!(run.active_ms(at(100_000)), 3_000, "1 s before the first and 2 s after it");
    assert_eq!(run.metrics(at(100_000)).wall_ms, 100_000);
    let back = Run::fold(Some(run), run_id(), at(90_000), &resolved(2, Resolution::Approved)).unwrap();
    assert_eq!(back.active_ms(at(90_500)), 3_500);
    assert_eq!(back.active_ms(at(0)), 3_000, "a clock that was set back takes nothing away");
}

#[test]
fn c12_time_in_which_nobody_looked_after_a_run_or_in_which_it_waited_for_a_place_counts_toward_no_timeout() {
    let (_, events) = states().remove(4);
    let mut run = None;
    // Two seconds as planned, one in each state that follows.
    for (ms, event) in [0, 0, 2_000, 3_000, 4_000].into_iter().zip(&events) {
        run = Some(Run::fold(run, run_id(), at(ms), event).unwrap());
    }
    let run = run.unwrap();
    assert_eq!((run.state.name(), run.active_ms(at(5_000))), ("running", 3_000));
    let away = |ms| {
        let status = notes().into_iter().find_map(|note| match note {
            RunEvent::RuntimeStatus(status) => Some(status),
            _ => None,
        });
        RunEvent::RuntimeStatus(RuntimeStatus { away_ms: Some(ms), ..status.unwrap() })
    };
    let back = Run::fold(Some(run.clone()), run_id(), at(3_605_000), &away(3_600_000)).unwrap();
    assert_eq!(back.active_ms(at(3_605_000)), 3_000, "an hour later it is where it was");
    assert_eq!(back.active_ms(at(3_606_000)), 4_000);
    let longer = Run::fold(Some(back), run_id(), at(3_606_000), &away(u64::MAX)).unwrap();
    assert_eq!(longer.active_ms(at(3_606_000)), 3_000, "what was counted before stays counted");
    let ended = Run::fold(Some(run), run_id(), at(6_000), &cancelled()).unwrap();
    assert_eq!(ended.active_ms(at(9_000_000)), 4_000, "nothing counts after the end");
}

#[test]
fn c22_turns_wait_in_a_queue_and_leave_it_when_they_start() {
    let (_, mut events) = states().remove(4);
    let id = CommandId::from_parts(1, &[9; 10]);
    events.push(notes().remove(3));
    assert_eq!(fold(&events).unwrap().queued.len(), 1);
    events.push(RunEvent::TurnStarted(TurnStarted { command_id: Some(id) }));
    let run = fold(&events).unwrap();
    assert_eq!((run.queued.len(), run.turn_active), (0, true));
}

/// Any event that could come, legal or not.
fn any_event() -> impl Strategy<Value = RunEvent> {
    let mut all: Vec<RunEvent> = notes();
    all.extend(states().into_iter().flat_map(|(_, events)| events));
    for number in 1..4 {
        all.push(requested(number));
        for resolution in
            [Resolution::Approved, Resolution::Rejected, Resolution::Expired, Resolution::Withdrawn]
        {
            all.push(resolved(number, resolution));
        }
        all.push(RunEvent::ApprovalUsed(ApprovalUsed { approval_id: approval(number) }));
        all.push(snoozed(number, 50));
    }
    all.extend([applying(), applied()]);
    proptest::sample::select(all)
}

proptest! {
    /// Any sequence of events folds to the same state live (from the row, after each event) and replayed from the log.
    #[test]
    fn c03_c08_a_replay_folds_to_the_same_state_as_the_live_run(
        events in proptest::collection::vec((any_event(), 0_i64..50), 1..80),
    ) {
        let mut live: Option<Run> = None;
        let mut log: Vec<(Timestamp, &'static str, serde_json::Value)> = Vec::new();
        let mut now = 0;
        let begin = (RunEvent::Created(created()), 0);
        for (event, ms) in std::iter::once(begin).chain(events) {
            now += ms;
            let before = live.clone();
            match Run::fold(live.clone(), run_id(), at(now), &event) {
                Ok(run) => {
                    // What the row holds is what the next writer folds on.
                    let row = serde_json::to_vec(&run).unwrap();
                    live = Some(serde_json::from_slice(&row).unwrap());
                    log.push((at(now), event.kind(), event.payload().unwrap()));
                }
                Err(_) => prop_assert_eq!(&live, &before, "a refused event changes nothing"),
            }
        }
        let mut replayed: Option<Run> = None;
        for (time, kind, payload) in &log {
            let event = RunEvent::read(kind, payload).unwrap();
            replayed = Some(Run::fold(replayed, run_id(), *time, &event).unwrap());
        }
        prop_assert_eq!(&replayed, &live);
        let live = live.unwrap();
        if let RunState::NeedsApproval { open } = &live.state {
            prop_assert!(!open.is_empty());
        }
    }
}
