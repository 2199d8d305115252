//! One program in a sandbox, from its start to its end: what a preparation step is.

use std::pin::Pin;
use std::time::Duration;

use runyard_backend::{Exit, Launch, Process, ProcessError, Processes};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

/// So much of what a step prints is kept, in bytes: the end of it.
pub const OUTPUT_BYTES_MAX: usize = 64 * 1024;
/// So much is read at a time.
const CHUNK_BYTES: usize = 8 * 1024;

/// How a step went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// How it ended; nothing where it took too long and was stopped.
    pub exit: Option<Exit>,
    /// The end of what it printed, output and error output as they came. It is as raw as it was printed.
    pub output: Vec<u8>,
    /// How many bytes were printed before that.
    pub left_out: u64,
}

/// Runs a program to its end, without input, and stops it with all that it started when it takes longer than `limit`. Nothing of
/// it is left when this returns, and it is stopped when this is dropped.
///
/// `processes` are those of the run ([`Supervision::under`](crate::Supervision::under)), so it runs in the run's sandbox.
pub async fn run_step(
    processes: &dyn Processes,
    launch: Launch,
    limit: Duration,
) -> Result<Step, ProcessError> {
    let Process { stdin, stdout, stderr, mut custody } = processes.start(launch).await?;
    drop(stdin);
    let mut printed = Printed::default();
    let ended = timeout(limit, async { tokio::join!(custody.wait(), printed.take(stdout, stderr)).0 }).await;
    let exit = match ended {
        Ok(exit) => Some(exit?),
        Err(_) => {
            custody.stop().await?;
            None
        }
    };
    Ok(Step { exit, output: printed.output, left_out: printed.left_out })
}

type Stream = Option<Pin<Box<dyn AsyncRead + Send>>>;

#[derive(Default)]
struct Printed {
    output: Vec<u8>,
    left_out: u64,
}

impl Printed {
    /// Takes all that comes until both streams end.
    async fn take(&mut self, mut stdout: Stream, mut stderr: Stream) {
        let (mut one, mut other) = ([0; CHUNK_BYTES], [0; CHUNK_BYTES]);
        loop {
            tokio::select! {
                read = read(&mut stdout, &mut one), if stdout.is_some() => match read {
                    0 => stdout = None,
                    read => self.add(&one[..read]),
                },
                read = read(&mut stderr, &mut other), if stderr.is_some() => match read {
                    0 => stderr = None,
                    read => self.add(&other[..read]),
                },
                else => return,
            }
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
        let over = self.output.len().saturating_sub(OUTPUT_BYTES_MAX);
        self.output.drain(..over);
        self.left_out += over as u64;
    }
}

/// Nothing is read at the end, and after an error.
async fn read(stream: &mut Stream, chunk: &mut [u8]) -> usize {
    match stream {
        Some(stream) => stream.read(chunk).await.unwrap_or(0),
        None => 0,
    }
}
