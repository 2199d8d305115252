//! What codex says, as far as it is listened to. Unknown fields, items and notifications are none of our business.

use std::collections::BTreeMap;

use runyard_backend::BackendError;
use runyard_domain::run::FailureKind;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::failure::TurnError;

/// Reads what a message must hold.
pub(super) fn read<T: DeserializeOwned>(what: &str, value: &Value) -> Result<T, BackendError> {
    T::deserialize(value).map_err(|error| {
        let message = format!("{what} of codex cannot be read: {error}");
        BackendError::new(FailureKind::BackendResponseInvalid, message)
    })
}

/// One thing that codex does within a turn.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum Item {
    AgentMessage {
        id: String,
        text: String,
    },
    CommandExecution(Execution),
    FileChange(FileChange),
    McpToolCall {
        id: String,
        server: String,
        tool: String,
        arguments: Value,
        status: Status,
    },
    DynamicToolCall {
        id: String,
        tool: String,
        arguments: Value,
        status: Status,
    },
    CollabAgentToolCall {
        id: String,
        tool: Value,
        status: Status,
        #[serde(default)]
        prompt: Option<String>,
    },
    WebSearch {
        id: String,
        query: String,
    },
    ImageGeneration {
        id: String,
        status: Status,
    },
    ImageView {
        path: String,
    },
    Reasoning {
        id: String,
        #[serde(default)]
        summary: Vec<String>,
        #[serde(default)]
        content: Vec<String>,
    },
    Plan {
        text: String,
    },
    ContextCompaction {},
    #[serde(other)]
    Other,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Execution {
    pub(super) id: String,
    pub(super) command: String,
    pub(super) cwd: String,
    pub(super) status: Status,
    #[serde(default)]
    pub(super) command_actions: Vec<CommandAction>,
    #[serde(default)]
    pub(super) aggregated_output: Option<String>,
    #[serde(default)]
    pub(super) exit_code: Option<i64>,
}

/// What codex thinks that a part of a command does.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(super) enum CommandAction {
    Read {
        path: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct FileChange {
    pub(super) id: String,
    pub(super) changes: Vec<Change>,
    pub(super) status: Status,
}

/// A change of one file. Its `diff` is the whole content where the file is added or deleted.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Change {
    pub(super) path: String,
    pub(super) kind: ChangeKind,
    pub(super) diff: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(super) enum ChangeKind {
    Add,
    Delete,
    Update {
        #[serde(default)]
        move_path: Option<String>,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Status {
    InProgress,
    Completed,
    Failed,
    Declined,
    Interrupted,
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Deserialize)]
pub(super) struct ItemNotice {
    pub(super) item: Item,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeltaNotice {
    pub(super) item_id: String,
    pub(super) delta: String,
}

/// Something was typed into a command that runs; nothing, where codex only looked.
#[derive(Debug, Deserialize)]
pub(super) struct TypedNotice {
    pub(super) stdin: String,
}

/// `turn/plan/updated`: the whole plan.
#[derive(Debug, Deserialize)]
pub(super) struct PlanNotice {
    pub(super) plan: Vec<Planned>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Planned {
    pub(super) step: String,
    pub(super) status: Status,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageNotice {
    pub(super) token_usage: TokenUsage,
}

#[derive(Debug, Deserialize)]
pub(super) struct TokenUsage {
    pub(super) total: Tokens,
    pub(super) last: Tokens,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tokens {
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ErrorNotice {
    pub(super) error: TurnError,
    pub(super) will_retry: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct TurnNotice {
    pub(super) turn: Turn,
}

#[derive(Debug, Deserialize)]
pub(super) struct Turn {
    pub(super) id: String,
    pub(super) status: Status,
    #[serde(default)]
    pub(super) error: Option<TurnError>,
}

/// The answer to `thread/start` and `thread/resume`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThreadOpened {
    pub(super) thread: Thread,
    pub(super) model: String,
    pub(super) approval_policy: Value,
    /// Who is asked; a codex that does not say it has nobody else to ask.
    #[serde(default)]
    pub(super) approvals_reviewer: Option<String>,
    pub(super) sandbox: Sandbox,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Thread {
    pub(super) id: String,
    pub(super) cli_version: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Sandbox {
    #[serde(rename = "type")]
    pub(super) kind: String,
}

/// `item/commandExecution/requestApproval`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommandApproval {
    pub(super) item_id: String,
    #[serde(default)]
    pub(super) kind: Option<String>,
    #[serde(default)]
    pub(super) command: Option<String>,
    #[serde(default)]
    pub(super) cwd: Option<String>,
    #[serde(default)]
    pub(super) network_approval_context: Option<NetworkApproval>,
}

/// Which host a command wants to reach.
#[derive(Debug, Deserialize)]
pub(super) struct NetworkApproval {
    pub(super) host: String,
}

/// `item/fileChange/requestApproval`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChangeApproval {
    pub(super) item_id: String,
    /// A directory for whose files codex would not ask again.
    #[serde(default)]
    pub(super) grant_root: Option<Value>,
}

/// `execCommandApproval`, as older versions ask.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExecApproval {
    pub(super) call_id: String,
    pub(super) command: Vec<String>,
    pub(super) cwd: String,
}

/// `applyPatchApproval`, as older versions ask.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PatchApproval {
    pub(super) call_id: String,
    pub(super) file_changes: BTreeMap<String, PatchedFile>,
    #[serde(default)]
    pub(super) grant_root: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum PatchedFile {
    Add {
        content: String,
    },
    Delete {
        content: String,
    },
    Update {
        unified_diff: String,
        #[serde(default)]
        move_path: Option<String>,
    },
    #[serde(other)]
    Unknown,
}

impl PatchApproval {
    /// The change, as the newer versions show it.
    pub(super) fn into_change(self) -> FileChange {
        let change = |(path, file)| {
            let (kind, diff) = match file {
                PatchedFile::Add { content } => (ChangeKind::Add, content),
                PatchedFile::Delete { content } => (ChangeKind::Delete, content),
                PatchedFile::Update { unified_diff, move_path } => {
                    (ChangeKind::Update { move_path }, unified_diff)
                }
                PatchedFile::Unknown => (ChangeKind::Unknown, String::new()),
            };
            Change { path, kind, diff }
        };
        let changes = self.file_changes.into_iter().map(change).collect();
        FileChange { id: self.call_id, changes, status: Status::InProgress }
    }
}

/// `item/permissions/requestApproval`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionsApproval {
    pub(super) item_id: String,
    pub(super) cwd: String,
    pub(super) permissions: Value,
}

/// `item/tool/requestUserInput`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UserInput {
    pub(super) item_id: String,
    pub(super) questions: Vec<Asking>,
}

/// One question of the agent to the person.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Asking {
    pub(super) id: String,
    pub(super) header: String,
    pub(super) question: String,
    /// Whether another answer than the options is one.
    #[serde(default)]
    pub(super) is_other: bool,
    #[serde(default)]
    pub(super) is_secret: bool,
    #[serde(default)]
    pub(super) options: Option<Vec<Choice>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice {
    pub(super) label: String,
    #[serde(default)]
    pub(super) description: String,
}

/// `mcpServer/elicitation/request`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Elicitation {
    pub(super) mode: String,
    #[serde(default)]
    pub(super) server_name: String,
    #[serde(default)]
    pub(super) message: String,
    #[serde(default)]
    pub(super) requested_schema: Value,
}

/// The answer to a request of ours that did not succeed.
#[derive(Debug, Deserialize)]
pub(super) struct Refusal {
    pub(super) code: i64,
    pub(super) message: String,
}
