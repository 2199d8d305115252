//! How much of a conversation fits into the windows of an agent's models.

/// An answer is taken to be at most so long where nobody says.
const ANSWER_TOKENS: u64 = 16_384;
/// Of the window, one part in so many stays free: tokens are only estimated, and instructions and tools take some too.
const FREE_PART: u64 = 5;

/// How many tokens of conversation every one of the models takes, where all of their windows are known.
pub(super) fn tokens_max(
    windows: impl Iterator<Item = Option<u64>>,
    output_tokens_max: Option<u64>,
) -> Option<u64> {
    let window = windows.collect::<Option<Vec<u64>>>()?.into_iter().min()?;
    // However small a window is, half of it is for the conversation.
    let answer = output_tokens_max.unwrap_or(ANSWER_TOKENS).min(window / 2);
    Some((window - answer).saturating_sub(window / FREE_PART).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_window_counts_when_all_are_known() {
        let tokens = |windows: &[Option<u64>], output| tokens_max(windows.iter().copied(), output);
        assert_eq!(tokens(&[Some(200_000)], None), Some(200_000 - 16_384 - 40_000));
        assert_eq!(tokens(&[Some(200_000), Some(100_000)], Some(10_000)), Some(70_000));
        assert_eq!(tokens(&[Some(1_000)], None), Some(300));
        assert_eq!(tokens(&[Some(1)], None), Some(1));
        assert_eq!(tokens(&[Some(200_000), None], None), None);
        assert_eq!(tokens(&[], None), None);
    }
}
