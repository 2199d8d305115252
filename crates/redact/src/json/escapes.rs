//! The escape sequences of JSON strings.

/// What stands at a backslash.
pub(super) enum Read {
    /// A sequence of this length, and what it stands for.
    Escape { length: usize, text: [u8; 4], text_length: usize },
    /// More of the input is needed.
    Starved,
    /// Nothing that JSON knows.
    Unknown,
}

/// Reads what stands at the start of `raw`, which is a backslash.
pub(super) fn read(raw: &[u8], ended: bool) -> Read {
    let Some(second) = raw.get(1) else { return if ended { Read::Unknown } else { Read::Starved } };
    let character = match second {
        b'"' | b'\\' | b'/' => char::from(*second),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode(raw, ended),
        _ => return Read::Unknown,
    };
    escape(2, character)
}

fn escape(length: usize, character: char) -> Read {
    let mut text = [0; 4];
    let text_length = character.encode_utf8(&mut text).len();
    Read::Escape { length, text, text_length }
}

fn unicode(raw: &[u8], ended: bool) -> Read {
    let unit = match hex(raw, 2) {
        Ok(unit) => unit,
        Err(missing) if missing && !ended => return Read::Starved,
        Err(_) => return Read::Unknown,
    };
    if let Some(character) = char::from_u32(unit) {
        return escape(6, character);
    }
    // Half of a pair: the other half must follow, or it stands for nothing.
    let alone = || escape(6, char::REPLACEMENT_CHARACTER);
    if !(0xd800..0xdc00).contains(&unit) {
        return alone();
    }
    match (raw.get(6), raw.get(7)) {
        (Some(b'\\'), Some(b'u')) => {}
        (None, _) | (Some(b'\\'), None) if !ended => return Read::Starved,
        _ => return alone(),
    }
    match hex(raw, 8) {
        Ok(low) if (0xdc00..0xe000).contains(&low) => {
            let pair = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
            escape(12, char::from_u32(pair).unwrap_or(char::REPLACEMENT_CHARACTER))
        }
        Err(true) if !ended => Read::Starved,
        _ => alone(),
    }
}

/// Four hexadecimal digits; the error says whether they are only not there yet.
fn hex(raw: &[u8], at: usize) -> Result<u32, bool> {
    let mut value = 0;
    for digit in at..at + 4 {
        let digit = raw.get(digit).ok_or(true)?;
        value = value * 16 + char::from(*digit).to_digit(16).ok_or(false)?;
    }
    Ok(value)
}
