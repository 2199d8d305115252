//! Which program codex is, and with which arguments it is started.
//!
//! It is the native program, never the script that npm puts before it: what is started is then what is stopped.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use runyard_backend::BackendError;
use runyard_domain::run::FailureKind;
use runyard_domain::{BackendProfile, Wire};

use crate::process::find;

/// The word that makes codex a server. A command that has it is taken as it is.
const SERVER: &str = "app-server";

/// The program of a backend profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    /// All of its arguments.
    pub(super) arguments: Vec<String>,
}

impl Program {
    /// Finds it. A setting is an error, since codex has none beyond what every profile has.
    pub(super) fn of(profile: &BackendProfile, path: Option<&OsStr>) -> Result<Self, BackendError> {
        let failed = |message| Err(BackendError::new(FailureKind::BackendSpawnFailed, message));
        let name = &profile.profile;
        if let Some(unknown) = profile.settings.keys().next() {
            return failed(format!(
                "profile {name}: no setting \"{unknown}\"; codex has none: see command, base_url, model"
            ));
        }
        if profile.wire == Wire::Chat && !profile.gateway {
            return failed(format!(
                "profile {name}: codex speaks the Responses API alone; with wire = \"chat\" it needs gateway = true"
            ));
        }
        let mut words = profile.command.iter();
        let program = words.next().map_or("codex", String::as_str);
        let Some(found) = find(program, path) else {
            return failed(format!(
                "there is no program {program}; install codex, or name it in the profile's \"command\""
            ));
        };
        let mut arguments: Vec<String> = words.cloned().collect();
        if !arguments.iter().any(|word| word == SERVER) {
            arguments.extend([SERVER, "--listen", "stdio://"].map(str::to_owned));
        }
        Ok(Program { path: behind_npm(&found).unwrap_or(found), arguments })
    }

    /// What stands before the server's own arguments.
    pub(super) fn before_server(&self) -> &[String] {
        let end = self.arguments.iter().position(|word| word == SERVER).unwrap_or_default();
        &self.arguments[..end]
    }
}

/// The native program of an npm package, where the one that was found is its script.
fn behind_npm(found: &Path) -> Option<PathBuf> {
    let script = found.canonicalize().ok().filter(|file| file.extension().is_some_and(|end| end == "js"))?;
    let (package, target) = match std::env::consts::ARCH {
        "aarch64" => ("codex-linux-arm64", "aarch64-unknown-linux-musl"),
        _ => ("codex-linux-x64", "x86_64-unknown-linux-musl"),
    };
    let own = script.parent()?.parent()?;
    [own.join("..").join(package), own.join("node_modules/@openai").join(package)]
        .into_iter()
        .map(|place| place.join("vendor").join(target).join("bin/codex"))
        .find_map(|program| program.canonicalize().ok())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn profile(command: &[&str]) -> BackendProfile {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        BackendProfile { profile: "codex".to_owned(), command, ..BackendProfile::default() }
    }

    #[test]
    fn b01_a_command_is_made_a_server_unless_it_is_one() {
        #[rustfmt::skip]
        let table: [(&[&str], &[&str], usize); 3] = [
            (&["/bin/sh"],                                   &["app-server", "--listen", "stdio://"],             0),
            (&["/bin/sh", "-c", "a=b"],                      &["-c", "a=b", "app-server", "--listen", "stdio://"], 2),
            (&["/bin/sh", "fake", "app-server", "--quiet"],  &["fake", "app-server", "--quiet"],                  1),
        ];
        for (command, arguments, before) in table {
            let program = Program::of(&profile(command), None).unwrap();
            assert_eq!(
                (program.path.to_str(), &program.arguments[..]),
                (Some("/bin/sh"), &words(arguments)[..])
            );
            assert_eq!(program.before_server(), words(&arguments[..before]));
        }
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn b01_what_codex_cannot_do_is_said_before_it_starts() {
        let mut unknown = profile(&["/bin/sh"]);
        unknown.settings.insert("modle".to_owned(), "gpt-5.5".to_owned());
        let chat = BackendProfile { wire: Wire::Chat, ..profile(&["/bin/sh"]) };
        for (profile, words) in [
            (unknown, "no setting \"modle\""),
            (chat, "needs gateway = true"),
            (profile(&["/nowhere/codex"]), "there is no program /nowhere/codex"),
        ] {
            let error = Program::of(&profile, None).unwrap_err();
            assert_eq!(error.failure_kind, FailureKind::BackendSpawnFailed);
            assert!(error.message.contains(words), "{error}");
        }
        let through = BackendProfile { wire: Wire::Chat, gateway: true, ..profile(&["/bin/sh"]) };
        assert!(Program::of(&through, None).is_ok());
    }

    #[test]
    fn behind_the_script_of_npm_the_native_program_is_found() {
        let place = tempfile::tempdir().unwrap();
        let (scope, bin) = (place.path().join("node_modules/@openai"), place.path().join("bin"));
        let (package, target) = match std::env::consts::ARCH {
            "aarch64" => ("codex-linux-arm64", "aarch64-unknown-linux-musl"),
            _ => ("codex-linux-x64", "x86_64-unknown-linux-musl"),
        };
        let native = scope.join(package).join("vendor").join(target).join("bin/codex");
        let script = scope.join("codex/bin/codex.js");
        for file in [&native, &script] {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
            fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::create_dir(&bin).unwrap();
        symlink(&script, bin.join("codex")).unwrap();
        let program = Program::of(&profile(&[]), Some(bin.as_os_str())).unwrap();
        assert_eq!(program.path, native.canonicalize().unwrap());
    }
}
