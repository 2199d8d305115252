//! Starting a server as a person does: an address, a token in a private file, and what to say about both.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use axum::Router;
use clap::{Arg, ArgAction, ArgMatches};
use runyard_actions::ActionError;
use runyard_domain::{Actor, Code};
use tokio_util::sync::CancellationToken;

use super::guard::{Asking, Wanted};
use super::origin::PageOrigin;
use super::sessions::random_text;
use super::{
    BearerTokens, Guard, HttpApi, LOGINS_PATH, Listening, RouteError, TokenDigest, TokenHolders, serve,
};
use crate::mcp::{self, McpApi};

/// A token shorter than this was not made here and is not strong enough.
const TOKEN_LENGTH_MIN: usize = 32;

/// How to start a server.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Whether to serve without TLS to other machines.
    pub allow_plaintext: bool,
    /// Further names that the server is known by.
    pub known_as: Vec<String>,
    /// Pages elsewhere that may ask as our own do.
    pub origins: Vec<PageOrigin>,
    /// Where the token is, or will be made.
    pub token_file: PathBuf,
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// Other machines would reach it without TLS.
    #[error(
        "{0} can be reached from other machines and there is no TLS: listen on 127.0.0.1, or say --allow-plaintext if a proxy in front encrypts"
    )]
    Plaintext(SocketAddr),
    /// The address cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The token file cannot be used.
    #[error("cannot use the token file {path}: {source}")]
    Token {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Two routes collide.
    #[error(transparent)]
    Route(#[from] RouteError),
}

impl LaunchError {
    /// The same as an action's failure, for the command that launches.
    pub fn into_action_error(self) -> ActionError {
        let code = match &self {
            LaunchError::Plaintext(_) | LaunchError::Route(_) => Code::ValidationError,
            LaunchError::Address { .. } => Code::Conflict,
            LaunchError::Token { .. } => Code::StorageIo,
        };
        ActionError::new(code, format!("Cannot start: {self}."))
    }
}

/// `--listen`, `--allow-plaintext`, `--known-as` and `--origin`.
pub fn launch_flags(default_listen: &'static str) -> Vec<Arg> {
    vec![
        Arg::new("listen")
            .long("listen")
            .value_name("ADDR")
            .default_value(default_listen)
            .value_parser(clap::value_parser!(SocketAddr))
            .help("Where to listen; port 0 takes any free one"),
        Arg::new("allow-plaintext").long("allow-plaintext").action(ArgAction::SetTrue).help(
            "Listen on an address that other machines reach, without TLS (a proxy in front must encrypt)",
        ),
        Arg::new("known-as")
            .long("known-as")
            .value_name("HOST")
            .action(ArgAction::Append)
            .help("A further host name (with port) by which clients call this server"),
        Arg::new("origin")
            .long("origin")
            .value_name("URL")
            .action(ArgAction::Append)
            .value_parser(clap::value_parser!(PageOrigin))
            .help("A further page that may log in and ask, by its origin, as in http://localhost:5173"),
    ]
}

impl Launch {
    /// What the flags say.
    pub fn from_flags(matches: &ArgMatches, token_file: PathBuf) -> Self {
        let loopback = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
        Launch {
            listen: matches.get_one("listen").copied().unwrap_or(loopback),
            allow_plaintext: matches.get_flag("allow-plaintext"),
            known_as: matches.get_many("known-as").into_iter().flatten().cloned().collect(),
            origins: matches.get_many("origin").into_iter().flatten().cloned().collect(),
            token_file,
        }
    }

    /// Starts and serves the application, over MCP too, until `stop` is cancelled. `ready` is called with the URL once requests are answered.
    ///
    /// Who starts it on a terminal is told a one-time link to the dev page there, on standard error: no file or pipe gets it.
    pub async fn run(
        self,
        mcp: &McpApi,
        stop: CancellationToken,
        ready: impl FnOnce(&str),
    ) -> Result<(), LaunchError> {
        let token_file = self.token_file.clone();
        let opened = self.open().await?;
        let guard = opened.guard(BearerTokens::new().with(opened.owner, Actor::owner("owner")));
        let (name, version) = (mcp.name().to_owned(), mcp.version().to_owned());
        let api = HttpApi { name, version, runtime: mcp.runtime().clone(), guard: guard.clone() };
        let router = api.router_with(Vec::new(), |routes| routes.merge(mcp::endpoint(mcp, stop.clone())))?;
        ready(&opened.url());
        let mut stderr = std::io::stderr();
        if stderr.is_terminal()
            && let Some(text) = link_text(&guard, &token_file)
        {
            let _ = stderr.write_all(text.as_bytes());
        }
        opened.serve(router, stop).await;
        Ok(())
    }

    /// Takes the address and the token; nothing is served yet, and who connects waits.
    pub async fn open(self) -> Result<Opened, LaunchError> {
        if !self.listen.ip().is_loopback() && !self.allow_plaintext {
            return Err(LaunchError::Plaintext(self.listen));
        }
        let token = read_or_make_token(&self.token_file)
            .map_err(|source| LaunchError::Token { path: self.token_file.clone(), source })?;
        let listening = Listening::on(self.listen)
            .await
            .map_err(|source| LaunchError::Address { address: self.listen, source })?;
        Ok(Opened {
            owner: TokenDigest::of(&token),
            listening,
            known_as: self.known_as,
            origins: self.origins,
        })
    }
}

/// An address and a token that were taken, before anything is served.
#[derive(Debug)]
pub struct Opened {
    /// The digest of the token in the file: its holder owns the installation.
    pub owner: TokenDigest,
    listening: Listening,
    known_as: Vec<String>,
    origins: Vec<PageOrigin>,
}

impl Opened {
    /// Where clients find it.
    pub fn url(&self) -> String {
        format!("http://{}", self.listening.address)
    }

    /// Lets in who comes to this server with one of these tokens.
    pub fn guard(&self, tokens: impl TokenHolders + 'static) -> Guard {
        let guard = self.known_as.iter().fold(Guard::new(self.listening.address, tokens), Guard::known_as);
        self.origins.iter().cloned().fold(guard, Guard::origin)
    }

    /// Serves until `stop` is cancelled.
    pub async fn serve(self, router: Router, stop: CancellationToken) {
        serve(self.listening, router, stop).await;
    }
}

/// Where a person's browser logs in, if it can be said; what is served does not depend on it.
fn link_text(guard: &Guard, token_file: &Path) -> Option<String> {
    let token = read_token(token_file).ok()?;
    let link = guard.link(&token, Asking::default(), &Wanted::default()).ok()?;
    Some(format!("dev page (this link works once, within two minutes):\n  {link}\n"))
}

/// Says on standard output where the server is and how to log in. The first line is for programs, the rest for people.
///
/// `console` is the command that opens the console, where there is one; else there is the dev page, by a link that is asked for as
/// any client can.
pub fn announce(url: &str, token_file: &Path, console: Option<&str>) {
    let token = token_file.display();
    let curl = format!("curl -H \"Authorization: Bearer $(cat {token})\"");
    let page = match console {
        Some(command) => format!("the console is at {url}; open it, logged in, with:\n  {command}"),
        None => format!("a one-time link to the dev page:\n  {curl} -X POST {url}{LOGINS_PATH}"),
    };
    let text = format!(
        "listening on {url}\n{page}\nprograms log in with the token in {token}, for example:\n  {curl} {url}/api/v1/actions\n\
         stop with Ctrl-C\n"
    );
    let mut stdout = std::io::stdout().lock();
    // Nobody listening to this is no reason not to serve.
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// The token in a file that only its owner can read; made on first use.
pub fn read_or_make_token(path: &Path) -> std::io::Result<String> {
    match read_token(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        found => return found,
    }
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let token = random_text()?;
    // Written beside and linked into place, so that nobody ever reads half a token and the first one made stays.
    let draft = path.with_extension(format!("{}.draft", std::process::id()));
    let _ = fs::remove_file(&draft);
    let written =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft).and_then(|mut file| {
            file.write_all(token.as_bytes())?;
            file.sync_all()
        });
    let linked = written.and_then(|()| fs::hard_link(&draft, path));
    let _ = fs::remove_file(&draft);
    match linked {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => read_token(path),
        Err(error) => Err(error),
        Ok(()) => Ok(token),
    }
}

fn read_token(path: &Path) -> std::io::Result<String> {
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_file() {
        return Err(std::io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    }
    let token = fs::read_to_string(path)?.trim().to_owned();
    if token.len() < TOKEN_LENGTH_MIN {
        let problem = "it holds no token; delete it and a new one is made";
        return Err(std::io::Error::new(ErrorKind::InvalidData, problem));
    }
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_and_only_its_owner_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("home/token");
        let token = read_or_make_token(&path).unwrap();
        assert_eq!(token.len(), 64);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(read_or_make_token(&path).unwrap(), token);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn the_link_that_is_told_at_the_start_logs_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let token = read_or_make_token(&path).unwrap();
        let tokens = BearerTokens::new().with(TokenDigest::of(&token), Actor::owner("owner"));
        let guard = Guard::new(SocketAddr::from(([127, 0, 0, 1], 4711)), tokens);
        let text = link_text(&guard, &path).unwrap();
        assert!(!text.contains(&token), "{text}");
        let (_, code) = text.trim_end().split_once("\n  http://127.0.0.1:4711/login#").unwrap();
        assert!(guard.log_in(code, &axum::http::HeaderMap::new(), None).is_ok());
        assert_eq!(link_text(&guard, &folder.path().join("none")), None);
    }

    #[test]
    fn a_token_file_that_is_a_link_or_empty_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "x".repeat(64)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert_eq!(read_or_make_token(&link).unwrap_err().kind(), ErrorKind::InvalidInput);
        fs::write(&real, "").unwrap();
        assert_eq!(read_or_make_token(&real).unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
