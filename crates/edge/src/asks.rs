//! A run's requests: each is judged here by the policy of the moment, and those that a person must decide wait here.
//!
//! What waits is kept as the backend made it, with its digest: a decision is handed over only for exactly that.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use runyard_backend::link::Report;
use runyard_backend::{Answer, Sight};
use runyard_domain::gate::{self, Effect, Judgement, Place, Policy, Preset, Request, Risk, Subject, mark};
use runyard_domain::{Approval, Code, ExecutionPolicy, Network, RunId, SessionId};
use runyard_redact::holds_placeholder;
use runyard_store::Clock;

use crate::digest::DigestKey;
use crate::policies::Policies;
use crate::scribe::{Breach, Scribe, shortened};

/// How many requests of a run wait for people at a time.
pub(crate) const WAITING_MAX: usize = 64;
/// How many requests of a session are asked about at all.
pub(crate) const ASKED_MAX: usize = 10_000;
/// The longest request that a person is shown, as JSON.
pub(crate) const REQUEST_BYTES_MAX: usize = 256 * 1024;
/// How many notes go with a request.
const NOTES_MAX: usize = 16;
/// How often a request is judged anew because another run used up the rule that allowed it.
const JUDGED_MAX: usize = 16;

/// Who a session's requests are judged for, and by what.
#[derive(Clone)]
pub(crate) struct Judge {
    pub(crate) run: RunId,
    pub(crate) session: SessionId,
    pub(crate) agent: String,
    pub(crate) workspace: String,
    pub(crate) preset: Preset,
    pub(crate) execution: ExecutionPolicy,
    pub(crate) policies: Arc<Policies>,
    /// The marks of the rules for one time in each run that this one used up.
    pub(crate) used: Arc<Mutex<Vec<String>>>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// The requests of one session.
pub(crate) struct Asks {
    pub(crate) judge: Judge,
    pub(crate) key: DigestKey,
    pub(crate) waiting: HashMap<String, Waiting>,
    /// The keys of all that was ever asked about.
    pub(crate) asked: HashSet<String>,
}

/// A request that waits for a person.
pub(crate) struct Waiting {
    /// The backend's own key.
    key: String,
    request: Request,
    pub(crate) digest: String,
}

/// What is done with a request.
enum Ruling {
    Allowed { reason: String, rule_used: Option<String> },
    Denied { code: Code, reason: String },
    Asked(Why),
}

/// What a person is told about a request beside what it is.
struct Why {
    risk: Risk,
    reason: String,
    notes: Vec<String>,
}

fn denied(code: Code, reason: impl Into<String>) -> Ruling {
    Ruling::Denied { code, reason: reason.into() }
}

impl Asks {
    /// Judges a request. Gives what is reported, and the answer for the backend once that is durable; none where it waits.
    pub(crate) fn judge(
        &mut self,
        key: String,
        request: Request,
        scribe: &Scribe,
    ) -> Result<(Report, Option<(String, Answer)>), Breach> {
        let name = scribe.name(&key)?;
        if self.asked.contains(&name) {
            return Err(Breach::KeyTwice);
        }
        let mut shown = scribe.request(&request);
        let too_long = json_length(&request) > REQUEST_BYTES_MAX || json_length(&shown) > REQUEST_BYTES_MAX;
        let redacted = shown != request;
        if too_long {
            shown = shortened(shown);
        }
        let (allowed, reason, rule_used) = match self.rule(&request, too_long) {
            Ruling::Asked(why) => {
                let notes = why.notes.iter().map(|note| scribe.line(note)).collect();
                let why = Why { reason: scribe.line(&why.reason), notes, ..why };
                return Ok((self.ask(name, key, (request, shown), redacted, why), None));
            }
            Ruling::Allowed { reason, rule_used } => (true, scribe.line(&reason), rule_used),
            Ruling::Denied { code, reason } => {
                (false, format!("{}: {}", code.as_str(), scribe.line(&reason)), None)
            }
        };
        let said = (!allowed).then(|| reason.clone());
        let answer = Answer { approved: allowed, reason: said, answer: None };
        Ok((Report::Judged { key: name, request: shown, allowed, reason, rule_used }, Some((key, answer))))
    }

    /// What is said of something that was done unasked: also why it would have been denied.
    pub(crate) fn unasked(&self, request: &Request, scribe: &Scribe) -> String {
        let why = self.judge.denies(request).map(|why| scribe.line(&why));
        why.map_or_else(
            || "the agent did something for which it had not asked".to_owned(),
            |why| format!("the agent did something for which it had not asked, and which is denied: {why}"),
        )
    }

    fn ask(
        &mut self,
        name: String,
        key: String,
        (request, shown): (Request, Request),
        redacted: bool,
        Why { risk, reason, notes }: Why,
    ) -> Report {
        let digest = self.key.of_request(&request);
        self.asked.insert(name.clone());
        self.waiting.insert(name.clone(), Waiting { key, request, digest: digest.clone() });
        Report::Asked { key: name, request: shown, redacted, digest, risk, reason, notes }
    }

    /// The backend's key of a request that still waits and is still what was asked about; it waits no longer.
    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        let waiting = self.waiting.remove(name)?;
        if self.key.of_request(&waiting.request) != waiting.digest {
            tracing::error!(run = %self.judge.run, "a waiting request is not what was asked about; its decision is dropped");
            return None;
        }
        Some(waiting.key)
    }

