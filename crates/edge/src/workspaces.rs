//! The allow-list: the directories that people named on this edge, in one file that only its owner reads.
//!
//! Roots are canonical, and every path is made so before it is compared: a symbolic link out of a workspace leads outside.
//! Nothing here reads what is in a workspace.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use runyard_backend::{ListChange, WorkspaceError, Workspaces, failpoint};
use runyard_domain::run::Who;
use runyard_domain::{AppendId, Listing, Workspace, WorkspaceChanged, WorkspaceId};
use runyard_redact::{Redactor, TagKey};
use runyard_store::{Clock, SystemClock};
use serde::{Deserialize, Serialize};

use crate::private;

/// How many workspaces an edge has at most.
pub const WORKSPACES_MAX: usize = 1_000;
/// How long a label is at most, in bytes.
pub const LABEL_BYTES_MAX: usize = 64;

/// How many changes wait for the audit at most.
const UNSAID_MAX: usize = 1_000;

const FILE: &str = "workspaces.json";
const LOCK: &str = "workspaces.lock";

/// The allow-list of one edge. Cheap to clone.
#[derive(Clone, Debug)]
pub struct AllowList(Arc<Place>);

#[derive(Debug)]
struct Place {
    home: PathBuf,
    edge_id: String,
    /// What no workspace may be, lie in or contain, in canonical form.
    private: Vec<PathBuf>,
}

/// One line of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    id: WorkspaceId,
    label: String,
    project: String,
    root: PathBuf,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    workspaces: Vec<Entry>,
    /// What the audit is to have of it: a change and that it is to be said are one write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unsaid: Vec<ListChange>,
}

impl File {
    /// Notes what is done to an entry, and by whom.
    fn note(&mut self, change: Listing, entry: &Entry, by: &Who) -> Result<(), WorkspaceError> {
        if self.unsaid.len() >= UNSAID_MAX {
            return Err(unusable(io::Error::other("the audit lacks too many changes of the list")));
        }
        let id = AppendId::from_bytes(private::random().map_err(unusable)?);
        let what = WorkspaceChanged { change, workspace_id: entry.id, label: entry.label.clone() };
        self.unsaid.push(ListChange { id, what, by: by.clone() });
        Ok(())
    }
}

impl AllowList {
    /// The list of this edge, kept in its home. No workspace may be, lie in or contain the home or a `private` directory.
    pub fn open(home: &Path, edge_id: &str, private: &[PathBuf]) -> Result<Self, WorkspaceError> {
        private::make_directory(home).map_err(unusable)?;
        let home = home.canonicalize().map_err(unusable)?;
        let mut kept_out = vec![home.clone()];
        for directory in private {
            kept_out.push(directory.canonicalize().map_err(unusable)?);
        }
        Ok(AllowList(Arc::new(Place { home, edge_id: edge_id.to_owned(), private: kept_out })))
    }

    /// The root of a workspace, if it is still the directory that was named.
    pub async fn root(&self, id: WorkspaceId) -> Result<PathBuf, WorkspaceError> {
        self.blocking(move |place| {
            let outside = || WorkspaceError::Outside { place: id.to_string() };
            let entry =
                place.read()?.workspaces.into_iter().find(|entry| entry.id == id).ok_or_else(outside)?;
            match entry.root.canonicalize() {
                Ok(root) if root == entry.root && root.is_dir() => Ok(root),
                _ => Err(outside()),
            }
        })
        .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Place) -> Result<T, WorkspaceError> + Send + 'static,
    ) -> Result<T, WorkspaceError> {
        let place = Arc::clone(&self.0);
        match tokio::task::spawn_blocking(move || work(&place)).await {
            Ok(done) => done,
            Err(gone) => Err(unusable(io::Error::other(gone))),
        }
    }
}

#[async_trait]
impl Workspaces for AllowList {
    async fn add(&self, path: &str, label: Option<&str>, by: &Who) -> Result<Workspace, WorkspaceError> {
        let (path, label, by) = (path.to_owned(), label.map(str::to_owned), by.clone());
        self.blocking(move |place| place.add(&path, label, &by)).await
    }

    async fn remove(&self, id: WorkspaceId, by: &Who) -> Result<(), WorkspaceError> {
        let by = by.clone();
        self.blocking(move |place| {
            place.change(|file| {
                let found = file.workspaces.iter().position(|entry| entry.id == id);
                let found = found.ok_or_else(|| WorkspaceError::Unknown { place: id.to_string() })?;
                let gone = file.workspaces.remove(found);
                file.note(Listing::Removed, &gone, &by)
            })
        })
        .await
    }

    async fn unsaid(&self) -> Result<Vec<ListChange>, WorkspaceError> {
        self.blocking(|place| Ok(place.read()?.unsaid)).await
    }

    async fn said(&self, changes: Vec<AppendId>) -> Result<(), WorkspaceError> {
        self.blocking(move |place| {
            place.change(|file| {
                file.unsaid.retain(|change| !changes.contains(&change.id));
                Ok(())
            })
        })
        .await
    }

    async fn list(&self) -> Result<Vec<Workspace>, WorkspaceError> {
        self.blocking(|place| {
            let mut all: Vec<_> = place.read()?.workspaces.iter().map(|entry| place.shown(entry)).collect();
            all.sort_by(|one, other| one.label.cmp(&other.label));
            Ok(all)
        })
        .await
    }

    async fn resolve(&self, place: &str) -> Result<Workspace, WorkspaceError> {
        let named = place.to_owned();
        self.blocking(move |place| place.resolve(named)).await
    }

