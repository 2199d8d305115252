//! Projects: what a file that nobody trusts can do, and what trust changes.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::select;
use runyard_domain::gate::{Place as Site, Request, Subject, judge};
use runyard_domain::{Approval, Timestamp};
use serde_json::json;

use super::super::layers::Layers;
use super::super::narrowing::is_within;
use super::*;

const WIDENING: &str = r#"
[hub]
listen = "0.0.0.0:1"
[edge]
secrets_directory = "/elsewhere"
[policy]
preset = "default"
[agent.codex]
label = "Trustworthy"
backend = "demo"
sandbox = "none"
network = "allow"
approval = "ask"
on_reject = "continue"
runs_max = 9999
timeout_ms = 604800000
[agent.new]
label = "New"
[backend.demo]
settings.script = "other"
[backend.mine]
kind = "scripted"
[[policy.rule]]
effect = "allow"
kind = "shell"
[[policy.rule]]
effect = "ask"
kind = "read"
match = "/etc/**"
[actions.run]
description = "Runs."
command = ["touch", "ran"]
"#;

#[test]
fn j06_a_file_that_nobody_trusts_widens_nothing_and_what_is_left_out_is_told() {
    let strict = "[policy]\npreset = \"strict\"\n[agent.codex]\napproval = \"never\"\n";
    let (yard, plain) = (Yard::with(strict, WIDENING), Yard::with(strict, ""));
    let (configuration, plain) = (yard.load(), plain.load());
    assert_eq!(configuration.agents(), plain.agents());
    assert_eq!(configuration.backends(), plain.backends());
    assert_eq!((configuration.rules().len(), configuration.actions().len()), (0, 0));
    assert_eq!(configuration.hub().listen.port(), 4710);
    assert_eq!(configuration.edge().secrets_directory, yard.path("data/secrets"));
    let not_trusted = |key: &&str| match key.starts_with("hub.") || key.starts_with("edge.") {
        true => format!("{key}: counts in the data directory only"),
        false => format!("{key}: not trusted: run `runyard trust`"),
    };
    let expected: Vec<String> = [
        "hub.listen",
        "edge.secrets_directory",
        "policy.preset",
        "agent.codex.label",
        "agent.codex.backend",
        "agent.codex.sandbox",
        "agent.codex.network",
        "agent.codex.approval",
        "agent.codex.on_reject",
        "agent.codex.runs_max",
        "agent.codex.timeout_ms",
        "agent.new.label",
        "backend.demo.settings.script",
        "backend.mine.kind",
        "policy.rule allow shell",
        "policy.rule ask read /etc/**",
        "actions.run",
    ]
    .iter()
    .map(not_trusted)
    .collect();
    assert_eq!(configuration.ignored_keys(), expected);
}

#[test]
fn a_file_that_nobody_trusts_narrows() {
    let data =
        "[agent.demo]\npreset = \"default\"\ntimeout_ms = 1000\nbudget = \"1.0\"\nbudget_tokens = 100\n";
    let project = "[policy]\npreset = \"strict\"\n[agent.demo]\ntimeout_ms = 999\nidle_ms = 1\nbudget = \"0.5\"\n\
                   capabilities = [\"publish\", \"read\"]\nruns_max = 1\nsandbox = \"read-only\"\n\
                   network = \"deny\"\napproval = \"never\"\nbudget_tokens = 101\n[agent.codex]\nbudget = \"3\"\nbudget_tokens = 7\n\
                   [[policy.rule]]\neffect = \"deny\"\nkind = \"shell\"\nmatch = \"rm *\"\n\
                   [[policy.rule]]\neffect = \"ask\"\nkind = \"read\"\nmatch = \"*.pem\"\n";
    let configuration = Yard::with(data, project).load();
    let table = [
        ("policy.preset", json!("strict"), "project 2"),
        // The preset of all reaches those that have their own, too.
        ("agent.demo.preset", json!("strict"), "project 2"),
        ("agent.codex.preset", json!("strict"), "project 2"),
        ("agent.demo.timeout_ms", json!(999), "project 4"),
        ("agent.demo.idle_ms", json!(1), "project 5"),
        ("agent.demo.budget", json!("0.5"), "project 6"),
        ("agent.demo.capabilities", json!(["read"]), "project 7"),
        ("agent.demo.runs_max", json!(1), "project 8"),
        ("agent.demo.sandbox", json!("read-only"), "project 9"),
        ("agent.demo.network", json!("deny"), "project 10"),
        ("agent.demo.approval", json!("never"), "project 11"),
        ("agent.codex.budget", json!("3"), "project 14"),
        ("agent.codex.budget_tokens", json!(7), "project 15"),
        ("agent.demo.budget_tokens", json!(100), "data 5"),
        ("agent.codex.sandbox", json!("workspace-write"), "default"),
    ];
    for (key, value, origin) in table {
        assert_eq!(configuration.told(key), (value, origin.to_owned()), "{key}");
    }
    let rules = configuration.rules();
    let ids: Vec<&str> = rules.iter().map(Rule::id).collect();
    assert_eq!(ids, ["project: deny shell rm *", "project: ask read *.pem"]);
    let ignored = ["capabilities", "budget_tokens"];
    let ignored = ignored.map(|key| format!("agent.demo.{key}: not trusted: run `runyard trust`"));
    assert_eq!(configuration.ignored_keys(), ignored);
}

