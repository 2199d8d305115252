//! Reading a JSON object field by field, so that what nobody took can be refused by its name.
//!
//! `null` is the same as absent, as in the API itself.

use serde_json::{Map, Number, Value};

use crate::{LlmError, What};

/// A value and where it stands in the request.
#[derive(Debug)]
pub(super) struct At {
    pub(super) path: String,
    pub(super) value: Value,
}

impl At {
    pub(super) fn malformed(&self, expected: &'static str) -> LlmError {
        malformed(&self.path, expected)
    }

    pub(super) fn into_text(self) -> Result<String, LlmError> {
        match self.value {
            Value::String(text) => Ok(text),
            _ => Err(malformed(&self.path, "a text")),
        }
    }

    pub(super) fn into_list(self) -> Result<Vec<At>, LlmError> {
        let Value::Array(values) = self.value else { return Err(malformed(&self.path, "a list")) };
        let path = self.path;
        let at = |(index, value)| At { path: format!("{path}[{index}]"), value };
        Ok(values.into_iter().enumerate().map(at).collect())
    }

    pub(super) fn into_fields(self) -> Result<Fields, LlmError> {
        match self.value {
            Value::Object(rest) => Ok(Fields { path: self.path, rest }),
            _ => Err(malformed(&self.path, "an object")),
        }
    }
}

fn malformed(path: &str, expected: &'static str) -> LlmError {
    LlmError::Malformed { path: path.to_owned(), expected }
}

/// The fields of an object that were not taken yet.
#[derive(Debug)]
pub(super) struct Fields {
    /// Empty for the request itself.
    path: String,
    rest: Map<String, Value>,
}

impl Fields {
    pub(super) fn of_request(rest: Map<String, Value>) -> Self {
        Self { path: String::new(), rest }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    pub(super) fn take(&mut self, name: &str) -> Option<At> {
        let value = self.rest.remove(name).filter(|value| !value.is_null())?;
        Some(At { path: self.path_of(name), value })
    }

    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, LlmError> {
        self.take(name).map(At::into_text).transpose()
    }

    pub(super) fn required_text(&mut self, name: &str) -> Result<String, LlmError> {
        self.text(name)?.ok_or_else(|| malformed(&self.path_of(name), "a text"))
    }

    pub(super) fn flag(&mut self, name: &str) -> Result<Option<bool>, LlmError> {
        let Some(at) = self.take(name) else { return Ok(None) };
        at.value.as_bool().map(Some).ok_or_else(|| at.malformed("true or false"))
    }

    pub(super) fn number(&mut self, name: &str) -> Result<Option<Number>, LlmError> {
        let Some(at) = self.take(name) else { return Ok(None) };
        at.value.as_number().cloned().map(Some).ok_or_else(|| at.malformed("a number"))
    }

    pub(super) fn count(&mut self, name: &str) -> Result<Option<u64>, LlmError> {
        let Some(at) = self.take(name) else { return Ok(None) };
        at.value.as_u64().map(Some).ok_or_else(|| at.malformed("a whole number"))
    }

    pub(super) fn fields(&mut self, name: &str) -> Result<Option<Fields>, LlmError> {
        self.take(name).map(At::into_fields).transpose()
    }

    /// The elements of a list; none where it is absent.
    pub(super) fn list(&mut self, name: &str) -> Result<Vec<At>, LlmError> {
        Ok(self.take(name).map(At::into_list).transpose()?.unwrap_or_default())
    }

    /// Leaves out what says nothing about the answer.
    pub(super) fn hints(&mut self, names: &[&str]) {
        for name in names {
            self.rest.remove(*name);
        }
    }

    /// Refuses a flag that is set, as the kind of request that needs it.
    pub(super) fn must_be(&mut self, name: &str, only: bool) -> Result<(), LlmError> {
        match self.flag(name)? {
            Some(flag) if flag != only => Err(LlmError::untranslatable(
                self.path_of(name),
                What::Value,
                if flag { "true" } else { "false" },
            )),
            _ => Ok(()),
        }
    }

    /// Refuses what was not taken.
    pub(super) fn end(self) -> Result<(), LlmError> {
        match self.rest.iter().find(|(_, value)| !value.is_null()) {
            Some((name, _)) => Err(LlmError::untranslatable(self.path_of(name), What::Field, name)),
            None => Ok(()),
        }
    }
}
