//! What the gate decides where no rule speaks, and what rules about one thing change in it.

use crate::support::{Asked, action, allow, ask, deny, policy, push, read, secret, shell, subject, write};
use runyard_domain::gate::{
    AgentPreset, Because, Clause, Effect, Place, Policy, Preset, Question, Request, Risk, Rule, RuleKind,
    RuleText, Scope, SideEffects, judge,
};
use runyard_domain::{RunId, SessionId, Timestamp};
use serde_json::json;

use Effect::{Allow, Ask, Deny};

#[track_caller]
fn check(asked: Asked<'_>, request: &Request, effect: Effect, clause: Clause) {
    let judgement = asked.judge(request);
    assert_eq!((judgement.effect, judgement.because), (effect, Because::Default { clause }), "{request:?}");
}

fn patch(files: &[&str]) -> Request {
    Request::Patch { files: files.iter().map(|file| (*file).to_owned()).collect(), patch: String::new() }
}

fn network(host: &str) -> Request {
    Request::Network { host: host.to_owned(), port: Some(443) }
}

fn question() -> Request {
    Request::Question(Question { prompt: "Which?".to_owned(), answer_schema: json!({}) })
}

fn repeat() -> Request {
    Request::Repeat { step: "step 3".to_owned() }
}

fn commit() -> Request {
    Request::GitCommit { message: "Say why".to_owned() }
}

fn publish(target: &str) -> Request {
    Request::Publish { target: target.to_owned() }
}

fn deploy(target: &str) -> Request {
    Request::Deploy { target: target.to_owned() }
}

#[test]
fn c11_the_defaults() {
    let none = Policy::default();
    let plain = Asked { policy: &none, subject: subject() };
    check(plain, &read("src/main.rs"), Allow, Clause::ReadInside);
    check(plain, &read("./a"), Allow, Clause::ReadInside);
    check(plain, &read("."), Allow, Clause::ReadInside);
    check(plain, &read("a..b"), Allow, Clause::ReadInside);
    check(plain, &read("/etc/passwd"), Deny, Clause::ReadOutside);
    check(plain, &read("../a"), Deny, Clause::ReadOutside);
    check(plain, &read("a/../../b"), Deny, Clause::ReadOutside);
    check(plain, &read("~/a"), Deny, Clause::ReadOutside);
    check(plain, &read(""), Deny, Clause::ReadOutside);
    check(plain, &write("src/main.rs"), Allow, Clause::WriteInCheckout);
    check(plain, &write("/etc/passwd"), Deny, Clause::WriteOutside);
    check(plain, &write("../a"), Deny, Clause::WriteOutside);
    check(plain, &patch(&["a", "b"]), Allow, Clause::WriteInCheckout);
    check(plain, &patch(&["a", "../b"]), Deny, Clause::WriteOutside);
    check(plain, &patch(&[]), Ask, Clause::PatchOfNothing);
    check(plain, &shell("ls"), Ask, Clause::Shell);
    check(plain, &shell(""), Ask, Clause::Shell);
    check(plain, &shell("X=1"), Ask, Clause::Shell);
    check(plain, &network("example.com"), Ask, Clause::Network);
    check(plain, &commit(), Ask, Clause::GitCommit);
    check(plain, &push("origin", "main"), Ask, Clause::GitPush);
    check(plain, &publish("npm"), Ask, Clause::Publish);
    check(plain, &deploy("prod"), Ask, Clause::Deploy);
    check(plain, &secret("KEY"), Deny, Clause::Secret);
    check(plain, &action("tasks.list", SideEffects::Read), Allow, Clause::ActionReads);
    check(plain, &action("tasks.create", SideEffects::Write), Ask, Clause::ActionChanges);
    check(plain, &action("tasks.drop", SideEffects::Destructive), Ask, Clause::ActionChanges);
    check(plain, &question(), Ask, Clause::Question);
    check(plain, &repeat(), Ask, Clause::Repeat);
}

