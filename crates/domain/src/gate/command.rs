//! Shell command lines, taken apart into every simple command that they can run.
//!
//! It is made to be conservative: what it does not fully understand is [`Unparsed`], and a command that only the running shell
//! could name is marked [`Opening::Opaque`]. It runs nothing, looks at no file and knows no variable's value. Which commands are
//! harmless is not decided here.

mod builtins;
mod git;
mod heredoc;
mod launchers;
mod options;
mod quoting;
mod reader;
mod sed;
mod shells;
mod wrappers;

use serde::{Deserialize, Serialize};

pub(super) use git::Git;
pub(super) use launchers::is_verb;
pub(super) use shells::is_shell;

/// The longest line that is looked at, in characters.
pub const LINE_CHARS_MAX: usize = 32_768;
/// How deep commands may stand inside one another.
pub const DEPTH_MAX: usize = 12;
/// How many simple commands one line may hold.
pub const PARTS_MAX: usize = 256;
/// How many arguments one command may have.
pub const ARGUMENTS_MAX: usize = 2_048;

/// Why a line is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Unparsed {
    /// Too many characters.
    #[error("it is longer than {LINE_CHARS_MAX} characters")]
    TooLong,
    /// Commands inside commands inside commands.
    #[error("its commands are nested more than {DEPTH_MAX} deep")]
    TooDeep,
    /// Too many commands, or arguments of one.
    #[error("it holds more than {PARTS_MAX} commands, or one of them more than {ARGUMENTS_MAX} arguments")]
    TooMany,
    /// A quote, a bracket or a here-document is not closed.
    #[error("a quote, bracket or here-document in it is not closed")]
    Unfinished,
    /// It holds a control character.
    #[error("it holds a control character")]
    ControlCharacter,
    /// A construct that is deliberately not read, or that shells read differently.
    #[error("it holds a construct that is not read, or that shells read differently")]
    Construct,
}

/// Where the system's own programs lie.
const INSTALLED: [&str; 6] = ["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"];

/// One word of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// Exactly this text, quotes and escapes taken away.
    Literal(String),
    /// As written: only the running shell knows what it becomes.
    Expanding(String),
}

impl Word {
    /// The text, if it is known.
    pub fn literal(&self) -> Option<&str> {
        match self {
            Word::Literal(text) => Some(text),
            Word::Expanding(_) => None,
        }
    }

    /// The text, or the word as written.
    pub fn text(&self) -> &str {
        match self {
            Word::Literal(text) | Word::Expanding(text) => text,
        }
    }

    /// Whether it stays one word whatever it expands to: all of it stands in one pair of double quotes.
    fn is_one_word(&self) -> bool {
        let Word::Expanding(written) = self else { return true };
        in_quotes(written).is_some()
    }

    /// The pattern of paths that it is, if it is nothing else that expands.
    pub(super) fn glob(&self) -> Option<&str> {
        let Word::Expanding(written) = self else { return None };
        let is_plain =
            !written.starts_with(['~', '=']) && !written.contains(|c| "$`{}'\"\\<>()…".contains(c));
        (is_plain && written.contains(['*', '?', '['])).then_some(written)
    }

    /// Whether it may become an option, or several words: then it can choose what a program does.
    fn may_choose(&self) -> bool {
        let Word::Expanding(written) = self else { return false };
        let (begin, stays_one) = match in_quotes(written) {
            Some(inner) => (inner, true),
            None => (written.as_str(), !written.contains(['$', '`'])),
        };
        let is_fixed = |c: char| c.is_alphanumeric() || "./_~=<>:,@%+".contains(c);
        !(stays_one && begin.starts_with(is_fixed))
    }
}

/// What stands in the one pair of double quotes around a word, where nothing in it makes it several.
fn in_quotes(written: &str) -> Option<&str> {
    let inner = written.strip_prefix('"')?.strip_suffix('"')?;
    (!inner.contains(['"', '@'])).then_some(inner)
}

