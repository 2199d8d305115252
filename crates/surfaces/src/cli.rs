//! The command line: every action a command with flags from its schema, and the tools around them.
//!
//! The path of one command: [`Cli::run`] finds the command, `flags` turns arguments into an input, the runtime invokes,
//! `output` shows the envelope, and its exit code is the process's.

mod call;
mod flags;
mod interrupts;
mod llm_tools;
mod output;
mod table;
mod terminal_text;
mod tools;

use std::ffi::OsString;
use std::future::Future;
use std::io::Write;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use clap::{Arg, ArgMatches, Command};
use runyard_actions::{Action, ActionError, Envelope, Invocation, Issue, Runtime, closest};
use runyard_domain::{Actor, Code, Surface};
use serde_json::Value;

pub use self::interrupts::{Interrupts, cancelled_by_signal};
pub use self::output::styled;
use self::output::{Mode, show};
pub(crate) use self::terminal_text::json_printable;
pub use self::terminal_text::{one_line, printable};

/// An extra command of an application.
pub struct ExtraCommand {
    /// Its clap definition.
    pub command: Command,
    /// Runs it with what was parsed and gives the exit code.
    pub run: Box<dyn FnOnce(ArgMatches) -> ExtraRun>,
}

/// What an extra command runs.
pub type ExtraRun = Pin<Box<dyn Future<Output = Result<u8, ActionError>>>>;

/// Where action commands stand on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionCommands {
    /// `app task-create …` as well as `app call task-create …`.
    TopLevel,
    /// Only `app call task-create …`.
    BehindCall,
}

/// Another process that may run actions in this one's place.
#[async_trait]
pub trait Elsewhere {
    /// Runs it there; nothing when it is to be run here.
    async fn invoke(&self, action: &Action, invocation: &Invocation) -> Option<Envelope>;
}

/// The command line of an application.
pub struct Cli {
    /// The program's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it is, in a sentence.
    pub about: String,
    /// Where action commands stand.
    pub actions: ActionCommands,
    /// The actions.
    pub runtime: Runtime,
    /// Who calls.
    pub actor: Arc<Actor>,
    /// Further commands.
    pub extra: Vec<ExtraCommand>,
    /// Where actions run, if not here.
    pub elsewhere: Option<Box<dyn Elsewhere + Send + Sync>>,
}

/// The names that an application's own command line uses; an action of such a name is only reached by `call`.
pub const OWN_COMMANDS: [&str; 10] =
    ["actions", "call", "completions", "diff", "docs", "help", "json", "lint", "manifest", "tools"];

impl Cli {
    /// Runs one command line (without the program's name) and gives the exit code. Prints everything itself.
    pub async fn run(mut self, arguments: impl IntoIterator<Item = OsString>) -> u8 {
        let arguments: Vec<OsString> = arguments.into_iter().collect();
        let mode = Mode::asked_for(&arguments);
        let texts: Result<Vec<String>, _> = arguments.into_iter().map(OsString::into_string).collect();
        let Ok(mut arguments) = texts else {
            return refuse(mode, None, Issue::root("An argument is not valid UTF-8."));
        };
        if arguments.first().is_some_and(|command| command == "help") {
            // `help x` is `x --help`.
            arguments.remove(0);
            arguments.push("--help".to_owned());
        }
        let (command, rest) = match arguments.split_first() {
            None => return print(&self.root().render_long_help().ansi().to_string()),
            Some((command, rest)) => (command.as_str(), rest),
        };
        match command {
            "-h" | "--help" => print(&self.root().render_long_help().ansi().to_string()),
            "-V" | "--version" => print(&format!("{} {}\n", self.name, self.version)),
            "call" => match rest.split_first() {
                Some((action, rest)) if !action.starts_with('-') => {
                    call::run(&self, action, rest, mode).await
                }
                _ if rest.iter().any(|argument| argument == "-h" || argument == "--help") => {
                    let mut call = call_command().bin_name(format!("{} call", self.name));
                    print(&call.render_long_help().ansi().to_string())
                }
                _ => refuse(mode, None, Issue::root("Name the action to call; \"actions\" lists them.")),
            },
            _ if self.extra.iter().any(|extra| extra.command.get_name() == command) => {
                self.run_extra(command, &arguments, mode).await
            }
            _ if OWN_COMMANDS.contains(&command) => self.run_own(&arguments, mode).await,
            _ if self.actions == ActionCommands::TopLevel && !command.starts_with('-') => {
                call::run(&self, command, rest, mode).await
            }
            _ => refuse(mode, None, Issue::root(self.unknown(command))),
        }
    }

