//! Actions as resources: those with an address.

use rmcp::model::{Resource, ResourceTemplate};
use runyard_actions::{Action, Runtime};
use runyard_domain::{Actor, Surface};
use serde_json::{Map, Value};

use crate::{input_fields, set_field};

/// The longest address that is looked at.
const URI_LENGTH_MAX: usize = 4096;

/// The actions that this caller can read, with their addresses.
fn readable<'a>(runtime: &'a Runtime, actor: &'a Actor) -> impl Iterator<Item = (&'a Action, String, bool)> {
    runtime.listed(Surface::Mcp, actor).filter_map(|action| {
        let uri = action.spec().resource.as_ref()?;
        Some((action, uri.to_string(), uri.fields().next().is_some()))
    })
}

/// Those with one address.
pub(super) fn resources(runtime: &Runtime, actor: &Actor) -> Vec<(String, Resource)> {
    let fixed = readable(runtime, actor).filter(|(_, _, has_fields)| !has_fields);
    let resource = |(action, uri, _): (&Action, String, bool)| {
        let mut resource = Resource::new(uri.clone(), action.name());
        resource.title = Some(action.spec().title.clone());
        resource.description = Some(action.spec().description.clone());
        (uri, resource)
    };
    fixed.map(resource).collect()
}

/// Those with fields in their address.
pub(super) fn templates(runtime: &Runtime, actor: &Actor) -> Vec<(String, ResourceTemplate)> {
    let with_fields = readable(runtime, actor).filter(|(_, _, has_fields)| *has_fields);
    let template = |(action, uri, _): (&Action, String, bool)| {
        let mut template = ResourceTemplate::new(uri.clone(), action.name());
        template.title = Some(action.spec().title.clone());
        template.description = Some(action.spec().description.clone());
        (uri, template)
    };
    with_fields.map(template).collect()
}

/// The action that is read at this address, and its input.
pub(super) fn reading(runtime: &Runtime, actor: &Actor, uri: &str) -> Option<(String, Value)> {
    if uri.len() > URI_LENGTH_MAX {
        return None;
    }
    let mut matching: Vec<_> = runtime
        .listed(Surface::Mcp, actor)
        .filter_map(|action| Some((action, action.spec().resource.as_ref()?.matched(uri)?)))
        .collect();
    // A fixed address wins over one with a field in its place.
    matching.sort_by_key(|(_, fields)| fields.len());
    let (action, values) = matching.into_iter().next()?;
    Some((action.name().to_owned(), input_of(action, values)))
}

/// Texts as the input's fields; what does not fit its type is said by the action's own validation.
pub(super) fn input_of<'a>(action: &Action, values: impl IntoIterator<Item = (&'a str, &'a str)>) -> Value {
    let fields = input_fields(&action.spec().input);
    let mut input = Map::new();
    for (name, text) in values {
        let field = fields.iter().find(|field| field.path == [name]);
        let value = field.map_or_else(|| Value::from(text), |field| field.kind.read(text));
        set_field(&mut input, &[name.to_owned()], value);
    }
    Value::Object(input)
}
