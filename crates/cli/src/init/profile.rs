//! The profile of an agent in the data directory's `runyard.toml`: added below what is there, and never in its place.

use std::fs::Permissions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use runyard::{ActionError, Code};

use crate::audit_bundle::draft::Draft;
use crate::configuration::FILE_NAME;
use crate::home::Home;

/// A profile that is to be in the file.
pub(super) struct Profile {
    home: Home,
    path: PathBuf,
    before: String,
    added: Result<String, NotAdded>,
}

/// Why nothing is added to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotAdded {
    /// It says something about the agent.
    There,
    /// It cannot be read as TOML.
    Broken,
    /// The sections are written so that nothing can be added below.
    Closed,
    /// Where the agent's program is cannot be written as text.
    PathNoText,
}

impl NotAdded {
    /// It for people, about the agent and the file.
    pub(super) fn line(self, name: &str, file: &str) -> String {
        match self {
            NotAdded::There => format!("{name} is in {file} already"),
            NotAdded::Broken => {
                format!("not written: {file} is no TOML; \"runyard config show\" says where it is wrong")
            }
            NotAdded::Closed => format!(
                "not written: [backend] or [agent] of {file} can only be added to by hand; {name} works without it, found by \
                 its name"
            ),
            NotAdded::PathNoText => {
                format!(
                    "not written: the path of {name} is no UTF-8 text; it works without it, found by its name"
                )
            }
        }
    }
}

impl Profile {
    pub(super) fn of(home: &Home, name: &str, program: &Path) -> Result<Self, ActionError> {
        let path = home.path().join(FILE_NAME);
        let before = read(&path)?;
        let added = added(&before, name, program);
        Ok(Profile { home: home.clone(), path, before, added })
    }

    pub(super) fn file(&self) -> &Path {
        &self.path
    }

    /// What is to be added.
    pub(super) fn text(&self) -> Result<&str, NotAdded> {
        self.added.as_deref().map_err(|why| *why)
    }

    /// Writes the file anew with what is added, so that nobody reads half of it. What was written since it was read stays: then
    /// nothing is written.
    pub(super) fn write(&self) -> Result<(), ActionError> {
        let Ok(added) = &self.added else { return Ok(()) };
        let fault = |error: std::io::Error| unwritten(&self.path, &error);
        self.home.make().map_err(fault)?;
        let mode = std::fs::metadata(&self.path).map_or(0o600, |found| found.permissions().mode() & 0o777);
        let write = || {
            let mut draft = Draft::beside(&self.path)?;
            draft.file().write_all(self.before.as_bytes())?;
            draft.file().write_all(added.as_bytes())?;
            draft.file().set_permissions(Permissions::from_mode(mode))?;
            Ok(draft)
        };
        let draft = write().map_err(fault)?;
        // As late as can be.
        if read(&self.path)? != self.before {
            let message =
                format!("{} was changed meanwhile; nothing was written. Try again.", self.path.display());
            return Err(ActionError::conflict(message));
        }
        draft.publish(true).map(|_| ()).map_err(fault)
    }
}

/// What is in the file; nothing where there is none.
fn read(path: &Path) -> Result<String, ActionError> {
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        read => read.map_err(|error| unwritten(path, &error)),
    }
}

/// The text that gives this file the profile.
fn added(before: &str, name: &str, program: &Path) -> Result<String, NotAdded> {
    let table: toml::Table = before.parse().map_err(|_| NotAdded::Broken)?;
    let has = |section: &str| table.get(section).and_then(|section| section.get(name)).is_some();
    if has("backend") || has("agent") || has("agents") {
        return Err(NotAdded::There);
    }
    let program = toml::Value::String(program.to_str().ok_or(NotAdded::PathNoText)?.to_owned());
    let gap = match before {
        "" => "",
        before if before.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let text =
        format!("{gap}[backend.{name}]\ncommand = [{program}]\n\n[agent.{name}]\nbackend = \"{name}\"\n");
    // Sections that stand on one line cannot be added to below.
    match (before.to_owned() + &text).parse::<toml::Table>() {
        Ok(_) => Ok(text),
        Err(_) => Err(NotAdded::Closed),
    }
}

fn unwritten(path: &Path, error: &std::io::Error) -> ActionError {
    ActionError::new(Code::StorageIo, format!("{} cannot be read or written: {error}.", path.display()))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn add(before: &str) -> Result<String, NotAdded> {
        added(before, "codex", Path::new("/opt/a \"b\"/codex"))
    }

    #[test]
    fn a_profile_is_added_below_what_is_there_and_never_in_its_place() {
        let written = add("").unwrap();
        assert!(written.starts_with("[backend.codex]\n"), "{written}");
        let table: toml::Table = written.parse().unwrap();
        assert_eq!(table["backend"]["codex"]["command"][0].as_str(), Some("/opt/a \"b\"/codex"));
        assert_eq!(table["agent"]["codex"]["backend"].as_str(), Some("codex"));
        for before in
            ["[hub]\nruns_max = 2", "[hub]\nruns_max = 2\n# mine\n", "[backend.other]\nkind = \"action\"\n"]
        {
            let after = before.to_owned() + &add(before).unwrap();
            assert!(after.starts_with(before));
            assert!(after.parse::<toml::Table>().unwrap()["agent"].get("codex").is_some(), "{after}");
            assert_eq!(add(&after), Err(NotAdded::There), "once");
        }
        for (there, why) in [
            ("[agent.codex]\nlabel = \"Mine\"\n", NotAdded::There),
            ("[backend.codex]\nkind = \"x\"\n", NotAdded::There),
            ("backend = {}\n", NotAdded::Closed),
            ("broken =", NotAdded::Broken),
        ] {
            assert_eq!(add(there), Err(why), "{there}");
        }
        let odd = Path::new(OsStr::from_bytes(b"/opt/\xff/codex"));
        assert_eq!(added("", "codex", odd), Err(NotAdded::PathNoText));
    }

    #[test]
    fn what_was_written_while_the_question_stood_is_not_written_over() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(FILE_NAME);
        let (before, added) = (String::new(), add(""));
        let profile = Profile { home: Home::unknown(), path: path.clone(), before, added };
        std::fs::write(&path, "# mine\n").unwrap();
        assert_eq!(*profile.write().unwrap_err().code(), Code::Conflict);
        assert_eq!(std::fs::read(&path).unwrap(), b"# mine\n");
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1, "no draft stays");
        std::fs::write(&path, "").unwrap();
        profile.write().unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().contains("[agent.codex]"));
    }
}
