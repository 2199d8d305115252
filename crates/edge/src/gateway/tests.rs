//! The gateway between two ends that know bytes and nothing else: what they read is what is on the wire.

mod access;
mod budget;
mod chat;
mod closing;
mod failing;
mod harness;
mod messages;
mod passing;
mod permitted;
mod room;
mod sockets;
mod strangers;
mod tls;
