//! What changed, as types. How it is found is in `compare`; how it is brought back in `apply`.

use serde::{Deserialize, Serialize};

use crate::{ContentId, FileId, RelPath};

/// What a name in a tree is, as far as it can be brought from one tree to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileMode {
    /// A file.
    Plain,
    /// A file that can be executed.
    Executable,
    /// A symbolic link. Its content is where it leads.
    Link,
    /// Another repository. Its content is the commit, and nothing in it is looked at.
    Submodule,
}

impl FileMode {
    /// The mode as git writes it.
    pub const fn as_git(self) -> &'static str {
        match self {
            FileMode::Plain => "100644",
            FileMode::Executable => "100755",
            FileMode::Link => "120000",
            FileMode::Submodule => "160000",
        }
    }
}

/// What happened to one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// Its content changed, or its mode, or both.
    Modified,
    /// It has another path, and perhaps other content.
    Renamed,
    /// It was made from another path, which is still there.
    Copied,
    /// It is another kind of thing: a file became a link, say.
    Retyped,
}

/// How the content changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "as", rename_all = "snake_case")]
pub enum ContentChange {
    /// Not at all: only path or mode did.
    Same,
    /// As text, line by line.
    Text {
        /// Lines that are new.
        insertions: u64,
        /// Lines that are gone.
        deletions: u64,
        /// How many hunks there are to choose from.
        hunks: u32,
    },
    /// As a whole: it is no text.
    Binary,
    /// As a whole: it is too large to be compared line by line.
    TooLarge,
}

/// One path that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// Names it.
    pub id: FileId,
    /// Where it is now, or was where it is deleted.
    pub path: RelPath,
    /// Where it came from, where it was renamed or copied.
    pub old_path: Option<RelPath>,
    /// What happened.
    pub kind: ChangeKind,
    /// How.
    pub content: ContentChange,
    /// What it was; none where it is new.
    pub before: Option<Version>,
    /// What it is; none where it is deleted.
    pub after: Option<Version>,
    /// Whether it configures who may do what: then it counts only where it is chosen by itself.
    pub protected: bool,
}

/// One side of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// What it is.
    pub mode: FileMode,
    /// How long its content is.
    pub bytes: u64,
    /// Its content.
    pub content: ContentId,
}

/// Something in a checkout that cannot be a change. It is never brought back, and always said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// Where.
    pub path: RelPath,
    /// What is wrong with it.
    pub why: ProblemKind,
}

/// What is wrong with something in a checkout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// It has a second name somewhere, so its content may be somebody else's.
    HardLink,
    /// It is no file, directory or link.
    Special,
    /// It may not be read.
    Unreadable,
    /// It is larger than a change may be.
    TooLarge,
    /// It lies in a repository's own directory inside the checkout.
    InsideGit,
    /// It differs from another path only by case, which not every file system can tell apart.
    CaseClash,
}

/// All that changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Changes {
    /// Stands for what it started from.
    pub base: String,
    /// Stands for what it is now.
    pub target: String,
    /// By path.
    pub files: Vec<Change>,
    /// What is there and is no change.
    pub problems: Vec<Problem>,
    /// How many new files and directories were left out because the workspace's own rules say to ignore them.
    #[serde(default)]
    pub ignored: u64,
}

impl Changes {
    /// The change of that name.
    pub fn find(&self, id: &FileId) -> Option<&Change> {
        self.files.iter().find(|change| change.id == *id)
    }

    /// Lines that are new and lines that are gone, of all files.
    pub fn lines(&self) -> (u64, u64) {
        let lines = self.files.iter().map(|change| match change.content {
            ContentChange::Text { insertions, deletions, .. } => (insertions, deletions),
            _ => (0, 0),
        });
        lines.fold((0, 0), |(new, gone), (insertions, deletions)| (new + insertions, gone + deletions))
    }
}

/// A piece of a text that changed, with the lines around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// Where it begins in the old text; 1 is the first line, 0 where it has none.
    pub old_start: u64,
    /// How many lines of the old text it covers.
    pub old_lines: u64,
    /// Where it begins in the new text.
    pub new_start: u64,
    /// How many lines of the new text it covers.
    pub new_lines: u64,
    /// Its lines.
    pub lines: Vec<Line>,
}

/// One line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Whether it stays, comes or goes.
    pub kind: LineKind,
    /// All of it, with its line ending, which the last line of a file need not have.
    pub bytes: Vec<u8>,
}

/// Whether a line stays, comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// It is in both.
    Context,
    /// It is new.
    Added,
    /// It is gone.
    Removed,
}
