//! Rules and policies as they are written, and judgements as they are told.

use crate::support::{allow, deny, policy, read, shell, subject, write};
use runyard_domain::gate::{
    Because, Beyond, Clause, Effect, InvalidPattern, InvalidRule, Note, PATTERN_CHARS_MAX, Policy, Preset,
    Request, Risk, Rule, RuleKind, RuleText, Scope, judge,
};
use runyard_domain::{RunId, SessionId, Timestamp};
use serde_json::{Value, json};

fn parsed(value: Value) -> Result<Rule, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

#[test]
fn c11_a_rule_reads_and_writes_as_configuration_has_it() {
    let short = parsed(json!({"effect": "deny", "kind": "shell", "match": "rm *"})).unwrap();
    assert_eq!(short, deny(RuleKind::Shell, "rm *"));
    assert_eq!(
        (short.id(), short.effect(), short.kind()),
        ("deny shell rm *", Effect::Deny, RuleKind::Shell)
    );
    assert_eq!(short.scope(), Scope::Always);

    let full = json!({
        "id": "rul-1", "effect": "allow", "kind": "git_push", "match": "origin *", "agent": "coder", "workspace": "home",
        "scope": "run", "run": RunId::from_parts(1, &[1; 10]), "expires": "2026-01-01T00:00:00.000Z",
    });
    let rule = parsed(full.clone()).unwrap();
    assert_eq!(rule.id(), "rul-1");
    assert_eq!(rule.text().expires, Some(Timestamp::from_unix_ms(1_767_225_600_000)));
    assert_eq!(serde_json::to_value(&rule).unwrap(), full);
}

#[test]
fn c11_a_rule_without_a_name_is_named_by_its_content() {
    let text = RuleText {
        agent: Some("coder".to_owned()),
        workspace: Some("home".to_owned()),
        ..RuleText::new(Effect::Ask, RuleKind::Read, None)
    };
    assert_eq!(Rule::try_from(text).unwrap().id(), "ask read for agent coder in home");
}

#[test]
fn c11_every_kind_has_its_word() {
    for kind in [
        RuleKind::Any,
        RuleKind::Read,
        RuleKind::Write,
        RuleKind::Patch,
        RuleKind::Shell,
        RuleKind::Network,
        RuleKind::GitCommit,
        RuleKind::GitPush,
        RuleKind::Publish,
        RuleKind::Deploy,
        RuleKind::Secret,
        RuleKind::Action,
    ] {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
    }
}

#[test]
fn c11_requests_and_presets_are_named_by_their_words() {
    for value in [
        json!({"kind": "read", "path": "a"}),
        json!({"kind": "write", "path": "a"}),
        json!({"kind": "patch", "files": ["a"], "patch": ""}),
        json!({"kind": "shell", "command": "a", "cwd": "."}),
        json!({"kind": "network", "host": "a"}),
        json!({"kind": "git_commit", "message": "a"}),
        json!({"kind": "git_push", "remote": "a", "branch": "b"}),
        json!({"kind": "publish", "target": "a"}),
        json!({"kind": "deploy", "target": "a"}),
        json!({"kind": "secret", "name": "a"}),
        json!({"kind": "action", "action": "a", "sideEffects": "read", "input": {}}),
        json!({"kind": "question", "prompt": "a", "answerSchema": {}}),
        json!({"kind": "repeat", "step": "a"}),
    ] {
        let request: Request = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(value["kind"], request.kind());
        assert_eq!(serde_json::to_value(&request).unwrap(), value);
    }
    for preset in [Preset::Default, Preset::Strict] {
        assert_eq!(serde_json::to_value(preset).unwrap(), preset.as_str());
    }
}

