//! What an artifact must say, and what it must not: paths that are not the workspace's own.

use super::{ArtifactFacts, ArtifactReady, FACTS_BYTES_MAX, PATHS_MAX, VIEWPORT_MAX};
use crate::run::ApplyStatus;

/// The longest name of a file.
const NAME_BYTES_MAX: usize = 255;

/// What is wrong with an artifact, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct InvalidArtifact {
    /// The field, as it is called on the wire.
    pub field: &'static str,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What can be wrong with a field of an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It says nothing.
    #[error("Expected it to say something.")]
    Empty,
    /// It is no path of the workspace.
    #[error("Expected a path relative to the workspace: no leading slash, no \"..\", no backslash.")]
    NotRelative,
    /// It is no name of a file.
    #[error("Expected the name of a file: at most {NAME_BYTES_MAX} bytes, no slash, no backslash.")]
    NotAName,
    /// It names too many paths.
    #[error("Expected at most {PATHS_MAX} paths: name the first of them, and say how many there are.")]
    TooMany,
    /// All texts together are too long.
    #[error("Expected at most {FACTS_BYTES_MAX} bytes in all of it.")]
    TooLong,
    /// No screen has this size.
    #[error("Expected 1 to {VIEWPORT_MAX} pixels.")]
    NoSize,
    /// Somebody must have allowed it.
    #[error("Expected the approval: only a proposed patch has none.")]
    NoApproval,
}

