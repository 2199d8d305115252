//! Which new files were made from which old ones: first those that are the same, then those that are alike.
//!
//! It only says where a file may come from; the change is the same without it. Finding what is alike takes the product of the files on
//! both sides, so it is given up where that is too much, as git does: then they are shown as gone and as new.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::similar::{Print, Prints, SIMILAR_BYTES_MAX, SIMILAR_MIN};
use crate::{CheckoutError, FileMode, RelPath, Version};

/// How many files on each side are compared each with each, as git has it.
const FILES_MAX: usize = 1_000;
/// How many pieces of contents are held at once, of all files together.
const PIECES_MAX: usize = 4_000_000;
/// How many pieces are compared at most, of all pairs together.
const STEPS_MAX: u64 = 400_000_000;

/// A file that may come from another, or that another may come from.
#[derive(Clone, Copy)]
pub(crate) struct File<'a> {
    pub(crate) path: &'a RelPath,
    pub(crate) version: Version,
}

/// Where a new file comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// From that one of the files that are gone; no other comes from it so.
    Renamed(usize),
    /// From that one of the files that are gone, which another was made of already.
    CopiedOfGone(usize),
    /// From what that one of the changed files was.
    CopiedOfChanged(usize),
}

/// Whose content is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Of {
    Gone(usize),
    Come(usize),
    Changed(usize),
}

/// Where each of the new files comes from.
pub(crate) fn origins(
    gone: &[File<'_>],
    come: &[File<'_>],
    changed: &[File<'_>],
    read: impl FnMut(Of) -> Result<Vec<u8>, CheckoutError>,
) -> Result<Vec<Option<Origin>>, CheckoutError> {
    let mut search = Search {
        gone,
        come,
        changed,
        read,
        origins: vec![None; come.len()],
        taken: vec![false; gone.len()],
        prints: Prints::default(),
        known: HashMap::new(),
        pieces_left: PIECES_MAX,
        steps_left: STEPS_MAX,
    };
    search.same();
    search.alike_of_the_same_name()?;
    search.alike()?;
    search.copies()?;
    Ok(search.origins)
}

struct Search<'a, R> {
    gone: &'a [File<'a>],
    come: &'a [File<'a>],
    changed: &'a [File<'a>],
    read: R,
    origins: Vec<Option<Origin>>,
    taken: Vec<bool>,
    prints: Prints,
    known: HashMap<Of, Option<Print>>,
    pieces_left: usize,
    steps_left: u64,
}

