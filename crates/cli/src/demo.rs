//! `runyard demo provider`: a scripted model provider in the foreground, to try agents out without a real one.
//!
//! It changes nothing of the installation: what points an agent at it is only said. Keys come from a file, never from the command
//! line, and none is ever printed.

use std::error::Error;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use runyard::{ActionError, Code};
use runyard_demo_provider::{DemoProvider, Listed, Options, ProviderError, Recorded, scenarios};
use runyard_surfaces::cli::{ExtraCommand, ExtraRun, cancelled_by_signal, one_line, show_data};
use serde_json::{Value, json};

use crate::configuration::FILE_NAME;
use crate::home::Home;
use crate::views::is_text;

const KEYS_BYTES_MAX: u64 = 64 * 1024;
/// Always the same, so that what is written into a configuration once stays true.
const LISTEN: &str = "127.0.0.1:4711";
/// The scenarios to begin with.
const FIRST: [&str; 5] = ["text", "shell", "patch", "approval", "http-429"];
/// How a task names a scenario.
const MARKER: &str = "[[scenario:";
/// A model for which agents offer all their tools; the provider answers any other as well.
const MODEL: &str = "gpt-5.5";

pub(crate) fn command(home: Home) -> ExtraCommand {
    let command = Command::new("demo")
        .about("Try agents out without a real model provider")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(provider_command());
    let run = move |matches: ArgMatches| Box::pin(demo(home, matches)) as ExtraRun;
    ExtraCommand { command, run: Box::new(run) }
}

fn provider_command() -> Command {
    let listen = Arg::new("listen")
        .long("listen")
        .value_name("ADDR")
        .default_value(LISTEN)
        .value_parser(value_parser!(SocketAddr))
        .help("Where to listen, on this machine only; port 0 takes any free one");
    let directory = Arg::new("scenarios")
        .long("scenarios")
        .value_name("DIRECTORY")
        .value_parser(value_parser!(PathBuf))
        .help("More scenarios: each NAME.toml of this directory");
    let keys = Arg::new("keys")
        .long("keys")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .help("Accept only the keys in this file, one in each line [default: any key]");
    let list = Arg::new("list")
        .long("list")
        .action(ArgAction::SetTrue)
        .help("Only list the scenarios; serve nothing");
    Command::new("provider")
        .about("Serve a scripted model on this machine, until Ctrl-C")
        .after_help(
            "It speaks the Responses API, chat completions and Anthropic Messages. What it plays is said by the last marker in the \
             conversation, such as [[scenario:shell touch a.txt]]; without one it says a plain text. Each request is told on standard error in one \
             line, without its key and its content.",
        )
        .args([listen, directory, keys, list])
}

async fn demo(home: Home, matches: ArgMatches) -> Result<u8, ActionError> {
    // The only subcommand that there is, and clap demands one.
    let Some((_, matches)) = matches.subcommand() else { return Ok(0) };
    let directory = matches.get_one::<PathBuf>("scenarios").cloned();
    if matches.get_flag("list") {
        return Ok(list(matches, &scenarios(directory.as_deref()).map_err(refused)?));
    }
    let stop = cancelled_by_signal();
    let mut options = Options { scenarios: directory, ..Options::default() };
    if let Some(listen) = matches.get_one::<SocketAddr>("listen") {
        options.listen = *listen;
    }
    let keys = matches.get_one::<PathBuf>("keys");
    if let Some(file) = keys {
        options.keys = read_keys(file)?;
    }
    let provider = DemoProvider::start_with(options).await.map_err(refused)?;
    announce(&provider, &home.path().join(FILE_NAME), keys.map(PathBuf::as_path));
    let known = provider.scenarios();
    let mut told = 0;
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(0),
            request = provider.wait_for(|request| request.number > told) => {
                told = request.number;
                // Nobody reading this is no reason not to serve.
                let _ = writeln!(std::io::stderr(), "{}", line(&request, &known));
            }
        }
    }
}

