//! What takes more than a line at the terminal: looking at changes, choosing among them, saying what is wrong with them; and what
//! a yes would allow that reaches beyond its run.
//!
//! It only finds out what the person wants; whoever called answers with it. What is chosen is chosen from the diff with the digest
//! that is asked about, and from no other.

use runyard::ActionError;
use runyard_surfaces::cli::one_line;
use rustix::termios::tcgetwinsize;
use serde_json::{Value, json};

use super::answers::Wish;
use super::lasting;
use super::show::Screen;
use super::typed::{Keyboard, is_yes};
use crate::changes::part::{self, COMMENT_CHARS_MAX, Part};
use crate::hub_client::HubClient;
use crate::patches::{Body, Changes};

/// How many comments go with one answer.
const COMMENTS_MAX: usize = 100;
/// A terminal whose size is unknown has so many rows and columns.
const ROWS_AND_COLUMNS: (usize, usize) = (24, 80);

/// What came of it.
pub(super) enum Verdict {
    /// All of it but what is protected, or this part.
    Approve { selection: Option<Value> },
    /// Also beyond its run.
    Always { scope: &'static str },
    /// Not like this.
    Reject { reason: Option<String>, comments: Vec<Value>, revise: bool },
    /// Nothing yet.
    Undecided,
}

/// Where the person looks and types.
pub(super) struct Desk<'a> {
    pub(super) client: &'a HubClient,
    pub(super) run: &'a str,
    pub(super) screen: &'a mut Screen,
    pub(super) keyboard: &'a mut Keyboard,
}

/// An answer about one piece of the changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Yes,
    No,
    /// This and whatever else there is in the file.
    AllOfFile,
    /// Neither this nor anything else in the file.
    NoneOfFile,
    /// Neither this nor anything after it.
    Quit,
}

const KEYS: &str = "[y,n,a,d,q,?]";
const KEYS_HELP: [&str; 5] = [
    "y  take this",
    "n  do not take this",
    "a  take this and the rest of the file",
    "d  take neither this nor the rest of the file",
    "q  take neither this nor anything after it",
];

fn key(text: &str) -> Option<Key> {
    Some(match text.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Key::Yes,
        "n" | "no" => Key::No,
        "a" => Key::AllOfFile,
        "d" => Key::NoneOfFile,
        "q" => Key::Quit,
        _ => return None,
    })
}

