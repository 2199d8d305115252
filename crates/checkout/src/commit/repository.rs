//! The person's repository, asked and changed by plumbing only.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::{LAID, LAID_JOURNAL, Place, RepositoryError, at_top};
use crate::apply::{ApplyError, journal_failed};
use crate::git::Git;
use crate::{CheckoutError, Oid, RelPath, Root};

/// What a file is laid out and taken in with, whatever the person's own file system can do.
const LAYING_OUT: [&str; 4] = ["-c", "core.fileMode=true", "-c", "core.symlinks=true"];
/// A person is who they said they are, never whom git guesses.
const COMMITTING: [&str; 4] = ["-c", "user.useConfigOnly=true", "-c", "i18n.commitEncoding=UTF-8"];

/// What a name in a tree or an index stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stored {
    pub(super) mode: String,
    pub(super) oid: Oid,
}

/// The person's repository.
pub(super) struct Repository<'a> {
    pub(super) place: Place<'a>,
    pub(super) git_dir: PathBuf,
    /// What paths of the workspace begin with, from the top of the repository.
    pub(super) prefix: Vec<u8>,
    journal: PathBuf,
    stop: AtomicBool,
}

impl<'a> Repository<'a> {
    pub(super) fn open(place: Place<'a>, journal: &Path) -> Result<Repository<'a>, ApplyError> {
        let git = Git::of_person(place.path);
        let asked = |what: &str| -> Result<Vec<u8>, ApplyError> {
            let answer = git.ask("find the repository", &["rev-parse", what], &[], place.stop)?;
            if !answer.success {
                return Err(RepositoryError::NoRepository.into());
            }
            Ok(answer.output.strip_suffix(b"\n").unwrap_or(&answer.output).to_vec())
        };
        let git_dir = PathBuf::from(OsString::from_vec(asked("--absolute-git-dir")?));
        let prefix = asked("--show-prefix")?;
        let journal = std::path::absolute(journal).map_err(|error| journal_failed("find", error))?;
        Ok(Repository { place, git_dir, prefix, journal, stop: AtomicBool::new(false) })
    }

    /// What git puts out. It is not stopped: what has begun comes to an end.
    pub(super) fn run(
        &self,
        doing: &'static str,
        arguments: &[impl AsRef<OsStr>],
        input: &[u8],
    ) -> Result<Vec<u8>, CheckoutError> {
        self.git(self.place.path).run(doing, arguments, input, &self.stop)
    }

    fn git(&self, directory: &Path) -> Git {
        Git::of_person(directory).with("GIT_DIR", &self.git_dir)
    }

    /// For the files that are laid out, with an index of their own.
    fn laid(&self) -> Git {
        let laid = self.journal.join(LAID);
        self.git(&laid).with("GIT_WORK_TREE", laid).with("GIT_INDEX_FILE", self.journal.join("index"))
    }

    /// The commit that something names.
    pub(super) fn commit_of(&self, reference: &str) -> Result<Option<Oid>, ApplyError> {
        let name = format!("{reference}^{{commit}}");
        let asked = ["rev-parse", "--quiet", "--verify", "--end-of-options", &name];
        let answer = self.git(self.place.path).ask("look up a commit", &asked, &[], &self.stop)?;
        let text = String::from_utf8_lossy(&answer.output);
        Ok(if answer.success { Oid::parse(text.trim_end()) } else { None })
    }

    /// Whether a name leads to a commit, be it by later ones.
    pub(super) fn leads_to(&self, reference: &str, commit: &Oid) -> Result<bool, ApplyError> {
        let Some(named) = self.commit_of(reference)? else { return Ok(false) };
        let asked = ["merge-base", "--is-ancestor", commit.as_str(), named.as_str()];
        Ok(self.git(self.place.path).ask("compare commits", &asked, &[], &self.stop)?.success)
    }

    /// The branch that is checked out, or `HEAD` where none is.
    pub(super) fn head_reference(&self) -> Result<String, ApplyError> {
        let answer = self.git(self.place.path).ask(
            "look up HEAD",
            &["symbolic-ref", "--quiet", "HEAD"],
            &[],
            &self.stop,
        )?;
        if !answer.success {
            return Ok("HEAD".to_owned());
        }
        let name =
            String::from_utf8(answer.output).map_err(|_| CheckoutError::Damaged("HEAD names no text"))?;
        Ok(name.trim_end().to_owned())
    }

    /// A branch that is not there yet.
    pub(super) fn new_branch(&self, name: &str) -> Result<String, ApplyError> {
        let reference = format!("refs/heads/{name}");
        let git = self.git(self.place.path);
        let checked = git.ask("check a name", &["check-ref-format", &reference], &[], &self.stop)?;
        if !checked.success || name.starts_with('-') || name == "HEAD" {
            return Err(RepositoryError::BadBranch { name: name.to_owned() }.into());
        }
        let asked = ["show-ref", "--verify", "--quiet", "--end-of-options", &reference];
        match git.ask("look up a branch", &asked, &[], &self.stop)?.success {
            true => Err(RepositoryError::BranchExists { name: name.to_owned() }.into()),
            false => Ok(reference),
        }
    }

    /// A branch that somebody works on is not removed under them.
    pub(super) fn refuse_checked_out(&self, reference: &str) -> Result<(), ApplyError> {
        let asked = ["for-each-ref", "--format=%(worktreepath)", "--", reference];
        match self.run("look for work trees", &asked, &[])?.trim_ascii().is_empty() {
            true => Ok(()),
            false => Err(RepositoryError::CheckedOut { reference: reference.to_owned() }.into()),
        }
    }

    /// A commit in the middle of something else would become part of that.
    pub(super) fn refuse_unfinished(&self) -> Result<(), ApplyError> {
        const SIGNS: [(&str, &str); 5] = [
            ("MERGE_HEAD", "a merge"),
            ("CHERRY_PICK_HEAD", "a cherry-pick"),
            ("REVERT_HEAD", "a revert"),
            ("rebase-merge", "a rebase"),
            ("rebase-apply", "a rebase"),
        ];
        match SIGNS.iter().find(|(sign, _)| self.git_dir.join(sign).exists()) {
            Some((_, what)) => Err(RepositoryError::Unfinished { what }.into()),
            None => Ok(()),
        }
    }

    pub(super) fn check_identity(&self) -> Result<(), ApplyError> {
        for who in ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"] {
            let asked = [&COMMITTING[..], &["var", who]].concat();
            if !self.git(self.place.path).ask("look up who commits", &asked, &[], &self.stop)?.success {
                return Err(RepositoryError::NoIdentity.into());
            }
        }
        Ok(())
    }

