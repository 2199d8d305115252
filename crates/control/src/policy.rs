//! The policy: what the gate goes by, rules that people add, and what it would say to a request.

mod covers;
mod preview;

use runyard_actions::{Action, ActionError, Context, DefinitionError, Issue, action};
use runyard_domain::gate::{self, Place, Policy, Preset, Request, Subject};
use runyard_domain::run::Who;
use runyard_domain::{AgentProfile, Approval, ExecutionPolicy, Network, RunId, SessionId};
use runyard_engine::{Engine, EngineError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failed::{failed, failing};
use crate::rule_view::{EffectWord, RuleInput, RuleView, rule_in_words};
use crate::scope::{check, id};
use preview::Preview;

pub(crate) fn actions() -> Vec<Result<Action, DefinitionError>> {
    vec![policy_show(), policy_add(), policy_remove(), policy_test()]
}

#[derive(Serialize, JsonSchema)]
struct PolicyAnswer {
    /// The policy.
    policy: PolicyView,
}

#[derive(Serialize, JsonSchema)]
struct PolicyView {
    /// Grows with every change of the stored rules.
    version: u64,
    /// What is done where no rule speaks: default or strict. An agent profile may be stricter.
    preset: &'static str,
    /// The rules of the configuration.
    rules: Vec<RuleView>,
    /// The rules that people added.
    stored: Vec<RuleView>,
}

/// Show the policy that counts now: the configuration's rules and those that people added.
#[action(
    crate = "runyard_actions",
    idempotency = "idempotent",
    permissions = ["policy.read"],
    http = "GET /api/v1/policy"
)]
async fn policy_show(ctx: &Context) -> Result<PolicyAnswer, ActionError> {
    let engine = ctx.service::<Engine>()?;
    let policy = engine.policy();
    let stored = engine.installation().registry();
    Ok(PolicyAnswer {
        policy: PolicyView {
            version: policy.version,
            preset: policy.preset.as_str(),
            rules: policy.rules.iter().map(RuleView::from).collect(),
            stored: stored.rules().iter().map(RuleView::from).collect(),
        },
    })
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RuleAnswer {
    /// The rule.
    rule: RuleView,
    /// What it covers, in words.
    covers: String,
    /// What else may have been meant, where the pattern says less than it may seem to.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// What it changes for what agents asked for lately, and for what they may well ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    preview: Option<Preview>,
    /// Whether it was only looked at, and is not stored.
    dry_run: bool,
    /// The version of the policy from now on.
    version: u64,
}

/// Add a rule to the policy, after a look at what else it would allow. It reaches running runs at once; a rule that denies wins
/// over every other.
#[action(
    crate = "runyard_actions",
    side_effects = "write",
    idempotency = "non_idempotent",
    people_only,
    permissions = ["policy.write"],
    http = "POST /api/v1/policy/rules",
    example = r#"{"effect": "allow", "kind": "shell", "match": "cargo test"}"#
)]
async fn policy_add(input: RuleInput, ctx: &Context) -> Result<RuleAnswer, ActionError> {
    let engine = ctx.service::<Engine>()?;
    if let Some(label) = &input.workspace {
        known_label(&engine, label).await?;
    }
    if let Some(agent) = &input.agent {
        known_agent(&engine, agent)?;
    }
    let dry_run = input.dry_run;
    let rule = input.rule()?;
    let (covers, hint) = covers::covers(&rule);
    // What cannot be shown keeps nobody from storing it: it may be what denies.
    let preview = match preview::preview(&engine, &rule).await {
        Err(error) if dry_run => return Err(error),
        preview => preview.ok(),
    };
    let rule = if dry_run {
        RuleView::from(&rule)
    } else {
        let who = Who::from(ctx.actor());
        let stored = engine.installation().add_rule(rule, &who).await.map_err(failing)?;
        engine.policy_changed().await;
        RuleView::from(&stored)
    };
    Ok(RuleAnswer { rule, covers, hint, preview, dry_run, version: engine.policy().version })
}

