//! What can be answered to what is asked, and what a line means as an answer.
//!
//! Only words: nothing is asked and nothing is answered here. Questions have their forms.

use runyard_domain::gate::{Request, rule_for};
use runyard_surfaces::cli::one_line;
use serde_json::Value;

/// What a line means as an answer.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    /// Yes or no.
    Decided { approve: bool, scope: &'static str, answer: Option<Value> },
    /// Something that takes more than a line.
    Wishes(Wish),
    /// Not now, and not here.
    Later,
    /// What the answers mean.
    Help,
}

/// What the person wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Apply all changes.
    All,
    /// Choose among them.
    Choose,
    /// Look at all of them.
    Look,
    /// Say what is wrong with them.
    SendBack,
    /// Allow it in this scope, beyond the run.
    Always(&'static str),
}

/// What an answer can be, where it is about no question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// Something that the agent wants to do, and how far a yes can reach.
    Deed(Reach),
    /// What was applied is taken back; looked at each time anew.
    Undo,
    /// Changes; looked at each time anew.
    Changes { source: Source },
}

impl About {
    /// What an approval is about, as it is asked.
    pub(super) fn of(asked: &Value, source: Source) -> Self {
        match asked["request"]["kind"].as_str() {
            Some("apply") if asked["request"]["undo"] == true => About::Undo,
            Some("apply") => About::Changes { source },
            _ => About::Deed(Reach::of(asked)),
        }
    }
}

/// How far a yes can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Not beyond the one request.
    Once,
    /// As far as the run.
    Run,
    /// Beyond it: there is a rule that says exactly this.
    Rule,
}

impl Reach {
    fn of(asked: &Value) -> Self {
        if asked["request"]["kind"] == "repeat" {
            return Reach::Once;
        }
        let request: Option<Request> = serde_json::from_value(asked["request"].clone()).ok();
        match request.filter(|_| asked["redacted"] != true).and_then(|request| rule_for(&request)) {
            Some(_) => Reach::Rule,
            None => Reach::Run,
        }
    }
}

/// Where changes come from, and so what else can be done about them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Source {
    /// The run's agent, which can try again.
    #[default]
    Agent,
    /// Another run.
    Carried,
    /// Another run, and what of it was chosen already.
    Chosen,
}

impl Source {
    /// By what the run carries.
    pub(super) fn of(carries: &Value) -> Self {
        match (carries.is_object(), carries["selection"].is_array()) {
            (_, true) => Source::Chosen,
            (true, false) => Source::Carried,
            (false, false) => Source::Agent,
        }
    }
}

/// What a line means as an answer, if it is one.
pub(super) fn said(about: About, text: &str) -> Option<Said> {
    let decided = |approve, scope, answer| Some(Said::Decided { approve, scope, answer });
    match (text.to_ascii_lowercase().as_str(), about) {
        ("n" | "no", _) => decided(false, "once", None),
        ("y" | "yes", About::Changes { source: Source::Agent | Source::Carried }) => {
            Some(Said::Wishes(Wish::All))
        }
        ("y" | "yes", _) => decided(true, "once", None),
        ("r" | "run", About::Deed(Reach::Run | Reach::Rule)) => decided(true, "run", None),
        ("s", About::Deed(Reach::Rule)) => Some(Said::Wishes(Wish::Always("session"))),
        ("p", About::Deed(Reach::Rule)) => Some(Said::Wishes(Wish::Always("project"))),
        ("c", About::Changes { source: Source::Agent | Source::Carried }) => Some(Said::Wishes(Wish::Choose)),
        ("s", About::Changes { source: Source::Agent }) => Some(Said::Wishes(Wish::SendBack)),
        ("d", About::Changes { .. }) => Some(Said::Wishes(Wish::Look)),
        ("l", About::Changes { .. }) => Some(Said::Later),
        ("?", About::Changes { .. }) => Some(Said::Help),
        _ => None,
    }
}

/// What is said to a line that is no answer.
pub(super) fn hint(about: About) -> &'static str {
    match about {
        About::Changes { .. } => "That is no answer; ? says which there are.",
        About::Undo | About::Deed(Reach::Once) => "Answer with y or n.",
        About::Deed(Reach::Rule) => "Answer with y, r, s, p or n.",
        About::Deed(Reach::Run) => "Answer with y, r or n.",
    }
}

/// What the answers about changes mean.
pub(super) fn help(about: About) -> Vec<&'static str> {
    let About::Changes { source } = about else { return Vec::new() };
    let mut lines = vec!["y  apply all of it; protected files are asked about one by one"];
    if source != Source::Chosen {
        lines.push("c  choose file by file and hunk by hunk");
    }
    lines.push("d  look at all of it, page by page");
    if source == Source::Agent {
        lines.push("s  say what is wrong: the agent tries again, or the run ends with it");
    }
    lines.push("l  later: it stays open, and \"runyard apply\" asks again");
    lines.push("n  reject it; the run ends, and what it changed stays in its own copy");
    lines
}