#[test]
fn c11_strict_and_in_place_ask_for_every_write() {
    let strict = Policy { preset: Preset::Strict, ..Policy::default() };
    let none = Policy::default();
    let asked = Asked { policy: &strict, subject: subject() };
    check(asked, &write("a"), Ask, Clause::WriteStrict);
    check(asked, &patch(&["a"]), Ask, Clause::WriteStrict);
    check(asked, &read("a"), Allow, Clause::ReadInside);
    check(asked, &write("/a"), Deny, Clause::WriteOutside);
    let mut in_place = Asked { policy: &none, subject: subject() };
    in_place.subject.place = Place::InPlace;
    check(in_place, &write("a"), Ask, Clause::WriteInPlace);
    check(in_place, &patch(&["a"]), Ask, Clause::WriteInPlace);
    check(in_place, &read("a"), Allow, Clause::ReadInside);
    in_place.policy = &strict;
    check(in_place, &write("a"), Ask, Clause::WriteInPlace);
}

#[test]
fn c12_where_nobody_may_be_asked_ask_is_deny_with_its_reason() {
    let none = Policy::default();
    let mut asked = Asked { policy: &none, subject: subject() };
    asked.subject.people_may_be_asked = false;
    for (request, clause) in [
        (shell("ls"), Clause::Shell),
        (question(), Clause::Question),
        (repeat(), Clause::Repeat),
        (commit(), Clause::GitCommit),
    ] {
        let judgement = asked.judge(&request);
        let otherwise = Box::new(Because::Default { clause });
        assert_eq!(judgement.effect, Deny, "{request:?}");
        assert_eq!(judgement.because, Because::NobodyMayBeAsked { otherwise }, "{request:?}");
        assert_eq!(judgement.parts[0].effect, Deny, "{request:?}");
    }
    check(asked, &read("a"), Allow, Clause::ReadInside);
    check(asked, &read("/a"), Deny, Clause::ReadOutside);
}

#[track_caller]
fn rules(rules: &[Rule], request: &Request, expected: Effect) {
    let judgement = judge(&policy(rules), &subject(), request);
    assert_eq!(judgement.effect, expected, "{request:?} with {rules:?}: {judgement}");
}

#[test]
fn c11_deny_wins_over_ask_and_ask_over_allow_whatever_their_order() {
    let (a, b, c) = (allow(RuleKind::Read, "x"), ask(RuleKind::Read, "x"), deny(RuleKind::Read, "x"));
    for order in [[&a, &b, &c], [&c, &b, &a], [&b, &c, &a], [&a, &c, &b]] {
        rules(&order.map(Clone::clone), &read("x"), Deny);
    }
    rules(&[a.clone(), b.clone()], &read("x"), Ask);
    rules(&[b.clone(), a.clone()], &read("x"), Ask);
    rules(std::slice::from_ref(&a), &read("x"), Allow);
    rules(&[b, c], &read("y"), Allow);
    // What people stored counts as what stands in the base does.
    let base = policy(&[allow(RuleKind::Shell, "a")]);
    let stored = Policy { stored: vec![deny(RuleKind::Shell, "a")], ..base };
    assert_eq!(judge(&stored, &subject(), &shell("a")).effect, Deny);
}

#[test]
fn c11_no_rule_gives_a_secret_away_or_decides_a_question() {
    let anything = Rule::new(Allow, RuleKind::Any, None).unwrap();
    let asking = Rule::new(Ask, RuleKind::Any, None).unwrap();
    let never = Rule::new(Deny, RuleKind::Any, None).unwrap();
    rules(std::slice::from_ref(&anything), &secret("KEY"), Deny);
    rules(&[asking], &secret("KEY"), Deny);
    for request in [question(), repeat()] {
        rules(std::slice::from_ref(&anything), &request, Ask);
        rules(std::slice::from_ref(&never), &request, Ask);
    }
    let judgement = judge(&policy(&[deny(RuleKind::Secret, "KEY")]), &subject(), &secret("KEY"));
    assert!(matches!(judgement.because, Because::Rule { .. }));
    let judgement = judge(&policy(&[deny(RuleKind::Secret, "KEY")]), &subject(), &secret("OTHER"));
    assert_eq!(judgement.because, Because::Default { clause: Clause::Secret });
}

