//! A run's changes on a terminal: file by file, with the numbers by which hunks are chosen.

use std::collections::BTreeSet;
use std::io::Write;

use runyard::{ActionError, Code};
use runyard_surfaces::cli::{one_line, printable, styled};
use serde_json::{Value, json};

use crate::changes::part::{self, Part};
use crate::hub_client::HubClient;
use crate::run::data;

/// How many lines are shown of a diff that is part of something else.
pub(crate) const LINES_SHOWN: usize = 200;
/// How many files of a diff are looked through at most.
const FILES_MAX: usize = 50_000;
/// How many files are asked for at a time.
const PAGE: usize = 500;
/// The mode of a symbolic link, as git writes it.
const LINK: &str = "120000";
/// The mode of a submodule.
const SUBMODULE: &str = "160000";

/// What a run changed, as far as it is asked about.
pub(crate) struct Changes {
    run: String,
    /// The diff in short, and its files.
    pub(crate) found: Value,
    /// Whether the run carries changes of another: it has no agent that could try again.
    pub(crate) carried: bool,
    /// Only this much of them.
    pub(crate) part: Option<Part>,
}

impl Changes {
    /// All files that a run changed; of one that carries a part of another's changes, the files of that part.
    pub(crate) async fn of(client: &HubClient, run: &str) -> Result<Self, ActionError> {
        let found = whole(client, run).await?;
        Changes::found(client, run, found).await
    }

    /// The same, with no more files than are shown along with something else.
    pub(crate) async fn beginning(client: &HubClient, run: &str) -> Result<Self, ActionError> {
        let found = page(client, run, 0).await?;
        Changes::found(client, run, found).await
    }

    async fn found(client: &HubClient, run: &str, found: Value) -> Result<Self, ActionError> {
        let carries = carries(client, run).await?;
        let changes = Changes { run: run.to_owned(), found, carried: !carries.is_null(), part: None };
        Ok(match Part::of(&carries["selection"]) {
            Some(part) => changes.only(part),
            None => changes,
        })
    }

    /// Only a part of them.
    #[must_use]
    pub(crate) fn only(mut self, part: Part) -> Self {
        if let Some(files) = self.found["files"].as_array_mut() {
            files.retain(|file| part.touches(file));
        }
        Changes { part: Some(part), ..self }
    }

    /// The same, if it is what somebody looked at.
    pub(crate) fn with_digest(self, digest: &str) -> Result<Self, ActionError> {
        if self.found["diff"]["digest"] == digest {
            return Ok(self);
        }
        let message = "The run's changes are not those that are asked about any more; look at them again.";
        Err(ActionError::new(Code::Conflict, message))
    }

    pub(crate) fn files(&self) -> &[Value] {
        part::files(&self.found)
    }

    /// Whether there are more files than are looked through.
    pub(crate) fn is_cut(&self) -> bool {
        !self.found["next"].is_null()
    }

    /// What changed in one file, on the terminal.
    pub(crate) async fn body(&self, client: &HubClient, file: &Value) -> Result<Body, ActionError> {
        let mut body = Body { head: vec![paint("1", &headline(file))], hunks: Vec::new(), tail: Vec::new() };
        if file["content"] != "text" && !has_mode(file, LINK) {
            return Ok(body);
        }
        let input = json!({"id": self.run, "file": file["id"]});
        let found = data(client.invoke("run_diff_file", input, true, None).await?)?;
        if file["content"] != "text" {
            body.hunks.push((1, link_lines(file, &found["hunks"])));
            return Ok(body);
        }
        let unended = unended(found["patch"].as_str().unwrap_or_default());
        let many = file["hunks"].as_u64().is_some_and(|hunks| hunks > 1);
        for hunk in found["hunks"].as_array().into_iter().flatten() {
            let number = hunk["id"].as_u64().and_then(|id| u32::try_from(id).ok()).unwrap_or_default();
            if self.part.as_ref().is_none_or(|part| part.has(file, number)) {
                body.hunks.push((number, hunk_lines(hunk, many, &unended)));
            }
        }
        if let Some(omitted) = found["omitted"].as_u64().filter(|omitted| *omitted > 0) {
            body.tail.push(paint("33", &format!("… {omitted} more bytes are not shown")));
        }
        Ok(body)
    }

    /// All of it as lines, at most so many of its content.
    pub(crate) async fn lines(
        &self,
        client: &HubClient,
        lines_max: usize,
    ) -> Result<Vec<String>, ActionError> {
        let mut lines = Vec::new();
        let files = self.files();
        for (at, file) in files.iter().enumerate() {
            if lines.len() >= lines_max {
                let (run, more) = (&self.run, files.len() - at);
                lines.push(paint("2", &format!("… {more} more files: \"runyard diff {run}\" shows all")));
                break;
            }
            lines.extend(self.body(client, file).await?.lines());
        }
        lines.extend(self.end());
        Ok(lines)
    }

