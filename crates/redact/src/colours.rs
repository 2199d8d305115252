//! Colours and the like, which terminals are told by `ESC [ … m`: whoever looks for secrets looks past them.
//!
//! Logs also write the escape byte out, as `\u001b`, `\x1b`, `\033` or `\e`; that counts as well.

/// The most parameters of a sequence, in bytes.
const PARAMETERS_MAX: usize = 24;
const ESCAPE: u8 = 0x1b;

/// What stands at the start of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequence {
    /// None.
    No,
    /// What may become one.
    Open,
    /// One of this length.
    Whole(usize),
}

/// Whether a control sequence starts here.
pub(crate) fn sequence(bytes: &[u8]) -> Sequence {
    let written: [&[u8]; 7] = [b"\x1b[", b"\\u001b[", b"\\u001B[", b"\\x1b[", b"\\x1B[", b"\\033[", b"\\e["];
    let Some(start) = written.iter().find(|start| bytes.starts_with(start)) else {
        let open = written.iter().any(|start| start.starts_with(bytes));
        return if open { Sequence::Open } else { Sequence::No };
    };
    let parameters = bytes[start.len()..]
        .iter()
        .take(PARAMETERS_MAX)
        .take_while(|byte| byte.is_ascii_digit() || b";:?".contains(byte))
        .count();
    match bytes.get(start.len() + parameters) {
        None => Sequence::Open,
        Some(b'm' | b'K') => Sequence::Whole(start.len() + parameters + 1),
        Some(_) => Sequence::No,
    }
}

/// Where the next one may start.
pub(crate) fn next_start(bytes: &[u8]) -> Option<usize> {
    memchr::memchr2(ESCAPE, b'\\', bytes)
}

/// A text without them.
pub(crate) fn without(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = next_start(rest) {
        plain.extend_from_slice(&rest[..at]);
        rest = match sequence(&rest[at..]) {
            Sequence::Whole(length) => &rest[at + length..],
            Sequence::No | Sequence::Open => {
                plain.push(rest[at]);
                &rest[at + 1..]
            }
        };
    }
    plain.extend_from_slice(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_recognised_in_every_spelling() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            assert_eq!(without(text.as_bytes()), expected.as_bytes());
        }
        check("\x1b[32mghp\x1b[0m", "ghp");
        check("a\\u001b[1;31mb\\x1b[Kc\\033[md\\e[38:5:9me", "abcde");
        check("\\\\u001b[1mx", "\\x");
        check("\x1b[2Jx \x1b]0;t \x1b[", "\x1b[2Jx \x1b]0;t \x1b[");
        let long = format!("\x1b[{}m", "1".repeat(25));
        check(&long, &long);
        assert_eq!(sequence(b"\\u00"), Sequence::Open);
        assert_eq!(sequence(b"\\n"), Sequence::No);
    }
}
