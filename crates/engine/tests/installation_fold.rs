//! Whatever is done in whatever order, the registry is what its log says: live, read back and replayed.
//!
//! 64 cases by default; `RUNYARD_PROOF=soak` makes it 5,000.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::Config;
use runyard_domain::gate::{Effect, RuleKind, RuleText, Scope};
use runyard_domain::run::Who;
use runyard_domain::{Actor, RuleId, Timestamp};
use runyard_engine::{AuditFact, Installation, InstallationError, Login, Role};
use runyard_redact::{Redactor, TagKey};
use runyard_store::{Clock, ManualClock, MemoryStore, Store};

#[derive(Clone, Debug)]
enum Step {
    Create {
        name: usize,
        role: usize,
        lives_ms: Option<u64>,
    },
    Revoke {
        name: usize,
    },
    Add {
        once: bool,
    },
    /// Of the rules that were ever added, whether they are still there or not.
    Remove {
        rule: usize,
    },
    Use {
        rule: usize,
    },
    Record,
    Wait {
        ms: u64,
    },
}

const NAMES: [&str; 4] = ["ada", "bob", "ci", "ADA"];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..NAMES.len(), 0..4_usize, proptest::option::of(1..50_u64))
            .prop_map(|(name, role, lives_ms)| Step::Create { name, role, lives_ms }),
        2 => (0..NAMES.len()).prop_map(|name| Step::Revoke { name }),
        3 => any::<bool>().prop_map(|once| Step::Add { once }),
        1 => (0..8_usize).prop_map(|rule| Step::Remove { rule }),
        1 => (0..8_usize).prop_map(|rule| Step::Use { rule }),
        1 => Just(Step::Record),
        2 => (1..60_u64).prop_map(|ms| Step::Wait { ms }),
    ];
    proptest::collection::vec(step, 0..40)
}

/// What should be in force, by the simplest bookkeeping.
#[derive(Default)]
struct Model {
    /// By name in lower case: when it expires, its role, its text.
    tokens: BTreeMap<String, (Option<Timestamp>, Role, String)>,
    /// In the order in which they came: whether it holds once, and whether it is there.
    rules: Vec<(RuleId, bool, bool)>,
    version: u64,
}

struct Bench {
    store: Arc<dyn Store>,
    clock: Arc<ManualClock>,
    /// Two hubs, which take turns.
    hubs: [Installation; 2],
    model: Model,
}

async fn open(store: &Arc<dyn Store>, clock: &Arc<ManualClock>) -> Installation {
    let redactor = Redactor::builder(TagKey::from_bytes([7; 32])).build().unwrap();
    Installation::open(Arc::clone(store), redactor, Arc::clone(clock) as _).await.unwrap()
}

impl Bench {
    async fn new() -> Self {
        let (store, clock): (Arc<dyn Store>, _) =
            (Arc::new(MemoryStore::new()), Arc::new(ManualClock::at(1_700_000_000_000)));
        let hubs = [open(&store, &clock).await, open(&store, &clock).await];
        Bench { store, clock, hubs, model: Model::default() }
    }

    async fn step(&mut self, number: usize, step: Step) {
        let (hub, now, model) = (&self.hubs[number % 2], self.clock.now(), &mut self.model);
        let by = Who::from(&Actor::owner("ada"));
        match step {
            Step::Create { name, role, lives_ms } => {
                let (name, role) = (NAMES[name], Role::ALL[role]);
                let expires = lives_ms.map(|ms| now.plus_ms(ms));
                let held = model.tokens.get(&name.to_lowercase());
                let free = held.is_none_or(|(expires, ..)| expires.is_some_and(|expires| expires <= now));
                let made = hub.create_token(name, role, expires, &by).await;
                assert_eq!(made.is_ok(), free, "{made:?}");
                if let Ok((_, text)) = made {
                    model.tokens.insert(name.to_lowercase(), (expires, role, text.reveal()));
                }
            }
            Step::Revoke { name } => {
                let held = model.tokens.remove(&NAMES[name].to_lowercase());
                assert_eq!(hub.revoke_token(NAMES[name], &by).await.is_ok(), held.is_some());
            }
            Step::Add { once } => {
                let scope = if once { Scope::Once } else { Scope::Always };
                let text = RuleText { scope, ..RuleText::new(Effect::Ask, RuleKind::Write, Some("src/**")) };
                let added = hub.add_rule(text.try_into().unwrap(), &by).await.unwrap();
                model.rules.push((added.id, once, true));
                model.version += 1;
            }
            Step::Remove { rule } => {
                let Some((id, _, there)) = model.rules.get_mut(rule) else { return };
                let removed = hub.remove_rule(&id.to_string(), &by).await.is_ok();
                assert_eq!(removed, std::mem::take(there));
                model.version += u64::from(removed);
            }
            Step::Use { rule } => {
                let Some((id, once, there)) = model.rules.get_mut(rule) else { return };
                let used = hub.use_once(&id.to_string()).await;
                assert_eq!(used.is_ok(), *once && *there, "{used:?}");
                *there &= used.is_err();
                model.version += u64::from(used.is_ok());
            }
            Step::Record => {
                hub.record(&by, AuditFact::Login(Login { how: "http".to_owned() })).await.unwrap();
            }
            Step::Wait { ms } => self.clock.advance_ms(ms as i64),
        }
    }

    async fn check(self) -> Result<(), InstallationError> {
        let (now, model) = (self.clock.now(), &self.model);
        let read_back = open(&self.store, &self.clock).await;
        // Replayed from the beginning, and compared with the row.
        read_back.verify().await?;
        for hub in &self.hubs {
            let mut changed = hub.changed();
            changed.wait_for(|_| hub.registry() == read_back.registry()).await.unwrap();
        }
        let rules: Vec<_> = read_back.registry().rules().iter().map(|rule| rule.id).collect();
        let there: Vec<_> = model.rules.iter().filter(|rule| rule.2).map(|rule| rule.0).collect();
        assert_eq!((rules, read_back.registry().policy_version()), (there, model.version));
        assert_eq!(read_back.tokens().len(), model.tokens.len());
        for (expires, role, text) in model.tokens.values() {
            let lives = expires.is_none_or(|expires| now < expires);
            let holder = read_back.holder(text).map(|holder| holder.grants.clone());
            assert_eq!(holder, lives.then(|| role.grants()));
        }
        Ok(())
    }
}

fn cases() -> u32 {
    match std::env::var("RUNYARD_PROOF").as_deref() {
        Ok("soak") => 5_000,
        _ => 64,
    }
}

proptest! {
    #![proptest_config(Config { cases: cases(), failure_persistence: None, ..Config::default() })]

    #[test]
    fn the_registry_is_the_same_live_read_back_and_replayed(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut bench = Bench::new().await;
            for (number, step) in steps.into_iter().enumerate() {
                bench.step(number, step).await;
            }
            bench.check().await.unwrap();
        });
    }
}
