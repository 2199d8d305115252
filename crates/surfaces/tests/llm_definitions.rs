//! Definitions of tools for language models: which, in which shape, and correct under OpenAI's strict mode.
//!
//! clause: A02
//! clause: A20
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation fails the test")]

mod llm_support;

use llm_support::ada;
use llm_support::strict_rules::broken_rules;
use runyard_actions::{Action, DefinitionError, Deprecation, Exposure, Runtime, SideEffects, Visibility};
use runyard_domain::{Actor, RunId, Surface};
use runyard_surfaces::llm_tools::{Format, definitions};
use serde_json::{Value, json};

fn action(name: &str, schema: Value) -> Result<Action, DefinitionError> {
    Action::define(name, "Does something.").input_schema(schema).handler(|input, _| async move { Ok(input) })
}

fn runtime(schema: &Value) -> Runtime {
    Runtime::builder().action(action("it", schema.clone())).build().unwrap()
}

/// The function of the one tool of this schema, for OpenAI.
fn function(schema: &Value) -> Value {
    definitions(&runtime(schema), &ada(), Format::OpenaiResponses)[0].clone()
}

/// The parameters, which must be strict and break no rule.
#[track_caller]
fn strict(schema: &Value) -> Value {
    let function = function(schema);
    assert_eq!(function["strict"], true, "{schema}");
    let parameters = function["parameters"].clone();
    assert_eq!(broken_rules(&parameters), Vec::<String>::new(), "{parameters:#}");
    parameters
}

/// An object with one optional property.
fn with(property: Value) -> Value {
    json!({"type": "object", "properties": {"x": property}, "additionalProperties": false})
}

#[track_caller]
fn check(property: Value, expected: Value) {
    assert_eq!(strict(&with(property))["properties"]["x"], expected);
}

#[test]
fn mistake_10_every_property_is_required_and_what_was_optional_may_be_null() {
    let schema = json!({
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "What.", "minLength": 1, "maxLength": 200},
            "priority": {"$ref": "#/$defs/Priority", "description": "How urgent.", "default": "normal"},
        },
        "required": ["title"],
        "additionalProperties": false,
        "$defs": {"Priority": {"type": "string", "enum": ["low", "normal"], "title": "Priority"}},
    });
    let expected = json!({
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "What. (1 to 200 characters)"},
            "priority": {
                "anyOf": [{"$ref": "#/$defs/Priority"}, {"type": "null"}],
                "description": "How urgent. (null: \"normal\")",
            },
        },
        "required": ["title", "priority"],
        "additionalProperties": false,
        "$defs": {"Priority": {"type": "string", "enum": ["low", "normal"]}},
    });
    assert_eq!(strict(&schema), expected);
    for format in [Format::OpenaiChat, Format::OpenaiResponses] {
        let tool = definitions(&runtime(&schema), &ada(), format)[0].clone();
        let function = if format == Format::OpenaiChat { &tool["function"] } else { &tool };
        let mut keys: Vec<&String> =
            function.as_object().unwrap().keys().filter(|key| *key != "type").collect();
        keys.sort();
        assert_eq!(
            keys,
            ["description", "name", "parameters", "strict"],
            "nothing that the API does not know"
        );
    }
}

