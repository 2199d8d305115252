//! The one error table: what every code means, whichever surface it leaves by.
//!
//! A code's class, HTTP status, exit code, JSON-RPC code, retry answer and first recovery action are stated
//! here and nowhere else; surfaces look them up. Messages are not here: they belong to the one error that
//! happened.

mod table;

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

pub use self::table::Code;

/// The longest code an application may raise, in characters.
const APPLICATION_CODE_CHARS_MAX: usize = 64;

/// What kind of failure it is, and so what can be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// It may pass by itself.
    Transient,
    /// It stays until the call, the code or the configuration is changed.
    Permanent,
    /// Trying further is pointless or unwanted: stop at once.
    FailFast,
    /// The call met a state other than the one it was made for.
    Conflict,
}

impl Class {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Class::Transient => "transient",
            Class::Permanent => "permanent",
            Class::FailFast => "fail-fast",
            Class::Conflict => "conflict",
        }
    }
}

/// Whether, and how, to repeat what failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Retry {
    /// Repeating it gives the same answer.
    No,
    /// Repeat it unchanged, later.
    Backoff,
    /// Repeat it after the recovery action.
    AfterRecovery,
    /// Repeat it with the same idempotency key: that is safe, even if it already took effect.
    SameKey,
}

impl Retry {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Retry::No => "no",
            Retry::Backoff => "backoff",
            Retry::AfterRecovery => "after-recovery",
            Retry::SameKey => "same-key",
        }
    }
}

/// What a code means on every surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// What kind of failure it is.
    pub class: Class,
    /// The HTTP status.
    pub http: u16,
    /// The exit code of the command line.
    pub exit: u8,
    /// The JSON-RPC error code.
    pub json_rpc: i32,
    /// Whether, and how, to repeat it.
    pub retry: Retry,
    /// The first thing a person can do about it: one sentence.
    pub recovery: &'static str,
}

impl Row {
    /// The row of every code that an application raises itself; permanent unless the error says `retryable`.
    pub const APPLICATION: Row = Row {
        class: Class::Permanent,
        http: 400,
        exit: 1,
        json_rpc: table::rpc::FAILED,
        retry: Retry::No,
        recovery: "Look the code up in the documentation of the application that raised it.",
    };
}

/// A text that is no code, or not one that may stand where it was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} cannot be the error code here: Runyard's own codes are listed in docs/errors.md; an application's \
     are 1 to 64 of A-Z, 0-9 and \"_\", begin with a letter, and are none of Runyard's"
)]
pub struct InvalidCode(pub String);

/// An application's own code: `^[A-Z][A-Z0-9_]*$`, at most 64 characters, and none of Runyard's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct ApplicationCode(String);

impl ApplicationCode {
    /// Takes the code if it has the form, and if it is not in Runyard's table.
    pub fn new(text: &str) -> Result<Self, InvalidCode> {
        let well_formed = text.starts_with(|first: char| first.is_ascii_uppercase())
            && text.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'))
            && text.len() <= APPLICATION_CODE_CHARS_MAX;
        if well_formed && Code::parse(text).is_none() {
            Ok(ApplicationCode(text.to_owned()))
        } else {
            Err(InvalidCode(text.to_owned()))
        }
    }

    /// The word on the wire.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Any code that an error can carry.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub enum ErrorCode {
    /// One of Runyard's.
    Known(Code),
    /// One that the application made.
    Application(ApplicationCode),
}

impl ErrorCode {
    /// Reads a code: Runyard's where the table has it, else the application's.
    pub fn parse(text: &str) -> Result<ErrorCode, InvalidCode> {
        match Code::parse(text) {
            Some(code) => Ok(ErrorCode::Known(code)),
            None => ApplicationCode::new(text).map(ErrorCode::Application),
        }
    }

