//! Connecting: what is wrong is said with what to do next and never with the password; TLS is verified; newer databases
//! and older servers are refused.
#![allow(clippy::unwrap_used, clippy::panic, reason = "the helpers of tests fail like tests")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use runyard_redact::Safe;
use runyard_store::conformance::{append, start};
use runyard_store::{Acquired, Blobs, EventLog, FeedCursor, Leases, StorageError, verify};
use runyard_store_postgres::{ConnectOptions, PostgresStore};
use runyard_testkit_postgres::{PASSWORD, Postgres, USER};
use serde_json::json;

/// The error of a URL. It may nowhere hold the password that the URL holds.
async fn refused(url: &str, password: &str) -> StorageError {
    let error = PostgresStore::connect(url).await.err().unwrap_or_else(|| panic!("{url} was accepted"));
    let mut told = format!("{error} {error:?}");
    let mut cause = std::error::Error::source(&error);
    while let Some(source) = cause {
        told.push_str(&format!(" {source} {source:?}"));
        cause = source.source();
    }
    assert!(!told.contains(password), "{told}");
    error
}

#[track_caller]
fn assert_io(error: &StorageError, says: &str) {
    assert!(matches!(error, StorageError::Io(said) if said.contains(says)), "{error:?}");
}

#[tokio::test]
async fn d11_a_wrong_password_is_an_io_error_that_says_what_to_check() {
    let postgres = Postgres::shared().unwrap();
    let url = postgres.database().unwrap().replace(PASSWORD, "sesame-0pen");
    let error = refused(&url, "sesame-0pen").await;
    assert_io(&error, "refuses the user");
    assert!(error.to_string().contains("check user and password in the URL"), "{error}");
    // A missing one, too.
    let error = refused(&url.replace(":sesame-0pen", ""), "sesame-0pen").await;
    assert_io(&error, "refuses the user");
}

#[tokio::test]
async fn d11_a_server_that_is_not_there_is_an_io_error_that_says_what_to_check() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = refused(&format!("postgres://ada:sesame-0pen@127.0.0.1:{port}/hub"), "sesame-0pen").await;
    assert_io(&error, "no PostgreSQL server answers");
    let said = error.to_string();
    assert!(said.contains(&format!("127.0.0.1:{port}")) && said.contains("check host and port"), "{said}");
    let error = refused("postgres://ada:sesame-0pen@host.invalid/hub?sslmode=disable", "sesame-0pen").await;
    assert_io(&error, "no PostgreSQL server answers");
}

#[tokio::test]
async fn d11_a_database_that_is_not_there_is_an_io_error_that_says_what_to_do() {
    let postgres = Postgres::shared().unwrap();
    let error = refused(&postgres.url("nowhere"), PASSWORD).await;
    assert_io(&error, "has no such database");
    assert!(error.to_string().contains("createdb"), "{error}");
}

#[tokio::test]
async fn d11_a_user_who_may_not_make_the_tables_is_told_what_is_missing() {
    let postgres = Postgres::shared().unwrap();
    let url = postgres.database().unwrap();
    postgres.sql(&url, "CREATE ROLE guest LOGIN PASSWORD 'guest-0pens'").unwrap();
    let as_guest = url.replace(&format!("{USER}:{PASSWORD}"), "guest:guest-0pens");
    let error = refused(&as_guest, "guest-0pens").await;
    assert_io(&error, "needs the right");
    // With the right to the tables that somebody else made it can use them.
    drop(PostgresStore::connect(&url).await.unwrap());
    let grants = "GRANT USAGE ON SCHEMA runyard TO guest; GRANT ALL ON ALL TABLES IN SCHEMA runyard TO guest";
    postgres.sql(&url, grants).unwrap();
    let store = PostgresStore::connect(&as_guest).await.unwrap();
    assert_eq!(store.head(start(&store).await).await.unwrap(), Some(1));
}

