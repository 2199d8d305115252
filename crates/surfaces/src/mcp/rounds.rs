//! A call in several rounds: what was answered so far goes to the client and comes back, sealed.
//!
//! The seal binds it to the caller, to the request with its arguments, and to a time. A state in which a person confirmed is
//! good for one call.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use rmcp::ErrorData;
use runyard_actions::Answer;
use runyard_domain::Actor;
use serde_json::Value;

use super::CONFIRM_KEY;
use crate::voucher::{Refused, Vouchers};

/// A client has so long to answer.
const ANSWER_TIME_MAX: SignedDuration = SignedDuration::from_mins(10);

/// Makes states and reads them.
pub(crate) struct Rounds(Vouchers);

/// What a request is about, for the seal.
pub(super) struct About<'a> {
    pub(super) actor: &'a Actor,
    pub(super) method: &'a str,
    pub(super) name: &'a str,
    pub(super) arguments: &'a Value,
}

impl About<'_> {
    fn bound<T>(&self, with: impl FnOnce(&[&str]) -> T) -> T {
        let arguments = self.arguments.to_string();
        with(&["round", &self.actor.to_string(), self.method, self.name, &arguments])
    }
}

impl Rounds {
    pub(super) fn new() -> Self {
        Rounds(Vouchers::new())
    }

    /// The state that a client is to bring back.
    pub(super) fn close(
        &self,
        about: &About<'_>,
        answers: &BTreeMap<String, Answer>,
        now: Timestamp,
    ) -> String {
        let content = serde_json::to_vec(answers).unwrap_or_default();
        about.bound(|to| self.0.issue(to, &content, now + ANSWER_TIME_MAX))
    }

    /// All answers so far: those in the state, and those that came with it. Nobody confirms what they were not asked: without a
    /// state there is no confirmation, whatever came.
    pub(super) fn open(
        &self,
        about: &About<'_>,
        state: Option<&str>,
        came: Option<BTreeMap<String, Value>>,
        now: Timestamp,
    ) -> Result<BTreeMap<String, Answer>, ErrorData> {
        let came = came.into_iter().flatten().map(|(key, answer)| (key, Answer(answer)));
        let Some(state) = state else {
            return Ok(came.filter(|(key, _)| key != CONFIRM_KEY).collect());
        };
        let voucher = about.bound(|to| self.0.open(to, state, now)).map_err(refused)?;
        let mut answers: BTreeMap<String, Answer> =
            serde_json::from_slice(&voucher.content).map_err(|_| refused(Refused::NotForThis))?;
        answers.extend(came);
        if answers.contains_key(CONFIRM_KEY) {
            self.0.spend(&voucher, now).map_err(refused)?;
        }
        Ok(answers)
    }
}

fn refused(why: Refused) -> ErrorData {
    let message = match why {
        Refused::NotForThis => "The requestState is not of this request; call again without it.",
        Refused::Expired => "The requestState has expired; call again without it.",
        Refused::Used => "The requestState was used already; call again without it.",
        Refused::Full => "Too many requests were confirmed lately; try again later.",
    };
    ErrorData::invalid_params(message, None)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A person and the states; each request is about the same thing unless a test says otherwise.
    struct Bench {
        rounds: Rounds,
        ada: Actor,
        arguments: Value,
    }

    impl Bench {
        fn new() -> Self {
            let (ada, arguments) = (Actor::owner("ada"), json!({"what": "all"}));
            Bench { rounds: Rounds::new(), ada, arguments }
        }

        fn about(&self) -> About<'_> {
            About { actor: &self.ada, method: "tools/call", name: "erase", arguments: &self.arguments }
        }

        fn close(&self, now: Timestamp) -> String {
            self.rounds.close(&self.about(), &BTreeMap::new(), now)
        }

        fn open(&self, about: &About<'_>, state: Option<&str>, now: Timestamp) -> Option<Vec<String>> {
            let came = [CONFIRM_KEY, "name"].map(|key| (key.to_owned(), json!({"action": "accept"})));
            let opened = self.rounds.open(about, state, Some(came.into()), now);
            opened.ok().map(|answers| answers.into_keys().collect())
        }
    }

    fn both() -> Option<Vec<String>> {
        Some(vec![CONFIRM_KEY.to_owned(), "name".to_owned()])
    }

    #[test]
    fn a_state_is_good_for_the_same_request_of_the_same_caller_and_for_no_other() {
        let (bench, now) = (Bench::new(), Timestamp::now());
        let state = bench.close(now);
        let (bob, other) = (Actor::owner("bob"), json!({"what": "nothing"}));
        let namesake = Actor::service("ada", ["tasks.read"]);
        let strangers = [
            About { actor: &bob, ..bench.about() },
            About { actor: &namesake, ..bench.about() },
            About { method: "prompts/get", ..bench.about() },
            About { name: "wipe", ..bench.about() },
            About { arguments: &other, ..bench.about() },
        ];
        for stranger in strangers {
            assert_eq!(bench.open(&stranger, Some(&state), now), None);
        }
        assert_eq!(bench.open(&bench.about(), Some(&state), now), both());
    }

    #[test]
    fn a_state_is_good_for_ten_minutes() {
        let (bench, now) = (Bench::new(), Timestamp::now());
        let (state, last) = (bench.close(now), now + ANSWER_TIME_MAX);
        assert_eq!(bench.open(&bench.about(), Some(&state), last), None);
        assert_eq!(bench.open(&bench.about(), Some(&state), last - SignedDuration::from_millis(1)), both());
    }

    #[test]
    fn a_confirmation_counts_once_and_only_where_one_was_asked_for() {
        let (bench, now) = (Bench::new(), Timestamp::now());
        assert_eq!(bench.open(&bench.about(), None, now), Some(vec!["name".to_owned()]));
        let state = bench.close(now);
        assert_eq!(bench.open(&bench.about(), Some(&state), now), both());
        assert_eq!(bench.open(&bench.about(), Some(&state), now), None);
        assert_eq!(bench.open(&bench.about(), Some(&bench.close(now)), now), both(), "asked anew");
    }
}
