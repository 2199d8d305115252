//! The way to a model provider: an endpoint on loopback that has the provider's key, so that no process of an agent does.
//!
//! ```text
//! gateway.rs            a run's pass to it: token and base URL as long as the lease is held
//! gateway/runs.rs       who may use it: by the digest of the token; what each has used, and its budget
//! gateway/tally.rs      what one request costs: set aside before, counted after
//! gateway/listening.rs  sockets: one on loopback for all runs, a Unix socket for a run whose network is cut
//! gateway/routes.rs     one request: whose it is, whether it may be, and its body
//! gateway/permitted.rs  what a request may ask for: nothing that makes the provider reach somebody else
//! gateway/forward.rs    the request as the provider gets it, and the head of the answer
//! gateway/stream.rs     the answer on its way back: counted, translated where the wire differs, the key masked
//! gateway/course.rs     what becomes of an answer's bytes on each wire
//! gateway/mask.rs       the key in an answer, however it is cut
//! gateway/limits.rs     how long things may take
//! gateway/refusal.rs    what an agent is told, in the form that clients of these APIs read
//! ```
//!
//! A run gets a token of its own. Whoever has it can ask the run's provider for responses and for the list of its models, within the
//! run's budget, until the lease ends; nothing else. An answer comes back as the provider gave it, its failures too. It
//! retries nothing, follows no redirect, keeps no connection, and stores nothing.

mod course;
mod forward;
mod limits;
mod listening;
mod mask;
mod permitted;
mod refusal;
mod routes;
mod runs;
mod stream;
mod tally;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use runyard_domain::{RunId, Wire};
use runyard_llm::http::{Client, Roots};
use tokio::sync::{OnceCell, watch};
use tokio::time::timeout;
use zeroize::Zeroizing;

use self::limits::Limits;
use self::listening::{Listening, Server};
use self::runs::{Digest, Open, Target};
use crate::Secret;
use crate::private;

/// What a token begins with.
const TOKEN_PREFIX: &str = "ryg_";
/// How long the end of a lease waits for what it cuts to be counted.
const SETTLING_MAX: Duration = Duration::from_secs(2);

/// A provider, and the key to it.
#[derive(Clone)]
pub(crate) struct Upstream {
    /// Where it listens, such as `https://api.example.com/v1`.
    pub(crate) base_url: String,
    /// What it speaks.
    pub(crate) wire: Wire,
    /// What it knows its customer by.
    pub(crate) key: Secret,
}

/// An address that somebody wrote may hold a password.
impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("wire", &self.wire).finish_non_exhaustive()
    }
}

/// What a run is let through for.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) run: RunId,
    pub(crate) upstream: Upstream,
    /// What the run's agent speaks to the gateway: its provider's own, or what is translated to that.
    pub(crate) spoken: Wire,
    /// How many tokens the run may still use; none where it has no budget.
    pub(crate) tokens_left: Option<u64>,
    /// Where a Unix socket is to be as well, for processes that have no network.
    pub(crate) socket: Option<PathBuf>,
}

/// What a run has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    /// How many requests went to the provider.
    pub(crate) requests: u64,
    /// Whether a request was refused because the budget is used up.
    pub(crate) refused_for_budget: bool,
}

/// The edge's gateway. Cheap to clone; it listens from the first lease until it and all leases are gone.
#[derive(Clone)]
pub(crate) struct Gateway(Arc<Parts>);

struct Parts {
    server: Arc<Server>,
    listening: OnceCell<Listening>,
}

impl Gateway {
    /// A gateway that trusts whom the system trusts.
    pub(crate) fn new() -> Self {
        Gateway::with(Limits::default(), Roots::System)
    }

    fn with(limits: Limits, roots: Roots) -> Self {
        let server = Arc::new(Server::new(Client::new(roots), limits));
        Gateway(Arc::new(Parts { server, listening: OnceCell::new() }))
    }

    /// Lets a run through. An address or a key that cannot be used is [`io::ErrorKind::InvalidInput`].
    pub(crate) async fn open(&self, pass: Pass) -> io::Result<Lease> {
        let Pass { run, upstream, spoken, tokens_left, socket } = pass;
        let target =
            Target::new(upstream, spoken).map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
        let server = &self.0.server;
        let listening = self.0.listening.get_or_try_init(|| Listening::tcp(Arc::clone(server))).await?;
        let port = listening.port();
        let base_url = format!("http://127.0.0.1:{port}/v1");
        let token = new_token()?;
        let digest = Digest::of(token.as_bytes());
        let socket = socket.map(|path| Listening::unix(&path, Arc::clone(server), digest)).transpose()?;
        let series = u64::from_ne_bytes(private::random()?);
        let open = Arc::new(Open::new(run, target, tokens_left, series));
        server.runs.add(digest, Arc::clone(&open));
        Ok(Lease { base_url, port, token, open, digest, gateway: self.clone(), _socket: socket })
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

/// A run's way through the gateway. Dropping it closes the way: its token is refused, what is on its way is cut, and its socket is gone.
pub(crate) struct Lease {
    base_url: String,
    port: u16,
    token: Zeroizing<String>,
    open: Arc<Open>,
    digest: Digest,
    gateway: Gateway,
    _socket: Option<Listening>,
}

impl Lease {
    /// What the agent takes for its provider's base URL.
    pub(crate) fn base_url(&self) -> &str {
        &self.base_url
    }

    /// The port in it.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// What the agent takes for its provider's key.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// What has been used, as it changes.
    pub(crate) fn used(&self) -> watch::Receiver<Used> {
        self.open.used()
    }

    /// Closes the way, as a drop does, and waits until what was cut is counted. Gives what was used in all.
    pub(crate) async fn close(self) -> Used {
        self.shut();
        if timeout(SETTLING_MAX, self.open.settled()).await.is_err() {
            tracing::warn!(run = %self.open.run, "a request that was cut is not counted yet");
        }
        *self.open.used().borrow()
    }

    fn shut(&self) {
        self.gateway.0.server.runs.remove(self.digest);
        self.open.close();
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.shut();
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("base_url", &self.base_url).finish_non_exhaustive()
    }
}

fn new_token() -> io::Result<Zeroizing<String>> {
    let mut token = Zeroizing::new(String::from(TOKEN_PREFIX));
    for byte in Zeroizing::new(private::random::<32>()?).iter() {
        for digit in [byte >> 4, byte & 15] {
            token.push(char::from_digit(u32::from(digit), 16).unwrap_or_default());
        }
    }
    Ok(token)
}

#[cfg(test)]
mod tests;
