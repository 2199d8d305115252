//! The schemas of ordinary Rust input types: what serde reads is accepted and reaches the handler, and what a plain struct
//! does not know is refused.
#![allow(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::collections::BTreeMap;

use runyard_actions::testing::TestApp;
use runyard_actions::{Action, ActionError, ActionInput, Context, DefinitionError, Runtime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Deserialize, Serialize, JsonSchema)]
struct Inner {
    n: i64,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Other {
    s: String,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
enum TaggedNewtypes {
    Inner(Inner),
    Other(Other),
    Unit,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
enum TaggedStructs {
    One { n: i64 },
    Two { inner: Inner },
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", content = "value", rename_all = "snake_case")]
enum Adjacent {
    Inner(Inner),
    Struct { s: String },
    Unit,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum External {
    Inner(Inner),
    Struct { s: String },
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
enum Untagged {
    Inner(Inner),
    Struct { s: String },
}

/// `T` beside a field of its own.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Flattened<T> {
    own: String,
    #[serde(flatten)]
    rest: T,
}

/// Two flattened enums.
#[derive(Deserialize, Serialize, JsonSchema)]
struct FlattenedTwice {
    #[serde(flatten)]
    tagged: TaggedNewtypes,
    #[serde(flatten)]
    adjacent: Adjacent,
}

/// A definition that is a part in one place and stands alone in another.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Both {
    alone: Inner,
    part: TaggedNewtypes,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Plain {
    /// A struct with a description.
    nested: Inner,
    #[serde(skip_serializing_if = "Option::is_none")]
    option: Option<Other>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    list: Vec<Inner>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    map: BTreeMap<String, Inner>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Tree {
    name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    children: Vec<Tree>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Box<Tree>>,
}

async fn echo<T>(input: T, _: Context) -> Result<T, ActionError> {
    Ok(input)
}

fn app<T: ActionInput + Serialize>() -> TestApp {
    TestApp::new(Runtime::builder().action(Action::define("act", "Gives its input back.").typed(echo::<T>)))
}

/// Each input reaches the handler, which gives the same back.
async fn accepts<T: ActionInput + Serialize>(inputs: impl IntoIterator<Item = Value>) {
    let app = app::<T>();
    for input in inputs {
        let called = app.call("act", input.clone()).await;
        assert_eq!(called.0.outcome.as_ref().ok(), Some(&input), "{input}: {:?}", called.0.outcome);
    }
}

/// Each input is refused before the handler.
async fn refuses<T: ActionInput + Serialize>(inputs: impl IntoIterator<Item = Value>) {
    let app = app::<T>();
    for input in inputs {
        let called = app.call("act", input.clone()).await;
        called.expect_error("VALIDATION_ERROR");
    }
}

#[tokio::test]
async fn internally_tagged_newtype_variants_are_accepted() {
    accepts::<TaggedNewtypes>([
        json!({"type": "inner", "n": 1}),
        json!({"type": "other", "s": "a"}),
        json!({"type": "unit"}),
    ])
    .await;
    refuses::<TaggedNewtypes>([json!({"type": "inner", "s": "a"}), json!({"type": "none"}), json!({"n": 1})])
        .await;
}

#[tokio::test]
async fn internally_tagged_struct_variants_are_accepted_and_closed() {
    accepts::<TaggedStructs>([json!({"type": "one", "n": 1}), json!({"type": "two", "inner": {"n": 1}})])
        .await;
    refuses::<TaggedStructs>([
        json!({"type": "one", "n": 1, "x": 1}),
        json!({"type": "two", "inner": {"n": 1, "x": 1}}),
    ])
    .await;
}

#[tokio::test]
async fn adjacently_tagged_variants_are_accepted_and_closed() {
    accepts::<Adjacent>([
        json!({"kind": "inner", "value": {"n": 1}}),
        json!({"kind": "struct", "value": {"s": "a"}}),
        json!({"kind": "unit"}),
    ])
    .await;
    refuses::<Adjacent>([
        json!({"kind": "inner", "value": {"n": 1, "x": 1}}),
        json!({"kind": "struct", "value": {"s": "a"}, "x": 1}),
    ])
    .await;
}

#[tokio::test]
async fn externally_tagged_variants_are_accepted_and_closed() {
    accepts::<External>([json!({"inner": {"n": 1}}), json!({"struct": {"s": "a"}})]).await;
    refuses::<External>([
        json!({"inner": {"n": 1, "x": 1}}),
        json!({"struct": {"s": "a", "x": 1}}),
        json!({"inner": {"n": 1}, "struct": {"s": "a"}}),
    ])
    .await;
}

#[tokio::test]
async fn untagged_variants_are_accepted_and_closed() {
    accepts::<Untagged>([json!({"n": 1}), json!({"s": "a"})]).await;
    refuses::<Untagged>([json!({"n": 1, "x": 1}), json!({"s": "a", "x": 1}), json!({})]).await;
}

#[tokio::test]
async fn a_flattened_struct_is_accepted_and_closed() {
    accepts::<Flattened<Inner>>([json!({"own": "a", "n": 1})]).await;
    refuses::<Flattened<Inner>>([json!({"own": "a", "n": 1, "x": 1}), json!({"own": "a"})]).await;
}

#[tokio::test]
async fn a_flattened_enum_is_accepted_however_it_is_tagged() {
    accepts::<Flattened<TaggedNewtypes>>([
        json!({"own": "a", "type": "inner", "n": 1}),
        json!({"own": "a", "type": "unit"}),
    ])
    .await;
    accepts::<Flattened<TaggedStructs>>([json!({"own": "a", "type": "two", "inner": {"n": 1}})]).await;
    accepts::<Flattened<Adjacent>>([json!({"own": "a", "kind": "inner", "value": {"n": 1}})]).await;
    accepts::<Flattened<External>>([json!({"own": "a", "struct": {"s": "a"}})]).await;
    accepts::<Flattened<Untagged>>([json!({"own": "a", "n": 1}), json!({"own": "a", "s": "a"})]).await;
    accepts::<FlattenedTwice>([json!({"type": "other", "s": "a", "kind": "inner", "value": {"n": 1}})]).await;
    refuses::<Flattened<TaggedStructs>>([
        json!({"own": "a"}),
        json!({"own": "a", "type": "two", "inner": {"n": 1, "x": 1}}),
    ])
    .await;
}

#[tokio::test]
async fn a_flattened_map_takes_any_name_with_its_own_type() {
    accepts::<Flattened<BTreeMap<String, i64>>>([json!({"own": "a"}), json!({"own": "a", "x": 1, "y": 2})])
        .await;
    refuses::<Flattened<BTreeMap<String, i64>>>([json!({"own": "a", "x": "one"})]).await;
}

#[tokio::test]
async fn a_definition_that_is_also_a_part_of_another_object_stays_open() {
    let app = app::<Both>();
    let part = json!({"type": "inner", "n": 1});
    let called = app.call("act", json!({"alone": {"n": 1, "x": 1}, "part": part})).await;
    assert_eq!(called.expect_ok(), json!({"alone": {"n": 1}, "part": part}));
    refuses::<Both>([json!({"alone": {"n": 1}, "part": part, "x": 1})]).await;
}

#[tokio::test]
async fn plain_structs_are_closed_at_every_depth() {
    accepts::<Plain>([
        json!({"nested": {"n": 1}}),
        json!({"nested": {"n": 1}, "option": {"s": "a"}, "list": [{"n": 1}], "map": {"a": {"n": 1}}}),
    ])
    .await;
    let app = app::<Plain>();
    for (input, path) in [
        (json!({"nested": {"n": 1}, "x": 1}), json!(["x"])),
        (json!({"nested": {"n": 1, "x": 1}}), json!(["nested", "x"])),
        (json!({"nested": {"n": 1}, "option": {"s": "a", "x": 1}}), json!(["option", "x"])),
        (json!({"nested": {"n": 1}, "list": [{"n": 1}, {"n": 1, "x": 1}]}), json!(["list", 1, "x"])),
        (json!({"nested": {"n": 1}, "map": {"a": {"n": 1, "x": 1}}}), json!(["map", "a", "x"])),
    ] {
        let failure = app.call("act", input.clone()).await.expect_error("VALIDATION_ERROR");
        let paths: Vec<_> = failure.issues.iter().map(|issue| json!(issue.path)).collect();
        assert_eq!(paths, [path], "{input}");
    }
}

#[tokio::test]
async fn a_recursive_struct_is_closed_at_every_depth() {
    let leaf = json!({"name": "leaf"});
    accepts::<Tree>([leaf.clone(), json!({"name": "a", "children": [{"name": "b", "next": leaf}]})]).await;
    refuses::<Tree>([
        json!({"name": "a", "x": 1}),
        json!({"name": "a", "children": [{"name": "b", "x": 1}]}),
        json!({"name": "a", "children": [{"name": "b", "next": {"name": "c", "x": 1}}]}),
    ])
    .await;
}

#[derive(Deserialize, JsonSchema)]
struct Page {
    #[serde(default = "ten")]
    size: u32,
}

fn ten() -> u32 {
    10
}

#[derive(Deserialize, JsonSchema)]
struct Listing {
    page: Option<Page>,
}

#[tokio::test]
async fn the_defaults_of_an_optional_struct_are_filled_in() {
    let list = Action::define("list", "Gives the size of a page.")
        .typed(|input: Listing, _| async move { Ok::<_, ActionError>(input.page.map(|page| page.size)) });
    let app = TestApp::new(Runtime::builder().action(list));
    assert_eq!(app.call("list", json!({"page": {}})).await.expect_ok(), json!(10));
    assert_eq!(app.call("list", json!({"page": null})).await.expect_ok(), json!(null));
    assert_eq!(app.call("list", json!({})).await.expect_ok(), json!(null));
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Confirmed {
    id: String,
    confirm: bool,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(tag = "type")]
enum Reserved {
    Harmless { id: String },
    Struct { id: String, confirm: bool },
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(tag = "type")]
enum ReservedByReference {
    Newtype(Confirmed),
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(tag = "type")]
enum Unreserved {
    One { id: String },
    Two { id: String, n: i64 },
}

fn routed<T: ActionInput + Serialize>(route: &str) -> Result<Action, DefinitionError> {
    Action::define("act", "Gives its input back.").http(route).typed(echo::<T>)
}

#[test]
fn a_reserved_field_of_a_variant_is_refused_beside_a_route() {
    let expected = DefinitionError::ReservedField { action: "act".to_owned(), field: "confirm".to_owned() };
    assert_eq!(routed::<Reserved>("GET /things").unwrap_err(), expected);
    assert_eq!(routed::<ReservedByReference>("GET /things").unwrap_err(), expected);
    assert_eq!(routed::<Flattened<Reserved>>("GET /things").unwrap_err(), expected);
}

#[test]
fn a_path_field_may_be_a_field_of_a_variant() {
    assert!(routed::<Unreserved>("GET /things/{id}").is_ok());
    assert!(routed::<Unreserved>("GET /things/{id}/{n}").is_ok());
    assert!(routed::<Flattened<Unreserved>>("GET /things/{own}/{id}").is_ok());
    let expected = DefinitionError::UnknownPathField { action: "act".to_owned(), field: "other".to_owned() };
    assert_eq!(routed::<Unreserved>("GET /things/{other}").unwrap_err(), expected);
}
