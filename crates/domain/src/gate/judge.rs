//! The judgement: what becomes of a request, and why. Deny wins over everything, then ask, then allow, then the default.
//!
//! A pure function of policy, subject and request: it reads no file, asks nobody and keeps nothing. Actions for people only are
//! refused before anything comes here.

mod shell;

use serde::{Deserialize, Serialize};

use super::command::Unparsed;
use super::paths::{inside, protected};
use super::pattern::{Fit, Pattern};
use super::policy::{Policy, Preset};
use super::request::{Request, SideEffects};
use super::risk::{self, Risk};
use super::rule::{Effect, Rule, RuleKind, Scope};
use crate::{RunId, SessionId, Timestamp};

pub(super) use shell::spots;

/// Where a run writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// In a checkout of its own: a write is a proposal.
    Checkout,
    /// In the workspace itself.
    InPlace,
}

/// For whom a request is judged.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The agent profile.
    pub agent: &'a str,
    /// The workspace.
    pub workspace: &'a str,
    /// The run, where there is one.
    pub run: Option<RunId>,
    /// Its session, where there is one.
    pub session: Option<SessionId>,
    /// Where it writes.
    pub place: Place,
    /// Whether the execution policy lets a person be asked.
    pub people_may_be_asked: bool,
    /// Whether the execution policy allows the network, so that it is used where no rule speaks.
    pub network_is_allowed: bool,
    /// The time of the judgement.
    pub now: Timestamp,
}

/// What is decided where no rule speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clause {
    /// Reading inside the workspace is allowed.
    ReadInside,
    /// Reading outside is denied.
    ReadOutside,
    /// A write in the run's own checkout is a proposal.
    WriteInCheckout,
    /// The strict preset asks for every write.
    WriteStrict,
    /// A run in place asks for every write.
    WriteInPlace,
    /// Writing outside is denied.
    WriteOutside,
    /// A patch that does not say what it changes is asked about.
    PatchOfNothing,
    /// Commands are asked about.
    Shell,
    /// Connections are asked about.
    Network,
    /// The execution policy allows the network.
    NetworkAllowed,
    /// Commits are asked about.
    GitCommit,
    /// Pushes are asked about.
    GitPush,
    /// Publishing is asked about.
    Publish,
    /// Deploying is asked about.
    Deploy,
    /// No agent is given a secret.
    Secret,
    /// Actions that only read are allowed.
    ActionReads,
    /// Actions that change something are asked about.
    ActionChanges,
    /// A question is for a person.
    Question,
    /// An agent asks to have its changes applied.
    Apply,
    /// A repetition is for a person to decide.
    Repeat,
}

/// Why no allow rule for commands covers a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Beyond {
    /// It writes a file by redirection.
    Redirection {
        /// Which.
        path: String,
    },
    /// It writes outside the workspace.
    Outside {
        /// Where.
        path: String,
    },
    /// It sets a variable, or an option, that can change what runs.
    Variable {
        /// Which.
        name: String,
    },
}

/// Why something is judged as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "because", rename_all = "snake_case")]
pub enum Because {
    /// A rule says so. Who acts on a rule of scope `once` retires it.
    Rule {
        /// Which.
        id: String,
        /// How long it holds.
        scope: Scope,
    },
    /// A deny rule may match: part of the command is not known.
    MayMatch {
        /// Which.
        id: String,
    },
    /// No rule speaks.
    Default {
        /// What holds then.
        clause: Clause,
    },
    /// The line is not understood.
    Unparsed {
        /// Why.
        why: Unparsed,
    },
    /// The command runs something that cannot be known from the line.
    Opaque,
    /// What runs is not known, and the line names the program of a deny rule.
    Mentions {
        /// Which rule.
        id: String,
    },
    /// It only runs commands that are judged themselves.
    Opened,
    /// An allow rule for commands does not go so far.
    Beyond(Beyond),
    /// The path configures agents, commands or Runyard, or holds keys, and no allow rule names it.
    Protected {
        /// Which.
        path: String,
    },
    /// It would be asked about, and nobody may be asked.
    NobodyMayBeAsked {
        /// Why it would be asked about.
        otherwise: Box<Because>,
    },
}

/// An effect with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    effect: Effect,
    because: Because,
}

/// One part of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// The command, the path, or whatever else it is.
    pub what: String,
    /// What becomes of it.
    pub effect: Effect,
    /// Why.
    pub because: Because,
}

