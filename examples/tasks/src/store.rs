//! Where tasks are kept: one JSON file, or memory.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::{CreateTask, Task};

/// More tasks than this are refused: it is an example, not a database.
const TASKS_MAX: usize = 10_000;

/// Why tasks cannot be read or written.
#[derive(Debug)]
pub enum StoreError {
    /// The file cannot be read or written.
    Io(std::io::Error),
    /// The file holds something else.
    Format(serde_json::Error),
    /// There are too many.
    Full,
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StoreError::Io(_) => f.write_str("the task file cannot be read or written"),
            StoreError::Format(_) => f.write_str("the task file holds something else than tasks"),
            StoreError::Full => write!(f, "there are {TASKS_MAX} tasks already"),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StoreError::Io(error) => Some(error),
            StoreError::Format(error) => Some(error),
            StoreError::Full => None,
        }
    }
}

/// The tasks. Several processes may share one file.
#[derive(Debug)]
pub struct Tasks {
    file: Option<PathBuf>,
    memory: Mutex<List>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct List {
    next: u64,
    tasks: Vec<Task>,
}

impl Tasks {
    /// Tasks that are gone with the process.
    pub fn in_memory() -> Self {
        Tasks { file: None, memory: Mutex::default() }
    }

    /// Tasks in a file, which is made on the first write.
    pub fn in_file(path: impl Into<PathBuf>) -> Self {
        Tasks { file: Some(path.into()), memory: Mutex::default() }
    }

    pub(crate) fn create(&self, new: CreateTask) -> Result<Task, StoreError> {
        self.change(|list| {
            if list.tasks.len() >= TASKS_MAX {
                return Err(StoreError::Full);
            }
            list.next += 1;
            let CreateTask { title, priority, tags } = new;
            let task = Task { id: format!("t{}", list.next), title, priority, tags, done: false };
            list.tasks.push(task.clone());
            Ok(task)
        })
    }

    pub(crate) fn all(&self) -> Result<Vec<Task>, StoreError> {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        match &self.file {
            None => Ok(memory.tasks.clone()),
            Some(path) => Ok(read(path)?.tasks),
        }
    }

    pub(crate) fn complete(&self, id: &str) -> Result<Option<Task>, StoreError> {
        self.change(|list| {
            Ok(list.tasks.iter_mut().find(|task| task.id == id).map(|task| {
                task.done = true;
                task.clone()
            }))
        })
    }

    pub(crate) fn delete(&self, id: &str) -> Result<Option<Task>, StoreError> {
        self.change(|list| {
            let position = list.tasks.iter().position(|task| task.id == id);
            Ok(position.map(|position| list.tasks.remove(position)))
        })
    }

    /// One change at a time, in this process and across processes; the file is replaced whole or not at all.
    fn change<T>(&self, change: impl FnOnce(&mut List) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(path) = &self.file else { return change(&mut memory) };
        if let Some(folder) = path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(StoreError::Io)?;
        }
        let lock = File::create(path.with_extension("lock")).map_err(StoreError::Io)?;
        lock.lock().map_err(StoreError::Io)?;
        let mut list = read(path)?;
        let result = change(&mut list)?;
        let draft = path.with_extension("draft");
        fs::write(&draft, serde_json::to_vec_pretty(&list).map_err(StoreError::Format)?)
            .map_err(StoreError::Io)?;
        fs::rename(&draft, path).map_err(StoreError::Io)?;
        Ok(result)
    }
}

fn read(path: &Path) -> Result<List, StoreError> {
    match fs::read(path) {
        Ok(text) => serde_json::from_slice(&text).map_err(StoreError::Format),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(List::default()),
        Err(error) => Err(StoreError::Io(error)),
    }
}
