//! Declared routes: path, query and body are the input, the options stand beside it, and routes never collide.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a failed expectation fails the test"
)]

mod support;

use std::net::SocketAddr;

use runyard_actions::{Action, Runtime, SideEffects};
use runyard_surfaces::http::{BearerTokens, Guard, HttpApi, RouteError};
use serde_json::{Value, json};
use support::app::{Seen, app, echoing};
use support::client::{Answer, Request};
use support::server::Server;

async fn server() -> Server {
    Server::start(app(&Seen::default())).await
}

#[track_caller]
fn check(answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.outcome(), (status, code.to_owned()), "{}", answer.json());
}

#[track_caller]
fn check_input(answer: &Answer, expected: Value) {
    let mut expected = expected;
    if expected.get("done").is_none() {
        expected["done"] = json!(false);
    }
    assert_eq!(answer.data()["input"], expected);
}

#[track_caller]
fn check_issues(answer: &Answer, expected: &[&str]) {
    check(answer, 400, "VALIDATION_ERROR");
    assert_eq!(answer.issues(), expected);
}

// clause: A20
#[tokio::test(flavor = "multi_thread")]
async fn a_declared_route_gives_the_same_envelope_as_the_invocation_by_name() {
    let server = server().await;
    let by_route = server.send(server.post("/api/v1/tasks", &json!({"title": "a"}))).await;
    let by_name = server.send(server.invoke("create_task", json!({"title": "a"}))).await;
    let strip = |answer: &Answer| {
        let mut envelope = answer.json();
        envelope["meta"].as_object_mut().unwrap().retain(|key, _| key == "action" || key == "surface");
        envelope
    };
    assert_eq!(strip(&by_route), strip(&by_name));
}