#[test]
fn a_value_that_changes_nothing_keeps_its_origin() {
    let yard = Yard::with("", "[agent.demo]\nsandbox = \"workspace-write\"\n");
    let configuration = yard.load();
    assert_eq!(configuration.told("agent.demo.sandbox").1, "default");
    assert_eq!(configuration.ignored(), []);
}

#[test]
fn j06_trust_is_for_exactly_these_bytes_and_never_for_the_hub() {
    let yard = Yard::with("", WIDENING);
    yard.trust("project/runyard.toml");
    let configuration = yard.load();
    assert_eq!(configuration.told("agent.codex.sandbox"), (json!("none"), "project 11".to_owned()));
    assert_eq!(configuration.agents()["new"].backend_profile, "codex");
    assert_eq!(configuration.backends()["demo"].settings["script"], "other");
    assert_eq!((configuration.rules().len(), configuration.actions().len()), (2, 1));
    let own = ["hub.listen", "edge.secrets_directory"];
    assert_eq!(
        configuration.ignored_keys(),
        own.map(|key| format!("{key}: counts in the data directory only"))
    );
    assert_eq!(configuration.edge().secrets_directory, yard.path("data/secrets"));
    let [trusted] = configuration.trusted() else { panic!("{:?}", configuration.trusted()) };
    assert_eq!((&trusted.path, trusted.by.as_str()), (&yard.path("project/runyard.toml"), "ada"));
    assert_eq!(trusted.digest, Digest::of(WIDENING.as_bytes()));
    yard.write("project/runyard.toml", &format!("{WIDENING} "));
    let changed = yard.load();
    assert_eq!((changed.told("agent.codex.sandbox").1.as_str(), changed.trusted()), ("default", &[][..]));
    let all_changed = changed
        .ignored_keys()
        .iter()
        .skip(2)
        .all(|told| told.ends_with("it changed since: run `runyard trust`"));
    assert!(all_changed, "{:?}", changed.ignored_keys());
    yard.write("project/runyard.toml", WIDENING);
    assert_eq!(yard.load().actions().len(), 1, "the same bytes again");
}

#[test]
fn j06_what_others_can_write_is_not_trusted_and_neither_is_a_copy_elsewhere() {
    let yard = Yard::with("", WIDENING);
    yard.trust("project/runyard.toml");
    std::fs::set_permissions(yard.path("project/runyard.toml"), PermissionsExt::from_mode(0o664)).unwrap();
    let configuration = yard.load();
    assert_eq!(configuration.actions().len(), 0);
    let last = configuration.ignored_keys().pop().unwrap();
    assert_eq!(last, "actions.run: not trusted, others can write it: chmod go-w");
    let yard = Yard::with("", "");
    yard.write("project/inner/runyard.toml", WIDENING);
    yard.trust("project/inner/runyard.toml");
    yard.write("project/runyard.toml", WIDENING);
    assert_eq!(yard.load().actions().len(), 0);
}

#[test]
fn records_of_trust_that_others_can_write_or_that_are_broken_stop_everything() {
    let yard = Yard::with("", WIDENING);
    yard.trust("project/runyard.toml");
    std::fs::set_permissions(yard.path("data/trust.json"), PermissionsExt::from_mode(0o622)).unwrap();
    assert_eq!(yard.wrong(), ["data/trust.json:1: others can write it; take that away with chmod go-w"]);
    yard.write("data/trust.json", "{}");
    let wrong = yard.wrong();
    assert!(wrong[0].starts_with("data/trust.json:1: is no record of trust: "), "{wrong:?}");
}

