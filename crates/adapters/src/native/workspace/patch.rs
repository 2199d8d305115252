//! Replacing parts of a file, and how such replacements are put before people.

use runyard_actions::{ActionError, Context, action};
use runyard_backend::beneath;
use serde::Deserialize;

use super::{FILE_BYTES_MAX, Workspace, failed};

/// Exact replacements.
pub(in crate::native) type Edits = Vec<Edit>;

/// An exact replacement.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
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

/// Replacements as people read them.
pub(in crate::native) fn patch_text(path: &str, edits: &[Edit]) -> String {
    let mut text = format!("{path}\n");
    for Edit { old, new } in edits {
        old.lines().for_each(|line| text.push_str(&format!("-{line}\n")));
        new.lines().for_each(|line| text.push_str(&format!("+{line}\n")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_that_is_not_clear_changes_nothing() {
        let edit = |old: &str, new: &str| Edit { old: old.into(), new: new.into() };
        assert_eq!(edited("a b c".into(), &[edit("b", "x"), edit("x c", "y")]).unwrap(), "a y");
        assert!(edited("a b b".into(), &[edit("b", "x")]).unwrap_err().contains("2 times"));
        assert!(edited("a".into(), &[edit("a", "b"), edit("a", "c")]).unwrap_err().contains("edit 2"));
    }
}
