//! As much of PostgreSQL's protocol (version 3) as is needed to find a commit and its answer.

use std::collections::HashSet;
use std::io::{BufRead, Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;

/// No message of a test is longer.
const MESSAGE_BYTES_MAX: usize = 256 << 20;
/// The length of a request for encryption.
const REQUEST_BYTES: usize = 8;
const TLS_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
/// The type and the length.
const HEADER_BYTES: usize = 5;

/// What a connection became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    Plain,
    Encrypted,
}

/// Forwards what comes before the first typed message, with the server's answers to requests for encryption.
pub(super) fn open(client: &mut impl BufRead, to_client: &TcpStream, server: &TcpStream) -> Result<Opening> {
    let (mut to_client, mut server) = (to_client, server);
    loop {
        let packet = untyped(client)?;
        server.write_all(&packet)?;
        let code = packet.get(4..8).and_then(|code| code.try_into().ok()).map(u32::from_be_bytes);
        let asks = packet.len() == REQUEST_BYTES && matches!(code, Some(TLS_REQUEST | GSS_REQUEST));
        if !asks {
            return Ok(Opening::Plain);
        }
        let mut answer = [0];
        server.read_exact(&mut answer)?;
        to_client.write_all(&answer)?;
        if answer != *b"N" {
            return Ok(Opening::Encrypted);
        }
    }
}

fn untyped(from: &mut impl Read) -> Result<Vec<u8>> {
    let mut packet = vec![0; 4];
    from.read_exact(&mut packet)?;
    let length = length(&packet)?;
    packet.resize(length.max(4), 0);
    from.read_exact(&mut packet[4..])?;
    Ok(packet)
}

fn length(bytes: &[u8]) -> Result<usize> {
    let length =
        bytes.try_into().map(u32::from_be_bytes).ok().and_then(|length| usize::try_from(length).ok());
    length
        .filter(|length| (4..=MESSAGE_BYTES_MAX).contains(length))
        .ok_or_else(|| Error::new(ErrorKind::InvalidData, "not a length"))
}

/// One typed message, as its bytes.
#[derive(Debug)]
pub(super) struct Message(Vec<u8>);

impl Message {
    pub(super) fn read(from: &mut impl Read) -> Result<Self> {
        let mut bytes = vec![0; HEADER_BYTES];
        from.read_exact(&mut bytes)?;
        let length = length(&bytes[1..])?;
        bytes.resize(1 + length, 0);
        from.read_exact(&mut bytes[HEADER_BYTES..])?;
        Ok(Self(bytes))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn kind(&self) -> u8 {
        self.0.first().copied().unwrap_or_default()
    }

    /// The strings at the start of the body, each of which ends with a zero.
    fn strings(&self) -> impl Iterator<Item = &[u8]> {
        self.0[HEADER_BYTES..].split(|byte| *byte == 0)
    }
}

/// Follows which prepared statements and portals of a connection are commits.
#[derive(Debug, Default)]
pub(super) struct Commits {
    statements: HashSet<Vec<u8>>,
    portals: HashSet<Vec<u8>>,
}

impl Commits {
    /// Whether a message of the client makes the server commit.
    pub(super) fn is_commit(&mut self, message: &Message) -> bool {
        let mut strings = message.strings();
        let (first, second) = (strings.next().unwrap_or_default(), strings.next().unwrap_or_default());
        match message.kind() {
            b'Q' => says_commit(first),
            // Parse: the statement's name, its text.
            b'P' => {
                note(&mut self.statements, first, says_commit(second));
                false
            }
            // Bind: the portal's name, the statement's name.
            b'B' => {
                let commits = self.statements.contains(second);
                note(&mut self.portals, first, commits);
                false
            }
            // Execute: the portal's name.
            b'E' => self.portals.contains(first),
            _ => false,
        }
    }
}

fn note(names: &mut HashSet<Vec<u8>>, name: &[u8], is_commit: bool) {
    if is_commit {
        names.insert(name.to_vec());
    } else {
        names.remove(name);
    }
}

/// `COMMIT`, also as the last of several statements.
fn says_commit(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let last = text.trim().trim_end_matches(';');
    let last = last.rsplit(';').next().unwrap_or_default().trim();
    ["commit", "end", "commit transaction", "commit work"].iter().any(|word| last.eq_ignore_ascii_case(word))
}

/// What a message of the server says about the transaction.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It ended: committed, or rolled back because it could not be.
    TransactionEnded,
    Other,
}

impl Answer {
    pub(super) fn of(message: &Message) -> Self {
        let tag = message.strings().next().unwrap_or_default();
        match (message.kind(), tag) {
            (b'C', b"COMMIT" | b"ROLLBACK") => Self::TransactionEnded,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Message {
        let mut bytes = vec![kind];
        bytes.extend(u32::try_from(body.len() + 4).unwrap().to_be_bytes());
        bytes.extend(body);
        Message::read(&mut bytes.as_slice()).unwrap()
    }

    #[test]
    fn a_commit_is_found_in_a_simple_query() {
        let mut commits = Commits::default();
        let table = [
            ("COMMIT\0", true),
            (" commit; \0", true),
            ("END\0", true),
            ("NOTIFY x; COMMIT\0", true),
            ("COMMIT PREPARED 'x'\0", false),
            ("SELECT 'COMMIT'\0", false),
            ("ROLLBACK\0", false),
            ("\0", false),
        ];
        for (text, expected) in table {
            assert_eq!(commits.is_commit(&message(b'Q', text.as_bytes())), expected, "{text:?}");
        }
    }

    #[test]
    fn a_commit_is_found_in_a_prepared_statement_and_only_where_it_is_executed() {
        let mut commits = Commits::default();
        assert!(!commits.is_commit(&message(b'P', b"s1\0COMMIT\0\0\0")));
        assert!(!commits.is_commit(&message(b'P', b"s2\0SELECT 1\0\0\0")));
        assert!(!commits.is_commit(&message(b'B', b"p1\0s1\0\0\0\0\0\0\0")));
        assert!(!commits.is_commit(&message(b'B', b"\0s2\0\0\0\0\0\0\0")));
        assert!(!commits.is_commit(&message(b'E', b"\0\0\0\0\0")));
        assert!(commits.is_commit(&message(b'E', b"p1\0\0\0\0\0")));
        assert!(!commits.is_commit(&message(b'B', b"p1\0s2\0\0\0\0\0\0\0")));
        assert!(!commits.is_commit(&message(b'E', b"p1\0\0\0\0\0")));
    }

    #[test]
    fn a_length_out_of_bounds_is_an_error() {
        assert!(Message::read(&mut [b'Q', 0, 0, 0, 3].as_slice()).is_err());
        assert!(Message::read(&mut [b'Q', 0xff, 0, 0, 0].as_slice()).is_err());
    }
}
