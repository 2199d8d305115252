//! What counts, where it came from, and what is wrong.

mod narrowing;
mod native;

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::{Arg, Command};
use runyard_domain::gate::Effect;
use runyard_domain::run::{Budget, OnReject};
use runyard_domain::{Approval, Network, Sandbox, Timestamp, Wire};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::trust::Digest;

/// A data directory and a project, each with its file.
struct Yard(TempDir);

impl Yard {
    fn new() -> Self {
        let yard = Yard(tempfile::tempdir().unwrap());
        for folder in ["data", "project/.git", "project/inner"] {
            std::fs::create_dir_all(yard.path(folder)).unwrap();
        }
        yard
    }

    fn with(data: &str, project: &str) -> Self {
        let yard = Yard::new();
        yard.write("data/runyard.toml", data);
        yard.write("project/runyard.toml", project);
        yard
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
        std::fs::set_permissions(self.path(name), PermissionsExt::from_mode(0o644)).unwrap();
    }

    fn trust(&self, name: &str) {
        let path = self.path(name);
        let digest = Digest::of(&std::fs::read(&path).unwrap());
        let record = Trusted { path, digest, at: Timestamp::from_unix_ms(0), by: "ada".to_owned() };
        TrustRecords::add(&self.path("data"), record).unwrap();
    }

    fn loaded(&self, project: Option<&Path>) -> Result<Configuration, ConfigurationProblems> {
        Configuration::load(&self.path("data"), project, &Environment::default(), &Flags::default())
    }

    #[track_caller]
    fn load(&self) -> Configuration {
        self.loaded(Some(&self.path("project"))).unwrap_or_else(|problems| panic!("{problems}"))
    }

    /// What is wrong, without the folder's name.
    #[track_caller]
    fn wrong(&self) -> Vec<String> {
        let Err(problems) = self.loaded(Some(&self.path("project"))) else { panic!("nothing is wrong") };
        let folder = format!("{}/", self.path("").display());
        problems.0.iter().map(|problem| problem.to_string().replace(&folder.replace("//", "/"), "")).collect()
    }
}

impl Configuration {
    /// A value as JSON and where it came from: the origin's word and the line.
    #[track_caller]
    fn told(&self, key: &str) -> (Value, String) {
        let value = self.values().remove(key).unwrap_or_else(|| panic!("{key}"));
        let origin = match &value.origin {
            Origin::Data(place) | Origin::Project(place) => format!("{} {}", value.origin.word(), place.line),
            origin => origin.to_string(),
        };
        (value.value, origin)
    }

    fn ignored_keys(&self) -> Vec<String> {
        self.ignored().iter().map(|ignored| format!("{}: {}", ignored.key, ignored.why)).collect()
    }
}

#[test]
fn b03_c19_the_built_in_profiles_are_there_and_each_backend_has_an_agent_of_its_name() {
    let yard = Yard::with("[backend.mine]\nkind = \"scripted\"\n[agent.helper]\nlabel = \"Helper\"\n", "");
    let configuration = yard.load();
    let kinds: Vec<(&str, &str)> = configuration
        .backends()
        .values()
        .map(|backend| (backend.profile.as_str(), backend.backend_kind.as_str()))
        .collect();
    assert_eq!(
        kinds,
        [
            ("action", "action"),
            ("codex", "codex-app-server-stdio"),
            ("deepseek", "codex-app-server-stdio"),
            ("demo", "scripted"),
            ("mine", "scripted"),
        ]
    );
    assert_eq!(configuration.backends()["demo"].settings["script"], "demo");
    // One implementation, two profiles.
    let [codex, deepseek] = ["codex", "deepseek"].map(|name| configuration.backends()[name].clone());
    assert_eq!((codex.wire, codex.gateway, codex.base_url, codex.model), (Wire::Responses, true, None, None));
    let provider = (deepseek.base_url.as_deref(), deepseek.model.as_deref());
    assert_eq!(provider, (Some("https://api.deepseek.com/v1"), Some("deepseek-chat")));
    assert_eq!((deepseek.wire, deepseek.gateway), (Wire::Chat, true));
    assert_eq!((codex.required_secret_keys, codex.command), (vec!["auth.json".to_owned()], vec![]));
    let agents: Vec<(&str, &str, &str)> = configuration
        .agents()
        .values()
        .map(|agent| (agent.id.as_str(), agent.label.as_str(), agent.backend_profile.as_str()))
        .collect();
    assert_eq!(
        agents,
        [
            ("action", "Action", "action"),
            ("codex", "Codex", "codex"),
            ("deepseek", "DeepSeek", "deepseek"),
            ("demo", "Demo", "demo"),
            // It names no backend.
            ("helper", "Helper", "codex"),
            ("mine", "mine", "mine"),
        ]
    );
    assert_eq!(configuration.told("agent.mine.backend"), (json!("mine"), "default".to_owned()));
}

