//! `runyard gc`: collects the checkouts of runs that have ended, when nothing can be lost by it.
//!
//! What changed is archived as a patch first, unless it is in the person's files by now. It works beside a hub: which runs have
//! ended the hub says, and a checkout that is in use is left alone. Sessions and what is recorded are not touched.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use clap::{Arg, ArgAction, ArgMatches, Command};
use runyard::{ActionError, Code};
use runyard_domain::{RunId, Timestamp, WorkspaceId};
use runyard_edge::{AllowList, AppliedJournal, CarryOut, Collected, Collecting, Kept, Safe};
use runyard_store::{Clock, SystemClock};
use runyard_surfaces::cli::{ExtraCommand, ExtraRun, one_line, show_data};
use serde_json::{Value, json};

use crate::configuration::Environment;
use crate::home::Home;
use crate::hub_client::HubClient;
use crate::hub_here::{AnyHub, Stay};
use crate::run::data;
use crate::views::is_text;

/// What a run applied can be taken back for so long after its end.
const UNDO_MS: u64 = 30 * DAY_MS;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// How many runs are looked through at most for those that still need a checkout.
const LIVE_MAX: usize = 100_000;
const MIB: f64 = 1024.0 * 1024.0;

pub(crate) fn command(home: Home) -> ExtraCommand {
    let runs = Arg::new("runs").value_name("RUN").num_args(0..).help("Only these runs, whenever they ended");
    let older_than = Arg::new("older-than")
        .long("older-than")
        .value_name("AGE")
        .value_parser(age)
        .help("Only runs that ended so long ago, as in 12h or 7d [default: 7d, unless runs are named]");
    let dry_run =
        Arg::new("dry-run").long("dry-run").action(ArgAction::SetTrue).help("Only say what would be done");
    let command = Command::new("gc")
        .about("Collect the checkouts of runs that have ended")
        .after_help(
            "Nothing is lost: what a run changed is first kept as a patch in the data directory (archive/RUN.patch, for \"git \
             apply\"), unless it is in your files already. What a run applied can be taken back for 30 days after its end. A \
             checkout that is in use, or holds what can be in no patch, is kept, and said to be.\n\n\
             Exit codes: 0 done, 1 a run that was named is kept, or one failed.",
        )
        .args([runs, older_than, dry_run]);
    let run = move |matches: ArgMatches| Box::pin(gc(home, matches)) as ExtraRun;
    ExtraCommand { command, run: Box::new(run) }
}

/// Milliseconds of a text such as `7d`.
fn age(text: &str) -> Result<u64, String> {
    let expected = || "expected a number and its unit, as in 30m, 12h or 7d".to_owned();
    let unit = text.chars().last().ok_or_else(expected)?;
    let unit_ms = match unit {
        'd' => DAY_MS,
        'h' => DAY_MS / 24,
        'm' => DAY_MS / 24 / 60,
        _ => return Err(expected()),
    };
    let number: u64 = text[..text.len() - unit.len_utf8()].parse().map_err(|_| expected())?;
    number.checked_mul(unit_ms).ok_or_else(expected)
}

/// What is asked for.
struct Asked {
    /// Nothing where all runs are meant.
    runs: Vec<RunId>,
    older_than_ms: Option<u64>,
    carry_out: CarryOut,
}

/// What became of one run.
struct Told {
    run: RunId,
    outcome: Result<Collected, Left>,
}

/// Why a checkout is still there.
enum Left {
    /// It is to be.
    Kept(String),
    /// It is not known, or could not be done.
    Failed(ActionError),
}

impl Left {
    const fn word(&self) -> &'static str {
        match self {
            Left::Kept(_) => "kept",
            Left::Failed(_) => "failed",
        }
    }

    fn reason(&self) -> &str {
        match self {
            Left::Kept(reason) => reason,
            Left::Failed(error) => error.message(),
        }
    }
}

async fn gc(home: Home, matches: ArgMatches) -> Result<u8, ActionError> {
    if Environment::of_process().is_of_a_run() {
        let message = "Collecting is for people only, and this is the environment of a run.";
        return Err(ActionError::new(Code::AuthorizationError, message));
    }
    let named = matches.get_many::<String>("runs").into_iter().flatten();
    let runs = named.map(|text| text.parse::<RunId>()).collect::<Result<Vec<_>, _>>();
    let runs = runs.map_err(|error| ActionError::new(Code::ValidationError, format!("RUN is {error}.")))?;
    let older_than_ms = matches.get_one::<u64>("older-than").copied();
    let asked = Asked {
        older_than_ms: older_than_ms.or(runs.is_empty().then_some(7 * DAY_MS)),
        runs,
        carry_out: if matches.get_flag("dry-run") { CarryOut::OnlySaid } else { CarryOut::Really },
    };
    let hub = AnyHub::get(&home, Stay::ForOneCall).await?;
    let told = collect(&home, hub.client(), &asked).await;
    hub.stop().await;
    let told = told?;
    let form = matches.get_one::<String>("output").map(String::as_str);
    let shown = if is_text(form) { Value::from(text(&told, &asked)) } else { as_json(&told, &asked) };
    Ok(show_data(&matches, shown).max(code(&told, &asked)))
}

