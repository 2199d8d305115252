//! What changed between two action manifests, and whether a caller of the old one can go on.
//!
//! A schema change is judged by its direction: an input may only widen, an output may only narrow. What cannot be
//! shown compatible counts as breaking. It compares what the manifests say, not what the actions do, and it does not
//! guess renames: a renamed action is one removed and one added.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
};

use serde::Serialize;
use serde_json::{Map, Value};

mod schema;

pub use schema::{Finding, Reason, accepts_all};

/// From seen by everyone to seen by no one.
const VISIBILITIES: [&str; 3] = ["public", "local", "private"];
/// From harmless to harmful.
const SIDE_EFFECTS: [&str; 3] = ["read", "write", "destructive"];
/// The promise that callers may rely on when they repeat a call.
const IDEMPOTENT: &str = "idempotent";
/// Fields that [`compare_actions`] judges by name; any other is reported as a compatible change.
const JUDGED: [&str; 11] = [
    "name",
    "inputSchema",
    "outputSchema",
    "supportedSurfaces",
    "permissions",
    "requiresConfirmation",
    "peopleOnly",
    "sideEffects",
    "visibility",
    "idempotency",
    "http",
];

/// Whether a caller of the old manifest can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every call that worked still works.
    Compatible,
    /// Some call that worked may not work any more.
    Breaking,
}

/// One difference between two manifests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The action's name; empty for the manifest itself.
    pub action: String,
    /// What it means for a caller.
    pub verdict: Verdict,
    /// What kind of change: `input`, `output`, `removed`, `surface`, `permission`, …
    pub what: String,
    /// A JSON pointer into the schema that refuses something: the new input or the old output. Otherwise empty.
    pub path: String,
    /// The change in words.
    pub message: String,
}

/// The differences between two manifests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestDiff {
    /// Breaking if any change is.
    pub verdict: Verdict,
    /// In the order of the old manifest; added actions last.
    pub changes: Vec<Change>,
}

/// Which of the two documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Document {
    /// The one compared from.
    Old,
    /// The one compared to.
    New,
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Old => "old",
            Self::New => "new",
        })
    }
}

/// A document that is no action manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAManifest {
    /// There is no list of actions.
    #[error("the {document} document is no action manifest: it has no `actions` array")]
    NoActions {
        /// Which document.
        document: Document,
    },
    /// An action cannot be told apart from others.
    #[error("the {document} document is no action manifest: `actions[{index}]` has no `name`")]
    NoName {
        /// Which document.
        document: Document,
        /// The action's place in the list.
        index: usize,
    },
    /// Two actions have the same name.
    #[error("the {document} document is no action manifest: it has two actions named `{action}`")]
    DuplicateName {
        /// Which document.
        document: Document,
        /// The name.
        action: String,
    },
    /// What should be a schema is missing or something else.
    #[error(
        "the {document} document is no action manifest: `{field}` of action `{action}` is no JSON Schema"
    )]
    NoSchema {
        /// Which document.
        document: Document,
        /// The action's name.
        action: String,
        /// `inputSchema` or `outputSchema`.
        field: &'static str,
    },
}

/// Compares two action manifests.
pub fn diff_manifests(old: &Value, new: &Value) -> Result<ManifestDiff, NotAManifest> {
    let old_actions = actions(old, Document::Old)?;
    let new_actions = actions(new, Document::New)?;
    let by_name: HashMap<_, _> = new_actions.iter().map(|action| (action.name, action)).collect();
    let known: BTreeSet<_> = old_actions.iter().map(|action| action.name).collect();

    let mut changes = Changes { action: "", list: Vec::new() };
    for field in ["name", "version"] {
        changes.field(field, old.get(field), new.get(field));
    }
    for action in &old_actions {
        changes.action = action.name;
        match by_name.get(action.name) {
            Some(new) => compare_actions(&mut changes, action, new),
            None => changes.breaking("removed", "the action is gone"),
        }
    }
    for action in new_actions.iter().filter(|action| !known.contains(action.name)) {
        changes.action = action.name;
        changes.compatible("added", "the action is new");
    }
    let changes = changes.list;
    let verdict = changes.iter().map(|change| change.verdict).max().unwrap_or(Verdict::Compatible);
    Ok(ManifestDiff { verdict, changes })
}

