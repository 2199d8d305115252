//! Keeping what a hub has in memory, the keys to model providers among it, out of core files and from other processes of its user.
//!
//! It is no defence against root, nor against who may read the secrets' files anyway, as an agent without a sandbox may.

use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};

/// Makes this process one that leaves no core file and that no other process of its user can look into or trace.
///
/// The limit is inherited: an agent that was given a key leaves no core file with it either, unless it raises the limit again.
/// The rest is undone by executing another program, so what is started here is as it would be otherwise. The process itself still
/// has its own `/proc/self`.
pub(crate) fn become_unseen() {
    // The limit alone does not hold where core files are handed to a program, as most systems do it.
    let limited = setrlimit(Resource::Core, Rlimit { current: Some(0), ..getrlimit(Resource::Core) });
    let hidden = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    if let Err(error) = limited.and(hidden) {
        tracing::warn!(%error, "a core file of this process could hold secrets");
    }
}
