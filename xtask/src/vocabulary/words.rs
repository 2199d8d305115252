//! Runyard's words: what each means, and which others are not to be used for it. One table for code, API, command line, UI and
//! documents.

/// One word for one thing.
pub(crate) struct Word {
    pub(crate) word: &'static str,
    pub(crate) meaning: &'static str,
    /// What the thing is never called, in lower case. Only what hardly ever means something else stands here.
    pub(crate) never: &'static [&'static str],
}

const fn word(word: &'static str, meaning: &'static str, never: &'static [&'static str]) -> Word {
    Word { word, meaning, never }
}

#[rustfmt::skip]
pub(crate) const WORDS: &[Word] = &[
    word("action", "a typed capability", &[]),
    word("surface", "where an action is called from", &[]),
    word("envelope", "what every call returns", &[]),
    word("invocation", "one call of an action", &[]),
    word("actor", "a person, a service, or an agent with its run", &["principal"]),
    word("task", "what is to be done", &["ticket"]),
    word("run", "one attempt at a task", &["job", "jobs"]),
    word("session", "a conversation that runs share", &[]),
    word("command", "an instruction to a live run: turn, steer, interrupt, finish", &[]),
    word("event", "a fact in a run's log", &[]),
    word("approval", "a person's decision on one named risk", &["pending approval", "approval ticket", "permission prompt", "sign-off"]),
    word("grant", "an approval's decision, held for the one request it was made for", &[]),
    word("gate", "what decides allow, ask or deny", &["guardrail", "guardrails"]),
    word("policy", "the gate's rules, with a preset for where no rule speaks", &["blacklist"]),
    word("workspace", "the directory a person named, which stands for its project: an id, a label, and a root that only its edge knows", &[]),
    word("allow-list", "the workspaces that an edge knows", &["whitelist"]),
    word("checkout", "the run's own copy of a workspace", &["sandboxed copy", "working copy", "scratch copy"]),
    word("edge", "what executes next to the files", &["worker", "workers", "runner", "runners", "executor", "executors"]),
    word("hub", "what plans, records and serves", &["orchestrator", "coordinator", "control server", "daemon"]),
    word("link", "what hub and edge say to each other, serialised", &[]),
    word("lease", "who may drive a run, with a generation that tells later owners from earlier ones", &[]),
    word("backend", "anything that can drive a run", &[]),
    word("adapter", "our code for one backend", &["connector"]),
    word("backend profile", "a backend with its configuration and the names of its secrets", &[]),
    word("agent profile", "what a user picks: label, backend profile, capabilities, policy", &["persona"]),
    word("thread", "an agent's own conversation, by which it can be resumed", &[]),
    word("parked", "waiting for a person without a process: a row, no task", &["hibernated"]),
    word("degraded", "said of a run: something that is usually relied on is missing, with the reason", &[]),
    word("cancelled", "ended by somebody, or by a rejected approval", &["canceled", "aborted run", "killed run", "run was aborted", "run was killed"]),
    word("artifact", "something produced to look at", &["artefact", "artefacts"]),
    word("diff", "what changed between two trees", &[]),
    word("patch", "a change that can be applied", &[]),
    word("secret projection", "one profile's secrets, copied into a private home for one run", &["secret injection"]),
    word("placeholder", "what stands where a secret was", &[]),
    word("change", "what one transaction writes to a run", &[]),
    word("blob", "something big, by its digest", &[]),
    word("tail", "following a run", &[]),
    word("feed", "all runs in one order", &[]),
    word("failpoint", "a place in the source where a test kills the process", &[]),
];

/// Where a word of the lists above is meant otherwise: whole phrases, in lower case.
pub(crate) const OTHERWISE: &[&str] = &[
    // What Runyard is compared with.
    "production jobs",
    // The name of a surface.
    "json runner",
    // A builtin of shells.
    "jobs -x",
];
