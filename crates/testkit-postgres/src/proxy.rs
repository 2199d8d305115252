//! A loopback proxy in front of PostgreSQL that loses connections at a chosen point of a commit.
//!
//! It reads the protocol just far enough to find `COMMIT` and its answer. A connection that goes over to TLS passes
//! unread: it can be cut by [`CuttingProxy::cut_now`], not at a commit.

mod messages;

use std::collections::HashMap;
use std::io::{BufReader, BufWriter, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};

use messages::{Answer, Commits, Message, Opening};

/// Where in a commit a connection is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The server never sees the `COMMIT`.
    BeforeCommit,
    /// The server sees so many bytes of the message, at most all, and then the connection's end.
    AtByte(usize),
    /// The server has committed, its answer is lost with the connection.
    AfterCommitBeforeAnswer,
    /// The server has committed, its answer never comes, and the connection stays open.
    SilenceAfterCommit,
}

/// Which commits are cut.
#[derive(Debug, Clone, Copy)]
enum Plan {
    Nothing,
    /// The one after so many others.
    After(u64, Cut),
    Every(Cut),
}

/// The proxy. Dropping it cuts every connection and ends it.
#[derive(Debug)]
pub struct CuttingProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    upstream: SocketAddr,
    plan: Mutex<Plan>,
    /// Both ends of each live connection.
    live: Mutex<HashMap<u64, [TcpStream; 2]>>,
    made: AtomicU64,
    commits: AtomicU64,
    cuts: AtomicU64,
    ended: AtomicBool,
}

impl CuttingProxy {
    /// Starts a proxy to a server, on a free port.
    pub fn start(upstream: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            upstream,
            plan: Mutex::new(Plan::Nothing),
            live: Mutex::default(),
            made: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            cuts: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || accept(&listener, &accepting));
        Ok(Self { address, shared })
    }

    /// Where the proxy listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the server, led through the proxy.
    #[must_use]
    pub fn through(&self, url: &str) -> String {
        url.replacen(&self.shared.upstream.to_string(), &self.address.to_string(), 1)
    }

    /// Cuts the next commit and no other.
    pub fn cut_next_commit(&self, cut: Cut) {
        self.cut_commit_after(0, cut);
    }

    /// Lets so many commits through, cuts the next one, and no other.
    pub fn cut_commit_after(&self, others: u64, cut: Cut) {
        *locked(&self.shared.plan) = Plan::After(others, cut);
    }

    /// Cuts every commit from now on.
    pub fn cut_every_commit(&self, cut: Cut) {
        *locked(&self.shared.plan) = Plan::Every(cut);
    }

    /// Lets every commit through from now on.
    pub fn cut_no_commit(&self) {
        *locked(&self.shared.plan) = Plan::Nothing;
    }

    /// Cuts every live connection, whatever it is doing. New ones are taken.
    pub fn cut_now(&self) {
        let live: Vec<u64> = locked(&self.shared.live).keys().copied().collect();
        for connection in live {
            self.shared.cut(connection);
        }
    }

    /// How many connections were cut, for whatever reason.
    #[must_use]
    pub fn cuts(&self) -> u64 {
        self.shared.cuts.load(Ordering::SeqCst)
    }

    /// How many commits came from clients, cut or not.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.shared.commits.load(Ordering::SeqCst)
    }
}

impl Drop for CuttingProxy {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
        self.cut_now();
    }
}

impl Shared {
    /// What is to be done with the commit that has just come.
    fn judge(&self) -> Option<Cut> {
        self.commits.fetch_add(1, Ordering::SeqCst);
        let mut plan = locked(&self.plan);
        match *plan {
            Plan::Nothing => None,
            Plan::Every(cut) => Some(cut),
            Plan::After(0, cut) => {
                *plan = Plan::Nothing;
                Some(cut)
            }
            Plan::After(others, cut) => {
                *plan = Plan::After(others - 1, cut);
                None
            }
        }
    }

    /// Closes a connection on purpose. Whoever notices that it is closed finds it counted.
    fn cut(&self, connection: u64) {
        if let Some(ends) = self.take(connection) {
            self.cuts.fetch_add(1, Ordering::SeqCst);
            shut(&ends);
        }
    }

    /// Closes a connection because one side did.
    fn close(&self, connection: u64) {
        if let Some(ends) = self.take(connection) {
            shut(&ends);
        }
    }

