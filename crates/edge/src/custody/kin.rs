//! Who is whose child, as the kernel tells it.
//!
//! It only looks. What it says may be old the moment it is said, so whoever acts on it looks again.

use std::collections::HashMap;
use std::fs;

use rustix::process::{Pid, getpid};

/// Who is whose child.
pub(super) enum Kin {
    /// The kernel lists the children of a process, which is quick and as fresh as can be.
    Listed,
    /// It does not, so all processes were asked for their parents once.
    Asked(HashMap<Pid, Vec<Pid>>),
}

impl Kin {
    /// The quickest way that this kernel has.
    pub(super) fn look() -> Kin {
        let own = getpid().as_raw_nonzero();
        match fs::exists(format!("/proc/{own}/task/{own}/children")) {
            Ok(true) => Kin::Listed,
            _ => Kin::ask(),
        }
    }

    fn ask() -> Kin {
        let mut children: HashMap<Pid, Vec<Pid>> = HashMap::new();
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        for child in entries.filter_map(|entry| number(entry.file_name().to_str()?)) {
            if let Some(parent) = parent_of(child) {
                children.entry(parent).or_default().push(child);
            }
        }
        Kin::Asked(children)
    }

    pub(super) fn children_of(&self, parent: Pid) -> Vec<Pid> {
        match self {
            Kin::Listed => listed_children(parent),
            Kin::Asked(children) => children.get(&parent).cloned().unwrap_or_default(),
        }
    }
}

/// Each thread has its own list.
fn listed_children(parent: Pid) -> Vec<Pid> {
    let threads = fs::read_dir(format!("/proc/{}/task", parent.as_raw_nonzero()));
    let mut children = Vec::new();
    for thread in threads.into_iter().flatten().flatten() {
        // A thread that has ended meanwhile has handed its children on.
        let list = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        children.extend(list.split_ascii_whitespace().filter_map(number));
    }
    children
}

/// The parent of a process that has not been reaped.
pub(super) fn parent_of(child: Pid) -> Option<Pid> {
    let stat = fs::read(format!("/proc/{}/stat", child.as_raw_nonzero())).ok()?;
    parent_in(&String::from_utf8_lossy(&stat))
}

fn parent_in(stat: &str) -> Option<Pid> {
    // The name stands in parentheses and may itself contain some.
    number(stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace().nth(1)?)
}

fn number(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_parent_is_read_whatever_the_name_of_the_child() {
        #[track_caller]
        fn check(stat: &str, expected: Option<i32>) {
            assert_eq!(parent_in(stat).map(Pid::as_raw_pid), expected);
        }
        check("9 (sleep) S 3 4 5 0", Some(3));
        check("9 (a) R (7) S 3 4 5 0", Some(3));
        check("9 (orphan) S 0 4 5 0", None);
        check("9 (cut", None);
        check("9 (cut) S", None);
    }

    #[test]
    fn both_ways_of_looking_see_the_same_children() {
        let mut child = Command::new("sh").args(["-c", "read line"]).stdin(Stdio::piped()).spawn().unwrap();
        let id = Pid::from_child(&child);
        for kin in [Kin::Listed, Kin::ask()] {
            assert!(kin.children_of(getpid()).contains(&id));
            assert!(kin.children_of(id).is_empty());
        }
        assert_eq!(parent_of(id), Some(getpid()));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!Kin::Listed.children_of(getpid()).contains(&id));
        assert_eq!(parent_of(id), None);
    }
}
