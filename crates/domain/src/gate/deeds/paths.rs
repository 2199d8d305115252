//! The paths that a command's words name: what it reads, and what well-known programs write.

use super::programs::{has_letter, is_recursive, operands};
use super::{Deed, Touch, after};
use crate::gate::command::{SimpleCommand, Word};
use crate::gate::rule::RuleKind;

/// How many letters of options may stand before a path that is attached to the last one; behind more, it is not known.
const LETTERS_MAX: usize = 16;

/// Programs with the options, as letters and words, whose value is what they write.
#[rustfmt::skip]
const OUTPUTS: [(&[&str], &str, &[&str]); 6] = [
    (&["curl"], "oDc", &[
        "--output", "--output-dir", "--dump-header", "--cookie-jar", "--trace", "--trace-ascii", "--stderr", "--etag-save",
        "--libcurl", "--hsts", "--alt-svc", "--ssl-sessions",
    ]),
    (&["wget"], "OPoa", &[
        "--output-document", "--output-file", "--append-output", "--directory-prefix", "--save-cookies", "--rejected-log",
        "--hsts-file", "--warc-file", "--warc-tempdir",
    ]),
    (&["sort", "gsort", "shuf", "iconv"], "o", &["--output"]),
    (&["cp", "mv", "ln", "install"], "t", &["--target-directory"]),
    (&["gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "rustc"], "o", &["--output"]),
    (&["find", "gfind"], "", &["-fprint", "-fprint0", "-fprintf", "-fls"]),
];

/// Every argument may be a path that is read: `x`, `--file=x`, `@x`, `-fx`, and `-x` after `--`.
pub(super) fn named(command: &SimpleCommand, deeds: &mut Vec<Deed>) {
    let mut options_ended = false;
    for word in &command.arguments {
        let written = word.text();
        let text = written.split_once('=').map_or(written, |(_, value)| value);
        let is_option = written.starts_with('-') && text == written && !options_ended;
        options_ended |= written == "--";
        let mut push = |word: Word| deeds.push(Deed::path(RuleKind::Read, word, Touch::Named));
        match word {
            Word::Expanding(_) => push(Word::Expanding(bare(text).to_owned())),
            Word::Literal(_) => {
                if !is_option && !bare(text).is_empty() {
                    push(Word::Literal(bare(text).to_owned()));
                }
                if written.starts_with('-') && !written.starts_with("--") && !options_ended {
                    attached(written).into_iter().for_each(push);
                }
            }
        }
    }
}

/// What `xargs` itself reads; the other words are those of the command that it runs.
pub(super) fn named_by_xargs(command: &SimpleCommand, deeds: &mut Vec<Deed>) {
    let files = values(command, "a", &["--arg-file"]);
    deeds.extend(files.into_iter().map(|word| Deed::path(RuleKind::Read, word, Touch::Named)));
}

/// The path in `@path`.
fn bare(text: &str) -> &str {
    text.strip_prefix('@').unwrap_or(text)
}

/// What may be attached to the last of the options in a word, however many letters these are.
fn attached(written: &str) -> Vec<Word> {
    let letters = written[1..].chars().take_while(char::is_ascii_alphanumeric).count();
    let begins = (2..=(letters + 1).min(LETTERS_MAX)).filter_map(|at| written.get(at..));
    let mut paths: Vec<Word> = begins
        .map(|path| bare(path.strip_prefix('=').unwrap_or(path)))
        .filter(|path| !path.is_empty())
        .map(|path| Word::Literal(path.to_owned()))
        .collect();
    if letters >= LETTERS_MAX {
        paths.push(Word::Expanding(written.to_owned()));
    }
    paths
}

pub(super) fn written(name: &str, command: &SimpleCommand, deeds: &mut Vec<Deed>) {
    let operands = operands(command);
    let how = if name == "mv" || is_recursive(command) { Touch::Tree } else { Touch::Named };
    let written: Vec<Word> = match name {
        "rm" | "rmdir" | "unlink" | "shred" | "tee" | "touch" | "mkdir" | "truncate" | "mkfifo" | "mv"
        | "patch" => operands.into_iter().cloned().collect(),
        "chmod" | "chown" | "chgrp" => operands.into_iter().skip(1).cloned().collect(),
        "uniq" | "xxd" => operands.into_iter().skip(1).cloned().collect(),
        "sed" | "gsed" | "perl" if is_in_place(command) => operands.into_iter().cloned().collect(),
        "cp" | "ln" | "install" | "rsync" => copied(command, &operands),
        "dd" => operands.into_iter().filter_map(|word| after(word, "of=")).collect(),
        "curl" => written_out(command),
        _ => Vec::new(),
    };
    let outputs = OUTPUTS.iter().filter(|(names, ..)| names.contains(&name));
    let outputs = outputs.flat_map(|(_, letters, long)| values(command, letters, long));
    deeds.extend(written.into_iter().chain(outputs).map(|word| Deed::path(RuleKind::Write, word, how)));
    // What it changes stands in what it reads.
    if name == "patch" {
        deeds.push(Deed::path(RuleKind::Write, here(), Touch::Tree));
    }
    if matches!(name, "tar" | "gtar" | "bsdtar" | "unzip") {
        archive(name, command, deeds);
    }
    let deletes = command.arguments.iter().any(|word| word.text() == "-delete");
    if matches!(name, "find" | "gfind") && deletes {
        let below = operands_before_options(command).cloned();
        deeds.extend(below.map(|word| Deed::path(RuleKind::Write, word, Touch::Tree)));
    }
}

/// The files in the format that `curl` ends a transfer with: `%output{x}`, or `%output{>>x}` to append.
fn written_out(command: &SimpleCommand) -> Vec<Word> {
    let formats = values(command, "w", &["--write-out"]);
    let files = formats.iter().flat_map(|format| format.text().split("%output{").skip(1));
    let paths = files.map(|file| file.split('}').next().unwrap_or(file).trim_start_matches(">>"));
    paths.map(|path| Word::Literal(path.to_owned())).collect()
}

/// The directory that a command is run in.
pub(super) fn here() -> Word {
    Word::Literal(".".to_owned())
}

fn operands_before_options(command: &SimpleCommand) -> impl Iterator<Item = &Word> {
    command.arguments.iter().take_while(|word| !word.text().starts_with(['-', '(', '!']))
}

fn is_in_place(command: &SimpleCommand) -> bool {
    let is_long = |word: &Word| word.text().starts_with("--i");
    has_letter(command, &['i']) || command.arguments.iter().any(is_long)
}

/// What unpacks may write everything below the directory that it is told, and what packs writes the archive.
fn archive(name: &str, command: &SimpleCommand, deeds: &mut Vec<Deed>) {
    let (letters, long): (&str, &[&str]) = if name == "unzip" { ("d", &[]) } else { ("C", &["--directory"]) };
    let first = command.arguments.first().map_or("", Word::text);
    let is_told = |letters: &[char], long: &[&str]| {
        let is_long = |word: &Word| long.iter().any(|long| word.text().starts_with(long));
        (!first.starts_with('-') && first.contains(letters))
            || has_letter(command, letters)
            || command.arguments.iter().any(is_long)
    };
    if name == "unzip" || is_told(&['x'], &["--ex", "--ge"]) {
        let told = values(command, letters, long);
        let below = if told.is_empty() { vec![here()] } else { told };
        deeds.extend(below.into_iter().map(|word| Deed::path(RuleKind::Write, word, Touch::Tree)));
    }
    if name != "unzip" && is_told(&['c', 'r', 'u', 'A'], &["--cr", "--ap", "--up", "--cat", "--de"]) {
        let second =
            command.arguments.get(1).filter(|_| !first.starts_with('-') && first.contains('f')).cloned();
        let archives = values(command, "f", &["--file"]).into_iter().chain(second);
        deeds.extend(archives.map(|word| Deed::path(RuleKind::Write, word, Touch::Named)));
    }
}

/// The last operand, and what it holds afterwards if it is a directory.
fn copied(command: &SimpleCommand, operands: &[&Word]) -> Vec<Word> {
    let told = values(command, "t", &["--target-directory"]).into_iter().next();
    let Some(target) = told.or_else(|| operands.last().map(|word| (*word).clone())) else {
        return Vec::new();
    };
    let inside = operands.iter().filter_map(|word| {
        let name = word.literal()?.trim_end_matches('/').rsplit('/').next()?;
        Some(Word::Literal(format!("{}/{name}", target.literal()?)))
    });
    let inside: Vec<Word> = inside.collect();
    std::iter::once(target.clone()).chain(inside).collect()
}

/// The values of options: of a letter, attached or the next word, or of a long option, also shortened.
pub(super) fn values(command: &SimpleCommand, letters: &str, long: &[&str]) -> Vec<Word> {
    let mut values = Vec::new();
    for (at, word) in command.arguments.iter().enumerate() {
        let text = word.text();
        let next = || command.arguments.get(at + 1).cloned();
        let (name, attached) = text.split_once('=').map_or((text, false), |(name, _)| (name, true));
        let is_long = name.len() > 2 && long.iter().any(|option| option.starts_with(name));
        if is_long && attached {
            values.extend(after(word, &format!("{name}=")));
        } else if is_long {
            values.extend(next());
        } else if text.starts_with('-') && !text.starts_with("--") {
            // The first letter that has a value takes what stands behind it.
            let rest = text.find(|c| letters.contains(c)).map(|at| &text[at + 1..]);
            match rest {
                None => {}
                Some("") => values.extend(next()),
                Some(rest) => values.extend(after(word, &text[..text.len() - rest.len()])),
            }
        }
    }
    values
}
