//! What is to be known about the repository of a workspace, asked of git in ways that change nothing there and run nothing.
//!
//! Only commands are used that look at no file's content in the work tree, because for that git may run what the repository's
//! configuration names.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::base::{Borrowed, ObjectFormat, Oid};
use crate::git::Git;
use crate::index::{self, Tracked};
use crate::made::{How, Listed, Why};
use crate::{CheckoutError, RelPath};

/// How large a file of the repository's own directory is at most that is taken over.
const OWN_FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How deep repositories borrow from each other at most, as git has it.
const BORROW_DEPTH_MAX: usize = 5;

/// What the person configured that decides how files look to git, or how commits do.
const SETTINGS: &str = "^(user\\.(name|email)|core\\.(autocrlf|eol|filemode|symlinks|ignorecase|excludesfile\
                        |sparsecheckout|sparsecheckoutcone))$";

/// The repository of a workspace.
pub(crate) struct Repository {
    git: Git,
    /// Whether the workspace is all of it.
    pub(crate) whole: bool,
    pub(crate) borrowed: Borrowed,
    shallow: PathBuf,
    exclude: PathBuf,
    attributes: PathBuf,
    sparse: PathBuf,
    index: PathBuf,
}

/// Where a repository stands.
#[derive(Debug, Default)]
pub(crate) struct Stand {
    pub(crate) head: Option<Oid>,
    /// The full name of what is checked out, where it is a branch.
    pub(crate) symbolic: Option<String>,
    /// Names and objects of branches, tags and what is known of others' branches.
    pub(crate) refs: Vec<(Vec<u8>, Oid)>,
}

impl Stand {
    /// How a checkout of all of it is made.
    pub(crate) fn how(&self) -> How {
        let branch = self.symbolic.as_deref().and_then(|name| name.strip_prefix("refs/heads/"));
        How::Clone {
            head: self.head.as_ref().map(|head| head.as_str().to_owned()),
            branch: branch.map(str::to_owned),
        }
    }
}

/// What is to be brought.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// In git's order.
    pub(crate) tracked: Vec<Tracked>,
    pub(crate) untracked: BTreeSet<RelPath>,
    /// Repositories inside, environments' secrets, and what is no path beneath a root.
    pub(crate) left_out: Listed,
    /// Directories that may not be looked into.
    pub(crate) unreadable: Listed,
}

impl Listing {
    /// Whether git knows nothing of it.
    pub(crate) fn is_empty(&self) -> bool {
        self.tracked.is_empty() && self.untracked.is_empty()
    }
}

impl Repository {
    /// Finds the repository that a workspace is, or is a part of.
    pub(crate) fn find(
        workspace: &Path,
        stop: &AtomicBool,
    ) -> Result<Result<Repository, Why>, CheckoutError> {
        let git = Git::of_person(workspace);
        let mut question = vec!["rev-parse", "--path-format=absolute", "--is-inside-work-tree"];
        question.extend(["--show-object-format", "--show-prefix"]);
        for name in ["objects", "shallow", "info/exclude", "info/attributes", "info/sparse-checkout", "index"]
        {
            question.extend(["--git-path", name]);
        }
        let answer = match git.ask("find the repository", &question, b"", stop) {
            Err(CheckoutError::NoGit) => return Ok(Err(Why::NoGit)),
            answer => answer?,
        };
        if !answer.success {
            let said = answer.complaint();
            return Ok(Err(match said.contains("not a git repository") {
                true => Why::NoRepository,
                false => Why::Unusable(said),
            }));
        }
        let lines: Vec<&[u8]> = answer.output.split(|byte| *byte == b'\n').collect();
        let [b"true", format, prefix, objects, shallow, exclude, attributes, sparse, index, b""] = lines[..]
        else {
            return Ok(Err(Why::Unusable("it has no work tree here".to_owned())));
        };
        let format = match format {
            b"sha1" => ObjectFormat::Sha1,
            b"sha256" => ObjectFormat::Sha256,
            _ => return Ok(Err(Why::Unusable("its objects are named in another way".to_owned()))),
        };
        let path = |bytes: &[u8]| PathBuf::from(OsString::from_vec(bytes.to_vec()));
        Ok(Ok(Repository {
            git,
            whole: prefix.is_empty(),
            borrowed: Borrowed { objects: path(objects), format },
            shallow: path(shallow),
            exclude: path(exclude),
            attributes: path(attributes),
            sparse: path(sparse),
            index: path(index),
        }))
    }

