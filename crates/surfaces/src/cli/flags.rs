//! Flags from an input schema, and the input from the flags that were given.

use std::collections::HashSet;

use clap::builder::styling::AnsiColor;
use clap::{Arg, ArgAction, ArgMatches, Command, builder::Styles};
use runyard_actions::{Action, Issue, SideEffects};
use serde_json::{Map, Value};

use crate::{FieldKind, InputField, input_fields, set_field};

/// Flags that belong to the call, not to the input. A field of such a name is `--input.NAME`.
const CALL_FLAGS: [&str; 9] =
    ["json", "schema", "confirm", "timeout-ms", "deadline-ms", "retry", "idempotency-key", "output", "help"];

/// `dueAt` and `due_at` are `due-at`.
pub(super) fn kebab(name: &str) -> String {
    let mut kebab = String::with_capacity(name.len() + 4);
    let mut after_lower = false;
    for character in name.chars() {
        if character.is_ascii_uppercase() && after_lower {
            kebab.push('-');
        }
        kebab.push(if character == '_' { '-' } else { character.to_ascii_lowercase() });
        after_lower = character.is_ascii_lowercase() || character.is_ascii_digit();
    }
    kebab
}

/// The command of one action.
pub(super) fn action_command(program: &str, action: &Action) -> Command {
    let spec = action.spec();
    let mut command = Command::new(kebab(action.name()))
        .bin_name(format!("{program} {}", kebab(action.name())))
        .no_binary_name(true)
        .styles(
            Styles::styled()
                .header(AnsiColor::Green.on_default().bold())
                .literal(AnsiColor::Cyan.on_default().bold()),
        )
        .about(spec.description.clone())
        .args(flagged_fields(action).into_iter().map(|(field, names)| field_flag(&field, &names)));
    for flag in call_flags() {
        command = command.arg(flag.help_heading("Call options"));
    }
    let mut notes = Vec::new();
    match (spec.side_effects, spec.requires_confirmation) {
        (SideEffects::Read, false) => {}
        (effects, true) => notes.push(format!("Side effects: {} (asks for --confirm).", word(effects))),
        (effects, false) => notes.push(format!("Side effects: {}.", word(effects))),
    }
    if let Some(deprecation) = &spec.deprecation {
        let instead = deprecation.replacement.as_ref().map(|name| format!(" Use \"{name}\" instead."));
        notes.push(format!("Deprecated: {}{}", deprecation.message, instead.unwrap_or_default()));
    }
    notes.extend(
        spec.examples.iter().map(|example| format!("Example: {} --json '{example}'", kebab(action.name()))),
    );
    command.after_help(notes.join("\n"))
}

fn word(effects: SideEffects) -> &'static str {
    match effects {
        SideEffects::Read => "read",
        SideEffects::Write => "write",
        SideEffects::Destructive => "destructive",
    }
}

/// The fields that can have flags, each with its spellings; the first one is shown.
fn flagged_fields(action: &Action) -> Vec<(InputField, Vec<String>)> {
    let mut taken: HashSet<String> = CALL_FLAGS.iter().map(|flag| (*flag).to_owned()).collect();
    let mut flagged = Vec::new();
    let fields = input_fields(&action.spec().input);
    let exacts: HashSet<String> = fields.iter().map(|field| field.path.join(".")).collect();
    for field in fields {
        let spelled = |spell: fn(&str) -> String| {
            field.path.iter().map(|part| spell(part)).collect::<Vec<_>>().join(".")
        };
        let (shown, exact) = (spelled(kebab), field.path.join("."));
        let snake = shown.replace('-', "_");
        let plain = |name: &String| {
            !name.starts_with('-')
                && !name.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        };
        // What is another field's exact name means that field.
        let free = |name: &String| plain(name) && (*name == exact || !exacts.contains(name));
        let spellings = [shown.clone(), exact.clone(), snake, format!("input.{shown}")];
        let mut names: Vec<String> = Vec::new();
        for name in spellings.into_iter().filter(free) {
            // The last spelling is only for what would otherwise have none.
            let spare = name.starts_with("input.") && !names.is_empty();
            if !spare && taken.insert(name.clone()) {
                names.push(name);
            }
        }
        // A field without a free spelling can still be given in --json.
        if !names.is_empty() {
            flagged.push((field, names));
        }
    }
    flagged
}

/// What no other flag is called inside clap, its own `help` included.
fn field_id(field: &InputField) -> String {
    format!("\u{1e}{}", field.path.join("\u{1f}"))
}

