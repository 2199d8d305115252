//! The one list of words, states, event types and codes. It comes from the types, so a word cannot be in one and not the other.
//!
//! The types of the installation's log are read from their source: no other crate is to depend on that one for a document.

mod words;

use std::fmt::{self, Write as _};

use runyard_domain::gate::{Effect, Preset, Request, Risk, RuleKind, Scope, SideEffects};
use runyard_domain::run::{
    CommandKind, DecisionScope, DiffState, FailureKind, OnReject, Resolution, RunEvent, RunState, Task,
    ToolOutcome, TurnOutcome,
};
use runyard_domain::{ActorKind, Approval, Code, Network, Sandbox, Surface};
use serde::Deserialize;
use serde::de::value::{MapDeserializer, StrDeserializer};

use crate::literals;
use crate::tree::Tree;

pub(crate) use words::{OTHERWISE, WORDS};

/// Where the types of the installation's log are declared.
const INSTALLATION: &str = "crates/engine/src/installation/fact.rs";
/// Where the permissions are, which have the form of event types.
const PERMISSIONS: &str = "crates/engine/src/installation/token.rs";
/// The word for an approval that nobody has resolved.
const OPEN: &str = "open";

/// What is said about a project's configuration file: as it was trusted, changed since then, no longer trusted.
const TRUST: [&str; 3] = ["trusted", "changed", "revoked"];

/// Everything that may be said on a wire or in a document where one of these lists is meant.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    pub(crate) run_states: Vec<String>,
    pub(crate) approval_states: Vec<String>,
    pub(crate) trust_states: Vec<String>,
    pub(crate) run_events: Vec<String>,
    pub(crate) installation_events: Vec<String>,
    pub(crate) permissions: Vec<String>,
    pub(crate) failure_kinds: Vec<String>,
    pub(crate) codes: Vec<String>,
}

impl Vocabulary {
    pub(crate) fn read(tree: &Tree) -> Self {
        let dotted = |path: &str| {
            let texts = tree.find(path).map(literals::literals).unwrap_or_default().into_iter();
            texts.map(|literal| literal.text).filter(|text| is_dotted(text)).collect()
        };
        let approvals = [OPEN].into_iter().chain(variants::<Resolution>());
        Vocabulary {
            run_states: owned(RunState::NAMES),
            approval_states: owned(approvals),
            trust_states: owned(TRUST),
            run_events: owned(RunEvent::KINDS.iter().copied()),
            installation_events: dotted(INSTALLATION),
            permissions: dotted(PERMISSIONS),
            failure_kinds: owned(FailureKind::ALL.iter().map(|kind| kind.code().as_str())),
            codes: owned(Code::ALL.iter().map(|code| code.as_str())),
        }
    }

    pub(crate) fn event_types(&self) -> impl Iterator<Item = &str> {
        self.run_events.iter().chain(&self.installation_events).map(String::as_str)
    }

    /// What a field `state` may say.
    pub(crate) fn states(&self) -> impl Iterator<Item = &str> {
        self.run_states.iter().chain(&self.approval_states).chain(&self.trust_states).map(String::as_str)
    }

    /// Every word that has one exact spelling.
    pub(crate) fn exact(&self) -> impl Iterator<Item = &str> {
        let listed = self.failure_kinds.iter().chain(&self.codes).chain(&self.permissions);
        self.states().chain(listed.map(String::as_str)).chain(self.event_types())
    }

    /// The document.
    pub(crate) fn markdown(&self) -> String {
        let mut page = INTRO.to_owned();
        for word in WORDS {
            let never: Vec<String> = word.never.iter().map(|never| format!("“{never}”")).collect();
            let _ = writeln!(page, "| *{}* | {} | {} |", word.word, word.meaning, never.join(", "));
        }
        list(
            &mut page,
            "States of a run",
            "In the order of a run's life; the last three are its ends.",
            &self.run_states,
        );
        list(&mut page, "States of an approval", "All but the first are its end.", &self.approval_states);
        list(&mut page, "States of a project's trust", "As `runyard trust` says them.", &self.trust_states);
        list(&mut page, "Event types of a run", "None is ever renamed; more may be added.", &self.run_events);
        list(
            &mut page,
            "Event types of the installation's log",
            "Tokens, rules and the audit, in the same store and under the same chain.",
            &self.installation_events,
        );
        list(&mut page, "Permissions", "What the roles of tokens are made of.", &self.permissions);
        page += "\n## Words in payloads, policies and calls\n\n| What | Words |\n|---|---|\n";
        for (what, words) in lists() {
            let _ = writeln!(page, "| {what} | {} |", in_ticks(&words));
        }
        list(&mut page, "Failure kinds", "What went wrong in a backend: `failureKind`.", &self.failure_kinds);
        let codes = "What each means on every surface, and what to do first, is in [errors.md](errors.md).";
        list(&mut page, "Codes", codes, &self.codes);
        page
    }
}

