//! Where the things of a run are: one directory per run in the edge's home, and one per session for each backend profile.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use runyard_domain::{RunId, SessionId};

use runyard_checkout::discard;

use crate::private;

/// The directories of one run. The checkout outlives the run; the rest goes with it.
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

    /// Makes what a session needs, apart from the checkout.
    pub(crate) fn make(&self) -> io::Result<()> {
        private::make_directory(&self.directory)?;
        private::make_directory(&self.home())?;
        private::make_directory(&self.temporary())
    }

    /// Removes what a run that is over no longer needs. The checkout stays for review.
    pub(crate) fn tidy(&self) -> io::Result<()> {
        discard(&self.home())?;
        discard(&self.checkout().with_extension("draft"))?;
        absent(fs::remove_file(self.lock()))?;
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
