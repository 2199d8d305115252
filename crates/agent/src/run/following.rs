//! The phase that follows a result, over a death: for which calls it is not durable, and doing it again for those.
//!
//! An effect that the tool itself sent is not stored, and so is not sent again. The end of the step is not told again either.

use std::collections::BTreeMap;

use runyard_domain::Code;

use super::{Course, Halt};
use crate::checkpoint::CallPlace;
use crate::phase::{Moment, Phase};
use crate::state::{MutationBatch, StateError, StateKey};
use crate::tool::{ToolError, ToolResult};

/// Calls whose result is durable, and what came of their hooks is not, each with the code of the error that ended it.
pub(crate) struct NotFollowed;

/// A change of the calls whose hooks have something left to do.
#[derive(Debug)]
pub(crate) enum NotFollowedUpdate {
    /// The result of one is there.
    Ended(CallPlace, Option<Code>),
    /// Its hooks have done what they had to.
    Followed(CallPlace),
    /// The run is over.
    Forget,
}

impl StateKey for NotFollowed {
    const KEY: &'static str = "runtime.not_followed";
    type Value = BTreeMap<String, Option<Code>>;
    type Update = NotFollowedUpdate;

    fn apply(calls: &mut Self::Value, update: NotFollowedUpdate) {
        match update {
            NotFollowedUpdate::Ended(place, code) => drop(calls.insert(place.to_string(), code)),
            NotFollowedUpdate::Followed(place) => drop(calls.remove(&place.to_string())),
            NotFollowedUpdate::Forget => calls.clear(),
        }
    }
}

impl Course {
    /// A call has a result, which is durable before its hooks hear of it. It is remembered that they have to.
    pub(super) fn is_to_follow(&mut self, place: CallPlace, code: Option<Code>) -> Result<(), StateError> {
        if !self.parts.agent.environment.has_something_to_do(&self.store, Phase::AfterToolExecute) {
            return Ok(());
        }
        self.follows(NotFollowedUpdate::Ended(place, code))
    }

    /// What its hooks did is durable from when this is.
    pub(super) fn has_followed(&mut self, place: CallPlace) -> Result<(), StateError> {
        let key = place.to_string();
        if self.store.look(|now| now.get::<NotFollowed>().is_some_and(|calls| calls.contains_key(&key))) {
            self.follows(NotFollowedUpdate::Followed(place))?;
        }
        Ok(())
    }

    fn follows(&mut self, update: NotFollowedUpdate) -> Result<(), StateError> {
        self.store.commit(MutationBatch::new().with::<NotFollowed>(update)).map(drop)
    }

    /// Lets the hooks hear of results that they may not have heard of before the process died. What came of a call is known
    /// as the model reads it.
    pub(super) async fn follow_the_rest(&mut self) -> Result<(), Halt> {
        let calls = self.store.snapshot().get::<NotFollowed>().cloned().unwrap_or_default();
        let calls: BTreeMap<CallPlace, Option<Code>> =
            calls.into_iter().filter_map(|(place, code)| Some((CallPlace::parse(&place)?, code))).collect();
        for (place, code) in calls {
            if let Some((call, output)) = self.conversation.result_at(place) {
                let (call, text) = (call.clone(), output.content.clone());
                let outcome = match (code.and_then(|code| ToolError::told(code, &text)), output.is_error) {
                    (Some(error), _) => Err(error),
                    (None, true) => Ok(ToolResult::error(text)),
                    (None, false) => Ok(ToolResult::success(text)),
                };
                self.phase(Moment::AfterToolExecute { call: &call, outcome: &outcome }).await?;
            }
            self.has_followed(place)?;
        }
        Ok(())
    }
}
