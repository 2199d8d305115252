//! What codex asks of us: permission for a command, a change of files or more access, and questions to the person.
//!
//! Each is asked of the gate and answered once, or declined at once with the reason said. Everything else is refused: tools that
//! we did not offer, tokens and attestations that are not ours to give.

use std::collections::BTreeMap;

use runyard_backend::BackendError;
use runyard_domain::gate::{Question, Request};
use runyard_domain::run::FailureKind;
use serde_json::{Value, json};

use super::bounds::{SIGNAL_BYTES_MAX, length};
use super::conversation::Confinement;
use super::forms::{self, Form};
use super::translate::Translation;
use super::wire::{
    ChangeApproval, CommandApproval, Elicitation, ExecApproval, NetworkApproval, PatchApproval,
    PermissionsApproval, UserInput, read,
};

/// The most requests that wait for an answer at a time.
const ASKS_MAX: usize = 64;
const READ_ONLY: &str = "the run is read-only";
const UNSEEN: &str = "it asks for a change that it did not show";

/// What becomes of a request of codex.
pub(super) enum Verdict {
    /// It waits for an answer.
    Ask { key: String, request: Request },
    /// It is answered with this no, for this reason, and the turn goes on.
    Decline { result: Value, why: &'static str },
    /// It is answered with an error, which codex takes for a no.
    Refuse,
}

/// A request that waits for an answer.
#[derive(Debug)]
pub(super) struct Asked {
    /// Codex's id of the request.
    pub(super) id: Value,
    pub(super) item: String,
    pub(super) form: Form,
}

/// What a request asks for, or why nobody is asked.
struct Wish {
    item: String,
    form: Form,
    request: Result<Request, &'static str>,
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
        confinement: Confinement,
        translation: &mut Translation,
    ) -> Result<Verdict, BackendError> {
        let Some(Wish { item, form, request }) = wish(method, params, translation)? else {
            return Ok(Verdict::Refuse);
        };
        let request = request.and_then(|request| match &request {
            _ if length(&request) > SIGNAL_BYTES_MAX => Err("it is too long to be shown to a person"),
            _ if self.open.len() >= ASKS_MAX => Err("too much is asked at once"),
            _ if !confinement.allows(&request) => Err(READ_ONLY),
            _ => Ok(request),
        });
        match request {
            Err(why) => Ok(Verdict::Decline { result: form.no(why), why }),
            Ok(request) => {
                self.asked += 1;
                let key = format!("{item}#{}", self.asked);
                self.open.insert(key.clone(), Asked { id: id.clone(), item, form });
                Ok(Verdict::Ask { key, request })
            }
        }
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

/// What codex wishes, if it is something that somebody can be asked.
fn wish(method: &str, params: &Value, translation: &mut Translation) -> Result<Option<Wish>, BackendError> {
    let wish = match method {
        "item/commandExecution/requestApproval" => command(read(method, params)?, translation)?,
        "item/fileChange/requestApproval" => {
            let ChangeApproval { item_id: item, grant_root } = read(method, params)?;
            let request = translation.patch(&item).filter(|_| grant_root.is_none()).ok_or(UNSEEN);
            Wish { item, form: Form::Decision, request }
        }
        "execCommandApproval" => {
            let ExecApproval { call_id: item, command, cwd } = read(method, params)?;
            let request = Ok(translation.shell(&item, shell_words(&command), &cwd));
            Wish { item, form: Form::Review, request }
        }
        "applyPatchApproval" => {
            let approval: PatchApproval = read(method, params)?;
            let (item, widens) = (approval.call_id.clone(), approval.grant_root.is_some());
            let request = translation.shown(approval.into_change()).filter(|_| !widens).ok_or(UNSEEN);
            Wish { item, form: Form::Review, request }
        }
        "item/permissions/requestApproval" => {
            let approval: PermissionsApproval = read(method, params)?;
            let (request, given) = match forms::permission(&approval, translation) {
                Some((request, given)) => (Ok(request), given),
                None => (Err("it asks for more than one permission at once"), Value::Null),
            };
            Wish { item: approval.item_id, form: Form::Permission(given), request }
        }
        "item/tool/requestUserInput" => {
            let input: UserInput = read(method, params)?;
            let request = forms::questions(&input);
            let ids = input.questions.into_iter().map(|question| question.id).collect();
            Wish { item: input.item_id, form: Form::Questions(ids), request }
        }
        "mcpServer/elicitation/request" => {
            let asked: Elicitation = read(method, params)?;
            let request = forms::elicitation(asked);
            Wish { item: "elicitation".to_owned(), form: Form::Elicitation, request }
        }
        _ => return Ok(None),
    };
    Ok(Some(wish))
}

fn command(approval: CommandApproval, translation: &mut Translation) -> Result<Wish, BackendError> {
    let (item, form) = (approval.item_id, Form::Decision);
    if let Some(NetworkApproval { host }) = approval.network_approval_context {
        return Ok(Wish { item, form, request: Ok(Request::Network { host, port: None }) });
    }
    match approval.kind.as_deref() {
        None | Some("command") => {}
        // What a program makes of it no rule can know, so a person decides.
        Some("writeStdin") => {
            let typed = approval.command.as_deref().unwrap_or_default();
            let prompt = format!("The agent wants to type this into a command that runs: {typed}");
            let answer_schema = json!({ "enum": ["type it"] });
            return Ok(Wish {
                item,
                form,
                request: Ok(Request::Question(Question { prompt, answer_schema })),
            });
        }
        Some(_) => {
            return Ok(Wish { item, form, request: Err("it asks for something that is not known here") });
        }
    }
    let (Some(command), Some(cwd)) = (approval.command, approval.cwd) else {
        let text = "codex asks for a command and does not say which";
        return Err(BackendError::new(FailureKind::BackendResponseInvalid, text));
    };
    let request = Ok(translation.shell(&item, command, &cwd));
    Ok(Wish { item, form, request })
}

/// The words of a command as a shell reads them.
fn shell_words(words: &[String]) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./=:,@%+".contains(letter);
    let word = |word: &String| match word.as_str() {
        word if !word.is_empty() && word.chars().all(plain) => word.to_owned(),
        word => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c11_the_words_of_a_command_are_asked_for_as_a_shell_reads_them() {
        let words =
            |words: &[&str]| shell_words(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(words(&["bash", "-lc", "rm 'a b'; ls"]), r"bash -lc 'rm '\''a b'\''; ls'");
        assert_eq!(words(&["touch", "", "$HOME", "a/b.txt"]), "touch '' '$HOME' a/b.txt");
    }
}
