//! `runyard approvals`: the inbox over all runs, and answering from it.
//!
//! An answer is bound to the content that was looked at: approving shows it first, and sends its digest.

use std::io::Write;

use clap::{Arg, ArgAction, ArgMatches, Command};
use runyard::{ActionError, Code};
use runyard_surfaces::cli::{ExtraCommand, ExtraRun, one_line, show_data};
use serde_json::{Value, json};

use crate::changes::part::{self, Part};
use crate::home::Home;
use crate::hub_client::HubClient;
use crate::hub_here::{AnyHub, Stay};
use crate::patches::Changes;
use crate::run::form::{Form, Heard};
use crate::run::{asked, data, for_somebody_else, lasting, typed};
use crate::views;

pub(crate) fn command(home: Home) -> ExtraCommand {
    let command = Command::new("approvals")
        .about("What agents wait for, and your answers")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(list())
        .subcommand(Command::new("show").about("One approval, with exactly what is asked").arg(id()))
        .subcommand(approve())
        .subcommand(reject())
        .subcommand(snooze());
    let run = move |matches: ArgMatches| Box::pin(run(home, matches)) as ExtraRun;
    ExtraCommand { command, run: Box::new(run) }
}

fn id() -> Arg {
    Arg::new("id").value_name("APPROVAL").required(true).help("The approval's id")
}

