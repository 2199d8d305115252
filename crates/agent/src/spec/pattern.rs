//! Names with `*` in them, which stands for any text, also none.

/// Whether a name stands for more than itself.
pub(super) fn is_pattern(name: &str) -> bool {
    name.contains('*')
}

/// Whether the whole of `text` is what `pattern` says. The time is at most that of comparing each byte with each.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // Where the last star is, and how far it reaches.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, t));
            p += 1;
        } else if pattern.get(p) == Some(&text[t]) {
            (p, t) = (p + 1, t + 1);
        } else if let Some((at, reach)) = star {
            star = Some((at, reach + 1));
            (p, t) = (at + 1, reach + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_star_is_any_text_and_everything_else_is_itself() {
        for (pattern, text, expected) in [
            ("shell", "shell", true),
            ("shell", "shells", false),
            ("shell", "a_shell", false),
            ("*", "", true),
            ("*", "anything", true),
            ("fs_*", "fs_", true),
            ("fs_*", "afs_x", false),
            ("*_x_*", "a_x_b_x_c", true),
            ("a*b*c", "a_c_b", false),
            ("**", "x", true),
            ("", "", true),
            ("", "x", false),
            ("f?", "fa", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    proptest! {
        #[test]
        fn it_says_what_a_regular_expression_would(pattern in "[ab*]{0,8}", text in "[ab]{0,10}") {
            let expression = regex::Regex::new(&format!("^{}$", pattern.replace('*', ".*"))).unwrap();
            prop_assert_eq!(matches(&pattern, &text), expression.is_match(&text));
        }
    }
}