/// A rule for an agent that there is not would silently never speak.
fn known_agent<'a>(engine: &'a Engine, id: &str) -> Result<&'a AgentProfile, ActionError> {
    let agents = &engine.catalog().agents;
    agents.get(id).ok_or_else(|| {
        let known = agents.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        ActionError::invalid_input(vec![Issue::at("agent", format!("Expected an agent profile: {known}."))])
    })
}

/// A rule for a workspace that nobody has would silently never speak.
async fn known_label(engine: &Engine, label: &str) -> Result<(), ActionError> {
    let known = engine.workspaces().list().await.map_err(failing)?;
    if known.iter().any(|workspace| workspace.label == label) {
        return Ok(());
    }
    let labels: Vec<&str> = known.iter().map(|workspace| workspace.label.as_str()).collect();
    let message = match labels.as_slice() {
        [] => "There is no workspace yet.".to_owned(),
        labels => format!("Expected the label of a workspace: {}.", labels.join(", ")),
    };
    Err(ActionError::invalid_input(vec![Issue::at("workspace", message)]))
}

#[derive(Deserialize, JsonSchema)]
struct Remove {
    /// The stored rule's id.
    id: String,
}

#[derive(Serialize, JsonSchema)]
struct Removed {
    /// The rule that is gone.
    id: String,
    /// The version of the policy from now on.
    version: u64,
}

/// Remove a rule that somebody added. Rules of the configuration are changed there.
#[action(
    crate = "runyard_actions",
    side_effects = "write",
    idempotency = "conditional",
    people_only,
    permissions = ["policy.write"],
    http = "DELETE /api/v1/policy/rules/{id}"
)]
async fn policy_remove(input: Remove, ctx: &Context) -> Result<Removed, ActionError> {
    let engine = ctx.service::<Engine>()?;
    let who = Who::from(ctx.actor());
    engine.installation().remove_rule(&input.id, &who).await.map_err(failing)?;
    engine.policy_changed().await;
    Ok(Removed { id: input.id, version: engine.policy().version })
}

/// Where a run would write.
#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum PlaceWord {
    /// In a checkout of its own.
    #[default]
    Checkout,
    /// In the workspace itself.
    InPlace,
}

#[derive(Deserialize, JsonSchema)]
struct Test {
    /// The agent profile that would ask: needed with a command or a request where no run is named. At the command line "demo" is
    /// meant without it.
    agent: Option<String>,
    /// The workspace in which it would ask: id, label or an absolute path inside it. Needed like the agent; at the command line the
    /// current directory is meant without it.
    workspace: Option<String>,
    /// The run that would ask, so that rules of its own and of its session count too. It stands for agent and workspace.
    run: Option<String>,
    /// A rule to try, in words: effect, kind and match, as in `allow shell cargo test *`. It counts as if it were added;
    /// without a command or a request it is tried on what agents asked for lately.
    #[schemars(length(max = 1024))]
    rule: Option<String>,
    /// A command line, as a short way to ask for {"kind": "shell"}.
    #[schemars(length(max = 65536))]
    command: Option<String>,
    /// What it would ask for, by its kind.
    // Said to be left out where it is none, so that the schema has no default that it refuses itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "request")]
    request: Option<Value>,
    /// Where it would write.
    #[serde(default)]
    place: PlaceWord,
}

fn request(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": { "kind": { "type": "string" } },
        "required": ["kind"],
        "additionalProperties": true,
    })
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Judged {
    /// What would become of it.
    effect: EffectWord,
    /// Why, in a sentence.
    reason: String,
    /// How much is at stake: low, medium or high.
    risk: String,
    /// The parts of it, each with what would become of it.
    parts: Vec<JudgedPart>,
    /// What else there is to know, as which part only the sandbox bounds.
    notes: Vec<String>,
    /// The version of the policy that was asked.
    policy_version: u64,
    /// What the rule that is tried would have changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<Preview>,
}

#[derive(Serialize, JsonSchema)]
struct JudgedPart {
    /// The command, the path, or whatever else it is.
    what: String,
    /// What would become of it.
    effect: EffectWord,
    /// Why.
    reason: String,
}

