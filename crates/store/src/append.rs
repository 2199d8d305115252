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
    let mut unknown = None;
    for attempt in 0..ATTEMPTS_MAX {
        if attempt > 0 {
            tokio::time::sleep(FIRST_WAIT * 2_u32.pow(attempt - 1)).await;
        }
        match log.append(make()).await {
            Err(error @ StorageError::CommitUnknown { .. }) => unknown = Some(error),
            // The database cannot be asked, so what was unknown stays so.
            Err(StorageError::Io { .. }) if unknown.is_some() => {}
            known => return known,
        }
    }
    Err(unknown.unwrap_or(StorageError::Poisoned))
}
