//! A question of an agent as what a person is asked, one thing at a time, and what their lines mean as its answer.
//!
//! Only words: nothing is shown and nothing is sent here. Whether an answer fits the whole schema is for the hub to say.

use runyard_surfaces::cli::{one_line, printable};
use serde_json::{Map, Value, json};

use super::typed::is_yes;

/// What has more parts than this is asked for as one JSON text.
const FIELDS_MAX: usize = 20;
/// What stands in an example for a text.
const SOME_TEXT: &str = "your answer";

/// What came of a line.
#[derive(Debug, PartialEq)]
pub(crate) enum Heard {
    /// There is something else to ask.
    More,
    /// It is no answer, with what would be one.
    Wrong(String),
    /// The whole answer.
    Answer(Value),
    /// The question is not answered.
    Rejected,
}

/// A question, and what was answered so far.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    prompt: String,
    fields: Vec<Field>,
    /// Whether the one field is the answer itself, and not a part of it.
    whole: bool,
    given: Map<String, Value>,
    at: usize,
    /// Whether it is being asked if the question is to be rejected.
    doubts: bool,
}

#[derive(Clone, Debug)]
struct Field {
    name: String,
    /// What it is for people; nothing where the question itself says it.
    label: String,
    kind: Kind,
    required: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    /// One of these, each with its words; where it is open, also any other text.
    Choice {
        options: Vec<(String, Value)>,
        open: bool,
    },
    Text,
    YesNo,
    /// JSON, with an example.
    Json(Value),
    /// JSON where it is JSON, else the text itself.
    Any,
}

impl Form {
    /// The form of an approval that asks a question.
    pub(crate) fn of(approval: &Value) -> Option<Self> {
        let request = &approval["request"];
        if request["kind"] != "question" {
            return None;
        }
        let prompt = request["prompt"].as_str().unwrap_or_default().to_owned();
        let schema = &request["answerSchema"];
        let parts = schema["properties"].as_object().filter(|parts| (1..=FIELDS_MAX).contains(&parts.len()));
        let required =
            |name: &str| schema["required"].as_array().is_some_and(|all| all.contains(&name.into()));
        let fields = match parts {
            Some(parts) => parts.iter().map(|(name, part)| Field {
                name: name.clone(),
                label: label(name, part, (parts.len() == 1).then_some(&prompt)),
                kind: Kind::of(part),
                required: required(name),
            }),
            None => {
                let field = Field {
                    name: String::new(),
                    label: String::new(),
                    kind: Kind::of(schema),
                    required: true,
                };
                let (given, whole) = (Map::new(), true);
                return Some(Form { prompt, fields: vec![field], whole, given, at: 0, doubts: false });
            }
        };
        let fields = fields.collect();
        Some(Form { prompt, fields, whole: false, given: Map::new(), at: 0, doubts: false })
    }

    /// What is asked now.
    pub(crate) fn question(&self) -> String {
        match self.fields.get(self.at) {
            Some(field) if !self.doubts => field.question(),
            _ => "Reject the question? [y/N] ".to_owned(),
        }
    }

    /// Takes in a line that answers what is asked now.
    pub(crate) fn hear(&mut self, line: &str) -> Heard {
        let line = line.trim();
        if std::mem::take(&mut self.doubts) {
            if !is_yes(Some(line)) {
                return Heard::More;
            }
            (self.at, self.given) = (0, Map::new());
            return Heard::Rejected;
        }
        let Some(field) = self.fields.get(self.at) else { return Heard::Rejected };
        if line.is_empty() && field.required {
            self.doubts = true;
            return Heard::More;
        }
        if !line.is_empty() {
            match field.kind.read(line) {
                Some(value) => self.given.insert(field.name.clone(), value),
                None => return Heard::Wrong(field.kind.hint()),
            };
        }
        self.at += 1;
        if self.at < self.fields.len() {
            return Heard::More;
        }
        self.at = 0;
        let mut given = std::mem::take(&mut self.given);
        // Nothing at all was said to what may be left out.
        self.doubts = given.is_empty();
        match (self.doubts, self.whole) {
            (true, _) => Heard::More,
            (false, true) => Heard::Answer(given.remove("").unwrap_or_default()),
            (false, false) => Heard::Answer(Value::Object(given)),
        }
    }

