//! What a person types at the terminal: a line at a time, and only what was typed after the question was shown.

use std::io::{BufRead, IsTerminal, Read, Write};

use runyard::ActionError;
use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::oneshot;

/// The longest line that is read at once; the rest of it is the next.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// Whether there is somebody to ask.
pub(crate) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Where lines come from.
#[derive(Default)]
pub(crate) struct Keyboard {
    reading: Option<oneshot::Receiver<Option<String>>>,
}

impl Keyboard {
    /// Forgets what was typed so far: it cannot have been meant for a question that nobody had seen.
    pub(crate) fn forget(&self) {
        let (Ok(()) | Err(_)) = tcflush(std::io::stdin(), QueueSelector::IFlush);
    }

    /// Whether a line is being read that nobody waits for any more.
    pub(crate) fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// The next line; nothing when standard input is at its end. Whoever stops waiting leaves the line to the next who waits.
    pub(crate) async fn line(&mut self) -> Option<String> {
        let reading = self.reading.get_or_insert_with(read);
        let line = reading.await.ok().flatten();
        self.reading = None;
        line
    }
}

/// Reads a line on a thread of its own: the hub may be in this very process, and must not wait.
fn read() -> oneshot::Receiver<Option<String>> {
    let (sender, answer) = oneshot::channel();
    std::thread::spawn(move || {
        let mut line = Vec::new();
        let read = std::io::stdin().lock().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        // What is no text is a line all the same, and no end.
        let text = || String::from_utf8_lossy(&line).into_owned();
        let _ = sender.send(read.ok().filter(|bytes| *bytes > 0).map(|_| text()));
    });
    answer
}

/// Whether a line says yes.
pub(crate) fn is_yes(line: Option<&str>) -> bool {
    line.is_some_and(|line| matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Shows a question, with nothing left of what was typed before it.
pub(crate) fn show_question(keyboard: &Keyboard, question: &str) {
    keyboard.forget();
    let mut stderr = std::io::stderr();
    let _ = stderr.write_all(question.as_bytes()).and_then(|()| stderr.flush());
}

/// Asks whether it is meant.
pub(crate) async fn confirm(question: &str) -> Result<(), ActionError> {
    let mut keyboard = Keyboard::default();
    show_question(&keyboard, question);
    match is_yes(keyboard.line().await.as_deref()) {
        true => Ok(()),
        false => Err(ActionError::cancelled()),
    }
}
