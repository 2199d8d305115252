//! Where a provider listens: its base URL, taken apart once.

use hyper::Uri;

/// Why a provider cannot be used as it is configured. Nothing here repeats what was given, since it may hold a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It is no URL of a provider.
    #[error("`base_url` is no http or https URL; it looks like https://api.example.com/v1")]
    NotAUrl,
    /// It holds a secret.
    #[error("`base_url` holds a user name or a password; a key is given apart from it")]
    Credentials,
    /// The key is none that can be sent.
    #[error(
        "the provider's key is empty, too long, or holds what cannot be sent in a header, such as a line break"
    )]
    Key,
}

/// A key may be so long.
pub const KEY_BYTES_MAX: usize = 8192;

/// Whether a key can be sent in a header.
pub fn is_key(key: &[u8]) -> bool {
    (1..=KEY_BYTES_MAX).contains(&key.len()) && key.iter().all(u8::is_ascii_graphic)
}

/// A base URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Whether it is behind TLS.
    pub secure: bool,
    /// A name or a number, without brackets.
    pub host: String,
    /// The URL's, or what its scheme means.
    pub port: u16,
    /// Host and port as the URL has them.
    pub authority: String,
    /// Without a slash at its end.
    path: String,
    query: Option<String>,
}

impl Address {
    /// Takes a base URL apart.
    ///
    /// # Errors
    /// Where it is none, or holds a secret.
    pub fn parse(base_url: &str) -> Result<Self, Unusable> {
        // Before anything else, so that no later message is about a URL that holds a password.
        if base_url.contains('@') {
            return Err(Unusable::Credentials);
        }
        if base_url.contains('#') {
            return Err(Unusable::NotAUrl);
        }
        let uri: Uri = base_url.parse().map_err(|_| Unusable::NotAUrl)?;
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(Unusable::NotAUrl),
        };
        let authority = uri.authority().ok_or(Unusable::NotAUrl)?;
        let port = match authority.as_str().strip_prefix(authority.host()) {
            Some("") if secure => 443,
            Some("") => 80,
            _ => authority.port_u16().filter(|port| *port != 0).ok_or(Unusable::NotAUrl)?,
        };
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(Unusable::NotAUrl);
        }
        Ok(Address {
            secure,
            host,
            port,
            authority: authority.as_str().to_owned(),
            path: uri.path().trim_end_matches('/').to_owned(),
            query: uri.query().map(str::to_owned),
        })
    }

    /// What stands in the request's first line for something below the base URL.
    pub fn below(&self, name: &str) -> String {
        match &self.query {
            Some(query) => format!("{}/{name}?{query}", self.path),
            None => format!("{}/{name}", self.path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_is_joined_with_and_without_a_slash_at_its_end() {
        #[track_caller]
        fn check(url: &str, secure: bool, host: &str, port: u16, below: &str) {
            let address = Address::parse(url).unwrap();
            let found = (address.secure, address.host.as_str(), address.port, address.below("responses"));
            assert_eq!(found, (secure, host, port, below.to_owned()));
        }
        check("https://api.example.com/v1", true, "api.example.com", 443, "/v1/responses");
        check("https://api.example.com/v1/", true, "api.example.com", 443, "/v1/responses");
        check("http://api.example.com", false, "api.example.com", 80, "/responses");
        check("http://127.0.0.1:4000/", false, "127.0.0.1", 4000, "/responses");
        check("http://[::1]:4000/a/b", false, "::1", 4000, "/a/b/responses");
        check("https://h/v1?api-version=2", true, "h", 443, "/v1/responses?api-version=2");
    }

    #[test]
    fn b11_what_is_no_url_of_a_provider_is_refused_and_not_repeated() {
        for url in [
            "",
            "api.example.com",
            "/v1",
            "ftp://h/v1",
            "http://",
            "http://h:0",
            "http://h:70000",
            "http://h:/v1",
            "http://h /v1",
            "http://:80/v1",
            "https://h/v1#part",
            "http://h\r\nx: y/",
        ] {
            assert_eq!(Address::parse(url), Err(Unusable::NotAUrl), "{url}");
        }
        for url in ["https://user:Sorrel64@h/v1", "https://Sorrel64@h/v1", "https://user:Sorrel64@h:port/v1"]
        {
            let refused = Address::parse(url).unwrap_err();
            assert_eq!(refused, Unusable::Credentials);
            assert!(!format!("{refused} {refused:?}").contains("Sorrel64"));
        }
    }
}
