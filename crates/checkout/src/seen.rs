//! A walk through a checkout: what may have changed, by name and stamp alone.
//!
//! No content is read here but rules of what to ignore.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::clashes::clashes;
use crate::ignored::Ignored;
use crate::{
    Base, CheckoutError, Contents, Descend, Entry, FileMode, Found, Kind, Problem, ProblemKind, RelPath, Root,
};

/// What a path is that may be a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    File,
    Link,
}

/// What a walk found.
pub(crate) struct Seen<'a> {
    /// What was there at the beginning and is no longer the very same file.
    pub(crate) changed: Vec<(&'a Entry, Sight)>,
    /// What was there at the beginning and is not now.
    pub(crate) gone: Vec<&'a Entry>,
    /// What is new.
    pub(crate) come: Vec<(RelPath, Sight)>,
    /// What is there and can be no change.
    pub(crate) problems: Vec<Problem>,
    /// How many new files and directories are left out because they are ignored.
    pub(crate) ignored: u64,
}

/// A walk that is under way.
struct Walk<'a, 'w> {
    base: &'a Base,
    contents: &'w mut Contents,
    checkout: &'w Root,
    rules: Ignored,
    /// Whether each entry of the base was met.
    met: Vec<bool>,
    /// The directory the walk is in that is ignored, and was entered for what was there at the beginning.
    ignored_in: Option<RelPath>,
    /// The submodule the walk is in, and whether something was found in it that is nobody's.
    submodule: Option<(RelPath, bool)>,
    seen: Seen<'a>,
}

impl<'a> Seen<'a> {
    /// Walks through a checkout.
    pub(crate) fn look(
        base: &'a Base,
        contents: &mut Contents,
        checkout: &Root,
        changes_max: usize,
        stop: &AtomicBool,
    ) -> Result<Seen<'a>, CheckoutError> {
        let too_many = || CheckoutError::TooManyFiles(changes_max as u64);
        let rules = Ignored::at_root(base, contents, checkout)?;
        let seen = Seen {
            changed: Vec::new(),
            gone: Vec::new(),
            come: Vec::new(),
            problems: Vec::new(),
            ignored: 0,
        };
        let met = vec![false; base.entries.len()];
        let mut walk = Walk { base, contents, checkout, rules, met, ignored_in: None, submodule: None, seen };
        checkout.walk(|path, found| {
            if stop.load(Ordering::Relaxed) {
                return Err(CheckoutError::Stopped);
            }
            let descend = walk.visit(path, found)?;
            if walk.seen.count() > changes_max { Err(too_many()) } else { Ok(descend) }
        })?;
        let Walk { met, mut seen, submodule, .. } = walk;
        if let Some((submodule, true)) = submodule {
            seen.problem(&submodule, ProblemKind::InsideGit);
        }
        let unmet = base.entries.iter().zip(&met).filter(|(_, met)| !**met).map(|(entry, _)| entry);
        seen.gone.extend(unmet);
        if seen.count() > changes_max {
            return Err(too_many());
        }
        let still_there =
            base.entries.iter().zip(&met).filter(|(_, met)| **met).map(|(entry, _)| &entry.path);
        seen.leave_out_clashes(still_there);
        Ok(seen)
    }

    /// How much there is already. What was only touched may turn out to be the same.
    fn count(&self) -> usize {
        self.gone.len() + self.come.len() + self.problems.len()
    }

    fn problem(&mut self, path: &RelPath, why: ProblemKind) {
        self.problems.push(Problem { path: path.clone(), why });
    }

    /// What differs from another path only by case is no change.
    fn leave_out_clashes<'p>(&mut self, still_there: impl Iterator<Item = &'p RelPath>) {
        let clashing = clashes(self.come.iter().map(|(path, _)| path), still_there);
        let come = std::mem::take(&mut self.come);
        for ((path, sight), clashes) in come.into_iter().zip(clashing) {
            if clashes {
                self.problem(&path, ProblemKind::CaseClash);
            } else {
                self.come.push((path, sight));
            }
        }
    }
}

