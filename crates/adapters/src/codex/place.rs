//! Paths as requests name them: relative inside the workspace, absolute outside.

use std::path::{Component, Path, PathBuf};

/// The run's checkout, under the names that codex may use for it.
#[derive(Clone, Debug)]
pub(super) struct Workspace {
    roots: Vec<PathBuf>,
}

impl Workspace {
    pub(super) fn new(directory: &Path) -> Self {
        let real = directory.canonicalize().ok().filter(|real| real != directory);
        Workspace { roots: std::iter::once(directory.to_owned()).chain(real).collect() }
    }

    /// A path that codex gave, which may be relative to a directory that it gave.
    pub(super) fn place(&self, cwd: &str, path: &str) -> String {
        let whole = plain(&self.roots[0].join(cwd).join(path));
        let inside = self.roots.iter().find_map(|root| whole.strip_prefix(root).ok());
        match inside {
            Some(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
            Some(inside) => inside.to_string_lossy().into_owned(),
            None => whole.to_string_lossy().into_owned(),
        }
    }

    /// The same, if it is inside.
    pub(super) fn inside(&self, cwd: &str, path: &str) -> Option<String> {
        Some(self.place(cwd, path)).filter(|place| !place.starts_with('/'))
    }
}

/// The path without `.` and `..`, by its words alone.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            _ => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c17_paths_inside_are_relative_and_no_path_hides_behind_dots() {
        let workspace = Workspace::new(Path::new("/nowhere/checkout"));
        #[rustfmt::skip]
        let table = [
            ("/nowhere/checkout",     "",                       "."),
            ("/nowhere/checkout/src", "lib.rs",                 "src/lib.rs"),
            ("",                      "./a/../b",               "b"),
            ("/nowhere/checkout",     "../other/key",           "/nowhere/other/key"),
            ("/nowhere/checkout",     "/nowhere/checkout/a",    "a"),
            ("/nowhere/checkout",     "/nowhere/checkout-2/a",  "/nowhere/checkout-2/a"),
            ("/etc",                  "passwd",                 "/etc/passwd"),
        ];
        for (cwd, path, expected) in table {
            assert_eq!(workspace.place(cwd, path), expected);
        }
        assert_eq!(workspace.inside("/etc", "passwd"), None);
    }
}
