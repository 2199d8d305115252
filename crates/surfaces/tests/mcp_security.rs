//! Who is kept out of `/mcp`, on both wire revisions: the incidents of our peers, and whatever a client could bring back changed.
//!
//! clause: A04
//! clause: A21
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a failed expectation fails the test"
)]

mod mcp_support;
mod support;

use mcp_support::{Kind, call, mcp_server, newer, newer_notification, older, result};
use serde_json::{Value, json};
use support::client::Request;
use support::server::{ADA, BOB, BOT, Server};
use tokio::task::JoinSet;

/// The code of the failure envelope that a tool's result carries.
#[track_caller]
fn code(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "{result}");
    result["_meta"]["io.runyard/envelope"]["error"]["code"].as_str().unwrap()
}

/// One request of each kind that a session or a single call makes.
fn every_kind(server: &Server) -> Vec<Request> {
    let initialize = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    vec![
        newer(server, ADA, 1, "tools/list", json!({})),
        newer(server, ADA, 1, "tools/call", call("erase", json!({"what": "all"}))),
        older(
            server,
            ADA,
            None,
            &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize}),
        ),
        server.get("/mcp").with("Accept", "text/event-stream"),
        server.request("DELETE", "/mcp"),
        server.request("OPTIONS", "/mcp"),
    ]
}

