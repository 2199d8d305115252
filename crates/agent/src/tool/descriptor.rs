//! What a tool is.

use std::sync::Arc;
use std::time::Duration;

use runyard_actions::{DefinitionError, Schema};
use runyard_llm::inference::ToolSpec;
use serde_json::Value;

use super::{Refusal, ToolError};
use crate::spec::SpecError;

/// What a tool is.
#[derive(Debug, Clone)]
pub struct ToolDescriptor {
    /// Its name, which the model calls it by: letters, digits, `_` and `-`, as [`ToolSpec::is_name`] says.
    pub id: String,
    /// What it does, for the model.
    pub description: String,
    /// The schema of its arguments.
    pub parameters: Arc<Schema>,
    /// Whether calling it twice is as good as once: then a call whose result is unknown after a crash is made again.
    pub idempotent: bool,
    /// How long a call may take, if it may not take for ever.
    pub deadline: Option<Duration>,
}

impl ToolDescriptor {
    /// A tool with a schema, which is checked at once. Neither idempotent nor with a deadline.
    pub fn new(
        id: impl Into<String>,
        description: impl Into<String>,
        parameters: Value,
    ) -> Result<Self, DefinitionError> {
        Ok(Self::with_schema(id.into(), description.into(), Schema::new(parameters)?))
    }

    pub(super) fn with_schema(id: String, description: String, parameters: Schema) -> Self {
        ToolDescriptor {
            id,
            description,
            parameters: Arc::new(parameters),
            idempotent: false,
            deadline: None,
        }
    }

    /// As it is offered to a model.
    pub fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.id.clone(),
            description: self.description.clone(),
            parameters: self.parameters.json().clone(),
        }
    }

    /// Whether a model can be offered it: providers refuse every request that has a tool of another name.
    pub(crate) fn check_name(id: &str) -> Result<(), SpecError> {
        if ToolSpec::is_name(id) {
            return Ok(());
        }
        let max = ToolSpec::NAME_CHARS_MAX;
        let message = format!("a tool has 1 to {max} letters of a to z, digits, `_` and `-`");
        Err(SpecError::new(format!("the id of tool {id:?}"), message))
    }

    /// The arguments as the tool gets them: what is missing has its default, at every depth.
    pub fn filled(&self, mut args: Value) -> Value {
        self.parameters.apply_defaults(&mut args);
        args
    }

    /// Checks arguments against the schema. What is missing may have a default.
    pub fn check(&self, args: &Value) -> Result<(), Refusal> {
        let broken = |reason: &str| ToolError::Internal(format!("the schema does not compile: {reason}"));
        let issues = self.parameters.issues_with_defaults(args).map_err(broken)?;
        if issues.is_empty() { Ok(()) } else { Err(issues.into()) }
    }
}
