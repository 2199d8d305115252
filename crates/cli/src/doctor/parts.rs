//! The parts of Runyard: configuration, hub, database, workspaces.

use runyard::Code;
use serde_json::{Value, json};

use super::Finding;
use crate::configuration::{Configuration, Environment, FILE_NAME, Flags};
use crate::database::{Database, Opened};
use crate::home::Home;
use crate::hub_client::HubClient;
use crate::hub_file::{Told, is_claimed, told};
use crate::hub_here::Stay;
use crate::wiring;

/// What is wrong with the configuration of this directory, and what in it does not count.
pub(super) fn configuration(home: &Home) -> Vec<Finding> {
    let what = "configuration";
    let here = std::env::current_dir().ok();
    let loaded =
        Configuration::load(home.path(), here.as_deref(), &Environment::of_process(), &Flags::default());
    let known = loaded.and_then(|configuration| {
        // Where there are no backends at all, what they know is not what is wrong.
        let known = wiring::backends(home, &configuration)
            .map_or(Ok(()), |backends| wiring::check_kinds(&configuration, &backends));
        known.map(|()| configuration)
    });
    let configuration = match known {
        Ok(configuration) => configuration,
        Err(problems) => {
            let next = "Correct it there. A hub that runs goes on with what it read before.";
            let problem =
                |problem: &crate::configuration::Problem| Finding::to_do(what, problem.to_string(), next);
            return problems.0.iter().map(problem).collect();
        }
    };
    let ignored = configuration.ignored().iter().map(|ignored| {
        let found = format!("{} of {} does not count", ignored.key, ignored.origin);
        Finding::note(what, found, ignored.why.to_string())
    });
    let mut findings: Vec<Finding> = ignored.collect();
    if is_newer_than_the_hub(home) {
        let found = format!("{FILE_NAME} of the data directory changed since the hub started");
        let next = "Its policy counts by now; for all else start the hub again.";
        findings.push(Finding::note(what, found, next));
    }
    if findings.is_empty() {
        findings.push(Finding::ok(what, "valid, and all of it counts"));
    }
    findings
}

/// Whether the data directory's file was written after the hub that runs told where it answers.
fn is_newer_than_the_hub(home: &Home) -> bool {
    let written = |path: &std::path::Path| path.metadata().and_then(|data| data.modified()).ok();
    let hub = written(&home.hub()).filter(|_| is_claimed(home));
    hub.zip(written(&home.path().join(FILE_NAME))).is_some_and(|(hub, file)| file > hub)
}

/// Whether a hub runs, and where.
pub(super) async fn hub(home: &Home) -> Vec<Finding> {
    let what = "hub";
    let process = process(told(&home.hub()));
    if let Some(client) = HubClient::find(home).await {
        let until = if client.stay() == Stay::UntilDone { " until its runs are done" } else { "" };
        let found = match client.invoke("health", json!({}), false, None).await {
            Ok(envelope) => envelope.outcome.map_err(|failure| failure.message),
            Err(error) => Err(error.message().to_owned()),
        };
        return vec![match found {
            Ok(health) if health["status"] == "ok" => {
                Finding::ok(what, format!("runs at {}{process}{until}", client.url()))
            }
            Ok(health) => {
                let next = "Look at its log, and restart it.";
                Finding::to_do(what, format!("runs at {}{process} and says: {health}", client.url()), next)
            }
            Err(message) => {
                let next = format!("Restart it{process}.");
                Finding::to_do(what, format!("{} does not answer: {message}", client.url()), next)
            }
        }];
    }
    if is_claimed(home) {
        let next = format!("If it stays so, end that process{process} and start \"runyard up\".");
        return vec![Finding::to_do(what, "a process is its hub and does not answer", next)];
    }
    vec![Finding::note(
        what,
        "none runs",
        "\"runyard up\" starts one. Without it each command brings its own, for as long as it takes.",
    )]
}

fn process(told: Option<Told>) -> String {
    told.map(|told| format!(" (process {})", told.pid)).unwrap_or_default()
}

/// Whether the database can be read.
pub(super) async fn database(home: &Home) -> Option<Finding> {
    let what = "database";
    let database = Database::of(home, &Configuration::of_data(home).ok()?);
    let kind = match &database {
        Database::Sqlite(path) => path.display().to_string(),
        Database::Postgres(_) => "PostgreSQL".to_owned(),
    };
    Some(match database.open_to_read().await {
        Ok(Opened::Sqlite(_) | Opened::Postgres(_)) => Finding::ok(what, kind),
        Err(error) if *error.code() == Code::StorageNotFound => {
            Finding::ok(what, format!("{kind} is made when a hub first starts"))
        }
        Err(error) => {
            let next = error.code().row().recovery;
            Finding::to_do(what, format!("{kind} cannot be opened: {}", error.message()), next)
        }
    })
}

/// Whether there is anything to work on.
pub(super) async fn workspaces(home: &Home) -> Option<Finding> {
    let what = "workspaces";
    let listed = match HubClient::find(home).await {
        Some(client) => {
            let envelope = client.invoke("workspace_list", json!({}), false, None).await.ok()?;
            envelope.outcome.ok()?["workspaces"].as_array()?.len()
        }
        None => {
            let text = std::fs::read_to_string(home.edge().join("workspaces.json")).unwrap_or_default();
            let kept: Value = serde_json::from_str(&text).unwrap_or_default();
            kept["workspaces"].as_array().map_or(0, Vec::len)
        }
    };
    Some(match listed {
        0 => {
            let next = "Allow a directory with \"runyard workspaces add DIRECTORY\", or let \"runyard run\" ask there.";
            Finding::note(what, "no directory is allowed yet", next)
        }
        1 => Finding::ok(what, "1 directory is allowed"),
        some => Finding::ok(what, format!("{some} directories are allowed")),
    })
}
