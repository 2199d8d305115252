//! Lint: what is allowed but probably not meant.

use runyard_actions::{Action, Idempotency, Runtime, SideEffects, Visibility};
use runyard_domain::Surface;
use serde::Serialize;

/// A shorter description hardly says anything.
const DESCRIPTION_LENGTH_MIN: usize = 12;

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The action.
    pub action: String,
    /// Which rule.
    pub rule: &'static str,
    /// Whether it will fail when used, or only may surprise.
    pub severity: Severity,
    /// What is the matter and what to do.
    pub message: String,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It will fail when used.
    Error,
    /// It may surprise.
    Warning,
}

/// Everything there is to say about the actions of a runtime, worst first.
pub fn lint(runtime: &Runtime) -> Vec<Finding> {
    let mut findings: Vec<Finding> = runtime.actions().flat_map(lint_action).collect();
    findings.sort_by_key(|finding| finding.severity);
    findings
}

fn lint_action(action: &Action) -> Vec<Finding> {
    let spec = action.spec();
    let mut findings = Vec::new();
    let mut add = |rule, severity, message: &str| {
        findings.push(Finding {
            action: action.name().to_owned(),
            rule,
            severity,
            message: message.to_owned(),
        });
    };
    for (schema, which) in [(Some(&spec.input), "input"), (spec.output.as_ref(), "output")] {
        if let Some(Err(error)) = schema.map(runyard_actions::Schema::check) {
            add("INVALID_SCHEMA", Severity::Error, &format!("The {which}: {error}."));
        }
    }
    for (index, example) in spec.examples.iter().enumerate() {
        if spec.input.issues_with_defaults(example).is_ok_and(|issues| !issues.is_empty()) {
            add(
                "INVALID_EXAMPLE",
                Severity::Error,
                &format!("Example {} does not satisfy the input schema.", index + 1),
            );
        }
    }
    if spec.description.trim().len() < DESCRIPTION_LENGTH_MIN {
        add(
            "WEAK_DESCRIPTION",
            Severity::Warning,
            "The description hardly says anything; agents choose by it.",
        );
    }
    if spec.side_effects == SideEffects::Destructive && !spec.requires_confirmation {
        add(
            "DESTRUCTIVE_WITHOUT_CONFIRMATION",
            Severity::Warning,
            "It is destructive, and says that no confirmation is needed. Inside a run a person is asked all the same.",
        );
    }
    if spec.side_effects != SideEffects::Read
        && spec.permissions.is_empty()
        && spec.visibility == Visibility::Public
    {
        add("WRITE_WITHOUT_PERMISSION", Severity::Warning, "It changes something, but needs no permission.");
    }
    if spec.side_effects != SideEffects::Read && spec.idempotency == Idempotency::Unspecified {
        add(
            "UNSPECIFIED_IDEMPOTENCY",
            Severity::Warning,
            "It changes something; say whether twice is as good as once.",
        );
    }
    if spec.input.json().get("type").and_then(|kind| kind.as_str()) != Some("object") {
        add("NON_OBJECT_INPUT", Severity::Warning, "Its input is no object; model tools and flags need one.");
    }
    if spec.output.is_none() && spec.surfaces.contains(&Surface::Mcp) {
        add("NO_OUTPUT_SCHEMA", Severity::Warning, "Without an output schema its results are not checked.");
    }
    findings
}

#[cfg(test)]
mod tests {
    use runyard_actions::{Action, ActionError};
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[test]
    fn lint_names_what_may_surprise_and_what_will_fail() {
        let wipe = Action::define("wipe", "Wipes.")
            .side_effects(SideEffects::Destructive)
            .requires_confirmation(false)
            .input_schema(json!({"type": "object", "properties": {"n": {"type": "integer"}}}))
            .example(json!({"n": "three"}))
            .handler(|_, _| async { Ok(json!(null)) });
        let runtime = Runtime::builder().action(wipe).build().unwrap();
        let rules: Vec<_> = lint(&runtime).into_iter().map(|finding| finding.rule).collect();
        assert_eq!(
            rules,
            [
                "INVALID_EXAMPLE",
                "WEAK_DESCRIPTION",
                "DESTRUCTIVE_WITHOUT_CONFIRMATION",
                "WRITE_WITHOUT_PERMISSION",
                "UNSPECIFIED_IDEMPOTENCY",
                "NO_OUTPUT_SCHEMA"
            ]
        );
    }

    #[test]
    fn an_example_may_leave_out_what_has_a_default() {
        let list = Action::define("list", "Lists what there is.")
            .input_schema(json!({
                "type": "object",
                "properties": {"size": {"type": "integer", "default": 10}},
                "required": ["size"],
            }))
            .output_schema(json!({}))
            .example(json!({}))
            .handler(|_, _| async { Ok(json!(null)) });
        let runtime = Runtime::builder().action(list).build().unwrap();
        assert_eq!(lint(&runtime), []);
    }

    #[derive(Deserialize, JsonSchema)]
    struct Page {
        #[serde(default)]
        #[schemars(range(min = 1))]
        size: u32,
    }

    #[test]
    fn an_invalid_default_of_a_type_is_an_error() {
        let list = Action::define("list", "Lists what there is.")
            .typed(|page: Page, _| async move { Ok::<_, ActionError>(page.size) });
        let runtime = Runtime::builder().action(list).build().unwrap();
        let findings = lint(&runtime);
        let [finding] = findings.as_slice() else { panic!("one finding, not {findings:?}") };
        assert_eq!((finding.rule, finding.severity), ("INVALID_SCHEMA", Severity::Error));
        assert!(finding.message.contains("default of \"size\""), "{}", finding.message);
    }
}
