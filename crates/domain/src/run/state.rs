//! Where a run stands, and the only way from one state to the next.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::event::RunEvent;
use super::facts::{Cancelled, Resolution};
use super::failure::Failure;
use crate::{ApprovalId, Code, Timestamp};

/// Where a run stands. Each state carries exactly the data that is true in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum RunState {
    /// Somebody wants it.
    Created,
    /// It is known who is to do it, under which policy.
    Planned,
    /// The edge has confirmed.
    Accepted,
    /// The edge checks and prepares.
    Preparing,
    /// The backend works.
    Running,
    /// It waits for people.
    NeedsApproval {
        /// What is open; never empty.
        open: BTreeMap<ApprovalId, Asked>,
    },
    /// What was approved is being applied.
    Applying {
        /// What allowed it.
        approval_id: ApprovalId,
    },
    /// It ended well.
    Completed,
    /// It failed.
    Failed {
        /// Why.
        failure: Failure,
    },
    /// Somebody ended it.
    Cancelled {
        /// Who and why.
        cancelled: Cancelled,
    },
}

/// An approval that is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// The backend's own name for the request, within its session.
    pub key: String,
    /// Stands for the raw content.
    pub digest: String,
    /// When no answer counts as a rejection.
    pub expires_at: Timestamp,
    /// Until when nobody wants to be reminded of it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub snoozed_until: Option<Timestamp>,
}

/// An event that is not legal where the run stands. Nothing is written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Illegal {
    /// The state does not take it.
    #[error("a run that is {state} takes no {event}")]
    Transition {
        /// The state's name.
        state: &'static str,
        /// The event's type.
        event: &'static str,
    },
    /// It names an approval that is not open, or a decision that is not held.
    #[error("{event} names {approval}, which the run does not hold")]
    Approval {
        /// The event's type.
        event: &'static str,
        /// The approval.
        approval: ApprovalId,
    },
    /// It lacks what it would have to prove.
    #[error("{event} says nothing in \"{field}\"")]
    Evidence {
        /// The event's type.
        event: &'static str,
        /// The field.
        field: &'static str,
    },
}

impl Illegal {
    /// Its row in the error table.
    pub const fn code(&self) -> Code {
        Code::Conflict
    }
}

impl RunState {
    /// The names of all states, in the order of a run's life.
    pub const NAMES: [&'static str; 10] = [
        "created",
        "planned",
        "accepted",
        "preparing",
        "running",
        "needs_approval",
        "applying",
        "completed",
        "failed",
        "cancelled",
    ];

