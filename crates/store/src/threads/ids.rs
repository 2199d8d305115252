//! The names of threads and of their runs, as whoever uses the library gives them.

use std::fmt;
use std::sync::Arc;

use runyard_redact::Safe;

use crate::StorageError;

/// The longest name of a thread or of a run, in characters.
pub const ID_CHARS_MAX: usize = 200;

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id of this text: 1 to [`ID_CHARS_MAX`] characters, all of which can be seen, without a space at either
            /// end. It is stored as it stands, so a redactor has to see it first.
            pub fn new(text: Safe<String>) -> Result<Self, StorageError> {
                check($kind, &text)?;
                Ok($name(text.into_inner().into()))
            }

            /// The id that a store kept, which was checked and redacted when it was written. Only for stores.
            pub fn from_stored(text: String) -> Self {
                $name(text.into())
            }

            /// Its text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

name!(
    /// A conversation.
    ThreadId,
    "thread"
);

name!(
    /// A run of an agent on a thread. No two threads have a run of the same id.
    AgentRunId,
    "run"
);

fn check(kind: &str, text: &str) -> Result<(), StorageError> {
    let chars = text.chars().take(ID_CHARS_MAX + 1).count();
    if chars == 0 || chars > ID_CHARS_MAX {
        return Err(StorageError::invalid(format!("a {kind} id has 1 to {ID_CHARS_MAX} characters")));
    }
    let is_fine = !text.starts_with(' ') && !text.ends_with(' ') && text.chars().all(is_seen);
    if !is_fine {
        let what = format!("a {kind} id has only characters that can be seen, and no space at either end");
        return Err(StorageError::invalid(what));
    }
    Ok(())
}

/// Two ids that look the same would be confused: what takes no place or changes the direction is refused too.
fn is_seen(c: char) -> bool {
    let is_hidden = matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}');
    c == ' ' || !(c.is_control() || c.is_whitespace() || is_hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    // clause: D11
    #[test]
    fn an_id_is_short_and_can_be_seen() {
        let fine: [&'static str; 5] = ["a", "user 7/chat-3", "Gespräch ü", "日本語", "run:1#2"];
        for text in fine {
            assert_eq!(ThreadId::new(text.into()).unwrap().as_str(), text);
        }
        let wrong: [&'static str; 9] =
            ["", " ", " a", "a ", "a\nb", "a\u{0}b", "a\u{200b}b", "a\u{202e}b", "a\u{a0}b"];
        for text in wrong {
            let error = AgentRunId::new(text.into()).unwrap_err();
            assert!(matches!(error, StorageError::Validation(..)), "{text:?}: {error}");
        }
        let long = |chars: usize| Box::leak("é".repeat(chars).into_boxed_str()) as &'static str;
        assert!(ThreadId::new(long(ID_CHARS_MAX).into()).is_ok());
        assert!(ThreadId::new(long(ID_CHARS_MAX + 1).into()).is_err());
    }
}
