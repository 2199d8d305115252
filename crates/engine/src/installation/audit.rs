//! The audit: what is kept for whoever asks later who did what, and whether that record still holds.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use runyard_domain::run::Who;
use runyard_domain::{AppendId, EventId, Timestamp};
use runyard_store::{Change, LoggedEvent, NewEvent, Place, Verified, Writes};
use serde::Serialize;
use serde_json::Value;

use super::error::InstallationError;
use super::fact::{AuditFact, Login};
use super::follow::PAGE;
use super::registry::{Registry, registry_fact};
use super::{INSTALLATION, Installation, commit};
use crate::fresh::fresh;

/// The most entries of one page; a larger limit is taken as this one.
pub const ENTRIES_MAX: u32 = 500;
/// How long somebody who came in is not recorded as coming in again.
pub(super) const LOGIN_QUIET_MS: u64 = 60 * 60 * 1000;
/// How long the same refusal is only counted.
const REFUSED_QUIET_MS: u64 = 60 * 1000;
/// About how many different ones are kept quiet at a time. What is beyond that is recorded each time.
const QUIET_MAX: usize = 1024;

/// One entry of the audit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// Its place.
    pub sequence: u64,
    /// When.
    pub at: Timestamp,
    /// What kind of thing happened, as in `audit.decision`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Who did it, as it is stored.
    pub by: Value,
    /// What they did.
    pub what: Value,
    /// The hash of the stored entry, which stands for all entries before it too.
    pub hash: String,
}

impl AuditEntry {
    fn of(event: &LoggedEvent) -> Result<Self, InstallationError> {
        let envelope = event.envelope()?;
        let mut what = envelope.payload;
        let by = what.as_object_mut().and_then(|facts| facts.remove("by")).unwrap_or_default();
        let (sequence, at, kind) = (event.sequence, envelope.timestamp, envelope.kind);
        Ok(AuditEntry { sequence, at, kind, by, what, hash: event.hash().to_string() })
    }
}

impl Installation {
    /// Records a fact, and returns when it is durable.
    ///
    /// Who comes in with a token again and again is recorded once an hour, and who is refused the same again and again once a minute, with
    /// how often it was: nobody can fill the record by asking.
    pub async fn record(&self, by: &Who, mut fact: AuditFact) -> Result<(), InstallationError> {
        let now = self.0.clock.now();
        let (quiet_ms, what) = match &fact {
            AuditFact::Login(login) if login.how != Login::BROWSER => {
                // A hub that is there for one call would else record its caller each time.
                self.0.logins_recalled.get_or_try_init(|| self.recall_logins()).await?;
                (LOGIN_QUIET_MS, login.quiet_as(by))
            }
            AuditFact::Refused(refused) => {
                (REFUSED_QUIET_MS, format!("{by:?} {} {:?}", refused.action, refused.run_id))
            }
            _ => return self.record_once(fresh!(AppendId, now), by, fact).await,
        };
        let Some(left_out) = self.0.quiet.admit(&what, now, quiet_ms) else { return Ok(()) };
        if let AuditFact::Refused(refused) = &mut fact {
            refused.repeated += left_out;
        }
        let recorded = self.record_once(fresh!(AppendId, now), by, fact).await;
        if recorded.is_err() {
            self.0.quiet.forget(&what);
        }
        recorded
    }

    /// Records a fact once, however often it is brought under this append id.
    pub async fn record_once(
        &self,
        append: AppendId,
        by: &Who,
        fact: AuditFact,
    ) -> Result<(), InstallationError> {
        let now = self.0.clock.now();
        let payload = self.0.redactor.json(fact.payload(by)?);
        let event = NewEvent::new(fresh!(EventId, now), now, fact.kind(), payload);
        commit(&*self.0.store, || {
            let events = vec![event.clone()];
            let decide = move |_: &_| Ok(Writes { events: events.clone(), ..Writes::default() });
            Change { run: INSTALLATION, append, generation: None, place: Place::Head(Box::new(decide)) }
        })
        .await?;
        Ok(())
    }

    /// At most `limit` entries after the place `after`, oldest first: changes of tokens and rules as well as what was
    /// recorded.
    pub async fn entries(&self, after: u64, limit: u32) -> Result<Vec<AuditEntry>, InstallationError> {
        let events = self.0.store.read(INSTALLATION, after, limit.min(ENTRIES_MAX)).await?;
        events.iter().map(AuditEntry::of).collect()
    }

    /// Walks the whole log: every entry is chained to the one before it, and tokens and rules in force are exactly those
    /// that the log leads to.
    pub async fn verify(&self) -> Result<Verified, InstallationError> {
        let row = self.row().await?;
        let verified = runyard_store::verify(&*self.0.store, INSTALLATION).await??;
        let (mut sequence, mut folded) = (0, Registry::default());
        while sequence < row.sequence {
            let events = self.0.store.read(INSTALLATION, sequence, PAGE).await?;
            for event in events.iter().take_while(|event| event.sequence <= row.sequence) {
                if let Some((at, by, fact)) = registry_fact(event)? {
                    folded.apply(at, by, fact);
                }
            }
            // What was verified is there; were it not, this ends all the same.
            sequence = events.last().map_or(row.sequence, |last| last.sequence);
        }
        if Registry::of(&row)? == folded {
            Ok(verified)
        } else {
            Err(InstallationError::StateDiffers { sequence: row.sequence })
        }
    }
}

/// What was recorded a moment ago, and need not be again.
#[derive(Default)]
pub(super) struct Quiet(Mutex<HashMap<String, Heard>>);

struct Heard {
    until: Timestamp,
    left_out: u64,
}

impl Quiet {
    /// Whether it is to be recorded now; with how often it was left out before. Else it is counted.
    fn admit(&self, what: &str, now: Timestamp, quiet_ms: u64) -> Option<u64> {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(heard) = heard.get_mut(what)
            && now < heard.until
        {
            heard.left_out += 1;
            return None;
        }
        let left_out = heard.remove(what).map_or(0, |heard| heard.left_out);
        if heard.len() >= QUIET_MAX {
            heard.retain(|_, heard| now < heard.until);
        }
        if heard.len() < QUIET_MAX {
            heard.insert(what.to_owned(), Heard { until: now.plus_ms(quiet_ms), left_out: 0 });
        }
        Some(left_out)
    }

    /// Takes something for recorded that will have to be again from a time on.
    pub(super) fn recall(&self, what: String, until: Timestamp) {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.len() < QUIET_MAX {
            heard.entry(what).or_insert(Heard { until, left_out: 0 });
        }
    }

    fn forget(&self, what: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(what);
    }
}
