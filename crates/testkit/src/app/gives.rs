//! Actions whose outputs are odd: not JSON, too deep, too large, not what they declared; and one that counts its runs.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use runyard::{Action, ActionError, Artifact, Context, DefinitionError, action, fields};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
struct Size {
    /// How much of it.
    size: usize,
}

/// Give a number that is none.
#[action]
async fn give_nan() -> Result<Vec<f64>, ActionError> {
    Ok(vec![1.0, f64::NAN])
}

/// Give an infinity.
#[action]
async fn give_infinity() -> Result<f64, ActionError> {
    Ok(f64::NEG_INFINITY)
}

/// Give a map whose keys are numbers.
#[action]
async fn give_number_keys() -> Result<BTreeMap<u32, String>, ActionError> {
    Ok(BTreeMap::from([(1, "one".to_owned())]))
}

/// Give arrays in arrays.
#[action]
async fn give_deep(input: Size) -> Result<Value, ActionError> {
    Ok((0..input.size).fold(json!(1), |inner, _| Value::Array(vec![inner])))
}

/// Give a long text.
#[action]
async fn give_text(input: Size) -> Result<String, ActionError> {
    Ok("x".repeat(input.size))
}

/// Declares a number and a list of texts, and gives something else.
fn give_other() -> Result<Action, DefinitionError> {
    let items = json!({"type": "array", "items": {"type": "string"}});
    let output = json!({
        "type": "object",
        "properties": {"count": {"type": "integer"}, "items": items},
        "required": ["count", "items", "total"],
    });
    Action::define("give_other", "Give something else than what is declared.").output_schema(output).handler(
        |_, context| async move {
            context.logger().info("about to lie", fields! {});
            Ok(json!({"count": "three", "items": ["a", 2]}))
        },
    )
}

/// How often each thing was made in this process.
#[derive(Default)]
pub(super) struct Made(Mutex<HashMap<String, u32>>);

#[derive(Deserialize, JsonSchema)]
struct Make {
    /// What is made.
    what: String,
}

#[derive(Serialize, JsonSchema)]
struct Thing {
    what: String,
    /// How often it was made in this process.
    times: u32,
}

/// Make a thing; with the same idempotency key only once.
#[action(side_effects = "write", idempotency = "non_idempotent")]
async fn make(input: Make, ctx: &Context) -> Result<Thing, ActionError> {
    let made = ctx.service::<Made>()?;
    let mut counts = made.0.lock().unwrap();
    let times = counts.entry(input.what.clone()).or_default();
    *times += 1;
    ctx.logger().info("made", fields! { what: input.what });
    ctx.artifacts().add(Artifact::named("thing"));
    Ok(Thing { what: input.what, times: *times })
}

/// Look at a thing; it only reads, so an idempotency key means nothing to it.
#[action]
async fn look(input: Make, ctx: &Context) -> Result<String, ActionError> {
    ctx.logger().debug("looked", fields! {});
    Ok(input.what)
}

pub(super) fn actions() -> Vec<Result<Action, DefinitionError>> {
    vec![
        give_nan(),
        give_infinity(),
        give_number_keys(),
        give_deep(),
        give_text(),
        give_other(),
        make(),
        look(),
    ]
}
