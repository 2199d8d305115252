//! What codex asks of us: permission for a command or a change of files. Everything else is refused.

use std::collections::BTreeMap;

use runyard_backend::BackendError;
use runyard_domain::gate::Request;
use runyard_domain::run::FailureKind;
use serde_json::Value;

use super::bounds::{SIGNAL_BYTES_MAX, length};
use super::translate::Translation;
use super::wire::{ChangeApproval, CommandApproval, read};

const COMMAND: &str = "item/commandExecution/requestApproval";
const CHANGE: &str = "item/fileChange/requestApproval";

/// The most requests that wait for an answer at a time.
const ASKS_MAX: usize = 64;

/// What becomes of a request of codex.
pub(super) enum Verdict {
    /// It waits for an answer.
    Ask { key: String, request: Request },
    /// It is declined for this reason, and the turn goes on.
    Decline(&'static str),
    /// It is answered with an error, which codex takes for a no.
    Refuse,
}

impl Verdict {
    /// The no that fits the request.
    pub(super) fn decline(method: &str, why: &'static str) -> Self {
        if matches!(method, COMMAND | CHANGE) { Verdict::Decline(why) } else { Verdict::Refuse }
    }
}

/// A request that waits for an answer.
pub(super) struct Asked {
    /// Codex's id of the request.
    pub(super) id: Value,
    pub(super) item: String,
}

/// The requests that wait for an answer, by our own key: codex counts its ids from 0 in each process.
#[derive(Default)]
pub(super) struct Asks {
    open: BTreeMap<String, Asked>,
    asked: u64,
}

impl Asks {
    pub(super) fn judge(
        &mut self,
        method: &str,
        id: &Value,
        params: &Value,
        translation: &mut Translation,
    ) -> Result<Verdict, BackendError> {
        let (item, request) = match method {
            COMMAND => {
                let approval: CommandApproval = read(method, params)?;
                // Only commands are understood: a wider permission is not ours to give.
                if approval.network_approval_context.is_some()
                    || approval.kind.is_some_and(|kind| kind != "command")
                {
                    return Ok(Verdict::Decline("it asks for more than one command"));
                }
                let (Some(command), Some(cwd)) = (approval.command, approval.cwd) else {
                    let text = "codex asks for a command and does not say which";
                    return Err(BackendError::new(FailureKind::BackendResponseInvalid, text));
                };
                let request = translation.shell(&approval.item_id, command, &cwd);
                (approval.item_id, request)
            }
            CHANGE => {
                let approval: ChangeApproval = read(method, params)?;
                match translation.patch(&approval.item_id) {
                    Some(request) if approval.grant_root.is_none() => (approval.item_id, request),
                    _ => return Ok(Verdict::Decline("it asks for a change that it did not show")),
                }
            }
            _ => return Ok(Verdict::Refuse),
        };
        if length(&request) > SIGNAL_BYTES_MAX {
            return Ok(Verdict::Decline("it is too long to be shown to a person"));
        }
        if self.open.len() >= ASKS_MAX {
            return Ok(Verdict::Decline("too much is asked at once"));
        }
        self.asked += 1;
        let key = format!("{item}#{}", self.asked);
        self.open.insert(key.clone(), Asked { id: id.clone(), item });
        Ok(Verdict::Ask { key, request })
    }

    /// The request of this key, which waits no more.
    pub(super) fn take(&mut self, key: &str) -> Option<Asked> {
        self.open.remove(key)
    }

    /// The key of a request that codex no longer asks.
    pub(super) fn resolved(&mut self, id: &Value) -> Option<String> {
        let key = self.open.iter().find(|(_, asked)| asked.id == *id).map(|(key, _)| key.clone())?;
        self.open.remove(&key);
        Some(key)
    }

    /// All of them, which wait no more.
    pub(super) fn drain(&mut self) -> Vec<String> {
        std::mem::take(&mut self.open).into_keys().collect()
    }
}
