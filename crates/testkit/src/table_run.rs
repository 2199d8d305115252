//! Running the whole table on one surface.

use anyhow::{Result, ensure};
use runyard::Envelope;

use crate::vectors::expanded;
use crate::{Answer, Driver, Status, Table, Vector, differences, whole};

/// Runs every vector and says all that is not as the table says, in the order of the table.
pub fn failures(table: &Table, driver: &dyn Driver) -> Vec<String> {
    table.vectors.iter().flat_map(|vector| run(vector, driver)).collect()
}

fn run(vector: &Vector, driver: &dyn Driver) -> Vec<String> {
    let surface = driver.surface();
    let Some(expect) = vector.expected_on(surface) else { return Vec::new() };
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let marker = folder.path().join("marker");
    let expected = whole(&expanded(expect, &marker), &vector.action, surface);
    let mut found = Vec::new();
    for calls in vector.calls(surface, &marker) {
        let spelling = calls.last().and_then(|call| call.arguments.as_ref());
        let name = spelling
            .map_or_else(|| vector.name.clone(), |arguments| format!("{} {arguments:?}", vector.name));
        let answer = match (vector.cancelled, calls.as_slice()) {
            (true, [call]) => driver.cancel(call, &marker),
            _ => driver.call(&calls),
        };
        match answer {
            Err(error) => found.push(format!("{name}: {error:#}")),
            Ok(answer) => {
                let wrong = differences(&expected, &answer.envelope).into_iter();
                let wrong = wrong.chain(check_status(&answer).err().map(|error| error.to_string()));
                found.extend(wrong.map(|what| format!("{name}: {what}")));
            }
        }
    }
    found
}

/// The exit code and the HTTP status are those of the error table.
fn check_status(answer: &Answer) -> Result<()> {
    let envelope: Envelope = serde_json::from_value(answer.envelope.clone())?;
    match answer.status {
        Status::Silent => {}
        Status::Exit(exit) => {
            let due = i32::from(envelope.exit_code());
            ensure!(exit == due, "the exit code is {exit}, not {due}");
        }
        Status::Http(status) => {
            let due = envelope.http_status();
            ensure!(status == due, "the HTTP status is {status}, not {due}");
        }
    }
    Ok(())
}
