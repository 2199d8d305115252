//! Replacing parts of a file, and how such replacements are put before people.

use runyard_actions::{ActionError, Context, action};
use runyard_backend::beneath;
use serde::Deserialize;

use super::{FILE_BYTES_MAX, Workspace, failed};

/// Exact replacements.
pub(in crate::native) type Edits = Vec<Edit>;

/// An exact replacement.
#[derive(Debug, Clone, PartialEq, Deserialize, schemars::JsonSchema)]
pub(in crate::native) struct Edit {
    /// What stands there, exactly, and once.
    #[schemars(length(min = 1))]
    old: String,
    /// What stands there afterwards.
    new: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct PatchInput {
    /// The file, from the root of the workspace on.
    path: String,
    /// What is replaced, in this order.
    #[schemars(length(min = 1, max = 100))]
    edits: Edits,
}

/// Changes parts of a text file: each old text must stand there exactly once, and all are replaced or none.
#[action(crate = "runyard_actions", side_effects = "write")]
pub(super) async fn patch(input: PatchInput, ctx: &Context) -> Result<String, ActionError> {
    let workspace = ctx.service::<Workspace>()?;
    let PatchInput { path, edits } = input;
    let target = path.clone();
    ctx.blocking(move || {
        let (bytes, whole) =
            workspace.beginning(&target).map_err(|error| format!("cannot read {target}: {error}"))?;
        if !whole {
            return Err(format!("{target} is larger than {FILE_BYTES_MAX} bytes; nothing was changed"));
        }
        let text = String::from_utf8(bytes).map_err(|_| format!("{target} is no text"))?;
        let text = edited(text, &edits)?;
        beneath::write(&workspace.root, &target, text.as_bytes())
            .map_err(|error| format!("cannot write {target}: {error}"))?;
        Ok(format!("replaced {} parts of {target}", edits.len()))
    })
    .await?
    .map_err(failed::<String>)
}

fn edited(mut text: String, edits: &[Edit]) -> Result<String, String> {
    for (edit, number) in edits.iter().zip(1..) {
        match text.matches(&edit.old).count() {
            1 => text = text.replacen(&edit.old, &edit.new, 1),
            0 => {
                return Err(format!(
                    "the old text of edit {number} does not stand there; nothing was changed"
                ));
            }
            times => {
                return Err(format!(
                    "the old text of edit {number} stands there {times} times; nothing was changed"
                ));
            }
        }
    }
    Ok(text)
}

/// Replacements as people read them. Different ones never read the same: an approval is of exactly what was shown.
pub(in crate::native) fn patch_text(path: &str, edits: &[Edit]) -> String {
    let mut text = format!("{path}\n");
    for (Edit { old, new }, number) in edits.iter().zip(1..) {
        text.push_str(&format!("@@ edit {number} of {} @@\n", edits.len()));
        lines(&mut text, '-', old);
        lines(&mut text, '+', new);
    }
    text
}

/// Each line behind its sign. What cannot be seen of its end is said: that there is none, or a carriage return.
fn lines(text: &mut String, sign: char, part: &str) {
    for line in part.split_inclusive('\n') {
        text.push(sign);
        match line.strip_suffix('\n') {
            None => text.push_str(&format!("{line}\n\\ No newline at the end\n")),
            Some(line) if line.ends_with('\r') => {
                text.push_str(&format!("{line}\n\\ Carriage return at the end\n"));
            }
            Some(line) => text.push_str(&format!("{line}\n")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn edit(old: &str, new: &str) -> Edit {
        Edit { old: old.into(), new: new.into() }
    }

    #[test]
    fn an_edit_that_is_not_clear_changes_nothing() {
        assert_eq!(edited("a b c".into(), &[edit("b", "x"), edit("x c", "y")]).unwrap(), "a y");
        assert!(edited("a b b".into(), &[edit("b", "x")]).unwrap_err().contains("2 times"));
        assert!(edited("a".into(), &[edit("a", "b"), edit("a", "c")]).unwrap_err().contains("edit 2"));
    }

    #[test]
    fn j07_edits_are_shown_line_by_line_with_what_cannot_be_seen() {
        assert_eq!(
            patch_text("a.txt", &[edit("x\ny\n", "z\r\n"), edit("v", "")]),
            "a.txt\n@@ edit 1 of 2 @@\n-x\n-y\n+z\r\n\\ Carriage return at the end\n\
             @@ edit 2 of 2 @@\n-v\n\\ No newline at the end\n"
        );
        let whole = patch_text("f", &[edit("a\nc", "b\nd")]);
        assert_ne!(whole, patch_text("f", &[edit("a", ""), edit("c", "b\nd")]));
        assert_ne!(whole, patch_text("f", &[edit("a\nc\n", "b\nd\n")]));
    }

    /// Texts of what stands in such a request itself, so that they could be mistaken for it.
    fn part() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("\n"),
            Just("\r"),
            Just("a"),
            Just("-"),
            Just("+"),
            Just("@@ edit 1 of 1 @@"),
            Just("\\ No newline at the end"),
            Just("\\ Carriage return at the end"),
        ];
        prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
    }

    fn edits() -> impl Strategy<Value = Edits> {
        let edit = (part(), part()).prop_map(|(old, new)| Edit { old, new });
        prop::collection::vec(edit, 1..4)
    }

    /// What the edits were, read back from how they are shown.
    fn read_back(text: &str) -> Edits {
        let mut edits: Edits = Vec::new();
        let mut plus = false;
        // The first line is the path.
        for line in text.split_inclusive('\n').skip(1) {
            let sign = line.chars().next().unwrap();
            match (sign, edits.last_mut()) {
                ('@', _) => edits.push(edit("", "")),
                ('-', Some(edit)) => {
                    edit.old.push_str(&line[1..]);
                    plus = false;
                }
                ('+', Some(edit)) => {
                    edit.new.push_str(&line[1..]);
                    plus = true;
                }
                ('\\', Some(_)) if line.contains("Carriage") => {}
                ('\\', Some(edit)) => {
                    let part = if plus { &mut edit.new } else { &mut edit.old };
                    assert_eq!(part.pop(), Some('\n'));
                }
                _ => panic!("{text:?}"),
            }
        }
        edits
    }

    proptest! {
        #[test]
        fn j07_different_edits_are_different_requests(edits in edits()) {
            prop_assert_eq!(read_back(&patch_text("f", &edits)), edits);
        }
    }
}
