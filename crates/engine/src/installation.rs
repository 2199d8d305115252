//! The installation itself as a log like a run's: named tokens, the rules that people added, and the audit.
//!
//! It stands in the same store under a reserved id, and is appended to, chained, verified and followed like a run. The tokens
//! and rules in force are folded from its events; every change is decided inside the transaction that makes it, so of two
//! writers one wins. It judges no request and lets nobody in by itself: it says who holds a token and which rules there are.

mod audit;
mod error;
mod fact;
mod follow;
mod latest;
mod registry;
mod token;

use std::sync::Arc;

use runyard_backend::failpoint;
use runyard_domain::gate::{Effect, Rule, RuleText, Scope};
use runyard_domain::run::Who;
use runyard_domain::{Actor, ActorKind, AppendId, EventId, RuleId, RunId, Timestamp, TokenId};
use runyard_redact::Redactor;
use runyard_store::{
    Appended, Change, Clock, NewEvent, Place, Projection, Refusal, RunRow, StorageError, Store, Writes,
    append_until_known,
};
use tokio::sync::{OnceCell, watch};

pub use audit::{AuditEntry, ENTRIES_MAX};
pub use error::InstallationError;
pub use fact::{
    ActionRefused, AuditFact, ChangesApplied, DecisionMade, Login, PolicyRead, SecretProjected,
    SessionClosed, TrustGiven,
};
pub use latest::PoliciesSaid;
pub use registry::{REGISTRY_BYTES_MAX, RULES_MAX, Registry, StoredRule, TOKENS_MAX};
pub use token::{NAME_BYTES_MAX, Role, TokenInfo, TokenText, permissions};

use crate::fresh::fresh;
use audit::Quiet;
use fact::{Opened, RegistryFact, RuleAdded, RuleRemoved, RuleUsed, TokenCreated, TokenRevoked};
use follow::{Current, Follower};
use registry::unchanged;

/// The id under which the installation's own log stands among the runs. No run has it.
pub const INSTALLATION: RunId = RunId::from_bytes([0; 16]);

/// What its row says in the place of a run's state.
const STATUS: &str = "installation";

/// Whether this id is the installation's own log and no run.
pub fn is_installation(run: RunId) -> bool {
    run == INSTALLATION
}

/// Tokens, stored rules and the audit. Cheap to clone.
#[derive(Clone)]
pub struct Installation(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    redactor: Redactor,
    clock: Arc<dyn Clock>,
    current: Arc<Current>,
    quiet: Quiet,
    logins_recalled: OnceCell<()>,
    _follower: Follower,
}

impl Installation {
    /// Opens the installation's log, and begins it where there is none. From then on it is followed, so that what others
    /// change arrives too.
    ///
    /// A rule that `redactor` would change cannot be added, so one that knows private paths keeps rules from naming them.
    pub async fn open(
        store: Arc<dyn Store>,
        redactor: Redactor,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, InstallationError> {
        let row = match store.run(INSTALLATION).await? {
            Some(row) => row,
            None => begin(&*store, &redactor, clock.now()).await?,
        };
        let current = Arc::new(Current::at(Arc::clone(&store), &row)?);
        let follower = Follower::of(&current);
        let (quiet, logins_recalled) = (Quiet::default(), OnceCell::new());
        let inner = Inner { store, redactor, clock, current, quiet, logins_recalled, _follower: follower };
        Ok(Installation(Arc::new(inner)))
    }

    /// The tokens and rules in force.
    pub fn registry(&self) -> Arc<Registry> {
        self.0.current.registry()
    }

    /// Changes when the registry has changed, here or elsewhere; it shows the place of the event that changed it.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.0.current.changed()
    }

    /// Makes a token. Its text is given here and never again.
    pub async fn create_token(
        &self,
        name: &str,
        role: Role,
        expires: Option<Timestamp>,
        by: &Who,
    ) -> Result<(TokenInfo, TokenText), InstallationError> {
        token::check_name(name)?;
        let now = self.0.clock.now();
        if expires.is_some_and(|expires| expires <= now) {
            return Err(InstallationError::ExpiredAlready);
        }
        let text = TokenText::random()?;
        let (token_id, name) = (fresh!(TokenId, now), name.to_owned());
        let made = TokenCreated { token_id, name: name.clone(), role, digest: text.digest(), expires };
        let changed = self.change(by, now, move |registry| match registry.token(&made.name) {
            Some(held) if !held.is_expired(now) => {
                Err(InstallationError::NameTaken { name: held.name.clone() })
            }
            _ => Ok(RegistryFact::TokenCreated(made.clone())),
        });
        match changed.await {
            // It is made, and its text would be lost.
            Ok(()) | Err(InstallationError::NotInForceYet(_)) => {}
            Err(error) => return Err(error),
        }
        let info = TokenInfo { id: token_id, name, role, created: now, created_by: by.clone(), expires };
        Ok((info, text))
    }

