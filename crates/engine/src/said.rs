//! What people say with a decision: a blank word is none, and what is secret in it is not stored.

use runyard_domain::Comment;

use crate::Engine;
use crate::approvals::{Resolve, revision};

/// A reason that says something.
pub fn reason_given(reason: Option<String>) -> Option<String> {
    reason.filter(|reason| !reason.trim().is_empty())
}

impl Engine {
    /// Whether something secret is in what is said with an answer. Whoever is told hears it as it is stored.
    pub fn is_redacted(&self, answer: &Resolve) -> bool {
        let stored = self.as_stored(answer);
        let turn =
            answer.reason.as_deref().filter(|_| answer.revise).map(|why| revision(why, &answer.comments));
        (&stored.reason, &stored.answer, &stored.comments)
            != (&answer.reason, &answer.answer, &answer.comments)
            || turn.is_some_and(|turn| self.recorder().redacted_text(&turn) != turn)
    }

    /// An answer as it is stored, so that the same one again is known for the same.
    pub(crate) fn as_stored(&self, answer: &Resolve) -> Resolve {
        let recorder = self.recorder();
        let text = |text: &String| recorder.redacted_text(text);
        let comment = |comment: &Comment| Comment {
            file: text(&comment.file),
            text: text(&comment.text),
            ..comment.clone()
        };
        Resolve {
            reason: answer.reason.as_ref().map(text),
            answer: answer.answer.clone().map(|answer| recorder.redactor.json(answer).into_inner()),
            comments: answer.comments.iter().map(comment).collect(),
            ..answer.clone()
        }
    }
}
