//! Marks of unfinished work, and tests that are switched off without a reason.

use crate::finding::Finding;
use crate::tree::File;

// Each is put together so that this file does not find itself.
const MACROS: [&str; 2] = [concat!("to", "do!"), concat!("unimple", "mented!")];
const WORDS: [&str; 4] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX"), concat!("HA", "CK")];

pub(crate) fn check(file: &File) -> Vec<Finding> {
    if !file.is_rust() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (line, text) in file.lines() {
        for mark in MACROS.iter().chain(&WORDS).filter(|mark| has_word(text, mark)) {
            findings.push(Finding::new(&file.path, line, format!("unfinished work: `{mark}`")));
        }
        if is_ignored_without_reason(text.trim()) {
            findings.push(Finding::new(
                &file.path,
                line,
                "an ignored test needs a reason: `#[ignore = \"why\"]`",
            ));
        }
    }
    findings
}

fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(start, _)| {
        let after = &text[start + word.len()..];
        let ends = word.ends_with('!') || !after.starts_with(is_part);
        ends && !text[..start].ends_with(is_part)
    })
}

fn is_ignored_without_reason(line: &str) -> bool {
    let is_conditional = line.starts_with("#[cfg_attr(") && line.contains(", ignore)");
    let is_empty = line.starts_with("#[") && line.contains("ignore = \"\"");
    line.starts_with("#[") && line.contains("#[ignore]") || is_conditional || is_empty
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let file = File { path: "src/a.rs".to_owned(), text: text.to_owned() };
        check(&file).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_mark_is_found() {
        for mark in MACROS {
            assert_eq!(
                found(&format!("fn a() {{ {mark}() }}")),
                [format!("src/a.rs:1: unfinished work: `{mark}`")]
            );
        }
        for mark in WORDS {
            assert_eq!(
                found(&format!("\n// {mark}: later")),
                [format!("src/a.rs:2: unfinished work: `{mark}`")]
            );
        }
    }

    #[test]
    fn a_mark_inside_another_word_is_clean() {
        for mark in WORDS {
            assert_eq!(found(&format!("const {mark}S: u8 = 1; // A{mark} {mark}_A")), Vec::<String>::new());
        }
        assert_eq!(found(&format!("my_{}()", MACROS[0])), Vec::<String>::new());
    }

    #[test]
    fn an_ignored_test_needs_a_reason() {
        let message = "src/a.rs:1: an ignored test needs a reason: `#[ignore = \"why\"]`";
        for line in [
            "#[ignore]",
            "    #[ignore]",
            "#[test] #[ignore]",
            "#[cfg_attr(miri, ignore)]",
            "#[ignore = \"\"]",
        ] {
            assert_eq!(found(line), [message], "{line}");
        }
        for line in [
            "#[ignore = \"needs a network\"]",
            "// as `#[ignore]` would",
            "#[cfg_attr(miri, ignore = \"slow\")]",
        ] {
            assert_eq!(found(line), Vec::<String>::new(), "{line}");
        }
    }
}
