//! What a command action says about itself in TOML, and what that means as a definition.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use runyard_domain::Surface;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::CommandActionsError;
use super::running::{CommandLine, OWN_VARIABLES};
use crate::{Action, ActionBuilder, Deprecation, Idempotency, RetryPolicy, SideEffects, Visibility};

/// How large a schema's file may be.
const SCHEMA_BYTES_MAX: u64 = 1024 * 1024;

/// Every key of a declared action.
pub(super) const KEYS: [&str; 23] = [
    "title",
    "description",
    "version",
    "command",
    "cwd",
    "env",
    "input",
    "output",
    "side_effects",
    "idempotency",
    "visibility",
    "people_only",
    "owns_idempotency_key",
    "permissions",
    "surfaces",
    "timeout_ms",
    "deadline_ms",
    "retry",
    "requires_confirmation",
    "concurrency",
    "deprecated",
    "examples",
    "http",
];

/// One `[actions.<name>]` table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Declaration {
    title: Option<String>,
    #[serde(default)]
    description: String,
    version: Option<String>,
    #[serde(default)]
    command: Vec<String>,
    cwd: Option<PathBuf>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    input: Option<SchemaSource>,
    output: Option<SchemaSource>,
    side_effects: Option<SideEffects>,
    idempotency: Option<Idempotency>,
    visibility: Option<Visibility>,
    #[serde(default)]
    people_only: bool,
    #[serde(default)]
    owns_idempotency_key: bool,
    #[serde(default)]
    permissions: Vec<String>,
    surfaces: Option<Vec<Surface>>,
    timeout_ms: Option<u64>,
    deadline_ms: Option<u64>,
    retry: Option<Retry>,
    requires_confirmation: Option<bool>,
    concurrency: Option<Limit>,
    deprecated: Option<Deprecated>,
    #[serde(default)]
    examples: Vec<Value>,
    http: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a JSON Schema as a table, or the path of a .json file")]