#[test]
fn c11_path_rules_match_by_glob() {
    let d = |pattern: &str| [deny(RuleKind::Read, pattern)];
    rules(&d("src/**"), &read("src/a/b.rs"), Deny);
    rules(&d("src/**"), &read("src"), Deny);
    rules(&d("src/**"), &read("srcs/a"), Allow);
    rules(&d("src/*"), &read("src/a"), Deny);
    rules(&d("src/*.rs"), &read("src/a/b.rs"), Allow);
    rules(&d("**/*.rs"), &read("src/a/b.rs"), Deny);
    rules(&d("**/*.rs"), &read("b.rs"), Deny);
    rules(&d("src/**/b.rs"), &read("src/b.rs"), Deny);
    rules(&d("*.md"), &read("docs/x.md"), Deny);
    rules(&d("*.md"), &read("docs/x.mdx"), Allow);
    rules(&d("*.md"), &read("."), Allow);
    rules(&d("a?c"), &read("abc"), Deny);
    rules(&d("a?c"), &read("ac"), Allow);
    rules(&d("secrets"), &read("secrets/x"), Deny);
    rules(&d("secrets"), &read("a/secrets/x"), Deny);
    rules(&d("a/secrets"), &read("a/secrets/x/y"), Deny);
    rules(&d("**"), &read("x"), Deny);
    rules(&d("/etc/**"), &read("etc/x"), Allow);
}

#[test]
fn c11_an_allow_rule_reaches_outside_only_if_it_says_so() {
    let outside = read("/usr/include/a.h");
    rules(&[allow(RuleKind::Read, "/usr/include/**")], &outside, Allow);
    rules(&[allow(RuleKind::Read, "/usr/include")], &outside, Deny);
    rules(&[allow(RuleKind::Read, "**")], &outside, Deny);
    rules(&[allow(RuleKind::Read, "*.h")], &outside, Deny);
    rules(&[Rule::new(Allow, RuleKind::Read, None).unwrap()], &outside, Deny);
    rules(&[Rule::new(Ask, RuleKind::Read, None).unwrap()], &outside, Deny);
    rules(&[ask(RuleKind::Read, "/usr/**")], &outside, Ask);
    rules(&[Rule::new(Allow, RuleKind::Any, None).unwrap()], &write("/x"), Deny);
    rules(&[allow(RuleKind::Write, "/x")], &write("/x"), Allow);
    rules(&[Rule::new(Deny, RuleKind::Read, None).unwrap()], &read("x"), Deny);
}

#[test]
fn c11_rules_about_writes_are_about_patches_too() {
    rules(&[deny(RuleKind::Write, "b/**")], &patch(&["a", "b/c"]), Deny);
    rules(&[deny(RuleKind::Patch, "b/**")], &patch(&["a", "b/c"]), Deny);
    rules(&[deny(RuleKind::Patch, "b/**")], &write("b/c"), Allow);
    rules(&[ask(RuleKind::Write, "a")], &patch(&["a", "c"]), Ask);
    rules(&[deny(RuleKind::Read, "a")], &write("a"), Allow);
    rules(&[Rule::new(Deny, RuleKind::Patch, None).unwrap()], &patch(&[]), Deny);
    rules(&[Rule::new(Allow, RuleKind::Patch, None).unwrap()], &patch(&[]), Allow);
    let strict = Policy { preset: Preset::Strict, ..policy(&[allow(RuleKind::Write, "docs/**")]) };
    assert_eq!(judge(&strict, &subject(), &patch(&["docs/a"])).effect, Allow);
    assert_eq!(judge(&strict, &subject(), &patch(&["docs/a", "b"])).effect, Ask);
    // An allow rule on a directory's name says nothing about what is in it.
    let strict = Policy { preset: Preset::Strict, ..policy(&[allow(RuleKind::Write, "docs")]) };
    assert_eq!(judge(&strict, &subject(), &write("docs/a")).effect, Ask);
}