    /// The word on the wire.
    pub const fn name(&self) -> &'static str {
        match self {
            RunState::Created => "created",
            RunState::Planned => "planned",
            RunState::Accepted => "accepted",
            RunState::Preparing => "preparing",
            RunState::Running => "running",
            RunState::NeedsApproval { .. } => "needs_approval",
            RunState::Applying { .. } => "applying",
            RunState::Completed => "completed",
            RunState::Failed { .. } => "failed",
            RunState::Cancelled { .. } => "cancelled",
        }
    }

    /// Whether nothing leaves it.
    pub const fn is_terminal(&self) -> bool {
        matches!(self, RunState::Completed | RunState::Failed { .. } | RunState::Cancelled { .. })
    }

    /// The approvals that are open.
    pub fn open(&self) -> impl Iterator<Item = (ApprovalId, &Asked)> {
        let open = match self {
            RunState::NeedsApproval { open } => Some(open),
            _ => None,
        };
        open.into_iter().flatten().map(|(id, asked)| (*id, asked))
    }

    /// The only way from one state to the next. Notes are legal in every state but the terminal ones, and change none.
    pub fn apply(&self, event: &RunEvent) -> Result<RunState, Illegal> {
        use {RunEvent as E, RunState as S};
        let refuse = || Err(Illegal::Transition { state: self.name(), event: event.kind() });
        match (self, event) {
            (S::Completed | S::Failed { .. } | S::Cancelled { .. }, _) => refuse(),
            (_, E::Failed(failed)) => Ok(S::Failed { failure: failed.failure.clone() }),
            (_, E::Cancelled(cancelled)) => Ok(S::Cancelled { cancelled: cancelled.clone() }),
            (_, event) if is_note(event) => Ok(self.clone()),

            (S::Created, E::Planned(_)) => Ok(S::Planned),
            (S::Planned, E::Accepted(_)) => Ok(S::Accepted),
            (S::Accepted, E::Preparing(_)) => Ok(S::Preparing),
            (S::Preparing, E::Started(_)) => Ok(S::Running),
            (S::Running | S::NeedsApproval { .. }, E::ApprovalRequested(asked)) => {
                let mut open: BTreeMap<_, _> = self.open().map(|(id, asked)| (id, asked.clone())).collect();
                let id = asked.approval_id;
                let (key, digest) = (asked.key.clone(), asked.digest.clone());
                match open
                    .insert(id, Asked { key, digest, expires_at: asked.expires_at, snoozed_until: None })
                {
                    Some(_) => Err(Illegal::Approval { event: event.kind(), approval: id }),
                    None => Ok(S::NeedsApproval { open }),
                }
            }
            (S::NeedsApproval { open }, E::ApprovalResolved(resolved)) => {
                let mut open = open.clone();
                match open.remove(&resolved.approval_id) {
                    None => Err(Illegal::Approval { event: event.kind(), approval: resolved.approval_id }),
                    Some(_) if open.is_empty() => Ok(S::Running),
                    Some(_) => Ok(S::NeedsApproval { open }),
                }
            }
            (S::NeedsApproval { open }, E::ApprovalSnoozed(snoozed)) => {
                let mut open = open.clone();
                match open.get_mut(&snoozed.approval_id) {
                    None => Err(Illegal::Approval { event: event.kind(), approval: snoozed.approval_id }),
                    Some(asked) => {
                        asked.expires_at = snoozed.expires_at;
                        asked.snoozed_until = Some(snoozed.until);
                        Ok(S::NeedsApproval { open })
                    }
                }
            }
            (S::Running, E::Applying(applying)) => Ok(S::Applying { approval_id: applying.approval_id }),
            (S::Applying { approval_id }, E::Applied(applied)) if applied.approval_id == *approval_id => {
                Ok(S::Running)
            }
            (S::Applying { .. }, E::Applied(applied)) => {
                Err(Illegal::Approval { event: event.kind(), approval: applied.approval_id })
            }
            (S::Running, E::Completed(_)) => Ok(S::Completed),
            _ => refuse(),
        }
    }
}

/// Whether an event only tells, and moves nothing. Closed: a new event moves something until it is listed here.
const fn is_note(event: &RunEvent) -> bool {
    use RunEvent as E;
    matches!(
        event,
        E::ApprovalUsed(_)
            | E::GateJudged(_)
            | E::Degraded(_)
            | E::CommandReceived(_)
            | E::CommandHeard(_)
            | E::CancelRequested(_)
            | E::TurnStarted(_)
            | E::TurnEnded(_)
            | E::MessageDelta(_)
            | E::MessageCompleted(_)
            | E::Reasoning(_)
            | E::PlanUpdated(_)
            | E::ThreadRecorded(_)
            | E::SecretsProjected(_)
            | E::ToolCall(_)
            | E::ToolOutput(_)
            | E::ToolResult(_)
            | E::FileRead(_)
            | E::DiffReady(_)
            | E::PatchProposed(_)
            | E::ArtifactReady(_)
            | E::PreviewReady(_)
            | E::RuntimeStatus(_)
            | E::RuntimeDied(_)
            | E::RuntimeError(_)
            | E::RuntimeUnavailable(_)
            | E::RuntimeTimeout(_)
            | E::SchemaValidationFailed(_)
    )
}

impl RunEvent {
    /// Whether it only tells, and moves the run nowhere.
    pub const fn is_note(&self) -> bool {
        is_note(self)
    }

    /// Whether a resolution counts as a yes.
    pub(super) const fn approves(resolution: Resolution) -> bool {
        matches!(resolution, Resolution::Approved)
    }
}
