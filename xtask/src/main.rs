//! Development commands: `tidy` checks what the compiler cannot, `errors` and `vocabulary` write the generated documents, and
//! `mutants` judges what cargo-mutants found.
//!
//! It parses, runs one command and sets the exit code. It builds and tests nothing: that is `./test`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool")]

mod arrows;
mod clauses;
mod conformance;
mod documents;
mod evidence;
mod failpoints;
mod finding;
mod literals;
mod marks;
mod module_docs;
mod mutants;
mod names;
mod sizes;
mod spelling;
mod tidy;
mod tree;
mod vocabulary;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

use crate::documents::Generated;
use crate::tree::Tree;
use crate::vocabulary::Vocabulary;

const USAGE: &str = "\
Usage: cargo xtask <command>

Commands:
  tidy            check sizes, names, module docs, arrows between crates, failpoints, words, and the documents
  errors          write docs/errors.md from the error table
  vocabulary      write docs/vocabulary.md from the types and the list of words; with --check only look whether it is
                  current, and whether documents and texts keep to it
  mutants FOLDER  compare what cargo-mutants found (its mutants.out) with the accepted survivors
  help            show this text
";

const FAILED: u8 = 1;
const MISUSED: u8 = 2;

#[derive(Debug, PartialEq, Eq)]
enum Command {
    Tidy,
    Errors,
    Vocabulary,
    CheckVocabulary,
    Mutants(PathBuf),
    Help,
}

fn parse(arguments: &[String]) -> Result<Command, String> {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => Err("a command is missing".to_owned()),
        ["tidy"] => Ok(Command::Tidy),
        ["errors"] => Ok(Command::Errors),
        ["vocabulary"] => Ok(Command::Vocabulary),
        ["vocabulary", "--check"] => Ok(Command::CheckVocabulary),
        ["mutants", folder] => Ok(Command::Mutants(folder.into())),
        ["mutants"] => Err("the folder of cargo-mutants is missing".to_owned()),
        ["help" | "--help" | "-h"] => Ok(Command::Help),
        ["tidy" | "errors" | "vocabulary" | "help", extra, ..] | ["mutants", _, extra, ..] => {
            Err(format!("unexpected argument `{extra}`"))
        }
        [unknown, ..] => Err(format!("unknown command `{unknown}`")),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    let outcome = match parse(&arguments) {
        Ok(Command::Tidy) => tidy(),
        Ok(Command::Errors) => write(&Generated::errors(runyard_domain::errors_markdown())),
        Ok(Command::Vocabulary) => write_vocabulary(),
        Ok(Command::CheckVocabulary) => check_vocabulary(),
        Ok(Command::Mutants(folder)) => judge_mutants(&folder),
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
    let tree = Tree::read(&root())?;
    let vocabulary = Vocabulary::read(&tree);
    let generated =
        [Generated::errors(runyard_domain::errors_markdown()), Generated::vocabulary(vocabulary.markdown())];
    let report = tidy::check(&tree, &vocabulary, &generated);
    Ok(finish(&report.findings, &report))
}

fn judge_mutants(folder: &Path) -> anyhow::Result<ExitCode> {
    let tree = Tree::read(&root())?;
    let outcome = mutants::Outcome::read(folder)?;
    let findings = outcome.compare(tree.find(mutants::ACCEPTED));
    Ok(finish(&findings, &format!("mutants: {} tried, {} findings", outcome.tried(), findings.len())))
}

/// Says what was found, and whether that is a failure.
fn finish(findings: &[finding::Finding], summary: &dyn std::fmt::Display) -> ExitCode {
    for finding in findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!("{summary}");
        return ExitCode::SUCCESS;
    }
    eprintln!("{summary}");
    ExitCode::from(FAILED)
}

fn write_vocabulary() -> anyhow::Result<ExitCode> {
    let tree = Tree::read(&root())?;
    write(&Generated::vocabulary(Vocabulary::read(&tree).markdown()))
}

fn check_vocabulary() -> anyhow::Result<ExitCode> {
    let tree = Tree::read(&root())?;
    let vocabulary = Vocabulary::read(&tree);
    let mut findings = spelling::check(&tree, &vocabulary);
    findings.extend(Generated::vocabulary(vocabulary.markdown()).check(&tree));
    Ok(finish(&findings, &format!("vocabulary: {} findings", findings.len())))
}

fn write(document: &Generated) -> anyhow::Result<ExitCode> {
    let path = root().join(document.path);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    std::fs::write(&path, &document.text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("wrote {}", document.path);
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
    fn a_command_line_is_a_known_word_and_what_it_needs() {
        check(&["tidy"], Ok(Command::Tidy));
        check(&["errors"], Ok(Command::Errors));
        check(&["vocabulary"], Ok(Command::Vocabulary));
        check(&["vocabulary", "--check"], Ok(Command::CheckVocabulary));
        check(&["--help"], Ok(Command::Help));
        check(&["mutants", "target/mutants.out"], Ok(Command::Mutants("target/mutants.out".into())));
    }

    #[test]
    fn anything_else_is_refused() {
        check(&[], Err("a command is missing"));
        check(&["tidyy"], Err("unknown command `tidyy`"));
        check(&["tidy", "--fix"], Err("unexpected argument `--fix`"));
        check(&["mutants"], Err("the folder of cargo-mutants is missing"));
        check(&["mutants", "a", "b"], Err("unexpected argument `b`"));
    }
}
