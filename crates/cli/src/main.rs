//! The `runyard` binary: parses, wires and runs.

mod builtin;
mod home;
mod up;
mod wiring;

use std::ffi::OsString;
use std::process::ExitCode;

use runyard::{ActionError, Code};
use runyard_surfaces::cli::{ActionCommands, Cli, local_actor, show_failure};

/// Calls are made of many small allocations; this allocator halves what they cost.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    runyard::start_logging();
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let exit = run(arguments.clone()).unwrap_or_else(|error| {
        let error = ActionError::new(Code::ValidationError, format!("Cannot start: {error:#}."));
        show_failure(&arguments, error)
    });
    ExitCode::from(exit)
}

fn run(arguments: Vec<OsString>) -> anyhow::Result<u8> {
    let home = home::Home::find()?;
    let runtime = wiring::runtime(&home)?;
    let cli = Cli {
        name: "runyard".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        about: "Runs AI agents the way a good team runs production jobs.".to_owned(),
        actions: ActionCommands::BehindCall,
        extra: vec![up::command(home, runtime.clone())],
        runtime,
        actor: local_actor(),
    };
    let mut tokio = if arguments.first().is_some_and(|command| command == "up") {
        tokio::runtime::Builder::new_multi_thread()
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    let tokio = tokio.enable_all().build()?;
    let exit = tokio.block_on(cli.run(arguments));
    // A prompt that still waits for a line must not hold up the end.
    tokio.shutdown_background();
    Ok(exit)
}
