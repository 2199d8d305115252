//! Judgements in plain sentences, for people and for `runyard policy test`.

use std::fmt;

use super::judge::{Because, Beyond, Clause, Judgement, Note};
use super::risk::Risk;
use super::rule::{Effect, Scope};

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let effect = match self.effect {
            Effect::Allow => "Allowed",
            Effect::Ask => "Asked about",
            Effect::Deny => "Denied",
        };
        write!(f, "{effect} ({} risk): {}.", self.risk, self.because)
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Because::Rule { id, scope: Scope::Once } => {
                write!(f, "the rule `{id}`, good for one time, says so")
            }
            Because::Rule { id, scope: Scope::Run } => write!(f, "the rule `{id}` of this run says so"),
            Because::Rule { id, scope: Scope::Session } => {
                write!(f, "the rule `{id}` of this session says so")
            }
            Because::Rule { id, scope: Scope::Project } => {
                write!(f, "the rule `{id}` of this project says so")
            }
            Because::Rule { id, scope: Scope::Always } => write!(f, "the rule `{id}` says so"),
            Because::MayMatch { id } => {
                write!(
                    f,
                    "the deny rule `{id}` may match, and part of the command is not known before it runs"
                )
            }
            Because::Default { clause } => clause.fmt(f),
            Because::Unparsed { why } => write!(f, "the command is not understood: {why}"),
            Because::Opaque => f.write_str("it runs something that cannot be known from the command"),
            Because::Mentions { id } => {
                write!(
                    f,
                    "what runs cannot be known, and the command mentions what the deny rule `{id}` is about"
                )
            }
            Because::Opened => f.write_str("it only runs commands that are judged themselves"),
            Because::Beyond(beyond) => beyond.fmt(f),
            Because::Protected { path } => {
                write!(f, "`{path}` is protected, and no allow rule names it")
            }
            Because::NobodyMayBeAsked { otherwise } => {
                write!(f, "it would be asked about ({otherwise}), and nobody may be asked")
            }
        }
    }
}

impl fmt::Display for Beyond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Beyond::Redirection { path } => {
                write!(f, "it writes `{path}` by redirection, which no allow rule for commands covers")
            }
            Beyond::Outside { path } => {
                write!(f, "it writes `{path}` outside the workspace, which the allow rule does not name")
            }
            Beyond::Variable { name } => {
                write!(f, "it sets `{name}`, which can change what runs and which no allow rule covers")
            }
        }
    }
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Clause::ReadInside => "reading inside the workspace is allowed and recorded",
            Clause::ReadOutside => "reading outside the workspace is denied",
            Clause::WriteInCheckout => "a write in the run's own checkout is a proposal and is recorded",
            Clause::WriteStrict => "the strict preset asks for every write",
            Clause::WriteInPlace => "a run that works in place asks for every write",
            Clause::WriteOutside => "writing outside the workspace is denied",
            Clause::PatchOfNothing => "the patch does not say which files it changes",
            Clause::Shell => "no rule covers the command, and commands are asked about",
            Clause::Network => "no rule covers the connection, and connections are asked about",
            Clause::NetworkAllowed => "the run's execution policy allows the network",
            Clause::GitCommit => "commits are asked about",
            Clause::GitPush => "pushes are asked about",
            Clause::Publish => "publishing is asked about",
            Clause::Deploy => "deploying is asked about",
            Clause::Secret => "no agent is given a secret",
            Clause::ActionReads => "an action that only reads is allowed",
            Clause::ActionChanges => "an action that changes something is asked about",
            Clause::Question => "a question is for a person",
            Clause::Apply => {
                "what a run changed is looked at and asked about at its end, never at an agent's word"
            }
            Clause::Repeat => "nobody knows whether the step took effect, so a person decides",
        })
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Risk::Low => "low",
            Risk::Medium => "medium",
            Risk::High => "high",
        })
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::BoundedBySandboxOnly { program } => {
                write!(f, "what `{program}` does is not looked into; only the sandbox bounds it")
            }
            Note::RunsWhatItFetched => f.write_str("it can run what it fetches from the network"),
        }
    }
}
