//! [`Redactor`]: what is known about secrets, put together once, and every way to use it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::error::RedactError;
use crate::forms::triggers::{Rule, Trigger, Triggers};
use crate::kind::Kind;
use crate::known::{Known, KnownValues};
use crate::paths::PrivatePath;
use crate::placeholder::TagKey;
use crate::rules::Rules;
use crate::safe::Safe;
use crate::stream::Stream;

/// How many values a redactor can know.
pub const KNOWN_COUNT_MAX: usize = 10_000;
/// How long a known value can be.
pub const KNOWN_LEN_MAX: usize = 64 * 1024;
/// How long all known values can be together: each is kept in up to a hundred forms.
pub const KNOWN_TOTAL_MAX: usize = 1024 * 1024;

/// Takes secrets out of whatever is stored, logged or shown. Cheap to clone.
#[derive(Clone)]
pub struct Redactor(Arc<Rules>);

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").finish_non_exhaustive()
    }
}

/// What a redactor is to know.
#[derive(Debug)]
pub struct RedactorBuilder {
    key: TagKey,
    known: Vec<Known>,
    /// Each with what is shown for it; none for the workspace.
    paths: Vec<(String, Option<String>)>,
}

impl RedactorBuilder {
    /// Values that are secret wherever they appear.
    #[must_use]
    pub fn known(mut self, known: impl IntoIterator<Item = Known>) -> Self {
        self.known.extend(known);
        self
    }

    /// A directory that is private: paths under it are shown with `shown` in its place, such as `<home>`.
    #[must_use]
    pub fn private_path(mut self, path: impl AsRef<Path>, shown: &str) -> Self {
        self.paths.push((path.as_ref().to_string_lossy().into_owned(), Some(shown.to_owned())));
        self
    }

    /// The directory that is worked in: paths under it are shown relative to it.
    #[must_use]
    pub fn workspace(mut self, path: impl AsRef<Path>) -> Self {
        self.paths.push((path.as_ref().to_string_lossy().into_owned(), None));
        self
    }

    /// Puts the redactor together.
    pub fn build(self) -> Result<Redactor, RedactError> {
        check_known(&self.known)?;
        let mut paths = Vec::new();
        for (path, shown) in &self.paths {
            let path = path.trim_end_matches('/');
            if !path.starts_with('/') || path.len() < 3 {
                return Err(RedactError::PathNotAbsolute);
            }
            paths.extend(PrivatePath::all_written(path, shown.as_deref()));
        }
        Ok(Redactor::assembled(self.key, &self.known, paths))
    }
}

fn check_known(known: &[Known]) -> Result<(), RedactError> {
    if known.len() > KNOWN_COUNT_MAX {
        return Err(RedactError::TooManyKnown { count: known.len(), max: KNOWN_COUNT_MAX });
    }
    for (known, number) in known.iter().zip(1..) {
        let length = known.value.len();
        if length > KNOWN_LEN_MAX {
            return Err(RedactError::KnownTooLong { number, length, max: KNOWN_LEN_MAX });
        }
    }
    let length = known.iter().map(|known| known.value.len()).sum();
    if length > KNOWN_TOTAL_MAX {
        return Err(RedactError::KnownTooLarge { length, max: KNOWN_TOTAL_MAX });
    }
    Ok(())
}

impl Redactor {
    /// Starts with nothing known but forms and names.
    pub fn builder(key: TagKey) -> RedactorBuilder {
        RedactorBuilder { key, known: Vec::new(), paths: Vec::new() }
    }

    /// Puts together what was checked.
    pub(crate) fn assembled(key: TagKey, known: &[Known], paths: Vec<PrivatePath>) -> Self {
        let names = known.iter().filter(|known| known.is_short()).filter_map(|known| known.name.as_deref());
        let names = names.map(|name| Trigger {
            literal: name.to_ascii_lowercase().into_bytes().into(),
            any_case: true,
            rule: Rule::ShortKnown,
        });
        let path_triggers = paths.iter().zip(0..).map(|(path, number)| path.trigger(number));
        let triggers = Triggers::new(names.chain(path_triggers));
        let known = KnownValues::new(known, &key);
        Redactor(Arc::new(Rules { key, known, triggers, paths }))
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.0
    }

    /// The text without secrets.
    pub fn text(&self, kind: Kind, text: &str) -> Safe<String> {
        let out = self.bytes(kind, text.as_bytes()).into_inner();
        // Only whole characters are taken out, unless a known value itself is a part of one.
        Safe::vouch(
            String::from_utf8(out)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        )
    }