    /// What stands below the files.
    pub(crate) fn end(&self) -> Vec<String> {
        let next = self.found["next"].as_u64();
        let cut = next.map(|next| paint("33", &format!("… only the first {next} files are shown")));
        let summary = match &self.part {
            Some(part) => format!("only: {}", part.words(&self.found)),
            None => one_line(self.found["diff"]["summary"].as_str().unwrap_or_default()),
        };
        cut.into_iter().chain([paint("2", &summary)]).collect()
    }

    /// Writes it whole, where answers go.
    pub(crate) async fn print(&self, client: &HubClient) -> Result<(), ActionError> {
        let lines = self.lines(client, usize::MAX).await?;
        write(std::io::stdout().lock(), &lines);
        Ok(())
    }

    /// Writes it whole, where questions go.
    pub(crate) async fn show(&self, client: &HubClient) -> Result<(), ActionError> {
        let lines = self.lines(client, usize::MAX).await?;
        write(std::io::stderr().lock(), &lines);
        Ok(())
    }
}

/// A file's changes as lines.
pub(crate) struct Body {
    pub(crate) head: Vec<String>,
    /// The hunks by their number.
    pub(crate) hunks: Vec<(u32, Vec<String>)>,
    pub(crate) tail: Vec<String>,
}

impl Body {
    /// All of them.
    pub(crate) fn lines(self) -> impl Iterator<Item = String> {
        let hunks = self.hunks.into_iter().flat_map(|(_, lines)| lines);
        self.head.into_iter().chain(hunks).chain(self.tail)
    }
}

fn write(mut to: impl Write, lines: &[String]) {
    for line in lines {
        // Whoever reads it may have seen enough.
        if writeln!(to, "{line}").is_err() {
            break;
        }
    }
}

fn paint(style: &str, text: &str) -> String {
    match styled(&std::io::stdout()) {
        true => format!("\x1b[{style}m{text}\x1b[0m"),
        false => text.to_owned(),
    }
}

/// Where a text ends without a newline: the hunk's number, and which of its lines.
fn unended(patch: &str) -> BTreeSet<(u64, usize)> {
    let (mut hunk, mut lines, mut found) = (0, 0, BTreeSet::new());
    for line in patch.lines() {
        match line.bytes().next() {
            Some(b'@') => (hunk, lines) = (hunk + 1, 0),
            Some(b' ' | b'+' | b'-') => lines += 1,
            Some(b'\\') if lines > 0 => drop(found.insert((hunk, lines - 1))),
            _ => {}
        }
    }
    found
}

fn hunk_lines(hunk: &Value, many: bool, unended: &BTreeSet<(u64, usize)>) -> Vec<String> {
    let id = hunk["id"].as_u64().unwrap_or_default();
    let number = if many { format!("  hunk {}", hunk["id"]) } else { String::new() };
    let mut lines = vec![paint("36", &format!("@@ line {} @@{number}", hunk["newStart"]))];
    for (at, line) in hunk["lines"].as_array().into_iter().flatten().enumerate() {
        let text = printable(line["text"].as_str().unwrap_or_default());
        lines.push(match line["kind"].as_str() {
            Some("added") => paint("32", &format!("+{text}")),
            Some("removed") => paint("31", &format!("-{text}")),
            _ => format!(" {text}"),
        });
        if unended.contains(&(id, at)) {
            lines.push(paint("2", "\\ No newline at end of file"));
        }
    }
    lines
}

/// Whether it is or was of this mode.
fn has_mode(file: &Value, mode: &str) -> bool {
    file["oldMode"] == mode || file["newMode"] == mode
}

/// Where a link led and leads; on a side that is no link, the text of the file.
fn link_lines(file: &Value, hunks: &Value) -> Vec<String> {
    let of_all = |kind: &str| -> Vec<&str> {
        let hunks = hunks.as_array().into_iter().flatten();
        let lines = hunks.flat_map(|hunk| hunk["lines"].as_array().into_iter().flatten());
        lines.filter(|line| line["kind"] == kind).filter_map(|line| line["text"].as_str()).collect()
    };
    let mut shown = Vec::new();
    for (kind, mark, colour, mode) in [("removed", '-', "31", "oldMode"), ("added", '+', "32", "newMode")] {
        let lines = of_all(kind);
        if file[mode] != LINK {
            shown.extend(lines.iter().map(|line| paint(colour, &format!("{mark}{}", printable(line)))));
        } else if !lines.is_empty() {
            let target = lines.join("\n");
            let path = file[if kind == "removed" { "oldPath" } else { "path" }].as_str();
            let path = path.or(file["path"].as_str()).unwrap_or_default();
            let outside = if leads_out(path, &target) { " (points outside the workspace)" } else { "" };
            shown.push(paint(colour, &format!("{mark}symlink → {}{outside}", one_line(&target))));
        }
    }
    shown
}