    async fn shown(&self, id: WorkspaceId, text: String) -> Result<String, WorkspaceError> {
        let root = self.root(id).await?;
        // Secrets are not its matter: whoever asks has taken them out, with tags of their own.
        let built = Redactor::builder(TagKey::for_this_process()).workspace(&root).build();
        let redactor = built.map_err(|error| unusable(std::io::Error::other(error)))?;
        Ok(redactor.content(&text).into_inner())
    }
}

impl Place {
    fn add(&self, path: &str, label: Option<String>, by: &Who) -> Result<Workspace, WorkspaceError> {
        let unfit = |why| WorkspaceError::Unfit { place: path.to_owned(), why };
        if !Path::new(path).is_absolute() {
            return Err(unfit("it is not an absolute path"));
        }
        let root = match Path::new(path).canonicalize() {
            Ok(root) if root.is_dir() => root,
            Ok(_) => return Err(unfit("it is not a directory")),
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(unfit("it does not exist")),
            Err(error) => return Err(unusable(error)),
        };
        if root.parent().is_none() {
            return Err(unfit("it is the root of all files"));
        }
        if root.to_str().is_none() {
            return Err(unfit("its path is not UTF-8"));
        }
        if self.private.iter().any(|private| root.starts_with(private) || private.starts_with(&root)) {
            return Err(unfit("it is, lies in or contains the data directory"));
        }
        if let Some(why) = label.as_deref().and_then(unfit_label) {
            return Err(unfit(why));
        }
        self.change(|file| {
            if let Some(entry) = file.workspaces.iter().find(|entry| entry.root == root) {
                return Ok(self.shown(entry));
            }
            if file.workspaces.len() >= WORKSPACES_MAX {
                return Err(unfit("there are too many workspaces already"));
            }
            let taken = |label: &str| file.workspaces.iter().any(|entry| entry.label == label);
            let label = match label {
                Some(label) if taken(&label) => return Err(unfit("another workspace has this label")),
                Some(label) => label,
                None => free_label(&root, taken),
            };
            let unix_ms = u64::try_from(SystemClock.now().unix_ms()).unwrap_or_default();
            let id = WorkspaceId::from_parts(unix_ms, &private::random().map_err(unusable)?);
            let entry = Entry { id, project: label.clone(), label, root };
            let workspace = self.shown(&entry);
            file.note(Listing::Added, &entry, by)?;
            file.workspaces.push(entry);
            Ok(workspace)
        })
    }

    fn resolve(&self, place: String) -> Result<Workspace, WorkspaceError> {
        let entries = self.read()?.workspaces;
        if Path::new(&place).is_absolute() {
            // What does not exist lies nowhere.
            let path = Path::new(&place).canonicalize().ok();
            let around = entries
                .iter()
                .filter(|entry| path.as_ref().is_some_and(|path| path.starts_with(&entry.root)));
            let innermost = around.max_by_key(|entry| entry.root.as_os_str().len());
            return innermost.map(|entry| self.shown(entry)).ok_or(WorkspaceError::Outside { place });
        }
        let id = place.parse::<WorkspaceId>().ok();
        let named = entries.iter().find(|entry| Some(entry.id) == id || entry.label == place);
        named.map(|entry| self.shown(entry)).ok_or(WorkspaceError::Unknown { place })
    }

    fn shown(&self, entry: &Entry) -> Workspace {
        Workspace {
            id: entry.id,
            label: entry.label.clone(),
            project: entry.project.clone(),
            edge_id: self.edge_id.clone(),
        }
    }

    fn read(&self) -> Result<File, WorkspaceError> {
        match fs::read(self.home.join(FILE)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| unusable(error.into())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(File::default()),
            Err(error) => Err(unusable(error)),
        }
    }

    /// Changes the list under a lock that other processes heed too. What fails changes nothing.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut File) -> Result<T, WorkspaceError>,
    ) -> Result<T, WorkspaceError> {
        let lock = private::lock_file(&self.home.join(LOCK)).map_err(unusable)?;
        lock.lock().map_err(unusable)?;
        let mut file = self.read()?;
        let before = serde_json::to_vec_pretty(&file).map_err(|error| unusable(error.into()))?;
        let changed = change(&mut file)?;
        let after = serde_json::to_vec_pretty(&file).map_err(|error| unusable(error.into()))?;
        if after != before {
            self.write(&after).map_err(unusable)?;
        }
        Ok(changed)
    }

    fn write(&self, file: &[u8]) -> io::Result<()> {
        let draft = self.home.join(format!("{FILE}.draft"));
        private::write_draft(&draft, file)?;
        failpoint::reach("workspaces.write");
        fs::rename(&draft, self.home.join(FILE))?;
        failpoint::reach("workspaces.written");
        private::sync_directory(&self.home)
    }
}

fn unusable(source: io::Error) -> WorkspaceError {
    WorkspaceError::Io { source }
}

fn unfit_label(label: &str) -> Option<&'static str> {
    if label.trim().is_empty() || label.len() > LABEL_BYTES_MAX {
        Some("its label is empty or too long")
    } else if label.chars().any(char::is_control) || label.starts_with('/') {
        Some("its label holds control characters or starts with a slash")
    } else if label.parse::<WorkspaceId>().is_ok() {
        Some("its label looks like the id of a workspace")
    } else {
        None
    }
}

/// The directory's name, with a number where it is taken.
fn free_label(root: &Path, taken: impl Fn(&str) -> bool) -> String {
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().filter(|letter| !letter.is_control()).collect();
    let name = match &name[..name.floor_char_boundary(LABEL_BYTES_MAX - 5)] {
        name if unfit_label(name).is_some() => "workspace",
        name => name,
    };
    let numbered = (2..=WORKSPACES_MAX + 1).map(|number| format!("{name}-{number}"));
    std::iter::once(name.to_owned()).chain(numbered).find(|label| !taken(label)).unwrap_or_default()
}
