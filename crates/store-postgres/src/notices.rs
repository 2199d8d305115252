//! Telling other hubs that runs moved, and being told: one connection that listens and speaks, outside any change.
//!
//! A notice only says where to look. At most 50 times a second some are sent, however many changes there are, since the
//! server makes every transaction that sends one wait for the others. One that is lost costs up to [`POLL_EVERY`] and never
//! an event; one that is wrong, a look.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deadpool_postgres::Pool;
use runyard_domain::RunId;
use runyard_store::Live;
use tokio::sync::{Notify, mpsc};
use tokio_postgres::{AsyncMessage, Client};
use uuid::Uuid;

use crate::connection::{Connector, Wire, given_back, taken, within};
use crate::fault::Failure;
use crate::run_row::{run_uuid, unsigned};

/// The time between two notices at least.
const NOTICE_EVERY: Duration = Duration::from_millis(20);
/// How often is looked for what no notice told.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// The first wait after the connection is lost; it doubles.
const RECONNECT_WAIT_FIRST: Duration = Duration::from_millis(50);
/// The longest wait between two attempts.
const RECONNECT_WAIT_MAX: Duration = Duration::from_secs(5);
/// The server takes less than 8,000 bytes.
const NOTICE_BYTES_MAX: usize = 7_800;
/// How many runs one look asks for.
const POLL_RUNS_MAX: usize = 1_000;
/// How many runs wait to be told of; more are left to those who look.
const MOVED_RUNS_MAX: usize = 10_000;
/// How many notices wait to be read; more are as good as lost.
const NOTICES_WAITING_MAX: usize = 1_000;
/// How many notices are sent together; what does not fit in is left to those who look.
const NOTICES_TOGETHER_MAX: usize = 16;
const SEND: &str = "SELECT pg_notify($1, text) FROM unnest($2::text[]) AS texts (text)";
/// Tells this connection from the others, for whoever looks at the server.
const NAME: &str =
    "SELECT set_config('application_name', current_setting('application_name') || ' notices', false)";
const CHANNEL: &str = "runyard_moved";
/// Instead of runs: too many to name.
const MANY: &str = "*";

/// The runs that moved, until others are told.
#[derive(Default)]
pub(crate) struct Notices {
    moved: Mutex<HashSet<RunId>>,
    some: Notify,
}

impl Notices {
    /// Remembers that runs moved.
    pub(crate) fn moved(&self, runs: impl Iterator<Item = RunId>) {
        let mut moved = self.locked();
        for run in runs {
            if moved.len() < MOVED_RUNS_MAX {
                moved.insert(run);
            }
        }
        self.some.notify_one();
    }

    fn locked(&self) -> MutexGuard<'_, HashSet<RunId>> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> HashSet<RunId> {
        std::mem::take(&mut *self.locked())
    }
}

/// Keeps the connection, for ever: sends what moved here, and hands on what moved elsewhere.
pub(crate) async fn exchange(connector: Connector, notices: Arc<Notices>, live: Arc<Live>, sender: Uuid) {
    let mut wait = RECONNECT_WAIT_FIRST;
    loop {
        match open(&connector).await {
            Ok((client, mut heard)) => {
                wait = RECONNECT_WAIT_FIRST;
                let talk =
                    Talk { client: &client, connector: &connector, notices: &notices, live: &live, sender };
                if let Err(failure) = talk.go_on(&mut heard).await {
                    tracing::debug!(?failure, "the connection for notices is lost");
                }
            }
            Err(failure) => tracing::debug!(?failure, "no connection for notices"),
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(RECONNECT_WAIT_MAX);
    }
}

/// A connection that listens, and what it hears. It ends when the client is dropped.
async fn open(connector: &Connector) -> Result<(Client, mpsc::Receiver<String>), Failure> {
    let (client, wire) = connector.open().await?;
    let (hear, heard) = mpsc::channel(NOTICES_WAITING_MAX);
    tokio::spawn(listen(wire, hear));
    let begin = async {
        connector.prepare(&client).await?;
        client.batch_execute(&format!("{NAME}; LISTEN {CHANNEL}")).await
    };
    within(connector.options().connect, begin).await?;
    Ok((client, heard))
}

async fn listen(mut wire: Wire, hear: mpsc::Sender<String>) {
    while let Some(message) = std::future::poll_fn(|context| wire.poll_message(context)).await {
        match message {
            Ok(AsyncMessage::Notification(notice)) => {
                // A full queue loses it, which a notice may be.
                let _ = hear.try_send(notice.payload().to_owned());
            }
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(%error, "the connection for notices ended");
                return;
            }
        }
    }
}

/// A connection in use.
struct Talk<'a> {
    client: &'a Client,
    connector: &'a Connector,
    notices: &'a Notices,
    live: &'a Live,
    sender: Uuid,
}