impl fmt::Display for ManifestDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |verdict| self.changes.iter().filter(move |change| change.verdict == verdict);
        for change in of(Verdict::Breaking).chain(of(Verdict::Compatible)) {
            let verdict = match change.verdict {
                Verdict::Breaking => "breaking",
                Verdict::Compatible => "compatible",
            };
            let action = if change.action.is_empty() { "(manifest)" } else { &change.action };
            let gap = if change.path.is_empty() { "" } else { " " };
            let Change { what, path, message, .. } = change;
            writeln!(f, "{verdict:<10}  {action}  {what}{gap}{path}: {message}")?;
        }
        let (breaking, compatible) = (of(Verdict::Breaking).count(), of(Verdict::Compatible).count());
        write!(f, "breaking: {breaking}, compatible: {compatible}")
    }
}

/// An action as a manifest describes it.
struct Described<'a> {
    name: &'a str,
    input: &'a Value,
    output: Option<&'a Value>,
    fields: &'a Map<String, Value>,
}

fn actions(manifest: &Value, document: Document) -> Result<Vec<Described<'_>>, NotAManifest> {
    let list =
        manifest.get("actions").and_then(Value::as_array).ok_or(NotAManifest::NoActions { document })?;
    let mut names = BTreeSet::new();
    let mut actions = Vec::with_capacity(list.len());
    for (index, entry) in list.iter().enumerate() {
        let (Some(fields), Some(name)) = (entry.as_object(), entry.get("name").and_then(Value::as_str))
        else {
            return Err(NotAManifest::NoName { document, index });
        };
        if !names.insert(name) {
            return Err(NotAManifest::DuplicateName { document, action: name.to_owned() });
        }
        let schema = |field: &'static str| match fields.get(field).filter(|value| !value.is_null()) {
            Some(value) if !value.is_object() && !value.is_boolean() => {
                Err(NotAManifest::NoSchema { document, action: name.to_owned(), field })
            }
            schema => Ok(schema),
        };
        let missing = || NotAManifest::NoSchema { document, action: name.to_owned(), field: "inputSchema" };
        let input = schema("inputSchema")?.ok_or_else(missing)?;
        actions.push(Described { name, input, output: schema("outputSchema")?, fields });
    }
    Ok(actions)
}

fn compare_actions(changes: &mut Changes<'_>, old: &Described<'_>, new: &Described<'_>) {
    changes.input(old.input, new.input);
    changes.output(old.output, new.output);

    let (lost, gained) = set_changes(old, new, "supportedSurfaces");
    lost.iter().for_each(|name| changes.breaking("surface", format!("no longer on `{name}`")));
    gained.iter().for_each(|name| changes.compatible("surface", format!("now on `{name}`")));
    let (lost, gained) = set_changes(old, new, "permissions");
    lost.iter().for_each(|name| changes.compatible("permission", format!("no longer needs `{name}`")));
    gained.iter().for_each(|name| changes.breaking("permission", format!("now needs `{name}`")));

    changes.flag("confirmation", "must be confirmed", old, new, "requiresConfirmation");
    changes.flag("people only", "is for people only", old, new, "peopleOnly");
    changes.rank("side effects", &SIDE_EFFECTS, old.fields.get("sideEffects"), new.fields.get("sideEffects"));
    changes.rank("visibility", &VISIBILITIES, old.fields.get("visibility"), new.fields.get("visibility"));
    changes.idempotency(text(old, "idempotency"), text(new, "idempotency"));
    changes.http(text(old, "http"), text(new, "http"));

    let added = new.fields.keys().filter(|key| !old.fields.contains_key(*key));
    for field in old.fields.keys().chain(added).filter(|key| !JUDGED.contains(&key.as_str())) {
        changes.field(field, old.fields.get(field), new.fields.get(field));
    }
}

/// The changes so far, and the action that further ones belong to.
struct Changes<'a> {
    action: &'a str,
    list: Vec<Change>,
}

