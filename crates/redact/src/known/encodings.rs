//! The forms in which a secret value is written down.
//!
//! Every pattern is given as it looks without line breaks and the indentation after them, because that is how texts are
//! looked at: a value that was wrapped at any column is then found like any other.

use std::collections::BTreeSet;

use super::KNOWN_ALONE_MIN;
use crate::colours;

/// Longer patterns are looked for in pieces of about this length, so that little has to be held back.
pub(crate) const PIECE_MAX: usize = 1024;
/// A line of a value with several is looked for alone from this length on, as it stands in a diff or a quotation.
const LINE_MIN: usize = 16;
/// Line breaks and indentation are passed over up to this many bytes in a row; then they count as one line feed.
pub(crate) const GAP_MAX: usize = 32;

/// All the patterns of a value, for one way of looking at a text.
pub(super) fn of(value: &[u8], look: Look) -> BTreeSet<Vec<u8>> {
    let mut found = BTreeSet::new();
    // The blanks of a PEM header are never where it is wrapped, and keys are common: they are not worth a second look.
    let has_blanks =
        |line: &[u8]| !line.starts_with(b"-----") && line.iter().any(|byte| matches!(byte, b' ' | b'\t'));
    if look == Look::WithIndentation && !value.split(|byte| *byte == b'\n').any(has_blanks) {
        return found;
    }
    let mut add_plain = |form: Vec<u8>| {
        if look == Look::WithIndentation && !form.iter().any(|byte| matches!(byte, b' ' | b'\t')) {
            return;
        }
        let flat = flattened(&form, look);
        // Behind or before somebody else's backslash, its first letter or last backslash would be taken for an escape.
        let inner = flat.strip_prefix(b"n").or(flat.strip_prefix(b"r")).unwrap_or(&flat);
        let trimmed = inner.len() - inner.iter().rev().take_while(|byte| **byte == b'\\').count();
        if (KNOWN_ALONE_MIN..flat.len()).contains(&trimmed) && trimmed <= PIECE_MAX {
            found.insert(inner[..trimmed].to_vec());
        }
        let pieces = flat.len().div_ceil(PIECE_MAX).max(1);
        // A backslash and a letter are taken for a line break, unless a line was wrapped between them.
        let kept = flattened_but_escapes(&form, look);
        if kept.len() >= flat.len() && (KNOWN_ALONE_MIN..=PIECE_MAX).contains(&kept.len()) {
            found.insert(kept);
        }
        for piece in flat.chunks(flat.len().div_ceil(pieces).max(1)) {
            if piece.len() >= KNOWN_ALONE_MIN {
                found.insert(piece.to_vec());
            }
        }
    };
    let mut add = |form: Vec<u8>| {
        // Texts are looked at without colours.
        if colours::next_start(&form).is_some() {
            let plain = colours::without(&form);
            if plain != form {
                add_plain(plain);
            }
        }
        add_plain(form);
    };
    add(value.to_vec());
    for line in value.split(|byte| *byte == b'\n' || *byte == b'\r') {
        let line = line.trim_ascii();
        if line.len() >= LINE_MIN && !line.starts_with(b"-----") {
            add(line.to_vec());
        }
    }
    // A file's last line break is seldom part of what is encoded, and sometimes is.
    let trimmed = value.trim_ascii();
    for value in if trimmed.len() == value.len() { vec![value] } else { vec![value, trimmed] } {
        encoded(value).into_iter().for_each(&mut add);
        escaped(value).into_iter().for_each(&mut add);
    }
    found
}

