//! `runyard chat`: a conversation with an agent, a turn for each message, in one run that is kept open.
//!
//! A run that has ended meanwhile is no end of the conversation: the next message begins another run that goes on from it.

use std::io::IsTerminal;

use clap::{Arg, ArgMatches, Command};
use runyard::{ActionError, Code};
use runyard_surfaces::cli::{ExtraCommand, ExtraRun, Interrupts};
use serde_json::{Value, json};

use super::follow::{Applying, Following, LEFT, Outcome, exit_code, said};
use super::typed::can_ask;
use super::untrusted::say_what_does_not_count;
use super::{Shown, create_from, data, flag, flags, input};
use crate::approvals::milliseconds;
use crate::elsewhere::fresh_key;
use crate::home::Home;
use crate::hub_client::HubClient;
use crate::hub_here::{AnyHub, Stay};

/// How long a run stays open for the next message where nothing else is said.
const KEEP_OPEN_MS: u64 = 30 * 60 * 1000;
/// How many hubs, one after the other, are told the same message.
const HUBS_MAX: usize = 20;
/// What stands before a message.
const PROMPT: &str = "you> ";
const HELP: [&str; 5] = [
    "A line is a message to the agent; an empty one is none.",
    "/help   shows this",
    "/quit   ends the conversation, as Ctrl-D does, and Ctrl-C where you are asked for a message",
    "Ctrl-C while the agent works interrupts its turn; a second one cancels the run.",
    "At the end the run is let end, and you are asked what becomes of what it changed.",
];

pub(crate) fn command(home: Home) -> ExtraCommand {
    let command = Command::new("chat")
        .about("Talk with an agent, message by message, in one conversation")
        .after_help(
            "On a terminal each line that you type is a message, and what needs an approval is asked here. Elsewhere each line \
             of standard input is one; the events are printed as lines of JSON, with --output text only what the agent says, and \
             the end of the input ends the conversation.\n\n\
             The run stays open between messages. Where it has ended, the next message goes on from it in a new run.\n\n\
             Exit codes: those of \"runyard run\", for the last run.",
        )
        .arg(Arg::new("text").value_name("TEXT").help("The first message; asked for without"))
        .args(flags())
        .arg(
            flag("keep-open", "TIME", "How long it waits for the next message: 90s, 10m, 2h; 30m without")
                .value_parser(milliseconds),
        );
    let run = move |matches: ArgMatches| Box::pin(chat(home, matches)) as ExtraRun;
    ExtraCommand { command, run: Box::new(run) }
}

async fn chat(home: Home, matches: ArgMatches) -> Result<u8, ActionError> {
    let mut shown = Shown::asked_for(&matches);
    if shown == Shown::Text && !std::io::stdout().is_terminal() {
        shown = Shown::Words;
    }
    let interrupts = Interrupts::listen();
    say_what_does_not_count(&home, &matches, shown);
    let mut hub = AnyHub::get(&home, Stay::WithCommand).await?;
    let outcome = {
        let following = Following::new(&home, &mut hub, shown, Applying::Asked, &interrupts);
        let chat = Chat {
            matches: &matches,
            first: matches.get_one::<String>("text").cloned(),
            shown,
            interrupts,
            following,
            wanted: Value::Null,
            stands: Stands::NoRun,
        };
        chat.talk().await
    };
    hub.stop().await;
    outcome
}

/// Where the run of a conversation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    /// There is none yet.
    NoRun,
    /// It takes messages.
    Open,
    /// It is at its end, which stands for this exit code.
    Ended(u8),
}

struct Chat<'a> {
    matches: &'a ArgMatches,
    /// What the command line says first.
    first: Option<String>,
    shown: Shown,
    interrupts: Interrupts,
    following: Following<'a>,
    /// What a run of the conversation is made of, all but its task.
    wanted: Value,
    stands: Stands,
}

