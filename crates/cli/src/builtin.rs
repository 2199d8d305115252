//! Actions that every installation has.

use runyard::{Action, ActionError, Code, DefinitionError, ErrorCode, Issue, action};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) fn actions() -> [Result<Action, DefinitionError>; 3] {
    [version_show(), error_list(), error_explain()]
}

#[derive(Serialize, JsonSchema)]
struct Version {
    /// The product.
    name: String,
    /// Its version.
    version: String,
}

/// Show which version of Runyard this is.
#[action(idempotency = "idempotent", http = "GET /api/v1/version")]
async fn version_show() -> Result<Version, ActionError> {
    Ok(Version { name: "runyard".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() })
}

#[derive(Serialize, JsonSchema)]
struct ErrorRow {
    /// The code.
    code: String,
    /// transient, permanent, fail-fast or conflict.
    class: String,
    /// The HTTP status.
    http: u16,
    /// The exit code of a command.
    exit: u8,
    /// The JSON-RPC code.
    json_rpc: i32,
    /// Whether and how to repeat.
    retry: String,
    /// What to do first.
    recovery: String,
}

impl ErrorRow {
    fn of(code: &ErrorCode) -> Self {
        let row = code.row();
        ErrorRow {
            code: code.as_str().to_owned(),
            class: row.class.to_string(),
            http: row.http,
            exit: row.exit,
            json_rpc: row.json_rpc,
            retry: row.retry.to_string(),
            recovery: row.recovery.to_owned(),
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct ErrorTable {
    /// Every code that Runyard itself can give.
    errors: Vec<ErrorRow>,
}

/// List every error code with its status, exit code and what to do first.
#[action(idempotency = "idempotent", http = "GET /api/v1/errors")]
async fn error_list() -> Result<ErrorTable, ActionError> {
    Ok(ErrorTable { errors: Code::ALL.iter().map(|code| ErrorRow::of(&(*code).into())).collect() })
}

#[derive(Deserialize, JsonSchema)]
struct Explain {
    /// The code, as an envelope or a run shows it.
    #[schemars(length(min = 1, max = 64))]
    code: String,
}

/// Explain an error code: what it means for a caller and what to do first.
#[action(
    idempotency = "idempotent",
    http = "GET /api/v1/errors/{code}",
    example = r#"{"code": "CONFIRMATION_REQUIRED"}"#
)]
async fn error_explain(input: Explain) -> Result<ErrorRow, ActionError> {
    match ErrorCode::parse(&input.code) {
        Ok(code) => Ok(ErrorRow::of(&code)),
        Err(_) => Err(ActionError::invalid_input(vec![Issue::at("code", "Expected an error code.")])),
    }
}
