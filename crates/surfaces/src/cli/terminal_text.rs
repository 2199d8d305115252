//! Texts of others on a terminal: what it would obey is shown, not sent.

use std::io::IsTerminal;

/// The text over as many lines as it has; for data that is a text, and for what was laid out here.
pub fn printable(text: &str) -> String {
    escaped(text, |character| obeyed(character) && character != '\n' && character != '\t')
}

/// The text on one line, so that nothing in it passes for a further line of ours.
pub fn one_line(text: &str) -> String {
    escaped(text, obeyed)
}

/// JSON for standard output: on a terminal, the same JSON in characters that it does not obey.
pub(super) fn json_for_stdout(json: String) -> String {
    if std::io::stdout().is_terminal() { json_printable(&json) } else { json }
}

/// The same JSON with everything escaped that a terminal would obey and JSON leaves as it is. Such characters are only
/// ever inside its strings; the line breaks between its values stay.
pub(super) fn json_printable(json: &str) -> String {
    let mut clean = String::with_capacity(json.len());
    for character in json.chars() {
        if obeyed(character) && !character.is_ascii_whitespace() {
            clean.push_str(&format!("\\u{:04x}", u32::from(character)));
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

/// Control characters, direction marks and the line separators of Unicode; all within four hexadecimal digits.
fn obeyed(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

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
    fn json_stays_the_same_json() {
        let data = json!({NASTY: [NASTY, "\\u{9b}\\\u{9b}", 1]});
        for json in [data.to_string(), format!("{data:#}")] {
            let clean = json_printable(&json);
            assert!(!clean.contains(|character| obeyed(character) && character != '\n'), "{clean:?}");
            assert_eq!(serde_json::from_str::<Value>(&clean).unwrap(), data);
        }
        assert_eq!(json_printable("\"\u{7f}\u{9b}\u{202e}é\""), r#""\u007f\u009b\u202eé""#);
    }
}
