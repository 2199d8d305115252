//! The link itself: one batch at a time, refusals, garbage, and its end.

use runyard_backend::link::frames::{FRAME_BYTES_MAX, FrameError};
use runyard_backend::link::{FromEdge, Report, ToEdge};
use runyard_backend::{JournalError, Signal};
use runyard_edge::EdgeError;
use tokio::io::{duplex, join};

use crate::harness::{Place, message};

#[tokio::test(start_paused = true)]
async fn b09_one_batch_of_a_run_is_on_its_way_at_a_time() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let puppet = hub.start(place.open(1)).await;
    let other = hub.start(place.open(2)).await;
    let recordings: Vec<_> = (0..3).map(|number| puppet.record(vec![message(&number.to_string())])).collect();
    for (recording, expected) in recordings.into_iter().zip(0..) {
        let batch = hub.batch().await;
        assert_eq!(batch.reports, [Report::Signal(message(&expected.to_string()))]);
        assert_eq!(batch.edge_sequence, 4 + expected);
        hub.hears_nothing().await;
        assert!(!recording.is_finished());
        if expected == 0 {
            // Another run does not wait for it.
            let recording = other.record(vec![message("other")]);
            hub.reports().await;
            recording.await.unwrap().unwrap();
        }
        hub.recorded(&batch).await;
        recording.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn c18_an_answer_to_another_batch_settles_nothing() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let puppet = hub.start(place.open(1)).await;
    let recording = puppet.record(vec![message("one")]);
    let batch = hub.batch().await;
    for (generation, edge_sequence) in [(1, 3), (1, 5), (2, 4)] {
        let run = batch.run;
        hub.send(ToEdge::Recorded { run, generation, edge_sequence, granted: Vec::new() }).await;
    }
    hub.hears_nothing().await;
    assert!(!recording.is_finished());
    hub.recorded(&batch).await;
    assert_eq!(recording.await.unwrap(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn j05_a_run_that_another_owner_drives_is_stopped_and_stays_so() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    for (number, fenced, error) in [(1, true, JournalError::Fenced), (2, false, JournalError::Stopped)] {
        let mut puppet = hub.start(place.open(number)).await;
        let recording = puppet.record(vec![message("one")]);
        let batch = hub.batch().await;
        let (run, generation, edge_sequence) = (batch.run, batch.generation, batch.edge_sequence);
        hub.send(ToEdge::Refused { run, generation, edge_sequence, fenced }).await;
        assert_eq!(recording.await.unwrap(), Err(error));
        assert_eq!(puppet.command().await, None, "its session is closed");
        assert_eq!(puppet.record(vec![message("two")]).await.unwrap(), Err(error));
        drop(puppet);
        hub.hears_nothing().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c18_when_the_link_closes_every_session_is_stopped_before_the_edge_says_that_it_is_done() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let mut puppet = hub.start(place.open(1)).await;
    let recording = puppet.record(vec![message("one")]);
    hub.batch().await;
    let serving = hub.serving;
    drop((hub.writer, hub.reader));
    assert_eq!(puppet.command().await, None);
    assert_eq!(recording.await.unwrap(), Err(JournalError::Stopped));
    assert!(!serving.is_finished(), "a backend is left");
    drop(puppet);
    serving.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn c18_a_hub_that_leaves_while_it_is_told_something_has_closed_the_link_and_not_broken_it() {
    let (edge, _puppets) = Place::new().await.edge();
    // Which of its two directions the edge finds closed first is a matter of chance; here it is the one to the hub.
    let (_hub, from_hub) = duplex(64);
    let (gone, to_hub) = duplex(64);
    drop(gone);
    edge.serve(join(from_hub, to_hub)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn c18_garbage_and_frames_beyond_the_limit_close_the_link_and_stop_everything() {
    let place = Place::new().await;
    for (number, frame) in
        [(1, &b"\0\0\0\x02{]"[..]), (2, b"\xff\xff\xff\xff"), (3, b"\0\0\0\x11{\"message\":\"dig\"}")]
    {
        let mut hub = place.link().await;
        let mut puppet = hub.start(place.open(number)).await;
        hub.raw(frame).await;
        assert_eq!(puppet.command().await, None);
        drop(puppet);
        match hub.serving.await.unwrap() {
            Err(EdgeError::Link(FrameError::TooLarge { bytes })) => assert!(bytes > FRAME_BYTES_MAX),
            Err(EdgeError::Link(FrameError::Malformed(_))) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c18_a_run_to_which_too_much_is_said_fails_instead_of_losing_some_of_it() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let open = place.open(1);
    let run = open.run;
    let puppet = hub.start(open).await;
    let recording = puppet.record(vec![message("one")]);
    let batch = hub.batch().await;
    // The session waits for the hub and takes nothing else meanwhile.
    for number in 0..300u16 {
        let id = runyard_domain::CommandId::from_parts(number.into(), &[0; 10]);
        let command = runyard_backend::Command::Interrupt { id };
        hub.send(ToEdge::Command { run, generation: 1, command }).await;
    }
    hub.recorded(&batch).await;
    recording.await.unwrap().unwrap();
    let Report::Signal(Signal::Ended { .. }) = hub.report().await else { panic!("it did not end") };
}

#[tokio::test(start_paused = true)]
async fn j05_a_session_that_breaks_down_is_said_to_be_gone_and_the_others_go_on() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let puppet = hub.start(place.open(1)).await;
    let mut open = place.open(2);
    open.backend_profile.settings.insert("explodes".to_owned(), String::new());
    let run = open.run;
    hub.send(ToEdge::Open(Box::new(open))).await;
    hub.reports().await;
    hub.reports().await;
    assert_eq!(hub.next().await, FromEdge::Closed { run, generation: 1 });
    let recording = puppet.record(vec![message("still here")]);
    assert_eq!(hub.report().await, Report::Signal(message("still here")));
    recording.await.unwrap().unwrap();
}
