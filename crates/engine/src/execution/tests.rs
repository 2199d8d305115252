//! Whatever is wanted and allowed, what is recorded is within both.

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use runyard_backend::{Resumes, Runs, SecretKeys};
use runyard_domain::gate::Preset;
use runyard_domain::run::{Budget, OnReject};
use runyard_domain::{Approval, Changes, Code, Network, Sandbox};

use super::*;

const REQUIRED: &str = "auth.json";
const OPTIONAL: &str = "config.toml";

fn info() -> BackendInfo {
    BackendInfo {
        backend_kind: "scripted",
        protocol: "p",
        transport: "t",
        command: None,
        resumes: Resumes::Never,
        runs: Runs::Agent,
        asks: true,
        tells_steps: true,
        checkout: true,
        needs_network: true,
        secret_keys: SecretKeys { required: &[REQUIRED], optional: &[OPTIONAL] },
        gateway: true,
        wires: &[],
        logs_thread: false,
        private_files: &[],
        settings: &[],
    }
}

fn backend(profile: &str) -> BackendProfile {
    BackendProfile {
        profile: profile.to_owned(),
        backend_kind: "scripted".to_owned(),
        required_secret_keys: vec![REQUIRED.to_owned()],
        optional_secret_keys: vec![OPTIONAL.to_owned()],
        ..BackendProfile::default()
    }
}

fn agent(execution_policy: ExecutionPolicy) -> AgentProfile {
    AgentProfile {
        id: "a".to_owned(),
        label: "A".to_owned(),
        backend_profile: "codex".to_owned(),
        capabilities: Vec::new(),
        preset: Preset::Default,
        on_reject: OnReject::Cancel,
        execution_policy,
        runs_max: 1,
    }
}

fn entry(profile: &str, name: &str, keys: &[&str]) -> ProviderCredential {
    let keys = keys.iter().map(|key| (*key).to_owned()).collect();
    ProviderCredential { profile: profile.to_owned(), secret_ref: SecretRef { name: name.to_owned(), keys } }
}

fn scope(entries: Vec<ProviderCredential>) -> SecretScope {
    SecretScope { provider_credentials: entries }
}

