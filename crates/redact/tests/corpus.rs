//! The labelled corpus: every planted secret is found, and no ordinary line is changed, whole and in pieces.
//!
//! `corpus/unseen` was written by somebody who had not seen the rules, and no rule was made for a line of it.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod corpus_lines;

use std::path::Path;

use corpus_lines::{Label, Line, folder, redactor};
use runyard_redact::{Kind, Redactor, holds_placeholder};

fn read(folder: &Path) -> Vec<(Kind, Line)> {
    let of = |kind| corpus_lines::read(folder, kind).into_iter().map(move |line| (kind, line));
    Kind::ALL.into_iter().flat_map(of).collect()
}

fn in_pieces(redactor: &Redactor, kind: Kind, text: &str, size: usize) -> String {
    let mut stream = redactor.stream(kind);
    let mut out = Vec::new();
    for piece in text.as_bytes().chunks(size) {
        out.extend_from_slice(&stream.push(piece));
    }
    out.extend_from_slice(&stream.finish());
    String::from_utf8(out).unwrap()
}

/// What went wrong with one line.
fn problems(kind: Kind, line: &Line) -> Vec<String> {
    let redactor = redactor(&line.known);
    let shown = redactor.text(kind, &line.text).into_inner();
    let mut problems = Vec::new();
    match line.label {
        Label::Ordinary if shown != line.text => problems.push(format!("changed: {shown:?}")),
        Label::Ordinary => {}
        Label::Secret => {
            let missed = line.secrets.iter().filter(|secret| shown.contains(*secret));
            problems.extend(missed.map(|secret| format!("missed {secret}")));
            let lost = line.keep.iter().filter(|kept| !shown.contains(*kept));
            problems.extend(lost.map(|kept| format!("lost {kept}")));
            if !holds_placeholder(&shown) {
                problems.push("no placeholder".to_owned());
            }
        }
    }
    for size in [1, 7] {
        if in_pieces(&redactor, kind, &line.text, size) != shown {
            problems.push(format!("differs in pieces of {size}"));
        }
    }
    let again = redactor.text(kind, &shown).into_inner();
    if again != shown {
        problems.push(format!("redacted again: {again:?}"));
    }
    problems
}

#[test]
fn b11_every_planted_secret_is_found_and_no_ordinary_line_is_changed() {
    let lines = read(&folder());
    let planted = lines.iter().filter(|(_, line)| line.label == Label::Secret).count();
    assert!(planted >= 150 && lines.len() - planted >= 150, "{planted} of {} are secret", lines.len());
    let wrong: Vec<String> = lines
        .iter()
        .map(|(kind, line)| (kind, line, problems(*kind, line)))
        .filter(|(_, _, problems)| !problems.is_empty())
        .map(|(kind, line, problems)| {
            format!("{} ({}): {}\n  {:?}", kind.word(), line.note, problems.join("; "), line.text)
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {} lines are wrong:\n{}", wrong.len(), lines.len(), wrong.join("\n"));
}

/// These lines are only counted, never shown: whoever looked at them would make rules for them.
#[test]
fn b11_most_secrets_are_found_in_lines_that_no_rule_was_made_for() {
    let lines = read(&folder().join("unseen"));
    let count = |label: Label| {
        let of = lines.iter().filter(|(_, line)| line.label == label);
        let wrong = of.clone().filter(|(kind, line)| !problems(*kind, line).is_empty()).count();
        (wrong, of.count())
    };
    let ((missed, planted), (changed, ordinary)) = (count(Label::Secret), count(Label::Ordinary));
    assert!(missed * 100 <= planted * 9, "{missed} of {planted} planted secrets are missed");
    assert!(changed * 100 <= ordinary * 6, "{changed} of {ordinary} ordinary lines are changed");
}
