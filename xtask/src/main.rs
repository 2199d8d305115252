//! Development commands: `tidy` checks what the compiler cannot, `errors` writes the generated error table.
//!
//! It parses, runs one command and sets the exit code. It builds and tests nothing: that is `./test`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool")]

mod arrows;
mod clauses;
mod conformance;
mod documents;
mod evidence;
mod finding;
mod marks;
mod module_docs;
mod names;
mod sizes;
mod tidy;
mod tree;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

const USAGE: &str = "\
Usage: cargo xtask <command>

Commands:
  tidy    check sizes, names, module docs, arrows between crates, and the documents
  errors  write docs/errors.md from the error table
  help    show this text
";

const FAILED: u8 = 1;
const MISUSED: u8 = 2;

#[derive(Debug, PartialEq, Eq)]
enum Command {
    Tidy,
    Errors,
    Help,
}

fn parse(arguments: &[String]) -> Result<Command, String> {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => Err("a command is missing".to_owned()),
        ["tidy"] => Ok(Command::Tidy),
        ["errors"] => Ok(Command::Errors),
        ["help" | "--help" | "-h"] => Ok(Command::Help),
        ["tidy" | "errors" | "help", extra, ..] => Err(format!("unexpected argument `{extra}`")),
        [unknown, ..] => Err(format!("unknown command `{unknown}`")),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    let outcome = match parse(&arguments) {
        Ok(Command::Tidy) => tidy(),
        Ok(Command::Errors) => write_errors(),
        Ok(Command::Help) => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            eprint!("xtask: {message}\n\n{USAGE}");
            return ExitCode::from(MISUSED);
        }
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::from(FAILED)
    })
}

fn tidy() -> anyhow::Result<ExitCode> {
    let tree = tree::Tree::read(&root())?;
    let report = tidy::check(&tree, &runyard_domain::errors_markdown());
    for finding in &report.findings {
        println!("{finding}");
    }
    if report.findings.is_empty() {
        println!("{report}");
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("{report}");
    Ok(ExitCode::from(FAILED))
}

fn write_errors() -> anyhow::Result<ExitCode> {
    let path = root().join(documents::ERRORS);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    std::fs::write(&path, runyard_domain::errors_markdown())
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("wrote {}", documents::ERRORS);
    Ok(ExitCode::SUCCESS)
}

/// The workspace root. The variable of the running Cargo wins: a target folder may have been copied.
fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().map_or_else(|| package.clone(), Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arguments: &[&str], expected: Result<Command, &str>) {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        assert_eq!(parse(&arguments), expected.map_err(str::to_owned));
    }

    #[test]
    fn a_command_line_is_one_known_word() {
        check(&["tidy"], Ok(Command::Tidy));
        check(&["errors"], Ok(Command::Errors));
        check(&["--help"], Ok(Command::Help));
    }

    #[test]
    fn anything_else_is_refused() {
        check(&[], Err("a command is missing"));
        check(&["tidyy"], Err("unknown command `tidyy`"));
        check(&["tidy", "--fix"], Err("unexpected argument `--fix`"));
    }
}
