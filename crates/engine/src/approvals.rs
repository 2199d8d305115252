//! A person's decisions: asked for once, answered once, from wherever.

use std::collections::BTreeMap;

use runyard_domain::gate::{OwnRuns, Request, Rule, RuleText, Scope, rule_for};
use runyard_domain::run::{
    ApprovalRequested, ApprovalResolved, Asked, CommandKind, CommandReceived, DecisionScope, DiffState,
    Failure, OnReject, Resolution, Run, RunEvent, RunState, Who,
};
use runyard_domain::{
    Actor, ApprovalId, Code, CommandId, Comment, RunId, SelectedFile, SessionId, Timestamp,
};
use runyard_store::{Approval, PAGE_MAX};
use serde::Deserialize;
use serde_json::Value;

use crate::endings::{cancelled, completed, failed, withdrawn};
use crate::fresh::fresh;
use crate::record::{Decided, Fact};
use crate::recovery::{RECOVERY_KEY, THE_TURN};
use crate::said::reason_given;
use crate::{Engine, EngineError};

/// A run carries the changes of a run, or takes back what such a run carried.
const CARRIED_MAX: usize = 3;
/// Why an approval that nobody answered is rejected.
pub(crate) const EXPIRED: &str = "Nobody answered in time.";

/// What a person decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Yes.
    Approve,
    /// No.
    Reject,
}

/// A person's answer to an approval.
#[derive(Clone, Debug)]
pub struct Resolve {
    /// Yes or no.
    pub decision: Decision,
    /// The digest of what was looked at.
    pub digest: String,
    /// Why.
    pub reason: Option<String>,
    /// How far it reaches.
    pub scope: DecisionScope,
    /// The answer to a question.
    pub answer: Option<Value>,
    /// Which part of the changes is approved; without it all of them.
    pub selection: Option<Vec<SelectedFile>>,
    /// What is said on lines of the changes.
    pub comments: Vec<Comment>,
    /// Whether the agent is to try again, with what was said.
    pub revise: bool,
}

impl Resolve {
    /// A decision on the one request, with nothing else said.
    pub fn new(decision: Decision, digest: impl Into<String>) -> Self {
        Resolve {
            decision,
            digest: digest.into(),
            reason: None,
            scope: DecisionScope::Once,
            answer: None,
            selection: None,
            comments: Vec::new(),
            revise: false,
        }
    }
}

/// Where an approval stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalState {
    /// Nobody has answered.
    Open,
    /// It is over.
    Over(Resolution),
}

impl ApprovalState {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            ApprovalState::Open => "open",
            ApprovalState::Over(resolution) => resolution.as_str(),
        }
    }
}

/// An approval, as it is recorded.
#[derive(Clone, Debug)]
pub struct ApprovalRecord {
    /// The run that waits for it.
    pub run: RunId,
    /// What is asked.
    pub asked: ApprovalRequested,
    /// The answer, once there is one.
    pub resolved: Option<ApprovalResolved>,
    /// The run's session.
    pub session: SessionId,
    /// Until when nobody wants to be reminded of it.
    pub snoozed_until: Option<Timestamp>,
}

/// What a run says about what it waits for. Inboxes are long, and the rest of a run is not read for them.
#[derive(Deserialize)]
struct WaitingRun {
    created: InSession,
    state: Waits,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InSession {
    session_id: SessionId,
}

#[derive(Deserialize)]
struct Waits {
    #[serde(default)]
    open: BTreeMap<ApprovalId, Asked>,
}

impl ApprovalRecord {
    fn of(row: &Approval, run: &WaitingRun) -> Result<Self, EngineError> {
        let mut asked: ApprovalRequested = serde_json::from_slice(&row.request)?;
        let resolved = row.decision.as_deref().map(serde_json::from_slice).transpose()?;
        let open = run.state.open.get(&asked.approval_id);
        asked.expires_at = open.map_or(asked.expires_at, |open| open.expires_at);
        let (session, snoozed_until) = (run.created.session_id, open.and_then(|open| open.snoozed_until));
        Ok(ApprovalRecord { run: row.run, asked, resolved, session, snoozed_until })
    }