#[test]
fn b01_a_backend_profile_says_what_is_started_and_where_its_provider_is_and_each_value_where_it_came_from() {
    let text = "[backend.mine]\ncommand = [\"/opt/codex\", \"-c\", \"a=b\"]\nbase_url = \"https://[::1]:8080/v1/\"\n\
                model = \"m\"\nwire = \"chat\"\ngateway = false\ndebug_raw = true\nrequired_secret_keys = []\n\
                [backend.plain]\nmodel = \"n\"\n";
    let configuration = Yard::with(text, "").load();
    let mine = &configuration.backends()["mine"];
    let expected = BackendProfile {
        profile: "mine".to_owned(),
        backend_kind: "codex-app-server-stdio".to_owned(),
        command: ["/opt/codex", "-c", "a=b"].map(str::to_owned).to_vec(),
        base_url: Some("https://[::1]:8080/v1/".to_owned()),
        model: Some("m".to_owned()),
        wire: Wire::Chat,
        gateway: false,
        debug_raw: true,
        ..BackendProfile::default()
    };
    assert_eq!(*mine, expected);
    assert!(configuration.names_secrets("mine"), "that it needs none is said");
    assert!(configuration.names_secrets("codex") && !configuration.names_secrets("plain"));
    let plain = &configuration.backends()["plain"];
    assert_eq!((plain.wire, plain.gateway, plain.debug_raw), (Wire::Responses, true, false));
    assert_eq!(
        configuration.told("backend.mine.kind"),
        (json!("codex-app-server-stdio"), "default".to_owned())
    );
    assert_eq!(configuration.told("backend.mine.gateway"), (json!(false), "data 6".to_owned()));
    assert_eq!(configuration.told("backend.deepseek.wire"), (json!("chat"), "default".to_owned()));
}

#[test]
fn b17_secrets_lie_in_the_data_directory_or_where_its_file_or_a_variable_says() {
    let plain = Yard::new();
    let in_data = plain.path("data/secrets");
    let configuration = plain.load();
    assert_eq!(configuration.edge().secrets_directory, in_data);
    assert_eq!(configuration.told("edge.secrets_directory"), (json!(in_data), "default".to_owned()));
    let yard = Yard::with("[edge]\nsecrets_directory = \"/srv/secrets\"\n", "");
    assert_eq!(yard.load().edge().secrets_directory, Path::new("/srv/secrets"));
    assert_eq!(yard.load().told("edge.secrets_directory"), (json!("/srv/secrets"), "data 2".to_owned()));
    let load = |value: &str| {
        let variable = ("RUNYARD_SECRETS_DIRECTORY".to_owned(), OsString::from(value));
        Configuration::load(&yard.path("data"), None, &[variable].into_iter().collect(), &Flags::default())
    };
    let mounted = load("/run/secrets").unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(mounted.edge().secrets_directory, Path::new("/run/secrets"));
    let relative = load("secrets").err().map(|problems| problems.to_string());
    let expected = "RUNYARD_SECRETS_DIRECTORY: \"edge.secrets_directory\": expected an absolute path";
    assert_eq!(relative.as_deref(), Some(expected));
}

