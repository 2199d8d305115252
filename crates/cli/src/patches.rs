//! A run's changes on a terminal: file by file, with the numbers by which hunks are chosen.

use std::io::Write;

use runyard::ActionError;
use runyard_surfaces::cli::{one_line, printable, styled};
use serde_json::{Value, json};

use crate::hub_client::HubClient;
use crate::run::data;

/// How many lines are shown of a diff that is part of something else.
pub(crate) const LINES_SHOWN: usize = 200;

/// Prints a diff whole.
pub(crate) async fn print(client: &HubClient, run: &str, found: &Value) -> Result<(), ActionError> {
    let lines = lines(client, run, found, usize::MAX).await?;
    let mut stdout = std::io::stdout().lock();
    for line in lines {
        // Whoever reads it may have seen enough.
        if writeln!(stdout, "{line}").is_err() {
            break;
        }
    }
    Ok(())
}

/// A diff as lines, at most so many of its content.
pub(crate) async fn lines(
    client: &HubClient,
    run: &str,
    found: &Value,
    lines_max: usize,
) -> Result<Vec<String>, ActionError> {
    let colours = styled(&std::io::stdout());
    let paint = |style: &str, text: &str| match colours {
        true => format!("\x1b[{style}m{text}\x1b[0m"),
        false => text.to_owned(),
    };
    let mut lines = Vec::new();
    let files = found["files"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (at, file) in files.iter().enumerate() {
        if lines.len() >= lines_max {
            lines.push(paint(
                "2",
                &format!("… {} more files: \"runyard diff {run}\" shows all", files.len() - at),
            ));
            break;
        }
        lines.push(paint("1", &headline(file)));
        if file["content"] != "text" {
            continue;
        }
        let input = json!({"id": run, "file": file["id"]});
        let body = data(client.invoke("run_diff_file", input, true, None).await?)?;
        let many = body["hunks"].as_array().is_some_and(|hunks| hunks.len() > 1);
        for hunk in body["hunks"].as_array().into_iter().flatten() {
            let number = if many { format!("  hunk {}", hunk["id"]) } else { String::new() };
            lines.push(paint("36", &format!("@@ line {} @@{number}", hunk["newStart"])));
            for line in hunk["lines"].as_array().into_iter().flatten() {
                let text = printable(line["text"].as_str().unwrap_or_default());
                lines.push(match line["kind"].as_str() {
                    Some("added") => paint("32", &format!("+{text}")),
                    Some("removed") => paint("31", &format!("-{text}")),
                    _ => format!(" {text}"),
                });
            }
        }
        if let Some(omitted) = body["omitted"].as_u64().filter(|omitted| *omitted > 0) {
            lines.push(paint("33", &format!("… {omitted} more bytes are not shown")));
        }
    }
    if let Some(next) = found["next"].as_u64() {
        lines.push(paint("33", &format!("… only the first {next} files are shown")));
    }
    lines.push(paint("2", &one_line(found["diff"]["summary"].as_str().unwrap_or_default())));
    Ok(lines)
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

/// Asks whether it is meant.
pub(crate) async fn confirm(question: &str) -> Result<(), ActionError> {
    let mut stderr = std::io::stderr();
    let _ = stderr.write_all(question.as_bytes()).and_then(|()| stderr.flush());
    // The hub may be in this very process, and must not wait.
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    match line.await {
        Ok(Ok(line)) if matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes") => Ok(()),
        _ => Err(ActionError::cancelled()),
    }
}
