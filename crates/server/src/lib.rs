//! The hub's HTTP: who comes in, event streams, downloads, metrics.
//!
//! Everything that is an action comes from the runtime; here are only the routes that are none, and the tokens of people and
//! runs. It decides nothing about runs and stores nothing.

mod downloads;
mod frames;
mod hub_stream;
mod mcp;
mod metrics;
mod open_files;
mod stream;
mod tokens;
mod visits;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use runyard_engine::Engine;
use runyard_surfaces::http::{Guard, HttpApi, Pages, PlainRoute, RouteError, Runtime, TokenDigest};
use tokio_util::sync::CancellationToken;

pub use open_files::raise_open_files;
pub use stream::STREAMS_MAX;
pub use tokens::HubTokens;

use hub_stream::HubWatch;
use stream::Streams;
use visits::Addresses;

/// A hub, before it is served.
pub struct Hub {
    /// Its name, for the OpenAPI document.
    pub name: String,
    /// Its version, likewise.
    pub version: String,
    /// What it serves.
    pub engine: Engine,
    /// Its actions; the control plane is among them.
    pub runtime: Runtime,
    /// Ends event streams, which would else hold up the end of the server.
    pub stop: CancellationToken,
}

/// What the plain routes share.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) version: String,
    pub(crate) streams: Streams,
    pub(crate) watch: HubWatch,
    pub(crate) addresses: Addresses,
}

impl Hub {
    /// The tokens that let somebody in: the owner's, named ones, and those of live runs.
    pub fn tokens(&self, owner: TokenDigest) -> HubTokens {
        HubTokens::new(owner, self.engine.clone())
    }

    /// All routes, guarded.
    pub fn router(self, guard: Guard) -> Result<Router, RouteError> {
        let Hub { name, version, engine, runtime, stop } = self;
        let mcp = mcp::routes(&name, &version, &runtime, &engine, &stop);
        let (watch, streams) = (HubWatch::new(engine.clone(), stop.clone()), Streams::new(stop));
        let (version_shown, addresses) = (version.clone(), Addresses::default());
        let shared = Arc::new(Shared { engine, version: version_shown, streams, watch, addresses });
        let plain = vec![
            PlainRoute {
                path: "/api/v1/runs/{id}/stream",
                methods: get(stream::stream).with_state(Arc::clone(&shared)),
            },
            PlainRoute {
                path: "/api/v1/runs/{id}/artifacts/{artifact}/content",
                methods: get(downloads::download).with_state(Arc::clone(&shared)),
            },
            PlainRoute {
                path: "/api/v1/stream",
                methods: get(hub_stream::stream).with_state(Arc::clone(&shared)),
            },
            PlainRoute {
                path: "/api/v1/metrics",
                methods: get(metrics::metrics).with_state(Arc::clone(&shared)),
            },
        ];
        let api = HttpApi { name, version, runtime, guard: guard.with_pages(Pages::Hub) };
        let visits = axum::middleware::from_fn_with_state(shared, visits::record);
        api.router_with(plain, |routes| routes.merge(mcp).layer(visits))
    }
}
