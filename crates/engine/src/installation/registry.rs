//! The tokens and rules in force: folded from the installation's events, and from nothing else.

use std::sync::Arc;

use runyard_domain::gate::Rule;
use runyard_domain::run::Who;
use runyard_domain::{Actor, RuleId, Timestamp, TokenId};
use runyard_redact::{Redactor, Safe};
use runyard_store::{LoggedEvent, RunRow};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::InstallationError;
use super::fact::RegistryFact;
use super::token::{Token, TokenDigest, TokenInfo};

/// The most tokens.
pub const TOKENS_MAX: usize = 256;
/// The most stored rules.
pub const RULES_MAX: usize = 512;
/// The most bytes that tokens and rules take together: half of what a row holds.
pub const REGISTRY_BYTES_MAX: usize = runyard_store::PAYLOAD_BYTES_MAX / 2;

/// The tokens and rules in force.
///
/// What a later version added is not dropped without a word: a state that holds it cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Registry {
    tokens: Vec<Token>,
    rules: Vec<StoredRule>,
    policy_version: u64,
}

/// A rule that somebody added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredRule {
    /// Its id, which is the rule's own name too.
    pub id: RuleId,
    /// The rule.
    pub rule: Rule,
    /// When it was added.
    pub added: Timestamp,
    /// By whom.
    pub added_by: Who,
}

impl Registry {
    /// The tokens, oldest first; expired ones are among them until their name is used again, revoked ones are not.
    pub fn tokens(&self) -> impl Iterator<Item = &TokenInfo> {
        self.tokens.iter().map(|token| &*token.info)
    }

    /// The stored rules, oldest first.
    pub fn rules(&self) -> &[StoredRule] {
        &self.rules
    }

    /// Grows with every change of the stored rules.
    pub const fn policy_version(&self) -> u64 {
        self.policy_version
    }

    /// The token of this id or name. Of an expired and a living one of the same name there is only the living one.
    pub fn token(&self, id_or_name: &str) -> Option<&TokenInfo> {
        let id = id_or_name.parse::<TokenId>().ok();
        self.tokens().find(|token| Some(token.id) == id || token.name.eq_ignore_ascii_case(id_or_name))
    }

    /// The stored rule of this id.
    pub fn rule(&self, id: RuleId) -> Option<&StoredRule> {
        self.rules.iter().find(|rule| rule.id == id)
    }

    /// Who holds this token. All are compared, so that the time does not tell which one it was.
    pub(super) fn holder(&self, token: &str, now: Timestamp) -> Option<Arc<Actor>> {
        let digest = TokenDigest::of(token);
        let found = self
            .tokens
            .iter()
            .fold(None, |found, known| if known.digest.matches(digest) { Some(known) } else { found });
        found.filter(|known| !known.info.is_expired(now)).map(|known| Arc::clone(&known.holder))
    }

    /// The only way from one registry to the next.
    pub(super) fn apply(&mut self, at: Timestamp, by: Who, fact: RegistryFact) {
        match fact {
            RegistryFact::Opened(_) => {}
            RegistryFact::TokenCreated(made) => {
                // Whoever had the name before is expired, or this would have been refused.
                self.tokens.retain(|token| !token.info.name.eq_ignore_ascii_case(&made.name));
                let info = TokenInfo {
                    id: made.token_id,
                    name: made.name,
                    role: made.role,
                    created: at,
                    created_by: by,
                    expires: made.expires,
                };
                self.tokens.push(Token::new(info, made.digest));
            }
            RegistryFact::TokenRevoked(gone) => self.tokens.retain(|token| token.info.id != gone.token_id),
            RegistryFact::RuleAdded(new) => {
                self.rules.push(StoredRule { id: new.rule_id, rule: new.rule, added: at, added_by: by });
                self.policy_version += 1;
            }
            RegistryFact::RuleRemoved(gone) => self.drop_rule(gone.rule_id),
            RegistryFact::RuleUsed(used) => self.drop_rule(used.rule_id),
        }
    }

    fn drop_rule(&mut self, id: RuleId) {
        self.rules.retain(|rule| rule.id != id);
        self.policy_version += 1;
    }

    /// Whether it is within its limits, after a change.
    pub(super) fn check_limits(&self) -> Result<(), InstallationError> {
        if self.tokens.len() > TOKENS_MAX {
            return Err(InstallationError::TokensFull);
        }
        if self.rules.len() > RULES_MAX {
            return Err(InstallationError::RulesFull);
        }
        Ok(())
    }

    /// As the row shows it.
    pub(super) fn of(row: &RunRow) -> Result<Self, InstallationError> {
        serde_json::from_slice(&row.state)
            .map_err(|source| InstallationError::Unreadable { sequence: row.sequence, source })
    }

