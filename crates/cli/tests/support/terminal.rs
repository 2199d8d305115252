//! A program on a terminal of its own, as a person sees it.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::eventually;

const COLUMNS: u16 = 160;

/// A program that runs on a terminal. It is killed when the test lets go of it.
pub(crate) struct Terminal {
    child: Child,
    keys: File,
    seen: Arc<Mutex<Vec<u8>>>,
    reading: Option<JoinHandle<()>>,
    /// What was waited for lies before this.
    looked_at: usize,
}

impl Terminal {
    pub(crate) fn of(command: &mut Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(&master, Winsize { ws_row: 50, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave = File::options().read(true).write(true).open(name).unwrap();
        let ends = || Stdio::from(slave.try_clone().unwrap());
        let child = command.stdin(ends()).stdout(ends()).stderr(ends()).spawn().unwrap();
        // Only the program has the other end now, so that reading ends with it.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        drop(slave);
        let keys = File::from(master);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (mut screen, kept) = (keys.try_clone().unwrap(), Arc::clone(&seen));
        let reading = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // A terminal whose program is gone answers with an error.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                kept.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Terminal { child, keys, seen, reading: Some(reading), looked_at: 0 }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until this is written, after what was waited for before.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) {
        let (seen, from) = (Arc::clone(&self.seen), self.looked_at);
        let found = eventually(&format!("{text:?} on the terminal: {}", self.screen()), || {
            let seen = seen.lock().unwrap();
            let rest = &seen[from..];
            let at = rest.windows(text.len()).position(|window| window == text.as_bytes())?;
            Some(from + at + text.len())
        });
        self.looked_at = found;
    }

    /// Types this and Enter.
    pub(crate) fn type_line(&mut self, text: &str) {
        self.keys.write_all(format!("{text}\n").as_bytes()).unwrap();
    }

    /// Ctrl-D at the beginning of a line.
    pub(crate) fn end_input(&mut self) {
        self.keys.write_all(b"\x04").unwrap();
    }

    /// Everything that was written, raw.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    /// What stands on the terminal, without what was overwritten or wiped away.
    pub(crate) fn screen(&self) -> String {
        rendered(&self.raw())
    }

    /// Waits for its end: the exit code and what stands on the terminal.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        self.reading.take().unwrap().join().unwrap();
        (code, self.screen())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a terminal shows of this: it goes back on `\r`, wipes lines and moves up.
pub(crate) fn rendered(raw: &str) -> String {
    let mut lines: Vec<Vec<char>> = vec![Vec::new()];
    let (mut row, mut column) = (0, 0);
    let mut characters = raw.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\r' => column = 0,
            '\n' => {
                row += 1;
                column = 0;
                lines.resize(lines.len().max(row + 1), Vec::new());
            }
            '\u{1b}' if characters.next_if_eq(&'[').is_some() => {
                let mut number = String::new();
                let end = loop {
                    match characters.next() {
                        Some(end) if end.is_ascii_alphabetic() => break end,
                        Some(digit) => number.push(digit),
                        None => break 'm',
                    }
                };
                match end {
                    'K' if number == "2" => lines[row].clear(),
                    'K' => lines[row].truncate(column),
                    'A' => row = row.saturating_sub(number.parse().unwrap_or(1)),
                    _ => {}
                }
            }
            other => {
                let line = &mut lines[row];
                line.resize(line.len().max(column + 1), ' ');
                line[column] = other;
                column += 1;
            }
        }
    }
    let lines: Vec<String> =
        lines.iter().map(|line| line.iter().collect::<String>().trim_end().to_owned()).collect();
    lines.join("\n").trim_end().to_owned()
}
