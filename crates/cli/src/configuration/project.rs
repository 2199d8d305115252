//! The files of a project: found from a directory upwards, read, and looked up among what people trust.
//!
//! Every file on the way counts, the outermost first, so that a new file further in cannot hide what an outer one forbids.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::origin::{Origin, Place};
use super::problem::{ConfigurationProblems, FILE_BYTES_MAX, Fault, Problem};
use super::reading::{Content, read};
use crate::trust::{Digest, Standing, TrustRecords};

/// The name of a configuration, in the data directory and in projects.
pub(crate) const FILE_NAME: &str = "runyard.toml";
/// How many directories upwards are looked into.
const ANCESTORS_MAX: usize = 64;

/// One file of a project.
#[derive(Debug)]
pub(crate) struct ProjectLayer {
    pub(crate) file: Arc<PathBuf>,
    pub(crate) digest: Digest,
    pub(crate) standing: Standing,
    pub(crate) writable_by_others: bool,
    pub(crate) content: Content,
}

impl ProjectLayer {
    /// One file, as it stands now.
    pub(crate) fn of(file: PathBuf, trust: &TrustRecords) -> Result<Self, ConfigurationProblems> {
        let file = Arc::new(file);
        let whole = |fault| {
            let origin = Origin::Project(Place::new(&file, 1));
            ConfigurationProblems(vec![Problem { origin, fault }])
        };
        let (text, writable_by_others) = read_limited(&file).map_err(whole)?;
        let content = read(&file, &text).map_err(|findings| {
            let problem = |finding: super::reading::Finding| Problem {
                origin: Origin::Project(finding.place),
                fault: finding.fault,
            };
            ConfigurationProblems(findings.into_iter().map(problem).collect())
        })?;
        let digest = Digest::of(text.as_bytes());
        let standing = match trust.standing(&file, &digest) {
            Standing::Trusted if writable_by_others => Standing::WritableByOthers,
            standing => standing,
        };
        Ok(ProjectLayer { file, digest, standing, writable_by_others, content })
    }
}

/// The layers of the project that a directory belongs to, the outermost first. For a workspace, `root` is its root.
pub(crate) fn project_layers(
    root: &Path,
    data: &Path,
    trust: &TrustRecords,
) -> Result<Vec<ProjectLayer>, ConfigurationProblems> {
    let (mut layers, mut problems) = (Vec::new(), Vec::new());
    for file in files_above(root, data) {
        match ProjectLayer::of(file, trust) {
            Ok(layer) => layers.push(layer),
            Err(found) => problems.extend(found.0),
        }
    }
    if problems.is_empty() { Ok(layers) } else { Err(ConfigurationProblems(problems)) }
}

/// The files from a directory upwards, the outermost first: to the repository's root, and never into what belongs to
/// somebody else, who could otherwise decide here by a file in a shared directory.
pub(crate) fn files_above(root: &Path, data: &Path) -> Vec<PathBuf> {
    let Ok(root) = root.canonicalize() else { return Vec::new() };
    let data = data.canonicalize().ok();
    let owner = |path: &Path| path.metadata().map(|metadata| metadata.uid()).ok();
    let mine = owner(&root);
    let mut files = Vec::new();
    for (distance, directory) in root.ancestors().take(ANCESTORS_MAX).enumerate() {
        if Some(directory) == data.as_deref() || owner(directory) != mine {
            break;
        }
        let file = directory.join(FILE_NAME);
        if file.symlink_metadata().is_ok() && (distance == 0 || owner(&file) == mine) {
            files.push(file);
        }
        if directory.join(".git").exists() {
            break;
        }
    }
    files.reverse();
    files
}

/// A file's text, and whether others can write it.
pub(crate) fn read_limited(path: &Path) -> Result<(String, bool), Fault> {
    // Opening a pipe would wait for whoever writes it.
    if !path.metadata().map_err(Fault::Unreadable)?.is_file() {
        let problem = std::io::Error::new(ErrorKind::InvalidInput, "it is not a regular file");
        return Err(Fault::Unreadable(problem));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(Fault::Unreadable)?;
    let mode = file.metadata().map_err(Fault::Unreadable)?.permissions().mode();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(Fault::Unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(Fault::TooLarge);
    }
    let text = String::from_utf8(bytes).map_err(|_| Fault::NotText)?;
    Ok((text, mode & 0o022 != 0))
}
