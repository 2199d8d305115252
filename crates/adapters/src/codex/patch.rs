//! A change of files as codex shows it, as the patch that a person reads.

use runyard_domain::gate::Request;

use super::place::Workspace;
use super::wire::{Change, ChangeKind, FileChange};

/// What is asked for; nothing where codex shows a kind of change that cannot be shown to a person.
pub(super) fn request(change: &FileChange, workspace: &Workspace) -> Option<Request> {
    let patch: Option<String> = change.changes.iter().map(|change| unified(change, workspace)).collect();
    Some(Request::Patch { files: files(change, workspace), patch: patch? })
}

/// The files that it touches; of a moved file both names.
pub(super) fn files(change: &FileChange, workspace: &Workspace) -> Vec<String> {
    change.changes.iter().flat_map(|change| names(change, workspace)).collect()
}

fn names(change: &Change, workspace: &Workspace) -> Vec<String> {
    let moved = match &change.kind {
        ChangeKind::Update { move_path } => move_path.as_deref(),
        ChangeKind::Add | ChangeKind::Delete | ChangeKind::Unknown => None,
    };
    std::iter::once(change.path.as_str()).chain(moved).map(|path| workspace.place("", path)).collect()
}

fn unified(change: &Change, workspace: &Workspace) -> Option<String> {
    let names = names(change, workspace);
    let (from, to) = (&names[0], names.last().unwrap_or(&names[0]));
    let patch = match change.kind {
        ChangeKind::Unknown => return None,
        ChangeKind::Add => format!("--- /dev/null\n+++ b/{to}\n{}", whole(&change.diff, '+')),
        ChangeKind::Delete => format!("--- a/{from}\n+++ /dev/null\n{}", whole(&change.diff, '-')),
        ChangeKind::Update { .. } => {
            let end = if change.diff.ends_with('\n') { "" } else { "\n" };
            format!("--- a/{from}\n+++ b/{to}\n{}{end}", change.diff)
        }
    };
    Some(patch)
}

/// A whole file as one hunk.
fn whole(content: &str, sign: char) -> String {
    let lines = content.lines().count();
    let head = match (lines, sign) {
        (0, _) => return String::new(),
        (_, '+') => format!("@@ -0,0 +1,{lines} @@\n"),
        _ => format!("@@ -1,{lines} +0,0 @@\n"),
    };
    let body: String = content.split_inclusive('\n').map(|line| format!("{sign}{line}")).collect();
    let end = if content.ends_with('\n') { "" } else { "\n\\ No newline at end of file\n" };
    format!("{head}{body}{end}")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_person_reads_every_change_as_one_patch() {
        let change =
            |path: &str, kind, diff: &str| Change { path: path.to_owned(), kind, diff: diff.to_owned() };
        let moved = ChangeKind::Update { move_path: Some("/w/new.txt".to_owned()) };
        let all = FileChange {
            id: "call".to_owned(),
            changes: vec![
                change("/w/made.txt", ChangeKind::Add, "one\ntwo"),
                change("/w/gone.txt", ChangeKind::Delete, "old\n"),
                change("/w/old.txt", moved, "@@ -1 +1 @@\n-a\n+b"),
                change("/w/empty", ChangeKind::Add, ""),
            ],
            status: super::super::wire::Status::InProgress,
        };
        let patch = "--- /dev/null\n+++ b/made.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n\
                     --- a/gone.txt\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-old\n\
                     --- a/old.txt\n+++ b/new.txt\n@@ -1 +1 @@\n-a\n+b\n\
                     --- /dev/null\n+++ b/empty\n";
        let files = ["made.txt", "gone.txt", "old.txt", "new.txt", "empty"].map(str::to_owned).to_vec();
        assert_eq!(
            request(&all, &Workspace::new(Path::new("/w"))),
            Some(Request::Patch { files, patch: patch.to_owned() })
        );
    }

    #[test]
    fn c11_a_kind_of_change_that_nobody_knows_cannot_be_asked_for() {
        let unknown =
            serde_json::json!({ "path": "/w/a", "kind": { "type": "retype", "to": "b" }, "diff": "" });
        let changes = vec![serde_json::from_value(unknown).unwrap()];
        let all =
            FileChange { id: "call".to_owned(), changes, status: super::super::wire::Status::InProgress };
        assert_eq!(request(&all, &Workspace::new(Path::new("/w"))), None);
        assert_eq!(files(&all, &Workspace::new(Path::new("/w"))), ["a"]);
    }
}
