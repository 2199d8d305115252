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

/// Whether the word may be the name of a variable that changes what runs, or hold an index, which shells evaluate. The name may
/// stand right behind the letter of an option.
fn may_be_code(word: &Word) -> bool {
    match word {
        Word::Literal(text) => {
            let mut behind_letters = text.char_indices().filter(|_| text.starts_with('-'));
            let is_dangerous = behind_letters.any(|(at, _)| is_dangerous_name(&text[at..]));
            text.contains('[') || runs_as_number(text) || is_dangerous || is_dangerous_name(text)
        }
        Word::Expanding(_) => !is_number(word),
    }
}

/// The variable that `printf -v` sets; where its first argument is not known, that may be this option.
fn prints_to(arguments: &[Word]) -> Option<&Word> {
    let (first, rest) = arguments.split_first()?;
    match first.literal() {
        Some("-v") => rest.first(),
        // Attached, which `may_be_code` knows.
        Some(text) if !text.starts_with("-v") => None,
        _ => Some(first),
    }
}

/// Whether the word is an option, or the name of a variable with or without a value that is not evaluated.
fn declares(word: &Word) -> bool {
    let text = word.text();
    let name = text.split_once('=').map_or(text, |(name, _)| name.trim_end_matches('+'));
    let known = text.starts_with(['-', '+']) || is_name(unquoted(word, name));
    // A value that becomes several words becomes further variables.
    let is_one = || word.is_one_word() || text.split_once('=').is_some_and(|(_, value)| stays_one(value));
    let is_whole =
        word.literal().map_or_else(|| text.contains('=') && is_one(), |text| !runs_as_number(text));
    known && is_whole
}

/// Whether the value of a variable, as written, stays one word.
fn stays_one(value: &str) -> bool {
    !value.contains(['$', '`']) || Word::Expanding(value.to_owned()).is_one_word()
}

/// The name of a variable without the quote that begins the word.
pub(super) fn unquoted<'a>(word: &Word, name: &'a str) -> &'a str {
    name.strip_prefix('"').filter(|_| word.literal().is_none()).unwrap_or(name)
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
    let several = arguments.iter().any(|word| unknown(word) && !word.is_one_word())
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