/// Whether something is left that was to go.
fn code(told: &[Told], asked: &Asked) -> u8 {
    let left = told.iter().filter_map(|told| told.outcome.as_ref().err());
    u8::from(left.into_iter().any(|left| !asked.runs.is_empty() || matches!(left, Left::Failed(_))))
}

async fn collect(home: &Home, client: &HubClient, asked: &Asked) -> Result<Vec<Told>, ActionError> {
    let there = runyard_edge::runs(&home.edge());
    let there =
        there.map_err(|error| ActionError::new(Code::StorageIo, format!("Cannot look at runs: {error}.")))?;
    let runs = if asked.runs.is_empty() { there } else { asked.runs.clone() };
    if runs.is_empty() {
        return Ok(Vec::new());
    }
    let allowed = AllowList::open(&home.edge(), "local", &[home.path().to_owned()]);
    let allowed =
        allowed.map_err(|error| ActionError::new(error.code(), format!("Cannot collect: {error}.")))?;
    let needed = needed(client).await?;
    let mut told = Vec::new();
    for run in runs {
        // One that cannot be asked about or collected hides none of what was done before and after it.
        let outcome = match of_one(home, client, &allowed, &needed, run, asked).await {
            Ok(None) => continue,
            Ok(Some(outcome)) => outcome,
            Err(error) => Err(Left::Failed(error)),
        };
        told.push(Told { run, outcome });
    }
    Ok(told)
}

/// What becomes of one run; nothing where nothing need be said of it.
async fn of_one(
    home: &Home,
    client: &HubClient,
    allowed: &AllowList,
    needed: &BTreeSet<String>,
    run: RunId,
    asked: &Asked,
) -> Result<Option<Result<Collected, Left>>, ActionError> {
    let all = asked.runs.is_empty();
    let kept = match ended(client, run, asked).await? {
        Ended::Long(ended) if needed.contains(&run.to_string()) => {
            format!("a run that has not ended needs it ({})", ended.state)
        }
        Ended::Long(ended) => {
            let workspace = match ended.workspace {
                Some(workspace) => allowed.root(workspace).await.ok(),
                None => None,
            };
            match one(home, run, workspace, &ended, asked.carry_out).await? {
                Err(Kept::Nothing) if all => return Ok(None),
                Err(kept) => kept.to_string(),
                Ok(collected) => return Ok(Some(Ok(collected))),
            }
        }
        Ended::Lately if all => return Ok(None),
        Ended::Lately => "it ended later than that".to_owned(),
        Ended::Not(state) => format!("it has not ended ({state})"),
        Ended::Unknown => "it is not in the record".to_owned(),
    };
    Ok(Some(Err(Left::Kept(kept))))
}

/// Whether a run has ended, as the hub says.
enum Ended {
    /// Long enough ago.
    Long(Ending),
    Lately,
    Not(String),
    Unknown,
}

struct Ending {
    state: String,
    ago_ms: u64,
    workspace: Option<WorkspaceId>,
}

