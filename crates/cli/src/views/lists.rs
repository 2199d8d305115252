//! Lists, as the columns that people need to choose a row.

use serde_json::Value;

use super::single::snoozed_for;
use super::{age, items, joined, row, table, text};

pub(super) fn runs(data: &Value) -> Value {
    let rows = items(data, "runs").map(|run| {
        let task = match run["task"]["action"].as_str() {
            Some(action) => format!("action {action}"),
            None => text(&run["task"]),
        };
        row([
            ("id", run["id"].clone()),
            ("state", run["state"].clone()),
            ("agent", run["agentId"].clone()),
            ("workspace", run["workspace"]["label"].clone()),
            ("updated", age(&run["lastEventAt"]).into()),
            ("task", task.into()),
        ])
    });
    let more = data["next"].as_str().map(|next| format!("runyard runs list --before {next}"));
    table(rows.collect(), more, "No runs. Start one with: runyard run \"what is to be done\"")
}

pub(super) fn changes(data: &Value) -> Value {
    let rows = items(data, "files")
        .map(|file| row([("file", crate::patches::headline(file).into()), ("hunks", file["hunks"].clone())]));
    table(rows.collect(), None, "Nothing changed.")
}

pub(super) fn approvals(data: &Value) -> Value {
    let sleeps = items(data, "approvals").any(|approval| !snoozed_for(approval).is_empty());
    let rows = items(data, "approvals").map(|approval| {
        let [id, risk] = ["id", "risk"].map(|name| (name, approval[name].clone()));
        let expires = ("expires", age(&approval["expiresAt"]).into());
        let asked = ("asked", approval["title"].clone());
        match sleeps {
            true => row([id, risk, expires, ("snoozed", snoozed_for(approval).into()), asked]),
            false => row([id, risk, expires, asked]),
        }
    });
    let more = data["next"].as_str().map(|next| format!("runyard approvals list --after {next}"));
    table(rows.collect(), more, "Nothing waits for an approval.")
}

pub(super) fn agents(data: &Value) -> Value {
    let rows = items(data, "agents").map(|agent| {
        row([
            ("id", agent["id"].clone()),
            ("label", agent["label"].clone()),
            ("backend", agent["backendProfile"].clone()),
            ("preset", agent["preset"].clone()),
            ("approval", agent["executionPolicy"]["approval"].clone()),
            ("network", agent["executionPolicy"]["network"].clone()),
            ("on reject", agent["onReject"].clone()),
        ])
    });
    table(rows.collect(), None, "No agent profiles.")
}

pub(super) fn backends(data: &Value) -> Value {
    let rows = items(data, "backends").map(|backend| {
        row([
            ("profile", backend["profile"].clone()),
            ("kind", backend["backendKind"].clone()),
            ("model", backend["model"].clone()),
            ("secrets", joined(backend, "requiredSecretKeys", ", ").into()),
            ("credentials", backend["isolation"]["credentials"].clone()),
            ("command", joined(backend, "command", " ").into()),
        ])
    });
    table(rows.collect(), None, "No backend profiles.")
}

pub(super) fn edges(data: &Value) -> Value {
    let rows = items(data, "edges").map(|edge| {
        row([
            ("id", edge["id"].clone()),
            ("version", edge["version"].clone()),
            ("connected", if edge["connected"] == true { "yes" } else { "no" }.into()),
            ("runs", edge["activeRuns"].clone()),
            ("sandbox", edge["sandbox"].clone()),
        ])
    });
    table(rows.collect(), None, "No edge was seen since the hub began.")
}

pub(super) fn sessions(data: &Value) -> Value {
    let rows = items(data, "sessions").map(|session| {
        row([
            ("id", session["id"].clone()),
            ("agent", session["agentId"].clone()),
            ("workspace", session["workspace"]["label"].clone()),
            ("runs", session["runs"].clone()),
            ("latest", session["state"].clone()),
            ("updated", age(&session["lastEventAt"]).into()),
        ])
    });
    let more = data["next"].as_str().map(|next| format!("runyard call session-list --before {next}"));
    table(rows.collect(), more, "No sessions. A run begins one: runyard run \"what is to be done\"")
}

pub(super) fn workspaces(data: &Value) -> Value {
    let rows = items(data, "workspaces").map(|workspace| {
        row([
            ("id", workspace["id"].clone()),
            ("label", workspace["label"].clone()),
            ("project", workspace["project"].clone()),
            ("edge", workspace["edgeId"].clone()),
        ])
    });
    table(rows.collect(), None, "No workspaces. Allow one with: runyard workspaces add DIRECTORY")
}

pub(super) fn rules(data: &Value) -> Value {
    let policy = &data["policy"];
    let of = |name, from: fn(&Value) -> String| {
        items(policy, name).map(move |rule| {
            row([
                ("effect", rule["effect"].clone()),
                ("kind", rule["kind"].clone()),
                ("match", rule["match"].clone()),
                ("agent", rule["agent"].clone()),
                ("workspace", rule["workspace"].clone()),
                ("scope", rule["scope"].clone()),
                ("expires", age(&rule["expires"]).into()),
                ("from", from(rule).into()),
                ("id", rule["id"].clone()),
            ])
        })
    };
    let configured = of("rules", |_| "configuration".to_owned());
    let stored = of("stored", |rule| text(&rule["addedBy"]["id"]));
    let rows: Vec<Value> = configured.chain(stored).collect();
    let preset = text(&policy["preset"]);
    let nothing = format!("No rules: the preset \"{preset}\" decides. Add one with: runyard policy add");
    match table(rows, None, &nothing) {
        Value::Object(mut data) => {
            data.insert("preset".to_owned(), preset.into());
            data.insert("version".to_owned(), policy["version"].clone());
            Value::Object(data)
        }
        nothing => nothing,
    }
}

pub(super) fn tokens(data: &Value) -> Value {
    let rows = items(data, "tokens").map(|token| {
        row([
            ("name", token["name"].clone()),
            ("role", token["role"].clone()),
            ("created", age(&token["createdAt"]).into()),
            ("by", token["createdBy"]["id"].clone()),
            ("expires", age(&token["expiresAt"]).into()),
            ("id", token["id"].clone()),
        ])
    });
    table(rows.collect(), None, "No named tokens. Make one with: runyard tokens create NAME ROLE")
}

/// A value of an entry in a line: rules as they are typed.
fn told(value: &Value) -> String {
    match value {
        Value::Array(values) if values.is_empty() => "none".to_owned(),
        Value::Array(values) => values.iter().map(told).collect::<Vec<_>>().join(", "),
        Value::Object(rule) if rule.contains_key("effect") => {
            let words = ["effect", "kind", "match"].into_iter().filter_map(|name| rule.get(name));
            words.map(text).collect::<Vec<_>>().join(" ")
        }
        other => text(other),
    }
}

pub(super) fn audit(data: &Value) -> Value {
    let rows = items(data, "entries").map(|entry| {
        let what = entry["what"].as_object().into_iter().flatten();
        let what: Vec<String> = what.map(|(name, value)| format!("{name}={}", told(value))).collect();
        row([
            ("#", entry["sequence"].clone()),
            ("at", text(&entry["at"]).chars().take(19).collect::<String>().replace('T', " ").into()),
            ("by", entry["by"]["id"].clone()),
            ("type", entry["type"].clone()),
            ("what", what.join(" ").into()),
        ])
    });
    let more = data["next"].as_u64().map(|next| format!("runyard audit show --after {next}"));
    table(rows.collect(), more, "Nothing more is recorded.")
}
