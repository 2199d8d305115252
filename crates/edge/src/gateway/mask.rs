//! A provider's key in what comes back from it, however that is cut.
//!
//! A known value is masked byte for byte, so that lengths stay as they are, and nothing else is touched: an agent shall get what its
//! provider said. Whatever may still become the key is held back; since no key holds a line break, that is never the end of an event.

use std::sync::Arc;

use memchr::memmem::Finder;
use runyard_redact::KNOWN_ALONE_MIN;
use serde_json::json;
use zeroize::{Zeroize, Zeroizing};

use crate::Secret;

/// What stands where a byte of the key was.
const MASKED: u8 = b'*';

/// The key in the forms that it may come back in: as it is, and as JSON writes it, with or without escaped slashes.
#[derive(Clone)]
pub(super) struct Forms(Arc<Vec<Zeroizing<Vec<u8>>>>);

impl Forms {
    /// A key that is no more than a word is not looked for: it would be found in every other sentence.
    pub(super) fn of(key: &Secret) -> Self {
        let mut forms = Vec::new();
        if key.expose().len() >= KNOWN_ALONE_MIN {
            forms.push(Zeroizing::new(key.expose().to_vec()));
            let quoted = Zeroizing::new(key.text().map(|text| json!(text).to_string()).unwrap_or_default());
            let in_json =
                quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_default();
            for form in [in_json.to_owned(), in_json.replace('/', "\\/")] {
                let form = Zeroizing::new(form.into_bytes());
                if !form.is_empty() && !forms.contains(&form) {
                    forms.push(form);
                }
            }
        }
        Forms(Arc::new(forms))
    }

    pub(super) fn mask(&self) -> Mask {
        Mask { forms: self.clone(), held: Vec::new() }
    }

    /// Whether the key is in it.
    pub(super) fn are_in(&self, bytes: &[u8]) -> bool {
        self.0.iter().any(|form| Finder::new(form.as_slice()).find(bytes).is_some())
    }
}

/// A text in pieces, on its way through.
pub(super) struct Mask {
    forms: Forms,
    held: Vec<u8>,
}

impl Mask {
    /// Takes the next piece, and gives what is settled.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = std::mem::take(&mut self.held);
        out.extend_from_slice(bytes);
        for form in self.forms.0.iter() {
            let found: Vec<usize> = Finder::new(form.as_slice()).find_iter(&out).collect();
            for at in found {
                out[at..at + form.len()].fill(MASKED);
            }
        }
        let unsettled = self.forms.0.iter().map(|form| begun(form, &out)).max().unwrap_or_default();
        self.held = out.split_off(out.len() - unsettled);
        out
    }

    /// Ends the text, and gives the rest.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

impl Drop for Mask {
    fn drop(&mut self) {
        self.held.zeroize();
    }
}

/// How much of the end may be the beginning of the form.
fn begun(form: &[u8], text: &[u8]) -> usize {
    let longest = text.len().min(form.len() - 1);
    (1..=longest).rev().find(|length| form.starts_with(&text[text.len() - length..])).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-sk-Sorrel/64";

    fn masked(forms: &Forms, pieces: &[&[u8]]) -> String {
        let mut mask = forms.mask();
        let mut out = Vec::new();
        for piece in pieces {
            out.extend(mask.push(piece));
        }
        out.extend(mask.finish());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn b11_the_key_is_masked_however_the_text_is_cut() {
        let forms = Forms::of(&Secret::new(KEY.into()));
        let text = format!("a {KEY} b {KEY}{KEY} sk-{KEY} {} sk-sk-Sorrel/6", KEY.replace('/', "\\/"));
        let stars = |length| "*".repeat(length);
        let (one, slashed) = (stars(KEY.len()), stars(KEY.len() + 1));
        let expected = format!("a {one} b {one}{one} sk-{one} {slashed} sk-sk-Sorrel/6");
        assert_eq!(masked(&forms, &[text.as_bytes()]), expected);
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(masked(&forms, &bytes), expected);
        for at in 0..=text.len() {
            let (first, second) = text.as_bytes().split_at(at);
            assert_eq!(masked(&forms, &[first, second]), expected, "cut at {at}");
        }
    }

    #[test]
    fn nothing_is_held_back_at_the_end_of_a_line() {
        let mut mask = Forms::of(&Secret::new(KEY.into())).mask();
        assert_eq!(mask.push(b"data: sk-\n\n"), b"data: sk-\n\n");
        assert_eq!(mask.push(b"data: sk-"), b"data: ");
        assert_eq!(mask.push(b"\n\n"), b"sk-\n\n");
    }

    #[test]
    fn a_key_that_is_a_word_is_left_alone_and_one_of_eight_bytes_is_not() {
        let check =
            |key: &str| masked(&Forms::of(&Secret::new(key.into())), &[format!("no {key}!").as_bytes()]);
        assert_eq!(check("no-key1"), "no no-key1!");
        assert_eq!(check("no-key12"), "no ********!");
        assert_eq!(check(""), "no !");
    }
}
