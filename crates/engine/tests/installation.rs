//! Tokens and rules of an installation: what holds for one writer, for two, and after a restart.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

use std::path::Path;
use std::sync::Arc;

use runyard_domain::gate::{Effect, Rule, RuleKind, RuleText, Scope};
use runyard_domain::run::Who;
use runyard_domain::{Actor, ActorKind, Code, Grants, RunId, Timestamp};
use runyard_engine::{
    INSTALLATION, Installation, InstallationError, NAME_BYTES_MAX, Role, TOKENS_MAX, is_installation,
    permissions,
};
use runyard_redact::{Redactor, TagKey};
use runyard_store::{ManualClock, MemoryStore, Store};
use runyard_store_sqlite::{OpenOptions, SqliteStore};
use tempfile::TempDir;

const NOW_MS: i64 = 1_700_000_000_000;

fn redactor() -> Redactor {
    let builder = Redactor::builder(TagKey::from_bytes([7; 32]));
    builder.private_path("/home/ada", "<home>").build().unwrap()
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(NOW_MS))
}

async fn open(store: &Arc<dyn Store>, clock: &Arc<ManualClock>) -> Installation {
    Installation::open(Arc::clone(store), redactor(), Arc::clone(clock) as _).await.unwrap()
}

fn in_memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

fn in_file(path: &Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(OpenOptions::new(path, "the test")).unwrap())
}

