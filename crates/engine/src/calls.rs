//! The calls that an agent makes at the hub: the gate decides on each, and what it did is in the run's log.
//!
//! A call that only looks at the record itself is judged and not recorded unless it is refused: an agent that reads its own log
//! would else write it without end.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use hmac::{Hmac, KeyInit, Mac};
use runyard_domain::gate::{Effect, Judgement, Place, Policy, Request, SideEffects, Subject, judge};
use runyard_domain::run::{
    ApprovalRequested, ApprovalUsed, GateJudged, Grant, Run, RunEvent, RunState, ToolCall, ToolOutcome,
    ToolResult,
};
use runyard_domain::{Approval, ApprovalId, RunId, Timestamp};
use serde_json::Value;
use sha2::Sha256;

use crate::endings::withdrawal;
use crate::fresh::fresh;
use crate::record::{Decided, Fact};
use crate::translate::agent;
use crate::{Engine, EngineError};

/// How much may be open in a run when an agent calls.
const OPEN_MAX: usize = 64;

/// Why a rule does not let a call go on by itself.
const FOR_ONE_TIME: &str =
    "only a rule for one time allows it, and such a rule lets no call of an action go on by itself";

/// A call that an agent wants to make.
#[derive(Clone, Debug)]
pub struct AgentCall {
    /// The agent's run.
    pub run: RunId,
    /// The invocation: the name of the step.
    pub call: String,
    /// The action.
    pub action: String,
    /// What it does to the world.
    pub side_effects: SideEffects,
    /// Whether the action is one of the hub's own, which show what is recorded.
    pub is_of_the_hub: bool,
    /// Whether doing it twice is the same as doing it once.
    pub idempotent: bool,
    /// Its input.
    pub input: Value,
}

/// What was decided about a call.
#[derive(Clone, Debug)]
enum Verdict {
    Passed,
    Denied(String),
    Asked(ApprovalId),
}

impl Engine {
    /// Lets a call go on, or says why not. Where a person is asked it waits for the answer, which is the confirmation.
    pub async fn pass_call(&self, call: AgentCall) -> Result<(), EngineError> {
        let run = self.run(call.run).await?.run;
        if run.state.is_terminal() {
            return Err(EngineError::Conflict { run: run.id, state: run.state.name(), what: "it has ended" });
        }
        let policy = self.policy();
        // Most calls only look at what is recorded: nothing is written for them.
        let looks = call.is_of_the_hub && call.side_effects == SideEffects::Read;
        if looks && self.judged(&policy, &run, &call, self.now()).effect == Effect::Allow {
            return Ok(());
        }
        match self.decide_call(&policy, &call).await? {
            Verdict::Passed => Ok(()),
            Verdict::Denied(reason) => Err(EngineError::Denied { reason }),
            Verdict::Asked(approval) => self.await_answer(&call, approval).await,
        }
    }

    fn judged(&self, policy: &Policy, run: &Run, call: &AgentCall, now: Timestamp) -> Judgement {
        let subject = Subject {
            agent: &run.created.agent_id,
            workspace: &run.created.workspace.label,
            run: Some(run.id),
            session: Some(run.created.session_id),
            place: Place::Checkout,
            people_may_be_asked: run.created.execution_policy.approval == Approval::Ask,
            // An action is no connection.
            network_is_allowed: false,
            now,
        };
        let mut policy = Cow::Borrowed(policy);
        if !run.rules_used.is_empty() {
            policy.to_mut().take_away_marked(&run.rules_used);
        }
        judge(&policy, &subject, &request(call))
    }

    /// Judges the call where the run stands, and records what came of it.
    async fn decide_call(&self, policy: &Policy, call: &AgentCall) -> Result<Verdict, EngineError> {
        let verdict: Arc<Mutex<Option<Verdict>>> = Arc::default();
        let (engine, policy, call, slot) = (self.clone(), policy.clone(), call.clone(), Arc::clone(&verdict));
        let run = call.run;
        let decide = move |run: &Run, now| {
            let (facts, decided) = engine.call_facts(&policy, run, &call, now)?;
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(decided);
            Ok(Decided { facts, result: None })
        };
        let standing = self.recorder().head(run, decide).await?;
        self.changed(&standing);
        let verdict = verdict.lock().unwrap_or_else(PoisonError::into_inner).take();
        verdict.ok_or(EngineError::Contended { run })
    }