#[test]
fn c19_changing_an_agent_changes_no_backend() {
    let plain = Yard::new().load();
    let text = "[agent.codex]\nlabel = \"C\"\npreset = \"strict\"\nsandbox = \"read-only\"\nnetwork = \"deny\"\n\
                approval = \"never\"\non_reject = \"continue\"\ncapabilities = [\"read\"]\nruns_max = 1\n\
                timeout_ms = 5\nidle_ms = 4\nbudget = \"2.50\"\nbudget_tokens = 200000\n";
    let changed = Yard::with(text, "").load();
    assert_eq!(plain.backends(), changed.backends());
    let agent = &changed.agents()["codex"];
    let policy = &agent.execution_policy;
    assert_eq!(
        (agent.label.as_str(), agent.preset, agent.on_reject),
        ("C", Preset::Strict, OnReject::Continue)
    );
    assert_eq!((agent.capabilities.len(), agent.runs_max), (1, 1));
    assert_eq!(
        (policy.sandbox, policy.network, policy.approval, policy.timeout_ms, policy.idle_ms),
        (Sandbox::ReadOnly, Network::Deny, Approval::Never, 5, 4)
    );
    let budget = Budget { cost_usd: "2.50".parse().ok(), tokens: Some(200_000) };
    assert_eq!((policy.budget, plain.agents()["codex"].execution_policy.budget), (Some(budget), None));
}

#[test]
fn every_word_that_a_setting_takes_fits_its_type() {
    for setting in setting::Section::Agent.settings() {
        let words = match setting.kind {
            setting::Kind::Word(words) => words.iter().map(|word| format!("\"{word}\"")).collect(),
            setting::Kind::Words(words) => vec![format!("{words:?}")],
            _ => Vec::new(),
        };
        for word in words {
            let agent = match setting.is_native() {
                true => {
                    "[agent.ours]\nbackend = \"native\"\nmodel = \"m\"\nprovider.base_url = \"http://x\"\n"
                }
                false => "[agent.codex]\n",
            };
            Yard::with(&format!("{agent}{} = {word}\n", setting.key), "").load();
        }
    }
}

#[test]
fn c12_an_approval_expires_after_seven_days_unless_the_hub_is_told_otherwise() {
    assert_eq!(Yard::new().load().hub().approval_expiry_ms, 7 * 24 * 60 * 60 * 1000);
    let yard = Yard::with("[hub]\napproval_expiry_ms = 1000\n", "");
    assert_eq!(yard.load().hub().approval_expiry_ms, 1000);
}

#[test]
fn a_layer_covers_those_below_and_each_value_says_where_it_came_from() {
    let yard = Yard::with("[hub]\n\nlisten = \"127.0.0.1:1\"\nruns_max = 2\naccept_ms = 3\n", "");
    let environment = ["RUNYARD_LISTEN=127.0.0.1:4", "RUNYARD_RUNS_MAX=5", "RUNYARD_STOP_MS=", "LISTEN=x"];
    let environment: Environment = environment
        .iter()
        .filter_map(|set| set.split_once('='))
        .map(|(name, value)| (name.to_owned(), OsString::from(value)))
        .collect();
    let flags = Command::new("up")
        .arg(Arg::new("listen").long("listen").default_value("127.0.0.1:7"))
        .arg(Arg::new("runs-max").long("runs-max").default_value("9"));
    let flags = Flags::of(&flags.get_matches_from(["up", "--listen", "127.0.0.1:6"]));
    let loaded = Configuration::load(&yard.path("data"), None, &environment, &flags);
    let configuration = loaded.unwrap_or_else(|problems| panic!("{problems}"));
    let table = [
        ("hub.listen", json!("127.0.0.1:6"), "--listen"),
        ("hub.runs_max", json!(5), "RUNYARD_RUNS_MAX"),
        ("hub.accept_ms", json!(3), "data 5"),
        ("hub.stop_ms", json!(15_000), "default"),
    ];
    for (key, value, origin) in table {
        assert_eq!(configuration.told(key), (value, origin.to_owned()), "{key}");
    }
    assert_eq!(configuration.hub().listen.port(), 6);
    assert_eq!((configuration.hub().runs_max, configuration.hub().database_url.as_deref()), (5, None));
}