#[test]
fn c11_a_wrong_rule_is_refused_and_says_why() {
    #[track_caller]
    fn check(value: Value, expected: &str) {
        let error = parsed(value.clone()).expect_err(&value.to_string());
        assert!(error.contains(expected), "{value}: {error}");
    }
    check(json!({"effect": "deny", "kind": "shell", "macht": "x"}), "unknown field `macht`, expected one of");
    check(
        json!({"effect": "refuse", "kind": "shell"}),
        "unknown variant `refuse`, expected one of `allow`, `ask`, `deny`",
    );
    check(json!({"effect": "deny", "kind": "question"}), "unknown variant `question`");
    check(json!({"kind": "shell"}), "missing field `effect`");
    check(json!({"effect": "deny", "kind": "any", "match": "x"}), "kind `any` has none");
    check(json!({"effect": "allow", "kind": "secret"}), "can only be `deny`");
    check(json!({"effect": "ask", "kind": "secret"}), "can only be `deny`");
    check(json!({"effect": "deny", "kind": "read", "scope": "run"}), "names its run");
    check(
        json!({"effect": "deny", "kind": "read", "run": RunId::from_parts(1, &[1; 10])}),
        "only rules of scope",
    );
    let (run, session) = (RunId::from_parts(1, &[1; 10]), SessionId::from_parts(1, &[1; 10]));
    check(json!({"effect": "deny", "kind": "read", "scope": "session"}), "names its session");
    check(json!({"effect": "deny", "kind": "read", "scope": "project"}), "names its workspace");
    for scope in ["once", "always", "project"] {
        let rule =
            json!({"effect": "deny", "kind": "read", "scope": scope, "workspace": "w", "session": session});
        check(rule, "only rules of scope `session` name a session");
    }
    let both = json!({"effect": "deny", "kind": "read", "scope": "run", "run": run, "session": session});
    check(both, "only rules of scope `session` name a session");
    for scope in ["session", "project"] {
        let rule = json!({"effect": "deny", "kind": "read", "scope": scope, "workspace": "w", "run": run});
        check(rule, "only rules of scope `run` or `once` name a run");
    }
    check(json!({"effect": "deny", "kind": "read", "agent": ""}), "agent: is not empty");
    check(json!({"effect": "deny", "kind": "read", "workspace": ""}), "workspace: is not empty");
    check(json!({"effect": "deny", "kind": "read", "id": ""}), "id: is not empty");
    check(
        json!({"effect": "deny", "kind": "read", "match": "../x"}),
        "match: a path pattern is written without",
    );
    check(json!({"effect": "deny", "kind": "read", "expires": "soon"}), "RFC 3339");
}

#[test]
fn c11_a_pattern_is_checked_when_the_rule_is_made() {
    use InvalidPattern::{ControlCharacter, Empty, Host, Path, Stars, TooLong, Words};
    #[track_caller]
    fn check(kind: RuleKind, pattern: &str, expected: Option<InvalidPattern>) {
        let made = Rule::new(Effect::Deny, kind, Some(pattern));
        assert_eq!(made.err(), expected.map(InvalidRule::Match), "{pattern}");
    }
    let long = |chars: usize| "é".repeat(chars);
    check(RuleKind::Action, &long(PATTERN_CHARS_MAX), None);
    check(RuleKind::Action, &long(PATTERN_CHARS_MAX + 1), Some(TooLong));
    for kind in [RuleKind::Read, RuleKind::Shell, RuleKind::Network, RuleKind::Action] {
        check(kind, "", Some(Empty));
        check(kind, "  ", Some(Empty));
        check(kind, "a\nb", Some(ControlCharacter));
    }
    for good in ["a", "/a", "a/b", "**", "**/a", "a/**/b", "*.md", "[id].tsx", "a..b"] {
        check(RuleKind::Read, good, None);
    }
    for bad in ["/", "a/", "//a", "a//b", "./a", "../a", "a/../b"] {
        check(RuleKind::Write, bad, Some(Path));
    }
    for bad in ["a**", "src/**.rs", "***"] {
        check(RuleKind::Patch, bad, Some(Stars));
    }
    for good in ["a", "a.b.", "*.a.b", "*", "a-?.b", "127.0.0.1", "::1", "bücher.example", "_dmarc.x"] {
        check(RuleKind::Network, good, None);
    }
    for bad in ["https://a", "a/b", "a:80", "a..b", ".", ".a", "a b", "**.a"] {
        check(RuleKind::Network, bad, Some(Host));
    }
    check(RuleKind::Shell, "git push *", None);
    check(RuleKind::Shell, "git **", Some(Words));
    check(RuleKind::GitPush, "origin **", Some(Words));
    check(RuleKind::Action, "a.**", None);
}

#[test]
fn c11_a_policy_reads_from_configuration() {
    let text = json!({"preset": "strict", "rule": [{"effect": "deny", "kind": "shell", "match": "rm *"}]});
    let policy: Policy = serde_json::from_value(text).unwrap();
    let rules = vec![deny(RuleKind::Shell, "rm *")];
    assert_eq!(policy, Policy { preset: Preset::Strict, rules, ..Policy::default() });
    assert_eq!(serde_json::from_value::<Policy>(json!({})).unwrap(), Policy::default());
    assert!(serde_json::from_value::<Policy>(json!({"rulez": []})).is_err());
}

