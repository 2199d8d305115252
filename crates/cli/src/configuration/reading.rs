//! One file: from TOML to checked values with their lines. Every problem of the file is found, not only the first.
//!
//! What is read here counts for nothing yet; the layers decide that.

use std::path::PathBuf;
use std::sync::Arc;

use runyard_domain::RuleId;
use runyard_domain::gate::{Effect, Rule, RuleText, Scope};
use serde_json::{Map, Value, json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::origin::Place;
use super::problem::{Fault, Hint};
use super::setting::{Kind, Section, Setting, is_name};

/// How many rules one file may have.
const RULES_MAX: usize = 1_000;
const SECTIONS: [&str; 8] = ["actions", "agent", "backend", "edge", "hub", "policy", "server", "workspace"];
const RULE_KEYS: [&str; 8] = ["id", "effect", "kind", "match", "agent", "workspace", "scope", "expires"];

/// What a file says.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// Settings by their full key.
    pub(crate) values: Vec<Located<(String, Value)>>,
    pub(crate) rules: Vec<Located<Rule>>,
    pub(crate) actions: Vec<Located<Declared>>,
}

/// Something that stands at a line.
#[derive(Debug)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) place: Place,
}

/// An action that a file declares. It is defined only where it counts.
#[derive(Debug)]
pub(crate) struct Declared {
    pub(crate) name: String,
    /// A document that declares it alone.
    pub(crate) document: String,
    /// What it runs, as far as it can be told.
    pub(crate) command: Vec<String>,
}

/// Something wrong at a line.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) place: Place,
    pub(crate) fault: Fault,
}

/// Reads a file's text.
pub(crate) fn read(file: &Arc<PathBuf>, text: &str) -> Result<Content, Vec<Finding>> {
    let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let mut reader = Reader { file, text, line_starts, findings: Vec::new(), content: Content::default() };
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let at = error.span().map_or(0, |span| span.start);
        let column = text.get(..at).unwrap_or_default().rsplit('\n').next().unwrap_or_default();
        let column = column.chars().count() + 1;
        reader.wrong(at, Fault::Syntax { column, message: error.message().to_owned() });
    }
    if reader.findings.is_empty() {
        reader.document(document.get_ref());
    }
    if reader.findings.is_empty() { Ok(reader.content) } else { Err(reader.findings) }
}

struct Reader<'a> {
    file: &'a Arc<PathBuf>,
    text: &'a str,
    /// Where each line begins, so that a long file with much to say is not read again for each of it.
    line_starts: Vec<usize>,
    findings: Vec<Finding>,
    content: Content,
}