#[test]
fn c11_a_stricter_preset_of_an_agent_counts_where_it_says() {
    let own = |agent: &str, workspace: Option<&str>, preset| AgentPreset {
        agent: agent.to_owned(),
        workspace: workspace.map(str::to_owned),
        preset,
    };
    let presets = vec![
        own("coder", Some("home"), Preset::Strict),
        own("writer", None, Preset::Strict),
        own("writer", Some("drafts"), Preset::Default),
        own("reader", None, Preset::Default),
    ];
    let policy = Policy { presets, ..Policy::default() };
    for (agent, workspace, expected) in [
        ("coder", "home", Preset::Strict),
        ("coder", "drafts", Preset::Default),
        ("writer", "home", Preset::Strict),
        ("writer", "drafts", Preset::Default),
        ("tester", "home", Preset::Default),
    ] {
        assert_eq!(policy.preset_of(agent, workspace), expected, "{agent} in {workspace}");
    }
    let strict = Policy { preset: Preset::Strict, ..policy };
    assert_eq!(strict.preset_of("reader", "home"), Preset::Strict);
}

#[test]
fn c11_protected_paths_are_asked_about_unless_a_rule_names_them() {
    for path in [
        ".git/config",
        ".git",
        "sub/.git/hooks/x",
        "runyard.toml",
        ".env",
        ".env.local",
        "a/.env",
        ".codex/config.toml",
        ".claude/settings.json",
        ".mcp.json",
        "opencode.json",
        ".GIT/config",
        ".envrc",
        ".gitattributes",
    ] {
        let judgement = judge(&Policy::default(), &subject(), &write(path));
        assert_eq!(judgement.because, Because::Protected { path: path.to_owned() });
        rules(&[], &patch(&["a", path]), Ask);
        rules(&[Rule::new(Allow, RuleKind::Write, None).unwrap()], &write(path), Ask);
        rules(&[allow(RuleKind::Write, "**")], &write(path), Ask);
        rules(&[deny(RuleKind::Write, "**")], &write(path), Deny);
    }
    let judgement = judge(&Policy::default(), &subject(), &write("./a//.env"));
    assert_eq!(judgement.because, Because::Protected { path: "a/.env".to_owned() });
    rules(&[allow(RuleKind::Write, ".codex/**")], &write(".codex/config.toml"), Allow);
    rules(&[allow(RuleKind::Write, "*/.env")], &write("a/.env"), Allow);
    rules(&[allow(RuleKind::Write, ".env")], &write(".env"), Allow);
    rules(&[allow(RuleKind::Write, ".env*")], &write(".env"), Ask);
    rules(&[], &write(".envelope"), Allow);
    rules(&[], &write("git/config"), Allow);
    rules(&[], &read(".git/config"), Allow);
}

#[test]
fn c11_host_rules_match_by_labels() {
    let d = |pattern: &str| [deny(RuleKind::Network, pattern)];
    rules(&d("example.com"), &network("example.com"), Deny);
    rules(&d("Example.COM"), &network("example.com."), Deny);
    rules(&d("example.com."), &network("EXAMPLE.com"), Deny);
    rules(&d("example.com"), &network("a.example.com"), Ask);
    rules(&d("*.example.com"), &network("a.example.com"), Deny);
    rules(&d("*.example.com"), &network("b.a.example.com"), Deny);
    rules(&d("*.example.com"), &network("example.com"), Ask);
    rules(&d("*.example.com"), &network(".example.com"), Ask);
    rules(&d("*.example.com"), &network("notexample.com"), Ask);
    rules(&d("api-*.example.com"), &network("api-1.example.com"), Deny);
    rules(&d("api-*.example.com"), &network("api-1.x.example.com"), Ask);
    rules(&d("::1"), &network("::1"), Deny);
    for host in ["localhost", "a.example.com", "192.0.2.1", "::1"] {
        rules(&d("*"), &network(host), Deny);
    }
    rules(&[allow(RuleKind::Network, "*.example.com")], &network("a.example.com"), Allow);
}