/// In base64, in hexadecimal digits, and as addresses escape it.
fn encoded(value: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for alphabet in [BASE64, BASE64_URL] {
        for form in (0..3).flat_map(|alignment| base64_inside(value, alignment, alphabet)) {
            // In the query of an address.
            forms.push(replaced(&form, &[(b'+', b"%2B"), (b'/', b"%2F"), (b'=', b"%3D")]));
            forms.push(replaced(&form, &[(b'+', b"%2b"), (b'/', b"%2f"), (b'=', b"%3d")]));
            forms.push(form);
        }
    }
    for digits in [b"0123456789abcdef", b"0123456789ABCDEF"] {
        forms.push(hex(value, digits));
        let bytes: Vec<Vec<u8>> = value.iter().map(|byte| hex(&[*byte], digits)).collect();
        forms.push(bytes.join(&b':'));
        forms.push(bytes.join(&b' '));
        forms.push(bytes.iter().flat_map(|byte| [br"\x", &byte[..]].concat()).collect());
    }
    for form in percent_encoded(value) {
        // An address in the query of an address.
        forms.push(replaced(&form, &[(b'%', b"%25")]));
        forms.push(form);
    }
    forms
}

/// How a text is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Look {
    /// Without line breaks and the indentation after them: what was wrapped is found wherever it was put.
    #[default]
    WithoutIndentation,
    /// Without line breaks only. A value that has blanks of its own may have been wrapped right before one, which would
    /// then be taken for indentation.
    WithIndentation,
    /// Without line breaks, the mark of a diff at the start of each line, and indentation.
    WithoutDiffMarks,
}

/// What is left of a text when line breaks are passed over.
pub(crate) fn flattened(text: &[u8], look: Look) -> Vec<u8> {
    let mut flat = Vec::with_capacity(text.len());
    let mut gap = Gap::new(look);
    let mut take = |step| match step {
        Step::Kept(byte) => flat.push(byte),
        Step::Passed => {}
        Step::Break => flat.push(b'\n'),
    };
    text.iter().for_each(|byte| gap.step(*byte, &mut take));
    gap.finish(&mut take);
    let from = flat.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'\n')).unwrap_or(flat.len());
    flat.drain(..from);
    while flat.last() == Some(&b'\n') {
        flat.pop();
    }
    flat
}

/// The same with escapes of line breaks kept as they are.
fn flattened_but_escapes(text: &[u8], look: Look) -> Vec<u8> {
    let parts = text.split(|byte| *byte == b'\\').map(|part| flattened(part, look));
    parts.collect::<Vec<_>>().join(&b'\\')
}

/// Where a text stands between lines. The start of a text is like the middle of a line.
///
/// A line break may also be written as an escape, `\n` or `\r` behind one or more backslashes: that is how wrapped text
/// looks in a string of JSON, or in a string inside a string.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gap {
    look: Look,
    passed: usize,
    /// The byte before was a line feed.
    line_starts: bool,
    /// Backslashes that may be the start of such an escape.
    backslashes: usize,
}

/// What becomes of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Kept(u8),
    Passed,
    Break,
}

/// More backslashes than this are no escape any more.
const BACKSLASHES_MAX: usize = 8;

impl Gap {
    pub(crate) fn new(look: Look) -> Self {
        Gap { look, ..Gap::default() }
    }

    pub(crate) fn look(self) -> Look {
        self.look
    }

    /// Whether the next byte is more than the next of a line.
    pub(crate) fn is_open(self) -> bool {
        self.passed > 0 || self.backslashes > 0
    }

    /// Takes a byte, and tells what becomes of the bytes that are settled by it, in their order.
    pub(crate) fn step(&mut self, byte: u8, tell: &mut impl FnMut(Step)) {
        match byte {
            b'\\' => {
                self.line_starts = false;
                self.backslashes += 1;
                if self.backslashes > BACKSLASHES_MAX {
                    self.finish(tell);
                }
            }
            b'n' | b'r' if self.backslashes > 0 => {
                for _ in 0..=std::mem::take(&mut self.backslashes) {
                    self.pass(tell);
                }
            }
            _ => {
                self.finish(tell);
                let is_mark = self.line_starts && self.look == Look::WithoutDiffMarks;
                self.line_starts = byte == b'\n';
                let passes = match byte {
                    b'\n' | b'\r' => true,
                    b'+' | b'-' => is_mark,
                    b' ' | b'\t' => self.passed > 0 && self.look != Look::WithIndentation,
                    _ => false,
                };
                if passes {
                    self.pass(tell);
                } else {
                    self.passed = 0;
                    tell(Step::Kept(byte));
                }
            }
        }
    }

