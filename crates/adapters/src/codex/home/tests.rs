//! What stays in a home that is prepared again, and what does not.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn file(key: &str, content: &str) -> SecretFile {
    SecretFile { key: key.to_owned(), content: content.as_bytes().to_vec() }
}

fn write(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "planted").unwrap();
}

/// Everything beneath a directory, links as they are.
fn all(directory: &Path) -> Vec<String> {
    let (mut found, mut left) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(next).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => left.push(entry.path()),
                false => found.push(entry.path().strip_prefix(directory).unwrap().display().to_string()),
            }
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn b12_the_home_is_private_and_its_files_are_written_anew() {
    let run = tempfile::tempdir().unwrap();
    let both = || vec![file("config.toml", "a = 1"), file("auth.json", "{}")];
    let home = Home::prepare(run.path(), both()).await.unwrap();
    assert!(!home.was_there);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let (config, auth) = (home.path.join("config.toml"), home.path.join("auth.json"));
    assert_eq!((mode(&home.path), mode(&config), mode(&auth)), (0o700, 0o600, 0o600));

    let outside = run.path().join("outside");
    fs::write(&outside, "mine").unwrap();
    fs::remove_file(&config).unwrap();
    symlink(&outside, &config).unwrap();
    fs::remove_file(&auth).unwrap();
    fs::create_dir(&auth).unwrap();
    let home = Home::prepare(run.path(), both()).await.unwrap();
    assert!(home.was_there);
    assert_eq!(fs::read_to_string(&config).unwrap(), "a = 1");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "mine");
    Home::prepare(run.path(), both().drain(..1).collect()).await.unwrap();
    assert!(!auth.exists(), "what is not given any more is not there any more");
}

#[tokio::test]
async fn j06_of_an_earlier_session_only_its_conversations_stay() {
    let run = tempfile::tempdir().unwrap();
    let home = run.path().join("codex");
    for planted in [
        "rules/default.rules",
        ".env",
        "hooks.json",
        "AGENTS.md",
        "AGENTS.override.md",
        "skills/mine/deep/er/SKILL.md",
        "prompts/mine.md",
        "managed_config.toml",
        "requirements.toml",
        "plugins/cache/mine/plugin.json",
        "state_5.sqlite",
        "Sessions/rollout.jsonl",
    ] {
        write(&home.join(planted));
    }
    write(&home.join("sessions/2026/11/16/rollout.jsonl"));
    Home::prepare(run.path(), vec![file("config.toml", "a = 1")]).await.unwrap();
    assert_eq!(all(&home), ["config.toml", "sessions/2026/11/16/rollout.jsonl"]);
}

#[tokio::test]
async fn j06_among_the_conversations_no_link_stays_and_none_is_followed() {
    let run = tempfile::tempdir().unwrap();
    let (home, outside) = (run.path().join("codex"), run.path().join("outside"));
    let (sessions, day) = (home.join("sessions"), home.join("sessions/2026/11"));
    write(&outside.join("deep/file"));
    write(&day.join("rollout.jsonl"));
    symlink(&outside, sessions.join("2025")).unwrap();
    symlink(outside.join("deep/file"), day.join("rollout-2.jsonl")).unwrap();
    symlink(&outside, home.join("rules")).unwrap();
    rustix::fs::mknodat(CWD, day.join("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    // An agent may close its directories to itself.
    for closed in [&day, &sessions, &home] {
        fs::set_permissions(closed, fs::Permissions::from_mode(0o000)).unwrap();
    }
    Home::prepare(run.path(), Vec::new()).await.unwrap();
    assert_eq!(all(&home), ["sessions/2026/11/rollout.jsonl"]);
    assert_eq!(all(&outside), ["deep/file"]);
    fs::remove_dir_all(&sessions).unwrap();
    symlink(&outside, &sessions).unwrap();
    Home::prepare(run.path(), Vec::new()).await.unwrap();
    assert_eq!(all(&home), [""; 0], "a link is no directory of conversations");
    assert_eq!(all(&outside), ["deep/file"]);
}

#[tokio::test]
async fn j06_a_home_without_a_bottom_is_given_up() {
    let run = tempfile::tempdir().unwrap();
    let deep: PathBuf = std::iter::repeat_n("d", DEPTH_MAX + 10).collect();
    fs::create_dir_all(run.path().join("codex").join(deep)).unwrap();
    let error = Home::prepare(run.path(), Vec::new()).await.err().unwrap();
    assert!(error.message.ends_with("its directories are too deep"), "{error}");
}

#[tokio::test]
async fn b12_a_home_that_leads_elsewhere_is_not_used() {
    let run = tempfile::tempdir().unwrap();
    let elsewhere = run.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, run.path().join("codex")).unwrap();
    let error = Home::prepare(run.path(), vec![file("auth.json", "{}")]).await.err().unwrap();
    assert_eq!(error.failure_kind, FailureKind::BackendSpawnFailed);
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}