// CVE-2026-42559, CVE-2025-66414, CVE-2025-66416: a page of elsewhere reaches a server on this machine.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2026_42559_a_foreign_host_is_refused_in_the_default_configuration() {
    let server = mcp_server().await;
    for host in ["evil.example", "evil.example:80", "127.0.0.1", "localhost.evil.example", "127.0.0.1.nip.io"]
    {
        for request in every_kind(&server) {
            let answer = server.send(request.with("Host", host)).await;
            assert_eq!(answer.outcome(), (421, "HOST_NOT_ALLOWED".to_owned()), "{host}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cve_2025_66414_a_foreign_origin_is_refused_in_the_default_configuration() {
    let server = mcp_server().await;
    let neighbour = format!("http://127.0.0.1:{}", server.address.port().wrapping_add(1));
    for origin in ["https://evil.example", "null", "http://localhost", &neighbour] {
        for request in every_kind(&server) {
            let answer = server.send(request.with("Origin", origin)).await;
            assert_eq!(answer.outcome(), (403, "ORIGIN_NOT_ALLOWED".to_owned()), "{origin}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_comes_in_without_a_token_not_even_to_a_session_of_theirs() {
    let server = mcp_server().await;
    let ada = server.session(ADA, json!({})).await;
    let listing = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let in_session = older(&server, ADA, Some(&ada), &listing);
    for request in every_kind(&server).into_iter().chain([in_session]) {
        for changed in [request.clone().without("Authorization"), request.by("guessed")] {
            let answer = server.send(changed).await;
            assert_eq!(answer.outcome(), (401, "AUTHENTICATION_ERROR".to_owned()));
        }
    }
}

// CVE-2026-59950 and CVE-2025-52882: a WebSocket beside the HTTP routes that asked neither for Host and Origin nor for a token.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2026_59950_cve_2025_52882_no_route_becomes_a_websocket_and_asking_for_one_passes_no_check() {
    let server = mcp_server().await;
    for path in ["/mcp", "/dev", "/api/v1/actions", "/ws", "/"] {
        let upgrade = || {
            let key = "dGhlIHNhbXBsZSBub25jZQ==";
            let request = server.get(path).with("Connection", "Upgrade").with("Upgrade", "websocket");
            request.with("Sec-WebSocket-Version", "13").with("Sec-WebSocket-Key", key)
        };
        let foreign = server.send(upgrade().with("Origin", "https://evil.example")).await;
        assert_eq!(foreign.outcome(), (403, "ORIGIN_NOT_ALLOWED".to_owned()), "{path}");
        let elsewhere = server.send(upgrade().with("Host", "evil.example")).await;
        assert_eq!(elsewhere.outcome(), (421, "HOST_NOT_ALLOWED".to_owned()), "{path}");
        for request in [upgrade(), upgrade().without("Authorization")] {
            let answer = server.any(request).await;
            assert_ne!(answer.status, 101, "{path}");
        }
    }
}

// CVE-2026-25536: answers went to whoever had used the same request id last.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2026_25536_two_clients_with_equal_ids_get_their_own_answers_on_the_newer_wire() {
    let server = mcp_server().await;
    for round in 0..20 {
        // Each waits until the other has begun, and each is told what happens meanwhile.
        let meet = |token, name: &str| {
            let mut asked = call("meet", json!({ "name": name }));
            asked["_meta"] = json!({"io.modelcontextprotocol/logLevel": "debug", "progressToken": 1});
            server.told(newer(&server, token, 1, "tools/call", asked))
        };
        let (ada, bob) = (format!("ada {round}"), format!("bob {round}"));
        let (for_ada, for_bob) = tokio::join!(meet(ADA, &ada), meet(BOB, &bob));
        for (told, name) in [(for_ada, ada), (for_bob, bob)] {
            let text = json!(told).to_string();
            assert_eq!(result(told.last().unwrap())["content"][0]["text"], name);
            // Once on its way, and once in the envelope.
            assert_eq!(text.matches(&format!("met by {name}")).count(), 2, "{text}");
            assert_eq!(text.matches("met by").count(), 2, "{text}");
        }
    }
}

// The same with sessions, where the server asks, too, and its own requests have equal ids.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2026_25536_two_clients_with_equal_ids_get_their_own_answers_on_the_older_wire() {
    let server = mcp_server().await;
    let able = || json!({"elicitation": {}});
    let (ada, bob) = (server.session(ADA, able()).await, server.session(BOB, able()).await);
    let again = server.session(ADA, able()).await;
    for _ in 0..5 {
        let sessions = [(ADA, &ada, "one"), (BOB, &bob, "two"), (ADA, &again, "three")];
        let mut asking = Vec::new();
        for (token, session, _) in sessions {
            let asked = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call("ask_name", json!({}))});
            let mut stream = server.stream(&older(&server, token, Some(session), &asked)).await;
            let question = stream.message().await.unwrap();
            assert_eq!(question["method"], "elicitation/create", "{question}");
            asking.push((stream, question["id"].clone()));
        }
        // All are asked by now; the answers come in the other order.
        for ((token, session, name), (_, id)) in sessions.into_iter().zip(&asking).rev() {
            let content = json!({"action": "accept", "content": {"name": name}});
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": content});
            assert_eq!(server.any(older(&server, token, Some(session), &answer)).await.status, 202);
        }
        for ((mut stream, _), (_, _, name)) in asking.into_iter().zip(sessions) {
            let last = stream.last_message().await;
            assert_eq!((&last["id"], &result(&last)["content"][0]["text"]), (&json!(7), &json!(name)));
        }
    }
}

// The same for taking a request back.
#[tokio::test(flavor = "multi_thread")]
async fn a21_nobody_cancels_another_clients_call_that_has_the_same_id() {
    let server = mcp_server().await;
    let (ada, bob) = (server.session(ADA, json!({})).await, server.session(BOB, json!({})).await);
    let cancel = json!({"requestId": 1, "reason": "not mine"});
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel});
    let in_session = |token, session, name| {
        let meet = call("meet", json!({ "name": name }));
        older(
            &server,
            token,
            Some(session),
            &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": meet}),
        )
    };
    let meet = |token, name| newer(&server, token, 1, "tools/call", call("meet", json!({ "name": name })));
    let pairs =
        [(in_session(ADA, &ada, "ada"), in_session(BOB, &bob, "bob")), (meet(ADA, "ada"), meet(BOB, "bob"))];
    for (first, second) in pairs {
        let begun = server.begun();
        let first = server.told(first);
        let meanwhile = async {
            // The first runs and waits for the second.
            support::until("the first has begun", || server.begun() > begun).await;
            for notification in
                [older(&server, BOB, Some(&bob), &cancelled), newer_notification(&server, BOB, &cancelled)]
            {
                assert_eq!(server.any(notification).await.status, 202);
            }
            server.told(second).await
        };
        let (for_ada, for_bob) = tokio::join!(first, meanwhile);
        for (told, name) in [(for_ada, "ada"), (for_bob, "bob")] {
            assert_eq!(result(told.last().unwrap())["content"][0]["text"], name);
        }
    }
}