#[test]
fn variables_are_checked_and_misspelt_ones_are_told() {
    let load = |name: &str, value: &str| {
        let environment: Environment = [(name.to_owned(), OsString::from(value))].into_iter().collect();
        Configuration::load(Path::new("/nowhere"), None, &environment, &Flags::default())
    };
    let wrong = |name: &str, value: &str| load(name, value).err().map(|problems| problems.to_string());
    let expected = "RUNYARD_RUNS_MAX: \"hub.runs_max\": expected a whole number from 1 to 10000";
    for value in ["many", "0", "-1", "10001", "1.0"] {
        assert_eq!(wrong("RUNYARD_RUNS_MAX", value).as_deref(), Some(expected), "{value}");
    }
    let url = wrong("RUNYARD_DATABASE_URL", "mysql://ada:hunter2@x/y").unwrap();
    assert!(url.ends_with("expected a URL that begins with postgres:// or postgresql://"), "{url}");
    assert!(!url.contains("hunter2"), "{url}");
    let good =
        load("RUNYARD_DATABASE_URL", "postgres://ada@x/y").unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(good.hub().database_url.as_deref(), Some("postgres://ada@x/y"));
    let misspelt = load("RUNYARD_LISTN", "x").unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(misspelt.ignored_keys(), ["RUNYARD_LISTN: did you mean RUNYARD_LISTEN?"]);
    for name in ["RUNYARD_RUN_ID", "RUNYARD_LOG", "RUNYARD_SOMETHING_ELSE"] {
        assert_eq!(load(name, "x").unwrap_or_else(|problems| panic!("{problems}")).ignored(), []);
    }
}