impl Reader<'_> {
    fn document(&mut self, document: &DeTable<'_>) {
        for (key, value) in document {
            let name: &str = key.get_ref();
            match name {
                "hub" => self.section(Section::Hub, name, value),
                "edge" => self.section(Section::Edge, name, value),
                "server" => self.section(Section::Server, name, value),
                "policy" => self.section(Section::Policy, name, value),
                "workspace" => self.section(Section::Workspace, name, value),
                // By either name; it is known by the first.
                "agent" | "agents" => self.named(Section::Agent, "agent", value),
                "backend" => self.named(Section::Backend, name, value),
                "actions" => self.actions(value),
                _ => self.unknown(key.span().start, name, &SECTIONS),
            }
        }
    }

    /// `[agent.<id>]` and `[backend.<name>]`.
    fn named(&mut self, section: Section, prefix: &str, tables: &Spanned<DeValue<'_>>) {
        let Some(tables) = self.table(prefix, tables) else { return };
        for (name, value) in tables {
            let full = format!("{prefix}.{}", name.get_ref());
            if is_name(name.get_ref()) {
                self.section(section, &full, value);
            } else {
                let expected = "a name of lower case letters, digits, \"-\" and \"_\", at most 64".to_owned();
                self.wrong(name.span().start, Fault::WrongValue { key: full, expected });
            }
        }
    }

    fn section(&mut self, section: Section, prefix: &str, table: &Spanned<DeValue<'_>>) {
        self.part(section, prefix, "", table);
    }

    /// A section, or a table in it: there the names of settings begin with `within`.
    fn part(&mut self, section: Section, prefix: &str, within: &str, table: &Spanned<DeValue<'_>>) {
        let Some(table) = self.table(prefix, table) else { return };
        for (key, value) in table {
            let (at, name): (usize, &str) = (key.span().start, key.get_ref());
            let (full, setting) = (format!("{prefix}.{name}"), format!("{within}{name}"));
            let inner = format!("{setting}.");
            match section.setting(&setting) {
                Some(setting) => self.setting(setting, &full, at, value),
                None if section == Section::Policy && name == "rule" => self.rules(value),
                None if section.settings().any(|setting| setting.key.starts_with(&inner)) => {
                    self.part(section, &full, &inner, value);
                }
                None => {
                    let here = section.settings().filter_map(|setting| setting.key.strip_prefix(within));
                    let mut known: Vec<&str> =
                        here.map(|key| key.split('.').next().unwrap_or_default()).collect();
                    known.dedup();
                    known.extend((section == Section::Policy).then_some("rule"));
                    self.unknown(at, &full, &known);
                }
            }
        }
    }

    fn setting(&mut self, setting: &Setting, key: &str, at: usize, given: &Spanned<DeValue<'_>>) {
        match setting.kind {
            Kind::Table => {
                let Some(table) = self.table(key, given) else { return };
                for (name, value) in table {
                    self.value(setting, &format!("{key}.{}", name.get_ref()), name.span().start, value);
                }
            }
            Kind::DatabaseUrl => {
                let variable = super::environment::variable(setting.key);
                self.wrong(at, Fault::EnvironmentOnly { key: key.to_owned(), variable });
            }
            _ => self.value(setting, key, at, given),
        }
    }

    fn value(&mut self, setting: &Setting, key: &str, at: usize, given: &Spanned<DeValue<'_>>) {
        let value = json_of(given.get_ref());
        let is_right_type = match setting.kind {
            Kind::Number { .. } | Kind::NumberOrNone { .. } => matches!(given.get_ref(), DeValue::Integer(_)),
            Kind::Switch => matches!(given.get_ref(), DeValue::Boolean(_)),
            Kind::Decimal => matches!(given.get_ref(), DeValue::Float(_) | DeValue::Integer(_)),
            Kind::Words(_)
            | Kind::Texts
            | Kind::Patterns
            | Kind::Command
            | Kind::Commands
            | Kind::Origins => {
                matches!(given.get_ref(), DeValue::Array(_))
            }
            _ => matches!(given.get_ref(), DeValue::String(_)),
        };
        let (key, expected) = (key.to_owned(), || match setting.kind {
            Kind::Table => "a text".to_owned(),
            _ => setting.expected(),
        });
        if !is_right_type {
            let found = type_of(given.get_ref());
            self.wrong(at, Fault::WrongType { key, expected: expected(), found });
        } else if !setting.takes(&value) {
            self.wrong(at, Fault::WrongValue { key, expected: expected() });
        } else {
            let place = self.place(at);
            self.content.values.push(Located { value: (key, value), place });
        }
    }

    fn rules(&mut self, rules: &Spanned<DeValue<'_>>) {
        let DeValue::Array(items) = rules.get_ref() else {
            let (expected, found) = ("tables [[policy.rule]]".to_owned(), type_of(rules.get_ref()));
            let fault = Fault::WrongType { key: "policy.rule".to_owned(), expected, found };
            return self.wrong(rules.span().start, fault);
        };
        if items.len() > RULES_MAX {
            let fault = Fault::TooMany { key: "policy.rule".to_owned(), max: RULES_MAX };
            return self.wrong(rules.span().start, fault);
        }
        for item in items.iter() {
            self.rule(item);
        }
    }

    fn rule(&mut self, item: &Spanned<DeValue<'_>>) {
        let key = "policy.rule";
        let Some(table) = self.table(key, item) else { return };
        let before = self.findings.len();
        for name in table.keys().filter(|name| !RULE_KEYS.contains(&name.get_ref().as_ref())) {
            self.unknown(name.span().start, &format!("{key}.{}", name.get_ref()), &RULE_KEYS);
        }
        if self.findings.len() > before {
            return;
        }
        let at = item.span().start;
        let text: Result<RuleText, _> = serde_json::from_value(json_of(item.get_ref()));
        let rule = match text {
            Err(source) => Err(Fault::Unfit { key: key.to_owned(), source }),
            Ok(text) => rule_of_file(key, text),
        };
        match rule {
            Err(fault) => self.wrong(at, fault),
            Ok(value) => {
                let place = self.place(at);
                self.content.rules.push(Located { value, place });
            }
        }
    }

    fn actions(&mut self, actions: &Spanned<DeValue<'_>>) {
        let Some(table) = self.table("actions", actions) else { return };
        // Dates and numbers are written anew as TOML means them, which the table with its lines does not know.
        let mut whole: toml::Table = toml::from_str(self.text).unwrap_or_default();
        let mut declared = match whole.remove("actions") {
            Some(toml::Value::Table(declared)) => declared,
            _ => toml::Table::new(),
        };
        for (name, value) in table {
            if self.table(&format!("actions.{}", name.get_ref()), value).is_none() {
                continue;
            }
            let Some(only) = declared.remove(name.get_ref().as_ref()) else { continue };
            let command = only.get("command").and_then(toml::Value::as_array);
            let command = command.into_iter().flatten().filter_map(toml::Value::as_str).map(str::to_owned);
            let name_text = name.get_ref().to_string();
            let alone = toml::Table::from_iter([(name_text.clone(), only.clone())]);
            let document = toml::Table::from_iter([("actions".to_owned(), toml::Value::Table(alone))]);
            let declared =
                Declared { name: name_text, document: document.to_string(), command: command.collect() };
            let place = self.place(name.span().start);
            self.content.actions.push(Located { value: declared, place });
        }
    }

    fn table<'t, 'v>(&mut self, key: &str, value: &'t Spanned<DeValue<'v>>) -> Option<&'t DeTable<'v>> {
        if let DeValue::Table(table) = value.get_ref() {
            return Some(table);
        }
        let (key, found) = (key.to_owned(), type_of(value.get_ref()));
        self.wrong(value.span().start, Fault::WrongType { key, expected: "a table".to_owned(), found });
        None
    }

    fn unknown(&mut self, at: usize, key: &str, known: &[&str]) {
        let name = key.rsplit('.').next().unwrap_or(key);
        let hint = Hint::of(name, known.iter().copied());
        self.wrong(at, Fault::UnknownKey { key: key.to_owned(), hint });
    }

    fn wrong(&mut self, at: usize, fault: Fault) {
        let place = self.place(at);
        self.findings.push(Finding { place, fault });
    }

    fn place(&self, at: usize) -> Place {
        Place::new(self.file, self.line_starts.partition_point(|start| *start <= at))
    }
}