const INTRO: &str = "\
# Vocabulary

<!-- Made from the types in crates/domain and the words in xtask/src/vocabulary/words.rs. Change them there. -->

One word for one thing, in code, API, command line and documents. This page is written by `cargo xtask vocabulary`;
`cargo xtask tidy` fails when it is out of date, when a document or a text of the program uses a word of the last column, and when
one names a state, an event type or a code that is not listed here.

## Words

| Word | Meaning | Not |
|---|---|---|
";

fn lists() -> Vec<(&'static str, Vec<&'static str>)> {
    vec![
        ("surfaces", variants::<Surface>()),
        ("kinds of actor", kinds::<ActorKind>()),
        ("kinds of task", kinds::<Task>()),
        ("commands to a live run", variants::<CommandKind>()),
        ("kinds of request", kinds::<Request>()),
        ("kinds of rule", variants::<RuleKind>()),
        ("effects of a rule, and of the gate", variants::<Effect>()),
        ("scopes of a rule", variants::<Scope>()),
        ("scopes of a decision", variants::<DecisionScope>()),
        ("presets of a policy", variants::<Preset>()),
        ("`onReject`", variants::<OnReject>()),
        ("risks", variants::<Risk>()),
        ("side effects of an action", variants::<SideEffects>()),
        ("`executionPolicy.sandbox`", variants::<Sandbox>()),
        ("`executionPolicy.network`", variants::<Network>()),
        ("`executionPolicy.approval`", variants::<Approval>()),
        ("outcomes of a turn", variants::<TurnOutcome>()),
        ("outcomes of a tool call", variants::<ToolOutcome>()),
        ("`diff` at the end of a run", variants::<DiffState>()),
    ]
}

fn list(page: &mut String, title: &str, intro: &str, words: &[String]) {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let _ = write!(page, "\n## {title}\n\n{intro}\n\n{}\n", in_ticks(&words));
}

fn in_ticks(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

/// `audit.read`, `installation.rule.added`.
fn is_dotted(text: &str) -> bool {
    text.contains('.')
        && text.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase()))
}

fn owned<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    words.into_iter().map(str::to_owned).collect()
}

/// Serde names all words of a type when it is given another, so no list of them can be forgotten.
#[derive(Debug)]
struct Variants(Vec<&'static str>);

impl fmt::Display for Variants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of {:?}", self.0)
    }
}

impl std::error::Error for Variants {}

impl serde::de::Error for Variants {
    /// An error of another kind names none.
    fn custom<T: fmt::Display>(_: T) -> Self {
        Variants(Vec::new())
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Variants(expected.to_vec())
    }
}

/// The words of an enum that is written as one word.
fn variants<T: Deserialize<'static>>() -> Vec<&'static str> {
    T::deserialize(StrDeserializer::<Variants>::new("?"))
        .err()
        .map(|Variants(words)| words)
        .unwrap_or_default()
}

/// The words of an enum that is told by its `kind`.
fn kinds<T: Deserialize<'static>>() -> Vec<&'static str> {
    let unknown = MapDeserializer::<_, Variants>::new([("kind", "?")].into_iter());
    T::deserialize(unknown).err().map(|Variants(words)| words).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_words_of_the_types_are_found() {
        assert_eq!(variants::<Resolution>(), ["approved", "rejected", "expired", "withdrawn"]);
        assert_eq!(kinds::<ActorKind>(), ["person", "service", "agent"]);
        for (what, words) in lists() {
            assert!(!words.is_empty(), "{what}");
        }
    }

    #[test]
    fn the_document_has_every_word() {
        let facts = "enum RegistryFact {\n    Opened(Opened) \"installation.opened\"\n}\n";
        let vocabulary = Vocabulary::read(&Tree::of(&[(INSTALLATION, facts)]));
        let page = vocabulary.markdown();
        for word in vocabulary.exact() {
            assert!(page.contains(&format!("`{word}`")), "{word}");
        }
        for word in
            ["| *run* | one attempt at a task | “job”, “jobs” |", "`installation.opened`", "`git_push`"]
        {
            assert!(page.contains(word), "{word}");
        }
    }

    #[test]
    fn no_word_stands_for_two_things() {
        let mut seen = BTreeSet::new();
        for word in WORDS {
            assert!(seen.insert(word.word), "{} is there twice", word.word);
        }
        for never in WORDS.iter().flat_map(|word| word.never) {
            assert!(seen.insert(never), "{never} is both a word and never to be used, or there twice");
            assert_eq!(*never, never.to_lowercase());
        }
    }
}