impl Talk<'_> {
    async fn go_on(&self, heard: &mut mpsc::Receiver<String>) -> Result<(), Failure> {
        // Between two connections anything may have been missed.
        self.look_at(self.live.followed()).await?;
        let mut quiet = std::pin::pin!(tokio::time::sleep(Duration::ZERO));
        loop {
            tokio::select! {
                notice = heard.recv() => match notice {
                    Some(notice) => {
                        let mut told = self.told(&notice);
                        while let Ok(more) = heard.try_recv() {
                            told.extend(self.told(&more));
                        }
                        self.look_at(told.into_iter().collect()).await?;
                    }
                    None => return Ok(()),
                },
                () = self.notices.some.notified(), if quiet.is_elapsed() => {
                    let texts = texts(self.sender, self.notices.take());
                    let sent = async { self.client.execute(SEND, &[&CHANNEL, &texts]).await };
                    within(self.connector.options().silence(), sent).await?;
                    quiet.as_mut().reset(tokio::time::Instant::now() + NOTICE_EVERY);
                }
                () = &mut quiet, if !quiet.is_elapsed() => {}
            }
        }
    }

    /// The runs that a notice names and somebody here follows.
    fn told(&self, notice: &str) -> HashSet<RunId> {
        let mut words = notice.split(' ');
        if words.next().is_some_and(|sender| sender == self.sender.simple().to_string()) {
            return HashSet::new();
        }
        let mut told = HashSet::new();
        for word in words {
            match Uuid::try_parse(word) {
                Ok(run) => told.extend(Some(RunId::from_bytes(run.into_bytes()))),
                Err(_) => told.extend(self.live.followed()),
            }
        }
        told.retain(|run| self.live.is_followed(*run));
        told
    }

    async fn look_at(&self, runs: Vec<RunId>) -> Result<(), Failure> {
        self.live.wake_feed();
        for runs in runs.chunks(POLL_RUNS_MAX) {
            within(self.connector.options().silence(), look(self.client, self.live, runs)).await?;
        }
        Ok(())
    }
}

/// Each `sender run run …`, or `sender *`.
fn texts(sender: Uuid, moved: HashSet<RunId>) -> Vec<String> {
    let sender = sender.simple().to_string();
    let mut texts = vec![sender.clone()];
    for run in moved {
        let word = format!(" {}", run_uuid(run).simple());
        let full = texts.len() == NOTICES_TOGETHER_MAX;
        match texts.last_mut() {
            Some(text) if text.len() + word.len() <= NOTICE_BYTES_MAX => text.push_str(&word),
            _ if full => {
                texts.push(format!("{sender} {MANY}"));
                break;
            }
            _ => texts.push(format!("{sender}{word}")),
        }
    }
    texts
}

/// Looks, for ever, for what no notice told.
pub(crate) async fn poll(pool: Pool, connector: Connector, live: Arc<Live>) {
    loop {
        tokio::time::sleep(POLL_EVERY).await;
        live.wake_feed();
        for runs in live.followed().chunks(POLL_RUNS_MAX) {
            let looked = async {
                let client = taken(&pool).await?;
                let looked = within(connector.options().silence(), look(&client, &live, runs)).await;
                given_back(client, looked)
            };
            if let Err(failure) = looked.await {
                tracing::debug!(?failure, "cannot look for what moved");
            }
        }
    }
}

/// Wakes those who follow runs, where these have moved.
async fn look(client: &Client, live: &Live, runs: &[RunId]) -> Result<(), tokio_postgres::Error> {
    let runs: Vec<Uuid> = runs.iter().map(|run| run_uuid(*run)).collect();
    for row in client.query("SELECT run_id, sequence FROM runs WHERE run_id = ANY($1)", &[&runs]).await? {
        let run = RunId::from_bytes(row.try_get::<_, Uuid>(0)?.into_bytes());
        // A damaged row wakes nobody here. Whoever reads it is told.
        if let Ok(last) = unsigned(row.try_get(1)?) {
            live.wake(run, last);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c08_notices_name_every_run_within_the_servers_limit_or_say_that_there_are_more() {
        let run = |n: u64| RunId::from_parts(n, &[7; 10]);
        let count =
            |texts: &[String]| -> usize { texts.iter().map(|text| text.split(' ').count() - 1).sum() };
        for runs in [1, 200, 300, 3_000] {
            let texts = texts(Uuid::nil(), (0..runs).map(run).collect());
            assert!(texts.iter().all(|text| text.len() < 8_000 && !text.contains(MANY)));
            assert_eq!(count(&texts) as u64, runs);
        }
        let texts = texts(Uuid::nil(), (0..MOVED_RUNS_MAX as u64).map(run).collect());
        assert_eq!(texts.len(), NOTICES_TOGETHER_MAX + 1);
        assert!(texts.last().unwrap().ends_with(" *"));
    }

    #[test]
    fn what_waits_to_be_told_is_bounded() {
        let notices = Notices::default();
        notices.moved((0..2 * MOVED_RUNS_MAX as u64).map(|n| RunId::from_parts(n, &[7; 10])));
        assert_eq!(notices.take().len(), MOVED_RUNS_MAX);
        assert_eq!(notices.take().len(), 0);
    }
}
