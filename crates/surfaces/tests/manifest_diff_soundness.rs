//! The subset check never lies: what it calls a subset, a validator cannot tell otherwise.
//!
//! Schemas and values are drawn from a vocabulary small enough for unrelated ones to meet. References stand only where
//! they go one level deeper into the value, or lead to a definition without references: a schema that refers to itself
//! in place has no meaning.

use std::cell::Cell;

use jsonschema::Validator;
use proptest::{
    collection::vec,
    prelude::*,
    sample::{Index, select, subsequence},
    test_runner::{Config, TestRunner},
};
use runyard_surfaces::manifest_diff::accepts_all;
use serde_json::{Map, Value, json};

const PAIRS: u32 = 4_000;
const VALUES_PER_PAIR: usize = 48;
const EDITS_MAX: usize = 3;

fn value() -> BoxedStrategy<Value> {
    let leaf = select(vec![
        json!(null),
        json!(true),
        json!(false),
        json!(-1),
        json!(0),
        json!(1),
        json!(1.0),
        json!(2),
        json!(4),
        json!(0.5),
        json!(1.5),
        json!(""),
        json!("a"),
        json!("b"),
        json!("xx"),
        json!("2020-01-01"),
    ]);
    leaf.prop_recursive(2, 12, 3, |inner| {
        let entry = (name(), inner.clone());
        prop_oneof![
            vec(inner, 0..4).prop_map(Value::Array),
            vec(entry, 0..4).prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
    .boxed()
}

fn name() -> impl Strategy<Value = String> {
    select(vec!["a", "b", "c", "xx"]).prop_map(str::to_owned)
}

fn number() -> impl Strategy<Value = Value> {
    select(vec![json!(0), json!(1), json!(2), json!(1.5), json!(-1)])
}

fn size() -> impl Strategy<Value = Value> {
    (0..4).prop_map(Value::from)
}

fn types() -> impl Strategy<Value = Value> {
    let names = vec!["null", "boolean", "integer", "number", "string", "array", "object"];
    prop_oneof![
        3 => select(names.clone()).prop_map(Value::from),
        1 => subsequence(names, 1..4).prop_map(|names| json!(names)),
    ]
}

fn entry(key: &'static str, value: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<(String, Value)> {
    value.prop_map(move |value| (key.to_owned(), value)).boxed()
}

fn map_of(
    names: impl Strategy<Value = String> + 'static,
    schema: BoxedStrategy<Value>,
) -> BoxedStrategy<Value> {
    vec((names, schema), 1..3).prop_map(|entries| Value::Object(entries.into_iter().collect())).boxed()
}

fn pattern() -> impl Strategy<Value = &'static str> {
    select(vec!["^a", "^x", "^[ab]$"])
}

fn of_objects(member: &BoxedStrategy<Value>) -> BoxedStrategy<(String, Value)> {
    prop_oneof![
        entry("properties", map_of(name(), member.clone())),
        entry("properties", map_of(name(), member.clone())),
        entry("additionalProperties", member.clone()),
        entry("additionalProperties", Just(json!(false))),
        entry("patternProperties", map_of(pattern().prop_map(str::to_owned), member.clone())),
        entry("propertyNames", member.clone()),
        entry("unevaluatedProperties", Just(json!(false))),
    ]
    .boxed()
}

fn of_arrays(member: &BoxedStrategy<Value>) -> BoxedStrategy<(String, Value)> {
    prop_oneof![
        entry("items", member.clone()),
        entry("items", Just(json!(false))),
        entry("prefixItems", vec(member.clone(), 1..3).prop_map(Value::Array)),
        entry("contains", member.clone()),
        entry("unevaluatedItems", Just(json!(false))),
    ]
    .boxed()
}

/// One keyword. `place` stands in the same place of the value, `member` one level deeper.
fn keyword(place: BoxedStrategy<Value>, member: BoxedStrategy<Value>) -> BoxedStrategy<(String, Value)> {
    let bound = select(vec!["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]);
    let sizes =
        select(vec!["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"]);
    let branches = || vec(place.clone(), 1..4).prop_map(Value::Array);
    let leaf = prop_oneof![
        entry("type", types()),
        entry("type", types()),
        entry("enum", vec(value(), 1..4).prop_map(Value::Array)),
        entry("const", value()),
        (bound, number()).prop_map(|(key, value)| (key.to_owned(), value)),
        (sizes, size()).prop_map(|(key, value)| (key.to_owned(), value)),
        entry("multipleOf", select(vec![json!(1), json!(2), json!(4), json!(0.5)])),
        entry("pattern", pattern().prop_map(Value::from)),
        entry("format", select(vec![json!("date"), json!("email")])),
        entry("uniqueItems", any::<bool>().prop_map(Value::from)),
        entry("required", subsequence(vec!["a", "b", "c"], 1..3).prop_map(|names| json!(names))),
        entry("dependentRequired", Just(json!({"a": ["b"]}))),
        entry("minContains", size()),
        entry("maxContains", size()),
        entry("$ref", Just(json!("#/$defs/Flat"))),
        entry("description", Just(json!("words"))),
    ];
    let in_place = prop_oneof![
        entry("anyOf", branches()),
        entry("oneOf", branches()),
        entry("allOf", branches()),
        entry("not", place.clone()),
        entry("if", place.clone()),
        entry("then", place.clone()),
        entry("else", place.clone()),
    ];
    prop_oneof![4 => leaf, 3 => of_objects(&member), 2 => of_arrays(&member), 2 => in_place].boxed()
}

/// A schema, with references (`Some`) or without; `depth` levels of nesting.
fn schema(references: Option<&'static [&'static str]>, depth: u32) -> BoxedStrategy<Value> {
    let simple =
        prop_oneof![types().prop_map(|types| json!({"type": types})), any::<bool>().prop_map(Value::from)];
    let Some(below) = depth.checked_sub(1) else { return simple.boxed() };
    let place = schema(references, below);
    let member = match references {
        Some(targets) => prop_oneof![
            4 => place.clone(),
            1 => select(targets).prop_map(|target| json!({"$ref": target})),
        ]
        .boxed(),
        None => place.clone(),
    };
    let built = prop_oneof![
        4 => vec(keyword(place, member.clone()), 1..5),
        1 => vec(of_objects(&member), 2..4),
        1 => vec(of_arrays(&member), 2..4),
    ]
    .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>()));
    prop_oneof![1 => simple, 6 => built].boxed()
}

fn document() -> BoxedStrategy<Value> {
    const TARGETS: &[&str] = &["#", "#/$defs/Node", "#/$defs/Flat"];
    (schema(Some(TARGETS), 2), schema(Some(TARGETS), 2), types())
        .prop_map(|(mut root, node, flat)| {
            if !root.is_object() {
                root = json!({});
            }
            root["$defs"] = json!({"Node": node, "Flat": {"type": flat}});
            root
        })
        .boxed()
}

/// Takes a keyword away from some schema inside `target`, or gives it one that `donor` has.
fn edit(target: &mut Value, donor: &Value, way: &[Index]) {
    let Some((turn, rest)) = way.split_first() else { return };
    match target {
        Value::Array(items) if !items.is_empty() => {
            let length = items.len();
            edit(&mut items[turn.index(length)], donor, rest);
        }
        Value::Object(map) => {
            let nested: Vec<String> = map
                .iter()
                .filter(|(_, v)| v.is_object() || v.is_array())
                .map(|(key, _)| key.clone())
                .collect();
            if !nested.is_empty() && turn.index(3) > 0 && rest.len() > 1 {
                edit(&mut map[&nested[turn.index(nested.len())]], donor, rest);
            } else if let (Some(donor), 0) = (donor.as_object(), turn.index(2)) {
                let given = donor.iter().filter(|(key, _)| !["$defs", "$ref"].contains(&key.as_str()));
                map.extend(given.take(1).map(|(key, value)| (key.clone(), value.clone())));
            } else if let Some(key) = map.keys().find(|key| *key != "$defs").cloned() {
                map.shift_remove(&key);
            }
        }
        _ => {}
    }
}

fn pair() -> impl Strategy<Value = (Value, Value)> {
    let edits = vec((schema(None, 1), vec(any::<Index>(), 5)), 0..=EDITS_MAX);
    prop_oneof![
        1 => (document(), document()),
        4 => (document(), edits).prop_map(|(sub, edits)| {
            let mut sup = sub.clone();
            edits.iter().for_each(|(donor, way)| edit(&mut sup, donor, way));
            (sub, sup)
        }),
        2 => (schema(None, 1), schema(None, 1)),
    ]
}

/// An edit may leave something that is no schema (a `required` that is one); such pairs are skipped.
fn validator(schema: &Value) -> Option<Validator> {
    jsonschema::options().should_validate_formats(true).build(schema).ok()
}

#[test]
fn a_value_valid_in_what_is_called_a_subset_is_valid_in_the_other() {
    let (claims, hits) = (Cell::new(0u32), Cell::new(0u32));
    let config = Config { cases: PAIRS, failure_persistence: None, ..Config::default() };
    let outcome =
        TestRunner::new(config).run(&(pair(), vec(value(), VALUES_PER_PAIR)), |((sub, sup), values)| {
            let (Some(narrow), Some(wide)) = (validator(&sub), validator(&sup)) else { return Ok(()) };
            if sub == sup || !accepts_all(&sub, &sup).is_empty() {
                return Ok(());
            }
            claims.set(claims.get() + 1);
            for value in values.iter().filter(|value| narrow.is_valid(value)) {
                hits.set(hits.get() + 1);
                prop_assert!(wide.is_valid(value), "{value} is in {sub} and not in {sup}");
            }
            Ok(())
        });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    println!("{} claims, {} values", claims.get(), hits.get());
    assert!(claims.get() > PAIRS / 20, "too few subsets to say anything: {}", claims.get());
    assert!(hits.get() > PAIRS / 5, "too few values to say anything: {}", hits.get());
}

proptest! {
    #![proptest_config(Config { cases: 1_000, failure_persistence: None, ..Config::default() })]

    #[test]
    fn a_conjunction_is_within_each_side_and_each_side_within_an_alternative(
        one in schema(None, 2),
        other in schema(None, 2),
    ) {
        let wrapped = |key: &str, branches: &[&Value]| json!({key: branches, "$defs": {"Flat": true}});
        let alone = wrapped("allOf", &[&one]);
        prop_assert_eq!(accepts_all(&wrapped("allOf", &[&one, &other]), &alone), Vec::new());
        prop_assert_eq!(accepts_all(&alone, &wrapped("anyOf", &[&other, &one])), Vec::new());
    }

    #[test]
    fn a_check_of_any_two_documents_ends(one in document(), other in document()) {
        accepts_all(&one, &other);
    }
}
