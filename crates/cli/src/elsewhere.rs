//! Where the command line's actions run: on the hub of this home if one runs, so that everybody sees the same; else here.

use std::collections::BTreeSet;

use async_trait::async_trait;
use runyard::{Action, Envelope, Invocation};
use runyard_domain::Surface;
use runyard_surfaces::cli::Elsewhere;

use crate::home::Home;
use crate::hub_client::HubClient;
use crate::hub_here::{AnyHub, Stay};
use crate::views;

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

#[async_trait]
impl Elsewhere for OnTheHub {
    async fn invoke(&self, action: &Action, invocation: &Invocation) -> Option<Envelope> {
        let call = async |client: &HubClient| {
            let options = &invocation.options;
            let key = options.idempotency_key.as_deref();
            let called = client.invoke(action.name(), invocation.input.clone(), options.confirm, key).await;
            called.unwrap_or_else(|error| Envelope::refusal(Surface::Cli, Some(action.name()), error))
        };
        if !self.control.contains(action.name()) {
            return None;
        }
        let mut envelope = match AnyHub::get(&self.home, Stay::ForOneCall).await {
            Ok(hub) => {
                let envelope = call(hub.client()).await;
                hub.stop().await;
                envelope
            }
            Err(error) => Envelope::refusal(Surface::Cli, Some(action.name()), error),
        };
        envelope.meta.surface = Surface::Cli;
        if self.for_people
            && let Ok(data) = &mut envelope.outcome
        {
            *data = views::for_people(action.name(), data.take());
        }
        Some(envelope)
    }
}