    /// The word on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            ErrorCode::Known(code) => code.as_str(),
            ErrorCode::Application(code) => code.as_str(),
        }
    }

    /// What it means on every surface.
    pub fn row(&self) -> &'static Row {
        match self {
            ErrorCode::Known(code) => code.row(),
            ErrorCode::Application(_) => &Row::APPLICATION,
        }
    }
}

impl From<Code> for ErrorCode {
    fn from(code: Code) -> Self {
        ErrorCode::Known(code)
    }
}

impl PartialEq<Code> for ErrorCode {
    fn eq(&self, other: &Code) -> bool {
        matches!(self, ErrorCode::Known(code) if code == other)
    }
}

impl TryFrom<String> for Code {
    type Error = InvalidCode;

    fn try_from(text: String) -> Result<Self, InvalidCode> {
        Code::parse(&text).ok_or(InvalidCode(text))
    }
}

impl TryFrom<String> for ApplicationCode {
    type Error = InvalidCode;

    fn try_from(text: String) -> Result<Self, InvalidCode> {
        ApplicationCode::new(&text)
    }
}

impl TryFrom<String> for ErrorCode {
    type Error = InvalidCode;

    fn try_from(text: String) -> Result<Self, InvalidCode> {
        ErrorCode::parse(&text)
    }
}

macro_rules! shown_as_its_word {
    ($($name:ty),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    )*};
}

shown_as_its_word!(Class, Retry, Code, ApplicationCode, ErrorCode);

const INTRO: &str = "\
# Errors

<!-- Made from the table in crates/domain/src/errors/table.rs. Change it there. -->

Every error that Runyard gives carries one of these codes, and a code means the same on every surface.

- **Class**: `transient` may pass by itself; `permanent` stays until the call, the code or the configuration
  is changed; `fail-fast` means stop at once; `conflict` means that the call met a state other than the one it
  was made for.
- **HTTP**: the status of the answer.
- **Exit**: the exit code of the command line; success is 0.
- **JSON-RPC**: the error code where the answer is a JSON-RPC error.
- **Retry**: `no`, repeating it gives the same answer; `backoff`, repeat it unchanged, later;
  `after-recovery`, repeat it after the recovery action; `same-key`, repeating it with the same idempotency
  key is safe.
- **First recovery action**: what to do first.
";

const TABLE_HEAD: &str = "\
| Code | Class | HTTP | Exit | JSON-RPC | Retry | First recovery action |
|---|---|---|---|---|---|---|
";

const APPLICATION_INTRO: &str = "\
An action may raise a code of its own: 1 to 64 of `A`-`Z`, `0`-`9` and `_`, beginning with a letter, and none
of the codes above. It is kept as it is and takes this row. It is permanent unless the error says
`retryable: true`.
";

/// The whole of `docs/errors.md`.
pub fn errors_markdown() -> String {
    let mut page = INTRO.to_owned();
    let mut group = "";
    for code in Code::ALL {
        if code.group() != group {
            group = code.group();
            page += &format!("\n## {group}\n\n{TABLE_HEAD}");
        }
        page += &markdown_row(&format!("`{code}`"), code.row());
    }
    page += &format!("\n## An application's own codes\n\n{APPLICATION_INTRO}\n{TABLE_HEAD}");
    page += &markdown_row("application", &Row::APPLICATION);
    page
}

