//! The provider as a program: it prints its URL and serves there.

#![allow(clippy::unwrap_used, reason = "a failed expectation fails the test")]

#[allow(dead_code, reason = "this test needs one request of the client")]
mod client;

use std::process::Stdio;

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

#[tokio::test]
async fn the_program_prints_the_url_where_it_serves() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_runyard-demo-provider"))
        .args(["--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(program.stdout.take().unwrap()).read_line(&mut url).await.unwrap();
    let address = url.trim().strip_prefix("http://").unwrap().strip_suffix("/v1").unwrap().parse().unwrap();
    assert_eq!(client::request(address, "GET", "/v1/models", "k", "").await.status, 200);
}

#[tokio::test]
async fn the_program_says_why_it_does_not_start() {
    let output = Command::new(env!("CARGO_BIN_EXE_runyard-demo-provider"))
        .args(["--listen", "0.0.0.0:0"])
        .output()
        .await
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "error: 0.0.0.0:0 is not a loopback address\n");
}
