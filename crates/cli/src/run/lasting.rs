//! A yes that reaches beyond its run is a rule: what that rule would allow is shown before it is meant.

use runyard::{ActionError, Code};
use runyard_domain::gate::rule_for;
use serde_json::{Value, json};

use super::data;
use crate::hub_client::HubClient;
use crate::views;

/// What the rule would change that follows from a yes in this scope, as lines.
pub(crate) async fn shown(
    client: &HubClient,
    approval: &str,
    scope: &str,
) -> Result<Vec<String>, ActionError> {
    let found = data(client.invoke("approval_show", json!({"id": approval}), true, None).await?)?;
    let asked = &found["approval"];
    let mut rule = rule(asked)?;
    rule["scope"] = scope.into();
    if scope == "session" {
        let run = data(client.invoke("run_show", json!({"id": asked["runId"]}), true, None).await?)?;
        rule["session"] = run["run"]["sessionId"].clone();
    }
    rule["dryRun"] = true.into();
    let looked = data(client.invoke("policy_add", rule, true, None).await?)?;
    let text = views::for_people("policy_add", looked);
    Ok(text.as_str().unwrap_or_default().lines().map(str::to_owned).collect())
}

/// The rule that says exactly what is asked.
fn rule(asked: &Value) -> Result<Value, ActionError> {
    let request = serde_json::from_value(asked["request"].clone()).ok();
    let text = request.filter(|_| asked["redacted"] != true).and_then(|request| rule_for(&request));
    let Some(text) = text else {
        let message = "No rule says exactly this request, so a yes reaches no further than the run.";
        return Err(ActionError::new(Code::ValidationError, message));
    };
    let mut rule = serde_json::to_value(text).map_err(|error| ActionError::internal(error.to_string()))?;
    rule["agent"] = asked["agentId"].clone();
    rule["workspace"] = asked["workspace"]["label"].clone();
    Ok(rule)
}