    /// The answer that a text stands for which was given with a command: JSON, or in words where one thing is asked.
    pub(crate) fn given(&self, text: &str) -> Value {
        let parsed: Option<Value> = serde_json::from_str(text).ok();
        let literal = || parsed.clone().unwrap_or_else(|| text.into());
        let [field] = &self.fields[..] else { return literal() };
        let words = matches!(field.kind, Kind::Text | Kind::Choice { .. });
        if !self.whole && (!words || parsed.as_ref().is_some_and(Value::is_object)) {
            return literal();
        }
        let line = parsed.as_ref().and_then(Value::as_str).unwrap_or(text);
        let value = field.kind.read(line).unwrap_or_else(literal);
        if self.whole { value } else { json!({ (field.name.as_str()): value }) }
    }

    /// The command that answers it, with an answer that it could have.
    pub(crate) fn command(&self, approval: &str) -> String {
        let needed = self.fields.iter().any(|field| field.required);
        let fields = self.fields.iter().filter(|field| field.required || !needed);
        let example = match (self.whole, &self.fields[..]) {
            (true, [field]) => match field.kind.example() {
                Value::String(text) => text,
                other => other.to_string(),
            },
            _ => {
                let part = |field: &Field| format!("{}: {}", json!(field.name), field.kind.example());
                format!("{{{}}}", fields.map(part).collect::<Vec<_>>().join(", "))
            }
        };
        let quoted = one_line(&example).replace('\'', r"'\''");
        format!("runyard approvals approve {} --answer '{quoted}'", one_line(approval))
    }

    /// What is asked and what can be answered, as lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("  question: {}", printable(&self.prompt).replace('\n', "\n      "))];
        for field in &self.fields {
            let named = match &field.kind {
                Kind::Choice { options, .. } => options.iter().all(|(words, _)| self.prompt.contains(words)),
                Kind::Any | Kind::Text => true,
                Kind::YesNo | Kind::Json(_) => false,
            };
            match (field.label.as_str(), named) {
                ("", true) => {}
                ("", false) => lines.push(format!("  answers: {}", field.kind.words())),
                (label, _) => lines.push(format!("  {label}: {}", field.kind.words())),
            }
        }
        lines
    }
}

impl Field {
    fn question(&self) -> String {
        let empty = if self.required { "(empty to reject)" } else { "(empty to leave it out)" };
        let label = match self.label.as_str() {
            "" => "Your answer",
            label => label,
        };
        match &self.kind {
            Kind::Choice { options, open } => {
                let numbered =
                    options.iter().enumerate().map(|(at, (words, _))| format!("{}) {words}", at + 1));
                let label = if self.label.is_empty() { String::new() } else { format!("{label}  ") };
                let own = if *open { "or type your own" } else { "or type it" };
                let empty = if self.required { String::new() } else { format!(" {empty}") };
                format!("{label}{}  {own}{empty} > ", numbered.collect::<Vec<_>>().join("  "))
            }
            Kind::Text | Kind::Any => format!("{label} {empty} > "),
            Kind::YesNo => format!("{label} [y/n] {empty} > "),
            Kind::Json(_) => format!("{label}, as JSON {empty} > "),
        }
    }
}