// An agent that begins one session after the other keeps nobody else out.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_with_too_many_sessions_is_refused_further_ones_and_nobody_else_is() {
    let server = mcp_server().await;
    let mut sessions = Vec::new();
    for _ in 0..100 {
        sessions.push(server.session(BOT, json!({})).await);
    }
    let [.., initialize, _, _, _] = &every_kind(&server)[..] else { panic!("no request to begin a session") };
    let initialize = initialize.clone().by(BOT);
    assert_eq!(server.any(initialize.clone()).await.status, 503);
    // Nor when it says that it is about something else.
    let disguised = initialize.with("Mcp-Method", "tools/list").with("MCP-Protocol-Version", "2025-11-25");
    assert_eq!(server.any(disguised).await.status, 503);
    server.session(ADA, json!({})).await;
    assert!(server.result(newer(&server, BOT, 1, "tools/list", json!({}))).await["tools"].is_array());
    // One that has ended makes room.
    let end = server.request("DELETE", "/mcp").by(BOT).with("Mcp-Session-Id", &sessions[0]);
    let ended = server.any(end.with("MCP-Protocol-Version", "2025-11-25")).await;
    assert!((200..300).contains(&ended.status), "{ended:?}");
    server.session(BOT, json!({})).await;
}

// An agent that listened often enough took every connection, so that nobody could end its run.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_with_too_many_streams_is_refused_further_ones_and_nobody_else_is() {
    const STREAMS_OF_CALLER_MAX: usize = 32;
    let server = mcp_server().await;
    let session = server.session(BOT, json!({})).await;
    let stream = server.get("/mcp").by(BOT).with("Accept", "text/event-stream");
    let in_session = stream.with("Mcp-Session-Id", &session).with("MCP-Protocol-Version", "2025-11-25");
    let watched = json!({"notifications": {"toolsListChanged": true}});
    let listen = |token| newer(&server, token, 1, "subscriptions/listen", watched.clone());
    let held = server.stream(&in_session).await;
    let mut listening = JoinSet::new();
    for _ in 0..STREAMS_OF_CALLER_MAX {
        let mut stream = server.stream(&listen(BOT)).await;
        let begun = stream.message().await.unwrap();
        assert_eq!(begun["method"], "notifications/subscriptions/acknowledged", "{begun}");
        listening.spawn(async move { stream.message().await });
    }
    // Together with the one of the session that is one too many, whichever it is.
    let refused = listening.join_next().await.unwrap().unwrap().unwrap();
    assert!(refused["error"]["message"].as_str().unwrap().starts_with("Too many streams"), "{refused}");
    assert!(listening.try_join_next().is_none(), "all others go on");
    let again = server.any(in_session.clone()).await;
    assert_eq!((again.status, &again.json()["error"]["message"]), (503, &refused["error"]["message"]));
    assert!(server.result(newer(&server, BOT, 1, "tools/list", json!({}))).await["tools"].is_array());
    server.stream(&listen(ADA)).await.message().await.unwrap();
    // Those that have ended make room.
    drop(held);
    listening.shutdown().await;
    for _ in 0..STREAMS_OF_CALLER_MAX {
        let mut client = server.connect().await;
        client.write(&in_session.bytes()).await;
        if client.head_only().await.status == 200 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("there is never room again");
}

