//! What a turn cost, over all attempts.

use crate::usage::Usage;

/// What a turn cost.
#[derive(Debug, Default)]
pub(super) struct Spent {
    before: Usage,
    attempt: Usage,
}

impl Spent {
    /// What this attempt cost so far, as the provider tells it: the last word counts.
    pub(super) fn of_attempt(&mut self, usage: Usage) {
        self.attempt = usage;
    }

    /// Another attempt begins.
    pub(super) fn end_attempt(&mut self) {
        self.before = self.total();
        self.attempt = Usage::default();
    }

    /// All attempts together.
    pub(super) fn total(&self) -> Usage {
        let (a, b) = (&self.before, &self.attempt);
        Usage {
            input_tokens: a.input_tokens.saturating_add(b.input_tokens),
            output_tokens: a.output_tokens.saturating_add(b.output_tokens),
            cached_tokens: a.cached_tokens.saturating_add(b.cached_tokens),
            reasoning_tokens: a.reasoning_tokens.saturating_add(b.reasoning_tokens),
        }
    }
}
