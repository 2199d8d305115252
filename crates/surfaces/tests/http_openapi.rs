//! The OpenAPI document: it names what can be called and nothing else, and the answers are as it says.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a failed expectation fails the test"
)]

mod support;

use std::collections::BTreeSet;

use runyard_actions::{Action, Context, Runtime, RuntimeBuilder, SideEffects};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use support::app::{Seen, app, echoing, open};
use support::server::{ADA, BOT, Server};

const DOCUMENT: &str = "/api/v1/openapi.json";

/// Holds itself, as the root of its schema.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Tree {
    name: String,
    children: Vec<Tree>,
    leaf: Option<Leaf>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Leaf {
    colour: String,
    tree: Option<Box<Tree>>,
}

/// Actions whose schemas refer to themselves and whose names are like other names in the document.
fn tricky() -> RuntimeBuilder {
    let tree =
        Action::define("tree", "Gives a tree back.").side_effects(SideEffects::Write).http("POST /trees");
    let tree =
        tree.typed(|tree: Tree, _: Context| async move { Ok::<_, runyard_actions::ActionError>(tree) });
    let pairs = open("pairs").http("POST /pairs/{first}").input_schema(json!({
        "type": "object",
        "properties": {
            "first": {"$ref": "#/$defs/side"},
            "second": {"$ref": "#/properties/first"},
            "inner": {"$defs": {"x": {"type": "integer"}}, "$ref": "#/properties/inner/$defs/x"},
        },
        "$defs": {"side": {"enum": ["left", "right"]}},
    }));
    Runtime::builder()
        .action(tree)
        .action(echoing(pairs))
        .action(echoing(open("actions").http("GET /all")))
        .action(echoing(open("x")))
        .action(echoing(open("x_invoke").http("GET /x")))
        .action(echoing(open("invoke_x").http("GET /y")))
}

async fn document(server: &Server, token: &str) -> Value {
    let answer = server.send(server.get(DOCUMENT).by(token)).await;
    assert_eq!(answer.status, 200);
    answer.json()
}

/// Calls `visit` with every object in a value.
fn each_object(value: &Value, visit: &mut impl FnMut(&serde_json::Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            visit(object);
            object.values().for_each(|child| each_object(child, visit));
        }
        Value::Array(items) => items.iter().for_each(|item| each_object(item, visit)),
        _ => {}
    }
}

/// Every operation as method, path and itself.
fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let items = document["paths"].as_object().unwrap().iter();
    let operations = items.flat_map(|(path, item)| {
        item.as_object()
            .unwrap()
            .iter()
            .map(move |(method, operation)| (method.as_str(), path.as_str(), operation))
    });
    operations.collect()
}

fn names(document: &Value) -> BTreeSet<String> {
    operations(document).iter().map(|(method, path, _)| format!("{method} {path}")).collect()
}

