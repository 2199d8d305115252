//! The card of an agent that runs elsewhere: a JSON document that says what it is and where it answers.

use std::time::Duration;

use hyper::Method;
use runyard_llm::http::{Answer, Client, Limits};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::RemoteError;
use super::http::{Ask, Place, refused, whole};
use crate::spec::{AgentSpec, EndpointSpec};

/// The most bytes of a card.
pub const CARD_BYTES_MAX: usize = 256 * 1024;
/// So long a card may take to come.
pub const CARD_TIME_MAX: Duration = Duration::from_secs(15);

/// What an agent that runs elsewhere says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentCard {
    /// What it goes by.
    pub id: String,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Where it answers: on the host and port that the card comes from.
    pub endpoint: EndpointSpec,
}

/// Why there is no card.
#[derive(Debug)]
pub(crate) enum CardError {
    /// Nothing came, or nothing in time.
    Unread(String),
    /// What came is no card.
    NoCard(String),
}

/// Reads the card at this address.
pub(crate) async fn fetch_card(client: &Client, url: &str) -> Result<AgentSpec, CardError> {
    let place = Place::parse(url).map_err(|_| {
        CardError::Unread("it is no http or https URL without a user name and a password".to_owned())
    })?;
    let bytes = match timeout(CARD_TIME_MAX, read(client, &place)).await {
        Ok(read) => read.map_err(|error| CardError::Unread(error.message))?,
        Err(_) => {
            return Err(CardError::Unread(format!("it did not come within {} s", CARD_TIME_MAX.as_secs())));
        }
    };
    let card: AgentCard =
        serde_json::from_slice(&bytes).map_err(|error| CardError::NoCard(error.to_string()))?;
    // A card speaks for where it lies, and for nobody else.
    match Place::parse(&card.endpoint.url) {
        Ok(endpoint) if endpoint.is_beside(&place) => {}
        _ => return Err(CardError::NoCard("its endpoint is not on its own host and port".to_owned())),
    }
    Ok(AgentSpec { label: card.label, ..AgentSpec::remote(card.id, card.endpoint) })
}

async fn read(client: &Client, place: &Place) -> Result<Vec<u8>, RemoteError> {
    let limits = Limits { head: CARD_TIME_MAX, idle: CARD_TIME_MAX, ..Limits::default() };
    let ask = Ask { method: Method::GET, accept: "application/json", key: None, body: Vec::new() };
    // The connection is held until the body is read.
    let Answer { response, connection: _connection } = place.ask(client, &limits, ask).await?;
    if !response.status().is_success() {
        return Err(refused(response.status().as_u16(), place));
    }
    whole(response.into_body(), &limits, CARD_BYTES_MAX).await
}
