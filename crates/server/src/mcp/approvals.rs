//! An approval as a form: exactly what is asked, and the fields of an answer.
//!
//! What stands in the form is text that an agent wrote: whatever could hide a part of it is shown as its escape.

use runyard_control::Question;
use runyard_surfaces::cli::{one_line, printable};
use serde_json::{Map, Value, json};

/// So many files of changes are shown in a form.
pub(super) const FILES_MAX: usize = 50;
/// So many bytes of changes are shown in a form.
const CHANGES_BYTES_MAX: usize = 48 * 1024;
/// The longest reason, as the action takes it.
const REASON_CHARS_MAX: usize = 2000;
const KEY: &str = "approval:";
/// The mode of a symbolic link, as git writes it.
const LINK: &str = "120000";

/// The key under which an approval is asked about: it names the content too, so that an answer to other content is none.
pub(super) fn key(approval: &Value) -> String {
    let text = |name: &str| approval[name].as_str().unwrap_or_default();
    format!("{KEY}{}:{}", text("id"), text("digest"))
}

/// The approval and the digest of its content that a key names.
pub(super) fn asked_under(key: &str) -> Option<(&str, &str)> {
    key.strip_prefix(KEY)?.split_once(':')
}

/// Whether it asks to bring changes to somebody's files.
pub(super) fn is_about_changes(approval: &Value) -> bool {
    approval["request"]["kind"] == "apply" && approval["request"]["undo"] != true
}

/// The form; of changes also these lines.
pub(super) fn question(approval: &Value, changes: &[String]) -> Question {
    Question::form(shown(approval, changes), fields(approval))
}

/// What a person reads before they decide.
pub(super) fn shown(approval: &Value, changes: &[String]) -> String {
    let text = |name: &str| one_line(approval[name].as_str().unwrap_or_default());
    let mut lines =
        vec![text("title"), format!("Why it is asked: {} (risk: {})", text("reason"), text("risk"))];
    let notes = approval["notes"].as_array().into_iter().flatten();
    lines.extend(notes.map(|note| format!("Note: {}.", one_line(note.as_str().unwrap_or_default()))));
    if approval["redacted"] == true {
        lines.push("What is secret in it is not shown; the placeholders say where it stood.".to_owned());
    }
    if approval["denied"].is_string() {
        lines.push(format!("It can only be rejected by now: {}", text("denied")));
    }
    lines.push(format!("No answer until {} counts as a rejection.", text("expiresAt")));
    lines.push(String::new());
    if changes.is_empty() {
        lines.extend(content(&approval["request"]));
    } else {
        lines.extend_from_slice(changes);
    }
    lines.join("\n")
}

/// Each field of the request, whole.
fn content(request: &Value) -> impl Iterator<Item = String> {
    request.as_object().into_iter().flatten().map(|(name, value)| {
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{}: {}", one_line(name), printable(&shown).replace('\n', "\n    "))
    })
}

fn fields(approval: &Value) -> Value {
    let mut properties = Map::new();
    let decision = json!({
        "type": "string",
        "title": "Your decision",
        "description": "Approve only if it is exactly what you want.",
        "enum": ["approve", "reject"],
    });
    properties.insert("decision".to_owned(), decision);
    if approval["request"]["kind"] == "question" {
        let description = "The answer to the question, with approve: a text, or JSON where the question asks for more than a text.";
        properties.insert(
            "answer".to_owned(),
            json!({"type": "string", "title": "Your answer", "description": description}),
        );
    }
    let reason = json!({
        "type": "string",
        "title": "Why",
        "description": "The agent is told.",
        "maxLength": REASON_CHARS_MAX,
    });
    properties.insert("reason".to_owned(), reason);
    json!({"type": "object", "properties": properties, "required": ["decision"]})
}

/// The input of the action that decides. The digest is that of the content that was shown in the form.
pub(super) fn decision(id: &str, digest: &str, content: &Value, approval: &Value) -> Value {
    let mut input = json!({"id": id, "digest": digest, "decision": content["decision"]});
    if let Some(reason) = content["reason"].as_str().filter(|reason| !reason.is_empty()) {
        input["reason"] = reason.into();
    }
    let asks = approval["request"]["kind"] == "question" && content["decision"] == "approve";
    if let Some(answer) = content["answer"].as_str().filter(|_| asks) {
        input["answer"] = serde_json::from_str(answer).unwrap_or_else(|_| answer.into());
    }
    input
}

