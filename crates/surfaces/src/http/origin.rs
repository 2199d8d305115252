//! Further pages that may ask: each by its exact origin, as a browser names it.

use std::fmt;
use std::str::FromStr;

/// The longest name of a host.
const HOST_CHARS_MAX: usize = 253;

/// A scheme, a host and a port: nothing else, no pattern, and never without TLS but on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PageOrigin(String);

/// Why a text is not the origin of a page that may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected an origin: https:// and a host, or http:// and localhost, 127.0.0.1 or [::1], with its port where that is not the \
     scheme's own, as in http://localhost:5173"
)]
pub struct NoPageOrigin;

impl PageOrigin {
    /// As the browser names it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is what a browser says.
    pub(super) fn is(&self, origin: &str) -> bool {
        self.0.eq_ignore_ascii_case(origin)
    }
}

impl fmt::Display for PageOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for PageOrigin {
    type Err = NoPageOrigin;

    fn from_str(text: &str) -> Result<Self, NoPageOrigin> {
        let text = text.to_ascii_lowercase();
        let (rest, own_port, encrypted) = match (text.strip_prefix("https://"), text.strip_prefix("http://"))
        {
            (Some(rest), _) => (rest, 443, true),
            (None, Some(rest)) => (rest, 80, false),
            (None, None) => return Err(NoPageOrigin),
        };
        // The colons of an IPv6 address stand in brackets.
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (rest, None),
        };
        let is_fine = if encrypted { is_host(host) } else { is_this_machine(host) };
        // A browser leaves the scheme's own port out, so with it no page would ever match.
        let port_is_fine = port.is_none_or(|port| {
            !port.starts_with('0') && port.parse::<u16>().is_ok_and(|port| port != 0 && port != own_port)
        });
        if is_fine && port_is_fine { Ok(PageOrigin(text)) } else { Err(NoPageOrigin) }
    }
}

pub(super) fn is_this_machine(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

fn is_host(host: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    is_this_machine(host) || (host.len() <= HOST_CHARS_MAX && host.split('.').all(is_label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_a_host_and_a_port_and_nothing_else() {
        for (good, kept) in [
            ("http://localhost:5173", "http://localhost:5173"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("http://[::1]:5173", "http://[::1]:5173"),
            ("http://[::1]", "http://[::1]"),
            ("https://Runyard.Example", "https://runyard.example"),
            ("https://runyard.example:8443", "https://runyard.example:8443"),
        ] {
            assert_eq!(good.parse::<PageOrigin>().unwrap().as_str(), kept);
        }
        for bad in [
            "",
            "*",
            "null",
            "http://*",
            "https://*.example",
            "http://example.com",
            "http://192.0.2.1:5173",
            "http://localhost:5173/",
            "http://localhost:5173/x",
            "http://localhost:80",
            "https://runyard.example:443",
            "http://localhost:0",
            "http://localhost:80801",
            "http://localhost:05173",
            "http://localhost:",
            "http://user@localhost:5173",
            "http://localhost:5173?x",
            "http://localhost:5173#x",
            "https://",
            "https://a..b",
            "https:///x",
            "ftp://localhost",
            "localhost:5173",
            " http://localhost:5173",
            "http://localhost:5173\n",
            "https://ex ample",
        ] {
            assert_eq!(bad.parse::<PageOrigin>(), Err(NoPageOrigin), "{bad:?}");
        }
    }
}