fn flag(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

/// The arguments of every decision.
fn decision() -> [Arg; 4] {
    [
        id(),
        flag("reason", "TEXT", "Why; the agent is told"),
        flag("digest", "DIGEST", "Only if the content still has this digest"),
        switch("confirm", "Do not ask again before answering"),
    ]
}

fn list() -> Command {
    Command::new("list").about("Everything that is open, oldest first").args([
        flag("run", "RUN", "Only of this run"),
        flag("after", "APPROVAL", "Only those after this one"),
        switch("snoozed", "Also those that were snoozed"),
    ])
}

fn approve() -> Command {
    let scope = flag(
        "scope",
        "SCOPE",
        "Once, or whenever the same is asked: in the run, its session, or the workspace",
    )
    .value_parser(["once", "run", "session", "project"])
    .default_value("once");
    Command::new("approve")
        .about("Allow exactly what is asked")
        .after_help(
            "Changes are applied whole, but for protected files, which must be named: --file and --hunk choose a part of \
             them.",
        )
        .args(decision())
        .args(part::arguments())
        .args([scope, flag("answer", "ANSWER", "The answer to a question, as JSON; in words where it asks for one thing")])
}

fn reject() -> Command {
    let comment =
        flag("comment", "FILE[:LINE]:TEXT", "A word on a file of the changes, or on a line; may be repeated")
            .action(ArgAction::Append);
    let revise = switch("revise", "The agent tries again, with the reason and the comments");
    Command::new("reject").about("Refuse what is asked").args(decision()).args([comment, revise])
}

fn snooze() -> Command {
    let span = flag("for", "TIME", "For how long: 30m, 2h, 1d").required(true).value_parser(milliseconds);
    Command::new("snooze")
        .about("Leave it for later: it stays open, is not listed for a while, and expires later by as much")
        .args([id(), flag("reason", "TEXT", "Why"), span])
}

async fn run(home: Home, matches: ArgMatches) -> Result<u8, ActionError> {
    let hub = AnyHub::get(&home, Stay::ForOneCall).await?;
    let outcome = serve(&hub, &matches).await;
    hub.stop().await;
    outcome
}

async fn serve(hub: &AnyHub, matches: &ArgMatches) -> Result<u8, ActionError> {
    let client = hub.client();
    let Some((verb, matches)) = matches.subcommand() else { return Ok(2) };
    let text = |name: &str| matches.try_get_one::<String>(name).ok().flatten().cloned();
    if verb == "list" {
        let mut input = json!({"state": "open"});
        for name in ["run", "after"] {
            if let Some(given) = text(name) {
                input[name] = given.into();
            }
        }
        input["snoozed"] = matches.get_flag("snoozed").into();
        let found = data(client.invoke("approval_list", input, false, None).await?)?;
        return Ok(views::show(matches, "approval_list", found));
    }
    let id = text("id").unwrap_or_default();
    if verb == "snooze" {
        let mut input = json!({"id": id, "forMs": matches.get_one::<u64>("for")});
        if let Some(reason) = text("reason") {
            input["reason"] = reason.into();
        }
        let snoozed = data(client.invoke("approval_snooze", input, true, None).await?)?;
        return Ok(views::show(matches, "approval_snooze", snoozed));
    }
    let found = data(client.invoke("approval_show", json!({"id": id}), false, None).await?)?;
    if verb == "show" {
        return Ok(views::show(matches, "approval_show", found));
    }
    let approval = &found["approval"];
    let mut answer = Answer::of(client, approval, verb == "approve", matches).await?;
    // Whoever has just typed an answer means it, and what is decided is not decided again.
    let is_open = approval["state"] == "open";
    if is_open && !answer.ask(approval).await? && !matches.get_flag("confirm") {
        answer.confirm(client, approval).await?;
    }
    let resolved = data(client.invoke("approval_resolve", answer.input.clone(), true, None).await?);
    let resolved = resolved.map_err(|error| for_somebody_else(error, &id))?;
    let exit = answered(matches, &answer, resolved, is_open);
    if views::is_text(matches.get_one::<String>("output").map(String::as_str)) {
        hub.say_if_left(approval["runId"].as_str().unwrap_or_default()).await;
    }
    Ok(exit)
}

/// Shows what became of an answer.
fn answered(matches: &ArgMatches, answer: &Answer, resolved: Value, is_open: bool) -> u8 {
    let form = matches.get_one::<String>("output").map(String::as_str);
    if !is_open && views::is_text(form) {
        let text = |value: &Value| one_line(value.as_str().unwrap_or_default());
        let decided = &resolved["approval"];
        let told = format!("{} by {} before", text(&decided["state"]), text(&decided["decidedBy"]["id"]));
        return show_data(matches, told.into());
    }
    match answer.told(&resolved["approval"]).filter(|_| views::is_text(form)) {
        Some(told) if resolved["redacted"] == true => {
            show_data(matches, format!("{told}.{}", views::SECRET_LEFT_OUT).into())
        }
        Some(told) => show_data(matches, told.into()),
        None => views::show(matches, "approval_resolve", resolved),
    }
}

/// A decision, as far as the command says it.
struct Answer {
    approve: bool,
    input: Value,
    /// The changes that it is about, where it is about some.
    changes: Option<Changes>,
}

impl Answer {
    async fn of(
        client: &HubClient,
        approval: &Value,
        approve: bool,
        matches: &ArgMatches,
    ) -> Result<Self, ActionError> {
        let text = |name: &str| matches.try_get_one::<String>(name).ok().flatten().cloned();
        let digest = text("digest").map_or_else(|| approval["digest"].clone(), Value::String);
        let decision = if approve { "approve" } else { "reject" };
        let mut input = json!({"id": approval["id"], "decision": decision, "digest": digest});
        if let Some(reason) = text("reason") {
            input["reason"] = reason.into();
        }
        if approve {
            input["scope"] = text("scope").unwrap_or_default().into();
        }
        if let Some(answer) = text("answer") {
            input["answer"] = match Form::of(approval) {
                Some(form) => form.given(&answer),
                None => serde_json::from_str(&answer).unwrap_or(Value::String(answer)),
            };
        }
        let mut answer = Answer { approve, input, changes: None };
        let reviews = match approve {
            true => part::is_named(matches),
            false => matches.get_flag("revise") || matches.contains_id("comment"),
        };
        let request = &approval["request"];
        if request["kind"] != "apply" || request["undo"] == true {
            return if reviews { Err(not_about_changes()) } else { Ok(answer) };
        }
        if reviews || !matches.get_flag("confirm") {
            let run = approval["runId"].as_str().unwrap_or_default();
            let looked_at = approval["digest"].as_str().unwrap_or_default();
            let changes = Changes::of(client, run).await?.with_digest(looked_at)?;
            answer.review(changes, matches)?;
        }
        Ok(answer)
    }

    /// The part that is chosen, or what is said about the changes.
    fn review(&mut self, mut changes: Changes, matches: &ArgMatches) -> Result<(), ActionError> {
        if self.approve {
            if let Some(part) = Part::named(matches, &changes.found)? {
                if changes.part.is_some() {
                    let message =
                        "What this run applies was chosen when it was started; approve or reject that.";
                    return Err(ActionError::new(Code::ValidationError, message));
                }
                self.input["selection"] = part.selection();
                changes = changes.only(part);
            }
        } else {
            let given = matches.get_many::<String>("comment").into_iter().flatten();
            let comments = given.map(|given| part::comment(&changes.found, given));
            self.input["comments"] = Value::Array(comments.collect::<Result<_, _>>()?);
            if matches.get_flag("revise") {
                if changes.carried {
                    let message =
                        "This run carries the changes of another and has no agent that could try again.";
                    return Err(ActionError::new(Code::ValidationError, message));
                }
                self.input["revise"] = true.into();
            }
        }
        self.changes = Some(changes);
        Ok(())
    }

    /// Asks for the answer to a question, where the command says none; says whether it did.
    async fn ask(&mut self, approval: &Value) -> Result<bool, ActionError> {
        let form = Form::of(approval).filter(|_| self.approve && self.input["answer"].is_null());
        let Some(mut form) = form.filter(|_| approval["state"] == "open") else { return Ok(false) };
        if !typed::can_ask() {
            let command = form.command(approval["id"].as_str().unwrap_or_default());
            let message = format!("It is a question. Answer it with: {command} --confirm");
            return Err(ActionError::new(Code::ValidationError, message));
        }
        let mut stderr = std::io::stderr();
        asked(approval).iter().for_each(|line| {
            let _ = writeln!(stderr, "{line}");
        });
        let mut keyboard = typed::Keyboard::default();
        loop {
            typed::show_question(&keyboard, &form.question());
            let line = keyboard.line().await.ok_or_else(ActionError::cancelled)?;
            match form.hear(&line) {
                Heard::More => {}
                Heard::Wrong(hint) => {
                    let _ = writeln!(stderr, "{hint}");
                }
                Heard::Answer(answer) => {
                    self.input["answer"] = answer;
                    return Ok(true);
                }
                Heard::Rejected => {
                    self.approve = false;
                    self.input["decision"] = "reject".into();
                    return Ok(true);
                }
            }
        }
    }

    /// Shows exactly what is asked, and asks whether the answer is meant. Without a terminal it must be said with the command.
    async fn confirm(&self, client: &HubClient, approval: &Value) -> Result<(), ActionError> {
        if !typed::can_ask() {
            let message =
                "Look at it first with \"runyard approvals show\", then repeat the command with --confirm.";
            return Err(ActionError::new(Code::ConfirmationRequired, message));
        }
        let mut stderr = std::io::stderr();
        let title = one_line(approval["title"].as_str().unwrap_or_default());
        let _ = writeln!(stderr, "{title}");
        match &self.changes {
            Some(changes) => changes.show(client).await?,
            None => asked(approval).iter().for_each(|line| {
                let _ = writeln!(stderr, "{line}");
            }),
        }
        if let Some(scope @ ("session" | "project")) = self.input["scope"].as_str() {
            let id = approval["id"].as_str().unwrap_or_default();
            for line in lasting::shown(client, id, scope).await? {
                let _ = writeln!(stderr, "{line}");
            }
        }
        let question = match self.approve {
            true => "Approve exactly this?".to_owned(),
            false if self.revises() => format!("Send it back{}? The agent tries again.", self.comments()),
            false => "Reject exactly this?".to_owned(),
        };
        typed::confirm(&format!("{question} [y/N] ")).await
    }

    fn revises(&self) -> bool {
        self.input["revise"] == true
    }

    fn comments(&self) -> String {
        match self.input["comments"].as_array().map_or(0, Vec::len) {
            0 => String::new(),
            1 => " with 1 comment".to_owned(),
            many => format!(" with {many} comments"),
        }
    }

    /// What became of it, where that is more than yes or no.
    fn told(&self, approval: &Value) -> Option<String> {
        let by = one_line(approval["decidedBy"]["id"].as_str().unwrap_or_default());
        if self.revises() {
            return Some(format!("sent back by {by}{}: the agent tries again", self.comments()));
        }
        let changes = self.changes.as_ref().filter(|_| self.approve)?;
        let count = |name: &str| changes.found["diff"][name].as_u64().unwrap_or_default();
        let (files, protected) = (count("files"), count("protected"));
        match (&changes.part, self.input["selection"].as_array()) {
            (Some(part), Some(chosen)) => {
                let words = part.words(&changes.found);
                Some(format!("approved by {by}: {} of {files} files: {words}", chosen.len()))
            }
            (None, None) if protected > 0 => {
                let rest = files.saturating_sub(protected);
                Some(format!("approved by {by}: {rest} of {files} files, without those that are protected"))
            }
            _ => None,
        }
    }
}

fn not_about_changes() -> ActionError {
    let message =
        "This approval does not ask to apply changes: there is no part of it to choose or to comment on.";
    ActionError::new(Code::ValidationError, message)
}

/// A span like `90s`, `30m`, `2h` or `1d` in milliseconds.
pub(crate) fn milliseconds(text: &str) -> Result<u64, String> {
    let wrong = || "expected a number with s, m, h or d, like 30m, 2h or 1d".to_owned();
    let unit = text.chars().last().ok_or_else(wrong)?;
    let unit_ms: u64 = match unit {
        's' => 1000,
        'm' => 60_000,
        'h' => 3_600_000,
        'd' => 86_400_000,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..text.len() - unit.len_utf8()].parse().map_err(|_| wrong())?;
    number.checked_mul(unit_ms).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_a_number_with_its_unit() {
        for (text, ms) in [("90s", 90_000), ("30m", 1_800_000), ("2h", 7_200_000), ("1d", 86_400_000)] {
            assert_eq!(milliseconds(text), Ok(ms), "{text}");
        }
        for wrong in ["", "2", "h", "-1h", "1.5h", "2hh", "2 h", "99999999999999999999d", "9999999999999999d"]
        {
            assert!(milliseconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn c22_what_is_sent_back_is_said_to_be_and_not_to_be_rejected() {
        let approval = json!({"decidedBy": {"id": "owner"}, "state": "rejected"});
        let answer = |input| Answer { approve: false, input, changes: None };
        let back = answer(json!({"revise": true, "comments": [{}, {}]}));
        let told = "sent back by owner with 2 comments: the agent tries again";
        assert_eq!(back.told(&approval).as_deref(), Some(told));
        assert_eq!(answer(json!({"comments": [{}]})).told(&approval), None);
    }
}
