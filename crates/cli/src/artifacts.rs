//! `runyard artifacts`: what a run produced to be looked at, and the way of files into it and out of it.
//!
//! What is added is copied; the file stays as it is. What is fetched never replaces a file unless that is said.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Arg, ArgAction, ArgMatches, Command};
use runyard::{ActionError, Code};
use runyard_engine::{ARTIFACT_BYTES_MAX, content_digest};
use runyard_store::{Clock, SystemClock};
use runyard_surfaces::cli::{ExtraCommand, ExtraRun, one_line, printable, show_data};
use serde_json::{Value, json};

use crate::audit_bundle::draft::Draft;
use crate::home::Home;
use crate::hub_client::HubClient;
use crate::hub_here::{AnyHub, Stay};
use crate::run::data;
use crate::views;

/// A kind of artifact, and the flags that say what it must say: the field, and the flag.
type Kind = (&'static str, &'static [(&'static str, &'static str)]);

const KINDS: [Kind; 6] = [
    ("file", &[]),
    ("file_preview", &[("path", "path")]),
    (
        "screenshot",
        &[
            ("viewport", "viewport"),
            ("route", "route"),
            ("theme", "theme"),
            ("language", "language"),
            ("privacyReview", "privacy-review"),
        ],
    ),
    (
        "generated_docs",
        &[("sourceRoute", "route"), ("language", "language"), ("buildStatus", "build-status")],
    ),
    ("diff", &[("base", "base"), ("target", "target"), ("paths", "path"), ("summary", "summary")]),
    ("patch", &[("files", "path"), ("applyStatus", "apply-status")]),
];

pub(crate) fn command(home: Home) -> ExtraCommand {
    let run = || Arg::new("run").value_name("RUN").required(true).help("The run's id");
    let artifact =
        || Arg::new("id").value_name("ID").required(true).help("The artifact's id, as the list shows it");
    let command = Command::new("artifacts")
        .about("What a run produced to be looked at")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("list").about("The artifacts of a run, its own diff and patch first").arg(run()),
        )
        .subcommand(Command::new("show").about("One artifact, with its beginning").args([run(), artifact()]))
        .subcommand(add_command().arg(run().index(1)))
        .subcommand(
            Command::new("get")
                .about("Save what an artifact holds as a file")
                .args([run(), artifact()])
                .arg(Arg::new("to").long("to").value_name("FILE").required(true).help("The file to write"))
                .arg(
                    Arg::new("force")
                        .long("force")
                        .action(ArgAction::SetTrue)
                        .help("Write over a file that is there already"),
                ),
        );
    let run = move |matches: ArgMatches| Box::pin(run_command(home, matches)) as ExtraRun;
    ExtraCommand { command, run: Box::new(run) }
}

fn add_command() -> Command {
    let flag = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    Command::new("add")
        .about("Add a file to what a run produced")
        .after_help(
            "A screenshot needs --viewport, --route, --theme, --language and --privacy-review; generated_docs --route, \
             --language and --build-status; a file_preview --path; a diff --base, --target, --path and --summary; a patch --path \
             and --apply-status, and --approval once it is more than proposed. Secrets are taken out of text; anything else that \
             holds one is refused.",
        )
        .arg(Arg::new("file").value_name("FILE").required(true).index(2).help("The file"))
        .arg(
            flag("kind", "KIND", "What it is")
                .value_parser(KINDS.map(|(kind, _)| kind))
                .default_value("file"),
        )
        .arg(flag("name", "NAME", "Its name in the run; the file's own without"))
        .arg(flag("summary", "TEXT", "What it is, in a line"))
        .arg(
            flag("path", "PATH", "Where it belongs, relative to the workspace; may be repeated")
                .action(ArgAction::Append),
        )
        .arg(flag("viewport", "WxH", "The size of the screen, as in 1280x720"))
        .arg(flag("route", "ROUTE", "The page that it shows, or was built from"))
        .arg(flag("theme", "THEME", "Its colours, as in dark"))
        .arg(flag("language", "LANGUAGE", "Its language, as in en"))
        .arg(
            flag("privacy-review", "WORD", "Whether you looked for what is private in it")
                .value_parser(["pending", "passed", "failed"]),
        )
        .arg(flag("build-status", "WORD", "How building it went").value_parser(["succeeded", "failed"]))
        .arg(flag("base", "BASE", "What it starts from"))
        .arg(flag("target", "TARGET", "What it leads to"))
        .arg(flag("apply-status", "WORD", "What became of it, as in proposed or applied"))
        .arg(flag("approval", "APPROVAL", "The approval that allowed it"))
        .arg(flag("idempotency-key", "KEY", "Adds at most one artifact for the key"))
}

