//! `runyard open`: the console of the hub that runs, in a window of its own or in the browser, by a link that logs in once.
//!
//! It starts no hub: a page whose server ends with the command would be of no use.

mod window;

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};
use runyard::{ActionError, Code, Issue};
use runyard_surfaces::cli::{ExtraCommand, ExtraRun, show_data};
use runyard_surfaces::http::PageOrigin;
use serde_json::{Value, json};
use tokio::process::Command as Process;

use crate::configuration::Environment;
use crate::home::Home;
use crate::hub_client::HubClient;
use crate::run::data;
use crate::views::is_text;

/// What opens an address in the person's browser.
const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
/// An opener that fails does so within this time; one that goes on has a browser in its hands.
const OPENER_FAILS_WITHIN: Duration = Duration::from_secs(3);
/// Where one begins who does not say.
const FIRST_PAGE: &str = "/runs";
/// The pages that have a name.
const PAGES: [&str; 8] = ["runs", "approvals", "agents", "edges", "policy", "audit", "settings", "dev"];

pub(crate) fn command(home: Home) -> ExtraCommand {
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    let page = Arg::new("page").value_name("PAGE").help(
        "What to open: a run's or an approval's id, runs, approvals, agents, edges, policy, audit, settings, dev, or a path [default: runs]",
    );
    let origin = Arg::new("origin")
        .long("origin")
        .value_name("URL")
        .value_parser(clap::value_parser!(PageOrigin))
        .help("Log in at this further page, one of [server] origins, as in http://localhost:5173");
    let command = Command::new("open")
        .about("Open the console, logged in")
        .after_help(
            "It opens in a window of its own where Chrome, Chromium, Edge or Brave is installed (with a profile of its own in the \
             data directory), else in your browser; without a screen the link is printed. The link logs in whoever opens it first, \
             once, within two minutes, as the owner: do not pass it on. For other users of this machine it does not work. It needs a hub that runs (\"runyard up\").",
        )
        .arg(page)
        .arg(switch("print", "Only print the link; open nothing"))
        .arg(switch("browser", "Open it in your browser, not in a window of its own"))
        .arg(origin);
    let run = move |matches: ArgMatches| Box::pin(open(home, matches)) as ExtraRun;
    ExtraCommand { command, run: Box::new(run) }
}

async fn open(home: Home, matches: ArgMatches) -> Result<u8, ActionError> {
    if Environment::of_process().is_of_a_run() {
        let message = "The console is for people only, and this is the environment of a run.";
        return Err(ActionError::new(Code::AuthorizationError, message));
    }
    let page = address(matches.get_one::<String>("page").map(String::as_str))?;
    let hub = HubClient::find(&home).await;
    let hub = hub.ok_or_else(|| {
        let message = "No hub runs for this home; start one with \"runyard up\" and try again.";
        ActionError::new(Code::NotFound, message)
    })?;
    let origin = matches.get_one::<PageOrigin>("origin");
    let link = data(hub.login(&page, origin).await?)?;
    let url = link["url"].as_str().unwrap_or_default();
    let place = match matches.get_flag("print") || !may_be_opened(url) {
        true => None,
        false if !matches.get_flag("browser") && window::shown(&home, url).await => {
            Some("a window of its own")
        }
        false if shown(url).await => Some("your browser"),
        false => None,
    };
    match place {
        Some(place) => Ok(show_data(&matches, json!(format!("Opened {}{page} in {place}.", hub.url())))),
        None => tell(&matches, &link, url),
    }
}

/// The address of a page by its name, or by the id of what it shows.
fn address(page: Option<&str>) -> Result<String, ActionError> {
    match page {
        None => Ok(FIRST_PAGE.to_owned()),
        Some(path) if path.starts_with('/') => Ok(path.to_owned()),
        Some(run) if run.starts_with("run_") => Ok(format!("/runs/{run}")),
        Some(approval) if approval.starts_with("apr_") => Ok(format!("/approvals/{approval}")),
        Some(name) if PAGES.contains(&name) => Ok(format!("/{name}")),
        Some(_) => {
            let message =
                format!("Expected the id of a run or an approval, a path, or one of {}.", PAGES.join(", "));
            Err(ActionError::invalid_input(vec![Issue::at("page", message)]))
        }
    }
}

