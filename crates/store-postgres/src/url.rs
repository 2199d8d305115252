//! The URL of a database: what of it PostgreSQL's client reads, what is ours, and what may be shown.

use std::net::IpAddr;
use std::path::PathBuf;

use runyard_store::StorageError;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
const APPLICATION_NAME: &str = "runyard";
const DEFAULT_PORT: u16 = 5432;

/// A database, as its URL names it.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) config: Config,
    /// The file of the authorities that are trusted, where it is not the system's.
    pub(crate) root_certificates: Option<PathBuf>,
    /// Where it is, to be shown: neither user nor password.
    pub(crate) place: String,
}

impl Target {
    /// Reads a URL. What is wrong with it is said without repeating any of it, since any part may be a password that
    /// was not written as it should be.
    pub(crate) fn parse(url: &str) -> Result<Self, StorageError> {
        let rest = SCHEMES.iter().find_map(|scheme| url.strip_prefix(scheme)).ok_or_else(unreadable)?;
        let (location, query) = rest.split_once('?').unwrap_or((rest, ""));
        let authority = location.split('/').next().unwrap_or_default();
        if rest.matches('@').count() != authority.matches('@').count().min(1) {
            return Err(unreadable());
        }
        let mut ours = Ours::default();
        let theirs: Vec<&str> =
            query.split('&').filter(|pair| !pair.is_empty() && !ours.take(pair)).collect();
        let mode = ours.mode()?;
        let root_certificates = ours.root_certificates.map(percent_decoded).transpose()?;
        let question = if theirs.is_empty() { "" } else { "?" };
        let plain = format!("postgres://{location}{question}{}", theirs.join("&"));
        let mut config: Config = plain.parse().map_err(|_| unreadable())?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(unreadable());
        }
        config.ssl_mode(mode.unwrap_or_else(|| default_mode(&config)));
        if config.get_application_name().is_none() {
            config.application_name(APPLICATION_NAME);
        }
        if config.get_hosts().len() > 1 {
            // Of several servers, the one that can be written.
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        let place = place(&config);
        Ok(Target { config, root_certificates: root_certificates.map(PathBuf::from), place })
    }
}

/// The options that tokio-postgres does not know, or not as we mean them.
#[derive(Default)]
struct Ours<'a> {
    mode: Option<&'a str>,
    root_certificates: Option<&'a str>,
}

impl<'a> Ours<'a> {
    fn take(&mut self, pair: &'a str) -> bool {
        match pair.split_once('=') {
            Some(("sslmode", mode)) => self.mode = Some(mode),
            Some(("sslrootcert", path)) => self.root_certificates = Some(path),
            _ => return false,
        }
        true
    }

    fn mode(&self) -> Result<Option<SslMode>, StorageError> {
        match self.mode {
            None => Ok(None),
            Some("disable") => Ok(Some(SslMode::Disable)),
            Some("prefer") => Ok(Some(SslMode::Prefer)),
            Some("require" | "verify-full") => Ok(Some(SslMode::Require)),
            Some(_) => Err(StorageError::invalid(
                "sslmode in the URL of the database must be disable, prefer, require or verify-full",
            )),
        }
    }
}

/// On the same machine there is nobody in between, and the certificate would seldom name it.
fn default_mode(config: &Config) -> SslMode {
    let is_here = |host: &Host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
        }
    };
    let is_loopback =
        config.get_hosts().iter().all(is_here) && config.get_hostaddrs().iter().all(IpAddr::is_loopback);
    if is_loopback { SslMode::Disable } else { SslMode::Prefer }
}

fn place(config: &Config) -> String {
    let ports = config.get_ports();
    let port = |index: usize| ports.get(index).or(ports.first()).copied().unwrap_or(DEFAULT_PORT);
    let hosts = config.get_hosts().iter().enumerate().map(|(index, host)| match host {
        Host::Tcp(name) => format!("{name}:{}", port(index)),
        Host::Unix(folder) => format!("{}:{}", folder.display(), port(index)),
    });
    let mut hosts: Vec<String> = hosts.collect();
    if hosts.is_empty() {
        let addresses = config.get_hostaddrs().iter().enumerate();
        hosts.extend(addresses.map(|(index, address)| format!("{address}:{}", port(index))));
    }
    hosts.join(",")
}

