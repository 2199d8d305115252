//! What the reports of an edge mean as events of the run. Pure: it looks at the run and decides; nothing is written here.

use std::collections::HashSet;

use runyard_backend::link::Report;
use runyard_backend::{Answer, BackendInfo, Ending, Signal};
use runyard_domain::gate::{Effect, Request, Risk, mark};
use runyard_domain::run::*;
use runyard_domain::{
    ARTIFACTS_MAX, ActorKind, ApplyTo, Approval, ApprovalId, ArtifactContent, ArtifactFacts, ArtifactId,
    Changes, Code, DiffParts, DiffStats, RunId, Timestamp,
};
use runyard_redact::Redactor;

use crate::budget::overrun;
use crate::endings::{cancelled, completed, failed, withdrawal, withdrawn};
use crate::fresh::fresh;
use crate::record::Fact;
use crate::review::REVIEW_KEY;
use crate::timers::APPLYING_LATE;
use crate::{EngineError, Limits};

/// How often a backend may die without ending a turn before the run fails.
pub(crate) const DEATHS_MAX: u32 = 5;

/// What a batch of reports comes to.
#[derive(Default)]
pub(crate) struct Translated {
    pub(crate) facts: Vec<Fact>,
    /// Requests that a decision held earlier answers.
    pub(crate) granted: Vec<(String, Answer)>,
    /// The backend died, and is to be opened again.
    pub(crate) died: bool,
}

/// What translating needs to know beside the run.
pub(crate) struct Terms<'a> {
    pub(crate) info: &'a BackendInfo,
    pub(crate) redactor: &'a Redactor,
    pub(crate) limits: &'a Limits,
    /// Approvals whose own requests still wait in the session: their decisions are for those.
    pub(crate) waiting: &'a HashSet<ApprovalId>,
    /// Where the diff that was reported so far is kept.
    pub(crate) parts: &'a DiffParts,
    /// Where the long texts of these reports are kept, in their order.
    pub(crate) texts: &'a [ArtifactContent],
}

/// The events of a batch. The run is folded along the way, since what a report means depends on those before it.
pub(crate) fn translate(
    run: &Run,
    reports: &[Report],
    now: Timestamp,
    terms: &Terms<'_>,
) -> Result<Translated, EngineError> {
    let texts = terms.texts.iter();
    let mut batch = Batch { run: run.clone(), now, terms, texts, made: Translated::default() };
    for report in reports {
        batch.report(report)?;
        if batch.run.state.is_terminal() {
            // What comes after the end is dropped.
            break;
        }
    }
    Ok(batch.made)
}

struct Batch<'a> {
    run: Run,
    now: Timestamp,
    terms: &'a Terms<'a>,
    texts: std::slice::Iter<'a, ArtifactContent>,
    made: Translated,
}