/// Both kinds of store, and the folder of the one that has a file.
fn both() -> (TempDir, [Arc<dyn Store>; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let file = in_file(&folder.path().join("runyard.db"));
    (folder, [in_memory(), file])
}

fn ada() -> Who {
    Who::from(&Actor::owner("ada"))
}

fn agent() -> Who {
    Who::from(&Actor::agent("codex", RunId::from_parts(1, &[1; 10]), ["runs.read"]))
}

fn rule(scope: Scope) -> Rule {
    RuleText { scope, ..RuleText::new(Effect::Allow, RuleKind::Shell, Some("cargo test *")) }
        .try_into()
        .unwrap()
}

#[track_caller]
fn refused<T: std::fmt::Debug>(outcome: Result<T, InstallationError>, code: Code) {
    let error = outcome.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
}

#[tokio::test]
async fn a_token_lets_its_holder_in_with_exactly_the_permissions_of_its_role() {
    let (_folder, stores) = both();
    for store in stores {
        let installation = open(&store, &clock()).await;
        assert!(installation.holder("").is_none());
        for (name, role) in Role::ALL.map(|role| (role.as_str(), role)) {
            let (info, text) = installation.create_token(name, role, None, &ada()).await.unwrap();
            let text = text.reveal();
            let holder = installation.holder(&text).unwrap();
            let grants = role.grants();
            assert_eq!(*holder, Actor { id: name.to_owned(), kind: ActorKind::Person, grants });
            assert!(holder.grants.include(permissions::RUNS_READ));
            assert_eq!((info.created_by, info.created), (ada(), Timestamp::from_unix_ms(NOW_MS)));
            assert!(installation.holder(&text[..text.len() - 1]).is_none());
            assert!(installation.holder(&format!("{text}0")).is_none());
        }
        let (_, admin) = installation.create_token("root", Role::Admin, None, &ada()).await.unwrap();
        assert_eq!(installation.holder(&admin.reveal()).unwrap().grants, Grants::All);
        let names: Vec<_> = installation.tokens().into_iter().map(|token| token.name).collect();
        assert_eq!(names, ["viewer", "operator", "approver", "admin", "root"]);
    }
}

#[tokio::test]
async fn a_revoked_token_lets_nobody_in_and_its_name_is_free_again() {
    let (_folder, stores) = both();
    for store in stores {
        let installation = open(&store, &clock()).await;
        let (by_id, first) = installation.create_token("ci", Role::Viewer, None, &ada()).await.unwrap();
        installation.revoke_token(&by_id.id.to_string(), &ada()).await.unwrap();
        let (_, second) = installation.create_token("ci", Role::Viewer, None, &ada()).await.unwrap();
        let (first, second) = (first.reveal(), second.reveal());
        assert!(installation.holder(&first).is_none());
        assert!(installation.holder(&second).is_some());
        installation.revoke_token("CI", &ada()).await.unwrap();
        assert!(installation.holder(&second).is_none());
        refused(installation.revoke_token("ci", &ada()).await, Code::NotFound);
        assert_eq!(installation.tokens(), []);
    }
}

#[tokio::test]
async fn an_expired_token_lets_nobody_in_and_its_name_is_free_again() {
    let (store, clock) = (in_memory(), clock());
    let installation = open(&store, &clock).await;
    let expires = Timestamp::from_unix_ms(NOW_MS + 1000);
    let (_, first) = installation.create_token("ci", Role::Admin, Some(expires), &ada()).await.unwrap();
    let first = first.reveal();
    clock.advance_ms(999);
    assert!(installation.holder(&first).is_some());
    refused(installation.create_token("ci", Role::Viewer, None, &ada()).await, Code::Conflict);
    clock.advance_ms(1);
    assert!(installation.holder(&first).is_none());
    refused(
        installation.create_token("ci2", Role::Viewer, Some(expires), &ada()).await,
        Code::ValidationError,
    );
    let (_, second) = installation.create_token("ci", Role::Viewer, None, &ada()).await.unwrap();
    assert!(installation.holder(&second.reveal()).is_some());
    // A clock that is set back does not bring the first one back.
    clock.advance_ms(-1000);
    assert!(installation.holder(&first).is_none());
    assert_eq!(installation.tokens().len(), 1);
}

#[tokio::test]
async fn a_name_is_checked_and_not_repeated_in_the_error() {
    let installation = open(&in_memory(), &clock()).await;
    let long = "x".repeat(NAME_BYTES_MAX + 1);
    for name in ["", "two words", "runyard", "ryd_0123", &long] {
        let error = installation.create_token(name, Role::Viewer, None, &ada()).await.unwrap_err();
        assert_eq!(error.code(), Code::ValidationError);
        assert!(name.is_empty() || !error.to_string().contains(name), "{error}");
    }
    installation.create_token("Ada", Role::Viewer, None, &ada()).await.unwrap();
    refused(installation.create_token("ada", Role::Viewer, None, &ada()).await, Code::Conflict);
}

#[tokio::test]
async fn the_text_of_a_token_is_nowhere_in_the_store_nor_in_anything_that_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = in_file(&folder.path().join("runyard.db"));
    let store: Arc<dyn Store> = file.clone();
    let installation = open(&store, &clock()).await;
    let (info, text) = installation.create_token("ci", Role::Admin, None, &ada()).await.unwrap();
    let shown = format!("{text:?}{info:?}{:?}", installation.registry());
    let text = text.reveal();
    // Somebody takes the token for its name.
    let mistaken = installation.revoke_token(&text, &ada()).await.unwrap_err();
    let taken = installation.create_token(&text, Role::Viewer, None, &ada()).await.unwrap_err();
    let errors = format!("{mistaken} {mistaken:?} {taken} {taken:?}");
    let entries = serde_json::to_string(&installation.entries(0, 100).await.unwrap()).unwrap();
    let written = || {
        let files = std::fs::read_dir(folder.path()).unwrap();
        files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect::<Vec<_>>()
    };
    let before_close = written();
    file.close().await;
    let all =
        before_close.into_iter().chain(written()).chain([shown, errors, entries].map(String::into_bytes));
    let (mut secret, mut found_info) = (text.trim_start_matches("ryd_").as_bytes(), false);
    secret = &secret[..16];
    for bytes in all {
        assert!(!bytes.windows(secret.len()).any(|window| window == secret));
        let id = info.id.to_string();
        found_info |= bytes.windows(id.len()).any(|window| window == id.as_bytes());
    }
    assert!(found_info, "the search looks where the token is kept");
}

