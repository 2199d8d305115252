//! `tools`: the actions as definitions for a language model, and executing the calls that it makes.

use std::io::Write;
use std::sync::Arc;

use clap::{Arg, ArgAction, ArgMatches, Command};
use runyard_actions::{ActionError, Envelope, Invocation, Issue};
use runyard_domain::Surface;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::call::read_limited;
use super::output::{Mode, exit_after};
use super::terminal_text::json_for_stdout;
use super::{Cli, cancelled_by_signal, output_flag, print_json, refuse};
use crate::json_text::json_reason;
use crate::llm_tools::{Format, LlmTools, ToolReply, ToolRequest, definitions};

/// So many calls may be read at once.
const CALLS_MAX: usize = 1000;

pub(super) fn command() -> Command {
    let format = || {
        Arg::new("format")
            .long("format")
            .value_name("FORMAT")
            .required(true)
            .value_parser(Format::ALL.map(Format::as_str))
            .help("Whose tools")
    };
    let call = Command::new("call")
        .about("Execute tool calls that a model made: read from standard input, one reply a line")
        .long_about(
            "Execute tool calls that a model made. Standard input holds one call, several one after the other, or a list of \
             them, each in the shape that the provider gives it. Every reply is one line: the message for the model, and the \
             whole envelope. Exits with the code of the first failure.",
        )
        .arg(format())
        .arg(
            Arg::new("confirm")
                .long("confirm")
                .action(ArgAction::SetTrue)
                .help("Confirm every one of them; without it those that need a confirmation fail"),
        );
    Command::new("tools")
        .about("Print the actions as tools for a language model, or execute its tool calls")
        .long_about(
            "Print the actions as tools for a language model, as JSON that can stand in a request as it is. For OpenAI they \
             are strict wherever the schema can be.",
        )
        .args_conflicts_with_subcommands(true)
        .subcommand_negates_reqs(true)
        .arg(format())
        .arg(output_flag().value_parser(["json"]).help("How to print them; always json"))
        .subcommand(call)
}

pub(super) async fn run(cli: &Cli, matches: &ArgMatches, mode: Mode) -> u8 {
    let (call, named) = match matches.subcommand() {
        Some((_, call)) => (Some(call), call),
        None => (None, matches),
    };
    let word = named.get_one::<String>("format").map(String::as_str).unwrap_or_default();
    let format = match word.parse::<Format>() {
        Ok(format) => format,
        Err(unknown) => return refuse(mode, None, Issue::at("format", unknown.to_string())),
    };
    match call {
        None => print_json(&definitions(&cli.runtime, &cli.actor, format)),
        Some(call) => match read_calls(format, call.get_flag("confirm")) {
            Ok(requests) => execute_all(cli, requests).await,
            Err(error) => super::show(mode, &Envelope::refusal(Surface::AiSdk, None, error)),
        },
    }
}

/// All calls, or what is wrong with the first that is none: nothing is done of what is only half understood.
fn read_calls(format: Format, confirm: bool) -> Result<Vec<ToolRequest>, ActionError> {
    let invalid = |issue: Issue| ActionError::invalid_input(vec![issue]);
    let text = read_limited(std::io::stdin(), "standard input").map_err(invalid)?;
    let mut calls = Vec::new();
    for value in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
        match value {
            Ok(Value::Array(several)) => calls.extend(several),
            Ok(call) => calls.push(call),
            Err(error) => {
                let (line, column, reason) = (error.line(), error.column(), json_reason(&error));
                let message = format!("Not valid JSON at line {line}, column {column}: {reason}.");
                return Err(invalid(Issue::root(message)));
            }
        }
    }
    if calls.is_empty() || calls.len() > CALLS_MAX {
        let message = format!("Expected 1 to {CALLS_MAX} tool calls on standard input.");
        return Err(invalid(Issue::root(message)));
    }
    let confirmed = |call| {
        let mut request = ToolRequest::new(format, call)?;
        request.options.confirm = confirm;
        Ok(request)
    };
    calls.into_iter().map(confirmed).collect()
}

async fn execute_all(cli: &Cli, requests: Vec<ToolRequest>) -> u8 {
    let cancel = cancelled_by_signal();
    // This process ends before anybody could come back with an answer.
    let tools = LlmTools::without_approvals(cli.runtime.clone());
    let mut exit = 0;
    for request in requests {
        let reply = execute(cli, &tools, request, cancel.clone()).await;
        let line = json_for_stdout(serde_json::json!(reply).to_string()) + "\n";
        let mut stdout = std::io::stdout();
        let written = stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush());
        if written.is_err() {
            return exit_after(written, exit);
        }
        exit = if exit == 0 { reply.envelope.exit_code() } else { exit };
        if cancel.is_cancelled() {
            break;
        }
    }
    exit
}

async fn execute(cli: &Cli, tools: &LlmTools, request: ToolRequest, cancel: CancellationToken) -> ToolReply {
    let cancelled = cancel.clone();
    let invoke = |action, invocation: Invocation| async move {
        // Only what is a tool of this actor's is asked for elsewhere.
        if let (Some(elsewhere), Some(action)) = (&cli.elsewhere, &action) {
            let envelope = tokio::select! {
                envelope = elsewhere.invoke(action, &invocation) => envelope,
                () = cancelled.cancelled() => {
                    Some(Envelope::refusal(Surface::AiSdk, Some(action.name()), ActionError::cancelled()))
                }
            };
            if let Some(envelope) = envelope {
                return envelope;
            }
        }
        cli.runtime.invoke(invocation).await
    };
    tools.execute_by(invoke, Arc::clone(&cli.actor), request, cancel).await
}