// Whatever else could not be read, the call was carried out.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_parameters_cannot_be_read_is_not_carried_out() {
    let server = mcp_server().await;
    let confirmed = json!({"io.runyard/options": {"confirm": true}});
    for unread in
        [json!({"requestState": 5}), json!({"inputResponses": 5}), json!({"task": 5, "requestState": []})]
    {
        let mut more = unread.clone();
        more["_meta"] = confirmed.clone();
        let answer = server.told(erase(ADA, &server, "all", more)).await.pop().unwrap();
        assert_eq!(answer["error"]["code"], -32602, "{unread}: {answer}");
    }
    assert_eq!(server.erased(), 0);
    // Arguments that are no object are an input that is not valid, and nothing else.
    let told = server.result(newer(&server, ADA, 1, "tools/call", call("erase", json!("all")))).await;
    assert_eq!(code(&told), "VALIDATION_ERROR");
    let told = server.result(newer(&server, ADA, 1, "tools/call", call("absent", json!("all")))).await;
    assert_eq!(code(&told), "ACTION_NOT_FOUND");
    assert_eq!(server.erased(), 0);
}

// CVE-2026-52869: whoever knew the id of a session was in it.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2026_52869_another_principals_session_is_not_found() {
    let server = mcp_server().await;
    let ada = server.session(ADA, json!({})).await;
    let listing = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let uses = |token: &str, session: &str| {
        let stream = server.get("/mcp").by(token).with("Accept", "text/event-stream");
        let in_session = |request: Request| {
            request.with("Mcp-Session-Id", session).with("MCP-Protocol-Version", "2025-11-25")
        };
        [
            older(&server, token, Some(session), &listing),
            in_session(stream),
            in_session(server.request("DELETE", "/mcp").by(token)),
        ]
    };
    let (content, seal) = ada.split_once('.').unwrap();
    let forged =
        [ada.to_uppercase(), content.to_owned(), format!("{content}."), format!("A{content}.{seal}")];
    let foreign = [BOB, BOT].map(|token| (token, ada.clone()));
    for (token, session) in foreign.into_iter().chain(forged.map(|session| (ADA, session))) {
        for request in uses(token, &session) {
            let answer = server.any(request).await;
            assert_eq!(answer.status, 404, "{token} {session}");
        }
    }
    // It went on all the while.
    let answer = server.told(older(&server, ADA, Some(&ada), &listing)).await;
    assert!(result(answer.last().unwrap())["tools"].is_array(), "{answer:?}");
}

// CVE-2026-52870: tasks were found by their id alone.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2026_52870_another_principals_task_is_not_found() {
    let server = mcp_server().await;
    let begun = server.result(newer(&server, ADA, 1, "tools/call", call("ask_in_task", json!({})))).await;
    assert_eq!(begun["resultType"], "task", "{begun}");
    let task = begun["taskId"].as_str().unwrap();
    let waiting = server.until_task_asks(ADA, task).await;
    assert!(waiting["inputRequests"]["name"].is_object(), "{waiting}");
    let answers = json!({"name": {"action": "accept", "content": {"name": "somebody else"}}});
    let uses = |token: &str, task: &str| {
        let about = json!({ "taskId": task });
        let update = json!({"taskId": task, "inputResponses": answers.clone()});
        [("tasks/get", about.clone()), ("tasks/update", update), ("tasks/cancel", about)]
            .map(|(method, params)| newer(&server, token, 1, method, params))
    };
    let (_, seal) = task.split_once('.').unwrap();
    let forged = format!("bm90aGluZw.{seal}");
    for (token, id) in [(BOB, task), (BOT, task), (ADA, "nothing"), (ADA, &forged)] {
        for request in uses(token, id) {
            let error = server.told(request).await.pop().unwrap()["error"].clone();
            assert_eq!(error, json!({"code": -32602, "message": "There is no such task."}), "{token} {id}");
        }
    }
    // Nobody else has answered or ended it.
    assert_eq!(server.until_task_asks(ADA, task).await["status"], "input_required");
    let answers = json!({"name": {"action": "accept", "content": {"name": "Ada"}}});
    let update = newer(&server, ADA, 2, "tasks/update", json!({"taskId": task, "inputResponses": answers}));
    server.result(update).await;
    let ended = server.until_task_ends(ADA, task).await;
    assert_eq!(ended["result"]["content"][0]["text"], "Ada", "{ended}");
}

