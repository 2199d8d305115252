//! What codex is told of a model that it does not know: providers of chat completions have their own.
//!
//! Of a model that is in no catalog codex assumes the least, and offers it no tool for patches.

use serde_json::json;

/// How much a model of which nothing else is known can look at, in tokens.
const CONTEXT_TOKENS: u64 = 128_000;
/// How much of what a tool says is shown to it, in tokens.
const OUTPUT_TOKENS: u64 = 10_000;

const INSTRUCTIONS: &str = "You are a coding agent at work in a copy of a person's repository, through a terminal.\n\n\
    - Look before you change anything: read the code in question and follow how it is written.\n\
    - Change as little as the task needs. Change files with apply_patch; run commands with exec_command.\n\
    - A command or a change may be asked about, and may be refused. A refusal is an answer: try another way within what is \
    allowed, or say what you would need.\n\
    - Run the checks that the project itself has, where you can, and say which you ran and how they ended.\n\
    - Commit, push or publish nothing unless the task says so.\n\
    - In the end say in a few sentences what you changed and what is left to do.";

/// The catalog with this one model: text in and out, patches by a tool of their own, no search.
pub(super) fn catalog(model: &str) -> String {
    let model = json!({
        "slug": model,
        "display_name": model,
        "base_instructions": INSTRUCTIONS,
        "supported_reasoning_levels": [],
        "shell_type": "unified_exec",
        "visibility": "list",
        "supported_in_api": true,
        "priority": 1,
        "support_verbosity": false,
        "truncation_policy": { "mode": "tokens", "limit": OUTPUT_TOKENS },
        "experimental_supported_tools": [],
        "apply_patch_tool_type": "freeform",
        "context_window": CONTEXT_TOKENS,
        "input_modalities": ["text"],
        "supports_search_tool": false,
    });
    json!({ "models": [model] }).to_string()
}
