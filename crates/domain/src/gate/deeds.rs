//! What a command does besides running, as far as its words say: paths it writes, hosts it reaches, what it commits, pushes,
//! publishes or deploys.
//!
//! It recognises well-known programs and no more. A deed that is not recognised is still a command, and asked about as one.

mod git;
mod paths;
mod programs;
mod push;

use super::command::{Opening, SimpleCommand, Word};
use super::rule::RuleKind;

pub(super) use programs::{is_network, is_recursive, raises_rights, runs_code};
pub(super) use push::to_anywhere;

/// One thing that a command does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Deed {
    pub(super) kind: RuleKind,
    pub(super) object: Object,
    /// What an allow rule for the command must say itself to cover the deed; nothing where any such rule covers it.
    pub(super) named_by: Vec<String>,
}

/// What a deed is done to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Object {
    /// A path.
    Path { word: Word, how: Touch },
    /// A host, if it is known.
    Host(Option<String>),
    /// Words that a pattern is matched with.
    Words(Vec<Word>),
}

/// How a path is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    /// It is named as an argument.
    Named,
    /// It is named, and everything below goes with it.
    Tree,
    /// A redirection writes it.
    Redirected,
}

impl Deed {
    fn path(kind: RuleKind, word: Word, how: Touch) -> Self {
        Deed { kind, object: Object::Path { word, how }, named_by: Vec::new() }
    }

    fn host(host: Option<String>, named_by: &[&str]) -> Self {
        Deed { kind: RuleKind::Network, object: Object::Host(host), named_by: owned(named_by) }
    }

    fn words(kind: RuleKind, words: Vec<Word>, named_by: &[&str]) -> Self {
        Deed { kind, object: Object::Words(words), named_by: owned(named_by) }
    }
}

/// What stands behind the prefix.
fn after(word: &Word, prefix: &str) -> Option<Word> {
    match word {
        Word::Literal(text) => text.strip_prefix(prefix).map(|rest| Word::Literal(rest.to_owned())),
        Word::Expanding(text) => text.strip_prefix(prefix).map(|rest| Word::Expanding(rest.to_owned())),
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Everything that the command is known to do.
pub(super) fn deeds(command: &SimpleCommand) -> Vec<Deed> {
    let mut deeds = Vec::new();
    for word in &command.writes {
        deeds.push(Deed::path(RuleKind::Write, word.clone(), Touch::Redirected));
    }
    for word in &command.reads {
        deeds.push(Deed::path(RuleKind::Read, word.clone(), Touch::Redirected));
    }
    for word in command.writes.iter().chain(&command.reads) {
        deeds.extend(device_host(word.text()).map(|host| Deed::host(Some(host), &["/dev/tcp"])));
    }
    // What an opened command names are the words of the commands inside, which stand in the list themselves.
    if command.opening == Opening::Opened {
        if command.name() == Some("xargs") {
            paths::named_by_xargs(command, &mut deeds);
        }
        return deeds;
    }
    if let Some(name) = command.name() {
        programs::deeds(name, command, &mut deeds);
    }
    deeds
}

/// The host that a shell connects to when this file is opened.
fn device_host(path: &str) -> Option<String> {
    let rest = path.strip_prefix("/dev/tcp/").or_else(|| path.strip_prefix("/dev/udp/"))?;
    rest.split('/').next().map(str::to_owned)
}

/// The host in a text such as `https://me@example.com:8080/x`, if it stands there as it is.
fn url_host(text: &str) -> Option<Option<String>> {
    let (_, rest) = text.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    Some(plain_host(authority))
}

/// The host in a text such as `me@example.com:path`.
fn plain_host(text: &str) -> Option<String> {
    let host = text.rsplit('@').next().unwrap_or(text);
    let host = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.split(':').next().unwrap_or(host),
    };
    let known = !host.is_empty() && host.chars().all(|c| c.is_alphanumeric() || "-._:".contains(c));
    known.then(|| host.to_owned())
}
