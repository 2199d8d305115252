//! A model that says what a script says: for tests and for demonstrations without a provider.
//!
//! The script is data ([`Script`]). It thinks nothing: all it looks at is the last message, where the script asks for that.

mod script;
mod stream;

use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::sleep;

use self::stream::{Beats, Playing};
use super::{InferenceExecutionError, InferenceRequest, Model, ModelStream, Refusal};

pub use script::{
    AtEnd, Opens, Script, ScriptedAnswer, ScriptedCall, ScriptedError, ScriptedFault, ScriptedUsage, Step,
    When,
};

/// How many requests are kept to be looked at, the newest.
pub const REQUESTS_KEPT_MAX: usize = 256;

/// A model that says what a script says.
#[derive(Debug)]
pub struct ScriptedModel {
    name: String,
    at_end: AtEnd,
    answers: Vec<Prepared>,
    kept_max: usize,
    played: Mutex<Played>,
}

#[derive(Debug)]
struct Prepared {
    when: Option<When>,
    opens: Opens,
    beats: Beats,
}

#[derive(Debug, Default)]
struct Played {
    /// How often each answer was given.
    times: Vec<u32>,
    /// Where the answers without a condition stand.
    next: usize,
    requests: VecDeque<InferenceRequest>,
}

impl ScriptedModel {
    /// Plays the script.
    pub fn new(script: Script) -> Self {
        let answers: Vec<Prepared> = script.answers.into_iter().map(Prepared::of).collect();
        let played = Played { times: vec![0; answers.len()], ..Played::default() };
        ScriptedModel {
            name: script.name,
            at_end: script.at_end,
            answers,
            kept_max: REQUESTS_KEPT_MAX,
            played: Mutex::new(played),
        }
    }

    /// Gives these answers, one after the other.
    pub fn of(name: &str, answers: impl IntoIterator<Item = ScriptedAnswer>) -> Self {
        Self::new(Script {
            name: name.to_owned(),
            at_end: AtEnd::default(),
            answers: answers.into_iter().collect(),
        })
    }

    /// The same, which keeps no requests.
    #[must_use]
    pub fn forgetful(mut self) -> Self {
        self.kept_max = 0;
        self
    }

    /// What it was asked, oldest first; the newest [`REQUESTS_KEPT_MAX`].
    pub fn requests(&self) -> Vec<InferenceRequest> {
        self.locked().requests.iter().cloned().collect()
    }

    /// How often it was asked.
    pub fn asked(&self) -> u32 {
        self.locked().times.iter().sum()
    }

    fn locked(&self) -> MutexGuard<'_, Played> {
        self.played.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first answer whose condition holds, else the next without one.
    fn choose(&self, request: &InferenceRequest) -> Option<&Prepared> {
        let mut played = self.locked();
        if self.kept_max > 0 {
            if played.requests.len() >= self.kept_max {
                played.requests.pop_front();
            }
            played.requests.push_back(request.clone());
        }
        let holds = |(at, answer): &(usize, &Prepared)| {
            answer.when.as_ref().is_some_and(|when| when.holds(request, played.times[*at]))
        };
        let chosen = self
            .answers
            .iter()
            .enumerate()
            .find(holds)
            .map(|(at, _)| at)
            .or_else(|| self.in_order(&mut played))?;
        played.times[chosen] = played.times[chosen].saturating_add(1);
        self.answers.get(chosen)
    }

    fn in_order(&self, played: &mut Played) -> Option<usize> {
        let plain = |from: usize| {
            let rest = self.answers.iter().enumerate().skip(from);
            rest.filter(|(_, answer)| answer.when.is_none()).map(|(at, _)| at).next()
        };
        let chosen = plain(played.next).or_else(|| match self.at_end {
            AtEnd::Fail => None,
            AtEnd::Repeat => plain(0),
            AtEnd::Last => self.answers.iter().rposition(|answer| answer.when.is_none()),
        })?;
        played.next = chosen + 1;
        Some(chosen)
    }
}

impl Prepared {
    fn of(answer: ScriptedAnswer) -> Self {
        Prepared { when: answer.when, opens: answer.opens, beats: stream::beats(answer.steps) }
    }
}

#[async_trait]
impl Model for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    async fn open(&self, request: &InferenceRequest) -> Result<ModelStream, Refusal> {
        let Some(answer) = self.choose(request) else {
            return Err(InferenceExecutionError::InvalidRequest("the script is over".to_owned()).into());
        };
        match &answer.opens {
            Opens::AtOnce => {}
            Opens::AfterMs(ms) => sleep(Duration::from_millis(*ms)).await,
            Opens::Never => pending().await,
            Opens::Failing(error) => return Err(InferenceExecutionError::from(error.clone()).into()),
        }
        Ok(Box::pin(Playing::new(answer.beats.clone())))
    }
}