    /// The tokens, oldest first; expired ones are among them, revoked ones are not.
    pub fn tokens(&self) -> Vec<TokenInfo> {
        self.registry().tokens().cloned().collect()
    }

    /// Revokes the token of this id or name. Its holder is not let in again from here on.
    pub async fn revoke_token(&self, id_or_name: &str, by: &Who) -> Result<(), InstallationError> {
        let asked = id_or_name.to_owned();
        self.change(by, self.0.clock.now(), move |registry| {
            let found = registry.token(&asked).ok_or(InstallationError::NoSuchToken)?;
            Ok(RegistryFact::TokenRevoked(TokenRevoked { token_id: found.id, name: found.name.clone() }))
        })
        .await
    }

    /// Who holds this token; nobody if it is unknown, revoked or expired.
    pub fn holder(&self, token: &str) -> Option<Arc<Actor>> {
        self.registry().holder(token, self.0.clock.now())
    }

    /// Adds a rule. It is named by its new id, whatever its name was.
    pub async fn add_rule(&self, rule: Rule, by: &Who) -> Result<StoredRule, InstallationError> {
        let now = self.0.clock.now();
        let rule_id = fresh!(RuleId, now);
        let rule = Rule::try_from(RuleText { id: Some(rule_id.to_string()), ..rule.into() })?;
        let added = RuleAdded { rule_id, rule: rule.clone() };
        self.change(by, now, move |_| Ok(RegistryFact::RuleAdded(added.clone()))).await?;
        Ok(StoredRule { id: rule_id, rule, added: now, added_by: by.clone() })
    }

    /// Adds the rule that follows from something, once, however often it is brought under the bytes of that thing's id.
    pub(crate) async fn add_rule_once(
        &self,
        from: [u8; 16],
        rule: Rule,
        by: &Who,
    ) -> Result<(), InstallationError> {
        let rule_id = RuleId::from_bytes(from);
        let rule = Rule::try_from(RuleText { id: Some(rule_id.to_string()), ..rule.into() })?;
        let added = RegistryFact::RuleAdded(RuleAdded { rule_id, rule });
        self.write_once(AppendId::from_bytes(from), by, self.0.clock.now(), move |_| Ok(added.clone())).await
    }

