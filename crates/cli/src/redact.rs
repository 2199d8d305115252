//! `runyard redact`: standard input to standard output, without secrets, as it streams by.

use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use clap::{Arg, ArgMatches, Command};
use runyard::{ActionError, Code};
use runyard_redact::{KNOWN_ALONE_MIN, KNOWN_TOTAL_MAX, Kind, Known, RedactError, Redactor, TagKey};
use runyard_surfaces::cli::{ExtraCommand, ExtraRun};

use crate::home::Home;
use crate::installation;

/// How much is read at a time, unless the caller says otherwise.
const CHUNK: usize = 64 * 1024;
/// A chunk is kept in memory as a whole.
const CHUNK_MAX: usize = 16 * 1024 * 1024;

pub(crate) fn command(home: Home) -> ExtraCommand {
    let command = Command::new("redact")
        .about("Copy standard input to standard output without secrets and private paths")
        .arg(
            Arg::new("known")
                .long("known")
                .value_name("FILE")
                .help("Values that are known to be secret, one in each line"),
        )
        .arg(
            Arg::new("kind")
                .long("kind")
                .value_name("KIND")
                .default_value(Kind::Text.word())
                .help("What the input is: text, json, diff or headers"),
        )
        .arg(
            Arg::new("chunk")
                .long("chunk")
                .value_name("N")
                .help("Feed N bytes at a time; the output is the same"),
        );
    let run =
        move |matches: ArgMatches| Box::pin(async move { Ok(told(redact(&home, &matches))) }) as ExtraRun;
    ExtraCommand { command, run: Box::new(run) }
}

/// The exit code. Standard output is the data and nothing else, so what went wrong is told on standard error.
fn told(done: Result<(), ActionError>) -> u8 {
    let Err(error) = done else { return 0 };
    let (code, row) = (error.code(), error.code().row());
    let message: String = error.message().chars().flat_map(shown).collect();
    let _ = writeln!(std::io::stderr(), "error[{}]: {message}\n  {}", code.as_str(), row.recovery);
    row.exit
}

/// A character of a message, which must stay in its line.
fn shown(character: char) -> Vec<char> {
    if character.is_control() { character.escape_default().collect() } else { vec![character] }
}

fn redact(home: &Home, matches: &ArgMatches) -> Result<(), ActionError> {
    let kind: Kind =
        matches.get_one::<String>("kind").map_or(Ok(Kind::Text), |word| word.parse()).map_err(refused)?;
    let known = matches.get_one::<String>("known").map_or(Ok(Vec::new()), |file| read_known(file))?;
    warn_of_short(&known);
    let chunk = matches.get_one::<String>("chunk").map_or(Ok(CHUNK), |number| chunk_of(number))?;
    let key = installation::tag_key(home).unwrap_or_else(|error| {
        // Whoever cannot write the home still gets a redacted text; only its tags mean nothing elsewhere.
        warn(&format!("tags will differ from run to run: {error:#}"));
        TagKey::for_this_process()
    });
    let redactor = installation::redactor(home, key).known(known).build().map_err(refused)?;
    match copy(&redactor, kind, chunk) {
        Ok(()) => Ok(()),
        // A reader that went away has had enough.
        Err(Broken::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(Broken::Output(error)) => Err(io_failed("write standard output", &error)),
        Err(Broken::Input(error)) => Err(io_failed("read standard input", &error)),
    }
}

fn chunk_of(number: &str) -> Result<usize, ActionError> {
    let chunk = number.parse().ok().filter(|chunk| (1..=CHUNK_MAX).contains(chunk));
    chunk.ok_or_else(|| invalid(format!("--chunk is a number from 1 to {CHUNK_MAX}.")))
}

enum Broken {
    Input(std::io::Error),
    Output(std::io::Error),
}

fn copy(redactor: &Redactor, kind: Kind, chunk: usize) -> Result<(), Broken> {
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut stream = redactor.stream(kind);
    let mut buffer = vec![0; chunk];
    loop {
        let read = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(Broken::Input(error)),
        };
        // What is settled is shown at once, so that live text is not delayed.
        output.write_all(&stream.push(&buffer[..read])).map_err(Broken::Output)?;
        output.flush().map_err(Broken::Output)?;
    }
    output.write_all(&stream.finish()).and_then(|()| output.flush()).map_err(Broken::Output)
}

fn read_known(file: &str) -> Result<Vec<Known>, ActionError> {
    if file == "-" {
        return Err(invalid("--known takes a file: standard input is what is redacted.".to_owned()));
    }
    let unreadable =
        |error: std::io::Error| invalid(format!("Cannot read {}: {error}.", Path::new(file).display()));
    // More than can be known is not read, however large the file is.
    let mut bytes = Vec::new();
    let limit = 4 * KNOWN_TOTAL_MAX as u64;
    std::fs::File::open(file)
        .and_then(|file| file.take(limit + 1).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    if bytes.len() as u64 > limit {
        return Err(invalid(format!("The file of known values has more than {limit} bytes.")));
    }
    let lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    Ok(lines.filter(|line| !line.trim_ascii().is_empty()).map(Known::value).collect())
}

fn warn_of_short(known: &[Known]) {
    let short = known.iter().filter(|known| known.is_short()).count();
    let values = if short == 1 { "value has" } else { "values have" };
    let found = if short == 1 { "it is" } else { "they are" };
    if short > 0 {
        warn(&format!(
            "{short} known {values} fewer than {KNOWN_ALONE_MIN} bytes; {found} found only as the value of a key that names \
             a secret"
        ));
    }
}

fn warn(message: &str) {
    let _ = writeln!(std::io::stderr(), "warning: {}", message.chars().flat_map(shown).collect::<String>());
}

fn invalid(message: String) -> ActionError {
    ActionError::new(Code::ValidationError, message)
}

fn refused(error: RedactError) -> ActionError {
    let mut message = error.to_string();
    if let Some(first) = message.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    ActionError::new(error.code(), format!("{message}."))
}

fn io_failed(what: &str, error: &std::io::Error) -> ActionError {
    ActionError::new(Code::StorageIo, format!("Cannot {what}: {error}."))
}