// CVE-2026-0621: an address that a pattern took forever to refuse.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2026_0621_pathological_addresses_are_refused_at_once() {
    let server = mcp_server().await;
    let addresses = [
        String::new(),
        "shop".to_owned(),
        "shop://".to_owned(),
        "shop://orders//lines".to_owned(),
        "shop://orders/{id}/lines/more".to_owned(),
        format!("shop://orders/{}", "a/".repeat(2_000)),
        format!("shop://orders/{}/lines", "{".repeat(5_000)),
        format!("shop://{}", "/".repeat(4_000)),
        format!("shop://orders/{}/lines", "a".repeat(1_000_000)),
        format!("shop://orders/{}", "{a}/".repeat(100_000)),
        "shop://orders/../../etc/passwd".to_owned(),
        "\u{202e}shop://orders/1/lines".to_owned(),
    ];
    for uri in addresses {
        // Headers end before such an address does, so that only the older wire can carry all of them.
        let session = server.session(ADA, json!({})).await;
        for method in ["resources/read", "resources/subscribe"] {
            let asked = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"uri": uri}});
            let answer = server.told(older(&server, ADA, Some(&session), &asked)).await.pop().unwrap();
            assert_eq!(answer["error"]["code"], -32002, "{answer}");
            assert!(answer.to_string().len() < 2_000, "an answer does not repeat all of it");
        }
    }
    let fine = newer(&server, ADA, 1, "resources/read", json!({"uri": "shop://orders/7/lines"}));
    assert_eq!(server.result(fine).await["contents"][0]["text"], "{\"id\":\"7\"}");
}

/// Calls a destructive action on the newer wire, as a client that can show a form.
fn erase(token: &str, server: &Server, what: &str, more: Value) -> Request {
    let mut asked = call("erase", json!({ "what": what }));
    asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    newer(server, token, 1, "tools/call", asked)
}

const CONFIRM: &str = "io.runyard/confirm";

fn yes() -> Value {
    json!({CONFIRM: {"action": "accept", "content": {"confirm": true}}})
}