    fn rule(&self, request: &Request, too_long: bool) -> Ruling {
        if holds_our_placeholder(request) {
            return denied(Code::RedactedContent, "it holds a placeholder where a secret was taken out");
        }
        if let Some(reason) = self.judge.execution.rules_out(request) {
            return denied(Code::PermissionDenied, reason);
        }
        if matches!(request, Request::Question(question) if !question.is_bounded()) {
            return denied(
                Code::PermissionDenied,
                "its schema of the answer refers to itself, or is too large",
            );
        }
        match self.judge.judged(request) {
            Ruling::Asked(_) if too_long => {
                denied(Code::PermissionDenied, "it must be asked about and is too long to be shown")
            }
            Ruling::Asked(_) if self.waiting.len() >= WAITING_MAX || self.asked.len() >= ASKED_MAX => {
                denied(Code::PermissionDenied, "it must be asked about, and too much was asked already")
            }
            ruling => ruling,
        }
    }
}

impl Judge {
    fn subject(&self) -> Subject<'_> {
        Subject {
            agent: &self.agent,
            workspace: &self.workspace,
            run: Some(self.run),
            session: Some(self.session),
            place: Place::Checkout,
            people_may_be_asked: self.execution.approval == Approval::Ask,
            network_is_allowed: self.execution.network == Network::Allow,
            now: self.clock.now(),
        }
    }

    /// Why the policy denies it, if it does. Nothing is used up.
    fn denies(&self, request: &Request) -> Option<String> {
        let judgement = gate::judge(&*self.policy()?, &self.subject(), request);
        (judgement.effect == Effect::Deny).then(|| judgement.because.to_string())
    }

    fn judged(&self, request: &Request) -> Ruling {
        let subject = self.subject();
        for _ in 0..JUDGED_MAX {
            let Some(policy) = self.policy() else {
                return denied(Code::PermissionDenied, "the edge holds no policy");
            };
            let judgement = gate::judge(&policy, &subject, request);
            if let Some(ruling) = self.acted_on(&policy, judgement, &subject) {
                return ruling;
            }
        }
        denied(Code::PermissionDenied, "the rule that allows it is always used up by others")
    }

    /// What a judgement comes to; none when a rule that it relies on was used up meanwhile.
    fn acted_on(&self, policy: &Policy, judgement: Judgement, subject: &Subject<'_>) -> Option<Ruling> {
        let reason = judgement.because.to_string();
        let asked = |reason| Ruling::Asked(Why { risk: judgement.risk, reason, notes: notes(&judgement) });
        let mut used: Vec<&str> = judgement.rules_used_up().collect();
        used.dedup();
        match (judgement.effect, used.as_slice()) {
            (Effect::Ask, _) => Some(asked(reason)),
            (Effect::Deny, _) => Some(denied(Code::PermissionDenied, reason)),
            (Effect::Allow, []) => Some(Ruling::Allowed { reason, rule_used: None }),
            (Effect::Allow, [rule]) => {
                let rule_used = Some((*rule).to_owned());
                // The run's requests are judged one after the other; what others may use too is for whoever is first.
                let serves = match policy.is_once_in_each_run(rule) {
                    true => {
                        self.used().push(mark(rule));
                        true
                    }
                    false => self.policies.spend(rule),
                };
                serves.then_some(Ruling::Allowed { reason, rule_used })
            }
            // A report can name one rule as used up.
            (Effect::Allow, _) if subject.people_may_be_asked => {
                Some(asked("it would use up more than one rule at a time".to_owned()))
            }
            (Effect::Allow, _) => {
                Some(denied(Code::PermissionDenied, "it would use up more than one rule at a time"))
            }
        }
    }

    /// The policy of the moment with the run's preset, of the two the stricter one, and without the rules that the run used up.
    fn policy(&self) -> Option<Arc<Policy>> {
        let mut policy = self.policies.current()?;
        let used = self.used();
        if !used.is_empty() {
            Arc::make_mut(&mut policy).take_away_marked(&used);
        }
        if self.preset == Preset::Strict && policy.preset != Preset::Strict {
            Arc::make_mut(&mut policy).preset = Preset::Strict;
        }
        Some(policy)
    }
}

impl Judge {
    fn used(&self) -> MutexGuard<'_, Vec<String>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sight for Judge {
    /// What would use up a rule is not looked into in passing.
    fn may_read(&self, path: &str) -> bool {
        let request = Request::Read { path: path.to_owned() };
        let judged = self.policy().map(|policy| gate::judge(&policy, &self.subject(), &request));
        self.execution.rules_out(&request).is_none()
            && judged.is_some_and(|judged| {
                judged.effect == Effect::Allow && judged.rules_used_up().next().is_none()
            })
    }
}

/// What else there is to know of a request; of many notes the first.
fn notes(judgement: &Judgement) -> Vec<String> {
    let all = judgement.notes.len();
    let mut notes: Vec<String> = judgement.notes.iter().take(NOTES_MAX).map(ToString::to_string).collect();
    if all > NOTES_MAX {
        notes.push(format!("there is as much to say about {} more of its commands", all - NOTES_MAX));
    }
    notes
}

fn holds_our_placeholder(request: &Request) -> bool {
    match request {
        Request::Write { path, content } => {
            holds_placeholder(path) || content.as_ref().is_some_and(holds_placeholder)
        }
        Request::Patch { files, patch } => files.iter().any(holds_placeholder) || holds_placeholder(patch),
        Request::Shell { command, cwd } => holds_placeholder(command) || holds_placeholder(cwd),
        _ => false,
    }
}

fn json_length(request: &Request) -> usize {
    serde_json::to_string(request).map_or(usize::MAX, |text| text.len())
}
