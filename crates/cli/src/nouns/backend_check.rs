//! `runyard backends check`: looks whether backend profiles could be used now, and says what is missing and how to get it.
//!
//! It is no action under another name, since what is missing is an exit code.

use clap::{Arg, ArgMatches, Command};
use runyard::ActionError;
use runyard_surfaces::cli::show_data;
use serde_json::{Value, json};

use crate::home::Home;
use crate::hub_client::HubClient;
use crate::hub_here::{AnyHub, Stay};
use crate::run::data;
use crate::views::{for_people, is_text};

pub(super) fn extend(command: Command) -> Command {
    let check = Command::new("check")
        .about("Look whether a backend profile could be used now, and say what is missing and how to get it")
        .arg(Arg::new("profile").value_name("NAME").help("The backend profile; all of them without"))
        .after_help(
            "The program is started once, in the sandbox of a run and without any secret; no provider is called.\n\n\
             Exit codes: 0 nothing is missing, 1 something is.",
        );
    command.subcommand(check)
}

pub(super) async fn run(home: Home, matches: ArgMatches) -> Result<u8, ActionError> {
    let Some(("check", asked)) = matches.subcommand() else { return Ok(0) };
    let hub = AnyHub::get(&home, Stay::ForOneCall).await?;
    let checked = checked(hub.client(), asked.get_one::<String>("profile")).await;
    hub.stop().await;
    let checked = checked?;
    let ok = checked.iter().all(|found| found["ok"] == true);
    let form = matches.get_one::<String>("output").map(String::as_str);
    let told = match is_text(form) {
        true => {
            let texts = checked.into_iter().map(|found| for_people("backend_check", found));
            let texts: Vec<String> = texts.filter_map(|text| text.as_str().map(str::to_owned)).collect();
            Value::from(texts.join("\n\n"))
        }
        false => json!({ "ok": ok, "backends": checked }),
    };
    Ok(show_data(&matches, told).max(u8::from(!ok)))
}

async fn checked(hub: &HubClient, profile: Option<&String>) -> Result<Vec<Value>, ActionError> {
    let names = match profile {
        Some(name) => vec![json!(name)],
        None => {
            let listed = data(hub.invoke("backend_list", json!({}), false, None).await?)?;
            let listed = listed["backends"].as_array().cloned().unwrap_or_default();
            listed.iter().map(|backend| backend["profile"].clone()).collect()
        }
    };
    let mut found = Vec::new();
    for name in names {
        found.push(data(hub.invoke("backend_check", json!({ "profile": name }), false, None).await?)?);
    }
    Ok(found)
}