impl Changes<'_> {
    fn push(&mut self, verdict: Verdict, what: &str, path: &str, message: String) {
        let (action, what, path) = (self.action.to_owned(), what.to_owned(), path.to_owned());
        self.list.push(Change { action, verdict, what, path, message });
    }

    fn breaking(&mut self, what: &str, message: impl Into<String>) {
        self.push(Verdict::Breaking, what, "", message.into());
    }

    fn compatible(&mut self, what: &str, message: impl Into<String>) {
        self.push(Verdict::Compatible, what, "", message.into());
    }

    fn input(&mut self, old: &Value, new: &Value) {
        let refused = accepts_all(old, new);
        if old != new && refused.is_empty() {
            let same = accepts_all(new, old).is_empty();
            self.compatible("input", if same { "accepts the same values" } else { "accepts more values" });
        }
        self.schema("input", "no longer accepted", &refused);
    }

    fn output(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (Some(old), Some(new)) => {
                let surprising = accepts_all(new, old);
                if old != new && surprising.is_empty() {
                    let same = accepts_all(old, new).is_empty();
                    self.compatible(
                        "output",
                        if same { "yields the same values" } else { "yields fewer values" },
                    );
                }
                self.schema("output", "may now be yielded", &surprising);
            }
            (Some(_), None) => self.breaking("output", "no longer has a schema"),
            (None, Some(_)) => self.compatible("output", "now has a schema"),
            (None, None) => {}
        }
    }

    fn schema(&mut self, what: &str, narrower: &str, reasons: &[Reason]) {
        for reason in reasons {
            let lead = match reason.finding {
                Finding::Narrower => narrower,
                Finding::Unknown => "cannot be shown compatible",
            };
            self.push(Verdict::Breaking, what, &reason.path, format!("{lead}: {}", reason.message));
        }
    }

    fn flag(&mut self, what: &str, meaning: &str, old: &Described<'_>, new: &Described<'_>, field: &str) {
        let is_set = |action: &Described<'_>| action.fields.get(field) == Some(&Value::Bool(true));
        match (is_set(old), is_set(new)) {
            (false, true) => self.breaking(what, format!("now {meaning}")),
            (true, false) => self.compatible(what, format!("no longer {meaning}")),
            _ => {}
        }
    }

    /// A value on a scale, on which only the way down is safe.
    fn rank(&mut self, what: &str, scale: &[&str], old: Option<&Value>, new: Option<&Value>) {
        if old == new {
            return;
        }
        let place =
            |value: Option<&Value>| scale.iter().position(|step| value.and_then(Value::as_str) == Some(step));
        let message = format!("{} -> {}", shown(old), shown(new));
        match (place(old), place(new)) {
            (Some(before), Some(after)) if after < before => self.compatible(what, message),
            (Some(_), Some(_)) => self.breaking(what, message),
            _ => self.breaking(what, format!("cannot be shown compatible: {message}")),
        }
    }

    fn idempotency(&mut self, old: Option<&str>, new: Option<&str>) {
        let message = || format!("{} -> {}", old.unwrap_or("none"), new.unwrap_or("none"));
        match old == Some(IDEMPOTENT) {
            _ if old == new => {}
            true => self.breaking("idempotency", message()),
            false => self.compatible("idempotency", message()),
        }
    }

    fn http(&mut self, old: Option<&str>, new: Option<&str>) {
        match (old, new) {
            (Some(old), Some(new)) if old != new => self.breaking("http", format!("{old} -> {new}")),
            (Some(old), None) => self.breaking("http", format!("no longer at {old}")),
            (None, Some(new)) => self.compatible("http", format!("now at {new}")),
            _ => {}
        }
    }

    /// A field that no call depends on.
    fn field(&mut self, field: &str, old: Option<&Value>, new: Option<&Value>) {
        let set = |value: Option<&Value>| value.is_some_and(|value| value != &Value::Null);
        if old == new || !(set(old) || set(new)) {
            return;
        }
        let scalar =
            |value: Option<&Value>| value.is_none_or(|value| !value.is_object() && !value.is_array());
        let message = match scalar(old) && scalar(new) && field != "description" {
            true => format!("{} -> {}", shown(old), shown(new)),
            false => "changed".to_owned(),
        };
        self.compatible(field, message);
    }
}

fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "none".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

fn text<'a>(action: &Described<'a>, field: &str) -> Option<&'a str> {
    action.fields.get(field).and_then(Value::as_str)
}

/// What a list of names lost and what it gained.
fn set_changes<'a>(old: &Described<'a>, new: &Described<'a>, field: &str) -> (Vec<&'a str>, Vec<&'a str>) {
    let names = |action: &Described<'a>| -> BTreeSet<&'a str> {
        action
            .fields
            .get(field)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    };
    let (old, new) = (names(old), names(new));
    (old.difference(&new).copied().collect(), new.difference(&old).copied().collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Verdict::*, *};

    fn action(changed: Value) -> Value {
        let mut action = json!({
            "name": "create", "version": "1.0.0", "title": "Create", "description": "Create a task.",
            "inputSchema": {"type": "object", "properties": {"title": {"type": "string"}},
                "required": ["title"], "additionalProperties": false},
            "outputSchema": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
            "visibility": "local", "sideEffects": "write", "idempotency": "idempotent", "peopleOnly": false,
            "permissions": ["tasks:write"], "supportedSurfaces": ["cli", "http"], "timeoutMs": null,
            "retry": {"retries": 0, "delayMs": 0}, "requiresConfirmation": false, "deprecated": false,
            "http": "POST /api/v1/tasks", "examples": [],
        });
        for (key, value) in changed.as_object().unwrap() {
            action[key] = value.clone();
        }
        action
    }

    fn manifest(actions: &[Value]) -> Value {
        json!({"name": "tasks", "version": "1.0.0", "actions": actions})
    }

    #[track_caller]
    fn check(changed: Value, there: &str, back: &str) {
        let (old, new) = (manifest(&[action(json!({}))]), manifest(&[action(changed)]));
        let told = |old: &Value, new: &Value| {
            let changes = diff_manifests(old, new).unwrap().changes;
            let line = |c: Change| {
                let verdict = if c.verdict == Breaking { "breaking" } else { "compatible" };
                format!("{verdict} {} {}: {}", c.what, c.path, c.message).replace(" :", ":")
            };
            changes.into_iter().map(line).collect::<Vec<_>>().join("; ")
        };
        assert_eq!((told(&old, &new).as_str(), told(&new, &old).as_str()), (there, back));
    }

    #[test]
    fn each_field_breaks_in_one_direction_only() {
        #[rustfmt::skip]
        let rows = [
            (json!({"visibility": "private"}),
                "breaking visibility: local -> private",
                "compatible visibility: private -> local"),
            (json!({"visibility": "public"}),
                "compatible visibility: local -> public",
                "breaking visibility: public -> local"),
            (json!({"sideEffects": "destructive"}),
                "breaking side effects: write -> destructive",
                "compatible side effects: destructive -> write"),
            (json!({"sideEffects": "odd"}),
                "breaking side effects: cannot be shown compatible: write -> odd",
                "breaking side effects: cannot be shown compatible: odd -> write"),
            (json!({"idempotency": "conditional"}),
                "breaking idempotency: idempotent -> conditional",
                "compatible idempotency: conditional -> idempotent"),
            (json!({"peopleOnly": true}),
                "breaking people only: now is for people only",
                "compatible people only: no longer is for people only"),
            (json!({"requiresConfirmation": true}),
                "breaking confirmation: now must be confirmed",
                "compatible confirmation: no longer must be confirmed"),
            (json!({"permissions": []}),
                "compatible permission: no longer needs `tasks:write`",
                "breaking permission: now needs `tasks:write`"),
            (json!({"supportedSurfaces": ["cli"]}),
                "breaking surface: no longer on `http`",
                "compatible surface: now on `http`"),
            (json!({"http": null}),
                "breaking http: no longer at POST /api/v1/tasks",
                "compatible http: now at POST /api/v1/tasks"),
            (json!({"http": "PUT /t"}),
                "breaking http: POST /api/v1/tasks -> PUT /t",
                "breaking http: PUT /t -> POST /api/v1/tasks"),
            (json!({"outputSchema": null}),
                "breaking output: no longer has a schema",
                "compatible output: now has a schema"),
            (json!({"deprecated": true}),
                "compatible deprecated: false -> true",
                "compatible deprecated: true -> false"),
            (json!({"description": "Other."}),
                "compatible description: changed",
                "compatible description: changed"),
            (json!({"version": "2.0.0"}),
                "compatible version: 1.0.0 -> 2.0.0",
                "compatible version: 2.0.0 -> 1.0.0"),
            (json!({"timeoutMs": 5}), "compatible timeoutMs: none -> 5", "compatible timeoutMs: 5 -> none"),
            (json!({"retry": {"retries": 1, "delayMs": 0}}),
                "compatible retry: changed",
                "compatible retry: changed"),
            (json!({"concurrency": null}), "", ""),
        ];
        rows.into_iter().for_each(|(changed, there, back)| check(changed, there, back));
    }

    #[test]
    fn an_input_may_widen_and_an_output_may_narrow() {
        check(
            json!({"inputSchema": {"type": "object", "additionalProperties": false,
                "properties": {"title": {"type": "string"}, "due": {"type": "string"}}, "required": ["title"]}}),
            "compatible input: accepts more values",
            "breaking input /additionalProperties: no longer accepted: the property `due`",
        );
        check(
            json!({"outputSchema": {"type": "object", "required": ["id"],
                "properties": {"id": {"type": ["string", "null"]}}}}),
            "breaking output /properties/id/type: may now be yielded: values of type null",
            "compatible output: yields fewer values",
        );
        check(
            json!({"inputSchema": {"type": "object", "description": "A task.", "additionalProperties": false,
                "properties": {"title": {"type": "string"}}, "required": ["title"]}}),
            "compatible input: accepts the same values",
            "compatible input: accepts the same values",
        );
    }

    #[test]
    fn the_text_has_breaking_changes_first_and_closes_with_a_count() {
        let old = manifest(&[action(json!({"name": "list"})), action(json!({"name": "gone"}))]);
        let new =
            manifest(&[action(json!({"name": "list", "title": "All"})), action(json!({"name": "made"}))]);
        let diff = diff_manifests(&old, &new).unwrap();
        let text = "breaking    gone  removed: the action is gone\n\
                    compatible  list  title: Create -> All\n\
                    compatible  made  added: the action is new\n\
                    breaking: 1, compatible: 2";
        assert_eq!((diff.verdict, diff.to_string().as_str()), (Breaking, text));
        let json = json!({"action": "gone", "verdict": "breaking", "what": "removed", "path": "",
            "message": "the action is gone"});
        assert_eq!(serde_json::to_value(&diff).unwrap()["changes"][1], json);
        assert_eq!(diff_manifests(&old, &old).unwrap().to_string(), "breaking: 0, compatible: 0");
    }

    #[test]
    fn a_document_that_is_no_manifest_is_refused_by_name() {
        let good = manifest(&[action(json!({}))]);
        let refused = |old: &Value, new: &Value| diff_manifests(old, new).unwrap_err().to_string();
        let intro =
            |document: &str, rest: &str| format!("the {document} document is no action manifest: {rest}");
        assert_eq!(refused(&json!([]), &good), intro("old", "it has no `actions` array"));
        assert_eq!(refused(&good, &json!({"actions": [{}]})), intro("new", "`actions[0]` has no `name`"));
        let twice = manifest(&[action(json!({})), action(json!({}))]);
        assert_eq!(refused(&good, &twice), intro("new", "it has two actions named `create`"));
        for (field, value) in [("inputSchema", json!(null)), ("outputSchema", json!(3))] {
            let bad = manifest(&[action(json!({field: value}))]);
            assert_eq!(
                refused(&bad, &good),
                intro("old", &format!("`{field}` of action `create` is no JSON Schema"))
            );
        }
    }
}
