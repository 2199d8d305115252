//! The engine's errors as an action's, each with its own code.

use runyard_actions::{ActionError, Issue, PathSegment};
use runyard_domain::{Class, Code};
use runyard_engine::EngineError;

/// What an action fails with when the engine did not do what it was asked to.
pub(crate) fn failed(error: EngineError) -> ActionError {
    let code = error.code();
    if let EngineError::Invalid { path, message } = error {
        return ActionError::invalid_input(vec![issue(path, message)]);
    }
    // What went wrong inside is for whoever runs the hub: it may name files of theirs.
    let inside = code.row().http >= 500 || matches!(error, EngineError::Storage(_));
    let message = match (code, inside) {
        (Code::InternalError, _) => return ActionError::internal(error.to_string()),
        (_, true) => {
            tracing::error!(%code, %error, "the engine could not do what it was asked to");
            "The hub cannot read or write its record; its log says why.".to_owned()
        }
        (_, false) => sentence(&error.to_string()),
    };
    let failed = ActionError::new(code, message);
    if code.row().class == Class::Transient { failed.retryable() } else { failed }
}

/// Something else of the engine's (the installation, the list of workspaces) that failed.
pub(crate) fn failing(error: impl Into<EngineError>) -> ActionError {
    failed(error.into())
}

/// The same, where what can be wrong with the input is this field.
pub(crate) fn failing_at(field: &'static str, error: impl Into<EngineError>) -> ActionError {
    let error = error.into();
    match error.code() {
        Code::ValidationError => {
            ActionError::invalid_input(vec![Issue::at(field, sentence(&error.to_string()))])
        }
        _ => failed(error),
    }
}

/// There is no such thing, or not for this caller.
pub(crate) fn not_found(what: &str) -> ActionError {
    ActionError::new(Code::NotFound, format!("There is no {what}."))
}

/// An issue at a path such as `executionPolicy.timeoutMs`.
fn issue(path: &str, message: String) -> Issue {
    let path = path.split('.').map(|key| PathSegment::Key(key.to_owned())).collect();
    Issue { path, message }
}

/// The text with a capital letter and a full stop. An id that it begins with stays as it is: people copy it.
fn sentence(text: &str) -> String {
    let end = if text.ends_with(['.', '?', '!']) { "" } else { "." };
    let is_id = text.split(' ').next().is_some_and(|word| word.contains('_'));
    if is_id {
        return format!("{text}{end}");
    }
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).chain(end.chars()).collect()
}

#[cfg(test)]
mod tests {
    use runyard_domain::{ApprovalId, RunId};

    use super::*;

    #[test]
    fn j03_an_engines_error_keeps_its_code() {
        let run = RunId::from_parts(1, &[2; 10]);
        let ended = failed(EngineError::Conflict { run, state: "completed", what: "it has ended" });
        assert_eq!(*ended.code(), Code::Conflict);
        assert_eq!(ended.message(), format!("Run {run} is completed: it has ended."));
        assert!(!ended.is_retryable());
        let missing = failed(EngineError::NotFound { what: "run x".to_owned() });
        assert_eq!((missing.code().as_str(), missing.message()), ("NOT_FOUND", "There is no run x."));
    }

    #[test]
    fn an_id_at_the_beginning_stays_as_it_is() {
        let approval = ApprovalId::from_parts(1, &[2; 10]);
        let decided =
            failed(EngineError::Decided { approval, resolution: "approved", by: "owner".to_owned() });
        assert_eq!(decided.message(), format!("{approval} was approved by owner already."));
    }

    #[test]
    fn what_went_wrong_inside_keeps_its_code_and_tells_nothing() {
        let cause = std::io::Error::other("/home/ada/secret.db is gone");
        let workspaces = failing(runyard_backend::WorkspaceError::Io { source: cause });
        assert_eq!(workspaces.code().as_str(), "storage.io");
        assert!(workspaces.is_retryable() && !workspaces.message().contains("ada"), "{workspaces:?}");
        let json = failed(serde_json::from_str::<u8>("x").unwrap_err().into());
        assert_eq!(*json.code(), Code::InternalError);
    }

    #[test]
    fn a_wrong_field_is_an_issue_at_its_path() {
        let error = failed(EngineError::Invalid {
            path: "executionPolicy.timeoutMs",
            message: "Expected 1 to 9.".to_owned(),
        });
        assert_eq!(*error.code(), Code::ValidationError);
        assert_eq!(error.issues()[0].to_string(), "executionPolicy.timeoutMs: Expected 1 to 9.");
    }
}
