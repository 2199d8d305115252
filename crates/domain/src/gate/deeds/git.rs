//! What git commands do.

use super::{Deed, Touch, plain_host, url_host};
use crate::gate::command::{Git, SimpleCommand, Word};
use crate::gate::rule::RuleKind;

/// Options of `git config` without a value that change nothing.
#[rustfmt::skip]
const READING: [&str; 22] = [
    "--get", "--get-all", "--get-regexp", "--get-urlmatch", "--get-color", "--get-colorbool", "--list", "-l",
    "--global", "--system", "--local", "--worktree", "--show-origin", "--show-scope", "--show-names", "--null", "-z",
    "--name-only", "--includes", "--bool", "--int", "--path",
];

/// Options of `git config` with a value that change nothing.
const VALUED: [&str; 6] = ["-f", "--file", "--blob", "--type", "--default", "--url"];

/// The file that `git config` writes, where it may do more than read. What is read is said before the first name, and by words that
/// are known.
fn configured(arguments: &[Word]) -> Option<Word> {
    let mut words = arguments.iter();
    let mut file = None;
    let mut reads = false;
    let mut is_known = true;
    let mut operands = Vec::new();
    while let Some(word) = words.next() {
        let text = word.text();
        let name = text.split_once('=').map_or(text, |(name, _)| name);
        is_known &= word.literal().is_some();
        if !text.starts_with('-') {
            operands.push(text);
            operands.extend(words.by_ref().map(Word::text));
        } else if VALUED.contains(&name) {
            let value =
                if text == name { words.next().cloned() } else { super::after(word, &format!("{name}=")) };
            if matches!(name, "-f" | "--file") && is_known {
                file = value;
            }
        } else if text == "--global" {
            file = Some(Word::Expanding("~/.gitconfig".to_owned()));
        } else {
            is_known &= READING.contains(&text);
            reads |= text.starts_with("--get") || matches!(text, "--list" | "-l");
        }
    }
    reads |= match operands.as_slice() {
        [] => true,
        [first, rest @ ..] => matches!(*first, "get" | "list") || (rest.is_empty() && *first != "edit"),
    };
    let is_read_only = is_known && reads;
    (!is_read_only).then(|| file.unwrap_or(Word::Literal(".git/config".to_owned())))
}

fn operands<'a>(git: &Git<'a>) -> impl Iterator<Item = &'a Word> {
    git.arguments().iter().filter(|word| !word.text().starts_with('-'))
}

pub(super) fn deeds(command: &SimpleCommand, deeds: &mut Vec<Deed>) {
    let Some(git) = Git::of(command) else { return };
    let Some(subcommand) = git.subcommand() else { return };
    let named = ["git", subcommand];
    match subcommand {
        "commit" | "merge" | "cherry-pick" | "revert" | "am" | "rebase" | "commit-tree" => {
            let told = super::paths::values(command, "m", &["--message"]);
            // Else it comes from a file, an editor or another commit.
            let message = told.into_iter().next().unwrap_or(Word::Expanding("\"$message\"".to_owned()));
            deeds.push(Deed::words(RuleKind::GitCommit, vec![message], &named));
        }
        "push" | "send-pack" | "http-push" | "send-email" => {
            let pushed = super::push::pushed(&git).into_iter();
            deeds.extend(pushed.map(|words| Deed::words(RuleKind::GitPush, words.to_vec(), &named)));
        }
        "config" => {
            let file = configured(git.arguments());
            deeds.extend(file.map(|file| Deed::path(RuleKind::Write, file, Touch::Named)));
        }
        "apply" => deeds.push(Deed::path(RuleKind::Write, super::paths::here(), Touch::Tree)),
        "rm" | "mv" | "checkout" | "restore" | "clean" => {
            for word in operands(&git) {
                let is_elsewhere = !git.directories.is_empty();
                let word =
                    if is_elsewhere { Word::Expanding(format!("…/{}", word.text())) } else { word.clone() };
                deeds.push(Deed::path(RuleKind::Write, word, Touch::Tree));
            }
            deeds.extend(
                git.directories.iter().cloned().map(|word| Deed::path(RuleKind::Write, word, Touch::Named)),
            );
        }
        _ => {}
    }
    let reaches = matches!(
        subcommand,
        "clone"
            | "fetch"
            | "pull"
            | "push"
            | "send-pack"
            | "fetch-pack"
            | "http-push"
            | "ls-remote"
            | "submodule"
            | "remote"
    );
    if reaches {
        let remote = operands(&git).find_map(|word| remote_host(word.text()));
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
