//! Numbers about the hub, in the text form that Prometheus reads.

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use runyard_control::plain;
use runyard_surfaces::http::{Actor, Visit, refusal};

use crate::Shared;

/// The form's own media type.
const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// `GET /api/v1/metrics`.
pub(crate) async fn metrics(
    State(shared): State<Arc<Shared>>,
    Extension(actor): Extension<Arc<Actor>>,
    Extension(visit): Extension<Visit>,
) -> Response {
    match plain::look_at_all(&shared.engine, &actor, "metrics").await {
        Ok(()) => {
            ([(header::CONTENT_TYPE, MEDIA_TYPE)], text(&figures(&shared), &shared.version)).into_response()
        }
        Err(error) => refusal(visit.surface(), None, error),
    }
}

/// One number.
struct Figure {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: u64,
}

fn figures(shared: &Shared) -> Vec<Figure> {
    let engine = shared.engine.figures();
    let edges = shared.engine.edges().iter().filter(|edge| edge.connected).count() as u64;
    let gauge = |name, help, value| Figure { name, kind: "gauge", help, value };
    let counter = |name, help, value| Figure { name, kind: "counter", help, value };
    let mut figures = vec![
        gauge("runyard_runs_active", "Runs with a live session.", engine.runs_active),
        gauge("runyard_runs_waiting", "Runs that wait for a place.", engine.runs_waiting),
        counter(
            "runyard_batches_recorded_total",
            "Batches recorded since the start.",
            engine.batches_recorded,
        ),
        gauge("runyard_edges_connected", "Edges that can be reached.", edges),
        gauge("runyard_event_streams", "Event streams that are open.", shared.streams.count()),
    ];
    let resident = resident_bytes();
    figures.extend(
        resident.map(|bytes| {
            gauge("process_resident_memory_bytes", "Memory that the process has in use.", bytes)
        }),
    );
    figures
}

fn text(figures: &[Figure], version: &str) -> String {
    let version = version.replace(['\\', '"', '\n'], "");
    let mut text = format!(
        "# HELP runyard_build_info The version that runs.\n# TYPE runyard_build_info gauge\n\
         runyard_build_info{{version=\"{version}\"}} 1\n"
    );
    for Figure { name, kind, help, value } in figures {
        // Writing into memory cannot fail.
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
    }
    text
}

/// The process's resident memory, where the system tells it.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_as_prometheus_reads_them() {
        let figures = [Figure { name: "runyard_x_total", kind: "counter", help: "How many.", value: 7 }];
        assert_eq!(
            text(&figures, "1.2\"\n"),
            "# HELP runyard_build_info The version that runs.\n\
             # TYPE runyard_build_info gauge\n\
             runyard_build_info{version=\"1.2\"} 1\n\
             # HELP runyard_x_total How many.\n\
             # TYPE runyard_x_total counter\n\
             runyard_x_total 7\n"
        );
    }

    #[test]
    fn the_system_tells_how_much_memory_is_in_use() {
        assert!(resident_bytes().is_some_and(|bytes| bytes > 1024 * 1024));
    }
}
