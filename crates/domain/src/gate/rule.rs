//! Rules: what a person decided before it is asked.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::judge::Subject;
use super::pattern::{InvalidPattern, Pattern, Shape};
use crate::{RunId, SessionId, Timestamp};

/// What becomes of a request, from the mildest to the most severe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It is done.
    Allow,
    /// A person decides.
    Ask,
    /// It is not done.
    Deny,
}

/// What a rule is about. Questions and repetitions are missing: no rule decides them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleKind {
    /// Every request that a rule can decide.
    Any,
    /// Reading a path.
    Read,
    /// Writing a path, by a patch too.
    Write,
    /// Changing a path by a patch.
    Patch,
    /// Running a command.
    Shell,
    /// Connecting to a host.
    Network,
    /// Making a commit; the pattern is about its message.
    GitCommit,
    /// Pushing; the pattern is remote and branch, as in `origin main`.
    GitPush,
    /// Publishing to a target.
    Publish,
    /// Deploying to a target.
    Deploy,
    /// Reading a secret.
    Secret,
    /// Calling an action.
    Action,
}

impl RuleKind {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            RuleKind::Any => "any",
            RuleKind::Read => "read",
            RuleKind::Write => "write",
            RuleKind::Patch => "patch",
            RuleKind::Shell => "shell",
            RuleKind::Network => "network",
            RuleKind::GitCommit => "git_commit",
            RuleKind::GitPush => "git_push",
            RuleKind::Publish => "publish",
            RuleKind::Deploy => "deploy",
            RuleKind::Secret => "secret",
            RuleKind::Action => "action",
        }
    }

    const fn shape(self) -> Shape {
        match self {
            RuleKind::Read | RuleKind::Write | RuleKind::Patch => Shape::Path,
            RuleKind::Network => Shape::Host,
            RuleKind::Shell => Shape::Command,
            RuleKind::GitPush => Shape::Words,
            _ => Shape::Text,
        }
    }

    /// Whether a rule of this kind speaks about requests of the other.
    pub(super) fn covers(self, asked: RuleKind) -> bool {
        self == asked || self == RuleKind::Any || (self == RuleKind::Write && asked == RuleKind::Patch)
    }
}

/// How long a rule holds, and where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// For one request: who acts on it retires the rule. One of the base is retired for that run only.
    Once,
    /// As long as its run.
    Run,
    /// In the runs of its session.
    Session,
    /// In its workspace, until it is removed or expires.
    Project,
    /// Until it is removed or expires.
    #[default]
    Always,
}

impl Scope {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Scope::Once => "once",
            Scope::Run => "run",
            Scope::Session => "session",
            Scope::Project => "project",
            Scope::Always => "always",
        }
    }
}

/// Why something is no rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRule {
    /// The pattern is wrong.
    #[error("match: {0}")]
    Match(#[from] InvalidPattern),
    /// A pattern for everything.
    #[error("match: a rule of kind `any` has none, since a pattern is about one kind of thing")]
    AnyWithMatch,
    /// No rule gives secrets away.
    #[error("effect: secrets are never given to an agent; a rule of kind `secret` can only be `deny`")]
    SecretNotDenied,
    /// A run's rule without its run.
    #[error("run: a rule of scope `run` names its run")]
    RunMissing,
    /// A run beside a scope that has none.
    #[error("run: only rules of scope `run` or `once` name a run")]
    RunUnused,
    /// A session's rule without its session.
    #[error("session: a rule of scope `session` names its session")]
    SessionMissing,
    /// A session beside a scope that has none.
    #[error("session: only rules of scope `session` name a session")]
    SessionUnused,
    /// A project's rule without its workspace.
    #[error("workspace: a rule of scope `project` names its workspace")]
    WorkspaceMissing,
    /// An empty name.
    #[error("{field}: is not empty; leave it out instead")]
    EmptyName {
        /// Which name.
        field: &'static str,
    },
}

/// One rule. It can only be made valid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RuleText", into = "RuleText")]
pub struct Rule {
    text: RuleText,
    id: String,
    pattern: Option<Pattern>,
}

/// A rule as it is written: in `runyard.toml`, over HTTP and in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RuleText {
    /// Its name; without one, its content names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What it does.
    pub effect: Effect,
    /// What it is about.
    pub kind: RuleKind,
    /// Which of these; all without it.
    #[serde(default, rename = "match", skip_serializing_if = "Option::is_none")]
    pub matches: Option<String>,
    /// For which agent profile; for all without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// For which workspace; for all without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// How long it holds.
    #[serde(default)]
    pub scope: Scope,
    /// For which run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// For which session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
}

