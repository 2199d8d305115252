//! Handlers: what an action runs, with its input read once into its own type.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use runyard_domain::Code;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::schema::from_serde;
use crate::{ActionError, Context, Issue, UnsafeJson, to_safe_value};

/// What a handler gives in the end.
pub(crate) type Outcome = Pin<Box<dyn Future<Output = Result<Value, ActionError>> + Send>>;
/// A handler with its input read; it runs once.
pub(crate) type Prepared = Box<dyn FnOnce(Context) -> Outcome + Send>;
/// Reads a validated input and prepares one attempt. Called again for each retry.
pub(crate) type Handler = Arc<dyn Fn(&Value) -> Result<Prepared, Issue> + Send + Sync>;

/// What can be the input of a typed action: any type that derives `serde::Deserialize` and `schemars::JsonSchema`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the input of an action",
    note = "derive `serde::Deserialize` and `schemars::JsonSchema` for it"
)]
pub trait ActionInput: DeserializeOwned + JsonSchema + Send + 'static {}
#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static> ActionInput for T {}

/// What can be the output of a typed action: any type that derives `serde::Serialize` and `schemars::JsonSchema`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the output of an action",
    note = "derive `serde::Serialize` and `schemars::JsonSchema` for it"
)]
pub trait ActionOutput: Serialize + JsonSchema {}
#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema> ActionOutput for T {}

pub(crate) fn typed<I, O, E, F, Fut>(run: F) -> Handler
where
    I: ActionInput,
    O: ActionOutput,
    E: Into<ActionError>,
    F: Fn(I, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, E>> + Send + 'static,
{
    let run = Arc::new(run);
    Arc::new(move |value| {
        let input = I::deserialize(value).map_err(|_| explain::<I>(value))?;
        let run = Arc::clone(&run);
        Ok(Box::new(move |context| Box::pin(async move { finish(run(input, context).await) })))
    })
}

pub(crate) fn typed_without_input<O, E, F, Fut>(run: F) -> Handler
where
    O: ActionOutput,
    E: Into<ActionError>,
    F: Fn(Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, E>> + Send + 'static,
{
    let run = Arc::new(run);
    Arc::new(move |_| {
        let run = Arc::clone(&run);
        Ok(Box::new(move |context| Box::pin(async move { finish(run(context).await) })))
    })
}

pub(crate) fn dynamic<F, Fut>(run: F) -> Handler
where
    F: Fn(Value, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Value, ActionError>> + Send + 'static,
{
    let run = Arc::new(run);
    Arc::new(move |value| {
        let (run, value) = (Arc::clone(&run), value.clone());
        Ok(Box::new(move |context| Box::pin(async move { run(value, context).await })))
    })
}

/// Reads once more, this time keeping the place where it fails. Off the hot path.
fn explain<I: DeserializeOwned>(value: &Value) -> Issue {
    match serde_path_to_error::deserialize::<_, I>(value) {
        Err(error) => from_serde(&error),
        Ok(_) => Issue::root("Expected a value that reads the same twice."),
    }
}

fn finish<O: Serialize, E: Into<ActionError>>(outcome: Result<O, E>) -> Result<Value, ActionError> {
    match outcome {
        Ok(output) => to_safe_value(&output).map_err(unsafe_output),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn unsafe_output(reason: UnsafeJson) -> ActionError {
    let reason = match reason {
        // The text is the application's own and may quote a value.
        UnsafeJson::Custom(text) => runyard_redact::process::text(&text),
        known => known.to_string(),
    };
    ActionError::new(
        Code::OutputSerializationError,
        format!("Action returned a value that cannot be safely serialized as JSON: {reason}."),
    )
}
