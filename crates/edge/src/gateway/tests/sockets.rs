//! Unix sockets, for processes that have no network.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use runyard_domain::Wire;
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};

use super::harness::*;
use crate::gateway::{Gateway, Lease};

async fn with_socket(gateway: &Gateway, provider: &Provider, path: PathBuf) -> Lease {
    let mut pass = pass(&provider.base_url(), Wire::Responses);
    pass.socket = Some(path);
    gateway.open(pass).await.unwrap()
}

#[tokio::test]
async fn a_unix_socket_serves_the_same_whatever_the_length_of_its_path() {
    let provider = Provider::answering("200 OK", "", "{\"ok\":1}").await;
    let directory = tempfile::tempdir().unwrap();
    let deep = directory.path().join("d".repeat(200));
    fs::create_dir(&deep).unwrap();
    let path = deep.join("gateway.sock");
    let gateway = Gateway::new();
    let lease = with_socket(&gateway, &provider, path.clone()).await;
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(&deep).unwrap().count(), 1);
    // The path is too long to connect to as well; a short one leads there.
    let short = directory.path().join("s");
    std::os::unix::fs::symlink(&deep, &short).unwrap();
    let ask = async |text: &str| {
        let mut stream = UnixStream::connect(short.join("gateway.sock")).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        read_reply(stream).await.unwrap()
    };
    let reply = ask(&request(&lease, "{}")).await;
    assert_eq!((reply.status, reply.body.as_str()), (200, "{\"ok\":1}"));
    assert_eq!(ask(&request(&lease, "{}").replace("Bearer ryg_", "Bearer ")).await.status, 401);
    drop(lease);
    assert_eq!(fs::read_dir(&deep).unwrap().count(), 0, "removed with the lease");
}

#[tokio::test]
async fn a_socket_that_was_left_behind_is_replaced_and_one_that_came_later_is_left() {
    let provider = Provider::answering("200 OK", "", "{}").await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gateway.sock");
    drop(UnixListener::bind(&path).unwrap());
    fs::write(directory.path().join("gateway.sock.draft"), "").unwrap();
    let gateway = Gateway::new();
    let first = with_socket(&gateway, &provider, path.clone()).await;
    let second = with_socket(&gateway, &provider, path.clone()).await;
    drop(first);
    let mut stream = UnixStream::connect(&path).await.unwrap();
    stream.write_all(request(&second, "{}").as_bytes()).await.unwrap();
    assert_eq!(read_reply(stream).await.unwrap().status, 200);
    drop(second);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_socket_that_cannot_be_made_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    for path in [
        directory.path().join("absent/gateway.sock"),
        PathBuf::from("/"),
        directory.path().join("n".repeat(300)),
    ] {
        let mut pass = pass("http://127.0.0.1:1/v1", Wire::Responses);
        pass.socket = Some(path);
        assert!(Gateway::new().open(pass).await.is_err());
    }
}

#[tokio::test]
async fn b13_a_runs_socket_takes_the_token_of_that_run_alone() {
    let provider = Provider::answering("200 OK", "", "{}").await;
    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (directory.path().join("one.sock"), directory.path().join("two.sock"));
    let gateway = Gateway::new();
    let first = with_socket(&gateway, &provider, one.clone()).await;
    let second = with_socket(&gateway, &provider, two.clone()).await;
    for (path, lease, status) in
        [(&one, &first, 200), (&one, &second, 401), (&two, &first, 401), (&two, &second, 200)]
    {
        let mut stream = UnixStream::connect(path).await.unwrap();
        stream.write_all(request(lease, "{}").as_bytes()).await.unwrap();
        assert_eq!(read_reply(stream).await.unwrap().status, status);
    }
    assert_eq!(provider.seen().len(), 2);
}