/// The state that a person is to bring back with their answer.
async fn asked_state(token: &str, server: &mcp_support::McpServer) -> String {
    let asked = server.result(erase(token, server, "all", json!({}))).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert!(asked["inputRequests"][CONFIRM]["params"]["message"].as_str().unwrap().contains("\"all\""));
    asked["requestState"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a04_a_confirmation_counts_once_for_what_was_asked_and_for_whom() {
    let server = mcp_server().await;
    let state = asked_state(ADA, &server).await;
    let of_bob = asked_state(BOB, &server).await;
    let (content, seal) = state.split_once('.').unwrap();
    let tampered = format!("{}.{seal}", content.replacen(|letter: char| letter.is_ascii_lowercase(), "A", 1));
    let with = |state: &str| json!({"requestState": state, "inputResponses": yes()});
    let other_tool = newer(&server, ADA, 1, "tools/call", {
        let mut asked = call("erase_more", json!({"what": "all"}));
        asked.as_object_mut().unwrap().extend(with(&state).as_object().unwrap().clone());
        asked
    });
    let refused = [
        ("tampered", erase(ADA, &server, "all", with(&tampered))),
        ("of somebody else", erase(BOB, &server, "all", with(&state))),
        ("somebody else's", erase(ADA, &server, "all", with(&of_bob))),
        ("for other arguments", erase(ADA, &server, "more", with(&state))),
        ("for another tool", other_tool),
        ("no state at all", erase(ADA, &server, "all", with("confirm"))),
    ];
    for (why, request) in refused {
        let answer = server.told(request).await.pop().unwrap();
        assert_eq!(answer["error"]["code"], -32602, "{why}: {answer}");
    }
    assert_eq!(server.erased(), 0);
    let done = server.result(erase(ADA, &server, "all", with(&state))).await;
    assert_eq!(done["structuredContent"], json!({"erased": "all"}), "{done}");
    let twice = server.told(erase(ADA, &server, "all", with(&state))).await.pop().unwrap();
    assert_eq!(twice["error"]["code"], -32602, "{twice}");
    assert_eq!(server.erased(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a04_a_yes_that_nobody_was_asked_for_does_not_count() {
    let server = mcp_server().await;
    let unasked = server.result(erase(ADA, &server, "all", json!({"inputResponses": yes()}))).await;
    assert_eq!(unasked["resultType"], "input_required", "{unasked}");
    // Nor does an answer to something else.
    for answer in [json!({"action": "decline"}), json!({"action": "accept", "content": {"confirm": false}})] {
        let state = asked_state(ADA, &server).await;
        let brought = json!({"requestState": state, "inputResponses": {CONFIRM: answer}});
        assert_eq!(code(&server.result(erase(ADA, &server, "all", brought)).await), "CONFIRMATION_REQUIRED");
    }
    // A client that can show no form is not asked; it may say beside the arguments that its person has confirmed.
    let mut blind = call("erase", json!({"what": "all"}));
    blind["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": {}});
    let told = server.result(newer(&server, ADA, 1, "tools/call", blind.clone())).await;
    assert_eq!(code(&told), "CONFIRMATION_REQUIRED");
    let in_arguments = call("erase", json!({"what": "all", "confirm": true}));
    let told = server.result(newer(&server, ADA, 1, "tools/call", in_arguments)).await;
    assert_eq!(code(&told), "VALIDATION_ERROR", "what a model writes is no confirmation");
    assert_eq!(server.erased(), 0);
    blind["_meta"]["io.runyard/options"] = json!({"confirm": true});
    let told = server.result(newer(&server, ADA, 1, "tools/call", blind)).await;
    assert_eq!(told["isError"], false, "{told}");
    assert_eq!(server.erased(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a04_an_agent_is_never_asked_and_never_confirms() {
    let server = mcp_server().await;
    let of_ada = asked_state(ADA, &server).await;
    let options = json!({"io.runyard/options": {"confirm": true}});
    let tries = [
        json!({}),
        json!({"_meta": options}),
        json!({"inputResponses": yes()}),
        json!({"_meta": options, "inputResponses": yes()}),
    ];
    for tried in tries {
        let told = server.result(erase(BOT, &server, "all", tried)).await;
        assert_eq!(code(&told), "CONFIRMATION_REQUIRED");
    }
    let stolen = json!({"requestState": of_ada, "inputResponses": yes()});
    let told = server.told(erase(BOT, &server, "all", stolen)).await.pop().unwrap();
    assert_eq!(told["error"]["code"], -32602, "{told}");
    // The same in a session, where the server itself would ask.
    let session = server.session(BOT, json!({"elicitation": {}})).await;
    let asked = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call("erase", json!({"what": "all"}))});
    let told = server.told(older(&server, BOT, Some(&session), &asked)).await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(code(result(&told[0])), "CONFIRMATION_REQUIRED");
    assert_eq!(server.erased(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_one_may_not_call_is_neither_listed_nor_told_apart_from_one_that_is_not_there() {
    let server = mcp_server().await;
    let listed = server.result(newer(&server, BOB, 1, "tools/list", json!({}))).await;
    let names: Vec<_> = listed["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert!(names.contains(&&json!("meet")) && !names.contains(&&json!("hidden")), "{names:?}");
    for kind in [Kind::Newer, Kind::Older] {
        let hidden = server.called(kind, BOB, "hidden").await;
        let absent = server.called(kind, BOB, "absent").await;
        let text = |value: &Value, name: &str| {
            let mut value = value.clone();
            value["_meta"]["io.runyard/envelope"]["meta"] = Value::Null;
            value["content"] = Value::Null;
            value.to_string().replace(name, "NAME")
        };
        assert_eq!(text(&hidden, "hidden"), text(&absent, "absent"));
    }
}
