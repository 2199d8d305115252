//! How long one command takes from nothing to its end, beside the cheapest process there is.
#![allow(missing_docs, clippy::expect_used, reason = "a benchmark that cannot start has nothing to measure")]

use std::process::{Command, Stdio};

fn main() {
    divan::main();
}

fn run(program: &str, arguments: &[&str]) {
    let home = std::env::temp_dir().join("runyard-cold-start");
    let ended = Command::new(program)
        .args(arguments)
        .env("RUNYARD_HOME", home)
        .stdout(Stdio::null())
        .status()
        .expect("the program starts");
    assert!(ended.success());
}

#[divan::bench(sample_count = 200, sample_size = 1)]
fn baseline_true() {
    run("true", &[]);
}

#[divan::bench(sample_count = 200, sample_size = 1)]
fn runyard_version() {
    run(env!("CARGO_BIN_EXE_runyard"), &["--version"]);
}

#[divan::bench(sample_count = 200, sample_size = 1)]
fn runyard_call() {
    run(env!("CARGO_BIN_EXE_runyard"), &["call", "error-explain", "--code", "TIMEOUT"]);
}
