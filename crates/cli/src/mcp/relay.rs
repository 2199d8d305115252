//! The relay itself: lines from standard input to the hub, messages from there to standard output.
//!
//! Requests run side by side; notifications and answers go one after the other, in the order in which the client said them. On the
//! older wire there is a session, which ends with the relay. On the newer one a request that is cancelled is one whose connection
//! is closed. A hub that is gone is followed by another where there can be one; what was under way with it is answered as failed.
//! What runs when the client says no more is answered, if that does not take long.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::StatusCode;
use runyard::Code;
use runyard_surfaces::http::BODY_BYTES_MAX;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::conversation::Conversation;
use super::exchange::Lost;
use super::message::{Kind, Message, NoMessage, failure};
use super::way::Way;

/// The longest line of the client. It is longer than the largest body that the hub takes, so that what is somewhat too long is refused
/// by the hub, under its own id.
const LINE_BYTES_MAX: usize = 8 * BODY_BYTES_MAX;
/// So many requests run at a time.
const REQUESTS_MAX: usize = 256;
/// So many messages wait for a client that reads slowly.
const MESSAGES_AHEAD_MAX: usize = 64;
/// A notification is taken by the hub, and the last messages by the client, within this time, or given up.
const SHORT: Duration = Duration::from_secs(10);
/// How long requests that run are waited for when the client says no more.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// How long between two attempts to hear what the hub has to say by itself.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);

const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;

/// Relays until the input ends, nobody reads the output any more, or somebody says stop.
pub(super) async fn relay(way: Way, stop: CancellationToken) {
    let (out, messages) = mpsc::channel(MESSAGES_AHEAD_MAX);
    let relay = Arc::new(Relay { conversation: Conversation::new(way), out, running: Mutex::default() });
    let writing = tokio::spawn(write(messages));
    let mut tasks = Tasks::default();
    tokio::select! {
        () = stop.cancelled() => {}
        () = relay.out.closed() => {}
        () = relay.read(&mut tasks) => {}
    }
    // Whatever still runs ends with its connection.
    tasks.requests.shutdown().await;
    tasks.open.shutdown().await;
    relay.conversation.end_session().await;
    relay.conversation.stop().await;
    drop(relay);
    let _ = tokio::time::timeout(SHORT, writing).await;
}

/// Writes messages to standard output, each a line, until nobody reads or says anything any more.
async fn write(mut messages: mpsc::Receiver<Value>) {
    let mut stdout = tokio::io::stdout();
    while let Some(message) = messages.recv().await {
        let line = format!("{message}\n");
        if stdout.write_all(line.as_bytes()).await.is_err() || stdout.flush().await.is_err() {
            return;
        }
    }
}

/// What runs beside the reading.
#[derive(Default)]
struct Tasks {
    /// What ends with an answer.
    requests: JoinSet<()>,
    /// What ends only when somebody ends it.
    open: JoinSet<()>,
    /// That of them which hears what the hub says by itself, on the older wire.
    listening: Option<AbortHandle>,
}

impl Tasks {
    fn listen_no_more(&mut self) {
        if let Some(listening) = self.listening.take() {
            listening.abort();
        }
    }
}

struct Relay {
    conversation: Conversation,
    out: mpsc::Sender<Value>,
    /// What ends each request that runs, by its id.
    running: Mutex<HashMap<String, CancellationToken>>,
}

/// A line of the client.
enum Line {
    Whole(Vec<u8>),
    TooLong,
    End,
}

impl Relay {
    /// Takes what the client says until it says no more and has its answers.
    async fn read(self: &Arc<Self>, tasks: &mut Tasks) {
        let mut input = BufReader::new(tokio::io::stdin());
        loop {
            match line(&mut input).await {
                Line::End => break,
                Line::TooLong => {
                    let message = format!("A message is longer than {LINE_BYTES_MAX} bytes.");
                    self.say(failure(&Value::Null, INVALID_REQUEST, &message)).await;
                }
                Line::Whole(line) if line.trim_ascii().is_empty() => {}
                Line::Whole(line) => match Message::read(&line) {
                    Ok(message) => self.take(message, tasks).await,
                    Err(NoMessage::NotJson) => {
                        self.say(failure(&Value::Null, PARSE_ERROR, "The line is not JSON.")).await;
                    }
                    Err(NoMessage::NotOne) => {
                        let message = "The line is not one message of JSON-RPC.";
                        self.say(failure(&Value::Null, INVALID_REQUEST, message)).await;
                    }
                },
            }
            while tasks.requests.try_join_next().is_some() || tasks.open.try_join_next().is_some() {}
        }
        let answers = async { while tasks.requests.join_next().await.is_some() {} };
        let (Ok(()) | Err(_)) = tokio::time::timeout(LAST_ANSWERS, answers).await;
    }

    async fn say(&self, message: Value) {
        // A client that is gone is noticed elsewhere.
        let _ = self.out.send(message).await;
    }

