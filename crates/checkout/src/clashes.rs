//! Paths that differ only by case, which not every file system can tell apart.
//!
//! Other spellings of one name, such as accents written apart, are not looked for.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use crate::RelPath;

/// For each of the new paths, whether it or a directory it lies in differs only by case from another one, new or not. What was like
/// that at the beginning may stay so.
pub(crate) fn clashes<'p, 'n>(
    new: impl Iterator<Item = &'n RelPath>,
    still_there: impl Iterator<Item = &'p RelPath>,
) -> Vec<bool> {
    let new: Vec<&RelPath> = new.collect();
    let mut spellings: HashMap<Vec<u8>, BTreeSet<Cow<'_, [u8]>>> = HashMap::new();
    for path in &new {
        for part in parts(path) {
            spellings.entry(folded(part)).or_default().insert(part.into());
        }
    }
    let mut old: HashSet<&[u8]> = HashSet::new();
    if !new.is_empty() {
        for part in still_there.flat_map(parts) {
            if let Some(spellings) = spellings.get_mut(&folded(part)) {
                old.insert(part);
                if !spellings.contains(part) {
                    spellings.insert(part.to_vec().into());
                }
            }
        }
    }
    let clashes = |part: &[u8]| {
        !old.contains(part) && spellings.get(&folded(part)).is_some_and(|spellings| spellings.len() > 1)
    };
    new.iter().map(|path| parts(path).any(clashes)).collect()
}

/// The directories that a path lies in, and it.
fn parts(path: &RelPath) -> impl Iterator<Item = &[u8]> {
    let bytes = path.as_bytes();
    let ends = (0..bytes.len()).filter(move |at| bytes[*at] == b'/').chain([bytes.len()]);
    ends.map(move |end| &bytes[..end])
}

fn folded(path: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(path) {
        Ok(text) => text.to_lowercase().into_bytes(),
        Err(_) => path.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(new: &[&str], old: &[&str]) -> Vec<bool> {
        let paths = |names: &[&str]| -> Vec<RelPath> {
            names.iter().map(|name| RelPath::parse(name.as_bytes()).unwrap()).collect()
        };
        let (new, old) = (paths(new), paths(old));
        clashes(new.iter(), old.iter())
    }

    #[test]
    fn c15_what_differs_only_by_case_clashes() {
        assert_eq!(found(&["Readme", "b"], &["readme"]), [true, false]);
        assert_eq!(found(&["a/X", "a/x"], &[]), [true, true]);
        assert_eq!(found(&["SRC/new"], &["src/old"]), [true]);
        assert_eq!(found(&["Ünder"], &["ünder"]), [true]);
        assert_eq!(found(&["src/new", "src/other"], &["src/old"]), [false, false]);
    }

    #[test]
    fn what_was_like_that_at_the_beginning_may_stay_so() {
        assert_eq!(found(&["a/new"], &["a/x", "A/x"]), [false]);
    }
}