/// The link as it stands, also for a pipe: `xdg-open "$(runyard open --print)"` works. Who asks for JSON gets it whole.
fn tell(matches: &ArgMatches, link: &Value, url: &str) -> Result<u8, ActionError> {
    if matches.get_one::<String>("output").is_some() {
        let form = matches.get_one::<String>("output").map(String::as_str);
        return Ok(show_data(matches, if is_text(form) { Value::from(url) } else { link.clone() }));
    }
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{url}").and_then(|()| stdout.flush())?;
    Ok(0)
}

/// Whether the person's browser shows the address by now.
async fn shown(url: &str) -> bool {
    if !has_screen() && !is_set("BROWSER") {
        return false;
    }
    goes_on(Process::new(OPENER).arg(url), OPENER_FAILS_WITHIN).await
}

/// Starts what shows something, and waits as long as it takes to fail.
async fn goes_on(program: &mut Process, fails_within: Duration) -> bool {
    let quiet = program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Not in this terminal's group: it stays when the command is over, and Ctrl-C is not meant for it.
    let Ok(mut started) = quiet.process_group(0).spawn() else { return false };
    match tokio::time::timeout(fails_within, started.wait()).await {
        Ok(ended) => ended.is_ok_and(|status| status.success()),
        Err(_) => true,
    }
}

/// Without a screen the opener would start a browser in this terminal, or none.
fn has_screen() -> bool {
    cfg!(target_os = "macos") || ["DISPLAY", "WAYLAND_DISPLAY"].into_iter().any(is_set)
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// Only addresses of this machine, or encrypted ones, made of nothing that a shell or an option could be made of.
fn may_be_opened(url: &str) -> bool {
    let plain = url.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":/.#[]-_?=".contains(&byte));
    let host = |scheme: &str| url.strip_prefix(scheme).map(|rest| rest.split('/').next().unwrap_or_default());
    let loopback = host("http://").is_some_and(|host| {
        host.parse::<std::net::SocketAddr>().is_ok_and(|address| address.ip().is_loopback())
    });
    plain && (loopback || host("https://").is_some_and(|host| !host.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    // CVE-2025-6514: an address from a server that ends in a shell.
    #[test]
    fn cve_2025_6514_only_addresses_of_this_machine_or_encrypted_ones_are_opened() {
        for good in [
            "http://127.0.0.1:4710/login#ab01",
            "http://[::1]:4710/login#ab01",
            "https://runyard.example/login#ab01",
            "http://127.0.0.1:4710/login?next=/runs/run_01#ab01",
        ] {
            assert!(may_be_opened(good), "{good}");
        }
        for bad in [
            "",
            "http://",
            "https:///login",
            "http://evil.example:4710/login",
            "http://localhost:4710/login",
            "http://192.0.2.1:4710/login",
            "http://127.0.0.1.evil.example:80/login",
            "http://127.0.0.1:1@evil.example/login",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "--help",
            "-http://127.0.0.1:1/login",
            "http://127.0.0.1:1/$(touch x)",
            "http://127.0.0.1:1/`x`",
            "http://127.0.0.1:1/\";calc;\"",
            "https://runyard.example/ login",
            "https://runyard.example/&calc",
        ] {
            assert!(!may_be_opened(bad), "{bad}");
        }
    }

    #[test]
    fn a_page_is_opened_by_its_name_or_by_the_id_of_what_it_shows() {
        for (page, expected) in [
            (None, "/runs"),
            (Some("approvals"), "/approvals"),
            (Some("run_01k"), "/runs/run_01k"),
            (Some("apr_01k"), "/approvals/apr_01k"),
            (Some("/runs/run_01k/diff"), "/runs/run_01k/diff"),
        ] {
            assert_eq!(address(page).unwrap(), expected);
        }
        for unknown in ["", "run", "login", "http://evil.example", "../x"] {
            assert!(address(Some(unknown)).is_err(), "{unknown}");
        }
    }
}
