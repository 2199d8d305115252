//! Cutting a text where it is too long, without leaving half a word at the cut.
//!
//! What is known to be secret is taken out later, by the edge, and it finds whole words alone. So a cut goes back to the last place
//! between two words, or drops as much as a long secret takes. A secret of several words is not thought of here.

/// How far is looked for a place between two words, and how much is dropped where there is none, in bytes.
pub(crate) const WORD_BYTES_MAX: usize = 512;
/// What stands where something was cut off.
const CUT: char = '…';

/// Whether it stands between words and not in one: what keys and tokens are made of does not.
fn between(character: char) -> bool {
    character.is_whitespace() || character.is_control() || "\"'`,;{}[]()<>".contains(character)
}

/// The beginning of a text, within so many bytes, with a mark where something is cut off.
pub(crate) fn clip(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let mut kept = head(text, bytes_max.saturating_sub(CUT.len_utf8())).to_owned();
    kept.push(CUT);
    kept
}

/// The beginning of a text, within so many bytes.
pub(crate) fn head(text: &str, bytes_max: usize) -> &str {
    let end = text.floor_char_boundary(bytes_max);
    if end == text.len() || text[end..].starts_with(between) {
        return &text[..end];
    }
    let far = text.floor_char_boundary(end.saturating_sub(WORD_BYTES_MAX));
    let end = text[far..end].rfind(between).map_or(far, |place| far + place);
    &text[..end]
}

/// The end of a text, within so many bytes.
pub(crate) fn tail(text: &str, bytes_max: usize) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(bytes_max));
    if start == 0 || text[..start].ends_with(between) {
        return &text[start..];
    }
    let far = text.ceil_char_boundary(start + WORD_BYTES_MAX);
    let start = text[start..far].find(between).map_or(far, |place| start + place);
    &text[start..]
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A secret without any form.
    pub(crate) const SECRET: &str = "tr0ub4dor/quite_plain.words=7319";

    /// Whether no part of the secret that would be worth anything is there.
    #[track_caller]
    pub(crate) fn holds_no_part(text: &str) {
        for start in 0..=SECRET.len() - 4 {
            assert!(!text.contains(&SECRET[start..start + 4]), "{text}");
        }
    }

    #[test]
    fn b12_no_half_word_stays_at_a_cut() {
        #[rustfmt::skip]
        let table = [
            ("one two three",    13, "one two three", "one two three"),
            ("one two three",     9, "one two",       "two three"),
            ("one two three",     7, "one two",       " three"),
            ("one two three",     5, "one",           "three"),
            ("{\"key\":\"abcd\"}", 11, "{\"key\":",   "\":\"abcd\"}"),
            ("äöü",               3, "",              ""),
            ("äöü",               6, "äöü",           "äöü"),
            ("",                  0, "",              ""),
        ];
        for (text, bytes_max, first, last) in table {
            assert_eq!((head(text, bytes_max), tail(text, bytes_max)), (first, last), "{text} {bytes_max}");
        }
        assert_eq!(clip("one two three", 12), "one two…");
        assert_eq!(clip("one two three", 13), "one two three");
        assert_eq!(clip(&clip("one two three", 12), 12), "one two…", "once is enough");
    }

    #[test]
    fn b12_where_there_is_no_place_between_words_as_much_as_a_secret_is_dropped() {
        let long = "x".repeat(2000);
        assert_eq!(head(&long, 1500).len(), 1500 - WORD_BYTES_MAX);
        assert_eq!(tail(&long, 1500).len(), 1500 - WORD_BYTES_MAX);
        assert_eq!((head(&long, 100), tail(&long, 100)), ("", ""));
    }

    proptest! {
        #[test]
        fn b12_a_secret_stays_whole_or_not_at_all(
            before in "[A-Z \"{é]{0,700}", after in "[A-Z \",ü]{0,700}", bytes_max in 0_usize..1500
        ) {
            let text = format!("{before} {SECRET} {after}");
            let part = |kept: &str| kept.replace(SECRET, "");
            prop_assert!(head(&text, bytes_max).len() <= bytes_max);
            prop_assert!(tail(&text, bytes_max).len() <= bytes_max);
            holds_no_part(&part(head(&text, bytes_max)));
            holds_no_part(&part(tail(&text, bytes_max)));
        }
    }
}
