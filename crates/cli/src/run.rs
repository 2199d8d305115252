//! `runyard run`: starts a run, follows it to its end, and asks the person at the terminal what needs an approval.
//!
//! It is a client of the hub, also of one that it starts itself because none runs.

mod answers;
mod ask;
pub(crate) mod chat;
mod detached;
mod follow;
pub(crate) mod form;
pub(crate) mod lasting;
mod review;
mod show;
pub(crate) mod typed;
mod untrusted;

pub(crate) use self::follow::{Applying, for_somebody_else, from_here, to_the_end};
pub(crate) use self::show::asked;

use std::io::IsTerminal;
use std::path::Path;

use clap::{Arg, ArgAction, ArgMatches, Command};
use runyard::{ActionError, Code, Envelope};
use runyard_surfaces::cli::{ExtraCommand, ExtraRun, Interrupts};
use serde_json::{Value, json};

use crate::approvals::milliseconds;
use crate::home::Home;
use crate::hub_client::HubClient;
use crate::hub_here::{AnyHub, Stay};

/// The agent that needs nothing.
pub(crate) const DEFAULT_AGENT: &str = "demo";

/// How the run is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// For people.
    Text,
    /// Each event a line.
    Events,
    /// Only the end.
    Json,
    /// Only what the agent says.
    Words,
}

impl Shown {
    pub(crate) fn asked_for(matches: &ArgMatches) -> Self {
        match matches.get_one::<String>("output").map(String::as_str) {
            Some("text") => Shown::Text,
            Some("json") => Shown::Json,
            Some(_) => Shown::Events,
            None if std::io::stdout().is_terminal() => Shown::Text,
            None => Shown::Events,
        }
    }
}

pub(crate) fn command(home: Home) -> ExtraCommand {
    let command = Command::new("run")
        .about("Run an agent on a task, here, and follow it")
        .after_help(
            "The agent works in its own copy of the workspace. On a terminal what needs an approval is asked here; \
             elsewhere the events are printed as lines of JSON and the approval waits for another surface.\n\n\
             Exit codes: 0 completed, 124 took too long, 130 cancelled by a person, 1 otherwise, also where you left it \
             waiting.",
        )
        .arg(Arg::new("task").value_name("TASK").required(true).help("What is to be done"))
        .args(flags())
        .arg(
            flag("keep-open", "TIME", "Keep it open for further turns, so long after each: 90s, 10m, 2h")
                .value_parser(milliseconds),
        )
        .arg(flag("idempotency-key", "KEY", "Starts at most one run for the key"))
        .arg(
            Arg::new("detach")
                .long("detach")
                .action(ArgAction::SetTrue)
                .help("Print the run's id and return; without a hub one is started that stays until its runs are done"),
        );
    let run = move |matches: ArgMatches| Box::pin(run(home, matches)) as ExtraRun;
    ExtraCommand { command, run: Box::new(run) }
}

/// What can be said of any run that is made here.
fn flags() -> Vec<Arg> {
    vec![
        flag("agent", "AGENT", "The agent profile; demo without, or that of the run to continue"),
        flag("workspace", "DIR", "The workspace: a directory, an id or a label; here without"),
        flag("backend", "PROFILE", "Another backend profile than the agent's"),
        flag("continue", "RUN", "Go on from this run: same session, same conversation"),
        flag("timeout-ms", "MS", "How long it may take, not counting approvals"),
        flag("budget-tokens", "TOKENS", "How many tokens it may use, in and out together; it fails beyond")
            .value_parser(clap::value_parser!(u64)),
        flag("approval", "WHEN", "Whether people may be asked; what would be asked is denied otherwise")
            .value_parser(["ask", "never"]),
        Arg::new("keep")
            .long("keep")
            .action(ArgAction::SetTrue)
            .help("Leave what it changed in its own copy; \"runyard apply\" brings it to your files later"),
    ]
}

