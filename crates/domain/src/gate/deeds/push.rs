//! What `git push` pushes, and where to: as far as its words say, which for most of them is not far.

use crate::gate::command::{Git, Word};

/// Options whose value is a word of its own, unless it is attached.
const VALUED: [&str; 4] = ["--repo", "--push-option", "--receive-pack", "--exec"];
/// Options that push more than what is named.
const EVERY: [&str; 3] = ["--all", "--branches", "--mirror"];
/// What goes before a branch in its full name.
const HEADS: [&str; 2] = ["refs/heads/", "heads/"];

/// Remote and branch of each thing that is pushed. What only git knows is a word that may be anything.
pub(super) fn pushed(git: &Git<'_>) -> Vec<[Word; 2]> {
    let Said { remote, named, every } = Said::by(git);
    let unknown = named.is_empty() || every;
    let branches = named.iter().map(branch).chain(unknown.then(anything));
    branches.map(|branch| [remote.clone(), branch]).collect()
}

/// The same where the remote is an address or a directory, which may be that of any remote.
pub(in crate::gate) fn to_anywhere(words: &[Word]) -> Option<Vec<Word>> {
    let [remote, rest @ ..] = words else { return None };
    let is_place = remote.text().contains(['/', ':', '.']);
    is_place.then(|| [&[anything()], rest].concat())
}

struct Said {
    remote: Word,
    named: Vec<Word>,
    every: bool,
}

impl Said {
    fn by(git: &Git<'_>) -> Self {
        let (mut operands, mut repository, mut every, mut options) = (Vec::new(), None, false, true);
        let mut words = git.arguments().iter();
        while let Some(word) = words.next() {
            let text = word.text();
            if !options || !text.starts_with('-') || text == "-" {
                operands.push(word.clone());
            } else if text == "--" {
                options = false;
            } else if text.starts_with("--") {
                let (name, value) =
                    text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
                // Also shortened, as git takes it.
                let is = |option: &&str| option.starts_with(name);
                every |= EVERY.iter().any(is);
                if let Some(option) = VALUED.iter().find(|option| is(option)) {
                    let value = match value {
                        Some(value) => Some(Word::Literal(value.to_owned())),
                        None => words.next().cloned(),
                    };
                    repository = if *option == "--repo" { value } else { repository };
                }
            } else if text.find('o') == Some(text.len() - 1) {
                // An option for the other side, whose value is not attached.
                words.next();
            }
        }
        let mut operands = operands.into_iter();
        let remote = operands.next().or(repository).unwrap_or_else(anything);
        Said { remote, named: operands.collect(), every }
    }
}

/// The branch over there that a refspec is about.
fn branch(refspec: &Word) -> Word {
    let Word::Literal(text) = refspec else { return refspec.clone() };
    let text = text.strip_prefix('+').unwrap_or(text);
    let there = text.rsplit_once(':').map_or(text, |(_, there)| there);
    let name = HEADS.iter().find_map(|heads| there.strip_prefix(heads)).unwrap_or(there);
    match name {
        "" | "HEAD" | "@" => anything(),
        name if name.contains('*') => anything(),
        name => Word::Literal(name.to_owned()),
    }
}

/// One word that may be any.
fn anything() -> Word {
    Word::Expanding("\"$any\"".to_owned())
}
