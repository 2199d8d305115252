//! `runyard mcp`: the hub for an MCP client on this machine, over standard input and output.
//!
//! It is a relay: what the client says goes to the hub's `/mcp`, and what comes from there goes to the client. Nothing is decided
//! here but which hub is meant and by whose token.

mod conversation;
mod exchange;
mod message;
mod relay;
mod session;
mod way;

use std::io::Write;

use clap::{Arg, ArgAction, ArgMatches, Command};
use runyard::{ActionError, Code};
use runyard_surfaces::cli::{ExtraCommand, ExtraRun, cancelled_by_signal, one_line};
use serde_json::{Value, json};

use self::exchange::Endpoint;
use self::way::Way;
use crate::home::Home;

/// Where the hub is and how one comes in, where the environment says it.
const URL: &str = "RUNYARD_URL";
const TOKEN: &str = "RUNYARD_TOKEN";
const RUN_TOKEN: &str = "RUNYARD_RUN_TOKEN";
const RUN_ID: &str = "RUNYARD_RUN_ID";

pub(crate) fn command(home: Home) -> ExtraCommand {
    let print = Arg::new("print-config")
        .long("print-config")
        .action(ArgAction::SetTrue)
        .help("Only print what a client's configuration needs, as JSON");
    let command = Command::new("mcp")
        .about("Serve runs and approvals to an MCP client, on standard input and output")
        .after_help(
            "For a client such as Claude Desktop or an editor. \"runyard mcp --print-config\" prints what to paste: in Claude \
             Desktop into claude_desktop_config.json, in Cursor into .cursor/mcp.json. VS Code reads the same entry under \
             \"servers\" in .vscode/mcp.json.\n\n\
             It uses the hub that runs, or runs one as long as the client is there, as the owner. With RUNYARD_URL and \
             RUNYARD_TOKEN it uses that hub with that token. In a run it uses the run's own token.",
        )
        .arg(print);
    let run = move |matches: ArgMatches| Box::pin(run(home, matches)) as ExtraRun;
    ExtraCommand { command, run: Box::new(run) }
}

async fn run(home: Home, matches: ArgMatches) -> Result<u8, ActionError> {
    if matches.get_flag("print-config") {
        let text = serde_json::to_string_pretty(&configuration()?)?;
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{text}").and_then(|()| stdout.flush())?;
        return Ok(0);
    }
    // Standard output belongs to the protocol, so what went wrong is said beside it.
    Ok(serve(&home).await.map_or_else(
        |error| {
            let _ = writeln!(std::io::stderr(), "[{}] {}", error.code(), one_line(error.message()));
            error.code().row().exit
        },
        |()| 0,
    ))
}

async fn serve(home: &Home) -> Result<(), ActionError> {
    let stop = cancelled_by_signal();
    let way = match named(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))? {
        Some(endpoint) => Way::named(endpoint),
        None => Way::own(home).await?,
    };
    relay::relay(way, stop).await;
    Ok(())
}

/// The hub that the environment names; nothing where it names none. In a run only the run's own token counts.
fn named(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Endpoint>, ActionError> {
    let in_a_run = variable(RUN_ID).is_some() || variable(RUN_TOKEN).is_some();
    let (url, token) = match in_a_run {
        true => (variable(URL), variable(RUN_TOKEN)),
        false => (variable(URL), variable(TOKEN)),
    };
    match (url, token) {
        (Some(url), Some(token)) => Endpoint::at(&url, &token).map(Some).ok_or_else(|| {
            ActionError::new(
                Code::ValidationError,
                format!("{URL} is no address such as http://127.0.0.1:4710."),
            )
        }),
        _ if in_a_run => {
            let message = format!("This is the environment of a run, without its {URL} and {RUN_TOKEN}.");
            Err(ActionError::new(Code::AuthorizationError, message))
        }
        // An address without a token is what a run's environment leaves behind, and says nothing.
        (_, None) => Ok(None),
        (None, Some(_)) => {
            let message =
                format!("{TOKEN} is set without {URL}: set both, or none to use the hub of this machine.");
            Err(ActionError::new(Code::ValidationError, message))
        }
    }
}

/// What a client needs to start this program.
fn configuration() -> Result<Value, ActionError> {
    let program = std::env::current_exe()?;
    let mut server = json!({"command": program.to_string_lossy(), "args": ["mcp"]});
    if let Some(home) = std::env::var_os("RUNYARD_HOME").filter(|home| !home.is_empty()) {
        let home = std::path::absolute(home)?;
        server["env"] = json!({"RUNYARD_HOME": home.to_string_lossy()});
    }
    Ok(json!({"mcpServers": {"runyard": server}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], expected: Result<Option<&str>, Code>) {
        let found = named(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        });
        let found = found.map(|found| found.map(|endpoint| endpoint.token().to_owned()));
        let expected = expected.map(|token| token.map(str::to_owned));
        assert_eq!(
            found.map_err(|error| error.code().as_str().to_owned()),
            expected.map_err(|code| code.as_str().to_owned())
        );
    }

    #[test]
    fn j06_in_a_run_only_the_runs_token_counts() {
        let url = (URL, "http://127.0.0.1:1");
        check(&[], Ok(None));
        check(&[url], Ok(None));
        check(&[url, (TOKEN, "ada")], Ok(Some("ada")));
        check(&[(TOKEN, "ada")], Err(Code::ValidationError));
        check(&[(URL, "ftp://x"), (TOKEN, "ada")], Err(Code::ValidationError));
        check(&[url, (RUN_TOKEN, "run"), (TOKEN, "ada")], Ok(Some("run")));
        check(&[url, (RUN_ID, "run_1"), (TOKEN, "ada")], Err(Code::AuthorizationError));
        check(&[(RUN_TOKEN, "run")], Err(Code::AuthorizationError));
    }
}