fn list(matches: &ArgMatches, listed: &[Listed]) -> u8 {
    let form = matches.get_one::<String>("output").map(String::as_str);
    let row = |Listed { name, about }: &Listed| json!({"name": name, "about": about});
    show_data(
        matches,
        match is_text(form) {
            true => Value::from(lines(listed).join("\n")),
            false => json!({"scenarios": listed.iter().map(row).collect::<Vec<_>>()}),
        },
    )
}

/// A line for each scenario.
fn lines(listed: &[Listed]) -> Vec<String> {
    let width = listed.iter().map(|listed| listed.name.chars().count()).max().unwrap_or(0);
    let line =
        |Listed { name, about }: &Listed| one_line(&format!("{name:width$}  {about}")).trim_end().to_owned();
    listed.iter().map(line).collect()
}

/// Says where it is, and how an agent gets there. The first line is for programs too.
fn announce(provider: &DemoProvider, configuration: &Path, keys: Option<&Path>) {
    let (url, configuration) = (provider.url(), one_line(&configuration.display().to_string()));
    let key = match keys {
        None => "give each profile a key, whichever:\n  echo any | runyard secrets set mine\n  \
                 echo any | runyard secrets set codex\n  \
                 echo any | runyard secrets set deepseek"
            .to_owned(),
        Some(file) => format!(
            "give each profile one of the keys in {}:\n  runyard secrets set mine\n  runyard secrets set codex\n  runyard secrets set deepseek",
            one_line(&file.display().to_string())
        ),
    };
    let text = format!(
        "listening on {url}\n\n\
         1. put what you want to try into {configuration}:\n\n  \
         [agent.mine]\n  backend = \"native\"\n  model = {MODEL:?}\n  provider.base_url = {url:?}\n\n  \
         [backend.codex]\n  base_url = {url:?}\n  model = {MODEL:?}\n\n  \
         [backend.deepseek]\n  base_url = {url:?}\n  wire = \"chat\"\n\n\
         2. {key}\n\
         3. restart `runyard up` if it runs\n\
         4. say in the task what it plays:\n  \
         runyard run --agent mine '[[scenario:tool shell {{\"command\": \"touch a.txt\"}}]]'\n  \
         runyard run --agent codex \"[[scenario:shell touch a.txt]]\"\n\n\
         scenarios (--list shows all):\n  {}\n\n\
         stop with Ctrl-C\n",
        lines(&to_begin_with(provider.scenarios())).join("\n  "),
    );
    let mut stdout = std::io::stdout().lock();
    // Nobody listening to this is no reason not to serve.
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// A few of those that are built in, and all that a person brought.
fn to_begin_with(mut listed: Vec<Listed>) -> Vec<Listed> {
    let built_in = scenarios(None).unwrap_or_default();
    let is_built_in = |name: &str| built_in.iter().any(|listed| listed.name == name);
    listed.retain(|listed| FIRST.contains(&listed.name.as_str()) || !is_built_in(&listed.name));
    listed
}

/// Whether a request's last marker names a scenario that there is not.
fn names_unknown(body: &str, known: &[Listed]) -> bool {
    let marked = body.rsplit_once(MARKER).and_then(|(_, rest)| rest.split_once("]]"));
    let name = marked.map(|(marker, _)| marker.split([' ', '\\']).next().unwrap_or_default());
    name.is_some_and(|name| !known.iter().any(|known| known.name == name))
}

/// A request for people: neither its key nor anything that it says. A query may hold a key too.
fn line(request: &Recorded, known: &[Listed]) -> String {
    let path = request.path.split('?').next().unwrap_or_default();
    let status = request.status.map_or("no answer".to_owned(), |status| status.to_string());
    let played = match &request.played {
        Some((scenario, step)) => {
            let instead =
                if names_unknown(&request.body, known) { ", as there is none as named" } else { "" };
            format!("  {scenario}, step {}{instead}", step + 1)
        }
        None => String::new(),
    };
    one_line(&format!("{:>4}  {} {path}  {status}{played}", request.number, request.method))
}

fn read_keys(path: &Path) -> Result<Vec<String>, ActionError> {
    let shown = path.display();
    let wrong = |what: String| ActionError::new(Code::ValidationError, what);
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(KEYS_BYTES_MAX + 1).read_to_string(&mut text))
        .map_err(|error| wrong(format!("Cannot read the keys in {shown}: {}.", error.kind())))?;
    if text.len() as u64 > KEYS_BYTES_MAX {
        return Err(wrong(format!("{shown} is longer than {KEYS_BYTES_MAX} bytes.")));
    }
    let keys: Vec<String> =
        text.lines().map(str::trim).filter(|key| !key.is_empty()).map(str::to_owned).collect();
    if keys.is_empty() {
        return Err(wrong(format!("{shown} holds no key; write one in each line.")));
    }
    Ok(keys)
}

