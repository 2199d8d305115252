//! One-time links: who gets one, who may use it, and the session that it starts.

use std::sync::Arc;

use axum::http::{HeaderMap, header};
use runyard_actions::{ActionError, Issue};
use runyard_domain::{Actor, Code};
use tokio::time::Instant;

use super::{Guard, only};
use crate::http::hosts::Name;
use crate::http::origin::PageOrigin;
use crate::http::peer::Connection;
use crate::http::sessions::{Keys, Redeemed};

/// The user who can read every token anyway.
const ROOT: u32 = 0;

/// How somebody came who asks for a link.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::http) struct Asking<'a> {
    /// The name by which they called this server.
    pub(in crate::http) host: Option<&'a str>,
    /// Nothing where the server itself asks.
    pub(in crate::http) connection: Option<Connection>,
}

/// Where a link is to lead.
#[derive(Clone, Debug, Default)]
pub(in crate::http) struct Wanted {
    /// To a page elsewhere that may ask as our own do.
    pub(in crate::http) origin: Option<PageOrigin>,
    /// The address of the page that comes after logging in.
    pub(in crate::http) next: Option<String>,
}

impl Guard {
    /// A one-time link for the person who holds this token: to the origin that they want, or to the name by which they asked. `next`
    /// is the address of the page that comes after logging in, checked already.
    ///
    /// A link to a page of this machine is then good only for the user who asked: it stands among a browser's arguments, where other
    /// users can read it.
    pub(in crate::http) fn link(
        &self,
        token: &str,
        asking: Asking<'_>,
        wanted: &Wanted,
    ) -> Result<String, ActionError> {
        if self.person(token).is_none() {
            return Err(ActionError::new(Code::AuthorizationError, "Browser sessions are for people only."));
        }
        let origin = match &wanted.origin {
            Some(origin) if self.origins.contains(origin) => origin.to_string(),
            Some(_) => {
                let issue = "It is not one of those that may ask; [server] origins in runyard.toml names them.";
                return Err(ActionError::invalid_input(vec![Issue::at("origin", issue)]));
            }
            None => self.hosts.origin(asking.host).ok_or_else(|| {
                let message = "A browser logs in on this machine, or through a proxy with TLS: start the server with --known-as \
                               NAME for the proxy's name.";
                ActionError::new(Code::Conflict, message)
            })?,
        };
        // A proxy with a name of its own connects as whoever runs it. Only on this machine there is no TLS.
        let is_here = origin.starts_with("http://")
            && !asking.host.is_some_and(|host| self.hosts.name(host) == Some(Name::KnownAs));
        let user = asking.connection.filter(|_| is_here).and_then(self.user_of);
        let code = self.sessions.link(token, user, Instant::now()).map_err(no_random)?;
        let next = wanted.next.as_ref().map(|next| format!("?next={next}")).unwrap_or_default();
        // After the number sign, so that it is sent to no server and stands in no log.
        Ok(format!("{origin}/login{next}#{code}"))
    }

    /// A session for whoever the link was made for, at the origin of the page that asks; one that the browser has already ends.
    pub(in crate::http) fn log_in(
        &self,
        code: &str,
        headers: &HeaderMap,
        connection: Option<Connection>,
    ) -> Result<(Keys, Arc<Actor>), ActionError> {
        let now = Instant::now();
        let redeemed = self.sessions.redeem(code, now).filter(|link| self.is_for(link, connection));
        let found = redeemed.and_then(|link| Some((self.person(link.token.reveal())?, link.token)));
        let (person, token) = found.ok_or_else(|| {
            let message = "The link does not work: it was used already, it is older than two minutes, or another user of this machine \
                           asked for it.";
            ActionError::new(Code::AuthenticationError, message)
        })?;
        self.log_out(headers);
        let origin = only(headers, &header::ORIGIN).unwrap_or_default();
        let keys = self.sessions.start(token, origin, now).map_err(no_random)?;
        Ok((keys, person))
    }

    /// Whether the user at the other end may use the link, as far as both users are known.
    fn is_for(&self, link: &Redeemed, connection: Option<Connection>) -> bool {
        let Some(asked) = link.user else { return true };
        let Some(user) = connection.and_then(self.user_of) else { return true };
        // Root needs no link, and is who passes connections on from outside a container or a virtual machine.
        let is_for = user == asked || user == ROOT;
        if !is_for {
            tracing::warn!(
                asked,
                user,
                "a login link was used by another user than the one who asked for it"
            );
        }
        is_for
    }

    /// Ends the session of whoever asks.
    pub(in crate::http) fn log_out(&self, headers: &HeaderMap) {
        self.cookies(headers).for_each(|cookie| self.sessions.end(cookie, Instant::now()));
    }
}

