//! The `#[action]` attribute: a typed action from an async function, whose doc comment is the description.
//!
//! It only writes the call of `Action::define` that one would write by hand, and says early and at the right place what
//! is wrong with it. Nothing is registered behind one's back: an application hands its actions to a runtime itself.

mod attributes;
mod expand;
mod key;
mod known;
mod signature;

use proc_macro::TokenStream;
use quote::quote;
use syn::{Error, Item, ItemFn, Result};

use crate::attributes::Attributes;
use crate::signature::Signature;

/// Makes an action of an async function.
///
/// ```ignore
/// /// Create a task in the user's inbox.
/// #[action(side_effects = "write", http = "POST /api/v1/tasks")]
/// async fn create_task(input: CreateTask, ctx: &Context) -> Result<Task, ActionError> {
///     ctx.service::<Tasks>()?.create(input).await
/// }
///
/// let runtime = Runtime::builder().action(create_task()).build()?;
/// ```
///
/// The function becomes `fn create_task() -> Result<Action, DefinitionError>`. It may take an input, `ctx: &Context`,
/// both in that order, or nothing. The input derives `serde::Deserialize` and `schemars::JsonSchema`, what it returns
/// `serde::Serialize` and `schemars::JsonSchema`. Lints, `#[cfg]` and docs stay with the new function; any other
/// attribute below `#[action]` goes to the code that runs, so that `#[tracing::instrument]` sees the call.
///
/// | key | value | if left out |
/// |---|---|---|
/// | `name` | `"create_task"` | the function's name |
/// | `title` | `"Create a task"` | the words of the name |
/// | `description` | `"…"` | the doc comment |
/// | `version` | `"1.2.0"` | `"1.0.0"` |
/// | `side_effects` | `"read"`, `"write"`, `"destructive"` | `"read"` |
/// | `idempotency` | `"idempotent"`, `"non_idempotent"`, `"conditional"`, `"unspecified"` | `"unspecified"` |
/// | `owns_idempotency_key` | none: a flag | the runtime takes care of keys |
/// | `visibility` | `"public"`, `"local"`, `"private"` | `"public"` |
/// | `people_only` | none: a flag | agents may call it |
/// | `permissions` | `["tasks.write"]` | none |
/// | `surfaces` | `["cli", "json", "http", "mcp", "react", "dev", "ai-sdk"]` | all |
/// | `timeout_ms` | a number; 0 is no limit | no limit |
/// | `deadline_ms` | a number; 0 is no limit | no limit |
/// | `retry` | `true`, `false` or `retry(retries = 2, delay_ms = 100)` | `false` |
/// | `requires_confirmation` | `true`, `false` | only if destructive |
/// | `concurrency` | `concurrency(max = 1, wait_ms = 0)` | any number at once |
/// | `deprecated` | `"why"` or `deprecated(message = "why", since = "…", replacement = "…")` | not deprecated |
/// | `example` | `r#"{"title":"Buy milk"}"#`, as often as you like | none |
/// | `http` | `"POST /api/v1/tasks/{id}"` | no route of its own |
/// | `resource` | `"shop://orders/{id}"` | its result is no resource |
/// | `prompt` | none: a flag | it is a tool, not a prompt |
/// | `task` | `"never"`, `"possible"`, `"answered"`, `"required"` | `"never"` |
/// | `crate` | where Runyard is, as in `"my_facade::runyard"` | `"::runyard"` |
#[proc_macro_attribute]
pub fn action(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expanded(arguments, item).unwrap_or_else(|error| error.into_compile_error()).into()
}

fn expanded(arguments: TokenStream, item: TokenStream) -> Result<proc_macro2::TokenStream> {
    let function = read_function(item)?;
    let signature = Signature::read(&function);
    let written = match (Attributes::parse(arguments.into()), signature) {
        (Ok(attributes), Ok(signature)) => expand::expand(&attributes, &signature, &function),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
        (Err(mut error), Err(other)) => {
            error.combine(other);
            Err(error)
        }
    };
    Ok(written.unwrap_or_else(|error| {
        let error = error.into_compile_error();
        // The function stays, so that an editor goes on helping in it and what it uses is not called unused.
        quote!(#error #[allow(unused)] #function)
    }))
}

fn read_function(item: TokenStream) -> Result<ItemFn> {
    syn::parse(item.clone()).map_err(|error| match syn::parse::<Item>(item) {
        Ok(item) => Error::new_spanned(item, "`#[action]` goes on an async function"),
        // It is half written: then where it breaks off says more.
        Err(_) => error,
    })
}
