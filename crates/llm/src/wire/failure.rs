//! What a provider said is wrong, and which error that is.
//!
//! It goes by the status, then by typed words, then by nothing. A message is passed on, bounded and without the key; it decides
//! nothing except where [`typed`] names its beginning.

use std::time::Duration;

use serde_json::Value;

use super::endpoint::Key;
use super::retry_after::bounded;
use super::typed::{self, Meaning, Word};
use crate::inference::{Fault, InferenceExecutionError as Error, InterruptCause, Refusal};

/// How much of a provider's own words is passed on.
pub const MESSAGE_CHARS_MAX: usize = 1000;

/// A key that is no more than a word is not looked for in what a provider says: it would be found in every other sentence.
const KEY_ALONE_MIN: usize = 8;
/// What stands where a key was.
const MASKED: &str = "***";

/// Statuses that say all there is to say, whatever stands in the body.
const CLEAR: [u16; 4] = [401, 402, 408, 429];

/// What a provider said is wrong, in whatever form it has for that.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Said {
    /// The status that the body names, where it does.
    status: Option<u16>,
    /// Typed words, the most exact first.
    words: Vec<String>,
    message: Option<String>,
    retry_after: Option<Duration>,
}

impl Said {
    /// Reads the body of a refusal. What is no JSON says nothing.
    pub fn of_body(body: &[u8]) -> Self {
        serde_json::from_slice(body).map(|value| Said::of(&value)).unwrap_or_default()
    }