fn field_flag(field: &InputField, names: &[String]) -> Arg {
    let (shown, others) =
        names.split_first().map(|(first, rest)| (first.clone(), rest.to_vec())).unwrap_or_default();
    let mut help: Vec<String> = field.description.iter().cloned().collect();
    let mut facts: Vec<String> = Vec::new();
    if field.required {
        facts.push("required".to_owned());
    }
    if let FieldKind::List(_) = field.kind {
        facts.push("repeatable".to_owned());
    }
    if let FieldKind::Text(options) = &field.kind
        && !options.is_empty()
    {
        facts.push(format!("one of: {}", options.join(", ")));
    }
    facts.extend(field.limits.iter().cloned());
    facts.extend(field.default.iter().map(|value| {
        format!("default: {}", value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    }));
    if !facts.is_empty() {
        help.push(format!("[{}]", facts.join("; ")));
    }
    let flag = Arg::new(field_id(field))
        .long(shown)
        .aliases(others)
        .value_name(field.kind.word())
        .allow_negative_numbers(true)
        .action(ArgAction::Append)
        .help(help.join(" "));
    match field.kind {
        // `--done` alone is true; `--done false` and `--done=false` are false.
        FieldKind::Boolean => flag.num_args(0..=1).default_missing_value("true"),
        _ => flag.num_args(1),
    }
}

fn call_flags() -> Vec<Arg> {
    let value = |name: &'static str, word: &'static str, help: &'static str| {
        Arg::new(format!("\u{1f}{name}"))
            .long(name)
            .value_name(word)
            .num_args(1)
            .action(ArgAction::Append)
            .help(help)
    };
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(format!("\u{1f}{name}"))
            .long(name)
            .action(ArgAction::SetTrue)
            .overrides_with(format!("\u{1f}{name}"))
            .help(help)
    };
    vec![
        value(
            "json",
            "JSON",
            "The input as JSON, @FILE for a file, - for standard input; flags are set on top",
        )
        .allow_hyphen_values(true),
        switch("schema", "Print the input's JSON Schema and stop"),
        switch("confirm", "Say that you mean it, where the action asks"),
        value("timeout-ms", "MS", "End an attempt after this time; 0 is no limit")
            .allow_negative_numbers(true),
        value("deadline-ms", "MS", "End the whole call after this time, retries included")
            .allow_negative_numbers(true),
        value("retry", "JSON", "true, false or {\"retries\": N, \"delayMs\": N}"),
        value(
            "idempotency-key",
            "KEY",
            "The same key and input give the first result again: for a day from a hub, else within one process",
        ),
        super::output_flag().id("\u{1f}output").action(ArgAction::Append),
    ]
}

/// What a command line asks of an action.
pub(super) struct Asked {
    pub(super) schema: bool,
    /// Where the input's JSON comes from, if from anywhere.
    pub(super) json: Option<String>,
    /// `confirm`, `idempotencyKey`, `timeoutMs`, `retry` as in every payload.
    pub(super) options: Map<String, Value>,
    fields: Vec<(Vec<String>, Value)>,
}

/// Reads what clap parsed.
pub(super) fn asked(action: &Action, matches: &ArgMatches) -> Asked {
    let last = |name: &str| {
        matches.get_many::<String>(&format!("\u{1f}{name}")).and_then(|mut given| given.next_back().cloned())
    };
    let switched = |name: &str| matches.get_flag(&format!("\u{1f}{name}"));
    let mut options = Map::new();
    if switched("confirm") {
        options.insert("confirm".to_owned(), Value::Bool(true));
    }
    let mut option =
        |key: &str, value: Option<Value>| options.extend(value.map(|value| (key.to_owned(), value)));
    option("idempotencyKey", last("idempotency-key").map(Value::String));
    option("timeoutMs", last("timeout-ms").map(|text| FieldKind::Integer.read(&text)));
    option("deadlineMs", last("deadline-ms").map(|text| FieldKind::Integer.read(&text)));
    option("retry", last("retry").map(|text| FieldKind::Json.read(&text)));
    let given = flagged_fields(action).into_iter().filter_map(|(field, _)| {
        let texts = matches.get_many::<String>(&field_id(&field))?;
        Some((field.path.clone(), field.kind.read_all(texts.map(String::as_str))))
    });
    Asked { schema: switched("schema"), json: last("json"), fields: given.collect(), options }
}

impl Asked {
    /// Sets the flags on top of the JSON that was given.
    pub(super) fn onto(self, json: Option<Value>) -> Result<Value, Issue> {
        match json {
            Some(Value::Object(mut input)) => {
                self.set(&mut input);
                Ok(Value::Object(input))
            }
            None => {
                let mut input = Map::new();
                self.set(&mut input);
                Ok(Value::Object(input))
            }
            Some(other) if self.fields.is_empty() => Ok(other),
            Some(_) => Err(Issue::root("Flags can be set on top of a JSON object only.")),
        }
    }

    fn set(self, input: &mut Map<String, Value>) {
        for (path, value) in self.fields {
            set_field(input, &path, value);
        }
    }
}