#[track_caller]
fn settled(wanted: Option<Vec<ProviderCredential>>) -> Result<Vec<ProviderCredential>, Unscoped> {
    let wanted = WantedExecution { secret_scope: wanted.map(scope), ..WantedExecution::default() };
    let made =
        execution_policy(Some(&wanted), &agent(ExecutionPolicy::default()), (&backend("codex"), &info()));
    match made {
        Ok(policy) => Ok(policy.secret_scope.unwrap().provider_credentials),
        Err(error @ EngineError::SecretUnavailable { .. }) => {
            assert_eq!(error.code(), Code::SecretUnavailable);
            let EngineError::SecretUnavailable { profile, why } = error else { unreachable!() };
            assert_eq!(profile, "codex");
            Err(why)
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn b05_a_run_is_recorded_with_the_reference_to_its_own_profiles_secrets_and_no_other() {
    let all = vec![entry("codex", "codex", &[REQUIRED, OPTIONAL])];
    assert_eq!(settled(None), Ok(all.clone()), "the profile's own where nothing is said");
    assert_eq!(settled(Some(vec![entry("codex", "codex", &[])])), Ok(all.clone()), "no keys are all");
    let more = vec![entry("deepseek", "deepseek", &[]), entry("codex", "codex", &[OPTIONAL, REQUIRED])];
    assert_eq!(settled(Some(more)), Ok(all), "what is of another profile is left out");
    let less = vec![entry("codex", "codex", &[REQUIRED])];
    assert_eq!(settled(Some(less.clone())), Ok(less));
}

#[test]
fn b05_b13_without_a_matching_reference_a_run_is_refused_as_secret_unavailable() {
    assert_eq!(settled(Some(Vec::new())), Err(Unscoped::NoReference));
    let others = [
        entry("deepseek", "deepseek", &[]),
        entry("codex", "deepseek", &[]),
        entry("deepseek", "codex", &[]),
    ];
    assert_eq!(settled(Some(others.to_vec())), Err(Unscoped::NoReference), "there is no fallback");
    let known = vec![REQUIRED.to_owned(), OPTIONAL.to_owned()];
    let beyond = vec![entry("codex", "codex", &[REQUIRED, "id_rsa"])];
    assert_eq!(settled(Some(beyond)), Err(Unscoped::OtherKeys { known }));
    let without = vec![entry("codex", "codex", &[OPTIONAL])];
    assert_eq!(settled(Some(without)), Err(Unscoped::Without { key: REQUIRED.to_owned() }));
}

#[test]
fn a_profile_that_needs_no_secret_is_given_none_whatever_is_said() {
    let open = BackendProfile { required_secret_keys: Vec::new(), ..backend("demo") };
    let said = scope(vec![entry("demo", "demo", &[]), entry("codex", "codex", &[])]);
    assert_eq!(secret_scope([&said].into_iter(), &open).unwrap(), SecretScope::default());
    assert_eq!(secret_scope([].into_iter(), &open).unwrap(), SecretScope::default());
}

fn any_scope() -> impl Strategy<Value = SecretScope> {
    let name = || select(vec!["codex", "deepseek"]).prop_map(str::to_owned);
    let keys = subsequence(vec![REQUIRED, OPTIONAL, "id_rsa"], 0..=3);
    let entry = (name(), name(), keys).prop_map(|(profile, name, keys)| entry(&profile, &name, &keys));
    vec(entry, 0..4).prop_map(scope)
}

fn any_policy() -> impl Strategy<Value = ExecutionPolicy> {
    let words = (
        select(vec![Sandbox::ReadOnly, Sandbox::WorkspaceWrite, Sandbox::None]),
        select(vec![Network::Deny, Network::Ask, Network::Allow]),
        select(vec![Approval::Ask, Approval::Never]),
        select(vec![Changes::Ask, Changes::Keep]),
    );
    let limits = (1_u64..9, 1_u64..9, of(1_u64..9), of(of(1_u64..9)));
    (words, limits, of(any_scope())).prop_map(|(words, limits, secret_scope)| {
        let (sandbox, network, approval, changes) = words;
        let (timeout_ms, idle_ms, keep_open_ms, budget) = limits;
        let budget = budget.map(|tokens| Budget { cost_usd: "1".parse().ok(), tokens });
        ExecutionPolicy {
            sandbox,
            network,
            approval,
            timeout_ms,
            idle_ms,
            keep_open_ms,
            budget,
            changes,
            secret_scope,
        }
    })
}

/// Whether what is recorded allows nothing that `other` does not.
fn is_within(recorded: &ExecutionPolicy, other: &ExecutionPolicy) -> bool {
    let limit = |recorded: Option<u64>, other: Option<u64>| {
        other.is_none() || (recorded.is_some() && recorded <= other)
    };
    let tokens = |policy: &ExecutionPolicy| policy.budget.and_then(|budget| budget.tokens);
    let secrets = match (&recorded.secret_scope, &other.secret_scope) {
        (Some(recorded), Some(other)) => recorded.provider_credentials.iter().all(|recorded| {
            other.provider_credentials.iter().any(|other| {
                let keys = &other.secret_ref.keys;
                (&recorded.profile, &recorded.secret_ref.name) == (&other.profile, &other.secret_ref.name)
                    && (keys.is_empty() || recorded.secret_ref.keys.iter().all(|key| keys.contains(key)))
            })
        }),
        (Some(_), None) => true,
        (None, _) => false,
    };
    recorded.sandbox <= other.sandbox
        && recorded.network <= other.network
        && recorded.approval >= other.approval
        && recorded.changes >= other.changes
        && recorded.timeout_ms <= other.timeout_ms
        && recorded.idle_ms <= other.idle_ms
        && limit(recorded.keep_open_ms, other.keep_open_ms)
        && limit(tokens(recorded), tokens(other))
        && secrets
}

#[test]
fn c05_what_a_caller_leaves_out_of_an_execution_policy_is_the_agent_profiles() {
    let allowed = ExecutionPolicy {
        sandbox: Sandbox::None,
        network: Network::Allow,
        timeout_ms: 4 * 60 * 60 * 1000,
        idle_ms: 60 * 60 * 1000,
        ..ExecutionPolicy::default()
    };
    let settled = |wanted: WantedExecution| {
        let made = execution_policy(Some(&wanted), &agent(allowed.clone()), (&backend("codex"), &info()));
        ExecutionPolicy { secret_scope: None, ..made.unwrap() }
    };
    assert_eq!(settled(WantedExecution::default()), allowed);
    let keep = WantedExecution { changes: Some(Changes::Keep), ..WantedExecution::default() };
    assert_eq!(settled(keep), ExecutionPolicy { changes: Changes::Keep, ..allowed.clone() });
    let less = WantedExecution { timeout_ms: Some(1000), ..WantedExecution::default() };
    assert_eq!(settled(less), ExecutionPolicy { timeout_ms: 1000, ..allowed.clone() });
    let narrow = WantedExecution { network: Some(Network::Deny), ..WantedExecution::default() };
    assert_eq!(settled(narrow), ExecutionPolicy { network: Network::Deny, ..allowed.clone() });
}

proptest! {
    #[test]
    fn b07_what_is_recorded_is_within_what_is_wanted_and_what_is_allowed(
        wanted in any_policy(),
        allowed in any_policy(),
        profile in select(vec!["codex", "deepseek"]),
        open in any::<bool>(),
    ) {
        let mut backend = backend(profile);
        if open {
            backend.required_secret_keys.clear();
        }
        let (agent, known) = (agent(allowed.clone()), [REQUIRED, OPTIONAL].map(str::to_owned));
        if let Ok(recorded) = execution_policy(Some(&wanted.clone().into()), &agent, (&backend, &info())) {
            prop_assert!(is_within(&recorded, &wanted), "{recorded:?}\n{wanted:?}");
            prop_assert!(is_within(&recorded, &allowed), "{recorded:?}\n{allowed:?}");
            for entry in recorded.secret_scope.unwrap().provider_credentials {
                prop_assert_eq!((entry.profile.as_str(), entry.secret_ref.name.as_str()), (profile, profile));
                prop_assert!(entry.secret_ref.keys.iter().all(|key| known.contains(key)));
                prop_assert!(entry.secret_ref.keys.contains(&REQUIRED.to_owned()) && !open);
            }
        }
        // Nobody who says nothing is given more than the profile allows.
        if let Ok(recorded) = execution_policy(None, &agent, (&backend, &info())) {
            prop_assert!(is_within(&recorded, &allowed), "{recorded:?}\n{allowed:?}");
        }
    }
}