impl Batch<'_> {
    fn push(&mut self, event: RunEvent, backend_event: Option<&'static str>) -> Result<(), EngineError> {
        // A report that the run does not take is the edge's mistake; the fold says so before anything is written.
        self.run = Run::fold(Some(self.run.clone()), self.run.id, self.now, &event)?;
        self.made.facts.push(Fact { event, backend_event });
        Ok(())
    }

    /// Refuses what an edge tells without what it would have to prove.
    fn push_unless(&mut self, lacks: Option<&'static str>, event: RunEvent) -> Result<(), EngineError> {
        let refused = lacks.map(|field| Illegal::Evidence { event: event.kind(), field });
        refused.map_or_else(|| self.push(event, None), |illegal| Err(illegal.into()))
    }

    fn report(&mut self, report: &Report) -> Result<(), EngineError> {
        match report {
            Report::Accepted => {
                let edge_id = self.run.planned.as_ref().map(|plan| plan.edge_id.clone()).unwrap_or_default();
                self.push(RunEvent::Accepted(Accepted { edge_id }), None)
            }
            Report::Preparing { checks } => {
                let preparing = Preparing { checks: checks.clone() };
                self.push_unless(preparing.lacks(), RunEvent::Preparing(preparing))
            }
            Report::Started { backend_kind, protocol, checks } => {
                let (backend_kind, protocol) = (backend_kind.clone(), protocol.clone());
                let started = Started { backend_kind, protocol, checks: checks.clone() };
                self.push_unless(started.lacks(), RunEvent::Started(started))
            }
            Report::Projected { profile, keys, how } => {
                let (profile, keys) = (profile.clone(), keys.clone());
                let projected = SecretsProjected { profile, keys, how: *how };
                self.push(RunEvent::SecretsProjected(projected), None)
            }
            Report::Debug { lines, omitted, .. } => self.debug(*lines, *omitted),
            Report::Failed { failure } => self.fail(failure.clone(), "failed", None),
            Report::Delta { item, text, offset } => {
                let delta = MessageDelta { item: item.clone(), text: text.clone(), offset: *offset };
                self.push(RunEvent::MessageDelta(delta), Some("assistant_message"))
            }
            Report::Output { call, stream, text, offset, omitted } => {
                let output = ToolOutput {
                    call: call.clone(),
                    stream: stream.as_str().to_owned(),
                    text: text.clone(),
                    offset: *offset,
                    omitted: *omitted,
                    log_path: None,
                };
                self.push(RunEvent::ToolOutput(output), Some("command_output"))
            }
            Report::Log { .. } => self.logged(report),
            Report::Asked { .. } => self.asked(report),
            Report::Judged { key, request, allowed, reason, rule_used } => {
                let effect = if *allowed { Effect::Allow } else { Effect::Deny };
                let (key, request, reason) = (key.clone(), request.clone(), reason.clone());
                let rule_used = rule_used.as_deref().map(mark);
                self.push(RunEvent::GateJudged(GateJudged { key, request, effect, reason, rule_used }), None)
            }
            // They were kept before; the event that refers to them comes behind.
            Report::DiffFiles { .. } | Report::DiffTexts { .. } => Ok(()),
            Report::Diff { .. } => self.reviewed(report),
            Report::Applying { digest, stats } => self.applying(digest, *stats),
            Report::Applied { digest, commit } => self.applied(digest, commit.clone()),
            Report::TakenBack => self.taken_back(),
            Report::Used { approval } => {
                self.push(RunEvent::ApprovalUsed(ApprovalUsed { approval_id: *approval }), None)
            }
            Report::Signal(signal) => self.signal(signal),
        }
    }

    /// A request that the gate wants asked: a decision that is held for exactly this answers it, else a person is asked.
    fn asked(&mut self, report: &Report) -> Result<(), EngineError> {
        let Report::Asked { key, request, redacted, digest, risk, reason, notes } = report else {
            return Ok(());
        };
        let held = |grant: &&Grant| {
            grant.digest == *digest && (grant.used || !self.terms.waiting.contains(&grant.approval_id))
        };
        if let Some(grant) = self.run.grants.iter().find(held).cloned() {
            let used = ApprovalUsed { approval_id: grant.approval_id };
            self.push(RunEvent::ApprovalUsed(used), None)?;
            self.made.granted.push((key.clone(), answer(&grant)));
            return Ok(());
        }
        let raw = serde_json::to_value(request)?;
        let asked = ApprovalRequested {
            approval_id: fresh!(ApprovalId, self.now),
            key: key.clone(),
            request: request.clone(),
            redacted: *redacted || *self.terms.redactor.json(raw.clone()) != raw,
            digest: digest.clone(),
            risk: *risk,
            reason: reason.clone(),
            notes: notes.clone(),
            workspace: self.run.created.workspace.clone(),
            actor: agent(&self.run),
            expires_at: self.now.plus_ms(self.terms.limits.approval_expiry_ms),
        };
        self.push(RunEvent::ApprovalRequested(asked), None)
    }

    fn signal(&mut self, signal: &Signal) -> Result<(), EngineError> {
        match signal {
            Signal::Status { phase, model, version, thread, usage } => {
                let status = RuntimeStatus {
                    model: model.clone(),
                    version: version.clone(),
                    thread: thread.clone(),
                    usage: *usage,
                    ..status(&self.run, self.terms.info, phase)
                };
                self.push(RunEvent::RuntimeStatus(status), Some("backend_status"))?;
                match overrun(&self.run) {
                    Some(failure) => self.fail(failure, "failed", None),
                    None => Ok(()),
                }
            }
            Signal::TurnStarted { command } => {
                self.push(RunEvent::TurnStarted(TurnStarted { command_id: *command }), Some("backend_status"))
            }
            Signal::Heard { command } => {
                let waits = self.run.unheard.iter().any(|word| word.command_id == *command);
                let heard = RunEvent::CommandHeard(CommandHeard { command_id: *command });
                if waits { self.push(heard, None) } else { Ok(()) }
            }
            Signal::TurnEnded { outcome } => self.turn_ended(*outcome),
            Signal::Message { item, text } => {
                let (item, text) = (item.clone(), text.clone());
                let message = MessageCompleted { item, text, broke_off: false };
                self.push(RunEvent::MessageCompleted(message), Some("assistant_message"))
            }
            Signal::BrokeOff { item, text } => {
                let (item, text) = (item.clone(), text.clone());
                let message = MessageCompleted { item, text, broke_off: true };
                self.push(RunEvent::MessageCompleted(message), Some("assistant_message"))
            }
            Signal::Reasoning { item, text } => {
                let reasoning = Reasoning { item: item.clone(), text: text.clone() };
                self.push(RunEvent::Reasoning(reasoning), Some("assistant_message"))
            }
            Signal::Plan { steps } => {
                let plan = PlanUpdated { steps: steps.clone() };
                self.push(RunEvent::PlanUpdated(plan), Some("backend_status"))
            }
            Signal::Thread(recorded) => self.push(RunEvent::ThreadRecorded(recorded.clone()), None),
            Signal::ToolCall { call, tool, summary, arguments, idempotent } => {
                let call = ToolCall {
                    call: call.clone(),
                    tool: tool.clone(),
                    summary: summary.clone(),
                    idempotent: *idempotent,
                    arguments: arguments.clone(),
                };
                self.push(RunEvent::ToolCall(call), Some("tool_call"))
            }
            Signal::ToolResult { call, outcome, code, summary } => {
                let (call, summary) = (call.clone(), summary.clone());
                let result = ToolResult { call, outcome: *outcome, code: *code, summary };
                self.push(RunEvent::ToolResult(result), Some("tool_call"))
            }
            Signal::FileRead { path } => {
                self.push(RunEvent::FileRead(FileRead { path: path.clone() }), Some("tool_call"))
            }
            Signal::Patch { files, summary } => {
                let patch = PatchProposed { files: files.clone(), summary: summary.clone() };
                self.push(RunEvent::PatchProposed(patch), Some("diff"))
            }
            Signal::Withdraw { key } => self.withdraw(key),
            Signal::Degraded { reason } => {
                let known = self.run.degraded.contains(reason);
                let degraded = RunEvent::Degraded(Degraded { reason: reason.clone() });
                if known { Ok(()) } else { self.push(degraded, Some("backend_status")) }
            }
            Signal::Error { failure_kind, message, retrying } => {
                self.push(runtime_error(*failure_kind, message, *retrying), Some("error"))
            }
            Signal::Ended { ending } => self.ended(ending),
            // They have reports of their own; an edge that sends them breaks the link's contract.
            Signal::Delta { .. }
            | Signal::ToolOutput { .. }
            | Signal::Raw { .. }
            | Signal::Ask { .. }
            | Signal::Unasked { .. } => {
                Err(Illegal::Transition { state: self.run.state.name(), event: "raw signal" }.into())
            }
        }
    }

    /// Raw lines, which were kept before.
    fn debug(&mut self, lines: u64, omitted: u64) -> Result<(), EngineError> {
        let summary = format!("{lines} raw lines between the adapter and its backend");
        self.artifact("raw.jsonl", summary, ArtifactFacts::Debug { lines, omitted }).map(|_| ())
    }

    /// What a step printed beyond its events, which was kept before.
    fn logged(&mut self, report: &Report) -> Result<(), EngineError> {
        let Report::Log { call, stream, offset, omitted, lost, .. } = report else { return Ok(()) };
        let stream = stream.as_str();
        let cut = if *lost > 0 { format!("; {lost} bytes more are lost") } else { String::new() };
        let summary = format!("what a step printed to {stream} beyond its events{cut}");
        let log_path =
            self.artifact(&format!("{stream}.log"), summary, ArtifactFacts::File { path: None })?;
        let output = ToolOutput {
            call: call.clone(),
            stream: stream.to_owned(),
            text: String::new(),
            offset: *offset,
            omitted: *omitted,
            log_path,
        };
        self.push(RunEvent::ToolOutput(output), Some("command_output"))
    }

    /// An artifact of Runyard's own. A run that has as many as it may have goes on without it.
    fn artifact(
        &mut self,
        name: &str,
        summary: String,
        facts: ArtifactFacts,
    ) -> Result<Option<String>, EngineError> {
        let Some(content) = self.texts.next().filter(|_| self.run.produced.len() < ARTIFACTS_MAX) else {
            return Ok(None);
        };
        let artifact_id = fresh!(ArtifactId, self.now).to_string();
        let ready = ArtifactReady {
            artifact_id: artifact_id.clone(),
            kind: facts.kind().to_owned(),
            summary,
            facts: Some(facts),
            name: Some(name.to_owned()),
            content: Some(content.clone()),
            by: Some(Who::runyard()),
        };
        self.push(RunEvent::ArtifactReady(ready), None)?;
        Ok(Some(artifact_id))
    }

    fn withdraw(&mut self, key: &str) -> Result<(), EngineError> {
        let open = self.run.state.open().find(|(_, asked)| asked.key == key).map(|(id, _)| id);
        match open {
            Some(id) => {
                let by = agent(&self.run);
                self.push(withdrawal(id, by, "The agent no longer asks."), None)
            }
            None => Ok(()),
        }
    }

    /// A run ends when its turn ends, no turn is queued and nothing is open, unless it is kept open for a further turn. There
    /// an interrupt ends the turn alone: that the next one can be said is what it is kept open for.
    fn turn_ended(&mut self, outcome: TurnOutcome) -> Result<(), EngineError> {
        // The turn is over, so nothing of it can wait any more.
        for fact in withdrawn(&self.run) {
            self.push(fact.event, None)?;
        }
        if let Some(lost) = unsaid(&self.run) {
            self.push(lost, None)?;
        }
        self.push(RunEvent::TurnEnded(TurnEnded { outcome }), Some("backend_status"))?;
        if !self.run.queued.is_empty() || self.run.kept_open_until().is_some() {
            return Ok(());
        }
        match (outcome, self.run.interrupted_by.clone()) {
            // Its checkout is looked at before it ends.
            (TurnOutcome::Completed, _) if self.terms.info.checkout => Ok(()),
            (TurnOutcome::Completed, _) => {
                self.push(completed(&self.run, DiffState::None, self.now), Some("terminal_status"))
            }
            (TurnOutcome::Interrupted, by) => {
                let by = by.unwrap_or_else(|| agent(&self.run));
                self.push(
                    cancelled(&self.run, by, "The turn was interrupted.", None, self.now),
                    Some("terminal_status"),
                )
            }
        }
    }

    /// The checkout was looked at: what changed is there to be applied, or there is nothing and the run ends.
    fn reviewed(&mut self, report: &Report) -> Result<(), EngineError> {
        let Report::Diff { base, target, digest, stats, paths, problems } = report else { return Ok(()) };
        if !problems.is_empty() {
            let reason = format!("The checkout holds what can be no change: {}", problems.join(", "));
            self.push(RunEvent::Degraded(Degraded { reason }), None)?;
        }
        let diff = DiffReady {
            base: base.clone(),
            target: target.clone(),
            paths: paths.clone(),
            summary: stats.to_string(),
            digest: digest.clone(),
            stats: *stats,
            parts: self.terms.parts.clone(),
        };
        self.push(RunEvent::DiffReady(diff), Some("diff"))?;
        if stats.files == 0 {
            return self.push(completed(&self.run, DiffState::Unchanged, self.now), Some("terminal_status"));
        }
        let looked_at = self.run.created.carries.as_ref().and_then(|carries| carries.digest.as_ref());
        if looked_at.is_some_and(|looked_at| looked_at != digest) {
            let message = "The changes are not what was looked at; look at them again.";
            return self.fail(Failure::new(Code::Conflict, message), "failed", None);
        }
        let policy = &self.run.created.execution_policy;
        if policy.approval == Approval::Never || policy.changes == Changes::Keep {
            return self.push(completed(&self.run, DiffState::Kept, self.now), Some("terminal_status"));
        }
        let request = Request::Apply {
            base: base.clone(),
            target: target.clone(),
            stats: *stats,
            files: paths.clone(),
            to: self.destination(),
            undo: self.run.created.carries.as_ref().is_some_and(|carries| carries.undo),
        };
        let asked = ApprovalRequested {
            approval_id: fresh!(ApprovalId, self.now),
            key: REVIEW_KEY.to_owned(),
            request,
            redacted: false,
            digest: digest.clone(),
            risk: Risk::Medium,
            reason: "nothing reaches the workspace itself but by an approved apply".to_owned(),
            notes: Vec::new(),
            workspace: self.run.created.workspace.clone(),
            actor: agent(&self.run),
            expires_at: self.now.plus_ms(self.terms.limits.approval_expiry_ms),
        };
        self.push(RunEvent::ApprovalRequested(asked), None)
    }

    /// Where the run's changes are brought to.
    fn destination(&self) -> ApplyTo {
        self.run.created.carries.as_ref().map(|carries| carries.to.clone()).unwrap_or_default()
    }

    fn applying(&mut self, digest: &str, stats: DiffStats) -> Result<(), EngineError> {
        let review = self.run.review.as_ref();
        // An edge that went on after a death says it again.
        if let (RunState::Applying { .. }, Some(review)) = (&self.run.state, review)
            && review.applied_digest.as_deref() == Some(digest)
        {
            return Ok(());
        }
        let approved = review.filter(|review| review.status == ApplyStatus::Approved);
        let Some(approval_id) = approved.and_then(|review| review.approval_id) else {
            return Err(self.impossible("run.applying"));
        };
        let applying = Applying { approval_id, digest: digest.to_owned(), to: self.destination(), stats };
        self.push(RunEvent::Applying(applying), None)
    }

    fn applied(&mut self, digest: &str, commit: Option<String>) -> Result<(), EngineError> {
        let RunState::Applying { approval_id } = self.run.state else {
            return Err(self.impossible("run.applied"));
        };
        self.push(RunEvent::Applied(Applied { approval_id, digest: digest.to_owned(), commit }), None)?;
        match self.run.stopping.clone() {
            // It was in place before it could be stopped. That it is there stands in the log.
            Some(Stopping::Cancelled(CancelRequested { by, reason })) => {
                self.push(cancelled(&self.run, by, &reason, None, self.now), Some("terminal_status"))
            }
            Some(Stopping::Late) | None => {
                self.push(completed(&self.run, DiffState::Applied, self.now), Some("terminal_status"))
            }
        }
    }

    /// What was being applied is not in the person's files any more, which is the end of the run.
    fn taken_back(&mut self) -> Result<(), EngineError> {
        match self.run.stopping.clone() {
            Some(Stopping::Cancelled(CancelRequested { by, reason })) => {
                self.push(cancelled(&self.run, by, &reason, None, self.now), Some("terminal_status"))
            }
            Some(Stopping::Late) => {
                let recovery =
                    "Look at the disk of the workspace or raise apply_ms, and apply the changes again."
                        .to_owned();
                let failure = Failure { recovery, ..Failure::new(Code::RunTimeout, APPLYING_LATE) };
                self.fail(failure, "failed", None)
            }
            None => Err(self.impossible("run.cancelled")),
        }
    }

    fn impossible(&self, event: &'static str) -> EngineError {
        Illegal::Transition { state: self.run.state.name(), event }.into()
    }

    fn ended(&mut self, ending: &Ending) -> Result<(), EngineError> {
        match ending {
            Ending::Failed { failure_kind, message, cause } => {
                self.push(runtime_error(Some(*failure_kind), message, false), Some("error"))?;
                let failure = Failure::of_backend(*failure_kind, message.clone()).caused_by(*cause);
                self.fail(failure, "failed", Some("terminal_status"))
            }
            Ending::Died { message } if self.run.deaths < DEATHS_MAX => {
                self.made.died = true;
                self.push(RunEvent::RuntimeDied(RuntimeDied { message: message.clone() }), Some("error"))
            }
            Ending::Died { message } => {
                let failure = Failure::of_backend(FailureKind::BackendFailed, message.clone());
                self.push(runtime_error(Some(FailureKind::BackendFailed), message, false), Some("error"))?;
                self.fail(failure, "failed", Some("terminal_status"))
            }
            Ending::Blocked { code, message, step } => {
                let failure = Failure::new(*code, message.clone());
                self.fail_at(step.clone(), failure, "blocked", Some("terminal_status"))
            }
            Ending::Cancelled => {
                let by = self.run.interrupted_by.clone().unwrap_or_else(|| agent(&self.run));
                for fact in withdrawn(&self.run) {
                    self.push(fact.event, None)?;
                }
                self.push(
                    cancelled(&self.run, by, "The backend was interrupted.", None, self.now),
                    Some("terminal_status"),
                )
            }
        }
    }

    fn fail(
        &mut self,
        failure: Failure,
        terminal_status: &str,
        backend_event: Option<&'static str>,
    ) -> Result<(), EngineError> {
        self.fail_at(None, failure, terminal_status, backend_event)
    }

    /// The same with steps that are over, though nobody knows what became of them.
    fn fail_at(
        &mut self,
        over: Option<String>,
        failure: Failure,
        terminal_status: &str,
        backend_event: Option<&'static str>,
    ) -> Result<(), EngineError> {
        for fact in withdrawn(&self.run) {
            self.push(fact.event, None)?;
        }
        // What nobody knows of is named, also where something else was found first.
        let open = (failure.code == Code::OutcomeUnknown).then(|| self.run.unknown_steps()).flatten();
        let step = over.into_iter().chain(open).reduce(|over, open| format!("{over}; {open}"));
        let fact = failed(&self.run, failure, terminal_status, step, self.now);
        self.push(fact.event, backend_event)
    }
}