#[test]
fn what_is_wrong_is_told_with_file_and_line_and_what_was_meant() {
    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(Yard::with(text, "").wrong(), [format!("data/runyard.toml:{expected}")], "{text}");
        // The same in a project, trusted or not.
        assert_eq!(Yard::with("", text).wrong(), [format!("project/runyard.toml:{expected}")], "{text}");
    }
    check("\n[hbu]\n", "2: unknown key \"hbu\"; did you mean \"hub\"?");
    check(
        "[zzz]\n",
        "1: unknown key \"zzz\"; there are actions, agent, backend, edge, hub, policy, server, workspace",
    );
    check(
        "[workspace]\ncopy = [\"/etc\"]\n",
        "2: \"workspace.copy\": expected a list of relative paths or patterns, without \"..\", as in [\"node_modules\"]",
    );
    check(
        "[workspace]\nsetup = \"npm ci\"\n",
        "2: \"workspace.setup\": expected a list of commands, each a list of a program and its arguments, as in \
         [[\"npm\", \"ci\"]], found a text",
    );
    check("[hub]\nlisen = 1\n", "2: unknown key \"hub.lisen\"; did you mean \"listen\"?");
    check("agent.demo.lable = 1", "1: unknown key \"agent.demo.lable\"; did you mean \"label\"?");
    check("[policy]\nrules = []\n", "2: unknown key \"policy.rules\"; did you mean \"rule\"?");
    check("hub = 1\n", "1: \"hub\": expected a table, found a whole number");
    check("[agents]\ndemo = true\n", "2: \"agent.demo\": expected a table, found true or false");
    check("[actions]\nx = 1\n", "2: \"actions.x\": expected a table, found a whole number");
    check("[hub]\nrun_max = 1\n", "2: unknown key \"hub.run_max\"; did you mean \"runs_max\"?");
    check(
        "[agent.demo]\nsandbox = \"nonne\"\n",
        "2: \"agent.demo.sandbox\": expected one of \"read-only\", \"workspace-write\", \"none\"",
    );
    check(
        "[agent.demo]\n\n\nruns_max = \"3\"\n",
        "4: \"agent.demo.runs_max\": expected a whole number from 1 to 10000, found a text",
    );
    check(
        "[agent.demo]\nruns_max = -1\n",
        "2: \"agent.demo.runs_max\": expected a whole number from 1 to 10000",
    );
    check(
        "[agent.demo]\nbudget = \"1,5\"\n",
        "2: \"agent.demo.budget\": expected an amount in US dollars as a text, as in \"2.50\"",
    );
    check(
        "[agent.demo]\nbudget_tokens = 0\n",
        "2: \"agent.demo.budget_tokens\": expected a whole number from 1 to 1000000000000",
    );
    for effect in ["ask", "deny"] {
        check(
            &format!("[[policy.rule]]\neffect = \"{effect}\"\nkind = \"shell\"\nscope = \"once\"\n"),
            "1: \"policy.rule\": a rule of scope \"once\" allows; one that asks or denies is never used up, so leave its scope out",
        );
    }
    let stored = "rul_019ff5c1a5147f3a8c5be3a4d5c9b2a1";
    check(
        &format!("[[policy.rule]]\neffect = \"deny\"\nkind = \"shell\"\nid = \"{stored}\"\n"),
        &format!(
            "1: \"policy.rule\": \"{stored}\" is the name of a rule that was added with \"runyard policy add\"; leave id out"
        ),
    );
    check(
        "[agent.\"A B\"]\n",
        "1: \"agent.A B\": expected a name of lower case letters, digits, \"-\" and \"_\", at most 64",
    );
    check(
        "[backend.demo.settings]\nx = 1\n",
        "2: \"backend.demo.settings.x\": expected a text, found a whole number",
    );
    check("[backends.demo]\nkind = \"scripted\"\n", "1: unknown key \"backends\"; did you mean \"backend\"?");
    check(
        "[backend.x]\nbase-url = \"x\"\n",
        "2: unknown key \"backend.x.base-url\"; did you mean \"base_url\"?",
    );
    check(
        "[edge]\nsecret_directory = \"/x\"\n",
        "2: unknown key \"edge.secret_directory\"; did you mean \"secrets_directory\"?",
    );
    check(
        "[backend.x]\ngateway = \"yes\"\n",
        "2: \"backend.x.gateway\": expected true or false, found a text",
    );
    check(
        "[backend.x]\nwire = \"grpc\"\n",
        "2: \"backend.x.wire\": expected one of \"responses\", \"chat\", \"messages\"",
    );
    for command in ["[]", "[\"\"]", "[\"bin/codex\"]", "[\"codex\", 1]"] {
        check(
            &format!("[backend.x]\ncommand = {command}\n"),
            "2: \"backend.x.command\": expected a list of a program, by its name or absolute path, and its arguments, as in \
             [\"/opt/bin/codex\"]",
        );
    }
    for origin in ["*", "http://example.com", "https://x/y", "https://*.example", "http://localhost:80"] {
        check(
            &format!("[server]\norigins = [{origin:?}]\n"),
            "2: \"server.origins\": expected a list of origins without a path: https:// and a host, or http:// and localhost, \
             127.0.0.1 or [::1], with a port that is not the scheme's own, as in [\"http://localhost:5173\"]",
        );
    }
    check("[server]\norigin = []\n", "2: unknown key \"server.origin\"; did you mean \"origins\"?");
    for url in [
        "ftp://x/y",
        "https://ada:hunter2@x/y",
        "https://x/y?key=z",
        "https://x/#y",
        "x/y",
        "https://",
        "http:// x",
    ] {
        check(
            &format!("[backend.x]\nbase_url = {url:?}\n"),
            "2: \"backend.x.base_url\": expected a URL that begins with http:// or https://, without user, password, query and \
             fragment, as in \"https://api.example.com/v1\"",
        );
    }
    check(
        "[hub]\ndatabase_url = \"postgres://x\"\n",
        "2: \"hub.database_url\" can only be given as RUNYARD_DATABASE_URL: it holds a password, which belongs in no file",
    );
    check(
        "[[policy.rule]]\neffekt = \"deny\"\nkind = \"shell\"\n",
        "2: unknown key \"policy.rule.effekt\"; did you mean \"effect\"?",
    );
    check(
        "[[policy.rule]]\neffect = \"deny\"\nkind = \"any\"\nmatch = \"x\"\n",
        "1: \"policy.rule\": match: a rule of kind `any` has none, since a pattern is about one kind of thing",
    );
}

