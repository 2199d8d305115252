//! Logs of the process itself, on standard error.

use tracing_subscriber::filter::LevelFilter;

/// Sends the process's own log to standard error: warnings and errors, or what `RUNYARD_LOG` says (`error`, `warn`,
/// `info`, `debug`, `trace`, `off`). Panics go there too, without credentials.
pub fn start_logging() {
    let level =
        std::env::var("RUNYARD_LOG").ok().and_then(|level| level.parse().ok()).unwrap_or(LevelFilter::WARN);
    // An application that set its own up before keeps it.
    let _ = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .try_init();
    runyard_actions::log_panics();
}