    /// Whether nobody wants to be reminded of it yet.
    pub fn is_snoozed(&self, now: Timestamp) -> bool {
        self.snoozed_until.is_some_and(|until| now < until)
    }

    /// Where it stands.
    pub fn state(&self) -> ApprovalState {
        self.resolved
            .as_ref()
            .map_or(ApprovalState::Open, |resolved| ApprovalState::Over(resolved.resolution))
    }
}

impl Engine {
    /// One approval.
    pub async fn approval(&self, id: ApprovalId) -> Result<ApprovalRecord, EngineError> {
        let row = self.recorder().store.approval(id).await?;
        let row = row.ok_or_else(|| EngineError::NotFound { what: format!("approval {id}") })?;
        self.approval_of(&row).await
    }

    async fn approval_of(&self, row: &Approval) -> Result<ApprovalRecord, EngineError> {
        let run = self.recorder().store.run(row.run).await?;
        let run = run.ok_or_else(|| EngineError::NotFound { what: format!("run {}", row.run) })?;
        ApprovalRecord::of(row, &serde_json::from_slice(&run.state)?)
    }

    /// What is open, oldest first, of one run or of all; what is snoozed only where it is asked for.
    pub async fn open_approvals(
        &self,
        run: Option<RunId>,
        mut after: Option<ApprovalId>,
        limit: u32,
        snoozed: bool,
    ) -> Result<Vec<ApprovalRecord>, EngineError> {
        let (limit, now) = (limit.min(PAGE_MAX), self.now());
        let mut found = Vec::new();
        loop {
            let rows = self.recorder().store.open_approvals(run, after, limit).await?;
            for row in &rows {
                let record = self.approval_of(row).await?;
                after = Some(record.asked.approval_id);
                if snoozed || !record.is_snoozed(now) {
                    found.push(record);
                }
            }
            // Each page begins after the one before it, so this ends with what is open.
            if (rows.len() as u64) < u64::from(limit) || found.len() as u64 >= u64::from(limit) {
                found.truncate(limit as usize);
                return Ok(found);
            }
        }
    }

