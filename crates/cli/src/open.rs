//! `runyard open`: the dev page of the hub that runs, in the browser, by a link that logs in once.
//!
//! It starts no hub: a page whose server ends with the command would be of no use.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};
use runyard::{ActionError, Code};
use runyard_surfaces::cli::{ExtraCommand, ExtraRun, show_data};
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

pub(crate) fn command(home: Home) -> ExtraCommand {
    let print =
        Arg::new("print").long("print").action(ArgAction::SetTrue).help("Only print the link; open nothing");
    let command = Command::new("open")
        .about("Open the dev page in the browser, logged in")
        .after_help(
            "The link logs in whoever opens it first, once, within two minutes, as the owner: do not pass it on. It needs a hub \
             that runs (\"runyard up\").",
        )
        .arg(print);
    let run = move |matches: ArgMatches| Box::pin(open(home, matches)) as ExtraRun;
    ExtraCommand { command, run: Box::new(run) }
}

async fn open(home: Home, matches: ArgMatches) -> Result<u8, ActionError> {
    if Environment::of_process().is_of_a_run() {
        let message = "The dev page is for people only, and this is the environment of a run.";
        return Err(ActionError::new(Code::AuthorizationError, message));
    }
    let hub = HubClient::find(&home).await;
    let hub = hub.ok_or_else(|| {
        let message = "No hub runs for this home; start one with \"runyard up\" and try again.";
        ActionError::new(Code::NotFound, message)
    })?;
    let link = data(hub.login().await?)?;
    let url = link["url"].as_str().unwrap_or_default();
    if matches.get_flag("print") || !shown(url).await {
        return tell(&matches, &link, url);
    }
    Ok(show_data(&matches, json!(format!("Opened {}/dev in your browser.", hub.url()))))
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

/// Whether a browser shows the address by now.
async fn shown(url: &str) -> bool {
    if !may_be_opened(url) || !has_screen() {
        return false;
    }
    let quiet = Process::new(OPENER)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut opener) = quiet else { return false };
    match tokio::time::timeout(OPENER_FAILS_WITHIN, opener.wait()).await {
        Ok(ended) => ended.is_ok_and(|status| status.success()),
        Err(_) => true,
    }
}

/// Without a screen the opener would start a browser in this terminal, or none.
fn has_screen() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    cfg!(target_os = "macos") || ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].into_iter().any(set)
}

/// Only addresses of this machine, or encrypted ones, made of nothing that a shell or an option could be made of.
fn may_be_opened(url: &str) -> bool {
    let plain = url.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":/.#[]-_".contains(&byte));
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
}
