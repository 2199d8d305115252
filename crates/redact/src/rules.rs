//! What a redactor looks for, put together once and shared by all its streams.

use crate::forms::triggers::Triggers;
use crate::known::KnownValues;
use crate::paths::PrivatePath;
use crate::placeholder::TagKey;

pub(crate) struct Rules {
    pub(crate) key: TagKey,
    pub(crate) known: KnownValues,
    pub(crate) triggers: Triggers,
    pub(crate) paths: Vec<PrivatePath>,
}
