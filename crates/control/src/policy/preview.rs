//! What a rule would change, before it is stored: what agents asked for lately, and what they may well ask for.

use std::collections::{BTreeMap, BTreeSet};

use runyard_actions::ActionError;
use runyard_domain::gate::{self, Effect, Place, Policy, Preset, Request, Rule, RuleKind, Subject};
use runyard_domain::{AgentProfile, Network};
use runyard_engine::{Engine, PastRequest};
use schemars::JsonSchema;
use serde::Serialize;

use crate::failed::failed;
use crate::rule_view::EffectWord;

/// So many requests of the past are shown.
const SHOWN_MAX: usize = 50;
/// So much of a request is shown.
const WHAT_CHARS_MAX: usize = 200;

/// What is worth knowing of a rule that goes far: each is something that a person hardly means by a short pattern.
#[rustfmt::skip]
const COMMANDS: &[&str] = &[
    "rm -rf .", "git push", "git push --force", "git reset --hard", "git clean -fdx", "git config user.email x",
    "git commit -m x", "git grep -Osh x", "git bisect run sh x", "git difftool -x sh", "./git log", "npm publish", "npm install left-pad", "npm run deploy", "cargo publish", "cargo install x", "cargo test",
    "pip install x", "python -c x", "node -e x", "make deploy", "docker run x", "docker push x", "kubectl delete pod x",
    "terraform apply", "ssh host", "scp a host:b", "curl https://example.org", "wget https://example.org", "chmod -R 777 .",
    "sudo ls", "kill 1", "dd if=a of=b", "mv a b", "cp a b", "find . -delete", "xargs rm", "tee a", "ls", "cat a", "env",
];
#[rustfmt::skip]
const PATHS: &[&str] = &[
    "README.md", "src/main.rs", "src/deep/inside.rs", "tests/a.rs", "Cargo.toml", "package.json", ".env", ".git/config",
    ".git/hooks/pre-commit", "runyard.toml", ".mcp.json", ".github/workflows/ci.yml", "AGENTS.md", "/etc/passwd",
];
const HOSTS: &[&str] = &[
    "example.org",
    "api.example.org",
    "github.com",
    "registry.npmjs.org",
    "localhost",
    "127.0.0.1",
    "169.254.169.254",
];

/// What a rule would change.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Preview {
    /// How many requests of the past were judged anew.
    requests: u64,
    /// Of how many runs, the newest first.
    runs: u64,
    /// Whether there are older ones that were not looked at.
    more: bool,
    /// The requests that would be judged otherwise.
    changed: Vec<ChangedRequest>,
    /// How many further ones there are.
    not_shown: u64,
    /// What else would be judged otherwise, of a list of things that are often asked for or that hurt.
    also: Vec<ChangedSample>,
}

/// A request of the past that would be judged otherwise.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ChangedRequest {
    /// What was asked for.
    what: String,
    /// Its kind.
    kind: &'static str,
    /// What becomes of it without the rule.
    before: EffectWord,
    /// What would become of it.
    after: EffectWord,
    /// How often it was asked for.
    times: u64,
    /// How a person decided, where one was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    decided: Option<&'static str>,
    /// The last run that asked for it.
    run_id: String,
    /// When it did.
    at: String,
}

/// Something that would be judged otherwise.
#[derive(Serialize, JsonSchema)]
struct ChangedSample {
    /// What.
    what: String,
    /// What becomes of it without the rule.
    before: EffectWord,
    /// What would become of it.
    after: EffectWord,
}

