//! The private cluster: it keeps what was committed through every kind of end, and leaves nothing behind.
#![allow(clippy::unwrap_used, reason = "the helpers of tests fail like tests")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use runyard_testkit_postgres::{PASSWORD, Postgres, USER};
use tokio_postgres::NoTls;

/// Tells the test of leftovers to be the process that is killed.
const VICTIM: &str = "RUNYARD_TESTKIT_POSTGRES_VICTIM";
const PATIENCE: Duration = Duration::from_secs(60);

async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test]
async fn each_test_gets_an_empty_database_of_its_own() {
    let postgres = Postgres::start().unwrap();
    let (first, second) = (postgres.database().unwrap(), postgres.database().unwrap());
    assert_ne!(first, second);
    connect(&first).await.batch_execute("CREATE TABLE t (n int)").await.unwrap();
    let found = connect(&second).await.query_one("SELECT to_regclass('t') IS NULL", &[]).await.unwrap();
    assert!(found.get::<_, bool>(0));
}

#[tokio::test]
async fn what_was_committed_is_there_after_an_immediate_stop_and_after_a_kill() {
    let mut postgres = Postgres::start().unwrap();
    let address = postgres.address();
    let url = postgres.database().unwrap();
    postgres.sql(&url, "CREATE TABLE t (n int); INSERT INTO t VALUES (1)").unwrap();
    let client = connect(&url).await;
    postgres.stop_immediately().unwrap();
    assert!(client.batch_execute("SELECT 1").await.is_err());
    assert!(tokio_postgres::connect(&url, NoTls).await.is_err());
    postgres.start_again().unwrap();
    postgres.sql(&url, "INSERT INTO t VALUES (2)").unwrap();
    postgres.kill_hard().unwrap();
    assert!(tokio_postgres::connect(&url, NoTls).await.is_err());
    postgres.start_again().unwrap();
    assert_eq!(postgres.address(), address);
    assert_eq!(postgres.sql(&url, "SELECT n FROM t ORDER BY n").unwrap(), "1\n2");
}

#[tokio::test]
async fn it_is_durable_and_asks_for_the_password() {
    let postgres = Postgres::start().unwrap();
    let url = postgres.database().unwrap();
    for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
        assert_eq!(postgres.sql(&url, &format!("SHOW {setting}")).unwrap(), "on", "{setting}");
    }
    let wrong = url.replace(PASSWORD, "wrong");
    let refused = tokio_postgres::connect(&wrong, NoTls).await.err().unwrap();
    assert_eq!(refused.code().unwrap().code(), "28P01");
    assert_eq!(postgres.sql(&url, "SELECT current_user").unwrap(), USER);
}

#[test]
fn a_failing_statement_is_an_error_with_the_servers_words() {
    let postgres = Postgres::start().unwrap();
    let error = postgres.sql(&postgres.url("postgres"), "SELECT nonsense").unwrap_err();
    assert!(error.to_string().contains("nonsense"), "{error}");
}

#[test]
fn dropping_it_removes_server_and_folder() {
    let postgres = Postgres::start().unwrap();
    let (process, folder) = (postgres.process().unwrap(), postgres.folder().to_owned());
    drop(postgres);
    assert!(!is_running(process));
    assert!(!folder.exists());
}

#[test]
fn dropping_it_while_the_server_is_down_removes_the_folder_too() {
    for kill in [Postgres::kill_hard, Postgres::stop_immediately] {
        let mut postgres = Postgres::start().unwrap();
        let folder = postgres.folder().to_owned();
        kill(&mut postgres).unwrap();
        drop(postgres);
        assert!(!folder.exists());
    }
}

#[test]
fn a_killed_test_leaves_neither_server_nor_folder() {
    if std::env::var_os(VICTIM).is_some() {
        let postgres = Postgres::start().unwrap();
        println!("\n{VICTIM} {} {}", postgres.process().unwrap(), postgres.folder().display());
        std::thread::sleep(PATIENCE);
        return;
    }
    let name = "a_killed_test_leaves_neither_server_nor_folder";
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let line = lines.map(Result::unwrap).find(|line| line.starts_with(VICTIM)).unwrap();
    let mut words = line.split(' ').skip(1);
    let process: u32 = words.next().unwrap().parse().unwrap();
    let folder = PathBuf::from(words.next().unwrap());
    assert!(is_running(process) && folder.exists());
    victim.kill().unwrap();
    victim.wait().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while is_running(process) || folder.exists() {
        assert!(Instant::now() < deadline, "process {process} or {} is left", folder.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// One that has ended and was not waited for counts as ended.
fn is_running(process: u32) -> bool {
    let status = std::fs::read_to_string(Path::new("/proc").join(process.to_string()).join("stat"));
    status.is_ok_and(|status| !status.contains(") Z "))
}
