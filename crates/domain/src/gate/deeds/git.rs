//! What git commands do.

use super::{Deed, Touch, plain_host, url_host};
use crate::gate::command::{SimpleCommand, Word};
use crate::gate::rule::RuleKind;

/// A git command without the options before its subcommand.
pub(in crate::gate) struct Git<'a> {
    pub(in crate::gate) subcommand: &'a Word,
    pub(in crate::gate) arguments: &'a [Word],
    /// Whether it works in another directory than it is run in.
    elsewhere: bool,
}

/// The option that lets git run commands of its caller's choice, if there is one.
pub(in crate::gate) fn configured(command: &SimpleCommand) -> Option<&str> {
    let is_configuration = |text: &&str| {
        text.starts_with("-c")
            || ["--config-env", "--exec-path", "--upload-pack", "--receive-pack"]
                .iter()
                .any(|o| text.starts_with(o))
    };
    command.arguments.iter().map(Word::text).take_while(|text| text.starts_with('-')).find(is_configuration)
}

impl<'a> Git<'a> {
    pub(in crate::gate) fn of(command: &'a SimpleCommand) -> Option<Self> {
        let mut elsewhere = false;
        let mut at = 0;
        loop {
            let word = command.arguments.get(at)?;
            let text = word.text();
            match text {
                "-C" | "--git-dir" | "--work-tree" => {
                    elsewhere = true;
                    at += 2;
                }
                "-c" | "--namespace" | "--super-prefix" | "--config-env" => at += 2,
                _ if text.starts_with('-') => at += 1,
                _ => {
                    return Some(Git {
                        subcommand: word,
                        arguments: &command.arguments[at + 1..],
                        elsewhere,
                    });
                }
            }
        }
    }

    /// The words of the command as a rule names them: `git push origin`.
    pub(in crate::gate) fn words(&self) -> Vec<Word> {
        std::iter::once(self.subcommand).chain(self.arguments).cloned().collect()
    }

    /// The file that `git config` writes, where it does more than read.
    fn configures(&self) -> Option<Word> {
        let has = |options: &[&str]| {
            let is_one = |word: &Word| options.iter().any(|option| word.text().starts_with(option));
            self.arguments.iter().any(is_one)
        };
        let mut operands = self.operands();
        let first = operands.next().map(Word::text);
        let reads = has(&["--get", "--list", "-l"]) || matches!(first, Some("get" | "list") | None);
        let sets = operands.next().is_some() || has(&["--unset", "--remove-section"]);
        let edits = has(&["--edit", "-e"]) || first == Some("edit");
        let mut named = self.arguments.iter().skip_while(|word| !matches!(word.text(), "-f" | "--file"));
        let file = match named.nth(1) {
            Some(file) => file.clone(),
            None if has(&["--global"]) => Word::Expanding("~/.gitconfig".to_owned()),
            None => Word::Literal(".git/config".to_owned()),
        };
        (edits || (sets && !reads)).then_some(file)
    }

    fn operands(&self) -> impl Iterator<Item = &'a Word> {
        self.arguments.iter().filter(|word| !word.text().starts_with('-'))
    }
}

pub(super) fn deeds(command: &SimpleCommand, deeds: &mut Vec<Deed>) {
    let Some(git) = Git::of(command) else { return };
    let Some(subcommand) = git.subcommand.literal() else { return };
    let named = ["git", subcommand];
    match subcommand {
        "commit" | "merge" | "cherry-pick" | "revert" | "am" | "rebase" | "commit-tree" => {
            let message = git.arguments.iter().skip_while(|word| !word.text().starts_with("-m")).nth(1);
            let message = message.cloned().unwrap_or(Word::Literal(String::new()));
            deeds.push(Deed::words(RuleKind::GitCommit, vec![message], &named));
        }
        "push" | "send-email" => {
            let nothing = || Word::Literal(String::new());
            let mut operands = git.operands().cloned();
            let remote = operands.next().unwrap_or_else(nothing);
            let branch = operands.next().unwrap_or_else(nothing);
            deeds.push(Deed::words(RuleKind::GitPush, vec![remote, branch], &named));
        }
        "config" => {
            deeds.extend(git.configures().map(|file| Deed::path(RuleKind::Write, file, Touch::Named)))
        }
        "rm" | "mv" | "checkout" | "restore" | "clean" => {
            for word in git.operands() {
                let word = if git.elsewhere { Word::Expanding(word.text().to_owned()) } else { word.clone() };
                deeds.push(Deed::path(RuleKind::Write, word, Touch::Tree));
            }
        }
        _ => {}
    }
    let reaches =
        matches!(subcommand, "clone" | "fetch" | "pull" | "push" | "ls-remote" | "submodule" | "remote");
    if reaches {
        let remote = git.operands().find_map(|word| remote_host(word.text()));
        deeds.push(Deed::host(remote, &named));
    }
}

/// The host of `git@example.com:team/code` or of an address.
fn remote_host(text: &str) -> Option<String> {
    match url_host(text) {
        Some(host) => host,
        None if text.contains(':') => plain_host(text),
        None => None,
    }
}