    fn take(&self, connection: u64) -> Option<[TcpStream; 2]> {
        locked(&self.live).remove(&connection)
    }
}

fn shut(ends: &[TcpStream; 2]) {
    for end in ends {
        // It may have been closed from the other side.
        let _ = end.shutdown(Shutdown::Both);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming() {
        if shared.ended.load(Ordering::SeqCst) {
            return;
        }
        let Ok(client) = client else { continue };
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            // Without a server the client is closed, which is what it would see without a proxy.
            if let Ok(server) = TcpStream::connect(shared.upstream) {
                serve(&shared, &client, &server);
            }
        });
    }
}

/// Serves one connection to its end.
fn serve(shared: &Arc<Shared>, client: &TcpStream, server: &TcpStream) {
    let number = shared.made.fetch_add(1, Ordering::SeqCst);
    let (Ok(client_end), Ok(server_end)) = (client.try_clone(), server.try_clone()) else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    locked(&shared.live).insert(number, [client_end, server_end]);
    // A failed read or write is a connection that someone closed: the end of both ways, and nothing else.
    let _ = forward(shared, number, client, server);
    shared.close(number);
}

fn forward(shared: &Arc<Shared>, number: u64, client: &TcpStream, server: &TcpStream) -> std::io::Result<()> {
    let mut from_client = BufReader::new(client);
    let awaited = Arc::new(Mutex::new(None));
    let way_back = {
        let (shared, awaited) = (Arc::clone(shared), Arc::clone(&awaited));
        let (server, client) = (server.try_clone()?, client.try_clone()?);
        move |opened: Opening| {
            let _ = match opened {
                Opening::Plain => answer(&shared, number, &server, &client, &awaited),
                Opening::Encrypted => std::io::copy(&mut &server, &mut &client).map(drop),
            };
            shared.close(number);
        }
    };
    let opened = messages::open(&mut from_client, client, server)?;
    std::thread::spawn(move || way_back(opened));
    match opened {
        Opening::Encrypted => std::io::copy(&mut from_client, &mut &*server).map(drop),
        Opening::Plain => request(shared, number, from_client, server, &awaited),
    }
}

/// From the client to the server, message by message.
fn request(
    shared: &Shared,
    number: u64,
    mut client: BufReader<&TcpStream>,
    server: &TcpStream,
    awaited: &Mutex<Option<Cut>>,
) -> std::io::Result<()> {
    let mut server = BufWriter::new(server);
    let mut commits = Commits::default();
    loop {
        let message = Message::read(&mut client)?;
        let cut = if commits.is_commit(&message) { shared.judge() } else { None };
        match cut {
            None => server.write_all(message.bytes())?,
            Some(Cut::BeforeCommit) => {
                server.flush()?;
                shared.cut(number);
            }
            Some(Cut::AtByte(bytes)) => {
                let bytes = bytes.min(message.bytes().len());
                server.write_all(&message.bytes()[..bytes])?;
                server.flush()?;
                shared.cut(number);
            }
            Some(later @ (Cut::AfterCommitBeforeAnswer | Cut::SilenceAfterCommit)) => {
                *locked(awaited) = Some(later);
                server.write_all(message.bytes())?;
            }
        }
        if client.buffer().is_empty() {
            server.flush()?;
        }
    }
}

/// From the server to the client, message by message.
fn answer(
    shared: &Shared,
    number: u64,
    server: &TcpStream,
    client: &TcpStream,
    awaited: &Mutex<Option<Cut>>,
) -> std::io::Result<()> {
    let mut server = BufReader::new(server);
    let mut client = BufWriter::new(client);
    loop {
        let message = Message::read(&mut server)?;
        if Answer::of(&message) == Answer::TransactionEnded {
            match *locked(awaited) {
                None => {}
                Some(Cut::SilenceAfterCommit) => {
                    client.flush()?;
                    shared.cuts.fetch_add(1, Ordering::SeqCst);
                    return swallow(&mut server);
                }
                Some(_) => {
                    client.flush()?;
                    shared.cut(number);
                }
            }
        }
        client.write_all(message.bytes())?;
        if server.buffer().is_empty() {
            client.flush()?;
        }
    }
}

/// Reads to the end and gives it to nobody.
fn swallow(server: &mut impl Read) -> std::io::Result<()> {
    std::io::copy(server, &mut std::io::sink()).map(drop)
}