impl<'a> Walk<'a, '_> {
    fn visit(&mut self, path: &RelPath, found: &Found) -> Result<Descend, CheckoutError> {
        self.leave(path);
        let at = self.base.entries.binary_search_by(|entry| entry.path.cmp(path)).ok();
        if path.is_git() {
            self.visit_git(path);
            return Ok(Descend::Past);
        }
        match found.kind {
            Kind::Directory => self.visit_directory(path, at),
            Kind::File | Kind::Link => {
                let sight = if found.kind == Kind::File { Sight::File } else { Sight::Link };
                match at {
                    Some(at) => self.visit_known(at, sight, found),
                    None => self.visit_new(path, sight),
                }
                Ok(Descend::Past)
            }
            Kind::Special | Kind::Unreadable => {
                self.visit_problem(path, at, found.kind);
                Ok(Descend::Past)
            }
        }
    }

    /// Where the walk is no longer.
    fn leave(&mut self, path: &RelPath) {
        self.ignored_in.take_if(|directory| !lies_in(path, directory));
        if let Some((submodule, true)) = self.submodule.take_if(|(submodule, _)| !lies_in(path, submodule)) {
            self.seen.problem(&submodule, ProblemKind::InsideGit);
        }
    }

    /// A repository's own directory. The checkout's own is expected, where the workspace was a repository.
    fn visit_git(&mut self, path: &RelPath) {
        let own = path.as_bytes() == b".git" && self.base.git.is_some();
        match &mut self.submodule {
            Some((_, something)) => *something = true,
            None if own => {}
            None => self.seen.problem(path, ProblemKind::InsideGit),
        }
    }

    fn visit_directory(&mut self, path: &RelPath, at: Option<usize>) -> Result<Descend, CheckoutError> {
        if let Some(at) = at.filter(|at| self.base.entries[*at].mode == FileMode::Submodule) {
            self.met[at] = true;
            self.submodule = Some((path.clone(), false));
        }
        if self.ignored_in.is_none() && self.submodule.is_none() && self.rules.matches(path, true) {
            if self.beneath(path).is_empty() {
                self.seen.ignored += 1;
                return Ok(Descend::Past);
            }
            self.ignored_in = Some(path.clone());
        }
        self.rules.enter(Some(path), self.base, self.contents, self.checkout)?;
        Ok(Descend::Into)
    }

    fn visit_known(&mut self, at: usize, sight: Sight, found: &Found) {
        let entry = &self.base.entries[at];
        self.met[at] = true;
        let same = match entry.mode {
            FileMode::Plain => sight == Sight::File && !found.executable,
            FileMode::Executable => sight == Sight::File && found.executable,
            FileMode::Link => sight == Sight::Link,
            FileMode::Submodule => false,
        };
        if !same || entry.stamp != found.stamp {
            self.seen.changed.push((entry, sight));
        }
    }

    fn visit_new(&mut self, path: &RelPath, sight: Sight) {
        if let Some((_, something)) = &mut self.submodule {
            *something = true;
        } else if self.is_ignored(path) {
            self.seen.ignored += 1;
        } else {
            self.seen.come.push((path.clone(), sight));
        }
    }

    fn visit_problem(&mut self, path: &RelPath, at: Option<usize>, kind: Kind) {
        if let Some(at) = at {
            self.met[at] = true;
        } else if self.submodule.is_none() && self.is_ignored(path) && self.beneath(path).is_empty() {
            self.seen.ignored += 1;
            return;
        }
        // What cannot be looked into is not known to be gone.
        let beneath = self.beneath(path);
        self.met[beneath].fill(true);
        let why = if kind == Kind::Special { ProblemKind::Special } else { ProblemKind::Unreadable };
        self.seen.problem(path, why);
    }

    fn is_ignored(&self, path: &RelPath) -> bool {
        self.ignored_in.is_some() || self.rules.matches(path, false)
    }

    /// Which entries of the base lie in a directory.
    fn beneath(&self, directory: &RelPath) -> std::ops::Range<usize> {
        let prefix = [directory.as_bytes(), b"/"].concat();
        let entries = &self.base.entries;
        let start = entries.partition_point(|entry| entry.path.as_bytes() < &prefix[..]);
        let count = entries[start..].partition_point(|entry| entry.path.as_bytes().starts_with(&prefix));
        start..start + count
    }
}

fn lies_in(path: &RelPath, directory: &RelPath) -> bool {
    path.as_bytes().strip_prefix(directory.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"))
}
