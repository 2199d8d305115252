//! A conversation with a hub that answers as the test says.

use std::sync::Arc;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// How the hub answers a request.
enum Reply {
    /// It begins this session.
    Begins(&'static str),
    Done,
    Refuses(u16),
}

use Reply::{Begins, Done, Refuses};

/// A hub with so many replies, and what it heard: each message's method with the session it came in.
struct Hub {
    conversation: Conversation,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Hub {
    async fn that(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let hears = Arc::clone(&heard);
        tokio::spawn(async move {
            for reply in replies {
                let (stream, _) = listener.accept().await.unwrap();
                let heard = answer(stream, &reply).await;
                hears.lock().unwrap().push(heard);
            }
        });
        let way = Way::named(Endpoint::at(&url, "token").unwrap());
        Hub { conversation: Conversation::new(way), heard }
    }

    /// Asks, and reads the answer.
    async fn ask(&self, method: &str, params: Value) -> Result<Value, String> {
        let request = message(&json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}));
        let answered = async { self.conversation.ask(&request).await?.next().await };
        let answered = answered.await.map_err(|lost| lost.message)?.unwrap();
        if request.begins_session() {
            self.conversation.begins(&answered);
        }
        Ok(answered)
    }

    #[track_caller]
    fn heard(&self, expected: &[&str]) {
        assert_eq!(std::mem::take(&mut *self.heard.lock().unwrap()), expected);
    }
}

fn message(body: &Value) -> Message {
    Message::read(body.to_string().as_bytes()).unwrap()
}

async fn answer(mut stream: TcpStream, reply: &Reply) -> String {
    let (mut text, mut bytes) = (String::new(), [0; 4096]);
    let body = loop {
        let read = stream.read(&mut bytes).await.unwrap();
        text.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
        let body = text.split_once("\r\n\r\n").and_then(|(_, body)| serde_json::from_str::<Value>(body).ok());
        if let Some(body) = body {
            break body;
        }
        assert!(read > 0, "half a request: {text}");
    };
    let (status, session, said) = match reply {
        Begins(id) => {
            (200, format!("mcp-session-id: {id}\r\n"), json!({"result": {"protocolVersion": "2025-11-25"}}))
        }
        Done => (200, String::new(), json!({"result": {}})),
        Refuses(status) => (*status, String::new(), json!({"error": {"code": -32600, "message": "No."}})),
    };
    let mut said = said;
    (said["jsonrpc"], said["id"]) = (json!("2.0"), body["id"].clone());
    let said = said.to_string();
    let length = said.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n{session}\r\n"
    );
    stream.write_all((head + &said).as_bytes()).await.unwrap();
    let session = text.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap_or("no session");
    let method = body["method"].as_str().unwrap_or("an answer");
    let about =
        body["params"]["uri"].as_str().or(body["params"]["level"].as_str()).map(|about| format!(" {about}"));
    format!("{method}{} in {session}", about.unwrap_or_default())
}

#[tokio::test]
async fn a_session_that_the_hub_dropped_is_made_again_with_all_that_the_client_wished() {
    let replies =
        vec![Begins("s1"), Done, Done, Done, Done, Refuses(404), Begins("s2"), Done, Done, Done, Done];
    let hub = Hub::that(replies).await;
    hub.ask("initialize", json!({})).await.unwrap();
    hub.ask("logging/setLevel", json!({"level": "debug"})).await.unwrap();
    hub.ask("resources/subscribe", json!({"uri": "a"})).await.unwrap();
    hub.ask("resources/subscribe", json!({"uri": "b"})).await.unwrap();
    hub.ask("resources/unsubscribe", json!({"uri": "a"})).await.unwrap();
    hub.heard.lock().unwrap().clear();
    assert!(hub.ask("tools/list", json!({})).await.unwrap()["result"].is_object());
    hub.heard(&[
        "tools/list in s1",
        "initialize in no session",
        "notifications/initialized in s2",
        "logging/setLevel debug in s2",
        "resources/subscribe b in s2",
        "tools/list in s2",
    ]);
}

#[tokio::test]
async fn a_session_that_could_not_be_made_again_is_made_when_it_is_needed_next() {
    let hub = Hub::that(vec![Begins("s1"), Refuses(404), Refuses(503), Begins("s2"), Done, Done, Done]).await;
    hub.ask("initialize", json!({})).await.unwrap();
    let refused = hub.ask("tools/list", json!({})).await;
    assert_eq!(refused, Err("The hub cannot be talked to: No.".to_owned()));
    hub.heard(&["initialize in no session", "tools/list in s1", "initialize in no session"]);
    hub.ask("tools/list", json!({})).await.unwrap();
    hub.ask("tools/list", json!({})).await.unwrap();
    hub.heard(&[
        "initialize in no session",
        "notifications/initialized in s2",
        "tools/list in s2",
        "tools/list in s2",
    ]);
}

#[tokio::test]
async fn an_answer_reaches_nobody_but_the_session_that_asked() {
    let hub = Hub::that(vec![Begins("s1"), Refuses(404), Done]).await;
    hub.ask("initialize", json!({})).await.unwrap();
    let yes = message(&json!({"jsonrpc": "2.0", "id": 0, "result": {"action": "accept"}}));
    for _ in 0..2 {
        assert!(hub.conversation.tell(&yes).await.is_err());
    }
    hub.heard(&["initialize in no session", "an answer in s1"]);
}

#[tokio::test]
async fn what_the_hub_refuses_again_and_again_is_given_up() {
    let replies =
        [Begins("s1"), Refuses(404), Begins("s2"), Done, Refuses(404), Begins("s3"), Done, Refuses(404)];
    let hub = Hub::that(replies.into()).await;
    hub.ask("initialize", json!({})).await.unwrap();
    let refused = hub.ask("tools/list", json!({})).await.unwrap_err();
    assert!(refused.contains("does not know this session"), "{refused}");
    // What belongs to no session is not about one.
    let hub = Hub::that(vec![Begins("s1"), Refuses(404)]).await;
    hub.ask("initialize", json!({})).await.unwrap();
    let newer = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}});
    assert!(hub.ask("no/such", newer).await.unwrap()["error"].is_object());
}
