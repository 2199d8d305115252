//! A person's decisions: asked for once, answered once, from wherever.

use runyard_domain::gate::Request;
use runyard_domain::run::{
    ApprovalRequested, ApprovalResolved, CommandKind, CommandReceived, DecisionScope, DiffState, Failure,
    OnReject, Resolution, Run, RunEvent, RunState, Who,
};
use runyard_domain::{Actor, ApprovalId, Code, CommandId, Comment, RunId, SelectedFile, Timestamp};
use runyard_store::{Approval, PAGE_MAX};
use serde_json::Value;

use crate::fresh::fresh;
use crate::record::{Decided, Fact};
use crate::recovery::RECOVERY_KEY;
use crate::translate::{cancelled, completed, failed, withdrawn};
use crate::{Engine, EngineError};

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
}

impl ApprovalRecord {
    fn of(row: &Approval) -> Result<Self, EngineError> {
        let asked = serde_json::from_slice(&row.request)?;
        let resolved = row.decision.as_deref().map(serde_json::from_slice).transpose()?;
        Ok(ApprovalRecord { run: row.run, asked, resolved })
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
        ApprovalRecord::of(&row.ok_or_else(|| EngineError::NotFound { what: format!("approval {id}") })?)
    }

    /// What is open, oldest first, of one run or of all.
    pub async fn open_approvals(
        &self,
        run: Option<RunId>,
        after: Option<ApprovalId>,
        limit: u32,
    ) -> Result<Vec<ApprovalRecord>, EngineError> {
        let rows = self.recorder().store.open_approvals(run, after, limit.min(PAGE_MAX)).await?;
        rows.iter().map(ApprovalRecord::of).collect()
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
        let record = self.approval(id).await?;
        if record.asked.digest != answer.digest {
            return Err(EngineError::StaleDigest { approval: id, digest: record.asked.digest });
        }
        if let Some(resolved) = &record.resolved {
            return same_or_refused(&record, resolved, &answer);
        }
        check_answer(&record.asked.request, &answer)?;
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
        let (engine, looked_at, approves) =
            (self.clone(), record.clone(), answer.decision == Decision::Approve);
        let decide = move |run: &Run, now| {
            if approves {
                engine.check_not_denied(&looked_at)?;
            }
            let facts = resolution_facts(run, resolved.clone(), now);
            Ok(Decided { facts, result: None })
        };
        match self.recorder().head(record.run, decide).await {
            Ok(standing) => {
                self.changed(&standing);
                self.approval(id).await
            }
            // Somebody else was quicker, or the run has ended.
            Err(EngineError::Illegal(illegal)) => {
                let record = self.approval(id).await?;
                match &record.resolved {
                    Some(resolved) => same_or_refused(&record, resolved, &answer),
                    None => Err(illegal.into()),
                }
            }
            Err(error) => Err(error),
        }
    }
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
fn check_answer(request: &Request, answer: &Resolve) -> Result<(), EngineError> {
    check_review(request, answer)?;
    let wrong = |message: String| Err(EngineError::Invalid { path: "answer", message });
    if matches!(request, Request::Repeat { .. }) && answer.scope == DecisionScope::Run {
        let message = "Expected once: what happened is asked about each time.".to_owned();
        return Err(EngineError::Invalid { path: "scope", message });
    }
    match (request, answer.decision, &answer.answer) {
        (Request::Question(question), Decision::Approve, Some(given)) => {
            let validator = match jsonschema::validator_for(&question.answer_schema) {
                Ok(validator) => validator,
                Err(_) => return wrong("The question's own schema is not usable; reject it.".to_owned()),
            };
            match validator.iter_errors(given).next() {
                Some(error) => wrong(format!("Expected an answer that fits the question's schema: {error}.")),
                None => Ok(()),
            }
        }
        (Request::Question(_), Decision::Approve, None) => {
            wrong("Expected an answer to the question.".to_owned())
        }
        (_, _, Some(_)) => wrong("Expected no answer: this is not a question.".to_owned()),
        _ => Ok(()),
    }
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
        let step = run.open_steps.values().next().map(|step| step.summary.clone());
        let message = "Whether the step took effect is unknown, and it is not to be repeated.";
        facts.push(failed(run, Failure::new(Code::OutcomeUnknown, message), "failed", step, now));
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
        Resolve { revise: true, decision: Decision::Approve, .. } => {
            wrong("revise", "Expected false with an approval: reject what the agent is to do again.")
        }
        Resolve { scope: DecisionScope::Run, .. } if applies => {
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
fn revision(reason: &str, comments: &[Comment]) -> String {
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
