//! `runyard init`: from nothing to a first run. It looks for agents, writes a profile for what it finds, allows this directory, checks
//! what runs need, and runs the demo agent once.
//!
//! It changes nothing that is there already, and nothing at all that nobody said yes to; so it can be repeated at any time.

mod agents;
mod demo;
mod profile;

use clap::{Arg, ArgAction, ArgMatches, Command};
use runyard::{ActionError, Code};
use runyard_surfaces::cli::{ExtraCommand, ExtraRun, one_line, show_data};
use serde_json::{Value, json};

use self::agents::Found;
use self::profile::Profile;
use crate::configuration::Environment;
use crate::doctor::{self, Looked};
use crate::home::Home;
use crate::hub_here::{AnyHub, Stay};
use crate::run::{absolute, typed};
use crate::views::is_text;

pub(crate) fn command(home: Home) -> ExtraCommand {
    let command = Command::new("init")
        .about("Set Runyard up here: find agents, allow this directory, check, and run the demo")
        .arg(Arg::new("yes").long("yes").short('y').action(ArgAction::SetTrue).help("Say yes to what would be asked"))
        .after_help(
            "Without a terminal and without --yes it changes nothing but the data directory's own record of the demo.\n\n\
             Exit codes: 0 Runyard can be used, 1 something must be done first.",
        );
    let run = move |matches: ArgMatches| Box::pin(init(home, matches)) as ExtraRun;
    ExtraCommand { command, run: Box::new(run) }
}

/// How questions are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    Yes,
    Asked,
    No,
}

impl Answers {
    fn of(matches: &ArgMatches) -> Self {
        match matches.get_flag("yes") {
            true => Answers::Yes,
            false if typed::can_ask() => Answers::Asked,
            false => Answers::No,
        }
    }

    async fn to(self, question: &str) -> bool {
        match self {
            Answers::Yes => true,
            Answers::No => false,
            Answers::Asked => typed::confirm(question).await.is_ok(),
        }
    }
}

async fn init(home: Home, matches: ArgMatches) -> Result<u8, ActionError> {
    if Environment::of_process().is_of_a_run() {
        let message = "Setting up is for people only, and this is the environment of a run.";
        return Err(ActionError::new(Code::AuthorizationError, message));
    }
    let answers = Answers::of(&matches);
    let agents = agents::find().await;
    let (profile, profile_line) = write_profile(&home, &agents, answers).await?;
    let (workspace, workspace_line) = allow_here(&home, answers).await?;
    let demo = demo::run(&home).await;
    let looked = doctor::look(&home).await;
    let worked = looked.usable && demo.is_ok();
    let usable = agents.iter().find(|found| found.adapter && found.version.is_ok());
    let lacking = usable.and_then(|found| secret_first(&looked, &found.name));
    let next = match (usable, lacking) {
        _ if !worked => "runyard doctor".to_owned(),
        (_, Some(command)) => command,
        (Some(found), _) => format!("runyard run \"Say what this project is about\" --agent {}", found.name),
        (None, _) => "runyard run \"look around\"".to_owned(),
    };
    let form = matches.get_one::<String>("output").map(String::as_str);
    let told = match is_text(form) {
        true => {
            let mut lines: Vec<String> = agents.iter().map(Found::line).collect();
            lines.extend([profile_line, workspace_line]);
            lines.extend(to_do(&looked));
            lines.push(match &demo {
                Ok(run) => format!("demo       it worked, in a directory of its own: {run}"),
                Err(error) => format!("demo       it did not work: {}", one_line(error.message())),
            });
            lines.push(format!("\nNext: {next}"));
            Value::from(lines.join("\n"))
        }
        false => json!({
            "agents": agents.iter().map(Found::json).collect::<Vec<_>>(),
            "profile": profile,
            "workspace": workspace,
            "doctor": looked.json,
            "demo": match &demo {
                Ok(run) => json!({"worked": true, "run": run}),
                Err(error) => json!({"worked": false, "message": error.message()}),
            },
            "next": next,
        }),
    };
    Ok(show_data(&matches, told).max(u8::from(!worked)))
}