fn markdown_row(name: &str, row: &Row) -> String {
    let Row { class, http, exit, json_rpc, retry, recovery } = row;
    format!("| {name} | {class} | {http} | {exit} | {json_rpc} | {retry} | {recovery} |\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const A16: &str =
        "ACTION_NOT_FOUND UNSUPPORTED_SURFACE VALIDATION_ERROR CONFIRMATION_REQUIRED AUTHORIZATION_ERROR
        OUTPUT_SERIALIZATION_ERROR OUTPUT_VALIDATION_ERROR TIMEOUT CANCELLED INTERNAL_ERROR CONFLICT
        CONCURRENCY_LIMIT AUTHENTICATION_ERROR EXTERNAL_SERVICE_ERROR";
    const A17: &str = "INVALID_JSON_RUNNER_PAYLOAD DEV_SERVER_ERROR NOT_FOUND";
    const HTTP_REQUESTS: &str =
        "INVALID_JSON_BODY PAYLOAD_TOO_LARGE UNSUPPORTED_MEDIA_TYPE METHOD_NOT_ALLOWED
        HOST_NOT_ALLOWED ORIGIN_NOT_ALLOWED INVALID_REQUEST REQUEST_TIMEOUT";
    const B10: &str = "secret-unavailable provider-auth-failed provider-rate-limited provider-unavailable
        backend-protocol-error backend-json-parse-error backend-response-invalid backend-spawn-failed
        backend-failed backend-timeout cancelled";
    const C16: &str =
        "runtime_unavailable workspace_outside_allowlist permission_denied approval_rejected run_timeout
        schema_validation_failed target_offline provider_rate_limited provider_unavailable budget_exceeded
        outcome_unknown redacted_content";
    /// What the checkouts of C13 add.
    const CHECKOUTS: &str = "setup_failed checkouts_full checkout_collected";
    const D01: &str = "state.revision_conflict state.mutation_base_revision_mismatch
        state.plugin_already_installed state.plugin_not_installed state.key_already_registered
        state.unknown_key state.key_decode state.key_encode state.handler_already_registered
        state.effect_handler_already_registered state.phase_run_loop_exceeded
        state.unknown_scheduled_action_handler state.unknown_effect_handler state.parallel_merge_conflict
        state.tool_already_registered state.cancelled";
    const D02: &str = "tool.invalid_arguments tool.execution_failed tool.denied tool.not_found tool.internal
        tool.cancelled";
    const D03: &str = "build.state build.agent_registry_conflict build.tool_registry_conflict
        build.model_registry_conflict build.provider_registry_conflict build.plugin_registry_conflict
        build.validation_failed build.discovery_failed";
    const D04: &str =
        "runtime.state runtime.thread_already_running runtime.agent_not_found runtime.resolve_failed";
    const D05: &str = "inference.provider inference.rate_limited inference.overloaded inference.timeout
        inference.stream_interrupted inference.context_overflow inference.invalid_request
        inference.unauthorized inference.model_not_found inference.content_filtered
        inference.all_models_unavailable inference.cancelled";
    const D11: &str = "storage.validation storage.not_found storage.already_exists storage.version_conflict
        storage.io storage.commit_unknown storage.serialization storage.locked storage.stale_generation
        storage.newer_schema storage.poisoned
        storage.disk_full storage.read_only storage.corrupt";
    const D13: &str = "resolve.agent_not_found resolve.model_not_found resolve.provider_not_found
        resolve.plugin_not_found resolve.invalid_plugin_config resolve.unsupported_remote_backend
        resolve.invalid_remote_endpoint_config resolve.remote_agent_not_directly_runnable
        resolve.tool_id_conflict resolve.env_build";

    #[test]
    fn j03_the_table_has_the_codes_of_every_clause_and_no_others() {
        let clauses = [A16, A17, HTTP_REQUESTS, B10, C16, CHECKOUTS, D01, D02, D03, D04, D05, D11, D13];
        let named: BTreeSet<&str> = clauses.into_iter().flat_map(str::split_whitespace).collect();
        let listed: BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(listed, named);
        assert_eq!(listed.len(), Code::ALL.len(), "a code is listed twice");
    }

    #[test]
    fn j03_every_code_reads_back_from_its_word() {
        for &code in Code::ALL {
            assert_eq!(Code::parse(code.as_str()), Some(code));
            assert_eq!(ErrorCode::parse(code.as_str()), Ok(ErrorCode::Known(code)));
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
            assert_eq!(serde_json::from_value::<Code>(code.as_str().into()).unwrap(), code);
            assert_eq!(code.to_string(), code.as_str());
        }
        assert_eq!(Code::parse("timeout"), None);
        assert!(serde_json::from_value::<Code>("SOLD_OUT".into()).is_err());
    }

    #[test]
    fn j03_every_row_stays_within_the_bounds_of_its_surfaces() {
        for row in Code::ALL.iter().map(|code| code.row()).chain([&Row::APPLICATION]) {
            assert!((400..=599).contains(&row.http), "{row:?}");
            assert_ne!(row.exit, 0, "{row:?}");
            let standard = [-32700, -32600, -32601, -32602, -32603].contains(&row.json_rpc);
            assert!(standard || (-32019..=-32000).contains(&row.json_rpc), "{row:?}");
            assert!(!(-32099..=-32020).contains(&row.json_rpc), "MCP keeps this one: {row:?}");
        }
    }

    #[test]
    fn j03_every_recovery_is_one_plain_sentence() {
        for code in Code::ALL {
            let recovery = code.row().recovery;
            assert!(recovery.starts_with(|first: char| first.is_ascii_uppercase()), "{code}: {recovery}");
            assert!(recovery.ends_with('.') && !recovery.contains(". "), "{code}: {recovery}");
            assert!(!recovery.contains(['|', '\n']) && !recovery.contains("  "), "{code}: {recovery}");
            assert!(!recovery.to_lowercase().contains("something went wrong"), "{code}: {recovery}");
        }
    }

    #[test]
    fn only_what_is_transient_is_worth_repeating_unchanged() {
        for code in Code::ALL {
            let row = code.row();
            let unchanged = matches!(row.retry, Retry::Backoff | Retry::SameKey);
            assert_eq!(unchanged, row.class == Class::Transient, "{code}");
        }
        assert_eq!(Code::StorageCommitUnknown.row().retry, Retry::SameKey);
    }

    #[test]
    fn a19_exit_codes_are_the_seeds() {
        let special: Vec<(&str, u8)> = Code::ALL
            .iter()
            .map(|code| (code.as_str(), code.row().exit))
            .filter(|&(_, exit)| exit != 1)
            .collect();
        assert_eq!(
            special,
            [
                ("ACTION_NOT_FOUND", 4),
                ("VALIDATION_ERROR", 2),
                ("AUTHENTICATION_ERROR", 3),
                ("AUTHORIZATION_ERROR", 3),
                ("TIMEOUT", 124),
                ("CANCELLED", 130),
                ("EXTERNAL_SERVICE_ERROR", 5),
                ("backend-timeout", 124),
                ("cancelled", 130),
                ("run_timeout", 124),
            ]
        );
    }

    #[test]
    fn j03_http_statuses_of_actions_and_requests_are_these() {
        let statuses: Vec<(&str, u16)> = Code::ALL
            .iter()
            .filter(|code| ["Actions", "HTTP requests"].contains(&code.group()))
            .map(|code| (code.as_str(), code.row().http))
            .collect();
        assert_eq!(
            statuses,
            [
                ("ACTION_NOT_FOUND", 404),
                ("UNSUPPORTED_SURFACE", 403),
                ("VALIDATION_ERROR", 400),
                ("CONFIRMATION_REQUIRED", 409),
                ("AUTHENTICATION_ERROR", 401),
                ("AUTHORIZATION_ERROR", 403),
                ("OUTPUT_SERIALIZATION_ERROR", 502),
                ("OUTPUT_VALIDATION_ERROR", 502),
                ("TIMEOUT", 504),
                ("CANCELLED", 499),
                ("CONFLICT", 409),
                ("CONCURRENCY_LIMIT", 429),
                ("EXTERNAL_SERVICE_ERROR", 502),
                ("INTERNAL_ERROR", 500),
                ("NOT_FOUND", 404),
                ("INVALID_JSON_RUNNER_PAYLOAD", 400),
                ("DEV_SERVER_ERROR", 500),
                ("INVALID_REQUEST", 400),
                ("INVALID_JSON_BODY", 400),
                ("PAYLOAD_TOO_LARGE", 413),
                ("UNSUPPORTED_MEDIA_TYPE", 415),
                ("METHOD_NOT_ALLOWED", 405),
                ("HOST_NOT_ALLOWED", 421),
                ("ORIGIN_NOT_ALLOWED", 403),
                ("REQUEST_TIMEOUT", 408),
            ]
        );
    }

    #[test]
    fn d07_inference_codes_have_the_classes_of_the_seed() {
        let of_class = |class: Class| -> Vec<&str> {
            let inference = Code::ALL.iter().filter(|code| code.as_str().starts_with("inference."));
            inference.filter(|code| code.row().class == class).map(|code| &code.as_str()[10..]).collect()
        };
        assert_eq!(
            of_class(Class::Transient),
            ["provider", "rate_limited", "overloaded", "timeout", "stream_interrupted"]
        );
        assert_eq!(
            of_class(Class::Permanent),
            ["context_overflow", "invalid_request", "unauthorized", "model_not_found", "content_filtered"]
        );
        assert_eq!(of_class(Class::FailFast), ["all_models_unavailable", "cancelled"]);
    }

    #[test]
    fn j03_an_applications_code_is_kept_and_takes_the_application_row() {
        let code: ErrorCode = serde_json::from_value("SOLD_OUT".into()).unwrap();
        assert_eq!(code, ErrorCode::Application(ApplicationCode::new("SOLD_OUT").unwrap()));
        assert_eq!(serde_json::to_value(&code).unwrap(), "SOLD_OUT");
        let Row { class, http, exit, json_rpc, .. } = *code.row();
        assert_eq!((class, http, exit, json_rpc), (Class::Permanent, 400, 1, -32000));
        assert_ne!(code, Code::Timeout);
        assert_eq!(ErrorCode::from(Code::Timeout), Code::Timeout);
    }

    #[test]
    fn j03_an_application_can_take_neither_a_code_of_the_table_nor_another_form() {
        let too_long = "A".repeat(65);
        for text in
            ["TIMEOUT", "CANCELLED", "", "sold_out", "Sold", "1ST", "_A", "A-B", "A B", "É", &too_long]
        {
            assert_eq!(ApplicationCode::new(text), Err(InvalidCode(text.to_owned())));
        }
        for text in ["A", "E2", "SOLD_OUT", &too_long[1..]] {
            assert_eq!(ApplicationCode::new(text).unwrap().as_str(), text);
        }
        assert!(serde_json::from_value::<ApplicationCode>("TIMEOUT".into()).is_err());
        assert_eq!(ErrorCode::parse("storage.unheard_of"), Err(InvalidCode("storage.unheard_of".into())));
    }

    #[test]
    fn classes_and_retries_are_written_as_their_words() {
        for class in [Class::Transient, Class::Permanent, Class::FailFast, Class::Conflict] {
            assert_eq!(serde_json::from_value::<Class>(class.as_str().into()).unwrap(), class);
        }
        for retry in [Retry::No, Retry::Backoff, Retry::AfterRecovery, Retry::SameKey] {
            assert_eq!(serde_json::from_value::<Retry>(retry.as_str().into()).unwrap(), retry);
        }
        assert_eq!(Class::FailFast.as_str(), "fail-fast");
    }

    #[test]
    fn j03_the_document_has_a_line_for_every_code_and_one_for_applications() {
        let page = errors_markdown();
        assert!(page.starts_with("# Errors\n"));
        for code in Code::ALL {
            assert_eq!(page.matches(&format!("| `{code}` |")).count(), 1, "{code}");
        }
        assert!(page.contains(
            "| `inference.rate_limited` | transient | 429 | 1 | -32007 | backoff | Wait as long as the \
             provider's `Retry-After` says, then repeat the request. |\n"
        ));
        assert!(page.contains("| application | permanent | 400 | 1 | -32000 | no |"));
        let groups: BTreeSet<&str> = Code::ALL.iter().map(|code| code.group()).collect();
        assert_eq!(page.matches("\n## ").count(), groups.len() + 1, "a group is split");
    }
}
