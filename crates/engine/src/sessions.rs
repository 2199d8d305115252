//! Sessions: the conversations that runs share. Closing one removes what agents keep of it; its runs and their record stay.

use runyard_domain::run::{Run, Who};
use runyard_domain::{Actor, SessionId};

use crate::installation::{AuditFact, SessionClosed};
use crate::record::Standing;
use crate::{Engine, EngineError};

/// How many runs are looked at, at a time.
const PAGE: u32 = 500;
/// How many times, until a session counts as unknown.
const PAGES_MAX: usize = 2_000;

impl Engine {
    /// Closes a session whose runs are all over: the agents' own files of its conversation are removed.
    pub async fn close_session(&self, session: SessionId, actor: &Actor) -> Result<(), EngineError> {
        self.check_over(session).await?;
        self.forget_session(session).await?;
        let closed = AuditFact::Session(SessionClosed { session_id: session });
        Ok(self.installation().record(&Who::from(actor), closed).await?)
    }

    /// Refuses a session that no run is in, or one with a run that is not over.
    async fn check_over(&self, session: SessionId) -> Result<(), EngineError> {
        let live = |run: &Run| !run.state.is_terminal();
        match self.search(session, live).await? {
            Found::Wanted(standing) => Err(EngineError::SessionBusy { session, run: standing.run.id }),
            Found::Others => Ok(()),
            Found::Nothing => Err(EngineError::NotFound { what: format!("session {session}") }),
        }
    }

    /// The last run of a session that is one of these. A session that no run is in is refused.
    pub(crate) async fn last_in(
        &self,
        session: SessionId,
        wanted: impl Fn(&Run) -> bool,
    ) -> Result<Option<Standing>, EngineError> {
        match self.search(session, wanted).await? {
            Found::Wanted(standing) => Ok(Some(*standing)),
            Found::Others => Ok(None),
            Found::Nothing => {
                let message = "Expected a session that a run is in; a new one is made without.".to_owned();
                Err(EngineError::Invalid { path: "session", message })
            }
        }
    }

    /// Looks through the runs of a session, from the last to the first.
    async fn search(&self, session: SessionId, wanted: impl Fn(&Run) -> bool) -> Result<Found, EngineError> {
        let (mut found, mut before) = (Found::Nothing, None);
        for _ in 0..PAGES_MAX {
            let (runs, more) = self.runs(None, before, PAGE).await?;
            before = runs.last().map(|standing| standing.run.id);
            for standing in runs.into_iter().filter(|standing| standing.run.created.session_id == session) {
                if wanted(&standing.run) {
                    return Ok(Found::Wanted(Box::new(standing)));
                }
                found = Found::Others;
            }
            if !more || before.is_none() {
                break;
            }
        }
        Ok(found)
    }
}

/// What a session has.
enum Found {
    /// A run that is wanted.
    Wanted(Box<Standing>),
    /// Only others.
    Others,
    /// No run at all.
    Nothing,
}
