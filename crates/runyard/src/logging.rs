//! Logs of the process itself, on standard error, every line without secrets.

use runyard_redact::process::RedactedWriter;
use tracing_subscriber::filter::LevelFilter;

/// Sends the process's own log to standard error: from the level `default` on, or what `RUNYARD_LOG` says (`error`,
/// `warn`, `info`, `debug`, `trace`, `off`). At `info` every call leaves a line. Panics go there too, without credentials.
pub fn start_logging(default: &str) {
    let asked = std::env::var("RUNYARD_LOG").ok().and_then(|level| level.parse().ok());
    let level = asked.or_else(|| default.parse().ok()).unwrap_or(LevelFilter::WARN);
    // An application that set its own up before keeps it.
    let _ = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(|| RedactedWriter(std::io::stderr()))
        .with_ansi(false)
        .with_target(false)
        .try_init();
    runyard_actions::log_panics();
}
