//! Actions that give back what they were given: inputs of every kind, with their defaults.

use runyard::{ActionError, action};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Echo {
    /// Anything.
    value: Value,
}

/// Give back any value.
#[action]
pub(super) async fn echo(input: Echo) -> Result<Value, ActionError> {
    Ok(input.value)
}

/// An order with a field of every kind.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Order {
    /// What is ordered.
    #[schemars(length(min = 1, max = 40))]
    item_name: String,
    /// How many; negative gives back.
    #[serde(default = "one")]
    #[schemars(range(min = -100, max = 100))]
    count: i32,
    /// A part of the price.
    ratio: Option<f64>,
    /// Whether it is a present.
    #[serde(default)]
    gift: bool,
    /// Words to find it by.
    #[serde(default)]
    #[schemars(length(max = 3))]
    tags: Vec<String>,
    /// Sizes.
    #[serde(default)]
    sizes: Vec<i64>,
    /// How it is sent.
    #[serde(default)]
    speed: Speed,
    /// Where it goes.
    #[serde(default)]
    address: Address,
    /// Further addresses.
    #[serde(default)]
    copies: Vec<Address>,
}

#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Speed {
    /// When there is time.
    #[default]
    Slow,
    /// Now.
    Express,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Address {
    #[serde(default = "main_street")]
    street: String,
    #[serde(default)]
    zip_code: Option<String>,
}

impl Default for Address {
    fn default() -> Self {
        Address { street: main_street(), zip_code: None }
    }
}

fn one() -> i32 {
    1
}

fn main_street() -> String {
    "Main Street 1".to_owned()
}

/// Give back an order, with its defaults filled in.
#[action(idempotency = "idempotent")]
pub(super) async fn order(input: Order) -> Result<Order, ActionError> {
    Ok(input)
}

/// Numbers at the edges of their types.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct Numbers {
    natural: Option<u64>,
    whole: Option<i64>,
    real: Option<f64>,
}

/// Give back numbers.
#[action]
pub(super) async fn numbers(input: Numbers) -> Result<Numbers, ActionError> {
    Ok(input)
}

/// Take nothing and give nothing.
#[action]
pub(super) async fn nothing() -> Result<(), ActionError> {
    Ok(())
}
