//! What became of a run's changes: looked at, approved or not, applied.

use serde::{Deserialize, Serialize};

use super::changes::DiffReady;
use super::event::RunEvent;
use super::facts::{ApprovalResolved, Resolution};
use super::fold::Run;
use super::state::RunState;
use crate::gate::Request;
use crate::{ApprovalId, SelectedFile};

/// What a look at the checkout found, and what a person decided about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// How many turns had begun: after a further one it is out of date.
    pub turns: u32,
    /// What it found.
    pub diff: DiffReady,
    /// What asks for applying it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub approval_id: Option<ApprovalId>,
    /// What became of it.
    pub status: ApplyStatus,
    /// Which part was approved; without it all of it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub selection: Option<Vec<SelectedFile>>,
    /// Stands for the part that is or was applied, as the edge found it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub applied_digest: Option<String>,
    /// The commit that holds it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub commit: Option<String>,
}

/// What became of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ApplyStatus {
    /// It is there to be looked at.
    Proposed,
    /// A person wants it.
    Approved,
    /// It is being brought to the person's files.
    Applying,
    /// It is there.
    Applied,
    /// A person does not want it.
    Rejected,
    /// It could not be applied.
    Failed,
    /// It was taken back.
    Undone,
}

/// What is to be done for a run by whoever drives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Its agent works.
    Agent,
    /// Its agent is done: its checkout is looked at.
    Review,
    /// What was approved is applied.
    Apply(ApprovalId),
    /// Applying it was stopped: what is not all in place is taken back.
    TakeBack,
}

impl Run {
    /// What is to be done next, while it is active. `reviewed` says whether it has a checkout that is looked at.
    pub fn work(&self, reviewed: bool) -> Work {
        if let RunState::Applying { approval_id } = self.state {
            return if self.stopping.is_some() { Work::TakeBack } else { Work::Apply(approval_id) };
        }
        let agent_is_done = self.is_idle() && self.kept_open_until().is_none();
        let reviewed = reviewed && agent_is_done && self.state == RunState::Running;
        if !reviewed && self.created.carries.is_none() {
            return Work::Agent;
        }
        match self.current_review() {
            Some(Review { approval_id: Some(approval), status: ApplyStatus::Approved, .. }) => {
                Work::Apply(*approval)
            }
            _ => Work::Review,
        }
    }

    /// What the last look at its checkout found, unless the agent has worked since.
    pub fn current_review(&self) -> Option<&Review> {
        self.review.as_ref().filter(|review| review.turns == self.turns)
    }

    /// The review that this approval asks to apply.
    pub(super) fn review_asked(&self, approval: ApprovalId) -> Option<&Review> {
        self.review.as_ref().filter(|review| review.approval_id == Some(approval))
    }

    /// Takes in what an event says about the run's changes.
    pub(super) fn note_review(&mut self, event: &RunEvent) {
        use RunEvent as E;
        let takes_back = self.created.carries.as_ref().is_some_and(|carries| carries.undo);
        if let E::DiffReady(diff) = event {
            self.review = Some(Review::of(diff.clone(), self.turns));
        }
        let Some(review) = &mut self.review else { return };
        match event {
            E::ApprovalRequested(asked) if matches!(asked.request, Request::Apply { .. }) => {
                review.approval_id = Some(asked.approval_id);
            }
            E::ApprovalResolved(resolved) if review.approval_id == Some(resolved.approval_id) => {
                review.decided(resolved);
            }
            E::Applying(applying) => {
                review.status = ApplyStatus::Applying;
                review.applied_digest = Some(applying.digest.clone());
            }
            E::Applied(applied) => {
                review.status = if takes_back { ApplyStatus::Undone } else { ApplyStatus::Applied };
                review.commit.clone_from(&applied.commit);
            }
            E::Failed(_) if matches!(review.status, ApplyStatus::Applying | ApplyStatus::Approved) => {
                review.status = ApplyStatus::Failed;
            }
            E::Cancelled(_) if review.status == ApplyStatus::Applying => review.status = ApplyStatus::Failed,
            _ => {}
        }
    }
}

impl Review {
    fn of(diff: DiffReady, turns: u32) -> Self {
        Review {
            turns,
            diff,
            approval_id: None,
            status: ApplyStatus::Proposed,
            selection: None,
            applied_digest: None,
            commit: None,
        }
    }

    fn decided(&mut self, resolved: &ApprovalResolved) {
        self.status = match resolved.resolution {
            Resolution::Approved => ApplyStatus::Approved,
            Resolution::Rejected | Resolution::Expired => ApplyStatus::Rejected,
            Resolution::Withdrawn => ApplyStatus::Proposed,
        };
        self.selection.clone_from(&resolved.selection);
    }
}
