//! The messages between the hub and an edge. They are serialised also where both are one process, so that an edge elsewhere
//! adds a transport and nothing else.
//!
//! The hub alone appends and numbers; the edge numbers its batches per run and lease generation, and repeats one until the hub
//! has answered it. (run, generation, edge sequence) is the idempotency key.

pub mod frames;

use std::collections::BTreeMap;

use runyard_domain::gate::{Policy, Request, Risk};
use runyard_domain::run::{ApprovalPolicyRef, Failure, ProjectedHow, ThreadRecorded, Usage};
use runyard_domain::{
    ApplyTo, ApprovalId, BackendProfile, DiffFile, DiffStats, DiffText, ExecutionPolicy, Preparation, RunId,
    SelectedFile, SessionId, WorkspaceRef,
};
use serde::{Deserialize, Serialize};

use crate::{Answer, Command, LeftOver, Signal, Start, Stream};

/// What an edge hears.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ToEdge {
    /// Drive this run: accept it and prepare it, or go on with it.
    Open(Box<OpenRun>),
    /// What was recorded of the conversation that a run goes on with. Comes before the run is to be opened, in as many parts as
    /// it takes.
    History {
        /// The run.
        run: RunId,
        /// The generation of the lease that its session is to run under.
        generation: u64,
        /// What comes behind the parts before.
        recorded: Vec<ThreadRecorded>,
    },
    /// A command for the run's session.
    Command {
        /// The run.
        run: RunId,
        /// The generation of the lease that the session runs under.
        generation: u64,
        /// The command.
        command: Command,
    },
    /// A decision for a request that waits in the run's session. The edge records that it hands it on before it does.
    Decision {
        /// The run.
        run: RunId,
        /// The generation.
        generation: u64,
        /// The approval.
        approval: ApprovalId,
        /// The request's key.
        key: String,
        /// Stands for the content that was decided on: the edge checks it again.
        digest: String,
        /// The decision.
        answer: Answer,
    },
    /// The batch is durable.
    Recorded {
        /// The run.
        run: RunId,
        /// The generation.
        generation: u64,
        /// The batch.
        edge_sequence: u64,
        /// Requests of the batch that a decision held earlier answers, and those that the edge allowed by a rule which another run had
        /// used up. That they are answered so is recorded already.
        granted: Vec<(String, Answer)>,
    },
    /// The batch is not recorded, and no later one will be.
    Refused {
        /// The run.
        run: RunId,
        /// The generation.
        generation: u64,
        /// The batch.
        edge_sequence: u64,
        /// Whether another owner drives the run; else the run has ended or the session is closed.
        fenced: bool,
    },
    /// What the run's session applies is no longer wanted: unless all of it is in place, what was written is taken back.
    StopApplying {
        /// The run.
        run: RunId,
        /// The generation.
        generation: u64,
    },
    /// Close the run's session: nothing of it may be left. Answered by [`FromEdge::Closed`].
    Close {
        /// The run.
        run: RunId,
        /// The generation.
        generation: u64,
        /// Whether the run is over, so that what it no longer needs can go too.
        over: bool,
    },
    /// Remove what is kept of a session whose runs are over. Answered by [`FromEdge::SessionClosed`].
    CloseSession {
        /// Which question, on this link.
        id: u64,
        /// The session.
        session: SessionId,
    },
    /// The policy that counts from now on.
    Policy(Box<Policy>),
    /// Look whether a backend profile could be used here. Answered by [`FromEdge::Checked`].
    Check {
        /// Which question, on this link.
        id: u64,
        /// The backend profile.
        profile: Box<BackendProfile>,
    },
}

