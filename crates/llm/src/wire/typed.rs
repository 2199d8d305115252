//! The words that providers have for what is wrong: the codes and types of their errors, each with what it means.
//!
//! Words alone count, whole and in the fields that are made for them. What a message says in prose is looked at in one table only:
//! the beginnings that a provider documents for what it has no word for.

/// What a word means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Server,
    RateLimited,
    Overloaded,
    Late,
    Overflow,
    Invalid,
    Unauthorized,
    NoModel,
    Filtered,
    /// The provider is going down and asks to be left alone.
    GoAway,
}

/// A word, what it means, and the status that it comes with where it comes with one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word {
    pub(super) text: &'static str,
    pub(super) meaning: Meaning,
    pub(super) status: u16,
}

const fn word(text: &'static str, meaning: Meaning, status: u16) -> Word {
    Word { text, meaning, status }
}

/// Words that say more than a status does.
const EXACT: [Word; 30] = [
    word("context_length_exceeded", Meaning::Overflow, 400),
    word("string_above_max_length", Meaning::Overflow, 400),
    word("request_too_large", Meaning::Overflow, 413),
    // llama.cpp
    word("exceed_context_size_error", Meaning::Overflow, 400),
    word("content_filter", Meaning::Filtered, 400),
    word("content_policy_violation", Meaning::Filtered, 400),
    word("image_content_policy_violation", Meaning::Filtered, 400),
    // Azure
    word("ResponsibleAIPolicyViolation", Meaning::Filtered, 400),
    word("model_not_found", Meaning::NoModel, 404),
    // Azure
    word("DeploymentNotFound", Meaning::NoModel, 404),
    word("invalid_api_key", Meaning::Unauthorized, 401),
    word("authentication_error", Meaning::Unauthorized, 401),
    word("permission_error", Meaning::Unauthorized, 403),
    word("rate_limit_exceeded", Meaning::RateLimited, 429),
    word("rate_limit_error", Meaning::RateLimited, 429),
    word("insufficient_quota", Meaning::RateLimited, 429),
    word("billing_hard_limit_reached", Meaning::RateLimited, 429),
    word("billing_error", Meaning::RateLimited, 402),
    word("usage_limit_reached", Meaning::RateLimited, 429),
    word("server_is_overloaded", Meaning::Overloaded, 503),
    word("slow_down", Meaning::Overloaded, 503),
    // DeepSeek, as the reason why an answer ends
    word("insufficient_system_resource", Meaning::Overloaded, 503),
    // Anthropic
    word("overloaded_error", Meaning::Overloaded, 529),
    word("timeout_error", Meaning::Late, 504),
    word("invalid_prompt", Meaning::Invalid, 400),
    word("invalid_image", Meaning::Invalid, 400),
    word("invalid_image_url", Meaning::Invalid, 400),
    word("image_parse_error", Meaning::Invalid, 400),
    word("goaway", Meaning::GoAway, 503),
    word("server_shutdown", Meaning::GoAway, 503),
];

/// Words that say no more than a status does, and so count only where there is none.
const LOOSE: [Word; 9] = [
    word("invalid_request_error", Meaning::Invalid, 400),
    word("not_found_error", Meaning::NoModel, 404),
    // vLLM
    word("NotFoundError", Meaning::NoModel, 404),
    // Gemini
    word("NOT_FOUND", Meaning::NoModel, 404),
    word("server_error", Meaning::Server, 500),
    word("api_error", Meaning::Server, 500),
    word("internal_error", Meaning::Server, 500),
    word("internal_server_error", Meaning::Server, 500),
    word("service_unavailable", Meaning::Overloaded, 503),
];

/// How a message begins by which alone a provider tells an invalid request from another, with the type of the error, if it has one.
const BEGINNINGS: [(&str, &str, Meaning); 7] = [
    // Anthropic has one type for every request that it does not take.
    ("invalid_request_error", "prompt is too long", Meaning::Overflow),
    ("invalid_request_error", "input length and `max_tokens` exceed context limit", Meaning::Overflow),
    ("invalid_request_error", "Output blocked by content filtering policy", Meaning::Filtered),
    // DeepSeek, vLLM, and OpenRouter, which has no word for it at all.
    ("invalid_request_error", "This model's maximum context length is", Meaning::Overflow),
    ("BadRequestError", "This model's maximum context length is", Meaning::Overflow),
    ("", "This endpoint's maximum context length is", Meaning::Overflow),
    // Gemini has one status for every request that it does not take.
    ("INVALID_ARGUMENT", "The input token count", Meaning::Overflow),
];

/// The first of these words that says more than a status does.
pub(super) fn exact(words: &[String]) -> Option<Word> {
    find(&EXACT, words)
}

/// The first of these words that says as much as a status does.
pub(super) fn loose(words: &[String]) -> Option<Word> {
    find(&LOOSE, words)
}

fn find(table: &[Word], words: &[String]) -> Option<Word> {
    words.iter().find_map(|word| table.iter().find(|known| known.text == word.as_str()).copied())
}

/// What the beginning of a message means.
pub(super) fn beginning(words: &[String], message: &str) -> Option<Meaning> {
    let is_of = |kind: &str| match kind {
        "" => words.is_empty(),
        kind => words.iter().any(|word| word == kind),
    };
    let is_it = |kind: &str, text: &str| is_of(kind) && message.starts_with(text);
    BEGINNINGS.iter().find(|(kind, text, _)| is_it(kind, text)).map(|(.., meaning)| *meaning)
}

/// What a status means by itself.
pub(super) fn of_status(status: u16) -> Meaning {
    match status {
        401 | 403 => Meaning::Unauthorized,
        // Nothing is left on the account, which is a limit too.
        402 | 429 => Meaning::RateLimited,
        408 | 504 => Meaning::Late,
        413 => Meaning::Overflow,
        503 | 529 => Meaning::Overloaded,
        // Somebody else was there at the same time, or it came too early: both pass.
        409 | 425 => Meaning::Server,
        300..=499 => Meaning::Invalid,
        _ => Meaning::Server,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_stands_twice() {
        let all: Vec<&str> = EXACT.iter().chain(&LOOSE).map(|word| word.text).collect();
        for (index, text) in all.iter().enumerate() {
            assert!(!all[index + 1..].contains(text), "{text}");
        }
    }
}
