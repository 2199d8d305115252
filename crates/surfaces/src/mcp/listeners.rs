//! How many streams are held open to tell clients what changes: those of all callers together, and those of one.
//!
//! Each holds a connection. There are fewer of them than connections, so that whoever listens leaves room for whoever acts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use runyard_domain::Actor;

/// So many are open at a time: an eighth of the connections that a server takes.
pub const LISTENERS_MAX: usize = 256;
/// So many of them may be one caller's.
pub(super) const LISTENERS_OF_CALLER_MAX: usize = 32;
/// What whoever finds no room is told.
pub(super) const NO_ROOM: &str = "Too many streams are open; close one that is no longer needed.";

/// Those that are open, by caller.
#[derive(Clone, Default)]
pub(crate) struct Listeners(Arc<Mutex<HashMap<String, usize>>>);

/// The room that one takes. It is free again when this is dropped.
pub(super) struct Room {
    caller: String,
    listeners: Listeners,
}

impl Listeners {
    /// Room for one more of this caller's, if there is some.
    pub(super) fn enter(&self, actor: &Actor) -> Option<Room> {
        let caller = actor.to_string();
        let mut open = self.open();
        let own = open.get(&caller).copied().unwrap_or_default();
        if own >= LISTENERS_OF_CALLER_MAX || open.values().sum::<usize>() >= LISTENERS_MAX {
            return None;
        }
        open.insert(caller.clone(), own + 1);
        Some(Room { caller, listeners: self.clone() })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut open = self.listeners.open();
        match open.get_mut(&self.caller) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(open.remove(&self.caller)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_some_of_each_caller_and_for_some_of_all() {
        let listeners = Listeners::default();
        let of = |name: &str| listeners.enter(&Actor::service(name, ["tasks.read"]));
        let mut rooms: Vec<Room> = (0..LISTENERS_OF_CALLER_MAX).map(|_| of("bob").unwrap()).collect();
        assert!(of("bob").is_none(), "that is all for one caller");
        for number in LISTENERS_OF_CALLER_MAX..LISTENERS_MAX {
            rooms.push(of(&format!("other {}", number / LISTENERS_OF_CALLER_MAX)).unwrap());
        }
        assert!(of("ada").is_none(), "that is all");
        rooms.remove(0);
        let ada = of("ada");
        assert!(ada.is_some() && of("bob").is_none());
        drop((rooms, ada));
        assert!(listeners.open().is_empty(), "nothing is left behind");
    }
}