fn no_random(error: std::io::Error) -> ActionError {
    tracing::error!(%error, "there are no random bytes");
    ActionError::new(Code::DevServerError, "The server could not make a key; its log says why.")
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, SocketAddr};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpSocket;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::http::sessions::Sessions;
    use crate::http::{BearerTokens, HttpApi, Listening, Runtime, TokenDigest, serve};

    fn guard() -> Guard {
        let tokens = BearerTokens::new().with(TokenDigest::of("token"), Actor::owner("ada"));
        let mut guard = Guard::new(SocketAddr::from(([127, 0, 0, 1], 1)), tokens);
        // The port says it, and 1 is nobody's.
        guard.user_of = |connection| Some(u32::from(connection.peer.port())).filter(|user| *user != 1);
        guard
    }

    fn from(user: u16) -> Option<Connection> {
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        Some(Connection { peer: at(user), own: at(1) })
    }

    /// Whether a link that somebody asked for logs somebody in.
    fn logs_in(guard: &Guard, asking: Asking<'_>, wanted: &Wanted, redeeming: Option<Connection>) -> bool {
        let link = guard.link("token", asking, wanted).unwrap();
        let (_, code) = link.split_once('#').unwrap();
        let logged_in = guard.log_in(code, &HeaderMap::new(), redeeming).is_ok();
        assert!(
            guard.log_in(code, &HeaderMap::new(), asking.connection).is_err(),
            "it is used up either way"
        );
        logged_in
    }

    /// What the server itself fails at is its failure, and nobody gets in by it.
    #[test]
    fn a17_without_random_bytes_there_is_no_link_and_no_session() {
        let mut guard = guard();
        assert!(logs_in(&guard, Asking::default(), &Wanted::default(), None));
        guard.sessions = Arc::new(Sessions::new(|| Err(std::io::ErrorKind::NotFound.into())));
        let failed = guard.link("token", Asking::default(), &Wanted::default()).unwrap_err();
        assert_eq!((*failed.code() == Code::DevServerError, Code::DevServerError.row().http), (true, 500));
    }

    // clause: A22
    #[test]
    fn a22_a_link_works_only_for_the_user_who_asked_for_it() {
        let guard = guard();
        for (asked, redeeming, works) in [
            (from(1000), from(1000), true),
            (from(1000), from(1001), false),
            (from(0), from(1000), false),
            // Root can read the token itself.
            (from(1000), from(0), true),
            // Where one of both is not known, nothing is compared.
            (from(1000), from(1), true),
            (from(1000), None, true),
            (from(1), from(1001), true),
            (None, from(1001), true),
        ] {
            for host in ["127.0.0.1:1", "localhost:1"] {
                let asking = Asking { host: Some(host), connection: asked };
                assert_eq!(logs_in(&guard, asking, &Wanted::default(), redeeming), works, "{asking:?}");
            }
        }
    }

    #[test]
    fn a22_users_are_compared_where_no_proxy_of_another_name_stands_between() {
        let (encrypted, plain) = ("https://dev.example", "http://localhost:5173");
        let guard = guard().known_as("runyard.example");
        let guard = [encrypted, plain].into_iter().fold(guard, |guard, at| guard.origin(at.parse().unwrap()));
        for (host, origin, compared) in [
            ("127.0.0.1:1", None, true),
            ("127.0.0.1:1", Some(plain), true),
            ("127.0.0.1:1", Some(encrypted), false),
            ("runyard.example", None, false),
            ("Runyard.Example", Some(plain), false),
        ] {
            let asking = Asking { host: Some(host), connection: from(1000) };
            let wanted = Wanted { origin: origin.map(|at| at.parse().unwrap()), next: None };
            assert_eq!(logs_in(&guard, asking, &wanted, from(1001)), !compared, "{host} {origin:?}");
        }
    }

    /// What is answered to a request that comes from this address of the machine.
    async fn answer(from: [u8; 4], to: SocketAddr, head: &str, body: &str) -> String {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((from, 0))).unwrap();
        let mut stream = socket.connect(to).await.unwrap();
        let length = body.len();
        let request = format!(
            "POST {head}\r\nHost: {to}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    // clause: A22
    #[tokio::test]
    async fn a22_a_served_link_is_compared_with_who_asked_over_the_wire() {
        let listening = Listening::on(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let address = listening.address;
        let tokens = BearerTokens::new().with(TokenDigest::of("token"), Actor::owner("ada"));
        let mut guard = Guard::new(address, tokens);
        // The last part of the address stands for the user.
        guard.user_of = |connection| match connection.peer.ip() {
            IpAddr::V4(ip) => Some(u32::from(ip.octets()[3])),
            IpAddr::V6(_) => None,
        };
        let runtime = Runtime::builder().build().unwrap();
        let api = HttpApi { name: "x".into(), version: "1".into(), runtime, guard };
        let stop = CancellationToken::new();
        tokio::spawn(serve(listening, api.router().unwrap(), stop.clone()));
        let (ada, eve) = ([127, 0, 0, 1], [127, 0, 0, 2]);
        for (redeeming, status) in [(eve, "401"), (ada, "200")] {
            let head = "/api/v1/logins HTTP/1.1\r\nAuthorization: Bearer token";
            let link = answer(ada, address, head, "{}").await;
            let code = &link.split_once("/login#").unwrap().1[..64];
            let head = format!("/login HTTP/1.1\r\nOrigin: http://{address}");
            let body = format!("{{\"code\":\"{code}\"}}");
            let first = answer(redeeming, address, &head, &body).await;
            assert_eq!(first.split(' ').nth(1), Some(status), "{first}");
            let again = answer(ada, address, &head, &body).await;
            assert_eq!(again.split(' ').nth(1), Some("401"), "the code is spent: {again}");
        }
        stop.cancel();
    }
}
