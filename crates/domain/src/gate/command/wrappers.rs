//! Commands that run other commands, opened up.
//!
//! An option that is not known here may change what runs, so the command that has it is opaque; so is a word that only the running
//! shell knows, where it could be such an option. A file of the agent's that is called like a wrapper is a program of its own. What
//! interpreters, build tools and scripts do is not looked into: only the sandbox bounds it.

use std::collections::VecDeque;

use super::builtins::is_told;
use super::launchers::{is_unclear, launched};
use super::options::run_commands;
use super::shells::{eval, is_script, is_shell, operands, shell, trap};
use super::{Assignment, DEPTH_MAX, Git, Opening, PARTS_MAX, SimpleCommand, Unparsed, Word, open_text, sed};

/// How a program names the command that it runs.
struct Wrapper {
    names: &'static [&'static str],
    /// Options without a value: letters.
    flags: &'static str,
    /// Options with a value: letters.
    valued: &'static str,
    /// Long options without a value.
    long: &'static [&'static str],
    /// Long options with a value.
    long_valued: &'static [&'static str],
    /// How many words stand before the command.
    operands: usize,
    /// Whether `NAME=value` may stand before the command.
    assigns: bool,
    /// Whether it changes more than how the command is started, so that it is judged itself too.
    judged: bool,
}

const PLAIN: Wrapper = Wrapper {
    names: &[],
    flags: "",
    valued: "",
    long: &[],
    long_valued: &[],
    operands: 0,
    assigns: false,
    judged: false,
};

const WRAPPERS: [Wrapper; 10] = [
    Wrapper {
        names: &["command", "builtin", "nohup", "gnohup", "noglob", "nocorrect", "-", "busybox", "toybox"],
        flags: "p",
        ..PLAIN
    },
    Wrapper { names: &["exec"], flags: "cl", valued: "a", ..PLAIN },
    Wrapper {
        names: &["env", "genv"],
        flags: "i0v",
        valued: "uS",
        long: &["--ignore-environment", "--null", "--debug"],
        long_valued: &["--unset", "--split-string"],
        assigns: true,
        ..PLAIN
    },
    Wrapper {
        names: &["nice", "gnice"],
        flags: "0123456789",
        valued: "n",
        long_valued: &["--adjustment"],
        ..PLAIN
    },
    Wrapper {
        names: &["timeout", "gtimeout"],
        flags: "fpv",
        valued: "ks",
        long: &["--foreground", "--preserve-status", "--verbose"],
        long_valued: &["--kill-after", "--signal"],
        operands: 1,
        ..PLAIN
    },
    Wrapper { names: &["time", "gtime"], flags: "pv", long: &["--portability", "--verbose"], ..PLAIN },
    Wrapper {
        names: &["stdbuf", "gstdbuf"],
        valued: "ioe",
        long_valued: &["--input", "--output", "--error"],
        ..PLAIN
    },
    Wrapper { names: &["setsid"], flags: "cfw", long: &["--ctty", "--fork", "--wait"], ..PLAIN },
    Wrapper { names: &["ionice"], flags: "t", valued: "cn", ..PLAIN },
    Wrapper {
        names: &["sudo", "doas"],
        flags: "AbEHknPSLs",
        valued: "ugpCUa",
        long: &["--preserve-env", "--non-interactive", "--set-home", "--stdin", "--background"],
        long_valued: &["--user", "--group", "--prompt"],
        assigns: true,
        judged: true,
        ..PLAIN
    },
];

const XARGS: Wrapper = Wrapper {
    flags: "0rtpox",
    valued: "nPLIJsdaE",
    long: &["--null", "--no-run-if-empty", "--verbose", "--interactive", "--exit"],
    long_valued: &["--max-args", "--max-procs", "--delimiter", "--arg-file", "--max-chars"],
    ..PLAIN
};