impl Desk<'_> {
    /// Does what the person wishes with what is asked, as it has this digest.
    pub(super) async fn verdict(
        &mut self,
        approval: &str,
        digest: &str,
        wish: Wish,
    ) -> Result<Verdict, ActionError> {
        if let Wish::Always(scope) = wish {
            return self.always(approval, scope).await;
        }
        let changes = Changes::of(self.client, self.run).await?.with_digest(digest)?;
        match wish {
            Wish::All => self.all(&changes).await,
            Wish::Choose => self.choose(&changes).await,
            Wish::SendBack => self.send_back(&changes).await,
            Wish::Look | Wish::Always(_) => self.look(&changes).await.map(|()| Verdict::Undecided),
        }
    }

    /// Shows what else a rule would allow before it is meant.
    async fn always(&mut self, approval: &str, scope: &'static str) -> Result<Verdict, ActionError> {
        let shown = lasting::shown(self.client, approval, scope).await?;
        self.screen.changes(&shown);
        let line = self.ask("Approve it, and add this rule? [y] approve and add  [n] not yet > ").await;
        Ok(match is_yes(line.as_deref()) {
            true => Verdict::Always { scope },
            false => Verdict::Undecided,
        })
    }

    /// Asks and reads a line. What was typed before the question was shown does not answer it.
    async fn ask(&mut self, question: &str) -> Option<String> {
        self.keyboard.forget();
        self.read(question).await
    }

    async fn read(&mut self, question: &str) -> Option<String> {
        self.screen.ask(question);
        let line = self.keyboard.line().await;
        self.screen.answered();
        line
    }

    async fn ask_key(&mut self, question: &str) -> Key {
        loop {
            // The end of standard input takes nothing.
            let Some(text) = self.ask(&format!("{question} {KEYS} > ")).await else { return Key::Quit };
            match key(&text) {
                Some(key) => return key,
                None => KEYS_HELP.iter().for_each(|line| self.screen.say(line)),
            }
        }
    }

    /// All but what is protected, and of that what is taken by name.
    async fn all(&mut self, changes: &Changes) -> Result<Verdict, ActionError> {
        let (protected, plain): (Vec<&Value>, Vec<&Value>) =
            changes.files().iter().partition(|file| file["protected"] == true);
        let everything = Verdict::Approve { selection: None };
        if protected.is_empty() {
            return Ok(everything);
        }
        if changes.is_cut() {
            self.screen.say("Protected files are left out; name them later with \"runyard apply --file\".");
            return Ok(everything);
        }
        let mut part = Part::default();
        for (at, file) in protected.iter().enumerate() {
            match self.take_from(changes, file, (at + 1, protected.len()), &mut part).await? {
                Goes::On => {}
                Goes::Off => {
                    self.screen.say("Nothing is applied yet.");
                    return Ok(Verdict::Undecided);
                }
            }
        }
        if part.is_empty() && !plain.is_empty() {
            return Ok(everything);
        }
        plain.into_iter().for_each(|file| part.add(file));
        self.meant(changes, &part).await
    }

    /// File by file and hunk by hunk.
    async fn choose(&mut self, changes: &Changes) -> Result<Verdict, ActionError> {
        let mut part = Part::default();
        let many = changes.files().len();
        for (at, file) in changes.files().iter().enumerate() {
            match self.take_from(changes, file, (at + 1, many), &mut part).await? {
                Goes::On => {}
                Goes::Off => break,
            }
        }
        self.meant(changes, &part).await
    }

    /// Whether what is chosen is meant.
    async fn meant(&mut self, changes: &Changes, part: &Part) -> Result<Verdict, ActionError> {
        if part.is_empty() {
            self.screen.say("Nothing is chosen.");
            return Ok(Verdict::Undecided);
        }
        self.screen.say(&format!("Chosen: {}", part.words(&changes.found)));
        let line = self.ask("Apply exactly this? [y] apply  [n] not yet > ").await;
        Ok(match is_yes(line.as_deref()) {
            true => Verdict::Approve { selection: Some(part.selection()) },
            false => Verdict::Undecided,
        })
    }

    /// Asks about a file, hunk by hunk where it has several.
    async fn take_from(
        &mut self,
        changes: &Changes,
        file: &Value,
        (at, many): (usize, usize),
        part: &mut Part,
    ) -> Result<Goes, ActionError> {
        let Body { head, hunks, tail } = changes.body(self.client, file).await?;
        let path = one_line(file["path"].as_str().unwrap_or_default());
        let name = match file["protected"] == true {
            true => format!("({at}/{many}) {path} configures who may do what; take it?"),
            false => format!("({at}/{many}) {path}: take it?"),
        };
        self.screen.changes(&head);
        let there = file["hunks"].as_u64().unwrap_or_default();
        if there <= 1 {
            hunks.iter().for_each(|(_, lines)| self.screen.changes(lines));
            self.screen.changes(&tail);
            let key = self.ask_key(&name).await;
            if matches!(key, Key::Yes | Key::AllOfFile) {
                part.add(file);
            }
            return Ok(Goes::after(key));
        }
        let shown = hunks.len();
        let (mut taken, mut last, mut rest) = (Vec::new(), Key::Yes, None);
        for (number, lines) in hunks {
            let key = match rest {
                Some(rest) => rest,
                None => {
                    self.screen.changes(&lines);
                    self.ask_key(&format!("({at}/{many}) {path}, hunk {number} of {there}: take it?")).await
                }
            };
            match key {
                Key::Yes => taken.push(number),
                Key::AllOfFile => {
                    taken.push(number);
                    rest = Some(Key::Yes);
                }
                Key::No => {}
                Key::NoneOfFile | Key::Quit => rest = Some(Key::No),
            }
            if key == Key::Quit {
                last = key;
            }
        }
        if shown as u64 != there {
            self.screen.changes(&tail);
            self.screen.say("What is not shown is not taken; \"runyard apply --hunk\" takes it by number.");
        }
        match taken.len() as u64 == there {
            true => part.add(file),
            false if taken.is_empty() => {}
            false => part.add_hunks(file, &taken)?,
        }
        Ok(Goes::after(last))
    }

    /// All of it, page by page.
    async fn look(&mut self, changes: &Changes) -> Result<(), ActionError> {
        let (rows, columns) = size();
        let mut left = rows;
        for file in changes.files() {
            for line in changes.body(self.client, file).await?.lines() {
                let height = 1 + line.chars().count() / columns;
                if left < height {
                    let answer = self.ask("[Enter] more  [q] enough > ").await;
                    if answer.is_none_or(|answer| answer.trim().eq_ignore_ascii_case("q")) {
                        return Ok(());
                    }
                    left = rows;
                }
                left = left.saturating_sub(height);
                self.screen.changes(&[line]);
            }
        }
        self.screen.changes(&changes.end());
        Ok(())
    }

    /// What is wrong with them, line by line and in general.
    async fn send_back(&mut self, changes: &Changes) -> Result<Verdict, ActionError> {
        let mut comments = Vec::new();
        self.keyboard.forget();
        while comments.len() < COMMENTS_MAX {
            // Several may be pasted at once: they grant nothing, so they are not forgotten in between.
            let line = self.read("Comment, as FILE:LINE: TEXT or FILE: TEXT (empty when done) > ").await;
            let Some(line) = line else { return Ok(Verdict::Undecided) };
            if line.trim().is_empty() {
                break;
            }
            match part::comment(&changes.found, line.trim()) {
                Ok(comment) => comments.push(comment),
                Err(error) => self.screen.say(error.message()),
            }
        }
        let reason = loop {
            let Some(line) = self.ask("What should be different, in general (may be empty) > ").await else {
                return Ok(Verdict::Undecided);
            };
            let reason = line.trim().to_owned();
            if reason.chars().count() <= COMMENT_CHARS_MAX {
                break Some(reason).filter(|reason| !reason.is_empty());
            }
            self.screen.say(&format!("Expected at most {COMMENT_CHARS_MAX} characters."));
        };
        if comments.is_empty() && reason.is_none() {
            self.screen.say("Nothing was said, so nothing is sent.");
            return Ok(Verdict::Undecided);
        }
        loop {
            let question =
                "Send this? [y] the agent tries again  [e] reject, and the run ends  [n] not yet > ";
            let line = self.ask(question).await.unwrap_or_else(|| "n".to_owned());
            let revise = match line.trim().to_ascii_lowercase().as_str() {
                "y" | "yes" => true,
                "e" => false,
                "n" | "no" => return Ok(Verdict::Undecided),
                _ => continue,
            };
            return Ok(Verdict::Reject { reason, comments, revise });
        }
    }
}

