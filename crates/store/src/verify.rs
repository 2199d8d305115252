//! Checking a run's log: sequence without a gap, every event chained to the one before it, and the row at its end.

use runyard_domain::RunId;
use serde::Deserialize;

use crate::{EventLog, Hash, LoggedEvent, Runs, StorageError};

/// How many events are read at once.
const PAGE: u32 = 500;

/// A log that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// How many events it has.
    pub events: u64,
    /// The last event's hash; with it a later check can tell whether the log was rewritten.
    pub head: Option<Hash>,
}

/// Where a log does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event {sequence}: {kind}")]
pub struct Break {
    /// The first event that is wrong.
    pub sequence: u64,
    /// What is wrong with it.
    pub kind: BreakKind,
}

/// What is wrong with an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BreakKind {
    /// It is not there.
    #[error("it is missing")]
    Missing,
    /// Its bytes are no event.
    #[error("it cannot be read")]
    Unreadable,
    /// It says that it belongs elsewhere.
    #[error("it belongs to another place or run")]
    Misplaced,
    /// What it says about the event before it is not so: one of the two was changed.
    #[error("it does not follow from the event before it: one of the two was changed")]
    Unchained,
    /// It is the last one, and the run's row knows another.
    #[error("it is not the event that the run ended with")]
    NotTheHead,
    /// There are events after the one that the run's row knows as the last.
    #[error("it is beyond the end of the run")]
    BeyondTheHead,
}

/// The part of an event that the chain is made of.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Link<'a> {
    sequence: u64,
    prev_hash: Option<&'a str>,
    run_id: &'a str,
}

/// Walks a run's log from its beginning to where its row says that it ends, and names the first break.
///
/// It shows edits, gaps and reordering. Whoever can rewrite everything up to the end, with the row, can make a log that
/// holds: that shows only against a head that was kept elsewhere.
pub async fn verify<S: EventLog + Runs + ?Sized>(
    store: &S,
    run: RunId,
) -> Result<Result<Verified, Break>, StorageError> {
    let row = store.run(run).await?.ok_or_else(|| StorageError::not_found(format!("run {run}")))?;
    let mut walked = Chain::of(run);
    // A log that grows meanwhile is checked up to where it stood.
    while walked.sequence < row.sequence {
        let events = store.read(run, walked.sequence, PAGE).await?;
        if events.is_empty() {
            return Ok(Err(Break { sequence: walked.sequence + 1, kind: BreakKind::Missing }));
        }
        for event in events.iter().take_while(|event| event.sequence <= row.sequence) {
            if let Err(kind) = walked.step(event) {
                return Ok(Err(Break { sequence: walked.sequence + 1, kind }));
            }
        }
        if events.last().is_some_and(|last| last.sequence > row.sequence) && walked.sequence < row.sequence {
            return Ok(Err(Break { sequence: walked.sequence + 1, kind: BreakKind::Missing }));
        }
    }
    if walked.head != row.head {
        return Ok(Err(Break { sequence: walked.sequence, kind: BreakKind::NotTheHead }));
    }
    if store.run(run).await?.is_some_and(|now| now.sequence == row.sequence)
        && !store.read(run, row.sequence, 1).await?.is_empty()
        && store.run(run).await?.is_some_and(|now| now.sequence == row.sequence)
    {
        return Ok(Err(Break { sequence: row.sequence + 1, kind: BreakKind::BeyondTheHead }));
    }
    Ok(Ok(Verified { events: walked.sequence, head: walked.head }))
}

/// How far a check of a run's events has come: each must follow from the one before it.
#[derive(Clone, Debug)]
pub struct Chain {
    run: String,
    sequence: u64,
    head: Option<Hash>,
}

impl Chain {
    /// The chain of a run, before its first event.
    pub fn of(run: RunId) -> Self {
        Chain { run: run.to_string(), sequence: 0, head: None }
    }

    /// The last event's place; 0 before the first.
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The last event's hash; none before the first.
    pub const fn head(&self) -> Option<Hash> {
        self.head
    }

    /// Takes the next event's stored bytes, or says why they are not those of the next event.
    pub fn follow(&mut self, body: &[u8]) -> Result<(), BreakKind> {
        let link: Link<'_> = serde_json::from_slice(body).map_err(|_| BreakKind::Unreadable)?;
        if link.sequence != self.sequence + 1 || link.run_id != self.run {
            return Err(BreakKind::Misplaced);
        }
        if link.prev_hash.map(str::to_owned) != self.head.map(|head| head.to_string()) {
            return Err(BreakKind::Unchained);
        }
        self.head = Some(Hash::of(body));
        self.sequence = link.sequence;
        Ok(())
    }