enum SchemaSource {
    File(PathBuf),
    Table(Map<String, Value>),
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected true, false or {retries, delay_ms}")]
enum Retry {
    Default(bool),
    Policy(RetryTable),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RetryTable {
    retries: u32,
    #[serde(default = "default_delay_ms")]
    delay_ms: u64,
}

fn default_delay_ms() -> u64 {
    RetryPolicy::DEFAULT.delay_ms
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limit {
    max: u32,
    #[serde(default)]
    wait_ms: u64,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a text or {message, since, replacement}")]
enum Deprecated {
    Message(String),
    Table(DeprecatedTable),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeprecatedTable {
    message: String,
    since: Option<String>,
    replacement: Option<String>,
}

impl Declaration {
    pub(super) fn read(action: &str, declared: Value) -> Result<Self, CommandActionsError> {
        let Value::Object(mut table) = declared else {
            return Err(CommandActionsError::NoTable { key: format!("actions.{action}") });
        };
        if let Some(key) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(CommandActionsError::UnknownKey { action: action.to_owned(), key: key.clone() });
        }
        table.values_mut().for_each(dates_as_text);
        serde_path_to_error::deserialize(Value::Object(table)).map_err(|error| {
            CommandActionsError::WrongValue {
                action: action.to_owned(),
                key: error.path().to_string(),
                reason: error.into_inner(),
            }
        })
    }

    /// What to run, and where.
    pub(super) fn command_line(&self, action: &str, base: &Path) -> Result<CommandLine, CommandActionsError> {
        let Some((program, arguments)) =
            self.command.split_first().filter(|(program, _)| !program.is_empty())
        else {
            return Err(CommandActionsError::NoCommand { action: action.to_owned() });
        };
        let unfit = |key| Err(CommandActionsError::NotForProcess { action: action.to_owned(), key });
        if self.command.iter().any(|part| part.contains('\0')) {
            return unfit("command");
        }
        if let Some(variable) = self.env.keys().find(|name| OWN_VARIABLES.contains(&name.as_str())) {
            let variable = variable.clone();
            return Err(CommandActionsError::ReservedVariable { action: action.to_owned(), variable });
        }
        let fits = |name: &str, value: &str| {
            !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0')
        };
        if !self.env.iter().all(|(name, value)| fits(name, value)) {
            return unfit("env");
        }
        Ok(CommandLine {
            // A plain name is looked up in PATH; a path starts at the folder of the document.
            program: if program.contains('/') { base.join(program) } else { program.into() },
            arguments: arguments.to_vec(),
            folder: self.cwd.as_ref().map_or_else(|| base.to_owned(), |cwd| base.join(cwd)),
            env: self.env.clone(),
        })
    }

    /// The definition, but for its handler.
    pub(super) fn builder(self, action: &str, base: &Path) -> Result<ActionBuilder, CommandActionsError> {
        let input = self.input.map(|source| source.load(action, "input", base)).transpose()?;
        let output = self.output.map(|source| source.load(action, "output", base)).transpose()?;
        let mut builder = Action::define(action, self.description)
            .permissions(self.permissions)
            .timeout_ms(self.timeout_ms.unwrap_or(0))
            .deadline_ms(self.deadline_ms.unwrap_or(0));
        builder = given(builder, input, ActionBuilder::input_schema);
        builder = given(builder, output, ActionBuilder::output_schema);
        builder = given(builder, self.title, ActionBuilder::title);
        builder = given(builder, self.version, ActionBuilder::version);
        // What an executable does cannot be seen from its declaration, so it counts as a change unless it says otherwise.
        builder = builder.side_effects(self.side_effects.unwrap_or(SideEffects::Write));
        builder = given(builder, self.idempotency, ActionBuilder::idempotency);
        builder = given(builder, self.visibility, ActionBuilder::visibility);
        builder = given(builder, self.surfaces, ActionBuilder::surfaces);
        builder = given(builder, self.retry.map(RetryPolicy::from), ActionBuilder::retry);
        builder = given(builder, self.requires_confirmation, ActionBuilder::requires_confirmation);
        builder =
            given(builder, self.concurrency, |builder, limit| builder.concurrency(limit.max, limit.wait_ms));
        builder = given(builder, self.deprecated.map(Deprecation::from), ActionBuilder::deprecated);
        builder = given(builder, self.http, |builder, route| builder.http(&route));
        builder = given(builder, self.people_only.then_some(()), |builder, ()| builder.people_only());
        let owns = self.owns_idempotency_key.then_some(());
        builder = given(builder, owns, |builder, ()| builder.owns_idempotency_key());
        Ok(self.examples.into_iter().fold(builder, ActionBuilder::example))
    }
}

fn given<T>(
    builder: ActionBuilder,
    value: Option<T>,
    set: impl FnOnce(ActionBuilder, T) -> ActionBuilder,
) -> ActionBuilder {
    match value {
        Some(value) => set(builder, value),
        None => builder,
    }
}

impl From<Retry> for RetryPolicy {
    fn from(retry: Retry) -> Self {
        match retry {
            Retry::Default(true) => RetryPolicy::DEFAULT,
            Retry::Default(false) => RetryPolicy::NONE,
            Retry::Policy(table) => RetryPolicy { retries: table.retries, delay_ms: table.delay_ms },
        }
    }
}

impl From<Deprecated> for Deprecation {
    fn from(deprecated: Deprecated) -> Self {
        match deprecated {
            Deprecated::Message(message) => Deprecation { message, since: None, replacement: None },
            Deprecated::Table(DeprecatedTable { message, since, replacement }) => {
                Deprecation { message, since, replacement }
            }
        }
    }
}

impl SchemaSource {
    fn load(self, action: &str, key: &'static str, base: &Path) -> Result<Value, CommandActionsError> {
        let path = match self {
            SchemaSource::Table(schema) => return Ok(Value::Object(schema)),
            SchemaSource::File(path) => path,
        };
        match read_bounded(&base.join(&path)) {
            Err(error) => {
                Err(CommandActionsError::SchemaFile { action: action.to_owned(), key, path, error })
            }
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                CommandActionsError::SchemaFileNotJson { action: action.to_owned(), key, path, error }
            }),
        }
    }
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(SCHEMA_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > SCHEMA_BYTES_MAX { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

/// TOML has dates and JSON has not; they are read as a table with one key that stands for nothing else.
fn dates_as_text(value: &mut Value) {
    match value {
        Value::Object(object) => match object.get_mut("$__toml_private_datetime") {
            Some(text) => *value = text.take(),
            None => object.values_mut().for_each(dates_as_text),
        },
        Value::Array(items) => items.iter_mut().for_each(dates_as_text),
        _ => {}
    }
}