/// Something that a person should know beside the judgement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "snake_case")]
pub enum Note {
    /// What the program does stands in code that is not looked at: only the sandbox bounds it.
    BoundedBySandboxOnly {
        /// The program.
        program: String,
    },
    /// What came from the network is run.
    RunsWhatItFetched,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Judgement {
    /// The most severe effect of all parts.
    pub effect: Effect,
    /// Why: the reason of the first part with that effect.
    pub because: Because,
    /// The parts, at least one.
    pub parts: Vec<Part>,
    /// How much can go wrong.
    pub risk: Risk,
    /// What else there is to know.
    pub notes: Vec<Note>,
    /// The rules of scope `once` without which it would not be allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    used_up: Vec<String>,
}

impl Judgement {
    /// The rules that this judgement uses up if it is acted on.
    pub fn rules_used_up(&self) -> impl Iterator<Item = &str> {
        self.used_up.iter().map(String::as_str)
    }
}

/// Judges a request. Of the rules that are good for one time it uses no more than are needed.
pub fn judge(policy: &Policy, subject: &Subject<'_>, request: &Request) -> Judgement {
    let mut judgement = judged(policy, subject, request);
    let holds_once = |rule: &&Rule| rule.scope() == Scope::Once;
    let once: Vec<&str> = policy.in_force(subject).filter(holds_once).map(Rule::id).collect();
    if judgement.effect != Effect::Allow || once.is_empty() {
        return judgement;
    }
    let mut policy = policy.clone();
    // From the last on, so that of equals the first is used.
    for id in once.into_iter().rev() {
        let mut spared = policy.clone();
        spared.take_away(|name| name == id);
        let other = judged(&spared, subject, request);
        if other.effect == Effect::Allow {
            (policy, judgement) = (spared, Judgement { used_up: judgement.used_up, ..other });
        } else {
            judgement.used_up.insert(0, id.to_owned());
        }
    }
    judgement
}

fn judged(policy: &Policy, subject: &Subject<'_>, request: &Request) -> Judgement {
    let judge = Judge { policy, subject };
    let (parts, risk, notes) = match request {
        Request::Shell { command, cwd } => judge.shell(command, cwd),
        Request::Patch { files, .. } => (judge.patch(files), risk::of_request(request), Vec::new()),
        _ => (vec![judge.simple(request)], risk::of_request(request), Vec::new()),
    };
    let parts: Vec<Part> = parts.into_iter().map(|part| judge.asked(part)).collect();
    // The first of the most severe: later ones must be more severe to replace it.
    let worst = parts.iter().rev().max_by_key(|part| part.effect);
    let (effect, because) = match worst {
        Some(part) => (part.effect, part.because.clone()),
        None => (Effect::Deny, Because::Opaque),
    };
    Judgement { effect, because, parts, risk, notes, used_up: Vec::new() }
}

struct Judge<'a> {
    policy: &'a Policy,
    subject: &'a Subject<'a>,
}

