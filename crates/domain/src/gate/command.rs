//! Shell command lines, taken apart into every simple command that they can run.
//!
//! It is made to be conservative: what it does not fully understand is [`Unparsed`], and a command that only the running shell
//! could name is marked [`Opening::Opaque`]. It runs nothing, looks at no file and knows no variable's value. Which commands are
//! harmless is not decided here.

mod builtins;
mod heredoc;
mod options;
mod quoting;
mod reader;
mod wrappers;

use serde::{Deserialize, Serialize};

pub(super) use wrappers::is_shell;

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

/// Tools that run a command in an environment that they prepare, and the word that says so.
#[rustfmt::skip]
const LAUNCHERS: [(&str, &str); 24] = [
    ("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("hatch", "run"), ("pdm", "run"), ("rye", "run"),
    ("conda", "run"), ("mamba", "run"), ("volta", "run"), ("bundle", "exec"), ("npm", "exec"), ("pnpm", "exec"),
    ("yarn", "exec"), ("direnv", "exec"), ("mise", "exec"), ("asdf", "exec"), ("rbenv", "exec"), ("pyenv", "exec"),
    ("nvm", "exec"), ("npx", ""), ("pnpx", ""), ("cross-env", ""), ("dotenv", ""), ("env-cmd", ""),
];

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
    /// Whether it can change which program runs, or what a program that is named here does.
    pub fn is_dangerous(&self) -> bool {
        is_dangerous_name(&self.name) || self.value.literal().is_some_and(runs_as_number)
    }
}

/// Whether a variable of this name can change which program runs, or what a program does; or is a number to a shell, which
/// evaluates what it is set to.
fn is_dangerous_name(name: &str) -> bool {
    const NAMES: [&str; 24] = [
        "PATH",
        "ENV",
        "IFS",
        "SHELL",
        "SHELLOPTS",
        "PS4",
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
    const SUFFIXES: [&str; 2] = ["PAGER", "EDITOR"];
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
    /// The text that it is given to read, where that stands in the line.
    #[serde(skip)]
    input: Input,
}

/// Where a command's input stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Input {
    /// Not in the line.
    #[default]
    Elsewhere,
    /// The here-document of this number.
    Document(usize),
    /// A here-string.
    Text(Word),
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

    /// What a tool that prepares an environment runs in it, read from each word that may be the program: `rm x` for
    /// `uv run rm x`.
    pub(super) fn launched(&self) -> Vec<Self> {
        let launcher = LAUNCHERS.iter().find(|(name, _)| self.name() == Some(name));
        let begin = launcher.and_then(|(_, verb)| {
            let mut words = self.arguments.iter();
            if verb.is_empty() {
                Some(0)
            } else {
                words.position(|word| word.text() == *verb).map(|at| at + 1)
            }
        });
        let words = begin.map_or(&[][..], |begin| &self.arguments[begin..]);
        let programs = (0..words.len()).filter(|at| !words[*at].text().starts_with('-'));
        let launched = programs.map(|at| SimpleCommand {
            program: Some(words[at].clone()),
            arguments: words[at + 1..].to_vec(),
            ..SimpleCommand::default()
        });
        launched.collect()
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