#[tokio::test]
async fn a_stored_rule_is_named_by_its_id_and_each_change_is_a_new_version() {
    let (_folder, stores) = both();
    for store in stores {
        let installation = open(&store, &clock()).await;
        assert_eq!((installation.stored_rules(), installation.registry().policy_version()), (vec![], 0));
        let always = installation.add_rule(rule(Scope::Always), &ada()).await.unwrap();
        let once = installation.add_rule(rule(Scope::Once), &ada()).await.unwrap();
        assert_eq!(installation.stored_rules(), [always.rule.clone(), once.rule.clone()]);
        assert_eq!(always.rule.id(), always.id.to_string());
        assert_eq!(installation.registry().rules(), [always.clone(), once.clone()]);
        assert_eq!(installation.registry().policy_version(), 2);
        refused(installation.use_once(always.rule.id()).await, Code::ValidationError);
        installation.use_once(once.rule.id()).await.unwrap();
        refused(installation.use_once(once.rule.id()).await, Code::NotFound);
        assert_eq!(installation.registry().policy_version(), 3);
        installation.remove_rule(always.rule.id(), &ada()).await.unwrap();
        refused(installation.remove_rule(always.rule.id(), &ada()).await, Code::NotFound);
        assert_eq!((installation.stored_rules(), installation.registry().policy_version()), (vec![], 4));
    }
}

#[tokio::test]
async fn a_rule_that_redaction_would_change_is_refused_and_not_stored_as_another_rule() {
    let installation = open(&in_memory(), &clock()).await;
    let private = Rule::new(Effect::Deny, RuleKind::Read, Some("/home/ada/notes/**")).unwrap();
    refused(installation.add_rule(private, &ada()).await, Code::RedactedContent);
    assert_eq!(installation.stored_rules(), []);
    let other = Rule::new(Effect::Deny, RuleKind::Read, Some("/srv/notes/**")).unwrap();
    installation.add_rule(other, &ada()).await.unwrap();
}

#[tokio::test]
async fn j06_an_agent_changes_neither_tokens_nor_rules() {
    let installation = open(&in_memory(), &clock()).await;
    let stored = installation.add_rule(rule(Scope::Always), &ada()).await.unwrap();
    installation.create_token("ci", Role::Viewer, None, &ada()).await.unwrap();
    let before = (installation.registry(), installation.entries(0, 100).await.unwrap());
    let code = Code::AuthorizationError;
    refused(installation.create_token("mine", Role::Admin, None, &agent()).await, code);
    refused(installation.revoke_token("ci", &agent()).await, code);
    refused(installation.add_rule(rule(Scope::Always), &agent()).await, code);
    refused(installation.remove_rule(stored.rule.id(), &agent()).await, code);
    assert_eq!((installation.registry(), installation.entries(0, 100).await.unwrap()), before);
}