/// What a backend is doing, where nothing else is known of it.
pub(crate) fn status(run: &Run, info: &BackendInfo, phase: &str) -> RuntimeStatus {
    RuntimeStatus {
        phase: phase.to_owned(),
        profile: run.created.backend_profile.clone(),
        backend_kind: info.backend_kind.to_owned(),
        protocol: info.protocol.to_owned(),
        capability: Some(info.capability()),
        model: None,
        version: None,
        thread: None,
        usage: None,
        away_ms: None,
    }
}

/// The agent of a run, as an actor.
pub(crate) fn agent(run: &Run) -> Who {
    Who { id: run.created.agent_id.clone(), kind: ActorKind::Agent { run: run.id } }
}

/// The answer that a held decision gives.
pub(crate) fn answer(grant: &Grant) -> Answer {
    Answer { approved: grant.approved, reason: grant.reason.clone(), answer: grant.answer.clone() }
}

/// What is told at the end of a turn of the words that its agent never heard.
pub(crate) fn unsaid(run: &Run) -> Option<RunEvent> {
    let lost = run.unheard.iter().filter(|word| word.text.is_some()).count();
    let words = match lost {
        0 => return None,
        1 => "a word was".to_owned(),
        _ => format!("{lost} words were"),
    };
    let message = format!("{words} not said to the agent: its turn was over first");
    Some(runtime_error(None, &message, false))
}

