//! What a rule covers, in words: a pattern is easily taken for more than it says.

use runyard_domain::gate::{Because, Clause, Effect, Judgement, Policy, Rule, RuleKind};

/// What a rule is about, in a phrase; and a hint where the pattern says less than it may seem to.
pub(super) fn covers(rule: &Rule) -> (String, Option<String>) {
    let pattern = rule.text().matches.as_deref();
    let all = |things: &str| (format!("every {things}"), None);
    let named = |thing: &str, pattern: &str| (format!("{thing} `{pattern}`"), None);
    match (rule.kind(), pattern) {
        (RuleKind::Any, _) => ("everything that is asked for".to_owned(), None),
        (RuleKind::Shell, None) => all("command"),
        (RuleKind::Shell, Some(pattern)) => command(pattern),
        (RuleKind::Read, Some(pattern)) => path("reading", pattern, rule.effect()),
        (RuleKind::Write, Some(pattern)) => path("writing", pattern, rule.effect()),
        (RuleKind::Patch, Some(pattern)) => path("patches of", pattern, rule.effect()),
        (RuleKind::Network, Some(pattern)) => named("connections to", pattern),
        (RuleKind::GitCommit, Some(pattern)) => named("commits with the message", pattern),
        (RuleKind::GitPush, Some(pattern)) => named("pushes to", pattern),
        (RuleKind::Publish, Some(pattern)) => named("publishing", pattern),
        (RuleKind::Deploy, Some(pattern)) => named("deploying", pattern),
        (RuleKind::Secret, Some(pattern)) => named("the secret", pattern),
        (RuleKind::Action, Some(pattern)) => named("the action", pattern),
        (RuleKind::Read, None) => all("read"),
        (RuleKind::Write, None) => all("write"),
        (RuleKind::Patch, None) => all("patch"),
        (RuleKind::Network, None) => all("connection"),
        (RuleKind::GitCommit, None) => all("commit"),
        (RuleKind::GitPush, None) => all("push"),
        (RuleKind::Publish, None) => all("publishing"),
        (RuleKind::Deploy, None) => all("deployment"),
        (RuleKind::Secret, None) => all("secret"),
        (RuleKind::Action, None) => all("action"),
    }
}

fn command(pattern: &str) -> (String, Option<String>) {
    let words: Vec<&str> = pattern.split_whitespace().collect();
    match words.as_slice() {
        ["*"] => ("every command".to_owned(), None),
        [program, "*"] => (format!("the command `{program}` with any arguments or none"), None),
        [program] => (
            format!("the command `{program}` without arguments"),
            Some(format!("`{program} *` also matches with any")),
        ),
        [first @ .., "*"] => {
            (format!("commands that begin with `{}`, with any further words or none", first.join(" ")), None)
        }
        words => {
            let words = words.join(" ");
            let hint = format!("`{words} *` also matches with further ones");
            (format!("the command `{words}`, with exactly these words"), Some(hint))
        }
    }
}

/// A rule that denies or asks covers what is in a directory; one that allows says exactly what it means.
fn path(doing: &str, pattern: &str, effect: Effect) -> (String, Option<String>) {
    match effect {
        Effect::Allow if pattern.contains("**") => (format!("{doing} `{pattern}`"), None),
        Effect::Allow => {
            let inside = pattern.trim_end_matches("/*").trim_end_matches('/');
            let hint = format!("`{inside}/**` also matches what lies in a directory of that name");
            (format!("{doing} `{pattern}` itself"), Some(hint))
        }
        Effect::Ask | Effect::Deny => (format!("{doing} `{pattern}`, and what lies in it"), None),
    }
}

/// What a person should know about the rules beside a judgement: what those cover that spoke, and those that are about the same
/// program and did not speak because they say less than they may seem to.
pub(super) fn notes(policy: &Policy, judgement: &Judgement) -> Vec<String> {
    let rules = || policy.rules.iter().chain(&policy.stored);
    let mut notes = Vec::new();
    for part in &judgement.parts {
        match &part.because {
            Because::Rule { id, .. } => {
                let rule = rules().find(|rule| rule.id() == id);
                notes.extend(rule.map(|rule| format!("the rule `{id}` covers {}", covers(rule).0)));
            }
            Because::Default { clause: Clause::Shell } => notes.extend(rules().filter_map(|rule| {
                let pattern = rule.text().matches.as_deref().filter(|_| rule.kind() == RuleKind::Shell)?;
                let same = program(pattern) == program(&part.what);
                let (covered, hint) = covers(rule);
                let hint = hint.filter(|_| same)?;
                Some(format!("the rule `{}` does not speak: it covers {covered}; {hint}", rule.id()))
            })),
            _ => {}
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    notes.retain(|note| seen.insert(note.clone()));
    notes
}

fn program(text: &str) -> &str {
    let first = text.split_whitespace().next().unwrap_or_default();
    first.rsplit('/').next().unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c11_what_a_rule_covers_is_said_in_words_with_a_hint_where_it_is_less_than_it_seems() {
        #[track_caller]
        fn check(effect: Effect, kind: RuleKind, pattern: Option<&str>, covered: &str, hint: Option<&str>) {
            let rule = Rule::new(effect, kind, pattern).unwrap();
            assert_eq!(covers(&rule), (covered.to_owned(), hint.map(str::to_owned)));
        }
        use Effect::{Allow, Deny};
        use RuleKind::{Any, Network, Read, Shell};
        let hint = Some("`rm *` also matches with any");
        check(Deny, Shell, Some("rm"), "the command `rm` without arguments", hint);
        check(Deny, Shell, Some("rm *"), "the command `rm` with any arguments or none", None);
        check(Deny, Shell, None, "every command", None);
        check(
            Deny,
            Shell,
            Some("npm publish"),
            "the command `npm publish`, with exactly these words",
            Some("`npm publish *` also matches with further ones"),
        );
        check(
            Allow,
            Shell,
            Some("git log *"),
            "commands that begin with `git log`, with any further words or none",
            None,
        );
        check(Deny, Read, Some("keys"), "reading `keys`, and what lies in it", None);
        let hint = Some("`keys/**` also matches what lies in a directory of that name");
        check(Allow, Read, Some("keys"), "reading `keys` itself", hint);
        check(Allow, Read, Some("keys/**"), "reading `keys/**`", None);
        check(Deny, Network, Some("*.org"), "connections to `*.org`", None);
        check(Deny, Any, None, "everything that is asked for", None);
    }
}
