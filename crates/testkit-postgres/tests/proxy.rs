//! The proxy cuts exactly where it says: the server has committed, or it has not.
#![allow(clippy::unwrap_used, reason = "the helpers of tests fail like tests")]

use std::time::Duration;

use runyard_testkit_postgres::{Cut, CuttingProxy, Postgres};
use tokio_postgres::{Client, NoTls};

/// `Q`, a length of four bytes, `COMMIT`, a zero.
const COMMIT_MESSAGE_BYTES: usize = 12;

struct Bench {
    postgres: Postgres,
    proxy: CuttingProxy,
    direct: String,
}

impl Bench {
    fn start() -> Self {
        let postgres = Postgres::start().unwrap();
        let proxy = CuttingProxy::start(postgres.address()).unwrap();
        let direct = postgres.database().unwrap();
        postgres.sql(&direct, "CREATE TABLE t (n int)").unwrap();
        Self { postgres, proxy, direct }
    }

    async fn connect(&self) -> Client {
        let (client, connection) =
            tokio_postgres::connect(&self.proxy.through(&self.direct), NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    /// Inserts a number in a transaction of its own, over a new connection.
    async fn insert(&self, number: i32) -> Result<(), tokio_postgres::Error> {
        let mut client = self.connect().await;
        let transaction = client.transaction().await.unwrap();
        transaction.execute("INSERT INTO t VALUES ($1)", &[&number]).await.unwrap();
        transaction.commit().await
    }

    /// What is there once every other connection has ended, so that nothing is still being committed.
    fn stored(&self) -> String {
        loop {
            let others = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' \
                          AND pid <> pg_backend_pid()";
            if self.postgres.sql(&self.direct, others).unwrap() == "0" {
                return self
                    .postgres
                    .sql(&self.direct, "SELECT string_agg(n::text, ' ' ORDER BY n) FROM t")
                    .unwrap();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_plan_it_only_forwards() {
    let bench = Bench::start();
    bench.insert(1).await.unwrap();
    assert_eq!((bench.proxy.commits(), bench.proxy.cuts()), (1, 0));
    assert_eq!(bench.stored(), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_before_the_commit_leaves_nothing() {
    let bench = Bench::start();
    bench.proxy.cut_next_commit(Cut::BeforeCommit);
    assert!(bench.insert(1).await.unwrap_err().is_closed());
    bench.insert(2).await.unwrap();
    assert_eq!((bench.proxy.commits(), bench.proxy.cuts()), (2, 1));
    assert_eq!(bench.stored(), "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_commit_of_several_can_be_chosen() {
    let bench = Bench::start();
    bench.proxy.cut_commit_after(2, Cut::BeforeCommit);
    let mut committed = Vec::new();
    for number in 1..=4 {
        committed.push(bench.insert(number).await.is_ok());
    }
    assert_eq!(committed, [true, true, false, true]);
    assert_eq!(bench.stored(), "1 2 4");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_before_the_answer_leaves_what_was_committed() {
    let bench = Bench::start();
    bench.proxy.cut_every_commit(Cut::AfterCommitBeforeAnswer);
    for number in 1..=3 {
        assert!(bench.insert(number).await.unwrap_err().is_closed());
    }
    bench.proxy.cut_no_commit();
    bench.insert(4).await.unwrap();
    assert_eq!((bench.proxy.commits(), bench.proxy.cuts()), (4, 3));
    assert_eq!(bench.stored(), "1 2 3 4");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_is_cut_inside_does_not_happen() {
    let bench = Bench::start();
    for bytes in 0..COMMIT_MESSAGE_BYTES {
        bench.proxy.cut_next_commit(Cut::AtByte(bytes));
        assert!(bench.insert(1).await.unwrap_err().is_closed(), "{bytes}");
    }
    assert_eq!(bench.stored(), "");
    // All of it: the server may have seen it before it saw the end.
    bench.proxy.cut_next_commit(Cut::AtByte(COMMIT_MESSAGE_BYTES));
    assert!(bench.insert(7).await.unwrap_err().is_closed());
    assert!(["", "7"].contains(&bench.stored().as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_as_a_prepared_statement_is_cut_too() {
    let bench = Bench::start();
    bench.proxy.cut_next_commit(Cut::BeforeCommit);
    let client = bench.connect().await;
    client.batch_execute("BEGIN; INSERT INTO t VALUES (1)").await.unwrap();
    let commit = client.prepare("COMMIT").await.unwrap();
    assert_eq!(bench.proxy.commits(), 0);
    assert!(client.execute(&commit, &[]).await.unwrap_err().is_closed());
    assert_eq!((bench.proxy.commits(), bench.proxy.cuts()), (1, 1));
    assert_eq!(bench.stored(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_server_has_committed_and_never_says_so() {
    let bench = Bench::start();
    bench.proxy.cut_next_commit(Cut::SilenceAfterCommit);
    let client = bench.connect().await;
    client.batch_execute("BEGIN; INSERT INTO t VALUES (1)").await.unwrap();
    let commit = tokio::spawn(async move { client.batch_execute("COMMIT").await });
    while bench.proxy.cuts() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!commit.is_finished());
    assert_eq!(bench.postgres.sql(&bench.direct, "SELECT n FROM t").unwrap(), "1");
    bench.proxy.cut_now();
    assert!(commit.await.unwrap().unwrap_err().is_closed());
}

#[tokio::test(flavor = "multi_thread")]
async fn cutting_now_ends_every_connection_and_new_ones_are_taken() {
    let bench = Bench::start();
    let (first, second) = (bench.connect().await, bench.connect().await);
    bench.proxy.cut_now();
    for client in [first, second] {
        assert!(client.batch_execute("SELECT 1").await.unwrap_err().is_closed());
    }
    assert_eq!(bench.proxy.cuts(), 2);
    bench.insert(1).await.unwrap();
}