    /// Removes the rules that allow something in the workspace of this label alone, and says how many: another one of that name is
    /// another place.
    pub async fn retire_project(&self, label: &str, by: &Who) -> Result<usize, InstallationError> {
        let allows =
            |rule: &Rule| rule.effect() == Effect::Allow && rule.text().workspace.as_deref() == Some(label);
        let (stored, mut retired) = (self.registry(), 0);
        for rule in stored.rules().iter().filter(|stored| allows(&stored.rule)) {
            match self.remove_rule(&rule.id.to_string(), by).await {
                Ok(()) => retired += 1,
                Err(InstallationError::NoSuchRule) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(retired)
    }

    /// Removes the stored rule of this id.
    pub async fn remove_rule(&self, id: &str, by: &Who) -> Result<(), InstallationError> {
        let rule_id = id.parse().map_err(|_| InstallationError::NoSuchRule)?;
        self.change(by, self.0.clock.now(), move |registry| {
            let found = registry.rule(rule_id).ok_or(InstallationError::NoSuchRule)?;
            Ok(RegistryFact::RuleRemoved(RuleRemoved { rule_id, rule: found.rule.clone() }))
        })
        .await
    }

    /// Uses up the stored rule of this id, which holds once. Of two who use it one succeeds, and the other finds that there
    /// is no such rule.
    pub async fn use_once(&self, id: &str) -> Result<(), InstallationError> {
        let rule_id = id.parse().map_err(|_| InstallationError::NoSuchRule)?;
        self.write(&Who::runyard(), self.0.clock.now(), move |registry| {
            let found = registry.rule(rule_id).ok_or(InstallationError::NoSuchRule)?;
            if found.rule.scope() != Scope::Once {
                return Err(InstallationError::NotOnce);
            }
            Ok(RegistryFact::RuleUsed(RuleUsed { rule_id }))
        })
        .await
    }

    /// The rules that people added, as a policy holds them.
    pub fn stored_rules(&self) -> Vec<Rule> {
        self.registry().rules().iter().map(|stored| stored.rule.clone()).collect()
    }

    /// A change that is for people.
    async fn change(
        &self,
        by: &Who,
        now: Timestamp,
        decide: impl Fn(&Registry) -> Result<RegistryFact, InstallationError> + Clone + Send + 'static,
    ) -> Result<(), InstallationError> {
        if matches!(by.kind, ActorKind::Agent { .. }) {
            return Err(InstallationError::PeopleOnly);
        }
        self.write(by, now, decide).await
    }

    /// Decides, inside the transaction, what changes, and returns when that is durable and in force here.
    async fn write(
        &self,
        by: &Who,
        now: Timestamp,
        decide: impl Fn(&Registry) -> Result<RegistryFact, InstallationError> + Clone + Send + 'static,
    ) -> Result<(), InstallationError> {
        self.write_once(fresh!(AppendId, now), by, now, decide).await
    }

    /// The same, once, however often it is brought under this append id.
    async fn write_once(
        &self,
        append: AppendId,
        by: &Who,
        now: Timestamp,
        decide: impl Fn(&Registry) -> Result<RegistryFact, InstallationError> + Clone + Send + 'static,
    ) -> Result<(), InstallationError> {
        let author =
            Author { by: by.clone(), now, event: fresh!(EventId, now), redactor: self.0.redactor.clone() };
        let appended = commit(&*self.0.store, || {
            let (author, decide) = (author.clone(), decide.clone());
            let decide = move |row: &RunRow| -> Result<Writes, Refusal> {
                let registry = Registry::of(row)?;
                let fact = decide(&registry)?;
                Ok(author.writes(registry, fact)?)
            };
            Change { run: INSTALLATION, append, generation: None, place: Place::Head(Box::new(decide)) }
        })
        .await?;
        let in_force = self.0.current.catch_up(appended.last).await;
        in_force.map_err(|error| InstallationError::NotInForceYet(Box::new(error)))
    }

    async fn row(&self) -> Result<RunRow, InstallationError> {
        row(&*self.0.store).await
    }
}

async fn row(store: &dyn Store) -> Result<RunRow, InstallationError> {
    let found = store.run(INSTALLATION).await?;
    Ok(found.ok_or_else(|| StorageError::not_found("log of the installation"))?)
}

/// Begins the log, or finds that another did at the same time.
async fn begin(store: &dyn Store, redactor: &Redactor, now: Timestamp) -> Result<RunRow, InstallationError> {
    let author = Author { by: Who::runyard(), now, event: fresh!(EventId, now), redactor: redactor.clone() };
    let writes = author.writes(Registry::default(), RegistryFact::Opened(Opened {}))?;
    let append = fresh!(AppendId, now);
    let begun = commit(store, || {
        let place = Place::At(0, writes.clone());
        Change { run: INSTALLATION, append, generation: None, place }
    });
    match begun.await {
        Ok(_) | Err(StorageError::VersionConflict { .. }) => row(store).await,
        Err(error) => Err(error.into()),
    }
}

/// Appends to the installation's log, and returns when that is durable.
async fn commit(store: &dyn Store, change: impl FnMut() -> Change) -> Result<Appended, StorageError> {
    failpoint::reach("installation.commit");
    let appended = append_until_known(store, change).await?;
    failpoint::reach("installation.committed");
    Ok(appended)
}

/// Who makes a change, and when: the same for every repetition of it.
#[derive(Clone)]
struct Author {
    by: Who,
    now: Timestamp,
    event: EventId,
    redactor: Redactor,
}

impl Author {
    /// What is written when this fact comes to this registry.
    fn writes(&self, mut registry: Registry, fact: RegistryFact) -> Result<Writes, InstallationError> {
        let payload = unchanged(&self.redactor, fact.payload(&self.by)?, "what is to be changed")?;
        let event = NewEvent::new(self.event, self.now, fact.kind(), payload);
        registry.apply(self.now, self.by.clone(), fact);
        registry.check_limits()?;
        let state = registry.stored(&self.redactor)?;
        let projection = Some(Projection { status: STATUS, state });
        Ok(Writes { events: vec![event], projection, ..Writes::default() })
    }
}
