//! Accepting, preparing, starting and closing a run.

use std::fs;

use runyard_backend::link::{FromEdge, Report, ToEdge};
use runyard_backend::{Command, Ending, JournalError, Signal};
use runyard_domain::run::{Failure, FailureKind};
use runyard_domain::{Code, CommandId};

use crate::harness::{Place, TOKEN, delta, message};

fn checks() -> Vec<String> {
    ["processes", "workspace", "backend", "policy", "credentials", "checkout", "sandbox"]
        .map(str::to_owned)
        .to_vec()
}

#[tokio::test(start_paused = true)]
async fn c05_each_step_of_a_run_is_durable_before_the_next_is_taken() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let open = place.open(1);
    let checkout = place.run_directory(open.run).join("checkout");
    hub.send(ToEdge::Open(Box::new(open.clone()))).await;

    let accepted = hub.batch().await;
    assert_eq!((accepted.run, accepted.generation, accepted.edge_sequence), (open.run, 1, 1));
    assert_eq!(accepted.reports, [Report::Accepted]);
    hub.hears_nothing().await;
    hub.recorded(&accepted).await;

    let preparing = hub.batch().await;
    assert_eq!(
        (preparing.edge_sequence, &preparing.reports),
        (2, &vec![Report::Preparing { checks: checks() }])
    );
    hub.hears_nothing().await;
    assert!(!checkout.exists());
    hub.recorded(&preparing).await;

    let started = hub.batch().await;
    let Report::Started { backend_kind, protocol, checks: found } = &started.reports[0] else {
        panic!("{started:?}")
    };
    assert_eq!((backend_kind.as_str(), protocol.as_str()), ("puppet", "strings"));
    let mut named: Vec<String> = checks();
    named.sort();
    assert_eq!(found.keys().cloned().collect::<Vec<_>>(), named);
    assert_eq!(found["backend"], "puppet 1");
    assert_eq!(found["credentials"], "no secret is projected");
    assert_eq!(fs::read_to_string(checkout.join("file")).unwrap(), "original");
    hub.hears_nothing().await;
    hub.recorded(&started).await;

    let puppet = hub.puppet().await;
    assert_eq!(puppet.spec.directory, checkout);
    assert_eq!(puppet.spec.start, open.start);
}

#[tokio::test(start_paused = true)]
async fn b06_a_runs_processes_find_exactly_this_in_their_environment() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let open = place.open(1);
    let home = place.run_directory(open.run).join("home");
    let puppet = hub.start(open.clone()).await;
    let edge = place.run_directory(open.run).parent().unwrap().parent().unwrap().to_owned();
    let of_session = edge.join("sessions").join(open.session.to_string()).join("puppet");
    assert_eq!(puppet.spec.home, of_session, "the runs of a session share it");
    assert!(of_session.is_dir());
    let temporary = home.join("tmp");
    assert!(temporary.is_dir());
    let expected = [
        ("HOME", home.to_str().unwrap()),
        ("LANG", "C.UTF-8"),
        ("PATH", "/usr/bin"),
        ("RUNYARD_RUN_ID", &open.run.to_string()),
        ("RUNYARD_RUN_TOKEN", TOKEN),
        ("RUNYARD_URL", "http://127.0.0.1:7070"),
        ("TERM", "dumb"),
        ("TMPDIR", temporary.to_str().unwrap()),
    ];
    let found: Vec<_> =
        puppet.spec.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(found, expected);
}

#[tokio::test(start_paused = true)]
async fn c16_a_run_that_cannot_be_prepared_fails_with_the_code_of_what_is_missing() {
    let place = Place::new().await;
    let mut hub = place.link().await;

    let mut elsewhere = place.open(1);
    elsewhere.workspace.id = runyard_domain::WorkspaceId::from_parts(9, &[9; 10]);
    let mut unknown = place.open(2);
    unknown.backend_profile.backend_kind = "abacus".to_owned();
    let mut missing = place.open(3);
    let root = place.root().display().to_string();
    missing.backend_profile.settings.insert("missing".to_owned(), root);
    let outside = "the workspace project is not on this edge's allow-list";
    for (open, failure) in [
        (elsewhere, Failure::new(Code::WorkspaceOutsideAllowlist, outside)),
        (
            unknown,
            Failure::of_backend(FailureKind::BackendSpawnFailed, "this edge has no backend of kind abacus"),
        ),
        (missing, Failure::of_backend(FailureKind::BackendSpawnFailed, "there is no puppet")),
    ] {
        let run = open.run;
        hub.send(ToEdge::Open(Box::new(open))).await;
        assert_eq!(hub.report().await, Report::Accepted);
        hub.report().await;
        assert_eq!(hub.report().await, Report::Failed { failure });
        assert!(!place.run_directory(run).join("checkout").exists());
    }
}

