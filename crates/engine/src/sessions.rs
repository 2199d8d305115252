//! Closing a session: what agents keep of its conversation goes. Its runs and their record stay.

use runyard_domain::run::Who;
use runyard_domain::{Actor, SessionId};

use crate::installation::{AuditFact, SessionClosed};
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
        let (mut known, mut before) = (false, None);
        for _ in 0..PAGES_MAX {
            let (runs, more) = self.runs(None, before, PAGE).await?;
            for run in runs.iter().map(|standing| &standing.run) {
                if run.created.session_id != session {
                    continue;
                }
                known = true;
                if !run.state.is_terminal() {
                    return Err(EngineError::SessionBusy { session, run: run.id });
                }
            }
            before = runs.last().map(|standing| standing.run.id);
            if !more || before.is_none() {
                break;
            }
        }
        if known { Ok(()) } else { Err(EngineError::NotFound { what: format!("session {session}") }) }
    }
}