impl Chat<'_> {
    async fn talk(mut self) -> Result<u8, ActionError> {
        self.prepare().await?;
        if self.first.is_none() && can_ask() {
            self.following.screen.say("Say something to the agent; /help lists what else there is.");
        }
        while let Some(text) = self.message().await {
            let outcome = match self.exchange(text).await {
                Ok(Some(outcome)) => outcome,
                Ok(None) => continue,
                Err(error) => {
                    // Nobody says anything more to it, so it need not wait for that.
                    if self.stands == Stands::Open {
                        let (Ok(()) | Err(_)) = self.tell("finish", None).await;
                    }
                    return Err(error);
                }
            };
            match outcome {
                Outcome::TurnOver => {}
                Outcome::Ended(end) => self.ended(&end),
                Outcome::Left => return Ok(LEFT),
            }
            // Whoever cancelled the run, or ended this command, has ended the conversation.
            if self.following.cancelled || self.interrupts.terminated() {
                break;
            }
        }
        self.end().await
    }

    /// One message, and what comes of it; nothing where it was not taken.
    async fn exchange(&mut self, text: String) -> Result<Option<Outcome>, ActionError> {
        match self.give(text).await? {
            true => self.following.turn().await.map(Some),
            false => Ok(None),
        }
    }

    /// What runs of this conversation are made of, and the run to go on with where it still takes messages.
    async fn prepare(&mut self) -> Result<(), ActionError> {
        let keep_open_ms = self.matches.get_one::<u64>("keep-open").copied().unwrap_or(KEEP_OPEN_MS);
        self.wanted = input(self.following.client(), self.matches).await?;
        self.wanted["executionPolicy"]["keepOpenMs"] = keep_open_ms.into();
        check_agent(self.following.client(), &self.wanted).await?;
        if let Some(before) = self.matches.get_one::<String>("continue") {
            let run = self.following.call("run_show", json!({ "id": before })).await?;
            if run["run"]["keptOpenUntil"].is_string() {
                self.following.go_on(&run);
                self.stands = Stands::Open;
            }
        }
        Ok(())
    }

    /// The next message; nothing when the conversation is over.
    async fn message(&mut self) -> Option<String> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        self.following.asking.begin_message();
        loop {
            if can_ask() {
                self.following.screen.ask(PROMPT);
            }
            let next_interrupt = self.interrupts.next();
            let line = tokio::select! {
                line = self.following.asking.keyboard.line() => line,
                () = next_interrupt.cancelled() => {
                    self.interrupts.take_in();
                    None
                }
            };
            let Some(line) = line else {
                self.following.screen.withdrawn();
                return None;
            };
            self.following.screen.answered();
            match line.trim() {
                "" => {}
                "/quit" if can_ask() => return None,
                "/help" if can_ask() => HELP.iter().for_each(|line| self.following.screen.say(line)),
                text => return Some(text.to_owned()),
            }
        }
    }

    /// Gives the agent a message: as a further turn, or as the task of a run that goes on from the last. Says whether it was taken.
    async fn give(&mut self, text: String) -> Result<bool, ActionError> {
        if self.stands == Stands::Open {
            match self.tell("turn", Some(&text)).await {
                Ok(()) => return Ok(true),
                Err(error) => self.not_taken(error).await?,
            }
        }
        match self.stands {
            Stands::Open => return Ok(false),
            Stands::NoRun => {}
            Stands::Ended(_) => {
                self.wanted["continues"] = self.following.run.clone().into();
                self.following.screen.say("The last run has ended: the conversation goes on in a new one.");
            }
        }
        self.wanted["task"] = text.into();
        let made = self.make().await?;
        self.following.begin(&made);
        // The next one works in the same place, however this one was named.
        self.wanted["workspace"] = made["run"]["workspace"]["id"].clone();
        self.stands = Stands::Open;
        Ok(true)
    }

    /// Makes a run, once, whatever becomes of the hub meanwhile.
    async fn make(&mut self) -> Result<Value, ActionError> {
        let key = fresh_key();
        for _ in 0..HUBS_MAX {
            let (client, wanted) = (self.following.client(), self.wanted.clone());
            let made =
                create_from(client, wanted, Some(&key), self.matches, self.shown, &self.interrupts).await;
            match made {
                Err(error) if *error.code() == Code::ExternalServiceError => {
                    self.following.wait_for_the_hub().await?;
                }
                made => return made,
            }
        }
        Err(no_hub())
    }

    /// A message was not taken: the run has ended, or it is said why.
    async fn not_taken(&mut self, error: ActionError) -> Result<(), ActionError> {
        if *error.code() != Code::Conflict {
            return Err(error);
        }
        let run = self.following.call("run_show", json!({ "id": self.following.run })).await?;
        let ended = run["run"]["state"].as_str();
        if matches!(ended, Some("completed" | "failed" | "cancelled")) {
            // How it went to its end is shown before it is gone on from.
            if let Outcome::Ended(end) = self.following.turn().await? {
                self.ended(&end);
            }
            return Ok(());
        }
        let next = "say it again in a moment, or end this conversation and go on with \"runyard chat --continue\" when the run has ended";
        let message = format!("{} The message was not taken: {next}.", error.message());
        if !can_ask() {
            return Err(ActionError::new(Code::Conflict, message));
        }
        self.following.screen.say(&message);
        Ok(())
    }

    fn ended(&mut self, end: &Value) {
        self.following.show_end(end);
        self.stands = Stands::Ended(exit_code(end));
    }

    /// Tells the run something, once, whatever becomes of the hub meanwhile.
    async fn tell(&mut self, kind: &str, text: Option<&str>) -> Result<(), ActionError> {
        let mut command = json!({ "id": self.following.run, "kind": kind });
        if let Some(text) = text {
            command["text"] = text.into();
        }
        let key = fresh_key();
        for _ in 0..HUBS_MAX {
            let client = self.following.client();
            match client.invoke("run_command", command.clone(), true, Some(&key)).await.and_then(data) {
                Err(error) if *error.code() == Code::ExternalServiceError => {
                    self.following.wait_for_the_hub().await?;
                }
                told => {
                    if told?["redacted"] == true {
                        let redacted =
                            "The message held something secret; it is given as it is stored, without it.";
                        self.following.screen.say(redacted);
                    }
                    return Ok(());
                }
            }
        }
        Err(no_hub())
    }

    /// Lets the run end and follows it there, with what is to be decided about its changes.
    async fn end(mut self) -> Result<u8, ActionError> {
        match self.stands {
            Stands::NoRun => return Ok(0),
            Stands::Ended(exit) => {
                self.following.show_json().await?;
                return Ok(exit);
            }
            Stands::Open => {}
        }
        match self.tell("finish", None).await {
            Ok(()) => {}
            // It is on its way to its end already, or there.
            Err(error) if *error.code() == Code::Conflict => {}
            Err(error) => {
                self.following.screen.say(&format!("Not let end: {}", said(&error)));
                return Err(error);
            }
        }
        self.following.finish().await
    }
}

