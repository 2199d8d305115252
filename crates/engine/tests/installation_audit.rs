//! The audit: what stands in it, that it is chained, and that a change by hand shows.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

use std::path::Path;
use std::sync::Arc;

use runyard_domain::gate::{Effect, Preset, Rule, RuleKind, RuleText, Scope};
use runyard_domain::run::{Resolution, Who};
use runyard_domain::{
    Actor, AppendId, ApprovalId, Code, EventId, Listing, RunId, Timestamp, WorkspaceChanged, WorkspaceId,
};
use runyard_engine::{
    ActionRefused, AuditFact, ChangesApplied, DecisionMade, INSTALLATION, Installation, InstallationError,
    Login, PolicyRead, Role, SecretProjected, TrustGiven,
};
use runyard_redact::{Redactor, Safe, TagKey};
use runyard_store::{Change, ManualClock, MemoryStore, NewEvent, Place, StorageError, Store, Writes};
use runyard_store_sqlite::{OpenOptions, SqliteStore};
use serde_json::{Value, json};

const NOW_MS: i64 = 1_700_000_000_000;
const RUN: RunId = RunId::from_parts(1, &[1; 10]);

async fn open_at(store: &Arc<dyn Store>, clock: &Arc<ManualClock>) -> Installation {
    let redactor = Redactor::builder(TagKey::from_bytes([7; 32])).private_path("/home/ada", "<home>");
    Installation::open(Arc::clone(store), redactor.build().unwrap(), Arc::clone(clock) as _).await.unwrap()
}

async fn open(store: &Arc<dyn Store>) -> Installation {
    open_at(store, &Arc::new(ManualClock::at(NOW_MS))).await
}

fn in_memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

fn in_file(path: &Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(OpenOptions::new(path, "the test")).unwrap())
}

fn ada() -> Who {
    Who::from(&Actor::owner("ada"))
}

fn agent() -> Who {
    Who::from(&Actor::agent("codex", RUN, ["runs.read"]))
}

fn decision() -> AuditFact {
    AuditFact::Decision(DecisionMade {
        approval_id: ApprovalId::from_parts(2, &[2; 10]),
        run_id: RUN,
        resolution: Resolution::Approved,
        digest: "d1".to_owned(),
        reason: Some("see /home/ada/notes".to_owned()),
    })
}

fn refusal(action: &str) -> AuditFact {
    AuditFact::Refused(ActionRefused { action: action.to_owned(), run_id: Some(RUN), repeated: 0 })
}

fn login() -> AuditFact {
    AuditFact::Login(Login { how: "http".to_owned() })
}

/// Type, actor and content of every entry.
async fn said(installation: &Installation) -> Vec<(String, Value, Value)> {
    let entries = installation.entries(0, 500).await.unwrap();
    entries.into_iter().map(|entry| (entry.kind, entry.by, entry.what)).collect()
}

