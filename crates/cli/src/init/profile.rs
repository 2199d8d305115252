//! The profile of an agent in the data directory's `runyard.toml`: added below what is there, and never in its place.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use runyard::{ActionError, Code};

use crate::configuration::FILE_NAME;
use crate::home::Home;

/// The kind of backend that drives codex.
const CODEX_KIND: &str = "codex-app-server-stdio";

/// A profile that is to be in the file.
pub(super) struct Profile {
    home: Home,
    path: PathBuf,
    before: String,
    /// What is added; nothing where the file has it.
    added: Option<String>,
}

impl Profile {
    pub(super) fn of(home: &Home, name: &str, program: &Path) -> Result<Self, ActionError> {
        let path = home.path().join(FILE_NAME);
        let before = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read.map_err(|error| unwritten(&path, &error))?,
        };
        let added = added(&before, name, program);
        Ok(Profile { home: home.clone(), path, before, added })
    }

    pub(super) fn file(&self) -> &Path {
        &self.path
    }

    /// What is to be added.
    pub(super) fn text(&self) -> Option<&str> {
        self.added.as_deref()
    }

    /// Writes the file anew with what is added, so that nobody reads half of it.
    pub(super) fn write(&self) -> Result<(), ActionError> {
        let Some(added) = &self.added else { return Ok(()) };
        let fault = |error: std::io::Error| unwritten(&self.path, &error);
        self.home.make().map_err(fault)?;
        let mode = std::fs::metadata(&self.path).map_or(0o600, |found| found.permissions().mode() & 0o777);
        let draft = self.path.with_extension(format!("{}.draft", std::process::id()));
        let write = || {
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&draft)?;
            file.write_all(self.before.as_bytes())?;
            file.write_all(added.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&draft, &self.path)
        };
        let written = write();
        if written.is_err() {
            let _ = std::fs::remove_file(&draft);
        }
        written.map_err(fault)
    }
}

/// The text that gives this file the profile; nothing where it says something about it, or cannot be added to.
fn added(before: &str, name: &str, program: &Path) -> Option<String> {
    let table: toml::Table = before.parse().ok()?;
    let has = |section: &str| table.get(section).and_then(|section| section.get(name)).is_some();
    if has("backends") || has("agents") {
        return None;
    }
    let program = toml::Value::String(program.to_str()?.to_owned());
    let gap = match before {
        "" => "",
        before if before.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let text = format!(
        "{gap}[backends.{name}]\nkind = \"{CODEX_KIND}\"\nsettings.program = {program}\n\n[agents.{name}]\nbackend = \"{name}\"\n"
    );
    // Sections that stand on one line cannot be added to below.
    (before.to_owned() + &text).parse::<toml::Table>().is_ok().then_some(text)
}

fn unwritten(path: &Path, error: &std::io::Error) -> ActionError {
    ActionError::new(Code::StorageIo, format!("{} cannot be read or written: {error}.", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(before: &str) -> Option<String> {
        added(before, "codex", Path::new("/opt/a \"b\"/codex"))
    }

    #[test]
    fn a_profile_is_added_below_what_is_there_and_never_in_its_place() {
        let written = add("").unwrap();
        assert!(written.starts_with("[backends.codex]\n"), "{written}");
        let table: toml::Table = written.parse().unwrap();
        assert_eq!(table["backends"]["codex"]["settings"]["program"].as_str(), Some("/opt/a \"b\"/codex"));
        assert_eq!(table["agents"]["codex"]["backend"].as_str(), Some("codex"));
        for before in
            ["[hub]\nruns_max = 2", "[hub]\nruns_max = 2\n# mine\n", "[backends.other]\nkind = \"action\"\n"]
        {
            let after = before.to_owned() + &add(before).unwrap();
            assert!(after.starts_with(before));
            assert!(after.parse::<toml::Table>().unwrap()["agents"].get("codex").is_some(), "{after}");
            assert_eq!(add(&after), None, "once");
        }
        for there in [
            "[agents.codex]\nlabel = \"Mine\"\n",
            "[backends.codex]\nkind = \"x\"\n",
            "backends = {}\n",
            "broken =",
        ] {
            assert_eq!(add(there), None, "{there}");
        }
    }
}