impl Kind {
    fn of(schema: &Value) -> Self {
        let mut options = Vec::new();
        let mut open = false;
        let alternatives =
            ["anyOf", "oneOf"].into_iter().filter_map(|name| schema[name].as_array()).flatten();
        for part in std::iter::once(schema).chain(alternatives) {
            let before = options.len();
            options.extend(
                part["enum"].as_array().into_iter().flatten().map(|value| (words(value), value.clone())),
            );
            if let Some(value) = part.get("const") {
                let title = part["title"].as_str().map(one_line);
                options.push((title.unwrap_or_else(|| words(value)), value.clone()));
            }
            open |= !std::ptr::eq(part, schema) && options.len() == before;
        }
        if !options.is_empty() {
            return Kind::Choice { options, open };
        }
        match schema["type"].as_str() {
            Some("string") => Kind::Text,
            Some("boolean") => Kind::YesNo,
            Some("integer" | "number") => Kind::Json(json!(1)),
            Some("array") => Kind::Json(json!([])),
            Some(_) => Kind::Json(json!({})),
            None => Kind::Any,
        }
    }

    /// What a line means.
    fn read(&self, line: &str) -> Option<Value> {
        match self {
            Kind::Choice { options, open } => {
                let found = chosen(options, line).cloned();
                found.or_else(|| open.then(|| line.into()))
            }
            Kind::Text => Some(line.into()),
            Kind::YesNo => match line.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => Some(true.into()),
                "n" | "no" | "false" => Some(false.into()),
                _ => None,
            },
            Kind::Json(_) => serde_json::from_str(line).ok(),
            Kind::Any => Some(serde_json::from_str(line).unwrap_or_else(|_| line.into())),
        }
    }

    fn hint(&self) -> String {
        match self {
            Kind::Choice { options, .. } => {
                format!("Answer with a number from 1 to {}, or with one of the words.", options.len())
            }
            Kind::YesNo => "Answer with y or n.".to_owned(),
            Kind::Json(example) => format!("Answer with JSON, as in {example}."),
            Kind::Text | Kind::Any => "Answer with a text.".to_owned(),
        }
    }

    fn words(&self) -> String {
        match self {
            Kind::Choice { options, open } => {
                let mut all: Vec<&str> = options.iter().map(|(words, _)| words.as_str()).collect();
                if *open {
                    all.push("or a text of your own");
                }
                all.join(", ")
            }
            Kind::YesNo => "yes or no".to_owned(),
            Kind::Json(_) => "JSON".to_owned(),
            Kind::Text | Kind::Any => "a text".to_owned(),
        }
    }

    fn example(&self) -> Value {
        match self {
            Kind::Choice { options, .. } => options.first().map_or(Value::Null, |(_, value)| value.clone()),
            Kind::Text | Kind::Any => SOME_TEXT.into(),
            Kind::YesNo => true.into(),
            Kind::Json(example) => example.clone(),
        }
    }
}

/// The option that a line means: by its words, by its number, or by its words without what stands in brackets behind them.
fn chosen<'a>(options: &'a [(String, Value)], line: &str) -> Option<&'a Value> {
    let line = line.to_lowercase();
    let by_words = options.iter().find(|(words, _)| words.to_lowercase() == line);
    let number = line.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let by_number = || options.get(number?);
    let short = |words: &str| words.split_once(" (").map(|(short, _)| short.to_lowercase());
    let mut by_short = options.iter().filter(|(words, _)| short(words).as_ref() == Some(&line));
    // Only where it cannot mean another one.
    let only = || by_short.next().filter(|_| by_short.next().is_none());
    by_words.or_else(by_number).or_else(only).map(|(_, value)| value)
}

/// A value for people.
fn words(value: &Value) -> String {
    one_line(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// What a part of the answer is for people. Where it is the only part, the question may say it already.
fn label(name: &str, part: &Value, question: Option<&String>) -> String {
    let text = |name: &str| part[name].as_str().map(one_line).filter(|text| !text.is_empty());
    let (title, description) = (text("title"), text("description"));
    let said = |asked: &String| description.as_ref().is_none_or(|text| one_line(asked).contains(text));
    if question.is_some_and(said) {
        return String::new();
    }
    match (title, description) {
        (Some(title), Some(description)) => format!("{title}: {description}"),
        (Some(text), None) | (None, Some(text)) => text,
        (None, None) => one_line(name),
    }
}

#[cfg(test)]
mod tests;
