//! `runyard doctor`: looks at everything that a run needs, and says what to do about what is missing.
//!
//! It changes nothing, and works where the configuration does not.

mod backends;
mod data;
mod disk;
mod machine;
mod parts;

use clap::{ArgMatches, Command};
use runyard::ActionError;
use runyard_surfaces::cli::{ExtraCommand, ExtraRun, one_line, show_data};
use serde_json::{Value, json};

use crate::home::Home;
use crate::views::is_text;

/// Begins what to do about a missing secret.
pub(crate) const GIVE_IT_WITH: &str = "Give it with: ";

pub(crate) fn command(home: Home) -> ExtraCommand {
    let command = Command::new("doctor").about("Look at what runs need, and say what to do").after_help(
        "ok: as it should be. note: good to know, or only needed for some agents. do: has to be done first.\n\n\
         Exit codes: 0 Runyard can be used, 1 something must be done first.",
    );
    let run = move |matches: ArgMatches| Box::pin(doctor(home, matches)) as ExtraRun;
    ExtraCommand { command, run: Box::new(run) }
}

/// How a thing stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// As it should be.
    Ok,
    /// Good to know, or only needed for some runs.
    Note,
    /// Nothing goes before it is done.
    Do,
}

impl State {
    const fn word(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Note => "note",
            State::Do => "do",
        }
    }
}

/// What was found about one thing.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    what: String,
    state: State,
    found: String,
    /// What to do about it.
    next: Option<String>,
}

impl Finding {
    fn ok(what: &str, found: impl Into<String>) -> Self {
        Finding { what: what.to_owned(), state: State::Ok, found: found.into(), next: None }
    }

    fn note(what: &str, found: impl Into<String>, next: impl Into<String>) -> Self {
        Finding { state: State::Note, next: Some(next.into()), ..Finding::ok(what, found) }
    }

    fn to_do(what: &str, found: impl Into<String>, next: impl Into<String>) -> Self {
        Finding { state: State::Do, ..Finding::note(what, found, next) }
    }
}

async fn doctor(home: Home, matches: ArgMatches) -> Result<u8, ActionError> {
    let looked = look(&home).await;
    let form = matches.get_one::<String>("output").map(String::as_str);
    let told = if is_text(form) { Value::from(looked.text) } else { looked.json };
    Ok(show_data(&matches, told).max(u8::from(!looked.usable)))
}

/// What was found, in both forms.
pub(crate) struct Looked {
    /// Whether nothing has to be done first.
    pub(crate) usable: bool,
    pub(crate) json: Value,
    text: String,
}

/// Looks at everything.
pub(crate) async fn look(home: &Home) -> Looked {
    let mut findings = data::directory(home);
    findings.extend(parts::configuration(home));
    findings.extend(parts::hub(home).await);
    findings.extend(data::token(home));
    findings.extend(parts::database(home).await);
    findings.extend(disk::disk(home));
    findings.extend(parts::workspaces(home).await);
    findings.extend(backends::backends(home).await);
    findings.extend([machine::custody(), machine::sandbox(home).await, machine::clock(home)]);
    let usable = findings.iter().all(|finding| finding.state != State::Do);
    Looked { usable, json: json(&findings, usable), text: text(&findings, usable) }
}

fn json(findings: &[Finding], usable: bool) -> Value {
    let row = |finding: &Finding| {
        let mut row = json!({"what": finding.what, "state": finding.state.word(), "found": finding.found});
        if let Some(next) = &finding.next {
            row["next"] = next.as_str().into();
        }
        row
    };
    json!({"usable": usable, "findings": findings.iter().map(row).collect::<Vec<_>>()})
}

/// For people: a line each, and below it what to do.
fn text(findings: &[Finding], usable: bool) -> String {
    let width = findings.iter().map(|finding| finding.what.chars().count()).max().unwrap_or_default();
    let mut lines = Vec::new();
    for finding in findings {
        let padding = " ".repeat(width - finding.what.chars().count());
        let (word, what) = (finding.state.word(), one_line(&finding.what));
        lines.push(format!("{word:<4}  {what}{padding}  {}", one_line(&finding.found)));
        if let Some(next) = &finding.next {
            lines.push(format!("      {}  {}", " ".repeat(width), one_line(next)));
        }
    }
    lines.push(match usable {
        true => "Runyard can be used.".to_owned(),
        false => "Do what is marked \"do\" first.".to_owned(),
    });
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_be_done_makes_it_unusable_and_a_note_does_not() {
        let findings = [Finding::ok("a", "fine"), Finding::note("bcd", "less", "have more")];
        assert_eq!(
            text(&findings, true),
            "ok    a    fine\nnote  bcd  less\n           have more\nRunyard can be used."
        );
        assert_eq!(json(&findings, true)["findings"][1]["next"], "have more");
    }
}
