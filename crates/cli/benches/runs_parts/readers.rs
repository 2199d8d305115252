//! Many readers of one run: each gets every event, and what each costs.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Instant;

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::support::api::{Scripted, Yard};
use crate::{Asked, figure, private_kib, until, up};

/// So little of a stack is enough to read.
const STACK_BYTES: usize = 128 * 1024;

pub(crate) fn many(asked: &Asked) {
    let (readers, says) = (asked.size(1_000, 50), asked.size(500, 50));
    let script = format!(
        "[[turn]]\n[[turn.step]]\nwait_for_command = true\n[[turn.step]]\nsay = \"On and on.\"\nrepeat = {says}\n"
    );
    let yard = Yard::new("", &[Scripted { name: "talks", profile: "", script: &script }]);
    let (hub, api) = up(&yard);
    let run = api.start("talks", yard.place());
    api.until(&run, "running");
    let before = private_kib(&hub);
    let reading: Vec<_> = (0..readers)
        .map(|_| {
            let (address, token, run) = (hub.address().to_owned(), api.token.clone(), run.clone());
            let read = move || read(&address, &token, &run);
            std::thread::Builder::new().stack_size(STACK_BYTES).spawn(read).unwrap()
        })
        .collect();
    until(|| figure(&api, "runyard_event_streams") == readers as u64);
    let open = private_kib(&hub);
    let begun = Instant::now();
    api.post(&format!("/runs/{run}/commands"), &json!({"kind": "steer", "text": "go"}));
    let ends: Vec<_> = reading.into_iter().map(|reader| reader.join().unwrap()).collect();
    let took = begun.elapsed().as_secs_f64();
    let busy = private_kib(&hub);
    let events = api.events(&run).len();
    let (_, _, same) = &ends[0];
    assert!(ends.iter().all(|(seen, _, digest)| *seen == events && digest == same), "all see the same");
    let bytes: usize = ends.iter().map(|(_, bytes, _)| bytes).sum();
    println!(
        "  {readers} readers, {events} events each: {:.0} events a second delivered, {:.1} MB/s, {took:.2} s for all; all the same",
        (readers * events) as f64 / took,
        bytes as f64 / took / 1e6
    );
    let each = |now: u64| now.saturating_sub(before) as f64 / readers as f64;
    println!("  memory of each: {:.1} KiB idle, {:.1} KiB after it was read", each(open), each(busy));
}

/// Reads a stream to its end: how many events, how many bytes, and their digest.
fn read(address: &str, token: &str, run: &str) -> (usize, usize, Vec<u8>) {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!(
        "GET /api/v1/runs/{run}/stream HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let (mut seen, mut bytes, mut digest) = (0, 0, Sha256::new());
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = reader.read_until(b'\n', &mut line).unwrap();
        if length == 0 {
            return (seen, bytes, digest.finalize().to_vec());
        }
        bytes += length;
        // Only whole lines of data count: what is between them is how they were cut.
        if line.starts_with(b"data: ") {
            seen += 1;
            digest.update(&line);
        }
    }
}
