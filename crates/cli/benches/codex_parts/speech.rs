//! What codex writes in a long turn: lines made of recorded ones, with other words and ids.
//!
//! It is one turn of many rounds. In each codex thinks, talks, and runs a command that it asks for; in some it changes a file, and a
//! few hold something long. Most lines are pieces of messages, as in real turns.

use std::sync::Arc;

use serde_json::{Value, json};

const RECORDED: [&str; 4] = [
    include_str!("../../../adapters/tests/codex/text.jsonl"),
    include_str!("../../../adapters/tests/codex/shell-slow.jsonl"),
    include_str!("../../../adapters/tests/codex/reasoning.jsonl"),
    include_str!("../../../adapters/tests/codex/patch.jsonl"),
];
/// The command that it runs; whoever judges it must allow it.
pub(crate) const COMMAND: &str = "cargo test";

const WORDS: [&str; 16] = [
    "The ",
    "function ",
    "`read_line` ",
    "returns ",
    "an ",
    "error ",
    "when ",
    "the ",
    "buffer ",
    "is full; ",
    "I will ",
    "look at ",
    "src/reader.rs ",
    "and ",
    "its tests ",
    "first.\n",
];
const PRINTED: &str = "test reader::tests::a_line_that_is_cut_is_read_whole_in_the_end ... ok\n";
const DIFF: &str = "@@ -41,7 +41,9 @@ impl Reader {\n         let there = self.buffer();\n-        self.take(there)\n+        \
                    match self.limit {\n+            limit => self.take(there.min(limit)),\n";

/// Pieces of a thought, of a message, and of a command's output in one round.
const THOUGHT_PIECES: usize = 12;
const MESSAGE_PIECES: usize = 96;
const OUTPUT_PIECES: usize = 16;
/// A file is changed in each so-many-th round, and something long comes in each so-many-th.
const CHANGE_EVERY: u64 = 4;
const LONG_EVERY: u64 = 32;
/// How long that is, in bytes.
const LONG_BYTES: usize = 96 * 1024;

/// All that codex writes.
pub(crate) struct Speech {
    pub(crate) bytes: Arc<[u8]>,
    /// Where it waits for the answer to what it asked, in order.
    pub(crate) pauses: Arc<[usize]>,
    pub(crate) lines: usize,
}

impl Speech {
    /// A turn of at least so many bytes, with the answers that come before it.
    pub(crate) fn of(bytes: usize) -> Self {
        let mut writer = Writer::new();
        writer.opening();
        while writer.bytes.len() < bytes {
            writer.round();
        }
        writer.say("turn/completed", |_| {});
        let lines = writer.bytes.iter().filter(|byte| **byte == b'\n').count();
        Speech { bytes: writer.bytes.into(), pauses: writer.pauses.into(), lines }
    }
}

struct Writer {
    recorded: Vec<Value>,
    thread: Value,
    turn: Value,
    bytes: Vec<u8>,
    pauses: Vec<usize>,
    rounds: u64,
}

impl Writer {
    fn new() -> Self {
        let lines = RECORDED.iter().flat_map(|file| file.lines());
        let recorded: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
        let (thread, turn) =
            (recorded[0]["result"]["thread"]["id"].clone(), recorded[1]["result"]["turn"]["id"].clone());
        Writer { recorded, thread, turn, bytes: Vec::new(), pauses: Vec::new(), rounds: 0 }
    }

    /// The answers to `initialize`, `thread/start` and `turn/start`, and the turn's beginning.
    fn opening(&mut self) {
        self.line(&json!({"id": 1, "result": {"userAgent": "played"}}));
        let answers: Vec<Value> = self.recorded[..2].to_vec();
        answers.iter().for_each(|answer| self.line(answer));
        self.say("turn/started", |_| {});
    }

    fn round(&mut self) {
        self.rounds += 1;
        let round = self.rounds;
        self.think(&format!("rs_{round}"));
        self.talk(&format!("msg_{round}"));
        self.run(&format!("call_{round}"));
        if round.is_multiple_of(CHANGE_EVERY) {
            self.change(&format!("change_{round}"));
        }
        self.say("thread/tokenUsage/updated", |params| {
            params["tokenUsage"]["total"]["inputTokens"] = (9_500 * round).into();
            params["tokenUsage"]["total"]["outputTokens"] = (300 * round).into();
        });
        self.say("account/rateLimits/updated", |_| {});
    }

    fn is_long(&self) -> bool {
        self.rounds.is_multiple_of(LONG_EVERY)
    }

