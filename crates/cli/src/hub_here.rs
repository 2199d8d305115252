//! The hub of a home: one that runs already, or one that this process runs and serves.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use runyard::{ActionError, Code};
use runyard_engine::Engine;
use runyard_server::Hub as HubApi;
use runyard_surfaces::http::{Launch, LaunchError};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::configuration::{Configuration, Flags};
use crate::home::Home;
use crate::hub::{Hub, deliver};
use crate::hub_client::HubClient;
use crate::hub_file::{self, HubFile};
use crate::unseen;

/// How often a hub that is just starting or stopping in another process is looked for again.
const LOOKS_MAX: u32 = 200;
/// How long between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// The hub that a command works with.
pub(crate) struct AnyHub {
    client: HubClient,
    here: Option<HubHere>,
}

impl AnyHub {
    /// The hub that runs, or one that goes with this command. Of several commands at a time one has it, and the others use it.
    pub(crate) async fn get(home: &Home, stay: Stay) -> Result<Self, ActionError> {
        let mut looks = 0;
        loop {
            if let Some(client) = HubClient::find(home).await {
                return Ok(AnyHub { client, here: None });
            }
            match HubHere::for_a_command(home, stay).await {
                Ok(here) => return Ok(AnyHub { client: here.client.clone(), here: Some(here) }),
                Err(error) if is_passing(&error) && looks < LOOKS_MAX => {
                    looks += 1;
                    tokio::time::sleep(LOOK).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether it is that of another command, which may end just when it is asked.
    pub(crate) fn is_passing(&self) -> bool {
        self.here.is_none() && self.client.stay() != Stay::UntilStopped
    }

    /// The hub that runs, if one does.
    pub(crate) async fn find(home: &Home) -> Option<Self> {
        HubClient::find(home).await.map(|client| AnyHub { client, here: None })
    }

    /// Talks to it.
    pub(crate) fn client(&self) -> &HubClient {
        &self.client
    }

    /// Whether it is in this process.
    pub(crate) fn is_here(&self) -> bool {
        self.here.is_some()
    }

    /// Says where people read it that nobody goes on with a run: it is not at its end, and this hub goes with the command.
    pub(crate) async fn say_if_left(&self, run: &str) {
        // On a shared store another hub may have it.
        if !self.here.as_ref().is_some_and(|here| here.hub.is_alone()) {
            return;
        }
        let shown = self.client.invoke("run_show", json!({"id": run}), false, None).await;
        let Ok(Ok(shown)) = shown.map(|envelope| envelope.outcome) else { return };
        if let Some("completed" | "failed" | "cancelled") | None = shown["run"]["state"].as_str() {
            return;
        }
        let line = "No hub is running, so nothing goes on with this run: start one with \"runyard up\".";
        let _ = writeln!(std::io::stderr(), "{line}");
    }

    /// Stops it if it goes with this command.
    pub(crate) async fn stop(self) {
        if let Some(here) = self.here {
            here.stop().await;
        }
    }
}

/// Whether another process is just starting, or has not let go of everything yet.
pub(crate) fn is_passing(error: &ActionError) -> bool {
    *error.code() == Code::Conflict || *error.code() == Code::StorageLocked
}

/// How long a hub is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Stay {
    /// Until somebody stops it.
    UntilStopped,
    /// Until no run is left to go on with.
    UntilDone,
    /// As long as a command follows its run.
    WithCommand,
    /// For one call. Runs are left as they are: what it begins it would have to cut off at once.
    ForOneCall,
}

impl Stay {
    pub(crate) const fn until_stopped() -> Self {
        Stay::UntilStopped
    }

    /// Whether it goes on with runs when the command that made them is over.
    pub(crate) const fn is_lasting(self) -> bool {
        matches!(self, Stay::UntilStopped | Stay::UntilDone)
    }
}

/// A hub that is served.
pub(crate) struct HubHere {
    hub: Hub,
    client: HubClient,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    _file: HubFile,
}

impl HubHere {
    /// A hub for a command that found none, on any port: others on this machine can answer its approvals.
    async fn for_a_command(home: &Home, stay: Stay) -> Result<Self, ActionError> {
        let configuration = Configuration::of_data(home)?;
        let listen = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
        let origins = configuration.server().origins.clone();
        let launch = Launch {
            listen,
            allow_plaintext: false,
            known_as: Vec::new(),
            origins,
            token_file: home.token(),
        };
        HubHere::start(home, &configuration, &Flags::default(), launch, stay).await
    }

    /// Starts and serves it. It returns when requests are answered.
    pub(crate) async fn start(
        home: &Home,
        configuration: &Configuration,
        flags: &Flags,
        launch: Launch,
        stay: Stay,
    ) -> Result<Self, ActionError> {
        unseen::become_unseen();
        home.make().map_err(|error| hub_file::cannot("make", home.path(), &error))?;
        let file = HubFile::claim(home)?;
        let opened = launch.open().await.map_err(LaunchError::into_action_error)?;
        let url = opened.url();
        let hub = Hub::start(home, configuration, &url, stay).await?;
        let stop = CancellationToken::new();
        let api = HubApi {
            name: "runyard".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: hub.engine.clone(),
            runtime: hub.runtime.clone(),
            stop: stop.clone(),
        };
        let guard = opened.guard(api.tokens(opened.owner));
        let router = api.router(guard).map_err(|error| LaunchError::Route(error).into_action_error())?;
        let serving = tokio::spawn(opened.serve(router, stop.clone()));
        file.tell(&url, stay, flags);
        let client = HubClient::at(home, &url, stay);
        let client = client.ok_or_else(|| ActionError::internal("the token cannot be read"))?;
        Ok(HubHere { hub, client, stop, serving, _file: file })
    }

    /// Talks to it.
    pub(crate) fn client(&self) -> &HubClient {
        &self.client
    }

    /// What it records with.
    pub(crate) fn engine(&self) -> Engine {
        self.hub.engine.clone()
    }

    /// Stops serving, then everything that runs. What is unfinished is gone on with by the next hub.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        let engine = self.hub.engine.clone();
        self.hub.stop().await;
        let _ = self.serving.await;
        // Only now nothing is recorded any more.
        deliver(&engine).await;
    }
}
