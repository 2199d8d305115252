//! An application: its actions and what they need, on every surface.

use std::any::Any;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Command;
use runyard_actions::testing::TestApp;
use runyard_actions::{
    ActionError, BuildError, Exposure, Hook, IdempotencyStore, IntoAction, Middleware, PermissionChecker,
    Runtime, RuntimeBuilder,
};
use runyard_domain::Code;
use runyard_surfaces::cli::{
    ActionCommands, Cli, ExtraCommand, block_on, cancelled_by_signal, local_actor, show_failure,
};
use runyard_surfaces::http::{Launch, LaunchError, announce, launch_flags};
use runyard_surfaces::mcp::{Changes, McpApi, serve_stdio};

/// An application in the making.
pub struct App {
    name: String,
    version: String,
    about: String,
    builder: RuntimeBuilder,
    changes: Changes,
}

impl App {
    /// An application without actions. The name is the program's.
    pub fn new(name: impl Into<String>, about: impl Into<String>) -> Self {
        App {
            name: name.into(),
            version: "0.0.0".to_owned(),
            about: about.into(),
            builder: Runtime::builder(),
            changes: Changes::default(),
        }
    }

    /// The application's version.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Adds an action.
    #[must_use]
    pub fn action(self, action: impl IntoAction) -> Self {
        self.with(|builder| builder.action(action))
    }

    /// Adds several actions, such as those declared in a file.
    #[must_use]
    pub fn actions<A: IntoAction>(self, actions: impl IntoIterator<Item = A>) -> Self {
        self.with(|builder| builder.actions(actions))
    }

    /// Adds a service that handlers get with `ctx.service::<T>()`.
    #[must_use]
    pub fn service<T: Any + Send + Sync>(self, service: T) -> Self {
        self.with(|builder| builder.service(service))
    }

    /// Says which destructive actions are offered over HTTP, MCP and to language models.
    #[must_use]
    pub fn exposure(self, exposure: Exposure) -> Self {
        self.with(|builder| builder.exposure(exposure))
    }

    /// Asks this checker before every call.
    #[must_use]
    pub fn permission_checker(self, checker: impl PermissionChecker + 'static) -> Self {
        self.with(|builder| builder.permission_checker(checker))
    }

    /// Adds a middleware inside those added before.
    #[must_use]
    pub fn middleware(self, middleware: impl Middleware + 'static) -> Self {
        self.with(|builder| builder.middleware(middleware))
    }

    /// Adds a hook.
    #[must_use]
    pub fn hook(self, hook: impl Hook + 'static) -> Self {
        self.with(|builder| builder.hook(hook))
    }

    /// Keeps idempotency keys there; by default in memory.
    #[must_use]
    pub fn idempotency(self, store: impl IdempotencyStore + 'static) -> Self {
        self.with(|builder| builder.idempotency(store))
    }

    /// Tells MCP clients what changed wherever these changes are told.
    #[must_use]
    pub fn changes(mut self, changes: Changes) -> Self {
        self.changes = changes;
        self
    }

    fn with(mut self, change: impl FnOnce(RuntimeBuilder) -> RuntimeBuilder) -> Self {
        self.builder = change(self.builder);
        self
    }

    /// The application's runtime, to be called from Rust or put together with others.
    pub fn runtime(self) -> Result<Runtime, BuildError> {
        self.builder.build()
    }

    /// The application as its tests call it.
    #[track_caller]
    pub fn testing(self) -> TestApp {
        TestApp::new(self.builder)
    }

    /// Runs the program: commands for all actions, `json`, `serve`, and the tools around them.
    pub fn main(self) -> ExitCode {
        let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
        let serves = arguments.first().is_some_and(|command| command == "serve");
        crate::start_logging(if serves { "info" } else { "warn" });
        let exit =
            self.run(arguments.clone(), serves).unwrap_or_else(|error| show_failure(&arguments, error));
        ExitCode::from(exit)
    }

    fn run(self, arguments: Vec<OsString>, serves: bool) -> Result<u8, ActionError> {
        let App { name, version, about, builder, changes } = self;
        let cannot_start =
            |reason: String| ActionError::new(Code::ValidationError, format!("Cannot start: {reason}."));
        let runtime = builder.build().map_err(|error| cannot_start(error.to_string()))?;
        let mcp = McpApi::new(&name, &version, runtime.clone()).about(&about).changes(changes);
        let extra = vec![serve_command(mcp.clone()), mcp_command(mcp)];
        let actions = ActionCommands::TopLevel;
        let actor = local_actor();
        let cli = Cli { name, version, about, actions, runtime, actor, extra, elsewhere: None };
        block_on(serves, cli.run(arguments)).map_err(|error| cannot_start(error.to_string()))
    }
}

fn serve_command(mcp: McpApi) -> ExtraCommand {
    let command = Command::new("serve")
        .about("Serve the actions over HTTP and MCP, and the dev page")
        .args(launch_flags("127.0.0.1:4711"));
    let run = move |matches: clap::ArgMatches| {
        let served = async move {
            let launch = Launch::from_flags(&matches, token_file(mcp.name())?);
            let token_file = launch.token_file.clone();
            let ready = |url: &str| announce(url, &token_file, None);
            let done = launch.run(&mcp, cancelled_by_signal(), ready).await;
            done.map(|()| 0_u8).map_err(LaunchError::into_action_error)
        };
        Box::pin(served) as runyard_surfaces::cli::ExtraRun
    };
    ExtraCommand { command, run: Box::new(run) }
}

fn mcp_command(mcp: McpApi) -> ExtraCommand {
    let command =
        Command::new("mcp").about("Serve the actions to an MCP client on standard input and output");
    let run = move |_: clap::ArgMatches| {
        let served =
            async move { serve_stdio(&mcp, local_actor(), cancelled_by_signal()).await.map(|()| 0_u8) };
        Box::pin(served) as runyard_surfaces::cli::ExtraRun
    };
    ExtraCommand { command, run: Box::new(run) }
}

/// `~/.NAME/token`.
fn token_file(name: &str) -> Result<PathBuf, ActionError> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    let home =
        home.ok_or_else(|| ActionError::new(Code::ValidationError, "Cannot start: HOME is not set."))?;
    Ok(PathBuf::from(home).join(format!(".{name}")).join("token"))
}