#[test]
fn j06_an_inner_file_cannot_hide_what_an_outer_one_forbids() {
    let outer =
        "[agent.demo]\nsandbox = \"read-only\"\n[[policy.rule]]\neffect = \"deny\"\nkind = \"network\"\n";
    let yard = Yard::with("", outer);
    yard.write(
        "project/inner/runyard.toml",
        "[agent.demo]\nsandbox = \"workspace-write\"\nnetwork = \"deny\"\n",
    );
    let inner =
        yard.loaded(Some(&yard.path("project/inner"))).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(inner.told("agent.demo.sandbox"), (json!("read-only"), "project 2".to_owned()));
    assert_eq!(inner.told("agent.demo.network"), (json!("deny"), "project 3".to_owned()));
    assert_eq!(inner.rules().len(), 1);
}

#[test]
fn a_project_ends_at_its_repository_and_the_data_directory_is_none() {
    let yard = Yard::with("", "");
    yard.write("runyard.toml", "[agent.demo]\nsandbox = \"read-only\"\n");
    assert_eq!(yard.load().told("agent.demo.sandbox").1, "default");
    std::fs::remove_dir(yard.path("project/.git")).unwrap();
    assert_eq!(yard.load().told("agent.demo.sandbox").1, "project 2");
    std::fs::create_dir_all(yard.path("data/checkouts/one")).unwrap();
    let files = files_above(&yard.path("data/checkouts/one"), &yard.path("data"));
    assert_eq!(files, Vec::<PathBuf>::new());
}

#[test]
fn a_run_in_a_workspace_has_that_workspaces_project_and_no_other() {
    let yard = Yard::with("[agent.demo]\nruns_max = 7\n", "[agent.demo]\nruns_max = 3\n");
    yard.write("project/inner/runyard.toml", "[agent.demo]\nidle_ms = 1\n");
    let here = yard.load();
    let elsewhere = tempfile::tempdir().unwrap();
    let runs_max = |root: &Path| {
        let configuration = here.in_workspace(root).unwrap_or_else(|problems| panic!("{problems}"));
        let agent = &configuration.agents()["demo"];
        (agent.runs_max, agent.execution_policy.idle_ms)
    };
    assert_eq!(runs_max(&yard.path("project")), (3, 600_000));
    assert_eq!(runs_max(&yard.path("project/inner")), (3, 1));
    assert_eq!(runs_max(elsewhere.path()), (7, 600_000));
    yard.write("project/runyard.toml", "[agent.demo]\nruns_max = 2\n");
    assert_eq!(runs_max(&yard.path("project")).0, 2, "it is read anew");
    yard.write("project/runyard.toml", "[agent.demo]\nruns_mx = 2\n");
    let problems = here.in_workspace(&yard.path("project")).err().map(|problems| problems.to_string());
    assert!(problems.is_some_and(|told| told.contains("did you mean \"runs_max\"?")));
}

const OURS: &str = "agent.ours.backend = \"native\"\nagent.ours.model = \"m\"\nagent.ours.provider.base_url = \"http://x\"\n";

