//! What became of a run's changes, and what is to be done for it next: both follow from its events alone.

use runyard_domain::run::{ApplyStatus, Budget, Exceeded, Failure, Metered, Run, RunEvent, Usage, Work};
use runyard_domain::{
    Approval, ApprovalId, Changes, DiffStats, ExecutionPolicy, Network, RunId, Sandbox, Timestamp,
};
use serde_json::{Value, json};

const ASKED: &str = "apr_018bcfe5680077078707070707070701";
const OTHER: &str = "apr_018bcfe5680077078707070707070702";

fn asked() -> ApprovalId {
    ASKED.parse().unwrap()
}

fn after(run: Option<Run>, events: impl IntoIterator<Item = (&'static str, Value)>) -> Run {
    let id = RunId::from_parts(1, &[7; 10]);
    let fold = |run, (kind, payload): (&str, Value)| {
        let event =
            RunEvent::read(kind, &payload).unwrap_or_else(|error| panic!("{error}: {kind} {payload}"));
        Some(
            Run::fold(run, id, Timestamp::from_unix_ms(1), &event)
                .unwrap_or_else(|error| panic!("{error}: {kind}")),
        )
    };
    events.into_iter().fold(run, fold).unwrap()
}

fn created(carries: Option<Value>) -> Value {
    let mut created = json!({
        "task": {"kind": "text", "text": "Tidy up.", "redacted": false},
        "actor": {"id": "ada", "kind": "person"},
        "workspace": {"id": "wsp_018bcfe5680077078707070707070707", "label": "shop"},
        "agentId": "demo", "backendProfile": "demo", "sessionId": "ses_018bcfe5680077078707070707070707",
        "executionPolicy": {}, "onReject": "cancel",
    });
    if let Some(carries) = carries {
        created["carries"] = carries;
    }
    created
}

/// A run that has just started.
fn started(carries: Option<Value>) -> Run {
    let policy = json!({"preset": "default", "version": 1});
    let planned = json!({"edgeId": "e", "workspacePolicy": "allowlist", "runtimeProfile": "demo", "approvalPolicy": policy});
    after(
        None,
        [
            ("run.created", created(carries)),
            ("run.planned", planned),
            ("run.accepted", json!({"edgeId": "e"})),
            ("run.preparing", json!({"checks": ["workspace"]})),
            ("run.started", json!({"backendKind": "k", "protocol": "p", "checks": {"workspace": "fine"}})),
        ],
    )
}

fn diff() -> (&'static str, Value) {
    ("run.diff.ready", json!({"base": "b", "target": "t", "paths": [], "summary": "s", "digest": "d"}))
}

fn request(id: &str, kind: &str) -> (&'static str, Value) {
    let request = match kind {
        "apply" => json!({
            "kind": "apply", "base": "b", "target": "t", "stats": {"files": 1, "insertions": 0, "deletions": 0},
            "files": [], "to": "files",
        }),
        _ => json!({"kind": "shell", "command": "ls", "cwd": "."}),
    };
    let asked = json!({
        "approvalId": id, "key": "k", "request": request, "redacted": false, "digest": "d", "risk": "low", "reason": "r",
        "workspace": {"id": "wsp_018bcfe5680077078707070707070707", "label": "shop"},
        "actor": {"id": "demo", "kind": "agent", "runId": "run_018bcfe5680077078707070707070707"},
        "expiresAt": "2030-01-01T00:00:00.000Z",
    });
    ("run.approval.requested", asked)
}

fn resolved(id: &str, resolution: &str) -> (&'static str, Value) {
    let by = json!({"id": "ada", "kind": "person"});
    let selection = json!([{"file": "f", "hunks": [1]}]);
    let resolved =
        json!({"approvalId": id, "resolution": resolution, "decidedBy": by, "selection": selection});
    ("run.approval.resolved", resolved)
}

fn turn(ends: bool) -> Vec<(&'static str, Value)> {
    let mut turn = vec![("run.turn.started", json!({}))];
    if ends {
        turn.push(("run.turn.ended", json!({"outcome": "completed"})));
    }
    turn
}

fn queued() -> (&'static str, Value) {
    let actor = json!({"id": "ada", "kind": "person"});
    let id = "cmd_018bcfe5680077078707070707070707";
    ("run.command.received", json!({"commandId": id, "command": "turn", "text": "more", "actor": actor}))
}

/// A run whose changes are being asked about.
fn waiting() -> Run {
    after(Some(after(Some(started(None)), turn(true))), [diff(), request(ASKED, "apply")])
}

fn status(run: &Run) -> ApplyStatus {
    run.review.as_ref().unwrap().status
}

#[test]
fn c22_an_agent_works_until_its_turn_has_ended_and_none_is_queued_and_then_it_is_looked_at() {
    let fresh = started(None);
    assert_eq!(fresh.work(true), Work::Agent, "no turn has begun");
    let at_work = after(Some(fresh.clone()), turn(false));
    assert_eq!(at_work.work(true), Work::Agent);
    let done = after(Some(fresh), turn(true));
    assert_eq!(
        (done.work(true), done.work(false)),
        (Work::Review, Work::Agent),
        "without a checkout there is nothing to see"
    );
    assert_eq!(after(Some(done.clone()), [queued()]).work(true), Work::Agent, "a further turn comes first");
    let asking = after(Some(done), [request(OTHER, "shell")]);
    assert_eq!(asking.work(true), Work::Agent, "it waits for people, and that is the agent's question");
}

#[test]
fn c22_what_was_approved_is_applied_and_what_is_out_of_date_is_looked_at_again() {
    let approved = after(Some(waiting()), [resolved(ASKED, "approved")]);
    assert_eq!((approved.work(true), status(&approved)), (Work::Apply(asked()), ApplyStatus::Approved));
    assert!(approved.grants.is_empty(), "it is no answer for the agent");
    assert_eq!(approved.review.as_ref().unwrap().selection.as_ref().unwrap()[0].file, "f");
    assert_eq!(approved.current_review().unwrap().approval_id, Some(asked()));

    let again = after(Some(approved.clone()), turn(true));
    assert_eq!(
        (again.work(true), again.current_review()),
        (Work::Review, None),
        "the agent has worked since"
    );
    assert!(again.review.is_some(), "and what was found is still known");

    let applying = after(Some(approved), [("run.applying", json!({"approvalId": ASKED, "digest": "part"}))]);
    assert_eq!((applying.work(true), applying.work(false)), (Work::Apply(asked()), Work::Apply(asked())));
    assert_eq!(
        (status(&applying), applying.review.as_ref().unwrap().applied_digest.as_deref()),
        (ApplyStatus::Applying, Some("part"))
    );
    let applied = json!({"approvalId": ASKED, "digest": "part", "commit": "c0ffee"});
    let applied = after(Some(applying), [("run.applied", applied)]);
    assert_eq!(
        (status(&applied), applied.review.unwrap().commit.as_deref()),
        (ApplyStatus::Applied, Some("c0ffee"))
    );
}

#[test]
fn c14_each_end_of_an_approval_is_what_became_of_the_changes() {
    for (resolution, expected) in [
        ("approved", ApplyStatus::Approved),
        ("rejected", ApplyStatus::Rejected),
        ("expired", ApplyStatus::Rejected),
        ("withdrawn", ApplyStatus::Proposed),
    ] {
        assert_eq!(status(&after(Some(waiting()), [resolved(ASKED, resolution)])), expected, "{resolution}");
    }
    let both = after(Some(waiting()), [request(OTHER, "shell"), resolved(OTHER, "rejected")]);
    assert_eq!(
        (status(&both), both.grants.len()),
        (ApplyStatus::Proposed, 1),
        "another's answer is not this one's"
    );
    assert_eq!(both.review.unwrap().approval_id, Some(asked()), "nor is another's question");

    let failed = |run: Run| {
        let metrics = json!({"wallMs": 1, "activeMs": 1});
        let failed = json!({"code": "CONFLICT", "message": "m", "recovery": "r", "terminalStatus": "failed", "metrics": metrics});
        status(&after(Some(run), [("run.failed", failed)]))
    };
    let approved = after(Some(waiting()), [resolved(ASKED, "approved")]);
    assert_eq!(failed(approved.clone()), ApplyStatus::Failed);
    let applying = || ("run.applying", json!({"approvalId": ASKED, "digest": "part"}));
    let applied = || ("run.applied", json!({"approvalId": ASKED, "digest": "part"}));
    assert_eq!(failed(after(Some(approved.clone()), [applying()])), ApplyStatus::Failed);
    assert_eq!(failed(waiting()), ApplyStatus::Proposed, "nobody had tried");

    let cancelled = |run: Run| {
        let metrics = json!({"wallMs": 1, "activeMs": 1});
        let cancelled = json!({"by": {"id": "ada", "kind": "person"}, "reason": "r", "metrics": metrics});
        status(&after(Some(run), [("run.cancelled", cancelled)]))
    };
    assert_eq!(cancelled(waiting()), ApplyStatus::Proposed);
    assert_eq!(cancelled(approved.clone()), ApplyStatus::Approved, "nothing was written");
    assert_eq!(cancelled(after(Some(approved.clone()), [applying()])), ApplyStatus::Failed);
    assert_eq!(cancelled(after(Some(approved), [applying(), applied()])), ApplyStatus::Applied);
}

#[test]
fn c22_a_run_that_carries_anothers_changes_has_no_agent_and_taking_back_is_told_apart() {
    let of = "run_018bcfe5680077078707070707070709";
    let created = after(None, [("run.created", created(Some(json!({"of": of}))))]);
    assert_eq!(created.work(true), Work::Review, "from its first moment on");
    for (undo, expected) in [(false, ApplyStatus::Applied), (true, ApplyStatus::Undone)] {
        let run = started(Some(json!({"of": of, "undo": undo})));
        assert_eq!((run.work(true), run.work(false)), (Work::Review, Work::Review));
        let run = after(Some(run), [diff(), request(ASKED, "apply"), resolved(ASKED, "approved")]);
        assert_eq!(run.work(false), Work::Apply(asked()));
        let part = json!({"approvalId": ASKED, "digest": "part"});
        let run = after(Some(run), [("run.applying", part.clone()), ("run.applied", part)]);
        assert_eq!(status(&run), expected);
    }
}

#[test]
fn how_much_changed_is_said_in_a_line_and_problems_are_something_to_look_at() {
    let stats = |files, problems| DiffStats { files, insertions: 3, deletions: 2, protected: 0, problems };
    assert_eq!(stats(1, 0).to_string(), "1 file changed, +3 −2 lines");
    assert_eq!(stats(2, 0).to_string(), "2 files changed, +3 −2 lines");
    assert!(stats(0, 0).is_empty() && !stats(1, 0).is_empty() && !stats(0, 1).is_empty());
    let written = serde_json::to_value(stats(1, 0)).unwrap();
    assert_eq!(
        written,
        json!({"files": 1, "insertions": 3, "deletions": 2}),
        "what is as always is not written"
    );
    assert_eq!(serde_json::to_value(stats(1, 4)).unwrap()["problems"], 4);
}

#[test]
fn b07_of_two_policies_the_stricter_word_and_the_smaller_limit_count() {
    let loose = ExecutionPolicy {
        sandbox: Sandbox::None,
        network: Network::Allow,
        approval: Approval::Ask,
        timeout_ms: 100,
        idle_ms: 10,
        changes: Changes::Ask,
        ..ExecutionPolicy::default()
    };
    let strict = ExecutionPolicy {
        sandbox: Sandbox::ReadOnly,
        network: Network::Deny,
        approval: Approval::Never,
        timeout_ms: 50,
        idle_ms: 5,
        changes: Changes::Keep,
        ..ExecutionPolicy::default()
    };
    assert_eq!(loose.narrowed_by(&strict), strict);
    assert_eq!(strict.narrowed_by(&loose), strict);
    let middle = ExecutionPolicy { sandbox: Sandbox::WorkspaceWrite, network: Network::Ask, ..loose.clone() };
    assert_eq!(middle.narrowed_by(&loose), middle);
    assert_eq!(loose.narrowed_by(&loose), loose);
    let mixed = ExecutionPolicy { timeout_ms: 10, ..loose.clone() };
    let both = mixed.narrowed_by(&ExecutionPolicy { idle_ms: 1, ..loose });
    assert_eq!((both.timeout_ms, both.idle_ms), (10, 1));
    let default = ExecutionPolicy::default();
    assert_eq!((default.timeout_ms, default.idle_ms), (3_600_000, 600_000), "an hour, and ten minutes");
    assert_eq!(ExecutionPolicy::TIMEOUT_MS_MAX, 604_800_000, "a week");
    assert!(serde_json::to_value(ExecutionPolicy::default()).unwrap().get("changes").is_none());
    assert_eq!(serde_json::to_value(&strict).unwrap()["changes"], "keep");
}

#[test]
fn c16_a_budget_says_what_was_gone_beyond_and_what_can_be_limited() {
    let cost = Exceeded::CostUsd { allowed: "2.50".parse().unwrap(), used: "2.75".parse().unwrap() };
    assert_eq!(cost.to_string(), "The run cost 2.75 US dollars, and its budget is 2.50.");
    let tokens = Exceeded::Tokens { allowed: 10, used: 11 };
    assert_eq!(tokens.to_string(), "The run used 11 tokens, and its budget is 10.");
    assert_eq!(Failure::of_budget(tokens).exceeded, Some(tokens));
    let says = |tokens, cost| Metered { tokens, cost }.to_string();
    assert_eq!(says(true, true), "It can have a limit of costUsd, tokens or both.");
    assert_eq!(says(true, false), "It can have a limit of tokens.");
    assert_eq!(says(false, true), "It can have a limit of costUsd.");
    assert_eq!(says(false, false), "It can have no budget.");
    assert_eq!(Metered::of("scripted"), Metered { tokens: true, cost: true });
    assert_eq!(Metered::of("codex-app-server-stdio"), Metered { tokens: true, cost: false });
    assert_eq!(Metered::of("native"), Metered { tokens: true, cost: false });
    assert_eq!(Metered::of("action"), Metered::default());
    assert!(Budget::default().is_empty() && !Budget { tokens: Some(1), ..Budget::default() }.is_empty());
    let one = Usage { input_tokens: Some(2), output_tokens: None, cost_usd: Some(1.0) };
    let less = Usage { input_tokens: Some(1), output_tokens: Some(3), cost_usd: Some(0.5) };
    let both = Usage { input_tokens: Some(2), output_tokens: Some(3), cost_usd: Some(1.0) };
    assert_eq!((one.then(less), less.then(one), both.tokens()), (both, both, Some(5)));
    assert_eq!(Usage::default().tokens(), None);
}
