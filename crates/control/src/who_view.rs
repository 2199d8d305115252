//! Who did something, as answers show it.

use runyard_domain::ActorKind;
use runyard_domain::run::Who;
use schemars::JsonSchema;
use serde::Serialize;

/// Who did something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WhoView {
    /// The actor's name.
    id: String,
    /// person, service or agent.
    kind: &'static str,
    /// The run that an agent drives.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<String>,
}

impl From<&Who> for WhoView {
    fn from(who: &Who) -> Self {
        let (kind, run_id) = match who.kind {
            ActorKind::Person => ("person", None),
            ActorKind::Service => ("service", None),
            ActorKind::Agent { run } => ("agent", Some(run.to_string())),
        };
        WhoView { id: who.id.clone(), kind, run_id }
    }
}