    fn call_facts(
        &self,
        policy: &Policy,
        run: &Run,
        call: &AgentCall,
        now: Timestamp,
    ) -> Result<(Vec<Fact>, Verdict), EngineError> {
        let judgement = self.judged(policy, run, call, now);
        // A rule that holds once would have to be retired with this very write: a person is asked instead, where one may be.
        let (effect, reason) = match judgement.effect {
            Effect::Allow if judgement.rules_used_up().next().is_some() => {
                let asks = run.created.execution_policy.approval == Approval::Ask;
                (if asks { Effect::Ask } else { Effect::Deny }, FOR_ONE_TIME.to_owned())
            }
            effect => (effect, judgement.because.to_string()),
        };
        let noted = |effect| {
            let (key, request, reason) = (call.call.clone(), request(call), reason.clone());
            Fact::from(RunEvent::GateJudged(GateJudged { key, request, effect, reason, rule_used: None }))
        };
        let digest = self.call_digest(call)?;
        let awaited = self.awaited();
        let held =
            |grant: &&Grant| grant.digest == digest && (grant.used || !awaited.contains(&grant.approval_id));
        let held = run.grants.iter().find(held);
        Ok(match (effect, held) {
            (Effect::Allow, _) => (vec![noted(Effect::Allow), begun(call)], Verdict::Passed),
            (Effect::Deny, _) => (vec![noted(Effect::Deny)], Verdict::Denied(reason)),
            (_, Some(grant)) => used(grant.approval_id, grant.approved, grant.reason.as_deref(), call),
            (_, None) if run.state.open().count() >= OPEN_MAX => {
                let reason = "Too much is open in the run already.".to_owned();
                (vec![noted(Effect::Deny)], Verdict::Denied(reason))
            }
            (_, None) => {
                let approval_id = fresh!(ApprovalId, now);
                let shown = serde_json::to_value(request(call))?;
                let asked = ApprovalRequested {
                    approval_id,
                    key: call.call.clone(),
                    redacted: *self.recorder().redactor.json(shown.clone()) != shown,
                    request: request(call),
                    digest,
                    risk: judgement.risk,
                    reason,
                    notes: judgement.notes.iter().map(ToString::to_string).collect(),
                    workspace: run.created.workspace.clone(),
                    actor: agent(run),
                    expires_at: now.plus_ms(self.limits().approval_expiry_ms),
                };
                (vec![RunEvent::ApprovalRequested(asked).into()], Verdict::Asked(approval_id))
            }
        })
    }

    /// Waits for the answer to what was asked, and uses it up.
    async fn await_answer(&self, call: &AgentCall, approval: ApprovalId) -> Result<(), EngineError> {
        let mut waiting = Waiting::for_answer(self, call.run, approval);
        let mut tail = self.follow(call.run, self.run(call.run).await?.sequence).await?;
        loop {
            let run = self.run(call.run).await?.run;
            let open = run.state.open().any(|(id, _)| id == approval);
            let held = run.grants.iter().any(|grant| grant.approval_id == approval && !grant.used);
            match (&run.state, open, held) {
                (_, true, _) => {}
                (RunState::Running | RunState::NeedsApproval { .. }, false, true) => break,
                _ => return Err(EngineError::Denied { reason: "The request was given up.".to_owned() }),
            }
            tail.next().await?;
        }
        waiting.answered = true;
        let slot: Arc<Mutex<Option<Verdict>>> = Arc::default();
        let (decided, call) = (Arc::clone(&slot), call.clone());
        let run = call.run;
        let decide = move |run: &Run, _| {
            let held = run.grants.iter().find(|grant| grant.approval_id == approval);
            let gone = || EngineError::Denied { reason: "The decision was used up.".to_owned() };
            let grant = held.ok_or_else(gone)?;
            let (facts, verdict) = used(approval, grant.approved, grant.reason.as_deref(), &call);
            *decided.lock().unwrap_or_else(PoisonError::into_inner) = Some(verdict);
            Ok(Decided { facts, result: None })
        };
        self.recorder().head(run, decide).await?;
        let verdict = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        match verdict {
            Some(Verdict::Denied(reason)) => Err(EngineError::Denied { reason }),
            _ => Ok(()),
        }
    }

