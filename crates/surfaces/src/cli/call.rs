//! Calling one action from the command line.

use std::io::{IsTerminal, Read, Write};
use std::sync::Arc;

use runyard_actions::{
    Action, ActionError, Envelope, Invocation, InvocationEvent, InvocationOptions, InvocationStream, Issue,
    closest,
};
use runyard_domain::{Code, Surface};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::flags::{Asked, action_command, asked, kebab};
use super::output::{Follower, Mode, show};
use super::terminal_text::one_line;
use super::{Cli, cancelled_by_signal, print_json, refuse, stopped};
use crate::json_text::json_reason;

/// Standard input or a file may hold so much.
const JSON_BYTES_MAX: u64 = 2 * 1024 * 1024;

pub(super) async fn run(cli: &Cli, asked_name: &str, arguments: &[String], mode: Mode) -> u8 {
    // Names are snake case; the command line takes both spellings.
    let name = asked_name.replace('-', "_");
    let Some(action) =
        cli.runtime.listed(Surface::Cli, &cli.actor).find(|action| action.name() == name).cloned()
    else {
        return unlisted(cli, asked_name, &name, mode).await;
    };
    let matches = match action_command(&cli.action_program(), &action).try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => return stopped(mode, Some(&name), &error),
    };
    let asked = asked(&action, &matches);
    if asked.schema {
        return print_json(action.spec().input.json());
    }
    let (input, options) = match read(asked) {
        Ok(call) => call,
        Err(issue) => return refuse(mode, Some(&name), issue),
    };
    let cancel = cancelled_by_signal();
    let invocation = Invocation::new(&action, input, Surface::Cli, Arc::clone(&cli.actor))
        .options(options)
        .cancel_with(cancel.clone());
    let envelope = invoke(cli, &action, invocation, mode, &cancel).await;
    show(mode, &envelope)
}

/// An action that this surface does not list: the runtime says why, and a near name is suggested.
async fn unlisted(cli: &Cli, asked_name: &str, name: &str, mode: Mode) -> u8 {
    let known_elsewhere = cli.runtime.actions().any(|action| action.name() == name);
    let asked = if known_elsewhere { name } else { asked_name };
    let invocation = Invocation::new(asked, Value::Null, Surface::Cli, Arc::clone(&cli.actor));
    let mut envelope = cli.runtime.invoke(invocation).await;
    if let (Mode::Text, Err(failure)) = (mode, &mut envelope.outcome)
        && failure.code == Code::ActionNotFound
    {
        let mut known = cli.action_names();
        if cli.actions == super::ActionCommands::TopLevel {
            known.extend(cli.command_names());
        }
        if let Some(meant) = closest(&kebab(name), known.iter().map(String::as_str)) {
            failure.message.push_str(&format!(" Did you mean \"{meant}\"?"));
        }
    }
    show(mode, &envelope)
}

fn read(asked: Asked) -> Result<(Value, InvocationOptions), Issue> {
    let mut payload = asked.options.clone();
    let options = InvocationOptions::take_from(&mut payload);
    let json = asked.json.as_deref().map(read_json).transpose()?;
    Ok((asked.onto(json)?, options))
}

/// `--json TEXT`, `--json @FILE`, `--json -`.
fn read_json(source: &str) -> Result<Value, Issue> {
    let text = match (source, source.strip_prefix('@')) {
        ("-", _) => read_limited(std::io::stdin(), "standard input")?,
        (_, Some(path)) => {
            let file = std::fs::File::open(path)
                .map_err(|error| Issue::at("json", format!("Cannot read {path}: {}.", error.kind())))?;
            read_limited(file, path)?
        }
        (text, None) => text.to_owned(),
    };
    serde_json::from_str(&text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let reason = json_reason(&error);
        Issue::at("json", format!("Not valid JSON at line {line}, column {column}: {reason}."))
    })
}

pub(super) fn read_limited(source: impl Read, name: &str) -> Result<String, Issue> {
    let refused = |reason: String| Issue::at("json", reason);
    let mut bytes = Vec::new();
    source
        .take(JSON_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| refused(format!("Cannot read {name}: {}.", error.kind())))?;
    if bytes.len() as u64 > JSON_BYTES_MAX {
        return Err(refused(format!("{name} holds more than {JSON_BYTES_MAX} bytes.")));
    }
    String::from_utf8(bytes).map_err(|_| refused(format!("{name} is not valid UTF-8.")))
}

