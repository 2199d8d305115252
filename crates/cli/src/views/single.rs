//! One thing, in lines or in a sentence.

use runyard_surfaces::cli::printable;
use serde_json::Value;

use super::{age, fields, items, joined, text};
use crate::run::asked;
use crate::run::form::Form;

/// What stands behind what was said where it is told as it is stored.
pub(crate) const SECRET_LEFT_OUT: &str = " What was secret in it is not in there.";

pub(super) fn run(run: &Value) -> Value {
    let task = match run["task"]["action"].as_str() {
        Some(action) => format!("action {action} {}", text(&run["task"]["input"])),
        None => run["task"].as_str().unwrap_or_default().to_owned(),
    };
    let codes: Vec<&str> =
        ["code", "failureKind", "cause"].into_iter().filter_map(|name| run[name].as_str()).collect();
    let ended = match codes.is_empty() {
        true => text(&run["message"]),
        false => format!("[{}] {}", codes.join(", "), text(&run["message"])),
    };
    let open: Vec<String> = items(run, "openApprovals").map(text).collect();
    let active = run["metrics"]["activeMs"].as_f64().unwrap_or_default() / 1000.0;
    fields(&[
        ("run", text(&run["id"])),
        ("state", text(&run["state"])),
        ("why", ended),
        ("do first", text(&run["recovery"])),
        ("waits for", open.join("\n")),
        ("kept open until", text(&run["keptOpenUntil"])),
        ("degraded", text(&run["degraded"]["reason"])),
        ("task", task),
        ("agent", text(&run["agentId"])),
        ("workspace", text(&run["workspace"]["label"])),
        ("session", text(&run["sessionId"])),
        ("goes on from", text(&run["parentRunId"])),
        ("created", text(&run["createdAt"])),
        ("last event", format!("#{} at {}", text(&run["lastSequence"]), text(&run["lastEventAt"]))),
        ("active", format!("{active:.1} s")),
        ("tokens", tokens(run)),
        ("response", run["response"].as_str().unwrap_or_default().to_owned()),
    ])
    .into()
}

/// What it used, where that is known, and of how much.
fn tokens(run: &Value) -> String {
    let known = |(name, way): (&str, &str)| Some(format!("{} {way}", run["metrics"][name].as_u64()?));
    let used = [("inputTokens", "in"), ("outputTokens", "out")].into_iter().filter_map(known);
    let used = used.collect::<Vec<_>>().join(", ");
    match run["budget"]["tokens"].as_u64() {
        None => used,
        Some(budget) if used.is_empty() => format!("none of a budget of {budget}"),
        Some(budget) => format!("{used} of a budget of {budget}"),
    }
}

pub(super) fn command(data: &Value) -> Value {
    let command = &data["command"];
    let redacted = if data["redacted"] == true { SECRET_LEFT_OUT } else { "" };
    format!("Told {}: {}.{redacted}", text(&command["runId"]), text(&command["kind"])).into()
}

pub(super) fn approval(approval: &Value) -> Value {
    let decided = match approval["decidedBy"]["id"].as_str() {
        Some(by) => format!("by {by} {}", text(&approval["decisionReason"])),
        None => String::new(),
    };
    let denied = match approval["denied"].as_str() {
        Some(why) => format!("by now: {why}; reject it, or change the rule first"),
        None => String::new(),
    };
    let id = text(&approval["id"]);
    let mut shown = fields(&[
        ("approval", id.clone()),
        ("state", text(&approval["state"])),
        ("decided", decided),
        ("asked", text(&approval["title"])),
        ("why", text(&approval["reason"])),
        ("note", joined(approval, "notes", "; ")),
        ("denied", denied),
        ("risk", text(&approval["risk"])),
        ("run", text(&approval["runId"])),
        ("expires", age(&approval["expiresAt"])),
        ("snoozed", snoozed_for(approval)),
        ("digest", text(&approval["digest"])),
    ]);
    shown.push_str("\nexactly:\n");
    shown.push_str(&asked(approval).join("\n"));
    let request = &approval["request"];
    if request["kind"] == "apply" && request["undo"] != true {
        shown.push_str(&format!("\nLook at it with: runyard diff {}", text(&approval["runId"])));
    }
    if approval["state"] == "open" {
        let command = match Form::of(approval) {
            Some(form) => form.command(&id),
            None => format!("runyard approvals approve {id}"),
        };
        shown.push_str(&format!("\nAnswer with: {command}, or reject"));
    }
    shown.into()
}

pub(super) fn resolved(data: &Value) -> Value {
    let approval = &data["approval"];
    let by = text(&approval["decidedBy"]["id"]);
    let redacted = if data["redacted"] == true { format!(".{SECRET_LEFT_OUT}") } else { String::new() };
    format!("{} by {by}: {}{redacted}", text(&approval["state"]), text(&approval["title"])).into()
}

pub(super) fn snoozed(approval: &Value) -> Value {
    format!("Snoozed, back {}: {}", snoozed_for(approval), text(&approval["title"])).into()
}

/// When an approval that sleeps comes back.
pub(super) fn snoozed_for(approval: &Value) -> String {
    let back = age(&approval["snoozedUntil"]);
    if back.starts_with("in ") { back } else { String::new() }
}

pub(super) fn workspace(workspace: &Value, sentence: &str) -> Value {
    format!("{sentence} \"{}\" ({}).", text(&workspace["label"]), text(&workspace["id"])).into()
}