#[test]
fn c11_rules_about_actions_pushes_and_targets() {
    let create = action("tasks.create", SideEffects::Write);
    rules(&[allow(RuleKind::Action, "tasks.*")], &create, Allow);
    rules(&[allow(RuleKind::Action, "task")], &create, Ask);
    rules(&[deny(RuleKind::Action, "*.list")], &action("tasks.list", SideEffects::Read), Deny);
    rules(&[allow(RuleKind::GitPush, "origin feature/*")], &push("origin", "feature/x"), Allow);
    rules(&[allow(RuleKind::GitPush, "origin feature/*")], &push("origin", "main"), Ask);
    rules(&[allow(RuleKind::GitPush, "origin")], &push("origin", "main"), Ask);
    rules(&[deny(RuleKind::GitPush, "* main")], &push("fork", "main"), Deny);
    rules(&[deny(RuleKind::GitPush, "origin *")], &push("origin", "x"), Deny);
    rules(&[deny(RuleKind::GitCommit, "*[skip ci]*")], &commit(), Ask);
    rules(&[deny(RuleKind::GitCommit, "Say*")], &commit(), Deny);
    rules(&[deny(RuleKind::Publish, "npm*")], &publish("npm: x"), Deny);
    rules(&[deny(RuleKind::Deploy, "prod*")], &deploy("prod"), Deny);
    rules(&[deny(RuleKind::Deploy, "prod*")], &publish("prod"), Ask);
}

fn limited(change: impl Fn(&mut RuleText)) -> Rule {
    let mut text = RuleText::new(Deny, RuleKind::Read, None);
    change(&mut text);
    text.try_into().unwrap()
}

#[test]
fn c11_a_rule_speaks_only_for_its_agent_workspace_run_and_time() {
    let now = subject().now;
    let run = RunId::from_parts(1, &[1; 10]);
    let other = RunId::from_parts(1, &[2; 10]);
    let later = Timestamp::from_unix_ms(now.unix_ms() + 1);
    let for_run = |run| move |text: &mut RuleText| (text.scope, text.run) = (Scope::Run, Some(run));
    rules(&[limited(|text| text.agent = Some("coder".to_owned()))], &read("a"), Deny);
    rules(&[limited(|text| text.agent = Some("other".to_owned()))], &read("a"), Allow);
    rules(&[limited(|text| text.workspace = Some("home".to_owned()))], &read("a"), Deny);
    rules(&[limited(|text| text.workspace = Some("other".to_owned()))], &read("a"), Allow);
    rules(&[limited(|text| text.expires = Some(later))], &read("a"), Deny);
    rules(&[limited(|text| text.expires = Some(now))], &read("a"), Allow);
    rules(&[limited(for_run(run))], &read("a"), Deny);
    rules(&[limited(for_run(other))], &read("a"), Allow);
    rules(&[limited(|text| text.scope = Scope::Once)], &read("a"), Deny);
    let (session, another) = (SessionId::from_parts(1, &[1; 10]), SessionId::from_parts(1, &[2; 10]));
    let in_session =
        |session| move |text: &mut RuleText| (text.scope, text.session) = (Scope::Session, Some(session));
    rules(&[limited(in_session(session))], &read("a"), Deny);
    rules(&[limited(in_session(another))], &read("a"), Allow);
    let in_project = |label: &'static str| {
        move |text: &mut RuleText| (text.scope, text.workspace) = (Scope::Project, Some(label.to_owned()))
    };
    rules(&[limited(in_project("home"))], &read("a"), Deny);
    rules(&[limited(in_project("other"))], &read("a"), Allow);
    let mut nobody = subject();
    (nobody.run, nobody.session) = (None, None);
    assert_eq!(judge(&policy(&[limited(in_session(session))]), &nobody, &read("a")).effect, Allow);
    assert_eq!(judge(&policy(&[limited(for_run(run))]), &nobody, &read("a")).effect, Allow);
}

