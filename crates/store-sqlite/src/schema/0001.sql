CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The state comes last, so that what is looked at most does not lie behind it.
CREATE TABLE runs (
    key           INTEGER PRIMARY KEY,
    run_id        BLOB NOT NULL UNIQUE,
    sequence      INTEGER NOT NULL,
    head          BLOB,
    generation    INTEGER NOT NULL,
    lease_owner   TEXT,
    lease_granted INTEGER,
    lease_expires INTEGER,
    created       INTEGER NOT NULL,
    updated       INTEGER NOT NULL,
    tail          BLOB NOT NULL,
    status        TEXT NOT NULL,
    state         BLOB NOT NULL
) STRICT;
CREATE INDEX runs_by_status ON runs (status, run_id);

-- The log of all runs in the order of commit.
CREATE TABLE events (
    pos       INTEGER PRIMARY KEY,
    run       INTEGER NOT NULL,
    sequence  INTEGER NOT NULL,
    append_id BLOB NOT NULL,
    body      BLOB NOT NULL
) STRICT;

-- Where the events of a run are, 64 to a row; those after the last full row stand in the run's own row, as its tail. An
-- index of every event would cost one more page of every run in every commit.
CREATE TABLE places (
    run       INTEGER NOT NULL,
    chunk     INTEGER NOT NULL,
    positions BLOB NOT NULL,
    PRIMARY KEY (run, chunk)
) STRICT, WITHOUT ROWID;

-- Changes at the head, whose repetition does not know the place.
CREATE TABLE head_changes (
    run       INTEGER NOT NULL,
    append_id BLOB NOT NULL,
    first     INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    PRIMARY KEY (run, append_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE approvals (
    id       BLOB PRIMARY KEY,
    run      INTEGER NOT NULL,
    expires  INTEGER NOT NULL,
    request  BLOB NOT NULL,
    decision BLOB
) STRICT, WITHOUT ROWID;
CREATE INDEX approvals_open ON approvals (id) WHERE decision IS NULL;
CREATE INDEX approvals_open_by_run ON approvals (run, id) WHERE decision IS NULL;

CREATE TABLE timers (
    run     INTEGER NOT NULL,
    name    TEXT NOT NULL,
    due     INTEGER NOT NULL,
    payload BLOB NOT NULL,
    PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX timers_by_due ON timers (due);

-- A place is never given twice, since readers go on from the last one they saw.
CREATE TABLE outbox (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    run     INTEGER NOT NULL,
    payload BLOB NOT NULL
) STRICT;

CREATE TABLE results (
    key         BLOB PRIMARY KEY,
    fingerprint BLOB NOT NULL,
    result      BLOB NOT NULL,
    expires     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX results_by_expiry ON results (expires);

CREATE TABLE blobs (
    id     BLOB PRIMARY KEY,
    bytes  INTEGER NOT NULL,
    put_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX blobs_by_put ON blobs (put_at);

CREATE TABLE blob_refs (
    blob BLOB NOT NULL,
    run  INTEGER NOT NULL,
    PRIMARY KEY (blob, run)
) STRICT, WITHOUT ROWID;