/// What gives an agent the secret that it cannot be used without, where it lacks one.
fn secret_first(looked: &Looked, name: &str) -> Option<String> {
    let what = format!("secrets {name}");
    let mut findings = looked.json["findings"].as_array()?.iter();
    let next = findings.find(|finding| finding["what"] == what.as_str())?["next"].as_str()?;
    Some(next.strip_prefix(doctor::GIVE_IT_WITH).unwrap_or(next).to_owned())
}

/// What of the checks a person has to know now: the rest is in `doctor`.
fn to_do(looked: &Looked) -> Vec<String> {
    let findings = looked.json["findings"].as_array().cloned().unwrap_or_default();
    let mut lines: Vec<String> = findings
        .iter()
        .filter(|finding| finding["state"] == "do")
        .map(|finding| {
            let text = |name: &str| one_line(finding[name].as_str().unwrap_or_default());
            format!("to do      {}: {}. {}", text("what"), text("found"), text("next"))
        })
        .collect();
    if lines.is_empty() {
        lines.push("checks     all that runs need is there; \"runyard doctor\" says more".to_owned());
    }
    lines
}

async fn write_profile(
    home: &Home,
    agents: &[Found],
    answers: Answers,
) -> Result<(Value, String), ActionError> {
    let found = agents.iter().find(|found| found.adapter && found.version.is_ok());
    let Some(found) = found else {
        let line =
            "profile    none is written: no agent was found that Runyard can drive; the demo needs none";
        return Ok((json!({"written": false}), line.to_owned()));
    };
    let profile = Profile::of(home, &found.name, &found.program)?;
    let file = profile.file().display().to_string();
    let text = match profile.text() {
        Ok(text) => text,
        Err(why) => {
            let line = why.line(&found.name, &file);
            return Ok((
                json!({"written": false, "file": file, "reason": line}),
                format!("profile    {line}"),
            ));
        }
    };
    let question = format!("\n{}\nWrite this into {file}? [y/N] ", text.trim());
    if !answers.to(&question).await {
        let line =
            format!("profile    not written (--yes): {} works without it, found by its name", found.name);
        return Ok((json!({"written": false, "file": file, "text": text}), line));
    }
    profile.write()?;
    let mut line =
        format!("profile    written to {file}:\n           {}", text.trim().replace('\n', "\n           "));
    if AnyHub::find(home).await.is_some() {
        line.push_str("\n           the hub that runs knows it when it is started again");
    }
    Ok((json!({"written": true, "file": file, "text": text}), line))
}

async fn allow_here(home: &Home, answers: Answers) -> Result<(Value, String), ActionError> {
    let here = absolute(std::path::Path::new("."))?;
    let hub = AnyHub::get(home, Stay::ForOneCall).await?;
    let allowed = demo::is_allowed(hub.client(), &here).await;
    let outcome = match allowed {
        Err(error) => Err(error),
        Ok(true) => Ok((true, format!("workspace  agents may work on copies of {here} already"))),
        Ok(false) if answers.to(&format!("\nAllow agents to work on copies of {here}? [y/N] ")).await => {
            // A directory that can be none, such as a home, keeps nobody from going on.
            match demo::call(hub.client(), "workspace_add", json!({"path": here})).await {
                Ok(_) => Ok((true, format!("workspace  agents may now work on copies of {here}"))),
                Err(error) => Ok((false, format!("workspace  {}", one_line(error.message())))),
            }
        }
        Ok(false) => Ok((
            false,
            "workspace  not allowed here (--yes): \"runyard workspaces add .\" does so".to_owned(),
        )),
    };
    hub.stop().await;
    let (allowed, line) = outcome?;
    Ok((json!({"path": here, "allowed": allowed}), line))
}
