//! The running provider: it listens as long as it exists.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    process,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
};

use crate::{
    ProviderError, Recorded,
    http::{Shared, routes},
    requests::RequestLog,
    scenario::Library,
};

/// How a provider is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// A loopback address; port 0 chooses a free one.
    pub listen: SocketAddr,
    /// A directory of more scenarios, `NAME.toml`.
    pub scenarios: Option<PathBuf>,
    /// The only bearer key that is accepted; without it any key is, and none.
    pub bearer: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { listen: (Ipv4Addr::LOCALHOST, 0).into(), scenarios: None, bearer: None }
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
        let Options { listen: address, scenarios, bearer } = options;
        if !address.ip().is_loopback() {
            return Err(ProviderError::NotLoopback { address });
        }
        let mut library = Library::built_in()?;
        if let Some(directory) = &scenarios {
            library.add_directory(directory)?;
        }
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("demo-provider")
            .enable_all()
            .build()
            .map_err(|source| ProviderError::Runtime { source })?;
        // From here on a failure must drop a provider, not a runtime, which may not be dropped where others await.
        let shared = Arc::new(Shared { library, log: RequestLog::new(), bearer, seed: seed() });
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
