-- Times are milliseconds since 1970, by the clock of the database.

-- The state comes last, so that what is looked at most does not lie behind it. Room is left in each page, so that a new
-- head needs no new index entries.
CREATE TABLE runs (
    run_id        uuid PRIMARY KEY,
    sequence      bigint NOT NULL,
    head          bytea,
    feed          bigint NOT NULL,
    generation    bigint NOT NULL DEFAULT 0,
    lease_owner   text,
    lease_granted bigint,
    lease_expires bigint,
    created       bigint NOT NULL,
    updated       bigint NOT NULL,
    status        text COLLATE "C" NOT NULL,
    state         bytea NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX runs_by_status ON runs (status, run_id);

-- `feed` orders the events of all runs so that a reader never passes one that commits late: it is the number of the
-- transaction that wrote the event, or of an earlier event of the same run where that is higher. Every event with a
-- lower number than all running transactions is there for good. `pos` orders what has the same number.
CREATE TABLE events (
    run_id    uuid NOT NULL,
    sequence  bigint NOT NULL,
    feed      bigint NOT NULL,
    pos       bigint GENERATED ALWAYS AS IDENTITY,
    append_id uuid NOT NULL,
    body      bytea NOT NULL,
    PRIMARY KEY (run_id, sequence)
);
CREATE UNIQUE INDEX events_by_feed ON events (feed, pos);

-- Changes at the head, whose repetition does not know the place.
CREATE TABLE head_changes (
    run_id    uuid NOT NULL,
    append_id uuid NOT NULL,
    first     bigint NOT NULL,
    last      bigint NOT NULL,
    PRIMARY KEY (run_id, append_id)
);

CREATE TABLE approvals (
    id       uuid PRIMARY KEY,
    run_id   uuid NOT NULL,
    expires  bigint NOT NULL,
    request  bytea NOT NULL,
    decision bytea
);
CREATE INDEX approvals_open ON approvals (id) WHERE decision IS NULL;
CREATE INDEX approvals_open_by_run ON approvals (run_id, id) WHERE decision IS NULL;

CREATE TABLE timers (
    run_id  uuid NOT NULL,
    name    text COLLATE "C" NOT NULL,
    due     bigint NOT NULL,
    payload bytea NOT NULL,
    PRIMARY KEY (run_id, name)
);
CREATE INDEX timers_by_due ON timers (due);

CREATE TABLE outbox (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id  uuid NOT NULL,
    payload bytea NOT NULL
);

CREATE TABLE results (
    key         bytea PRIMARY KEY,
    fingerprint bytea NOT NULL,
    result      bytea NOT NULL,
    expires     bigint NOT NULL
);
CREATE INDEX results_by_expiry ON results (expires);

CREATE TABLE blobs (
    id     bytea PRIMARY KEY,
    bytes  bigint NOT NULL,
    put_at bigint NOT NULL
);
CREATE INDEX blobs_by_put ON blobs (put_at);

-- In parts, so that neither side holds a whole blob more often than needed. Not compressed: it is read as it is sent.
CREATE TABLE blob_parts (
    blob    bytea NOT NULL REFERENCES blobs ON DELETE CASCADE,
    part    integer NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (blob, part)
);
ALTER TABLE blob_parts ALTER COLUMN content SET STORAGE EXTERNAL;

-- A blob that is referred to cannot be deleted.
CREATE TABLE blob_refs (
    blob   bytea NOT NULL REFERENCES blobs,
    run_id uuid NOT NULL,
    PRIMARY KEY (blob, run_id)
);
