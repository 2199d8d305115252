//! Builtins of shells that run what they are told: another name for a command, or a text that they take for a number or for the
//! name of a variable.

use super::reader::is_name;
use super::{Word, is_dangerous_name, runs_as_number};

/// Operators that take their operands for numbers, and so run what stands in one.
const NUMBERS: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

/// A builtin that runs a command with this option, and else only lists.
const STARTS_WITH_X: &str = "jobs -x";

/// Whether a builtin is told another name for a command, or a text that it runs.
pub(super) fn is_told(name: &str, arguments: &[Word]) -> bool {
    let has = |letter: char| {
        arguments.iter().map(Word::text).any(|text| text.starts_with('-') && text.contains(letter))
    };
    match name {
        "alias" => arguments.iter().any(|word| word.literal().is_none_or(|text| text.contains('='))),
        "hash" => has('p'),
        // Makes variables of arguments that look like assignments.
        "set" => has('k') || arguments.iter().any(|word| word.text() == "keyword"),
        "mapfile" | "readarray" => has('C') || arguments.iter().any(may_be_code),
        "read" | "unset" | "getopts" | "wait" => arguments.iter().any(may_be_code),
        "printf" => prints_to(arguments).is_some_and(may_be_code),
        "declare" | "typeset" | "local" | "readonly" | "export" => {
            has('i') || has('n') || !arguments.iter().all(declares)
        }
        "test" | "[" | "[[" => {
            arguments.iter().filter_map(Word::literal).any(runs_as_number) || tests(name, arguments)
        }
        _ => STARTS_WITH_X.strip_suffix(" -x") == Some(name) && has('x'),
    }
}

/// Whether the word may be the name of a variable that changes what runs, or hold an index, which shells evaluate.
fn may_be_code(word: &Word) -> bool {
    match word {
        Word::Literal(text) => text.contains('[') || runs_as_number(text) || is_dangerous_name(text),
        Word::Expanding(_) => !is_number(word),
    }
}

/// The variable that `printf -v` sets; where its first argument is not known, that may be this option.
fn prints_to(arguments: &[Word]) -> Option<&Word> {
    let (first, rest) = arguments.split_first()?;
    match first.literal() {
        Some("-v") => rest.first(),
        Some(text) if !text.starts_with("-v") => None,
        _ => Some(first),
    }
}

/// Whether the word is an option, or the name of a variable with or without a value that is not evaluated.
fn declares(word: &Word) -> bool {
    let text = word.text();
    let name = text.split_once('=').map_or(text, |(name, _)| name.trim_end_matches('+'));
    let name = name.strip_prefix('"').filter(|_| word.literal().is_none()).unwrap_or(name);
    let known = text.starts_with(['-', '+']) || is_name(name);
    let is_whole = word.literal().map_or_else(|| text.contains('='), |text| !runs_as_number(text));
    known && is_whole
}

/// Whether a test may evaluate something that is not known: an operand as a number or as a name, or a word that becomes an operator.
fn tests(name: &str, arguments: &[Word]) -> bool {
    let evaluates = arguments.windows(2).any(|pair| match (pair[0].text(), pair[1].text()) {
        ("-v" | "-R", _) => may_be_code(&pair[1]),
        (operator, _) if NUMBERS.contains(&operator) => !is_number(&pair[1]),
        (_, operator) => NUMBERS.contains(&operator) && !is_number(&pair[0]),
    });
    let is_operator = |word: &Word| matches!(word.text(), "=" | "==");
    let unknown = |word: &Word| word.literal().is_none() && !is_number(word) && !is_operator(word);
    let several = arguments.iter().any(|word| unknown(word) && !is_one_word(word.text()))
        || arguments.windows(2).any(|pair| pair.iter().all(unknown));
    evaluates || (name != "[[" && several)
}

/// Whether it is a number whatever it expands to.
fn is_number(word: &Word) -> bool {
    match word {
        Word::Literal(text) => text.strip_prefix('-').unwrap_or(text).chars().all(|c| c.is_ascii_digit()),
        Word::Expanding(text) => matches!(text.trim_matches('"'), "$?" | "$#" | "$!" | "$$"),
    }
}

/// Whether a word that expands stays one: all of it stands in one pair of double quotes.
fn is_one_word(written: &str) -> bool {
    let inner = written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.is_some_and(|inner| !inner.contains(['"', '@']))
}
