//! How much can go wrong, for people to see. No decision depends on it.

use serde::{Deserialize, Serialize};

use super::command::{Opening, SimpleCommand, Word};
use super::deeds::{Object, deeds, is_network, is_recursive, raises_rights, runs_code};
use super::judge::spots;
use super::paths::{Spot, inside, is_sensitive};
use super::request::{Request, SideEffects};
use super::rule::RuleKind;

/// How much can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Little.
    Low,
    /// Something changes, or something unknown runs.
    Medium,
    /// It reaches beyond the run, destroys, or touches keys.
    High,
}

/// The risk of every request but a command's.
pub(super) fn of_request(request: &Request) -> Risk {
    let written = |path: &String| if inside(path).is_none() { Risk::High } else { Risk::Medium };
    match request {
        Request::Read { path } if is_sensitive(path) => Risk::High,
        Request::Read { .. } | Request::Question(_) => Risk::Low,
        Request::Write { path, .. } => written(path),
        Request::Patch { files, .. } => files.iter().map(written).max().unwrap_or(Risk::Medium),
        Request::Action { side_effects: SideEffects::Read, .. } => Risk::Low,
        Request::Action { side_effects: SideEffects::Destructive, .. }
        | Request::GitPush { .. }
        | Request::Publish { .. }
        | Request::Deploy { .. }
        | Request::Secret { .. } => Risk::High,
        Request::Action { side_effects: SideEffects::Write, .. }
        | Request::Network { .. }
        | Request::GitCommit { .. }
        | Request::Apply { .. }
        | Request::Repeat { .. }
        | Request::Shell { .. } => Risk::Medium,
    }
}

/// The risk of a line's commands, which may be in these directories.
pub(super) fn of_commands(commands: &[SimpleCommand], directories: &Vec<Option<String>>) -> Risk {
    if runs_what_it_fetched(commands) {
        return Risk::High;
    }
    commands.iter().map(|command| of_command(command, directories)).max().unwrap_or(Risk::Medium)
}

fn of_command(command: &SimpleCommand, directories: &Vec<Option<String>>) -> Risk {
    let name = command.name().unwrap_or_default();
    let sensitive = command.arguments.iter().chain(&command.reads).any(|word| is_sensitive(word.text()));
    if raises_rights(name) || (name == "rm" && is_recursive(command)) || sensitive {
        return Risk::High;
    }
    let opening = match command.opening {
        Opening::Opaque => Risk::Medium,
        Opening::Plain if runs_code(command) => Risk::Medium,
        Opening::Plain | Opening::Opened => Risk::Low,
    };
    let of_deeds = deeds(command).into_iter().map(|deed| match (deed.kind, deed.object) {
        (RuleKind::Read, _) => Risk::Low,
        (RuleKind::Write, Object::Path { word, .. }) if leads_outside(&word, directories) => Risk::High,
        (RuleKind::Network, _) if deed.named_by.is_empty() => Risk::Low,
        (RuleKind::Write | RuleKind::Network | RuleKind::GitCommit, _) => Risk::Medium,
        _ => Risk::High,
    });
    of_deeds.fold(opening, Risk::max)
}

fn leads_outside(word: &Word, directories: &Vec<Option<String>>) -> bool {
    spots(word, directories).iter().any(|spot| matches!(spot, Spot::Outside(_)))
}

/// Whether the line can run what it fetches: `curl … | sh`, `sh -c "$(curl …)"`.
pub(super) fn runs_what_it_fetched(commands: &[SimpleCommand]) -> bool {
    let fetches = |command: &SimpleCommand| command.name().is_some_and(is_network);
    let runs =
        |command: &SimpleCommand| command.opening == Opening::Opaque || (command.piped && runs_code(command));
    commands.iter().any(fetches) && commands.iter().any(runs)
}