#[test]
fn c11_a_judgement_is_told_in_a_plain_sentence() {
    #[track_caller]
    fn check(rules: &[Rule], request: &Request, expected: &str) {
        assert_eq!(judge(&policy(rules), &subject(), request).to_string(), expected);
    }
    check(&[], &read("a"), "Allowed (low risk): reading inside the workspace is allowed and recorded.");
    check(&[], &read("/a"), "Denied (low risk): reading outside the workspace is denied.");
    check(
        &[],
        &shell("ls"),
        "Asked about (low risk): no rule covers the command, and commands are asked about.",
    );
    check(
        &[deny(RuleKind::Shell, "ls")],
        &shell("ls"),
        "Denied (low risk): the rule `deny shell ls` says so.",
    );
    check(&[], &write(".env"), "Asked about (medium risk): `.env` is protected, and no allow rule names it.");
    check(
        &[allow(RuleKind::Shell, "ls")],
        &shell("ls > x"),
        "Asked about (medium risk): it writes `x` by redirection, which no allow rule for commands covers.",
    );
    check(
        &[],
        &shell("'"),
        "Asked about (medium risk): the command is not understood: a quote, bracket or here-document in it is not closed.",
    );
    let mut nobody = subject();
    nobody.people_may_be_asked = false;
    assert_eq!(
        judge(&Policy::default(), &nobody, &shell("ls")).to_string(),
        "Denied (low risk): it would be asked about (no rule covers the command, and commands are asked about), and nobody \
         may be asked."
    );
}

#[test]
fn c11_every_reason_and_note_has_its_own_sentence() {
    use Clause::{
        ActionChanges, ActionReads, Deploy, GitCommit, GitPush, Network, PatchOfNothing, Publish, Question,
        ReadInside, ReadOutside, Repeat, Secret, Shell, WriteInCheckout, WriteInPlace, WriteOutside,
        WriteStrict,
    };
    let clauses = [
        ReadInside,
        ReadOutside,
        WriteInCheckout,
        WriteStrict,
        WriteInPlace,
        WriteOutside,
        PatchOfNothing,
        Shell,
        Network,
        GitCommit,
        GitPush,
        Publish,
        Deploy,
        Secret,
        ActionReads,
        ActionChanges,
        Question,
        Repeat,
    ];
    let rule = |scope| Because::Rule { id: "r".to_owned(), scope };
    let (path, name) = ("p".to_owned(), "n".to_owned());
    let mut sentences: Vec<String> = clauses.map(|clause| Because::Default { clause }.to_string()).to_vec();
    sentences.extend(SCOPES.map(|scope| rule(scope).to_string()));
    sentences.extend([
        Because::MayMatch { id: "r".to_owned() }.to_string(),
        Because::Mentions { id: "r".to_owned() }.to_string(),
        Because::Opaque.to_string(),
        Because::Opened.to_string(),
        Because::Beyond(Beyond::Redirection { path: path.clone() }).to_string(),
        Because::Beyond(Beyond::Outside { path }).to_string(),
        Because::Beyond(Beyond::Variable { name: name.clone() }).to_string(),
        Note::BoundedBySandboxOnly { program: name }.to_string(),
        Note::RunsWhatItFetched.to_string(),
    ]);
    sentences.extend([Risk::Low, Risk::Medium, Risk::High].map(|risk| risk.to_string()));
    let all = sentences.len();
    sentences.sort();
    sentences.dedup();
    assert_eq!(sentences.len(), all);
    assert!(sentences.iter().all(|sentence| !sentence.is_empty()));
}

#[test]
fn c11_a_judgement_goes_over_the_wire() {
    let rules = [deny(RuleKind::Shell, "rm *"), allow(RuleKind::Shell, "a")];
    let judgement = judge(&policy(&rules), &subject(), &shell("a > x; python y; rm z; b"));
    let value = serde_json::to_value(&judgement).unwrap();
    assert_eq!(
        value,
        json!({
            "effect": "deny",
            "because": {"because": "rule", "id": "deny shell rm *", "scope": "always"},
            "parts": [
                {"what": "a > x", "effect": "ask", "because": {"because": "beyond", "what": "redirection", "path": "x"}},
                {"what": "python y", "effect": "ask", "because": {"because": "default", "clause": "shell"}},
                {"what": "rm z", "effect": "deny", "because": {"because": "rule", "id": "deny shell rm *", "scope": "always"}},
                {"what": "b", "effect": "ask", "because": {"because": "default", "clause": "shell"}},
            ],
            "risk": "medium",
            "notes": [{"note": "bounded_by_sandbox_only", "program": "python"}],
        })
    );
    assert_eq!(serde_json::from_value::<runyard_domain::gate::Judgement>(value).unwrap(), judgement);
}

const SCOPES: [Scope; 5] = [Scope::Once, Scope::Run, Scope::Session, Scope::Project, Scope::Always];

#[test]
fn the_word_of_a_scope_is_the_one_on_the_wire() {
    for scope in SCOPES {
        assert_eq!(serde_json::to_value(scope).unwrap(), scope.as_str());
    }
}
