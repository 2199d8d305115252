//! Whether a value has a generated type: by the schema that the type was made from.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::{Value, json};

use super::events::Payloads;
use super::schemas::without_needless_null;

/// Why a value does not have the type of this event's payload; with `Event`, that of the event itself. Nothing where it has it.
pub fn problems(kind: &str, value: &Value) -> Vec<String> {
    static VALIDATORS: OnceLock<BTreeMap<&'static str, Validator>> = OnceLock::new();
    let validators = VALIDATORS.get_or_init(|| {
        let payloads = Payloads::written();
        let kinds: Vec<&str> = payloads.by_type.iter().map(|(kind, _)| *kind).chain(["Event"]).collect();
        kinds.into_iter().map(|kind| (kind, validator(&payloads.schema(kind).unwrap()))).collect()
    });
    validators[kind].iter_errors(value).map(|error| error.to_string()).collect()
}

/// Why an answer does not have the type of what this action gives, by the OpenAPI document.
pub fn answer_problems(document: &Value, action: &str, data: &Value) -> Vec<String> {
    let pointer = format!(
        "/paths/~1api~1v1~1actions~1{action}~1invoke/post/responses/200/content/application~1json/schema/properties/data"
    );
    let output = document.pointer(&pointer).unwrap_or_else(|| panic!("the document has no {action}"));
    let mut schema = json!({ "$ref": "#/output", "output": output, "components": document["components"] });
    without_needless_null(&mut schema);
    validator(&schema).iter_errors(data).map(|error| error.to_string()).collect()
}

fn validator(schema: &Value) -> Validator {
    jsonschema::draft202012::new(schema).unwrap()
}