/// A variable that is set for a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// What it is set to.
    pub value: Word,
}

impl Assignment {
    /// The assignment that a word is to `export` and its like.
    pub(super) fn declared(word: &Word) -> Option<Self> {
        let (name, value) = word.text().split_once('=')?;
        let value = match word {
            Word::Literal(_) => Word::Literal(value.to_owned()),
            Word::Expanding(_) => Word::Expanding(value.to_owned()),
        };
        Some(Assignment { name: builtins::unquoted(word, name).trim_end_matches('+').to_owned(), value })
    }

    /// Whether it can change which program runs, or what a program that is named here does. What is no name reaches a program as it
    /// is written, and can be a function.
    pub fn is_dangerous(&self) -> bool {
        let is_name = reader::is_name(&self.name);
        !is_name || is_dangerous_name(&self.name) || self.value.literal().is_some_and(runs_as_number)
    }
}

/// Whether a variable of this name can change which program runs, or what a program does; or is a number to a shell, which
/// evaluates what it is set to.
fn is_dangerous_name(name: &str) -> bool {
    const NAMES: [&str; 28] = [
        "PATH",
        "ENV",
        "IFS",
        "SHELL",
        "SHELLOPTS",
        "PS0",
        "PS1",
        "PS2",
        "PS4",
        "MANOPT",
        "CDPATH",
        "BROWSER",
        "PROMPT_COMMAND",
        "ZDOTDIR",
        "HOME",
        "TAR_OPTIONS",
        "MAKEFLAGS",
        "MAKEFILES",
        "GOFLAGS",
        // The same as `PATH` to some shells.
        "path",
        "fpath",
        "VISUAL",
        "OPTIND",
        "HISTCMD",
        "RANDOM",
        "SECONDS",
        "LINENO",
        "SRANDOM",
    ];
    const PREFIXES: [&str; 20] = [
        "BASH",
        "LD_",
        "DYLD_",
        "GIT_",
        "PYTHON",
        "NODE_",
        "PERL",
        "RUBY",
        "LUA_",
        "JAVA_TOOL_",
        "RUSTC",
        "CARGO_",
        "NPM_CONFIG_",
        "npm_config_",
        "GCONV_",
        "SSH_",
        "XDG_",
        "RSYNC_",
        "LESS",
        "OPENSSL_",
    ];
    const SUFFIXES: [&str; 7] =
        ["PAGER", "EDITOR", "_OPTIONS", "_OPTS", "_CONFIG_PATH", "_COMMAND", "_ASKPASS"];
    NAMES.contains(&name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// Whether a shell runs a command when it takes the text for a number, or for the name of a variable.
fn runs_as_number(text: &str) -> bool {
    text.contains('`') || text.contains("$(")
}

/// How much of a command is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Opening {
    /// It is what it says.
    #[default]
    Plain,
    /// It only runs other commands, and they are in the list too.
    Opened,
    /// It runs something that cannot be known from the line.
    Opaque,
}

/// One command that a line can run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SimpleCommand {
    /// What runs, as written; nothing where there are only assignments or redirections.
    pub program: Option<Word>,
    /// Its arguments.
    pub arguments: Vec<Word>,
    /// The variables set for it.
    pub assignments: Vec<Assignment>,
    /// The files that its redirections write.
    pub writes: Vec<Word>,
    /// The files that its redirections read.
    pub reads: Vec<Word>,
    /// Whether it reads from a pipe.
    pub piped: bool,
    /// How much of it is known.
    pub opening: Opening,
    /// Whether the rule of what launches it covers it, so that only what restricts counts.
    #[serde(skip)]
    pub(super) launched: Launched,
    /// The text that it is given to read, where that stands in the line.
    #[serde(skip)]
    input: Input,
    /// Whether shells take one of its words for another text.
    #[serde(skip)]
    disputed: bool,
}

