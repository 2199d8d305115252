//! clause: B05
//! clause: B06
//! clause: B11
//! clause: B12
//! clause: B13

use std::os::unix::fs::symlink;
use std::path::Path;

use proptest::prelude::*;
use runyard_backend::{Backend as _, ScriptedBackend, Scripts};
use runyard_redact::{Kind, Redactor, TagKey};
use tempfile::TempDir;

use super::*;

const KEY: &str = "sk-live-4242424242424242";
const AUTH_JSON: &str = r#"{"OPENAI_API_KEY": "sk-live-4242424242424242"}"#;
const LOGIN: &str =
    r#"{"auth_mode": "chatgpt", "OPENAI_API_KEY": null, "tokens": {"access_token": "at-4242424242"}}"#;
const CONFIG_TOML: &str = r#"
model = "gpt-5.5"
model_provider = "mine"
[model_providers.mine]
name = "Mine"
base_url = "https://ada:hunter22@models.example.com/v1"
env_key = "MINE_API_KEY_VARIABLE"
experimental_bearer_token = "bearer-0123456789"
http_headers = { X-Team = "team-red-9876" }
"#;

struct Place {
    directory: TempDir,
}

impl Place {
    fn with(files: &[(&str, &str, &str)]) -> Self {
        let place = Place { directory: TempDir::new().unwrap() };
        for (profile, key, value) in files {
            place.secrets().set(profile, key, value.as_bytes()).unwrap();
        }
        place
    }

    fn secrets(&self) -> Secrets {
        Secrets::at(self.directory.path())
    }
}

/// A kind of backend like that of codex.
fn info() -> BackendInfo {
    BackendInfo {
        gateway: true,
        wires: &[Wire::Responses],
        ..ScriptedBackend::new(Scripts::embedded().unwrap()).info()
    }
}

fn profile(name: &str) -> BackendProfile {
    BackendProfile {
        profile: name.to_owned(),
        required_secret_keys: vec![AUTH.to_owned()],
        optional_secret_keys: vec![CONFIG.to_owned()],
        gateway: true,
        ..BackendProfile::default()
    }
}

fn chat(name: &str, base_url: Option<&str>) -> BackendProfile {
    BackendProfile { wire: Wire::Chat, base_url: base_url.map(str::to_owned), ..profile(name) }
}

fn by_itself(name: &str) -> BackendProfile {
    BackendProfile { gateway: false, ..profile(name) }
}

fn scope(profile: &str, directory: &str, keys: &[&str]) -> SecretScope {
    let keys = keys.iter().map(|key| (*key).to_owned()).collect();
    let secret_ref = SecretRef { name: directory.to_owned(), keys };
    SecretScope { provider_credentials: vec![ProviderCredential { profile: profile.to_owned(), secret_ref }] }
}

fn of(place: &Place, profile: &BackendProfile) -> Result<Projection, Failure> {
    project(&place.secrets(), profile, &scope(&profile.profile, &profile.profile, &[]), &info())
}

fn names(projection: &Projection) -> Vec<&str> {
    projection.files.iter().map(|file| file.key.as_str()).collect()
}

fn redactor(known: Vec<Known>) -> Redactor {
    Redactor::builder(TagKey::for_this_process()).known(known).build().unwrap()
}

#[test]
fn b12_through_the_gateway_the_key_is_in_no_file_of_the_agent() {
    let place = Place::with(&[("codex", AUTH, AUTH_JSON), ("codex", CONFIG, CONFIG_TOML)]);
    let found = of(&place, &profile("codex")).unwrap();
    assert_eq!(
        (names(&found), found.keys.as_slice()),
        (vec![CONFIG], &[AUTH.to_owned(), CONFIG.to_owned()][..])
    );
    assert_eq!(
        found.said,
        "auth.json of codex, held by the gateway; config.toml of codex, in the session's home"
    );
    let How::Gateway(upstream) = &found.how else { panic!("{:?}", found.how) };
    assert_eq!(upstream.key.text(), Some(KEY));
    assert_eq!(upstream.base_url, "https://ada:hunter22@models.example.com/v1");
    assert!(!format!("{found:?}").contains(KEY), "it is never printed");
}

#[test]
fn b12_without_the_gateway_the_agent_is_given_its_profiles_files_as_they_are() {
    let place =
        Place::with(&[("codex", AUTH, LOGIN), ("codex", CONFIG, CONFIG_TOML), ("codex", "other", "x")]);
    let found = of(&place, &by_itself("codex")).unwrap();
    assert!(matches!(found.how, How::Files));
    assert_eq!(found.said, "auth.json, config.toml of codex, in the session's home");
    let file =
        |key: &str, content: &str| SecretFile { key: key.to_owned(), content: content.as_bytes().to_vec() };
    assert_eq!(found.files, [file(AUTH, LOGIN), file(CONFIG, CONFIG_TOML)]);
}