#[tokio::test]
async fn c24_every_kind_of_entry_says_who_did_what() {
    let installation = open(&in_memory()).await;
    let by_ada = json!({"id": "ada", "kind": "person"});
    let by_agent = json!({"id": "codex", "kind": "agent", "runId": RUN});
    let by_runyard = json!({"id": "runyard", "kind": "service"});
    let mut expected = vec![("installation.opened".to_owned(), by_runyard.clone(), json!({}))];
    let mut expect = |kind: &str, by: &Value, what: Value| expected.push((kind.to_owned(), by.clone(), what));

    let expires = Timestamp::from_unix_ms(NOW_MS + 1);
    let (token, _) = installation.create_token("ci", Role::Viewer, Some(expires), &ada()).await.unwrap();
    let digest = said(&installation).await[1].2["digest"].clone();
    assert_eq!(digest.as_str().unwrap().len(), 64);
    let created =
        json!({"tokenId": token.id, "name": "ci", "role": "viewer", "digest": digest, "expires": expires});
    expect("installation.token.created", &by_ada, created);
    installation.revoke_token("ci", &ada()).await.unwrap();
    expect("installation.token.revoked", &by_ada, json!({"tokenId": token.id, "name": "ci"}));

    let always = Rule::new(Effect::Deny, RuleKind::Network, Some("*.example.com")).unwrap();
    let always = installation.add_rule(always, &ada()).await.unwrap().id;
    let text = json!({"id": always, "effect": "deny", "kind": "network", "match": "*.example.com", "scope": "always"});
    expect("installation.rule.added", &by_ada, json!({"ruleId": always, "rule": text}));
    installation.remove_rule(&always.to_string(), &ada()).await.unwrap();
    expect("installation.rule.removed", &by_ada, json!({"ruleId": always, "rule": text}));
    let once = RuleText { scope: Scope::Once, ..RuleText::new(Effect::Allow, RuleKind::Deploy, None) };
    let once = installation.add_rule(once.try_into().unwrap(), &ada()).await.unwrap().id;
    let text = json!({"id": once, "effect": "allow", "kind": "deploy", "scope": "once"});
    expect("installation.rule.added", &by_ada, json!({"ruleId": once, "rule": text}));
    installation.use_once(&once.to_string()).await.unwrap();
    expect("installation.rule.used", &by_runyard, json!({"ruleId": once}));

    installation.record(&ada(), login()).await.unwrap();
    expect("audit.login", &by_ada, json!({"how": "http"}));
    installation.record(&ada(), decision()).await.unwrap();
    let approval = ApprovalId::from_parts(2, &[2; 10]);
    let decided = json!({
        "approvalId": approval, "runId": RUN, "resolution": "approved", "digest": "d1", "reason": "see <home>/notes",
    });
    expect("audit.decision", &by_ada, decided);
    let applied = ChangesApplied {
        run_id: RUN,
        approval_id: approval,
        digest: "d3".to_owned(),
        commit: Some("c0ffee".to_owned()),
    };
    installation.record(&ada(), AuditFact::Applied(applied)).await.unwrap();
    let applied = json!({"runId": RUN, "approvalId": approval, "digest": "d3", "commit": "c0ffee"});
    expect("audit.applied", &by_ada, applied);
    installation.record(&agent(), refusal("approval_resolve")).await.unwrap();
    expect("audit.refused", &by_agent, json!({"action": "approval_resolve", "runId": RUN}));
    let trust = TrustGiven { path: "demo/runyard.toml".to_owned(), digest: "d2".to_owned() };
    installation.record(&ada(), AuditFact::Trust(trust)).await.unwrap();
    expect("audit.trust", &by_ada, json!({"path": "demo/runyard.toml", "digest": "d2"}));
    let revoked = TrustGiven { path: "demo/runyard.toml".to_owned(), digest: "d2".to_owned() };
    installation.record(&ada(), AuditFact::TrustRevoked(revoked)).await.unwrap();
    expect("audit.trust.revoked", &by_ada, json!({"path": "demo/runyard.toml", "digest": "d2"}));
    let read = PolicyRead { workspace: Some("demo".to_owned()), ..PolicyRead::default() };
    installation.record(&Who::runyard(), AuditFact::Policy(read)).await.unwrap();
    expect("audit.policy", &by_runyard, json!({"workspace": "demo", "rules": []}));
    let workspace_id = WorkspaceId::from_parts(3, &[3; 10]);
    let change = WorkspaceChanged { change: Listing::Added, workspace_id, label: "demo".to_owned() };
    installation.record(&ada(), AuditFact::Workspace(change)).await.unwrap();
    let added = json!({"change": "added", "workspaceId": workspace_id, "label": "demo"});
    expect("audit.workspace", &by_ada, added);
    let secret = SecretProjected { run_id: RUN, profile: "codex".to_owned(), keys: Vec::new(), how: None };
    installation.record(&ada(), AuditFact::Secret(secret)).await.unwrap();
    expect("audit.secret", &by_ada, json!({"runId": RUN, "profile": "codex"}));

    assert_eq!(said(&installation).await, expected);
}

#[tokio::test]
async fn c24_entries_are_paged_and_each_is_chained_to_the_one_before() {
    let store = in_memory();
    let installation = open(&store).await;
    for _ in 0..9 {
        installation.record(&ada(), decision()).await.unwrap();
    }
    let all = installation.entries(0, 500).await.unwrap();
    let mut paged = Vec::new();
    loop {
        let after = paged.len() as u64;
        let page = installation.entries(after, 3).await.unwrap();
        assert!(page.len() <= 3);
        if page.is_empty() {
            break;
        }
        paged.extend(page);
    }
    assert_eq!(paged, all);
    assert_eq!(all.len(), 10);
    let events = store.read(INSTALLATION, 0, 500).await.unwrap();
    let links: Vec<_> = events.iter().map(|event| event.envelope().unwrap().prev_hash).collect();
    let hashes = all.iter().map(|entry| Some(entry.hash.clone()));
    assert_eq!(links[1..], hashes.take(9).collect::<Vec<_>>());
    let verified = installation.verify().await.unwrap();
    assert_eq!((verified.events, verified.head.unwrap().to_string()), (10, all[9].hash.clone()));
}

#[tokio::test]
async fn c24_what_is_brought_twice_under_one_append_id_is_recorded_once() {
    let store = in_memory();
    let append = AppendId::from_parts(5, &[5; 10]);
    for _ in 0..2 {
        // The second time is after a restart.
        let installation = open(&store).await;
        for _ in 0..2 {
            installation.record_once(append, &ada(), decision()).await.unwrap();
        }
        assert_eq!(said(&installation).await.len(), 2);
    }
}