fn unreadable() -> StorageError {
    StorageError::invalid(
        "the URL of the database cannot be read: expected postgres://user:password@host:port/database, with \
         special characters in user and password percent-encoded (@ as %40, / as %2F, ? as %3F)",
    )
}

fn percent_decoded(text: &str) -> Result<String, StorageError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        if *first == b'%' {
            let digits = others.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
            let byte =
                digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).ok_or_else(unreadable)?;
            bytes.push(byte);
            rest = &others[2..];
        } else {
            bytes.push(*first);
            rest = others;
        }
    }
    String::from_utf8(bytes).map_err(|_| unreadable())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_options_are_taken_out_and_the_rest_is_passed_on() {
        let target = Target::parse(
            "postgres://ada:s%40cret@db.example.org:6000/hub?sslmode=verify-full&sslrootcert=%2Fetc%2Fca%20one.pem\
             &connect_timeout=3",
        )
        .unwrap();
        assert_eq!(target.config.get_password(), Some(b"s@cret".as_slice()));
        assert_eq!(target.config.get_dbname(), Some("hub"));
        assert_eq!(target.config.get_ssl_mode(), SslMode::Require);
        assert_eq!(target.config.get_connect_timeout(), Some(&std::time::Duration::from_secs(3)));
        assert_eq!(target.root_certificates, Some(PathBuf::from("/etc/ca one.pem")));
        assert_eq!(target.place, "db.example.org:6000");
        assert!(!format!("{target:?}").contains("cret"));
    }

    #[test]
    fn tls_is_preferred_unless_the_server_is_on_this_machine() {
        let mode = |url| Target::parse(url).unwrap().config.get_ssl_mode();
        assert_eq!(mode("postgres://ada@db.example.org/hub"), SslMode::Prefer);
        assert_eq!(mode("postgres://ada@10.0.0.1/hub"), SslMode::Prefer);
        assert_eq!(mode("postgres://ada@127.0.0.1/hub"), SslMode::Disable);
        assert_eq!(mode("postgresql://ada@localhost/hub"), SslMode::Disable);
        assert_eq!(mode("postgres:///hub?host=/var/run/postgresql"), SslMode::Disable);
        assert_eq!(mode("postgres://ada@localhost/hub?sslmode=require"), SslMode::Require);
        assert_eq!(mode("postgres://ada@db.example.org/hub?sslmode=disable"), SslMode::Disable);
    }

    #[test]
    fn of_several_servers_the_one_that_can_be_written_is_taken() {
        let target = Target::parse("postgres://ada@one,two:6000/hub").unwrap();
        assert_eq!(target.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        assert_eq!(target.place, "one:5432,two:6000");
    }

    #[test]
    fn what_is_wrong_is_said_without_repeating_any_of_it() {
        let urls = [
            "mysql://ada:s3cret@host/hub",
            "host=localhost password=s3cret",
            "postgres://ada:s3@cret@host/hub",
            "postgres://ada:1/s3cret@host/hub",
            "postgres://ada:1?s3cret@host/hub",
            "postgres://ada:s3cret",
            "postgres://ada:s3cret@host/hub?s3cret=1",
            "postgres://ada:s3cret@host/hub?sslmode=s3cret",
            "postgres://ada:s3cret@host/hub?sslrootcert=%zs3cret",
            "postgres://ada:s3cret@host:port/hub",
            "postgres://",
            "",
        ];
        for url in urls {
            let Err(error) = Target::parse(url) else { panic!("{url} was read") };
            assert!(matches!(error, StorageError::Validation(..)), "{url}: {error}");
            assert!(!format!("{error} {error:?}").contains("cret"), "{url}: {error}");
        }
    }
}