/// Programs that run commands in ways that are not read here.
#[rustfmt::skip]
const OPAQUE: [&str; 141] = [
    "parallel", "script", "su", "runuser", "pkexec", "flock", "chroot", "unshare", "nsenter", "systemd-run",
    "taskset", "chrt", "numactl", "strace", "ltrace", "tmux", "screen", "at", "batch", "crontab", "entr",
    "watch", "proxychains", "proxychains4", "torsocks", "fakeroot", "gdb", "lldb", "valgrind", "perf",
    "hyperfine", "fish", "csh", "tcsh", "pwsh", "nu", "xonsh", "elvish", "expect", "start-stop-daemon",
    "bind", "compgen", "complete", "enable", "let", "integer", "float", "fc", "history", "repeat",
    "emulate", "sched", "zpty", "zargs", "autoload", "prlimit", "setarch", "linux32", "linux64", "i386",
    "i486", "i586", "i686", "x86_64", "uname26", "setpriv", "choom", "uclampset", "schedtool", "cset",
    "cgexec", "cpulimit", "runcon", "capsh", "aa-exec", "sg", "newgrp", "run0", "gosu", "su-exec",
    "setuidgid", "chpst", "envdir", "envuidgid", "softlimit", "setlock", "timelimit", "systemd-inhibit",
    "systemd-cat", "ssh-agent", "gpg-agent", "dbus-run-session", "dbus-launch", "dbus-exec", "xvfb-run",
    "xinit", "startx", "xterm", "unbuffer", "rlwrap", "chronic", "ifne", "mispipe", "pee", "run-one",
    "run-parts", "lckdo", "daemonize", "watchexec", "nodemon", "faketime", "catchsegv",
    "eatmydata", "fakechroot", "proot", "schroot", "bwrap", "firejail", "tini", "dumb-init", "tsocks",
    "torify", "trickle", "ip", "rr", "heaptrack", "memusage", "sotruss", "uftrace", "trace-cmd",
    "gdbserver", "qemu-x86_64", "qemu-aarch64", "box64", "wine", "coreutils", "gchroot",
    "logsave", "socat", "sem", "nix-shell",
];

/// Opens a command up, and puts it and everything that it runs into the list.
pub(super) fn open(
    command: SimpleCommand,
    documents: &[Word],
    depth: usize,
    opened: &mut Vec<SimpleCommand>,
) -> Result<(), Unparsed> {
    if depth >= DEPTH_MAX {
        return Err(Unparsed::TooDeep);
    }
    let mut found = contents(&command, documents);
    if found.opening == Opening::Opened && !command.is_installed() {
        found.opening = Opening::Plain;
    } else if found.opening == Opening::Opened && command.disputed && !found.texts.is_empty() {
        found.opening = Opening::Opaque;
    }
    if opened.len() >= PARTS_MAX {
        return Err(Unparsed::TooMany);
    }
    let launched = command.launched;
    opened.push(SimpleCommand { opening: found.opening, ..command });
    let inside = opened.len();
    for text in found.texts {
        open_text(&text, depth + 1, opened)?;
    }
    for inner in found.commands {
        open(inner, documents, depth + 1, opened)?;
    }
    for inner in &mut opened[inside..] {
        inner.launched = inner.launched.max(launched);
    }
    Ok(())
}

/// What a command runs.
pub(super) struct Contents {
    pub(super) opening: Opening,
    pub(super) texts: Vec<String>,
    pub(super) commands: Vec<SimpleCommand>,
}

impl Contents {
    pub(super) const fn nothing(opening: Opening) -> Self {
        Contents { opening, texts: Vec::new(), commands: Vec::new() }
    }

    pub(super) fn text(text: &str) -> Self {
        Contents { texts: vec![text.to_owned()], ..Contents::nothing(Opening::Opened) }
    }

    pub(super) fn of_word(word: &Word) -> Self {
        word.literal().map_or(Contents::nothing(Opening::Opaque), Contents::text)
    }
}

