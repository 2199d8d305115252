//! A rule of the policy as callers write it and as answers show it.

use runyard_actions::{ActionError, Issue};
use runyard_domain::Timestamp;
use runyard_domain::gate::{Effect, InvalidRule, Rule, RuleKind, RuleText, Scope};
use runyard_engine::StoredRule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scope::id;
use crate::who_view::WhoView;

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EffectWord {
    /// It is done.
    Allow,
    /// A person decides.
    Ask,
    /// It is not done.
    Deny,
}

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KindWord {
    Any,
    Read,
    Write,
    Patch,
    Shell,
    Network,
    GitCommit,
    GitPush,
    Publish,
    Deploy,
    Secret,
    Action,
}

/// How long a rule holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScopeWord {
    /// For one request.
    Once,
    /// As long as its run.
    Run,
    /// In the runs of its session.
    Session,
    /// In its workspace.
    Project,
    /// Until it is removed or expires.
    #[default]
    Always,
}

/// A rule as a caller writes it.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct RuleInput {
    /// What it does; deny wins over everything.
    effect: EffectWord,
    /// What it is about.
    kind: KindWord,
    /// Which of these: a path, a command, a host or a name, with `*`; all without it.
    #[serde(rename = "match")]
    matches: Option<String>,
    /// For which agent profile; for all without it.
    pub(crate) agent: Option<String>,
    /// For which workspace, by its label; for all without it.
    pub(crate) workspace: Option<String>,
    /// How long it holds.
    #[serde(default)]
    scope: ScopeWord,
    /// For which run, with scope run or once.
    run: Option<String>,
    /// For which session, with scope session.
    session: Option<String>,
    /// When it ends (RFC 3339).
    expires: Option<String>,
    /// Whether it is only shown what the rule would change. Nothing is stored then.
    #[serde(default, rename = "dryRun")]
    pub(crate) dry_run: bool,
}

/// A rule of the policy. What is absent is left out.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RuleView {
    /// Its name.
    id: String,
    /// What it does.
    effect: EffectWord,
    /// What it is about.
    kind: KindWord,
    /// Which of these.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    matches: Option<String>,
    /// For which agent profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// For which workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<String>,
    /// How long it holds.
    scope: ScopeWord,
    /// For which run.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    /// For which session.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    /// When it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    /// When it was added; absent where it comes from the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    added_at: Option<String>,
    /// Who added it; absent where it comes from the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    added_by: Option<WhoView>,
}

/// The time that a text names.
pub(crate) fn time(field: &str, text: &str) -> Result<Timestamp, ActionError> {
    text.parse().map_err(|_| {
        let message = "Expected a time as in 2026-01-31T12:00:00Z.";
        ActionError::invalid_input(vec![Issue::at(field, message)])
    })
}

impl RuleInput {
    /// The rule that it says, or where it is wrong.
    pub(crate) fn rule(self) -> Result<Rule, ActionError> {
        let text = RuleText {
            id: None,
            effect: self.effect.into(),
            kind: self.kind.into(),
            matches: self.matches,
            agent: self.agent,
            workspace: self.workspace,
            scope: self.scope.into(),
            run: self.run.map(|text| id("run", &text)).transpose()?,
            session: self.session.map(|text| id("session", &text)).transpose()?,
            expires: self.expires.map(|text| time("expires", &text)).transpose()?,
        };
        Rule::try_from(text).map_err(|invalid| {
            let field = match &invalid {
                InvalidRule::Match(_) | InvalidRule::AnyWithMatch => "match",
                InvalidRule::SecretNotDenied => "effect",
                InvalidRule::RunMissing | InvalidRule::RunUnused => "run",
                InvalidRule::SessionMissing | InvalidRule::SessionUnused => "session",
                InvalidRule::WorkspaceMissing => "workspace",
                InvalidRule::EmptyName { field } => field,
            };
            let message = invalid.to_string();
            let message = message.strip_prefix(&format!("{field}: ")).unwrap_or(&message).to_owned();
            ActionError::invalid_input(vec![Issue::at(field, message)])
        })
    }
}

/// The rule that a text says: effect, kind and match, as in `allow shell cargo test *`.
pub(crate) fn rule_in_words(text: &str) -> Result<Rule, ActionError> {
    let wrong = |message: &str| ActionError::invalid_input(vec![Issue::at("rule", message)]);
    let mut words = text.trim().splitn(3, char::is_whitespace);
    let word = |word: Option<&str>| serde_json::Value::from(word.unwrap_or_default());
    let effect = serde_json::from_value(word(words.next()))
        .map_err(|_| wrong("Expected a rule that begins with allow, ask or deny."))?;
    let kind = serde_json::from_value(word(words.next())).map_err(|_| {
        wrong("Expected a kind after the effect: any, read, write, patch, shell, network, git_commit, git_push, publish, deploy, secret or action.")
    })?;
    let matches = words.next().map(str::trim).filter(|rest| !rest.is_empty());
    Rule::new(effect, kind, matches).map_err(|invalid| wrong(&format!("Expected a rule: {invalid}.")))
}

impl From<&Rule> for RuleView {
    fn from(rule: &Rule) -> Self {
        let text = rule.text();
        RuleView {
            id: rule.id().to_owned(),
            effect: rule.effect().into(),
            kind: rule.kind().into(),
            matches: text.matches.clone(),
            agent: text.agent.clone(),
            workspace: text.workspace.clone(),
            scope: rule.scope().into(),
            run: text.run.map(|run| run.to_string()),
            session: text.session.map(|session| session.to_string()),
            expires: text.expires.map(|time| time.to_string()),
            added_at: None,
            added_by: None,
        }
    }
}

impl From<&StoredRule> for RuleView {
    fn from(stored: &StoredRule) -> Self {
        RuleView {
            added_at: Some(stored.added.to_string()),
            added_by: Some((&stored.added_by).into()),
            ..RuleView::from(&stored.rule)
        }
    }
}

/// The words are the domain's own: a new one there does not compile here until it has its word.
macro_rules! same_words {
    ($word:ident = $own:ident { $($variant:ident)* }) => {
        impl From<$word> for $own {
            fn from(word: $word) -> $own {
                match word { $($word::$variant => $own::$variant,)* }
            }
        }

        impl From<$own> for $word {
            fn from(own: $own) -> $word {
                match own { $($own::$variant => $word::$variant,)* }
            }
        }
    };
}

same_words!(EffectWord = Effect { Allow Ask Deny });
same_words!(ScopeWord = Scope { Once Run Session Project Always });
same_words!(KindWord = RuleKind {
    Any Read Write Patch Shell Network GitCommit GitPush Publish Deploy Secret Action
});
