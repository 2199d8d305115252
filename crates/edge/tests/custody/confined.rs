//! A sandbox for what a test of custody starts.

use std::path::Path;

use runyard_domain::{ExecutionPolicy, Network};
use runyard_edge::sandbox::{Confinement, Needs, Places, Sandboxes, System};

/// One in which this directory is the checkout. Bubblewrap must be there and work.
pub(crate) async fn confinement(checkout: &Path) -> Confinement {
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned());
    let sandboxes = Sandboxes::look(&path, System::look(None, Path::new("/does/not/exist"))).await;
    let places =
        Places { checkout: checkout.to_owned(), homes: Vec::new(), readable: Vec::new(), hidden: Vec::new() };
    let policy = ExecutionPolicy { network: Network::Deny, ..ExecutionPolicy::default() };
    let in_force = sandboxes.for_run(&policy, Needs::Nothing, places);
    assert!(matches!(in_force.confinement, Confinement::Within(_)), "{sandboxes}");
    in_force.confinement
}