#[track_caller]
fn check_structure(document: &Value) {
    assert_eq!(document["openapi"], "3.1.0");
    assert!(document["info"]["title"].is_string() && document["info"]["version"].is_string());
    each_object(document, &mut |object| {
        if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
            let target = reference.strip_prefix('#').and_then(|pointer| document.pointer(pointer));
            assert!(
                reference.starts_with("#/components/schemas/") && target.is_some(),
                "{reference} leads nowhere"
            );
        }
    });
    let mut ids = BTreeSet::new();
    for (method, path, operation) in operations(document) {
        let place = format!("{method} {path}");
        assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{place}: the id is taken");
        assert!(["get", "post", "put", "patch", "delete"].contains(&method), "{place}");
        assert!(operation["summary"].is_string(), "{place}");
        let parameters = operation["parameters"].as_array().unwrap();
        let in_path = parameters.iter().filter(|parameter| parameter["in"] == "path");
        let in_path: BTreeSet<String> = in_path
            .map(|parameter| {
                assert_eq!(parameter["required"], true, "{place}");
                format!("{{{}}}", parameter["name"].as_str().unwrap())
            })
            .collect();
        let templated = path.split('/').filter(|part| part.starts_with('{')).map(str::to_owned).collect();
        assert_eq!(in_path, templated, "{place}");
        assert!(parameters.iter().all(|parameter| parameter["schema"].is_object()), "{place}");
        assert_eq!(operation.get("requestBody").is_some(), !matches!(method, "get" | "delete"), "{place}");
        for (status, response) in operation["responses"].as_object().unwrap() {
            assert!((200..600).contains(&status.parse::<u16>().unwrap()), "{place}");
            assert!(response["description"].is_string(), "{place} {status}");
            assert!(response["content"]["application/json"]["schema"].is_object(), "{place} {status}");
        }
    }
    let scheme = &document["components"]["securitySchemes"]["token"];
    assert_eq!((&scheme["type"], &scheme["scheme"]), (&json!("http"), &json!("bearer")));
    assert_eq!(document["security"], json!([{"token": []}]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_is_well_formed_and_every_reference_leads_somewhere() {
    let server = Server::start(app(&Seen::default())).await;
    check_structure(&document(&server, ADA).await);
    check_structure(&document(&server, BOT).await);
    let server = Server::start(tricky()).await;
    check_structure(&document(&server, ADA).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_is_the_same_bytes_every_time() {
    let server = Server::start(app(&Seen::default())).await;
    let first = server.send(server.get(DOCUMENT)).await;
    assert_eq!(first.header("content-type"), "application/json");
    assert_eq!(server.send(server.get(DOCUMENT)).await.body, first.body);
    let again = Server::start(app(&Seen::default())).await;
    assert_eq!(again.send(again.get(DOCUMENT)).await.body, first.body);
}

// clause: A02
#[tokio::test(flavor = "multi_thread")]
async fn the_document_holds_each_listed_action_and_declared_route_and_nothing_hidden() {
    let server = Server::start(app(&Seen::default())).await;
    for token in [ADA, BOT] {
        let listed = server.send(server.get("/api/v1/actions").by(token)).await.data();
        let mut expected = BTreeSet::from(["get /api/v1/actions".to_owned()]);
        for action in listed["actions"].as_array().unwrap() {
            expected.insert(format!("post /api/v1/actions/{}/invoke", action["name"].as_str().unwrap()));
            if let Some((method, path)) = action["http"].as_str().and_then(|route| route.split_once(' ')) {
                expected.insert(format!("{} {path}", method.to_lowercase()));
            }
        }
        let document = document(&server, token).await;
        assert_eq!(names(&document), expected);
        let text = document.to_string();
        for hidden in ["private", "local_thing", "/api/v1/local", "wipe", "cli_only"] {
            assert!(!text.contains(hidden), "{hidden} is not for this surface");
        }
        assert_eq!(text.contains("people"), token == ADA, "what is for people only is not shown to an agent");
    }
}

/// Whether a value is as one place of the document says.
#[track_caller]
fn check_against(document: &Value, pointer: &str, value: &Value) {
    let mut schema = document.clone();
    assert!(schema.pointer(pointer).is_some(), "{pointer}");
    // In a URI, braces are escaped.
    schema["$ref"] = json!(format!("#{}", pointer.replace('{', "%7B").replace('}', "%7D")));
    let validator = jsonschema::validator_for(&schema).unwrap();
    let problems: Vec<String> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(problems.is_empty(), "{pointer}: {problems:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_and_answers_are_as_the_document_says() {
    let server = Server::start(app(&Seen::default())).await;
    let document = document(&server, ADA).await;
    let options = json!({"confirm": true, "idempotencyKey": "k", "timeoutMs": 1000, "retry": {"retries": 1}});
    let with_options = |mut body: Value| {
        body.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        body
    };
    for (path, body) in [
        ("/api/v1/actions/follow/invoke", with_options(json!({"input": {}}))),
        ("/api/v1/actions/follow/invoke", json!({"input": {"fail": 1}})),
        ("/api/v1/actions/create_task/invoke", json!({"input": {"title": "a"}})),
        ("/api/v1/actions/count/invoke", with_options(json!({"input": {}}))),
        ("/api/v1/actions/count/invoke", with_options(json!({"input": {}}))),
        ("/api/v1/actions/fail/invoke", json!({"input": {"code": "WAIT"}})),
        ("/api/v1/actions/fail/invoke", json!({"input": {"code": "VALIDATION_ERROR"}})),
        ("/api/v1/tasks", with_options(json!({"title": "a", "labels": ["b"]}))),
    ] {
        let operation = format!("/paths/{}/post", path.replace('/', "~1"));
        check_against(&document, &format!("{operation}/requestBody/content/application~1json/schema"), &body);
        let answer = server.send(server.post(path, &body)).await;
        let schema = format!("{operation}/responses/{}/content/application~1json/schema", answer.status);
        check_against(&document, &schema, &answer.json());
    }
    let list = server.send(server.get("/api/v1/actions")).await;
    let schema = "/paths/~1api~1v1~1actions/get/responses/200/content/application~1json/schema";
    check_against(&document, schema, &list.json());
    for (request, status) in [
        (server.get("/api/v1/actions").without("Authorization"), 401),
        (server.get("/api/v1/actions").with("Runyard-Surface", "dev"), 403),
        (server.get("/api/v1/actions").with("Host", "evil.example"), 421),
        (server.request("PUT", "/api/v1/actions"), 405),
    ] {
        let answer = server.send(request).await;
        assert_eq!(answer.status, status);
        check_against(&document, &schema.replace("200", &status.to_string()), &answer.json());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_holds_itself_means_the_same_in_the_document() {
    let server = Server::start(tricky()).await;
    let document = document(&server, ADA).await;
    let leaf = json!({"colour": "red", "tree": {"name": "c", "children": [], "leaf": null}});
    let tree = json!({"name": "a", "children": [{"name": "b", "children": [], "leaf": leaf}], "leaf": null});
    let schema = "/paths/~1trees/post/requestBody/content/application~1json/schema";
    check_against(&document, schema, &tree);
    let answer = server.send(server.post("/trees", &tree)).await;
    assert_eq!(answer.data(), tree);
    check_against(
        &document,
        "/paths/~1trees/post/responses/200/content/application~1json/schema",
        &answer.json(),
    );
    // One level down the same things are wrong.
    let wrong = json!({"name": "a", "children": [{"name": 3, "children": []}], "leaf": null});
    let mut whole = document.clone();
    whole["$ref"] = json!(format!("#{schema}"));
    assert!(!jsonschema::validator_for(&whole).unwrap().is_valid(&wrong));
    assert_eq!(server.send(server.post("/trees", &wrong)).await.status, 400);
    let pairs = "/paths/~1pairs~1{first}/post/requestBody/content/application~1json/schema";
    check_against(&document, pairs, &json!({"second": "left", "inner": 3}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_without_a_body_has_its_fields_and_options_as_parameters() {
    let server = Server::start(app(&Seen::default())).await;
    let document = document(&server, ADA).await;
    let operation = &document["paths"]["/api/v1/tasks/{id}"]["delete"];
    let parameters = operation["parameters"].as_array().unwrap().iter();
    let parameters: BTreeSet<String> = parameters
        .map(|one| format!("{} {}", one["in"].as_str().unwrap(), one["name"].as_str().unwrap()))
        .collect();
    for expected in [
        "path id",
        "query title",
        "query done",
        "query labels",
        "header Runyard-Confirm",
        "header Idempotency-Key",
        "header Runyard-Surface",
    ] {
        assert!(parameters.contains(expected), "{expected} in {parameters:?}");
    }
    let body = &document["paths"]["/api/v1/tasks/{id}"]["patch"]["requestBody"]["content"]["application/json"]
        ["schema"];
    let properties: BTreeSet<&String> = body["properties"].as_object().unwrap().keys().collect();
    assert!(!properties.contains(&"id".to_owned()), "what is in the path is not in the body");
    assert!(
        ["confirm", "idempotencyKey", "timeoutMs", "retry"]
            .iter()
            .all(|name| body["properties"][name].is_object())
    );
}