#[tokio::test]
async fn d11_a_newer_schema_is_refused_also_by_a_store_that_is_already_connected() {
    let postgres = Postgres::shared().unwrap();
    let url = postgres.database().unwrap();
    let store = PostgresStore::connect(&url).await.unwrap();
    let run = start(&store).await;
    postgres.sql(&url, "UPDATE runyard.meta SET version = 77").unwrap();
    let error = refused(&url, PASSWORD).await;
    assert!(matches!(error, StorageError::NewerSchema { found: 77, known: 2 }), "{error:?}");
    let error = append(&store, run, 1, json!({})).await.unwrap_err();
    assert!(matches!(error, StorageError::NewerSchema { found: 77, known: 2 }), "{error:?}");
    postgres.sql(&url, "UPDATE runyard.meta SET version = 2").unwrap();
    append(&store, run, 1, json!({})).await.unwrap();
    assert_eq!(verify(&store, run).await.unwrap().unwrap().events, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_a_migration_takes_as_long_as_it_takes() {
    // The lock of migrations, which another hub holds while it makes them.
    const LOCK: i64 = 0x5259_5244;
    let url = Postgres::shared().unwrap().database().unwrap();
    let (raw, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    raw.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await.unwrap();
    let limit = Duration::from_millis(300);
    let options = ConnectOptions::default().statement_timeout(limit).lock_timeout(limit);
    let other = url.clone();
    let connecting = tokio::spawn(async move { PostgresStore::connect_with(&other, options).await });
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory'
        AND datname = current_database()";
    while raw.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        assert!(!connecting.is_finished(), "{:?}", connecting.await);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(3 * limit).await;
    raw.execute("SELECT pg_advisory_unlock($1)", &[&LOCK]).await.unwrap();
    drop(connecting.await.unwrap().unwrap());
}

#[tokio::test]
async fn d11_an_older_server_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // As much of a server as it takes to say its version.
    let server = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut length = [0; 4];
        client.read_exact(&mut length).unwrap();
        let mut startup = vec![0; u32::from_be_bytes(length) as usize - 4];
        client.read_exact(&mut startup).unwrap();
        let mut answer = b"R\0\0\0\x08\0\0\0\0".to_vec();
        let version = b"server_version\x0013.23 (Debian)\0";
        answer.push(b'S');
        answer.extend((version.len() as u32 + 4).to_be_bytes());
        answer.extend(version);
        answer.extend(b"Z\0\0\0\x05I");
        client.write_all(&answer).unwrap();
        let _ = client.read(&mut [0; 64]);
    });
    let error = refused(&format!("postgres://ada:sesame-0pen@{address}/hub"), "sesame-0pen").await;
    assert_io(&error, "is PostgreSQL 13.23 (Debian): ");
    assert!(error.to_string().contains("14 is the oldest"), "{error}");
    server.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_a_standby_server_is_read_only_and_is_told_so() {
    let mut postgres = Postgres::start().unwrap();
    let url = postgres.database().unwrap();
    let options = ConnectOptions::default().outage_patience(Duration::from_secs(60));
    let store = PostgresStore::connect_with(&url, options).await.unwrap();
    let run = start(&store).await;
    // As after a failover, when the old address leads to a server that only follows.
    postgres.stop_immediately().unwrap();
    let signal = postgres.folder().join("data/standby.signal");
    std::fs::write(&signal, "").unwrap();
    postgres.start_again().unwrap();
    let error = append(&store, run, 1, json!({})).await.unwrap_err();
    assert!(matches!(error, StorageError::ReadOnly { .. }), "{error:?}");
    assert!(matches!(refused(&url, PASSWORD).await, StorageError::ReadOnly { .. }));
    // What is there can be read, also by whoever comes now.
    assert_eq!(verify(&store, run).await.unwrap().unwrap().events, 1);
    let reader = PostgresStore::connect_to_read(&url).await.unwrap();
    assert_eq!(verify(&reader, run).await.unwrap().unwrap().events, 1);
    assert_eq!(reader.feed(&FeedCursor::start(), 10).await.unwrap().entries.len(), 1);
    let error = reader.acquire(run, "one".into(), Duration::from_secs(60)).await.unwrap_err();
    assert!(matches!(error, StorageError::ReadOnly { .. }), "{error:?}");
    drop(reader);
    postgres.stop_immediately().unwrap();
    std::fs::remove_file(&signal).unwrap();
    postgres.start_again().unwrap();
    append(&store, run, 1, json!({})).await.unwrap();
}

#[tokio::test]
async fn d11_defaults_of_the_database_that_would_break_promises_do_not_count() {
    let postgres = Postgres::shared().unwrap();
    let url = postgres.database().unwrap();
    let database = url.rsplit('/').next().unwrap();
    for setting in [
        "synchronous_commit = off",
        "default_transaction_read_only = on",
        "default_transaction_isolation = serializable",
        "search_path = nowhere",
    ] {
        postgres.sql(&postgres.url("postgres"), &format!("ALTER DATABASE {database} SET {setting}")).unwrap();
    }
    let store = PostgresStore::connect(&url).await.unwrap();
    let run = start(&store).await;
    let lease = store.acquire(run, "one".into(), Duration::from_secs(60)).await.unwrap();
    assert!(matches!(lease, Acquired::Granted(_)));
    let blob = store.put(Safe::<String>::from("content").into()).await.unwrap();
    assert_eq!(store.get(blob).await.unwrap(), b"content");
    append(&store, run, 1, json!({})).await.unwrap();
}

#[tokio::test]
async fn d11_the_password_is_in_no_debug_of_a_store() {
    let store = PostgresStore::connect(&Postgres::shared().unwrap().database().unwrap()).await.unwrap();
    let shown = format!("{store:?} {store:#?}");
    assert!(shown.contains("127.0.0.1") && !shown.contains(PASSWORD), "{shown}");
}

/// An authority, and the certificate and key of a server that it vouches for.
struct Certificates {
    authority: String,
    certificate: String,
    key: String,
}

fn certificates(host: &str) -> Certificates {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec![host.to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    Certificates { authority: authority.pem(), certificate: server.pem(), key: key.serialize_pem() }
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_whenever_tls_is_used_the_certificate_is_verified() {
    let certificates = certificates("localhost");
    let postgres = Postgres::start_with_tls(&certificates.certificate, &certificates.key).unwrap();
    let by_address = postgres.database().unwrap();
    let by_name = by_address.replace("127.0.0.1", "localhost");
    let folder = tempfile::tempdir().unwrap();
    let (good, bad, empty) =
        (folder.path().join("good ca.pem"), folder.path().join("bad.pem"), folder.path().join("empty.pem"));
    std::fs::write(&good, &certificates.authority).unwrap();
    std::fs::write(&bad, self::certificates("localhost").authority).unwrap();
    std::fs::write(&empty, "nothing").unwrap();
    let file = |path: &std::path::Path| path.display().to_string().replace(' ', "%20").replace('/', "%2F");
    let encrypted = "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE application_name LIKE 'runyard%' GROUP BY ssl";

    for mode in ["prefer", "require", "verify-full"] {
        let url = format!("{by_name}?sslmode={mode}&sslrootcert={}", file(&good));
        let store = PostgresStore::connect(&url).await.unwrap();
        let run = start(&store).await;
        append(&store, run, 1, json!({})).await.unwrap();
        assert_eq!(verify(&store, run).await.unwrap().unwrap().events, 2);
        assert_eq!(postgres.sql(&by_address, encrypted).unwrap(), "t", "{mode}");
        drop(store);
        wait_until_nobody_is_connected(&postgres, &by_address);
        // Another authority; the system's, which does not know it; and a certificate that does not name the host.
        for url in [
            format!("{by_name}?sslmode={mode}&sslrootcert={}", file(&bad)),
            format!("{by_name}?sslmode={mode}"),
            format!("{by_address}?sslmode={mode}&sslrootcert={}", file(&good)),
        ] {
            let error = refused(&url, PASSWORD).await;
            assert_io(&error, "no encrypted connection");
            assert!(error.to_string().contains("sslrootcert"), "{error}");
        }
    }
    // Without TLS nothing is verified, and nothing encrypted.
    for url in [format!("{by_name}?sslmode=disable"), by_address.clone()] {
        let store = PostgresStore::connect(&url).await.unwrap();
        start(&store).await;
        assert_eq!(postgres.sql(&by_address, encrypted).unwrap(), "f");
        drop(store);
        wait_until_nobody_is_connected(&postgres, &by_address);
    }
    let missing =
        format!("{by_name}?sslmode=require&sslrootcert={}", file(&folder.path().join("missing.pem")));
    assert!(matches!(refused(&missing, PASSWORD).await, StorageError::Io(..)));
    let nothing = format!("{by_name}?sslmode=require&sslrootcert={}", file(&empty));
    assert!(matches!(refused(&nothing, PASSWORD).await, StorageError::Validation(..)));
}

fn wait_until_nobody_is_connected(postgres: &Postgres, url: &str) {
    let others = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'runyard%'";
    while postgres.sql(url, others).unwrap() != "0" {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn d11_a_server_without_tls_is_refused_where_tls_is_required() {
    let url = Postgres::shared().unwrap().database().unwrap().replace("127.0.0.1", "localhost");
    let error = refused(&format!("{url}?sslmode=require"), PASSWORD).await;
    assert_io(&error, "no encrypted connection");
    assert!(PostgresStore::connect(&format!("{url}?sslmode=prefer")).await.is_ok());
}
