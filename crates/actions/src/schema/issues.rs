//! Validation errors as issues: where, and what was expected; never the value itself.

use jsonschema::error::{TypeKind, ValidationError, ValidationErrorKind as Kind};
use jsonschema::paths::LocationSegment;
use serde_json::Value;

use crate::error::ISSUES_COUNTED_MAX;
use crate::{Issue, PathSegment};

/// So many options of an enumeration are named in a message.
const OPTIONS_NAMED_MAX: usize = 20;

pub(super) fn collect<'a>(errors: impl Iterator<Item = ValidationError<'a>>) -> Vec<Issue> {
    let mut issues = Vec::new();
    for error in errors {
        add(&mut issues, &error);
        if issues.len() >= ISSUES_COUNTED_MAX {
            break;
        }
    }
    issues
}

fn add(issues: &mut Vec<Issue>, error: &ValidationError<'_>) {
    let path: Vec<PathSegment> = error
        .instance_path()
        .segments()
        .map(|segment| match segment {
            LocationSegment::Property(key) => PathSegment::Key(key.to_string()),
            LocationSegment::Index(index) => PathSegment::Index(index as u64),
        })
        .collect();
    let beneath = |key: &str| {
        let mut path = path.clone();
        path.push(PathSegment::Key(key.to_owned()));
        path
    };
    match error.kind() {
        Kind::Required { property } => {
            let key = property.as_str().unwrap_or_default();
            issues.push(Issue { path: beneath(key), message: "Required value is missing.".to_owned() });
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            issues.extend(
                unexpected.iter().map(|key| Issue {
                    path: beneath(key),
                    message: format!("Unexpected property \"{key}\"."),
                }),
            );
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => add_branches(issues, path, context),
        kind => issues.push(Issue { path, message: message(kind, error) }),
    }
}

/// A value that fits none of several alternatives: where only one of them could have been meant, its issues.
fn add_branches(issues: &mut Vec<Issue>, path: Vec<PathSegment>, branches: &[Vec<ValidationError<'static>>]) {
    // Each branch is one literal: an enumeration whose options have descriptions.
    let literal = |errors: &Vec<ValidationError<'static>>| {
        errors.iter().find_map(|error| match error.kind() {
            Kind::Constant { expected_value } => Some(expected_value.as_ref().clone()),
            _ => None,
        })
    };
    if let Some(options) = branches.iter().map(literal).collect::<Option<Vec<Value>>>() {
        return issues.push(Issue { path, message: one_of(&Value::Array(options)) });
    }
    let meant: Vec<_> = branches
        .iter()
        .filter(|errors| {
            !errors.iter().any(|error| matches!(error.kind(), Kind::Type { .. } | Kind::Constant { .. }))
        })
        .collect();
    match (meant.as_slice(), branches) {
        ([only], _) => only.iter().for_each(|error| add(issues, error)),
        ([], branches) => {
            let mut expected = Vec::new();
            for error in branches.iter().flatten() {
                if let Kind::Type { kind } = error.kind() {
                    expected.push(type_names(kind));
                }
            }
            let message = if expected.is_empty() || expected.len() != branches.len() {
                "Expected one of the allowed alternatives.".to_owned()
            } else {
                format!("Expected {}.", expected.join(" or "))
            };
            issues.push(Issue { path, message });
        }
        _ => issues.push(Issue { path, message: "Expected one of the allowed alternatives.".to_owned() }),
    }
}

fn message(kind: &Kind, error: &ValidationError<'_>) -> String {
    match kind {
        Kind::Type { kind } => format!("Expected {}.", type_names(kind)),
        Kind::MinLength { limit } => format!("Expected at least {limit} characters."),
        Kind::MaxLength { limit } => format!("Expected at most {limit} characters."),
        Kind::Pattern { pattern } => format!("Expected string to match /{pattern}/."),
        Kind::Format { format } => format!("Expected valid {format}."),
        Kind::Minimum { limit } => format!("Expected value >= {limit}."),
        Kind::Maximum { limit } => format!("Expected value <= {limit}."),
        Kind::ExclusiveMinimum { limit } => format!("Expected value > {limit}."),
        Kind::ExclusiveMaximum { limit } => format!("Expected value < {limit}."),
        Kind::MultipleOf { multiple_of } => format!("Expected a multiple of {multiple_of}."),
        Kind::MinItems { limit } => format!("Expected at least {limit} items."),
        Kind::MaxItems { limit } => format!("Expected at most {limit} items."),
        Kind::MinProperties { limit } => format!("Expected at least {limit} properties."),
        Kind::MaxProperties { limit } => format!("Expected at most {limit} properties."),
        Kind::UniqueItems => "Expected items to be unique.".to_owned(),
        Kind::Enum { options } => one_of(options),
        Kind::Constant { expected_value } => format!("Expected literal {expected_value}."),
        Kind::FalseSchema => "No value is allowed here.".to_owned(),
        // The library's own words, with the value masked.
        _ => {
            let text = error.masked_with("the value").to_string();
            let mut characters = text.chars();
            let first = characters.next().map(char::to_uppercase).into_iter().flatten();
            first.chain(characters).chain(['.']).collect()
        }
    }
}

fn type_names(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(name) => name.to_string(),
        TypeKind::Multiple(names) => {
            names.iter().map(|name| name.to_string()).collect::<Vec<_>>().join(" or ")
        }
    }
}

fn one_of(options: &Value) -> String {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut named: Vec<String> = options
        .iter()
        .take(OPTIONS_NAMED_MAX)
        .map(|option| option.as_str().map_or_else(|| option.to_string(), str::to_owned))
        .collect();
    if options.len() > OPTIONS_NAMED_MAX {
        named.push(format!("and {} more", options.len() - OPTIONS_NAMED_MAX));
    }
    format!("Expected one of: {}.", named.join(", "))
}

/// The issue behind a failure of a type's own `Deserialize`, for what its schema could not say.
pub(crate) fn from_serde(error: &serde_path_to_error::Error<serde_json::Error>) -> Issue {
    use serde_path_to_error::Segment;
    let path = error
        .path()
        .iter()
        .filter_map(|segment| match segment {
            Segment::Seq { index } => Some(PathSegment::Index(*index as u64)),
            Segment::Map { key } => Some(PathSegment::Key(key.clone())),
            Segment::Enum { .. } | Segment::Unknown => None,
        })
        .collect();
    let text = error.inner().to_string();
    // Serde quotes the value before the comma; only what comes after it is safe to repeat.
    let message = match text.rsplit_once(", expected ") {
        Some((_, expected)) => format!("Expected {expected}."),
        None => runyard_redact::process::text(&text),
    };
    Issue { path, message }
}
