//! Which workspace crate may use which: the table, and the check of each manifest against it.
//!
//! Only what is built into a crate counts. Tests may use anything, so dev-dependencies are not looked at.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use crate::finding::Finding;
use crate::tree::File;

/// What a crate may use.
#[derive(Debug, Clone, Copy)]
enum May {
    UseAnything,
    Use(&'static [&'static str]),
}

/// Every crate by its folder, the planned ones too. A new arrow is an argued change.
#[rustfmt::skip]
const ARROWS: [(&str, May); 25] = [
    ("domain",            May::Use(&[])),
    ("redact",            May::Use(&["domain"])),
    ("actions-macros",    May::Use(&[])),
    ("actions",           May::Use(&["actions-macros", "redact", "domain"])),
    ("surfaces",          May::Use(&["actions", "ui-assets", "domain"])),
    ("store",             May::Use(&["redact", "domain"])),
    ("store-sqlite",      May::Use(&["store", "redact", "domain"])),
    ("store-postgres",    May::Use(&["store", "redact", "domain"])),
    ("llm",               May::Use(&["domain"])),
    ("agent",             May::Use(&["llm", "actions", "store", "redact", "domain"])),
    ("backend",           May::Use(&["domain"])),
    ("adapters",          May::Use(&["backend", "agent", "actions", "llm", "domain"])),
    ("engine",            May::Use(&["store", "backend", "redact", "domain"])),
    ("control",           May::Use(&["actions", "engine", "domain"])),
    ("checkout",          May::Use(&["domain"])),
    ("edge",              May::Use(&["backend", "checkout", "surfaces", "llm", "store", "redact", "domain"])),
    ("server",            May::Use(&["surfaces", "control", "engine"])),
    ("runyard",           May::Use(&["actions", "surfaces", "agent", "redact", "domain"])),
    ("ui-assets",         May::Use(&[])),
    ("demo-provider",     May::Use(&[])),
    ("cli",               May::UseAnything),
    ("testkit",           May::UseAnything),
    ("testkit-postgres",  May::Use(&[])),
    ("xtask",             May::Use(&["domain"])),
    ("examples/tasks",    May::Use(&["runyard"])),
];

/// The findings, and how many crates were looked at.
pub(crate) fn check(files: &[File]) -> (Vec<Finding>, usize) {
    let mut findings = Vec::new();
    let mut manifests = Vec::new();
    for file in files.iter().filter(|file| is_manifest(file)) {
        match DeTable::parse(&file.text) {
            Ok(table) => manifests.push((file, table.into_inner())),
            Err(error) => {
                findings.push(Finding::new(&file.path, 1, format!("is not TOML: {}", error.message())))
            }
        }
    }
    let renamed: BTreeMap<&str, &str> = manifests
        .iter()
        .find(|(file, _)| file.path == "Cargo.toml")
        .map(|(_, root)| renames(root))
        .unwrap_or_default();
    let crates: Vec<Crate<'_>> =
        manifests.iter().filter_map(|(file, manifest)| Crate::read(file, manifest, &renamed)).collect();
    let folders: BTreeMap<&str, &str> = crates.iter().map(|found| (found.package, found.folder)).collect();
    findings.extend(crates.iter().flat_map(|found| found.check(&folders)));
    (findings, crates.len())
}

fn is_manifest(file: &File) -> bool {
    let is_fixture = file.is_under("tests");
    !is_fixture && (file.path == "Cargo.toml" || file.path.ends_with("/Cargo.toml"))
}

/// A package of the workspace, with the packages that it is built from.
struct Crate<'a> {
    file: &'a File,
    folder: &'a str,
    package: &'a str,
    /// Each used package, and the byte in the manifest where it is named.
    uses: Vec<(&'a str, usize)>,
}

impl<'a> Crate<'a> {
    fn read(file: &'a File, manifest: &'a DeTable<'a>, renamed: &BTreeMap<&'a str, &'a str>) -> Option<Self> {
        let package = table(manifest, "package")?.get("name")?.get_ref().as_str()?;
        let folder = file.path.strip_suffix("/Cargo.toml").unwrap_or(".");
        let folder = folder.strip_prefix("crates/").unwrap_or(folder);
        let platforms = table(manifest, "target").into_iter().flat_map(|targets| targets.values());
        let platforms = platforms.filter_map(|platform| platform.get_ref().as_table());
        let mut uses = Vec::new();
        for section in std::iter::once(manifest).chain(platforms) {
            for kind in ["dependencies", "build-dependencies"] {
                for (alias, value) in table(section, kind).into_iter().flatten() {
                    let name = alias.get_ref().as_ref();
                    let name = package_of(value.get_ref()).or(renamed.get(name).copied()).unwrap_or(name);
                    uses.push((name, alias.span().start));
                }
            }
        }
        Some(Self { file, folder, package, uses })
    }