    async fn take(self: &Arc<Self>, message: Message, tasks: &mut Tasks) {
        if let Some(id) = message.cancels() {
            let cancelled = self.running().remove(&id);
            if let Some(cancelled) = cancelled {
                cancelled.cancel();
            }
            if !self.conversation.has_session() {
                return;
            }
        }
        match message.kind {
            Kind::Request => self.begin(message, tasks).await,
            Kind::Notification | Kind::Response => {
                let initialized = message.method() == "notifications/initialized";
                match tokio::time::timeout(SHORT, self.told(&message)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(lost)) => tracing::warn!(method = message.method(), "{}", lost.message),
                    Err(_) => {
                        tracing::warn!(method = message.method(), "the hub did not take a message in time")
                    }
                }
                if initialized && self.conversation.has_session() {
                    tasks.listen_no_more();
                    let relay = Arc::clone(self);
                    tasks.listening = Some(tasks.open.spawn(async move { relay.listen().await }));
                }
            }
        }
    }

    async fn begin(self: &Arc<Self>, message: Message, tasks: &mut Tasks) {
        let (id, cancel) = (message.id(), CancellationToken::new());
        let full = {
            let mut running = self.running();
            let full = running.len() >= REQUESTS_MAX;
            if !full {
                running.insert(id.clone(), cancel.clone());
            }
            full
        };
        if full {
            let code = Code::ConcurrencyLimit.row().json_rpc;
            let refused = format!("{REQUESTS_MAX} requests run already; wait for some to end.");
            return self.say(failure(&message.body["id"], code, &refused)).await;
        }
        let (begins_session, stays_open) =
            (message.begins_session(), message.method() == "subscriptions/listen");
        let relay = Arc::clone(self);
        let request = async move {
            tokio::select! {
                biased;
                () = cancel.cancelled() => {}
                answered = relay.answered(&message) => if let Err(lost) = answered {
                    relay.say(failure(&message.body["id"], lost.code, &lost.message)).await;
                }
            }
            relay.running().remove(&id);
        };
        if begins_session {
            tasks.listen_no_more();
            self.conversation.end_session().await;
            // What follows belongs to the session that this begins.
            request.await;
        } else if stays_open {
            tasks.open.spawn(request);
        } else {
            tasks.requests.spawn(request);
        }
    }

    /// Sends a request, and everything that comes until it is answered to the client.
    async fn answered(&self, message: &Message) -> Result<(), Lost> {
        let mut answer = self.conversation.ask(message).await?;
        let id = &message.body["id"];
        while let Some(mut came) = answer.next().await? {
            let answers = came.get("method").is_none();
            // The hub could not even read which request it refuses.
            if answers && came["id"].is_null() {
                came["id"] = id.clone();
            }
            if answers && message.begins_session() {
                self.conversation.begins(&came);
            }
            let done = answers && came["id"] == *id;
            self.say(came).await;
            if done {
                return Ok(());
            }
        }
        Err(Lost::because("it ended without an answer"))
    }

    /// Sends what is not answered.
    async fn told(&self, message: &Message) -> Result<(), Lost> {
        let mut answer = self.conversation.tell(message).await?;
        if answer.status().is_success() {
            return Ok(());
        }
        match answer.next().await? {
            Some(refused) => {
                let said = refused["error"]["message"].as_str().unwrap_or("The hub refused a message.");
                Err(Lost::new(INVALID_REQUEST, said))
            }
            None => Ok(()),
        }
    }

    /// Hears what the hub says by itself, on the older wire.
    async fn listen(&self) {
        loop {
            if let Ok(mut answer) = self.conversation.listen().await
                && answer.status() == StatusCode::OK
            {
                while let Ok(Some(message)) = answer.next().await {
                    self.say(message).await;
                }
            }
            tokio::time::sleep(LISTEN_AGAIN).await;
        }
    }

    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The next line. One that is too long is passed over.
async fn line(input: &mut (impl tokio::io::AsyncBufRead + Unpin)) -> Line {
    let (mut line, mut too_long) = (Vec::new(), false);
    loop {
        let Ok(bytes) = input.fill_buf().await else { return Line::End };
        if bytes.is_empty() {
            return Line::End;
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let taken = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        too_long = too_long || line.len() + taken.len() > LINE_BYTES_MAX;
        if too_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(taken);
        }
        let used = taken.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_some() {
            return if too_long { Line::TooLong } else { Line::Whole(line) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_that_is_too_long_is_passed_over_and_the_next_one_read() {
        let text = [&b"one\n"[..], &vec![b'x'; LINE_BYTES_MAX + 1], b"\ntwo\ncut off"].concat();
        let mut input = BufReader::new(&text[..]);
        let mut found = Vec::new();
        loop {
            match line(&mut input).await {
                Line::Whole(line) => found.push(String::from_utf8(line).unwrap()),
                Line::TooLong => found.push("too long".to_owned()),
                Line::End => break,
            }
        }
        assert_eq!(found, ["one", "too long", "two"]);
    }
}
