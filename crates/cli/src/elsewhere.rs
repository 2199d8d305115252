//! Where the command line's actions run: on the hub of this home if one runs, so that everybody sees the same; else here.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};

use async_trait::async_trait;
use runyard::{Action, ActionError, Code, Envelope, Invocation, SideEffects};
use runyard_surfaces::cli::Elsewhere;

use crate::home::Home;
use crate::hub_here::{AnyHub, Stay};
use crate::run::{data, typed};
use crate::views;

/// How many hubs that end at once are asked one after the other.
pub(crate) const HUBS_MAX: usize = 20;

/// What is said to a run or asked about one, after which people wait for it to go on.
const ABOUT_A_RUN: [&str; 3] = ["run_show", "run_command", "run_cancel"];

/// The hub of a home. What needs one and finds none has one for as long as it takes.
pub(crate) struct OnTheHub {
    home: Home,
    /// The actions that only a hub can run.
    control: BTreeSet<String>,
    /// Whether what they answer is read by people, who need less of it.
    for_people: bool,
}

impl OnTheHub {
    pub(crate) fn new(home: Home, for_people: bool) -> Self {
        let control = runyard_control::actions().into_iter().flatten();
        OnTheHub { home, control: control.map(|action| action.name().to_owned()).collect(), for_people }
    }
}

impl OnTheHub {
    /// Calls the action on whatever hub there is. That of another command may end just when it is asked; then the next one is,
    /// under the same key, so that nothing is done twice.
    async fn call(&self, action: &Action, invocation: &Invocation) -> Result<Envelope, ActionError> {
        let options = &invocation.options;
        if action.name() == "policy_add" && self.for_people && !options.confirm && typed::can_ask() {
            self.look_at_rule(invocation).await?;
        }
        let changes = action.spec().side_effects != SideEffects::Read;
        let key = options.idempotency_key.clone().or_else(|| changes.then(fresh_key));
        for _ in 0..HUBS_MAX {
            let hub = AnyHub::get(&self.home, Stay::ForOneCall).await?;
            let passing = hub.is_passing();
            let called = hub.client().make(action.name(), invocation, key.as_deref()).await;
            if self.for_people
                && ABOUT_A_RUN.contains(&action.name())
                && called.as_ref().is_ok_and(|envelope| envelope.outcome.is_ok())
            {
                hub.say_if_left(invocation.input["id"].as_str().unwrap_or_default()).await;
            }
            hub.stop().await;
            match called {
                Err(error) if passing && *error.code() == Code::ExternalServiceError => {}
                called => return called,
            }
        }
        Err(ActionError::new(Code::ExternalServiceError, "Every hub that was found ended at once."))
    }
}

impl OnTheHub {
    /// Shows what a rule would change before it is stored, and asks whether it is meant.
    async fn look_at_rule(&self, invocation: &Invocation) -> Result<(), ActionError> {
        let mut input = invocation.input.clone();
        if input["dryRun"] == true {
            return Ok(());
        }
        input["dryRun"] = true.into();
        let hub = AnyHub::get(&self.home, Stay::ForOneCall).await?;
        let looked = hub.client().invoke("policy_add", input, true, None).await;
        hub.stop().await;
        let shown = views::for_people("policy_add", data(looked?)?);
        let question = format!("{}\nAdd it? [y/N] ", shown.as_str().unwrap_or_default());
        let meant = typed::confirm(&question).await;
        meant.map_err(|_| ActionError::new(Code::Cancelled, "Not added."))
    }
}

/// A key that nobody else uses.
pub(crate) fn fresh_key() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("cli-{:016x}{:016x}", random(), random())
}

#[async_trait]
impl Elsewhere for OnTheHub {
    async fn invoke(&self, action: &Action, invocation: &Invocation) -> Option<Envelope> {
        if !self.control.contains(action.name()) {
            return None;
        }
        let called = self.call(action, invocation).await;
        let mut envelope =
            called.unwrap_or_else(|error| Envelope::refusal(invocation.surface, Some(action.name()), error));
        // The way to the hub is no surface of its own.
        envelope.meta.surface = invocation.surface;
        if self.for_people
            && let Ok(data) = &mut envelope.outcome
        {
            *data = views::for_people(action.name(), data.take());
        }
        Some(envelope)
    }
}
