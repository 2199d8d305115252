//! Named tokens: what they are made of, what they are stored as, and what each role may do.
//!
//! A token's text is shown once, to whoever has it made. Only its digest is kept.

use std::fmt::{self, Write};
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use runyard_domain::run::Who;
use runyard_domain::{Actor, ActorKind, Grants, Timestamp, TokenId};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::InstallationError;

/// The longest name of a token.
pub const NAME_BYTES_MAX: usize = 64;
/// What a token begins with, so that one that is found somewhere says what it is.
const PREFIX: &str = "ryd_";
/// How much randomness a token has.
const RANDOM_BYTES: usize = 32;
/// Names that mean something else: Runyard itself, the holder of the token in the data directory, whoever is at the terminal.
const RESERVED: [&str; 3] = ["runyard", "owner", "local"];

/// The permissions that roles are made of.
pub mod permissions {
    /// See runs, sessions, agents, backends, edges and approvals.
    pub const RUNS_READ: &str = "runs.read";
    /// Create and cancel runs, and tell them something.
    pub const RUNS_WRITE: &str = "runs.write";
    /// Add what a run produced to its record.
    pub const ARTIFACTS_WRITE: &str = "artifacts.write";
    /// Decide what runs ask.
    pub const APPROVALS_RESOLVE: &str = "approvals.resolve";
    /// See and try the policy.
    pub const POLICY_READ: &str = "policy.read";
    /// Add and remove rules.
    pub const POLICY_WRITE: &str = "policy.write";
    /// Create, list and revoke tokens.
    pub const TOKENS_WRITE: &str = "tokens.write";
    /// See who did what.
    pub const AUDIT_READ: &str = "audit.read";
    /// See the workspaces.
    pub const WORKSPACES_READ: &str = "workspaces.read";
    /// Add and remove workspaces.
    pub const WORKSPACES_WRITE: &str = "workspaces.write";
}

use permissions::*;

const READS: [&str; 4] = [RUNS_READ, POLICY_READ, AUDIT_READ, WORKSPACES_READ];

/// What the holder of a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Look at everything but tokens.
    Viewer,
    /// And have runs and workspaces.
    Operator,
    /// Look, and decide what runs ask.
    Approver,
    /// Everything.
    Admin,
}

impl Role {
    /// Every role.
    pub const ALL: [Role; 4] = [Role::Viewer, Role::Operator, Role::Approver, Role::Admin];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Approver => "approver",
            Role::Admin => "admin",
        }
    }

    /// The role of this word.
    pub fn parse(word: &str) -> Option<Self> {
        Role::ALL.into_iter().find(|role| role.as_str() == word)
    }

    /// The permissions that come with it.
    pub fn grants(self) -> Grants {
        match self {
            Role::Viewer => Grants::only(READS),
            Role::Operator => {
                Grants::only(READS.into_iter().chain([RUNS_WRITE, ARTIFACTS_WRITE, WORKSPACES_WRITE]))
            }
            Role::Approver => Grants::only(READS.into_iter().chain([APPROVALS_RESOLVE])),
            Role::Admin => Grants::All,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A token's text. It does not show by accident.
pub struct TokenText(String);

impl TokenText {
    /// A new one, from the system's randomness.
    pub(super) fn random() -> Result<Self, InstallationError> {
        let mut bytes = [0; RANDOM_BYTES];
        let read = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
        read.map_err(InstallationError::Randomness)?;
        Ok(TokenText(format!("{PREFIX}{}", hex(&bytes))))
    }

    /// The text, to show it to whoever asked for the token.
    pub fn reveal(self) -> String {
        self.0
    }

    pub(super) fn digest(&self) -> TokenDigest {
        TokenDigest::of(&self.0)
    }
}

impl fmt::Debug for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenText(…)")
    }
}

/// The SHA-256 of a token. Tokens are random and long, so no slow hash is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(super) struct TokenDigest([u8; 32]);

/// A text that is no digest.
#[derive(Debug, thiserror::Error)]
#[error("not a digest: expected 64 hexadecimal digits")]
pub(super) struct NotADigest;

impl TokenDigest {
    pub(super) fn of(token: &str) -> Self {
        TokenDigest(Sha256::digest(token.as_bytes()).into())
    }

    /// Compares without telling by its time how much was equal.
    pub(super) fn matches(self, other: TokenDigest) -> bool {
        self.0.iter().zip(other.0).fold(0, |difference, (one, other)| difference | (one ^ other)) == 0
    }
}

impl From<TokenDigest> for String {
    fn from(digest: TokenDigest) -> String {
        hex(&digest.0)
    }
}