    /// The same for bytes, which need not be UTF-8.
    pub fn bytes(&self, kind: Kind, bytes: &[u8]) -> Safe<Vec<u8>> {
        let mut out = Vec::with_capacity(bytes.len());
        self.stream(kind).whole_into(bytes, &mut out);
        Safe::vouch(out)
    }

    /// File content: known values, unmistakable forms and private paths only.
    pub fn content(&self, text: &str) -> Safe<String> {
        self.text(Kind::Diff, text)
    }

    /// The value without secrets: by the names of keys, and in every string and key.
    pub fn json(&self, mut value: Value) -> Safe<Value> {
        crate::tree::redact(self, &mut value);
        Safe::vouch(value)
    }

    /// The same for whatever can be written as JSON.
    pub fn serialize<T: Serialize>(&self, value: &T) -> Result<Safe<Value>, RedactError> {
        Ok(self.json(serde_json::to_value(value).map_err(RedactError::NotJson)?))
    }

    /// Redacts a text that arrives in pieces.
    pub fn stream(&self, kind: Kind) -> Stream {
        Stream::new(Arc::clone(&self.0), kind)
    }
}

#[cfg(test)]
mod tests {
    use runyard_domain::Code;

    use super::*;

    fn built(path: &str) -> Result<Redactor, RedactError> {
        Redactor::builder(TagKey::from_bytes([1; 32])).workspace(path).build()
    }

    #[test]
    fn what_is_known_is_limited_and_up_to_the_limit_all_is_taken() {
        let values = |count: usize, length: usize| vec![Known::value(vec![b'a'; length]); count];
        assert!(check_known(&values(KNOWN_COUNT_MAX, 1)).is_ok());
        assert!(matches!(
            check_known(&values(KNOWN_COUNT_MAX + 1, 1)),
            Err(RedactError::TooManyKnown { .. })
        ));
        assert!(check_known(&values(KNOWN_TOTAL_MAX / KNOWN_LEN_MAX, KNOWN_LEN_MAX)).is_ok());
        assert!(matches!(
            check_known(&values(1, KNOWN_LEN_MAX + 1)),
            Err(RedactError::KnownTooLong { number: 1, .. })
        ));
        let mut many = values(KNOWN_TOTAL_MAX / KNOWN_LEN_MAX, KNOWN_LEN_MAX);
        many.push(Known::value("a"));
        assert!(matches!(check_known(&many), Err(RedactError::KnownTooLarge { .. })));
        assert_eq!([KNOWN_LEN_MAX, KNOWN_TOTAL_MAX, crate::stream::HELD_MAX], [65_536, 1_048_576, 131_072]);
    }

    #[test]
    fn c15_a_private_path_is_absolute_and_more_than_the_root() {
        assert!(built("/ab").is_ok() && built("/ab/").is_ok());
        for path in ["/", "/a", "ab/c", "", "/a/"] {
            assert!(matches!(built(path), Err(RedactError::PathNotAbsolute)), "{path}");
        }
    }

    #[test]
    fn b11_nothing_that_is_known_shows_in_a_debug_text() {
        let known = Known::named("PIN", "sorrel-Dipper-64");
        assert_eq!(format!("{known:?}"), "Known { name: Some(\"PIN\"), .. }");
        let redactor = Redactor::assembled(TagKey::from_bytes([1; 32]), &[known], Vec::new());
        assert_eq!(format!("{redactor:?}"), "Redactor { .. }");
        assert!(format!("{:?}", redactor.stream(Kind::Text)).contains("rules: Rules { .. }"));
    }

    #[test]
    fn every_kind_is_read_from_its_word_and_no_other_word_is_one() {
        for kind in Kind::ALL {
            assert_eq!(kind.word().parse::<Kind>().ok(), Some(kind));
        }
        let unknown = "xml".parse::<Kind>();
        assert!(
            matches!(&unknown, Err(error @ RedactError::UnknownKind) if error.code() == Code::ValidationError)
        );
    }

    #[test]
    fn what_cannot_be_written_as_json_is_an_error_of_the_program() {
        let keyed_by_lists = std::collections::BTreeMap::from([(vec![1], 1)]);
        let refused =
            Redactor::builder(TagKey::from_bytes([1; 32])).build().unwrap().serialize(&keyed_by_lists);
        assert_eq!(refused.unwrap_err().code(), Code::InternalError);
    }

    #[test]
    fn a_value_is_short_up_to_the_length_that_stands_alone() {
        assert!(Known::value("1234567").is_short());
        assert!(!Known::value("12345678").is_short());
    }
}