/// A random file: any setting with any value that it takes, and rules.
fn file() -> impl Strategy<Value = String> {
    let value = |setting: &setting::Setting| -> BoxedStrategy<String> {
        match setting.kind {
            setting::Kind::Word(words) => select(words.to_vec()).prop_map(|word| format!("{word:?}")).boxed(),
            setting::Kind::Words(words) => proptest::sample::subsequence(words.to_vec(), 0..=words.len())
                .prop_map(|words| format!("{words:?}"))
                .boxed(),
            setting::Kind::NumberOrNone { min, .. } => {
                select(vec![0, min, min + 1, min + 2]).prop_map(|number| number.to_string()).boxed()
            }
            setting::Kind::Number { min, .. } => (min..min + 4).prop_map(|number| number.to_string()).boxed(),
            setting::Kind::Amount => {
                select(vec!["0.5", "1", "1.5"]).prop_map(|text| format!("{text:?}")).boxed()
            }
            setting::Kind::Texts => Just("[\"KEY\"]".to_owned()).boxed(),
            setting::Kind::Patterns => select(vec!["[]", "[\"modules\"]"]).prop_map(str::to_owned).boxed(),
            setting::Kind::Commands => select(vec!["[]", "[[\"make\"]]"]).prop_map(str::to_owned).boxed(),
            setting::Kind::Table => Just("{ script = \"x\" }".to_owned()).boxed(),
            setting::Kind::Origins => {
                select(vec!["[]", "[\"http://localhost:5173\"]"]).prop_map(str::to_owned).boxed()
            }
            setting::Kind::Switch => select(vec!["true", "false"]).prop_map(str::to_owned).boxed(),
            setting::Kind::Path => Just("\"/srv/secrets\"".to_owned()).boxed(),
            setting::Kind::Url => Just("\"http://127.0.0.1:9/v1\"".to_owned()).boxed(),
            setting::Kind::Command => {
                select(vec!["[\"codex\"]", "[\"/x/codex\", \"-v\"]"]).prop_map(str::to_owned).boxed()
            }
            setting::Kind::Address => Just("\"127.0.0.1:9\"".to_owned()).boxed(),
            setting::Kind::Decimal => select(vec!["0.5", "1"]).prop_map(str::to_owned).boxed(),
            setting::Kind::Text | setting::Kind::Prose | setting::Kind::Name | setting::Kind::DatabaseUrl => {
                select(vec!["demo", "codex"]).prop_map(|text| format!("{text:?}")).boxed()
            }
        }
    };
    let keys = setting::SETTINGS.iter().filter(|setting| !matches!(setting.key, "database_url"));
    // The one agent of ours is always whole, and on one wire no temperature goes with an effort.
    let keys = keys.filter(|setting| {
        setting.section != setting::Section::Agent
            || !matches!(setting.key, "model" | "provider.base_url" | "temperature")
    });
    let keys = keys.flat_map(|setting| {
        let names: &[&str] = match setting.section {
            setting::Section::Hub => &["hub"],
            setting::Section::Edge => &["edge"],
            setting::Section::Server => &["server"],
            setting::Section::Policy => &["policy"],
            setting::Section::Workspace => &["workspace"],
            setting::Section::Agent if setting.is_native() => &["agent.ours"],
            setting::Section::Agent => &["agent.demo", "agent.codex", "agent.new"],
            setting::Section::Backend => &["backend.demo", "backend.codex"],
        };
        names.iter().map(move |name| (format!("{name}.{}", setting.key), setting))
    });
    let lines: Vec<_> = keys
        .map(|(key, setting)| {
            proptest::option::weighted(0.3, value(setting))
                .prop_map(move |value| value.map_or(String::new(), |value| format!("{key} = {value}\n")))
        })
        .collect();
    (lines, proptest::collection::vec(rule(), 0..5))
        .prop_map(|(lines, rules)| OURS.to_owned() + &lines.concat() + &rules.concat())
}

fn rule() -> impl Strategy<Value = String> {
    let about = vec![
        "kind = \"any\"",
        "kind = \"shell\"",
        "kind = \"shell\"\nmatch = \"rm *\"",
        "kind = \"shell\"\nmatch = \"git *\"",
        "kind = \"read\"",
        "kind = \"read\"\nmatch = \"/etc/**\"",
        "kind = \"read\"\nmatch = \"**\"",
        "kind = \"write\"",
        "kind = \"write\"\nmatch = \"/tmp/**\"",
        "kind = \"patch\"\nmatch = \"src/**\"",
        "kind = \"network\"\nmatch = \"*.example.com\"",
        "kind = \"git_push\"",
        "kind = \"action\"\nmatch = \"task_*\"",
    ];
    let (effects, scopes) = (vec!["allow", "ask", "deny"], vec!["always", "run", "session"]);
    let more = vec!["", "", "agent = \"demo\"\n", "expires = 1970-01-01T00:00:05Z\n", "id = \"x\"\n"];
    (select(effects), select(about), select(scopes), select(more)).prop_map(|(effect, about, scope, more)| {
        format!("[[policy.rule]]\neffect = \"{effect}\"\n{about}\nscope = \"{scope}\"\n{more}")
    })
}

