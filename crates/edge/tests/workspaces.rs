//! The allow-list: what can be a workspace, and what a place names.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of tests fail like tests"
)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use runyard_backend::{WorkspaceError, Workspaces};
use runyard_domain::run::Who;
use runyard_domain::{Actor, Code, Listing};
use runyard_edge::AllowList;

struct Files {
    _kept: tempfile::TempDir,
    base: PathBuf,
}

impl Files {
    fn new(directories: &[&str]) -> Files {
        let kept = tempfile::tempdir().unwrap();
        let base = kept.path().canonicalize().unwrap();
        for directory in directories {
            fs::create_dir_all(base.join(directory)).unwrap();
        }
        Files { _kept: kept, base }
    }

    fn list(&self) -> AllowList {
        AllowList::open(&self.base.join("data/edge"), "edge", &[self.base.join("data")]).unwrap()
    }

    fn path(&self, name: &str) -> String {
        self.base.join(name).to_str().unwrap().to_owned()
    }
}

fn code<T: std::fmt::Debug>(result: Result<T, WorkspaceError>) -> Code {
    result.unwrap_err().code()
}

#[tokio::test]
async fn c16_what_a_person_named_is_found_by_id_label_and_any_path_inside() {
    let files = Files::new(&["data", "project/src"]);
    let list = files.list();
    let added = list.add(&files.path("project"), None, &Who::runyard()).await.unwrap();
    assert_eq!(
        (added.label.as_str(), added.project.as_str(), added.edge_id.as_str()),
        ("project", "project", "edge")
    );
    assert_eq!(
        list.add(&files.path("project/src/.."), Some("other"), &Who::runyard()).await.unwrap(),
        added,
        "again is the same"
    );
    for place in
        [added.id.to_string(), "project".to_owned(), files.path("project"), files.path("project/src")]
    {
        assert_eq!(list.resolve(&place).await.unwrap(), added, "{place}");
    }
    assert_eq!(files.list().list().await.unwrap(), std::slice::from_ref(&added), "it is durable");
    assert_eq!(list.root(added.id).await.unwrap(), Path::new(&files.path("project")));
    let mode = fs::metadata(files.path("data/edge/workspaces.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    list.remove(added.id, &Who::runyard()).await.unwrap();
    assert_eq!(code(list.remove(added.id, &Who::runyard()).await), Code::NotFound);
    assert_eq!(code(list.resolve("project").await), Code::NotFound);
    assert_eq!(code(list.root(added.id).await), Code::WorkspaceOutsideAllowlist);
}

// CVE-2025-53109, CVE-2025-53110, CVE-2025-68143 and CVE-2025-68145: a neighbour whose name begins alike, a link, any path at all.
#[tokio::test]
async fn c16_a_path_that_leads_outside_is_outside_however_it_is_written() {
    let files = Files::new(&["data", "project/src", "project2", "private"]);
    let list = files.list();
    list.add(&files.path("project"), None, &Who::runyard()).await.unwrap();
    symlink(files.path("private"), files.path("project/link")).unwrap();
    symlink("../../private", files.path("project/src/climb")).unwrap();
    symlink(files.path("project"), files.path("way-in")).unwrap();
    for outside in
        ["project/link", "project/src/climb", "project/../private", "project2", "project/none", "."]
    {
        assert_eq!(
            code(list.resolve(&files.path(outside)).await),
            Code::WorkspaceOutsideAllowlist,
            "{outside}"
        );
    }
    assert_eq!(code(list.resolve("../project").await), Code::NotFound, "a name is no path");
    assert_eq!(list.resolve(&files.path("way-in/src")).await.unwrap().label, "project");
}

#[tokio::test]
async fn of_workspaces_in_one_another_the_innermost_counts() {
    let files = Files::new(&["data", "outer/inner"]);
    let list = files.list();
    list.add(&files.path("outer/inner"), None, &Who::runyard()).await.unwrap();
    list.add(&files.path("outer"), None, &Who::runyard()).await.unwrap();
    assert_eq!(list.resolve(&files.path("outer/inner")).await.unwrap().label, "inner");
    assert_eq!(list.resolve(&files.path("outer")).await.unwrap().label, "outer");
}

#[tokio::test]
async fn c05_what_cannot_be_a_workspace_is_refused_with_the_reason() {
    let files = Files::new(&["data/inside", "project", "other"]);
    let list = files.list();
    fs::write(files.path("file"), "").unwrap();
    symlink(files.path("data/inside"), files.path("disguised")).unwrap();
    for (path, why) in [
        ("project".to_owned(), "not an absolute path"),
        (files.path("none"), "does not exist"),
        (files.path("file"), "not a directory"),
        ("/".to_owned(), "the root of all files"),
        ("/proc/../".to_owned(), "the root of all files"),
        (files.path("data"), "the data directory"),
        (files.path("data/inside"), "the data directory"),
        (files.path("disguised"), "the data directory"),
        (files.path("."), "the data directory"),
    ] {
        let error = list.add(&path, None, &Who::runyard()).await.unwrap_err();
        assert_eq!(error.code(), Code::ValidationError, "{path}");
        assert!(error.to_string().contains(why), "{error}");
    }
    list.add(&files.path("project"), Some("mine"), &Who::runyard()).await.unwrap();
    let id = "wsp_018bcfe5680077078707070707070707";
    for label in ["mine", "", " ", "/etc", "a\nb", id, &"x".repeat(65)] {
        assert_eq!(
            code(list.add(&files.path("other"), Some(label), &Who::runyard()).await),
            Code::ValidationError,
            "{label:?}"
        );
    }
    assert_eq!(list.list().await.unwrap().len(), 1);
}

#[tokio::test]
async fn directories_of_one_name_get_labels_of_their_own() {
    let files = Files::new(&["data", "a/app", "b/app", "c/app"]);
    let list = files.list();
    let mut labels = Vec::new();
    for parent in ["a", "b", "c"] {
        labels.push(
            list.add(&files.path(&format!("{parent}/app")), None, &Who::runyard()).await.unwrap().label,
        );
    }
    assert_eq!(labels, ["app", "app-2", "app-3"]);
}

#[test]
fn many_at_once_lose_no_entry() {
    const EACH: usize = 8;
    let names: Vec<String> = (0..EACH * EACH).map(|number| format!("w{number}")).collect();
    let mut directories = vec!["data"];
    directories.extend(names.iter().map(String::as_str));
    let files = Files::new(&directories);
    std::thread::scope(|scope| {
        for some in names.chunks(EACH) {
            let files = &files;
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                // Each with a list of its own, as processes have.
                let list = files.list();
                for name in some {
                    runtime.block_on(list.add(&files.path(name), None, &Who::runyard())).unwrap();
                }
            });
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(runtime.block_on(files.list().list()).unwrap().len(), EACH * EACH);
}

#[tokio::test]
async fn a_list_that_cannot_be_read_is_an_error_and_is_not_replaced() {
    let files = Files::new(&["data", "project"]);
    let list = files.list();
    fs::write(files.path("data/edge/workspaces.json"), "{").unwrap();
    assert_eq!(code(list.list().await), Code::StorageIo);
    assert_eq!(code(list.add(&files.path("project"), None, &Who::runyard()).await), Code::StorageIo);
    assert_eq!(fs::read_to_string(files.path("data/edge/workspaces.json")).unwrap(), "{");
}

// clause: C24
#[tokio::test]
async fn c24_a_change_of_the_list_is_kept_for_the_audit_with_who_did_it_until_that_has_it() {
    let files = Files::new(&["data", "project", "other"]);
    let ada = Who::from(&Actor::owner("ada"));
    let list = files.list();
    let added = list.add(&files.path("project"), None, &ada).await.unwrap();
    list.add(&files.path("project"), None, &Who::runyard()).await.unwrap();
    list.remove(added.id, &Who::runyard()).await.unwrap();
    let unsaid = files.list().unsaid().await.unwrap();
    let what: Vec<_> = unsaid.iter().map(|change| (change.what.change, &change.by)).collect();
    assert_eq!(what, [(Listing::Added, &ada), (Listing::Removed, &Who::runyard())], "each change once");
    assert!(unsaid.iter().all(|change| change.what.workspace_id == added.id));
    list.add(&files.path("other"), None, &ada).await.unwrap();
    list.said(unsaid.iter().map(|change| change.id).collect()).await.unwrap();
    let left = list.unsaid().await.unwrap();
    assert_eq!(left.iter().map(|change| change.what.label.as_str()).collect::<Vec<_>>(), ["other"]);
}
