//! Texts of others on a terminal: what it would obey, and what nobody would see, is shown and not sent.

use std::io::IsTerminal;
use std::ops::RangeInclusive;

/// The text over as many lines as it has; for data that is a text, and for what was laid out here.
pub fn printable(text: &str) -> String {
    escaped(text, |character| hidden(character) && character != '\n' && character != '\t')
}

/// The text on one line, so that nothing in it passes for a further line of ours.
pub fn one_line(text: &str) -> String {
    escaped(text, hidden)
}

/// JSON for standard output: on a terminal, the same JSON in characters that it does not obey.
pub(super) fn json_for_stdout(json: String) -> String {
    if std::io::stdout().is_terminal() { json_printable(&json) } else { json }
}

/// The same JSON with everything escaped that nobody would see on a terminal and JSON leaves as it is. Such characters are only
/// ever inside its strings; the line breaks between its values stay.
pub(crate) fn json_printable(json: &str) -> String {
    let mut clean = String::with_capacity(json.len());
    for character in json.chars() {
        if hidden(character) && !character.is_ascii_whitespace() {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                clean.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            clean.push(character);
        }
    }
    clean
}

fn escaped(text: &str, escapes: impl Fn(char) -> bool) -> String {
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        if escapes(character) {
            clean.extend(character.escape_default());
        } else {
            clean.push(character);
        }
    }
    clean
}

/// What a terminal obeys or shows nothing of: control characters, the line separators and the format characters of Unicode,
/// fillers, and the selectors that no ordinary text holds.
fn hidden(character: char) -> bool {
    character.is_control() || (!character.is_ascii() && HIDDEN.iter().any(|range| range.contains(&character)))
}

const HIDDEN: [RangeInclusive<char>; 24] = [
    '\u{ad}'..='\u{ad}',
    '\u{34f}'..='\u{34f}',
    '\u{600}'..='\u{605}',
    '\u{61c}'..='\u{61c}',
    '\u{6dd}'..='\u{6dd}',
    '\u{70f}'..='\u{70f}',
    '\u{890}'..='\u{891}',
    '\u{8e2}'..='\u{8e2}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{200b}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{3164}'..='\u{3164}',
    '\u{feff}'..='\u{feff}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{fff0}'..='\u{fffb}',
    '\u{110bd}'..='\u{110bd}',
    '\u{110cd}'..='\u{110cd}',
    '\u{13430}'..='\u{1343f}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0000}'..='\u{e0fff}',
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "test code")]

    use serde_json::{Value, json};

    use super::*;

    const NASTY: &str = "a\u{1b}[2J\u{7f}\u{85}\u{9b}\u{202e}\u{2069}\u{2028}\r\n\terror[X]: é";

    #[test]
    fn a_text_keeps_its_lines_and_one_line_has_none() {
        let shown = "a\\u{1b}[2J\\u{7f}\\u{85}\\u{9b}\\u{202e}\\u{2069}\\u{2028}\\r";
        assert_eq!(printable(NASTY), format!("{shown}\n\terror[X]: é"));
        assert_eq!(one_line(NASTY), format!("{shown}\\n\\terror[X]: é"));
    }

    #[test]
    fn what_nobody_would_see_is_shown() {
        let unseen = ['\u{ad}', '\u{200b}', '\u{200d}', '\u{2060}', '\u{3164}', '\u{feff}', '\u{e0041}'];
        for character in unseen {
            let shown = format!("a{}b", character.escape_unicode());
            assert_eq!(one_line(&format!("a{character}b")), shown);
            assert_eq!(printable(&format!("a{character}b")), shown);
        }
        assert_eq!(printable("naïve – 日本 🙂"), "naïve – 日本 🙂");
    }

    #[test]
    fn json_stays_the_same_json() {
        let data = json!({NASTY: [NASTY, "\\u{9b}\\\u{9b}\u{200b}\u{e0041}", 1]});
        for json in [data.to_string(), format!("{data:#}")] {
            let clean = json_printable(&json);
            assert!(!clean.contains(|character| hidden(character) && character != '\n'), "{clean:?}");
            assert_eq!(serde_json::from_str::<Value>(&clean).unwrap(), data);
        }
        assert_eq!(json_printable("\"\u{7f}\u{9b}\u{202e}é\""), r#""\u007f\u009b\u202eé""#);
    }
}
