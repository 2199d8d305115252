//! What is wrong with a text that is no JSON, in words for its sender.

/// What serde_json says, without the position, which counts from wherever it began to read.
pub(crate) fn json_reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&position).unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "test code")]

    use super::*;

    #[test]
    fn the_position_goes_and_what_was_sent_stays() {
        let broken = serde_json::from_str::<serde_json::Value>("{\n\"a\" 1}").unwrap_err();
        assert_eq!(json_reason(&broken), "expected `:`");
        #[derive(Debug, serde::Deserialize)]
        enum Known {}
        let unknown = serde_json::from_str::<Known>(r#""x at line y""#).unwrap_err();
        assert!(json_reason(&unknown).starts_with("unknown variant `x at line y`"), "{unknown}");
    }
}
