//! The generated types of the TypeScript client are those of the Rust source, and what is stored has them.
//!
//! clause: C03
//! clause: C08
//! clause: C10
//! clause: C25

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation fails the test"
)]

use std::collections::BTreeSet;

use runyard_domain::run::{RunEvent, RunState};
use runyard_testkit::typescript::lifecycle::{Outcome, lifecycle, outcomes};
use runyard_testkit::typescript::schemas::{open_where_not_closed, without_needless_null};
use runyard_testkit::typescript::{self, emitter};
use serde_json::{Value, json};

#[test]
fn c10_the_generated_events_are_those_of_the_rust_types() {
    typescript::check_generated("packages/client/src/generated/events.ts", &typescript::events());
}

#[test]
fn the_generated_error_table_is_that_of_rust() {
    typescript::check_generated("packages/client/src/generated/errors.ts", &typescript::errors());
}

#[test]
fn c03_c08_the_generated_lifecycle_is_what_every_event_does_in_every_state() {
    typescript::check_generated("packages/client/src/generated/lifecycle.ts", &lifecycle());
}

#[test]
fn c03_c08_the_lifecycle_is_a_table_of_notes_and_transitions_and_nothing_leaves_a_terminal_state() {
    let outcomes = outcomes();
    assert_eq!(outcomes.len(), RunState::NAMES.len() * RunEvent::KINDS.len(), "each in each was tried");
    for kind in RunEvent::KINDS {
        let living = RunState::NAMES.iter().take(7).map(|state| outcomes[&(*state, *kind)]);
        let living: BTreeSet<Outcome> = living.collect();
        // A note is one everywhere, or the set of notes would not be enough to say it.
        assert!(living.len() == 1 || !living.contains(&Outcome::Note), "{kind}: {living:?}");
        for state in ["completed", "failed", "cancelled"] {
            assert_eq!(outcomes[&(state, *kind)], Outcome::Refused, "{state} {kind}");
        }
    }
    assert_eq!(outcomes[&("needs_approval", "run.approval.resolved")], Outcome::Next("running"));
    assert_eq!(outcomes[&("needs_approval", "run.approval.requested")], Outcome::Next("needs_approval"));
    assert_eq!(outcomes[&("running", "run.approval.resolved")], Outcome::Refused);
}

#[test]
fn c10_c25_every_stored_payload_has_the_generated_type() {
    for (kind, payload, now) in typescript::stored() {
        assert_eq!(typescript::problems(&kind, &payload), [""; 0], "as it was stored: {kind} {payload}");
        assert_eq!(typescript::problems(&kind, &now), [""; 0], "as it is written today: {kind} {now}");
    }
}

#[test]
fn a_payload_of_another_shape_does_not_have_the_generated_type() {
    for (kind, wrong) in [
        ("run.accepted", json!({})),
        ("run.accepted", json!({ "edgeId": 7 })),
        ("run.failed", json!({ "code": "no_such_code" })),
        ("run.cancelled", json!({ "by": { "id": "ada", "kind": "robot" }, "reason": "x", "metrics": {} })),
        ("run.turn.started", json!({ "commandId": null })),
    ] {
        assert_ne!(typescript::problems(kind, &wrong), [""; 0], "{kind} {wrong}");
    }
}

#[test]
fn no_two_generated_files_export_the_same_name() {
    let mut seen = BTreeSet::new();
    for file in ["actions", "errors", "events", "lifecycle"] {
        let path = typescript::web(&format!("packages/client/src/generated/{file}.ts"));
        for line in std::fs::read_to_string(path).unwrap().lines().filter(|line| line.starts_with("export "))
        {
            let name = line.split([' ', '<', ':', '(']).nth(2).unwrap().to_owned();
            assert!(seen.insert(name), "{file}.ts: {line}");
        }
    }
}

#[track_caller]
fn check(schema: Value, expected: &str) {
    let names = |reference: &str| reference.rsplit('/').next().unwrap().to_owned();
    assert_eq!(emitter::expression(&schema, 0, &names), expected);
}

