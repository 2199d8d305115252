//! A sandbox for what a test of custody starts.

use std::path::Path;

use runyard_domain::{ExecutionPolicy, Network};
use runyard_edge::sandbox::{Confinement, Needs, Places, Sandboxes, System};

/// The socket of a gateway, in the checkout.
pub(crate) const SOCKET: &str = "gateway.sock";
/// The port of the loopback by which it is called.
const PORT: u16 = 8123;

/// One in which this directory is the checkout. Its network is cut; where there is a gateway's socket in it, there is a way to
/// that. Bubblewrap must be there and work.
pub(crate) async fn confinement(checkout: &Path) -> Confinement {
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned());
    let sandboxes = Sandboxes::look(&path, System::look(None, Path::new("/does/not/exist"))).await;
    let places =
        Places { checkout: checkout.to_owned(), homes: Vec::new(), readable: Vec::new(), hidden: Vec::new() };
    let policy = ExecutionPolicy { network: Network::Deny, ..ExecutionPolicy::default() };
    let socket = checkout.join(SOCKET);
    let needs = if socket.exists() { Needs::Gateway { socket, port: PORT } } else { Needs::Nothing };
    let in_force = sandboxes.for_run(&policy, needs, places);
    assert!(matches!(in_force.confinement, Confinement::Within(_)), "{sandboxes}");
    in_force.confinement
}