/// A rule as every run begins with it. Each run and each session has it to its end, as one that always holds; one for one time
/// serves once in each run.
fn rule_of_file(key: &str, text: RuleText) -> Result<Rule, Fault> {
    if text.scope == Scope::Once && text.effect != Effect::Allow {
        return Err(Fault::NeverUsedUp { key: key.to_owned() });
    }
    // A run remembers by its name which rule it used up, and forgets those that are gone for everybody.
    if let Some(id) = text.id.as_deref().filter(|id| id.parse::<RuleId>().is_ok()) {
        return Err(Fault::NamedAsStored { key: key.to_owned(), id: id.to_owned() });
    }
    let scope = match text.scope {
        Scope::Run | Scope::Session | Scope::Always => Scope::Always,
        Scope::Once | Scope::Project => text.scope,
    };
    Rule::try_from(RuleText { scope, ..text }).map_err(|fault| Fault::Rule { key: key.to_owned(), fault })
}

fn type_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a point",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// The value as JSON; a number that does not fit is none of those that any setting takes.
fn json_of(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => json!(text),
        DeValue::Integer(number) => json!(u64::from_str_radix(number.as_str(), number.radix()).ok()),
        DeValue::Float(number) => json!(number.as_str()),
        DeValue::Boolean(value) => json!(value),
        DeValue::Datetime(time) => json!(time.to_string()),
        DeValue::Array(items) => items.iter().map(|item| json_of(item.get_ref())).collect(),
        DeValue::Table(table) => {
            let entries =
                table.iter().map(|(key, value)| (key.get_ref().to_string(), json_of(value.get_ref())));
            Value::Object(entries.collect::<Map<_, _>>())
        }
    }
}
