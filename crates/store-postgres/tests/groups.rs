//! Changes that are committed together: what is refused leaves nothing and fails no other.
#![allow(clippy::unwrap_used, clippy::panic, reason = "the helpers of tests fail like tests")]

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use runyard_domain::{Code, RunId, Timestamp};
use runyard_redact::Safe;
use runyard_store::conformance::{ManyRuns, append, at, fresh_append, fresh_approval, one, safe, start};
use runyard_store::{
    Appended, ApprovalWrite, Approvals, Blobs, Change, EventLog, Idempotency, KeyDigest, KeyedResult, Leases,
    Place, Runs, StorageError, TimerWrite, Timers, Writes, blob_id, verify,
};
use runyard_store_postgres::{ConnectOptions, PostgresStore};
use runyard_testkit_postgres::Postgres;
use serde_json::json;
use tokio_postgres::{Client, NoTls};

type Answer = tokio::task::JoinHandle<Result<Appended, StorageError>>;

/// A store whose lanes stand still while `raw` holds every run.
struct Bench {
    store: Arc<PostgresStore>,
    raw: Client,
}

impl Bench {
    async fn start() -> Self {
        Self::start_with(ConnectOptions::default()).await
    }

    async fn start_with(options: ConnectOptions) -> Self {
        let url = Postgres::shared().unwrap().database().unwrap();
        let store = Arc::new(PostgresStore::connect_with(&url, options).await.unwrap());
        let (raw, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        raw.batch_execute("SET search_path = runyard").await.unwrap();
        Bench { store, raw }
    }

    /// Makes the changes wait behind one of each run, so that those of a lane are one group.
    async fn together(&self, runs: &[RunId], changes: Vec<Change>) -> Vec<Result<Appended, StorageError>> {
        self.raw.batch_execute("BEGIN; SELECT 1 FROM runs FOR UPDATE").await.unwrap();
        let mut first = Vec::new();
        for run in runs {
            let place = Place::Head(Box::new(|_| Ok(one(json!({"first": "in its lane"})))));
            first
                .push(self.send(Change { run: *run, append: fresh_append(), generation: None, place }).await);
        }
        let mut answers = Vec::new();
        for change in changes {
            answers.push(self.send(change).await);
        }
        self.raw.batch_execute("COMMIT").await.unwrap();
        for answer in first {
            answer.await.unwrap().unwrap();
        }
        let mut all = Vec::new();
        for answer in answers {
            all.push(answer.await.unwrap());
        }
        all
    }

    /// Makes the server refuse events that hold the word, with this code.
    async fn refuse_poison(&self, code: &str) {
        let sql = format!(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF position('poison' IN convert_from(NEW.body, 'UTF8')) > 0 THEN
                    RAISE EXCEPTION 'refused' USING ERRCODE = '{code}';
                END IF;
                RETURN NEW;
             END $$;
             CREATE TRIGGER refuse BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION refuse()"
        );
        self.raw.batch_execute(&sql).await.unwrap();
    }

    /// Sends a change. From now on it has its place in the queue.
    async fn send(&self, change: Change) -> Answer {
        let store = self.store.clone();
        let mut sent = Box::pin(async move { store.append(change).await });
        assert!(poll_fn(|context| Poll::Ready(sent.as_mut().poll(context).is_pending())).await);
        tokio::spawn(sent)
    }
}

const FAR: Timestamp = Timestamp::from_unix_ms(4_000_000_000_000);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_what_the_database_refuses_fails_no_other_of_its_group() {
    let bench = Bench::start().await;
    // As a disk that is full for some rows only.
    bench.refuse_poison("53100").await;
    let runs = ManyRuns::start(&*bench.store, 12).await.0;
    let payload = |n: usize| if n.is_multiple_of(3) { json!("poison") } else { json!("good") };
    let changes = runs.iter().enumerate().map(|(n, run)| at(*run, 2, one(payload(n)))).collect();
    for (n, answer) in bench.together(&runs, changes).await.into_iter().enumerate() {
        match answer {
            Ok(appended) => assert!(!n.is_multiple_of(3) && appended == Appended { first: 3, last: 3 }),
            Err(StorageError::DiskFull { .. }) => assert!(n.is_multiple_of(3)),
            Err(error) => panic!("{error:?}"),
        }
        let expected = if n.is_multiple_of(3) { 2 } else { 3 };
        assert_eq!(verify(&*bench.store, runs[n]).await.unwrap().unwrap().events, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_a_run_that_breaks_a_key_of_the_tables_each_time_fails_no_other_of_its_group() {
    // What usually is a race that was lost: a key that is taken, a row that is missing.
    for code in ["23505", "23503"] {
        let bench = Bench::start().await;
        bench.refuse_poison(code).await;
        let runs = ManyRuns::start(&*bench.store, 12).await.0;
        let payload = |n: usize| if n == 5 { json!("poison") } else { json!("good") };
        let changes = runs.iter().enumerate().map(|(n, run)| at(*run, 2, one(payload(n)))).collect();
        for (n, answer) in bench.together(&runs, changes).await.into_iter().enumerate() {
            match answer {
                Ok(appended) => assert!(n != 5 && appended == Appended { first: 3, last: 3 }),
                Err(error @ StorageError::Io(..)) => {
                    assert!(n == 5 && error.to_string().contains(code), "{n}: {error}");
                }
                Err(error) => panic!("{error:?}"),
            }
        }
        append(&*bench.store, runs[5], 2, json!("good")).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_a_change_after_a_refused_one_of_its_run_is_planned_as_if_that_had_never_been() {
    let bench = Bench::start().await;
    let run = start(&*bench.store).await;
    let open = |id| ApprovalWrite::Open { id, expires: FAR, request: safe(json!({})) };
    let resolve = |id| ApprovalWrite::Resolve { id, decision: safe(json!("approved")) };
    let with = |approvals| Writes { approvals, ..one(json!({})) };
    let (known, asked) = (fresh_approval(), fresh_approval());
    bench.store.append(at(run, 1, with(vec![open(known)]))).await.unwrap();
    let head = |writes: Writes| Change {
        run,
        append: fresh_append(),
        generation: None,
        place: Place::Head(Box::new(move |_| Ok(writes.clone()))),
    };
    let mut dangling = one(json!({"dangling": true}));
    dangling.events[0].blobs.push(blob_id(b"nobody put this"));
    let again = fresh_append();
    let same = |append| Change { append, ..head(one(json!({"same": true}))) };
    let answers = bench
        .together(
            &[run],
            vec![
                head(with(vec![open(known)])),              // 0 refused: it is there
                at(run, 3, one(json!({"n": 4}))),           // 1 written as event 4, as if 0 had never been
                head(dangling),                             // 2 refused: no such blob
                head(with(vec![open(asked)])),              // 3 event 5
                head(with(vec![resolve(asked)])), // 4 event 6: asked and answered in one transaction
                head(with(vec![resolve(asked)])), // 5 refused: answered
                at(run, 3, one(json!({"too late": true}))), // 6 conflict with what 1 wrote
                same(again),                      // 7 event 7
                same(again),                      // 8 the same change: the same answer
                head(one(json!({"last": true}))), // 9 event 8
            ],
        )
        .await;
    let places: Vec<_> =
        answers.iter().map(|answer| answer.as_ref().map(|appended| appended.last).ok()).collect();
    assert_eq!(
        places,
        [None, Some(4), None, Some(5), Some(6), None, None, Some(7), Some(7), Some(8)],
        "{answers:?}"
    );
    assert!(matches!(answers[0], Err(StorageError::AlreadyExists(..))));
    assert!(matches!(answers[2], Err(StorageError::NotFound(..))));
    assert!(matches!(answers[5], Err(StorageError::AlreadyExists(..))));
    assert!(matches!(answers[6], Err(StorageError::VersionConflict { expected: 3, .. })));
    assert_eq!(verify(&*bench.store, run).await.unwrap().unwrap().events, 8);
    let approval = bench.store.approval(asked).await.unwrap().unwrap();
    assert_eq!(approval.decision.as_deref(), Some(br#""approved""#.as_slice()));
    let open = bench.store.open_approvals(Some(run), None, 10).await.unwrap();
    assert_eq!(open.iter().map(|approval| approval.id).collect::<Vec<_>>(), [known]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_timers_and_results_of_one_group_end_as_the_last_change_left_them() {
    let bench = Bench::start().await;
    let run = start(&*bench.store).await;
    let set = |due| TimerWrite::Set {
        name: "deadline".into(),
        due: Timestamp::from_unix_ms(due),
        payload: safe(json!({"due": due})),
    };
    let cancel = || TimerWrite::Cancel { name: "deadline".into() };
    let key = KeyDigest::of(&["group", &run.to_string()]);
    let keep = |n: u8| KeyedResult { key, fingerprint: [n; 32], result: safe(json!(n)), expires: FAR };
    let writes = |timers, result| Writes { timers, result, ..one(json!({})) };
    let answers = bench
        .together(
            &[run],
            vec![
                at(run, 2, writes(vec![set(1), cancel(), set(2)], Some(keep(1)))),
                at(run, 3, writes(vec![cancel()], Some(keep(1)))),
                at(run, 4, writes(vec![set(3)], Some(keep(2)))), // refused: another result for the key
                at(run, 4, writes(vec![set(5)], None)),
            ],
        )
        .await;
    let places: Vec<_> =
        answers.iter().map(|answer| answer.as_ref().map(|appended| appended.last).ok()).collect();
    assert_eq!(places, [Some(3), Some(4), None, Some(5)], "{answers:?}");
    let due = bench.store.due_timers(10).await.unwrap();
    assert_eq!(due.iter().map(|timer| timer.due.unix_ms()).collect::<Vec<_>>(), [5]);
    assert_eq!(bench.store.kept(key).await.unwrap().unwrap().fingerprint, [1; 32]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_a_decision_that_panics_is_refused_and_its_lane_goes_on() {
    let bench = Bench::start().await;
    let run = start(&*bench.store).await;
    let place = Place::Head(Box::new(|_| panic!("a bug of the caller")));
    let panicking = Change { run, append: fresh_append(), generation: None, place };
    let answers = bench.together(&[run], vec![panicking, at(run, 2, one(json!({})))]).await;
    assert!(
        matches!(answers[0], Err(StorageError::Refused { code: Code::InternalError, .. })),
        "{answers:?}"
    );
    assert!(answers[1].is_ok(), "{answers:?}");
    append(&*bench.store, run, 3, json!({})).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_a_caller_that_goes_away_does_not_undo_its_change() {
    let bench = Bench::start().await;
    let run = start(&*bench.store).await;
    bench.raw.batch_execute("BEGIN; SELECT 1 FROM runs FOR UPDATE").await.unwrap();
    let gone = bench.send(at(run, 1, one(json!({"by": "one who went away"})))).await;
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    bench.raw.batch_execute("COMMIT").await.unwrap();
    append(&*bench.store, run, 2, json!({})).await.unwrap();
    assert_eq!(bench.store.run(run).await.unwrap().unwrap().sequence, 3);
    assert_eq!(
        bench.store.read(run, 1, 1).await.unwrap()[0].envelope().unwrap().payload["by"],
        "one who went away"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_a_run_that_somebody_holds_for_too_long_fails_no_other() {
    let bench = Bench::start_with(ConnectOptions::default().lock_timeout(Duration::from_millis(200))).await;
    let runs = ManyRuns::start(&*bench.store, 8).await.0;
    let held = format!("'{}'", runs[3].to_string().replace("run_", ""));
    bench
        .raw
        .batch_execute(&format!("BEGIN; SELECT 1 FROM runs WHERE run_id = {held} FOR UPDATE"))
        .await
        .unwrap();
    let mut answers = Vec::new();
    for run in &runs {
        answers.push(bench.send(at(*run, 1, one(json!({})))).await);
    }
    for (n, answer) in answers.into_iter().enumerate() {
        match answer.await.unwrap() {
            Ok(_) => assert!(n != 3),
            Err(StorageError::Io(..)) => assert!(n == 3),
            Err(error) => panic!("{error:?}"),
        }
    }
    bench.raw.batch_execute("COMMIT").await.unwrap();
    append(&*bench.store, runs[3], 1, json!({})).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_a_statement_that_takes_too_long_ends_with_an_error_that_says_so() {
    let options = ConnectOptions::default()
        .statement_timeout(Duration::from_millis(500))
        .lock_timeout(Duration::from_secs(60));
    let bench = Bench::start_with(options).await;
    let run = start(&*bench.store).await;
    bench.raw.batch_execute("BEGIN; LOCK TABLE runs IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let begun = std::time::Instant::now();
    let read = bench.store.run(run).await.unwrap_err();
    let lease = bench.store.acquire(run, "one".into(), Duration::from_secs(60)).await.unwrap_err();
    let written = append(&*bench.store, run, 1, json!({})).await.unwrap_err();
    for error in [read, lease, written] {
        assert!(matches!(error, StorageError::Io(..)), "{error:?}");
        assert!(error.to_string().contains("statement timeout"), "{error}");
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    bench.raw.batch_execute("COMMIT").await.unwrap();
    append(&*bench.store, run, 1, json!({})).await.unwrap();
    assert_eq!(verify(&*bench.store, run).await.unwrap().unwrap().events, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b09_a_blob_that_is_referred_to_while_it_is_collected_is_kept_or_the_event_is_refused() {
    let bench = Bench::start().await;
    let run = start(&*bench.store).await;
    let mut after = 1;
    for round in 0..40_u64 {
        // An id of the program's own is safe as it stands.
        let content: Safe<String> = RunId::from_parts(round, &[9; 10]).into();
        let blob = bench.store.put(content.into()).await.unwrap();
        let mut writes = one(json!({"blob": blob}));
        writes.events[0].blobs.push(blob);
        let (referred, collected) =
            tokio::join!(bench.store.append(at(run, after, writes)), bench.store.collect(Duration::ZERO));
        collected.unwrap();
        match (referred, bench.store.get(blob).await) {
            (Ok(appended), Ok(_)) => after = appended.last,
            (Err(StorageError::NotFound(..)), Err(StorageError::NotFound(..))) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(verify(&*bench.store, run).await.unwrap().unwrap().events, after);
}
