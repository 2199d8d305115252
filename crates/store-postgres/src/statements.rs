//! What a lane says to the database.

use crate::run_row::{columns, now_ms};

/// Makes the struct of prepared statements, and the function that prepares them all at once.
macro_rules! statements {
    ($statements:ident: $($name:ident: $sql:expr,)+) => {
        /// What a lane says to the database, prepared.
        pub(crate) struct $statements {
            $(pub(crate) $name: tokio_postgres::Statement,)+
        }

        impl $statements {
            pub(crate) async fn prepare(client: &tokio_postgres::Client) -> Result<Self, tokio_postgres::Error> {
                let ($($name,)+) = tokio::try_join!($(client.prepare($sql)),+)?;
                Ok($statements { $($name,)+ })
            }
        }
    };
}
pub(crate) use statements;

statements! {
    Statements:
    // In one order, so that two groups never wait for each other in a circle.
    lock_runs: concat!("SELECT ", columns!(), ", feed FROM runs WHERE run_id = ANY($1) ORDER BY run_id FOR UPDATE"),
    // The row of one row tells, too, whether a newer hub has changed the tables meanwhile.
    clock: concat!(
        "SELECT ", now_ms!(), ", pg_current_xact_id()::text::bigint + feed_offset, version FROM meta"
    ),
    events_at: "SELECT run_id, sequence, append_id, body
        FROM unnest($1::uuid[], $2::bigint[]) AS wanted (run_id, sequence) JOIN events USING (run_id, sequence)",
    head_changes: "SELECT run_id, append_id, first, last
        FROM unnest($1::uuid[], $2::uuid[]) AS wanted (run_id, append_id)
        JOIN head_changes USING (run_id, append_id)",
    approvals: "SELECT id, run_id, decision IS NOT NULL FROM approvals WHERE id = ANY($1)",
    results: "SELECT key, fingerprint, result, expires FROM results WHERE key = ANY($1)",
    // A blob that is locked so is not collected before this transaction ends.
    blobs: "SELECT id FROM blobs WHERE id = ANY($1) ORDER BY id FOR KEY SHARE",
    insert_runs: "INSERT INTO runs (run_id, sequence, head, feed, updated, created, status, state)
        SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[],
            $7::text[], $8::bytea[])",
    move_runs: "UPDATE runs SET sequence = new.sequence, head = new.head, feed = new.feed, updated = new.updated
        FROM unnest($1::uuid[], $2::bigint[], $3::bytea[], $4::bigint[], $5::bigint[])
            AS new (run_id, sequence, head, feed, updated)
        WHERE runs.run_id = new.run_id",
    project_runs: "UPDATE runs SET sequence = new.sequence, head = new.head, feed = new.feed, updated = new.updated,
            status = new.status, state = new.state
        FROM unnest($1::uuid[], $2::bigint[], $3::bytea[], $4::bigint[], $5::bigint[], $6::text[], $7::bytea[])
            AS new (run_id, sequence, head, feed, updated, status, state)
        WHERE runs.run_id = new.run_id",
    // In the order of the group, so that positions go up within each run.
    insert_events: "INSERT INTO events (run_id, sequence, feed, append_id, body)
        SELECT run_id, sequence, feed, append_id, body
        FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::uuid[], $5::bytea[])
            WITH ORDINALITY AS new (run_id, sequence, feed, append_id, body, place)
        ORDER BY place",
    insert_head_changes: "INSERT INTO head_changes (run_id, append_id, first, last)
        SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[])",
    open_approvals: "INSERT INTO approvals (id, run_id, expires, request, decision)
        SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bytea[], $5::bytea[])",
    decide_approvals: "UPDATE approvals SET decision = new.decision
        FROM unnest($1::uuid[], $2::bytea[]) AS new (id, decision)
        WHERE approvals.id = new.id AND approvals.decision IS NULL",
    set_timers: "INSERT INTO timers (run_id, name, due, payload)
        SELECT * FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::bytea[])
        ON CONFLICT (run_id, name) DO UPDATE SET due = excluded.due, payload = excluded.payload",
    cancel_timers: "DELETE FROM timers USING unnest($1::uuid[], $2::text[]) AS gone (run_id, name)
        WHERE timers.run_id = gone.run_id AND timers.name = gone.name",
    insert_outbox: "INSERT INTO outbox (run_id, payload)
        SELECT run_id, payload FROM unnest($1::uuid[], $2::bytea[]) WITH ORDINALITY AS new (run_id, payload, place)
        ORDER BY place",
    keep_results: "INSERT INTO results (key, fingerprint, result, expires)
        SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[])
        ON CONFLICT (key) DO UPDATE
            SET fingerprint = excluded.fingerprint, result = excluded.result, expires = excluded.expires
            WHERE results.expires <= $5",
    refer_to_blobs: "INSERT INTO blob_refs (blob, run_id) SELECT * FROM unnest($1::bytea[], $2::uuid[])
        ON CONFLICT DO NOTHING",
}
