//! `runyard secrets` as people use it.
//!
//! clause: B06
//! clause: B11
//! clause: B17

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;

use serde_json::{Value, json};

use support::terminal::Terminal;
use support::{Home, Ran};

const KEY: &str = "sk-live-4242424242424242";

fn set(home: &Home, arguments: &[&str], value: &str) -> Ran {
    home.run_with([&["secrets", "set"], arguments].concat(), value.as_bytes())
}

fn auth(home: &Home, profile: &str) -> PathBuf {
    home.path("secrets").join(profile).join("auth.json")
}

fn mode(path: &PathBuf) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o777
}

/// Nothing that was printed holds a value.
#[track_caller]
fn is_silent(ran: &Ran) {
    for said in [&ran.stdout, &ran.stderr] {
        assert!(!said.contains("4242"), "{said}");
    }
}

#[test]
fn b06_a_key_comes_from_standard_input_and_is_kept_for_its_owner_alone() {
    let home = Home::new();
    let ran = set(&home, &["codex"], &format!("{KEY}\n"));
    assert_eq!(ran.data(), json!({"profile": "codex", "key": "auth.json", "wrapped": true, "warnings": []}));
    is_silent(&ran);
    let file = auth(&home, "codex");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{{\"OPENAI_API_KEY\":\"{KEY}\"}}"));
    assert_eq!(mode(&file), 0o600);
    assert_eq!([mode(&home.path("secrets")), mode(&home.path("secrets/codex"))], [0o700, 0o700]);
    let text = set(&home, &["codex", "auth.json", "--output", "text"], KEY);
    assert_eq!(
        text.stdout,
        "Kept auth.json of codex. It holds the API key that you gave, as OPENAI_API_KEY.\n"
    );
    let file = format!("{{\n \"DEEPSEEK_API_KEY\": \"{KEY}\"\n}}\n");
    let ran = set(&home, &["deepseek", "auth.json"], &file);
    assert_eq!(ran.data()["wrapped"], false);
    assert_eq!(std::fs::read_to_string(auth(&home, "deepseek")).unwrap(), file, "a file stays as it is");
}

#[test]
fn b06_a_value_is_never_an_argument_and_no_mistake_repeats_it() {
    let home = Home::new();
    let config = format!("model = {KEY}\n");
    let broken = format!("{{\"OPENAI_API_KEY\": {KEY}}}");
    let large = "k".repeat(1024 * 1024 + 1);
    for (arguments, value, said) in [
        (&["codex", "auth.json", KEY][..], "", "never an argument"),
        (&["codex", KEY], "", "The key you named is no secret of codex; there are: auth.json, config.toml."),
        (
            &[KEY],
            "",
            "The name you gave is no backend profile; those that need secrets are: codex, deepseek.",
        ),
        (&["demo"], "", "demo needs no secret."),
        (&["../codex"], "", "The name you gave is no backend profile"),
        (&["codex"], "", "Nothing was given"),
        (&["codex"], " \n\n", "Nothing was given"),
        (&["codex"], &broken, "no JSON (line 1"),
        (&["codex", "config.toml"], &config, "no TOML (line 1)"),
        (
            &["codex"],
            "{\"foo\": \"4242\"}",
            "Nothing is kept, because it could not be used: auth.json of codex holds no OPENAI_API_KEY",
        ),
        (&["codex"], &large, "at most 1048576 bytes"),
    ] {
        let ran = set(&home, arguments, value);
        let (exit, code, message) = ran.failure();
        assert_eq!((exit, code.as_str()), (2, "VALIDATION_ERROR"), "{message}");
        assert!(message.contains(said), "{message}");
        is_silent(&ran);
    }
    assert!(!home.path("secrets").exists(), "nothing was kept");
    let left: Vec<_> = std::fs::read_dir(home.path("")).into_iter().flatten().collect();
    assert!(!left.iter().flatten().any(|entry| entry.file_name().to_string_lossy().starts_with(".secret")));
}