fn requests() -> Vec<Request> {
    let shell = |command: &str| Request::Shell { command: command.to_owned(), cwd: ".".to_owned() };
    let read = |path: &str| Request::Read { path: path.to_owned() };
    let write = |path: &str| Request::Write { path: path.to_owned(), content: None };
    let network = |host: &str| Request::Network { host: host.to_owned(), port: None };
    let mut requests: Vec<Request> =
        ["ls", "rm -rf x", "git status && rm y", "$X", "cat /etc/passwd", "a > /tmp/b"]
            .into_iter()
            .map(shell)
            .collect();
    requests.extend(["src/a.rs", "/etc/passwd", "/home/x"].into_iter().map(read));
    requests.extend(["src/a.rs", "/tmp/x", "/etc/x", "runyard.toml"].into_iter().map(write));
    requests.extend(["a.example.com", "b.example.org"].into_iter().map(network));
    requests.push(Request::Patch {
        files: vec!["src/a.rs".to_owned(), "/tmp/b".to_owned()],
        patch: String::new(),
    });
    requests.push(Request::GitPush { remote: "origin".to_owned(), branch: "main".to_owned() });
    requests.push(Request::Secret { name: "KEY".to_owned() });
    requests
}

/// What becomes of every request, for two agents at two times, in both places.
fn judgements(configuration: &Configuration) -> BTreeMap<String, Effect> {
    let mut judged = BTreeMap::new();
    for (agent, now, place) in
        [("demo", 0, Site::Checkout), ("codex", 9_000, Site::Checkout), ("demo", 9_000, Site::InPlace)]
    {
        let execution = &configuration.agents()[agent].execution_policy;
        let asks = execution.approval == Approval::Ask;
        let network = execution.network == Network::Allow;
        let now = Timestamp::from_unix_ms(now);
        let (run, session) = (None, None);
        let subject = Subject {
            agent,
            workspace: "w",
            run,
            session,
            place,
            people_may_be_asked: asks,
            network_is_allowed: network,
            now,
        };
        for request in requests() {
            let effect = judge(&configuration.policy(agent), &subject, &request).effect;
            judged.insert(format!("{agent} {now} {place:?} {request:?}"), effect);
        }
    }
    judged
}

fn layers(data: &str) -> (Yard, Layers) {
    // The data directory's own values must be well formed, whatever they are.
    let yard = Yard::with(data, "");
    let layers = yard.load().base;
    (yard, layers)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn j06_whatever_an_untrusted_project_says_the_configuration_is_never_wider(data in file(), project in file()) {
        let (yard, base) = layers(&data);
        let before = yard.load();
        yard.write("project/runyard.toml", &project);
        let after = yard.load();
        prop_assert!(is_within(&after.layers, &base), "{data}\n---\n{project}");
        // Measured by what the gate says, not by what the configuration says of itself.
        let (before, after) = (judgements(&before), judgements(&after));
        for (request, effect) in &before {
            prop_assert!(after[request] >= *effect, "{request}: {effect:?}, then {:?}\n{data}\n---\n{project}", after[request]);
        }
    }

    #[test]
    fn a_project_says_the_same_once_or_twice(data in file(), project in file()) {
        let (yard, _) = layers(&data);
        yard.write("project/runyard.toml", &project);
        let once = yard.load();
        yard.write("project/inner/runyard.toml", &project);
        let twice = yard.loaded(Some(&yard.path("project/inner"))).unwrap_or_else(|problems| panic!("{problems}"));
        prop_assert_eq!(once.agents(), twice.agents());
        prop_assert_eq!(judgements(&once), judgements(&twice));
    }
}

#[test]
fn a_wider_configuration_is_not_within() {
    let (_, base) = layers("[agent.demo]\nruns_max = 2\n");
    let wider = [
        "[agent.demo]\nruns_max = 3\n",
        "[agent.demo]\nruns_max = 2\nsandbox = \"none\"\n",
        "[agent.demo]\nruns_max = 2\nlabel = \"x\"\n",
        "[agent.demo]\nruns_max = 2\n[agent.new]\nlabel = \"x\"\n",
        "[agent.demo]\nruns_max = 2\n[backend.new]\nkind = \"x\"\n",
        "[agent.demo]\nruns_max = 2\n[hub]\nruns_max = 1\n",
        "[agent.demo]\nruns_max = 2\n[[policy.rule]]\neffect = \"allow\"\nkind = \"read\"\n",
        "[agent.demo]\nruns_max = 2\n[actions.x]\ndescription = \"X.\"\ncommand = [\"cat\"]\n",
    ];
    assert!(is_within(&base, &base));
    for text in wider {
        assert!(!is_within(&layers(text).1, &base), "{text}");
    }
}
