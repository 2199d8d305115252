//! Holding what is stored against what the log says, field by field.

use runyard_domain::run::Run;
use runyard_redact::Redactor;
use runyard_store::RunRow;
use serde_json::Value;

use super::Difference;
use super::walk::Walk;

/// So many differences are listed; of further ones only the count is kept.
const DIFFERENCES_MAX: usize = 100;
/// A value of a difference is shown up to so many bytes of JSON.
const VALUE_BYTES_MAX: usize = 2 * 1024;
/// How deep values are looked into; what lies deeper is compared as a whole.
const DEPTH_MAX: usize = 16;

/// What differs.
#[derive(Clone, Debug, Default)]
pub(super) struct Differences {
    pub(super) listed: Vec<Difference>,
    pub(super) left_out: u64,
}

impl Differences {
    pub(super) fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    pub(super) fn add(&mut self, field: impl Into<String>, derived: Value, stored: Value) {
        if self.listed.len() == DIFFERENCES_MAX {
            self.left_out += 1;
            return;
        }
        let (derived, stored) = (bounded(derived), bounded(stored));
        self.listed.push(Difference { field: field.into(), derived, stored });
    }

    pub(super) fn extend(&mut self, others: Differences) {
        for Difference { field, derived, stored } in others.listed {
            self.add(field, derived, stored);
        }
        self.left_out += others.left_out;
    }

    /// Adds where two values differ, by the path to it.
    pub(super) fn compare(&mut self, field: &str, derived: &Value, stored: &Value) {
        self.look(field, derived, stored, DEPTH_MAX);
    }

    fn look(&mut self, field: &str, derived: &Value, stored: &Value, depth: usize) {
        let within = |name: &dyn std::fmt::Display| match field {
            "" => name.to_string(),
            field => format!("{field}.{name}"),
        };
        match (derived, stored) {
            (derived, stored) if derived == stored => {}
            (Value::Object(says), Value::Object(holds)) if depth > 0 => {
                let more = holds.keys().filter(|name| !says.contains_key(*name));
                for name in says.keys().chain(more) {
                    let of = |fields: &serde_json::Map<String, Value>| {
                        fields.get(name).cloned().unwrap_or(Value::Null)
                    };
                    self.look(&within(name), &of(says), &of(holds), depth - 1);
                }
            }
            (Value::Array(says), Value::Array(holds)) if depth > 0 && says.len() == holds.len() => {
                for (at, (says, holds)) in says.iter().zip(holds).enumerate() {
                    self.look(&within(&at), says, holds, depth - 1);
                }
            }
            (derived, stored) => self.add(field, derived.clone(), stored.clone()),
        }
    }
}

/// The value, or the beginning of its text where that is long.
fn bounded(value: Value) -> Value {
    let text = match &value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match text.len() > VALUE_BYTES_MAX {
        true => format!("{}…", &text[..text.floor_char_boundary(VALUE_BYTES_MAX)]).into(),
        false => value,
    }
}

/// Holds the run's row against what its events say. When it was written is the database's own word, and not compared.
pub(super) fn row(walk: &Walk, row: &RunRow, redactor: &Redactor, differences: &mut Differences) {
    let Some(derived) = walk.derived() else { return };
    let hash = |head: Option<runyard_store::Hash>| head.map_or(Value::Null, |head| head.to_string().into());
    differences.compare("head", &hash(walk.head()), &hash(row.head));
    differences.compare("status", &derived.state.name().into(), &row.status.as_str().into());
    let Ok(says) = serde_json::to_value(derived) else { return };
    let holds = match serde_json::from_slice::<Run>(&row.state) {
        // What an earlier version left out is read as absent.
        Ok(run) => serde_json::to_value(run).unwrap_or_default(),
        Err(_) => match serde_json::from_slice(&row.state) {
            Ok(holds) => holds,
            Err(error) => {
                differences.add("row", derived.state.name().into(), format!("it is no JSON: {error}").into());
                return;
            }
        },
    };
    // The row is redacted as a whole, and by the names of its own fields.
    let kept = redactor.json(says.clone()).into_inner();
    if holds == says || holds == kept {
        return;
    }
    let mut told = Differences::default();
    told.compare("", &kept, &redactor.json(holds));
    if told.is_empty() {
        // What is secret is not shown, and yet it is not what was recorded.
        told.add("row", "as the events say".into(), "other values where something is redacted".into());
    }
    differences.extend(told);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(derived: Value, stored: Value) -> Vec<(String, Value, Value)> {
        let mut differences = Differences::default();
        differences.compare("", &derived, &stored);
        let told = |found: Difference| (found.field, found.derived, found.stored);
        differences.listed.into_iter().map(told).collect()
    }

    #[test]
    fn a_difference_is_named_by_the_path_to_it() {
        let derived =
            json!({"state": {"name": "running"}, "turns": 2, "usage": {"inputTokens": 3}, "open": [1, 2]});
        let stored = json!({"state": {"name": "failed"}, "turns": 2, "open": [1, 3], "more": true});
        let expected = [
            ("state.name", json!("running"), json!("failed")),
            ("usage", json!({"inputTokens": 3}), Value::Null),
            ("open.1", json!(2), json!(3)),
            ("more", Value::Null, json!(true)),
        ];
        assert_eq!(found(derived, stored), expected.map(|(field, a, b)| (field.to_owned(), a, b)));
        assert_eq!(found(json!([1]), json!([1, 2])), [(String::new(), json!([1]), json!([1, 2]))]);
    }

    #[test]
    fn differences_and_what_they_show_are_bounded() {
        let long = "é".repeat(VALUE_BYTES_MAX);
        let [(_, shown, _)] = &found(json!({"a": long}), json!({"a": 1}))[..] else { panic!() };
        let shown = shown.as_str().unwrap();
        assert!(shown.ends_with("é…") && shown.len() <= VALUE_BYTES_MAX + "…".len(), "{}", shown.len());
        let mut differences = Differences::default();
        let many: Vec<Value> = (0..DIFFERENCES_MAX + 7).map(Value::from).collect();
        let others: Vec<Value> = many.iter().map(|number| json!([number])).collect();
        differences.compare("list", &many.into(), &others.into());
        assert_eq!((differences.listed.len(), differences.left_out), (DIFFERENCES_MAX, 7));
        let mut both = differences.clone();
        both.extend(differences);
        assert_eq!((both.listed.len(), both.left_out), (DIFFERENCES_MAX, DIFFERENCES_MAX as u64 + 14));
    }

    #[test]
    fn what_is_nested_deeply_is_compared_as_a_whole() {
        let nested = |end: u8| (0..DEPTH_MAX + 3).fold(json!(end), |inner, _| json!({ "a": inner }));
        let found = found(nested(1), nested(2));
        assert_eq!(found[0].0.matches('a').count(), DEPTH_MAX);
        assert_eq!(found.len(), 1);
    }
}
