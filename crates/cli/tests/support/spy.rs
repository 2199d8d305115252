//! Somebody between a client and a hub, who passes everything on and remembers which requests and sessions there were.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::{Hub, eventually};

const SESSION: &str = "mcp-session-id: ";

/// What was seen, each in its order.
#[derive(Default)]
pub(crate) struct Seen {
    begun: Vec<String>,
    ended: Vec<String>,
    pub(crate) sessions: Vec<String>,
}

impl Seen {
    /// How many requests of this method were begun.
    pub(crate) fn begun(&self, method: &str) -> usize {
        self.begun.iter().filter(|begun| *begun == method).count()
    }

    /// How many of them are over.
    pub(crate) fn ended(&self, method: &str) -> usize {
        self.ended.iter().filter(|ended| *ended == method).count()
    }
}

/// The one between. Each connection carries one request.
pub(crate) struct Spy {
    pub(crate) url: String,
    seen: Arc<Mutex<Seen>>,
}

impl Spy {
    pub(crate) fn before(hub: &Hub) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (seen, hub) = (Arc::<Mutex<Seen>>::default(), hub.address().to_owned());
        let spy = Spy { url, seen: Arc::clone(&seen) };
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (seen, hub) = (Arc::clone(&seen), hub.clone());
                // A connection that breaks is what its two ends see.
                std::thread::spawn(move || pass(client, &hub, &seen));
            }
        });
        spy
    }

    /// Waits until it has seen this.
    #[track_caller]
    pub(crate) fn sees(&self, what: &str, is: impl Fn(&Seen) -> bool) {
        eventually(what, || is(&self.seen.lock().unwrap()).then_some(()));
    }

    /// Ends the session that was begun last, behind the client's back.
    #[track_caller]
    pub(crate) fn end_session(&self, hub: &Hub, token: &str) {
        let session = self.seen.lock().unwrap().sessions.last().unwrap().clone();
        let headers = format!("Authorization: Bearer {token}\r\n{SESSION}{session}\r\n");
        let (status, body) = hub.try_request("DELETE", "/mcp", &headers, "").unwrap();
        assert!((200..300).contains(&status), "{status}: {body}");
    }
}

/// Passes one request on, and its answer back.
fn pass(client: TcpStream, hub: &str, seen: &Mutex<Seen>) -> std::io::Result<()> {
    let mut to_hub = TcpStream::connect(hub)?;
    let (mut from_client, mut from_hub) =
        (BufReader::new(client.try_clone()?), BufReader::new(to_hub.try_clone()?));
    let mut request = head(&mut from_client)?;
    for line in request.iter_mut().filter(|line| line.to_ascii_lowercase().starts_with("host:")) {
        *line = format!("Host: {hub}\r\n");
    }
    let method = request.first().and_then(|line| line.split(' ').next()).unwrap_or_default().to_owned();
    seen.lock().unwrap().begun.push(method.clone());
    to_hub.write_all(request.concat().as_bytes())?;
    let asking = std::thread::spawn(move || {
        let copied = copy(&mut from_client, &mut to_hub);
        let _ = to_hub.shutdown(Shutdown::Both);
        copied
    });
    let mut to_client = client;
    let answer = head(&mut from_hub)?;
    if request.iter().all(|line| !line.starts_with(SESSION)) {
        let sessions = answer.iter().filter_map(|line| line.strip_prefix(SESSION));
        seen.lock().unwrap().sessions.extend(sessions.map(|id| id.trim_end().to_owned()));
    }
    to_client.write_all(answer.concat().as_bytes())?;
    let copied = copy(&mut from_hub, &mut to_client);
    let _ = to_client.shutdown(Shutdown::Both);
    let _ = asking.join();
    seen.lock().unwrap().ended.push(method);
    copied
}

/// The lines before the body.
fn head(from: &mut impl BufRead) -> std::io::Result<Vec<String>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        let over = from.read_line(&mut line)? == 0 || line == "\r\n";
        lines.push(line);
        if over {
            return Ok(lines);
        }
    }
}

/// Copies as it comes.
fn copy(from: &mut impl Read, to: &mut impl Write) -> std::io::Result<()> {
    let mut bytes = [0; 4096];
    loop {
        match from.read(&mut bytes)? {
            0 => return Ok(()),
            read => to.write_all(&bytes[..read])?,
        }
    }
}
