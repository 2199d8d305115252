//! The programs of others that the MCP tests use, as `./test` installs them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where they are.
pub(crate) struct Programs(PathBuf);

impl Programs {
    /// The folder that RUNYARD_TEST_NODE names, else the one in the target directory.
    pub(crate) fn find() -> Self {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let folder =
            std::env::var_os("RUNYARD_TEST_NODE").map_or_else(|| target.join("node-programs"), PathBuf::from);
        let programs = Programs(folder);
        let node = programs.node();
        assert!(node.is_file(), "there is no {}; ./test installs it", node.display());
        programs
    }

    pub(crate) fn modules(&self) -> PathBuf {
        self.0.join("node_modules")
    }

    fn node(&self) -> PathBuf {
        let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
        self.modules().join(format!("node-linux-{machine}/bin/node"))
    }

    fn script(&self, path: impl AsRef<Path>) -> Command {
        let mut command = Command::new(self.node());
        command.arg(self.modules().join(path));
        command
    }

    /// The conformance suite.
    #[allow(dead_code, reason = "each test file uses some")]
    pub(crate) fn conformance(&self) -> Command {
        self.script("@modelcontextprotocol/conformance/dist/index.js")
    }

    /// The server scenarios that a revision requires, by the suite's own list.
    #[allow(dead_code, reason = "each test file uses some")]
    pub(crate) fn required(&self, revision: &str) -> Vec<String> {
        let list = format!("@modelcontextprotocol/conformance/requirements/{revision}.yaml");
        let list = std::fs::read_to_string(self.modules().join(list)).unwrap();
        let of_server = list.lines().skip_while(|line| *line != "server:").skip(1);
        let named =
            of_server.map_while(|line| line.strip_prefix("  - ")).map(str::to_owned).collect::<Vec<_>>();
        assert!(named.len() >= 30, "the suite's list cannot be read: {named:?}");
        named
    }

    /// The inspector on the command line.
    #[allow(dead_code, reason = "each test file uses some")]
    pub(crate) fn inspector(&self) -> Command {
        let mut command = self.script("@modelcontextprotocol/inspector/clients/launcher/build/index.js");
        command.arg("--cli");
        command
    }

    /// A script of these tests, which is told where the modules are.
    #[allow(dead_code, reason = "each test file uses some")]
    pub(crate) fn own(&self, name: &str) -> Command {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp-clients");
        let mut command = Command::new(self.node());
        command.arg(folder.join(name)).arg(self.modules());
        command
    }
}

/// What a program says that ends well.
pub(crate) fn lines_of(command: &mut Command) -> String {
    let home = tempfile::tempdir().unwrap();
    let output = command.env("HOME", home.path()).current_dir(home.path()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}