    /// Lays out what a commit has at these paths of the workspace, and nothing else.
    pub(super) fn lay_out<'p>(
        &self,
        commit: Option<&Oid>,
        paths: impl Iterator<Item = &'p RelPath>,
    ) -> Result<Root, ApplyError> {
        self.remove_scratch()?;
        let below = self.journal.join(LAID).join(OsStr::from_bytes(&self.prefix));
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&below)
            .map_err(|error| journal_failed("make", error))?;
        let paths: BTreeSet<RelPath> =
            paths.map(|path| at_top(&self.prefix, path)).collect::<Result<_, _>>()?;
        let of = commit.map_or("--empty", Oid::as_str);
        self.laid().run("read a commit", &["read-tree", of], &[], self.place.stop)?;
        let listed = self.listed(&self.laid(), &["ls-files", "--stage", "-z"])?;
        let input: Vec<u8> = listed
            .keys()
            .filter(|path| paths.contains(path))
            .flat_map(|path| [path.as_bytes(), b"\0"].concat())
            .collect();
        if !input.is_empty() {
            let asked = [&LAYING_OUT[..], &["checkout-index", "--force", "-z", "--stdin"]].concat();
            self.laid().run("lay out what is committed", &asked, &input, self.place.stop)?;
        }
        self.scratch()
    }

    /// What is laid out, of the workspace.
    pub(super) fn scratch(&self) -> Result<Root, ApplyError> {
        Ok(Root::open(&self.journal.join(LAID).join(OsStr::from_bytes(&self.prefix)))?)
    }

    pub(super) fn remove_scratch(&self) -> Result<(), ApplyError> {
        for name in [LAID, LAID_JOURNAL] {
            match fs::remove_dir_all(self.journal.join(name)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(journal_failed("clear", error).into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes a commit of what is laid out. Nothing names it.
    pub(super) fn commit<'p>(
        &self,
        parent: Option<&Oid>,
        paths: impl Iterator<Item = &'p RelPath>,
        message: &str,
    ) -> Result<Oid, ApplyError> {
        let mut input = Vec::new();
        for path in paths {
            input.extend_from_slice(at_top(&self.prefix, path)?.as_bytes());
            input.push(0);
        }
        let take_in = [&LAYING_OUT[..], &["update-index", "--add", "--remove", "-z", "--stdin"]].concat();
        self.laid().run("take in what is to be committed", &take_in, &input, &self.stop)?;
        let tree = oid(&self.laid().run("write a tree", &["write-tree"], &[], &self.stop)?)?;
        if let Some(parent) = parent {
            let of_parent = format!("{}^{{tree}}", parent.as_str());
            if oid(&self.run("look up a tree", &["rev-parse", "--verify", &of_parent], &[])?)? == tree {
                return Err(RepositoryError::Nothing.into());
            }
        }
        let mut asked = [&COMMITTING[..], &["commit-tree", tree.as_str(), "-F", "-"]].concat();
        if let Some(parent) = parent {
            asked.extend(["-p", parent.as_str()]);
        }
        Ok(oid(&self.laid().run("make a commit", &asked, message.as_bytes(), &self.stop)?)?)
    }

    /// What a commit has under every path.
    pub(super) fn tree(&self, commit: &Oid) -> Result<BTreeMap<RelPath, Stored>, CheckoutError> {
        self.listed(&self.git(self.place.path), &["ls-tree", "-r", "-z", "--full-tree", commit.as_str()])
    }

    /// What is staged under every path. What is unmerged has no entry that could be followed.
    pub(super) fn staged(&self) -> Result<BTreeMap<RelPath, Stored>, CheckoutError> {
        self.listed(&self.indexed(&self.git_dir.join("index")), &["ls-files", "--stage", "-z"])
    }

    /// For an index, from the top of the repository.
    fn indexed(&self, index: &Path) -> Git {
        self.git(self.place.path).with("GIT_WORK_TREE", self.place.path).with("GIT_INDEX_FILE", index)
    }

    /// Brings lines of `--index-info` to an index.
    pub(super) fn write_index(&self, index: &Path, lines: &[u8]) -> Result<(), CheckoutError> {
        let asked = ["update-index", "-z", "--index-info"];
        self.indexed(index).run("write an index", &asked, lines, &self.stop).map(drop)
    }

    /// Lines of `ls-files --stage` or `ls-tree`.
    fn listed(&self, git: &Git, asked: &[&str]) -> Result<BTreeMap<RelPath, Stored>, CheckoutError> {
        let mut listed = BTreeMap::new();
        let odd = || CheckoutError::Damaged("git lists what cannot be read");
        for line in git.run("list files", asked, &[], &self.stop)?.split(|byte| *byte == 0) {
            if line.is_empty() {
                continue;
            }
            let tab = line.iter().position(|byte| *byte == b'\t').ok_or_else(odd)?;
            let words = std::str::from_utf8(&line[..tab]).map_err(|_| odd())?;
            let words: Vec<&str> = words.split(' ').collect();
            let (mode, oid, stage) = match words[..] {
                [mode, oid, stage] if Oid::parse(oid).is_some() => (mode, oid, stage),
                [mode, _, oid] => (mode, oid, "0"),
                _ => return Err(odd()),
            };
            let stored = Stored {
                // An entry in conflict is like no other.
                mode: if stage == "0" { mode.to_owned() } else { format!("{mode} in conflict") },
                oid: Oid::parse(oid).ok_or_else(odd)?,
            };
            listed.insert(RelPath::parse(&line[tab + 1..])?, stored);
        }
        Ok(listed)
    }

    pub(super) fn blob(&self, oid: &Oid) -> Result<Vec<u8>, CheckoutError> {
        self.run("read an object", &["cat-file", "blob", oid.as_str()], &[])
    }

    pub(super) fn write_blob(&self, bytes: &[u8]) -> Result<Oid, CheckoutError> {
        oid(&self.run("write an object", &["hash-object", "-w", "--no-filters", "--stdin"], bytes)?)
    }

    /// Moves a name from one commit to another, if it is still at the first.
    pub(super) fn move_reference(
        &self,
        reference: &str,
        from: Option<&Oid>,
        to: Option<&Oid>,
    ) -> Result<(), ApplyError> {
        let nothing = "0".repeat(from.or(to).map_or(40, |oid| oid.as_str().len()));
        let old = from.map_or(&*nothing, Oid::as_str);
        let asked = match to {
            Some(to) => vec!["update-ref", "--no-deref", "-m", "runyard: apply", reference, to.as_str(), old],
            None => vec!["update-ref", "--no-deref", "-d", reference, old],
        };
        let answer = self.git(self.place.path).ask("move a reference", &asked, &[], &self.stop)?;
        match answer.success {
            true => Ok(()),
            false if self.commit_of(reference)?.as_ref() != from => {
                Err(RepositoryError::Moved { reference: reference.to_owned() }.into())
            }
            false => Err(CheckoutError::Git { doing: "move a reference", said: answer.complaint() }.into()),
        }
    }
}

fn oid(output: &[u8]) -> Result<Oid, CheckoutError> {
    let text = String::from_utf8_lossy(output);
    Oid::parse(text.trim_end()).ok_or(CheckoutError::Damaged("git names no object"))
}