fn contents(command: &SimpleCommand, documents: &[Word]) -> Contents {
    let Some(name) = command.name() else {
        let opening = if command.program.is_some() { Opening::Opaque } else { Opening::Plain };
        return Contents::nothing(opening);
    };
    match name {
        _ if is_shell(name) => shell(command, documents),
        "xargs" | "gxargs" => xargs(command),
        "find" | "gfind" => find(command),
        "eval" => eval(command),
        "trap" => trap(command),
        "source" | "." if !operands(command).first().is_some_and(is_script) => {
            Contents::nothing(Opening::Opaque)
        }
        // Asks where a program is, and runs nothing.
        "command" if matches!(command.arguments.first().map(Word::text), Some("-v" | "-V")) => {
            Contents::nothing(Opening::Plain)
        }
        _ if is_opaque(name, command) => Contents::nothing(Opening::Opaque),
        _ => match WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&name)) {
            Some(wrapper) => wrapped(wrapper, command),
            None => Contents { commands: launched(command), ..Contents::nothing(Opening::Plain) },
        },
    }
}

/// Whether the program runs commands in ways that are not read here, or is one that only the running system knows.
fn is_opaque(name: &str, command: &SimpleCommand) -> bool {
    let is_loader = ["ld-linux", "ld-musl", "ld.so", "ld64.so"].iter().any(|loader| name.starts_with(loader));
    let is_told = is_told(name, &command.arguments)
        || run_commands(command)
        || is_unclear(command)
        || Git::of(command).is_some_and(|git| !git.is_known)
        || (matches!(name, "sed" | "gsed") && !sed::only_edits(&command.arguments));
    OPAQUE.contains(&name) || is_loader || is_told || !command.program.as_ref().is_some_and(is_script)
}

fn wrapped(wrapper: &Wrapper, command: &SimpleCommand) -> Contents {
    let Some(rest) = wrapper.rest(&command.arguments) else { return Contents::nothing(Opening::Opaque) };
    let Some((program, arguments)) = rest.words.split_first() else {
        // With some options a program that raises rights then starts a shell.
        return Contents::nothing(if wrapper.judged { Opening::Opaque } else { Opening::Plain });
    };
    let inner = SimpleCommand {
        program: Some(program.clone()),
        arguments: arguments.to_vec(),
        assignments: command.assignments.iter().cloned().chain(rest.assignments).collect(),
        piped: command.piped,
        reads: command.reads.clone(),
        input: command.input.clone(),
        disputed: command.disputed,
        ..SimpleCommand::default()
    };
    let opening = if wrapper.judged { Opening::Plain } else { Opening::Opened };
    Contents { commands: vec![inner], ..Contents::nothing(opening) }
}

/// What stands after a wrapper's own options.
#[derive(Default)]
struct Rest {
    words: Vec<Word>,
    assignments: Vec<Assignment>,
    /// What `xargs -I` puts arguments in place of.
    replaced: Option<String>,
}

impl Wrapper {
    /// The command after the options, or nothing where an option is not known.
    fn rest(&self, arguments: &[Word]) -> Option<Rest> {
        let mut words: VecDeque<Word> = arguments.iter().cloned().collect();
        let mut rest = Rest::default();
        let mut options_ended = false;
        while let Some(first) = words.front() {
            let Some(text) = first.literal().map(str::to_owned) else {
                // Where options could still come, an expansion could be one; so it could where an operand is due.
                return None;
            };
            let is_option = text.starts_with('-') && text.len() > 1 && !options_ended;
            if is_option && text == "--" {
                words.pop_front();
                options_ended = true;
            } else if is_option && text.starts_with("--") {
                self.long_option(&text, &mut words)?;
            } else if text == "-" && self.assigns {
                words.pop_front();
            } else if is_option {
                self.letters(&text, &mut words, &mut rest)?;
            } else if let Some((name, value)) = text.split_once('=').filter(|_| self.assigns) {
                let value = Word::Literal(value.to_owned());
                rest.assignments.push(Assignment { name: name.to_owned(), value });
                words.pop_front();
            } else {
                break;
            }
        }
        if words.iter().take(self.operands).any(|operand| operand.literal().is_none()) {
            return None;
        }
        rest.words = words.into_iter().skip(self.operands).collect();
        Some(rest)
    }