impl<R: FnMut(Of) -> Result<Vec<u8>, CheckoutError>> Search<'_, R> {
    fn free_gone(&self) -> impl Iterator<Item = usize> {
        (0..self.gone.len()).filter(|at| !self.taken[*at])
    }

    fn free_come(&self) -> impl Iterator<Item = usize> {
        (0..self.come.len()).filter(|at| self.origins[*at].is_none())
    }

    fn rename(&mut self, from: usize, to: usize) {
        self.taken[from] = true;
        self.origins[to] = Some(Origin::Renamed(from));
    }

    /// What has the same content. Those that kept their name come first, so that no other takes what one of them came from.
    fn same(&mut self) {
        for name in [|file: &File<'_>| Some(file.path.name().to_vec()), |_: &File<'_>| None] {
            let key = |file: &File<'_>| (file.version.content, is_link(file), name(file));
            let mut there: HashMap<_, VecDeque<usize>> = HashMap::new();
            for from in self.free_gone().filter(|from| self.gone[*from].version.bytes > 0) {
                there.entry(key(&self.gone[from])).or_default().push_back(from);
            }
            for to in self.free_come().collect::<Vec<_>>() {
                if let Some(from) = there.get_mut(&key(&self.come[to])).and_then(VecDeque::pop_front) {
                    self.rename(from, to);
                }
            }
        }
    }

    /// What is alike and has kept its name, where only one file of that name is gone and only one has come.
    fn alike_of_the_same_name(&mut self) -> Result<(), CheckoutError> {
        let mut names: BTreeMap<&[u8], (Vec<usize>, Vec<usize>)> = BTreeMap::new();
        for from in self.free_gone() {
            names.entry(self.gone[from].path.name()).or_default().0.push(from);
        }
        for to in self.free_come() {
            names.entry(self.come[to].path.name()).or_default().1.push(to);
        }
        for (from, to) in names.into_values() {
            if let ([from], [to]) = (&from[..], &to[..])
                && self.similarity(Of::Gone(*from), Of::Come(*to))? >= SIMILAR_MIN
            {
                self.rename(*from, *to);
            }
            // What is known of these two may never be asked for again.
            self.known.clear();
            self.pieces_left = PIECES_MAX;
        }
        Ok(())
    }

    /// What is alike, the most alike first.
    fn alike(&mut self) -> Result<(), CheckoutError> {
        let (from, to): (Vec<_>, Vec<_>) = (self.free_gone().collect(), self.free_come().collect());
        if from.len() > FILES_MAX || to.len() > FILES_MAX {
            return Ok(());
        }
        let mut pairs = Vec::new();
        for to in to {
            for from in &from {
                let similarity = self.similarity(Of::Gone(*from), Of::Come(to))?;
                if similarity >= SIMILAR_MIN {
                    pairs.push((similarity, *from, to));
                }
            }
        }
        // The order of paths decides between equals.
        pairs.sort_by_key(|(similarity, from, to)| (u8::MAX - similarity, *to, *from));
        for (_, from, to) in pairs {
            if !self.taken[from] && self.origins[to].is_none() {
                self.rename(from, to);
            }
        }
        Ok(())
    }

    /// What was made from a file that also changed, or that another came from.
    fn copies(&mut self) -> Result<(), CheckoutError> {
        let gone = (0..self.gone.len()).map(|at| (Of::Gone(at), &self.gone[at]));
        let changed = (0..self.changed.len()).map(|at| (Of::Changed(at), &self.changed[at]));
        let sources: Vec<_> = changed.chain(gone).filter(|(_, file)| file.version.bytes > 0).collect();
        let mut by_content = HashMap::new();
        for (of, file) in &sources {
            by_content.entry((file.version.content, is_link(file))).or_insert(*of);
        }
        let free: Vec<_> = self.free_come().collect();
        for to in &free {
            let file = &self.come[*to];
            self.origins[*to] = by_content.get(&(file.version.content, is_link(file))).and_then(copied);
        }
        let free: Vec<_> = self.free_come().collect();
        if free.len() > FILES_MAX || sources.len() > FILES_MAX {
            return Ok(());
        }
        for to in free {
            let mut best: Option<(u8, Of)> = None;
            for (of, _) in &sources {
                let similarity = self.similarity(*of, Of::Come(to))?;
                if similarity >= SIMILAR_MIN && best.is_none_or(|(most, _)| similarity > most) {
                    best = Some((similarity, *of));
                }
            }
            self.origins[to] = best.and_then(|(_, of)| copied(&of));
        }
        Ok(())
    }

    /// How alike two files are; 0 where that is not looked at.
    fn similarity(&mut self, from: Of, to: Of) -> Result<u8, CheckoutError> {
        let [one, other] = [from, to].map(|of| self.file(of));
        if is_link(&one) || is_link(&other) || !may_be_similar(&one, &other) {
            return Ok(0);
        }
        self.print(from)?;
        self.print(to)?;
        let (Some(Some(one)), Some(Some(other))) = (self.known.get(&from), self.known.get(&to)) else {
            return Ok(0);
        };
        match self.steps_left.checked_sub(one.steps(other)) {
            Some(left) => {
                self.steps_left = left;
                Ok(one.similarity(other))
            }
            None => Ok(0),
        }
    }

    fn file(&self, of: Of) -> File<'_> {
        match of {
            Of::Gone(at) => self.gone[at],
            Of::Come(at) => self.come[at],
            Of::Changed(at) => self.changed[at],
        }
    }

    /// Takes the print of a file, unless there are too many already.
    fn print(&mut self, of: Of) -> Result<(), CheckoutError> {
        if self.known.contains_key(&of) || self.pieces_left == 0 {
            return Ok(());
        }
        let print = self.prints.take(&(self.read)(of)?);
        self.pieces_left = self.pieces_left.saturating_sub(print.as_ref().map_or(1, Print::pieces));
        self.known.insert(of, print);
        Ok(())
    }
}

fn copied(of: &Of) -> Option<Origin> {
    match of {
        Of::Gone(at) => Some(Origin::CopiedOfGone(*at)),
        Of::Changed(at) => Some(Origin::CopiedOfChanged(*at)),
        Of::Come(_) => None,
    }
}