    fn check(&self, folders: &BTreeMap<&str, &str>) -> Vec<Finding> {
        let Some((_, may)) = ARROWS.iter().find(|(folder, _)| *folder == self.folder) else {
            let message =
                format!("crate `{}` is not in the table of arrows (xtask/src/arrows.rs)", self.folder);
            return vec![Finding::new(&self.file.path, 1, message)];
        };
        let May::Use(allowed) = may else { return Vec::new() };
        let used = self.uses.iter().filter_map(|(package, start)| Some((*folders.get(package)?, *start)));
        used.filter(|(folder, _)| !allowed.contains(folder))
            .map(|(folder, start)| {
                let line = self.file.text[..start].matches('\n').count() + 1;
                Finding::new(&self.file.path, line, format!("`{}` may not use `{folder}`", self.folder))
            })
            .collect()
    }
}

fn table<'a>(parent: &'a DeTable<'a>, name: &str) -> Option<&'a DeTable<'a>> {
    parent.get(name)?.get_ref().as_table()
}

fn package_of<'a>(dependency: &'a DeValue<'a>) -> Option<&'a str> {
    dependency.as_table()?.get("package")?.get_ref().as_str()
}

/// Names in `[workspace.dependencies]` that stand for a package of another name.
fn renames<'a>(root: &'a DeTable<'a>) -> BTreeMap<&'a str, &'a str> {
    let dependencies = table(root, "workspace").and_then(|workspace| table(workspace, "dependencies"));
    let entries = dependencies.into_iter().flatten();
    entries
        .filter_map(|(alias, value)| Some((alias.get_ref().as_ref(), package_of(value.get_ref())?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    const DOMAIN: (&str, &str) = ("crates/domain/Cargo.toml", "[package]\nname = \"runyard-domain\"\n");
    const ROOT: (&str, &str) = (
        "Cargo.toml",
        "[workspace.dependencies]\nrunyard-domain = { path = \"crates/domain\" }\n\
         words = { path = \"crates/domain\", package = \"runyard-domain\" }\n",
    );

    #[track_caller]
    fn check_manifest(path: &str, text: &str, expected: &[&str]) {
        let tree = Tree::of(&[ROOT, DOMAIN, (path, text)]);
        let (findings, crates) = check(&tree.files);
        assert_eq!(findings.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        assert_eq!(crates, 2);
    }

    #[test]
    fn an_arrow_of_the_table_and_a_foreign_crate_are_clean() {
        let actions = "[package]\nname = \"runyard-actions\"\n[dependencies]\nrunyard-domain.workspace = true\nserde = \"1\"\n";
        check_manifest("crates/actions/Cargo.toml", actions, &[]);
        check_manifest("crates/cli/Cargo.toml", &actions.replace("actions", "cli"), &[]);
    }

    #[test]
    fn an_arrow_outside_the_table_is_found_at_its_line() {
        let example =
            "[package]\nname = \"tasks\"\n\n[dependencies]\nserde = \"1\"\nrunyard-domain.workspace = true\n";
        let expected = ["examples/tasks/Cargo.toml:6: `examples/tasks` may not use `domain`"];
        check_manifest("examples/tasks/Cargo.toml", example, &expected);
    }

    #[test]
    fn a_rename_a_platform_and_a_build_script_hide_nothing() {
        let expected = ["crates/server/Cargo.toml:4: `server` may not use `domain`"];
        for dependency in [
            "[dependencies]\nwords.workspace = true\n",
            "[dependencies]\nwords = { path = \"../domain\", package = \"runyard-domain\" }\n",
            "[target.'cfg(unix)'.dependencies]\nrunyard-domain.workspace = true\n",
            "[build-dependencies]\nrunyard-domain = { path = \"../domain\" }\n",
        ] {
            let manifest = format!("[package]\nname = \"runyard-server\"\n{dependency}");
            check_manifest("crates/server/Cargo.toml", &manifest, &expected);
        }
    }

    #[test]
    fn tests_may_use_anything() {
        let manifest =
            "[package]\nname = \"runyard-server\"\n[dev-dependencies]\nrunyard-domain.workspace = true\n";
        check_manifest("crates/server/Cargo.toml", manifest, &[]);
    }

    #[test]
    fn a_crate_that_is_not_in_the_table_is_found() {
        let expected =
            ["crates/shelf/Cargo.toml:1: crate `shelf` is not in the table of arrows (xtask/src/arrows.rs)"];
        check_manifest("crates/shelf/Cargo.toml", "[package]\nname = \"runyard-shelf\"\n", &expected);
    }

    #[test]
    fn a_manifest_that_does_not_parse_is_found() {
        let (findings, _) = check(&Tree::of(&[("crates/shelf/Cargo.toml", "[package\n")]).files);
        assert_eq!(findings.len(), 1);
    }

    #[test]
    fn the_table_names_only_its_own_rows_and_has_no_cycle() {
        let mut left: Vec<(&str, &[&str])> = ARROWS
            .iter()
            .filter_map(|(folder, may)| match may {
                May::Use(allowed) => Some((*folder, *allowed)),
                May::UseAnything => None,
            })
            .collect();
        let mut ordered: Vec<&str> = Vec::new();
        while let Some(next) =
            left.iter().position(|(_, uses)| uses.iter().all(|used| ordered.contains(used)))
        {
            ordered.push(left.remove(next).0);
        }
        assert!(left.is_empty(), "unknown crates or a cycle among {left:?}");
    }
}