    /// As it is stored: exactly itself, or not at all, since a rule without a part of it is another rule.
    pub(super) fn stored(&self, redactor: &Redactor) -> Result<Safe<Value>, InstallationError> {
        let tokens = each(redactor, &self.tokens, "a token")?;
        let rules = each(redactor, &self.rules, "a stored rule")?;
        let version = ("policyVersion", self.policy_version.into());
        let stored = Safe::object([("tokens", tokens), ("rules", rules), version]);
        let bytes = serde_json::to_vec(&stored)?.len();
        if bytes > REGISTRY_BYTES_MAX {
            return Err(InstallationError::TooLarge { bytes });
        }
        Ok(stored)
    }
}

fn each<T: Serialize>(
    redactor: &Redactor,
    entries: &[T],
    what: &'static str,
) -> Result<Safe<Value>, InstallationError> {
    let entries = entries.iter().map(|entry| unchanged(redactor, serde_json::to_value(entry)?, what));
    Ok(Safe::array(entries.collect::<Result<Vec<_>, _>>()?))
}

/// The value, unless redaction changes it.
pub(super) fn unchanged(
    redactor: &Redactor,
    value: Value,
    what: &'static str,
) -> Result<Safe<Value>, InstallationError> {
    let safe = redactor.json(value.clone());
    if *safe == value { Ok(safe) } else { Err(InstallationError::RedactedContent { what }) }
}

/// What of an event changes the registry: when, by whom and what. Nothing for an entry that is only kept.
pub(super) fn registry_fact(
    event: &LoggedEvent,
) -> Result<Option<(Timestamp, Who, RegistryFact)>, InstallationError> {
    let sequence = event.sequence;
    let envelope = event.envelope()?;
    if !envelope.kind.starts_with("installation.") {
        return Ok(None);
    }
    let unreadable = |source| InstallationError::Unreadable { sequence, source };
    let fact = RegistryFact::read(&envelope.kind, &envelope.payload).map_err(unreadable)?;
    let fact = fact.ok_or(InstallationError::UnknownKind { sequence })?;
    let by = Who::deserialize(&envelope.payload["by"]).map_err(unreadable)?;
    Ok(Some((envelope.timestamp, by, fact)))
}

#[cfg(test)]
mod tests {
    use runyard_domain::gate::{Effect, RuleKind, RuleText};
    use runyard_redact::TagKey;

    use super::super::fact::{RuleAdded, TokenCreated};
    use super::super::token::Role;
    use super::*;

    const AT: Timestamp = Timestamp::from_unix_ms(0);

    /// As many tokens and rules as these, each rule with a name of so many bytes.
    fn registry(tokens: usize, rules: usize, name_bytes: usize) -> Registry {
        let mut registry = Registry::default();
        for number in 0..tokens {
            let made = TokenCreated {
                token_id: TokenId::from_parts(number as u64, &[1; 10]),
                name: format!("{number:064}"),
                role: Role::Operator,
                digest: TokenDigest::of(&number.to_string()),
                expires: Some(AT),
            };
            registry.apply(AT, Who::runyard(), RegistryFact::TokenCreated(made));
        }
        for number in 0..rules {
            let rule_id = RuleId::from_parts(number as u64, &[1; 10]);
            let agent = Some("a".repeat(name_bytes));
            let text = RuleText::new(Effect::Deny, RuleKind::Shell, Some("cargo publish *"));
            let rule = RuleText { id: Some(rule_id.to_string()), agent, ..text }.try_into().unwrap();
            registry.apply(AT, Who::runyard(), RegistryFact::RuleAdded(RuleAdded { rule_id, rule }));
        }
        registry
    }

    #[test]
    fn what_is_full_still_fits_its_row_and_what_is_too_large_is_refused() {
        let redactor = Redactor::builder(TagKey::from_bytes([7; 32])).build().unwrap();
        let full = registry(TOKENS_MAX, RULES_MAX, 64);
        full.check_limits().unwrap();
        let stored = full.stored(&redactor).unwrap().into_inner();
        assert_eq!(serde_json::from_value::<Registry>(stored).unwrap(), full);

        assert!(matches!(registry(TOKENS_MAX + 1, 0, 1).check_limits(), Err(InstallationError::TokensFull)));
        assert!(matches!(registry(0, RULES_MAX + 1, 1).check_limits(), Err(InstallationError::RulesFull)));
        let error = registry(0, 3, REGISTRY_BYTES_MAX / 3).stored(&redactor).unwrap_err();
        assert!(
            matches!(error, InstallationError::TooLarge { bytes } if bytes > REGISTRY_BYTES_MAX),
            "{error}"
        );
    }
}