/// A run to drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenRun {
    /// The run.
    pub run: RunId,
    /// The generation of its lease.
    pub generation: u64,
    /// The conversation that it belongs to.
    pub session: SessionId,
    /// The agent profile.
    pub agent_id: String,
    /// The backend profile.
    pub backend_profile: BackendProfile,
    /// Where.
    pub workspace: WorkspaceRef,
    /// What it may do.
    pub execution_policy: ExecutionPolicy,
    /// The gate's preset for it.
    pub approval_policy: ApprovalPolicyRef,
    /// Whether it was accepted and prepared before.
    pub stage: Stage,
    /// What brings its checkout to where the backend can begin.
    #[serde(default)]
    pub preparation: Preparation,
    /// The marks of the rules for one time in each run that it used up.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub rules_used: Vec<String>,
    /// What is to be done.
    #[serde(default)]
    pub work: Work,
    /// Where the backend begins.
    pub start: Start,
    /// The last part of what was recorded of the conversation that it goes on with; see [`ToEdge::History`].
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub history: Vec<ThreadRecorded>,
    /// What is known of calls that the run may have left without a result; where it has not begun, the run before it in that
    /// conversation.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub left: Option<LeftOver>,
    /// The token with which what the backend starts may call the hub, for this run alone.
    pub run_token: String,
    /// What it used so far, where known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub usage: Option<Usage>,
}

/// What an edge is to do for a run in one session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Work {
    /// Drive its backend.
    #[default]
    Drive,
    /// Look at what changed in a checkout. No backend is started.
    Review {
        /// Whose changes.
        changes: ChangesOf,
    },
    /// Bring what was approved to the person's files. No backend is started.
    Apply {
        /// Whose changes.
        changes: ChangesOf,
        /// What allowed it.
        approval: ApprovalId,
        /// Stands for all that changed when it was approved: it must be the same now.
        digest: String,
        /// The part that was approved; without it all of it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        selection: Option<Vec<SelectedFile>>,
        /// Where to.
        to: ApplyTo,
        /// Stands for the part whose applying had begun when a process died: what became of it is found out first.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        begun: Option<String>,
        /// What a commit says.
        message: String,
    },
    /// Applying was stopped: find out what became of it, and take back what is not all in place. No backend is started.
    TakeBack {
        /// Whose changes.
        changes: ChangesOf,
        /// Where to.
        to: ApplyTo,
        /// Stands for the part whose applying had begun.
        begun: String,
    },
}

/// Whose changes are looked at or applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangesOf {
    /// The run whose checkout it is, or, to take them back, the run that applied them.
    pub run: RunId,
    /// Whether they are taken back.
    pub undo: bool,
}

/// How far a run had come when it was handed to the edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// It was planned.
    Planned,
    /// It was accepted.
    Accepted,
    /// It was being prepared.
    Preparing,
    /// It was running.
    Running,
}

/// What the hub hears.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum FromEdge {
    /// The edge is there.
    Hello {
        /// Its id.
        edge_id: String,
        /// Its version.
        version: String,
        /// What confines the processes that it starts.
        sandbox: String,
    },
    /// What happened in a run.
    Batch {
        /// The run.
        run: RunId,
        /// The generation of the lease under which it is driven.
        generation: u64,
        /// 1, 2, 3, … within the generation.
        edge_sequence: u64,
        /// The reports, in order, without secrets that the edge knows.
        reports: Vec<Report>,
    },
    /// Nothing is left of the session.
    Closed {
        /// The run.
        run: RunId,
        /// The generation.
        generation: u64,
    },
    /// Nothing of a session is kept any more, or something of it could not be removed.
    SessionClosed {
        /// Which question.
        id: u64,
        /// Whether nothing is left.
        removed: bool,
    },
    /// A backend profile was looked at.
    Checked {
        /// Which question.
        id: u64,
        /// What was found, without secrets.
        found: Vec<CheckLine>,
    },
}

/// What was found about one part of a backend profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckLine {
    /// Which part.
    pub check: String,
    /// Whether a run could begin as far as this goes.
    pub ok: bool,
    /// What was found.
    pub found: String,
    /// What to do about it; always there where it is not ok.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next: Option<String>,
}

