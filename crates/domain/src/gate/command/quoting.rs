//! Words: quotes, escapes and expansions. What an expansion runs is read as commands; what it becomes is not known.

use super::reader::{ReadWord, Reader, read_into};
use super::{Unparsed, Word, is_dangerous_name};

/// A word in the making.
#[derive(Default)]
pub(super) struct Scan {
    pub(super) text: String,
    pub(super) expands: bool,
    quoted: bool,
    braces: bool,
    disputed: bool,
}

/// The double quotes that an expansion stands in.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Quotes {
    None,
    /// Directly.
    Double,
    /// In a here-document, or in another expansion that stands in quotes.
    Around,
}

impl Reader<'_> {
    /// Reads one word; there must be one.
    pub(super) fn word(&mut self) -> Result<ReadWord, Unparsed> {
        let start = self.at;
        let mut scan = Scan::default();
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' => break,
                '<' | '>' if self.second() == Some('(') => {
                    self.at += 2;
                    self.list(Some(')'))?;
                    scan.expands = true;
                }
                '<' | '>' => break,
                '\'' => self.single(&mut scan)?,
                '"' => {
                    self.at += 1;
                    scan.quoted = true;
                    self.double(&mut scan, Some('"'))?;
                }
                '\\' => self.escape(&mut scan)?,
                '$' => self.dollar(&mut scan, Quotes::None)?,
                '`' => self.backticks(&mut scan, Quotes::None)?,
                // An empty pair is no list of alternatives: `find` and `xargs` are written with it.
                '{' if self.second() == Some('}') => {
                    scan.text.push_str("{}");
                    self.at += 2;
                }
                _ => {
                    scan.expands |=
                        matches!(c, '*' | '?' | '[') || (self.at == start && matches!(c, '~' | '='));
                    scan.braces |= matches!(c, '{' | '}');
                    scan.text.push(c);
                    self.at += 1;
                }
            }
        }
        if self.at == start {
            return Err(Unparsed::Construct);
        }
        // Shells join continued lines before they look for reserved words and assignments.
        let written = self.chars[start..self.at].iter().collect::<String>().replace("\\\n", "");
        let expands = match written.as_str() {
            "[" | "[[" | "{" | "}" => false,
            _ => scan.expands || scan.braces,
        };
        let word = if expands { Word::Expanding(written.clone()) } else { Word::Literal(scan.text) };
        Ok(ReadWord { word, quoted: scan.quoted, disputed: scan.disputed, written })
    }

    /// Takes the next character, which must be there.
    fn next(&mut self) -> Result<char, Unparsed> {
        let c = self.peek().ok_or(Unparsed::Unfinished)?;
        self.at += 1;
        Ok(c)
    }

    /// Takes the next character of something quoted. Shells disagree on where a here-document begins if that is a new line.
    fn next_quoted(&mut self) -> Result<char, Unparsed> {
        let c = self.next()?;
        if c == '\n' && (self.outer_pending || !self.pending.is_empty()) {
            return Err(Unparsed::Construct);
        }
        Ok(c)
    }

    fn single(&mut self, scan: &mut Scan) -> Result<(), Unparsed> {
        self.at += 1;
        scan.quoted = true;
        loop {
            match self.next_quoted()? {
                '\'' => return Ok(()),
                c => scan.text.push(c),
            }
        }
    }

    fn escape(&mut self, scan: &mut Scan) -> Result<(), Unparsed> {
        self.at += 1;
        match self.next()? {
            '\n' => {}
            c => {
                scan.quoted = true;
                scan.text.push(c);
            }
        }
        Ok(())
    }

    /// Reads what stands in double quotes, or a whole here-document where nothing ends it.
    pub(super) fn double(&mut self, scan: &mut Scan, end: Option<char>) -> Result<(), Unparsed> {
        let quotes = if end.is_some() { Quotes::Double } else { Quotes::Around };
        loop {
            match self.peek() {
                None if end.is_none() => return Ok(()),
                Some('$') => self.dollar(scan, quotes)?,
                Some('`') => self.backticks(scan, quotes)?,
                Some('\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some('\n') => self.at += 1,
                        Some(c) if matches!(c, '$' | '`' | '\\') || Some(c) == end => {
                            self.at += 1;
                            scan.text.push(c);
                        }
                        _ => scan.text.push('\\'),
                    }
                }
                _ => match self.next_quoted()? {
                    c if Some(c) == end => return Ok(()),
                    c => scan.text.push(c),
                },
            }
        }
    }

    fn dollar(&mut self, scan: &mut Scan, quotes: Quotes) -> Result<(), Unparsed> {
        self.at += 1;
        self.whole()?;
        match self.peek() {
            Some('(') if self.second() == Some('(') => {
                self.at += 2;
                self.arithmetic()?;
            }
            Some('(') => {
                self.at += 1;
                self.list(Some(')'))?;
            }
            Some('{') => {
                self.at += 1;
                self.parameter(quotes)?;
            }
            Some('[') => return Err(Unparsed::Construct),
            Some('\'') if quotes == Quotes::None => return self.ansi(scan),
            Some('"') if quotes == Quotes::None => {}
            Some(c) if c.is_ascii_alphanumeric() || "_@*#?-$!".contains(c) => self.at += 1,
            _ => {
                scan.text.push('$');
                return Ok(());
            }
        }
        scan.expands = true;
        Ok(())
    }

    /// Reads `${…}` after its bracket.
    fn parameter(&mut self, quotes: Quotes) -> Result<(), Unparsed> {
        self.deeper()?;
        self.whole()?;
        // `${ command; }` and `${| command; }` run commands in newer shells.
        if self.peek().is_some_and(|c| c.is_whitespace() || c == '|' || c == '(') {
            return Err(Unparsed::Construct);
        }
        self.named()?;
        let inner = if quotes == Quotes::None { Quotes::None } else { Quotes::Around };
        let mut scan = Scan::default();
        loop {
            match self.peek() {
                Some('}') => break,
                // Shells disagree on quotes in here inside double quotes.
                Some('\'' | '"') if quotes != Quotes::None => return Err(Unparsed::Construct),
                Some('\'') => self.single(&mut scan)?,
                Some('"') => {
                    self.at += 1;
                    self.double(&mut scan, Some('"'))?;
                }
                Some('\\') => self.escape(&mut scan)?,
                Some('$') => self.dollar(&mut scan, inner)?,
                Some('`') => self.backticks(&mut scan, inner)?,
                Some('<' | '>') if quotes == Quotes::None => {
                    self.at += 1;
                    self.whole()?;
                    if self.take("(") {
                        self.list(Some(')'))?;
                    }
                }
                _ => drop(self.next_quoted()?),
            }
        }
        self.at += 1;
        self.depth -= 1;
        Ok(())
    }

    /// Reads the name in `${…}` and its index, and refuses what a shell evaluates: an index or a place in a text that is not just a
    /// number, a name that stands in a variable, a text that is a prompt, and setting what changes what runs.
    fn named(&mut self) -> Result<(), Unparsed> {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if self.peek() == Some('#') && self.second().is_some_and(is_letter) {
            self.at += 1;
        }
        let start = self.at;
        while self.peek().is_some_and(is_letter) {
            self.at += 1;
        }
        let name: String = self.chars[start..self.at].iter().collect();
        if name.is_empty() && (!self.next().is_ok_and(|c| "@*#?-$!".contains(c))) {
            return Err(Unparsed::Construct);
        }
        if self.take("[") && !(self.take("@]") || self.take("*]")) {
            self.number();
            if !self.take("]") {
                return Err(Unparsed::Construct);
            }
        }
        self.whole()?;
        let evaluated = match (self.peek(), self.second()) {
            (Some('@'), _) => true,
            (Some(':'), Some('-' | '+' | '?')) => false,
            (Some('='), _) | (Some(':'), Some('=')) => is_dangerous_name(&name),
            (Some(':'), _) => {
                self.number();
                self.peek() != Some('}')
            }
            // An indirect name.
            (next, _) => self.chars[start..self.at] == ['!'] && next != Some('}'),
        };
        if evaluated { Err(Unparsed::Construct) } else { Ok(()) }
    }

    /// Passes over digits and what may stand around them.
    fn number(&mut self) {
        while self.peek().is_some_and(|c| c.is_ascii_digit() || matches!(c, ' ' | '-' | ':')) {
            self.at += 1;
        }
    }

    /// Reads `$((…))` after its brackets, as long as nothing in it can run a command; what stands in a variable can.
    fn arithmetic(&mut self) -> Result<(), Unparsed> {
        let mut open = 2;
        while open > 0 {
            match self.next()? {
                '(' => open += 1,
                ')' => {
                    open -= 1;
                    if open == 1 && self.peek() != Some(')') {
                        return Err(Unparsed::Construct);
                    }
                }
                c if c.is_ascii_digit() || " +-*/%<>=&|!?:,~^".contains(c) => {}
                _ => return Err(Unparsed::Construct),
            }
        }
        Ok(())
    }

    /// Reads a substitution in backticks: its text has one level of escapes less.
    fn backticks(&mut self, scan: &mut Scan, quotes: Quotes) -> Result<(), Unparsed> {
        self.at += 1;
        scan.expands = true;
        let mut text = String::new();
        loop {
            match self.next_quoted()? {
                '`' => break,
                '\\' => match self.next_quoted()? {
                    c @ ('$' | '`' | '\\') => text.push(c),
                    '"' if quotes == Quotes::Double => text.push('"'),
                    // Shells disagree on whether the backslash goes.
                    '"' if quotes == Quotes::Around => return Err(Unparsed::Construct),
                    c => text.extend(['\\', c]),
                },
                c => text.push(c),
            }
        }
        read_into(&text, self.depth, self.line)
    }

    /// Reads `$'…'` from its quote on.
    fn ansi(&mut self, scan: &mut Scan) -> Result<(), Unparsed> {
        self.at += 1;
        scan.quoted = true;
        // A shell that does not know `$'…'` takes it for a `$` and what stands in the quotes.
        scan.disputed = true;
        loop {
            match self.next_quoted()? {
                '\'' => return Ok(()),
                '\\' => match self.ansi_escape()? {
                    Some(c) => scan.text.push(c),
                    None => scan.expands = true,
                },
                c => scan.text.push(c),
            }
        }
    }

    /// The character that an escape stands for, or nothing if that is not a character.
    fn ansi_escape(&mut self) -> Result<Option<char>, Unparsed> {
        Ok(match self.next_quoted()? {
            // A shell that does not know `$'…'` ends the quote here.
            '\'' => return Err(Unparsed::Construct),
            'a' => Some('\u{7}'),
            'b' => Some('\u{8}'),
            'e' | 'E' => Some('\u{1b}'),
            'f' => Some('\u{c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'v' => Some('\u{b}'),
            'x' => self.code(0, 16, 2).filter(char::is_ascii),
            'u' => self.code(0, 16, 4),
            'U' => self.code(0, 16, 8),
            c @ ('\\' | '"' | '?') => Some(c),
            c => match c.to_digit(8) {
                Some(first) => self.code(first, 8, 2).filter(char::is_ascii),
                None => None,
            },
        })
    }

    /// A character by its number, read from at most so many digits.
    fn code(&mut self, first: u32, radix: u32, digits_max: usize) -> Option<char> {
        let mut code = first;
        for _ in 0..digits_max {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(radix)) else { break };
            code = code.wrapping_mul(radix).wrapping_add(digit);
            self.at += 1;
        }
        char::from_u32(code).filter(|c| *c != '\0')
    }
}