#[tokio::test(start_paused = true)]
async fn c05_a_workspace_that_was_taken_off_the_list_or_replaced_by_a_link_is_outside() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    fs::rename(place.root(), place.root().with_file_name("moved")).unwrap();
    std::os::unix::fs::symlink("/etc", place.root()).unwrap();
    hub.send(ToEdge::Open(Box::new(place.open(1)))).await;
    hub.reports().await;
    hub.reports().await;
    let Report::Failed { failure } = hub.report().await else { panic!("it did not fail") };
    assert_eq!(failure.code, Code::WorkspaceOutsideAllowlist);
}

#[tokio::test(start_paused = true)]
async fn c17_a_backend_that_cannot_open_fails_the_run_with_its_kind_and_without_secrets() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let mut open = place.open(1);
    open.backend_profile.settings.insert("broken".to_owned(), format!("refused {TOKEN}"));
    hub.send(ToEdge::Open(Box::new(open))).await;
    for _ in 0..3 {
        hub.reports().await;
    }
    let Report::Failed { failure } = hub.report().await else { panic!("it did not fail") };
    assert_eq!(
        (failure.code, failure.failure_kind),
        (Code::RuntimeUnavailable, Some(FailureKind::ProviderAuthFailed))
    );
    assert!(failure.message.starts_with("refused [REDACTED:known:"), "{}", failure.message);
}

#[tokio::test(start_paused = true)]
async fn a_backend_may_record_while_it_opens() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let mut open = place.open(1);
    open.backend_profile.settings.insert("talks".to_owned(), String::new());
    hub.send(ToEdge::Open(Box::new(open))).await;
    for _ in 0..3 {
        hub.reports().await;
    }
    assert!(matches!(hub.report().await, Report::Signal(Signal::Status { .. })));
    hub.puppet().await;
}

#[tokio::test(start_paused = true)]
async fn commands_reach_the_backend_in_order_and_those_of_another_generation_do_not() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let open = place.open(1);
    let run = open.run;
    let mut puppet = hub.start(open).await;
    let turn =
        |number| Command::Turn { id: CommandId::from_parts(1, &[number; 10]), text: number.to_string() };
    hub.send(ToEdge::Command { run, generation: 2, command: turn(0) }).await;
    hub.send(ToEdge::Command { run, generation: 1, command: turn(1) }).await;
    let stray = Command::Answer { key: "k".to_owned(), answer: crate::harness::yes() };
    hub.send(ToEdge::Command { run, generation: 1, command: stray }).await;
    hub.send(ToEdge::Command { run, generation: 1, command: turn(2) }).await;
    assert_eq!(puppet.command().await, Some(turn(1)));
    assert_eq!(puppet.command().await, Some(turn(2)), "an answer is no command");
}

#[tokio::test(start_paused = true)]
async fn c17_a_closed_run_is_stopped_before_the_hub_hears_so_and_keeps_only_its_checkout() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let open = place.open(1);
    let (run, directory) = (open.run, place.run_directory(open.run));
    let mut puppet = hub.start(open).await;
    hub.send(ToEdge::Close { run, generation: 1, over: true }).await;
    assert_eq!(puppet.command().await, None);
    assert_eq!(puppet.record(vec![message("late")]).await.unwrap(), Err(JournalError::Stopped));
    // Time stands still for who waits and not for the session: it gives a backend only so much patience.
    drop(puppet);
    assert_eq!(hub.next().await, FromEdge::Closed { run, generation: 1 });
    let mut left: Vec<_> =
        fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["base", "checkout", "owner.json"]);
    let owner: serde_json::Value =
        serde_json::from_slice(&fs::read(directory.join("owner.json")).unwrap()).unwrap();
    assert_eq!((&owner["run"], &owner["edge"]), (&run.to_string().into(), &"edge".into()), "{owner}");
    assert_eq!(owner["workspace"], place.workspace.id.to_string());
    assert!(
        owner["madeAt"].is_string() && owner["endedAt"].is_string() && owner["bytes"].is_u64(),
        "{owner}"
    );

    hub.send(ToEdge::Close { run, generation: 1, over: true }).await;
    assert_eq!(hub.next().await, FromEdge::Closed { run, generation: 1 }, "closing again is answered again");
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_does_not_stop_is_given_up_after_a_while() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let open = place.open(1);
    let run = open.run;
    let puppet = hub.start(open).await;
    hub.send(ToEdge::Close { run, generation: 1, over: false }).await;
    assert_eq!(hub.next().await, FromEdge::Closed { run, generation: 1 });
    assert!(puppet.task.is_closed(), "its task was dropped");
    assert!(place.run_directory(run).join("home").exists(), "the run is not over");
}