#[test]
fn an_optional_property_of_every_kind_may_be_null() {
    let left_out = "(null: left out)";
    check(json!({"type": "integer"}), json!({"type": ["integer", "null"], "description": left_out}));
    check(json!({"type": ["string", "null"]}), json!({"type": ["string", "null"]}));
    check(
        json!({"enum": ["a", "b"]}),
        json!({"type": ["string", "null"], "enum": ["a", "b", null], "description": left_out}),
    );
    check(
        json!({"const": "a"}),
        json!({"anyOf": [{"type": "string", "const": "a"}, {"type": "null"}], "description": left_out}),
    );
    check(
        json!({"type": "array", "items": {"type": "number", "minimum": 0.5}, "maxItems": 3, "default": []}),
        json!({
            "anyOf": [
                {"type": "array", "items": {"type": "number", "description": "(0.5 or more)"}},
                {"type": "null"},
            ],
            "description": "(at most 3 items) (null: [])",
        }),
    );
    check(
        json!({"oneOf": [{"type": "string"}, {"type": "integer"}]}),
        json!({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}], "description": left_out}),
    );
    check(
        json!({"type": ["string", "integer", "null"], "default": 7}),
        json!({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}], "description": "(default: 7, to be written out; null stays null)"}),
    );
    check(
        json!({"enum": [1, 2.5, "a", null, true], "type": ["number", "string", "null"]}),
        json!({"anyOf": [
            {"type": "integer", "enum": [1]},
            {"type": "number", "enum": [2.5]},
            {"type": "string", "enum": ["a"]},
            {"type": "null"},
        ]}),
    );
}

#[test]
fn what_holds_itself_stays_strict() {
    let by_name = json!({
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/Node"}},
        "required": ["tree"],
        "additionalProperties": false,
        "$defs": {
            "Node": {
                "type": "object",
                "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
                "additionalProperties": false,
            },
            "Unused": {},
        },
    });
    assert_eq!(strict(&by_name)["$defs"].as_object().unwrap().len(), 1);
    strict(&with(json!({"$ref": "#"})));
}

