//! Where a continued text joins what was there.

use proptest::prelude::*;
use runyard_llm::inference::{OVERLAP_MAX, Seam};

/// The whole text after a continuation that comes in `pieces` and then ends.
fn joined<'a>(text: &str, pieces: impl IntoIterator<Item = &'a str>) -> String {
    let mut seam = Some(Seam::new(text.to_owned()));
    let mut whole = text.to_owned();
    for piece in pieces {
        match &mut seam {
            None => whole.push_str(piece),
            Some(at_seam) => {
                if let Some(new) = at_seam.push(piece) {
                    whole.push_str(&new);
                    seam = None;
                }
            }
        }
    }
    whole.push_str(&seam.and_then(|mut seam| seam.end()).unwrap_or_default());
    whole
}

#[track_caller]
fn check(text: &str, continuation: &str, expected: &str) {
    assert_eq!(joined(text, [continuation]), expected);
    let chars = continuation.char_indices().map(|(at, char)| &continuation[at..at + char.len_utf8()]);
    assert_eq!(joined(text, chars), expected, "char by char");
}

// clause: D10
#[test]
fn d10_a_continuation_that_repeats_nothing_is_added_as_it_is() {
    check("Hello, ", "world.", "Hello, world.");
    check("", "world.", "world.");
    check("Hel", "lo", "Hello");
    check("Hello, ", "", "Hello, ");
}

// clause: D10
#[test]
fn d10_what_the_model_says_again_is_taken_out() {
    check("Hello, this is", "Hello, this is the second half.", "Hello, this is the second half.");
    check(
        "One thing. The quick brown fox",
        "The quick brown fox jumps.",
        "One thing. The quick brown fox jumps.",
    );
    check(
        "The answer was interrupted mid-stre",
        "mid-stream and",
        "The answer was interrupted mid-stream and",
    );
    check("An interru", "interruption", "An interruption");
    check("Größenordnungen überall", "überallhin, wo", "Größenordnungen überallhin, wo");
    check(
        "这个问题的答案其实非常简单明了因为",
        "这个问题的答案其实非常简单明了因为它",
        "这个问题的答案其实非常简单明了因为它",
    );
}

// clause: D10
#[test]
fn d10_a_continuation_that_only_repeats_adds_nothing() {
    check("That is the whole answer.", "That is the whole answer.", "That is the whole answer.");
    check("First. That is the answer.", "That is the answer.", "First. That is the answer.");
}

// clause: D10
#[test]
fn d10_the_longest_repetition_is_taken_out() {
    let text = "so it goes on and on, so it goes on and on";
    check(text, &format!("{text} again"), &format!("{text} again"));
    check(text, "so it goes on and on again", &format!("{text} again"));
}

// clause: D10
#[test]
fn d10_what_may_be_an_accident_is_not_taken_out() {
    check("the letter l", "letter", "the letter lletter");
    check("| a | b |\n|---|---|\n", "|---|---|\n", "| a | b |\n|---|---|\n|---|---|\n");
    check("        }\n", "        }\n", "        }\n        }\n");
    check("000000000000000000000", "000000000000000000000", "000000000000000000000000000000000000000000");
    check("It is so, ", "so be it.", "It is so, so be it.");
    check("He said no", "no one", "He said nono one");
    check("It went well, ", "well, well.", "It went well, well, well.");
    check("Well: haha", "hahaha", "Well: hahahahaha");
}

// clause: D10
#[test]
fn d10_a_beginning_that_only_looks_like_a_repetition_is_kept_whole() {
    check("The quick brown fox jumps", "The quick brown dog", "The quick brown fox jumpsThe quick brown dog");
    check("Every good boy does fine", "Every good", "Every good boy does fineEvery good");
}

#[test]
fn a_repetition_is_found_from_far_back_and_from_the_very_beginning() {
    let long: String = (0..2_000).map(|n| format!("word{n} ")).collect();
    assert!(long.len() > OVERLAP_MAX);
    check(&long, &format!("{long}and on"), &format!("{long}and on"));
    let near = &long[long.len() - OVERLAP_MAX + 10..];
    check(&long, &format!("{near}and on"), &format!("{long}and on"));
    let far = &long[10..];
    check(&long, &format!("{far}and on"), &format!("{long}{far}and on"));
}

fn pieces(text: &str, cuts: &[usize]) -> Vec<String> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    ends.retain(|end| text.is_char_boundary(*end));
    ends.extend([0, text.len()]);
    ends.sort_unstable();
    ends.windows(2).map(|pair| text[pair[0]..pair[1]].to_owned()).collect()
}

proptest! {
    #![proptest_config(crate::support::cases())]

    // clause: D10
    #[test]
    fn d10_how_a_continuation_is_cut_makes_no_difference(
        text in "[ab c\\.é]{0,60}",
        continuation in "[ab c\\.é]{0,60}",
        repeats_from in any::<prop::sample::Index>(),
        cuts in prop::collection::vec(any::<usize>(), 0..6),
    ) {
        let at = repeats_from.index(text.len() + 1);
        let repeated = if text.is_char_boundary(at) { &text[at..] } else { "" };
        let continuation = format!("{repeated}{continuation}");
        let cut = pieces(&continuation, &cuts);
        let whole = joined(&text, [continuation.as_str()]);
        prop_assert_eq!(&joined(&text, cut.iter().map(String::as_str)), &whole);
        // Nothing is taken out that had not been said.
        prop_assert!(whole.starts_with(&text));
        prop_assert!(continuation.ends_with(&whole[text.len()..]));
        let taken_out = &continuation[..continuation.len() - (whole.len() - text.len())];
        prop_assert!(text.ends_with(taken_out));
    }
}