impl<'a> Judge<'a> {
    fn rules(&self, kind: RuleKind) -> impl Iterator<Item = &'a Rule> {
        self.policy.in_force(self.subject).filter(move |rule| rule.kind().covers(kind))
    }

    fn patch(&self, files: &[String]) -> Vec<Part> {
        if files.is_empty() {
            let nothing =
                self.decide(RuleKind::Patch, Verdict::ask(Clause::PatchOfNothing), |_| false, |_| true);
            return vec![nothing.part("a patch")];
        }
        files.iter().map(|path| self.write(RuleKind::Patch, path).part(path)).collect()
    }

    /// Judges a request that is one thing.
    fn simple(&self, request: &Request) -> Part {
        let ask = Verdict::ask;
        let (kind, text, default) = match request {
            Request::Read { path } => return self.read(path).part(path),
            Request::Write { path, .. } => return self.write(RuleKind::Write, path).part(path),
            Request::Question(question) => return ask(Clause::Question).part(&question.prompt),
            Request::Repeat { step } => return ask(Clause::Repeat).part(step),
            // Runyard itself asks, after it has looked at the checkout.
            Request::Apply { target, .. } => return Verdict::deny(Clause::Apply).part(target),
            Request::Secret { name } => return self.secret(name).part(name),
            Request::GitPush { remote, branch } => return self.push(remote, branch),
            Request::Network { host, .. } => {
                let default = match self.subject.network_is_allowed {
                    true => Verdict::allow(Clause::NetworkAllowed),
                    false => ask(Clause::Network),
                };
                let fits = |pattern: &Pattern| pattern.matches_host(host);
                return self.decide(RuleKind::Network, default, fits, |_| true).part(host);
            }
            Request::GitCommit { message } => (RuleKind::GitCommit, message, ask(Clause::GitCommit)),
            Request::Publish { target } => (RuleKind::Publish, target, ask(Clause::Publish)),
            Request::Deploy { target } => (RuleKind::Deploy, target, ask(Clause::Deploy)),
            Request::Action { action, side_effects: SideEffects::Read, .. } => {
                (RuleKind::Action, action, Verdict::allow(Clause::ActionReads))
            }
            Request::Action { action, .. } => (RuleKind::Action, action, ask(Clause::ActionChanges)),
            // Both are taken apart before.
            Request::Shell { command: text, .. } | Request::Patch { patch: text, .. } => {
                return Verdict::new(Effect::Ask, Because::Opaque).part(text);
            }
        };
        self.decide(kind, default, |pattern| pattern.matches_text(text), |_| true).part(text)
    }

    fn read(&self, path: &str) -> Verdict {
        match inside(path) {
            Some(path) => {
                self.decide_path(RuleKind::Read, &path, Verdict::allow(Clause::ReadInside), |_| true)
            }
            None => self.decide_path(RuleKind::Read, path, Verdict::deny(Clause::ReadOutside), is_absolute),
        }
    }

    fn write(&self, kind: RuleKind, path: &str) -> Verdict {
        let Some(path) = inside(path) else {
            return self.decide_path(kind, path, Verdict::deny(Clause::WriteOutside), is_absolute);
        };
        if let Some(part) = protected(&path) {
            let default = Verdict::new(Effect::Ask, Because::Protected { path: path.clone() });
            return self.decide_path(kind, &path, default, |rule| names(rule, part));
        }
        let preset = self.policy.preset_of(self.subject.agent, self.subject.workspace);
        let default = match (self.subject.place, preset) {
            (Place::InPlace, _) => Verdict::ask(Clause::WriteInPlace),
            (Place::Checkout, Preset::Strict) => Verdict::ask(Clause::WriteStrict),
            (Place::Checkout, Preset::Default) => Verdict::allow(Clause::WriteInCheckout),
        };
        self.decide_path(kind, &path, default, |_| true)
    }

    /// No rule can give a secret away; a deny rule is only another reason.
    fn secret(&self, name: &str) -> Verdict {
        let fits = |pattern: &Pattern| pattern.matches_text(name);
        self.decide(RuleKind::Secret, Verdict::deny(Clause::Secret), fits, |_| false)
    }

    fn push(&self, remote: &str, branch: &str) -> Part {
        let words = [remote, branch].map(|word| super::command::Word::Literal(word.to_owned()));
        let fits = |pattern: &Pattern| pattern.fits_words(&words) == Fit::Yes;
        self.decide(RuleKind::GitPush, Verdict::ask(Clause::GitPush), fits, |_| true)
            .part(&format!("{remote} {branch}"))
    }

    /// A deny or ask rule on a directory covers what is in it; an allow rule says exactly what it means.
    fn decide_path(
        &self,
        kind: RuleKind,
        path: &str,
        default: Verdict,
        loosens: impl Fn(&Rule) -> bool,
    ) -> Verdict {
        let exact = |rule: &Rule| rule.pattern().is_none_or(|pattern| pattern.matches_path(path));
        self.decide(kind, default, |pattern| pattern.covers_path(path), |rule| exact(rule) && loosens(rule))
    }

    /// Deny, then ask, then allow, then the default. A rule makes something milder than the default only if it may.
    fn decide(
        &self,
        kind: RuleKind,
        default: Verdict,
        fits: impl Fn(&Pattern) -> bool,
        loosens: impl Fn(&Rule) -> bool,
    ) -> Verdict {
        let speaks = |rule: &&Rule| {
            rule.pattern().is_none_or(&fits) && (rule.effect() >= default.effect || loosens(rule))
        };
        // Of equals the first, so that the same policy always gives the same reason.
        let rules: Vec<&Rule> = self.rules(kind).filter(speaks).collect();
        let effects = [Effect::Deny, Effect::Ask, Effect::Allow];
        let found = effects.iter().find_map(|effect| rules.iter().find(|rule| rule.effect() == *effect));
        found.map_or(default, |rule| Verdict::rule(rule))
    }

    /// Where nobody may be asked, what would be asked about is denied.
    fn asked(&self, part: Part) -> Part {
        if part.effect != Effect::Ask || self.subject.people_may_be_asked {
            return part;
        }
        let because = Because::NobodyMayBeAsked { otherwise: Box::new(part.because) };
        Part { effect: Effect::Deny, because, ..part }
    }
}

fn is_absolute(rule: &Rule) -> bool {
    rule.pattern().is_some_and(Pattern::is_absolute)
}

/// Whether the rule says this part of a path itself.
fn names(rule: &Rule, part: &str) -> bool {
    rule.pattern().is_some_and(|pattern| pattern.names(part))
}

impl Verdict {
    const fn new(effect: Effect, because: Because) -> Self {
        Verdict { effect, because }
    }

    const fn allow(clause: Clause) -> Self {
        Verdict::new(Effect::Allow, Because::Default { clause })
    }

    const fn ask(clause: Clause) -> Self {
        Verdict::new(Effect::Ask, Because::Default { clause })
    }

    const fn deny(clause: Clause) -> Self {
        Verdict::new(Effect::Deny, Because::Default { clause })
    }

    fn rule(rule: &Rule) -> Self {
        Verdict::new(rule.effect(), Because::Rule { id: rule.id().to_owned(), scope: rule.scope() })
    }

    fn part(self, what: &str) -> Part {
        Part { what: what.to_owned(), effect: self.effect, because: self.because }
    }
}
