//! The OpenAPI 3.1 document of an application, from the schemas of its actions.

use std::collections::BTreeSet;

use runyard_actions::{Action, HttpRoute, Runtime, Schema};
use runyard_domain::{Actor, Code, Surface};
use serde_json::{Map, Value, json};

use super::API_PREFIX;
use crate::input_fields;

/// The document that describes what this actor can call over HTTP. The same bytes on every run.
pub fn openapi(name: &str, version: &str, runtime: &Runtime, actor: &Actor) -> Value {
    let mut document = Document { paths: Map::new(), schemas: shared_schemas() };
    document.add_list();
    for action in runtime.listed(Surface::Http, actor) {
        document.add_invoke(action);
        if let Some(route) = &action.spec().http {
            document.add_route(action, route);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {"title": name, "version": version},
        "paths": document.paths,
        "security": [{"token": []}],
        "components": {
            "schemas": document.schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

struct Document {
    paths: Map<String, Value>,
    schemas: Map<String, Value>,
}

impl Document {
    fn add_list(&mut self) {
        let data = json!({
            "type": "object",
            "properties": {"actions": {"type": "array", "items": {"type": "object"}}},
            "required": ["actions"],
        });
        let operation = json!({
            "operationId": "listActions",
            "summary": "List the actions",
            "parameters": [surface_parameter()],
            "responses": responses(&data, "application/json"),
        });
        self.add(&format!("{API_PREFIX}/actions"), "get", operation);
    }

    fn add_invoke(&mut self, action: &Action) {
        let spec = action.spec();
        let input = self.hoisted(action, &spec.input, "input");
        let output = self.output(action);
        let mut properties = options();
        properties.insert("input".to_owned(), input);
        let mut body = json!({"type": "object", "properties": properties, "additionalProperties": false});
        if needs_input(&spec.input) {
            body["required"] = json!(["input"]);
        }
        let operation = json!({
            // No action's own name, which a declared route goes by, can be the same.
            "operationId": format!("invokeAction_{}", spec.name),
            "summary": spec.title,
            "description": spec.description,
            "deprecated": spec.deprecation.is_some(),
            "parameters": [surface_parameter()],
            "requestBody": {"required": true, "content": {"application/json": {"schema": body}}},
            "responses": responses(&output, "any"),
        });
        self.add(&format!("{API_PREFIX}/actions/{}/invoke", spec.name), "post", operation);
    }

    fn add_route(&mut self, action: &Action, route: &HttpRoute) {
        let spec = action.spec();
        let output = self.output(action);
        let input = self.hoisted(action, &spec.input, "input");
        let in_path: Vec<&str> = route.path_fields().collect();
        let property =
            |name: &str| input.pointer(&format!("/properties/{name}")).cloned().unwrap_or_else(|| json!({}));
        let mut parameters: Vec<Value> = in_path
            .iter()
            .map(|name| json!({"name": name, "in": "path", "required": true, "schema": property(name)}))
            .collect();
        parameters.push(surface_parameter());
        let mut operation = json!({
            "operationId": spec.name,
            "summary": spec.title,
            "description": spec.description,
            "deprecated": spec.deprecation.is_some(),
            "responses": responses(&output, "any"),
        });
        if matches!(route.method, "GET" | "DELETE") {
            let fields = input_fields(&spec.input);
            let in_query = fields
                .iter()
                .filter(|field| field.path.len() == 1 && !in_path.contains(&field.path[0].as_str()));
            parameters.extend(in_query.map(|field| {
                json!({"name": field.path[0], "in": "query", "required": field.required, "schema": property(&field.path[0])})
            }));
            parameters.push(json!({
                "name": "Runyard-Confirm", "in": "header", "required": false,
                "description": "Only the word true confirms.", "schema": {"type": "string"},
            }));
            parameters.push(
                json!({"name": "Idempotency-Key", "in": "header", "required": false, "schema": key_schema()}),
            );
        } else {
            let body = body_schema(input, &in_path);
            let required = body.get("required").is_some();
            operation["requestBody"] =
                json!({"required": required, "content": {"application/json": {"schema": body}}});
        }
        operation["parameters"] = Value::Array(parameters);
        self.add(&route.path, &route.method.to_ascii_lowercase(), operation);
    }

    fn add(&mut self, path: &str, method: &str, operation: Value) {
        let item = self.paths.entry(path.to_owned()).or_insert_with(|| json!({}));
        item[method] = operation;
    }

    fn output(&mut self, action: &Action) -> Value {
        action
            .spec()
            .output
            .as_ref()
            .map_or_else(|| json!({}), |schema| self.hoisted(action, schema, "output"))
    }

    /// A schema whose definitions stand among the document's components, where its references can reach them.
    fn hoisted(&mut self, action: &Action, schema: &Schema, side: &str) -> Value {
        let mut json = schema.json().clone();
        let name = format!("{}.{side}", action.name());
        let mut whole_is_meant = false;
        let definitions = json.as_object_mut().and_then(|object| object.shift_remove("$defs"));
        if let Some(Value::Object(definitions)) = definitions {
            for (key, mut definition) in definitions {
                whole_is_meant |= point_references(&mut definition, &name);
                self.schemas.insert(format!("{name}.{key}"), definition);
            }
        }
        whole_is_meant |= point_references(&mut json, &name);
        if whole_is_meant {
            self.schemas.insert(name, json.clone());
        }
        json
    }
}

/// Points the references inside a schema at the components: its definitions each by its own name, and the schema as a whole
/// by `name`. Says whether the whole is among them, as in a type that holds itself.
fn point_references(schema: &mut Value, name: &str) -> bool {
    match schema {
        Value::Object(object) => {
            let mut whole_is_meant = false;
            for (key, child) in object.iter_mut() {
                let local = child.as_str().filter(|_| key == "$ref").and_then(|text| text.strip_prefix('#'));
                let Some(local) = local else {
                    whole_is_meant |= point_references(child, name);
                    continue;
                };
                let target = match local.strip_prefix("/$defs/") {
                    Some(definition) => format!("{name}.{definition}"),
                    None => format!("{name}{local}"),
                };
                whole_is_meant |= !local.starts_with("/$defs/");
                *child = json!(format!("#/components/schemas/{target}"));
            }
            whole_is_meant
        }
        Value::Array(items) => {
            items.iter_mut().fold(false, |found, item| point_references(item, name) | found)
        }
        _ => false,
    }
}

/// An input schema as the body of a declared route: without the path's fields, with the options beside the rest.
fn body_schema(mut input: Value, in_path: &[&str]) -> Value {
    if let Some(object) = input.as_object_mut() {
        if let Some(Value::Array(required)) = object.get_mut("required") {
            required.retain(|name| !in_path.iter().any(|field| name == field));
        }
        if object.get("required").is_some_and(|required| required.as_array().is_some_and(Vec::is_empty)) {
            object.shift_remove("required");
        }
        if let Some(Value::Object(properties)) = object.get_mut("properties") {
            properties.retain(|name, _| !in_path.contains(&name.as_str()));
            properties.extend(options());
        }
    }
    input
}

fn needs_input(schema: &Schema) -> bool {
    schema.issues(&json!({})).map_or(true, |issues| !issues.is_empty())
}

fn key_schema() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 256, "pattern": "^[!-~]([ -~]*[!-~])?$"})
}

/// What may stand beside the input.
fn options() -> Map<String, Value> {
    let retry = json!({
        "anyOf": [
            {"type": "boolean"},
            {
                "type": "object",
                "properties": {
                    "retries": {"type": "integer", "minimum": 0, "maximum": 100},
                    "delayMs": {"type": "integer", "minimum": 0, "maximum": 86_400_000},
                },
                "additionalProperties": false,
            },
        ],
    });
    Map::from_iter([
        ("confirm".to_owned(), json!({"description": "Only the boolean true confirms.", "examples": [true]})),
        (
            "idempotencyKey".to_owned(),
            json!({"type": ["string", "null"], "minLength": 1, "maxLength": 256, "pattern": "^[!-~]([ -~]*[!-~])?$"}),
        ),
        ("timeoutMs".to_owned(), json!({"type": ["integer", "null"], "minimum": 0, "maximum": 86_400_000})),
        ("deadlineMs".to_owned(), json!({"type": ["integer", "null"], "minimum": 0, "maximum": 86_400_000})),
        ("retry".to_owned(), retry),
    ])
}

fn surface_parameter() -> Value {
    json!({"name": "Runyard-Surface", "in": "header", "required": false, "schema": {"enum": ["http", "ai-sdk"]}})
}

/// The success, and every failure by the status that the error table gives it.
fn responses(data: &Value, kinds: &str) -> Value {
    let success = json!({
        "type": "object",
        "properties": {
            "ok": {"const": true},
            "data": data,
            "artifacts": {"type": "array", "items": {"$ref": "#/components/schemas/Artifact"}},
            "logs": {"type": "array", "items": {"$ref": "#/components/schemas/LogEntry"}},
            "meta": {"$ref": "#/components/schemas/Meta"},
        },
        "required": ["ok", "data", "artifacts", "logs", "meta"],
    });
    let mut content = json!({"application/json": {"schema": success}});
    if kinds == "any" {
        content["text/event-stream"] = json!({"schema": {"type": "string"}});
    }
    let failure = json!({
        "description": "A failure envelope; its code says which.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Failure"}}},
    });
    let mut responses = Map::from_iter([(
        "200".to_owned(),
        json!({"description": "The success envelope.", "content": content}),
    )]);
    // An action may raise any code of the table.
    for status in Code::ALL.iter().map(|code| code.row().http).collect::<BTreeSet<u16>>() {
        responses.insert(status.to_string(), failure.clone());
    }
    Value::Object(responses)
}

