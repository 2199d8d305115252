//! HTTP: one server for the whole table.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use runyard::Surface;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Answer, Driver, Status};
use crate::Call;
use crate::http_client::{Request, encode_segment};
use crate::process::{Program, eventually};

/// Calls a program's actions over HTTP; the program serves as long as this lives.
#[derive(Debug)]
pub struct HttpDriver {
    address: SocketAddr,
    token: String,
    /// Ended before its home is removed.
    _server: Program,
    _home: TempDir,
}

impl HttpDriver {
    /// Starts `PROGRAM serve` on a free port, with a home of its own. `name` is the application's.
    pub fn start(program: &Path, name: &str) -> Result<Self> {
        let home = tempfile::tempdir()?;
        let mut server = Program::start(program, ["serve", "--listen", "127.0.0.1:0"], home.path())?;
        let line = server.first_line()?;
        let url =
            line.strip_prefix("listening on http://").with_context(|| format!("not an address: {line}"))?;
        let token = std::fs::read_to_string(home.path().join(format!(".{name}/token")))?.trim().to_owned();
        Ok(HttpDriver { address: url.parse()?, token, _server: server, _home: home })
    }

    /// Where the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The token that it lets in.
    pub fn token(&self) -> &str {
        &self.token
    }

    fn request(&self, call: &Call) -> Request {
        let target = format!("/api/v1/actions/{}/invoke", encode_segment(&call.action));
        Request::post_json(&target, call.payload()).bearer(&self.token)
    }

    fn one(&self, call: &Call) -> Result<Answer> {
        let response = self.request(call).send(self.address)?;
        let media_type = response.header("content-type").unwrap_or_default();
        ensure!(media_type == "application/json", "the answer is {media_type:?}");
        Ok(Answer { envelope: response.json()?, status: Status::Http(response.status) })
    }

    /// What the application kept of a call whose caller did not stay.
    fn last_envelope(&self, action: &str) -> Result<Value> {
        let answer = self.one(&Call::new("last_envelope", json!({ "action": action })))?;
        Ok(answer.envelope["data"].clone())
    }
}

impl Driver for HttpDriver {
    fn surface(&self) -> Surface {
        Surface::Http
    }

    fn call(&self, calls: &[Call]) -> Result<Answer> {
        let (last, before) = calls.split_last().context("there is no call")?;
        for call in before {
            self.one(call)?;
        }
        self.one(last)
    }

    fn cancel(&self, call: &Call, marker: &Path) -> Result<Answer> {
        let connection = self.request(call).open(self.address)?;
        ensure!(eventually(|| marker.exists()), "{} was not made", marker.display());
        drop(connection);
        let mut envelope = Ok(Value::Null);
        let ended = eventually(|| {
            envelope = self.last_envelope(&call.action);
            !matches!(envelope, Ok(Value::Null))
        });
        ensure!(ended, "the call did not end after its caller went away");
        Ok(Answer { envelope: envelope?, status: Status::Silent })
    }
}
