//! Connections to providers: one for each request, with or without TLS, and a limit on every wait.
//!
//! Certificates are always verified. No proxy is used and no redirect followed: the key goes where the base URL says, or nowhere.
//! Nothing is tried again here, and no connection is kept.

mod address;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_ENCODING, HeaderMap};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

pub use address::{Address, KEY_BYTES_MAX, Unusable, is_key};

/// So many addresses of a host are tried, one after the other.
const ADDRESSES_MAX: usize = 4;
/// The head of an answer may be so large.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// How long a provider may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A connection to one address, and TLS on it.
    pub connect: Duration,
    /// From then to the head of the answer.
    pub head: Duration,
    /// Between two pieces of the answer.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connect: Duration::from_secs(10),
            head: Duration::from_secs(360),
            idle: Duration::from_secs(360),
        }
    }
}

/// Who vouches for providers.
#[derive(Clone, Debug)]
pub enum Roots {
    /// Whom the system trusts.
    System,
    /// These alone.
    These(RootCertStore),
}

/// Why a provider gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// No connection.
    #[error("provider unreachable: {}", .0.kind())]
    Connect(#[source] io::Error),
    /// No connection in time.
    #[error("provider unreachable: no connection in time")]
    ConnectTime,
    /// No TLS, or a certificate that nobody vouches for.
    #[error("provider unreachable: no TLS with a certificate that is trusted here")]
    Tls(#[source] io::Error),
    /// What came was no HTTP, or nothing came.
    #[error("provider unreachable: it gave no HTTP answer")]
    Http(#[source] hyper::Error),
    /// No head of an answer in time.
    #[error("provider unreachable: no answer in time")]
    HeadTime,
    /// The answer is encoded, or cannot be passed on.
    #[error("provider unreachable: its answer is encoded, or none that can be passed on")]
    Unusable,
}

impl Failed {
    /// Whether something did not come in time.
    pub fn is_late(&self) -> bool {
        matches!(self, Failed::ConnectTime | Failed::HeadTime)
    }

    /// What a gateway says for it.
    pub fn status(&self) -> StatusCode {
        if self.is_late() { StatusCode::GATEWAY_TIMEOUT } else { StatusCode::BAD_GATEWAY }
    }
}

/// What bytes go over.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// Asks providers. One serves any number of them.
pub struct Client {
    roots: Roots,
    /// Made when it is first needed: reading what the system trusts takes a while.
    tls: OnceCell<TlsConnector>,
}

/// An answer whose body is still to come. Dropping it ends the connection.
#[derive(Debug)]
pub struct Answer {
    /// Its head, and its body piece by piece.
    pub response: Response<Incoming>,
    /// What has to be held for as long as the body is read.
    pub connection: Connection,
}

/// The task that moves a connection's bytes. Dropping it ends the connection.
#[derive(Debug)]
pub struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Client {
    /// A client that trusts these.
    pub fn new(roots: Roots) -> Self {
        Client { roots, tls: OnceCell::new() }
    }

    /// Sends a request and waits for the head of its answer.
    ///
    /// # Errors
    /// Where there is no connection, or no head of an answer in time.
    pub async fn send(
        &self,
        limits: &Limits,
        address: &Address,
        request: Request<Full<Bytes>>,
    ) -> Result<Answer, Failed> {
        let io = self.connect(limits, address).await?;
        let mut builder = hyper::client::conn::http1::Builder::new();
        builder.max_buf_size(HEAD_BYTES_MAX);
        let (mut sender, connection) = builder.handshake(TokioIo::new(io)).await.map_err(Failed::Http)?;
        let connection = Connection(tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to a provider ended early");
            }
        }));
        let response = timeout(limits.head, sender.send_request(request)).await;
        let response = response.map_err(|_| Failed::HeadTime)?.map_err(Failed::Http)?;
        Ok(Answer { response, connection })
    }

    async fn connect(&self, limits: &Limits, address: &Address) -> Result<Box<dyn Io>, Failed> {
        let Address { host, port, secure, .. } = address;
        let found = timeout(limits.connect, lookup_host((host.as_str(), *port))).await;
        let found = found.map_err(|_| Failed::ConnectTime)?.map_err(Failed::Connect)?;
        let mut failed = Failed::Connect(io::ErrorKind::NotFound.into());
        for address in found.take(ADDRESSES_MAX) {
            match timeout(limits.connect, TcpStream::connect(address)).await {
                Err(_) => failed = Failed::ConnectTime,
                Ok(Err(error)) => failed = Failed::Connect(error),
                Ok(Ok(stream)) => {
                    // Requests are whole; waiting to fill a packet only delays them.
                    let _ = stream.set_nodelay(true);
                    return if *secure {
                        self.secured(limits, host, stream).await
                    } else {
                        Ok(Box::new(stream))
                    };
                }
            }
        }
        Err(failed)
    }

    async fn secured(&self, limits: &Limits, host: &str, stream: TcpStream) -> Result<Box<dyn Io>, Failed> {
        let refused = |error| Failed::Tls(io::Error::new(io::ErrorKind::InvalidInput, error));
        let name = ServerName::try_from(host.to_owned()).map_err(refused)?;
        let connector =
            self.tls.get_or_try_init(|| connector(self.roots.clone())).await.map_err(Failed::Tls)?;
        let secured = timeout(limits.connect, connector.connect(name, stream)).await;
        Ok(Box::new(secured.map_err(|_| Failed::ConnectTime)?.map_err(Failed::Tls)?))
    }
}

async fn connector(roots: Roots) -> io::Result<TlsConnector> {
    let roots = match roots {
        Roots::System => tokio::task::spawn_blocking(of_the_system).await.map_err(io::Error::other)?,
        Roots::These(roots) => roots,
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Whether what comes back is encoded, so that it cannot be read.
pub fn is_encoded(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).iter().any(|encoding| encoding.as_bytes() != b"identity")
}

/// What cannot be read there is left out: a provider that needs it is then not trusted.
fn of_the_system() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let loaded = rustls_native_certs::load_native_certs();
    for error in &loaded.errors {
        tracing::warn!(%error, "a certificate of the system cannot be read");
    }
    roots.add_parsable_certificates(loaded.certs);
    roots
}
