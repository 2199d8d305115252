//! `[agent.NAME] backend = "native"`: an agent of ours, all of it in one table. It has a backend profile of its own name.

use runyard_adapters::native::NATIVE_KIND;
use runyard_domain::{BackendProfile, Wire};
use serde_json::Value;

use super::layers::Values;
use super::problem::{Fault, Problem};
use super::profiles::{field, optional, wrong};
use super::setting::{Section, Setting};

fn key(id: &str, name: &str) -> String {
    format!("agent.{id}.{name}")
}

/// Whether the agent is one of ours. A backend profile that somebody called so is theirs.
pub(super) fn is(values: &Values, id: &str) -> bool {
    let is_said = |key: &str| values.get(key).is_some_and(|backend| backend.value == NATIVE_KIND);
    is_said(&key(id, "backend")) && !values.contains_key(&format!("backend.{NATIVE_KIND}.kind"))
}

/// Whether it is said that its provider asks for no key.
pub(super) fn is_keyless(values: &Values, id: &str) -> bool {
    is(values, id) && values.get(&key(id, "provider.keyless")).is_some_and(|keyless| keyless.value == true)
}

/// What an agent of ours needs is there, and what it alone has stands with no other.
pub(super) fn check(values: &Values, id: &str) -> Result<(), Problem> {
    let native = is(values, id);
    let mut own = Section::Agent.settings().filter(|setting| setting.is_native());
    if let Some(stray) = own.find(|setting| !native && values.contains_key(&key(id, setting.key))) {
        let key = key(id, stray.key);
        return Err(wrong(values, &key, Fault::OnlyNative { key: key.clone() }));
    }
    let temperature = key(id, "temperature");
    let is_said = |name: &str| values.contains_key(&key(id, name));
    let is_messages =
        values.get(&key(id, "provider.wire")).is_some_and(|wire| wire.value == Wire::Messages.as_str());
    if native && is_messages && is_said("effort") && is_said("temperature") {
        return Err(wrong(values, &temperature, Fault::NoThought { key: temperature.clone() }));
    }
    let taken = format!("backend.{id}.kind");
    match native && values.contains_key(&taken) {
        true => Err(wrong(values, &key(id, "backend"), Fault::NameTaken { key: format!("agent.{id}") })),
        false => Ok(()),
    }
}

/// The backend profile of an agent of ours.
pub(super) fn profile(values: &Values, id: &str) -> Result<BackendProfile, Problem> {
    let key = |name: &str| key(id, name);
    let own = Section::Agent.settings().filter(|setting| setting.is_native() && is_told(setting));
    let told = |setting: &Setting| {
        let value = values.get(&key(setting.key))?;
        // The adapter is told in texts.
        let name = setting.key.strip_prefix("limits.").unwrap_or(setting.key);
        Some((name.to_owned(), text(&value.value)))
    };
    let wire: Wire = optional(values, &key("provider.wire"))?.unwrap_or_default();
    let base_url: Option<String> = optional(values, &key("provider.base_url"))?;
    if base_url.is_none() && wire.base_url().is_none() {
        let missing = key("provider.base_url");
        return Err(wrong(values, &key("provider.wire"), Fault::Missing { key: missing }));
    }
    Ok(BackendProfile {
        profile: id.to_owned(),
        backend_kind: NATIVE_KIND.to_owned(),
        secret: optional(values, &key("provider.secret"))?,
        base_url,
        model: Some(field(values, &key("model"))?),
        wire,
        gateway: optional(values, &key("provider.gateway"))?.unwrap_or(true),
        settings: own.filter_map(told).collect(),
        ..BackendProfile::default()
    })
}

/// Whether the adapter is told of it, and not of a field of the profile.
fn is_told(setting: &Setting) -> bool {
    setting.key != "model" && !setting.key.starts_with("provider.")
}

/// A setting as a text; a list, whose texts may hold anything, as JSON.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