/// Whether there is more to ask about.
enum Goes {
    On,
    Off,
}

impl Goes {
    fn after(key: Key) -> Self {
        if key == Key::Quit { Goes::Off } else { Goes::On }
    }
}

/// The answer to an approval that a verdict is.
pub(super) fn answer(approval: &str, digest: &str, verdict: Verdict) -> Option<Value> {
    let mut input = json!({"id": approval, "digest": digest});
    match verdict {
        Verdict::Undecided => return None,
        Verdict::Always { scope } => {
            input["decision"] = "approve".into();
            input["scope"] = scope.into();
        }
        Verdict::Approve { selection } => {
            input["decision"] = "approve".into();
            if let Some(selection) = selection {
                input["selection"] = selection;
            }
        }
        Verdict::Reject { reason, comments, revise } => {
            input["decision"] = "reject".into();
            input["comments"] = comments.into();
            input["revise"] = revise.into();
            if let Some(reason) = reason {
                input["reason"] = reason.into();
            }
        }
    }
    Some(input)
}

/// How many rows of a page there are on the terminal, and how wide it is. One row is for the question.
fn size() -> (usize, usize) {
    let (rows, columns) = match tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_row > 1 && size.ws_col > 0 => (size.ws_row.into(), size.ws_col.into()),
        _ => ROWS_AND_COLUMNS,
    };
    (rows - 1, columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c22_only_a_key_that_is_one_takes_something() {
        for (text, expected) in [
            ("y", Some(Key::Yes)),
            ("N", Some(Key::No)),
            ("a", Some(Key::AllOfFile)),
            ("d", Some(Key::NoneOfFile)),
            (" q\n", Some(Key::Quit)),
            ("", None),
            ("s", None),
            ("?", None),
            ("ya", None),
        ] {
            assert_eq!(key(text), expected, "{text:?}");
        }
    }

    #[test]
    fn c22_an_answer_is_bound_to_what_was_shown() {
        let selection = json!([{"file": "f1", "hunks": [2]}]);
        let approved = Verdict::Approve { selection: Some(selection.clone()) };
        assert_eq!(
            answer("apr_1", "abc", approved),
            Some(json!({"id": "apr_1", "digest": "abc", "decision": "approve", "selection": selection}))
        );
        let comments = vec![json!({"file": "f1", "text": "x"})];
        let rejected = Verdict::Reject { reason: None, comments: comments.clone(), revise: true };
        let input = answer("apr_1", "abc", rejected).unwrap();
        assert_eq!(input["digest"], "abc");
        assert_eq!((&input["decision"], &input["revise"]), (&json!("reject"), &json!(true)));
        assert_eq!(answer("apr_1", "abc", Verdict::Undecided), None);
    }
}
