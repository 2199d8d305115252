//! Where the things of a run are: one directory per run in the edge's home, and one per session for each backend profile.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use runyard_backend::failpoint;
use runyard_checkout::discard;
use runyard_domain::{RunId, SessionId};
use runyard_store::{Clock, SystemClock};
use tokio::time::{Instant, sleep};

use crate::owner::{self, Gone, Owner};
use crate::{private, usage};

/// How long a session waits for a directory that is being collected.
const HELD_WITHIN: Duration = Duration::from_secs(60);
/// The wait between two looks at it.
const PAUSE: Duration = Duration::from_millis(20);

/// The directories of one run. The checkout outlives the run, and so does what is needed to take back what it applied; the rest
/// goes with it.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    directory: PathBuf,
}

impl Places {
    pub(crate) fn of(home: &Path, run: RunId) -> Self {
        Places { directory: home.join("runs").join(run.to_string()) }
    }

    /// What a backend keeps of a session's conversation, apart for each profile.
    pub(crate) fn of_session(home: &Path, session: SessionId, profile: &str) -> PathBuf {
        // A profile's name is a person's choice; its directory is one plain name, and another for another profile.
        let mut name = String::new();
        for byte in profile.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
                other => name.push_str(&format!("%{other:02x}")),
            }
        }
        home.join("sessions").join(session.to_string()).join(name)
    }

    /// All of it.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The run's copy of its workspace.
    pub(crate) fn checkout(&self) -> PathBuf {
        self.directory.join("checkout")
    }

    /// What the checkout began as. It lies where no agent writes.
    pub(crate) fn base(&self) -> PathBuf {
        self.directory.join("base")
    }

    /// What applying its changes needs to be finished or taken back.
    pub(crate) fn applied(&self) -> PathBuf {
        self.directory.join("applied")
    }

    /// What its processes take for the user's home.
    pub(crate) fn home(&self) -> PathBuf {
        self.directory.join("home")
    }

    /// Where its processes put what is temporary.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.home().join("tmp")
    }

    /// Held as long as a process of the run is left. It lies where no agent writes.
    pub(crate) fn lock(&self) -> PathBuf {
        self.directory.join("custody.lock")
    }

    /// What an adapter keeps of the run for itself. It lies where no agent writes.
    pub(crate) fn notes(&self) -> PathBuf {
        self.directory.join("notes")
    }

    /// Where its sandbox finds the gateway.
    pub(crate) fn gateway(&self) -> PathBuf {
        self.directory.join("gateway.sock")
    }

    /// Whose it is.
    pub(crate) fn owner(&self) -> io::Result<Option<Owner>> {
        owner::read(&self.owner_file())
    }

    fn owner_file(&self) -> PathBuf {
        self.directory.join("owner.json")
    }

    /// That its checkout was collected, where it was.
    pub(crate) fn gone(&self) -> io::Result<Option<Gone>> {
        owner::read(&self.gone_file())
    }

    pub(crate) fn gone_file(&self) -> PathBuf {
        self.directory.join("collected.json")
    }

    /// Makes what a session needs, apart from the checkout.
    pub(crate) fn make(&self) -> io::Result<()> {
        failpoint::reach("places.make");
        private::make_directory(&self.directory)?;
        private::make_directory(&self.home())?;
        private::make_directory(&self.notes())?;
        private::make_directory(&self.temporary())?;
        failpoint::reach("places.made");
        Ok(())
    }

    /// Writes down whose it is, where that is not there yet.
    pub(crate) fn own(&self, owner: &Owner) -> io::Result<()> {
        match self.owner()? {
            Some(_) => Ok(()),
            None => owner::write(&self.owner_file(), owner),
        }
    }

    /// Holds it for as long as the file is open, together with other sessions. Waits a while for who has it alone.
    pub(crate) async fn held(&self) -> io::Result<File> {
        let directory = File::open(&self.directory)?;
        let deadline = Instant::now() + HELD_WITHIN;
        loop {
            match directory.try_lock_shared() {
                Ok(()) => return Ok(directory),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => sleep(PAUSE).await,
                Err(TryLockError::WouldBlock) => return Err(ErrorKind::ResourceBusy.into()),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// Has it alone for as long as the files are open; none where a session holds it or a process of the run is left.
    pub(crate) fn alone(&self) -> io::Result<Option<Vec<File>>> {
        let mut alone = Vec::new();
        for path in [self.directory.clone(), self.lock()] {
            let file = match File::open(path) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                file => file?,
            };
            match file.try_lock() {
                Ok(()) => alone.push(file),
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(Some(alone))
    }

    /// Writes down that the run is over, and how much of the disk it takes.
    pub(crate) fn ended(&self) -> io::Result<()> {
        let Some(owner) = self.owner()? else { return Ok(()) };
        let ended_at = owner.ended_at.or_else(|| Some(SystemClock.now()));
        let bytes = Some(usage::size_of_directory(&self.directory)?);
        owner::write(&self.owner_file(), &Owner { ended_at, bytes, ..owner })
    }

    /// Removes what a run that is over no longer needs. The checkout stays for review, and what was applied for taking it back.
    pub(crate) fn tidy(&self) -> io::Result<()> {
        discard(&self.home())?;
        discard(&self.notes())?;
        for draft in [self.checkout(), self.base()] {
            discard(&draft.with_extension("draft"))?;
        }
        absent(fs::remove_file(self.lock()))?;
        // What works on no files has an empty one.
        if !self.base().exists() {
            let _ = fs::remove_dir(self.checkout());
        }
        if [self.checkout(), self.applied(), self.gone_file()].iter().any(|path| path.exists()) {
            return self.ended();
        }
        absent(fs::remove_file(self.owner_file()))?;
        match fs::remove_dir(&self.directory) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
            removed => absent(removed),
        }
    }
}

fn absent(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b13_two_profiles_never_share_a_home() {
        let session = SessionId::from_parts(1, &[1; 10]);
        let place = |profile: &str| Places::of_session(Path::new("/edge"), session, profile);
        let names = ["a", "a/b", "a_b", "a%2fb", "..", ".", "A"];
        for (at, one) in names.iter().enumerate() {
            assert_eq!(place(one).parent(), place("a").parent(), "{one} stays in its session");
            assert!(names[..at].iter().all(|other| place(other) != place(one)), "{one}");
        }
    }
}
