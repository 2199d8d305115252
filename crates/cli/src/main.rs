//! The `runyard` binary: parses, wires and runs.

mod builtin;
mod database;
mod home;
mod installation;
mod kept_results;
mod log;
mod redact;
mod up;
mod wiring;

use std::ffi::OsString;
use std::process::ExitCode;

use runyard::{ActionError, Code, Runtime};
use runyard_surfaces::cli::{ActionCommands, Cli, block_on, local_actor, show_failure};

/// Calls are made of many small allocations; this allocator halves what they cost.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let serves = arguments.first().is_some_and(|command| command == "up");
    runyard::start_logging(if serves { "info" } else { "warn" });
    let exit = run(arguments.clone(), serves).unwrap_or_else(|error| {
        let error = ActionError::new(Code::ValidationError, format!("Cannot start: {error:#}."));
        show_failure(&arguments, error)
    });
    ExitCode::from(exit)
}

fn run(arguments: Vec<OsString>, serves: bool) -> anyhow::Result<u8> {
    let wired = home::Home::find().and_then(|home| Ok((wiring::runtime(&home)?, home)));
    let (runtime, home) = match wired {
        // Whoever asks for help because the configuration is broken gets it all the same.
        Err(_) if asks_for_help(&arguments) => (Runtime::builder().build()?, home::Home::unknown()),
        wired => wired?,
    };
    let cli = Cli {
        name: "runyard".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        about: "Runs AI agents the way a good team runs production jobs.".to_owned(),
        actions: ActionCommands::BehindCall,
        extra: vec![up::command(home.clone()), log::command(home.clone()), redact::command(home)],
        runtime,
        actor: local_actor(),
    };
    Ok(block_on(serves, cli.run(arguments))?)
}

fn asks_for_help(arguments: &[OsString]) -> bool {
    let asks =
        |argument: &OsString| ["-h", "--help", "help", "-V", "--version"].iter().any(|flag| argument == flag);
    arguments.first().is_none_or(asks) || arguments.iter().any(|argument| argument == "--help")
}
