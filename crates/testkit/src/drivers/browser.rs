//! A person's browser: one server for the whole table, and a session on it, as the dev page or the React package calls.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use runyard::Surface;
use serde_json::{Value, json};

use super::http::HttpDriver;
use super::{Answer, Driver, Status};
use crate::Call;
use crate::http_client::{Request, encode_segment};
use crate::process::eventually;

/// Calls a program's actions in a browser session; the program serves as long as this lives.
#[derive(Debug)]
pub struct BrowserDriver {
    surface: Surface,
    address: SocketAddr,
    cookie: String,
    page_key: String,
    _server: HttpDriver,
}

impl BrowserDriver {
    /// Starts `PROGRAM serve` and logs in, to call as the dev page does. `name` is the application's.
    pub fn dev(program: &Path, name: &str) -> Result<Self> {
        BrowserDriver::start(program, name, Surface::Dev)
    }

    /// The same, to call as the React package does.
    pub fn react(program: &Path, name: &str) -> Result<Self> {
        BrowserDriver::start(program, name, Surface::React)
    }

    fn start(program: &Path, name: &str, surface: Surface) -> Result<Self> {
        let server = HttpDriver::start(program, name)?;
        let address = server.address();
        let link = Request::post_json("/api/v1/logins", "{}").bearer(server.token()).send(address)?.json()?;
        let url = link["data"]["url"].as_str().with_context(|| format!("no link: {link}"))?;
        let (_, code) = url.split_once('#').context("the link has no code")?;
        let login = from_page(Request::post_json("/login", json!({ "code": code }).to_string()), address);
        let answer = login.send(address)?;
        let cookie = answer.header("set-cookie").and_then(|cookie| cookie.split(';').next());
        let cookie = cookie.context("there is no cookie")?.to_owned();
        let page_key = answer.json()?["data"]["pageKey"].as_str().context("there is no key")?.to_owned();
        Ok(BrowserDriver { surface, address, cookie, page_key, _server: server })
    }

    fn request(&self, call: &Call) -> Request {
        let api = if self.surface == Surface::Dev { "/dev/api" } else { "/api/v1" };
        let target = format!("{api}/actions/{}/invoke", encode_segment(&call.action));
        from_page(Request::post_json(&target, call.payload()), self.address)
            .header("Cookie", &self.cookie)
            .header("X-Runyard-Page", &self.page_key)
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

/// As a browser sends what a script of our own page asks for.
fn from_page(request: Request, address: SocketAddr) -> Request {
    request.header("Origin", &format!("http://{address}")).header("Sec-Fetch-Site", "same-origin")
}

impl Driver for BrowserDriver {
    fn surface(&self) -> Surface {
        self.surface
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
