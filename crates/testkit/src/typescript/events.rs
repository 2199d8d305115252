//! `events.ts`: what each event of a run says, from the types of `runyard-domain`.

use std::fmt::Write;

use runyard_domain::Event;
use runyard_domain::run::{Failure, Review, RunEvent};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::emitter::{comment, declaration};
use super::schemas::without_needless_null;

/// The schemas of all payloads, each by its event's type, and what they refer to.
pub struct Payloads {
    /// Each type with the reference to its payload.
    pub by_type: Vec<(&'static str, Value)>,
    /// What is referred to, by name.
    pub definitions: Map<String, Value>,
}

impl Payloads {
    /// As they are written.
    pub fn written() -> Self {
        let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
        let by_type = RunEvent::payload_schemas(&mut generator);
        let by_type = by_type.into_iter().map(|(kind, schema)| (kind, schema.to_value())).collect();
        // Not in an event by themselves, but what a page says about a run.
        generator.subschema_for::<Failure>();
        generator.subschema_for::<Review>();
        generator.subschema_for::<Event>();
        let mut definitions = generator.take_definitions(true);
        definitions.values_mut().for_each(without_needless_null);
        Payloads { by_type, definitions }
    }

    /// The schema of one type's payload by itself; with `Event`, that of an event around it.
    pub fn schema(&self, kind: &str) -> Option<Value> {
        let payload =
            self.by_type.iter().find(|(known, _)| *known == kind).map(|(_, payload)| payload.clone());
        let mut schema = match kind {
            "Event" => json!({ "$ref": "#/$defs/Event" }),
            _ => payload?,
        };
        schema.as_object_mut()?.insert("$defs".to_owned(), Value::Object(self.definitions.clone()));
        Some(schema)
    }
}

fn name_of(reference: &str) -> String {
    reference.rsplit('/').next().unwrap_or(reference).to_owned()
}

/// The whole file.
pub fn events() -> String {
    let payloads = Payloads::written();
    let mut text = format!("{}\nimport type {{ Code }} from \"./errors.js\";\n", super::HEAD);
    for (name, schema) in &payloads.definitions {
        match name.as_str() {
            "Code" => {}
            "Event" => text += &envelope(schema),
            _ => text += &format!("\n{}", declaration(name, schema, &name_of)),
        }
    }
    text += &comment("What an event of each type says.", 0).replacen("/**", "\n/**", 1);
    text += "export interface Payloads {\n";
    for (kind, payload) in &payloads.by_type {
        let name = payload.get("$ref").and_then(Value::as_str).map(name_of).unwrap_or_default();
        let _ = writeln!(text, "  {kind:?}: {name};");
    }
    text += "}\n\n/** The types of events. A log can hold others, of a later version. */\nexport type EventType = keyof Payloads;\n";
    text += "\n/** Every type, in the order of the Rust source. */\nexport const EVENT_TYPES = [\n";
    for kind in RunEvent::KINDS {
        let _ = writeln!(text, "  {kind:?},");
    }
    text += "] as const satisfies readonly EventType[];\n";
    text += "\n/** A fact in a run's log, told apart by its `type`. */\n";
    text += "export type RunEvent = { [Type in EventType]: EventOf<Type, Payloads[Type]> }[EventType];\n";
    text
}

/// The envelope, with its type and payload open.
fn envelope(schema: &Value) -> String {
    let mut schema = schema.clone();
    for (field, parameter) in [("type", "Type"), ("payload", "Payload")] {
        if let Some(property) = schema.pointer_mut(&format!("/properties/{field}")) {
            let said = property.get("description").cloned().unwrap_or_default();
            *property = json!({ "$ref": parameter, "description": said });
        }
    }
    let text = declaration("EventOf", &schema, &name_of);
    format!("\n{}", text.replacen("EventOf", "EventOf<Type extends string, Payload>", 1))
}
