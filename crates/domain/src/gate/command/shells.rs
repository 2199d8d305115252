//! Shells and the builtins that run a text: what they run is read only where all of it stands in the line, and nowhere else.

use super::wrappers::Contents;
use super::{Input, Opening, SimpleCommand, Word};
use crate::gate::paths::normal;

const SHELLS: [&str; 18] = [
    "sh", "bash", "dash", "zsh", "ksh", "ksh93", "mksh", "lksh", "oksh", "pdksh", "rksh", "ash", "rbash",
    "rzsh", "yash", "posh", "hush", "osh",
];

/// Letters of options that change nothing about what runs, beside `c` and `s`.
const LETTERS: &str = "ceflnpsuvx";

/// Whether the program is a shell.
pub(in crate::gate) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

/// A shell runs a text, a script, or what it reads.
pub(super) fn shell(command: &SimpleCommand, documents: &[Word]) -> Contents {
    const LONG: [&str; 6] = ["--login", "--norc", "--noprofile", "--posix", "--verbose", "--restricted"];
    let opaque = || Contents::nothing(Opening::Opaque);
    let mut runs_text = false;
    let mut reads_input = false;
    let mut words = command.arguments.iter();
    let operand = loop {
        let Some(word) = words.next() else { break None };
        let Some(text) = word.literal() else { return opaque() };
        match text {
            "--" | "-" => break words.next(),
            _ if LONG.contains(&text) => {}
            _ if text.starts_with(['-', '+']) => {
                if !are_known(text, &mut words) {
                    return opaque();
                }
                runs_text |= text.contains('c');
                reads_input |= text.contains('s');
            }
            _ => break Some(word),
        }
    };
    match operand {
        Some(script) if !runs_text && !reads_input && is_script(script) => Contents::nothing(Opening::Plain),
        Some(text) if runs_text => Contents::of_word(text),
        Some(path) if !reads_input && path.text() != "/dev/stdin" => opaque(),
        _ => read(command, documents),
    }
}

/// Whether the letters of one word are known, and the options that some of them name.
fn are_known<'a>(text: &str, words: &mut impl Iterator<Item = &'a Word>) -> bool {
    const NAMED: [&str; 8] =
        ["pipefail", "errexit", "nounset", "xtrace", "verbose", "noglob", "noclobber", "errtrace"];
    let names = |word: &Word| word.literal().is_some_and(|name| NAMED.contains(&name));
    text.chars().skip(1).all(|letter| match letter {
        'o' => words.next().is_some_and(names),
        letter => LETTERS.contains(letter),
    })
}

/// What a shell runs that reads its input.
fn read(command: &SimpleCommand, documents: &[Word]) -> Contents {
    let word = match &command.input {
        // Some shells put what comes from the pipe before it.
        _ if command.piped => None,
        Input::Document(number) => documents.get(*number),
        Input::Text(word) => Some(word),
        Input::Inherited | Input::Elsewhere => None,
    };
    let Some(text) = word.and_then(Word::literal) else { return Contents::nothing(Opening::Opaque) };
    // What the commands of one line read of it is missing from the next one, and may end in the middle of it.
    let is_one_line = !text.trim().contains('\n');
    let opening = if is_one_line { Opening::Opened } else { Opening::Opaque };
    Contents { opening, ..Contents::text(text) }
}

/// The arguments after `--`, where that comes first.
pub(super) fn operands(command: &SimpleCommand) -> &[Word] {
    match command.arguments.split_first() {
        Some((first, rest)) if first.text() == "--" => rest,
        _ => &command.arguments,
    }
}

/// Whether the word names a file, and not an open descriptor or something that is not known.
pub(super) fn is_script(word: &Word) -> bool {
    word.literal().is_some_and(|path| {
        let path = normal(path);
        let from_root = path.trim_start_matches("../");
        let leaves = path.starts_with(['/', '.']);
        let is_device = |part: &str| matches!(part, "dev" | "proc");
        !(leaves && from_root.trim_start_matches('/').split('/').next().is_some_and(is_device))
    })
}

pub(super) fn eval(command: &SimpleCommand) -> Contents {
    let literal: Option<Vec<&str>> = operands(command).iter().map(Word::literal).collect();
    literal.map_or(Contents::nothing(Opening::Opaque), |words| Contents::text(&words.join(" ")))
}

pub(super) fn trap(command: &SimpleCommand) -> Contents {
    match operands(command) {
        // One word may become an action and a signal.
        [action] if action.literal().is_none() => Contents::nothing(Opening::Opaque),
        [action, _, ..] if !matches!(action.text(), "-" | "-p" | "-l") => Contents::of_word(action),
        _ => Contents::nothing(Opening::Plain),
    }
}