    /// Tells that what was waited for did not come.
    pub(crate) fn finish(&mut self, tell: &mut impl FnMut(Step)) {
        for _ in 0..std::mem::take(&mut self.backslashes) {
            self.passed = 0;
            tell(Step::Kept(b'\\'));
        }
    }

    fn pass(&mut self, tell: &mut impl FnMut(Step)) {
        self.passed += 1;
        tell(if self.passed == GAP_MAX { Step::Break } else { Step::Passed });
    }
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64_URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Base64 of a text in which the value stands after `alignment` other bytes: the characters that depend on the value
/// alone, and the same up to the end of the text, if the value is its end.
fn base64_inside(value: &[u8], alignment: usize, alphabet: &[u8; 64]) -> Vec<Vec<u8>> {
    let mut bytes = vec![0; alignment];
    bytes.extend_from_slice(value);
    let bits = bytes.len() * 8;
    let digit = |index: usize| {
        let value = (0..6).fold(0u8, |value, bit| {
            let at = index * 6 + bit;
            let set = at < bits && bytes[at / 8] >> (7 - at % 8) & 1 == 1;
            value * 2 + u8::from(set)
        });
        alphabet[usize::from(value)]
    };
    let (first, whole, all) = ((alignment * 8).div_ceil(6), bits / 6, bits.div_ceil(6));
    let inside: Vec<u8> = (first..whole).map(digit).collect();
    if whole == all {
        return vec![inside];
    }
    let mut at_the_end: Vec<u8> = (first..all).map(digit).collect();
    let unpadded = at_the_end.clone();
    while !(first + at_the_end.len()).is_multiple_of(4) {
        at_the_end.push(b'=');
    }
    vec![inside, unpadded, at_the_end]
}

fn hex(value: &[u8], digits: &[u8; 16]) -> Vec<u8> {
    value.iter().flat_map(|byte| [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]).collect()
}

/// What common encoders leave as it is, besides letters and digits.
const LEFT_BY_PERCENT_ENCODERS: [&[u8]; 8] = [
    b"-_.!~*'()",            // encodeURIComponent
    b"-_.~",                 // RFC 3986
    b"-_.~/",                // Python's quote
    b"*-._",                 // forms
    b"-_.",                  // PHP's urlencode
    b"-_.!~*'();,/?:@&=+$#", // encodeURI
    b"-_.!~*'()$&+,%",       // the user name and password of a URL
    b"",
];

fn percent_encoded(value: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for digits in [b"0123456789ABCDEF", b"0123456789abcdef"] {
        let encode = |keep: &dyn Fn(u8) -> bool, space: &[u8]| {
            let mut form = Vec::with_capacity(value.len() * 3);
            for byte in value {
                match byte {
                    b' ' if !space.is_empty() => form.extend_from_slice(space),
                    byte if keep(*byte) => form.push(*byte),
                    byte => {
                        form.push(b'%');
                        form.extend_from_slice(&hex(&[*byte], digits));
                    }
                }
            }
            form
        };
        for left in LEFT_BY_PERCENT_ENCODERS {
            let keep = |byte: u8| byte.is_ascii_alphanumeric() || left.contains(&byte);
            forms.push(encode(&keep, b""));
            if value.contains(&b' ') {
                forms.push(encode(&keep, b"+"));
            }
        }
        forms.push(encode(&|_| false, b""));
    }
    forms
}

/// As strings of JSON (once and twice), of shells, and of XML.
fn escaped(value: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![
        replaced(value, &[(b'\'', br"'\''")]),
        replaced(value, &[(b'\'', br#"'"'"'"#)]),
        replaced(value, &[(b'\\', br"\\"), (b'"', b"\\\""), (b'$', br"\$"), (b'`', b"\\`")]),
        replaced(value, &[(b'&', b"&amp;"), (b'<', b"&lt;"), (b'>', b"&gt;")]),
        value.iter().fold(Vec::new(), |mut form, byte| {
            if byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"_-./:,+@%".contains(byte) {
                form.push(b'\\');
            }
            form.push(*byte);
            form
        }),
    ];
    for double in [&b"&quot;"[..], b"&#34;", b"\""] {
        for single in [&b"&#39;"[..], b"&#x27;", b"&apos;", b"'"] {
            let table =
                [(b'&', &b"&amp;"[..]), (b'<', b"&lt;"), (b'>', b"&gt;"), (b'"', double), (b'\'', single)];
            forms.push(replaced(value, &table));
        }
    }
    let Ok(text) = std::str::from_utf8(value) else { return forms };
    for style in JsonStyle::ALL {
        let once = json_escaped(text, style);
        // Text inside a string inside a string: the second writer has only backslashes and quotes left to escape.
        let twice = replaced(&once, &[(b'\\', br"\\"), (b'"', b"\\\"")]);
        forms.push(replaced(&twice, &[(b'\\', br"\\"), (b'"', b"\\\"")]));
        forms.push(twice);
        forms.push(once);
    }
    forms
}

fn replaced(value: &[u8], table: &[(u8, &[u8])]) -> Vec<u8> {
    value.iter().fold(Vec::with_capacity(value.len()), |mut form, byte| {
        match table.iter().find(|(from, _)| from == byte) {
            Some((_, to)) => form.extend_from_slice(to),
            None => form.push(*byte),
        }
        form
    })
}

/// The freedoms that writers of JSON take.
#[derive(Clone, Copy)]
struct JsonStyle {
    slash: bool,
    /// Written as `\uXXXX` although they need not be.
    wary: &'static str,
    ascii: bool,
    upper: bool,
    /// Everything as `\uXXXX`.
    all: bool,
}

impl JsonStyle {
    const PLAIN: JsonStyle = JsonStyle { slash: false, wary: "", ascii: false, upper: false, all: false };
    const GO: JsonStyle = JsonStyle { wary: "<>&\u{2028}\u{2029}", ..JsonStyle::PLAIN };
    const HTML: JsonStyle = JsonStyle { wary: "<>&'\u{2028}\u{2029}", ..JsonStyle::PLAIN };
    const PHP: JsonStyle = JsonStyle { wary: "<>&'\"", ascii: true, upper: true, ..JsonStyle::PLAIN };
    const NET: JsonStyle = JsonStyle { wary: "<>&'\"+`", ascii: true, upper: true, ..JsonStyle::PLAIN };
    const ALL: [JsonStyle; 15] = [
        JsonStyle::PLAIN,
        JsonStyle { upper: true, ..JsonStyle::PLAIN },
        JsonStyle { slash: true, ..JsonStyle::PLAIN },
        JsonStyle::GO,
        JsonStyle { ascii: true, ..JsonStyle::GO },
        JsonStyle::HTML,
        JsonStyle { upper: true, ..JsonStyle::HTML },
        JsonStyle::PHP,
        JsonStyle::NET,
        JsonStyle { upper: false, ..JsonStyle::NET },
        JsonStyle { ascii: true, ..JsonStyle::PLAIN },
        JsonStyle { ascii: true, upper: true, ..JsonStyle::PLAIN },
        JsonStyle { ascii: true, slash: true, ..JsonStyle::PLAIN },
        JsonStyle { all: true, ..JsonStyle::PLAIN },
        JsonStyle { all: true, upper: true, ..JsonStyle::PLAIN },
    ];
}

fn json_escaped(text: &str, style: JsonStyle) -> Vec<u8> {
    let mut form = Vec::with_capacity(text.len());
    for character in text.chars() {
        let short = match character {
            '"' if !style.wary.contains('"') => Some(b'"'),
            '\\' => Some(b'\\'),
            '\n' => Some(b'n'),
            '\r' => Some(b'r'),
            '\t' => Some(b't'),
            '\u{8}' => Some(b'b'),
            '\u{c}' => Some(b'f'),
            '/' if style.slash => Some(b'/'),
            _ => None,
        };
        let escapes = style.all
            || character < ' '
            || style.wary.contains(character)
            || (style.ascii && character > '~');
        match short {
            Some(short) if !style.all => form.extend_from_slice(&[b'\\', short]),
            _ if escapes => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let digits =
                        if style.upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") };
                    form.extend_from_slice(digits.as_bytes());
                }
            }
            _ => form.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    form
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &str, form: &str) {
        let forms = of(value.as_bytes(), Look::WithoutIndentation);
        assert!(forms.contains(&flattened(form.as_bytes(), Look::default())), "{form} is no form of {value}");
    }

    #[test]
    fn a_value_is_known_in_every_form() {
        check("pass word/1+?", "pass word/1+?");
        check("pass word/1+?", "cGFzcyB3b3JkLzErPw==");
        check("pass word/1+?", "cGFzcyB3b3JkLzErPw");
        check("pass word/1+?", "7061737320776f72642f312b3f");
        check("pass word/1+?", "pass%20word%2F1%2B%3F");
        check("pass word/1+?", "pass%20word%2f1%2b%3f");
        check("pass word/1+?", "pass+word%2F1%2B%3F");
        check("pass word/1+?", "pass%20word/1%2B%3F");
        check("pass word/1+?", "%70%61%73%73%20%77%6F%72%64%2F%31%2B%3F");
        check(r#"say "no"\now"#, r#"say \"no\"\\now"#);
        check(r#"say "no"\now"#, r#"say \\\"no\\\"\\\\now"#);
        check("söcret/x", r"s\u00f6cret\/x");
        check("söcret/x", r"s\u00F6cret/x");
        check("söcret<\u{1f}x", r"söcret<\u001fx");
        check("söcret<\u{1f}x", r"söcret<\u001Fx");
        check("it's a secret", r"it'\''s a secret");
        check("it's <a> & \"b\"+", r#"it's \u003ca\u003e \u0026 \"b\"+"#);
        check("it's <a> & \"b\"+", r"it\u0027s \u003Ca\u003E \u0026 \u0022b\u0022\u002B");
        check("it's <a> & \"b\"+", r"it\u0027s \u003ca\u003e \u0026 \u0022b\u0022\u002b");
        check("it's \"a\" & b", "it&#x27;s &quot;a&quot; &amp; b");
        check("it's \"a\" & b", "it&#39;s &#34;a&#34; &amp; b");
        check("~~~???>>>", "fn5%2BPz8%2FPj4%2B");
        check("pass word/1+?", "cGFzcyB3b3JkLzErPw%3D%3D");
        check("a#b/c-long", "a%2523b%252Fc-long");
        check("a#b/c-long", "61:23:62:2f:63:2d:6c:6f:6e:67");
        check("a#b/c-long", "61 23 62 2F 63 2D 6C 6F 6E 67");
        check("a#b/c-long", r"\x61\x23\x62\x2f\x63\x2d\x6c\x6f\x6e\x67");
    }

    #[test]
    fn base64_is_known_after_any_number_of_other_bytes() {
        // "user:" + value, "ab" + value, "a" + value.
        check("correct-horse", "jb3JyZWN0LWhvcnNl");
        check("correct-horse", "Y29ycmVjdC1ob3JzZQ==");
        check("correct-horse", "NvcnJlY3QtaG9yc2U");
    }

    #[test]
    fn line_breaks_and_indentation_are_no_part_of_a_pattern() {
        assert_eq!(flattened(b"ab\r\n  cd e\n\n\tf\n", Look::WithoutIndentation), b"abcd ef");
        assert_eq!(flattened(b"ab\r\n  cd e\n\n\tf\n", Look::WithIndentation), b"ab  cd e\tf");
        assert_eq!(flattened(b"  ab", Look::WithoutIndentation), b"ab");
        assert!(of(br"abcdefgh:\n xyz", Look::WithoutIndentation).contains(&br"abcdefgh:\n xyz"[..]));
        check("-----BEGIN X-----\n0123456789abcdef\nfedcba9876543210\n-----END X-----", "fedcba9876543210");
    }

    /// The digests say nothing about what is right; [`a_value_is_known_in_every_form`] does. They say that no form came or went.
    #[test]
    fn no_form_of_a_value_comes_or_goes_unseen() {
        let lines = "0123456789abcdef\nfedcba987654321\r\n  0123456789ABCDEF \n";
        let long = "abcdefghij".repeat(150);
        let key = "-----BEGIN X-----\n0123456789abcdef\n-----END X-----\n";
        let plain = [
            "eightbyt",
            "eight/b+",
            "two words and more",
            lines,
            "é\u{8}\u{c}\t\"\\/<>&'+`\u{2028}~\u{1f600}\u{7f}",
            r"nine\nlines\\of\",
            r"rows\\",
            "\x1b[1mcoloured\x1b[0m",
            key,
            &long,
            &long[..PIECE_MAX],
        ];
        let plain = plain.map(|value| (value, Look::WithoutIndentation));
        let with_blanks = ["two words and more", lines, key, "a\tb c\nd e f"];
        let with_blanks = with_blanks.map(|value| (value, Look::WithIndentation));
        let found: Vec<String> = plain
            .into_iter()
            .chain(with_blanks)
            .map(|(value, look)| {
                let forms = of(value.as_bytes(), look);
                let all: Vec<u8> = forms.iter().flat_map(|form| [form, &b"\0"[..]].concat()).collect();
                let tag = crate::placeholder::TagKey::from_bytes([1; 32]).tag(&all);
                format!("{} {}", forms.len(), String::from_utf8_lossy(&tag))
            })
            .collect();
        assert_eq!(
            found,
            [
                "21 623a98b0",
                "51 2e4853d9",
                "34 c43f50bd",
                "87 afd51020",
                "123 7e1163c9",
                "49 4077e2cd",
                "38 ac87cace",
                "46 b60b2382",
                "99 01fc8991",
                "104 a554599b",
                "103 17b9eaa9",
                "4 8560c02a",
                "15 cacc1271",
                "0 2e72eb66",
                "10 42796301"
            ]
        );
    }

    #[test]
    fn a_gap_is_open_behind_a_line_break_and_behind_what_may_be_one() {
        let mut gap = Gap::new(Look::WithoutIndentation);
        let is_open = b"a\n b\\x".map(|byte| {
            gap.step(byte, &mut |_| {});
            gap.is_open()
        });
        assert_eq!(is_open, [false, true, true, false, true, false]);
    }

    #[test]
    fn a_gap_of_so_many_bytes_is_passed_over_and_a_longer_one_is_a_line_feed() {
        let flat = |text: &str, look| String::from_utf8(flattened(text.as_bytes(), look)).unwrap();
        let gap = |length: usize| format!("a{}b", "\n".repeat(length));
        assert_eq!(flat(&gap(GAP_MAX - 1), Look::WithoutIndentation), "ab");
        assert_eq!(flat(&gap(GAP_MAX), Look::WithoutIndentation), "a\nb");
        assert_eq!(flat(&gap(GAP_MAX + 1), Look::WithoutIndentation), "a\nb");
        assert_eq!(flat("a\n+b\n- c\n++d+e-f", Look::WithoutDiffMarks), "abc+d+e-f");
        assert_eq!(flat("a\n+b", Look::WithoutIndentation), "a+b");
        assert_eq!(flat(r"a\n b\\\r c\x", Look::WithoutIndentation), r"abc\x");
        let backslashes = |count: usize| format!("a{}nb", r"\".repeat(count));
        assert_eq!(flat(&backslashes(BACKSLASHES_MAX), Look::WithoutIndentation), "ab");
        assert_eq!(
            flat(&backslashes(BACKSLASHES_MAX + 1), Look::WithoutIndentation),
            backslashes(BACKSLASHES_MAX + 1)
        );
    }
}
