//! A person's browser, as far as a server can tell one: it keeps the cookie and the page's key, and says where requests come from.
#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses a part")]

use serde_json::{Value, json};

use crate::support::client::{Answer, Request};
use crate::support::server::Server;

/// A browser that is logged in.
pub(crate) struct Browser {
    pub(crate) host: String,
    /// `name=value`.
    pub(crate) cookie: String,
    pub(crate) page_key: String,
}

/// Asks for a link with a token and gives its code.
pub(crate) async fn code_by(server: &Server, token: &str) -> String {
    let link = server.send(server.post("/api/v1/logins", &json!({})).by(token)).await.data();
    let url = link["url"].as_str().unwrap().to_owned();
    let (page, code) = url.split_once('#').unwrap();
    assert_eq!(page, format!("http://{}/login", server.address));
    assert_eq!(code.len(), 64, "256 bits");
    code.to_owned()
}

/// What the login page sends.
pub(crate) fn login(server: &Server, code: &str) -> Request {
    from_page(server, Request::new("POST", "/login")).json(&json!({ "code": code }))
}

/// As a script of our own page sends it, without anything that it keeps.
pub(crate) fn from_page(server: &Server, request: Request) -> Request {
    let host = server.address.to_string();
    request
        .with("Host", &host)
        .with("Origin", &format!("http://{host}"))
        .with("Sec-Fetch-Site", "same-origin")
        .with("Sec-Fetch-Mode", "cors")
}

impl Browser {
    /// Logs in with a link of this token's holder.
    pub(crate) async fn of(server: &Server, token: &str) -> Browser {
        let code = code_by(server, token).await;
        Browser::from(server, &server.send(login(server, &code)).await)
    }

    pub(crate) fn from(server: &Server, answer: &Answer) -> Browser {
        let cookie = answer.header("set-cookie").split(';').next().unwrap().to_owned();
        let page_key = answer.data()["pageKey"].as_str().unwrap().to_owned();
        assert_eq!(page_key.len(), 64, "256 bits");
        Browser { host: server.address.to_string(), cookie, page_key }
    }

    pub(crate) fn get(&self, target: &str) -> Request {
        // Browsers send no Origin with what only reads.
        self.request("GET", target).without("Origin")
    }

    pub(crate) fn post(&self, target: &str, body: &Value) -> Request {
        self.request("POST", target).json(body)
    }

    /// As the React package calls.
    pub(crate) fn call(&self, action: &str, input: Value) -> Request {
        self.post(&format!("/api/v1/actions/{action}/invoke"), &json!({ "input": input }))
    }

    pub(crate) fn invoke(&self, action: &str, input: Value) -> Request {
        self.post(&format!("/dev/api/actions/{action}/invoke"), &json!({ "input": input }))
    }

    fn request(&self, method: &str, target: &str) -> Request {
        Request::new(method, target)
            .and("Host", &self.host)
            .and("Origin", &format!("http://{}", self.host))
            .and("Sec-Fetch-Site", "same-origin")
            .and("Cookie", &self.cookie)
            .and("X-Runyard-Page", &self.page_key)
    }
}
