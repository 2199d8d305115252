//! `runyard log`: checks the record.

use std::io::IsTerminal;

use clap::{Arg, ArgMatches, Command};
use indicatif::{ProgressBar, ProgressStyle};
use runyard::{ActionError, Code, Issue, RunId};
use runyard_store::{Break, RunsQuery, StorageError, Verified, verify};
use runyard_surfaces::cli::{ExtraCommand, ExtraRun, show_data};
use serde_json::json;

use crate::configuration::Configuration;
use crate::database::{Database, Opened, refused};
use crate::home::Home;

/// How many runs are listed at once.
const RUNS_PAGE: u32 = 500;
/// How many breaks are named.
const BREAKS_MAX: usize = 100;

pub(crate) fn command(home: Home) -> ExtraCommand {
    let verify = Command::new("verify")
        .about("Check the record: no gap, nothing changed. Also beside a running hub")
        .arg(
            Arg::new("run")
                .value_name("RUN")
                .help("Only this run; all runs and the database itself otherwise"),
        );
    let command = Command::new("log")
        .about("Check what is recorded")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(verify);
    let run = move |matches: ArgMatches| {
        Box::pin(async move {
            let database = Database::of(&home, &Configuration::of_data(&home)?);
            let data = match matches.subcommand() {
                Some(("verify", asked)) => match asked.get_one::<String>("run") {
                    Some(run) => verify_one(&database, run).await?,
                    None => verify_all(&database).await?,
                },
                _ => json!(null),
            };
            Ok(show_data(&matches, data))
        }) as ExtraRun
    };
    ExtraCommand { command, run: Box::new(run) }
}

async fn verify_one(database: &Database, run: &str) -> Result<serde_json::Value, ActionError> {
    let id: RunId = run.parse().map_err(|error| {
        ActionError::new(Code::ValidationError, "Invalid command line.")
            .with_issues(vec![Issue::root(format!("RUN is {error}."))])
    })?;
    let store = database.open_to_read().await?.store();
    match verify(&*store, id).await.map_err(refused)? {
        Ok(Verified { events, head }) => {
            Ok(json!({"run": id, "events": events, "head": head.map(|head| head.to_string())}))
        }
        Err(found) => Err(broken(vec![Issue::root(named(id, &found))], 1)),
    }
}

async fn verify_all(database: &Database) -> Result<serde_json::Value, ActionError> {
    let opened = database.open_to_read().await?;
    let store = opened.store();
    let progress = progress();
    let mut issues = damage(&opened).await?;
    let (mut runs, mut events, mut broken_runs) = (0_u64, 0_u64, 0_usize);
    let mut before = None;
    loop {
        let query = RunsQuery { status: None, before, limit: RUNS_PAGE };
        let page = match store.runs(query).await {
            // What was found so far is said all the same.
            Err(error) if is_damage(&error) && !issues.is_empty() => break,
            page => page.map_err(refused)?,
        };
        before = page.runs.last().map(|row| row.run);
        for row in page.runs {
            let found = match verify(&*store, row.run).await {
                Ok(Ok(verified)) => {
                    events += verified.events;
                    None
                }
                Ok(Err(found)) => Some(named(row.run, &found)),
                // One run that cannot be read does not keep the others from being looked at.
                Err(error) if is_damage(&error) => Some(format!("{}, {error}.", row.run)),
                Err(error) => return Err(refused(error)),
            };
            if let Some(found) = found {
                broken_runs += 1;
                if issues.len() < BREAKS_MAX {
                    issues.push(Issue::root(found));
                }
            }
            // The installation's own log is verified like any other, and is no run.
            runs += u64::from(!runyard_engine::is_installation(row.run));
            progress.set_position(runs);
        }
        if !page.more {
            break;
        }
    }
    progress.finish_and_clear();
    if issues.is_empty() {
        return Ok(json!({"runs": runs, "events": events}));
    }
    Err(broken(issues, broken_runs))
}

fn is_damage(error: &StorageError) -> bool {
    matches!(error, StorageError::Corrupt { .. } | StorageError::Serialization(..))
}

/// What is wrong with the database itself.
async fn damage(opened: &Opened) -> Result<Vec<Issue>, ActionError> {
    match opened {
        Opened::Sqlite(store) => {
            let findings = store.check().await.map_err(refused)?;
            Ok(findings
                .into_iter()
                .take(BREAKS_MAX)
                .map(|finding| Issue::root(finding.to_string()))
                .collect())
        }
        // The server checks its own pages when it reads them.
        Opened::Postgres(_) => Ok(Vec::new()),
    }
}

fn named(run: RunId, found: &Break) -> String {
    format!("{run}, {found}.")
}

fn broken(issues: Vec<Issue>, runs: usize) -> ActionError {
    let message = match runs {
        0 => "The database is damaged.".to_owned(),
        1 => "The log of a run does not hold.".to_owned(),
        runs => format!("The logs of {runs} runs do not hold."),
    };
    ActionError::new(Code::StorageCorrupt, message).with_issues(issues)
}

/// Shown while something takes long, to people only.
fn progress() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let progress = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {pos} done, {elapsed}") {
        progress.set_style(style);
    }
    progress
}