    async fn run_extra(&mut self, name: &str, arguments: &[String], mode: Mode) -> u8 {
        let Some(position) = self.extra.iter().position(|extra| extra.command.get_name() == name) else {
            return 1;
        };
        let ExtraCommand { command, run } = self.extra.swap_remove(position);
        let command = command.bin_name(format!("{} {name}", self.name)).arg(output_flag().global(true));
        match command.try_get_matches_from(arguments) {
            Err(error) => stopped(mode, None, &error),
            Ok(matches) => match run(matches).await {
                Ok(exit) => exit,
                Err(error) => show(mode, &Envelope::refusal(Surface::Cli, None, error)),
            },
        }
    }

    async fn run_own(&self, arguments: &[String], mode: Mode) -> u8 {
        let command = Command::new(self.name.clone()).bin_name(self.name.clone()).no_binary_name(true);
        let command = command.subcommands(tools::commands());
        match command.try_get_matches_from(arguments) {
            Err(error) => stopped(mode, None, &error),
            Ok(matches) => match matches.subcommand() {
                Some((name, matches)) => tools::run(self, name, matches, mode).await,
                None => print(&self.root().render_long_help().ansi().to_string()),
            },
        }
    }

    fn unknown(&self, command: &str) -> String {
        let (commands, actions) = (self.command_names(), self.action_names());
        let known = [commands, actions.clone()].concat();
        let hint = match closest(&flags::kebab(command), known.iter().map(String::as_str)) {
            Some(action) if actions.iter().any(|known| known == action) => {
                format!("Did you mean \"call {action}\"?")
            }
            Some(command) => format!("Did you mean \"{command}\"?"),
            None => format!("\"{} --help\" lists the commands.", self.name),
        };
        format!("There is no command \"{command}\". {hint}")
    }

    /// What stands before the name of an action on the command line.
    fn action_program(&self) -> String {
        match self.actions {
            ActionCommands::TopLevel => self.name.clone(),
            ActionCommands::BehindCall => format!("{} call", self.name),
        }
    }

    fn command_names(&self) -> Vec<String> {
        let extra = self.extra.iter().map(|extra| extra.command.get_name());
        OWN_COMMANDS.into_iter().chain(extra).map(str::to_owned).collect()
    }

    fn action_names(&self) -> Vec<String> {
        self.runtime.listed(Surface::Cli, &self.actor).map(|action| flags::kebab(action.name())).collect()
    }

    /// The whole command line, for help and completions. Action commands have their flags only for completions.
    fn root(&self) -> Command {
        let mut root =
            Command::new(self.name.clone())
                .version(self.version.clone())
                .about(self.about.clone())
                .disable_help_subcommand(true)
                .subcommand_required(true)
                .subcommands(self.extra.iter().map(|extra| extra.command.clone()))
                .subcommand(call_command())
                // An extra command of the same name stands in its place.
                .subcommands(tools::commands().into_iter().filter(|tool| {
                    self.extra.iter().all(|extra| extra.command.get_name() != tool.get_name())
                }));
        if self.actions == ActionCommands::TopLevel {
            root = root.subcommands(self.action_summaries());
        }
        root
    }

    fn action_summaries(&self) -> Vec<Command> {
        let shown = self.runtime.listed(Surface::Cli, &self.actor);
        let own = |name: &str| {
            OWN_COMMANDS.contains(&name) || self.extra.iter().any(|extra| extra.command.get_name() == name)
        };
        shown
            .filter(|action| !own(&flags::kebab(action.name())))
            .map(|action| {
                let first_line = action.spec().description.lines().next().unwrap_or_default().to_owned();
                Command::new(flags::kebab(action.name())).about(first_line).display_order(0)
            })
            .collect()
    }
}

fn call_command() -> Command {
    Command::new("call")
        .about("Call an action: call NAME [--flag value …]; call NAME --help shows its flags")
        .disable_help_flag(true)
        .arg(Arg::new("name").value_name("NAME").help("The action, in snake or kebab case"))
        .arg(
            Arg::new("flags")
                .value_name("FLAGS")
                .num_args(0..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true),
        )
}

