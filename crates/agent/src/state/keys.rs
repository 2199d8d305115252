//! The registered keys: which slot of a shelf each has, who owns it, and how its value is stored.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use serde_json::Value;

use super::{KeyOptions, Scope, StateError, StateKey};
use crate::caught::caught_now;

/// A value, whatever its type.
pub(crate) type Held = Arc<dyn Any + Send + Sync>;

/// Who registered something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The runtime itself.
    Runtime,
    /// Whoever put the environment together.
    Application,
    /// The plugin of this id.
    Plugin(Arc<str>),
    /// Nobody any more: a plugin that went and left its value.
    Nobody,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Owner::Runtime => "runtime",
            Owner::Application => "application",
            Owner::Plugin(id) => id,
            Owner::Nobody => "nobody",
        })
    }
}

/// A registered key.
#[derive(Clone)]
pub(crate) struct Registered {
    pub(crate) name: &'static str,
    pub(crate) scope: Scope,
    pub(crate) options: KeyOptions,
    pub(crate) owner: Owner,
    type_id: TypeId,
    encode: fn(&Held) -> Result<Value, String>,
    decode: fn(&Value) -> Result<Held, String>,
}

/// The registered keys. The place of a key in the list is its slot.
#[derive(Clone, Default)]
pub(crate) struct Keys {
    list: Vec<Registered>,
    slots: HashMap<TypeId, u32, BuildHasherDefault<TypeIdHasher>>,
    names: HashMap<&'static str, u32>,
}

impl Registered {
    fn of<K: StateKey>(options: KeyOptions, owner: Owner) -> Self {
        Registered {
            name: K::KEY,
            scope: K::SCOPE,
            options,
            owner,
            type_id: TypeId::of::<K>(),
            encode: encode::<K>,
            decode: decode::<K>,
        }
    }

    pub(crate) fn encode(&self, held: &Held) -> Result<Value, StateError> {
        let failed = |message| StateError::KeyEncode { key: self.name.to_owned(), message };
        caught_now(|| (self.encode)(held)).unwrap_or_else(Err).map_err(failed)
    }

    pub(crate) fn decode(&self, stored: &Value) -> Result<Held, StateError> {
        let failed = |message| StateError::KeyDecode { key: self.name.to_owned(), message };
        caught_now(|| (self.decode)(stored)).unwrap_or_else(Err).map_err(failed)
    }
}

impl Keys {
    /// Registers a key. One that its plugin left behind is taken over.
    pub(crate) fn register<K: StateKey>(
        &mut self,
        options: KeyOptions,
        owner: Owner,
    ) -> Result<(), StateError> {
        let registered = Registered::of::<K>(options, owner);
        if let Some(slot) = self.names.get(K::KEY) {
            let present = self.list.get_mut(*slot as usize);
            return match present.filter(|key| key.owner == Owner::Nobody && key.type_id == TypeId::of::<K>())
            {
                Some(left) => {
                    *left = registered;
                    Ok(())
                }
                None => Err(StateError::KeyAlreadyRegistered { key: K::KEY.to_owned() }),
            };
        }
        self.push(registered);
        Ok(())
    }

    fn push(&mut self, registered: Registered) {
        // A program has not that many types.
        let slot = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        self.slots.insert(registered.type_id, slot);
        self.names.insert(registered.name, slot);
        self.list.push(registered);
    }

    /// The keys without those of an owner; what is to be retained stays, without one.
    pub(crate) fn without(&self, owner: &Owner) -> Keys {
        let mut keys = Keys::default();
        for key in &self.list {
            if key.owner != *owner {
                keys.push(key.clone());
            } else if key.options.retain_on_uninstall {
                keys.push(Registered { owner: Owner::Nobody, ..key.clone() });
            }
        }
        keys
    }

    pub(crate) fn slot(&self, type_id: TypeId) -> Option<u32> {
        self.slots.get(&type_id).copied()
    }

    pub(crate) fn slot_named(&self, name: &str) -> Option<u32> {
        self.names.get(name).copied()
    }

    pub(crate) fn at(&self, slot: u32) -> Option<&Registered> {
        self.list.get(slot as usize)
    }

    /// The slot that the same key has among other keys.
    pub(crate) fn slot_in(&self, slot: u32, others: &Keys) -> Option<u32> {
        others.slot(self.at(slot)?.type_id)
    }
}

fn encode<K: StateKey>(held: &Held) -> Result<Value, String> {
    match held.downcast_ref::<K::Value>() {
        Some(value) => K::encode(value).map_err(|error| error.to_string()),
        None => Err("the value is of another type".to_owned()),
    }
}

fn decode<K: StateKey>(stored: &Value) -> Result<Held, String> {
    match K::decode(stored) {
        Ok(value) => Ok(Arc::new(value)),
        Err(error) => Err(error.to_string()),
    }
}

/// A type's id is a hash already.
#[derive(Default)]
pub(crate) struct TypeIdHasher(u64);

impl Hasher for TypeIdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = id;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
