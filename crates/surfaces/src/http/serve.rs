//! Serving a router on a socket: bounded connections, bounded headers, and an orderly end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::peer::Connection;

/// So many connections are served at once; further ones wait in the socket's queue.
const CONNECTIONS_MAX: usize = 2048;
/// The headers of a request must arrive within this time.
const HEADER_TIME_MAX: Duration = Duration::from_secs(10);
/// The headers of a request may be so large.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// Requests that run when the end is asked for have this long to finish; then they are dropped, which cancels them.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);
/// What is dropped has this long to be gone; only a handler that blocks its thread takes any time at all.
const DROP_TIME_MAX: Duration = Duration::from_secs(1);
/// After an accept error such as too many open files, so long until the next try.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A socket that listens.
#[derive(Debug)]
pub struct Listening {
    listener: TcpListener,
    /// The address, with the port that was really given.
    pub address: SocketAddr,
}

impl Listening {
    /// Listens on an address; port 0 takes any free one.
    pub async fn on(address: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Listening { listener, address })
    }
}

/// Serves until `stop` is cancelled, then lets running requests finish for a short while.
pub async fn serve(listening: Listening, router: Router, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let dropped = CancellationToken::new();
    loop {
        let place = tokio::select! {
            () = stop.cancelled() => break,
            place = Arc::clone(&places).acquire_owned() => place,
        };
        let Ok(place) = place else { break };
        let stream = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listening.listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
        };
        let connection = connection(stream, router.clone(), stop.clone());
        let dropped = dropped.clone();
        tokio::spawn(async move {
            let _place = place;
            tokio::select! {
                () = dropped.cancelled() => {}
                () = connection => {}
            }
        });
    }
    drop(listening);
    let all_gone = || places.acquire_many(CONNECTIONS_MAX as u32);
    if tokio::time::timeout(DRAIN_TIME_MAX, all_gone()).await.is_err() {
        dropped.cancel();
        // Whoever stops after this returns would otherwise stop in the middle of it.
        let _ = tokio::time::timeout(DROP_TIME_MAX, all_gone()).await;
    }
}

async fn connection(stream: TcpStream, router: Router, stop: CancellationToken) {
    // Answers are small and awaited; waiting to fill a packet only delays them.
    let _ = stream.set_nodelay(true);
    let (ends, router) = (Connection::of(&stream).ok(), TowerToHyperService::new(router));
    let answer = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        if let Some(ends) = ends {
            request.extensions_mut().insert(ends);
        }
        router.call(request)
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME_MAX)
        .max_header_size(HEADER_BYTES_MAX)
        .max_buf_size(HEADER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), answer);
    let mut served = std::pin::pin!(served);
    tokio::select! {
        result = served.as_mut() => log(result),
        () = stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            log(served.await);
        }
    }
}

fn log(result: hyper::Result<()>) {
    if let Err(error) = result {
        // A client that goes away in the middle is everyday life.
        tracing::debug!(%error, "a connection ended early");
    }
}
