//! What Runyard costs around codex: its lines to batches and to durable events, one turn beside driving it directly, and many at
//! once.
//!
//! `cargo bench -p runyard-cli --bench codex -- [quick] [lines] [durable] [turn] [many]`; without a name all of them. The first two
//! play codex's process from memory; `turn` and `many` need the real program, as the tests do. What each figure is compared with is
//! measured in the same run, in turns with it.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark that cannot go on has nothing to measure"
)]

#[path = "../tests/support/mod.rs"]
mod support;

#[path = "codex_parts/direct.rs"]
mod direct;
#[path = "codex_parts/durable.rs"]
mod durable;
#[path = "codex_parts/lines.rs"]
mod lines;
#[path = "codex_parts/many.rs"]
mod many;
#[path = "codex_parts/memory.rs"]
mod memory;
#[path = "codex_parts/played.rs"]
mod played;
#[path = "codex_parts/speech.rs"]
mod speech;
#[path = "codex_parts/through_hub.rs"]
mod through_hub;
#[path = "codex_parts/turn.rs"]
mod turn;

use std::time::Duration;

/// The allocator of the `runyard` binary, so that what is measured in this process has it too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What is asked for on the command line.
struct Asked {
    names: Vec<String>,
    quick: bool,
}

impl Asked {
    fn of_process() -> Self {
        // Cargo says `--bench`.
        let names: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect();
        let quick = names.iter().any(|name| name == "quick");
        Asked { names: names.into_iter().filter(|name| name != "quick").collect(), quick }
    }

    fn wants(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|asked| asked == name)
    }

    /// A size, or the small one where it should be quick.
    fn size(&self, usual: usize, quick: usize) -> usize {
        if self.quick { quick } else { usual }
    }
}

/// One thing that is measured.
type Part = fn(&Asked);

fn main() {
    let asked = Asked::of_process();
    let parts: [(&str, Part); 4] = [
        ("lines", lines::to_batches),
        ("durable", durable::to_events),
        ("turn", turn::overhead),
        ("many", many::at_once),
    ];
    for (name, part) in parts {
        if asked.wants(name) {
            let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
            println!("\n{name} (load average: {})", load.trim());
            part(&asked);
        }
    }
}

/// The median of some times; the lower one of two.
fn median(times: impl IntoIterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.into_iter().collect();
    times.sort_unstable();
    times[(times.len() - 1) / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Megabytes a second.
fn speed(bytes: usize, time: Duration) -> f64 {
    bytes as f64 / time.as_secs_f64() / 1e6
}
