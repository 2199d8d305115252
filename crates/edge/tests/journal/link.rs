//! A link whose two directions can be held up. Nothing on it is ever lost.

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::sync::watch;

/// So much is on its way in a direction at most, before its sender waits.
const BYTES_MAX: usize = 64 * 1024;

/// Lets through, or holds up.
#[derive(Clone)]
pub(crate) struct Gates {
    words: watch::Sender<bool>,
    answers: watch::Sender<bool>,
}

impl Gates {
    pub(crate) fn hold_words(&self) {
        self.words.send_replace(false);
    }

    pub(crate) fn hold_answers(&self) {
        self.answers.send_replace(false);
    }

    pub(crate) fn open(&self) {
        self.words.send_replace(true);
        self.answers.send_replace(true);
    }
}

/// The hub's end, the edge's end, and what lies between. To be called in the runtime that dies with the link.
pub(crate) fn link() -> (DuplexStream, DuplexStream, Gates) {
    let (hub, hub_side) = duplex(BYTES_MAX);
    let (edge, edge_side) = duplex(BYTES_MAX);
    let gates = Gates { words: watch::Sender::new(true), answers: watch::Sender::new(true) };
    let (from_hub, to_hub) = split(hub_side);
    let (from_edge, to_edge) = split(edge_side);
    tokio::spawn(carry(from_edge, to_hub, gates.words.subscribe()));
    tokio::spawn(carry(from_hub, to_edge, gates.answers.subscribe()));
    (hub, edge, gates)
}

async fn carry(
    mut from: ReadHalf<DuplexStream>,
    mut to: WriteHalf<DuplexStream>,
    mut gate: watch::Receiver<bool>,
) {
    let mut bytes = vec![0; BYTES_MAX];
    loop {
        let length = from.read(&mut bytes).await.unwrap_or(0);
        if length == 0 || gate.wait_for(|open| *open).await.is_err() {
            return;
        }
        if to.write_all(&bytes[..length]).await.is_err() {
            return;
        }
    }
}
