//! What a lane of threads says to the database.

use crate::run_row::now_ms;
use crate::statements::statements;
use crate::thread_row::{head_columns, thread_columns};

statements! {
    ThreadStatements:
    // In one order, so that two groups never wait for each other in a circle.
    lock_threads: concat!(
        "SELECT ", thread_columns!(), " FROM threads WHERE thread_id = ANY($1) ORDER BY thread_id FOR UPDATE"
    ),
    // The row of one row tells, too, whether a newer program has changed the tables meanwhile.
    clock: concat!("SELECT ", now_ms!(), ", version FROM meta"),
    heads: concat!("SELECT ", head_columns!(), " FROM agent_runs WHERE run_id = ANY($1)"),
    messages_at: "SELECT thread_id, append_id, body
        FROM unnest($1::text[], $2::bigint[]) AS wanted (thread_id, position)
        JOIN threads USING (thread_id)
        JOIN thread_messages ON thread_messages.thread = threads.key
            AND thread_messages.position = wanted.position",
    quiet_commits: "SELECT thread_id, thread_commits.append_id, thread_commits.version
        FROM unnest($1::text[], $2::uuid[]) AS wanted (thread_id, append_id)
        JOIN threads USING (thread_id)
        JOIN thread_commits ON thread_commits.thread = threads.key
            AND thread_commits.append_id = wanted.append_id",
    calls: "SELECT run_id, tool_calls.call, result IS NOT NULL
        FROM unnest($1::text[], $2::text[]) AS wanted (run_id, call)
        JOIN agent_runs USING (run_id)
        JOIN tool_calls ON tool_calls.thread = agent_runs.thread AND tool_calls.run = agent_runs.number
            AND tool_calls.call = wanted.call",
    move_threads: "UPDATE threads SET version = new.version, runs = new.runs, unfinished = new.unfinished,
            updated = new.updated,
            held_for = CASE WHEN new.released THEN NULL ELSE held_for END,
            held_by = CASE WHEN new.released THEN NULL ELSE held_by END,
            held_since = CASE WHEN new.released THEN NULL ELSE held_since END,
            held_until = CASE WHEN new.released THEN NULL ELSE held_until END
        FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::boolean[])
            AS new (key, version, runs, unfinished, updated, released)
        WHERE threads.key = new.key",
    insert_messages: "INSERT INTO thread_messages (thread, position, append_id, body)
        SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::bytea[])",
    insert_quiet: "INSERT INTO thread_commits (thread, append_id, version)
        SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::bigint[])",
    insert_agent_runs: "INSERT INTO agent_runs
            (thread, number, run_id, finished, updated, status, payload, created)
        SELECT thread, number, run_id, finished, updated, status, payload, updated
        FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::boolean[], $5::bigint[], $6::text[], $7::bytea[])
            AS new (thread, number, run_id, finished, updated, status, payload)",
    update_agent_runs: "UPDATE agent_runs
        SET finished = new.finished, updated = new.updated, status = new.status, payload = new.payload
        FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::boolean[], $5::bigint[], $6::text[], $7::bytea[])
            AS new (thread, number, run_id, finished, updated, status, payload)
        WHERE agent_runs.thread = new.thread AND agent_runs.number = new.number",
    set_values: "INSERT INTO thread_values (thread, run, name, value)
        SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bytea[])
        ON CONFLICT (thread, run, name) DO UPDATE SET value = excluded.value",
    remove_values: "DELETE FROM thread_values
        USING unnest($1::bigint[], $2::bigint[], $3::text[]) AS gone (thread, run, name)
        WHERE thread_values.thread = gone.thread AND thread_values.run = gone.run
            AND thread_values.name = gone.name",
    // In the order of the commits, so that places go up within each run.
    insert_calls: "INSERT INTO tool_calls (thread, run, call, key, intent, result)
        SELECT thread, run, call, key, intent, result
        FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bytea[], $5::bytea[], $6::bytea[])
            WITH ORDINALITY AS new (thread, run, call, key, intent, result, nth)
        ORDER BY nth",
    answer_calls: "UPDATE tool_calls SET result = new.result
        FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bytea[]) AS new (thread, run, call, result)
        WHERE tool_calls.thread = new.thread AND tool_calls.run = new.run AND tool_calls.call = new.call
            AND tool_calls.result IS NULL",
}