    /// Goes on from the bytes of the next event although it does not follow, so that what comes after it can be looked at too.
    pub fn go_on_from(&mut self, body: &[u8]) {
        self.head = Some(Hash::of(body));
        self.sequence += 1;
    }

    fn step(&mut self, event: &LoggedEvent) -> Result<(), BreakKind> {
        if event.sequence != self.sequence + 1 {
            return Err(BreakKind::Missing);
        }
        self.follow(&event.body)
    }
}

#[cfg(test)]
mod tests {
    use runyard_domain::{AppendId, EventId, Timestamp};
    use runyard_redact::Safe;

    use super::*;
    use crate::{Change, MemoryStore, NewEvent, Place, Writes};

    /// A run of five events, and a store that holds only it.
    async fn five() -> (MemoryStore, RunId) {
        let (store, run) = (MemoryStore::new(), RunId::from_parts(1, &[1; 10]));
        for after in 0..5_u8 {
            let id = EventId::from_parts(1, &[after; 10]);
            let payload = Safe::object([("n", u64::from(after).into())]);
            let events = vec![NewEvent::new(id, Timestamp::from_unix_ms(0), "run.message.delta", payload)];
            let place = Place::At(after.into(), Writes { events, ..Writes::default() });
            let append = AppendId::from_parts(1, &[after; 10]);
            store.append(Change { run, append, generation: None, place }).await.unwrap();
        }
        (store, run)
    }

    #[tokio::test]
    async fn c08_a_tail_says_when_an_event_is_missing_instead_of_passing_over_it() {
        for (missing, given) in [(2, 2), (4, 4)] {
            let (store, run) = five().await;
            store.tamper(run, |events| drop(events.remove(missing)));
            let mut tail = crate::Tail::open(std::sync::Arc::new(store), run, given).await.unwrap();
            let error = tail.next().await.unwrap_err();
            let named = format!("event {} of {run}", missing + 1);
            assert!(
                matches!(&error, StorageError::Corrupt { detail, .. } if detail.contains(&named)),
                "{error}"
            );
        }
    }

    #[tokio::test]
    async fn d11_an_event_that_is_no_json_is_a_serialization_error() {
        let (store, run) = five().await;
        store.tamper(run, |events| events[1].body = b"rubbish".to_vec().into());
        let events = store.read(run, 0, 10).await.unwrap();
        assert_eq!(events[0].envelope().unwrap().sequence, 1);
        let error = events[1].envelope().unwrap_err();
        assert!(matches!(&error, StorageError::Serialization(record) if record.contains('2')), "{error}");
    }

    #[tokio::test]
    async fn c07_the_first_break_is_named_wherever_a_log_was_tampered_with() {
        #[track_caller]
        fn check(found: Result<Verified, Break>, sequence: u64, kind: BreakKind) {
            assert_eq!(found, Err(Break { sequence, kind }));
        }
        let tampered = async |tamper: &dyn Fn(&mut Vec<LoggedEvent>)| {
            let (store, run) = five().await;
            store.tamper(run, tamper);
            verify(&store, run).await.unwrap()
        };
        fn edit(event: &mut LoggedEvent, from: &str, to: &str) {
            let body = String::from_utf8(event.body.to_vec()).unwrap();
            assert!(body.contains(from));
            event.body = body.replace(from, to).into_bytes().into();
        }
        assert_eq!(tampered(&|_| {}).await.unwrap().events, 5);
        check(tampered(&|events| edit(&mut events[2], "\"n\":2", "\"n\":7")).await, 4, BreakKind::Unchained);
        check(tampered(&|events| edit(&mut events[4], "\"n\":4", "\"n\":7")).await, 5, BreakKind::NotTheHead);
        check(tampered(&|events| drop(events.remove(2))).await, 3, BreakKind::Missing);
        check(tampered(&|events| drop(events.pop())).await, 5, BreakKind::Missing);
        check(tampered(&|events| events.clear()).await, 1, BreakKind::Missing);
        check(tampered(&|events| events[3].body = b"{}".to_vec().into()).await, 4, BreakKind::Unreadable);
        check(
            tampered(&|events| {
                let body = events[1].body.clone();
                events[3].body = body;
            })
            .await,
            4,
            BreakKind::Misplaced,
        );
        check(
            tampered(&|events| {
                let mut more = events[4].clone();
                more.sequence = 6;
                events.push(more);
            })
            .await,
            6,
            BreakKind::BeyondTheHead,
        );
        // An event of another run in its place.
        check(
            tampered(&|events| {
                let own = RunId::from_parts(1, &[1; 10]).to_string();
                edit(&mut events[0], &own, &RunId::from_parts(1, &[2; 10]).to_string());
            })
            .await,
            1,
            BreakKind::Misplaced,
        );
    }
}