    /// Records that an agent no longer waits for an answer.
    async fn give_up(&self, run: RunId, approval: ApprovalId) {
        let decide = move |run: &Run, _| {
            let facts = vec![withdrawal(approval, agent(run), "The agent's call was given up.").into()];
            Ok(Decided { facts, result: None })
        };
        match self.recorder().head(run, decide).await {
            Ok(standing) => self.changed(&standing),
            // Answered or ended meanwhile.
            Err(EngineError::Illegal(_)) => {}
            Err(error) => {
                tracing::error!(%run, %approval, %error, "that a call was given up is not recorded")
            }
        }
    }

    /// Records how a call ended, if its run still runs.
    pub async fn end_call(&self, run: RunId, call: &str, outcome: ToolOutcome, summary: &str) {
        let result = ToolResult { call: call.to_owned(), outcome, code: None, summary: summary.to_owned() };
        let decide = move |run: &Run, _| {
            if !run.open_steps.contains_key(&result.call) {
                let what = "no such step is open";
                return Err(EngineError::Conflict { run: run.id, state: run.state.name(), what });
            }
            let facts = vec![RunEvent::ToolResult(result.clone()).into()];
            Ok(Decided { facts, result: None })
        };
        match self.recorder().head(run, decide).await {
            Ok(standing) => self.changed(&standing),
            Err(EngineError::Conflict { .. }) => {}
            Err(error) => tracing::error!(%run, call, %error, "how a call ended is not recorded"),
        }
    }

    /// Stands for the call's content, whoever makes it when in this run.
    fn call_digest(&self, call: &AgentCall) -> Result<String, EngineError> {
        let content = serde_json::to_vec(&(call.run, &call.action, &call.input))?;
        // A key of any length will do.
        let digest = Hmac::<Sha256>::new_from_slice(self.digest_key());
        let mut digest = digest.map_err(|_| EngineError::Contended { run: call.run })?;
        digest.update(&content);
        Ok(digest.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// A call that waits for its own answer, which no other call may take. When the caller goes away the request is given up,
/// unless its session is being closed: then the caller will be back.
struct Waiting<'a> {
    engine: &'a Engine,
    run: RunId,
    approval: ApprovalId,
    answered: bool,
}

impl<'a> Waiting<'a> {
    fn for_answer(engine: &'a Engine, run: RunId, approval: ApprovalId) -> Self {
        engine.awaited().insert(approval);
        Waiting { engine, run, approval, answered: false }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.engine.awaited().remove(&self.approval);
        if !self.answered && self.engine.schedule().is_live(self.run) {
            let (engine, run, approval) = (self.engine.clone(), self.run, self.approval);
            tokio::spawn(async move { engine.give_up(run, approval).await });
        }
    }
}

fn request(call: &AgentCall) -> Request {
    let (action, side_effects, input) = (call.action.clone(), call.side_effects, call.input.clone());
    Request::Action { action, side_effects, input }
}

fn begun(call: &AgentCall) -> Fact {
    let called = ToolCall {
        call: call.call.clone(),
        tool: call.action.clone(),
        summary: format!("call the action {}", call.action),
        idempotent: call.idempotent,
        arguments: call.input.clone(),
    };
    RunEvent::ToolCall(called).into()
}

/// What using a decision records, and what it says.
fn used(
    approval_id: ApprovalId,
    approved: bool,
    reason: Option<&str>,
    call: &AgentCall,
) -> (Vec<Fact>, Verdict) {
    let used = Fact::from(RunEvent::ApprovalUsed(ApprovalUsed { approval_id }));
    if approved {
        return (vec![used, begun(call)], Verdict::Passed);
    }
    let reason = reason.unwrap_or("A person rejected it.").to_owned();
    (vec![used], Verdict::Denied(reason))
}
