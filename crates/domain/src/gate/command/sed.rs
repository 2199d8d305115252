//! Scripts of `sed` that only edit what goes through. What reads or writes a further file or runs a command is told apart, not read.

use std::iter::Peekable;
use std::str::Chars;

use super::Word;

const FLAGS: &str = "nErsuz";

#[rustfmt::skip]
const LONG: [&str; 10] = [
    "--quiet", "--silent", "--regexp-extended", "--separate", "--unbuffered", "--null-data", "--posix", "--sandbox",
    "--version", "--help",
];

/// Whether `sed` with these arguments surely does no more than edit.
pub(super) fn only_edits(arguments: &[Word]) -> bool {
    edits(arguments).is_some()
}

fn edits(arguments: &[Word]) -> Option<()> {
    let mut is_scripted = false;
    let mut has_suffix_next = false;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let text = match word.literal() {
            Some(text) => text,
            None if is_scripted && !word.may_choose() => continue,
            None => return None,
        };
        if let Some(long) = text.strip_prefix("--") {
            match long.split_once('=').unwrap_or((long, "")) {
                ("expression", "") => script(words.next()?.literal()?)?,
                ("expression", text) => script(text)?,
                ("in-place", suffix) => is_suffix(suffix).then_some(())?,
                _ => LONG.contains(&text).then_some(())?,
            }
            is_scripted |= long.starts_with("expression");
        } else if text.starts_with('-') && text.len() > 1 {
            match text.trim_start_matches(['-']).trim_start_matches(|c| FLAGS.contains(c)).split_at_checked(1)
            {
                None => {}
                Some(("i", suffix)) => {
                    is_suffix(suffix).then_some(())?;
                    has_suffix_next = suffix.is_empty();
                }
                Some(("e", "")) => (script(words.next()?.literal()?)?, is_scripted = true).0,
                Some(("e", text)) => (script(text)?, is_scripted = true).0,
                _ => return None,
            }
        } else if !is_scripted {
            script(text)?;
            // Elsewhere than with GNU this is the suffix of `-i`, and the script comes next.
            is_scripted = !(has_suffix_next && text.is_empty());
        }
    }
    Some(())
}

/// Whether what `-i` calls the old file lies beside it.
fn is_suffix(text: &str) -> bool {
    !text.contains(['/', '*'])
}

/// Reads a script as long as its commands only edit.
fn script(text: &str) -> Option<()> {
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' | ';' | '{' | '}' | '!' | ',' | '$' | '~' | '+' | '0'..='9' => {}
            '#' => drop(rest_of_line(&mut chars)),
            '/' => {
                between(&mut chars, '/')?;
                while chars.next_if(|c| matches!(c, 'I' | 'M')).is_some() {}
            }
            'p' | 'P' | 'd' | 'D' | 'q' | 'Q' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | 'l' | '=' | 'z' => {
            }
            's' | 'y' => {
                let delimiter = chars.next().filter(|c| c.is_ascii_punctuation() && !"\\[]".contains(*c))?;
                between(&mut chars, delimiter)?;
                between(&mut chars, delimiter)?;
                while chars
                    .next_if(|flag| matches!(flag, 'g' | 'p' | 'i' | 'I' | 'M' | 'm' | '0'..='9'))
                    .is_some()
                {}
                ends(&mut chars)?;
            }
            // Text that goes on in the next line.
            'a' | 'i' | 'c' => (!rest_of_line(&mut chars).trim_end().ends_with('\\')).then_some(())?,
            ':' | 'b' | 't' | 'T' => {
                while chars.next_if_eq(&' ').is_some() {}
                while chars.next_if(|c| c.is_alphanumeric()).is_some() {}
                ends(&mut chars)?;
            }
            _ => return None,
        }
    }
    Some(())
}

fn rest_of_line(chars: &mut Peekable<Chars<'_>>) -> String {
    std::iter::from_fn(|| chars.next_if(|c| *c != '\n')).collect()
}

/// Whether a command ends here.
fn ends(chars: &mut Peekable<Chars<'_>>) -> Option<()> {
    chars.peek().is_none_or(|c| matches!(c, ' ' | '\t' | '\n' | ';' | '}')).then_some(())
}

/// Reads up to the delimiter. Where it stands in a list of characters, not every `sed` ends there; nor does every list end with the
/// first bracket.
fn between(chars: &mut Peekable<Chars<'_>>, delimiter: char) -> Option<()> {
    let mut is_in_list = false;
    loop {
        match chars.next()? {
            c if c == delimiter => return (!is_in_list).then_some(()),
            '\\' => drop(chars.next()?),
            '[' if is_in_list => class(chars, delimiter)?,
            '[' => {
                is_in_list = true;
                chars.next_if_eq(&'^');
                chars.peek().is_none_or(|c| *c != ']').then_some(())?;
            }
            ']' => is_in_list = false,
            _ => {}
        }
    }
}

/// Reads a class such as `[:alpha:]` in a list, after its bracket.
fn class(chars: &mut Peekable<Chars<'_>>, delimiter: char) -> Option<()> {
    chars.next_if(|c| *c == ':' && delimiter != ':')?;
    while chars.next_if(char::is_ascii_lowercase).is_some() {}
    (chars.next()? == ':' && chars.next()? == ']').then_some(())
}
