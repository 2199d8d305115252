//! Where a scripted agent stands: its thread. It names the script, the turn, and how many steps of the turn are done.

use std::fmt;

/// Where a scripted agent stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) script: String,
    /// From 1 on.
    pub(super) turn: usize,
    /// How many steps of it have a result.
    pub(super) done: usize,
}

impl Position {
    pub(super) fn start(script: &str) -> Self {
        Position { script: script.to_owned(), turn: 1, done: 0 }
    }

    /// Reads a thread back; nothing where it is none of this script's.
    pub(super) fn read(script: &str, thread: &str) -> Option<Self> {
        let (name, place) = thread.rsplit_once('@')?;
        let (turn, done) = place.split_once('.')?;
        let (turn, done) = (turn.parse().ok()?, done.parse().ok()?);
        (name == script && turn > 0).then(|| Position { script: name.to_owned(), turn, done })
    }

    pub(super) fn next_turn(&mut self) {
        self.turn = self.turn.saturating_add(1);
        self.done = 0;
    }

    /// A name for something of the step that comes next; the same whenever the step is done again.
    pub(super) fn name(&self, what: &str) -> String {
        format!("{what}-{}.{}", self.turn, self.done.saturating_add(1))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}.{}", self.script, self.turn, self.done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_reads_back_and_another_scripts_does_not() {
        let position = Position { script: "a@b.c".into(), turn: 3, done: 14 };
        assert_eq!(Position::read("a@b.c", &position.to_string()), Some(position));
        for thread in ["a@b.c", "other@3.14", "a@b.c@0.1", "a@b.c@1.-1", "a@b.c@1", ""] {
            assert_eq!(Position::read("a@b.c", thread), None, "{thread}");
        }
    }
}