/// One thing that happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Report {
    /// The edge has the run.
    Accepted,
    /// It checks and prepares.
    Preparing {
        /// What is checked, in order.
        checks: Vec<String>,
    },
    /// Everything is ready and the backend is started.
    Started {
        /// The kind of backend.
        backend_kind: String,
        /// Its protocol.
        protocol: String,
        /// What was found.
        checks: BTreeMap<String, String>,
    },
    /// A profile's secrets were made available for this session.
    Projected {
        /// The backend profile.
        profile: String,
        /// Which of its secrets, by name.
        keys: Vec<String>,
        /// How.
        how: ProjectedHow,
    },
    /// What the backend's program said and was told, in lines, redacted.
    Debug {
        /// The lines.
        text: String,
        /// How many.
        lines: u64,
        /// How many more were left out.
        omitted: u64,
    },
    /// It cannot be prepared or started.
    Failed {
        /// Why.
        failure: Failure,
    },
    /// A piece of a message.
    Delta {
        /// The message.
        item: String,
        /// The piece.
        text: String,
        /// Where in the message it begins.
        offset: u64,
    },
    /// A piece of what a step prints.
    Output {
        /// The step.
        call: String,
        /// Where it printed it.
        stream: Stream,
        /// The piece.
        text: String,
        /// Where in the stream it begins.
        offset: u64,
        /// How many bytes are left out after it.
        omitted: u64,
    },
    /// What a step printed beyond what its events hold, when it is over.
    Log {
        /// The step.
        call: String,
        /// Where it printed it.
        stream: Stream,
        /// What it printed, as far as it is kept.
        text: String,
        /// Where in the stream its events end.
        offset: u64,
        /// How many bytes were left out of them and not yet said to be.
        omitted: u64,
        /// How many bytes are neither in them nor here.
        lost: u64,
    },
    /// The backend asks for something that a person must decide.
    Asked {
        /// The request's key.
        key: String,
        /// What.
        request: Request,
        /// Whether something in it was redacted.
        redacted: bool,
        /// Stands for the raw content.
        digest: String,
        /// How much is at stake.
        risk: Risk,
        /// Why it is asked.
        reason: String,
        /// What else there is to know.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        notes: Vec<String>,
    },
    /// The edge judged a request by itself.
    Judged {
        /// The request's key.
        key: String,
        /// What.
        request: Request,
        /// Whether it was allowed; else it was denied.
        allowed: bool,
        /// Why.
        reason: String,
        /// The rule that is used up by it, where it held once.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        rule_used: Option<String>,
    },
    /// Some of the files that changed, in order; [`Report::Diff`] comes after them all.
    DiffFiles {
        /// The files.
        files: Vec<DiffFile>,
    },
    /// The texts of some of them: one part of the diff.
    DiffTexts {
        /// The texts.
        texts: Vec<DiffText>,
    },
    /// The checkout was looked at.
    Diff {
        /// What it starts from.
        base: String,
        /// What it leads to.
        target: String,
        /// Stands for all of it.
        digest: String,
        /// How much changed.
        stats: DiffStats,
        /// The first of the files.
        paths: Vec<String>,
        /// What can be no change, in a line each; the first of them.
        problems: Vec<String>,
    },
    /// What was approved is as it was: applying it begins.
    Applying {
        /// Stands for the part that is applied.
        digest: String,
        /// How much.
        stats: DiffStats,
    },
    /// It is applied.
    Applied {
        /// Stands for the part that was applied.
        digest: String,
        /// The commit that holds it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        commit: Option<String>,
    },
    /// Applying was stopped, and nothing of it is in the person's files.
    TakenBack,
    /// A decision is handed to the backend.
    Used {
        /// The approval.
        approval: ApprovalId,
    },
    /// What the backend says, as it says it. Never `Delta`, `ToolOutput`, `Raw` or `Ask`, which have their own reports.
    Signal(Signal),
}