#[test]
fn what_strict_mode_cannot_say_keeps_its_own_schema_and_is_not_strict() {
    let deep = (0..12).fold(json!({"type": "string"}), |inner, _| with(inner));
    let many: Vec<String> = (0..1001).map(|number| number.to_string()).collect();
    let long: Vec<String> = (0..251).map(|number| format!("{number:080}")).collect();
    let alike = |second: &str| {
        let object = |name: &str| {
            json!({
                "type": "object", "properties": {name: {"type": "string"}, "b": {"type": "string"}},
                "additionalProperties": false,
            })
        };
        json!({"anyOf": [object("a"), object(second)]})
    };
    let no_property = json!({"type": "object", "required": ["x"], "additionalProperties": false});
    let cases = [
        ("an open object", json!({"type": "object", "properties": {}})),
        ("a map", with(json!({"type": "object", "additionalProperties": {"type": "string"}}))),
        ("anything", with(json!({}))),
        ("true", with(json!(true))),
        ("a list of anything", with(json!({"type": "array"}))),
        (
            "a tuple",
            with(json!({"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "string"}})),
        ),
        ("allOf", with(json!({"allOf": [{"type": "string"}]}))),
        ("not", with(json!({"type": "string", "not": {"const": "a"}}))),
        ("if", with(json!({"type": "string", "if": {"const": "a"}}))),
        (
            "patternProperties",
            with(json!({"type": "object", "patternProperties": {}, "additionalProperties": false})),
        ),
        (
            "dependentRequired",
            with(json!({"type": "object", "dependentRequired": {}, "additionalProperties": false})),
        ),
        ("a constant object", with(json!({"const": {}}))),
        ("more beside a reference", with(json!({"$ref": "#", "type": "object"}))),
        (
            "a reference into the schema",
            with(json!({"$ref": "#/properties/x/items", "items": {"type": "string"}})),
        ),
        ("too deep", deep),
        ("too many values", with(json!({ "enum": many }))),
        ("too long values", with(json!({ "enum": long }))),
        ("alternatives that look alike", with(alike("a"))),
        (
            "two lists",
            with(json!({"anyOf": [
                {"type": "array", "items": {"type": "string"}}, {"type": "array", "items": {"type": "integer"}},
            ]})),
        ),
        ("a property that is not there", no_property),
        (
            "a default that only leaving it out gives",
            with(json!({"type": ["string", "null"], "default": "z".repeat(100)})),
        ),
    ];
    for (what, schema) in cases {
        let function = function(&schema);
        assert_eq!((&function["strict"], &function["parameters"]), (&json!(false), &schema), "{what}");
    }
    // Alternatives that differ in their first properties can be told apart.
    strict(&with(alike("c")));
}

#[test]
fn alternatives_are_told_apart_by_a_constant_which_comes_first() {
    let variant = |tag: &str, field: &str| {
        json!({
            "type": "object",
            "properties": {field: {"type": "string"}, "kind": {"type": "string", "const": tag}},
            "required": ["kind"],
            "additionalProperties": false,
        })
    };
    let parameters = strict(&with(json!({"oneOf": [variant("a", "x"), variant("b", "x")]})));
    let branch = &parameters["properties"]["x"]["anyOf"][0];
    assert_eq!(branch["required"], json!(["kind", "x"]));
}

#[test]
fn an_input_that_is_no_plain_object_stands_in_one() {
    let schema = json!({"oneOf": [{"type": "string", "maxLength": 3}, {"type": "integer"}]});
    let strict = strict(&schema);
    assert_eq!(
        strict["properties"]["input"]["anyOf"][0],
        json!({"type": "string", "description": "(at most 3 characters)"})
    );
    for format in [Format::Anthropic, Format::AiSdk] {
        let tools = definitions(&runtime(&schema), &ada(), format);
        let parameters =
            tools.pointer("/0/input_schema").or_else(|| tools.pointer("/it/inputSchema")).unwrap();
        assert_eq!((&parameters["type"], &parameters["properties"]["input"]), (&json!("object"), &schema));
    }
}

#[test]
fn each_provider_gets_its_own_shape() {
    let schema = with(json!({"type": "string"}));
    let erase = Action::define("erase", "Erases it.")
        .input_schema(schema.clone())
        .output_schema(json!({"type": "object"}))
        .side_effects(SideEffects::Destructive)
        .handler(|input, _| async move { Ok(input) });
    let exposure = Exposure::new().destructive("erase", [Surface::AiSdk]);
    let runtime = Runtime::builder().action(erase).exposure(exposure).build().unwrap();
    let said = "Erases it. Destructive: what it does cannot be undone. A person confirms each call first.";
    let tools = |format| definitions(&runtime, &ada(), format);
    let strict = strict(&schema);
    assert_eq!(
        tools(Format::OpenaiChat),
        json!([{"type": "function", "function": {
            "name": "erase", "description": said, "parameters": strict, "strict": true,
        }}])
    );
    assert_eq!(
        tools(Format::OpenaiResponses),
        json!([{"type": "function", "name": "erase", "description": said, "parameters": strict, "strict": true}])
    );
    assert_eq!(
        tools(Format::Anthropic),
        json!([{"name": "erase", "description": said, "input_schema": schema}])
    );
    assert_eq!(
        tools(Format::AiSdk),
        json!({"erase": {
            "description": said, "inputSchema": schema, "outputSchema": {"type": "object"}, "needsApproval": true,
        }})
    );
    assert!(Format::ALL.iter().all(|format| format.as_str().parse() == Ok(*format)));
    assert_eq!(json!(Format::ALL), json!(Format::ALL.map(Format::as_str)));
}

#[test]
fn a_long_description_is_cut_and_never_what_it_does_and_who_confirms() {
    let wipe = Action::define("wipe", "ä".repeat(1000))
        .input_schema(with(json!({"type": "string"})))
        .side_effects(SideEffects::Destructive)
        .deprecated(Deprecation { message: "ö".repeat(1000), since: None, replacement: None })
        .handler(|input, _| async move { Ok(input) });
    let exposure = Exposure::new().destructive("wipe", [Surface::AiSdk]);
    let runtime = Runtime::builder().action(wipe).exposure(exposure).build().unwrap();
    for format in [Format::OpenaiResponses, Format::Anthropic] {
        let said = definitions(&runtime, &ada(), format)[0]["description"].as_str().unwrap().to_owned();
        assert_eq!(said.chars().count(), 1024);
        let notes =
            "ä… Destructive: what it does cannot be undone. A person confirms each call first. Deprecated: ö";
        assert!(said.contains(notes) && said.ends_with("ö…"), "{said}");
    }
}

#[test]
fn a02_exactly_what_the_surface_shows_the_actor_is_a_tool_in_the_order_of_names() {
    let open = |name: &str| Action::define(name, "Does something.").input_schema(json!({"type": "object"}));
    let done = |builder: runyard_actions::ActionBuilder| builder.handler(|input, _| async move { Ok(input) });
    let runtime = Runtime::builder()
        .action(done(open("zebra")))
        .action(done(open("adder")))
        .action(done(open("people").people_only()))
        .action(done(open("local").visibility(Visibility::Local)))
        .action(done(open("private").visibility(Visibility::Private)))
        .action(done(open("elsewhere").surfaces([Surface::Cli])))
        .action(done(open("wipe").side_effects(SideEffects::Destructive)))
        .build()
        .unwrap();
    let names = |actor: &Actor, format| {
        let tools = definitions(&runtime, actor, format);
        let listed = |tool: &Value| {
            tool.pointer("/function/name").unwrap_or(&tool["name"]).as_str().unwrap().to_owned()
        };
        match tools {
            Value::Object(tools) => tools.keys().cloned().collect::<Vec<_>>(),
            tools => tools.as_array().unwrap().iter().map(listed).collect(),
        }
    };
    let agent = Actor::agent("bot", RunId::from_parts(1, &[2; 10]), ["x"]);
    for format in Format::ALL {
        assert_eq!(names(&ada(), format), ["adder", "people", "zebra"]);
        assert_eq!(names(&agent, format), ["adder", "zebra"]);
    }
}

#[test]
fn a_rewrite_that_breaks_a_rule_is_found_out() {
    let good = strict(&json!({
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"$ref": "#/$defs/B", "description": "B."},
            "c": {"type": "array", "items": {"enum": ["x", "y"]}},
        },
        "required": ["a", "b", "c"],
        "additionalProperties": false,
        "$defs": {"B": {"type": "object", "properties": {"d": {"type": "integer"}}, "additionalProperties": false}},
    }));
    let broken: [(&str, &str, Option<Value>); 14] = [
        ("/required", "required must name every property", Some(json!(["a", "b"]))),
        ("/additionalProperties", "additionalProperties must be false", None),
        ("/$defs/B/additionalProperties", "additionalProperties must be false", Some(json!(true))),
        ("/$defs/B/required", "required must name every property", Some(json!([]))),
        ("/$defs/B", "the reference leads nowhere", None),
        ("/properties/a/minLength", "minLength is not supported", Some(json!(1))),
        ("/properties/a/default", "default is not supported", Some(json!("x"))),
        ("/properties/a/type", "has no type", None),
        ("/properties/b/anyOf/0/description", "$ref cannot have other keywords", Some(json!("B."))),
        ("/properties/b/oneOf", "oneOf is not supported", Some(json!([]))),
        ("/properties/c/items", "an array needs items", None),
        ("/properties/c/items/enum", "names a value of another type", Some(json!(["x", null]))),
        ("/type", "the root must be an object", Some(json!(["object", "null"]))),
        ("/anyOf", "the root must not be anyOf", Some(json!([{"type": "string"}]))),
    ];
    for (place, rule, value) in broken {
        let mut schema = good.clone();
        let (parent, key) = place.rsplit_once('/').unwrap();
        let parent = schema.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match value {
            Some(value) => drop(parent.insert(key.to_owned(), value)),
            None => drop(parent.remove(key)),
        }
        let told = broken_rules(&schema);
        assert!(told.iter().any(|broken| broken.ends_with(rule)), "{place}: {told:?}");
    }
}