#[test]
fn b13_what_can_be_used_only_after_something_else_is_kept_and_said_at_once() {
    let home = Home::new();
    let login = format!("{{\"tokens\": {{\"access_token\": \"{KEY}\"}}}}");
    let ran = set(&home, &["codex"], &login);
    let warning = ran.data()["warnings"][0].as_str().unwrap().to_owned();
    assert!(
        warning.starts_with("codex cannot be used yet: auth.json of codex holds a ChatGPT login"),
        "{warning}"
    );
    assert!(warning.contains("gateway = false in [backend.codex]"), "{warning}");
    is_silent(&ran);
    assert_eq!(std::fs::read_to_string(auth(&home, "codex")).unwrap(), login);
    let text = set(&home, &["deepseek", "config.toml", "--output", "text"], "model = \"m\"\n");
    assert_eq!(
        (text.exit, text.stdout.as_str()),
        (
            0,
            "Kept config.toml of deepseek.\nnote: deepseek cannot be used yet: auth.json of deepseek is missing: set it with \
             \"runyard secrets set deepseek auth.json\".\n"
        )
    );
}

#[test]
fn b06_at_a_terminal_it_is_asked_for_and_not_shown() {
    let home = Home::new();
    let mut terminal = Terminal::of(&mut home.command(["secrets", "set", "codex"]));
    terminal.wait_for(
        "API key for codex (not shown; for a whole auth.json: runyard secrets set codex < auth.json): ",
    );
    terminal.type_line(KEY);
    let (exit, screen) = terminal.ended();
    assert_eq!(exit, Some(0), "{screen}");
    assert!(screen.contains("Kept auth.json of codex.") && !screen.contains("4242"), "{screen}");
    assert_eq!(
        std::fs::read_to_string(auth(&home, "codex")).unwrap(),
        format!("{{\"OPENAI_API_KEY\":\"{KEY}\"}}")
    );

    let mut terminal = Terminal::of(&mut home.command(["secrets", "set", "codex"]));
    terminal.wait_for("(not shown; ");
    terminal.type_line("sk-other\u{3}");
    let (exit, screen) = terminal.ended();
    assert_ne!(exit, Some(0), "{screen}");
    assert!(std::fs::read_to_string(auth(&home, "codex")).unwrap().contains(KEY), "called off");
}

#[test]
fn b06_what_is_pasted_at_the_prompt_as_a_whole_file_is_taken_to_its_end_and_refused() {
    let home = Home::new();
    let mut terminal = Terminal::of(&mut home.command(["secrets", "set", "codex", "--output", "text"]));
    terminal.wait_for("auth.json): ");
    // More than a terminal holds: whoever does not read it leaves it to the shell.
    let rest = format!("  \"{KEY}\": 1,\n").repeat(3000);
    terminal.type_line(&format!("{{\n{rest}}}"));
    let (exit, screen) = terminal.ended();
    assert_eq!(exit, Some(2), "{screen}");
    assert!(screen.contains("runyard secrets set codex auth.json < FILE"), "{screen}");
    assert!(!screen.contains("4242") && !auth(&home, "codex").exists(), "{screen}");

    let mut terminal = Terminal::of(&mut home.command(["secrets", "set", "codex", "--output", "text"]));
    terminal.wait_for("auth.json): ");
    terminal.type_line("");
    let (exit, screen) = terminal.ended();
    assert_eq!(exit, Some(2), "{screen}");
    assert!(screen.contains("Nothing was typed, so nothing is kept."), "{screen}");
}

#[test]
fn b17_listing_shows_names_and_keys_only() {
    let home = Home::new();
    let empty = home.run(["secrets", "list"]);
    assert_eq!(empty.data(), json!({"directory": home.path("secrets"), "secrets": []}));
    let told = home.run(["secrets", "list", "--output", "text"]);
    assert_eq!(told.stdout, "No secrets. Keep one with: runyard secrets set PROFILE\n");
    set(&home, &["codex"], KEY).data();
    set(&home, &["codex", "config.toml"], "model = \"m-4242\"\n").data();
    set(&home, &["deepseek"], KEY).data();
    let listed = home.run(["secrets", "list"]);
    let codex = json!({"profile": "codex", "keys": ["auth.json", "config.toml"]});
    let deepseek = json!({"profile": "deepseek", "keys": ["auth.json"]});
    assert_eq!(listed.data()["secrets"], json!([codex, deepseek]));
    is_silent(&listed);
    let text = home.run(["secrets", "list", "--output", "text"]);
    let expected = "PROFILE   KEYS\ncodex     auth.json, config.toml\ndeepseek  auth.json\n";
    assert_eq!(text.stdout, expected);
}

