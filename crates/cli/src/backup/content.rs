//! What of the data directory is part of a backup.
//!
//! The keys to model providers are not, unless somebody says so: a backup is carried to other places and kept for long. What a
//! backend calls private is never part of it, nor are secrets that lie in a directory of their own.

use std::path::{Path, PathBuf};

use clap::ArgMatches;
use runyard::{ActionError, Code};

use crate::configuration::Configuration;
use crate::home::Home;
use crate::wiring;

/// Where secrets lie unless the configuration says otherwise.
const SECRETS: &str = "secrets";

/// What a backup holds besides what every backup holds, and what none does.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub(super) checkouts: bool,
    /// With the secrets of the data directory.
    pub(super) secrets: bool,
    /// Where the secrets are, if that is not the data directory's own place for them.
    pub(super) elsewhere: Option<PathBuf>,
    /// The same place within the data directory, if it is in there.
    within: Option<PathBuf>,
    /// What backends call private in the home of a session.
    private: Vec<&'static str>,
}

impl Content {
    pub(super) fn of(
        home: &Home,
        configuration: &Configuration,
        matches: &ArgMatches,
    ) -> Result<Self, ActionError> {
        let backends = wiring::backends(home, configuration)
            .map_err(|error| ActionError::internal(format!("{error:#}")))?;
        let private = backends.values().flat_map(|backend| backend.info().private_files).copied().collect();
        let (data, secrets) = (real(home.path()), real(&configuration.edge().secrets_directory));
        let within = secrets.strip_prefix(&data).ok().map(Path::to_owned);
        let elsewhere = (within.as_deref() != Some(Path::new(SECRETS))).then_some(secrets);
        if within.as_deref() == Some(Path::new("")) {
            let message = "The secrets lie directly in the data directory, where they cannot be told from the rest: name another \
                           \"secrets_directory\" in [edge].";
            return Err(ActionError::new(Code::ValidationError, message));
        }
        let [checkouts, secrets] = ["checkouts", "secrets"].map(|flag| matches.get_flag(flag));
        Ok(Content { checkouts, secrets, elsewhere, within, private })
    }

    /// Whether a path of the data directory is no part of the backup: besides secrets, what only a running process needs, and the
    /// database, which is copied by itself. The homes that agents have in their sessions are part of it: a thread goes on from
    /// what is in there.
    pub(super) fn leaves_out(&self, path: &Path) -> bool {
        if path == Path::new(SECRETS) || self.within.as_deref() == Some(path) {
            return !self.secrets || self.elsewhere.is_some();
        }
        let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
        let parts: Vec<&str> = parts.iter().map(|part| &**part).collect();
        match parts.as_slice() {
            ["edge", "sessions", _, _, within @ ..] => self.private.contains(&within.join("/").as_str()),
            ["edge", "checks"] => true,
            ["edge", "runs", _, "home" | "custody.lock" | "checkout.draft"] => true,
            ["edge", "runs", _, "checkout" | "base"] => !self.checkouts,
            [name] | ["edge" | "keys", name] => {
                let database = ["", "-wal", "-shm", "-journal", ".lock", ".blobs"];
                let is_database =
                    name.strip_prefix("runyard.db").is_some_and(|rest| database.contains(&rest));
                is_database
                    || ["hub.json", "hub.log"].contains(name)
                    || name.ends_with(".lock")
                    || name.ends_with(".draft")
            }
            _ => false,
        }
    }
}

/// A path without links, as far as it is there.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| match (path.parent(), path.file_name()) {
        (Some(above), Some(name)) => real(above).join(name),
        _ => path.to_owned(),
    })
}

/// Whether a path of a backup is a secret's.
pub(super) fn is_secret(path: &str) -> bool {
    Path::new(path).starts_with(SECRETS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(within: &str) -> Content {
        let private = vec!["codex/auth.json", "codex/shell_snapshots"];
        let within = Some(within.into());
        Content { checkouts: false, secrets: false, elsewhere: None, within, private }
    }

    #[test]
    fn what_only_a_running_process_needs_and_what_is_secret_is_left_out_and_nothing_else() {
        let plain = content("secrets");
        for path in [
            "hub.json",
            "hub.log",
            "hub.lock",
            "runyard.db",
            "runyard.db-wal",
            "runyard.db.blobs",
            "tag.1.draft",
            "secrets",
            "edge/workspaces.lock",
            "edge/checks",
            "edge/runs/run_1/home",
            "edge/runs/run_1/custody.lock",
            "edge/runs/run_1/checkout",
            "edge/runs/run_1/base",
            "edge/sessions/ses_1/codex/codex/auth.json",
            "edge/sessions/ses_1/mine%2e/codex/shell_snapshots",
        ] {
            assert!(plain.leaves_out(Path::new(path)), "{path}");
        }
        for path in [
            "runyard.toml",
            "token",
            "tag.key",
            "keys/audit.ed25519",
            "trust.json",
            "tasks.json",
            "runyard.db.old",
            "edge",
            "edge/workspaces.json",
            "edge/digest.key",
            "edge/runs/run_1/applied",
            "edge/runs/run_1/owner.json",
            "edge/sessions/ses_1",
            "edge/sessions/ses_1/codex",
            "edge/sessions/ses_1/codex/Cargo.lock",
            "edge/sessions/ses_1/codex/codex/sessions/auth.json",
            "edge/archive/a.patch",
        ] {
            assert!(!plain.leaves_out(Path::new(path)), "{path}");
        }
        let checkouts = Content { checkouts: true, ..plain };
        let with = |path: &str| checkouts.leaves_out(Path::new(path));
        assert!(!with("edge/runs/run_1/checkout") && !with("edge/runs/run_1/checkout/Cargo.lock"));
        assert!(with("edge/runs/run_1/home"));
    }

    #[test]
    fn secrets_are_part_of_it_only_where_that_is_asked_for_and_they_lie_in_their_own_place() {
        let asked = Content { secrets: true, ..content("secrets") };
        assert!(!asked.leaves_out(Path::new("secrets")));
        assert!(asked.leaves_out(Path::new("edge/sessions/ses_1/codex/codex/auth.json")));
        let elsewhere = Content { elsewhere: Some("/data/mine".into()), ..content("mine") };
        for content in [Content { secrets: true, ..elsewhere.clone() }, elsewhere] {
            assert!(content.leaves_out(Path::new("mine")) && content.leaves_out(Path::new("secrets")));
            assert!(!content.leaves_out(Path::new("others")));
        }
    }
}
