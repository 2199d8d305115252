//! From characters to commands: lists, pipelines, groups and redirections.
//!
//! Reserved words are passed over and not checked for balance: that can only find more commands than the shell would run, never
//! fewer. `case`, `coproc`, arithmetic commands, arrays and computed indices are deliberately not read.

use super::{
    Assignment, DEPTH_MAX, Input, LINE_CHARS_MAX, PARTS_MAX, SimpleCommand, Unparsed, Word, is_dangerous_name,
};

/// The commands of one text, not yet opened up, and its here-documents.
#[derive(Default)]
pub(super) struct Line {
    pub(super) commands: Vec<SimpleCommand>,
    pub(super) documents: Vec<Word>,
}

/// A here-document whose body comes after the line.
pub(super) struct Pending {
    pub(super) number: usize,
    pub(super) delimiter: String,
    pub(super) quoted: bool,
    pub(super) tabs_stripped: bool,
}

pub(super) struct Reader<'a> {
    pub(super) chars: Vec<char>,
    pub(super) at: usize,
    pub(super) depth: usize,
    pub(super) line: &'a mut Line,
    pub(super) pending: Vec<Pending>,
    /// Whether a list around this one waits for here-documents.
    pub(super) outer_pending: bool,
}

/// A word as it was read.
pub(super) struct ReadWord {
    pub(super) word: Word,
    pub(super) quoted: bool,
    /// Whether some shells take it for another text.
    pub(super) disputed: bool,
    pub(super) written: String,
}

pub(super) fn read(text: &str, depth: usize) -> Result<Line, Unparsed> {
    let mut line = Line::default();
    read_into(text, depth, &mut line)?;
    Ok(line)
}