/// Whether a path lies in the workspace by its form alone: relative, with plain parts between slashes.
pub fn is_relative(path: &str) -> bool {
    let drive =
        path.as_bytes().get(1) == Some(&b':') && path.starts_with(|first: char| first.is_alphabetic());
    !drive
        && !path.contains('\\')
        && !path.chars().any(char::is_control)
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Whether a text is the name of a file, and no path.
pub fn is_file_name(name: &str) -> bool {
    name.len() <= NAME_BYTES_MAX && !name.contains('/') && !name.trim().is_empty() && is_relative(name)
}

impl ArtifactFacts {
    /// Refuses what does not say what its kind must, or names a path that is not the workspace's.
    pub fn check(&self) -> Result<(), InvalidArtifact> {
        match self {
            ArtifactFacts::Diff { base, target, paths, summary } => {
                texts(&[("base", base), ("target", target), ("summary", summary)])?;
                relative("paths", paths)?;
            }
            ArtifactFacts::Patch { files, apply_status, approval_id } => {
                relative("files", files)?;
                if approval_id.is_none() && *apply_status != ApplyStatus::Proposed {
                    return Err(InvalidArtifact { field: "approvalId", problem: Problem::NoApproval });
                }
            }
            ArtifactFacts::FilePreview { path, .. } => relative("path", std::slice::from_ref(path))?,
            ArtifactFacts::Screenshot { viewport, route, theme, language, .. } => {
                if ![viewport.width, viewport.height].iter().all(|side| (1..=VIEWPORT_MAX).contains(side)) {
                    return Err(InvalidArtifact { field: "viewport", problem: Problem::NoSize });
                }
                texts(&[("route", route), ("theme", theme), ("language", language)])?;
            }
            ArtifactFacts::GeneratedDocs { source_route, language, .. } => {
                texts(&[("sourceRoute", source_route), ("language", language)])?;
            }
            ArtifactFacts::Debug { .. } => {}
            ArtifactFacts::File { path } => {
                if let Some(path) = path {
                    relative("path", std::slice::from_ref(path))?;
                }
            }
        }
        if self.bytes() > FACTS_BYTES_MAX {
            return Err(InvalidArtifact { field: "", problem: Problem::TooLong });
        }
        Ok(())
    }

    /// How long its texts are together.
    fn bytes(&self) -> usize {
        let all = |paths: &[String]| paths.iter().map(String::len).sum::<usize>();
        match self {
            ArtifactFacts::Diff { base, target, paths, summary } => {
                base.len() + target.len() + summary.len() + all(paths)
            }
            ArtifactFacts::Patch { files, .. } => all(files),
            ArtifactFacts::FilePreview { path, .. } => path.len(),
            ArtifactFacts::Screenshot { route, theme, language, .. } => {
                route.len() + theme.len() + language.len()
            }
            ArtifactFacts::GeneratedDocs { source_route, language, .. } => {
                source_route.len() + language.len()
            }
            ArtifactFacts::Debug { .. } => 0,
            ArtifactFacts::File { path } => path.as_ref().map_or(0, String::len),
        }
    }
}

fn texts(fields: &[(&'static str, &String)]) -> Result<(), InvalidArtifact> {
    match fields.iter().find(|(_, text)| text.trim().is_empty()) {
        Some((field, _)) => Err(InvalidArtifact { field, problem: Problem::Empty }),
        None => Ok(()),
    }
}

fn relative(field: &'static str, paths: &[String]) -> Result<(), InvalidArtifact> {
    let problem = match paths {
        [] => Problem::Empty,
        paths if paths.len() > PATHS_MAX => Problem::TooMany,
        paths if paths.iter().any(|path| path.trim().is_empty()) => Problem::Empty,
        paths if !paths.iter().all(|path| is_relative(path)) => Problem::NotRelative,
        _ => return Ok(()),
    };
    Err(InvalidArtifact { field, problem })
}

impl ArtifactReady {
    /// The first field that does not say what it must.
    pub(crate) fn lacks(&self) -> Option<&'static str> {
        let said = [("artifactId", &self.artifact_id), ("kind", &self.kind), ("summary", &self.summary)];
        if let Some((field, _)) = said.iter().find(|(_, text)| text.trim().is_empty()) {
            return Some(field);
        }
        let Some(facts) = &self.facts else {
            return ArtifactFacts::TELLING.contains(&self.kind.as_str()).then_some("facts");
        };
        match facts.check() {
            Err(invalid) if invalid.field.is_empty() => Some("facts"),
            Err(invalid) => Some(invalid.field),
            Ok(()) if facts.kind() != self.kind => Some("kind"),
            Ok(()) if !self.name.as_deref().is_some_and(is_file_name) => Some("name"),
            Ok(()) if self.content.is_none() => Some("content"),
            Ok(()) => self.by.is_none().then_some("by"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// One of each kind, whole.
    fn whole() -> Vec<Value> {
        let approval = "apr_018bcfe5680077078707070707070707";
        let viewport = json!({"width": 1280, "height": 720});
        vec![
            json!({"kind": "diff", "base": "a1", "target": "b2", "paths": ["src/main.rs"], "summary": "1 file"}),
            json!({"kind": "patch", "files": ["src/main.rs"], "applyStatus": "applied", "approvalId": approval}),
            json!({"kind": "file_preview", "path": "docs/a.md", "readAt": "2026-11-15T12:00:00.000Z"}),
            json!({"kind": "screenshot", "viewport": viewport, "route": "/settings", "theme": "dark",
                   "language": "en", "privacyReview": "pending"}),
            json!({"kind": "generated_docs", "sourceRoute": "/docs", "language": "en", "buildStatus": "succeeded"}),
            json!({"kind": "debug", "lines": 12, "omitted": 3}),
            json!({"kind": "file", "path": "out/report.txt"}),
        ]
    }

    fn read(value: &Value) -> Result<ArtifactFacts, String> {
        let facts: ArtifactFacts =
            serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
        facts.check().map_err(|invalid| invalid.field.to_owned())?;
        Ok(facts)
    }

    #[test]
    fn c14_each_kind_with_its_fields_is_taken_and_reads_back_as_it_was_written() {
        let mut kinds = Vec::new();
        for value in whole() {
            let facts = read(&value).unwrap();
            assert_eq!(serde_json::to_value(&facts).unwrap(), value);
            assert_eq!(facts.kind(), value["kind"]);
            kinds.push(facts.kind());
        }
        kinds.retain(|kind| *kind != "file");
        assert_eq!(kinds, ArtifactFacts::TELLING);
        assert_eq!(read(&json!({"kind": "file"})), Ok(ArtifactFacts::File { path: None }));
    }

    #[test]
    fn c14_no_kind_is_taken_without_one_of_its_fields_or_with_an_empty_one() {
        for value in whole() {
            let optional = if value["kind"] == "file" { "path" } else { "" };
            for (field, said) in value.as_object().unwrap() {
                let mut without = value.clone();
                without.as_object_mut().unwrap().remove(field);
                assert_eq!(read(&without).is_ok(), field == optional, "without {field}: {value}");
                let empties = match said {
                    Value::Array(_) => vec![json!([]), json!([""]), json!(["a", " "])],
                    Value::Object(_) => vec![json!({}), json!({"width": 0, "height": 1})],
                    _ => vec![json!(""), json!(" ")],
                };
                for empty in empties {
                    let mut value = value.clone();
                    value[field] = empty;
                    assert!(read(&value).is_err(), "{field} of {value}");
                }
            }
        }
    }

    #[test]
    fn c14_only_a_proposed_patch_has_no_approval() {
        let words = ["proposed", "approved", "applying", "applied", "rejected", "failed", "undone"];
        for word in words {
            let patch = |approval: Value| {
                read(&json!({"kind": "patch", "files": ["a"], "applyStatus": word, "approvalId": approval}))
            };
            let without = if word == "proposed" { None } else { Some("approvalId".to_owned()) };
            assert_eq!(patch(Value::Null).err(), without, "{word}");
            assert!(patch(json!("apr_018bcfe5680077078707070707070707")).is_ok(), "{word}");
        }
    }

    #[test]
    fn c15_a_path_is_relative_and_stays_inside() {
        for path in ["a", "a/b.txt", "a b/ü.md", ".env", "a..b", "…/a", "v1:2/x"] {
            assert!(is_relative(path), "{path}");
        }
        let wrong = [
            "",
            "/",
            "/etc/passwd",
            "..",
            "../a",
            "a/../b",
            "a/..",
            "./a",
            "a//b",
            "a/",
            "C:/a",
            "c:a",
            "C:\\a",
            "\\\\host\\a",
            "a\\..\\b",
            "a\0b",
            "a\nb",
        ];
        for path in wrong {
            assert!(!is_relative(path), "{path:?}");
            for field in ["path", "paths", "files"] {
                let value = match field {
                    "path" => {
                        json!({"kind": "file_preview", "path": path, "readAt": "2026-11-15T12:00:00.000Z"})
                    }
                    "paths" => {
                        json!({"kind": "diff", "base": "a", "target": "b", "paths": [path], "summary": "s"})
                    }
                    _ => json!({"kind": "patch", "files": ["a", path], "applyStatus": "proposed"}),
                };
                assert_eq!(read(&value), Err(field.to_owned()), "{path:?}");
            }
            assert!(read(&json!({"kind": "file", "path": path})).is_err(), "{path:?}");
        }
    }

    #[test]
    fn a_name_is_no_path() {
        for name in ["a", "report.txt", "Bericht für Ada.pdf", ".env", &"n".repeat(255)] {
            assert!(is_file_name(name), "{name}");
        }
        for name in
            ["", " ", ".", "..", "a/b", "/a", "../a", "a\\b", "C:a", "a\r\nb", "a\0", &"n".repeat(256)]
        {
            assert!(!is_file_name(name), "{name:?}");
        }
    }

    #[test]
    fn what_an_artifact_says_is_bounded() {
        let of = |paths: Vec<String>, summary: String| {
            ArtifactFacts::Diff { base: "a".into(), target: "b".into(), paths, summary }.check()
        };
        let many = |count: usize| (0..count).map(|number| number.to_string()).collect::<Vec<_>>();
        assert_eq!(of(many(PATHS_MAX), "s".into()), Ok(()));
        let refused = of(many(PATHS_MAX + 1), "s".into()).unwrap_err();
        assert_eq!((refused.field, refused.problem), ("paths", Problem::TooMany));
        assert_eq!(of(vec!["p".into()], "s".repeat(2045)), Ok(()));
        let refused = of(vec!["p".into()], "s".repeat(2046)).unwrap_err();
        assert_eq!((refused.field, refused.problem), ("", Problem::TooLong));
        for (long, taken) in [(1048, true), (1049, false)] {
            let docs = json!({
                "kind": "generated_docs", "sourceRoute": "r".repeat(1000), "language": "l".repeat(long),
                "buildStatus": "succeeded",
            });
            assert_eq!(read(&docs).is_ok(), taken, "{long}");
            let screenshot = json!({
                "kind": "screenshot", "viewport": {"width": 1, "height": 1}, "route": "r".repeat(700),
                "theme": "t".repeat(300), "language": "l".repeat(long), "privacyReview": "pending",
            });
            assert_eq!(read(&screenshot).is_ok(), taken, "{long}");
        }
        let facts = ArtifactFacts::File { path: Some("p".repeat(FACTS_BYTES_MAX + 1)) };
        let text = || "text".to_owned();
        let (artifact_id, summary) = (text(), text());
        let kind = facts.kind().to_owned();
        let ready = ArtifactReady {
            artifact_id,
            kind,
            summary,
            facts: Some(facts),
            name: None,
            content: None,
            by: None,
        };
        assert_eq!(ready.lacks(), Some("facts"));
    }
}
