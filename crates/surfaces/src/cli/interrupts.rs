//! Ctrl-C and terminations: whoever works hears of them, and whoever does not take them in is ended.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use runyard_domain::Code;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio_util::sync::CancellationToken;

/// Ctrl-C or SIGTERM, as often as it comes. One that comes before the last was taken in ends the process at once.
#[derive(Clone, Debug)]
pub struct Interrupts(Arc<Mutex<Heard>>);

#[derive(Debug, Default)]
struct Heard {
    next: CancellationToken,
    terminated: bool,
}

impl Interrupts {
    /// Listens from now on.
    ///
    /// A thread of its own does, so that it works also while a handler blocks the executor's only thread.
    pub fn listen() -> Self {
        let interrupts = Interrupts(Arc::default());
        let heard = interrupts.clone();
        // Registered before this returns: whoever sees what comes next may press Ctrl-C.
        if let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) {
            std::thread::spawn(move || {
                for signal in signals.forever() {
                    let next = heard.next();
                    if next.is_cancelled() {
                        std::process::exit(i32::from(Code::Cancelled.row().exit));
                    }
                    heard.heard().terminated |= signal == SIGTERM;
                    next.cancel();
                }
            });
        }
        interrupts
    }

    /// Cancelled by the next one; it is so already where the last was not taken in.
    pub fn next(&self) -> CancellationToken {
        self.heard().next.clone()
    }

    /// The last one is taken in, and whoever asks from now on waits for another.
    pub fn take_in(&self) {
        self.heard().next = CancellationToken::new();
    }

    /// Whether one of them was a SIGTERM: that is meant for the whole command, whatever it takes in.
    pub fn terminated(&self) -> bool {
        self.heard().terminated
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cancelled by the first Ctrl-C or SIGTERM; the second one ends the process at once.
pub fn cancelled_by_signal() -> CancellationToken {
    Interrupts::listen().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_taken_in_leaves_the_next_to_come() {
        let interrupts = Interrupts(Arc::default());
        let first = interrupts.next();
        first.cancel();
        assert!(interrupts.next().is_cancelled(), "it was not taken in");
        interrupts.take_in();
        assert!(!interrupts.next().is_cancelled());
        assert!(first.is_cancelled(), "whoever heard of it still knows");
    }
}