#[tokio::test(flavor = "multi_thread")]
async fn path_query_and_body_together_are_the_input() {
    let server = server().await;
    for (method, target, body, expected) in [
        ("GET", "/api/v1/tasks", None, json!({})),
        ("GET", "/api/v1/tasks?", None, json!({})),
        ("GET", "/api/v1/tasks?&title=a+b%20c&", None, json!({"title": "a b c"})),
        ("GET", "/api/v1/tasks/7?done=true", None, json!({"id": 7, "done": true})),
        ("GET", "/api/v1/tasks/7?labels=a&labels=b", None, json!({"id": 7, "labels": ["a", "b"]})),
        ("GET", "/api/v1/tasks?labels=%5B%22a%22%5D", None, json!({"labels": ["a"]})),
        ("GET", "/api/v1/tasks?owner.name=ada", None, json!({"owner": {"name": "ada"}})),
        ("GET", "/api/v1/tasks?title=%C3%BC%26%3D", None, json!({"title": "ü&="})),
        ("PATCH", "/api/v1/tasks/7", Some(json!({"title": "b"})), json!({"title": "b", "id": 7})),
        (
            "PATCH",
            "/api/v1/tasks/7?done=1",
            Some(json!({"title": "b"})),
            json!({"title": "b", "id": 7, "done": true}),
        ),
        ("PATCH", "/api/v1/tasks/%37", None, json!({"id": 7})),
        (
            "PATCH",
            "/api/v1/tasks/7?owner.name=b",
            Some(json!({"owner": {}})),
            json!({"id": 7, "owner": {"name": "b"}}),
        ),
        ("POST", "/api/v1/tasks?title=q", None, json!({"title": "q"})),
    ] {
        let request = server.request(method, target);
        let request = match body {
            None => request,
            Some(body) => request.json(&body),
        };
        check_input(&server.send(request).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_does_not_fit_is_named_by_the_validation_and_not_guessed_at() {
    let server = server().await;
    check_issues(&server.send(server.get("/api/v1/tasks/seven")).await, &["id: Expected integer."]);
    check_issues(&server.send(server.get("/api/v1/tasks/1.5")).await, &["id: Expected integer."]);
    check_issues(&server.send(server.get("/api/v1/tasks?done=maybe")).await, &["done: Expected boolean."]);
    check_issues(
        &server.send(server.get("/api/v1/tasks?title")).await,
        &["title: Expected at least 1 characters."],
    );
    let unknown = "colour: Unexpected property \"colour\".";
    check_issues(&server.send(server.get("/api/v1/tasks?colour=red")).await, &[unknown]);
    let in_body = server.post("/api/v1/tasks", &json!({"colour": "red"}));
    check_issues(&server.send(in_body).await, &[unknown]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_given_twice_is_refused_and_never_silently_wins_or_loses() {
    let server = server().await;
    let patch = |target: &str, body: Value| server.request("PATCH", target).json(&body);
    for (request, path) in [
        (server.get("/api/v1/tasks?title=a&title=b"), "title"),
        (server.get("/api/v1/tasks/1?id=1"), "id"),
        (server.get("/api/v1/tasks?colour=a&colour=b"), "colour"),
        (patch("/api/v1/tasks/1", json!({"id": 1})), "id"),
        (patch("/api/v1/tasks/1", json!({"id": null})), "id"),
        (patch("/api/v1/tasks/1?title=a", json!({"title": "b"})), "title"),
        (patch("/api/v1/tasks/1?owner.name=a", json!({"owner": {"name": "b"}})), "owner.name"),
        (patch("/api/v1/tasks/1?owner.name=a", json!({"owner": 5})), "owner.name"),
        (server.get("/api/v1/tasks?owner=5&owner.name=a"), "owner.name"),
        (server.get("/api/v1/tasks?owner.name=a&owner=%7B%7D"), "owner"),
    ] {
        let answer = server.send(request.clone()).await;
        check(&answer, 400, "VALIDATION_ERROR");
        let expected = format!("{path}: Given more than once.");
        assert!(answer.issues().contains(&expected), "{request:?}: {:?}", answer.issues());
    }
}

// clause: A04
#[tokio::test(flavor = "multi_thread")]
async fn the_options_stand_beside_the_input_in_the_body() {
    let seen = Seen::default();
    let server = Server::start(app(&seen)).await;
    let call = json!({"a": 1, "idempotencyKey": "k", "timeoutMs": 5000, "retry": true, "confirm": true});
    assert_eq!(server.send(server.post("/api/v1/counts", &call)).await.data(), 1);
    let again = server.send(server.post("/api/v1/counts", &call)).await;
    assert_eq!((again.data(), again.json()["meta"]["idempotent"].clone()), (json!(1), json!("replayed")));
    let by_header = server.post("/api/v1/counts", &json!({"a": 1})).with("Idempotency-Key", "k");
    assert_eq!(server.send(by_header).await.json()["meta"]["idempotent"], "replayed");
    check_issues(
        &server.send(server.post("/api/v1/counts", &json!({"timeoutMs": "soon"}))).await,
        &["timeoutMs: Expected a whole number of milliseconds."],
    );
    assert_eq!(seen.started(), 1);
}

// clause: A04
#[tokio::test(flavor = "multi_thread")]
async fn a_route_without_a_body_takes_the_confirmation_from_its_header_alone() {
    let server = server().await;
    let delete = || server.request("DELETE", "/api/v1/tasks/1");
    check(&server.send(delete()).await, 409, "CONFIRMATION_REQUIRED");
    for word in ["TRUE", "1", "yes", "false", "", "true, true"] {
        check(&server.send(delete().with("Runyard-Confirm", word)).await, 409, "CONFIRMATION_REQUIRED");
    }
    check_input(&server.send(delete().with("Runyard-Confirm", "true")).await, json!({"id": 1}));
    // The query is input and nothing else.
    let in_query = server.request("DELETE", "/api/v1/tasks/1?confirm=true");
    check_issues(&server.send(in_query).await, &["confirm: Unexpected property \"confirm\"."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_where_none_is_taken_is_refused() {
    let server = server().await;
    for method in ["GET", "DELETE"] {
        let request = server.request(method, "/api/v1/tasks/1").with("Runyard-Confirm", "true");
        check(&server.send(request.clone().json(&json!({"title": "a"}))).await, 400, "INVALID_REQUEST");
        check(&server.send(request.clone().chunked(b"{}", 1)).await, 400, "INVALID_REQUEST");
        check(&server.send(request.body("")).await, 200, "OK");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_percent_escapes_are_400_in_path_and_query() {
    let server = server().await;
    for request in [
        server.get("/api/v1/tasks/%zz"),
        server.get("/api/v1/tasks/%"),
        server.get("/api/v1/tasks/%f"),
        server.get("/api/v1/tasks/%ff"),
        server.get("/api/v1/tasks?title=%zz"),
        server.get("/api/v1/tasks?title=%c3%28"),
        server.get("/api/v1/tasks?%=a"),
        server.post("/api/v1/tasks?title=%", &json!({})),
        server.post("/api/v1/actions/%zz/invoke", &json!({})),
        server.post("/api/v1/actions/%ff/invoke", &json!({})),
    ] {
        check(&server.send(request).await, 400, "INVALID_REQUEST");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_escaped_slash_stays_inside_its_part_of_the_path() {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let file = Action::define("file", "Reads a file.").input_schema(schema).http("GET /api/v1/files/{name}");
    let server = Server::start(Runtime::builder().action(echoing(file))).await;
    for (path, name) in [
        ("a%2Fb", "a/b"),
        ("..%2f..%2fetc", "../../etc"),
        ("a%252Fb", "a%2Fb"),
        ("a+b", "a+b"),
        ("%00", "\0"),
        ("%7Bname%7D", "{name}"),
    ] {
        let answer = server.send(server.get(&format!("/api/v1/files/{path}"))).await;
        assert_eq!(answer.data()["input"]["name"], name);
    }
    for path in
        ["/api/v1/files/a/b", "/api/v1/files/", "/api/v1/files", "/api/v1/files/a/", "/api/v1//files/a"]
    {
        check(&server.send(server.get(path)).await, 404, "NOT_FOUND");
    }
    let by_name = server.send(server.post("/api/v1/actions/a%2F..%2Ffile/invoke", &json!({}))).await;
    check(&by_name, 404, "ACTION_NOT_FOUND");
    assert_eq!(by_name.json()["meta"]["action"], "a/../file");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_with_thousands_of_parameters_is_refused() {
    let server = server().await;
    let many = |count: usize| format!("/api/v1/tasks?{}", vec!["labels=a"; count].join("&"));
    check(&server.send(server.get(&many(1000))).await, 200, "OK");
    check(&server.send(server.get(&many(1001))).await, 400, "INVALID_REQUEST");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declared_route_can_be_followed() {
    let server = server().await;
    let mut client = server.connect().await;
    client.follow(&server.post("/api/v1/tasks", &json!({"title": "a"})).followed()).await;
    let events = client.events().await;
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["result"]);
    assert_eq!(events[0].data["envelope"]["data"]["input"]["title"], "a");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fixed_part_wins_over_a_field_in_the_same_place() {
    let schema = json!({"type": "object", "properties": {"id": {"type": "string"}}});
    let named = |name: &str, route: &str| {
        echoing(Action::define(name, "Does something.").input_schema(schema.clone()).http(route))
    };
    let app =
        Runtime::builder().action(named("one", "GET /tasks/{id}")).action(named("mine", "GET /tasks/mine"));
    let server = Server::start(app).await;
    assert_eq!(server.send(server.get("/tasks/mine")).await.json()["meta"]["action"], "mine");
    assert_eq!(server.send(server.get("/tasks/mine2")).await.json()["meta"]["action"], "one");
}

fn route_error(routes: &[&str]) -> Option<RouteError> {
    let mut builder = Runtime::builder();
    for (number, route) in routes.iter().enumerate() {
        let schema = json!({"type": "object", "properties": {"id": {}, "key": {}, "name": {}, "kind": {}}});
        let action =
            Action::define(format!("action_{number}"), "Does something.").input_schema(schema).http(route);
        let read = route.starts_with("GET");
        builder = builder.action(echoing(action.side_effects(if read {
            SideEffects::Read
        } else {
            SideEffects::Write
        })));
    }
    let guard = Guard::new(SocketAddr::from(([127, 0, 0, 1], 1)), BearerTokens::new());
    let api = HttpApi { name: "x".into(), version: "1".into(), runtime: builder.build().unwrap(), guard };
    api.router().err()
}

#[track_caller]
fn check_taken(routes: &[&str]) {
    let last = routes.len() - 1;
    match route_error(routes) {
        Some(RouteError::Taken { action, route, .. }) => {
            assert_eq!((action, route.as_str()), (format!("action_{last}"), routes[last]));
        }
        other => panic!("{routes:?}: {other:?}"),
    }
}

#[test]
fn routes_that_would_answer_the_same_request_are_refused_at_start() {
    check_taken(&["GET /a", "GET /a"]);
    check_taken(&["GET /a/{id}", "GET /a/{id}"]);
    check_taken(&["GET /a/{id}", "GET /a/{key}"]);
    check_taken(&["GET /a/{id}", "POST /a/{key}"]);
    check_taken(&["GET /a/{id}/b", "POST /a/{id}/b", "GET /a/{id}/b"]);
}

#[test]
fn routes_on_the_paths_of_the_api_itself_are_refused_at_start() {
    check_taken(&["GET /api/v1/actions"]);
    check_taken(&["POST /api/v1/actions"]);
    check_taken(&["GET /api/v1/openapi.json"]);
    check_taken(&["DELETE /api/v1/openapi.json"]);
    check_taken(&["POST /api/v1/actions/{name}/invoke"]);
    check_taken(&["POST /api/v1/actions/{id}/invoke"]);
    check_taken(&["POST /api/v1/actions/action_0/invoke"]);
    check_taken(&["GET /api/v1/actions/anything/invoke"]);
}

#[test]
fn routes_that_differ_are_fine() {
    for routes in [
        &["GET /a", "POST /a", "PUT /a", "PATCH /a", "DELETE /a"][..],
        &["GET /a/{id}", "DELETE /a/{id}", "GET /a/{id}/b"],
        &["GET /a/{id}", "GET /a/mine"],
        &["GET /api/v1/actions/{id}", "POST /api/v1/actions/{id}/invoke/{key}"],
        &["GET /api/v1/{kind}"],
    ] {
        assert_eq!(route_error(routes), None, "{routes:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_method_on_a_declared_route_names_all_that_are_right() {
    let server = server().await;
    for (method, target, allowed) in [
        ("PUT", "/api/v1/tasks", "GET, HEAD, POST"),
        ("POST", "/api/v1/tasks/1", "DELETE, GET, HEAD, PATCH"),
        ("GET", "/api/v1/counts", "POST"),
        ("HEAD", "/api/v1/counts", "POST"),
    ] {
        let request: Request = server.request(method, target);
        let answer = server.send(request).await;
        assert_eq!(answer.status, 405);
        let mut methods: Vec<&str> = answer.header("allow").split(',').map(str::trim).collect();
        methods.sort_unstable();
        assert_eq!(methods.join(", "), allowed);
    }
}
