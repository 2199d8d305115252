//! The committed page is what its sources make: a hash of them is written when it is built, and computed anew here.
//!
//! The same in JavaScript is `web/scripts/source-hash.mjs`: every file by its path from `web/` with slashes, in the order of the
//! paths' bytes; of each the path, a zero byte and the SHA-256 of what it holds; of all of that the SHA-256.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a failed expectation fails the test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

const FILES: [&str; 6] = [
    "package.json",
    "package-lock.json",
    "tsconfig.base.json",
    "apps/console/package.json",
    "apps/console/index.html",
    "apps/console/vite.config.ts",
];
const FOLDERS: [&str; 2] = ["apps/console/src", "apps/console/public"];

fn web() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web").canonicalize().unwrap()
}

/// The hash of everything that the page is made of.
fn source_hash(web: &Path) -> String {
    let mut found = BTreeMap::new();
    for file in FILES {
        add(web, &web.join(file), &mut found);
    }
    for folder in FOLDERS {
        add_all(web, &web.join(folder), &mut found);
    }
    for package in entries(&web.join("packages")) {
        add(web, &package.join("package.json"), &mut found);
        add_all(web, &package.join("src"), &mut found);
    }
    let all = found.iter().fold(Sha256::new(), |all, (path, digest)| {
        all.chain_update(path).chain_update([0]).chain_update(digest)
    });
    all.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn add(web: &Path, file: &Path, found: &mut BTreeMap<String, [u8; 32]>) {
    let content = fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let name = file.strip_prefix(web).unwrap().to_str().unwrap().to_owned();
    found.insert(name, Sha256::digest(content).into());
}

/// A folder that is not there holds nothing.
fn add_all(web: &Path, folder: &Path, found: &mut BTreeMap<String, [u8; 32]>) {
    for path in entries(folder) {
        if path.is_dir() { add_all(web, &path, found) } else { add(web, &path, found) }
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    if !folder.exists() {
        return Vec::new();
    }
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn the_committed_page_is_the_one_that_its_sources_make() {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("dist/ui-build.json");
    let built = fs::read_to_string(&built)
        .unwrap_or_else(|error| panic!("{}: {error}; run `npm run build` in web/", built.display()));
    let built: serde_json::Value = serde_json::from_str(&built).unwrap();
    let sources = source_hash(&web());
    assert_eq!(
        built["sources"],
        sources.as_str(),
        "the page is not what its sources make: run `npm run build` in web/"
    );
}

/// So that the test above cannot pass by looking at nothing.
#[test]
fn any_change_of_a_source_is_another_hash() {
    let web = std::env::temp_dir().join(format!("runyard-source-hash-{}", std::process::id()));
    let write = |name: &str, content: &str| {
        let path = web.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    FILES.iter().for_each(|file| write(file, "{}"));
    write("packages/client/package.json", "{}");
    write("packages/client/src/index.ts", "1");
    write("apps/console/src/deep/main.tsx", "1");
    let mut seen = vec![source_hash(&web)];
    // The same as `sourceHash` gives for these files, so that both mean the same.
    assert_eq!(seen[0], "b95162761c503c44069dff84834069fd6d1f1ec8d397d3af02db7e7afb7008b1");
    for (name, content) in [
        ("package-lock.json", "{ }"),
        ("packages/client/src/index.ts", "2"),
        ("packages/client/src/more.ts", ""),
        ("packages/other/package.json", "{}"),
        ("apps/console/src/deep/main.tsx", "2"),
        ("apps/console/public/assets/mark.svg", "<svg/>"),
        ("apps/console/index.html", "<p>"),
    ] {
        write(name, content);
        let hash = source_hash(&web);
        assert!(!seen.contains(&hash), "{name}");
        seen.push(hash);
    }
    write("packages/client/test/index.test.ts", "1");
    write("packages/client/node_modules/x/index.js", "1");
    assert_eq!(source_hash(&web), seen[seen.len() - 1], "tests and what is installed are no sources");
    fs::remove_dir_all(&web).unwrap();
}
