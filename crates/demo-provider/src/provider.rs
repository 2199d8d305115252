//! The running provider: it listens as long as it exists.

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    process,
    sync::{Arc, atomic::AtomicU64},
    time::{SystemTime, UNIX_EPOCH},
};

use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
};

use crate::{
    Listed, ProviderError, Recorded,
    flaky::Refused,
    http::{Shared, routes},
    library::Library,
    requests::RequestLog,
};

/// How a provider is started.
#[derive(Clone)]
pub struct Options {
    /// A loopback address; port 0 chooses a free one.
    pub listen: SocketAddr,
    /// A directory of more scenarios, `NAME.toml`.
    pub scenarios: Option<PathBuf>,
    /// The only bearer keys that are accepted; without any, every key is, and none.
    pub keys: Vec<String>,
    /// Which requests are answered.
    pub requests: Requests,
}

/// Which requests are answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Requests {
    /// Those that the real provider would take; any other is refused as it would be.
    #[default]
    Real,
    /// Any that is an object.
    Any,
}

// Without the keys themselves: it may be printed by a test that fails.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("listen", &self.listen)
            .field("scenarios", &self.scenarios)
            .field("keys", &self.keys.len())
            .field("requests", &self.requests)
            .finish()
    }
}

impl Default for Options {
    fn default() -> Self {
        let listen = (Ipv4Addr::LOCALHOST, 0).into();
        Self { listen, scenarios: None, keys: Vec::new(), requests: Requests::default() }
    }
}

/// A running provider. Dropping it closes its port and every connection.
pub struct DemoProvider {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Its own, so that dropping it ends the connections too, and so that a test may block or pause its own clock.
    runtime: Option<Runtime>,
}

impl DemoProvider {
    /// Starts a provider on a free port of the loopback address.
    pub async fn start() -> Result<Self, ProviderError> {
        Self::start_with(Options::default()).await
    }

    /// Starts a provider.
    pub async fn start_with(options: Options) -> Result<Self, ProviderError> {
        let Options { listen: address, scenarios, keys, requests } = options;
        if !address.ip().is_loopback() {
            return Err(ProviderError::NotLoopback { address });
        }
        let library = Library::with(scenarios.as_deref())?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("demo-provider")
            .enable_all()
            .build()
            .map_err(|source| ProviderError::Runtime { source })?;
        // From here on a failure must drop a provider, not a runtime, which may not be dropped where others await.
        let shared = Shared {
            library,
            log: RequestLog::new(),
            keys,
            requests,
            seed: seed(),
            answers: AtomicU64::new(1),
            refused: Refused::default(),
        };
        let shared = Arc::new(shared);
        let mut provider = Self { address, shared, runtime: Some(runtime) };
        provider.serve().await.map_err(|source| ProviderError::Listen { address, source })?;
        Ok(provider)
    }

    async fn serve(&mut self) -> std::io::Result<()> {
        let Some(runtime) = &self.runtime else { return Ok(()) };
        let address = self.address;
        let listener = runtime.spawn(TcpListener::bind(address)).await??;
        self.address = listener.local_addr()?;
        let routes = routes(Arc::clone(&self.shared));
        runtime.spawn(async move { axum::serve(listener, routes).await });
        Ok(())
    }

    /// The base URL of the API, such as `http://127.0.0.1:4000/v1`.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The scenarios that it plays, by name.
    pub fn scenarios(&self) -> Vec<Listed> {
        self.shared.library.list()
    }

    /// The requests so far, oldest first; of very many, the newest.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.log.all()
    }

    /// The first request that matches, among those so far or to come. It waits as long as it takes.
    pub async fn wait_for(&self, matches: impl Fn(&Recorded) -> bool) -> Recorded {
        self.shared.log.wait_for(matches).await
    }
}

impl Drop for DemoProvider {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Agents tell tool calls apart by the id that the model gave, across providers too; and this needs no secrecy.
fn seed() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:x}{:x}", process::id(), now.as_nanos())
}
