//! What a caller says of a run that is to be made.

use runyard_domain::ExecutionPolicy;
use runyard_domain::run::{Budget, Task};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// What is to be done: a text for an agent, or one action.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum TaskInput {
    /// A text for an agent.
    Text(String),
    /// One action with its input.
    Action(ActionTask),
}

/// One action with its input.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ActionTask {
    /// The action's name.
    action: String,
    /// Its input.
    #[serde(default)]
    input: Value,
}

impl From<TaskInput> for Task {
    fn from(task: TaskInput) -> Task {
        match task {
            TaskInput::Text(text) => Task::Text { text, redacted: false },
            TaskInput::Action(ActionTask { action, input }) => Task::Action { action, input },
        }
    }
}

/// How a run is to be executed. What is left out is the agent profile's.
// Only the schema: what is read is the domain's own type.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used; a test holds it against the domain's type")]
pub(crate) struct ExecutionPolicySchema {
    /// How its processes are confined.
    sandbox: Option<SandboxSchema>,
    /// Whether it may use the network.
    network: Option<NetworkSchema>,
    /// Whether people may be asked; never means that what would be asked is denied.
    approval: Option<ApprovalSchema>,
    /// How long the whole run may take, not counting the time in which it waits for people.
    #[schemars(range(min = 1, max = ExecutionPolicy::TIMEOUT_MS_MAX))]
    timeout_ms: Option<u64>,
    /// How long it may be silent.
    #[schemars(range(min = 1, max = ExecutionPolicy::TIMEOUT_MS_MAX))]
    idle_ms: Option<u64>,
    /// How long it stays open for a further turn after one has ended, still among the active runs and within timeoutMs; without
    /// it the run ends with its last turn.
    #[schemars(range(min = 1, max = ExecutionPolicy::TIMEOUT_MS_MAX))]
    keep_open_ms: Option<u64>,
    /// What it may use at most, as far as its backend says what it uses.
    budget: Option<BudgetSchema>,
    /// What becomes of what it changed: a person is asked to apply it, or it stays in the checkout for later.
    changes: Option<ChangesSchema>,
    /// The secrets that it may be given: those of its own backend profile, which are taken where this is left out.
    secret_scope: Option<SecretScopeSchema>,
}

#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum BudgetSchema {
    /// What it may cost, in US dollars.
    Cost(#[schemars(regex(pattern = DOLLARS))] String),
    /// The limits.
    Limits(BudgetLimitsSchema),
}

/// An amount in US dollars.
const DOLLARS: &str = r"^[0-9]{1,13}(\.[0-9]{1,6})?$";

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct BudgetLimitsSchema {
    /// What it may cost, in US dollars, as in "2.50".
    #[schemars(regex(pattern = DOLLARS))]
    cost_usd: Option<String>,
    /// How many tokens, in and out together.
    #[schemars(range(min = 1, max = Budget::TOKENS_MAX))]
    tokens: Option<u64>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(dead_code, reason = "only its schema is used")]
enum SandboxSchema {
    ReadOnly,
    WorkspaceWrite,
    None,
}

#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(dead_code, reason = "only its schema is used")]
enum NetworkSchema {
    Deny,
    Ask,
    Allow,
}

#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(dead_code, reason = "only its schema is used")]
enum ChangesSchema {
    Ask,
    Keep,
}

#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(dead_code, reason = "only its schema is used")]
enum ApprovalSchema {
    Ask,
    Never,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct SecretScopeSchema {
    /// Of which backend profile, and where they are. Names only, never a value.
    #[schemars(default)]
    provider_credentials: Vec<ProviderCredentialSchema>,
}

#[derive(serde::Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ProviderCredentialSchema {
    /// The backend profile.
    profile: String,
    /// Where its secrets are.
    secret_ref: SecretRefSchema,
}

#[derive(serde::Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SecretRefSchema {
    /// The name.
    name: String,
    /// Which of its keys; all that the profile needs without.
    #[schemars(default)]
    keys: Vec<String>,
}

