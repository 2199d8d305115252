//! Three versions of one path as one. It reads and writes nothing.

use super::Why;
use crate::{ContentId, FileMode, Merged, is_text, merge};

/// One version of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Side {
    pub(crate) mode: FileMode,
    pub(crate) bytes: Vec<u8>,
}

impl Side {
    pub(super) fn content(&self) -> ContentId {
        ContentId::of(&self.bytes)
    }

    fn is_file(&self) -> bool {
        matches!(self.mode, FileMode::Plain | FileMode::Executable)
    }
}

/// What `ours` becomes by what led from `base` to `theirs`.
pub(crate) fn three_way(
    base: Option<Side>,
    ours: Option<Side>,
    theirs: Option<Side>,
) -> Result<Option<Side>, Why> {
    if ours == theirs || theirs == base {
        return Ok(ours);
    }
    if ours == base {
        return Ok(theirs);
    }
    match (base, ours, theirs) {
        (Some(base), Some(ours), Some(theirs)) => both(base, ours, theirs).map(Some),
        (None, ..) => Err(Why::Exists),
        (Some(_), None, _) => Err(Why::Deleted),
        (Some(_), Some(_), None) => Err(Why::ChangedBoth),
    }
}

fn both(base: Side, ours: Side, theirs: Side) -> Result<Side, Why> {
    if ![&base, &ours, &theirs].into_iter().all(Side::is_file) {
        return Err(Why::ChangedBoth);
    }
    let mode = if theirs.mode == base.mode { ours.mode } else { theirs.mode };
    let bytes = if theirs.bytes == base.bytes {
        ours.bytes
    } else if ours.bytes == base.bytes || ours.bytes == theirs.bytes {
        theirs.bytes
    } else if [&base, &ours, &theirs].into_iter().all(|side| is_text(&side.bytes)) {
        match merge(&base.bytes, &ours.bytes, &theirs.bytes) {
            Merged::Clean(bytes) => bytes,
            Merged::Conflict(places) => return Err(Why::Lines(places)),
        }
    } else {
        return Err(Why::NotText);
    };
    Ok(Side { mode, bytes })
}

/// Who may do what with a file that had these permissions and is of this mode now.
pub(super) const fn permissions(mode: FileMode, had: u32) -> u32 {
    match mode {
        FileMode::Plain => had & 0o666,
        // Who may read it may execute it.
        FileMode::Executable => had & 0o777 | (had & 0o444) >> 2 | 0o100,
        FileMode::Link | FileMode::Submodule => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FileMode::{Executable, Link, Plain};

    fn side(mode: FileMode, text: &str) -> Option<Side> {
        Some(Side { mode, bytes: text.into() })
    }

    fn plain(text: &str) -> Option<Side> {
        side(Plain, text)
    }

    #[test]
    fn what_only_one_side_changed_is_taken_from_it() {
        for (base, ours, theirs, becomes) in [
            (plain("a"), plain("a"), plain("b"), plain("b")),
            (plain("a"), plain("b"), plain("a"), plain("b")),
            (plain("a"), plain("b"), plain("b"), plain("b")),
            (plain("a"), plain("a"), None, None),
            (plain("a"), None, None, None),
            (None, None, plain("a"), plain("a")),
            (None, plain("a"), plain("a"), plain("a")),
            (plain("a"), plain("a"), side(Link, "b"), side(Link, "b")),
            (plain("a"), plain("b"), side(Executable, "a"), side(Executable, "b")),
            (plain("a"), side(Executable, "a"), plain("b"), side(Executable, "b")),
            (plain("a\nb\nc\n"), plain("A\nb\nc\n"), plain("a\nb\nC\n"), plain("A\nb\nC\n")),
        ] {
            assert_eq!(
                three_way(base.clone(), ours.clone(), theirs.clone()),
                Ok(becomes),
                "{base:?} {ours:?} {theirs:?}"
            );
        }
    }

    #[test]
    fn what_both_changed_is_a_conflict_that_says_why() {
        for (base, ours, theirs, why) in [
            (plain("a"), plain("b"), None, Why::ChangedBoth),
            (plain("a"), None, plain("b"), Why::Deleted),
            (None, plain("b"), plain("c"), Why::Exists),
            (plain("a"), plain("b"), side(Link, "c"), Why::ChangedBoth),
            (side(Link, "a"), side(Link, "b"), side(Link, "c"), Why::ChangedBoth),
            (plain("\0"), plain("\0b"), plain("\0c"), Why::NotText),
            (
                plain("a\n"),
                plain("b\n"),
                plain("c\n"),
                Why::Lines(vec![crate::Conflict { base: 0..1, ours: 0..1, theirs: 0..1 }]),
            ),
        ] {
            assert_eq!(three_way(base, ours, theirs), Err(why));
        }
    }

    #[test]
    fn a_mode_changes_only_what_it_says() {
        for (mode, had, has) in [
            (Plain, 0o755, 0o644),
            (Plain, 0o600, 0o600),
            (Executable, 0o640, 0o750),
            (Executable, 0o664, 0o775),
            (Link, 0o777, 0),
        ] {
            assert_eq!(permissions(mode, had), has, "{had:o}");
        }
    }
}
