//! `runyard-demo-provider`: the provider by itself, until it is stopped.

use std::{
    error::Error,
    io::{self, Write},
    iter,
    net::SocketAddr,
    path::PathBuf,
    process::ExitCode,
};

use clap::{Arg, Command, value_parser};
use runyard_demo_provider::{DemoProvider, Options};

fn command() -> Command {
    Command::new("runyard-demo-provider")
        .about("A model provider on loopback with scripted scenarios; prints its URL")
        .arg(
            Arg::new("listen")
                .long("listen")
                .value_name("ADDRESS")
                .value_parser(value_parser!(SocketAddr))
                .default_value("127.0.0.1:0")
                .help("A loopback address; port 0 chooses a free one"),
        )
        .arg(
            Arg::new("scenarios")
                .long("scenarios")
                .value_name("DIRECTORY")
                .value_parser(value_parser!(PathBuf))
                .help("More scenarios, NAME.toml"),
        )
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match serve().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let causes: Vec<_> =
                iter::successors(Some(&*error), |error| (*error).source()).map(ToString::to_string).collect();
            // Nobody is left to tell when stderr is gone too.
            let _ = writeln!(io::stderr(), "error: {}", causes.join(": "));
            ExitCode::FAILURE
        }
    }
}

async fn serve() -> Result<(), Box<dyn Error>> {
    let mut arguments = command().get_matches();
    let mut options = Options { scenarios: arguments.remove_one("scenarios"), ..Options::default() };
    if let Some(listen) = arguments.remove_one("listen") {
        options.listen = listen;
    }
    let provider = DemoProvider::start_with(options).await?;
    writeln!(io::stdout(), "{}", provider.url())?;
    tokio::signal::ctrl_c().await?;
    Ok(())
}
