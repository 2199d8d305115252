//! What a checkout of many files costs, beside what `git clone --shared` of the same repository does.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark that cannot start has nothing to measure")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use divan::Bencher;
use runyard_checkout::{How, Options, make};

const FILES: usize = 50_000;
const FILES_IN_DIRECTORY: usize = 50;

fn main() {
    divan::main();
}

fn git(directory: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "gc.auto=0"]);
    command.arg("-C").arg(directory).args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(command.status().unwrap().success(), "git {arguments:?}");
}

/// A repository of source files of the sizes that source files have.
fn repository(directory: &Path) {
    for number in 0..FILES {
        let inside = directory.join(format!("src/module_{}", number / FILES_IN_DIRECTORY));
        if number % FILES_IN_DIRECTORY == 0 {
            fs::create_dir_all(&inside).unwrap();
        }
        let line = format!("pub fn step_{number}(input: u64) -> u64 {{ input.wrapping_mul({number}) }}\n");
        fs::write(inside.join(format!("file_{number}.rs")), line.repeat(10 + number % 90)).unwrap();
    }
    git(directory, &["init", "-q"]);
    git(directory, &["add", "."]);
    git(directory, &["commit", "-q", "-m", "all of it"]);
    git(directory, &["repack", "-a", "-d", "-q"]);
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn checkout_50_000_files(bencher: Bencher<'_, '_>) {
    let kept = tempfile::tempdir().unwrap();
    let workspace = kept.path().join("workspace");
    fs::create_dir(&workspace).unwrap();
    repository(&workspace);
    let mut round = 0;
    bencher
        .with_inputs(|| {
            round += 1;
            (kept.path().join(format!("checkout-{round}")), kept.path().join(format!("base-{round}")))
        })
        .bench_local_values(|(checkout, base)| {
            let made =
                make(&workspace, &checkout, &base, &Options::default(), &AtomicBool::new(false)).unwrap();
            assert!(matches!(made.how, How::Clone { .. }) && made.files == FILES as u64);
        });
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn baseline_git_clone_shared(bencher: Bencher<'_, '_>) {
    let kept = tempfile::tempdir().unwrap();
    let workspace = kept.path().join("workspace");
    fs::create_dir(&workspace).unwrap();
    repository(&workspace);
    let mut round = 0;
    bencher
        .with_inputs(|| {
            round += 1;
            format!("../clone-{round}")
        })
        .bench_local_values(|to| git(&workspace, &["clone", "-q", "--shared", ".", &to]));
}
