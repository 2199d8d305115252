//! `lifecycle.ts`: which event leads from which state to which, found by trying every stored event in every state.
//!
//! So a page does not hold a second truth about what is legal. How many approvals are open is no part of a table: that a run
//! waits until the last one is resolved is for whoever reads it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use runyard_domain::run::{Asked, Cancelled, Failed, RunEvent, RunState};
use runyard_domain::{ApprovalId, Timestamp};

use super::emitter::key;
use super::samples::samples;

/// What an event does in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It leads here.
    Next(&'static str),
    /// It only tells.
    Note,
    /// It is illegal.
    Refused,
}

/// What each type of event does in each state.
pub fn outcomes() -> BTreeMap<(&'static str, &'static str), Outcome> {
    let samples = samples();
    let mut found = BTreeMap::new();
    for state in states(&samples) {
        for event in &samples {
            let outcome = outcome(&state, event);
            let known = found.entry((state.name(), event.kind())).or_insert(outcome);
            // A state that holds the approval which the event names tells what it does; the other refuses.
            *known = (*known).min(outcome);
        }
    }
    found
}

fn outcome(state: &RunState, event: &RunEvent) -> Outcome {
    match state.apply(event) {
        Err(_) => Outcome::Refused,
        Ok(_) if event.is_note() => Outcome::Note,
        Ok(next) => Outcome::Next(next.name()),
    }
}

/// Every state; the one that waits for people with the approval of the samples, and with another.
fn states(samples: &[RunEvent]) -> Vec<RunState> {
    let id = samples.iter().find_map(|event| match event {
        RunEvent::ApprovalRequested(asked) => Some(asked.approval_id),
        _ => None,
    });
    let ids: Vec<ApprovalId> = id.into_iter().chain([ApprovalId::from_parts(1, &[1; 10])]).collect();
    let waits = |id: &ApprovalId| {
        let asked = Asked {
            key: String::new(),
            digest: String::new(),
            expires_at: Timestamp::from_unix_ms(0),
            snoozed_until: None,
        };
        RunState::NeedsApproval { open: BTreeMap::from([(*id, asked)]) }
    };
    let mut states = vec![
        RunState::Created,
        RunState::Planned,
        RunState::Accepted,
        RunState::Preparing,
        RunState::Running,
        RunState::Applying { approval_id: ids[0] },
        RunState::Completed,
    ];
    states.extend(ids.iter().map(waits));
    for event in samples {
        match event {
            RunEvent::Failed(Failed { failure, .. }) => {
                states.push(RunState::Failed { failure: failure.clone() })
            }
            RunEvent::Cancelled(cancelled @ Cancelled { .. }) => {
                states.push(RunState::Cancelled { cancelled: cancelled.clone() });
            }
            _ => {}
        }
    }
    states
}

/// The whole file.
pub fn lifecycle() -> String {
    let outcomes = outcomes();
    let terminal: BTreeSet<&str> =
        RunState::NAMES.into_iter().filter(|state| all(&outcomes, state, Outcome::Refused)).collect();
    let living: Vec<&str> = RunState::NAMES.into_iter().filter(|state| !terminal.contains(state)).collect();
    let is_note =
        |kind: &&&str| living.iter().all(|state| outcomes.get(&(*state, **kind)) == Some(&Outcome::Note));
    let notes: Vec<&str> = RunEvent::KINDS.iter().filter(is_note).copied().collect();

    let mut text = format!("{}\nimport type {{ EventType }} from \"./events.js\";\n\n", super::HEAD);
    text += "/** The states of a run, in the order of its life. */\nexport const RUN_STATES = [\n";
    RunState::NAMES.iter().for_each(|state| text += &format!("  {state:?},\n"));
    text +=
        "] as const;\n\n/** Where a run stands. */\nexport type RunState = (typeof RUN_STATES)[number];\n\n";
    text += "/** The states that nothing leaves. */\nexport const TERMINAL_STATES: ReadonlySet<RunState> = new Set<RunState>([";
    let ended: Vec<String> = RunState::NAMES
        .iter()
        .filter(|state| terminal.contains(**state))
        .map(|state| format!("{state:?}"))
        .collect();
    text += &ended.join(", ");
    text += "]);\n\n/** The event that a run begins with. */\nexport const FIRST_EVENT = \"run.created\" satisfies EventType;\n\n";
    text += "/** The events that only tell: they are legal in every state that is not terminal, and move nothing. */\n";
    text += "export const NOTES: ReadonlySet<EventType> = new Set<EventType>([\n";
    notes.iter().for_each(|kind| text += &format!("  {kind:?},\n"));
    text += "]);\n\n/**\n * Where each further event leads to. What is missing is illegal there. A run that waits for people goes on running when the\n * last open approval is resolved, and waits until then.\n */\n";
    text += "export const TRANSITIONS: Record<RunState, Partial<Record<EventType, RunState>>> = {\n";
    for state in RunState::NAMES {
        let steps = RunEvent::KINDS.iter().filter_map(|kind| match outcomes.get(&(state, *kind)) {
            Some(Outcome::Next(next)) => Some((*kind, *next)),
            _ => None,
        });
        let steps: String = steps.map(|(kind, next)| format!("    {kind:?}: {next:?},\n")).collect();
        let steps = if steps.is_empty() { "{}".to_owned() } else { format!("{{\n{steps}  }}") };
        let _ = writeln!(text, "  {}: {steps},", key(state));
    }
    text += "};\n\n/** What an event does in a state: leads to one, only tells, or is illegal. */\n";
    text +=
        "export function outcome(state: RunState, type: EventType): RunState | \"note\" | \"refused\" {\n";
    text += "  if (NOTES.has(type) && !TERMINAL_STATES.has(state)) return \"note\";\n";
    text + "  return TRANSITIONS[state][type] ?? \"refused\";\n}\n"
}

fn all(outcomes: &BTreeMap<(&'static str, &'static str), Outcome>, state: &str, outcome: Outcome) -> bool {
    RunEvent::KINDS.iter().all(|kind| outcomes.get(&(state, *kind)) == Some(&outcome))
}
