//! Any input that a schema takes has a strict form that the strict schema takes, and comes back as it was.
#![allow(clippy::unwrap_used, reason = "a failed expectation fails the test")]

mod llm_support;

use llm_support::strict_rules::broken_rules;
use llm_support::{ada, call, execute};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::Config;
use runyard_actions::{Action, Runtime};
use runyard_surfaces::llm_tools::{Format, LlmTools, definitions};
use serde_json::{Map, Value, json};

/// What an input looks like.
#[derive(Clone, Debug)]
enum Shape {
    Text,
    Whole,
    Flag,
    Words,
    /// The shape, or null.
    Maybe(Box<Shape>),
    List(Box<Shape>),
    Record(Vec<Field>),
    /// Objects that differ in a constant.
    Tagged(Vec<Vec<Field>>),
    /// A text or an object.
    TextOr(Vec<Field>),
    /// The shape by reference.
    Named(Box<Shape>),
}

#[derive(Clone, Debug)]
struct Field {
    shape: Shape,
    required: bool,
}

fn shape() -> BoxedStrategy<Shape> {
    let leaf = select(vec![Shape::Text, Shape::Whole, Shape::Flag, Shape::Words]);
    leaf.prop_recursive(3, 24, 4, |inner| {
        let fields = || fields(inner.clone());
        prop_oneof![
            inner.clone().prop_map(|it| Shape::Maybe(Box::new(it))),
            inner.clone().prop_map(|it| Shape::List(Box::new(it))),
            fields().prop_map(Shape::Record),
            proptest::collection::vec(fields(), 1..4).prop_map(Shape::Tagged),
            fields().prop_map(Shape::TextOr),
            inner.clone().prop_map(|it| Shape::Named(Box::new(it))),
        ]
    })
    .boxed()
}

fn fields(shape: impl Strategy<Value = Shape> + 'static) -> BoxedStrategy<Vec<Field>> {
    let field = (shape, any::<bool>()).prop_map(|(shape, required)| Field { shape, required });
    proptest::collection::vec(field, 0..4).boxed()
}

impl Shape {
    fn schema(&self, definitions: &mut Map<String, Value>) -> Value {
        match self {
            Shape::Text => json!({"type": "string", "maxLength": 3}),
            Shape::Whole => json!({"type": "integer", "minimum": -9, "maximum": 9}),
            Shape::Flag => json!({"type": "boolean"}),
            Shape::Words => json!({"type": "string", "enum": ["a", "b"]}),
            Shape::Maybe(shape) => json!({"anyOf": [shape.schema(definitions), {"type": "null"}]}),
            Shape::List(shape) => json!({"type": "array", "items": shape.schema(definitions), "maxItems": 3}),
            Shape::Record(fields) => record(fields, None, definitions),
            Shape::Tagged(variants) => {
                let variants = variants.iter().enumerate();
                let variants: Vec<Value> =
                    variants.map(|(index, fields)| record(fields, Some(index), definitions)).collect();
                json!({ "oneOf": variants })
            }
            Shape::TextOr(fields) => {
                json!({"anyOf": [record(fields, None, definitions), {"type": "string"}]})
            }
            Shape::Named(shape) => {
                let schema = shape.schema(definitions);
                let name = format!("D{}", definitions.len());
                definitions.insert(name.clone(), schema);
                json!({"$ref": format!("#/$defs/{name}"), "description": "By name."})
            }
        }
    }

    fn takes_null(&self) -> bool {
        match self {
            Shape::Maybe(_) => true,
            Shape::Named(shape) => shape.takes_null(),
            _ => false,
        }
    }

    /// A value, and the same in strict form.
    fn values(&self) -> BoxedStrategy<(Value, Value)> {
        let same = |values: Vec<Value>| select(values).prop_map(|value| (value.clone(), value)).boxed();
        match self {
            Shape::Text => same(vec![json!(""), json!("abc"), json!("ü{")]),
            Shape::Whole => same(vec![json!(0), json!(-9), json!(9)]),
            Shape::Flag => same(vec![json!(true), json!(false)]),
            Shape::Words => same(vec![json!("a"), json!("b")]),
            Shape::Maybe(shape) => prop_oneof![same(vec![Value::Null]), shape.values()].boxed(),
            Shape::List(shape) => proptest::collection::vec(shape.values(), 0..4)
                .prop_map(|items| {
                    let (plain, strict): (Vec<_>, Vec<_>) = items.into_iter().unzip();
                    (Value::Array(plain), Value::Array(strict))
                })
                .boxed(),
            Shape::Record(fields) => record_values(fields, None),
            Shape::Tagged(variants) => {
                let variants = variants.iter().enumerate();
                let variants: Vec<_> =
                    variants.map(|(index, fields)| record_values(fields, Some(index))).collect();
                proptest::strategy::Union::new(variants).boxed()
            }
            Shape::TextOr(fields) => prop_oneof![record_values(fields, None), same(vec![json!("x")])].boxed(),
            Shape::Named(shape) => shape.values(),
        }
    }
}

