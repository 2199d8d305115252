//! Who owns a database: a locked file beside it, which frees itself when its owner dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use runyard_domain::Timestamp;
use runyard_store::StorageError;
use serde::{Deserialize, Serialize};

use crate::fault::translate_io;
use crate::paths::{FILE_MODE, Paths};

const DOING: &str = "taking possession of the database";
/// An owner that has just taken the lock writes its name right away; whoever comes in between looks again.
const NAME_LOOKS_MAX: u32 = 20;
const NAME_LOOK_WAIT: Duration = Duration::from_millis(5);
/// The longest name that is read.
const NAME_BYTES_MAX: u64 = 4096;

/// What the file says.
#[derive(Serialize, Deserialize)]
struct Owner {
    owner: String,
    pid: u32,
    host: String,
    since: Timestamp,
}

/// The right to write to a database, held until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Possession {
    _file: File,
}

impl Possession {
    /// Takes the database, or says who has it.
    pub(crate) fn take(paths: &Paths, owner: &str, since: Timestamp) -> Result<Self, StorageError> {
        let path = paths.lock();
        let fault = |error| translate_io(DOING, &format!("the folder of {}", paths.name), error);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(FILE_MODE)
            .open(&path)
            .map_err(fault)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StorageError::Locked { owner: name_of(&mut file) }),
            Err(TryLockError::Error(error)) => return Err(fault(error)),
        }
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let says = Owner { owner: owner.to_owned(), pid: std::process::id(), host, since };
        let text = serde_json::to_vec(&says).unwrap_or_default();
        // The name is only for people; what counts is the lock.
        file.set_len(0).and_then(|()| file.write_all(&text)).map_err(fault)?;
        Ok(Possession { _file: file })
    }
}

fn name_of(file: &mut File) -> String {
    for _ in 0..NAME_LOOKS_MAX {
        let mut text = String::new();
        let read = file
            .seek(SeekFrom::Start(0))
            .and_then(|_| Read::by_ref(file).take(NAME_BYTES_MAX).read_to_string(&mut text));
        if read.is_ok()
            && let Ok(Owner { owner, pid, host, since }) = serde_json::from_str(&text)
        {
            return format!("{owner} (pid {pid} on {host}, since {since})");
        }
        std::thread::sleep(NAME_LOOK_WAIT);
    }
    "another process".to_owned()
}
