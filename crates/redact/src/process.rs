//! The redactor of this process, for its logs, panics and error messages.
//!
//! Until one is set, and for whoever has none of their own, it knows forms and names and no particular value.

use std::io::{self, Write};
use std::sync::{LazyLock, RwLock};

use serde_json::Value;

use crate::kind::Kind;
use crate::placeholder::TagKey;
use crate::redactor::Redactor;

static FORMS_ONLY: LazyLock<Redactor> =
    LazyLock::new(|| Redactor::assembled(TagKey::for_this_process(), &[], Vec::new()));

static CURRENT: RwLock<Option<Redactor>> = RwLock::new(None);

/// From now on, what this process logs and shows goes through this redactor.
pub fn set(redactor: Redactor) {
    *CURRENT.write().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(redactor);
}

/// The redactor that was set, or one that knows forms and names only.
pub fn current() -> Redactor {
    let set = CURRENT.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    set.unwrap_or_else(forms_only)
}

/// A redactor that knows forms and names only, with tags of this process.
pub fn forms_only() -> Redactor {
    FORMS_ONLY.clone()
}

/// A writer for logs: each write is one whole line or message, as log formatters make them, and goes through the
/// process's redactor.
#[derive(Debug)]
pub struct RedactedWriter<W>(pub W);

impl<W: Write> Write for RedactedWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.write_all(&current().bytes(Kind::Text, line))?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A text for a person or a log, without secrets.
pub fn text(text: &str) -> String {
    current().text(Kind::Text, text).into_inner()
}

/// Takes the secrets out of a value for a person or a log.
pub fn value(value: &mut Value) {
    *value = current().json(value.take()).into_inner();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::Known;

    #[test]
    fn b11_every_line_of_a_log_goes_through_the_redactor_of_the_process() {
        let mut log = RedactedWriter(Vec::new());
        log.write_all(b"INFO login password=hunter2 sorrel-Dipper-64\n").unwrap();
        let key = TagKey::from_bytes([1; 32]);
        set(Redactor::builder(key).known([Known::value("sorrel-Dipper-64")]).build().unwrap());
        log.write_all(b"INFO again sorrel-Dipper-64\n").unwrap();
        let shown = String::from_utf8(log.0).unwrap();
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[0].starts_with("INFO login password=[REDACTED:password:"), "{shown}");
        assert!(lines[0].ends_with("] sorrel-Dipper-64"), "{shown}");
        assert!(lines[1].starts_with("INFO again [REDACTED:known:"), "{shown}");
        assert!(text("say sorrel-Dipper-64").starts_with("say [REDACTED:known:"));
        let mut shown = serde_json::json!({"said": ["sorrel-Dipper-64"]});
        value(&mut shown);
        assert!(shown["said"][0].as_str().unwrap().starts_with("[REDACTED:known:"), "{shown}");
    }

    #[test]
    fn what_was_logged_is_flushed_with_what_it_is_written_to() {
        struct Flushed(bool);
        impl Write for Flushed {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                self.0 = true;
                Ok(())
            }
        }
        let mut log = RedactedWriter(Flushed(false));
        log.flush().unwrap();
        assert!(log.0.0);
    }
}
