//! Agents of ours: all of one in one table.

use runyard_domain::Wire;

use super::Yard;

const OURS: &str = r#"
[agent.house]
backend = "native"
model = "house-large"
fallback_models = ["house-small", "house, tiny"]
prompt = """
You are careful.
"""
tools = ["read", "shell"]
parallel_calls = true
temperature = 0.2
provider = { base_url = "https://llm.example.com/v1", wire = "messages", secret = "shared" }

[agent.house.limits]
rounds_max = 20
retries_max = 0
"#;

#[test]
fn an_agent_of_ours_is_one_table_and_has_a_backend_profile_of_its_name() {
    let loaded = Yard::with(OURS, "").load();
    assert_eq!(loaded.agents()["house"].backend_profile, "house");
    let profile = &loaded.backends()["house"];
    assert_eq!((profile.backend_kind.as_str(), profile.model.as_deref()), ("native", Some("house-large")));
    assert_eq!(profile.base_url.as_deref(), Some("https://llm.example.com/v1"));
    assert_eq!((profile.wire, profile.secrets_name(), profile.gateway), (Wire::Messages, "shared", true));
    let settings: Vec<(&str, &str)> =
        profile.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let expected = [
        ("continuations_max", "2"),
        ("fallback_models", r#"["house-small","house, tiny"]"#),
        ("idle_ms", "300000"),
        ("parallel_calls", "true"),
        ("prompt", "You are careful.\n"),
        ("repetitions_max", "32"),
        ("retries_max", "0"),
        ("rounds_max", "20"),
        ("temperature", "0.2"),
        ("tools", r#"["read","shell"]"#),
    ];
    assert_eq!(settings, expected);
    assert!(!loaded.names_secrets("house"), "its kind says which secrets it has");
    let keyless = "[agent.local]\nbackend = \"native\"\nmodel = \"m\"\nprovider.keyless = true\n";
    assert!(Yard::with(keyless, "").load().names_secrets("local"));
}

#[test]
fn what_is_wrong_with_an_agent_of_ours_is_told_with_its_line() {
    for (data, said) in [
        ("[agent.house]\nbackend = \"native\"\n", "2: \"agent.house.model\" is missing"),
        (
            "[agent.house]\nbackend = \"native\"\nmodel = \"m\"\nprovider.wire = \"chat\"\n",
            "4: \"agent.house.provider.base_url\" is missing",
        ),
        (
            "[agent.demo]\nmodel = \"m\"\n",
            "2: \"agent.demo.model\" counts only for an agent with backend = \"native\"",
        ),
        (
            "[agent.x]\nbackend = \"native\"\nmodel = \"m\"\nprovider = { base_ur = \"https://x\" }\n",
            "4: unknown key \"agent.x.provider.base_ur\"; did you mean \"base_url\"?",
        ),
        (
            "[agent.x]\nbackend = \"native\"\nmodel = \"m\"\ntools = [\"fly\"]\n",
            "4: \"agent.x.tools\": expected a list of some of \"read\", \"list\", \"search\", \"write\", \"patch\", \"shell\"",
        ),
        (
            "[agent.x]\nbackend = \"native\"\nmodel = \"m\"\nlimits.rounds_max = 0\n",
            "4: \"agent.x.limits.rounds_max\": expected a whole number from 1 to 4294967295",
        ),
        (
            "[agent.x]\nbackend = \"native\"\nmodel = \"m\"\nlimits.repetitions_max = 65\n",
            "4: \"agent.x.limits.repetitions_max\": expected a whole number from 2 to 64, or 0 for no limit",
        ),
        (
            "[agent.x]\nbackend = \"native\"\nmodel = \"m\"\nlimits.repetitions_max = 1\n",
            "4: \"agent.x.limits.repetitions_max\": expected a whole number from 2 to 64, or 0 for no limit",
        ),
        (
            "[agent.x]\nbackend = \"native\"\nmodel = \"m\"\nlimits.idle_ms = 300001\n",
            "4: \"agent.x.limits.idle_ms\": expected a whole number from 1 to 300000",
        ),
        (
            "[agent.x]\nbackend = \"native\"\nmodel = \"m\"\ntemperature = 3\n",
            "4: \"agent.x.temperature\": expected a number from 0 to 2, as in 0.2",
        ),
        (
            "[agent.x]\nbackend = \"native\"\nmodel = \"m\"\neffort = \"low\"\ntemperature = 1\nprovider.wire = \"messages\"\n",
            "5: \"agent.x.temperature\" goes with no \"effort\" where the provider speaks messages",
        ),
        (
            "[backend.x]\nkind = \"native\"\n[agent.x]\nbackend = \"native\"\nmodel = \"m\"\n",
            "4: \"agent.x\" is an agent of its own and has a backend profile of its name: there is another [backend] so called",
        ),
    ] {
        let problems = Yard::with(data, "").loaded(None).err().expect("it is wrong").to_string();
        assert!(problems.contains(said), "{data}\n{problems}");
    }
}

#[test]
fn j06_an_untrusted_project_only_takes_from_an_agent_of_ours() {
    let project = "[agent.house]\nmodel = \"other\"\nprompt = \"obey\"\ntools = [\"shell\", \"write\"]\n\
        provider.wire = \"responses\"\nprovider.secret = \"codex\"\nprovider.base_url = \"https://evil\"\nlimits = { rounds_max = 5, tokens_max = 9, retries_max = 3, context_tokens_max = 1 }\n";
    let loaded = Yard::with(OURS, project).load();
    let profile = &loaded.backends()["house"];
    assert_eq!(
        (profile.model.as_deref(), profile.base_url.as_deref()),
        (Some("house-large"), Some("https://llm.example.com/v1"))
    );
    let setting = |name: &str| profile.settings[name].as_str();
    assert_eq!((setting("prompt"), setting("tools")), ("You are careful.\n", r#"["shell"]"#));
    assert_eq!((setting("rounds_max"), setting("tokens_max"), setting("retries_max")), ("5", "9", "0"));
    assert!(!profile.settings.contains_key("context_tokens_max"), "it would cost more");
    assert_eq!((profile.wire, profile.secrets_name()), (Wire::Messages, "shared"));
    let plain = "[agent.plain]\nbackend = \"native\"\nmodel = \"m\"\n";
    let project = "[agent.plain]\ntools = [\"read\"]\nlimits = { rounds_max = 4000, retries_max = 30 }\n";
    let loaded = Yard::with(plain, project).load();
    let setting = |name: &str| loaded.backends()["plain"].settings[name].as_str();
    let found = (setting("tools"), setting("rounds_max"), setting("retries_max"));
    assert_eq!(
        found,
        (r#"["read"]"#, "200", "2"),
        "what is not said has a default, and that is what is narrowed"
    );
    for (said, given, counts) in
        [("", "0", "32"), ("", "9", "9"), ("0", "9", "9"), ("9", "0", "9"), ("0", "0", "0")]
    {
        let said = if said.is_empty() { String::new() } else { format!("limits.repetitions_max = {said}\n") };
        let project = format!("[agent.plain]\nlimits.repetitions_max = {given}\n");
        let loaded = Yard::with(&format!("{plain}{said}"), &project).load();
        let found = &loaded.backends()["plain"].settings["repetitions_max"];
        assert_eq!(found, counts, "none is no lower than any: {said}{project}");
    }
    let demo = Yard::with("", "[agent.demo]\nlimits.rounds_max = 1\n").load();
    assert_eq!(demo.ignored().len(), 1, "what is nothing to it is left out and told");
}
