//! Who came in, and which addresses agents tried, in the audit. It lets nobody in and keeps nobody out.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{MatchedPath, Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use runyard_control::plain;
use runyard_surfaces::http::{Actor, LOGINS_PATH, LoggedIn};

use crate::Shared;

/// So much of an address that an agent tried is recorded.
const ADDRESS_CHARS_MAX: usize = 200;
/// So many addresses are recorded by name. An agent that tries more cannot fill the audit with them.
const ADDRESSES_MAX: usize = 256;
/// What stands for all further ones.
const FURTHER: &str = "a further unknown address";

/// The addresses at which agents found nothing.
#[derive(Default)]
pub(crate) struct Addresses(Mutex<HashSet<String>>);

impl Addresses {
    /// The name under which an address is recorded.
    fn name(&self, address: String) -> String {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(&address) {
            return address;
        }
        if known.len() >= ADDRESSES_MAX {
            return FURTHER.to_owned();
        }
        known.insert(address.clone());
        address
    }
}

/// Around every route, behind the guard.
pub(crate) async fn record(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let Some(actor) = request.extensions().get::<Arc<Actor>>().cloned() else {
        let response = next.run(request).await;
        if let Some(LoggedIn(person)) = response.extensions().get() {
            plain::session_began(&shared.engine, person).await;
        }
        return response;
    };
    plain::login(&shared.engine, &actor).await;
    if !actor.is_agent() {
        return next.run(request).await;
    }
    // Every other route records by itself what it refuses; these do not know what was meant, or know no record.
    let unnamed =
        request.extensions().get::<MatchedPath>().is_none_or(|path| path.as_str().ends_with("/invoke"));
    let login = request.uri().path() == LOGINS_PATH;
    let address = format!("{} {}", request.method(), request.uri().path());
    let response = next.run(request).await;
    let is_refused = match response.status() {
        StatusCode::NOT_FOUND => unnamed,
        // A link to log in with is for people.
        StatusCode::FORBIDDEN => login,
        _ => false,
    };
    if is_refused {
        let address = address.chars().take(ADDRESS_CHARS_MAX).collect();
        plain::tried(&shared.engine, &actor, &shared.addresses.name(address)).await;
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_addresses_are_named_and_no_more() {
        let addresses = Addresses::default();
        for number in 0..ADDRESSES_MAX {
            assert_eq!(addresses.name(number.to_string()), number.to_string());
        }
        assert_eq!(addresses.name("one more".to_owned()), FURTHER);
        assert_eq!(addresses.name("0".to_owned()), "0", "what is known stays known");
    }
}
