//! Asking for a secret at the terminal, which shows nothing of it.
//!
//! Keys are taken one by one: a line of the terminal's own has a limit, and ends the program on Ctrl-C with the terminal still silent.

use std::io::{Read, Write};

use runyard::{ActionError, Code};
use runyard_edge::{SECRET_BYTES_MAX, Secret, check_form};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

use super::invalid;
use super::value::AUTH;

/// How long nothing must come for a paste to be over, in tenths of a second.
const PASTE_OVER_TENTHS: u8 = 5;

/// A terminal that shows nothing of what is typed, until this is dropped.
struct Silent {
    before: Termios,
}

impl Silent {
    fn new() -> rustix::io::Result<Self> {
        let before = tcgetattr(std::io::stdin())?;
        let mut silent = before.clone();
        silent.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        silent.special_codes[SpecialCodeIndex::VMIN] = 1;
        silent.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &silent)?;
        Ok(Silent { before })
    }

    /// Takes what is still coming of a paste: the rest of it would reach the shell, which takes it for commands.
    fn drain(&self) -> std::io::Result<()> {
        let mut passing = tcgetattr(std::io::stdin())?;
        passing.special_codes[SpecialCodeIndex::VMIN] = 0;
        passing.special_codes[SpecialCodeIndex::VTIME] = PASTE_OVER_TENTHS;
        tcsetattr(std::io::stdin(), OptionalActions::Now, &passing)?;
        let mut piece = vec![0; 4096];
        let (mut stdin, mut taken) = (std::io::stdin().lock(), 0);
        while taken < SECRET_BYTES_MAX {
            match stdin.read(&mut piece)? {
                0 => break,
                bytes => taken += bytes as u64,
            }
        }
        drop(Secret::new(piece));
        Ok(())
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        // What was pasted behind the first line is gone too: a shell would take it for commands.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.before);
    }
}

/// Asks for one line.
pub(super) fn ask(profile: &str, key: &str) -> Result<Secret, ActionError> {
    let failed = |error: std::io::Error| ActionError::new(Code::StorageIo, format!("Cannot ask: {error}."));
    let silent = Silent::new().map_err(|error| failed(error.into()))?;
    let mut stderr = std::io::stderr();
    stderr.write_all(question(profile, key).as_bytes()).and_then(|()| stderr.flush()).map_err(failed)?;
    let line = typed(std::io::stdin().lock().bytes()).map(|typed| typed.of_key(key)).map_err(failed);
    if let Ok(Typed::Half | Typed::TooLong) = line {
        // What it does not reach is not worth another complaint.
        let _ = silent.drain();
    }
    drop(silent);
    let _ = stderr.write_all(b"\n");
    match line? {
        Typed::Line(line) if line.expose().trim_ascii().is_empty() => {
            Err(invalid("Nothing was typed, so nothing is kept."))
        }
        Typed::Line(line) => Ok(line),
        Typed::Half => Err(invalid(format!(
            "That is no whole JSON text, and only one line is read here, so nothing is kept. Give a file with: runyard secrets set \
             {profile} {key} < FILE"
        ))),
        Typed::TooLong => Err(invalid(format!("A secret has at most {SECRET_BYTES_MAX} bytes."))),
        Typed::Cancelled => Err(ActionError::cancelled()),
    }
}

fn question(profile: &str, key: &str) -> String {
    match key {
        AUTH => format!(
            "API key for {profile} (not shown; for a whole {AUTH}: runyard secrets set {profile} < {AUTH}): "
        ),
        _ => format!("{key} of {profile} (not shown): "),
    }
}

/// What a person typed.
#[derive(Debug, PartialEq, Eq)]
enum Typed {
    Line(Secret),
    /// The first line of a JSON text that goes on.
    Half,
    TooLong,
    Cancelled,
}

impl Typed {
    /// The same, where it is meant for this key.
    fn of_key(self, key: &str) -> Self {
        let is_half = |text: &[u8]| text.starts_with(b"{") && check_form(key, text).is_err();
        match self {
            Typed::Line(line) if key.ends_with(".json") && is_half(line.expose().trim_ascii()) => Typed::Half,
            other => other,
        }
    }
}

fn typed(keys: impl Iterator<Item = std::io::Result<u8>>) -> std::io::Result<Typed> {
    let mut line: Vec<u8> = Vec::new();
    for key in keys {
        match key? {
            // Enter, or Ctrl-D.
            b'\n' | b'\r' | 0x04 => return Ok(Typed::Line(Secret::new(line))),
            // Ctrl-C, or Ctrl-\.
            0x03 | 0x1c => {
                drop(Secret::new(line));
                return Ok(Typed::Cancelled);
            }
            // Backspace takes a whole character.
            0x08 | 0x7f => while line.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {},
            // Ctrl-U.
            0x15 => line.clear(),
            byte => line.push(byte),
        }
        if line.len() as u64 > SECRET_BYTES_MAX {
            drop(Secret::new(line));
            return Ok(Typed::TooLong);
        }
    }
    Ok(Typed::Line(Secret::new(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b06_what_is_typed_can_be_corrected_and_called_off() {
        let line = |text: &str| Typed::Line(Secret::new(text.as_bytes().to_vec()));
        for (keys, expected) in [
            ("sk-1\nrm -rf", line("sk-1")),
            ("sk-1\r", line("sk-1")),
            ("sk-2\u{7f}1\n", line("sk-1")),
            ("\u{8}a\u{e4}\u{7f}b\n", line("ab")),
            ("wrong\u{15}right\n", line("right")),
            ("sk-1\u{4}more", line("sk-1")),
            ("sk-1", line("sk-1")),
            ("\n", line("")),
            ("sk-1\u{3}\n", Typed::Cancelled),
            ("sk-1\u{1c}\n", Typed::Cancelled),
        ] {
            assert_eq!(typed(keys.bytes().map(Ok)).unwrap(), expected, "{keys:?}");
        }
        for (key, text, expected) in [
            ("auth.json", "{\n", Typed::Half),
            ("auth.json", "{\"OPENAI_API_KEY\":\n", Typed::Half),
            ("auth.json", "{\"a\": 1}\n", line("{\"a\": 1}")),
            ("TOKEN", "{\n", line("{")),
        ] {
            assert_eq!(typed(text.bytes().map(Ok)).unwrap().of_key(key), expected, "{text:?}");
        }
        let endless = std::iter::repeat_with(|| Ok(b'k'));
        assert_eq!(typed(endless).unwrap(), Typed::TooLong);
    }
}