    /// What is tracked in the workspace, what is neither tracked nor ignored, and what matches these patterns, ignored or not.
    pub(crate) fn list(&self, patterns: &[String], stop: &AtomicBool) -> Result<Listing, CheckoutError> {
        let mut listing = Listing::default();
        let tracked = ["ls-files", "--stage", "--debug", "-z"];
        for line in index::parse(&self.git.run("list what it tracks", &tracked, b"", stop)?)? {
            match line {
                Ok(entry) if entry.path.is_git() => listing.left_out.add(&entry.path),
                Ok(entry) => listing.tracked.push(entry),
                Err(path) => listing.left_out.add(String::from_utf8_lossy(&path)),
            }
        }
        if !patterns.is_empty() {
            let patterns = patterns.iter().map(|pattern| format!("--exclude={pattern}").into());
            let which = [OsString::from("--ignored")].into_iter().chain(patterns);
            self.others(
                which,
                &mut listing,
                |path, listing| {
                    listing.untracked.insert(path);
                },
                stop,
            )?;
        }
        self.others(
            ["--exclude-standard".into()],
            &mut listing,
            |path, listing| {
                if !path.is_environment() {
                    listing.untracked.insert(path);
                } else if !listing.untracked.contains(&path) {
                    listing.left_out.add(&path);
                }
            },
            stop,
        )?;
        Ok(listing)
    }