    /// Answers an approval. The first answer wins; the same again is fine; another is refused with who decided.
    pub async fn resolve(
        &self,
        id: ApprovalId,
        answer: Resolve,
        actor: &Actor,
    ) -> Result<ApprovalRecord, EngineError> {
        if actor.is_agent() {
            return Err(EngineError::ForPeopleOnly);
        }
        let answer = Resolve { reason: reason_given(answer.reason), ..answer };
        let (record, stored) = (self.approval(id).await?, self.as_stored(&answer));
        if record.asked.digest != answer.digest {
            return Err(EngineError::StaleDigest { approval: id });
        }
        if let Some(resolved) = &record.resolved {
            return same_or_refused(&record, resolved, &stored);
        }
        check_answer(&record.asked.request, &answer, &stored)?;
        let approves = answer.decision == Decision::Approve;
        lasting_rule(&record, approves, answer.scope)?;
        if approves {
            self.check_not_own(record.run, &actor.id).await?;
        }
        let resolved = ApprovalResolved {
            approval_id: id,
            resolution: match answer.decision {
                Decision::Approve => Resolution::Approved,
                Decision::Reject => Resolution::Rejected,
            },
            decided_by: Who::from(actor),
            reason: answer.reason.clone(),
            scope: Some(answer.scope),
            answer: answer.answer.clone(),
            selection: answer.selection.clone(),
            comments: answer.comments.clone(),
            revise: answer.revise,
        };
        let (engine, looked_at) = (self.clone(), record.clone());
        let decide = move |run: &Run, now| {
            // Its time is over, and only nobody has recorded that yet.
            if let Some(facts) = expired(run, id, now) {
                return Ok(Decided { facts, result: None });
            }
            if resolved.revise && run.created.carries.is_some() {
                let message =
                    "Expected false: the run only carries changes, and has no agent that could try again.";
                return Err(EngineError::Invalid { path: "revise", message: message.to_owned() });
            }
            if approves {
                engine.check_not_denied(&looked_at)?;
            }
            let facts = resolution_facts(run, resolved.clone(), now);
            Ok(Decided { facts, result: None })
        };
        match self.recorder().head(record.run, decide).await {
            Ok(standing) => {
                self.changed(&standing);
                let decided = self.approval(id).await?;
                if let Some(resolved) =
                    decided.resolved.as_ref().filter(|by| by.resolution == Resolution::Expired)
                {
                    return same_or_refused(&decided, resolved, &stored);
                }
                self.keep_lasting_rule(&decided).await?;
                Ok(decided)
            }
            // Somebody else was quicker, or the run has ended.
            Err(EngineError::Illegal(illegal)) => {
                let record = self.approval(id).await?;
                match &record.resolved {
                    Some(resolved) => same_or_refused(&record, resolved, &stored),
                    None => Err(illegal.into()),
                }
            }
            Err(error) => Err(error),
        }
    }
}

impl Engine {
    /// Refuses that whoever started a run, or the run whose changes it carries, approves what it asks; where the configuration
    /// says so.
    async fn check_not_own(&self, run: RunId, who: &str) -> Result<(), EngineError> {
        if self.base_policy().own_runs == OwnRuns::Approve {
            return Ok(());
        }
        let mut next = Some(run);
        // Changes are carried, and what was carried is taken back: no chain is longer.
        for _ in 0..CARRIED_MAX {
            let Some(run) = next else { break };
            let created = self.run(run).await?.run.created;
            if created.actor.id == who {
                return Err(EngineError::OwnRun);
            }
            next = created.carries.map(|carries| carries.of);
        }
        Ok(())
    }

