//! A change of a run: everything that one transaction writes, and the place where it may.

use std::fmt;

use runyard_domain::{AppendId, ApprovalId, Code, RunId, Timestamp};
use runyard_redact::Safe;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::Cause;
use crate::{NewEvent, RunRow};

/// One change of one run: one transaction.
pub struct Change {
    /// The run. Its first change, at 0, makes it.
    pub run: RunId,
    /// The same for every repetition of this change, and for no other.
    pub append: AppendId,
    /// The generation of the lease under which a runner writes. A person's or the hub's own write has none.
    pub generation: Option<u64>,
    /// Where it goes, and what it writes.
    pub place: Place,
}

/// Where in the log a change goes.
#[expect(clippy::large_enum_variant, reason = "the large one is the usual one, and is moved seldom")]
pub enum Place {
    /// Right after this event, or not at all: for the owner of a live run, who knows where it stands.
    At(u64, Writes),
    /// Wherever the run stands when its turn comes: for whoever must not lose the race to a chatty agent. The function
    /// sees the run's row inside the transaction, and says what to write or refuses. It may be called more than once.
    Head(Decide),
}

/// Decides what to write, having seen where the run stands.
pub type Decide = Box<dyn FnMut(&RunRow) -> Result<Writes, Refusal> + Send>;

/// Why a change is not made. Nothing is written.
#[derive(Debug)]
pub struct Refusal {
    /// Its row in the error table.
    pub code: Code,
    /// The reason.
    pub source: Cause,
}

/// What a change writes. Its events are never empty: what is worth a write is a fact.
#[derive(Clone, Debug, Default)]
pub struct Writes {
    /// The facts, in order.
    pub events: Vec<NewEvent>,
    /// What the run's row says from now on, where the events change that.
    pub projection: Option<Projection>,
    /// Approvals that are asked for or resolved.
    pub approvals: Vec<ApprovalWrite>,
    /// Timers that are set or cancelled.
    pub timers: Vec<TimerWrite>,
    /// Messages to others, delivered after the commit.
    pub outbox: Vec<Safe<Value>>,
    /// The result that an idempotency key stands for from now on.
    pub result: Option<KeyedResult>,
}

/// A run as its row shows it.
#[derive(Clone, Debug)]
pub struct Projection {
    /// The state's name: what runs are listed by.
    pub status: &'static str,
    /// The folded state.
    pub state: Safe<Value>,
}

/// A change of an approval.
#[derive(Clone, Debug)]
pub enum ApprovalWrite {
    /// It is asked for.
    Open {
        /// Its id.
        id: ApprovalId,
        /// When it counts as rejected.
        expires: Timestamp,
        /// What is asked.
        request: Safe<Value>,
    },
    /// It is answered: once.
    Resolve {
        /// Its id.
        id: ApprovalId,
        /// The answer.
        decision: Safe<Value>,
    },
}

/// A change of a run's timers.
#[derive(Clone, Debug)]
pub enum TimerWrite {
    /// Sets it, or moves it.
    Set {
        /// Its name within the run: one of the program's own words, with an id behind it where there are several.
        name: Safe<String>,
        /// When it is due, by the database's clock.
        due: Timestamp,
        /// What is to be done then.
        payload: Safe<Value>,
    },
    /// Takes it away. Firing a timer is a change that cancels it. It is no error when there is none.
    Cancel {
        /// Its name.
        name: Safe<String>,
    },
}

/// The result that an idempotency key stands for.
#[derive(Clone, Debug)]
pub struct KeyedResult {
    /// The key, with whom and what it belongs to.
    pub key: KeyDigest,
    /// Stands for the input.
    pub fingerprint: [u8; 32],
    /// The result.
    pub result: Safe<Value>,
    /// Until when it is kept.
    pub expires: Timestamp,
}

/// What an idempotency key is stored as. A key is the caller's text and could hold anything, so only its digest is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyDigest([u8; 32]);

impl KeyDigest {
    /// The digest of a key's parts: whom and what it belongs to, and the key.
    pub fn of(parts: &[&str]) -> Self {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part.as_bytes());
        }
        KeyDigest(digest.finalize().into())
    }

    /// The digest that a store kept.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        KeyDigest(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// As 64 hexadecimal digits: what a tool is given as its idempotency key.
impl fmt::Display for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match &self.place {
            Place::At(sequence, _) => format!("At({sequence})"),
            Place::Head(_) => "Head".to_owned(),
        };
        let mut shown = f.debug_struct("Change");
        shown
            .field("run", &self.run)
            .field("append", &self.append)
            .field("place", &place)
            .finish_non_exhaustive()
    }
}