    fn think(&mut self, id: &str) {
        self.item("item/started", "reasoning", |item| item["id"] = id.into());
        for piece in 0..THOUGHT_PIECES {
            self.piece("item/reasoning/summaryTextDelta", id, WORDS[piece % WORDS.len()]);
        }
        let summary = words(THOUGHT_PIECES);
        self.item("item/completed", "reasoning", |item| {
            item["id"] = id.into();
            item["summary"] = json!([summary]);
        });
    }

    fn talk(&mut self, id: &str) {
        self.item("item/started", "agentMessage", |item| {
            item["id"] = id.into();
            item["text"] = "".into();
        });
        for piece in 0..MESSAGE_PIECES {
            self.piece("item/agentMessage/delta", id, WORDS[piece % WORDS.len()]);
        }
        self.item("item/completed", "agentMessage", |item| {
            item["id"] = id.into();
            item["text"] = words(MESSAGE_PIECES).into();
        });
    }

    fn run(&mut self, id: &str) {
        let command = format!("/bin/bash -lc '{COMMAND}'");
        let actions = json!([{"type": "unknown", "command": COMMAND}]);
        let edit = |what: &mut Value| {
            what["command"] = command.clone().into();
            what["commandActions"] = actions.clone();
            what["cwd"] = ".".into();
        };
        self.item("item/started", "commandExecution", |item| {
            item["id"] = id.into();
            edit(item);
        });
        self.ask("item/commandExecution/requestApproval", id, edit);
        for _ in 0..OUTPUT_PIECES {
            self.piece("item/commandExecution/outputDelta", id, PRINTED);
        }
        let long = if self.is_long() { LONG_BYTES / PRINTED.len() } else { 0 };
        self.item("item/completed", "commandExecution", |item| {
            item["id"] = id.into();
            edit(item);
            item["aggregatedOutput"] = PRINTED.repeat(OUTPUT_PIECES + long).into();
        });
    }

    fn change(&mut self, id: &str) {
        let long = if self.is_long() { LONG_BYTES / DIFF.len() } else { 0 };
        let change =
            json!([{"path": "src/reader.rs", "kind": {"type": "update"}, "diff": DIFF.repeat(1 + long)}]);
        let edit = |item: &mut Value| {
            item["id"] = id.into();
            item["changes"] = change.clone();
        };
        self.item("item/started", "fileChange", edit);
        self.ask("item/fileChange/requestApproval", id, |_| {});
        self.item("item/completed", "fileChange", edit);
        self.say("turn/diff/updated", |params| params["diff"] = DIFF.repeat(4 + long).into());
    }

    /// A request, after which it waits for the answer.
    fn ask(&mut self, method: &str, item: &str, edit: impl Fn(&mut Value)) {
        let id = self.pauses.len();
        self.write(method, None, |message| {
            message["id"] = id.into();
            message["params"]["itemId"] = item.into();
            edit(&mut message["params"]);
        });
        self.pauses.push(self.bytes.len());
        self.say("serverRequest/resolved", |params| params["requestId"] = id.into());
    }

    fn item(&mut self, method: &str, kind: &str, edit: impl Fn(&mut Value)) {
        self.write(method, Some(kind), |message| edit(&mut message["params"]["item"]));
    }

    fn piece(&mut self, method: &str, item: &str, delta: &str) {
        self.say(method, |params| {
            params["itemId"] = item.into();
            params["delta"] = delta.into();
        });
    }

    fn say(&mut self, method: &str, edit: impl Fn(&mut Value)) {
        self.write(method, None, |message| edit(&mut message["params"]));
    }

    /// The recorded line of this method and kind of item, as one of this turn.
    fn write(&mut self, method: &str, kind: Option<&str>, edit: impl Fn(&mut Value)) {
        let is_it = |line: &&Value| {
            line["method"] == method && kind.is_none_or(|kind| line["params"]["item"]["type"] == kind)
        };
        let mut message =
            self.recorded.iter().find(is_it).unwrap_or_else(|| panic!("no {method} {kind:?}")).clone();
        for (name, value) in [("threadId", &self.thread), ("turnId", &self.turn)] {
            if let Some(named) = message["params"].get_mut(name) {
                *named = value.clone();
            }
        }
        edit(&mut message);
        self.line(&message);
    }

    fn line(&mut self, message: &Value) {
        serde_json::to_writer(&mut self.bytes, message).unwrap();
        self.bytes.push(b'\n');
    }
}

fn words(count: usize) -> String {
    (0..count).map(|word| WORDS[word % WORDS.len()]).collect()
}