/// Say how the gate would judge a request now, and why; or what a rule would have changed for what agents asked for lately.
/// Nothing is done and nobody is asked.
#[action(
    crate = "runyard_actions",
    idempotency = "idempotent",
    permissions = ["policy.read"],
    http = "POST /api/v1/policy/test",
    example = r#"{"agent": "demo", "workspace": "demo", "command": "git push && rm -rf build"}"#
)]
async fn policy_test(input: Test, ctx: &Context) -> Result<Judged, ActionError> {
    let engine = ctx.service::<Engine>()?;
    let tried = input.rule.as_deref().map(rule_in_words).transpose()?;
    if let (Some(rule), None, None) = (&tried, &input.command, &input.request) {
        // What others asked for is none of an agent's business.
        if ctx.actor().is_agent() {
            return Err(failing(EngineError::ForPeopleOnly));
        }
        return replayed(&engine, rule).await;
    }
    let request = asked(input.command, input.request)?;
    let asker = match input.run {
        Some(run) => Asker::of_run(&engine, ctx, &run, (input.agent, input.workspace)).await?,
        None => Asker::of_agent(&engine, input.agent, input.workspace).await?,
    };
    let mut policy = stricter(engine.policy(), asker.preset);
    policy.take_away_marked(&asker.rules_used);
    policy.stored.extend(tried);
    let subject = Subject {
        agent: &asker.agent,
        workspace: &asker.workspace,
        run: asker.run.map(|(run, _)| run),
        session: asker.run.map(|(_, session)| session),
        place: match input.place {
            PlaceWord::Checkout => Place::Checkout,
            PlaceWord::InPlace => Place::InPlace,
        },
        people_may_be_asked: asker.execution.approval == Approval::Ask,
        network_is_allowed: asker.execution.network == Network::Allow,
        now: engine.now(),
    };
    let judgement = gate::judge(&policy, &subject, &request);
    if let Some(why) = asker.execution.rules_out(&request) {
        return Ok(Judged::ruled_out(&judgement, why, policy.version));
    }
    let notes = judgement.notes.iter().map(ToString::to_string);
    Ok(Judged {
        effect: judgement.effect.into(),
        reason: judgement.to_string(),
        risk: judgement.risk.to_string(),
        parts: judgement.parts.iter().map(JudgedPart::from).collect(),
        notes: notes.chain(covers::notes(&policy, &judgement)).collect(),
        policy_version: policy.version,
        replay: None,
    })
}

/// Who would ask.
struct Asker {
    agent: String,
    workspace: String,
    run: Option<(RunId, SessionId)>,
    preset: Preset,
    execution: ExecutionPolicy,
    /// The marks of the rules for one time that the run used up.
    rules_used: Vec<String>,
}

impl Asker {
    /// An agent that has no run yet.
    async fn of_agent(
        engine: &Engine,
        agent: Option<String>,
        workspace: Option<String>,
    ) -> Result<Self, ActionError> {
        let agent = known_agent(engine, agent.as_deref().unwrap_or_default())?;
        let workspace = workspace.ok_or_else(|| {
            let message = "Expected a workspace: id, label or an absolute path inside it.";
            ActionError::invalid_input(vec![Issue::at("workspace", message)])
        })?;
        let workspace = engine.workspaces().resolve(&workspace).await.map_err(failing)?;
        // As it counts there: the workspace's own configuration may narrow it.
        let agent = engine.agent_in(&workspace, &agent.id).await.map_err(failing)?;
        let (preset, execution) = (agent.preset, agent.execution_policy.clone());
        let (agent, workspace) = (agent.id.clone(), workspace.label);
        Ok(Asker { agent, workspace, run: None, preset, execution, rules_used: Vec::new() })
    }