    /// Stores the rule that follows from a decision, once, however often it is brought. The decision is durable before it, and
    /// whoever delivers that to the audit brings it again.
    pub(crate) async fn keep_lasting_rule(&self, decided: &ApprovalRecord) -> Result<(), EngineError> {
        let Some(resolved) = &decided.resolved else { return Ok(()) };
        let approved = resolved.resolution == Resolution::Approved;
        let rule = lasting_rule(decided, approved, resolved.scope.unwrap_or_default())?;
        let Some(rule) = rule else { return Ok(()) };
        let id = *resolved.approval_id.as_bytes();
        let stored = self.installation().add_rule_once(id, rule, &resolved.decided_by).await;
        stored.map_err(|error| EngineError::RuleNotStored(Box::new(error)))?;
        self.policy_changed().await;
        Ok(())
    }
}

/// The rule that follows from a yes that reaches beyond its run.
fn lasting_rule(
    record: &ApprovalRecord,
    approved: bool,
    reach: DecisionScope,
) -> Result<Option<Rule>, EngineError> {
    let asked = &record.asked;
    let scope = match (approved, reach) {
        (false, _) | (_, DecisionScope::Once | DecisionScope::Run) => return Ok(None),
        (true, DecisionScope::Session) => Scope::Session,
        (true, DecisionScope::Project) => Scope::Project,
    };
    let wrong = |message: &str| EngineError::Invalid { path: "scope", message: message.to_owned() };
    if asked.redacted {
        return Err(wrong("Expected once or run: a part of the request is redacted, so no rule can say it."));
    }
    let text = rule_for(&asked.request).ok_or_else(|| {
        wrong("Expected once or run: no rule says exactly this request. Add one that you mean.")
    })?;
    let text = RuleText {
        agent: Some(asked.actor.id.clone()),
        workspace: Some(asked.workspace.label.clone()),
        scope,
        session: (scope == Scope::Session).then_some(record.session),
        ..text
    };
    Rule::try_from(text).map(Some).map_err(|invalid| wrong(&invalid.to_string()))
}

fn same_or_refused(
    record: &ApprovalRecord,
    resolved: &ApprovalResolved,
    answer: &Resolve,
) -> Result<ApprovalRecord, EngineError> {
    let same_decision = match answer.decision {
        Decision::Approve => resolved.resolution == Resolution::Approved,
        Decision::Reject => resolved.resolution == Resolution::Rejected,
    };
    let same_reach =
        answer.decision == Decision::Reject || resolved.scope.unwrap_or_default() == answer.scope;
    let same_part = resolved.selection == answer.selection && resolved.revise == answer.revise;
    if same_decision && same_reach && same_part && resolved.answer == answer.answer {
        return Ok(record.clone());
    }
    Err(EngineError::Decided {
        approval: record.asked.approval_id,
        resolution: resolved.resolution.as_str(),
        by: resolved.decided_by.id.clone(),
    })
}

/// A question that is approved is answered, by its schema; nothing else takes an answer.
fn check_answer(request: &Request, answer: &Resolve, stored: &Resolve) -> Result<(), EngineError> {
    check_review(request, answer)?;
    let wrong = |message: String| Err(EngineError::Invalid { path: "answer", message });
    if matches!(request, Request::Repeat { .. }) && answer.scope != DecisionScope::Once {
        let message = "Expected once: what happened is asked about each time.".to_owned();
        return Err(EngineError::Invalid { path: "scope", message });
    }
    match (request, answer.decision, &answer.answer) {
        (Request::Question(question), Decision::Approve, Some(given)) => {
            // An agent wrote the schema: it is bounded, and its patterns run in linear time.
            let options = jsonschema::options().with_pattern_options(jsonschema::PatternOptions::regex());
            let validator = match options.build(&question.answer_schema) {
                Ok(validator) if question.is_bounded() => validator,
                _ => return wrong("The question's own schema is not usable; reject it.".to_owned()),
            };
            validator.validate(given).or_else(|error| {
                // What was given may be secret and is not repeated.
                wrong(format!("Expected an answer that fits the question's schema: {}.", error.masked()))
            })?;
            let told = stored.answer.as_ref().unwrap_or(given);
            validator.validate(told).or_else(|_| {
                let without = "Expected an answer that fits the question's schema also without what is secret in it: \
                               the agent is told it as it is stored.";
                wrong(without.to_owned())
            })
        }
        (Request::Question(_), Decision::Approve, None) => {
            wrong("Expected an answer to the question.".to_owned())
        }
        (_, _, Some(_)) => wrong("Expected no answer: this is not a question.".to_owned()),
        _ => Ok(()),
    }
}

/// What is recorded of an approval whose time is over: no answer is a rejection, and none that comes later counts.
pub(crate) fn expired(run: &Run, id: ApprovalId, now: Timestamp) -> Option<Vec<Fact>> {
    let (_, asked) = run.state.open().find(|(open, _)| *open == id)?;
    if now < asked.expires_at {
        return None;
    }
    let resolved = ApprovalResolved {
        approval_id: id,
        resolution: Resolution::Expired,
        decided_by: Who::runyard(),
        reason: Some(EXPIRED.to_owned()),
        scope: None,
        answer: None,
        selection: None,
        comments: Vec::new(),
        revise: false,
    };
    Some(resolution_facts(run, resolved, now))
}

/// What a resolution does to a run: a rejection ends it, unless its profile says that the agent goes on.
pub(crate) fn resolution_facts(run: &Run, resolved: ApprovalResolved, now: Timestamp) -> Vec<Fact> {
    let by = resolved.decided_by.clone();
    let reason = resolved.reason.clone().unwrap_or_else(|| "The approval was rejected.".to_owned());
    let rejected = matches!(resolved.resolution, Resolution::Rejected | Resolution::Expired);
    let id = resolved.approval_id;
    if run.review.as_ref().is_some_and(|review| review.approval_id == Some(id)) && rejected {
        return review_rejected(run, resolved, now);
    }
    let recovery = run.state.open().any(|(open, asked)| open == id && asked.key == RECOVERY_KEY);
    let ends = rejected && (recovery || run.created.on_reject == OnReject::Cancel);
    let mut facts = vec![Fact::from(RunEvent::ApprovalResolved(resolved))];
    if !ends {
        return facts;
    }
    let others = withdrawn(run).into_iter().filter(|fact| match &fact.event {
        RunEvent::ApprovalResolved(other) => other.approval_id != id,
        _ => true,
    });
    facts.extend(others);
    if recovery {
        let step = run.unknown_steps().unwrap_or_else(|| THE_TURN.to_owned());
        let message = "Whether the step took effect is unknown, and it is not to be repeated.";
        facts.push(failed(run, Failure::new(Code::OutcomeUnknown, message), "failed", Some(step), now));
    } else {
        facts.push(cancelled(run, by, &reason, Some(Code::ApprovalRejected), now).into());
    }
    facts
}

/// Only changes are approved in part, commented on line by line, or sent back.
fn check_review(request: &Request, answer: &Resolve) -> Result<(), EngineError> {
    let wrong =
        |path: &'static str, message: &str| Err(EngineError::Invalid { path, message: message.to_owned() });
    let applies = matches!(request, Request::Apply { .. });
    match answer {
        Resolve { selection: Some(_), .. } if !applies => {
            wrong("selection", "Expected none: this approval is not about changes.")
        }
        Resolve { selection: Some(_), decision: Decision::Reject, .. } => {
            wrong("selection", "Expected none with a rejection: say what to approve, or reject all of it.")
        }
        Resolve { selection: Some(chosen), .. } if chosen.is_empty() => {
            wrong("selection", "Expected at least one file.")
        }
        Resolve { comments, .. } if !comments.is_empty() && !applies => {
            wrong("comments", "Expected none: this approval is not about changes.")
        }
        Resolve { revise: true, .. } if !applies => {
            wrong("revise", "Expected false: this approval is not about changes.")
        }
        Resolve { selection: Some(_), .. } if matches!(request, Request::Apply { undo: true, .. }) => {
            wrong("selection", "Expected none: what was applied is taken back whole.")
        }
        Resolve { revise: true, decision: Decision::Approve, .. } => {
            wrong("revise", "Expected false with an approval: reject what the agent is to do again.")
        }
        Resolve { scope, .. } if applies && *scope != DecisionScope::Once => {
            wrong("scope", "Expected once: changes are looked at each time.")
        }
        _ => Ok(()),
    }
}

/// A person does not want the changes: the agent tries again, or the run ends and they stay in its checkout.
fn review_rejected(run: &Run, resolved: ApprovalResolved, now: Timestamp) -> Vec<Fact> {
    let by = resolved.decided_by.clone();
    let reason = resolved.reason.clone().unwrap_or_else(|| "The changes were rejected.".to_owned());
    let revised = resolved.revise.then(|| {
        RunEvent::CommandReceived(CommandReceived {
            command_id: fresh!(CommandId, now),
            command: CommandKind::Turn,
            until_heard: false,
            text: Some(revision(&reason, &resolved.comments)),
            actor: by.clone(),
        })
    });
    let end = match (revised, run.created.on_reject) {
        (Some(revised), _) => revised,
        (None, OnReject::Continue) => completed(run, DiffState::Kept, now),
        (None, OnReject::Cancel) => cancelled(run, by, &reason, Some(Code::ApprovalRejected), now),
    };
    vec![RunEvent::ApprovalResolved(resolved).into(), end.into()]
}

/// What the agent is told about changes that a person does not want.
pub(crate) fn revision(reason: &str, comments: &[Comment]) -> String {
    let mut text = format!("Your changes were not accepted. {reason}");
    for comment in comments {
        let line = comment.line.map(|line| format!(":{line}")).unwrap_or_default();
        text.push_str(&format!("\n- {}{line}: {}", comment.file, comment.text));
    }
    text
}

/// Whether a run waits for people.
pub(crate) fn waits(run: &Run) -> bool {
    matches!(run.state, RunState::NeedsApproval { .. })
}