#[tokio::test(start_paused = true)]
async fn c04_a_backend_that_ends_without_a_word_is_said_to_have_died() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let ended = |message: &str| {
        let ending = Ending::failed(FailureKind::BackendFailed, message);
        Report::Signal(Signal::Ended { ending })
    };
    let puppet = hub.start(place.open(1)).await;
    drop(puppet);
    let died = Ending::Died { message: "the backend ended without saying how".to_owned() };
    assert_eq!(hub.report().await, Report::Signal(Signal::Ended { ending: died }));
    let puppet = hub.start(place.open(2)).await;
    puppet.task.send(()).unwrap();
    assert_eq!(hub.report().await, ended("the backend broke down"));
}

#[tokio::test(start_paused = true)]
async fn c22_after_its_last_word_nothing_more_of_a_backend_is_recorded() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let mut puppet = hub.start(place.open(1)).await;
    let recording = puppet.record(vec![delta("bye"), Signal::Ended { ending: Ending::Cancelled }]);
    let reports = hub.reports().await;
    assert_eq!(reports.last(), Some(&Report::Signal(Signal::Ended { ending: Ending::Cancelled })));
    assert_eq!(reports.len(), 2, "{reports:?}");
    assert_eq!(recording.await.unwrap(), Ok(()));
    assert_eq!(puppet.command().await, None);
    assert_eq!(puppet.record(vec![message("late")]).await.unwrap(), Err(JournalError::Stopped));
    drop(puppet);
    hub.hears_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn c04_c11_a_backend_that_cannot_ask_runs_only_where_a_sandbox_denies_what_would_be_asked() {
    use runyard_domain::gate::{Policy, Preset};
    use runyard_domain::{Network, Sandbox};
    let place = Place::new().await;
    let mut hub = place.link().await;
    let mute = |number, sandbox, network, preset: &str| {
        let mut open = place.open(number);
        open.backend_profile.backend_kind = "mute".to_owned();
        (open.execution_policy.sandbox, open.execution_policy.network) = (sandbox, network);
        open.approval_policy.preset = preset.to_owned();
        open
    };
    let refused = [
        mute(1, Sandbox::WorkspaceWrite, Network::Ask, "default"),
        mute(2, Sandbox::WorkspaceWrite, Network::Allow, "default"),
        mute(3, Sandbox::None, Network::Deny, "default"),
        mute(4, Sandbox::WorkspaceWrite, Network::Deny, "strict"),
    ];
    for open in refused {
        hub.send(ToEdge::Open(Box::new(open.clone()))).await;
        assert_eq!(hub.report().await, Report::Accepted);
        assert!(matches!(hub.report().await, Report::Preparing { .. }));
        let Report::Failed { failure } = hub.report().await else { panic!("{open:?}") };
        assert_eq!(failure.code, Code::RuntimeUnavailable, "{failure:?}");
        assert!(failure.message.contains("cannot ask people"), "{failure:?}");
        assert!(!place.run_directory(open.run).join("base").exists(), "and nothing was copied for it");
    }
    let mut puppets = Vec::new();
    for (number, sandbox, preset) in
        [(5, Sandbox::WorkspaceWrite, "default"), (6, Sandbox::ReadOnly, "strict")]
    {
        hub.send(ToEdge::Open(Box::new(mute(number, sandbox, Network::Deny, preset)))).await;
        assert_eq!(hub.report().await, Report::Accepted);
        assert!(matches!(hub.report().await, Report::Preparing { .. }));
        let started = hub.reports().await;
        let said = |why: &str| {
            started.iter().any(
                |report| matches!(report, Report::Signal(Signal::Degraded { reason }) if reason.contains(why)),
            )
        };
        assert!(said("the backend cannot ask") && said("does not tell what steps it takes"), "{started:?}");
        assert!(started.iter().any(|report| matches!(report, Report::Started { .. })), "{started:?}");
        puppets.push(hub.puppet().await);
    }
    // Of the run's preset and the policy's own the stricter one counts, as for the gate.
    hub.policy(Policy { preset: Preset::Strict, ..Policy::default() }).await;
    hub.send(ToEdge::Open(Box::new(mute(7, Sandbox::WorkspaceWrite, Network::Deny, "default")))).await;
    assert_eq!(hub.report().await, Report::Accepted);
    assert!(matches!(hub.report().await, Report::Preparing { .. }));
    let Report::Failed { failure } = hub.report().await else { panic!("it did not fail") };
    assert!(failure.message.contains("cannot ask people"), "{failure:?}");
}