#[test]
fn c11_a_rule_for_one_time_is_told_so_that_it_can_be_retired() {
    let once = |matches: &str| {
        let text = RuleText::new(Allow, RuleKind::Shell, Some(matches));
        let text = RuleText { id: Some(format!("rul-{matches}")), scope: Scope::Once, ..text };
        Rule::try_from(text).unwrap()
    };
    let mixed = policy(&[once("a"), allow(RuleKind::Shell, "b"), once("c")]);
    let judgement = judge(&mixed, &subject(), &shell("a && b && c"));
    assert_eq!(judgement.effect, Allow);
    assert_eq!(judgement.rules_used_up().collect::<Vec<_>>(), ["rul-a", "rul-c"]);
    assert_eq!(judgement.because, Because::Rule { id: "rul-a".to_owned(), scope: Scope::Once });
}

#[test]
fn c11_a_rule_for_one_time_is_used_up_wherever_something_is_allowed_only_by_it() {
    let once = |id: &str, kind, matches: Option<&str>| {
        let text = RuleText::new(Allow, kind, matches);
        Rule::try_from(RuleText { id: Some(id.to_owned()), scope: Scope::Once, ..text }).unwrap()
    };
    #[track_caller]
    fn check(rules: &[Rule], request: &Request, expected: &[&str]) {
        let judgement = judge(&policy(rules), &subject(), request);
        assert_eq!(judgement.effect, Allow, "{judgement}");
        assert_eq!(judgement.rules_used_up().collect::<Vec<_>>(), expected, "{request:?}");
        let left: Vec<Rule> = rules.iter().filter(|rule| !expected.contains(&rule.id())).cloned().collect();
        let after = judge(&policy(&left), &subject(), request);
        assert_eq!(after.effect == Allow, expected.is_empty(), "{request:?}");
    }
    let all = allow(RuleKind::Shell, "*");
    // What a line does, by a rule for that kind.
    for (kind, matches, line) in [
        (RuleKind::Write, Some("out.txt"), "echo a > out.txt"),
        (RuleKind::Write, Some("/tmp/x"), "touch /tmp/x"),
        (RuleKind::Write, Some(".env"), "touch .env"),
        (RuleKind::Network, Some("e.com"), "curl https://e.com"),
        (RuleKind::GitCommit, None, "git commit -m x"),
        (RuleKind::Publish, None, "npm publish"),
        (RuleKind::Deploy, None, "kubectl apply x"),
        (RuleKind::Any, None, "sh -c 'touch a > b'"),
    ] {
        check(&[all.clone(), once("it", kind, matches)], &shell(line), &["it"]);
    }
    let push = [all.clone(), allow(RuleKind::Network, "*"), once("it", RuleKind::GitPush, None)];
    check(&push, &shell("git push origin main"), &["it"]);
    // A rule for commands that only says what one does, or what it names.
    check(&[once("it", RuleKind::Shell, Some("curl *")), all.clone()], &shell("curl https://e.com"), &["it"]);
    check(&[once("it", RuleKind::Shell, Some("rm .env")), all.clone()], &shell("rm .env"), &["it"]);
    // What is allowed without it uses up nothing, and of equals the first is used.
    let (first, second) = (once("a", RuleKind::Shell, Some("x")), once("b", RuleKind::Shell, Some("*")));
    check(&[first.clone(), second.clone(), all.clone()], &shell("x"), &[]);
    check(&[once("it", RuleKind::Read, None)], &read("a"), &[]);
    check(&[once("it", RuleKind::Write, None), all], &shell("rm x"), &[]);
    let both = judge(&policy(&[first.clone(), second.clone()]), &subject(), &shell("x"));
    assert_eq!(both.rules_used_up().collect::<Vec<_>>(), ["a"]);
    check(&[first, second], &shell("x; y"), &["b"]);
    // What is not allowed uses up nothing either.
    let asked = judge(&policy(&[once("it", RuleKind::Shell, Some("x"))]), &subject(), &shell("x; y"));
    assert_eq!((asked.effect, asked.rules_used_up().count()), (Ask, 0));
}