/// Reads a text whose commands belong to the line that it stands in.
pub(super) fn read_into(text: &str, depth: usize, line: &mut Line) -> Result<(), Unparsed> {
    Reader::new(text, depth, line)?.list(None)
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &str, depth: usize, line: &'a mut Line) -> Result<Self, Unparsed> {
        if text.chars().nth(LINE_CHARS_MAX).is_some() {
            return Err(Unparsed::TooLong);
        }
        if text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
            return Err(Unparsed::ControlCharacter);
        }
        let chars = text.chars().collect();
        Ok(Reader { chars, at: 0, depth, line, pending: Vec::new(), outer_pending: false })
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    pub(super) fn second(&self) -> Option<char> {
        self.chars.get(self.at + 1).copied()
    }

    /// Takes the text if it stands here.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let here = text.chars().enumerate().all(|(i, c)| self.chars.get(self.at + i) == Some(&c));
        if here {
            self.at += text.chars().count();
        }
        here
    }

    /// Passes over blanks, continued lines and a comment.
    fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.at += 1,
                Some('\\') if self.second() == Some('\n') => self.at += 2,
                Some('#') => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    /// Refuses a continued line right here, where what stands after it belongs to what stands before: `$` and `(`, say.
    pub(super) fn whole(&self) -> Result<(), Unparsed> {
        let continues = self.peek() == Some('\\') && self.second() == Some('\n');
        if continues { Err(Unparsed::Construct) } else { Ok(()) }
    }

    pub(super) fn deeper(&mut self) -> Result<(), Unparsed> {
        self.depth += 1;
        if self.depth > DEPTH_MAX { Err(Unparsed::TooDeep) } else { Ok(()) }
    }

    /// Reads commands up to the bracket that ends them, or to the end of the text.
    pub(super) fn list(&mut self, end: Option<char>) -> Result<(), Unparsed> {
        self.deeper()?;
        if end.is_some() {
            self.whole()?;
        }
        let outer = std::mem::take(&mut self.pending);
        let outer_pending = self.outer_pending;
        self.outer_pending |= !outer.is_empty();
        let mut piped = false;
        loop {
            self.blanks();
            match (self.peek(), self.second()) {
                (None, _) if end.is_some() => return Err(Unparsed::Unfinished),
                (None, _) => break,
                (Some(')'), _) if end == Some(')') => {
                    self.at += 1;
                    break;
                }
                (Some(')'), _) | (Some('('), Some('(')) | (Some(';'), Some(';')) => {
                    return Err(Unparsed::Construct);
                }
                (Some('\n'), _) => {
                    self.at += 1;
                    self.documents()?;
                }
                (Some('('), _) => {
                    self.at += 1;
                    self.list(Some(')'))?;
                }
                (Some('&'), Some('>')) => self.simple(piped)?,
                (Some(';' | '&' | '|'), _) => {
                    piped = self.operator();
                }
                _ => self.simple(piped)?,
            }
        }
        if !self.pending.is_empty() {
            return Err(Unparsed::Unfinished);
        }
        self.pending = outer;
        self.outer_pending = outer_pending;
        self.depth -= 1;
        Ok(())
    }

    /// Passes over an operator between commands. Says whether it is a pipe.
    fn operator(&mut self) -> bool {
        if self.take("||") {
            return false;
        }
        let pipe = self.take("|&") || self.take("|");
        self.at += usize::from(!pipe);
        pipe
    }

    /// Reads one simple command with the reserved words before it.
    fn simple(&mut self, piped: bool) -> Result<(), Unparsed> {
        let mut command = SimpleCommand { piped, ..SimpleCommand::default() };
        let mut timed: &[&str] = &[];
        let mut shells_differ = false;
        loop {
            let before = self.at;
            self.blanks();
            let tests = command.name() == Some("[[");
            if tests && self.chars[before..self.at].contains(&'#') {
                return Err(Unparsed::Construct);
            }
            match (self.peek(), self.second()) {
                (None | Some('\n' | ';' | ')' | '|'), _) => break,
                (Some('&'), Some('>')) => {
                    self.redirection(&mut command, None)?;
                    shells_differ = true;
                }
                (Some('&'), _) => break,
                (Some('<' | '>'), Some(next)) if next != '(' => self.redirection(&mut command, None)?,
                (Some('('), _) if command.is_empty() => break,
                _ => {
                    let read = self.word()?;
                    let redirects = matches!(self.peek(), Some('<' | '>')) && self.second() != Some('(');
                    if redirects && read.sets_descriptor() {
                        return Err(Unparsed::Construct);
                    } else if redirects && read.is_descriptor() {
                        self.redirection(&mut command, Some(&read.written))?;
                    } else if shells_differ {
                        // A shell that does not know `&>` ends the command there, and this begins another.
                        return Err(Unparsed::Construct);
                    } else if command.program.is_some() {
                        // Some shells end a group or a test here, and begin another command.
                        let ended = tests && command.arguments.last().is_some_and(|last| last.text() == "]]");
                        if ended || matches!(read.written.as_str(), "{" | "}") {
                            return Err(Unparsed::Construct);
                        }
                        command.disputed |= read.disputed;
                        command.add(read.word)?;
                    } else if let Some(at) = timed.iter().position(|option| *option == read.word.text()) {
                        timed = &timed[at + 1..];
                    } else if !timed.is_empty() && read.word.text().starts_with('-') {
                        // Where `time` is a program, it has options that a shell's own does not know.
                        return Err(Unparsed::Construct);
                    } else if self.begins(&mut command, read, &mut timed)? {
                        break;
                    }
                }
            }
        }
        // A test goes on behind `&&`, and what stands there is not a command.
        let is_closed = command.arguments.last().is_some_and(|last| last.text() == "]]");
        if command.name() == Some("[[") && !is_closed {
            return Err(Unparsed::Construct);
        }
        if !command.is_empty() {
            self.push(command)?;
        }
        Ok(())
    }

    /// Takes a word that stands where a command begins. Says whether the command ends with it.
    fn begins(
        &mut self,
        command: &mut SimpleCommand,
        read: ReadWord,
        timed: &mut &[&str],
    ) -> Result<bool, Unparsed> {
        if let Some(assignment) = read.assignment() {
            if self.peek() == Some('(') || read.is_indexed_by_name() {
                return Err(Unparsed::Construct);
            }
            command.assignments.push(assignment);
            return Ok(false);
        }
        // A quoted word is written with its quotes, and so is none of these.
        let reserved = if command.is_empty() { read.written.as_str() } else { "" };
        match reserved {
            "if" | "then" | "else" | "elif" | "fi" | "while" | "until" | "do" | "done" | "{" | "}" | "!" => {
                Ok(false)
            }
            "time" => {
                *timed = &["-p", "--"];
                Ok(false)
            }
            "for" | "select" => self.loop_words().map(|()| true),
            "function" => {
                self.blanks();
                self.word()?;
                self.blanks();
                self.take("()");
                Ok(true)
            }
            // What a coprocess is named or runs depends on the word after the next.
            "case" | "coproc" => Err(Unparsed::Construct),
            _ => {
                let mark = self.at;
                while matches!(self.peek(), Some(' ' | '\t')) {
                    self.at += 1;
                }
                if self.take("()") {
                    return Ok(true);
                }
                self.at = mark;
                command.disputed |= read.disputed;
                command.program = Some(read.word);
                Ok(false)
            }
        }
    }

    /// Passes over `NAME in words`; what the words run is found by reading them.
    fn loop_words(&mut self) -> Result<(), Unparsed> {
        self.blanks();
        if self.peek() == Some('(') {
            return Err(Unparsed::Construct);
        }
        if is_dangerous_name(&self.word()?.written) {
            return Err(Unparsed::Construct);
        }
        self.blanks();
        let mark = self.at;
        if !(self.take("in") && matches!(self.peek(), None | Some(' ' | '\t' | '\n' | ';' | '\\'))) {
            self.at = mark;
            return Ok(());
        }
        loop {
            self.blanks();
            match self.peek() {
                None | Some(';' | '\n') => return Ok(()),
                _ => self.word()?,
            };
        }
    }

    pub(super) fn push(&mut self, command: SimpleCommand) -> Result<(), Unparsed> {
        if self.line.commands.len() == PARTS_MAX {
            return Err(Unparsed::TooMany);
        }
        self.line.commands.push(command);
        Ok(())
    }

    fn redirection(&mut self, command: &mut SimpleCommand, descriptor: Option<&str>) -> Result<(), Unparsed> {
        const OPERATORS: [&str; 12] =
            ["&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", ">>", ">|", ">&", "<", ">"];
        let Some(operator) = OPERATORS.into_iter().find(|operator| self.take(operator)) else {
            return Err(Unparsed::Construct);
        };
        self.whole()?;
        // Some shells write the file that comes after `>!`, and some one of that name.
        if self.peek() == Some('!') {
            return Err(Unparsed::Construct);
        }
        self.blanks();
        let target = self.word()?;
        let is_input = match descriptor {
            Some(number) => number.trim_start_matches('0').is_empty(),
            None => operator.starts_with('<'),
        };
        if is_input {
            let input = match operator {
                "<<" | "<<-" => Input::Document(self.line.documents.len()),
                "<<<" => Input::Text(target.word.clone()),
                _ => Input::Elsewhere,
            };
            // Of several the last counts, and for some shells all of them.
            command.input = if command.input == Input::Inherited { input } else { Input::Elsewhere };
            command.disputed |= target.disputed;
        }
        match operator {
            "<<" | "<<-" => self.here_document(target, operator == "<<-")?,
            "<<<" => {}
            "<" => command.reads.push(target.word),
            "<>" => {
                command.reads.push(target.word.clone());
                command.writes.push(target.word);
            }
            "<&" | ">&" if is_duplicate(target.word.text()) => {}
            // Some shells expand this target again after its quotes are gone, and some end it after a first `-`.
            "<&" | ">&" if target.word.text().contains(['$', '`']) || target.word.text().starts_with('-') => {
                return Err(Unparsed::Construct);
            }
            _ if is_no_file(&target.word) => {}
            _ => command.writes.push(target.word),
        }
        Ok(())
    }

    fn here_document(&mut self, delimiter: ReadWord, tabs_stripped: bool) -> Result<(), Unparsed> {
        if delimiter.disputed {
            return Err(Unparsed::Construct);
        }
        let Word::Literal(text) = delimiter.word else { return Err(Unparsed::Construct) };
        let number = self.line.documents.len();
        self.line.documents.push(Word::Expanding(String::new()));
        self.pending.push(Pending { number, delimiter: text, quoted: delimiter.quoted, tabs_stripped });
        Ok(())
    }
}

