//! Making a change whose outcome was not known, until it is.

use std::time::Duration;

use crate::{Appended, Change, EventLog, StorageError};

/// How often an unknown outcome is asked for again.
const ATTEMPTS_MAX: u32 = 8;
/// The first wait between two attempts; it doubles.
const FIRST_WAIT: Duration = Duration::from_millis(20);

/// Appends, and when the outcome is unknown repeats the same change until it is known: made once, or not at all.
///
/// `make` gives the same change each time, with the same append id and the same events.
pub async fn append_until_known<L: EventLog + ?Sized>(
    log: &L,
    mut make: impl FnMut() -> Change,
) -> Result<Appended, StorageError> {
    until_known(|| log.append(make())).await
}

/// Attempts it, and when the outcome is unknown attempts it again until it is known.
pub(crate) async fn until_known<T, F>(mut attempt: impl FnMut() -> F) -> Result<T, StorageError>
where
    F: Future<Output = Result<T, StorageError>>,
{
    let unknown = match attempt().await {
        Err(error @ StorageError::CommitUnknown(..)) => error,
        known => return known,
    };
    let mut wait = FIRST_WAIT;
    for _ in 0..ATTEMPTS_MAX {
        tokio::time::sleep(wait).await;
        wait *= 2;
        match attempt().await {
            Err(error) if !is_an_answer(&error) => {}
            known => return known,
        }
    }
    Err(unknown)
}

/// Whether the log was asked and has answered. Where it could not be, what was unknown stays so.
fn is_an_answer(error: &StorageError) -> bool {
    match error {
        StorageError::VersionConflict { .. }
        | StorageError::StaleGeneration { .. }
        | StorageError::AlreadyExists(..)
        | StorageError::NotFound(..)
        | StorageError::Refused { .. }
        | StorageError::Validation(..) => true,
        StorageError::CommitUnknown(..)
        | StorageError::Io(..)
        | StorageError::DiskFull { .. }
        | StorageError::ReadOnly { .. }
        | StorageError::Corrupt { .. }
        | StorageError::Serialization(..)
        | StorageError::Locked { .. }
        | StorageError::NewerSchema { .. }
        | StorageError::Poisoned => false,
    }
}
