//! Requests, rules and a subject, in few words.

use runyard_domain::gate::{
    Effect, Judgement, Place, Policy, Request, Rule, RuleKind, SideEffects, Subject, judge,
};
use runyard_domain::{RunId, SessionId, Timestamp};
use serde_json::Value;

/// Who asks, under which policy.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) subject: Subject<'a>,
}

impl Asked<'_> {
    pub(crate) fn judge(&self, request: &Request) -> Judgement {
        judge(self.policy, &self.subject, request)
    }
}

pub(crate) fn subject() -> Subject<'static> {
    Subject {
        agent: "coder",
        workspace: "home",
        run: Some(RunId::from_parts(1, &[1; 10])),
        session: Some(SessionId::from_parts(1, &[1; 10])),
        place: Place::Checkout,
        people_may_be_asked: true,
        network_is_allowed: false,
        now: Timestamp::from_unix_ms(1_700_000_000_000),
    }
}

pub(crate) fn policy(rules: &[Rule]) -> Policy {
    Policy { rules: rules.to_vec(), ..Policy::default() }
}

pub(crate) fn rule(effect: Effect, kind: RuleKind, matches: &str) -> Rule {
    Rule::new(effect, kind, Some(matches)).unwrap_or_else(|why| panic!("{matches}: {why}"))
}

pub(crate) fn allow(kind: RuleKind, matches: &str) -> Rule {
    rule(Effect::Allow, kind, matches)
}

pub(crate) fn ask(kind: RuleKind, matches: &str) -> Rule {
    rule(Effect::Ask, kind, matches)
}

pub(crate) fn deny(kind: RuleKind, matches: &str) -> Rule {
    rule(Effect::Deny, kind, matches)
}

pub(crate) fn shell(command: &str) -> Request {
    Request::Shell { command: command.to_owned(), cwd: ".".to_owned() }
}

pub(crate) fn read(path: &str) -> Request {
    Request::Read { path: path.to_owned() }
}

pub(crate) fn write(path: &str) -> Request {
    Request::Write { path: path.to_owned(), content: None }
}

pub(crate) fn push(remote: &str, branch: &str) -> Request {
    Request::GitPush { remote: remote.to_owned(), branch: branch.to_owned() }
}

pub(crate) fn secret(name: &str) -> Request {
    Request::Secret { name: name.to_owned() }
}

pub(crate) fn action(name: &str, side_effects: SideEffects) -> Request {
    Request::Action { action: name.to_owned(), side_effects, input: Value::Null }
}

/// What the gate says of a command line under these rules.
pub(crate) fn judged(rules: &[Rule], line: &str) -> Judgement {
    judge(&policy(rules), &subject(), &shell(line))
}

#[track_caller]
pub(crate) fn check(rules: &[Rule], line: &str, expected: Effect) {
    let judgement = judged(rules, line);
    assert_eq!(judgement.effect, expected, "{line}: {judgement} {:?}", judgement.parts);
}
