//! Tools whose arguments are a type.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use runyard_actions::Schema;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Tool, ToolContext, ToolDescriptor, ToolError, ToolOutput};

/// A tool whose arguments are a type: the type gives the schema, and arguments are read into it. See [`typed`].
#[async_trait]
pub trait TypedTool: Send + Sync + 'static {
    /// Its name.
    const ID: &'static str;
    /// What it does, for the model.
    const DESCRIPTION: &'static str;
    /// Whether calling it twice is as good as once.
    const IDEMPOTENT: bool = false;
    /// How long a call may take, if it may not take for ever.
    const DEADLINE: Option<Duration> = None;
    /// Its arguments.
    type Args: DeserializeOwned + JsonSchema + Send;

    /// Runs. See [`Tool::execute`].
    async fn run(&self, args: Self::Args, context: &ToolContext) -> Result<ToolOutput, ToolError>;
}

/// A typed tool as a tool.
pub fn typed<T: TypedTool>(tool: T) -> Arc<dyn Tool> {
    let schema = Schema::of_input::<T::Args>();
    let mut descriptor = ToolDescriptor::with_schema(T::ID.to_owned(), T::DESCRIPTION.to_owned(), schema);
    descriptor.idempotent = T::IDEMPOTENT;
    descriptor.deadline = T::DEADLINE;
    Arc::new(Typed { tool, descriptor })
}

struct Typed<T> {
    tool: T,
    descriptor: ToolDescriptor,
}

#[async_trait]
impl<T: TypedTool> Tool for Typed<T> {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn validate_args(&self, args: &Value) -> Result<(), ToolError> {
        // Only the type is sure, and it may refuse what its schema cannot say.
        read::<T::Args>(args).map(drop)
    }

    async fn execute(&self, args: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let args = read(&args)?;
        self.tool.run(args, context).await
    }
}

fn read<A: DeserializeOwned>(args: &Value) -> Result<A, ToolError> {
    A::deserialize(args).map_err(|error| ToolError::InvalidArguments(error.to_string()))
}
