//! That whoever looks after `git` fails is no answer of `git`. A process of its own: what `git` is started through is said once.
#![allow(missing_docs, clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::fs;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use runyard_checkout::{CheckoutError, NOT_LOOKED_AFTER, Options, make, start_git_through};

#[test]
fn j05_where_git_cannot_be_looked_after_a_repository_is_not_taken_for_a_plain_directory() {
    let kept = tempfile::tempdir().unwrap();
    let workspace = kept.path().join("workspace");
    fs::create_dir(&workspace).unwrap();
    assert!(Command::new("git").args(["init", "-q"]).current_dir(&workspace).status().unwrap().success());
    start_git_through(["sh", "-c", &format!("exit {NOT_LOOKED_AFTER}")].map(Into::into));
    let (checkout, base) = (kept.path().join("checkout"), kept.path().join("base"));
    let made = make(&workspace, &checkout, &base, &Options::default(), &AtomicBool::new(false));
    assert!(matches!(made, Err(CheckoutError::Io { .. })), "{made:?}");
    assert!(!checkout.exists());
}