/// Whether a link at this path leads out of the workspace, by its words alone. What is absolute does wherever it is applied.
fn leads_out(path: &str, target: &str) -> bool {
    if target.starts_with('/') {
        return true;
    }
    let mut depth = path.split('/').count() - 1;
    for step in target.split('/').filter(|step| !step.is_empty() && *step != ".") {
        match (step, depth) {
            ("..", 0) => return true,
            ("..", _) => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}

/// What the run carries of another's changes, as its first event says; nothing where it has an agent.
async fn carries(client: &HubClient, run: &str) -> Result<Value, ActionError> {
    let input = json!({"id": run, "limit": 1});
    let mut page = data(client.invoke("run_events", input, true, None).await?)?;
    Ok(page["events"][0]["payload"]["carries"].take())
}

/// The diff in short and all its files.
async fn whole(client: &HubClient, run: &str) -> Result<Value, ActionError> {
    let mut found = page(client, run, 0).await?;
    while let Some(next) = found["next"].as_u64().filter(|next| (*next as usize) < FILES_MAX) {
        let mut more = page(client, run, next).await?;
        if let (Some(files), Value::Array(more)) = (found["files"].as_array_mut(), more["files"].take()) {
            files.extend(more);
        }
        found["next"] = more["next"].take();
    }
    Ok(found)
}

async fn page(client: &HubClient, run: &str, after: u64) -> Result<Value, ActionError> {
    let input = json!({"id": run, "after": after, "limit": PAGE});
    data(client.invoke("run_diff", input, true, None).await?)
}

/// What happened to a file, in a line.
pub(crate) fn headline(file: &Value) -> String {
    let text = |name: &str| one_line(file[name].as_str().unwrap_or_default());
    let path = match file["oldPath"].is_string() {
        true => format!("{} → {}", text("oldPath"), text("path")),
        false => text("path"),
    };
    let mut headline = format!("{} {path}", text("change"));
    if let (Some(old), Some(new)) = (file["oldMode"].as_str(), file["newMode"].as_str())
        && old != new
    {
        headline.push_str(&format!(" (mode {old} → {new})"));
    }
    match file["content"].as_str() {
        Some("binary") if has_mode(file, LINK) => headline.push_str(" (symlink)"),
        Some("binary") if has_mode(file, SUBMODULE) => headline.push_str(" (submodule)"),
        Some("binary") => {
            headline.push_str(&format!(" (binary, {} → {} bytes)", file["oldBytes"], file["newBytes"]))
        }
        Some("too_large") => headline.push_str(&format!(" (too large to show, {} bytes)", file["newBytes"])),
        _ => headline.push_str(&format!(" +{} −{}", file["insertions"], file["deletions"])),
    }
    if file["protected"] == true {
        headline.push_str(" [protected: applied only if named]");
    }
    headline
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c22_a_link_is_shown_by_where_it_leads() {
        let line = |kind: &str, text: &str| json!({"kind": kind, "text": text});
        let mut file = json!({"path": "docs/pw", "change": "added", "content": "binary", "newMode": LINK, "newBytes": 11});
        assert_eq!(headline(&file), "added docs/pw (symlink)");
        let hunks = json!([{"id": 1, "lines": [line("added", "/etc/passwd")]}]);
        assert_eq!(link_lines(&file, &hunks), ["+symlink → /etc/passwd (points outside the workspace)"]);
        file["oldMode"] = "100644".into();
        let hunks = json!([{"lines": [line("removed", "a"), line("removed", "b")]}, {"lines": [line("added", "../a")]}]);
        assert_eq!(link_lines(&file, &hunks), ["-a", "-b", "+symlink → ../a"]);
    }

    #[test]
    fn c22_a_link_leads_out_where_it_is_absolute_or_climbs_out() {
        for (path, target, out) in [
            ("a", "b", false),
            ("a", "./b/../c", false),
            ("a", "..", true),
            ("a", "b/../../c", true),
            ("d/a", "../b", false),
            ("d/a", "../../b", true),
            ("d/a", "/etc", true),
        ] {
            assert_eq!(leads_out(path, target), out, "{path} → {target}");
        }
    }

    #[test]
    fn c22_a_newline_that_is_gone_is_seen() {
        let end = "\\ No newline at end of file";
        let patch = format!("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-bare\n+bare\n{end}\n");
        let hunk = json!({"id": 1, "newStart": 1, "lines": [
            {"kind": "removed", "text": "bare"}, {"kind": "added", "text": "bare"}]});
        assert_eq!(hunk_lines(&hunk, false, &unended(&patch)), ["@@ line 1 @@", "-bare", "+bare", end]);
    }
}