    /// The agent of a run, as far as the caller may see it.
    async fn of_run(
        engine: &Engine,
        ctx: &Context,
        run: &str,
        others: (Option<String>, Option<String>),
    ) -> Result<Self, ActionError> {
        if others != (None, None) {
            let message = "Expected either a run, or an agent and a workspace.";
            return Err(ActionError::invalid_input(vec![Issue::at("run", message)]));
        }
        let run = id("run", run)?;
        check(engine, ctx.actor(), run, ctx.action()).await?;
        let run = engine.run(run).await.map_err(failed)?.run;
        let strict =
            run.planned.is_some_and(|planned| planned.approval_policy.preset == Preset::Strict.as_str());
        let created = run.created;
        Ok(Asker {
            agent: created.agent_id,
            workspace: created.workspace.label,
            run: Some((run.id, created.session_id)),
            preset: if strict { Preset::Strict } else { Preset::Default },
            execution: created.execution_policy,
            rules_used: run.rules_used,
        })
    }
}

/// A rule by itself: what it would have changed.
async fn replayed(engine: &Engine, rule: &gate::Rule) -> Result<Judged, ActionError> {
    let (covers, hint) = covers::covers(rule);
    Ok(Judged {
        effect: rule.effect().into(),
        reason: format!("The rule covers {covers}."),
        risk: gate::Risk::Low.to_string(),
        parts: Vec::new(),
        notes: hint.into_iter().collect(),
        policy_version: engine.policy().version,
        replay: Some(preview::preview(engine, rule).await?),
    })
}

impl Judged {
    /// What the execution policy rules out, whatever the gate says.
    fn ruled_out(judgement: &gate::Judgement, why: &str, policy_version: u64) -> Self {
        let effect = EffectWord::Deny;
        let part = |part: &gate::Part| JudgedPart { what: part.what.clone(), effect, reason: why.to_owned() };
        Judged {
            effect,
            reason: format!("Denied ({} risk): {why}.", judgement.risk),
            risk: judgement.risk.to_string(),
            parts: judgement.parts.iter().map(part).collect(),
            notes: Vec::new(),
            policy_version,
            replay: None,
        }
    }
}

/// An agent profile may be stricter than the installation, never milder.
fn stricter(policy: Policy, preset: Preset) -> Policy {
    let preset = if preset == Preset::Strict { preset } else { policy.preset };
    Policy { preset, ..policy }
}

impl From<&gate::Part> for JudgedPart {
    fn from(part: &gate::Part) -> Self {
        let (what, reason) = (part.what.clone(), part.because.to_string());
        JudgedPart { what, effect: part.effect.into(), reason }
    }
}

/// The request that is meant.
fn asked(command: Option<String>, request: Option<Value>) -> Result<Request, ActionError> {
    let wrong = |field, message: &str| Err(ActionError::invalid_input(vec![Issue::at(field, message)]));
    match (command, request) {
        (Some(command), None) => Ok(Request::Shell { command, cwd: ".".to_owned() }),
        (None, Some(request)) => serde_json::from_value(request).or_else(|_| {
            wrong("request", "Expected a request of a known kind with its fields, as approvals show them.")
        }),
        (Some(_), Some(_)) => wrong("command", "Expected either a command or a request."),
        (None, None) => wrong("request", "Expected a request, or a command."),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_test_is_about_a_command_or_a_request_and_never_both() {
        let shell = || Request::Shell { command: "ls".to_owned(), cwd: ".".to_owned() };
        assert_eq!(asked(Some("ls".to_owned()), None).unwrap(), shell());
        let request = json!({ "kind": "shell", "command": "ls", "cwd": "." });
        assert_eq!(asked(None, Some(request.clone())).unwrap(), shell());
        for (command, request) in [
            (Some("ls".to_owned()), Some(request)),
            (None, None),
            (None, Some(json!({ "kind": "dance" }))),
            (None, Some(json!({ "kind": "shell" }))),
        ] {
            assert!(asked(command, request).is_err());
        }
    }

    #[test]
    fn an_agent_profile_can_only_be_stricter() {
        let of = |preset| Policy { preset, ..Policy::default() };
        assert_eq!(stricter(of(Preset::Strict), Preset::Default).preset, Preset::Strict);
        assert_eq!(stricter(of(Preset::Default), Preset::Strict).preset, Preset::Strict);
        assert_eq!(stricter(of(Preset::Default), Preset::Default).preset, Preset::Default);
    }
}
