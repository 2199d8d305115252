//! What files held at the beginning.
//!
//! Content comes from the objects of the person's repository, which are only read, or from the copies that were kept. Neither lies
//! where an agent writes, and the checkout's own repository is never asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::base::{GIT, KEPT};
use crate::git::{Git, end, not_started};
use crate::{Base, CheckoutError, ContentId, Entry, Oid, RelPath, Root, Source};

/// How long the line is at most that stands before an object.
const HEADER_BYTES_MAX: u64 = 200;
/// What git is being asked for.
const READING: &str = "read an object";

/// What files held at the beginning.
#[derive(Debug)]
pub struct Contents {
    kept: Root,
    git_dir: Option<PathBuf>,
    reader: Option<Reader>,
}

/// A `git` that is asked for one object after the other.
#[derive(Debug)]
struct Reader {
    child: Child,
    asked: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Contents {
    /// Of a base and the directory it is kept in.
    pub fn open(base: &Base, base_dir: &Path) -> Result<Contents, CheckoutError> {
        let kept = Root::open(&base_dir.join(KEPT))?;
        Ok(Contents { kept, git_dir: base.git.as_ref().map(|_| base_dir.join(GIT)), reader: None })
    }

    /// What a file held, or where a link led, or the commit of another repository in the letters that git writes it with.
    ///
    /// More than so many bytes are [`CheckoutError::FileTooLarge`]; what is no longer there is [`CheckoutError::Damaged`].
    pub fn read(&mut self, entry: &Entry, bytes_max: u64) -> Result<Vec<u8>, CheckoutError> {
        if entry.bytes > bytes_max {
            return Err(CheckoutError::FileTooLarge { path: entry.path.to_string(), max: bytes_max });
        }
        match &entry.source {
            Source::Link(target) => Ok(target.clone()),
            Source::Submodule(commit) => Ok(commit.as_str().as_bytes().to_vec()),
            Source::Kept(content) => self.kept(content, entry.bytes),
            Source::Git(oid) => {
                let read = self.object(oid, entry.bytes);
                if read.is_err() {
                    // What comes next out of it is anybody's guess.
                    self.reader = None;
                }
                read
            }
        }
    }

    fn kept(&self, content: &ContentId, bytes: u64) -> Result<Vec<u8>, CheckoutError> {
        let name = RelPath::parse(content.to_string().as_bytes())?;
        let read = match self.kept.read(&name, bytes) {
            Err(error) if error.is_missing() => return Err(CheckoutError::Damaged("a kept file is gone")),
            read => read?.bytes,
        };
        match ContentId::of(&read) == *content {
            true => Ok(read),
            false => Err(CheckoutError::Damaged("a kept file is not what was kept")),
        }
    }

    fn object(&mut self, oid: &Oid, bytes: u64) -> Result<Vec<u8>, CheckoutError> {
        let git_dir = self.git_dir.as_ref().ok_or(CheckoutError::Damaged("it names no repository"))?;
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => none.insert(Reader::start(git_dir)?),
        };
        let failed = |source| CheckoutError::Io { doing: READING, path: "git".to_owned(), source };
        reader.asked.write_all(format!("{}\n", oid.as_str()).as_bytes()).map_err(failed)?;
        let mut header = String::new();
        (&mut reader.answers).take(HEADER_BYTES_MAX).read_line(&mut header).map_err(failed)?;
        if header != format!("{} blob {bytes}\n", oid.as_str()) {
            return Err(CheckoutError::Damaged("the repository no longer has an object"));
        }
        let mut content = Vec::with_capacity(usize::try_from(bytes).unwrap_or_default());
        (&mut reader.answers).take(bytes).read_to_end(&mut content).map_err(failed)?;
        let mut end = [0];
        reader.answers.read_exact(&mut end).map_err(failed)?;
        match content.len() as u64 == bytes && end == *b"\n" {
            true => Ok(content),
            false => Err(CheckoutError::Damaged("an object is not whole")),
        }
    }
}

impl Reader {
    fn start(git_dir: &Path) -> Result<Reader, CheckoutError> {
        let mut command = Git::own(git_dir).command(&["cat-file", "--batch"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| not_started(READING, error))?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(asked), Some(answers)) => Ok(Reader { child, asked, answers: BufReader::new(answers) }),
            _ => Err(CheckoutError::Damaged("git cannot be asked")),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        end(&self.child);
        let _ = self.child.wait();
    }
}
