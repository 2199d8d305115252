//! Where a continued text joins what was there: what the model says again is taken out.
//!
//! A model that is asked to go on often begins with the last words, the last sentence or the whole text once more. The
//! longest end of the text that the continuation begins with is such a repetition if it is long enough to be no accident.
//! The outcome depends on the two texts alone, not on how the continuation is cut into pieces. Words that are said again in
//! another way are not recognised.

/// How far back a repetition may begin, in bytes. One of the whole text is recognised however long it is.
pub const OVERLAP_MAX: usize = 8 * 1024;

/// How many letters and digits are no accident anywhere.
const PHRASE_LETTERS_MIN: usize = 12;

/// And how many of them are different, so that a drawn line is not taken for a phrase.
const PHRASE_DISTINCT_MIN: usize = 4;

/// How many letters are no accident for a whole text, or for the word in which the text was cut.
const WORD_LETTERS_MIN: usize = 4;

/// And how many of them are different, so that laughter is not taken for a word.
const WORD_DISTINCT_MIN: usize = 3;

/// A text that is being continued.
#[derive(Debug, Clone)]
pub struct Seam {
    text: String,
    /// Where a repetition may begin that the continuation follows so far.
    alive: Vec<usize>,
    /// Where the longest repetition begins that the continuation has said to its end.
    said: Option<usize>,
    /// The continuation, while it may still be a repetition.
    held: String,
}

impl Seam {
    /// The end of `text` as a seam.
    pub fn new(text: String) -> Self {
        let alive = beginnings(&text);
        Seam { text, alive, said: None, held: String::new() }
    }

    /// Takes a piece of the continuation. `None` while nothing in it is known to be new; else all that is new so far, and the
    /// seam is over.
    pub fn push(&mut self, piece: &str) -> Option<String> {
        let text = self.text.as_bytes();
        for (at, byte) in (self.held.len()..).zip(piece.bytes()) {
            let mut said = self.said;
            self.alive.retain(|&begin| {
                let whole = begin + at == text.len();
                if whole && said.is_none_or(|longest| begin < longest) {
                    said = Some(begin);
                }
                !whole && text[begin + at] == byte
            });
            self.said = said;
            if self.alive.is_empty() {
                break;
            }
        }
        self.held.push_str(piece);
        if self.alive.is_empty() { self.end() } else { None }
    }

    /// The continuation is over, or something else comes: what is new of it, if anything.
    pub fn end(&mut self) -> Option<String> {
        let text = self.text.len();
        // What has just been said to its end has not been looked at with a next byte.
        let just_said = self.alive.iter().copied().filter(|begin| begin + self.held.len() == text).min();
        let begin = self.said.into_iter().chain(just_said).min();
        let repeated = begin.map_or(0, |begin| text - begin);
        self.alive.clear();
        let mut new = std::mem::take(&mut self.held);
        new.drain(..repeated);
        (!new.is_empty()).then_some(new)
    }
}

/// Where in `text` a repetition may begin: wherever the rest of it is no accident.
fn beginnings(text: &str) -> Vec<usize> {
    let window = text.len().saturating_sub(OVERLAP_MAX);
    let cut_in_word = text.chars().next_back().is_some_and(char::is_alphanumeric);
    let mut found = Vec::new();
    let mut distinct = Vec::with_capacity(PHRASE_DISTINCT_MIN);
    let (mut letters, mut alphabetic) = (0_usize, 0_usize);
    let mut chars = text.char_indices().rev().peekable();
    while let Some((at, char)) = chars.next() {
        if char.is_alphanumeric() {
            letters += 1;
            alphabetic += usize::from(char.is_alphabetic());
            if distinct.len() < PHRASE_DISTINCT_MIN && !distinct.contains(&char) {
                distinct.push(char);
            }
        }
        let phrase = letters >= PHRASE_LETTERS_MIN && distinct.len() >= PHRASE_DISTINCT_MIN;
        let word_begins =
            char.is_alphanumeric() && chars.peek().is_none_or(|(_, before)| !before.is_alphanumeric());
        let word = alphabetic >= WORD_LETTERS_MIN
            && distinct.len() >= WORD_DISTINCT_MIN
            && (at == 0 || (cut_in_word && word_begins));
        if (phrase || word) && (at >= window || at == 0) {
            found.push(at);
        }
    }
    found
}
