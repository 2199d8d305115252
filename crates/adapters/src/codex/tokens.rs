//! Which tokens of a thread are a run's own: codex counts a whole thread, and a thread may have been another run's before.
//!
//! What was used before the run is found out once, and kept beside the home of codex, so that it is known when the run's
//! session is opened again.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use runyard_backend::BackendError;
use runyard_domain::RunId;
use runyard_domain::run::{FailureKind, Usage};
use serde::{Deserialize, Serialize};

use super::wire::Tokens;

/// What was used on the thread before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Before {
    /// Something, and how much shows with the first report.
    Unknown,
    /// So much.
    Used { input: u64, output: u64 },
}

impl Before {
    /// Nothing: the thread is the run's own.
    pub(super) const NOTHING: Before = Before::Used { input: 0, output: 0 };

    /// So much was used on the thread when the run began, unless more is known.
    pub(super) fn begins_at(&mut self, total: Tokens) {
        if *self == Before::Unknown {
            *self = Before::Used { input: total.input_tokens, output: total.output_tokens };
        }
    }

    /// What the run itself used by a report: all of the thread, and the last answer alone.
    pub(super) fn own(&mut self, total: Tokens, last: Tokens) -> Usage {
        let (input, output) = match *self {
            Before::Used { input, output } => (input, output),
            Before::Unknown => (
                total.input_tokens.saturating_sub(last.input_tokens),
                total.output_tokens.saturating_sub(last.output_tokens),
            ),
        };
        *self = Before::Used { input, output };
        Usage {
            input_tokens: Some(total.input_tokens.saturating_sub(input)),
            output_tokens: Some(total.output_tokens.saturating_sub(output)),
            cost_usd: None,
        }
    }
}

/// Where a run's [`Before`] is kept.
pub(super) struct Ledger {
    file: PathBuf,
    kept: Before,
}

impl Ledger {
    /// Of a run that begins: on its own thread, or on one that was another run's.
    pub(super) fn begin(parent: &Path, run: RunId, earlier: bool) -> Result<Self, BackendError> {
        let mut ledger = Ledger { file: file(parent, run), kept: Before::NOTHING };
        if earlier {
            ledger.keep(Before::Unknown)?;
        }
        Ok(ledger)
    }

    /// Of a run that goes on. One that kept nothing has its thread for itself; what cannot be read shows with the next report.
    pub(super) fn resume(parent: &Path, run: RunId) -> Self {
        let file = file(parent, run);
        let kept = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or(Before::Unknown),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Before::NOTHING,
            Err(_) => Before::Unknown,
        };
        Ledger { file, kept }
    }

    pub(super) fn kept(&self) -> Before {
        self.kept
    }

    /// Keeps what is known by now, if that is news.
    pub(super) fn keep(&mut self, before: Before) -> Result<(), BackendError> {
        if before == self.kept {
            return Ok(());
        }
        let written = || -> io::Result<()> {
            if let Some(directory) = self.file.parent() {
                fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
            }
            // Removed and made anew: an agent may have put a link in its place.
            match fs::remove_file(&self.file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.file);
            file?.write_all(&serde_json::to_vec(&before)?)
        };
        written().map_err(|error| {
            let message = format!("what the thread used before cannot be kept: {error}");
            BackendError::new(FailureKind::BackendFailed, message)
        })?;
        self.kept = before;
        Ok(())
    }
}

fn file(parent: &Path, run: RunId) -> PathBuf {
    parent.join("used-before").join(format!("{run}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(input_tokens: u64) -> Tokens {
        Tokens { input_tokens, output_tokens: input_tokens / 10 }
    }

    #[test]
    fn on_the_thread_of_an_earlier_run_only_what_this_run_used_counts_also_when_it_is_opened_again() {
        let (home, run) = (tempfile::tempdir().unwrap(), RunId::from_bytes([1; 16]));
        let used = |ledger: &mut Ledger, total, last| {
            let mut before = ledger.kept();
            let usage = before.own(tokens(total), tokens(last));
            ledger.keep(before).unwrap();
            (usage.input_tokens.unwrap(), usage.output_tokens.unwrap())
        };
        let mut first = Ledger::begin(home.path(), run, true).unwrap();
        assert_eq!(
            Ledger::resume(home.path(), run).kept(),
            Before::Unknown,
            "it died before it used anything"
        );
        let mut told = Before::Unknown;
        told.begins_at(tokens(900));
        assert_eq!(told.own(tokens(1000), tokens(100)).input_tokens, Some(100));
        assert_eq!(used(&mut first, 1000, 100), (100, 10));
        assert_eq!(used(&mut first, 1200, 200), (300, 30));
        let mut again = Ledger::resume(home.path(), run);
        assert_eq!(used(&mut again, 1500, 300), (600, 60));
        let other = RunId::from_bytes([2; 16]);
        let mut own = Ledger::begin(home.path(), other, false).unwrap();
        assert_eq!(used(&mut own, 500, 100), (500, 50), "its own thread counts from the start");
        assert_eq!(Ledger::resume(home.path(), other).kept(), Before::NOTHING);
        fs::write(&again.file, "{").unwrap();
        assert_eq!(Ledger::resume(home.path(), run).kept(), Before::Unknown);
    }
}