fn is_link(file: &File<'_>) -> bool {
    !matches!(file.version.mode, FileMode::Plain | FileMode::Executable)
}

/// Whether lengths alone leave it possible that two files are alike.
fn may_be_similar(one: &File<'_>, other: &File<'_>) -> bool {
    let (short, long) =
        (one.version.bytes.min(other.version.bytes), one.version.bytes.max(other.version.bytes));
    long <= SIMILAR_BYTES_MAX as u64 && short > 0 && short * 100 >= long * u64::from(SIMILAR_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ContentId;

    /// Which of the new files come from where, by the names and contents of all.
    fn found(gone: &[(&str, &str)], come: &[(&str, &str)], changed: &[(&str, &str)]) -> Vec<Option<Origin>> {
        let paths = |files: &[(&str, &str)]| -> Vec<RelPath> {
            files.iter().map(|(path, _)| RelPath::parse(path.as_bytes()).unwrap()).collect()
        };
        let all = [gone, come, changed].map(|files| (files, paths(files)));
        let [gone_files, come_files, changed_files] =
            &all.each_ref().map(|(files, paths)| -> Vec<File<'_>> {
                let version = |text: &str| Version {
                    mode: FileMode::Plain,
                    bytes: text.len() as u64,
                    content: ContentId::of(text.as_bytes()),
                };
                files
                    .iter()
                    .zip(paths)
                    .map(|((_, text), path)| File { path, version: version(text) })
                    .collect()
            });
        let read = |of| {
            Ok(match of {
                Of::Gone(at) => gone[at].1,
                Of::Come(at) => come[at].1,
                Of::Changed(at) => changed[at].1,
            }
            .into())
        };
        origins(gone_files, come_files, changed_files, read).unwrap()
    }

    #[test]
    fn the_same_content_under_another_path_was_renamed_and_keeps_its_name_where_it_can() {
        let gone = [("a/one", "x\n"), ("b/two", "x\n")];
        let come = [("c/two", "x\n"), ("d/three", "x\n")];
        assert_eq!(found(&gone, &come, &[]), [Some(Origin::Renamed(1)), Some(Origin::Renamed(0))]);
    }

    #[test]
    fn what_is_alike_was_renamed_the_most_alike_first() {
        let gone = [("a", "1\n2\n3\n4\n")];
        let come = [("b", "1\n2\nx\ny\n"), ("c", "1\n2\n3\ny\n")];
        let origins = found(&gone, &come, &[]);
        assert_eq!(origins, [Some(Origin::CopiedOfGone(0)), Some(Origin::Renamed(0))]);
    }

    #[test]
    fn what_is_less_than_half_alike_is_new() {
        assert_eq!(found(&[("a", "1\n2\n3\n4\n")], &[("b", "1\nx\ny\nz\n")], &[]), [None]);
        assert_eq!(found(&[("a", "")], &[("b", "")], &[]), [None]);
    }

    #[test]
    fn a_copy_of_what_also_changed_says_so() {
        let changed = [("a", "1\n2\n3\n4\n")];
        let come = [("b", "1\n2\n3\n4\n"), ("c", "1\n2\n3\n4\n5\n")];
        let copied = Some(Origin::CopiedOfChanged(0));
        assert_eq!(found(&[], &come, &changed), [copied, copied]);
    }

    #[test]
    fn too_many_files_are_not_compared_each_with_each() {
        let text = |at: usize, end: &str| format!("{at}\n{at}a\n{at}b\n{end}\n");
        let names: Vec<String> = (0..2 * (FILES_MAX + 1)).map(|at| format!("{at:05}")).collect();
        let texts: Vec<String> = (0..2 * (FILES_MAX + 1))
            .map(|at| text(at % (FILES_MAX + 1), if at > FILES_MAX { "x" } else { "y" }))
            .collect();
        let files: Vec<(&str, &str)> =
            names.iter().zip(&texts).map(|(name, text)| (&name[..], &text[..])).collect();
        let (gone, come) = files.split_at(FILES_MAX + 1);
        assert!(found(gone, come, &[]).iter().all(Option::is_none));
        let origins = found(&gone[1..], &come[1..], &[]);
        assert!(origins.iter().enumerate().all(|(at, origin)| *origin == Some(Origin::Renamed(at))));
    }
}