#[test]
fn simple_schemas_become_simple_types() {
    check(json!(true), "unknown");
    check(json!({}), "unknown");
    check(json!(false), "never");
    check(json!({ "type": "string", "pattern": "^a" }), "string");
    check(json!({ "type": "integer", "maximum": 3 }), "number");
    check(json!({ "type": ["number", "null"] }), "number | null");
    check(json!({ "type": ["integer", "number"] }), "number");
    check(json!({ "const": "a\"b" }), r#""a\"b""#);
    check(json!({ "enum": ["a", "b", null] }), r#""a" | "b" | null"#);
    check(json!({ "$ref": "#/$defs/RunId" }), "RunId");
}

#[test]
fn lists_tuples_and_maps_are_told_apart() {
    check(json!({ "type": "array" }), "unknown[]");
    check(json!({ "type": "array", "items": { "type": ["string", "null"] } }), "(string | null)[]");
    check(
        json!({ "type": "array", "items": { "type": "array", "items": { "type": "string" } } }),
        "string[][]",
    );
    check(json!({ "type": "array", "prefixItems": [{ "type": "string" }, { "const": 1 }] }), "[string, 1]");
    check(json!({ "type": "object" }), "Record<string, unknown>");
    check(
        json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        "Record<string, string>",
    );
    check(
        json!({ "type": "object", "properties": {}, "additionalProperties": false }),
        "Record<string, never>",
    );
}

#[test]
fn an_object_has_its_members_with_their_comments() {
    let schema = json!({
        "type": "object",
        "properties": {
            "plain": { "type": "string", "description": "One line." },
            "odd-name": { "anyOf": [{ "$ref": "#/$defs/Who" }, { "type": "null" }] },
        },
        "required": ["plain"],
    });
    check(schema.clone(), "{\n  /** One line. */\n  plain: string;\n  \"odd-name\"?: Who | null;\n}");
    let names = |reference: &str| reference.rsplit('/').next().unwrap().to_owned();
    let text = emitter::declaration("Thing", &schema, &names);
    assert!(text.starts_with("export interface Thing {\n"), "{text}");
    let alias = emitter::declaration("Id", &json!({ "type": "string", "description": "*/ ends" }), &names);
    assert_eq!(alias, "/** * / ends */\nexport type Id = string;\n");
}

#[test]
fn an_object_that_says_so_is_open() {
    let open =
        json!({ "type": "object", "properties": { "kind": { "type": "string" } }, "required": ["kind"] });
    check(open.clone(), "{\n  kind: string;\n}");
    let mut schemas =
        json!([open, { "type": "object", "properties": { "a": true }, "additionalProperties": false }]);
    open_where_not_closed(&mut schemas);
    check(schemas[0].clone(), "{\n  kind: string;\n  [key: string]: unknown;\n}");
    check(schemas[1].clone(), "{\n  a?: unknown;\n}");
}

#[test]
fn alternatives_flattened_parts_and_tagged_newtypes_are_composed() {
    check(
        json!({ "oneOf": [
            { "const": "a", "description": "First." },
            { "type": "object", "properties": { "b": { "type": "string" } }, "required": ["b"] },
        ] }),
        "\n  /** First. */\n  | \"a\"\n  | {\n      b: string;\n    }",
    );
    check(
        json!({ "type": "object", "properties": { "kind": { "const": "q" } }, "required": ["kind"], "$ref": "#/$defs/Q" }),
        "Q & {\n  kind: \"q\";\n}",
    );
    check(
        json!({ "allOf": [{ "$ref": "#/A" }, { "anyOf": [{ "$ref": "#/B" }, { "$ref": "#/C" }] }] }),
        "A & (B | C)",
    );
    check(json!({ "type": "object", "oneOf": [{ "$ref": "#/B" }, { "$ref": "#/C" }] }), "B | C");
}

#[test]
fn a_long_comment_is_wrapped_and_its_paragraphs_stay() {
    let text = format!("{}\n\nSecond.", "word ".repeat(40));
    let comment = emitter::comment(&text, 2);
    assert!(comment.lines().all(|line| line.len() <= 122), "{comment}");
    assert!(comment.ends_with("   *\n   * Second.\n   */\n"), "{comment}");
}

#[test]
fn null_is_taken_from_what_may_be_left_out_and_from_nothing_else() {
    let mut schema = json!({
        "properties": {
            "must": { "type": ["string", "null"] },
            "may": { "type": ["string", "null"], "description": "d" },
            "refers": { "anyOf": [{ "$ref": "#/X" }, { "type": "null" }], "description": "d" },
            "inner": { "properties": { "may": { "enum": ["a", null] } } },
        },
        "required": ["must"],
    });
    without_needless_null(&mut schema);
    let expected = json!({
        "properties": {
            "must": { "type": ["string", "null"] },
            "may": { "type": "string", "description": "d" },
            "refers": { "$ref": "#/X", "description": "d" },
            "inner": { "properties": { "may": { "enum": ["a"] } } },
        },
        "required": ["must"],
    });
    assert_eq!(schema, expected);
}

#[test]
fn types_of_one_name_are_one_where_they_say_the_same_and_told_apart_where_not() {
    let invoke = |input: &str, output: &str| {
        let refer = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
        json!({ "post": {
            "description": "Does it.",
            "requestBody": { "content": { "application/json": { "schema": { "properties": { "input": refer(input) } } } } },
            "responses": { "200": { "content": { "application/json": { "schema": { "properties": { "data": refer(output) } } } } } },
        } })
    };
    let same = json!({ "type": "object", "properties": { "id": { "type": "string" } }, "required": ["id"], "additionalProperties": false });
    let other = json!({ "type": "object", "properties": { "id": { "type": "integer" } }, "required": ["id"], "additionalProperties": false });
    let document = json!({
        "paths": {
            "/api/v1/actions/a_list/invoke": invoke("a_list.input.PlaceSchema", "a_list.output.View"),
            "/api/v1/actions/b_list/invoke": invoke("b_list.input.Word", "b_list.output.View"),
            "/api/v1/actions/c_list/invoke": invoke("c_list.input.Word", "c_list.output.View"),
        },
        "components": { "schemas": {
            "a_list.input.PlaceSchema": same, "a_list.output.View": same,
            "b_list.input.Word": same, "b_list.output.View": same,
            "c_list.input.Word": other, "c_list.output.View": same,
        } },
    });
    let text = typescript::actions(&document, &[]);
    assert_eq!(text.matches("export interface View {").count(), 1, "{text}");
    for expected in [
        "export interface PlaceInput {",
        "export type AListInput = PlaceInput;",
        "export type BListInput = BListInputWord;",
        "export type CListInput = CListInputWord;",
        "export interface CListInputWord {\n  id: number;\n}",
        "  /** Does it. */\n  a_list: { input: AListInput; output: AListOutput };",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    assert!(!typescript::actions(&document, &["a_list".to_owned()]).contains("PlaceInput"));
}
