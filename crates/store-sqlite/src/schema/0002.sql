-- The parts of a thread lie together: their keys are the thread's key times 2^24 and the number of the part, so that a table
-- needs no second index. A key is never given twice, since generations of claims begin with it.
CREATE TABLE threads (
    key         INTEGER PRIMARY KEY AUTOINCREMENT,
    thread_id   TEXT NOT NULL UNIQUE,
    version     INTEGER NOT NULL,
    runs        INTEGER NOT NULL,
    generation  INTEGER NOT NULL,
    held_for    TEXT,
    held_by     TEXT,
    held_since  INTEGER,
    held_until  INTEGER,
    unfinished  TEXT,
    created     INTEGER NOT NULL,
    updated     INTEGER NOT NULL,
    metadata    BLOB NOT NULL
) STRICT;

-- The key is the thread's and the message's place.
CREATE TABLE thread_messages (
    key       INTEGER PRIMARY KEY,
    append_id BLOB NOT NULL,
    body      BLOB NOT NULL
) STRICT;

-- Commits without messages, whose append id no message carries.
CREATE TABLE thread_commits (
    thread    INTEGER NOT NULL,
    append_id BLOB NOT NULL,
    version   INTEGER NOT NULL,
    PRIMARY KEY (thread, append_id)
) STRICT, WITHOUT ROWID;

-- The key is the thread's and the run's number in it.
CREATE TABLE agent_runs (
    key      INTEGER PRIMARY KEY,
    run_id   TEXT NOT NULL UNIQUE,
    finished INTEGER NOT NULL,
    created  INTEGER NOT NULL,
    updated  INTEGER NOT NULL,
    status   TEXT NOT NULL,
    payload  BLOB NOT NULL
) STRICT;

-- The scope is the key of a run, or that of the thread with 0 for its number.
CREATE TABLE thread_values (
    scope INTEGER NOT NULL,
    name  TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (scope, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE tool_calls (
    place  INTEGER PRIMARY KEY,
    run    INTEGER NOT NULL,
    call   TEXT NOT NULL,
    key    BLOB NOT NULL,
    intent BLOB NOT NULL,
    result BLOB,
    UNIQUE (run, call)
) STRICT;
