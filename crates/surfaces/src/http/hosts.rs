//! The names that this server is called by: its own address, what a proxy calls it, and other names of this machine.
//!
//! Only the address that it listens on surely leads here. `localhost` may mean the other of the two loopback addresses, and whoever
//! listens there under our port is told everything that a browser keeps for that name. So such a name is good for programs with a
//! token; for browsers it only points to the address.

use std::net::SocketAddr;

use super::origin::is_this_machine;

const THIS_MACHINE: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// All names, in small letters and with their ports.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    address: SocketAddr,
    own: Vec<String>,
    aliases: Vec<String>,
    known_as: Vec<String>,
}

/// What a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// The address that the server listens on.
    Own,
    /// A name of this machine that may lead to another program.
    Alias,
    /// What somebody said that it is called, such as a proxy's name.
    KnownAs,
}

impl Hosts {
    /// The names of a server that listens on this address.
    pub(super) fn new(address: SocketAddr) -> Self {
        let (mut own, mut aliases) = (vec![address.to_string()], Vec::new());
        if address.ip().is_loopback() {
            let port = format!(":{}", address.port());
            aliases.extend(THIS_MACHINE.map(|name| format!("{name}{port}")));
            if address.port() == 80 {
                // Clients leave the scheme's own port out.
                own.extend(own[0].strip_suffix(&port).map(str::to_owned));
                aliases.extend(THIS_MACHINE.map(str::to_owned));
            }
            aliases.retain(|alias| !own.contains(alias));
        }
        Hosts { address, own, aliases, known_as: Vec::new() }
    }

    /// One more name.
    pub(super) fn add(&mut self, host: &str) {
        self.known_as.push(host.to_ascii_lowercase());
    }

    /// What this name is, if it is one of ours.
    pub(super) fn name(&self, host: &str) -> Option<Name> {
        let host = host.to_ascii_lowercase();
        let kinds = [(&self.known_as, Name::KnownAs), (&self.own, Name::Own), (&self.aliases, Name::Alias)];
        kinds.into_iter().find(|(names, _)| names.contains(&host)).map(|(_, name)| name)
    }

    /// The address as an origin: where browsers go that came by another name of this machine.
    pub(super) fn address_origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where a browser of somebody who called us by this name reaches us: through the proxy of that name, which encrypts, or on this
    /// machine.
    pub(super) fn origin(&self, host: Option<&str>) -> Option<String> {
        let called = host.map(str::to_ascii_lowercase).filter(|host| self.known_as.contains(host));
        match called {
            None if self.address.ip().is_loopback() => Some(self.address_origin()),
            called => called.as_ref().or(self.known_as.first()).map(|host| {
                let name = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
                format!("{}://{host}", if is_this_machine(name) { "http" } else { "https" })
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(address: &str) -> Hosts {
        Hosts::new(address.parse().unwrap())
    }

    #[track_caller]
    fn check(hosts: &Hosts, names: &[(&str, Option<Name>)]) {
        for (host, name) in names {
            assert_eq!(hosts.name(host), *name, "{host} of {hosts:?}");
        }
    }

    #[test]
    fn only_the_address_itself_is_ours_and_this_machines_other_names_are_aliases() {
        use Name::{Alias, KnownAs, Own};
        check(
            &hosts("127.0.0.1:4710"),
            &[
                ("127.0.0.1:4710", Some(Own)),
                ("LocalHost:4710", Some(Alias)),
                ("[::1]:4710", Some(Alias)),
                ("127.0.0.1", None),
                ("localhost", None),
                ("127.0.0.2:4710", None),
            ],
        );
        check(
            &hosts("[::1]:80"),
            &[
                ("[::1]", Some(Own)),
                ("[::1]:80", Some(Own)),
                ("127.0.0.1", Some(Alias)),
                ("localhost", Some(Alias)),
                ("localhost:80", Some(Alias)),
            ],
        );
        check(&hosts("127.0.0.2:4710"), &[("127.0.0.2:4710", Some(Own)), ("127.0.0.1:4710", Some(Alias))]);
        check(&hosts("192.0.2.1:80"), &[("192.0.2.1:80", Some(Own)), ("localhost", None)]);
        let mut named = hosts("127.0.0.1:4710");
        named.add("LocalHost:4710");
        named.add("runyard.example");
        check(
            &named,
            &[
                ("localhost:4710", Some(KnownAs)),
                ("Runyard.Example", Some(KnownAs)),
                ("[::1]:4710", Some(Alias)),
            ],
        );
    }

    #[test]
    fn a_browser_is_led_to_the_address_or_to_the_name_that_a_proxy_has() {
        let mut named = hosts("127.0.0.1:4710");
        for host in [None, Some("localhost:4710"), Some("[::1]:4710"), Some("127.0.0.1:4710")] {
            assert_eq!(named.origin(host).as_deref(), Some("http://127.0.0.1:4710"), "{host:?}");
        }
        named.add("runyard.example");
        named.add("localhost:8080");
        assert_eq!(named.origin(Some("Runyard.Example")).as_deref(), Some("https://runyard.example"));
        assert_eq!(named.origin(Some("localhost:8080")).as_deref(), Some("http://localhost:8080"));
        assert_eq!(named.origin(None).as_deref(), Some("http://127.0.0.1:4710"));
        let mut public = hosts("0.0.0.0:4710");
        assert_eq!(public.origin(Some("0.0.0.0:4710")), None);
        public.add("runyard.example");
        assert_eq!(public.origin(None).as_deref(), Some("https://runyard.example"));
    }
}
