//! What a checkout is made with, and what came of it.

use std::fmt;
use std::path::PathBuf;

/// How many files, directories and links a checkout holds at most.
pub const FILES_MAX: u64 = 200_000;
/// How large its files are at most, together.
pub const BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
/// How deep its directories are nested at most.
pub const DEPTH_MAX: usize = 128;
/// So many of what was left out are named; the others are counted.
const NAMED_MAX: usize = 5;

/// What a checkout may hold at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Files, directories and links.
    pub files_max: u64,
    /// Bytes of all files.
    pub bytes_max: u64,
    /// Directories inside each other.
    pub depth_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { files_max: FILES_MAX, bytes_max: BYTES_MAX, depth_max: DEPTH_MAX }
    }
}

/// What a checkout is made with.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What it may hold at most.
    pub limits: Limits,
    /// Which files are brought that would be left out, because they are ignored or hold an environment's secrets: patterns as in
    /// a `.gitignore`.
    pub copy: Vec<String>,
}

/// How a checkout was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// As a repository of its own that borrows the workspace's objects.
    Clone {
        /// The commit that the person's work is based on, where there is one.
        head: Option<String>,
        /// The branch that is checked out, where one is.
        branch: Option<String>,
    },
    /// As a copy without a repository.
    Copy(Why),
}

/// Why a checkout is no repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The workspace is none.
    NoRepository,
    /// The workspace is a part of one: what git lists there was copied.
    Inside,
    /// There is no `git`.
    NoGit,
    /// Git makes nothing of it, and says why.
    Unusable(String),
}

/// A checkout that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// How.
    pub how: How,
    /// Stands for what it began as.
    pub base: String,
    /// Directories of objects that its repository borrows: whoever works there has to be able to read them.
    pub borrowed: Vec<PathBuf>,
    /// Files and links in it, and directories where nothing else says that they are there.
    pub files: u64,
    /// How large its files are, together.
    pub bytes: u64,
    /// How many files differ from the commit, because the person changed or removed them.
    pub uncommitted: u64,
    /// How many files the repository does not know.
    pub untracked: u64,
    /// Pipes, sockets and devices, which are never brought.
    pub special: u64,
    /// What could not be read.
    pub unreadable: Listed,
    /// Links that lead out of it.
    pub leaving: Listed,
    /// What was left out on purpose: environments' secrets, and repositories inside.
    pub left_out: Listed,
    /// Other repositories that belong to it, whose content was not brought.
    pub submodules: Listed,
}

impl Made {
    pub(crate) fn new(how: How) -> Made {
        Made {
            how,
            base: String::new(),
            borrowed: Vec::new(),
            files: 0,
            bytes: 0,
            uncommitted: 0,
            untracked: 0,
            special: 0,
            unreadable: Listed::default(),
            leaving: Listed::default(),
            left_out: Listed::default(),
            submodules: Listed::default(),
        }
    }

    /// What of it cannot be relied on.
    pub fn degraded(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        match &self.how {
            How::Clone { .. } | How::Copy(Why::NoRepository) => {}
            How::Copy(Why::Inside) => reasons.push(
                "the workspace is a part of a repository, so the checkout is a copy without history"
                    .to_owned(),
            ),
            How::Copy(Why::NoGit) => {
                reasons.push("git is not installed, so the checkout is a plain copy".to_owned());
            }
            How::Copy(Why::Unusable(said)) => {
                reasons
                    .push(format!("git cannot use the workspace, so the checkout is a plain copy: {said}"));
            }
        }
        let lists = [
            ("the checkout lacks what could not be read", &self.unreadable),
            ("links in the checkout lead out of it", &self.leaving),
            ("the checkout lacks the content of submodules", &self.submodules),
        ];
        let named = lists.into_iter().filter(|(_, list)| list.count > 0);
        reasons.extend(named.map(|(what, list)| format!("{what}: {list}")));
        reasons
    }
}

/// Some paths, the first of them by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// How many.
    pub count: u64,
    named: Vec<String>,
}

impl Listed {
    pub(crate) fn add(&mut self, path: impl fmt::Display) {
        self.count += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(path.to_string());
        }
    }
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named.join(", "))?;
        match self.count.saturating_sub(self.named.len() as u64) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}
