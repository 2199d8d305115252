//! A loopback port that belongs to one test for as long as it runs, also while its server is down.

use std::fs::{File, OpenOptions};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Below what systems give to outgoing connections, so that none takes the port of a server that is down.
const FIRST: u16 = 20_000;
const LAST: u16 = 29_999;
/// The distance between two tries; it has no factor in common with the number of ports.
const STRIDE: usize = 7_919;

/// A port and the lock file that reserves it.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) number: u16,
    _lock: File,
}

impl Port {
    /// Reserves a port that nobody listens on. `folder` holds one lock file per port.
    pub(crate) fn reserve(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let ports: Vec<u16> = (FIRST..=LAST).collect();
        let start = usize::try_from(std::process::id())?;
        for attempt in 0..ports.len() {
            let number = ports[start.wrapping_add(attempt.wrapping_mul(STRIDE)) % ports.len()];
            let path = folder.join(format!("{number}.lock"));
            let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
            let lock = lock.with_context(|| format!("cannot open {}", path.display()))?;
            if lock.try_lock().is_ok() && TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok() {
                return Ok(Self { number, _lock: lock });
            }
        }
        bail!("all ports from {FIRST} to {LAST} are taken")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, since two would look at the same ports at the same time.
    #[test]
    fn a_port_is_given_to_one_test_and_never_while_someone_listens_on_it() {
        let folder = tempfile::tempdir().unwrap();
        let first = Port::reserve(folder.path()).unwrap();
        let second = Port::reserve(folder.path()).unwrap();
        assert_ne!(first.number, second.number);
        let number = first.number;
        drop(first);
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, number)).unwrap();
        assert_ne!(Port::reserve(folder.path()).unwrap().number, number);
    }
}
