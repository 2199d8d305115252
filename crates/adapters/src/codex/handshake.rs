//! Meeting codex: it is started, introduces itself, and is stopped. No thread is opened, no provider is called.

use std::ffi::OsString;
use std::time::Duration;

use runyard_backend::{BackendError, HandshakeSpec, Launch};
use runyard_domain::run::FailureKind;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::config;
use super::home::Home;
use super::program::Program;
use crate::cut::clip;
use crate::process::Speaker;

/// How long it may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// What it says before it answers: so many messages are looked at.
const MESSAGES_MAX: usize = 1_000;
/// How much of what it calls itself is told, in bytes.
const NAME_BYTES_MAX: usize = 200;
/// The one question.
const QUESTION: u64 = 1;

/// Starts it, asks who it is, and stops it. Gives what it calls itself.
pub(super) async fn handshake(spec: HandshakeSpec) -> Result<String, BackendError> {
    let path = spec.environment.get("PATH").map(OsString::from);
    let program = Program::of(&spec.profile, path.as_deref())?;
    let home = Home::prepare(&spec.home, vec![config::plain(&spec.directory)]).await?;
    let mut environment = spec.environment;
    environment.insert("CODEX_HOME".to_owned(), home.path.to_string_lossy().into_owned());
    let launch = Launch {
        program: program.path,
        arguments: program.arguments,
        directory: spec.directory,
        environment,
    };
    let mut codex = Speaker::start(&*spec.processes, launch).await?;
    let answered = timeout(ANSWER_MAX, answer(&mut codex)).await;
    let ended = codex.stop().await;
    match answered {
        Ok(Ok(Some(answer))) => introduced(&answer),
        Ok(Ok(None)) => {
            let message = format!("codex ended instead of answering: {ended}");
            Err(BackendError::new(FailureKind::BackendFailed, message))
        }
        Ok(Err(error)) => Err(error),
        Err(_) => {
            let message = format!("codex did not answer within {} seconds", ANSWER_MAX.as_secs());
            Err(BackendError::new(FailureKind::BackendTimeout, message))
        }
    }
}

/// The answer to the one question; none where it ends before, or says too much else.
async fn answer(codex: &mut Speaker) -> Result<Option<Value>, BackendError> {
    let client = json!({ "name": "runyard", "title": "Runyard", "version": env!("CARGO_PKG_VERSION") });
    let params = json!({ "clientInfo": client, "capabilities": { "experimentalApi": true } });
    // One that does not take it ends, and why is what it said last.
    let _ = codex.say(&json!({ "id": QUESTION, "method": "initialize", "params": params })).await;
    for _ in 0..MESSAGES_MAX {
        match codex.lines.next().await? {
            Some(message) if message["id"] == QUESTION && message.get("method").is_none() => {
                return Ok(Some(message));
            }
            Some(_) => {}
            None => return Ok(None),
        }
    }
    Ok(None)
}

fn introduced(answer: &Value) -> Result<String, BackendError> {
    match answer["result"]["userAgent"].as_str() {
        Some(name) => Ok(format!("it answers as {}", clip(name, NAME_BYTES_MAX))),
        None => {
            let said = clip(&answer["error"]["message"].to_string(), NAME_BYTES_MAX);
            let message = format!("codex does not introduce itself: {said}");
            Err(BackendError::new(FailureKind::BackendProtocolError, message))
        }
    }
}
