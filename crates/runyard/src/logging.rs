//! Logs of the process itself, on standard error, every line without secrets.

use runyard_redact::process::RedactedWriter;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Sends the process's own log to standard error: from the level `default` on, or what `RUNYARD_LOG` says (`error`,
/// `warn`, `info`, `debug`, `trace`, `off`). At `info` every call leaves a line. Panics go there too, without credentials.
pub fn start_logging(default: &str) {
    let asked = std::env::var("RUNYARD_LOG").ok().and_then(|level| level.parse().ok());
    let level = asked.or_else(|| default.parse().ok()).unwrap_or(LevelFilter::WARN);
    // The protocol's library says at `info` what only concerns itself.
    let library = if level > LevelFilter::INFO { level } else { level.min(LevelFilter::WARN) };
    let levels = Targets::new().with_default(level).with_target("rmcp", library);
    let written = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(|| RedactedWriter(std::io::stderr()))
        .with_ansi(false)
        .with_target(false)
        .finish();
    // An application that set its own up before keeps it.
    let _ = written.with(levels).try_init();
    runyard_actions::log_panics();
}
