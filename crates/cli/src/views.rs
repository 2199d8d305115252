//! What people see of an action's answer on a terminal: the columns and words that they need.
//!
//! Only the form changes, and only for people: JSON is always the whole answer. An action without a view here is shown as it
//! is.

mod events;
mod lists;
mod replay;
mod single;

use std::io::IsTerminal;

use clap::ArgMatches;
use runyard_domain::Timestamp;
use runyard_store::{Clock, SystemClock};
use runyard_surfaces::cli::{one_line, printable, show_data};
use serde_json::{Map, Value};

pub(crate) use single::SECRET_LEFT_OUT;

/// The answer of this action for people: a text, or what is shown as a table.
pub(crate) fn for_people(action: &str, data: Value) -> Value {
    match action {
        "run_list" => lists::runs(&data),
        "run_events" => events::table(&data),
        "approval_list" => lists::approvals(&data),
        "agent_list" => lists::agents(&data),
        "backend_list" => lists::backends(&data),
        "backend_show" => single::backend(&data["backend"]),
        "backend_check" => single::checked(&data),
        "edge_list" => lists::edges(&data),
        "session_list" => lists::sessions(&data),
        "workspace_list" => lists::workspaces(&data),
        "policy_show" => lists::rules(&data),
        "token_list" => lists::tokens(&data),
        "audit_list" => lists::audit(&data),
        "run_diff" => lists::changes(&data),
        "run_show" | "run_cancel" => single::run(&data["run"]),
        "run_replay" => replay::replayed(&data["replay"]),
        "run_command" => single::command(&data),
        "approval_show" => single::approval(&data["approval"]),
        "approval_resolve" => single::resolved(&data),
        "approval_snooze" => single::snoozed(&data["approval"]),
        "workspace_add" => single::workspace(&data["workspace"], "Agents may work on copies of"),
        "workspace_remove" => single::workspace(&data["workspace"], "No agent may work any more on"),
        "policy_add" => single::rule_added(&data),
        "policy_remove" => single::rule_removed(&data),
        "policy_test" => single::judged(&data),
        "token_create" => single::token(&data),
        "token_revoke" => Value::from("Revoked; the token lets nobody in any more."),
        "audit_verify" => single::audit(&data),
        _ => data,
    }
}

/// Shows the answer of an action in the form that is asked for, and gives the exit code.
pub(crate) fn show(matches: &ArgMatches, action: &str, data: Value) -> u8 {
    let form = matches.get_one::<String>("output").map(String::as_str);
    show_data(matches, if is_text(form) { for_people(action, data) } else { data })
}

/// Whether people read the answer, where this form is asked for.
pub(crate) fn is_text(form: Option<&str>) -> bool {
    form.map_or_else(|| std::io::stdout().is_terminal(), |form| form == "text")
}

/// A row of a table.
fn row<const N: usize>(cells: [(&str, Value); N]) -> Value {
    Value::Object(cells.into_iter().map(|(name, cell)| (name.to_owned(), cell)).collect::<Map<_, _>>())
}

/// A table, and where it goes on; a sentence where there is nothing in it.
fn table(rows: Vec<Value>, more: Option<String>, nothing: &str) -> Value {
    if rows.is_empty() {
        return Value::from(nothing);
    }
    let mut data = Map::new();
    data.insert("rows".to_owned(), rows.into());
    data.extend(more.map(|more| ("more".to_owned(), Value::from(more))));
    Value::Object(data)
}

fn items<'a>(data: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    data[name].as_array().into_iter().flatten()
}

/// The texts of a list in one line.
fn joined(data: &Value, name: &str, separator: &str) -> String {
    items(data, name).map(text).collect::<Vec<_>>().join(separator)
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => one_line(text),
        other => one_line(&other.to_string()),
    }
}

/// Lines of a name and a value each; what is empty is left out. Further lines of a value are indented, so that none passes
/// for a line of ours.
fn fields(entries: &[(&str, String)]) -> String {
    let entries = || entries.iter().filter(|(_, value)| !value.is_empty());
    let width = entries().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let indent = " ".repeat(width + 2);
    let line = |(name, value): &(&str, String)| {
        let padding = " ".repeat(width - name.chars().count());
        let value = printable(value.trim());
        let lines: Vec<String> =
            value.lines().map(|line| format!("{indent}{line}").trim_end().to_owned()).collect();
        format!("{name}{padding}  {}", lines.join("\n").trim_start())
    };
    entries().map(line).collect::<Vec<_>>().join("\n")
}

/// How long ago a time was, in the largest unit that says something.
fn age(at: &Value) -> String {
    let Some(at) = at.as_str().and_then(|at| at.parse::<Timestamp>().ok()) else { return String::new() };
    let seconds = (SystemClock.now().unix_ms() - at.unix_ms()) / 1000;
    let (ahead, seconds) = (seconds < 0, seconds.unsigned_abs());
    let span = match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    };
    if ahead { format!("in {span}") } else { format!("{span} ago") }
}

#[cfg(test)]
mod tests;