fn output_flag() -> Arg {
    Arg::new("output")
        .long("output")
        .value_name("FORMAT")
        .value_parser(["text", "json", "ndjson"])
        .help("How to show the result; text on a terminal, else json")
}

/// Shows why an application cannot even start, in the form that its command line asks for, and gives the exit code.
pub fn show_failure(arguments: &[OsString], error: ActionError) -> u8 {
    show(Mode::asked_for(arguments), &Envelope::refusal(Surface::Cli, None, error))
}

/// Shows what an extra command found, in the form that its command line asks for, and gives the exit code.
pub fn show_data(matches: &ArgMatches, data: Value) -> u8 {
    let mode = Mode::named(matches.get_one::<String>("output").map(String::as_str));
    show(mode, &Envelope::of_data(Surface::Cli, data))
}

/// Compares two manifests as `diff` does, for a program whose own `diff` stands in its place.
pub fn compare_manifests(matches: &ArgMatches, old: &str, new: &str) -> u8 {
    tools::diff(old, new, Mode::named(matches.get_one::<String>("output").map(String::as_str)))
}

/// Shows a command line that does not parse.
fn refuse(mode: Mode, action: Option<&str>, issue: Issue) -> u8 {
    let error = ActionError::new(Code::ValidationError, "Invalid command line.").with_issues(vec![issue]);
    show(mode, &Envelope::refusal(Surface::Cli, action, error))
}

/// Shows what clap stopped for: help and version are no errors.
fn stopped(mode: Mode, action: Option<&str>, error: &clap::Error) -> u8 {
    use clap::error::ErrorKind;
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            return print(&error.render().ansi().to_string());
        }
        // Half a command is wrong, and its help says how it goes on.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand if mode == Mode::Text => {
            let usage = Code::ValidationError.row().exit;
            return print(&error.render().ansi().to_string()).max(usage);
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            return refuse(mode, action, Issue::root("Name a subcommand; --help lists them."));
        }
        _ => {}
    }
    refuse(mode, action, Issue::root(said(&error.render().to_string())))
}

/// What clap says, as one sentence with its tips: the usage lines belong to help.
fn said(rendered: &str) -> String {
    let text = rendered.strip_prefix("error: ").unwrap_or(rendered);
    let text = text.split("\n\nUsage:").next().unwrap_or_default().split("\n\nFor more information").next();
    let lines: Vec<&str> =
        text.unwrap_or_default().lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut characters = lines.join("; ").replace(":; ", ": ").chars().collect::<Vec<_>>();
    if let Some(first) = characters.first_mut() {
        *first = first.to_ascii_uppercase();
    }
    characters.push('.');
    characters.into_iter().collect()
}

/// Prints a text that may have styles, which are kept on a terminal only.
fn print(text: &str) -> u8 {
    let mut stdout = std::io::stdout();
    let written = if output::styled(&stdout) {
        stdout.write_all(text.as_bytes())
    } else {
        stdout.write_all(output::without_styles(text).as_bytes())
    };
    output::exit_after(written.and_then(|()| stdout.flush()), 0)
}

/// Prints JSON that is no envelope.
fn print_json(json: &serde_json::Value) -> u8 {
    print(&(terminal_text::json_for_stdout(format!("{json:#}")) + "\n"))
}

/// Runs a command line to its end: a server on all cores, a single command on one, where it starts fastest.
pub fn block_on(serves: bool, run: impl Future<Output = u8>) -> std::io::Result<u8> {
    let mut builder = match serves {
        true => tokio::runtime::Builder::new_multi_thread(),
        false => tokio::runtime::Builder::new_current_thread(),
    };
    let executor = builder.enable_all().build()?;
    let exit = executor.block_on(run);
    // A prompt that still waits for a line must not hold up the end.
    executor.shutdown_background();
    Ok(exit)
}

/// The person at this terminal.
pub fn local_actor() -> Arc<Actor> {
    let name = ["USER", "LOGNAME"]
        .into_iter()
        .find_map(|key| std::env::var(key).ok())
        .filter(|name| !name.is_empty());
    Arc::new(Actor::owner(name.unwrap_or_else(|| "local".to_owned())))
}