async fn invoke(
    cli: &Cli,
    action: &Action,
    invocation: Invocation,
    mode: Mode,
    cancel: &CancellationToken,
) -> Envelope {
    let envelope = follow(cli, action, invocation.clone(), mode).await;
    let unconfirmed = envelope.error().is_some_and(|failure| failure.code == Code::ConfirmationRequired);
    if !unconfirmed
        || mode != Mode::Text
        || !std::io::stdin().is_terminal()
        || !std::io::stderr().is_terminal()
    {
        return envelope;
    }
    match ask(action, &invocation.input, cancel).await {
        Some(true) => {
            let options = InvocationOptions { confirm: true, ..invocation.options.clone() };
            follow(cli, action, invocation.options(options), mode).await
        }
        Some(false) => envelope,
        None => Envelope { outcome: Err(ActionError::cancelled().into()), ..envelope },
    }
}

async fn follow(cli: &Cli, action: &Action, invocation: Invocation, mode: Mode) -> Envelope {
    if let Some(elsewhere) = &cli.elsewhere
        && let Some(envelope) = elsewhere.invoke(action, &invocation).await
    {
        return envelope;
    }
    if mode == Mode::Json {
        return cli.runtime.invoke(invocation).await;
    }
    follow_with(Follower::new(mode, std::io::stdout()), cli.runtime.stream(invocation)).await
}

/// Shows a stream's events and gives its envelope. When nobody reads them, the invocation ends: its stream is dropped.
async fn follow_with(mut follower: Follower<impl Write>, mut stream: InvocationStream) -> Envelope {
    loop {
        match stream.next().await {
            Some(InvocationEvent::Result(envelope)) => {
                follower.end();
                return *envelope;
            }
            Some(event) => {
                if follower.tell(&event).is_err() {
                    return Envelope::refusal(Surface::Cli, None, ActionError::cancelled());
                }
            }
            None => {
                return Envelope::refusal(
                    Surface::Cli,
                    None,
                    ActionError::internal("a stream ended without a result"),
                );
            }
        }
    }
}

/// Asks the person at the terminal, naming what will happen. `None` when interrupted.
async fn ask(action: &Action, input: &Value, cancel: &CancellationToken) -> Option<bool> {
    let about = action.spec().description.lines().next().unwrap_or_default();
    let question = one_line(&format!("{about} Call {} with {input}? [y/N] ", action.name()));
    let _ = std::io::stderr().write_all(question.as_bytes());
    let answer = tokio::task::spawn_blocking(|| {
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer).map(|_| answer)
    });
    tokio::select! {
        () = cancel.cancelled() => {
            // What follows does not belong on the line of the question.
            let _ = std::io::stderr().write_all(b"\n");
            None
        }
        answer = answer => {
            let answer = answer.ok()?.ok()?;
            Some(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "test code")]

    use runyard_actions::{Context, Fields, Runtime};
    use runyard_domain::Actor;
    use serde_json::json;
    use tokio_util::sync::DropGuard;

    use super::*;

    struct Gone;

    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Says a word and never ends; what is given is cancelled when it is dropped.
    fn endless(dropped: &CancellationToken) -> InvocationStream {
        let dropped = dropped.clone();
        let action = Action::define("endless", "Never ends.").input_schema(json!({"type": "object"}));
        let action = action.handler(move |_, context: Context| {
            let guard: DropGuard = dropped.clone().drop_guard();
            async move {
                context.logger().info("begun", Fields::new());
                std::future::pending::<()>().await;
                drop(guard);
                Ok(Value::Null)
            }
        });
        let runtime = Runtime::builder().action(action).build().unwrap();
        let actor = Arc::new(Actor::owner("tester"));
        runtime.stream(Invocation::new("endless", json!({}), Surface::Cli, actor))
    }

    #[tokio::test]
    async fn an_action_whose_events_nobody_reads_does_not_run_on() {
        let dropped = CancellationToken::new();
        let envelope = follow_with(Follower::new(Mode::Ndjson, Gone), endless(&dropped)).await;
        assert_eq!(envelope.error().map(|failure| failure.code.as_str()), Some("CANCELLED"));
        assert_eq!(envelope.exit_code(), 130);
        assert!(dropped.is_cancelled());
    }
}
