//! A call in several rounds: what was asked and answered so far goes to the client and comes back, sealed.
//!
//! The seal binds it to the caller, to the request with its arguments, and to a time. An answer counts for the question that it
//! was given to, and for no other under the same key. A state in which a person confirmed is good for one call.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use rmcp::ErrorData;
use runyard_actions::{Answer, Question};
use runyard_domain::Actor;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::CONFIRM_KEY;
use crate::voucher::{Refused, Vouchers};

/// A client has so long to answer.
const ANSWER_TIME_MAX: SignedDuration = SignedDuration::from_mins(10);

/// What was asked in a call, and what of it is answered.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Answers(BTreeMap<String, Known>);

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Known {
    /// The digest of the question. Nothing where an answer came without a state: it is to whatever is asked under its key.
    question: Option<String>,
    answer: Option<Answer>,
}

impl Answers {
    /// The answer to exactly this question.
    pub(super) fn to(&self, key: &str, question: &Question) -> Option<&Answer> {
        let known = self.0.get(key)?;
        let answer = known.answer.as_ref().filter(|answer| question.takes(answer))?;
        known.question.as_ref().is_none_or(|asked| *asked == digest(question)).then_some(answer)
    }

    /// This was asked, and answered so or not yet.
    pub(super) fn note(&mut self, key: String, question: &Question, answer: Option<Answer>) {
        self.0.insert(key, Known { question: Some(digest(question)), answer });
    }

    fn has(&self, key: &str) -> bool {
        self.0.get(key).is_some_and(|known| known.answer.is_some())
    }
}

/// Tells questions apart; the order of their fields says nothing.
fn digest(question: &Question) -> String {
    let mut question = json!(question);
    question.sort_all_objects();
    URL_SAFE_NO_PAD.encode(Sha256::digest(question.to_string()))
}

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

    /// The state that a client is to bring back: what this round asked, and nothing else that the client brought.
    pub(super) fn close(&self, about: &About<'_>, asked: &Answers, now: Timestamp) -> String {
        let content = serde_json::to_vec(asked).unwrap_or_default();
        about.bound(|to| self.0.issue(to, &content, now + ANSWER_TIME_MAX))
    }

    /// All answers so far: those in the state, and those that came with it to what was asked. Nobody confirms what they were not
    /// asked: without a state there is no confirmation, whatever came.
    pub(super) fn open(
        &self,
        about: &About<'_>,
        state: Option<&str>,
        came: Option<BTreeMap<String, Value>>,
        now: Timestamp,
    ) -> Result<Answers, ErrorData> {
        let came = came.into_iter().flatten().map(|(key, answer)| (key, Some(Answer(answer))));
        let Some(state) = state else {
            let came = came.filter(|(key, _)| key != CONFIRM_KEY);
            return Ok(Answers(came.map(|(key, answer)| (key, Known { question: None, answer })).collect()));
        };
        let voucher = about.bound(|to| self.0.open(to, state, now)).map_err(refused)?;
        let mut answers: Answers =
            serde_json::from_slice(&voucher.content).map_err(|_| refused(Refused::NotForThis))?;
        for (key, answer) in came {
            if let Some(known) = answers.0.get_mut(&key) {
                known.answer = answer;
            }
        }
        if answers.has(CONFIRM_KEY) {
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
            let mut asked = Answers::default();
            for key in [CONFIRM_KEY, "name"] {
                asked.note(key.to_owned(), &question("Sure?"), None);
            }
            self.rounds.close(&self.about(), &asked, now)
        }

        fn open(&self, about: &About<'_>, state: Option<&str>, now: Timestamp) -> Option<Vec<String>> {
            let came =
                [CONFIRM_KEY, "name", "junk"].map(|key| (key.to_owned(), json!({"action": "decline"})));
            let opened = self.rounds.open(about, state, Some(came.into()), now);
            opened.ok().map(|answers| answers.0.into_keys().collect())
        }
    }

    fn question(message: &str) -> Question {
        Question::form(message, json!({"type": "object", "properties": {}}))
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
        assert_eq!(bench.open(&bench.about(), None, now), Some(vec!["junk".to_owned(), "name".to_owned()]));
        let state = bench.close(now);
        assert_eq!(bench.open(&bench.about(), Some(&state), now), both());
        assert_eq!(bench.open(&bench.about(), Some(&state), now), None);
        assert_eq!(bench.open(&bench.about(), Some(&bench.close(now)), now), both(), "asked anew");
    }

    #[test]
    fn an_answer_is_to_the_question_that_was_asked_and_to_no_other_under_its_key() {
        let (bench, now) = (Bench::new(), Timestamp::now());
        let came = || Some([("name".to_owned(), json!({"action": "decline"}))].into());
        let state = bench.close(now);
        let answers = bench.rounds.open(&bench.about(), Some(&state), came(), now).unwrap();
        assert!(answers.to("name", &question("Sure?")).is_some());
        assert!(answers.to("name", &question("Sure of something else?")).is_none());
        assert!(answers.to("name", &Question::Folders).is_none());
        assert!(answers.to("other", &question("Sure?")).is_none());
        let unasked = bench.rounds.open(&bench.about(), None, came(), now).unwrap();
        assert!(unasked.to("name", &question("Sure of something else?")).is_some(), "there was no question");
        // In the next round it is bound to what it was taken for.
        let (mut asked, first) = (Answers::default(), question("First?"));
        asked.note("name".to_owned(), &first, unasked.to("name", &first).cloned());
        let state = bench.rounds.close(&bench.about(), &asked, now);
        let answers = bench.rounds.open(&bench.about(), Some(&state), None, now).unwrap();
        assert!(answers.to("name", &first).is_some());
        assert!(answers.to("name", &question("Second?")).is_none());
    }

    #[test]
    fn what_was_not_asked_is_not_kept() {
        let (bench, now) = (Bench::new(), Timestamp::now());
        let junk = [("junk".to_owned(), json!("x".repeat(1_000)))].into();
        let answers = bench.rounds.open(&bench.about(), Some(&bench.close(now)), Some(junk), now).unwrap();
        assert_eq!(answers.0.into_keys().collect::<Vec<_>>(), both().unwrap());
    }

    #[test]
    fn a_question_is_the_same_whatever_the_order_of_its_fields() {
        let ordered = |schema: &str| Question::form("?", serde_json::from_str(schema).unwrap());
        assert_eq!(
            digest(&ordered(r#"{"a": 1, "b": {"c": 2, "d": 3}}"#)),
            digest(&ordered(r#"{"b": {"d": 3, "c": 2}, "a": 1}"#))
        );
        assert_ne!(digest(&ordered(r#"{"a": 1}"#)), digest(&ordered(r#"{"a": 2}"#)));
    }
}
