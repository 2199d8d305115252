//! The texts in Rust source: string literals with their lines. It reads tokens only as far as it must to tell strings from the
//! rest, and leaves out the tests at the end of a file.

use crate::tree::File;

/// A string literal, with its quotes and line breaks unescaped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Literal {
    /// Where it begins.
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// The literals of a file, but for those of its tests.
pub(crate) fn literals(file: &File) -> Vec<Literal> {
    let mut reader = Reader { rest: without_tests(&file.text), line: 1, before: ' ', found: Vec::new() };
    while reader.step() {}
    reader.found
}

/// The source up to the module of its tests, which stands at the end by convention.
pub(crate) fn without_tests(source: &str) -> &str {
    let end = source.find("\n#[cfg(test)]\nmod ").unwrap_or(source.len());
    &source[..end]
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
    /// The character before `rest`: an `r` inside a word begins no raw string.
    before: char,
    found: Vec<Literal>,
}

impl<'a> Reader<'a> {
    /// Reads one token that matters, or one character. False at the end.
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else { return false };
        let in_word = self.before.is_alphanumeric() || self.before == '_';
        let raw = self.rest.strip_prefix('r').filter(|_| !in_word || self.before == 'b');
        let hashes = raw.map_or(0, |raw| raw.len() - raw.trim_start_matches('#').len());
        if self.rest.starts_with("//") {
            self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
        } else if self.rest.starts_with("/*") {
            self.take(self.rest.find("*/").map_or(self.rest.len(), |end| end + 2));
        } else if raw.is_some_and(|raw| raw[hashes..].starts_with('"')) {
            self.take(hashes + 2);
            let close = format!("\"{}", "#".repeat(hashes));
            let end = self.rest.find(&close).unwrap_or(self.rest.len());
            let line = self.line;
            let text = self.take(end).to_owned();
            self.found.push(Literal { line, text });
            self.take(close.len());
        } else if first == '"' {
            self.quoted();
        } else if first == '\'' {
            self.take(character(self.rest));
        } else {
            self.take(first.len_utf8());
        }
        true
    }

    fn quoted(&mut self) {
        self.take(1);
        let mut escaped = false;
        let end = self.rest.find(|c| {
            let closes = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            closes
        });
        let line = self.line;
        let text = unescaped(self.take(end.unwrap_or(self.rest.len())));
        self.found.push(Literal { line, text });
        self.take(1);
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes.min(self.rest.len()));
        self.line += taken.matches('\n').count();
        self.before = taken.chars().last().unwrap_or(self.before);
        self.rest = rest;
        taken
    }
}

/// How long the character literal or lifetime at the start is.
fn character(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    match characters.next() {
        Some((_, '\\')) => text[3..].find('\'').map_or(text.len(), |end| end + 4),
        _ => match characters.next() {
            Some((place, '\'')) => place + 1,
            // A lifetime.
            _ => 1,
        },
    }
}

fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(next) = characters.next() {
        match (next, characters.peek()) {
            ('\\', Some('n')) => {
                plain.push('\n');
                characters.next();
            }
            ('\\', Some('\n')) => while characters.next_if(|c| c.is_whitespace()).is_some() {},
            ('\\', Some(_)) => plain.extend(characters.next()),
            _ => plain.push(next),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, expected: &[(usize, &str)]) {
        let file = File { path: "src/a.rs".to_owned(), text: source.to_owned() };
        let found = literals(&file);
        let found: Vec<(usize, &str)> =
            found.iter().map(|literal| (literal.line, literal.text.as_str())).collect();
        assert_eq!(found, expected, "{source}");
    }

    #[test]
    fn strings_of_every_form_are_found_at_their_lines() {
        check("let a = \"one\";\nlet b = \"two \\\"quoted\\\"\";", &[(1, "one"), (2, "two \"quoted\"")]);
        check(
            "f(r\"raw\\\", r#\"with \"quotes\"\"#, b\"bytes\", br#\"x\"#)",
            &[(1, "raw\\"), (1, "with \"quotes\""), (1, "bytes"), (1, "x")],
        );
        check("let a = \"first \\\n    second\";\nlet b = \"c\\nd\";", &[(1, "first second"), (3, "c\nd")]);
    }

    #[test]
    fn comments_characters_and_lifetimes_are_no_strings() {
        check("// \"no\"\n/* \"no\" */ \"yes\"", &[(2, "yes")]);
        check("fn a<'a>(b: &'a str) { ('\"', '\\'', '\\u{22}', '→', \"yes\") }", &[(1, "yes")]);
        check("let for_r\"\" = 1;", &[(1, "")]);
    }

    #[test]
    fn the_tests_of_a_file_are_left_out() {
        check(
            "const A: &str = \"a\";\n\n#[cfg(test)]\nmod tests {\n    const B: &str = \"b\";\n}\n",
            &[(1, "a")],
        );
    }
}