/// What stands for changes that cannot be shown.
pub(super) fn unseen(approval: &Value) -> String {
    let run = approval["runId"].as_str().unwrap_or_default();
    format!("The changes cannot be shown here. Read runyard://runs/{run}/diff before you decide.")
}

/// The files that are asked about: all of them, or those of the chosen part.
pub(super) fn files<'a>(diff: &'a Value, part: &'a Value) -> impl Iterator<Item = &'a Value> {
    let chosen = part.as_array();
    let files = diff["files"].as_array().into_iter().flatten();
    files.filter(move |file| chosen.is_none_or(|chosen| chosen.iter().any(|one| one["file"] == file["id"])))
}

/// Changes as lines, as far as there is room.
pub(super) struct Shown<'a> {
    part: &'a Value,
    lines: Vec<String>,
    left: usize,
    full: bool,
    end: Vec<String>,
}

impl<'a> Shown<'a> {
    pub(super) fn of(approval: &Value, diff: &Value, part: &'a Value) -> Self {
        let mut end = Vec::new();
        let summary = one_line(diff["diff"]["summary"].as_str().unwrap_or_default());
        end.push(match part.is_array() {
            true => format!("Only the part that was chosen is asked about, of: {summary}"),
            false => summary,
        });
        if !part.is_array() && diff["diff"]["protected"].as_u64().is_some_and(|files| files > 0) {
            end.push(
                "Protected files are left out: choose them with \"runyard approvals approve\".".to_owned(),
            );
        }
        let mut shown = Shown { part, lines: Vec::new(), left: CHANGES_BYTES_MAX, full: false, end };
        if diff["diff"]["digest"] != approval["digest"] {
            // Approving them would be refused, since other content was asked about.
            shown.lines =
                vec!["The changes are not those that are asked about any more; look again.".to_owned()];
            shown.full = true;
        } else if !diff["next"].is_null() {
            shown.end.push(format!("Only the first {FILES_MAX} files are shown. {}", unseen(approval)));
        }
        shown
    }

    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// One file: what happened to it, and its lines.
    pub(super) fn file(&mut self, file: &Value, found: &Value) {
        self.put(headline(file));
        let chosen = self.part.as_array().into_iter().flatten().find(|one| one["file"] == file["id"]);
        let chosen = chosen.and_then(|one| one["hunks"].as_array());
        for hunk in found["hunks"].as_array().into_iter().flatten() {
            if chosen.is_some_and(|chosen| !chosen.contains(&hunk["id"])) {
                continue;
            }
            self.put(format!("@@ line {} @@", hunk["newStart"]));
            for line in hunk["lines"].as_array().into_iter().flatten() {
                let mark = match line["kind"].as_str() {
                    Some("added") => '+',
                    Some("removed") => '-',
                    _ => ' ',
                };
                self.put(format!("{mark}{}", printable(line["text"].as_str().unwrap_or_default())));
            }
        }
        if let Some(omitted) = found["omitted"].as_u64().filter(|omitted| *omitted > 0) {
            self.put(format!("… {omitted} more bytes are not shown"));
        }
    }

    fn put(&mut self, line: String) {
        match self.left.checked_sub(line.len() + 1) {
            Some(left) if !self.full => {
                self.left = left;
                self.lines.push(line);
            }
            _ => self.full = true,
        }
    }

    pub(super) fn lines(mut self) -> Vec<String> {
        if self.full {
            self.lines.push(
                "… There is more than is shown here: look at the run's diff before you decide.".to_owned(),
            );
        }
        self.lines.extend(self.end);
        self.lines
    }
}