/// The question, by verb, object and scope.
pub(super) fn question(request: &Value, workspace: &str, about: About) -> String {
    let text = |name: &str| one_line(request[name].as_str().unwrap_or_default());
    let verb = match request["kind"].as_str().unwrap_or_default() {
        "shell" => "Run this command".to_owned(),
        "write" => format!("Write {}", text("path")),
        "patch" => "Apply this patch".to_owned(),
        "network" => format!("Connect to {}", text("host")),
        "git_commit" => "Make this commit".to_owned(),
        "git_push" => format!("Push to {} {}", text("remote"), text("branch")),
        "publish" => format!("Publish {}", text("target")),
        "deploy" => format!("Deploy {}", text("target")),
        "action" => format!("Call the action {}", text("action")),
        "repeat" => format!("Repeat the step \"{}\"", text("step")),
        "apply" if request["undo"] == true => {
            let workspace = one_line(workspace);
            let what = match (request["to"].as_str(), request["to"]["branch"].as_str()) {
                (Some("commit"), _) => "Take this and its commit back from your files".to_owned(),
                (_, Some(branch)) => {
                    format!("Delete the branch {} again, which holds this,", one_line(branch))
                }
                _ => "Take this back from your files".to_owned(),
            };
            return format!("{what} in \"{workspace}\"? [y] take back  [n] reject > ");
        }
        "apply" => {
            let to = match &request["to"] {
                Value::String(to) if to == "commit" => "your files and a commit",
                Value::Object(_) => "a new branch",
                _ => "your files",
            };
            let workspace = one_line(workspace);
            let more = match about {
                About::Changes { source: Source::Carried } => "[c] choose  [d] diff",
                About::Changes { source: Source::Chosen } => "[d] diff",
                _ => "[c] choose  [d] diff  [s] send back",
            };
            return format!(
                "Apply these changes to {to} in \"{workspace}\"? [y] apply all  {more}  [l] later  [?] help  [n] reject > "
            );
        }
        other => format!("Allow this {}", one_line(other)),
    };
    let reach = match about {
        About::Deed(Reach::Once) => "",
        About::Deed(Reach::Rule) => {
            "[r] whenever it comes in this run  [s] in this session  [p] in this project  "
        }
        _ => "[r] whenever it comes in this run  ",
    };
    format!("{verb} in \"{}\"? [y] once  {reach}[n] reject > ", one_line(workspace))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CHANGES: About = About::Changes { source: Source::Agent };

    fn decided(approve: bool, scope: &'static str, answer: Option<Value>) -> Option<Said> {
        Some(Said::Decided { approve, scope, answer })
    }

    #[test]
    fn c12_only_a_clear_answer_is_one() {
        #[track_caller]
        fn check(about: About, text: &str, expected: Option<Said>) {
            assert_eq!(said(about, text), expected, "{text:?}");
        }
        let deed = About::Deed(Reach::Run);
        check(deed, "y", decided(true, "once", None));
        check(deed, "YES", decided(true, "once", None));
        check(deed, "r", decided(true, "run", None));
        check(deed, "n", decided(false, "once", None));
        for unclear in ["", "ok", "yy", "continue", "c", "l", "s", "p", "?"] {
            check(deed, unclear, None);
        }
        check(About::Deed(Reach::Once), "r", None);
        check(About::Deed(Reach::Rule), "s", Some(Said::Wishes(Wish::Always("session"))));
        check(About::Deed(Reach::Rule), "p", Some(Said::Wishes(Wish::Always("project"))));
    }

    #[test]
    fn c22_changes_are_applied_chosen_looked_at_sent_back_left_or_rejected() {
        for (text, wish) in [("y", Wish::All), ("c", Wish::Choose), ("d", Wish::Look), ("s", Wish::SendBack)]
        {
            assert_eq!(said(CHANGES, text), Some(Said::Wishes(wish)), "{text}");
        }
        assert_eq!(said(CHANGES, "l"), Some(Said::Later));
        assert_eq!(said(CHANGES, "n"), decided(false, "once", None));
        for unclear in ["", "r", "run", "a", "q"] {
            assert_eq!(said(CHANGES, unclear), None, "{unclear}");
        }
        // Where another run's changes are carried there is no agent to try again, and nothing to choose where that was done.
        assert_eq!(said(About::Changes { source: Source::Carried }, "s"), None);
        assert_eq!(said(About::Changes { source: Source::Chosen }, "c"), None);
        assert_eq!(said(About::Undo, "c"), None);
    }

    #[test]
    fn c12_a_question_names_verb_object_and_scope() {
        #[track_caller]
        fn check(asked: Value, expected: &str) {
            let about = About::of(&asked, Source::Agent);
            assert_eq!(question(&asked["request"], "site", about), expected);
        }
        check(
            json!({"request": {"kind": "write", "path": "a\n.md"}}),
            "Write a\\n.md in \"site\"? [y] once  [r] whenever it comes in this run  [n] reject > ",
        );
        let shell = json!({"kind": "shell", "command": "make", "cwd": "."});
        check(
            json!({"request": shell}),
            "Run this command in \"site\"? [y] once  [r] whenever it comes in this run  [s] in this session  \
             [p] in this project  [n] reject > ",
        );
        // No rule can say what is hidden.
        check(
            json!({"request": shell, "redacted": true}),
            "Run this command in \"site\"? [y] once  [r] whenever it comes in this run  [n] reject > ",
        );
        check(
            json!({"request": {"kind": "repeat", "step": "npm publish"}}),
            "Repeat the step \"npm publish\" in \"site\"? [y] once  [n] reject > ",
        );
    }
}