#[test]
fn further_origins_come_from_the_data_directory_or_a_variable_and_never_from_a_project() {
    let named = |configuration: &Configuration| -> Vec<String> {
        configuration.server().origins.iter().map(ToString::to_string).collect()
    };
    let data = "[server]\norigins = [\"http://localhost:5173\", \"https://Dev.example:8443\"]\n";
    let configuration = Yard::with(data, "").load();
    assert_eq!(named(&configuration), ["http://localhost:5173", "https://dev.example:8443"]);
    assert_eq!(configuration.told("server.origins").1, "data 2");
    let project = Yard::with("", "[server]\norigins = [\"https://evil.example\"]\n").load();
    assert_eq!(named(&project), Vec::<String>::new());
    assert_eq!(project.ignored_keys(), ["server.origins: counts in the data directory only"]);
}

#[test]
fn b01_a_profile_that_there_is_not_is_an_error_and_never_the_default() {
    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(Yard::with(text, "").wrong(), [format!("data/runyard.toml:{expected}")], "{text}");
    }
    check(
        "[agent.x]\nlabel = \"X\"\nbackend = \"codx\"\n",
        "3: \"agent.x.backend\" names no backend profile; did you mean \"codex\"?",
    );
    check(
        "[[policy.rule]]\neffect = \"deny\"\nkind = \"shell\"\nagent = \"codec\"\n",
        "1: \"policy.rule.agent\" names no agent profile; did you mean \"codex\"?",
    );
    let yard = Yard::with("\n[backend.x]\nkind = \"scriptd\"\n", "");
    let script: &[&str] = &["script", "scriptFile"];
    let kinds = [("scripted", script), ("action", &["permissions"]), ("codex-app-server-stdio", &[])];
    let problems = yard.load().check_kinds(&kinds).unwrap_err().to_string();
    assert!(problems.contains("runyard.toml:3: \"backend.x.kind\" names no kind of backend"), "{problems}");
    assert!(problems.ends_with("did you mean \"scripted\"?"), "{problems}");
    assert!(Yard::new().load().check_kinds(&kinds).is_ok());
    let yard =
        Yard::with("[backend.x]\nkind = \"scripted\"\n\n[backend.x.settings]\nscritp = \"demo\"\n", "");
    let problems = yard.load().check_kinds(&kinds).unwrap_err().to_string();
    let said = "runyard.toml:5: unknown key \"backend.x.settings.scritp\"; did you mean \"script\"?";
    assert!(problems.ends_with(said), "{problems}");
}

