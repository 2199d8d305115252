//! A run that an earlier edge had: it goes on from where it was.

use std::fs;

use runyard_backend::link::{ChangesOf, FromEdge, OpenRun, Report, Stage, ToEdge, Work};
use runyard_domain::{ApplyTo, ApprovalId, Code};

use crate::harness::{Place, message};

#[tokio::test(start_paused = true)]
async fn j05_a_run_that_had_not_started_is_prepared_anew_from_where_it_was() {
    let place = Place::new().await;
    for (number, stage, reports) in [(1, Stage::Accepted, 2), (2, Stage::Preparing, 1)] {
        let mut hub = place.link().await;
        let mut open = place.open(number);
        open.stage = stage;
        let directory = place.run_directory(open.run);
        fs::create_dir_all(directory.join("checkout")).unwrap();
        fs::create_dir_all(directory.join("checkout.draft")).unwrap();
        fs::write(directory.join("checkout/half"), "").unwrap();
        hub.send(ToEdge::Open(Box::new(open))).await;
        for _ in 1..reports {
            assert!(matches!(hub.report().await, Report::Preparing { .. }));
        }
        assert!(matches!(hub.report().await, Report::Started { .. }));
        hub.puppet().await;
        let left: Vec<_> = fs::read_dir(directory.join("checkout"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["file"], "what was half made is gone");
        assert!(!directory.join("checkout.draft").exists());
    }
}

#[tokio::test(start_paused = true)]
async fn j05_a_run_that_had_started_goes_on_in_its_checkout_as_it_is() {
    let place = Place::new().await;
    let mut open = place.open(1);
    {
        let mut hub = place.link().await;
        let puppet = hub.start(open.clone()).await;
        fs::write(puppet.spec.directory.join("file"), "changed by the agent").unwrap();
    }
    let mut hub = place.link().await;
    (open.stage, open.generation) = (Stage::Running, 2);
    let puppet = hub.start(open.clone()).await;
    let found = fs::read_to_string(puppet.spec.directory.join("file")).unwrap();
    assert_eq!(found, "changed by the agent");
    let _recording = puppet.record(vec![message("again")]);
    let batch = hub.batch().await;
    assert_eq!((batch.generation, batch.edge_sequence), (2, 1), "nothing was reported on the way");
}

#[tokio::test(start_paused = true)]
async fn j05_a_run_that_had_started_and_lost_its_checkout_is_not_begun_again() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let mut open = place.open(1);
    open.stage = Stage::Running;
    hub.send(ToEdge::Open(Box::new(open))).await;
    let Report::Failed { failure } = hub.report().await else { panic!("it did not fail") };
    assert_eq!(failure.code, Code::OutcomeUnknown);
}

#[tokio::test(start_paused = true)]
async fn c17_nothing_is_prepared_while_processes_of_an_earlier_session_are_left() {
    let place = Place::new().await;
    place.supervision.gone.send_replace(false);
    let mut hub = place.link().await;
    let mut open = place.open(1);
    open.stage = Stage::Preparing;
    let run = open.run;
    hub.send(ToEdge::Open(Box::new(open))).await;
    hub.hears_nothing().await;
    assert!(!place.run_directory(run).join("checkout").exists());
    place.supervision.gone.send_replace(true);
    assert!(matches!(hub.report().await, Report::Started { .. }));
}

#[tokio::test(start_paused = true)]
async fn j05_a_later_owner_starts_only_when_the_earlier_session_is_gone() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let mut open = place.open(1);
    let run = open.run;
    let mut before = hub.start(open.clone()).await;
    hub.send(ToEdge::Open(Box::new(open.clone()))).await;
    (open.stage, open.generation) = (Stage::Running, 2);
    hub.send(ToEdge::Open(Box::new(open))).await;
    assert_eq!(before.command().await, None);
    assert!(before.record(vec![message("late")]).await.unwrap().is_err());
    drop(before);
    let mut puppet = hub.puppet().await;
    hub.send(ToEdge::Close { run, generation: 1, over: true }).await;
    assert_eq!(hub.next().await, FromEdge::Closed { run, generation: 1 }, "that session is long gone");
    puppet.hears_nothing().await;
    assert!(puppet.spec.home.exists(), "and the later one is left alone");
}

