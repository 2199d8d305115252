//! Makes the table of embedded files out of `dist/`, or of the folder that `UI_DIST` names.
//!
//! The files are copied first, so that a page that is being built anew meanwhile is embedded whole or not at all by the next build.
//! Without a built page there is a placeholder, so that nobody needs Node to build the rest.

#![allow(clippy::print_stdout, reason = "that is how a build script speaks to cargo")]

use std::fmt::Write as _;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::{env, fs};

/// A page has no more files than this; whoever names a wrong folder is told so.
const FILES_MAX: usize = 1_000;
/// What stands beside the page and is not served.
const NOT_SERVED: &str = "ui-build.json";
const PLACEHOLDER: &str = "placeholder.html";

fn main() -> Result<(), Error> {
    let own = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    // The whole folder, since a `dist` that is not there yet cannot be watched.
    println!("cargo::rerun-if-changed=.");
    println!("cargo::rerun-if-env-changed=UI_DIST");
    let folder = env::var_os("UI_DIST").map_or_else(|| own.join("dist"), PathBuf::from);
    let out = PathBuf::from(variable("OUT_DIR")?);
    let copies = out.join("files");
    let _ = fs::remove_dir_all(&copies);
    fs::create_dir_all(&copies)?;
    let mut files = Vec::new();
    if folder.join("index.html").is_file() {
        println!("cargo::rerun-if-changed={}", folder.display());
        collect(&folder, &folder, &mut files)?;
    }
    let is_placeholder = files.is_empty();
    if is_placeholder {
        files.push(("index.html".to_owned(), own.join("src").join(PLACEHOLDER)));
    }
    files.sort();
    let mut table = format!(
        "/// Whether no page was built.\npub(crate) const IS_PLACEHOLDER: bool = {is_placeholder};\n"
    );
    table.push_str("/// Every file by its path, in the order of paths.\npub(crate) static FILES: &[(&str, &[u8])] = &[\n");
    for (number, (name, path)) in files.iter().enumerate() {
        let copy = copies.join(number.to_string());
        fs::copy(path, &copy)?;
        writeln!(table, "    ({name:?}, include_bytes!({:?})),", copy.display().to_string())
            .map_err(Error::other)?;
    }
    table.push_str("];\n");
    fs::write(out.join("files.rs"), table)
}

fn variable(name: &str) -> Result<String, Error> {
    env::var(name).map_err(Error::other)
}

/// Every file below a folder, by its path from the root with slashes.
fn collect(root: &Path, folder: &Path, files: &mut Vec<(String, PathBuf)>) -> Result<(), Error> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(root, &path, files)?;
            continue;
        }
        let name = path.strip_prefix(root).ok().and_then(Path::to_str).map(str::to_owned);
        let name = name.ok_or_else(|| Error::new(ErrorKind::InvalidData, "a file's name is not UTF-8"))?;
        if name != NOT_SERVED {
            files.push((name, path));
        }
        if files.len() > FILES_MAX {
            let problem = format!("{} holds more than {FILES_MAX} files", root.display());
            return Err(Error::new(ErrorKind::InvalidData, problem));
        }
    }
    Ok(())
}