fn record(fields: &[Field], tag: Option<usize>, definitions: &mut Map<String, Value>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        properties.insert(format!("f{index}"), field.shape.schema(definitions));
        if field.required {
            required.push(format!("f{index}"));
        }
    }
    if let Some(tag) = tag {
        properties.insert("tag".to_owned(), json!({"type": "string", "const": format!("t{tag}")}));
        required.push("tag".to_owned());
    }
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// What may be left out is, where null does not mean something itself.
fn record_values(fields: &[Field], tag: Option<usize>) -> BoxedStrategy<(Value, Value)> {
    let values: Vec<_> = fields
        .iter()
        .map(|field| {
            let there = field.shape.values().prop_map(Some);
            match field.required || field.shape.takes_null() {
                true => there.boxed(),
                false => prop_oneof![Just(None), there].boxed(),
            }
        })
        .collect();
    values
        .prop_map(move |values| {
            let (mut plain, mut strict) = (Map::new(), Map::new());
            for (index, value) in values.into_iter().enumerate() {
                let name = format!("f{index}");
                match value {
                    Some((own, forced)) => {
                        plain.insert(name.clone(), own);
                        strict.insert(name, forced);
                    }
                    None => drop(strict.insert(name, Value::Null)),
                }
            }
            if let Some(tag) = tag {
                plain.insert("tag".to_owned(), json!(format!("t{tag}")));
                strict.insert("tag".to_owned(), json!(format!("t{tag}")));
            }
            (Value::Object(plain), Value::Object(strict))
        })
        .boxed()
}

fn input() -> impl Strategy<Value = (Value, Vec<(Value, Value)>)> {
    shape().prop_flat_map(|shape| {
        let mut definitions = Map::new();
        let mut schema = shape.schema(&mut definitions);
        if !definitions.is_empty() {
            schema["$defs"] = Value::Object(definitions);
        }
        (Just(schema), proptest::collection::vec(shape.values(), 1..6))
    })
}

fn echoing(schema: &Value) -> Runtime {
    let action = Action::define("echo", "Gives back its input.")
        .input_schema(schema.clone())
        .handler(|input, _| async move { Ok(input) });
    Runtime::builder().action(action).build().unwrap()
}

/// A model's arguments decide how deep they go, so the time for them must not double with every level.
#[tokio::test]
async fn alternatives_that_hold_themselves_and_have_their_tag_last_come_back_as_they_were() {
    let node = |kind: &str| {
        json!({
            "type": "object",
            "properties": {
                "child": {"$ref": "#/$defs/node"},
                "note": {"type": "string"},
                "kind": {"type": "string", "const": kind},
            },
            "required": ["child", "kind"],
            "additionalProperties": false,
        })
    };
    let schema = json!({
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/node"}},
        "required": ["tree"],
        "additionalProperties": false,
        "$defs": {"node": {"anyOf": [node("a"), node("b"), {"type": "null"}]}},
    });
    let runtime = echoing(&schema);
    assert_eq!(definitions(&runtime, &ada(), Format::OpenaiChat)[0]["function"]["strict"], true);
    let (mut plain, mut strict) = (Value::Null, Value::Null);
    for level in 0..40 {
        let kind = if level % 2 == 0 { "a" } else { "b" };
        plain = json!({"child": plain, "kind": kind});
        strict = json!({"child": strict, "note": null, "kind": kind});
    }
    let call = call(Format::OpenaiChat, "echo", &json!({ "tree": strict }));
    let reply = execute(&LlmTools::new(runtime), Format::OpenaiChat, call, json!({})).await;
    assert_eq!(reply.envelope.data(), Some(&json!({ "tree": plain })));
}

proptest! {
    #![proptest_config(Config { cases: 400, failure_persistence: None, ..Config::default() })]

    #[test]
    fn an_input_in_strict_form_is_taken_and_comes_back_as_it_was((schema, values) in input()) {
        let runtime = echoing(&schema);
        let tool = definitions(&runtime, &ada(), Format::OpenaiChat)[0]["function"].clone();
        prop_assert_eq!(&tool["strict"], &json!(true), "{}", &schema);
        let parameters = &tool["parameters"];
        prop_assert_eq!(broken_rules(parameters), Vec::<String>::new(), "{}", parameters);
        let validator = jsonschema::draft202012::new(parameters).unwrap();
        let wrapped = parameters["properties"].get("input").is_some();
        let tools = LlmTools::new(runtime);
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for (plain, strict) in values {
            let arguments = if wrapped { json!({ "input": strict }) } else { strict };
            prop_assert!(validator.is_valid(&arguments), "{} is not of {}", arguments, parameters);
            let call = call(Format::OpenaiChat, "echo", &arguments);
            let reply = tokio.block_on(execute(&tools, Format::OpenaiChat, call, json!({})));
            prop_assert_eq!(reply.envelope.data(), Some(&plain), "{} of {}", arguments, schema);
        }
    }
}
