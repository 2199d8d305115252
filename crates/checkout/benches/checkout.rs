//! What a checkout of many files, the diff of many changes and their applying cost, beside what git does for the same.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark that cannot start has nothing to measure")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{LazyLock, OnceLock};

use divan::Bencher;
use runyard_checkout::apply::{ApplyLimits, Sides, carry_out, plan};
use runyard_checkout::{Base, Changes, CompareLimits, Contents, How, Options, Root, compare, make};
use tempfile::TempDir;

const FILES: usize = 50_000;
const FILES_IN_DIRECTORY: usize = 50;
/// Every fifth file is changed.
const CHANGED: usize = 10_000;

fn main() {
    divan::main();
    // Nobody else drops what is static.
    if let Some(scene) = MADE.get() {
        fs::remove_dir_all(scene.0.path()).unwrap();
    }
}

fn git(directory: &Path, arguments: &[&str]) -> Vec<u8> {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "gc.auto=0"]);
    command.arg("-C").arg(directory).args(arguments).stderr(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {arguments:?}");
    output.stdout
}

fn file(directory: &Path, number: usize) -> PathBuf {
    directory.join(format!("src/module_{}/file_{number}.rs", number / FILES_IN_DIRECTORY))
}

fn line(number: usize) -> String {
    format!("pub fn step_{number}(input: u64) -> u64 {{ input.wrapping_mul({number}) }}\n")
}

/// A repository of source files of the sizes that source files have, with everything that is measured on it.
struct Scene(TempDir);

static MADE: OnceLock<Scene> = OnceLock::new();
static SCENE: LazyLock<&'static Scene> = LazyLock::new(|| MADE.get_or_init(repository));

fn repository() -> Scene {
    let scene = Scene(tempfile::tempdir().unwrap());
    let workspace = scene.path("workspace");
    for number in 0..FILES {
        let path = file(&workspace, number);
        if number % FILES_IN_DIRECTORY == 0 {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
        fs::write(path, line(number).repeat(10 + number % 90)).unwrap();
    }
    git(&workspace, &["init", "-q"]);
    git(&workspace, &["add", "."]);
    git(&workspace, &["commit", "-q", "-m", "all of it"]);
    git(&workspace, &["repack", "-a", "-d", "-q"]);
    scene
}

/// The same changes in a checkout of ours and in a clone of git's.
static CHANGES: LazyLock<Changes> = LazyLock::new(|| {
    let (checkout, base) = (SCENE.path("changed"), SCENE.path("changed-base"));
    make(&SCENE.path("workspace"), &checkout, &base, &Options::default(), &AtomicBool::new(false)).unwrap();
    git(&SCENE.path("workspace"), &["clone", "-q", "--shared", ".", "../changed-clone"]);
    for number in (0..FILES).step_by(FILES / CHANGED) {
        let text = format!("// changed\n{}", line(number).repeat(10 + number % 90));
        for directory in [&checkout, &SCENE.path("changed-clone")] {
            fs::write(file(directory, number), &text).unwrap();
        }
    }
    compared()
});

impl Scene {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A name that nothing has yet.
    fn fresh(&self, name: &str) -> PathBuf {
        static ROUND: AtomicU32 = AtomicU32::new(0);
        self.path(&format!("{name}-{}", ROUND.fetch_add(1, Ordering::Relaxed)))
    }
}

fn compared() -> Changes {
    let base_dir = SCENE.path("changed-base");
    let base = Base::read(&base_dir).unwrap();
    let mut contents = Contents::open(&base, &base_dir).unwrap();
    let checkout = Root::open(&SCENE.path("changed")).unwrap();
    compare(&base, &mut contents, &checkout, &CompareLimits::default(), &AtomicBool::new(false)).unwrap()
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn a_checkout_of_50_000_files(bencher: Bencher<'_, '_>) {
    let workspace = SCENE.path("workspace");
    bencher.with_inputs(|| (SCENE.fresh("checkout"), SCENE.fresh("base"))).bench_local_values(
        |(checkout, base)| {
            let made =
                make(&workspace, &checkout, &base, &Options::default(), &AtomicBool::new(false)).unwrap();
            assert!(matches!(made.how, How::Clone { .. }) && made.files == FILES as u64);
        },
    );
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn a_baseline_git_clone_shared(bencher: Bencher<'_, '_>) {
    let workspace = SCENE.path("workspace");
    bencher
        .with_inputs(|| SCENE.fresh("clone"))
        .bench_local_values(|to| git(&workspace, &["clone", "-q", "--shared", ".", to.to_str().unwrap()]));
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn b_diff_of_10_000_changes(bencher: Bencher<'_, '_>) {
    assert_eq!(CHANGES.files.len(), CHANGED);
    bencher.bench_local(|| assert_eq!(compared().files.len(), CHANGED));
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn b_baseline_git_diff(bencher: Bencher<'_, '_>) {
    assert_eq!(CHANGES.files.len(), CHANGED);
    let clone = SCENE.path("changed-clone");
    bencher.bench_local(|| assert!(!git(&clone, &["diff"]).is_empty()));
}

/// Planned, staged and carried out, all of it durable; each time to a clone that is as it was.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn c_apply_of_10_000_changes(bencher: Bencher<'_, '_>) {
    let changes = &*CHANGES;
    bencher.with_inputs(untouched).bench_local_values(|workspace| {
        let base_dir = SCENE.path("changed-base");
        let base = Base::read(&base_dir).unwrap();
        let mut contents = Contents::open(&base, &base_dir).unwrap();
        let checkout = Root::open(&SCENE.path("changed")).unwrap();
        let (journal, workspace) = (SCENE.fresh("journal"), Root::open(&workspace).unwrap());
        let mut sides =
            Sides { base: &base, contents: &mut contents, checkout: &checkout, workspace: &workspace };
        let planned = plan(changes, None, &mut sides, &|_| false, &ApplyLimits::default()).unwrap();
        planned.stage(&journal, &workspace).unwrap();
        assert_eq!(
            carry_out(&journal, &workspace, &AtomicBool::new(false), &|_| {}).unwrap().paths.len(),
            CHANGED
        );
    });
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn c_baseline_git_apply(bencher: Bencher<'_, '_>) {
    assert_eq!(CHANGES.files.len(), CHANGED);
    let patch = SCENE.path("changes.patch");
    fs::write(&patch, git(&SCENE.path("changed-clone"), &["diff", "--binary"])).unwrap();
    bencher
        .with_inputs(untouched)
        .bench_local_values(|workspace| git(&workspace, &["apply", patch.to_str().unwrap()]));
}

fn untouched() -> PathBuf {
    let to = SCENE.fresh("untouched");
    git(&SCENE.path("workspace"), &["clone", "-q", "--shared", ".", to.to_str().unwrap()]);
    to
}