async fn run_command(home: Home, matches: ArgMatches) -> Result<u8, ActionError> {
    let Some((verb, matches)) = matches.subcommand() else { return Ok(2) };
    // What is wrong with a file is known before a hub is looked for.
    let adding = if verb == "add" { Some(adding(matches)?) } else { None };
    if verb == "get" {
        check_free(matches)?;
    }
    let hub = AnyHub::get(&home, Stay::ForOneCall).await?;
    let outcome = match (verb, adding) {
        ("add", Some(input)) => add(hub.client(), matches, input).await,
        ("list", _) => list(hub.client(), matches).await,
        ("show", _) => show(hub.client(), matches).await,
        _ => get(hub.client(), matches).await,
    };
    hub.stop().await;
    outcome
}

fn text<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a str> {
    matches.try_get_one::<String>(name).ok().flatten().map(String::as_str)
}

async fn call(client: &HubClient, action: &str, input: Value) -> Result<Value, ActionError> {
    data(client.invoke(action, input, true, None).await?)
}

/// Shows an answer whole, or as people read it.
fn shown(matches: &ArgMatches, whole: Value, for_people: impl FnOnce(&Value) -> Value) -> u8 {
    let form = matches.get_one::<String>("output").map(String::as_str);
    let data = if views::is_text(form) { for_people(&whole) } else { whole };
    show_data(matches, data)
}

async fn list(client: &HubClient, matches: &ArgMatches) -> Result<u8, ActionError> {
    let found = call(client, "artifact_list", json!({"id": text(matches, "run")})).await?;
    Ok(shown(matches, found, |found| {
        let rows = found["artifacts"].as_array().into_iter().flatten().map(|artifact| {
            json!({
                "id": artifact["id"],
                "kind": artifact["kind"],
                "type": artifact["mediaType"],
                "bytes": artifact["bytes"],
                "by": artifact["by"]["id"],
                "summary": one_line(artifact["summary"].as_str().unwrap_or_default()),
            })
        });
        let rows: Vec<Value> = rows.collect();
        if rows.is_empty() { "The run produced nothing to look at.".into() } else { json!({ "rows": rows }) }
    }))
}

async fn show(client: &HubClient, matches: &ArgMatches) -> Result<u8, ActionError> {
    let input = json!({"id": text(matches, "run"), "artifact": text(matches, "id")});
    let found = call(client, "artifact_get", input).await?;
    Ok(shown(matches, found, |found| {
        let (artifact, preview) = (&found["artifact"], &found["preview"]);
        let mut lines = Vec::new();
        let mut line = |name: &str, value: &Value| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            lines.push(format!("{name:<10}  {}", one_line(&value)));
        };
        for (name, field) in [
            ("artifact", "id"),
            ("kind", "kind"),
            ("name", "name"),
            ("summary", "summary"),
            ("type", "mediaType"),
            ("bytes", "bytes"),
            ("digest", "digest"),
            ("recorded", "recordedAt"),
        ] {
            if let Some(value) = artifact.get(field) {
                line(name, value);
            }
        }
        for (name, value) in
            artifact["facts"].as_object().into_iter().flatten().filter(|(name, _)| *name != "kind")
        {
            line(name, value);
        }
        if artifact["redacted"] == true {
            line("redacted", &"what was secret in it is not in there".into());
        }
        if artifact["peopleOnly"] == true {
            line("private", &"shown to people only: its privacy review is not passed".into());
        }
        if let (Some(width), Some(height)) = (preview["width"].as_u64(), preview["height"].as_u64()) {
            line("picture", &format!("{width} x {height}").into());
        }
        if let Some(text) = preview["text"].as_str() {
            lines.push(String::new());
            lines.push(printable(text.trim_end()).to_string());
        }
        if preview["truncated"] == true {
            lines.push("… there is more: \"runyard artifacts get\" saves all of it".to_owned());
        }
        lines.join("\n").into()
    }))
}

/// The input of the action, from the file and the flags.
fn adding(matches: &ArgMatches) -> Result<Value, ActionError> {
    let path = Path::new(text(matches, "file").unwrap_or_default());
    let content = read(path)?;
    let own = path.file_name().and_then(|name| name.to_str());
    let name =
        text(matches, "name").or(own).ok_or_else(|| invalid("Give the artifact a name with --name."))?;
    let mut input = json!({
        "id": text(matches, "run"),
        "name": name,
        "facts": facts(matches)?,
        "base64": STANDARD.encode(content),
    });
    if let Some(summary) = text(matches, "summary") {
        input["summary"] = summary.into();
    }
    Ok(input)
}