fn is_duplicate(target: &str) -> bool {
    let digits = target.strip_suffix('-').unwrap_or(target);
    !target.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
}

fn is_no_file(target: &Word) -> bool {
    target.literal().is_some_and(|path| {
        matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr")
            || path.strip_prefix("/dev/fd/").is_some_and(|fd| fd.chars().all(|c| c.is_ascii_digit()))
    })
}

impl ReadWord {
    fn is_descriptor(&self) -> bool {
        !self.written.is_empty() && self.written.chars().all(|c| c.is_ascii_digit())
    }

    /// Whether it names a variable that a redirection after it sets, which can have an index.
    fn sets_descriptor(&self) -> bool {
        self.written.starts_with('{') && self.written.ends_with('}')
    }

    /// Whether it assigns to an index that is not just a number, and so is evaluated.
    fn is_indexed_by_name(&self) -> bool {
        let name = self.written.split_once('=').map_or("", |(name, _)| name);
        let index = name.split_once('[').map_or("", |(_, index)| index);
        index.trim_end_matches('+').trim_end_matches(']').contains(|c: char| !c.is_ascii_digit())
    }

    /// The assignment that this word is where a command begins.
    fn assignment(&self) -> Option<Assignment> {
        let (name, _) = self.written.split_once('=')?;
        let name = name.strip_suffix('+').unwrap_or(name);
        let bare = name.split_once('[').map_or(name, |(bare, _)| bare);
        let subscript = &name[bare.len()..];
        let named = is_name(bare) && (subscript.is_empty() || subscript.ends_with(']'));
        let value = || match &self.word {
            Word::Literal(text) => Word::Literal(after_equals(text)),
            Word::Expanding(text) => Word::Expanding(after_equals(text)),
        };
        named.then(|| Assignment { name: bare.to_owned(), value: value() })
    }
}

fn after_equals(text: &str) -> String {
    text.split_once('=').map(|(_, value)| value.to_owned()).unwrap_or_default()
}

/// Whether it can be the name of a variable.
pub(super) fn is_name(text: &str) -> bool {
    text.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