/// The event of an error, by its kind.
pub(crate) fn runtime_error(failure_kind: Option<FailureKind>, message: &str, retrying: bool) -> RunEvent {
    let error = RuntimeError { failure_kind, message: message.to_owned(), retrying };
    match failure_kind {
        Some(
            FailureKind::SecretUnavailable
            | FailureKind::BackendSpawnFailed
            | FailureKind::ProviderAuthFailed
            | FailureKind::ProviderUnavailable
            | FailureKind::BackendFailed,
        ) => RunEvent::RuntimeUnavailable(error),
        Some(FailureKind::BackendTimeout) => RunEvent::RuntimeTimeout(error),
        Some(
            FailureKind::BackendProtocolError
            | FailureKind::BackendJsonParseError
            | FailureKind::BackendResponseInvalid,
        ) => RunEvent::SchemaValidationFailed(error),
        Some(FailureKind::ProviderRateLimited | FailureKind::Cancelled) | None => {
            RunEvent::RuntimeError(error)
        }
    }
}

/// The append id of an edge's batch: the same for every repetition.
pub(crate) fn batch_append(run: RunId, generation: u64, edge_sequence: u64) -> runyard_domain::AppendId {
    use sha2::{Digest, Sha256};
    let digest = Sha256::new()
        .chain_update(run.as_bytes())
        .chain_update(generation.to_le_bytes())
        .chain_update(edge_sequence.to_le_bytes())
        .finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    runyard_domain::AppendId::from_bytes(bytes)
}