#[tokio::test]
async fn who_comes_in_again_and_again_is_recorded_once_an_hour() {
    let (store, clock) = (in_memory(), Arc::new(ManualClock::at(NOW_MS)));
    let installation = open_at(&store, &clock).await;
    for _ in 0..3 {
        installation.record(&ada(), login()).await.unwrap();
        installation.record(&agent(), login()).await.unwrap();
    }
    assert_eq!(said(&installation).await.len(), 1 + 2);
    clock.advance_ms(60 * 60 * 1000 - 1);
    installation.record(&ada(), login()).await.unwrap();
    assert_eq!(said(&installation).await.len(), 1 + 2);
    clock.advance_ms(1);
    installation.record(&ada(), login()).await.unwrap();
    assert_eq!(said(&installation).await.len(), 1 + 3);
}

// clause: C24
#[tokio::test]
async fn who_comes_in_again_is_recorded_once_an_hour_also_where_each_call_has_a_process_of_its_own() {
    let (store, clock) = (in_memory(), Arc::new(ManualClock::at(NOW_MS)));
    for _ in 0..3 {
        open_at(&store, &clock).await.record(&ada(), login()).await.unwrap();
        clock.advance_ms(60 * 1000);
    }
    assert_eq!(said(&open(&store).await).await.len(), 1 + 1);
    clock.advance_ms(57 * 60 * 1000 - 1);
    open_at(&store, &clock).await.record(&ada(), login()).await.unwrap();
    assert_eq!(said(&open(&store).await).await.len(), 1 + 1, "an hour is not over");
    open_at(&store, &clock).await.record(&agent(), login()).await.unwrap();
    clock.advance_ms(1);
    open_at(&store, &clock).await.record(&ada(), login()).await.unwrap();
    assert_eq!(said(&open(&store).await).await.len(), 1 + 3, "the agent, and the person again");
    let browser = || AuditFact::Login(Login { how: "browser".to_owned() });
    open_at(&store, &clock).await.record(&ada(), browser()).await.unwrap();
    open_at(&store, &clock).await.record(&ada(), browser()).await.unwrap();
    assert_eq!(said(&open(&store).await).await.len(), 1 + 5, "each session in a browser is one");
}

/// What a file says of the policy.
fn policy(workspace: Option<&str>, rules: &[(Effect, &str)], preset: Preset) -> PolicyRead {
    let rule =
        |(effect, pattern): &(Effect, &str)| Rule::new(*effect, RuleKind::Shell, Some(pattern)).unwrap();
    PolicyRead {
        workspace: workspace.map(str::to_owned),
        rules: rules.iter().map(rule).collect(),
        preset: Some(preset),
        ..PolicyRead::default()
    }
}

#[tokio::test]
async fn c24_what_a_file_says_of_the_policy_is_recorded_whenever_it_is_another_than_before() {
    let store = in_memory();
    // Each time after a restart, and what is said twice is recorded once.
    let read = async |read: PolicyRead| {
        let installation = open(&store).await;
        let mut known = installation.policies_said().await.unwrap();
        for _ in 0..2 {
            installation.record_policy(&mut known, read.clone()).await.unwrap();
        }
        let all = said(&installation).await.into_iter();
        all.filter(|(kind, ..)| kind == "audit.policy").map(|(_, _, what)| what).collect::<Vec<_>>()
    };
    let nothing = |workspace| policy(workspace, &[], Preset::Default);
    assert_eq!(read(nothing(None)).await, [json!(null); 0], "nothing was ever said");
    let deny = policy(None, &[(Effect::Deny, "cat /home/ada/x")], Preset::Default);
    assert_eq!(read(deny.clone()).await.len(), 1);
    assert_eq!(read(deny.clone()).await.len(), 1, "also where it is stored without a private path");
    let site = policy(Some("site"), &[(Effect::Ask, "make")], Preset::Default);
    assert_eq!(read(site).await.len(), 2);
    let own = read(nothing(None)).await;
    assert_eq!((own.len(), &own[2]), (3, &json!({"rules": [], "preset": "default"})));
    let own = read(policy(None, &[], Preset::Strict)).await;
    assert_eq!((own.len(), &own[3]["preset"]), (4, &json!("strict")));
    let of_site = read(nothing(Some("site"))).await;
    assert_eq!((of_site.len(), &of_site[4]["rules"]), (5, &json!([])));
    assert_eq!(read(deny).await.len(), 6);
    assert_eq!(read(nothing(Some("site"))).await.len(), 6);
}