    /// Reads the data of an error: the error itself, or an object that has it.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Array(values) => values.first().map(Said::of).unwrap_or_default(),
            Value::String(message) => Said { message: Some(message.clone()), ..Said::default() },
            Value::Object(_) => match value.get("error") {
                Some(error @ Value::Object(_)) => Said::read(error, value),
                Some(Value::String(message)) => {
                    Said { message: Some(message.clone()), ..Said::read(value, value) }
                }
                _ => Said::read(value, value),
            },
            _ => Said::default(),
        }
    }

    /// Reads a body that came with a success, and yet may hold an error.
    pub(super) fn of_success(body: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(body).ok()?;
        value.get("error").filter(|error| !error.is_null())?;
        Some(Said::of(&value))
    }

    /// The status that it says, or that its words come with.
    pub(super) fn status(&self) -> u16 {
        let word = typed::exact(&self.words).or_else(|| typed::loose(&self.words));
        self.status.or(word.map(|word| word.status)).unwrap_or(500)
    }

    /// A failure that goes by this word alone.
    pub(super) fn word(word: &str, message: &str) -> Self {
        Said { words: vec![word.to_owned()], message: Some(message.to_owned()), ..Said::default() }
    }

    fn read(error: &Value, around: &Value) -> Self {
        let places = ["/code", "/innererror/code", "/type", "/status"];
        let words = places.iter().filter_map(|place| error.pointer(place)?.as_str());
        let words = words.filter(|word| *word != "error").map(str::to_owned).collect();
        let number = |of: &Value, name: &str| u16::try_from(of.get(name)?.as_u64()?).ok();
        let statuses = ["code", "status", "status_code"].iter();
        let status = statuses.clone().find_map(|name| number(error, name));
        let status = status.or_else(|| statuses.clone().find_map(|name| number(around, name)));
        let waits = [("retry_after", 1.0), ("retry_after_ms", 0.001), ("resets_in_seconds", 1.0)];
        let retry_after = waits.iter().find_map(|(name, unit)| bounded(error.get(name)?.as_f64()? * unit));
        let message = error.get("message").and_then(Value::as_str).map(str::to_owned);
        Said { status: status.filter(|status| (400..600).contains(status)), words, message, retry_after }
    }

    /// What a refusal with this status is. What the header says of coming back goes before what the body does.
    pub fn refusal(self, status: u16, retry_after: Option<Duration>) -> Refusal {
        self.refused(status, retry_after, &Wording::default())
    }

    /// The same for whoever has a key that is not to be repeated.
    pub(super) fn refused(self, status: u16, retry_after: Option<Duration>, wording: &Wording) -> Refusal {
        let meaning = if CLEAR.contains(&status) {
            typed::of_status(status)
        } else if let Some(word) = typed::exact(&self.words) {
            word.meaning
        } else if let Some(meaning) = self.beginning().filter(|_| (400..500).contains(&status)) {
            meaning
        } else if status == 404 && typed::loose(&self.words).is_some_and(|word| word.status == 404) {
            // Without that word it is the address that is not there.
            Meaning::NoModel
        } else {
            typed::of_status(status)
        };
        let retry_after = retry_after.or(self.retry_after);
        let message = self.words_for(|| format!("status {status}"), wording);
        Refusal { error: error(meaning, message, retry_after), retry_after }
    }

    /// What a failure in the middle of an answer is.
    pub fn fault(self) -> Fault {
        self.faulted(&Wording::default())
    }

    /// The same for whoever has a key that is not to be repeated.
    pub(super) fn faulted(self, wording: &Wording) -> Fault {
        let exact = typed::exact(&self.words);
        // A word that says whose fault it is says more than the status of whoever passed it on.
        let own = self.status.filter(|_| exact.is_none_or(|word| word.status >= 500));
        let word = exact.or_else(|| typed::loose(&self.words));
        let status = own.or(word.map(|word| word.status));
        let cause = match (exact, status) {
            (Some(Word { meaning: Meaning::GoAway, .. }), _) => InterruptCause::GoAway,
            (_, Some(status @ 500..=599)) => InterruptCause::Provider5xxMidStream(status),
            (_, Some(status)) => return Fault::Failed(self.refused(status, None, wording).error),
            (_, None) => {
                let message = self.words_for(|| "it gave up".to_owned(), wording);
                return Fault::Failed(Error::Provider(message));
            }
        };
        match self.retry_after {
            Some(retry_after) => Fault::BackLater { cause, retry_after },
            None => Fault::Interrupted(cause),
        }
    }

    fn beginning(&self) -> Option<Meaning> {
        typed::beginning(&self.words, self.message.as_deref()?)
    }

    /// The provider's own words, or the best there is.
    fn words_for(self, otherwise: impl FnOnce() -> String, wording: &Wording) -> String {
        let message = self.message.filter(|message| !message.trim().is_empty());
        wording.clean(message.or_else(|| self.words.into_iter().next()).unwrap_or_else(otherwise))
    }
}

/// How a provider's words are passed on.
#[derive(Clone, Default)]
pub(super) struct Wording {
    key: Option<Key>,
}

impl Wording {
    /// Without this key.
    pub(super) fn without(key: Option<Key>) -> Self {
        Wording { key: key.filter(|key| key.expose().len() >= KEY_ALONE_MIN) }
    }

    /// On one line, bounded, and without the key: in this order a key at the end is not half there.
    pub(super) fn clean(&self, text: String) -> String {
        let text = match &self.key {
            Some(key) => text.replace(key.expose(), MASKED),
            None => text,
        };
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MESSAGE_CHARS_MAX).collect()
    }
}

fn error(meaning: Meaning, message: String, retry_after: Option<Duration>) -> Error {
    match meaning {
        Meaning::Server => Error::Provider(message),
        Meaning::RateLimited => Error::RateLimited { message, retry_after },
        // Said before an answer began, it is no more than this.
        Meaning::Overloaded | Meaning::GoAway => Error::Overloaded { message, retry_after },
        Meaning::Late => Error::Timeout(message),
        Meaning::Overflow => Error::ContextOverflow(message),
        Meaning::Invalid => Error::InvalidRequest(message),
        Meaning::Unauthorized => Error::Unauthorized(message),
        Meaning::NoModel => Error::ModelNotFound(message),
        Meaning::Filtered => Error::ContentFiltered(message),
    }
}
