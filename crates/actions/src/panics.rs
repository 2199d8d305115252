//! Panics of the process, which would otherwise go raw to standard error.

use runyard_redact::process;

/// Sends panics to the process's log without credentials, instead of raw to standard error.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let said = panic.payload_as_str().unwrap_or("a panic without a message");
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "panicked: {}", process::text(said));
    }));
}