#[test]
fn b12_where_the_provider_listens_is_said_by_the_profile_then_its_configuration_then_by_default() {
    let place = Place::with(&[
        ("bare", AUTH, AUTH_JSON),
        ("told", AUTH, AUTH_JSON),
        ("told", CONFIG, CONFIG_TOML),
        ("half", AUTH, AUTH_JSON),
        ("half", CONFIG, "model_provider = \"gone\"\n[model_providers.other]\nbase_url = \"https://no\"\n"),
    ]);
    let check = |profile: BackendProfile, base_url: &str, wire: Wire| {
        let found = of(&place, &profile).unwrap();
        let How::Gateway(upstream) = found.how else { panic!("{:?}", found.how) };
        assert_eq!((upstream.base_url.as_str(), upstream.wire), (base_url, wire), "{}", profile.profile);
    };
    let own = BackendProfile { base_url: Some("http://own/v1".to_owned()), ..profile("told") };
    check(own, "http://own/v1", Wire::Responses);
    check(profile("told"), "https://ada:hunter22@models.example.com/v1", Wire::Responses);
    check(profile("bare"), "https://api.openai.com/v1", Wire::Responses);
    check(profile("half"), "https://api.openai.com/v1", Wire::Responses);
    check(chat("bare", Some("https://chat/v1")), "https://chat/v1", Wire::Chat);
    check(chat("told", None), "https://ada:hunter22@models.example.com/v1", Wire::Chat);
}

