//! The `runyard` binary: parses, wires and runs.

mod approvals;
mod artifacts;
mod audit_bundle;
mod backup;
mod builtin;
mod changes;
mod config_show;
mod configuration;
mod database;
mod demo;
mod doctor;
mod elsewhere;
mod gc;
mod home;
mod hub;
mod hub_client;
mod hub_file;
mod hub_here;
mod init;
mod installation;
mod kept_results;
mod log;
mod mcp;
mod nouns;
mod open;
mod patches;
mod projects;
mod redact;
mod replay;
mod run;
mod secrets;
mod trust;
mod unseen;
mod up;
mod views;
mod wiring;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use configuration::Configuration;
use runyard::{ActionError, Code, Runtime};
use runyard_surfaces::cli::{ActionCommands, Cli, block_on, local_actor, show_failure};

/// Calls are made of many small allocations; this allocator halves what they cost.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    // The supervisor of a run's process: nothing else of this program is needed for it.
    if arguments.first().is_some_and(|command| command == runyard_edge::custody::COMMAND) {
        return ExitCode::from(runyard_edge::custody::supervise(arguments.into_iter().skip(1)));
    }
    runyard_edge::custody::look_after_git();
    let is = |word: &str| arguments.first().is_some_and(|command| command == word);
    runyard::start_logging(if is("up") { "info" } else { "warn" });
    // Whatever may have to be a hub works on all cores.
    let serves = is("up") || is("run") || is("chat") || is("init") || is("mcp");
    let exit = run(arguments.clone(), serves).unwrap_or_else(|error| {
        let error = ActionError::new(Code::ValidationError, format!("Cannot start: {error:#}."));
        show_failure(&arguments, error)
    });
    ExitCode::from(exit)
}

fn run(arguments: Vec<OsString>, serves: bool) -> anyhow::Result<u8> {
    let wired = home::Home::find().and_then(|home| {
        let configuration = Configuration::of_data(&home).or_else(|problems| {
            // A run can be ended and an approval answered whatever became of the file since the hub read it.
            if !hub_file::is_claimed(&home) || serves {
                return Err(problems);
            }
            let _ = writeln!(std::io::stderr(), "not valid, so only the running hub is asked: {problems}");
            Configuration::without_files(&home)
        });
        let configuration = configuration.map_err(|problems| anyhow::anyhow!("{problems}"))?;
        Ok((wiring::command_runtime(&home, &configuration)?, home))
    });
    let is_switch = |action: &str, flag: &str| {
        wired.as_ref().is_ok_and(|(runtime, _)| nouns::is_switch(runtime, action, flag))
    };
    let arguments = nouns::rewritten(arguments, &is_switch);
    let (runtime, home) = match wired {
        // Whoever asks for help because the configuration is broken gets it all the same, and so do commands that tell why.
        Err(_) if asks_for_help(&arguments) => {
            (Runtime::builder().build()?, home::Home::find().unwrap_or_else(|_| home::Home::unknown()))
        }
        wired => wired?,
    };
    let mut extra = vec![
        up::command(home.clone()),
        open::command(home.clone()),
        mcp::command(home.clone()),
        run::command(home.clone()),
        run::chat::command(home.clone()),
        replay::command(home.clone()),
        approvals::command(home.clone()),
        artifacts::command(home.clone()),
        log::command(home.clone()),
        config_show::command(home.clone()),
        trust::command(home.clone()),
        doctor::command(home.clone()),
        init::command(home.clone()),
        gc::command(home.clone()),
        redact::command(home.clone()),
        secrets::command(home.clone()),
        demo::command(home.clone()),
    ];
    extra.extend(backup::commands(&home));
    extra.extend(changes::commands(&home));
    extra.extend(nouns::commands(&runtime, &home));
    let cli = Cli {
        name: "runyard".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        about: "Runs AI agents the way a good team runs production jobs.".to_owned(),
        actions: ActionCommands::BehindCall,
        extra,
        runtime,
        actor: local_actor(),
        elsewhere: Some(Box::new(elsewhere::OnTheHub::new(home, for_people(&arguments)))),
    };
    Ok(block_on(serves, cli.run(arguments))?)
}

/// Whether people read what is printed.
fn for_people(arguments: &[OsString]) -> bool {
    let texts: Vec<&str> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    let form = texts.iter().enumerate().rev().find_map(|(at, text)| match text.strip_prefix("--output") {
        Some("") => texts.get(at + 1).copied(),
        Some(rest) => rest.strip_prefix('='),
        None => None,
    });
    // A model's tool calls are answered for the model.
    views::is_text(form) && texts.first().is_none_or(|command| *command != "tools")
}

fn asks_for_help(arguments: &[OsString]) -> bool {
    let words = ["-h", "--help", "help", "-V", "--version", "config", "doctor", "trust", "audit", "restore"];
    let asks = |argument: &OsString| words.iter().any(|word| argument == word);
    arguments.first().is_none_or(asks) || arguments.iter().any(|argument| argument == "--help")
}
