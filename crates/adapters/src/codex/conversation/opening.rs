//! How a conversation begins: on which terms, with which thread, and with what first.

use std::time::Duration;

use runyard_backend::{BackendError, Signal};
use runyard_domain::gate::Request;
use runyard_domain::run::FailureKind;
use serde_json::json;

use super::super::wire::ThreadOpened;
use super::{Call, Conversation, Stage, status};

/// What an agent is told whose turn goes on after its process died. It knows its call only as aborted.
pub(in super::super) const CONTINUE: &str = "Continue where you were. The pause was not a refusal; if you were waiting for permission, ask \
                                   again for exactly the same step.";

/// Who is asked: whoever holds the other end, and no agent of codex.
const REVIEWER: &str = "user";

/// How it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Opening {
    /// The thread to go on with.
    pub(in super::super) thread: Option<String>,
    /// What happens first.
    pub(in super::super) first: First,
}

/// What happens first in a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum First {
    /// The run's first turn. It is announced, unless it was before.
    Task { text: String, announced: bool },
    /// The turn that was running goes on. Codex keeps no thread in which no turn began; then it is begun anew with the task,
    /// unless there is reason to think that the thread was lost.
    Continue { task: String, lost: bool },
    /// Nothing, until a turn is asked for.
    Wait,
}

/// What confines codex: see the module's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Confinement {
    /// Whoever started the process; codex asks before each step.
    Outside,
    /// The same, and there nothing can be written.
    Reading,
    /// No step at all is allowed.
    NoStep,
}

impl Confinement {
    const fn sandbox(self) -> (&'static str, &'static str) {
        match self {
            Confinement::Outside | Confinement::Reading => ("danger-full-access", "dangerFullAccess"),
            Confinement::NoStep => ("read-only", "readOnly"),
        }
    }

    /// Whether anybody is asked for this.
    pub(in super::super) const fn allows(self, request: &Request) -> bool {
        match self {
            Confinement::Outside => true,
            Confinement::Reading => !matches!(request, Request::Patch { .. } | Request::Write { .. }),
            Confinement::NoStep => matches!(request, Request::Question(_)),
        }
    }
}

/// Where and how codex works.
#[derive(Clone, Debug)]
pub(in super::super) struct Terms {
    /// The run's checkout.
    pub(in super::super) directory: String,
    pub(in super::super) confinement: Confinement,
    /// How long is waited before each further try of what failed for a moment; as many tries as there are pauses.
    pub(in super::super) pauses: &'static [Duration],
}

impl Conversation {
    /// Whether codex has opened the thread: from then on it is in codex's home.
    pub(in super::super) fn has_thread(&self) -> bool {
        !self.thread.is_empty()
    }

    pub(super) fn open_thread(&mut self, thread: Option<String>) {
        let (sandbox, _) = self.terms.confinement.sandbox();
        // All of it, since what is not said may be taken from the thread, and that an agent can rewrite.
        let mut params = json!({
            "cwd": self.terms.directory, "approvalPolicy": "untrusted", "approvalsReviewer": REVIEWER, "sandbox": sandbox,
        });
        match thread {
            None => self.call(Call::ThreadStart, params),
            Some(thread) => {
                params["threadId"] = thread.into();
                params["excludeTurns"] = true.into();
                self.call(Call::ThreadResume, params);
            }
        }
    }

    pub(super) fn thread_opened(&mut self, opened: ThreadOpened, phase: &str) -> Result<(), BackendError> {
        let (_, sandbox) = self.terms.confinement.sandbox();
        let reviewed = opened.approvals_reviewer.is_none_or(|reviewer| reviewer == REVIEWER);
        if opened.approval_policy != "untrusted" || !reviewed || opened.sandbox.kind != sandbox {
            let text = "codex opened the thread under another policy than it was told";
            return Err(BackendError::new(FailureKind::BackendProtocolError, text));
        }
        if opened.thread.id.is_empty() {
            let text = "codex opened a thread without an id";
            return Err(BackendError::new(FailureKind::BackendResponseInvalid, text));
        }
        self.thread = opened.thread.id;
        self.stage = Stage::Idle;
        self.pauses_made = 0;
        let mut known = status(phase);
        if let Signal::Status { model, version, thread, .. } = &mut known {
            *model = Some(opened.model);
            *version = Some(opened.thread.cli_version);
            *thread = Some(self.thread.clone());
        }
        self.signals.push(known);
        if self.terms.confinement == Confinement::NoStep {
            let reason = "read-only: codex may run no command and change no file, since one that is accepted may run again outside \
                          its own sandbox";
            self.signals.push(Signal::Degraded { reason: reason.to_owned() });
        }
        // The thread and its first turn become durable together: a thread that is known has a turn.
        match std::mem::replace(&mut self.opening.first, First::Wait) {
            First::Task { text, announced: false } => self.begin_turn(None, &text),
            First::Task { text, announced: true } => self.start_turn(&text),
            First::Continue { .. } => self.start_turn(CONTINUE),
            First::Wait => {}
        }
        Ok(())
    }
}