#[cfg(test)]
mod tests {
    use runyard_actions::Schema;
    use runyard_domain::WantedExecution;
    use serde_json::json;

    use super::*;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Holder {
        policy: ExecutionPolicySchema,
    }

    #[test]
    fn the_schema_of_an_execution_policy_takes_what_the_domain_writes() {
        let schema = Schema::of_input::<Holder>();
        let all = WantedExecution::from(ExecutionPolicy::default());
        let mut written = serde_json::to_value(all).unwrap();
        assert_eq!(written.get("secretScope"), None, "what is not said is the profile's own");
        let entry = json!({ "profile": "codex", "secretRef": { "name": "codex", "keys": ["auth.json"] } });
        written["secretScope"] = json!({ "providerCredentials": [entry] });
        written["keepOpenMs"] = json!(600_000);
        assert_eq!(schema.issues(&json!({ "policy": written })), Ok(vec![]));
        for budget in [json!("2.50"), json!({ "costUsd": "2" }), json!({ "costUsd": "2.50", "tokens": 9 })] {
            written["budget"] = budget;
            assert_eq!(schema.issues(&json!({ "policy": written })), Ok(vec![]));
        }
        let read: WantedExecution = serde_json::from_value(written).unwrap();
        let budget = Budget { cost_usd: "2.50".parse().ok(), tokens: Some(9) };
        assert_eq!((read.budget, read.keep_open_ms), (Some(budget), Some(600_000)));
        assert_eq!(read.secret_scope.unwrap().provider_credentials.len(), 1);
        assert_eq!(schema.issues_with_defaults(&json!({ "policy": {} })), Ok(vec![]));
        assert_eq!(serde_json::from_value::<WantedExecution>(json!({})).unwrap(), WantedExecution::default());
        let described = schema.json().to_string();
        assert!(
            !described.contains(r#""default":{"providerCredentials""#),
            "an absent scope stays absent: {described}"
        );
        for left_out in ["timeoutMs", "sandbox", "network", "approval", "changes"] {
            let place = format!("/$defs/ExecutionPolicySchema/properties/{left_out}/default");
            let default = schema.json().pointer(&place);
            assert!(
                default.is_none_or(serde_json::Value::is_null),
                "{left_out} is the agent profile's: {default:?}"
            );
        }
        for wrong in [
            json!({ "sandbox": "off" }),
            json!({ "approval": "always" }),
            json!({ "timeoutMs": 0 }),
            json!({ "keepOpenMs": 0 }),
            json!({ "keepOpenMs": ExecutionPolicy::TIMEOUT_MS_MAX + 1 }),
            json!({ "colour": "red" }),
            json!({ "budget": "1,5" }),
            json!({ "budget": 1.5 }),
            json!({ "budget": { "costUsd": 1.5 } }),
            json!({ "budget": { "token": 1 } }),
        ] {
            let issues = schema.issues_with_defaults(&json!({ "policy": wrong })).unwrap();
            assert_eq!(issues.len(), 1, "{wrong}: {issues:?}");
            assert!(
                serde_json::from_value::<WantedExecution>(wrong)
                    .map_or(true, |policy| policy.timeout_ms == Some(0) || policy.keep_open_ms.is_some())
            );
        }
    }

    #[test]
    fn a_task_is_a_text_or_one_action() {
        let read = |json| serde_json::from_value::<TaskInput>(json).map(Task::from);
        assert_eq!(
            read(json!("Tidy up")).unwrap(),
            Task::Text { text: "Tidy up".to_owned(), redacted: false }
        );
        assert_eq!(
            read(json!({ "action": "task_list", "input": { "done": true } })).unwrap(),
            Task::Action { action: "task_list".to_owned(), input: json!({ "done": true }) }
        );
        assert!(read(json!({ "text": "Tidy up" })).is_err());
    }
}