fn shared_schemas() -> Map<String, Value> {
    let issue = json!({
        "type": "object",
        "properties": {
            "path": {"type": "array", "items": {"type": ["string", "integer"]}},
            "message": {"type": "string"},
        },
        "required": ["path", "message"],
    });
    let error = json!({
        "type": "object",
        "properties": {
            "code": {"type": "string"},
            "message": {"type": "string"},
            "issues": {"type": "array", "items": issue},
            "retryable": {"type": "boolean"},
            "failureKind": {"type": "string"},
            "retryAfterMs": {"type": "integer"},
        },
        "required": ["code", "message", "issues", "retryable"],
    });
    let failure = json!({
        "type": "object",
        "properties": {
            "ok": {"const": false},
            "error": error,
            "artifacts": {"type": "array", "items": {"$ref": "#/components/schemas/Artifact"}},
            "logs": {"type": "array", "items": {"$ref": "#/components/schemas/LogEntry"}},
            "meta": {"$ref": "#/components/schemas/Meta"},
        },
        "required": ["ok", "error", "artifacts", "logs", "meta"],
    });
    let meta = json!({
        "type": "object",
        "properties": {
            "action": {"type": ["string", "null"]},
            "invocationId": {"type": "string"},
            "surface": {"type": "string"},
            "durationMs": {"type": "integer"},
            "idempotent": {"const": "replayed"},
        },
        "required": ["action", "invocationId", "surface", "durationMs"],
    });
    let log = json!({
        "type": "object",
        "properties": {
            "level": {"enum": ["debug", "info", "warn", "error"]},
            "message": {"type": "string"},
            "time": {"type": "string", "format": "date-time"},
            "fields": {"type": "object"},
        },
        "required": ["level", "message", "time", "fields"],
    });
    let artifact = json!({
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "type": {"type": "string"},
            "name": {"type": "string"},
            "mimeType": {"type": "string"},
            "uri": {"type": "string"},
            "sizeBytes": {"type": "integer"},
            "metadata": {"type": "object"},
        },
        "required": ["id", "type", "metadata"],
    });
    Map::from_iter([
        ("Failure".to_owned(), failure),
        ("Meta".to_owned(), meta),
        ("LogEntry".to_owned(), log),
        ("Artifact".to_owned(), artifact),
    ])
}
