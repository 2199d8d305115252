//! How many files and connections the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Enough for every connection that is served, with its files; more is not asked for.
const OPEN_FILES: u64 = 16_384;

/// Lets the process have as many files and connections open as a full server needs, as far as the system allows it without
/// further rights. Many systems begin with 1,024, which a thousand event streams use up.
pub fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(OPEN_FILES, |maximum| maximum.min(OPEN_FILES));
    if current.is_none_or(|current| current >= wanted) {
        return;
    }
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }) {
        tracing::warn!(%error, wanted, "the limit on open files stays as it is");
    }
}