#[tokio::test]
async fn there_is_room_for_so_many_tokens_and_no_more() {
    let installation = open(&in_memory(), &clock()).await;
    for number in 0..TOKENS_MAX {
        installation.create_token(&format!("t{number}"), Role::Viewer, None, &ada()).await.unwrap();
    }
    let error = installation.create_token("more", Role::Viewer, None, &ada()).await.unwrap_err();
    assert!(matches!(error, InstallationError::TokensFull), "{error}");
    installation.revoke_token("t0", &ada()).await.unwrap();
    installation.create_token("more", Role::Viewer, None, &ada()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hubs_that_open_at_once_begin_the_log_once() {
    let (_folder, stores) = both();
    for store in stores {
        let (one, other) = (clock(), clock());
        let (one, other) = tokio::join!(open(&store, &one), open(&store, &other));
        one.create_token("ci", Role::Viewer, None, &ada()).await.unwrap();
        let kinds: Vec<_> = other.entries(0, 10).await.unwrap().into_iter().map(|entry| entry.kind).collect();
        assert_eq!(kinds, ["installation.opened", "installation.token.created"]);
        let page = store.runs(runyard_store::RunsQuery { limit: 10, ..Default::default() }).await.unwrap();
        assert_eq!(page.runs.iter().map(|row| row.run).collect::<Vec<_>>(), [INSTALLATION]);
        assert!(is_installation(page.runs[0].run) && page.runs[0].status == "installation");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_writers_who_want_one_name_or_one_use_exactly_one_wins() {
    const ROUNDS: usize = 50;
    let (_folder, stores) = both();
    for store in stores {
        let (one, other) = (open(&store, &clock()).await, open(&store, &clock()).await);
        for round in 0..ROUNDS {
            let name = format!("ci{round}");
            let race = [&one, &other].map(|installation| {
                let (installation, name) = (installation.clone(), name.clone());
                tokio::spawn(async move {
                    installation.create_token(&name, Role::Viewer, None, &ada()).await.map(drop)
                })
            });
            let [first, second] = race;
            exactly_one(first.await.unwrap(), second.await.unwrap(), Code::Conflict);
            let used = one.add_rule(rule(Scope::Once), &ada()).await.unwrap().rule;
            let [first, second] = [&one, &other].map(|installation| {
                let (installation, used) = (installation.clone(), used.clone());
                tokio::spawn(async move { installation.use_once(used.id()).await })
            });
            exactly_one(first.await.unwrap(), second.await.unwrap(), Code::NotFound);
        }
        one.verify().await.unwrap();
        assert_eq!(one.tokens().len(), ROUNDS);
    }
}

#[track_caller]
fn exactly_one(first: Result<(), InstallationError>, second: Result<(), InstallationError>, code: Code) {
    match (first, second) {
        (Ok(()), Err(error)) | (Err(error), Ok(())) => assert_eq!(error.code(), code, "{error}"),
        both => panic!("{both:?}"),
    }
}

#[tokio::test]
async fn what_one_hub_changes_arrives_at_the_other() {
    let (_folder, stores) = both();
    for store in stores {
        let (one, other) = (open(&store, &clock()).await, open(&store, &clock()).await);
        let mut changed = other.changed();
        let (_, token) = one.create_token("ci", Role::Viewer, None, &ada()).await.unwrap();
        let token = token.reveal();
        changed.wait_for(|_| other.holder(&token).is_some()).await.unwrap();
        let stored = one.add_rule(rule(Scope::Always), &ada()).await.unwrap();
        changed.wait_for(|_| other.stored_rules() == [stored.rule.clone()]).await.unwrap();
        one.revoke_token("ci", &ada()).await.unwrap();
        changed.wait_for(|_| other.holder(&token).is_none()).await.unwrap();
        assert_eq!(one.registry(), other.registry());
    }
}

#[test]
fn a_restart_keeps_tokens_rules_and_entries() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("runyard.db");
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (token, registry, entries) = runtime().block_on(async {
        let file = in_file(&database);
        let store: Arc<dyn Store> = file.clone();
        let installation = open(&store, &clock()).await;
        let (_, token) = installation.create_token("ci", Role::Approver, None, &ada()).await.unwrap();
        installation.create_token("gone", Role::Approver, None, &ada()).await.unwrap();
        installation.revoke_token("gone", &ada()).await.unwrap();
        installation.add_rule(rule(Scope::Always), &ada()).await.unwrap();
        let entries = installation.entries(0, 100).await.unwrap();
        file.close().await;
        (token.reveal(), installation.registry(), entries)
    });
    runtime().block_on(async {
        let store: Arc<dyn Store> = in_file(&database);
        let installation = open(&store, &clock()).await;
        assert_eq!(installation.registry(), registry);
        assert_eq!(installation.holder(&token).unwrap().id, "ci");
        assert_eq!(installation.entries(0, 100).await.unwrap(), entries);
        assert_eq!(installation.verify().await.unwrap().events, entries.len() as u64);
        for unknown in ["", "always", "rul_01010101010101010101010101010101"] {
            refused(installation.remove_rule(unknown, &ada()).await, Code::NotFound);
            refused(installation.use_once(unknown).await, Code::NotFound);
        }
    });
}