#[test]
fn b13_checking_tells_what_a_run_would_find_and_what_to_do() {
    let home = Home::new();
    let (exit, code, message) = home.run(["secrets", "check", "deepseek"]).failure();
    assert_eq!((exit, code.as_str()), (1, "secret-unavailable"));
    assert_eq!(
        message,
        "auth.json of deepseek is missing: set it with \"runyard secrets set deepseek auth.json\"."
    );
    let both = home.run(["secrets", "check"]).envelope();
    assert_eq!(both["error"]["message"], "2 backend profiles cannot be used.");
    assert_eq!(both["error"]["issues"].as_array().unwrap().len(), 2);
    set(&home, &["codex"], KEY).data();
    let all = home.run(["secrets", "check"]);
    let (exit, code, message) = all.failure();
    assert_eq!((exit, code.as_str()), (1, "secret-unavailable"), "no profile stands in for another");
    assert!(message.contains("deepseek") && !message.contains("codex"), "{message}");
    let text = home.run(["secrets", "check", "--output", "text"]);
    let expected = "ok    codex     auth.json of codex, held by the gateway\n\
                    do    deepseek  auth.json of deepseek is missing: set it with \"runyard secrets set deepseek auth.json\"\n";
    assert_eq!((text.exit, text.stdout.as_str(), text.stderr.as_str()), (1, expected, ""));
    let ran = home.run(["secrets", "check", "codex"]);
    is_silent(&ran);
    let codex =
        json!({"profile": "codex", "found": "auth.json of codex, held by the gateway", "warnings": []});
    assert_eq!(ran.data(), json!({"profiles": [codex]}));

    std::fs::set_permissions(auth(&home, "codex"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let text = home.run(["secrets", "check", "codex", "--output", "text"]);
    let file = auth(&home, "codex");
    assert_eq!(
        (text.exit, text.stdout),
        (
            0,
            format!(
                "ok    codex  auth.json of codex, held by the gateway\nnote  codex  others can read auth.json: chmod 600 {}\n",
                file.display()
            )
        )
    );
    std::fs::write(&file, format!("{{\"tokens\": {{\"access_token\": \"{KEY}\"}}}}")).unwrap();
    let login = home.run(["secrets", "check", "codex"]);
    let (exit, code, message) = login.failure();
    assert_eq!((exit, code.as_str()), (1, "provider-auth-failed"));
    assert!(message.contains("gateway = false in [backend.codex]"), "{message}");
    is_silent(&login);
    assert_eq!(home.run(["secrets", "check", "demo"]).data()["profiles"][0]["found"], "it needs none");
    assert_eq!(home.run(["secrets", "check", "nobody"]).failure().1, "VALIDATION_ERROR");
}

#[test]
fn b17_removing_is_confirmed_and_says_what_is_gone() {
    let home = Home::new();
    set(&home, &["codex"], KEY).data();
    set(&home, &["codex", "config.toml"], "model = \"m\"\n").data();
    set(&home, &["deepseek"], KEY).data();
    let (exit, code, message) = home.run(["secrets", "rm", "codex"]).failure();
    assert_eq!((exit, code.as_str()), (1, "CONFIRMATION_REQUIRED"));
    assert_eq!(message, "Say --yes to remove auth.json, config.toml of codex.");
    let text = home.run(["secrets", "rm", "codex", "--output", "text"]);
    let expected = "error[CONFIRMATION_REQUIRED]: Say --yes to remove auth.json, config.toml of codex.\n";
    assert_eq!((text.exit, text.stderr.as_str()), (1, expected));
    let ran = home.run(["secrets", "rm", "codex", "config.toml", "--yes"]);
    assert_eq!(ran.data(), json!({"profile": "codex", "removed": ["config.toml"]}));
    let list = "\"runyard secrets list\" shows what there is.";
    for (absent, said) in [
        (&["demo"][..], "demo has no secrets"),
        (&["codex", "config.toml"], "codex has no such secret"),
        (&["codex", "../deepseek/auth.json"], "codex has no such secret"),
        (&[KEY], "The name you gave has no secrets"),
        (&["../secrets"], "The name you gave has no secrets"),
    ] {
        let (exit, code, message) = home.run([&["secrets", "rm", "--yes"], absent].concat()).failure();
        assert_eq!((exit, code.as_str()), (1, "NOT_FOUND"), "{message}");
        assert_eq!(message, format!("{said}; {list}"));
    }
    let mut terminal = Terminal::of(&mut home.command(["secrets", "rm", "codex"]));
    terminal.wait_for("Remove auth.json of codex? [y/N] ");
    terminal.type_line("n");
    assert_ne!(terminal.ended().0, Some(0));
    assert!(auth(&home, "codex").exists());
    let mut terminal = Terminal::of(&mut home.command(["secrets", "rm", "codex"]));
    terminal.wait_for("Remove auth.json of codex? [y/N] ");
    terminal.type_line("y");
    let (exit, screen) = terminal.ended();
    assert_eq!(exit, Some(0), "{screen}");
    assert!(screen.contains("Removed auth.json of codex."), "{screen}");
    assert!(!home.path("secrets/codex").exists() && auth(&home, "deepseek").exists());
}

#[test]
fn b17_secrets_may_be_mounted_elsewhere_and_are_not_changed_there() {
    let mount = tempfile::tempdir().unwrap();
    let codex = mount.path().join("codex");
    std::fs::create_dir_all(codex.join("..2026_01")).unwrap();
    std::fs::write(codex.join("..2026_01/auth.json"), format!("{{\"OPENAI_API_KEY\": \"{KEY}\"}}")).unwrap();
    symlink("..2026_01", codex.join("..data")).unwrap();
    symlink("..data/auth.json", codex.join("auth.json")).unwrap();
    let home = Home::with(&format!("[edge]\nsecrets_directory = {:?}\n", mount.path()));
    home.run(["secrets", "check", "codex"]).data();
    let listed = home.run(["secrets", "list"]).data();
    assert_eq!(listed["secrets"], json!([{"profile": "codex", "keys": ["auth.json"]}]));
    for ran in [set(&home, &["codex"], KEY), home.run(["secrets", "rm", "codex", "--yes"])] {
        let (_, code, message) = ran.failure();
        assert_eq!(code, "storage.read_only");
        assert!(message.contains("mounted Secret"), "{message}");
    }
    set(&home, &["deepseek"], KEY).data();
    assert!(mount.path().join("deepseek/auth.json").exists());
}

#[test]
fn b06_a_process_of_a_run_may_not_use_it() {
    let home = Home::new();
    set(&home, &["codex"], KEY).data();
    for verb in [&["set", "codex"][..], &["list"], &["check", "codex"], &["rm", "codex", "--yes"]] {
        let mut command = home.command([&["secrets"], verb].concat());
        let (exit, code, message) = Ran::of(command.env("RUNYARD_RUN_TOKEN", "token")).failure();
        assert_eq!((exit, code.as_str()), (3, "AUTHORIZATION_ERROR"), "{message}");
        assert!(message.contains("for people only"), "{message}");
    }
    assert!(auth(&home, "codex").exists());
}

#[test]
fn b17_no_other_surface_has_it() {
    let home = Home::new();
    let tools = home.run(["tools", "--format", "openai-responses"]);
    let tools: Vec<Value> = serde_json::from_str(&tools.stdout).unwrap();
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(names.contains(&"run_list") && !names.iter().any(|name| name.contains("secret")), "{names:?}");
    assert_eq!(home.run(["call", "secrets-list"]).failure().1, "ACTION_NOT_FOUND");
}