pub(super) fn backend(backend: &Value) -> Value {
    let (isolation, can) = (&backend["isolation"], &backend["capabilities"]);
    let switch = |value: &Value| if *value == true { "yes" } else { "no" }.to_owned();
    let secrets = match joined(backend, "requiredSecretKeys", ", ") {
        none if none.is_empty() => "none".to_owned(),
        required => match joined(backend, "optionalSecretKeys", ", ") {
            none if none.is_empty() => required,
            optional => format!("{required}; {optional} where it is there"),
        },
    };
    fields(&[
        ("backend", text(&backend["profile"])),
        ("kind", text(&backend["backendKind"])),
        ("protocol", format!("{} over {}", text(&backend["protocol"]), text(&backend["transport"]))),
        ("command", joined(backend, "command", " ")),
        ("model", text(&backend["model"])),
        ("provider", [&backend["baseUrl"], &backend["wire"]].map(text).join(" ").trim().to_owned()),
        ("gateway", switch(&backend["gateway"])),
        ("secrets", secrets),
        ("credentials", text(&isolation["credentials"])),
        ("home", text(&isolation["home"])),
        ("sandbox", text(&isolation["sandbox"])),
        ("network", text(&isolation["network"])),
        ("resumes", text(&can["resumes"])),
        ("asks", switch(&can["asks"])),
        ("raw lines", if backend["debugRaw"] == true { "kept, redacted".to_owned() } else { String::new() }),
    ])
    .into()
}

/// What a check of a backend profile found: a line each, and below it what to do.
pub(super) fn checked(data: &Value) -> Value {
    let ok = data["ok"] == true;
    let verdict = if ok { "could be used now" } else { "cannot be used yet" };
    let mut lines = vec![format!("{} {verdict}", text(&data["profile"]))];
    for line in items(data, "checks") {
        let mark = match (line["ok"] == true, line["next"].is_string()) {
            (true, false) => '✓',
            (true, true) => '!',
            (false, _) => '✗',
        };
        lines.push(format!("  {mark} {:<9}  {}", text(&line["check"]), text(&line["found"])));
        if line["next"].is_string() {
            lines.push(format!("               {}", text(&line["next"])));
        }
    }
    lines.join("\n").into()
}

pub(super) fn rule_added(data: &Value) -> Value {
    let rule = &data["rule"];
    let what = [&rule["effect"], &rule["kind"], &rule["match"]].map(text).join(" ");
    let what = what.trim_end();
    let hint = match data["hint"].as_str() {
        Some(hint) => format!(" {hint}."),
        None => String::new(),
    };
    let (id, covers) = (text(&rule["id"]), text(&data["covers"]));
    let changes = preview(&data["preview"]);
    let said = if data["dryRun"] == true {
        format!("The rule {what} would cover {covers}.{hint}\n{changes}\nNothing is stored.")
    } else {
        format!(
            "Added {id}: {what}. It covers {covers}.{hint} It counts at once, for running runs too.\n{changes}"
        )
    };
    printable(&said).into()
}

/// What a rule changes, in lines.
fn preview(preview: &Value) -> String {
    let [requests, runs] = [&preview["requests"], &preview["runs"]].map(text);
    let older = if preview["more"] == true { " (older ones were not looked at)" } else { "" };
    let mut lines = vec![match items(preview, "changed").count() {
        0 => format!("Of {requests} requests in the last {runs} runs{older} it would have changed none."),
        _ => format!("Of {requests} requests in the last {runs} runs{older} it would have changed:"),
    }];
    for changed in items(preview, "changed") {
        let [before, after, times, what] =
            [&changed["before"], &changed["after"], &changed["times"], &changed["what"]].map(text);
        let decided = match changed["decided"].as_str() {
            Some(decided) => format!(", {decided} by a person then"),
            None => String::new(),
        };
        lines.push(format!("  {before} → {after}  {what}  ({times}×{decided})"));
    }
    if let Some(more @ 1..) = preview["notShown"].as_u64() {
        lines.push(format!("  … and {more} more"));
    }
    let also: Vec<&Value> = items(preview, "also").collect();
    if !also.is_empty() {
        lines.push("It also decides, of what is often asked for:".to_owned());
    }
    for sample in also {
        let [before, after, what] = [&sample["before"], &sample["after"], &sample["what"]].map(text);
        lines.push(format!("  {before} → {after}  {what}"));
    }
    lines.join("\n")
}

pub(super) fn rule_removed(data: &Value) -> Value {
    format!("Removed {}.", text(&data["id"])).into()
}

pub(super) fn judged(data: &Value) -> Value {
    let mut shown = text(&data["reason"]);
    for part in items(data, "parts") {
        let [effect, what, reason] = [&part["effect"], &part["what"], &part["reason"]].map(text);
        shown.push_str(&format!("\n  {effect:<5}  {what}\n         because {reason}"));
    }
    for note in items(data, "notes") {
        shown.push_str(&format!("\n  note: {}", text(note)));
    }
    if data["replay"].is_object() {
        shown.push_str(&format!("\n{}", preview(&data["replay"])));
    }
    printable(&shown).into()
}

pub(super) fn token(data: &Value) -> Value {
    let token = &data["token"];
    format!(
        "Made the token \"{}\" with the role {}. This is the only time that it is shown:\n{}",
        text(&token["name"]),
        text(&token["role"]),
        text(&data["text"])
    )
    .into()
}

pub(super) fn audit(data: &Value) -> Value {
    format!(
        "The audit holds: {} entries, the last with hash {}.",
        text(&data["entries"]),
        text(&data["head"])
    )
    .into()
}