/// Looks at what the rule would change, beside the policy that counts.
pub(super) async fn preview(engine: &Engine, rule: &Rule) -> Result<Preview, ActionError> {
    let past = engine.past_requests().await.map_err(failed)?;
    let change = Change::new(engine, rule);
    let mut changed: BTreeMap<(&'static str, String), ChangedRequest> = BTreeMap::new();
    let asked = past.requests.iter().filter(|past| is_judged(&past.request));
    for past in asked.clone() {
        let Some((before, after)) = change.of(&past.request, Some(past)) else { continue };
        let what = what(&past.request);
        let entry = changed.entry((past.request.kind(), what.clone()));
        let entry = entry.or_insert_with(|| ChangedRequest {
            what,
            kind: past.request.kind(),
            before: before.into(),
            after: after.into(),
            times: 0,
            decided: past.decided.map(|decided| decided.as_str()),
            run_id: past.run.to_string(),
            at: past.at.to_string(),
        });
        entry.times += 1;
    }
    let mut changed: Vec<ChangedRequest> = changed.into_values().collect();
    changed.sort_by_key(|changed| std::cmp::Reverse(changed.times));
    let not_shown = changed.len().saturating_sub(SHOWN_MAX) as u64;
    changed.truncate(SHOWN_MAX);
    let (requests, runs, more) = (asked.count() as u64, past.runs, past.more);
    Ok(Preview { requests, runs, more, changed, not_shown, also: change.samples(rule.kind()) })
}

/// The policy without the rule and with it.
struct Change {
    /// The presets of agent profiles, where they are stricter.
    strict: BTreeSet<String>,
    /// Those whose execution policy allows the network.
    networked: BTreeSet<String>,
    agent: String,
    workspace: String,
    subject_run: (Option<runyard_domain::RunId>, Option<runyard_domain::SessionId>),
    now: runyard_domain::Timestamp,
    before: Policy,
    after: Policy,
}

impl Change {
    fn new(engine: &Engine, rule: &Rule) -> Self {
        let before = engine.policy();
        let mut after = before.clone();
        after.stored.push(rule.clone());
        let text = rule.text();
        let agents = |is_one: &dyn Fn(&&AgentProfile) -> bool| {
            engine.catalog().agents.values().filter(is_one).map(|agent| agent.id.clone()).collect()
        };
        Change {
            strict: agents(&|agent| engine.preset_of(&agent.id, text.workspace.as_deref()) == Preset::Strict),
            networked: agents(&|agent| agent.execution_policy.network == Network::Allow),
            agent: text.agent.clone().unwrap_or_default(),
            workspace: text.workspace.clone().unwrap_or_default(),
            subject_run: (text.run, text.session),
            now: engine.now(),
            before,
            after,
        }
    }

    /// What becomes of a request without the rule and with it, where that differs.
    fn of(&self, request: &Request, past: Option<&PastRequest>) -> Option<(Effect, Effect)> {
        let subject = Subject {
            agent: past.map_or(&self.agent, |past| &past.agent),
            workspace: past.map_or(&self.workspace, |past| &past.workspace),
            run: past.map_or(self.subject_run.0, |past| Some(past.run)),
            session: past.map_or(self.subject_run.1, |past| Some(past.session)),
            place: Place::Checkout,
            people_may_be_asked: true,
            network_is_allowed: self.networked.contains(past.map_or(&self.agent, |past| &past.agent)),
            now: self.now,
        };
        // A rule for all agents is shown as it counts for the strictest of them.
        let strict = match subject.agent {
            "" => !self.strict.is_empty(),
            agent => self.strict.contains(agent),
        };
        let judge = |policy: &Policy| {
            let preset = if strict { Preset::Strict } else { policy.preset };
            gate::judge(&Policy { preset, ..policy.clone() }, &subject, request).effect
        };
        let (before, after) = (judge(&self.before), judge(&self.after));
        (before != after).then_some((before, after))
    }

    /// What of the samples of this kind would be judged otherwise.
    fn samples(&self, kind: RuleKind) -> Vec<ChangedSample> {
        let changed = samples(kind).into_iter().filter_map(|request| {
            let (before, after) = self.of(&request, None)?;
            Some(ChangedSample { what: what(&request), before: before.into(), after: after.into() })
        });
        changed.collect()
    }
}

/// Whether a rule could say anything about it.
fn is_judged(request: &Request) -> bool {
    !matches!(request, Request::Question(_) | Request::Repeat { .. } | Request::Apply { .. })
}

fn samples(kind: RuleKind) -> Vec<Request> {
    let text = |text: &&str| (*text).to_owned();
    let commands =
        || COMMANDS.iter().map(|command| Request::Shell { command: text(command), cwd: ".".to_owned() });
    let reads = || PATHS.iter().map(|path| Request::Read { path: text(path) });
    let writes = || PATHS.iter().map(|path| Request::Write { path: text(path), content: None });
    let hosts = || HOSTS.iter().map(|host| Request::Network { host: text(host), port: None });
    match kind {
        RuleKind::Any => commands().chain(reads()).chain(writes()).chain(hosts()).collect(),
        RuleKind::Shell => commands().collect(),
        RuleKind::Read => reads().collect(),
        RuleKind::Write | RuleKind::Patch => writes().collect(),
        RuleKind::Network => hosts().collect(),
        _ => Vec::new(),
    }
}

/// What is asked for, in a line.
fn what(request: &Request) -> String {
    let text = match request {
        Request::Read { path } => format!("read {path}"),
        Request::Write { path, .. } => format!("write {path}"),
        Request::Patch { files, .. } => format!("change {}", files.join(", ")),
        Request::Shell { command, .. } => command.clone(),
        Request::Network { host, .. } => format!("connect to {host}"),
        Request::GitCommit { message } => format!("commit {message}"),
        Request::GitPush { remote, branch } => format!("push to {remote} {branch}"),
        Request::Publish { target } => format!("publish {target}"),
        Request::Deploy { target } => format!("deploy {target}"),
        Request::Secret { name } => format!("the secret {name}"),
        Request::Action { action, .. } => format!("call {action}"),
        Request::Question(_) | Request::Apply { .. } | Request::Repeat { .. } => request.kind().to_owned(),
    };
    match text.char_indices().nth(WHAT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