#[tokio::test]
async fn j06_an_agent_that_is_refused_again_and_again_is_counted_and_cannot_fill_the_record() {
    let (store, clock) = (in_memory(), Arc::new(ManualClock::at(NOW_MS)));
    let installation = open_at(&store, &clock).await;
    for _ in 0..100 {
        installation.record(&agent(), refusal("approval_resolve")).await.unwrap();
    }
    installation.record(&agent(), refusal("policy_add")).await.unwrap();
    clock.advance_ms(60 * 1000);
    installation.record(&agent(), refusal("approval_resolve")).await.unwrap();
    let whats: Vec<_> = said(&installation).await.into_iter().skip(1).map(|(_, _, what)| what).collect();
    let once = |action: &str| json!({"action": action, "runId": RUN});
    let again = json!({"action": "approval_resolve", "runId": RUN, "repeated": 99});
    assert_eq!(whats, [once("approval_resolve"), once("policy_add"), again]);
}

/// An installation in a file with some entries, changed by hand afterwards.
async fn verify_after(sql: &str) -> Result<u64, InstallationError> {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("runyard.db");
    let file = in_file(&database);
    let store: Arc<dyn Store> = file.clone();
    let installation = open(&store).await;
    installation.create_token("ci", Role::Viewer, None, &ada()).await.unwrap();
    installation.record(&ada(), decision()).await.unwrap();
    installation.record(&agent(), refusal("approval_resolve")).await.unwrap();
    drop((installation, store));
    file.close().await;
    drop(file);
    let raw = rusqlite::Connection::open(&database).unwrap();
    assert_eq!(raw.execute(sql, []).unwrap(), 1, "{sql}");
    drop(raw);
    let store: Arc<dyn Store> = in_file(&database);
    let verified = open(&store).await.verify().await;
    verified.map(|verified| verified.events)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c24_a_byte_that_was_changed_by_hand_is_named() {
    let replace = |column: &str, from: &str, to: &str| {
        format!("{column} = CAST(replace(CAST({column} AS TEXT), '{from}', '{to}') AS BLOB)")
    };
    let body =
        |from, to, place| format!("UPDATE events SET {} WHERE sequence = {place}", replace("body", from, to));
    assert_eq!(verify_after(&body("nothing", "else", 2)).await.unwrap(), 4);
    for (sql, sequence) in [
        (body("\"viewer\"", "\"admins\"", 2), 3),
        (body("approved", "rejected", 3), 4),
        (body("codex", "nobody", 4), 4),
    ] {
        let error = verify_after(&sql).await.unwrap_err();
        assert_eq!(error.code(), Code::StorageCorrupt);
        assert!(matches!(&error, InstallationError::Broken(at) if at.sequence == sequence), "{error}");
    }
    // A role in force that no entry gave.
    let error =
        verify_after(&format!("UPDATE runs SET {}", replace("state", "viewer", "admin"))).await.unwrap_err();
    assert_eq!(error.code(), Code::StorageCorrupt);
    assert!(matches!(error, InstallationError::StateDiffers { sequence: 4 }), "{error}");
}

/// An event of a version that is still to come.
async fn write_later_event(store: &Arc<dyn Store>, kind: &'static str) -> Result<(), StorageError> {
    let at = Timestamp::from_unix_ms(NOW_MS);
    let event =
        NewEvent::new(EventId::from_parts(9, &[9; 10]), at, kind, Safe::object([("new", true.into())]));
    let decide = move |_: &_| Ok(Writes { events: vec![event.clone()], ..Writes::default() });
    let place = Place::Head(Box::new(decide));
    let append = AppendId::from_parts(9, &[9; 10]);
    store.append(Change { run: INSTALLATION, append, generation: None, place }).await.map(drop)
}

#[tokio::test]
async fn an_entry_of_a_later_version_is_shown_and_one_that_changes_rights_is_not_passed_over() {
    let store = in_memory();
    let installation = open(&store).await;
    write_later_event(&store, "audit.later").await.unwrap();
    assert_eq!(said(&installation).await[1].2, json!({"new": true}));
    assert_eq!(installation.verify().await.unwrap().events, 2);

    let store = in_memory();
    let installation = open(&store).await;
    write_later_event(&store, "installation.later").await.unwrap();
    let error = installation.verify().await.unwrap_err();
    assert!(matches!(error, InstallationError::UnknownKind { sequence: 2 }), "{error}");
    // What this version can still change is changed, and whoever changes it is told that it does not count here.
    let error = installation
        .add_rule(Rule::new(Effect::Deny, RuleKind::Deploy, None).unwrap(), &ada())
        .await
        .unwrap_err();
    assert!(matches!(error, InstallationError::NotInForceYet(_)), "{error}");
    assert_eq!(error.code(), Code::StorageSerialization, "{error}");
    assert_eq!(open(&store).await.stored_rules().len(), 1);
}
