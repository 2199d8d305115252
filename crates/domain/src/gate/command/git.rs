//! A git command without the options before its subcommand. Which git this is, and what its configuration says, is not known here.

use super::{SimpleCommand, Word};

/// A git command, taken apart.
pub(in crate::gate) struct Git<'a> {
    /// The subcommand and what stands after it.
    pub(in crate::gate) words: &'a [Word],
    /// The directories that it is told to work in.
    pub(in crate::gate) directories: Vec<Word>,
    /// The option that lets git run commands of its caller's choice, if there is one.
    pub(in crate::gate) configuration: Option<&'a str>,
    /// Whether it is known which word is the subcommand, and what it is.
    pub(in crate::gate) is_known: bool,
}

/// Options before the subcommand that have no value, or one behind a `=`.
#[rustfmt::skip]
const OPTIONS: [&str; 23] = [
    "-p", "--paginate", "-P", "--no-pager", "--no-replace-objects", "--bare", "--literal-pathspecs",
    "--glob-pathspecs", "--noglob-pathspecs", "--icase-pathspecs", "--no-optional-locks", "--no-advice",
    "--no-lazy-fetch", "--version", "-v", "--help", "-h", "--html-path", "--man-path", "--info-path", "--exec-path",
    "--super-prefix", "--list-cmds",
];

/// Options before the subcommand that have a value.
const VALUED: [&str; 7] =
    ["-c", "--config-env", "-C", "--git-dir", "--work-tree", "--namespace", "--attr-source"];

impl<'a> Git<'a> {
    pub(in crate::gate) fn of(command: &'a SimpleCommand) -> Option<Self> {
        if command.name() != Some("git") {
            return None;
        }
        let mut git = Git { words: &[], directories: Vec::new(), configuration: None, is_known: true };
        let mut words = command.arguments.iter().enumerate();
        while let Some((at, word)) = words.next() {
            let text = word.text();
            if !text.starts_with('-') {
                git.words = &command.arguments[at..];
                git.is_known &= word.literal().is_some();
                break;
            }
            let (name, attached) = text.split_once('=').map_or((text, false), |(name, _)| (name, true));
            let takes_next = VALUED.contains(&name) && !attached;
            let is_option = VALUED.contains(&name) || OPTIONS.contains(&name);
            git.is_known &= is_option && !word.may_choose();
            if matches!(name, "-c" | "--config-env") || (name == "--exec-path" && attached) {
                git.configuration = git.configuration.or(Some(text));
            }
            let value = if takes_next { words.next().map(|(_, value)| value) } else { None };
            // What is not quoted can become several words.
            git.is_known &= value.is_none_or(|value| value.is_one_word() || !value.may_choose());
            if matches!(name, "-C" | "--git-dir" | "--work-tree") {
                let attached = text.split_once('=').map(|(_, value)| Word::Literal(value.to_owned()));
                git.directories.extend(value.cloned().or(attached));
            }
        }
        Some(git)
    }

    /// The subcommand, if there is one and it is known.
    pub(in crate::gate) fn subcommand(&self) -> Option<&'a str> {
        self.words.first()?.literal()
    }

    /// What stands after the subcommand.
    pub(in crate::gate) fn arguments(&self) -> &'a [Word] {
        self.words.get(1..).unwrap_or_default()
    }
}
