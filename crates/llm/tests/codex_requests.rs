//! What codex 0.166.0 really sends, and what becomes of it.
//!
//! `codex-requests` holds bodies that it sent to a provider on loopback, with long texts cut and nothing else changed: those of
//! `deepseek-chat` with a model catalog of ours, `web_search = "disabled"`, and the features `multi_agent` and `view_image` off;
//! those under `refused` with its defaults. `chat-requests` holds what they become. It does not say what is right: it says that
//! nothing moved. `RUNYARD_BLESS=1` writes it anew, and the difference goes with the change.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::{env, fs, path::PathBuf};

use runyard_llm::{LlmError, What, translate::to_chat};
use serde_json::Value;

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn read(folder_name: &str, name: &str) -> Value {
    let path = folder(folder_name).join(format!("{name}.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

fn names() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder("codex-requests"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn b15_what_codex_sends_becomes_a_chat_request() {
    let names = names();
    assert_eq!(names.len(), 8);
    for name in names {
        let translated =
            to_chat(read("codex-requests", &name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let chat = serde_json::to_value(&translated.request).unwrap();
        if env::var_os("RUNYARD_BLESS").is_some() {
            let path = folder("chat-requests").join(format!("{name}.json"));
            fs::write(path, serde_json::to_string_pretty(&chat).unwrap() + "\n").unwrap();
        }
        assert_eq!(chat, read("chat-requests", &name), "{name}");
    }
}

/// Every text that codex sent is in what goes to the provider: nothing was left out.
#[test]
fn no_text_of_the_conversation_is_lost() {
    for name in names() {
        let body = read("codex-requests", &name);
        let chat = serde_json::to_string(&to_chat(body.clone()).unwrap().request).unwrap();
        let mut texts = Vec::new();
        collect(&body["input"], &mut texts);
        collect(&body["tools"], &mut texts);
        assert!(texts.len() > 5, "{name}");
        for text in texts {
            let escaped = serde_json::to_string(&text).unwrap();
            // A custom tool's input is JSON inside a text of JSON.
            let nested = serde_json::to_string(&escaped).unwrap();
            let inner = |quoted: &str| quoted.trim_matches(['"', '\\']).to_owned();
            let is_there = [&escaped, &nested].into_iter().any(|quoted| chat.contains(&inner(quoted)));
            assert!(is_there, "{name}: {text}");
        }
    }
}

/// What a model reads: texts, descriptions, calls, results and names.
fn collect(value: &Value, texts: &mut Vec<String>) {
    const READ: [&str; 8] =
        ["text", "description", "definition", "arguments", "input", "output", "name", "image_url"];
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect(value, texts)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if READ.contains(&name.as_str()) => texts.push(text.clone()),
                    other => collect(other, texts),
                }
            }
        }
        _ => {}
    }
}

#[test]
fn the_tools_of_the_defaults_are_refused_by_name() {
    for (name, path, tool) in
        [("deepseek-chat-default", "tools[8]", "web_search"), ("gpt-5.5-default", "tools[8]", "tool_search")]
    {
        let refused = to_chat(read("codex-requests/refused", name)).unwrap_err();
        let expected = LlmError::Untranslatable { path: path.into(), what: What::Tool, name: tool.into() };
        assert_eq!(refused, expected, "{name}");
    }
}