#[test]
fn every_problem_of_every_file_is_told_at_once() {
    let data = "[hub]\nlisten = 1\nx = 2\n[agent.demo]\npreset = \"lax\"\n";
    let yard = Yard::with(data, "[hub\n[agent.\n");
    let wrong = yard.wrong();
    let lines: Vec<&str> = wrong.iter().filter_map(|problem| problem.split(": ").next()).collect();
    let expected = ["data/runyard.toml:2", "data/runyard.toml:3", "data/runyard.toml:5"];
    assert_eq!(lines[..3], expected, "{wrong:#?}");
    assert!(lines[3..].contains(&"project/runyard.toml:1"), "{wrong:#?}");
    assert!(lines[3..].contains(&"project/runyard.toml:2"), "{wrong:#?}");
}

#[test]
fn every_declared_action_is_looked_at_and_the_good_ones_are_defined() {
    let good = "[actions.one]\ndescription = \"One.\"\ncommand = [\"cat\"]\n\
                [[actions.one.examples]]\nwhen = 2026-01-01T00:00:00Z\n";
    let configuration = Yard::with(good, "").load();
    assert_eq!(configuration.actions().len(), 1);
    let bad = "[actions.two]\ncomand = 1\n[actions.three]\ndescription = \"No command.\"\n";
    let wrong = Yard::with(&format!("{good}{bad}"), "").wrong();
    assert_eq!(wrong.len(), 2, "{wrong:#?}");
    assert!(
        wrong[0].starts_with("data/runyard.toml:6: action \"two\" has an unknown key \"comand\""),
        "{wrong:#?}"
    );
    assert!(wrong[1].starts_with("data/runyard.toml:8: action \"three\" has no command"), "{wrong:#?}");
}

#[test]
fn the_data_directorys_file_must_be_ones_own_and_of_a_sensible_size() {
    let yard = Yard::with("[hub]\n", "");
    std::fs::set_permissions(yard.path("data/runyard.toml"), PermissionsExt::from_mode(0o664)).unwrap();
    assert_eq!(yard.wrong(), ["data/runyard.toml:1: others can write it; take that away with chmod go-w"]);
    let large = "#".repeat(problem::FILE_BYTES_MAX as usize + 1);
    assert_eq!(Yard::with(&large, "").wrong(), ["data/runyard.toml:1: is larger than 1048576 bytes"]);
    let yard = Yard::new();
    std::fs::create_dir(yard.path("data/runyard.toml")).unwrap();
    assert_eq!(yard.wrong(), ["data/runyard.toml:1: cannot be read: it is not a regular file"]);
    std::fs::remove_dir(yard.path("data/runyard.toml")).unwrap();
    std::fs::write(yard.path("data/runyard.toml"), b"\xff").unwrap();
    assert_eq!(yard.wrong(), ["data/runyard.toml:1: is not UTF-8"]);
}

#[test]
fn rules_decide_for_agents_with_the_preset_of_each() {
    let data = "[policy]\npreset = \"strict\"\n[[policy.rule]]\neffect = \"allow\"\nkind = \"shell\"\n\
                match = \"cargo test\"\nexpires = 2030-01-01T00:00:00Z\n[agent.demo]\npreset = \"default\"\n";
    let configuration = Yard::with(data, "").load();
    let (codex, demo) = (configuration.policy("codex"), configuration.policy("demo"));
    assert_eq!((codex.preset, demo.preset), (Preset::Strict, Preset::Default));
    assert_eq!(configuration.policy("nobody").preset, Preset::Strict);
    assert_eq!(codex.rules, configuration.rules());
    let [rule] = codex.rules.as_slice() else { panic!("{:?}", codex.rules) };
    assert_eq!((rule.effect(), rule.id()), (Effect::Allow, "allow shell cargo test"));
    assert_eq!(rule.text().expires, "2030-01-01T00:00:00Z".parse().ok());
    assert_eq!(configuration.told("agent.codex.preset"), (json!("strict"), "data 2".to_owned()));
}

#[test]
fn agents_is_another_name_for_agent() {
    let loaded = Yard::with("[agents.demo]\nruns_max = 3\n", "").load();
    assert_eq!(loaded.agents()["demo"].runs_max, 3);
}