/// Whether a tool that prepares an environment runs a command in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Launched {
    /// It stands for itself.
    #[default]
    No,
    /// Such a tool runs it.
    Surely,
    /// Such a tool runs it if the options before it have no value.
    Perhaps,
}

/// Where a command's input stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Input {
    /// Wherever that of the shell does.
    #[default]
    Inherited,
    /// The here-document of this number.
    Document(usize),
    /// A here-string.
    Text(Word),
    /// Not in the line, or in several places.
    Elsewhere,
}

impl SimpleCommand {
    /// The program's name without its directory: `rm` for `/usr/bin/rm`, `\rm` and `"r"m`.
    pub fn name(&self) -> Option<&str> {
        let text = self.program.as_ref()?.literal()?;
        Some(text.rsplit('/').next().unwrap_or(text))
    }

    /// A shell that runs a script, read as the script: `./x.sh y` for `bash -e ./x.sh y`.
    pub(super) fn script(&self) -> Option<Self> {
        let runs_scripts = |name: &str| is_shell(name) || matches!(name, "." | "source");
        self.name().filter(|name| runs_scripts(name))?;
        let at = self.arguments.iter().position(|word| !word.text().starts_with(['-', '+']))?;
        let (program, arguments) = self.arguments[at..].split_first()?;
        let (program, arguments) = (Some(program.clone()), arguments.to_vec());
        Some(SimpleCommand { program, arguments, ..SimpleCommand::default() })
    }

    /// Whether a word that is not known may be the one that says what the program does. That is the first one, or any behind an
    /// option, which may have a value.
    pub(super) fn hides_its_verb(&self) -> bool {
        let begins_with_option =
            self.arguments.first().is_some_and(|word| word.text().starts_with(['-', '+']));
        let few = if begins_with_option { self.arguments.len() } else { 1 };
        self.arguments.iter().take(few).any(Word::may_choose)
    }

    /// Whether any word that is not known may choose what the program does.
    pub(super) fn may_be_told(&self) -> bool {
        self.arguments.iter().any(Word::may_choose)
    }

    /// Whether it is what the system installed, and no file that an agent may have written and called the same.
    pub(super) fn is_installed(&self) -> bool {
        let written = self.program.as_ref().and_then(Word::literal).unwrap_or_default();
        written.rsplit_once('/').is_none_or(|(directory, _)| INSTALLED.contains(&directory))
    }

    pub(super) fn with_arguments(&self, arguments: Vec<Word>) -> Self {
        SimpleCommand { arguments, ..self.clone() }
    }

    fn add(&mut self, argument: Word) -> Result<(), Unparsed> {
        if self.arguments.len() == ARGUMENTS_MAX {
            return Err(Unparsed::TooMany);
        }
        self.arguments.push(argument);
        Ok(())
    }

    fn is_empty(&self) -> bool {
        *self == SimpleCommand { piped: self.piped, ..SimpleCommand::default() }
    }
}

impl std::fmt::Display for SimpleCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let assignments = self.assignments.iter().map(|set| format!("{}={}", set.name, set.value.text()));
        let words = self.program.iter().chain(&self.arguments).map(|word| word.text().to_owned());
        let writes = self.writes.iter().map(|path| format!("> {}", path.text()));
        let all: Vec<String> = assignments.chain(words).chain(writes).collect();
        f.write_str(&all.join(" "))
    }
}

/// Every simple command that the line can run, wrappers and what they wrap both.
pub fn parse(line: &str) -> Result<Vec<SimpleCommand>, Unparsed> {
    let mut opened = Vec::new();
    open_text(line, 0, &mut opened)?;
    Ok(opened)
}

/// Reads one text and opens every command in it up.
fn open_text(text: &str, depth: usize, opened: &mut Vec<SimpleCommand>) -> Result<(), Unparsed> {
    let line = reader::read(text, depth)?;
    for command in line.commands {
        wrappers::open(command, &line.documents, depth, opened)?;
    }
    Ok(())
}
