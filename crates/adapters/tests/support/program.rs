//! The real codex, which must be there.

use std::path::{Path, PathBuf};

const VERSION: &str = "0.166.0";

/// The program.
pub(crate) fn program() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join(format!("codex-{VERSION}"));
    let native = "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";
    let program = std::env::var_os("RUNYARD_TEST_CODEX").map_or_else(|| target.join(native), PathBuf::from);
    assert!(
        program.is_file(),
        "there is no {}; install it: npm install --prefix {} --no-save --no-audit --no-fund --ignore-scripts \
         @openai/codex@{VERSION}, or name it in RUNYARD_TEST_CODEX",
        program.display(),
        target.display()
    );
    program
}