impl RuleText {
    /// A rule for every agent and workspace that holds until it is removed.
    pub fn new(effect: Effect, kind: RuleKind, matches: Option<&str>) -> Self {
        RuleText {
            id: None,
            effect,
            kind,
            matches: matches.map(str::to_owned),
            agent: None,
            workspace: None,
            scope: Scope::Always,
            run: None,
            session: None,
            expires: None,
        }
    }
}

impl TryFrom<RuleText> for Rule {
    type Error = InvalidRule;

    fn try_from(text: RuleText) -> Result<Self, InvalidRule> {
        let pattern = match (&text.matches, text.kind) {
            (None, _) => None,
            (Some(_), RuleKind::Any) => return Err(InvalidRule::AnyWithMatch),
            (Some(pattern), kind) => Some(Pattern::new(kind.shape(), pattern)?),
        };
        if text.kind == RuleKind::Secret && text.effect != Effect::Deny {
            return Err(InvalidRule::SecretNotDenied);
        }
        check_scope(&text)?;
        let names = [("id", &text.id), ("agent", &text.agent), ("workspace", &text.workspace)];
        if let Some((field, _)) = names.into_iter().find(|(_, name)| name.as_deref() == Some("")) {
            return Err(InvalidRule::EmptyName { field });
        }
        let id = text.id.clone().unwrap_or_else(|| named_by_content(&text));
        Ok(Rule { text, id, pattern })
    }
}

/// A rule names what its scope is bound to, and nothing that it is not.
const fn check_scope(text: &RuleText) -> Result<(), InvalidRule> {
    match (text.scope, text.run, text.session) {
        (Scope::Run, None, _) => Err(InvalidRule::RunMissing),
        (Scope::Session | Scope::Project | Scope::Always, Some(_), _) => Err(InvalidRule::RunUnused),
        (Scope::Session, _, None) => Err(InvalidRule::SessionMissing),
        (Scope::Once | Scope::Run | Scope::Project | Scope::Always, _, Some(_)) => {
            Err(InvalidRule::SessionUnused)
        }
        (Scope::Project, ..) if text.workspace.is_none() => Err(InvalidRule::WorkspaceMissing),
        _ => Ok(()),
    }
}

fn named_by_content(text: &RuleText) -> String {
    let mut name = format!("{} {}", text.effect, text.kind.as_str());
    if let Some(pattern) = &text.matches {
        name.push(' ');
        name.push_str(pattern);
    }
    for (word, limit) in [(" for agent ", &text.agent), (" in ", &text.workspace)] {
        if let Some(limit) = limit {
            name.push_str(word);
            name.push_str(limit);
        }
    }
    name
}

impl From<Rule> for RuleText {
    fn from(rule: Rule) -> RuleText {
        rule.text
    }
}

impl Rule {
    /// The rule that the text says, for every agent and workspace, until it is removed.
    pub fn new(effect: Effect, kind: RuleKind, matches: Option<&str>) -> Result<Self, InvalidRule> {
        RuleText::new(effect, kind, matches).try_into()
    }

    /// Its name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What it does.
    pub const fn effect(&self) -> Effect {
        self.text.effect
    }

    /// What it is about.
    pub const fn kind(&self) -> RuleKind {
        self.text.kind
    }

    /// How long it holds.
    pub const fn scope(&self) -> Scope {
        self.text.scope
    }

    /// It as it is written.
    pub const fn text(&self) -> &RuleText {
        &self.text
    }

    pub(super) const fn pattern(&self) -> Option<&Pattern> {
        self.pattern.as_ref()
    }

    /// Whether it speaks for this subject at its time.
    pub(super) fn is_in_force(&self, subject: &Subject<'_>) -> bool {
        let text = &self.text;
        text.agent.as_deref().is_none_or(|mine| mine == subject.agent)
            && text.workspace.as_deref().is_none_or(|mine| mine == subject.workspace)
            && text.run.is_none_or(|mine| Some(mine) == subject.run)
            && text.session.is_none_or(|mine| Some(mine) == subject.session)
            && text.expires.is_none_or(|end| subject.now < end)
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Effect::Allow => "allow",
            Effect::Ask => "ask",
            Effect::Deny => "deny",
        })
    }
}
