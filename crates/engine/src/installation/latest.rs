//! What the record says last, read from its end: what a hub has to know that begins, of what was recorded before it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use runyard_domain::Event;
use runyard_domain::run::Who;
use serde::Deserialize;
use serde_json::Value;

use super::audit::LOGIN_QUIET_MS;
use super::error::InstallationError;
use super::fact::{AuditFact, Login, PolicyRead};
use super::follow::PAGE;
use super::{INSTALLATION, Installation};

/// How many pages are read of it at most.
const PAGES_MAX: usize = 20;

/// What the audit says last of the policy of each file: the hub's own has no workspace.
#[derive(Debug, Default)]
pub struct PoliciesSaid {
    last: BTreeMap<Option<String>, Value>,
    /// Whether of what is not in there nothing was ever said.
    whole: bool,
}

/// How far back it was read.
#[derive(PartialEq, Eq)]
enum Reached {
    Begin,
    SomewhereBefore,
}

impl Installation {
    /// What the audit says last of the policy of each file.
    pub async fn policies_said(&self) -> Result<PoliciesSaid, InstallationError> {
        let mut said = PoliciesSaid::default();
        let reached = self.backwards(|event| {
            if let Ok(Some(AuditFact::Policy(_))) = AuditFact::read(&event.kind, &event.payload) {
                let what = said_of_policy(event.payload);
                said.last.entry(place(&what)).or_insert(what);
            }
            ControlFlow::Continue(())
        });
        said.whole = reached.await? == Reached::Begin;
        Ok(said)
    }

    /// Records what a file says of the policy, unless that is what the audit says of it already. Who wrote it is not known.
    pub async fn record_policy(
        &self,
        said: &mut PoliciesSaid,
        read: PolicyRead,
    ) -> Result<(), InstallationError> {
        let says_nothing = read.says_nothing();
        let (by, fact) = (Who::runyard(), AuditFact::Policy(read));
        // As it is stored, so that what was read back is known for the same.
        let what = said_of_policy(self.0.redactor.json(fact.payload(&by)?).into_inner());
        let place = place(&what);
        let before = said.last.get(&place);
        if before == Some(&what) || (before.is_none() && says_nothing && said.whole) {
            return Ok(());
        }
        self.record(&by, fact).await?;
        said.last.insert(place, what);
        Ok(())
    }

    /// Takes those for quiet who came in with a token a while ago, as an earlier process recorded it.
    pub(super) async fn recall_logins(&self) -> Result<(), InstallationError> {
        let now = self.0.clock.now();
        self.backwards(|event| {
            let until = event.timestamp.plus_ms(LOGIN_QUIET_MS);
            if until <= now {
                return ControlFlow::Break(());
            }
            let login = AuditFact::read(&event.kind, &event.payload).ok().flatten();
            let by = Who::deserialize(&event.payload["by"]).ok();
            if let (Some(AuditFact::Login(login)), Some(by)) = (login, by)
                && login.how != Login::BROWSER
            {
                self.0.quiet.recall(login.quiet_as(&by), until);
            }
            ControlFlow::Continue(())
        })
        .await?;
        Ok(())
    }

    /// Reads the log from its end, as far as is asked for.
    async fn backwards(
        &self,
        mut each: impl FnMut(Event) -> ControlFlow<()>,
    ) -> Result<Reached, InstallationError> {
        let mut end = self.row().await?.sequence;
        for _ in 0..PAGES_MAX {
            if end == 0 {
                return Ok(Reached::Begin);
            }
            let after = end.saturating_sub(u64::from(PAGE));
            let events = self.0.store.read(INSTALLATION, after, PAGE).await?;
            for event in events.iter().rev().filter(|event| event.sequence <= end) {
                if each(event.envelope()?).is_break() {
                    return Ok(Reached::SomewhereBefore);
                }
            }
            end = after;
        }
        Ok(if end == 0 { Reached::Begin } else { Reached::SomewhereBefore })
    }
}

/// What it says, by whomever.
fn said_of_policy(mut payload: Value) -> Value {
    payload.as_object_mut().and_then(|facts| facts.remove("by"));
    payload
}

fn place(what: &Value) -> Option<String> {
    what["workspace"].as_str().map(str::to_owned)
}
