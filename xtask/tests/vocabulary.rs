//! This repository keeps to its own vocabulary.

#![allow(clippy::unwrap_used, missing_docs)]

use std::process::Command;

#[test]
fn c23_no_document_and_no_text_of_the_program_has_a_word_that_is_not_of_the_vocabulary() {
    let found = Command::new(env!("CARGO_BIN_EXE_xtask")).args(["vocabulary", "--check"]).output().unwrap();
    let said = String::from_utf8_lossy(&found.stdout);
    assert!(found.status.success(), "{said}{}", String::from_utf8_lossy(&found.stderr));
    assert_eq!(said, "vocabulary: 0 findings\n");
}
