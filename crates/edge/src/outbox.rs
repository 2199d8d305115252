//! A run's reports on their way to the hub: numbered, one batch at a time, and done only when the hub says that it is durable.

use runyard_backend::link::{FromEdge, Report};
use runyard_backend::{Answer, JournalError};
use runyard_domain::RunId;
use tokio::sync::{mpsc, watch};

/// How large a batch is at most, as JSON, unless a single report is larger. A backend's batch has half of it at most, and is
/// longer as reports.
pub(crate) const BATCH_BYTES_MAX: usize = 2 * 1024 * 1024;
/// How many reports a batch holds at most: the hub stores a batch in one change, which takes 256 events, and a report that
/// ends a turn comes to one event more for each request that waits.
pub(crate) const BATCH_REPORTS_MAX: usize = 128;

/// What the hub said about a batch.
#[derive(Debug)]
pub(crate) enum Settled {
    Recorded { edge_sequence: u64, granted: Vec<(String, Answer)> },
    Refused { edge_sequence: u64, fenced: bool },
}

/// Whether a session is to close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// It goes on.
    Open,
    /// The hub or the end of the link wants it.
    Closed,
    /// More was said to it than it can take.
    Overrun,
}

/// One run's way to the hub.
pub(crate) struct Outbox {
    pub(crate) run: RunId,
    pub(crate) generation: u64,
    pub(crate) to_hub: mpsc::Sender<FromEdge>,
    pub(crate) settled: mpsc::Receiver<Settled>,
    pub(crate) closing: watch::Receiver<Closing>,
    pub(crate) edge_sequence: u64,
}

impl Outbox {
    /// Reports, in order, and waits until everything is durable. Gives the requests that an earlier decision answers.
    ///
    /// After an error nothing more is taken.
    pub(crate) async fn put(&mut self, reports: Vec<Report>) -> Result<Vec<(String, Answer)>, JournalError> {
        let mut granted = Vec::new();
        for reports in batches(reports) {
            granted.extend(self.put_batch(reports).await?);
        }
        Ok(granted)
    }

    async fn put_batch(&mut self, reports: Vec<Report>) -> Result<Vec<(String, Answer)>, JournalError> {
        self.edge_sequence += 1;
        let (run, generation, edge_sequence) = (self.run, self.generation, self.edge_sequence);
        let batch = FromEdge::Batch { run, generation, edge_sequence, reports };
        let closing = &mut self.closing;
        if *closing.borrow() == Closing::Closed {
            return Err(JournalError::Stopped);
        }
        tokio::select! {
            biased;
            // The hub answers before it closes, so what it recorded is never said to be refused.
            settled = settle(&self.to_hub, &mut self.settled, batch, edge_sequence) => settled,
            _ = closing.wait_for(|closing| *closing == Closing::Closed) => Err(JournalError::Stopped),
        }
    }
}

async fn settle(
    to_hub: &mpsc::Sender<FromEdge>,
    answers: &mut mpsc::Receiver<Settled>,
    batch: FromEdge,
    sequence: u64,
) -> Result<Vec<(String, Answer)>, JournalError> {
    to_hub.send(batch).await.map_err(|_| JournalError::Stopped)?;
    loop {
        match answers.recv().await {
            Some(Settled::Recorded { edge_sequence, granted }) if edge_sequence == sequence => {
                return Ok(granted);
            }
            Some(Settled::Refused { edge_sequence, fenced }) if edge_sequence == sequence => {
                return Err(if fenced { JournalError::Fenced } else { JournalError::Stopped });
            }
            // Of a batch that nobody waits for any more.
            Some(_) => {}
            None => return Err(JournalError::Stopped),
        }
    }
}

/// The reports in as few batches as their limits allow.
fn batches(reports: Vec<Report>) -> Vec<Vec<Report>> {
    let mut batches: Vec<Vec<Report>> = Vec::new();
    let mut bytes = 0;
    for report in reports {
        let length = json_length(&report);
        match batches.last_mut() {
            Some(batch) if batch.len() < BATCH_REPORTS_MAX && bytes + length <= BATCH_BYTES_MAX => {
                batch.push(report);
                bytes += length;
            }
            _ => {
                batches.push(vec![report]);
                bytes = length;
            }
        }
    }
    batches
}

fn json_length(report: &Report) -> usize {
    struct Counted(usize);
    impl std::io::Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counted = Counted(0);
    // What cannot be written is found out by whoever writes it.
    let _ = serde_json::to_writer(&mut counted, report);
    counted.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b09_reports_are_put_into_batches_of_bounded_size_in_order() {
        let delta = |text: String| Report::Delta { item: "m".to_owned(), text, offset: 0 };
        let small: Vec<Report> = (0..BATCH_REPORTS_MAX + 1).map(|number| delta(number.to_string())).collect();
        let sizes: Vec<usize> = batches(small.clone()).iter().map(Vec::len).collect();
        assert_eq!(sizes, [BATCH_REPORTS_MAX, 1]);
        assert_eq!(batches(small.clone()).concat(), small);

        let large = vec![delta("x".repeat(BATCH_BYTES_MAX / 2)); 3];
        let sizes: Vec<usize> = batches(large).iter().map(Vec::len).collect();
        assert_eq!(sizes, [1, 1, 1]);
        assert!(batches(Vec::new()).is_empty());
    }

    fn outbox() -> (Outbox, mpsc::Receiver<FromEdge>, mpsc::Sender<Settled>, watch::Sender<Closing>) {
        let (to_hub, at_hub) = mpsc::channel(4);
        let (answers, settled) = mpsc::channel(4);
        let (close, closing) = watch::channel(Closing::Open);
        let run = RunId::from_parts(1, &[1; 10]);
        let outbox = Outbox { run, generation: 1, to_hub, settled, closing, edge_sequence: 0 };
        (outbox, at_hub, answers, close)
    }

    #[tokio::test]
    async fn j05_what_was_recorded_before_the_session_closes_is_acknowledged() {
        let (mut outbox, mut at_hub, answers, close) = outbox();
        let putting = tokio::spawn(async move { outbox.put(vec![Report::Accepted]).await });
        at_hub.recv().await.unwrap();
        // Both are there before anybody looks.
        answers.try_send(Settled::Recorded { edge_sequence: 1, granted: Vec::new() }).unwrap();
        close.send_replace(Closing::Closed);
        assert_eq!(putting.await.unwrap(), Ok(Vec::new()));
    }

    #[tokio::test]
    async fn a_closed_session_sends_nothing_more() {
        let (mut outbox, mut at_hub, _answers, close) = outbox();
        close.send_replace(Closing::Closed);
        assert_eq!(outbox.put(vec![Report::Accepted]).await, Err(JournalError::Stopped));
        assert!(at_hub.try_recv().is_err());
    }
}
