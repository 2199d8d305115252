//! How much work a question's schema makes: an agent wrote it, and whoever answers has it run. It validates nothing.

use serde_json::Value;

use super::request::Question;

/// So many schemas may be looked at for one answer, one that is referred to each time anew.
const SCHEMAS_MAX: usize = 2_000;
/// Lists of data, and not of schemas.
const DATA: [&str; 3] = ["enum", "examples", "required"];

impl Question {
    /// Whether checking an answer takes a bounded time. Schemas that refer to each other can double the work at every step, and
    /// those that refer to themselves have no end.
    pub fn is_bounded(&self) -> bool {
        let root = &self.answer_schema;
        let mut open = vec![root];
        let mut left = SCHEMAS_MAX;
        while let Some(schema) = open.pop() {
            let Some(less) = left.checked_sub(1) else { return false };
            left = less;
            match schema {
                Value::Array(several) => open.extend(several),
                Value::Object(keywords) => {
                    for (keyword, value) in keywords {
                        match (keyword.as_str(), value) {
                            ("$ref", Value::String(to)) => match target(root, to) {
                                Some(target) => open.push(target),
                                None => return false,
                            },
                            // Names of their own would make a reference lead elsewhere than it seems to.
                            ("$dynamicRef" | "$recursiveRef", _) => return false,
                            ("$id" | "id" | "$anchor" | "$dynamicAnchor", Value::String(_)) => return false,
                            (keyword, Value::Array(_)) if DATA.contains(&keyword) => {}
                            (_, Value::Array(_) | Value::Object(_)) => open.push(value),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        true
    }
}

/// What a reference within the schema leads to.
fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#').filter(|pointer| !pointer.contains('%'))?;
    root.pointer(pointer)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(answer_schema: Value, bounded: bool) {
        let question = Question { prompt: "?".to_owned(), answer_schema };
        assert_eq!(question.is_bounded(), bounded, "{}", question.answer_schema);
    }

    #[test]
    fn a_form_is_bounded_however_many_choices_it_has() {
        check(json!(true), true);
        check(json!({"type": "string", "enum": vec!["a"; 10_000]}), true);
        let fields =
            (0..500).map(|number| (format!("field-{number}"), json!({"type": "string", "minLength": 1})));
        let fields: serde_json::Map<String, Value> = fields.collect();
        check(json!({"type": "object", "properties": fields, "required": ["field-1"]}), true);
        check(json!({"properties": {"$ref": {"type": "string"}, "id": {"type": "string"}}}), true);
        check(json!({"enum": [{"$ref": "nowhere", "id": "x"}]}), true);
        let color = json!({"enum": ["red", "green"]});
        check(json!({"$defs": {"color": color}, "properties": {"ink": {"$ref": "#/$defs/color"}}}), true);
    }

    #[test]
    fn what_doubles_at_every_step_or_never_ends_is_not() {
        let mut defs = serde_json::Map::from_iter([("d0".to_owned(), json!({"type": "integer"}))]);
        for number in 1..=26 {
            let before = json!({"$ref": format!("#/$defs/d{}", number - 1)});
            defs.insert(format!("d{number}"), json!({"allOf": [before, before]}));
        }
        check(json!({"$defs": defs, "$ref": "#/$defs/d26"}), false);
        check(json!({"$defs": defs, "properties": {"enum": {"$ref": "#/$defs/d26"}}}), false);
        check(json!({"items": {"$ref": "#"}}), false);
        check(json!({"anyOf": vec![json!({"type": "string"}); 3_000]}), false);
    }

    #[test]
    fn a_reference_that_leads_out_or_may_lead_elsewhere_is_not() {
        for schema in [
            json!({"$ref": "other.json"}),
            json!({"$ref": "#/nowhere"}),
            json!({"$ref": "#/%24defs/a", "$defs": {"a": true}}),
            json!({"$dynamicRef": "#a"}),
            json!({"allOf": [{"$id": "x", "$ref": "#/$defs/a"}], "$defs": {"a": true}}),
            json!({"allOf": [{"$anchor": "a"}]}),
        ] {
            check(schema, false);
        }
    }
}