/// Why it does not start, with all that led to it.
fn refused(error: ProviderError) -> ActionError {
    let code = match &error {
        ProviderError::Listen { source, .. } if source.kind() == ErrorKind::AddrInUse => Code::Conflict,
        ProviderError::Runtime { .. } => Code::InternalError,
        _ => Code::ValidationError,
    };
    let causes: Vec<String> = std::iter::successors(Some(&error as &dyn Error), |error| (*error).source())
        .map(|error| error.to_string().trim_end().to_owned())
        .collect();
    let more = match &error {
        ProviderError::NotLoopback { .. } => {
            "; it keeps the keys that it is sent, so only this machine may reach it"
        }
        ProviderError::Listen { .. } => "; --listen 127.0.0.1:0 takes any free port",
        _ => "",
    };
    ActionError::new(code, format!("Cannot start: {}{more}.", causes.join(": ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_told_without_its_key_its_query_and_its_content() {
        let request = Recorded {
            number: 7,
            method: "POST".into(),
            path: "/v1/responses?api_key=planted".into(),
            headers: vec![("authorization".into(), "Bearer planted".into())],
            body: "planted".into(),
            played: Some(("shell".into(), 1)),
            status: Some(200),
        };
        let known = scenarios(None).unwrap();
        assert_eq!(line(&request, &known), "   7  POST /v1/responses  200  shell, step 2");
        let silent = Recorded { played: None, status: None, path: "/v1/\u{1b}[31m".into(), ..request };
        let told = line(&silent, &known);
        assert!(told.ends_with("  no answer") && !told.contains('\u{1b}'), "{told:?}");
    }

    #[test]
    fn a_marker_that_names_no_scenario_is_noticed() {
        let known = scenarios(None).unwrap();
        for (text, unknown) in [
            ("no marker", false),
            ("[[scenario:text]]", false),
            ("[[scenario:shell touch a.txt]]", false),
            ("[[scenario:nope]] [[scenario:shell\\n touch]]", false),
            ("[[scenario:open", false),
            ("[[scenario:nope]]", true),
            ("[[scenario:shell]] [[scenario:shel touch a.txt]]", true),
        ] {
            assert_eq!(names_unknown(text, &known), unknown, "{text}");
        }
    }

    #[test]
    fn keys_are_lines_and_there_is_at_least_one() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("keys");
        std::fs::write(&file, "one\n\n  two \r\n").unwrap();
        assert_eq!(read_keys(&file).unwrap(), ["one", "two"]);
        for wrong in [String::new(), "\n \n".to_owned(), "x".repeat(64 * 1024 + 1)] {
            std::fs::write(&file, &wrong).unwrap();
            assert_eq!(*read_keys(&file).unwrap_err().code(), Code::ValidationError);
        }
        assert!(read_keys(&directory.path().join("none")).is_err());
    }
}