    fn long_option(&self, text: &str, words: &mut VecDeque<Word>) -> Option<()> {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        words.pop_front();
        if self.long.contains(&name) {
            return Some(());
        }
        if !self.long_valued.contains(&name) {
            return None;
        }
        let value = match value {
            Some(value) => value.to_owned(),
            None => words.pop_front()?.literal()?.to_owned(),
        };
        if name == "--split-string" { split(&value, words) } else { Some(()) }
    }

    fn letters(&self, text: &str, words: &mut VecDeque<Word>, rest: &mut Rest) -> Option<()> {
        words.pop_front();
        for (at, letter) in text.char_indices().skip(1) {
            if self.flags.contains(letter) {
                continue;
            }
            if !self.valued.contains(letter) {
                return None;
            }
            let attached = &text[at + letter.len_utf8()..];
            let value = match attached {
                "" => words.pop_front()?.literal()?.to_owned(),
                attached => attached.to_owned(),
            };
            return match letter {
                'S' => split(&value, words),
                'I' | 'J' => {
                    rest.replaced = Some(value);
                    Some(())
                }
                _ => Some(()),
            };
        }
        Some(())
    }
}

/// Puts the words of `env -S` before the others, if they are plain.
fn split(text: &str, words: &mut VecDeque<Word>) -> Option<()> {
    if text.contains(['\'', '"', '\\', '$', '#']) {
        return None;
    }
    let plain = text.split_whitespace().map(|word| Word::Literal(word.to_owned()));
    for word in plain.rev() {
        words.push_front(word);
    }
    Some(())
}

/// What `xargs` reads, in its place among the words.
const READ: &str = "…";

fn xargs(command: &SimpleCommand) -> Contents {
    let Some(rest) = XARGS.rest(&command.arguments) else { return Contents::nothing(Opening::Opaque) };
    let replaced = |word: &Word| match (&rest.replaced, word) {
        (Some(mark), Word::Literal(text)) if text.contains(mark.as_str()) => {
            Word::Expanding(text.replace(mark.as_str(), READ))
        }
        _ => word.clone(),
    };
    let mut words: Vec<Word> = rest.words.iter().map(replaced).collect();
    if words.is_empty() {
        return Contents::nothing(Opening::Plain);
    }
    if rest.replaced.is_none() {
        words.push(Word::Expanding(READ.to_owned()));
    }
    let program = words.remove(0);
    let inner = SimpleCommand {
        program: Some(program),
        arguments: words,
        assignments: command.assignments.clone(),
        disputed: command.disputed,
        ..SimpleCommand::default()
    };
    Contents { commands: vec![inner], ..Contents::nothing(Opening::Opened) }
}

fn find(command: &SimpleCommand) -> Contents {
    // A word that expands could become an expression that runs something.
    let known = command.arguments.iter().all(|word| word.literal().is_some());
    let mut found = Contents::nothing(if known { Opening::Plain } else { Opening::Opaque });
    let mut words = command.arguments.iter().peekable();
    while let Some(word) = words.next() {
        if !matches!(word.text(), "-exec" | "-execdir" | "-ok" | "-okdir") {
            continue;
        }
        let mut inner = Vec::new();
        while let Some(word) = words.next_if(|word| word.text() != ";") {
            // Elsewhere a `+` is an argument like any other.
            if word.text() == "+" && inner.last().is_some_and(|last: &Word| last.text() == "{}") {
                break;
            }
            let is_replaced = word.text().contains("{}");
            inner.push(if is_replaced { Word::Expanding(word.text().to_owned()) } else { word.clone() });
        }
        if let Some((program, arguments)) = inner.split_first() {
            found.commands.push(SimpleCommand {
                program: Some(program.clone()),
                arguments: arguments.to_vec(),
                assignments: command.assignments.clone(),
                disputed: command.disputed,
                ..SimpleCommand::default()
            });
        }
    }
    found
}