/// Hands a run out on a link of its own, and gives what it says last.
async fn last_word(place: &Place, open: &OpenRun) -> Report {
    let mut hub = place.link().await;
    hub.send(ToEdge::Open(Box::new(open.clone()))).await;
    loop {
        let report = hub.report().await;
        if matches!(
            report,
            Report::Diff { .. } | Report::Applied { .. } | Report::TakenBack | Report::Failed { .. }
        ) {
            return report;
        }
    }
}

/// A run whose agent changed a file, and a second one that is to apply that: with what names the changes and their applying.
async fn changed(place: &Place) -> (OpenRun, OpenRun, impl Fn(Option<String>) -> Work) {
    let source = place.open(1);
    {
        let mut hub = place.link().await;
        let puppet = hub.start(source.clone()).await;
        fs::write(puppet.spec.directory.join("file"), "changed by the agent").unwrap();
    }
    let changes = ChangesOf { run: source.run, undo: false };
    let mut open = place.open(2);
    open.work = Work::Review { changes };
    let Report::Diff { digest, .. } = last_word(place, &open).await else { panic!("nothing changed") };
    let apply = move |begun| Work::Apply {
        changes,
        approval: ApprovalId::from_parts(1, &[1; 10]),
        digest: digest.clone(),
        selection: None,
        to: ApplyTo::Files,
        begun,
        message: String::new(),
    };
    open.stage = Stage::Running;
    (source, open, apply)
}

// clause: C02
#[tokio::test(start_paused = true)]
async fn c02_what_is_stopped_before_it_is_in_place_is_taken_back_and_what_is_in_place_is_said_to_be() {
    let place = Place::new().await;
    let before = fs::read_to_string(place.root().join("file")).unwrap();
    let (source, mut open, apply) = changed(&place).await;
    let take_back = |begun: &str| {
        let changes = ChangesOf { run: source.run, undo: false };
        Work::TakeBack { changes, to: ApplyTo::Files, begun: begun.to_owned() }
    };
    (open.generation, open.work) = (2, apply(None));
    let mut hub = place.link().await;
    hub.send(ToEdge::Open(Box::new(open.clone()))).await;
    let begins = hub.batch().await;
    let [Report::Applying { digest: part, .. }] = &begins.reports[..] else { panic!("{begins:?}") };
    // Nothing is written before the hub knows that it begins.
    hub.send(ToEdge::StopApplying { run: open.run, generation: 2 }).await;
    hub.recorded(&begins).await;
    assert_eq!(hub.report().await, Report::TakenBack);
    assert_eq!(fs::read_to_string(place.root().join("file")).unwrap(), before);
    drop(hub);
    // Whoever asks again hears the same.
    (open.generation, open.work) = (3, take_back(part));
    assert_eq!(last_word(&place, &open).await, Report::TakenBack);

    (open.generation, open.work) = (4, apply(None));
    assert!(matches!(last_word(&place, &open).await, Report::Applied { .. }));
    (open.generation, open.work) = (5, take_back(part));
    let in_place = Report::Applied { digest: part.clone(), commit: None };
    assert_eq!(last_word(&place, &open).await, in_place);
    assert_eq!(fs::read_to_string(place.root().join("file")).unwrap(), "changed by the agent");
}

#[tokio::test(start_paused = true)]
async fn c22_c13_what_was_applied_when_a_process_died_is_so_though_the_checkout_was_collected_since() {
    let place = Place::new().await;
    let (source, mut open, apply) = changed(&place).await;
    (open.generation, open.work) = (2, apply(None));
    let Report::Applied { digest: part, .. } = last_word(&place, &open).await else { panic!("not applied") };

    // Nobody heard that it was, and since it is in the person's files the checkout could go.
    let directory = place.run_directory(source.run);
    fs::write(directory.join("collected.json"), r#"{"at": "2026-01-31T12:00:00.000Z"}"#).unwrap();
    fs::remove_dir_all(directory.join("checkout")).unwrap();
    fs::remove_dir_all(directory.join("base")).unwrap();
    (open.generation, open.work) = (3, apply(Some(part.clone())));
    assert_eq!(last_word(&place, &open).await, Report::Applied { digest: part, commit: None });
    assert_eq!(fs::read_to_string(place.root().join("file")).unwrap(), "changed by the agent");

    // What had not begun has nothing to begin with.
    (open.generation, open.work) = (4, apply(None));
    let Report::Failed { failure } = last_word(&place, &open).await else { panic!("it did not fail") };
    assert_eq!(failure.code, Code::CheckoutCollected);
}
