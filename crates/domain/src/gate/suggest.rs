//! The rule that a person means who says "always" to a request: it allows that one, and as little else as a rule can.

use super::judge::{Place, Subject, judge};
use super::policy::Policy;
use super::request::Request;
use super::rule::{Effect, Rule, RuleKind, RuleText};
use crate::Timestamp;

/// The rule that allows this request; none where no rule could, or where one would say much else.
pub fn rule_for(request: &Request) -> Option<RuleText> {
    let (kind, text) = match request {
        // Without a slash it would be about every file of that name.
        Request::Read { path } if path.contains('/') => (RuleKind::Read, path.clone()),
        Request::Write { path, .. } if path.contains('/') => (RuleKind::Write, path.clone()),
        Request::Shell { command, .. } => (RuleKind::Shell, command.clone()),
        Request::Network { host, .. } => (RuleKind::Network, host.clone()),
        Request::GitPush { remote, branch } => (RuleKind::GitPush, format!("{remote} {branch}")),
        Request::Publish { target } => (RuleKind::Publish, target.clone()),
        Request::Deploy { target } => (RuleKind::Deploy, target.clone()),
        // A rule about an action is about every input.
        Request::Action { .. }
        | Request::Read { .. }
        | Request::Write { .. }
        | Request::Patch { .. }
        | Request::GitCommit { .. }
        | Request::Secret { .. }
        | Request::Question(_)
        | Request::Apply { .. }
        | Request::Repeat { .. } => return None,
    };
    // What is a character there would stand for many here.
    if text.contains(['*', '?']) {
        return None;
    }
    let text = RuleText::new(Effect::Allow, kind, Some(&text));
    allows(&text, request).then_some(text)
}

/// Whether the rule alone allows the request, where nothing is allowed without one.
fn allows(text: &RuleText, request: &Request) -> bool {
    let Ok(rule) = Rule::try_from(text.clone()) else { return false };
    let policy = Policy { stored: vec![rule], ..Policy::default() };
    let subject = Subject {
        agent: "",
        workspace: "",
        run: None,
        session: None,
        place: Place::InPlace,
        people_may_be_asked: true,
        network_is_allowed: false,
        now: Timestamp::from_unix_ms(0),
    };
    judge(&policy, &subject, request).effect == Effect::Allow
}
