//! The rule that "always" makes of a request.

use runyard_domain::DiffStats;
use runyard_domain::gate::{Effect, Policy, Question, Request, RuleText, SideEffects, judge, rule_for};
use serde_json::json;

use crate::support::{read, shell, subject};

fn write(path: &str) -> Request {
    Request::Write { path: path.to_owned(), content: None }
}

fn network(host: &str) -> Request {
    Request::Network { host: host.to_owned(), port: Some(443) }
}

fn written(request: &Request) -> Option<String> {
    rule_for(request).map(|text| {
        let RuleText { effect, kind, matches, .. } = text;
        assert_eq!(effect, Effect::Allow);
        format!("{} {}", kind.as_str(), matches.unwrap())
    })
}

#[test]
fn c11_always_makes_a_rule_that_says_just_this_request() {
    #[track_caller]
    fn check(request: Request, expected: &str) {
        assert_eq!(written(&request).as_deref(), Some(expected));
        // Under a rule of that text alone it is allowed, and was not before.
        let rule = rule_for(&request).unwrap().try_into().unwrap();
        let policy = Policy { stored: vec![rule], ..Policy::default() };
        assert_eq!(judge(&policy, &subject(), &request).effect, Effect::Allow);
    }
    check(shell("cargo test"), "shell cargo test");
    check(shell("npm run build --silent"), "shell npm run build --silent");
    check(read("src/a.rs"), "read src/a.rs");
    check(read("/etc/hosts"), "read /etc/hosts");
    check(write("src/a.rs"), "write src/a.rs");
    check(network("example.org"), "network example.org");
    let push = |remote: &str| Request::GitPush { remote: remote.to_owned(), branch: "main".to_owned() };
    check(push("origin"), "git_push origin main");
    check(Request::Publish { target: "npm: a".to_owned() }, "publish npm: a");
    check(Request::Deploy { target: "staging".to_owned() }, "deploy staging");
    let deep = Request::Write { path: "src/.git/config".to_owned(), content: None };
    check(deep, "write src/.git/config");
}

#[test]
fn c11_where_no_rule_says_just_this_there_is_none() {
    let text = str::to_owned;
    for request in [
        // A pattern would say more than the request.
        shell("rm *.o"),
        shell("ls a?"),
        write("src/a*.rs"),
        network("*.org"),
        // Every file of that name would be meant.
        write("main.rs"),
        read("main.rs"),
        // A rule is about one command, by its words.
        shell("a && b"),
        shell("echo 'a b'"),
        shell("echo x > y"),
        shell("sh -c ls"),
        shell("A=1 ls"),
        shell(""),
        shell(&"x ".repeat(600)),
        // A rule never gives these away, or nobody would mean it.
        write("/etc/hosts\n"),
        write("../up/there"),
        Request::Secret { name: text("KEY") },
        Request::Action { action: text("tasks_add"), side_effects: SideEffects::Write, input: json!({}) },
        Request::GitCommit { message: text("m") },
        Request::Patch { files: vec![text("src/a.rs")], patch: text("p") },
        Request::Question(Question { prompt: text("p"), answer_schema: json!({}) }),
        Request::Repeat { step: text("s") },
        Request::Apply {
            base: text("b"),
            target: text("t"),
            stats: DiffStats::default(),
            files: Vec::new(),
            to: runyard_domain::ApplyTo::Files,
            undo: false,
        },
    ] {
        assert_eq!(written(&request), None, "{request:?}");
    }
}
