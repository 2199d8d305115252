//! How much memory processes take, with what they share counted once among those who share it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// The most that was seen at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Peak {
    pub(crate) kib: u64,
    pub(crate) processes: usize,
}

/// Does the work, and looks meanwhile at all processes below this one.
pub(crate) fn during<T>(root: u32, work: impl FnOnce() -> T) -> (T, Peak) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let mut peak = Peak::default();
            while !over.load(Ordering::Relaxed) {
                let seen = below(root);
                if seen.kib > peak.kib {
                    peak = seen;
                }
                std::thread::sleep(LOOK);
            }
            peak
        });
        let done = work();
        over.store(true, Ordering::Relaxed);
        (done, looking.join().unwrap())
    })
}

/// All that is below this process now.
fn below(root: u32) -> Peak {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    for pid in all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        if let Some(parent) = parent_of(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let (mut peak, mut left) = (Peak::default(), vec![root]);
    while let Some(next) = left.pop() {
        for child in children.get(&next).into_iter().flatten() {
            left.push(*child);
            if let Some(kib) = of(*child) {
                peak.kib += kib;
                peak.processes += 1;
            }
        }
    }
    peak
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in brackets and may hold anything.
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// The proportional set size of a process, unless it is gone.
pub(crate) fn of(pid: u32) -> Option<u64> {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}