fn no_hub() -> ActionError {
    ActionError::new(Code::ExternalServiceError, "Every hub that was found ended at once.")
}

/// Whether the agent takes messages at all.
async fn check_agent(client: &HubClient, wanted: &Value) -> Result<(), ActionError> {
    let profile = match wanted["backendProfile"].as_str() {
        Some(profile) => profile.to_owned(),
        None => {
            let listed = data(client.invoke("agent_list", json!({}), false, None).await?)?;
            let agents = listed["agents"].as_array().cloned().unwrap_or_default();
            let agent = agents.into_iter().find(|agent| agent["id"] == wanted["agent"]);
            // That there is no such agent is said when the run is made.
            let Some(agent) = agent else { return Ok(()) };
            agent["backendProfile"].as_str().unwrap_or_default().to_owned()
        }
    };
    let shown = client.invoke("backend_show", json!({ "profile": profile }), false, None).await?;
    let kind = data(shown).map(|shown| shown["backend"]["backendKind"].clone()).unwrap_or_default();
    if kind != "action" {
        return Ok(());
    }
    let agent = wanted["agent"].as_str().unwrap_or_default();
    let message = format!(
        "The agent \"{agent}\" runs single actions and takes no messages. \"runyard agents list\" shows the others, and \
         \"runyard call\" calls an action."
    );
    Err(ActionError::new(Code::ValidationError, message))
}