#[test]
fn b12_the_key_is_that_of_openai_or_the_only_other_one() {
    let check = |auth: &str, expected: &str| {
        let place = Place::with(&[("codex", AUTH, auth)]);
        let found = of(&place, &profile("codex")).unwrap();
        let How::Gateway(upstream) = found.how else { panic!("{:?}", found.how) };
        assert_eq!(upstream.key.text(), Some(expected));
    };
    check(r#"{"DEEPSEEK_API_KEY": "sk-deep-1"}"#, "sk-deep-1");
    check(r#"{"DEEPSEEK_API_KEY": "sk-deep-1", "OPENAI_API_KEY": " sk-open-1\n"}"#, "sk-open-1");
    check(r#"{"DEEPSEEK_API_KEY": "sk-deep-1", "OPENAI_API_KEY": null, "OTHER_API_KEY": ""}"#, "sk-deep-1");
    check(r#"{"tokens": {"access_token": "at"}, "OPENAI_API_KEY": "sk-open-1"}"#, "sk-open-1");
}

#[test]
fn b05_b13_each_thing_that_is_missing_or_wrong_is_a_failure_of_its_own_kind_and_says_what_to_do() {
    use FailureKind::{BackendSpawnFailed, ProviderAuthFailed, SecretUnavailable};
    let place = Place::with(&[
        ("codex", AUTH, AUTH_JSON),
        ("login", AUTH, LOGIN),
        ("broken", AUTH, "{\"OPENAI_API_KEY\": sk-live-4242424242424242}"),
        ("list", AUTH, "[\"sk-live-4242424242424242\"]"),
        ("empty", AUTH, "{}"),
        ("two", AUTH, r#"{"A_API_KEY": "sk-live-4242424242424242", "B_API_KEY": "sk-b"}"#),
        ("config", AUTH, AUTH_JSON),
        ("config", CONFIG, "model = sk-live-4242424242424242\n"),
        ("huge", AUTH, &format!("{{\"OPENAI_API_KEY\": \"{}\"}}", "k".repeat(PROJECTED_BYTES_MAX))),
    ]);
    std::fs::create_dir_all(place.directory.path().join("folder").join(AUTH)).unwrap();
    std::fs::create_dir(place.directory.path().join("link")).unwrap();
    symlink(place.directory.path().join("codex").join(AUTH), place.directory.path().join("link").join(AUTH))
        .unwrap();
    let check = |profile: &BackendProfile, kind: FailureKind, words: &[&str]| {
        let failure = of(&place, profile).unwrap_err();
        assert_eq!(failure.failure_kind, Some(kind), "{failure:?}");
        for word in words {
            assert!(failure.message.contains(word), "{word}: {}", failure.message);
        }
        assert!(!failure.message.contains("4242"), "no value is told: {}", failure.message);
        let asked = check_projection(&place.secrets(), profile, &info());
        assert_eq!(asked.unwrap_err(), failure, "whoever asks before a run learns the same");
    };
    check(
        &profile("deepseek"),
        SecretUnavailable,
        &["auth.json of deepseek is missing", "\"runyard secrets set deepseek auth.json\""],
    );
    check(&profile("folder"), SecretUnavailable, &["no plain file", "runyard secrets set folder auth.json"]);
    check(&profile("link"), SecretUnavailable, &["a link", "runyard secrets set link auth.json"]);
    check(&profile("../codex"), SecretUnavailable, &["the name of a profile"]);
    check(&profile("huge"), SecretUnavailable, &["huge", "bytes"]);
    for mode in [profile, by_itself] {
        check(
            &mode("broken"),
            ProviderAuthFailed,
            &["auth.json of broken", "no JSON", "runyard secrets set broken"],
        );
        check(&mode("list"), ProviderAuthFailed, &["no JSON object"]);
        check(&mode("config"), BackendSpawnFailed, &["config.toml of config", "no TOML (line 1)"]);
    }
    check(&profile("login"), ProviderAuthFailed, &["ChatGPT login", "gateway = false in [backend.login]"]);
    check(&profile("empty"), ProviderAuthFailed, &["OPENAI_API_KEY", "runyard secrets set empty auth.json"]);
    check(&profile("two"), ProviderAuthFailed, &["several keys"]);
    check(&chat("codex", None), BackendSpawnFailed, &["base_url", "[backend.codex]"]);
    let alone = BackendProfile { gateway: false, ..chat("codex", Some("https://chat/v1")) };
    check(&alone, BackendSpawnFailed, &["wire = \"chat\"", "gateway = true", "[backend.codex]"]);
    let keyless =
        BackendProfile { required_secret_keys: Vec::new(), ..chat("codex", Some("https://chat/v1")) };
    check(&keyless, BackendSpawnFailed, &["required_secret_keys in [backend.codex]"]);
}

#[test]
fn b05_only_what_the_execution_policy_names_is_read() {
    let place = Place::with(&[
        ("codex", AUTH, AUTH_JSON),
        ("codex", CONFIG, "broken"),
        ("deepseek", AUTH, AUTH_JSON),
    ]);
    let project = |scope: &SecretScope| project(&place.secrets(), &by_itself("codex"), scope, &info());
    let found = project(&scope("codex", "codex", &[AUTH])).unwrap();
    assert_eq!(found.keys, [AUTH], "what is not named is not even looked at");
    for (scope, word) in [
        (SecretScope::default(), "names no secrets of codex"),
        (scope("deepseek", "codex", &[]), "names no secrets of codex"),
        (scope("codex", "codex", &[CONFIG]), "does not name auth.json"),
        (scope("codex", "deepseek", &[]), "names no secrets of codex"),
    ] {
        let failure = project(&scope).unwrap_err();
        assert_eq!(failure.failure_kind, Some(FailureKind::SecretUnavailable));
        assert!(failure.message.contains(word), "{}", failure.message);
    }
}

#[test]
fn b12_a_profile_that_needs_no_secret_is_given_none() {
    let place = Place::with(&[("demo", AUTH, AUTH_JSON)]);
    let plain = BackendProfile {
        required_secret_keys: Vec::new(),
        optional_secret_keys: Vec::new(),
        ..profile("demo")
    };
    for scope in [SecretScope::default(), scope("demo", "demo", &[])] {
        let found = project(&place.secrets(), &plain, &scope, &info()).unwrap();
        assert!(matches!(found.how, How::Nothing) && found.files.is_empty() && found.known.is_empty());
        assert_eq!(found.said, "no secret is projected");
    }
    let own = BackendProfile { required_secret_keys: vec!["TOKEN".to_owned()], ..plain };
    let failure = of(&place, &own).unwrap_err();
    assert!(failure.message.contains("runyard secrets set demo TOKEN"), "{}", failure.message);
    place.secrets().set("demo", "TOKEN", b"tok-12345678\n").unwrap();
    let found = of(&place, &own).unwrap();
    assert_eq!(
        found.said, "TOKEN of demo, in the session's home",
        "only what codex calls a key is held by the gateway"
    );
    let said = redactor(found.known).text(Kind::Text, "it is tok-12345678").into_inner();
    assert!(!said.contains("tok-12345678"), "{said}");
}

#[test]
fn b11_every_value_is_known_and_what_may_be_shown_is_not() {
    let auth =
        r#"{"OPENAI_API_KEY": "sk-live-4242424242424242", "tokens": {"ids": ["id-77777777"], "n": 1}}"#;
    let place = Place::with(&[("codex", AUTH, auth), ("codex", CONFIG, CONFIG_TOML)]);
    let redactor = redactor(of(&place, &profile("codex")).unwrap().known);
    let redacted = |text: &str| redactor.text(Kind::Text, text).into_inner();
    for secret in [
        KEY,
        "id-77777777",
        "hunter22",
        "ada:hunter22",
        "bearer-0123456789",
        "team-red-9876",
        auth,
        CONFIG_TOML.trim(),
    ] {
        let said = redacted(&format!("it says >{secret}< here"));
        assert!(!said.contains(secret) && said.contains("[REDACTED:"), "{said}");
    }
    for shown in ["gpt-5.5", "https://models.example.com/v1", "codex", "MINE_API_KEY_VARIABLE", "auth.json"] {
        assert_eq!(redacted(&format!("it says {shown} here")), format!("it says {shown} here"));
    }
}

#[test]
fn b11_credentials_in_the_address_of_a_profile_are_known() {
    let place = Place::with(&[("codex", AUTH, AUTH_JSON)]);
    let base_url = Some("https://key:longer-than-8@host:1/v1?q=a@b".to_owned());
    let found = of(&place, &BackendProfile { base_url, ..profile("codex") }).unwrap();
    let said = redactor(found.known).text(Kind::Text, "it was longer-than-8, they say").into_inner();
    assert!(!said.contains("longer-than-8"), "{said}");
}

/// What a projection comes to, value by value.
fn told(found: Result<Projection, Failure>) -> String {
    match found {
        Err(failure) => format!("{failure:?}"),
        Ok(found) => {
            let files = found.files.iter().map(|file| (&file.key, String::from_utf8_lossy(&file.content)));
            let key = match &found.how {
                How::Gateway(upstream) => upstream.key.text().map(str::to_owned),
                How::Nothing | How::Files => None,
            };
            format!(
                "{:?} {key:?} {:?} {} {}",
                files.collect::<Vec<_>>(),
                found.keys,
                found.said,
                found.known.len()
            )
        }
    }
}

fn copy_of(from: &Path, profile: &str) -> TempDir {
    let copy = TempDir::new().unwrap();
    let _ = std::fs::create_dir(copy.path().join(profile));
    for entry in std::fs::read_dir(from.join(profile)).into_iter().flatten().flatten() {
        std::fs::copy(entry.path(), copy.path().join(profile).join(entry.file_name())).unwrap();
    }
    copy
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// What a run of a profile is given is the same whatever other profiles have, so nothing of theirs was read for it.
    #[test]
    fn b12_b13_a_projection_never_depends_on_another_profiles_secrets(
        there in prop::collection::btree_map(("codex|deepseek|codex2|dee", "auth\\.json|config\\.toml|other"), 0..3_usize, 0..9),
        chosen in "codex|deepseek|codex2",
        gateway in any::<bool>(),
        named in prop::collection::vec("auth\\.json|config\\.toml|other", 0..3),
    ) {
        let value = |profile: &str, key: &str, form: usize| match (key, form) {
            (_, 0) => "{".to_owned(),
            ("config.toml", _) => format!("experimental_bearer_token = \"value-of-{profile}\"\n"),
            (_, 1) => format!("{{\"tokens\": {{\"a\": \"value-of-{profile}\"}}}}"),
            (_, _) => format!("{{\"OPENAI_API_KEY\": \"value-of-{profile}\"}}"),
        };
        let place = Place::with(&[]);
        for ((profile, key), form) in &there {
            place.secrets().set(profile, key, value(profile, key, *form).as_bytes()).unwrap();
        }
        let alone = copy_of(place.directory.path(), &chosen);
        let profile = BackendProfile { gateway, ..profile(&chosen) };
        let mut scope = scope(&chosen, &chosen, &named.iter().map(String::as_str).collect::<Vec<_>>());
        for other in ["codex", "deepseek", "codex2"].into_iter().filter(|other| *other != chosen) {
            scope.provider_credentials.extend(self::scope(other, other, &[]).provider_credentials);
        }
        let found = told(project(&place.secrets(), &profile, &scope, &info()));
        prop_assert_eq!(&found, &told(project(&Secrets::at(alone.path()), &profile, &scope, &info())));
        for other in ["codex", "deepseek", "codex2", "dee"].into_iter().filter(|other| *other != chosen) {
            let foreign = format!("value-of-{other}\"");
            prop_assert!(!found.contains(&foreign.replace('"', "\\\"")) && !found.contains(&foreign), "{}", found);
        }
    }
}