/// What happened to a file, in a line.
fn headline(file: &Value) -> String {
    let text = |name: &str| one_line(file[name].as_str().unwrap_or_default());
    let mut line = format!("{} {}", text("change"), text("path"));
    if file["oldPath"].is_string() {
        line.push_str(&format!(" (was {})", text("oldPath")));
    }
    if file["oldMode"].is_string() && file["newMode"].is_string() && file["oldMode"] != file["newMode"] {
        line.push_str(&format!(" (mode {} → {})", text("oldMode"), text("newMode")));
    }
    if file["oldMode"] == LINK || file["newMode"] == LINK {
        line.push_str(" (symlink)");
    }
    match file["content"].as_str() {
        Some("binary") => line.push_str(&format!(" ({} → {} bytes)", file["oldBytes"], file["newBytes"])),
        Some("too_large") => line.push_str(&format!(" (too large to show, {} bytes)", file["newBytes"])),
        _ => {}
    }
    if file["protected"] == true {
        line.push_str(" [protected]");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn approval(request: Value) -> Value {
        json!({"id": "apr_1", "runId": "run_1", "digest": "a:b", "title": "Run `ls` in demo (once)", "reason": "no rule",
               "risk": "low", "redacted": false, "expiresAt": "soon", "request": request})
    }

    fn message(question: &Question) -> &str {
        match question {
            Question::Form { message, .. } => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_else_there_is_to_know_stands_above_the_content() {
        let mut asked = approval(json!({"kind": "shell", "command": "make", "cwd": "."}));
        asked["notes"] = json!(["only the sandbox bounds it"]);
        let text = shown(&asked, &[]);
        let (note, content) = (text.find("Note: only the sandbox bounds it."), text.find("command: make"));
        assert!(note.is_some() && note < content, "{text}");
    }

    #[test]
    fn j07_an_answer_is_bound_to_the_content_that_was_shown() {
        let asked = approval(json!({"kind": "shell", "command": "ls", "cwd": "."}));
        let key = key(&asked);
        assert_eq!(asked_under(&key), Some(("apr_1", "a:b")));
        let said = decision("apr_1", "a:b", &json!({"decision": "reject", "reason": "no"}), &asked);
        assert_eq!(said, json!({"id": "apr_1", "digest": "a:b", "decision": "reject", "reason": "no"}));
        assert_eq!(asked_under("io.runyard/confirm"), None);
    }

    #[test]
    fn c12_nothing_in_a_form_hides_a_part_of_it() {
        let asked = approval(json!({"kind": "shell", "command": "ls\u{1b}[2K\u{202e}\nrm -rf /"}));
        let question = question(&asked, &[]);
        let shown = message(&question);
        assert!(shown.contains("command: ls\\u{1b}[2K\\u{202e}\n    rm -rf /"), "{shown}");
    }

    #[test]
    fn a_question_is_answered_by_its_own_field() {
        let asked = approval(json!({"kind": "question", "prompt": "Which branch?"}));
        let Question::Form { schema, .. } = question(&asked, &[]) else { panic!("no form") };
        assert!(schema["properties"]["answer"].is_object(), "{schema}");
        let said = |content: Value| decision("apr_1", "a:b", &content, &asked)["answer"].clone();
        assert_eq!(said(json!({"decision": "approve", "answer": "main"})), "main");
        assert_eq!(said(json!({"decision": "approve", "answer": "{\"a\": 1}"})), json!({"a": 1}));
        assert_eq!(said(json!({"decision": "reject", "answer": "main"})), Value::Null);
    }

    #[test]
    fn c22_changes_are_shown_file_by_file_and_only_those_that_are_asked_about() {
        let asked = approval(json!({"kind": "apply"}));
        let file = json!({"id": "f1", "path": "a.md", "change": "modified", "content": "text"});
        let diff = json!({"diff": {"digest": "a:b", "summary": "2 files", "protected": 0},
                          "files": [file, {"id": "f2"}], "next": null});
        let hunk = |id: u32, text: &str| json!({"id": id, "newStart": 3, "lines": [{"kind": "added", "text": text}]});
        let found = json!({"hunks": [hunk(1, "one"), hunk(2, "two")], "omitted": 0});
        let part = json!([{"file": "f1", "hunks": [2]}]);
        assert_eq!(files(&diff, &part).count(), 1);
        assert_eq!(files(&diff, &Value::Null).count(), 2);
        let mut shown = Shown::of(&asked, &diff, &part);
        shown.file(&file, &found);
        let end = "Only the part that was chosen is asked about, of: 2 files";
        assert_eq!(shown.lines(), ["modified a.md", "@@ line 3 @@", "+two", end]);
        let mut other = diff.clone();
        other["diff"]["digest"] = "c".into();
        assert!(Shown::of(&asked, &other, &part).is_full());
    }

    #[test]
    fn a_form_ends_where_its_limit_is_and_says_so() {
        let asked = approval(json!({"kind": "apply"}));
        let diff = json!({"diff": {"digest": "a:b", "summary": "1 file"}, "files": [], "next": null});
        let mut shown = Shown::of(&asked, &diff, &Value::Null);
        let text = "x".repeat(CHANGES_BYTES_MAX);
        shown.file(&json!({"path": "a"}), &json!({"hunks": [{"lines": [{"kind": "added", "text": text}]}]}));
        assert!(shown.is_full());
        let lines = shown.lines();
        assert!(lines.concat().len() < 1_000 && lines.concat().contains("There is more"), "{lines:?}");
    }
}
