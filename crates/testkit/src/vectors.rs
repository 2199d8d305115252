//! The table: calls with the one envelope that each must give on every surface.
//!
//! In inputs, options and expectations `{"$deep": n}` stands for n arrays inside each other, `{"$text": n}` for a text of n letters,
//! `"$marker"` for a file of the test's own, and `$surface` in a message for the surface's word.

use std::collections::BTreeMap;
use std::path::Path;

use runyard::Surface;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

/// All vectors.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// What the table is.
    pub about: Vec<String>,
    /// The vectors.
    pub vectors: Vec<Vector>,
}

/// One call and the envelope it must give.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Vector {
    /// What it shows, as a sentence.
    pub name: String,
    /// The clauses that it proves.
    pub clauses: Vec<String>,
    /// Calls that are made before it in the same process.
    #[serde(default)]
    pub before: Vec<Step>,
    /// The action.
    pub action: String,
    /// Its input; left out is not the same as null.
    #[serde(default, deserialize_with = "even_null")]
    pub input: Option<Value>,
    /// In the input's place, a text that need not be JSON.
    pub raw_input: Option<String>,
    /// In the place of the whole payload, a text that need not be JSON.
    pub raw_payload: Option<String>,
    /// What stands beside the input.
    #[serde(default)]
    pub options: Map<String, Value>,
    /// Whether the caller cancels it once the marker exists.
    #[serde(default)]
    pub cancelled: bool,
    /// Command lines that must give the same envelope as the input.
    #[serde(default)]
    pub cli_arguments: Vec<Vec<String>>,
    /// The envelope, as [`whole`](crate::whole) completes it.
    pub expect: Value,
    /// Where a clause makes surfaces differ, by their words with spaces between.
    #[serde(default)]
    pub on: BTreeMap<String, Different>,
}

/// A call that is made before.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The action.
    pub action: String,
    /// Its input.
    pub input: Value,
    /// What stands beside the input.
    #[serde(default)]
    pub options: Map<String, Value>,
}

/// How a surface differs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Different {
    /// Why, with the clause.
    pub because: String,
    /// The envelope there; without one the vector is not run there.
    pub expect: Option<Value>,
}

/// A call as a driver makes it.
#[derive(Clone, Debug)]
pub struct Call {
    /// The action.
    pub action: String,
    /// The input.
    pub input: Input,
    /// What stands beside the input.
    pub options: Map<String, Value>,
    /// On a command line, these in the input's place.
    pub arguments: Option<Vec<String>>,
}

/// The input of a call.
#[derive(Clone, Debug)]
pub enum Input {
    /// There is none.
    Missing,
    /// A value.
    Json(Value),
    /// A text in its place.
    Raw(String),
    /// A text in the place of the whole payload.
    RawPayload(String),
}

impl Table {
    /// The table of this repository.
    pub fn load() -> Self {
        serde_json::from_str(include_str!("../vectors.json")).expect("vectors.json is a table")
    }
}

impl Vector {
    /// The envelope that a surface must give, not yet whole; `None` where the vector is not run.
    pub fn expected_on(&self, surface: Surface) -> Option<&Value> {
        let different =
            self.on.iter().find(|(words, _)| words.split(' ').any(|word| word == surface.as_str()));
        different.map_or(Some(&self.expect), |(_, different)| different.expect.as_ref())
    }

    /// The calls that a surface makes, each with those before it.
    pub fn calls(&self, surface: Surface, marker: &Path) -> Vec<Vec<Call>> {
        let step = |step: &Step| Call {
            options: step.options.clone(),
            ..Call::new(&step.action, step.input.clone())
        };
        let options =
            self.options.iter().map(|(name, value)| (name.clone(), expanded(value, marker))).collect();
        let call = Call { action: self.action.clone(), input: self.input(marker), options, arguments: None };
        let spellings = self.cli_arguments.iter().filter(|_| surface == Surface::Cli);
        let spelled = spellings.map(|arguments| Call { arguments: Some(arguments.clone()), ..call.clone() });
        let with_before = |call| self.before.iter().map(step).chain([call]).collect();
        [call.clone()].into_iter().chain(spelled).map(with_before).collect()
    }

    fn input(&self, marker: &Path) -> Input {
        match (&self.input, &self.raw_input, &self.raw_payload) {
            (None, None, None) => Input::Missing,
            (Some(value), None, None) => Input::Json(expanded(value, marker)),
            (None, Some(text), None) => Input::Raw(text.clone()),
            (None, None, Some(text)) => Input::RawPayload(text.clone()),
            _ => panic!("the vector \"{}\" has more than one input", self.name),
        }
    }
}

impl Call {
    /// A call without options.
    pub fn new(action: &str, input: Value) -> Self {
        Call { action: action.to_owned(), input: Input::Json(input), options: Map::new(), arguments: None }
    }

    /// The payload where the action is named elsewhere, such as in a path.
    pub fn payload(&self) -> String {
        self.payload_of(Vec::new())
    }

    /// The payload that names its action.
    pub fn payload_with_action(&self) -> String {
        self.payload_of(vec![format!("\"action\":{}", Value::from(self.action.as_str()))])
    }

    fn payload_of(&self, mut parts: Vec<String>) -> String {
        match &self.input {
            Input::RawPayload(text) => return text.clone(),
            Input::Missing => {}
            Input::Json(value) => parts.push(format!("\"input\":{value}")),
            Input::Raw(text) => parts.push(format!("\"input\":{text}")),
        }
        parts.extend(
            self.options.iter().map(|(name, value)| format!("{}:{value}", Value::from(name.as_str()))),
        );
        format!("{{{}}}", parts.join(","))
    }
}

/// The value with what its placeholders stand for.
pub(crate) fn expanded(value: &Value, marker: &Path) -> Value {
    match value {
        Value::String(text) if text == "$marker" => json!(marker.to_string_lossy()),
        Value::Array(items) => items.iter().map(|item| expanded(item, marker)).collect(),
        Value::Object(object) => {
            let size = |name: &str| {
                let size = object.get(name).filter(|_| object.len() == 1)?.as_u64()?;
                usize::try_from(size).ok()
            };
            if let Some(levels) = size("$deep") {
                (0..levels).fold(json!(1), |inner, _| Value::Array(vec![inner]))
            } else if let Some(letters) = size("$text") {
                Value::String("x".repeat(letters))
            } else {
                object.iter().map(|(key, value)| (key.clone(), expanded(value, marker))).collect()
            }
        }
        other => other.clone(),
    }
}

fn even_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