fn facts(matches: &ArgMatches) -> Result<Value, ActionError> {
    let kind = text(matches, "kind").unwrap_or("file");
    let fields = KINDS.iter().find(|(name, _)| *name == kind).map_or(&[][..], |(_, fields)| fields);
    let paths: Vec<&String> = matches.get_many("path").into_iter().flatten().collect();
    let mut facts = json!({ "kind": kind });
    let mut missing = Vec::new();
    for (field, flag) in fields {
        let said = match *field {
            "paths" | "files" if !paths.is_empty() => Some(json!(paths)),
            "path" => paths.first().map(|path| json!(path)),
            "paths" | "files" => None,
            "viewport" => text(matches, flag).map(viewport).transpose()?,
            _ => text(matches, flag).map(Value::from),
        };
        match said {
            Some(said) => facts[*field] = said,
            None => missing.push(format!("--{flag}")),
        }
    }
    if !missing.is_empty() {
        return Err(invalid(&format!("An artifact of kind {kind} needs {}.", missing.join(", "))));
    }
    match kind {
        "file" if !paths.is_empty() => facts["path"] = json!(paths[0]),
        // It was read just now.
        "file_preview" => facts["readAt"] = SystemClock.now().to_string().into(),
        "patch" => facts["approvalId"] = text(matches, "approval").map_or(Value::Null, Value::from),
        _ => {}
    }
    Ok(facts)
}

fn viewport(given: &str) -> Result<Value, ActionError> {
    let sides = given
        .split_once('x')
        .and_then(|(width, height)| Some((width.parse::<u32>().ok()?, height.parse::<u32>().ok()?)));
    let (width, height) = sides.ok_or_else(|| invalid("Expected --viewport as in 1280x720."))?;
    Ok(json!({ "width": width, "height": height }))
}

fn read(path: &Path) -> Result<Vec<u8>, ActionError> {
    let shown = one_line(&path.to_string_lossy());
    let file = File::open(path).and_then(|file| {
        if file.metadata()?.is_file() { Ok(file) } else { Err(ErrorKind::InvalidInput.into()) }
    });
    let file = file.map_err(|error| invalid(&format!("Cannot read {shown}: {}.", error.kind())))?;
    let mut content = Vec::new();
    let read = file.take(ARTIFACT_BYTES_MAX as u64 + 1).read_to_end(&mut content);
    read.map_err(|error| invalid(&format!("Cannot read {shown}: {}.", error.kind())))?;
    if content.is_empty() || content.len() > ARTIFACT_BYTES_MAX {
        return Err(invalid(&format!("An artifact has 1 to {ARTIFACT_BYTES_MAX} bytes; {shown} has not.")));
    }
    Ok(content)
}

fn invalid(message: &str) -> ActionError {
    ActionError::new(Code::ValidationError, message)
}

async fn add(client: &HubClient, matches: &ArgMatches, input: Value) -> Result<u8, ActionError> {
    let key = text(matches, "idempotency-key");
    let added = data(client.invoke("artifact_add", input, true, key).await?)?;
    Ok(shown(matches, added, |added| {
        let artifact = &added["artifact"];
        let redacted = match artifact["redacted"] == true {
            true => " What was secret in it is not in there.",
            false => "",
        };
        let id = artifact["id"].as_str().unwrap_or_default();
        format!("Added {} ({} bytes).{redacted}", one_line(id), artifact["bytes"]).into()
    }))
}

/// Refuses to write over a file, before anything is fetched.
fn check_free(matches: &ArgMatches) -> Result<(), ActionError> {
    let to = text(matches, "to").unwrap_or_default();
    match Path::new(to).symlink_metadata() {
        Ok(_) if !matches.get_flag("force") => Err(taken(to)),
        _ => Ok(()),
    }
}

fn taken(to: &str) -> ActionError {
    let message =
        format!("{} is there already: name another file, or write over it with --force.", one_line(to));
    ActionError::new(Code::Conflict, message)
}

async fn get(client: &HubClient, matches: &ArgMatches) -> Result<u8, ActionError> {
    let input = json!({"id": text(matches, "run"), "artifact": text(matches, "id"), "content": true});
    let mut found = call(client, "artifact_get", input).await?;
    let encoded = found["base64"].take();
    let content = STANDARD.decode(encoded.as_str().unwrap_or_default()).unwrap_or_default();
    if found["artifact"]["digest"] != content_digest(&content).to_string() {
        let message = "What came is not what the artifact's digest says; nothing was written. Try again.";
        return Err(ActionError::new(Code::ExternalServiceError, message));
    }
    let to = text(matches, "to").unwrap_or_default();
    write(to, &content, matches.get_flag("force"))?;
    let told = json!({ "artifact": found["artifact"], "file": to });
    Ok(shown(matches, told, |_| format!("Wrote {} bytes to {}.", content.len(), one_line(to)).into()))
}

/// Writes a file. One that is there is replaced only where that is said, and then in one step.
fn write(to: &str, content: &[u8], force: bool) -> Result<(), ActionError> {
    let path = Path::new(to);
    let failed = |error: std::io::Error| {
        ActionError::new(Code::StorageIo, format!("Cannot write {}: {}.", one_line(to), error.kind()))
    };
    // What came out of a run is for whoever fetched it alone, until they say otherwise.
    let mut draft = Draft::beside(path).map_err(failed)?;
    let written = draft.file().write_all(content).and_then(|()| draft.publish(force));
    if written.map_err(failed)? { Ok(()) } else { Err(taken(to)) }
}
