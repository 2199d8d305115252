//! The schema of what an artifact's kind must say. What is read is the domain's own type, which also checks it.

use schemars::JsonSchema;

/// What an artifact is, with what its kind must say.
#[derive(JsonSchema)]
#[schemars(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used; a test holds it against the domain's type")]
pub(crate) enum FactsSchema {
    /// What changed between two trees.
    Diff {
        /// What it starts from.
        #[schemars(length(min = 1))]
        base: String,
        /// What it leads to.
        #[schemars(length(min = 1))]
        target: String,
        /// The first of the files, relative to the workspace.
        #[schemars(length(min = 1, max = 64))]
        paths: Vec<String>,
        /// What it is, in a line.
        #[schemars(length(min = 1))]
        summary: String,
    },
    /// A change that can be applied.
    Patch {
        /// The first of the files, relative to the workspace.
        #[schemars(length(min = 1, max = 64))]
        files: Vec<String>,
        /// What became of it.
        apply_status: ApplyStatusSchema,
        /// What asks for applying it, or allowed it. It may be left out only while the patch is proposed.
        approval_id: Option<String>,
    },
    /// A file as it was when it was read.
    FilePreview {
        /// The file, relative to the workspace.
        #[schemars(length(min = 1))]
        path: String,
        /// When it was read, as in 2026-01-31T12:00:00.000Z.
        #[schemars(length(min = 1))]
        read_at: String,
    },
    /// A picture of a screen.
    Screenshot {
        /// How large the screen was.
        viewport: ViewportSchema,
        /// Which page.
        #[schemars(length(min = 1))]
        route: String,
        /// In which colours, such as light or dark.
        #[schemars(length(min = 1))]
        theme: String,
        /// In which language, such as en.
        #[schemars(length(min = 1))]
        language: String,
        /// Whether somebody looked for what is private in it. Only a person can say that it passed.
        privacy_review: PrivacyReviewSchema,
    },
    /// Documents that were built.
    GeneratedDocs {
        /// Which page they were built from.
        #[schemars(length(min = 1))]
        source_route: String,
        /// In which language, such as en.
        #[schemars(length(min = 1))]
        language: String,
        /// How building them went.
        build_status: BuildStatusSchema,
    },
    /// What a backend and its adapter said to each other, for whoever looks for a fault.
    Debug {
        /// How many lines.
        lines: u64,
        /// How many lines more were left out.
        omitted: u64,
    },
    /// Anything else.
    File {
        /// Where it lies in the workspace, if it does.
        path: Option<String>,
    },
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct ViewportSchema {
    /// In pixels.
    #[schemars(range(min = 1, max = 16384))]
    width: u32,
    /// In pixels.
    #[schemars(range(min = 1, max = 16384))]
    height: u32,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum ApplyStatusSchema {
    Proposed,
    Approved,
    Applying,
    Applied,
    Rejected,
    Failed,
    Undone,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum PrivacyReviewSchema {
    Pending,
    Passed,
    Failed,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum BuildStatusSchema {
    Succeeded,
    Failed,
}

#[cfg(test)]
mod tests {
    use runyard_domain::ArtifactFacts;
    use serde_json::{Value, json};

    const EVENTS: &str = include_str!("../../domain/tests/golden/events.jsonl");

    /// The facts that events were ever recorded with: every kind and every word of them.
    fn recorded() -> Vec<Value> {
        let lines = EVENTS.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| line["payload"]["facts"].clone()).filter(Value::is_object).collect()
    }

    fn takes(facts: &Value) -> bool {
        let action = crate::artifacts::actions().remove(0).unwrap();
        let input = json!({"id": "run_1", "name": "a", "facts": facts, "text": "a"});
        action.spec().input.issues_with_defaults(&input) == Ok(vec![])
    }

    #[test]
    fn c14_the_schema_takes_what_the_domain_takes_and_nothing_without_a_field() {
        assert!(recorded().len() > 10);
        for facts in recorded() {
            assert!(takes(&facts), "{facts}");
            for field in facts.as_object().unwrap().keys() {
                let mut without = facts.clone();
                without.as_object_mut().unwrap().remove(field);
                let read = serde_json::from_value::<ArtifactFacts>(without.clone());
                assert_eq!(takes(&without), read.is_ok(), "without {field}: {facts}");
            }
            let mut more = facts.clone();
            more["more"] = json!(1);
            assert!(!takes(&more), "{more}");
        }
        assert!(!takes(&json!({"kind": "something"})));
    }
}