impl TryFrom<String> for TokenDigest {
    type Error = NotADigest;

    fn try_from(text: String) -> Result<Self, NotADigest> {
        let mut bytes = [0; 32];
        if text.len() != 2 * bytes.len() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(NotADigest);
        }
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| NotADigest)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| NotADigest)?;
        }
        Ok(TokenDigest(bytes))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing into memory cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A token as people may see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenInfo {
    /// Its id.
    pub id: TokenId,
    /// Whose it is, or what for: the name that its holder acts under.
    pub name: String,
    /// What its holder may do.
    pub role: Role,
    /// When it was made.
    pub created: Timestamp,
    /// Who had it made.
    pub created_by: Who,
    /// When it stops to let anybody in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub expires: Option<Timestamp>,
}

impl TokenInfo {
    /// Whether it does not let anybody in any more.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

/// A token as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredToken {
    #[serde(flatten)]
    info: TokenInfo,
    digest: TokenDigest,
}

/// A token that is known, and who holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredToken", into = "StoredToken")]
pub(super) struct Token {
    pub(super) info: Arc<TokenInfo>,
    pub(super) digest: TokenDigest,
    pub(super) holder: Arc<Actor>,
}

impl Token {
    pub(super) fn new(info: TokenInfo, digest: TokenDigest) -> Self {
        let holder = Actor { id: info.name.clone(), kind: ActorKind::Person, grants: info.role.grants() };
        Token { info: Arc::new(info), digest, holder: Arc::new(holder) }
    }
}

impl From<StoredToken> for Token {
    fn from(stored: StoredToken) -> Self {
        Token::new(stored.info, stored.digest)
    }
}

impl From<Token> for StoredToken {
    fn from(token: Token) -> Self {
        StoredToken { info: TokenInfo::clone(&token.info), digest: token.digest }
    }
}

/// Whether a token may have this name.
pub(super) fn check_name(name: &str) -> Result<(), InstallationError> {
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte));
    let lower = name.to_ascii_lowercase();
    let is_another = lower.starts_with(PREFIX) || lower.starts_with("tok_") || RESERVED.contains(&&*lower);
    if fits && !is_another { Ok(()) } else { Err(InstallationError::InvalidName) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_plain_and_no_token() {
        for good in ["a", "ada", "ada.lovelace@example.com", "ci-2_b", "Owner2", &"x".repeat(NAME_BYTES_MAX)]
        {
            assert!(check_name(good).is_ok(), "{good}");
        }
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for bad in ["", "-a", "a b", "a\n", "ä", "ryd_ab", "RYD_ab", "tok_0", "runyard", "Owner", &long] {
            assert!(matches!(check_name(bad), Err(InstallationError::InvalidName)), "{bad}");
        }
    }

    #[test]
    fn each_role_holds_exactly_its_permissions() {
        let all = [
            RUNS_READ,
            POLICY_READ,
            AUDIT_READ,
            WORKSPACES_READ,
            RUNS_WRITE,
            ARTIFACTS_WRITE,
            WORKSPACES_WRITE,
            APPROVALS_RESOLVE,
            POLICY_WRITE,
            TOKENS_WRITE,
        ];
        let held = Role::ALL.map(|role| {
            let grants = role.grants();
            all.map(|permission| if grants.include(permission) { 'x' } else { '-' })
                .iter()
                .collect::<String>()
        });
        // reads, then runs, artifacts, workspaces, approvals, policy, tokens
        assert_eq!(held, ["xxxx------", "xxxxxxx---", "xxxx---x--", "xxxxxxxxxx"]);
        assert_eq!(Role::ALL.map(|role| Role::parse(role.as_str())), Role::ALL.map(Some));
    }

    #[test]
    fn a_token_is_long_random_and_does_not_show() {
        let (one, other) = (TokenText::random().unwrap(), TokenText::random().unwrap());
        assert!(!one.digest().matches(other.digest()));
        assert!(one.digest().matches(TokenDigest::of(&one.0)));
        assert_eq!(format!("{one:?}"), "TokenText(…)");
        let digest = one.digest();
        let text = one.reveal();
        assert_eq!((text.len(), &text[..4]), (PREFIX.len() + 2 * RANDOM_BYTES, PREFIX));
        assert_eq!(TokenDigest::try_from(String::from(digest)).unwrap(), digest);
        let wrong = ["", "00", &"g".repeat(64), &"ä".repeat(32), &"+1".repeat(32)];
        assert!(wrong.iter().all(|text| TokenDigest::try_from((*text).to_owned()).is_err()));
    }
}
