//! Who does something: a person, a service, or an agent with its run.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::RunId;

/// Who invokes an action. An actor comes with every invocation; there is no anonymous one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Actor {
    /// A stable name, unique among actors of its kind (a login, a token's name, an agent profile).
    pub id: String,
    /// What kind of actor it is.
    #[serde(flatten)]
    pub kind: ActorKind,
    /// The permissions it holds.
    pub grants: Grants,
}

/// The three kinds of actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ActorKind {
    /// A human being.
    Person,
    /// A program that acts for itself.
    Service,
    /// An AI agent, inside the run that it drives.
    Agent {
        /// The run that the agent drives.
        #[serde(rename = "runId")]
        run: RunId,
    },
}

/// The permissions that an actor holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grants {
    /// Every permission: the owner of the installation.
    All,
    /// Exactly these.
    Only(BTreeSet<String>),
}

impl Actor {
    /// A person who owns the installation.
    pub fn owner(id: impl Into<String>) -> Self {
        Actor { id: id.into(), kind: ActorKind::Person, grants: Grants::All }
    }

    /// A service with the given permissions.
    pub fn service<P: Into<String>>(id: impl Into<String>, permissions: impl IntoIterator<Item = P>) -> Self {
        Actor { id: id.into(), kind: ActorKind::Service, grants: Grants::only(permissions) }
    }

    /// An agent that drives `run`, with the given permissions.
    pub fn agent<P: Into<String>>(
        id: impl Into<String>,
        run: RunId,
        permissions: impl IntoIterator<Item = P>,
    ) -> Self {
        Actor { id: id.into(), kind: ActorKind::Agent { run }, grants: Grants::only(permissions) }
    }

    /// Whether this is an agent, which may never do what is for people only.
    pub fn is_agent(&self) -> bool {
        matches!(self.kind, ActorKind::Agent { .. })
    }
}

impl Grants {
    /// Exactly these permissions.
    pub fn only<P: Into<String>>(permissions: impl IntoIterator<Item = P>) -> Self {
        Grants::Only(permissions.into_iter().map(Into::into).collect())
    }

    /// Whether `permission` is among them.
    pub fn include(&self, permission: &str) -> bool {
        match self {
            Grants::All => true,
            Grants::Only(held) => held.contains(permission),
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ActorKind::Person => write!(f, "person {}", self.id),
            ActorKind::Service => write!(f, "service {}", self.id),
            ActorKind::Agent { run } => write!(f, "agent {} in {run}", self.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_reads_back_as_it_was_written() {
        for actor in [
            Actor::owner("ada"),
            Actor::service("ci", ["tasks.write"]),
            Actor::agent("codex", RunId::from_parts(1, &[2; 10]), ["tasks.read"]),
        ] {
            let text = serde_json::to_string(&actor).unwrap();
            assert_eq!(serde_json::from_str::<Actor>(&text).unwrap(), actor, "{text}");
        }
    }
    #[test]
    fn an_actor_says_who_it_is_and_holds_exactly_what_it_was_given() {
        let run = RunId::from_parts(1, &[2; 10]);
        let actors = [
            Actor::owner("ada"),
            Actor::service("ci", ["tasks.write"]),
            Actor::agent("codex", run, ["tasks.read"]),
        ];
        let said: Vec<String> = actors.iter().map(ToString::to_string).collect();
        assert_eq!(said, ["person ada".to_owned(), "service ci".to_owned(), format!("agent codex in {run}")]);
        assert_eq!(actors.each_ref().map(Actor::is_agent), [false, false, true]);
        let may = |permission: &str| actors.each_ref().map(|actor| actor.grants.include(permission));
        assert_eq!(may("tasks.write"), [true, true, false]);
        assert_eq!(may("tasks.read"), [true, false, true]);
    }
}