#[test]
fn c11_an_execution_policy_that_allows_the_network_counts_where_no_rule_speaks() {
    let mut allowed = subject();
    allowed.network_is_allowed = true;
    let host = Request::Network { host: "e.com".to_owned(), port: None };
    let of = |rules: &[Rule], request: &Request| judge(&policy(rules), &allowed, request);
    let plain = of(&[], &host);
    assert_eq!(plain.because, Because::Default { clause: Clause::NetworkAllowed });
    assert_eq!(plain.to_string(), "Allowed (medium risk): the run's execution policy allows the network.");
    assert_eq!(judge(&policy(&[]), &subject(), &host).effect, Ask);
    for effect in [Ask, Deny] {
        for kind in [RuleKind::Network, RuleKind::Any] {
            assert_eq!(of(&[Rule::new(effect, kind, None).unwrap()], &host).effect, effect);
        }
        let other = Rule::new(effect, RuleKind::Network, Some("f.com")).unwrap();
        assert_eq!(of(&[other], &host).effect, Allow);
    }
    // Of a command it is only the connection that is allowed.
    let all = || allow(RuleKind::Shell, "*");
    for line in ["curl https://e.com", "curl \"https://$x\"", "git fetch", "a > /dev/tcp/e.com/80"] {
        let rules = [all(), allow(RuleKind::Write, "/dev/**")];
        assert_eq!(of(&rules, &shell(line)).effect, Allow, "{line}");
        assert_eq!(judge(&policy(&rules), &subject(), &shell(line)).effect, Ask, "{line}");
        assert_eq!(of(&[], &shell(line)).effect, Ask, "{line}");
        let rules = [all(), allow(RuleKind::Write, "/dev/**"), ask(RuleKind::Network, "*")];
        assert_eq!(of(&rules, &shell(line)).effect, Ask, "{line}");
        let rules = [all(), Rule::new(Deny, RuleKind::Network, None).unwrap()];
        assert_eq!(of(&rules, &shell(line)).effect, Deny, "{line}");
    }
    for line in ["git push origin main", "npm publish", "kubectl apply x", "curl https://e.com -o .env"] {
        assert_eq!(of(&[all()], &shell(line)).effect, Ask, "{line}");
    }
    for request in [push("origin", "main"), Request::Publish { target: "x".to_owned() }] {
        assert_eq!(of(&[], &request).effect, Ask, "{request:?}");
    }
}

#[test]
fn c12_the_risk_of_requests() {
    #[track_caller]
    fn risk(request: &Request, expected: Risk) {
        assert_eq!(judge(&Policy::default(), &subject(), request).risk, expected, "{request:?}");
    }
    risk(&read("a"), Risk::Low);
    risk(&read(".env"), Risk::High);
    risk(&read("/home/me/.ssh/config"), Risk::High);
    risk(&write("a"), Risk::Medium);
    risk(&write("/a"), Risk::High);
    risk(&patch(&["a", "b"]), Risk::Medium);
    risk(&patch(&["a", "/b"]), Risk::High);
    risk(&patch(&[]), Risk::Medium);
    risk(&network("x"), Risk::Medium);
    risk(&commit(), Risk::Medium);
    risk(&push("a", "b"), Risk::High);
    risk(&publish("a"), Risk::High);
    risk(&deploy("a"), Risk::High);
    risk(&secret("a"), Risk::High);
    risk(&action("a", SideEffects::Read), Risk::Low);
    risk(&action("a", SideEffects::Write), Risk::Medium);
    risk(&action("a", SideEffects::Destructive), Risk::High);
    risk(&question(), Risk::Low);
    risk(&repeat(), Risk::Medium);
}

// What applies changes asks the same list.
#[test]
fn c11_a_path_is_protected_for_whoever_asks_in_any_folder_and_spelling() {
    for path in
        [".env", ".env.local", "app/.ENV", ".git/config", "deep/down/.mcp.json", ".runyard/x", ".envrc"]
    {
        assert!(runyard_domain::gate::is_protected(path), "{path}");
    }
    for path in ["env", "src/main.rs", "environment.ts", "git/config", ".environment", ""] {
        assert!(!runyard_domain::gate::is_protected(path), "{path}");
    }
}