async fn ended(client: &HubClient, run: RunId, asked: &Asked) -> Result<Ended, ActionError> {
    let found = match data(client.invoke("run_show", json!({"id": run}), false, None).await?) {
        Err(error) if [Code::NotFound, Code::StorageNotFound].iter().any(|code| *error.code() == *code) => {
            return Ok(Ended::Unknown);
        }
        found => found?["run"].clone(),
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let state = text(&found["state"]);
    if !["completed", "failed", "cancelled"].contains(&state.as_str()) {
        return Ok(Ended::Not(state));
    }
    let ended_at = text(&found["lastEventAt"]).parse::<Timestamp>();
    let ago_ms = ended_at.map_or(0, |at| SystemClock.now().ms_since(at));
    if asked.older_than_ms.is_some_and(|older_than_ms| ago_ms < older_than_ms) {
        return Ok(Ended::Lately);
    }
    let workspace = text(&found["workspace"]["id"]).parse().ok();
    Ok(Ended::Long(Ending { state, ago_ms, workspace }))
}

/// The runs that those need which have not ended: what they apply or take back is another's.
async fn needed(client: &HubClient) -> Result<BTreeSet<String>, ActionError> {
    let mut needed = BTreeSet::new();
    for state in ["created", "planned", "accepted", "preparing", "running", "needs_approval", "applying"] {
        let mut before = Value::Null;
        loop {
            let mut input = json!({"state": state, "limit": 500});
            if !before.is_null() {
                input["before"] = before;
            }
            let page = data(client.invoke("run_list", input, false, None).await?)?;
            let parents = page["runs"].as_array().into_iter().flatten().map(|run| &run["parentRunId"]);
            needed.extend(parents.filter_map(|parent| parent.as_str().map(str::to_owned)));
            before = page["next"].clone();
            if before.is_null() {
                break;
            }
            if needed.len() > LIVE_MAX {
                let message = "Too many runs have not ended to know what they need.";
                return Err(ActionError::new(Code::ConcurrencyLimit, message));
            }
        }
    }
    Ok(needed)
}

async fn one(
    home: &Home,
    run: RunId,
    workspace: Option<PathBuf>,
    ended: &Ending,
    carry_out: CarryOut,
) -> Result<Result<Collected, Kept>, ActionError> {
    let (edge, archive) = (home.edge(), home.archive());
    let applied = if ended.ago_ms >= UNDO_MS { AppliedJournal::Removed } else { AppliedJournal::Kept };
    let collected = tokio::task::spawn_blocking(move || {
        let collecting = Collecting {
            home: &edge,
            workspace: workspace.as_deref(),
            archive: Some(&archive),
            applied,
            carry_out,
        };
        collecting.collect(run, &AtomicBool::new(false))
    });
    collected.await.map_err(|error| ActionError::internal(error.to_string()))
}

fn freed(told: &[Told]) -> u64 {
    told.iter().filter_map(|told| told.outcome.as_ref().ok()).map(|collected| collected.bytes).sum()
}

fn as_json(told: &[Told], asked: &Asked) -> Value {
    let row = |told: &Told| match &told.outcome {
        Err(left) => json!({"run": told.run, "done": left.word(), "reason": left.reason()}),
        Ok(collected) => {
            let done = if asked.carry_out == CarryOut::Really { "collected" } else { "would_collect" };
            let mut row = json!({
                "run": told.run, "done": done, "reason": why(&collected.safe), "bytes": collected.bytes,
                "ignored": collected.ignored, "undo": collected.undo,
            });
            if let Safe::Archived(patch) = &collected.safe {
                row["archive"] = json!(patch);
            }
            row
        }
    };
    let rows: Vec<Value> = told.iter().map(row).collect();
    json!({"dryRun": asked.carry_out == CarryOut::OnlySaid, "runs": rows, "bytes": freed(told)})
}

fn why(safe: &Safe) -> &'static str {
    match safe {
        Safe::Unchanged => "nothing had changed",
        Safe::InFiles => "all of it is in your files",
        Safe::Archived(_) => "archived",
    }
}

/// For people: a line each, and what came of it all.
fn text(told: &[Told], asked: &Asked) -> String {
    let really = asked.carry_out == CarryOut::Really;
    let mut lines = Vec::new();
    for Told { run, outcome } in told {
        lines.push(match outcome {
            Err(left) => format!("{run}  {:<9}  {}", left.word(), one_line(left.reason())),
            Ok(collected) => {
                let word = if really { "collected" } else { "collect  " };
                let mut said = match &collected.safe {
                    Safe::Archived(patch) if really => {
                        format!("archived as {}", one_line(&patch.display().to_string()))
                    }
                    Safe::Archived(_) => "archived first".to_owned(),
                    safe => why(safe).to_owned(),
                };
                if collected.ignored > 0 {
                    said.push_str(&format!(", {} ignored files gone", collected.ignored));
                }
                if collected.undo {
                    said.push_str(", can still be undone");
                }
                format!("{run}  {word}  {:.1} MiB, {said}", collected.bytes as f64 / MIB)
            }
        });
    }
    let count = told.iter().filter(|told| told.outcome.is_ok()).count();
    let bytes = freed(told) as f64 / MIB;
    let checkouts = if count == 1 { "checkout" } else { "checkouts" };
    lines.push(match really {
        true => format!("Collected {count} {checkouts}; {bytes:.1} MiB are free again."),
        false => format!("Would collect {count} {checkouts}; up to {bytes:.1} MiB would be free again."),
    });
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_a_number_with_its_unit() {
        assert_eq!((age("7d"), age("12h"), age("30m")), (Ok(7 * DAY_MS), Ok(DAY_MS / 2), Ok(1_800_000)));
        assert_eq!(age("0d"), Ok(0));
        for wrong in ["", "d", "7", "7w", "-1d", "1.5d", "18446744073709551615d", "7ä"] {
            assert!(age(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_run_that_fails_is_told_beside_what_was_collected_and_makes_the_command_fail() {
        let run = RunId::from_parts(1, &[1; 10]);
        let collected = || Collected { bytes: 1 << 20, safe: Safe::Unchanged, ignored: 0, undo: false };
        let failed = Left::Failed(ActionError::new(Code::StorageIo, "The disk is gone."));
        let asked = Asked { runs: Vec::new(), older_than_ms: None, carry_out: CarryOut::Really };
        let mut told = vec![
            Told { run, outcome: Ok(collected()) },
            Told { run, outcome: Err(Left::Kept("in use".into())) },
        ];
        assert_eq!(code(&told, &asked), 0, "what is kept for a reason is no failure");
        told.push(Told { run, outcome: Err(failed) });
        assert_eq!(code(&told, &asked), 1);
        let (said, rows) = (text(&told, &asked), as_json(&told, &asked));
        assert!(
            said.contains("failed     The disk is gone.") && said.contains("Collected 1 checkout;"),
            "{said}"
        );
        assert_eq!((&rows["runs"][2]["done"], &rows["bytes"]), (&json!("failed"), &json!(1 << 20)));
    }
}