    fn others(
        &self,
        which: impl IntoIterator<Item = OsString>,
        listing: &mut Listing,
        mut take: impl FnMut(RelPath, &mut Listing),
        stop: &AtomicBool,
    ) -> Result<(), CheckoutError> {
        let doing = "list what it does not track";
        let mut arguments: Vec<OsString> = ["ls-files", "--others", "-z"].map(OsString::from).into();
        arguments.extend(which);
        let answer = self.git.ask(doing, &arguments, b"", stop)?;
        if !answer.success {
            return Err(CheckoutError::Git { doing, said: answer.complaint() });
        }
        for path in answer.output.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
            match RelPath::parse(path) {
                Ok(path) if !path.is_git() => take(path, listing),
                _ => listing.left_out.add(String::from_utf8_lossy(path)),
            }
        }
        for line in String::from_utf8_lossy(&answer.said).lines() {
            if let Some(closed) = line.strip_prefix("warning: could not open directory '") {
                listing.unreadable.add(closed.rsplit_once("': ").map_or(closed, |(path, _)| path));
            }
        }
        Ok(())
    }

    /// When git last wrote down what it saw of the files, in seconds.
    pub(crate) fn written(&self) -> i64 {
        fs::metadata(&self.index).map_or(0, |metadata| metadata.mtime())
    }

    /// Where it stands.
    pub(crate) fn stand(&self, stop: &AtomicBool) -> Result<Stand, CheckoutError> {
        let head = self.head(stop)?;
        let symbolic = self.git.ask("find the branch", &["symbolic-ref", "-q", "HEAD"], b"", stop)?;
        let symbolic =
            symbolic.success.then(|| text(&symbolic.output)).filter(|name| name.starts_with("refs/heads/"));
        let format = "--format=%(objectname) %(if)%(symref)%(then)-%(else)%(refname)%(end)";
        let listing = self.git.run(
            "list its branches",
            &["for-each-ref", "--sort=refname", format, "refs/heads", "refs/tags", "refs/remotes"],
            b"",
            stop,
        )?;
        let refs = listing.split(|byte| *byte == b'\n').filter_map(|line| {
            let at = line.iter().position(|byte| *byte == b' ')?;
            let oid = Oid::parse(std::str::from_utf8(&line[..at]).ok()?)?;
            Some((line[at + 1..].to_vec(), oid)).filter(|(name, _)| name.starts_with(b"refs/"))
        });
        Ok(Stand { head, symbolic, refs: refs.collect() })
    }

    /// Paths that differ between the last commit and what the person marked for the next one; none where there is no commit.
    pub(crate) fn staged(&self, stop: &AtomicBool) -> Result<Option<Vec<RelPath>>, CheckoutError> {
        if self.head(stop)?.is_none() {
            return Ok(None);
        }
        let arguments =
            ["diff-index", "--cached", "--name-only", "--no-renames", "--relative", "-z", "HEAD", "--"];
        let listing = self.git.run("compare with the last commit", &arguments, b"", stop)?;
        Ok(Some(listing.split(|byte| *byte == 0).filter_map(|path| RelPath::parse(path).ok()).collect()))
    }

    fn head(&self, stop: &AtomicBool) -> Result<Option<Oid>, CheckoutError> {
        let head = self.git.ask("find HEAD", &["rev-parse", "-q", "--verify", "HEAD^{commit}"], b"", stop)?;
        Ok(head.success.then(|| Oid::parse(&text(&head.output))).flatten())
    }

    /// What the person configured, each by its name; the last one counts.
    pub(crate) fn settings(&self, stop: &AtomicBool) -> Result<Vec<(String, String)>, CheckoutError> {
        let answer =
            self.git.ask("read the settings", &["config", "--null", "--get-regexp", SETTINGS], b"", stop)?;
        let mut settings: Vec<(String, String)> = Vec::new();
        for line in answer.output.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            let line = text(line);
            // A name without a value means yes.
            let (name, value) = line.split_once('\n').unwrap_or((&line, "true"));
            settings.retain(|(other, _)| other != name);
            settings.push((name.to_owned(), value.to_owned()));
        }
        Ok(settings)
    }

    /// What is ignored besides what `.gitignore` files say: the repository's own lines behind the person's.
    pub(crate) fn excluded(&self, settings: &[(String, String)]) -> Vec<u8> {
        let named =
            settings.iter().find(|(name, _)| name == "core.excludesfile").map(|(_, path)| expand(path));
        let mut lines = named.or_else(usual_excludes).and_then(|path| own_file(&path)).unwrap_or_default();
        if !lines.is_empty() && !lines.ends_with(b"\n") {
            lines.push(b'\n');
        }
        lines.extend(own_file(&self.exclude).unwrap_or_default());
        lines
    }

    /// Attributes that stand in the repository's own directory.
    pub(crate) fn attributes(&self) -> Option<Vec<u8>> {
        own_file(&self.attributes)
    }

    /// Where its history was cut off.
    pub(crate) fn shallow(&self) -> Option<Vec<u8>> {
        own_file(&self.shallow)
    }

    /// Which part of it is checked out.
    pub(crate) fn sparse(&self) -> Option<Vec<u8>> {
        own_file(&self.sparse)
    }
}

/// The directories of objects that one borrows from, itself first.
pub(crate) fn borrowed_from(objects: &Path) -> Vec<PathBuf> {
    let mut found = vec![objects.to_owned()];
    let mut level = vec![objects.to_owned()];
    for _ in 0..BORROW_DEPTH_MAX {
        let mut next = Vec::new();
        for directory in &level {
            let lines = own_file(&directory.join("info/alternates")).unwrap_or_default();
            for line in lines
                .split(|byte| *byte == b'\n')
                .filter(|line| !matches!(line.first(), None | Some(b'#' | b'"')))
            {
                let path = directory.join(OsString::from_vec(line.to_vec()));
                if let Ok(path) = path.canonicalize()
                    && !found.contains(&path)
                {
                    found.push(path.clone());
                    next.push(path);
                }
            }
        }
        level = next;
    }
    found
}

/// A file that only decides how files look. Where it cannot be read, git cannot read it either.
fn own_file(path: &Path) -> Option<Vec<u8>> {
    // A pipe of that name would never end.
    fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(OWN_FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn expand(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => path.into(),
    }
}

/// Where git looks for what a person ignores everywhere.
fn usual_excludes() -> Option<PathBuf> {
    let configured = std::env::var_os("XDG_CONFIG_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let directory = configured.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".config")))?;
    Some(directory.join("git/ignore"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\n').to_owned()
}