fn flag(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

async fn run(home: Home, matches: ArgMatches) -> Result<u8, ActionError> {
    let shown = Shown::asked_for(&matches);
    let interrupts = Interrupts::listen();
    untrusted::say_what_does_not_count(&home, &matches, shown);
    if matches.get_flag("detach") {
        return detached::run(&home, &matches, shown, &interrupts).await;
    }
    let mut hub = AnyHub::get(&home, Stay::WithCommand).await?;
    let key = matches.get_one::<String>("idempotency-key").map(String::as_str);
    let outcome = match create(hub.client(), &matches, key, shown, &interrupts).await {
        Ok(made) => to_the_end(&home, &mut hub, &made, shown, Applying::Asked, &interrupts).await,
        Err(error) => Err(error),
    };
    hub.stop().await;
    outcome
}

/// Starts the run that the command line asks for.
async fn create(
    client: &HubClient,
    matches: &ArgMatches,
    key: Option<&str>,
    shown: Shown,
    interrupts: &Interrupts,
) -> Result<Value, ActionError> {
    let mut input = input(client, matches).await?;
    input["task"] = matches.get_one::<String>("task").cloned().into();
    if let Some(ms) = matches.get_one::<u64>("keep-open") {
        input["executionPolicy"]["keepOpenMs"] = (*ms).into();
    }
    create_from(client, input, key, matches, shown, interrupts).await
}

/// Starts a run. On a terminal a directory that is not allowed yet can be allowed on the spot.
async fn create_from(
    client: &HubClient,
    input: Value,
    key: Option<&str>,
    matches: &ArgMatches,
    shown: Shown,
    interrupts: &Interrupts,
) -> Result<Value, ActionError> {
    let envelope = client.invoke("run_create", input.clone(), false, key).await?;
    let outside = envelope.error().is_some_and(|failure| failure.code == Code::WorkspaceOutsideAllowlist);
    let place = input["workspace"].as_str().unwrap_or_default().to_owned();
    if outside && (shown != Shown::Text || !typed::can_ask()) {
        return data(envelope).map_err(|error| with_next_step(error, matches));
    }
    if !outside {
        return data(envelope);
    }
    if !Path::new(&place).is_absolute() {
        return data(envelope);
    }
    match ask::allow_workspace(&place, &interrupts.next()).await {
        Some(true) => {}
        Some(false) => return data(envelope).map_err(|error| with_next_step(error, matches)),
        None => return Err(ActionError::cancelled()),
    }
    data(client.invoke("workspace_add", json!({"path": place}), true, None).await?)?;
    data(client.invoke("run_create", input, false, key).await?)
}

/// The refusal with the command that changes it.
fn with_next_step(error: ActionError, matches: &ArgMatches) -> ActionError {
    // A path that is private would be shown as something that cannot be typed.
    let message = match matches.get_one::<String>("workspace") {
        None => format!("{} Allow it with \"runyard workspaces add .\".", error.message()),
        Some(_) => format!("{} Allow it with \"runyard workspaces add\" and the same path.", error.message()),
    };
    ActionError::new(Code::WorkspaceOutsideAllowlist, message)
}

/// What the command line says of a run, all but its task.
async fn input(client: &HubClient, matches: &ArgMatches) -> Result<Value, ActionError> {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    // Going on means with the same agent and in the same place, where nothing else is said.
    let parent = match text("continue") {
        Some(parent) => data(client.invoke("run_show", json!({"id": parent}), false, None).await?)?,
        None => Value::Null,
    };
    let before = |value: &Value| value.as_str().map(str::to_owned);
    let workspace = match text("workspace") {
        // An id or a label goes as it is; what is a directory is named by its path.
        Some(given) if Path::new(&given).is_dir() => absolute(Path::new(&given))?,
        Some(given) => given,
        None => match before(&parent["run"]["workspace"]["id"]) {
            Some(workspace) => workspace,
            None => absolute(Path::new("."))?,
        },
    };
    let agent = text("agent").or_else(|| before(&parent["run"]["agentId"]));
    let agent = agent.unwrap_or_else(|| DEFAULT_AGENT.to_owned());
    let mut input = json!({"agent": agent, "workspace": workspace});
    if let Some(backend) = text("backend") {
        input["backendProfile"] = backend.into();
    }
    if let Some(parent) = text("continue") {
        input["continues"] = parent.into();
    }
    let mut policy = serde_json::Map::new();
    if let Some(ms) = text("timeout-ms") {
        let ms: u64 = ms.parse().map_err(|_| {
            ActionError::new(
                Code::ValidationError,
                "Expected a whole number of milliseconds in --timeout-ms.",
            )
        })?;
        policy.insert("timeoutMs".to_owned(), ms.into());
    }
    if let Some(tokens) = matches.get_one::<u64>("budget-tokens") {
        policy.insert("budget".to_owned(), json!({ "tokens": tokens }));
    }
    if let Some(approval) = text("approval") {
        policy.insert("approval".to_owned(), approval.into());
    }
    if matches.get_flag("keep") {
        policy.insert("changes".to_owned(), "keep".into());
    }
    if !policy.is_empty() {
        input["executionPolicy"] = Value::Object(policy);
    }
    Ok(input)
}

pub(crate) fn absolute(path: &Path) -> Result<String, ActionError> {
    let path = path.canonicalize().map_err(|error| {
        let message = format!("Cannot use {} as a workspace: {}.", path.display(), error.kind());
        ActionError::new(Code::ValidationError, message)
    })?;
    path.into_os_string()
        .into_string()
        .map_err(|_| ActionError::new(Code::ValidationError, "The workspace's path is not valid UTF-8."))
}

/// The data of an envelope, or its failure.
pub(crate) fn data(envelope: Envelope) -> Result<Value, ActionError> {
    envelope.outcome.map_err(ActionError::from)
}
