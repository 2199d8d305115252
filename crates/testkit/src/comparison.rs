//! Comparing an envelope with what the table says: exact, but for what no table can know.

use runyard::Surface;
use runyard_redact::without_tags;
use serde_json::{Map, Value, json};

/// Stands for an id `inv_…`.
const INVOCATION_ID: &str = "$invocationId";
/// Stands for a generated id `art_…`.
const ARTIFACT_ID: &str = "$artifactId";
/// Stands for a number of milliseconds.
const DURATION: &str = "$durationMs";
/// Stands for a time: RFC 3339 in UTC with milliseconds.
const TIME: &str = "$time";

/// Completes what the table says of an envelope with what every envelope has.
///
/// Left out in the table are: `artifacts`, `logs` and `issues` that are empty, `retryable` that is false, `fields` that are
/// none, the times of logs, and in `meta` all but what is special (`action` is the call's own unless said otherwise).
pub fn whole(expect: &Value, action: &str, surface: Surface) -> Value {
    let mut envelope = object(expect);
    envelope.entry("artifacts").or_insert(json!([]));
    let logs = envelope.remove("logs").unwrap_or(json!([]));
    let logs = logs.as_array().cloned().unwrap_or_default();
    envelope.insert("logs".to_owned(), logs.iter().map(whole_log).collect());
    if let Some(error) = envelope.get_mut("error").and_then(Value::as_object_mut) {
        error.entry("issues").or_insert(json!([]));
        error.entry("retryable").or_insert(json!(false));
    }
    let mut meta = json!({
        "action": action,
        "invocationId": INVOCATION_ID,
        "surface": surface.as_str(),
        "durationMs": DURATION,
    });
    if let (Some(meta), Some(said)) = (meta.as_object_mut(), envelope.remove("meta")) {
        meta.extend(object(&said));
    }
    envelope.insert("meta".to_owned(), meta);
    with_surface(Value::Object(envelope), surface)
}

fn whole_log(log: &Value) -> Value {
    let mut log = object(log);
    log.entry("fields").or_insert(json!({}));
    log.insert("time".to_owned(), json!(TIME));
    Value::Object(log)
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_else(|| panic!("the table should say an object here: {value}"))
}

/// Puts the surface's word into messages that name it.
fn with_surface(value: Value, surface: Surface) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace("$surface", surface.as_str())),
        Value::Array(items) => items.into_iter().map(|item| with_surface(item, surface)).collect(),
        Value::Object(map) => {
            map.into_iter().map(|(key, value)| (key, with_surface(value, surface))).collect()
        }
        other => other,
    }
}

/// Every place where an envelope is not what it should be. The keys of every object must be exactly the same.
pub fn differences(expected: &Value, actual: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", expected, actual, &mut found);
    found
}

fn compare(at: &str, expected: &Value, actual: &Value, found: &mut Vec<String>) {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            for (key, value) in expected {
                match actual.get(key) {
                    Some(actual) => compare(&format!("{at}/{key}"), value, actual, found),
                    None => found.push(format!("{at}/{key} is missing")),
                }
            }
            let surplus = actual.iter().filter(|(key, _)| !expected.contains_key(*key));
            found.extend(surplus.map(|(key, value)| format!("{at}/{key} is there: {}", short(value))));
        }
        (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => {
            for (index, (expected, actual)) in expected.iter().zip(actual).enumerate() {
                compare(&format!("{at}/{index}"), expected, actual, found);
            }
        }
        _ if fits(expected, actual) => {}
        _ => found.push(format!("{at} is {}, not {}", short(actual), short(expected))),
    }
}

fn fits(expected: &Value, actual: &Value) -> bool {
    let text = actual.as_str();
    match expected.as_str() {
        Some(INVOCATION_ID) => text.is_some_and(|id| is_id(id, "inv_")),
        Some(ARTIFACT_ID) => text.is_some_and(|id| is_id(id, "art_")),
        Some(DURATION) => actual.is_u64(),
        Some(TIME) => text.is_some_and(is_time),
        // The tags of placeholders are different in every process.
        Some(expected) => text.is_some_and(|text| without_tags(text) == expected),
        None => expected == actual,
    }
}

fn is_id(text: &str, prefix: &str) -> bool {
    let rest = text.strip_prefix(prefix).unwrap_or_default();
    rest.len() >= 16 && rest.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// `2026-01-31T12:00:00.000Z`.
fn is_time(text: &str) -> bool {
    let form = "dddd-dd-ddTdd:dd:dd.dddZ";
    let fits = |(form, c): (char, char)| if form == 'd' { c.is_ascii_digit() } else { c == form };
    text.len() == form.len() && form.chars().zip(text.chars()).all(fits)
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 300 { text } else { text.chars().take(300).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_durations_and_times_may_differ() {
        let expect = json!({"ok": true, "data": 1, "logs": [{"level": "info", "message": "m"}]});
        let expected = whole(&expect, "a", Surface::Cli);
        let mut actual = json!({
            "ok": true,
            "data": 1,
            "artifacts": [],
            "logs": [{"level": "info", "message": "m", "time": "2026-01-31T12:00:00.000Z", "fields": {}}],
            "meta": {"action": "a", "invocationId": "inv_0123456789abcdef", "surface": "cli", "durationMs": 3},
        });
        assert_eq!(differences(&expected, &actual), Vec::<String>::new());
        actual["data"] = json!(1.0);
        actual["logs"][0]["time"] = json!("2026-01-31T12:00:00Z");
        actual["meta"]["surface"] = json!("http");
        actual["meta"]["more"] = json!(null);
        let expected = [
            "/data is 1.0, not 1",
            "/logs/0/time is \"2026-01-31T12:00:00Z\", not \"$time\"",
            "/meta/surface is \"http\", not \"cli\"",
            "/meta/more is there: null",
        ];
        let mut found = differences(&whole(&expect, "a", Surface::Cli), &actual);
        found.sort();
        let mut sorted = expected.to_vec();
        sorted.sort_unstable();
        assert_eq!(found, sorted);
    }
}
