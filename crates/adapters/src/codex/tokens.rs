//! Which tokens of a thread are a run's own: codex counts a whole thread, and a thread may have been another run's before.
//!
//! What was used before the run is found out once, and kept among the run's notes, where its agent cannot write, so that it is
//! known when the run's session is opened again.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use runyard_backend::BackendError;
use runyard_domain::run::{FailureKind, Usage};
use rustix::fs::{Mode, OFlags, open};
use serde::{Deserialize, Serialize};

use super::wire::Tokens;

/// Its name among the notes.
const FILE: &str = "used-before.json";
/// How much of it is read, in bytes.
const FILE_BYTES_MAX: u64 = 4 * 1024;

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
    pub(super) fn begin(notes: &Path, earlier: bool) -> Result<Self, BackendError> {
        let mut ledger = Ledger { file: notes.join(FILE), kept: Before::NOTHING };
        if earlier {
            ledger.keep(Before::Unknown)?;
        }
        Ok(ledger)
    }

    /// Of a run that goes on. One that kept nothing has its thread for itself; what cannot be read shows with the next report.
    pub(super) fn resume(notes: &Path) -> Self {
        let file = notes.join(FILE);
        let kept = match read(&file) {
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
        write(&self.file, before).map_err(|error| {
            let message = format!("what the thread used before cannot be kept: {error}");
            BackendError::new(FailureKind::BackendFailed, message)
        })?;
        self.kept = before;
        Ok(())
    }
}

/// Reads the file, if it is one. Where nothing confines an agent it may put there what never ends, or never begins.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Puts a whole new file in the place of whatever is there.
fn write(path: &Path, before: Before) -> io::Result<()> {
    if let Some(notes) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(notes)?;
    }
    let draft = path.with_extension("draft");
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    file.write_all(&serde_json::to_vec(&before)?)?;
    fs::rename(&draft, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    fn tokens(input_tokens: u64) -> Tokens {
        Tokens { input_tokens, output_tokens: input_tokens / 10 }
    }

    #[test]
    fn on_the_thread_of_an_earlier_run_only_what_this_run_used_counts_also_when_it_is_opened_again() {
        let place = tempfile::tempdir().unwrap();
        let (notes, other) = (place.path().join("notes"), place.path().join("other"));
        let used = |ledger: &mut Ledger, total, last| {
            let mut before = ledger.kept();
            let usage = before.own(tokens(total), tokens(last));
            ledger.keep(before).unwrap();
            (usage.input_tokens.unwrap(), usage.output_tokens.unwrap())
        };
        let mut first = Ledger::begin(&notes, true).unwrap();
        assert_eq!(Ledger::resume(&notes).kept(), Before::Unknown, "it died before it used anything");
        let mut told = Before::Unknown;
        told.begins_at(tokens(900));
        assert_eq!(told.own(tokens(1000), tokens(100)).input_tokens, Some(100));
        assert_eq!(used(&mut first, 1000, 100), (100, 10));
        assert_eq!(used(&mut first, 1200, 200), (300, 30));
        let mut again = Ledger::resume(&notes);
        assert_eq!(used(&mut again, 1500, 300), (600, 60));
        let mut own = Ledger::begin(&other, false).unwrap();
        assert_eq!(used(&mut own, 500, 100), (500, 50), "its own thread counts from the start");
        assert_eq!(Ledger::resume(&other).kept(), Before::NOTHING);
        fs::write(&again.file, "{").unwrap();
        assert_eq!(Ledger::resume(&notes).kept(), Before::Unknown);
    }

    #[test]
    fn j06_what_is_in_the_place_of_the_file_neither_blocks_nor_leads_elsewhere() {
        let place = tempfile::tempdir().unwrap();
        let (file, outside) = (place.path().join(FILE), place.path().join("outside"));
        let pipe = |at: &Path| mknodat(CWD, at, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let known = Before::Used { input: 7, output: 1 };
        let mine = serde_json::to_string(&known).unwrap();
        let plants: [&dyn Fn(&Path); 3] = [&pipe, &|at| symlink("/dev/zero", at).unwrap(), &|at| {
            fs::write(&outside, &mine).unwrap();
            symlink(&outside, at).unwrap();
        }];
        for plant in plants {
            plant(&file);
            plant(&file.with_extension("draft"));
            let mut ledger = Ledger::resume(place.path());
            assert_eq!(ledger.kept(), Before::Unknown, "it is not read");
            ledger.keep(Before::NOTHING).unwrap();
            assert!(fs::symlink_metadata(&file).unwrap().is_file());
            assert_eq!(Ledger::resume(place.path()).kept(), Before::NOTHING);
            fs::remove_file(&file).unwrap();
        }
        assert_eq!(fs::read_to_string(&outside).unwrap(), mine, "nothing is written through a link");
        // Only the end would make it valid, and that is not looked at.
        let long = format!("{}{mine}", " ".repeat(1 << 20));
        fs::write(&file, long).unwrap();
        assert_eq!(Ledger::resume(place.path()).kept(), Before::Unknown);
    }
}
