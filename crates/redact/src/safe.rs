//! [`Safe`]: a value that a redactor has seen, and the only thing that a store takes.

use std::ops::Deref;

use runyard_domain::{
    ApprovalId, ArtifactId, BlobId, Code, EventId, InvocationId, RunId, SessionId, Timestamp,
};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// A value without secrets. Only a [`Redactor`](crate::Redactor) makes one out of what came from outside; what the code
/// itself wrote (numbers, booleans, literals) is safe as it stands.
///
/// It serialises as `T`, and deliberately cannot be deserialised: what is read back was redacted when it was written, but
/// nothing says so about any other text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Safe<T>(T);

impl<T> Safe<T> {
    /// Says that `value` was redacted. For this crate alone.
    pub(crate) const fn vouch(value: T) -> Self {
        Safe(value)
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Safe<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Serialize> Serialize for Safe<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl Safe<Value> {
    /// JSON's null.
    pub const NULL: Safe<Value> = Safe(Value::Null);

    /// An object of safe parts. The names are the code's own.
    pub fn object<const N: usize>(fields: [(&'static str, Safe<Value>); N]) -> Self {
        Safe(Value::Object(
            fields.into_iter().map(|(name, part)| (name.to_owned(), part.0)).collect::<Map<_, _>>(),
        ))
    }

    /// A list of safe parts.
    pub fn array(parts: impl IntoIterator<Item = Safe<Value>>) -> Self {
        Safe(Value::Array(parts.into_iter().map(|part| part.0).collect()))
    }
}

impl Safe<String> {
    /// Safe parts, one behind the other.
    pub fn join<const N: usize>(parts: [Safe<String>; N]) -> Safe<String> {
        Safe(parts.into_iter().map(Safe::into_inner).collect())
    }

    /// Its beginning: at most `bytes_max` bytes, cut between two characters.
    pub fn prefix(&self, bytes_max: usize) -> Safe<String> {
        Safe(self.0[..self.0.floor_char_boundary(bytes_max)].to_owned())
    }

    /// Its end: at most `bytes_max` bytes, cut between two characters.
    pub fn suffix(&self, bytes_max: usize) -> Safe<String> {
        Safe(self.0[self.0.ceil_char_boundary(self.0.len().saturating_sub(bytes_max))..].to_owned())
    }
}

impl Safe<Vec<u8>> {
    /// No bytes.
    pub const fn empty() -> Self {
        Safe(Vec::new())
    }

    /// Puts what follows in the same stream behind it.
    pub fn append(&mut self, mut more: Safe<Vec<u8>>) {
        self.0.append(&mut more.0);
    }

    /// Takes the first `bytes` out.
    pub fn take_first(&mut self, bytes: usize) -> Safe<Vec<u8>> {
        let rest = self.0.split_off(bytes.min(self.0.len()));
        Safe(std::mem::replace(&mut self.0, rest))
    }

    /// As text; what is no UTF-8 becomes replacement characters.
    pub fn into_text(self) -> Safe<String> {
        Safe(
            String::from_utf8(self.0)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        )
    }
}

impl From<Safe<String>> for Safe<Value> {
    fn from(text: Safe<String>) -> Self {
        Safe(Value::String(text.0))
    }
}

impl From<Safe<String>> for Safe<Vec<u8>> {
    fn from(text: Safe<String>) -> Self {
        Safe(text.0.into_bytes())
    }
}

impl From<Safe<Value>> for Safe<Vec<u8>> {
    fn from(value: Safe<Value>) -> Self {
        Safe(value.0.to_string().into_bytes())
    }
}

impl From<&'static str> for Safe<String> {
    fn from(literal: &'static str) -> Self {
        Safe(literal.to_owned())
    }
}

impl From<&'static str> for Safe<Value> {
    fn from(literal: &'static str) -> Self {
        Safe(Value::String(literal.to_owned()))
    }
}

impl From<u64> for Safe<Value> {
    fn from(number: u64) -> Self {
        Safe(number.into())
    }
}

impl From<bool> for Safe<Value> {
    fn from(truth: bool) -> Self {
        Safe(truth.into())
    }
}

/// The program's own ids hold nothing of anybody else's.
macro_rules! own_words {
    ($($word:ty),+) => {$(
        impl From<$word> for Safe<String> {
            fn from(word: $word) -> Self {
                Safe(word.to_string())
            }
        }

        impl From<$word> for Safe<Value> {
            fn from(word: $word) -> Self {
                Safe(Value::String(word.to_string()))
            }
        }
    )+};
}

own_words!(RunId, SessionId, EventId, ApprovalId, ArtifactId, InvocationId, BlobId, Code, Timestamp);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_is_put_behind_and_what_comes_first_is_taken_out() {
        let mut bytes = Safe::<Vec<u8>>::empty();
        bytes.append(Safe(b"abc".to_vec()));
        bytes.append(Safe(b"de".to_vec()));
        assert_eq!((&*bytes.take_first(2), &*bytes), (&b"ab".to_vec(), &b"cde".to_vec()));
        assert_eq!((&*bytes.take_first(9), &*bytes), (&b"cde".to_vec(), &Vec::new()));
    }
}
