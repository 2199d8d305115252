//! What each wire makes of a question.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;

use runyard_llm::inference::{
    AnswerFormat, Effort, Image, ImageSource, InferenceRequest, Message, Part, Reasoning, Role, ToolCall,
    ToolChoice, ToolOutput, ToolSpec,
};
use runyard_llm::wire::{
    AnthropicOptions, ChatOptions, OUTPUT_TOKENS_DEFAULT, OutputTokensField, ResponsesOptions, Structure,
    Thinking, Wire,
};
use serde_json::{Value, json};

fn responses() -> Wire {
    Wire::Responses(ResponsesOptions::default())
}

fn chat() -> Wire {
    Wire::Chat(ChatOptions::default())
}

fn anthropic() -> Wire {
    Wire::Anthropic(AnthropicOptions::default())
}

fn text(text: &str) -> Part {
    Part::Text { text: text.into() }
}

fn call(id: &str, arguments: Value) -> Part {
    Part::ToolCall(ToolCall { id: id.into(), name: "look".into(), arguments })
}

fn output(id: &str, content: &str, is_error: bool) -> Message {
    Message::tool(ToolOutput { call_id: id.into(), content: content.into(), is_error })
}

fn assistant(content: Vec<Part>) -> Message {
    Message { role: Role::Assistant, content }
}

fn thought(text: &str, provider: &str, item: Value) -> Part {
    Part::Reasoning(Reasoning {
        text: text.into(),
        sealed: Some(json!({"provider": provider, "model": "m", "item": item})),
    })
}

fn request(messages: Vec<Message>) -> InferenceRequest {
    InferenceRequest { messages: messages.into_iter().map(Arc::new).collect(), ..InferenceRequest::default() }
}

fn look() -> ToolSpec {
    let parameters = json!({"type": "object", "properties": {"at": {"type": "string"}}});
    ToolSpec { name: "look".into(), description: "Looks.".into(), parameters }
}

fn sealed(wire: &Wire) -> Value {
    match wire {
        Wire::Responses(_) => {
            json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"})
        }
        Wire::Chat(_) => json!({"type": "reasoning_content"}),
        Wire::Anthropic(_) => json!({"type": "thinking", "thinking": "Hm.", "signature": "s"}),
    }
}

/// A conversation with everything in it.
fn full(wire: &Wire) -> InferenceRequest {
    let data = ImageSource::Data { media_type: "image/png".into(), data: "AAAA".into() };
    let url = ImageSource::Url { url: "https://h/p.png".into() };
    let picture = |source| Part::Image(Image { source });
    let messages = vec![
        Message::system("Be kind."),
        Message { role: Role::User, content: vec![text("What is it?"), picture(data), picture(url)] },
        assistant(vec![
            thought("Hm.", "p", sealed(wire)),
            text("I look."),
            call("c1", json!({"at": "a"})),
            call("c2", json!("not JSON {")),
        ]),
        output("c1", "a cat", false),
        output("c2", "no such thing", true),
        Message::user("And?"),
    ];
    InferenceRequest {
        instructions: "You look at things.".into(),
        tools: Arc::new([look()]),
        tool_choice: ToolChoice::Auto,
        parallel_tool_calls: true,
        effort: Some(Effort::Medium),
        format: Some(AnswerFormat {
            name: "answer".into(),
            schema: json!({"type": "object", "properties": {"of": {"type": "string"}}}),
        }),
        output_tokens_max: Some(500),
        top_p: Some(0.95),
        labels: [("who".to_owned(), "counts".to_owned())].into(),
        ..request(messages)
    }
}

#[test]
fn a_question_to_the_responses_api() {
    let expected = json!({
        "model": "m",
        "instructions": "You look at things.",
        "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]},
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "What is it?"},
                {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
                {"type": "input_image", "image_url": "https://h/p.png"},
            ]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": r#"{"at":"a"}"#},
            {"type": "function_call", "call_id": "c2", "name": "look", "arguments": r#"{"arguments":"not JSON {"}"#},
            {"type": "function_call_output", "call_id": "c1", "output": "a cat"},
            {"type": "function_call_output", "call_id": "c2", "output": "no such thing"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And?"}]},
        ],
        "tools": [{
            "type": "function", "name": "look", "description": "Looks.", "strict": false,
            "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
        }],
        "tool_choice": "auto",
        "parallel_tool_calls": true,
        "reasoning": {"effort": "medium", "summary": "auto"},
        "text": {"format": {
            "type": "json_schema", "name": "answer", "strict": false,
            "schema": {"type": "object", "properties": {"of": {"type": "string"}}},
        }},
        "max_output_tokens": 500,
        "top_p": 0.95,
        "include": ["reasoning.encrypted_content"],
        "store": false,
        "stream": true,
    });
    assert_eq!(responses().encode("p", "m", &full(&responses())), expected);

    let bare = Wire::Responses(ResponsesOptions { asks_for_sealed_reasoning: false });
    let expected = json!({"model": "m", "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
    ], "store": false, "stream": true});
    assert_eq!(bare.encode("p", "m", &request(vec![Message::user("hello")])), expected);
    // Who does not ask for thoughts does not give them back, and who does not ask to think does not ask for thoughts.
    let full = full(&responses());
    let asked = bare.encode("p", "m", &full);
    assert!(asked.get("include").is_none() && !asked["input"].to_string().contains("encrypted_content"));
    let effortless = responses().encode("p", "m", &InferenceRequest { effort: None, ..full });
    assert_eq!(effortless.get("include"), None);
}

#[test]
fn a_question_to_chat_completions() {
    let function = |id: &str, arguments: &str| json!({"type": "function", "id": id, "function": {"name": "look", "arguments": arguments}});
    let expected = json!({
        "model": "m",
        "messages": [
            {"role": "system", "content": "You look at things."},
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": [
                {"type": "text", "text": "What is it?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                {"type": "image_url", "image_url": {"url": "https://h/p.png"}},
            ]},
            {"role": "assistant", "content": "I look.", "reasoning_content": "Hm.", "tool_calls": [
                function("c1", r#"{"at":"a"}"#), function("c2", r#"{"arguments":"not JSON {"}"#),
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "a cat"},
            {"role": "tool", "tool_call_id": "c2", "content": "no such thing"},
            {"role": "user", "content": "And?"},
        ],
        "tools": [{"type": "function", "function": {
            "name": "look", "description": "Looks.",
            "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
        }}],
        "tool_choice": "auto",
        "reasoning_effort": "medium",
        "response_format": {"type": "json_schema", "json_schema": {
            "name": "answer", "strict": false,
            "schema": {"type": "object", "properties": {"of": {"type": "string"}}},
        }},
        "max_tokens": 500,
        "top_p": 0.95,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    assert_eq!(chat().encode("p", "m", &full(&chat())), expected);

    let options = ChatOptions {
        output_tokens_field: OutputTokensField::MaxCompletionTokens,
        structure: Structure::JsonObject,
    };
    let newer = Wire::Chat(options).encode("p", "m", &full(&chat()));
    assert_eq!((&newer["max_completion_tokens"], newer.get("max_tokens")), (&json!(500), None));
    assert_eq!(newer["response_format"], json!({"type": "json_object"}));
    let words = newer["messages"][1]["content"].as_str().unwrap();
    let schema = json!({"type": "object", "properties": {"of": {"type": "string"}}});
    assert!(words.contains("JSON") && words.ends_with(&schema.to_string()), "{words}");
    assert_eq!(newer["messages"][2]["content"], "Be kind.");
}

#[test]
fn a_question_to_anthropic() {
    let expected = json!({
        "model": "m",
        "max_tokens": 500,
        "system": "You look at things.\n\nBe kind.",
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "What is it?"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                {"type": "image", "source": {"type": "url", "url": "https://h/p.png"}},
            ]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "a"}},
                {"type": "tool_use", "id": "c2", "name": "look", "input": {"arguments": "not JSON {"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "a cat"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "no such thing", "is_error": true},
                {"type": "text", "text": "And?"},
            ]},
        ],
        "tools": [{
            "name": "look", "description": "Looks.",
            "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}},
        }],
        "tool_choice": {"type": "auto"},
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {
            "effort": "medium",
            "format": {"type": "json_schema", "schema": {
                "type": "object", "properties": {"of": {"type": "string"}}, "additionalProperties": false,
            }},
        },
        "top_p": 0.95,
        "stream": true,
    });
    assert_eq!(anthropic().encode("p", "m", &full(&anthropic())), expected);

    let expected = json!({
        "model": "m", "max_tokens": OUTPUT_TOKENS_DEFAULT, "stream": true,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}],
    });
    assert_eq!(anthropic().encode("p", "m", &request(vec![Message::user("hello")])), expected);
}

#[test]
fn a_form_that_anthropic_cannot_demand_is_asked_for_in_words() {
    let schema = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    let format = Some(AnswerFormat { name: "counts".into(), schema: schema.clone() });
    let asked = InferenceRequest { format, ..request(vec![Message::user("Count.")]) };
    let body = anthropic().encode("p", "m", &asked);
    assert_eq!(body.get("output_config"), None);
    assert!(body["system"].as_str().unwrap().contains(&schema.to_string()), "{body}");
}

#[test]
fn tool_choice_and_parallel_calls_are_said_in_each_wires_words() {
    #[track_caller]
    fn check(choice: ToolChoice, expected: [Value; 3]) {
        for (wire, expected) in [responses(), chat(), anthropic()].into_iter().zip(expected) {
            let asked = InferenceRequest {
                tools: Arc::new([look()]),
                tool_choice: choice.clone(),
                ..request(vec![Message::user("hello")])
            };
            let body = wire.encode("p", "m", &asked);
            assert_eq!(body["tool_choice"], expected, "{}", wire.path());
            let without = InferenceRequest { tools: Arc::new([]), ..asked };
            let body = wire.encode("p", "m", &without);
            assert!(body.get("tool_choice").is_none() && body.get("parallel_tool_calls").is_none(), "{body}");
        }
    }
    let alone = |choice: Value| {
        let mut choice = choice;
        choice["disable_parallel_tool_use"] = true.into();
        choice
    };
    check(ToolChoice::Auto, [json!("auto"), json!("auto"), alone(json!({"type": "auto"}))]);
    check(ToolChoice::None, [json!("none"), json!("none"), json!({"type": "none"})]);
    check(ToolChoice::Required, [json!("required"), json!("required"), alone(json!({"type": "any"}))]);
    check(
        ToolChoice::Named("look".into()),
        [
            json!({"type": "function", "name": "look"}),
            json!({"type": "function", "function": {"name": "look"}}),
            alone(json!({"type": "tool", "name": "look"})),
        ],
    );
    let asked = InferenceRequest { tools: Arc::new([look()]), ..request(vec![Message::user("hello")]) };
    assert_eq!(responses().encode("p", "m", &asked)["parallel_tool_calls"], false);
    assert_eq!(chat().encode("p", "m", &asked)["parallel_tool_calls"], false);
}

#[test]
fn a_thought_goes_back_only_to_whoever_had_it_and_only_with_what_followed() {
    for wire in [responses(), chat(), anthropic()] {
        let own = thought("Hm.", "p", sealed(&wire));
        let is_back_to = |content: Vec<Part>, provider: &str, model: &str| {
            let body = wire.encode(provider, model, &request(vec![Message::user("?"), assistant(content)]));
            let body = body["input"].to_string() + &body["messages"].to_string();
            ["encrypted_content", "reasoning_content", "signature"].iter().any(|word| body.contains(word))
        };
        let is_back = |content: Vec<Part>, provider: &str| is_back_to(content, provider, "m");
        let path = wire.path();
        assert!(is_back(vec![own.clone(), text("So.")], "p"), "{path}");
        assert!(!is_back(vec![own.clone(), text("So.")], "another"), "{path}");
        assert!(!is_back_to(vec![own.clone(), text("So.")], "p", "another"), "{path}: another model");
        assert!(!is_back(vec![own], "p"), "{path}: nothing followed");
        let unsealed = Part::Reasoning(Reasoning { text: "Hm.".into(), sealed: None });
        assert!(!is_back(vec![unsealed, text("So.")], "p"), "{path}");
        for other in [responses(), chat(), anthropic()].iter().filter(|other| *other != &wire) {
            let foreign = thought("Hm.", "p", sealed(other));
            assert!(!is_back(vec![foreign, text("So.")], "p"), "{path} from {}", other.path());
        }
    }
}

// clause: D02
#[test]
fn d02_a_name_that_a_model_made_up_does_not_have_every_later_question_refused() {
    for (made_up, sent) in [
        ("fs.read", "fs_read".to_owned()),
        ("mcp/ä b", "mcp___b".to_owned()),
        ("look-2", "look-2".to_owned()),
        (&"x".repeat(65), "x".repeat(64)),
    ] {
        let called = ToolCall { id: "c".into(), name: made_up.into(), arguments: json!({}) };
        let asked = request(vec![
            Message::user("?"),
            assistant(vec![Part::ToolCall(called)]),
            output("c", "there is no such tool", true),
        ]);
        let name = |wire: &Wire, place: &str| wire.encode("p", "m", &asked).pointer(place).cloned();
        let sent = Some(json!(sent));
        assert_eq!(name(&responses(), "/input/1/name"), sent);
        assert_eq!(name(&chat(), "/messages/1/tool_calls/0/function/name"), sent);
        assert_eq!(name(&anthropic(), "/messages/1/content/0/name"), sent);
    }
}

#[test]
fn on_anthropic_two_sides_take_turns_and_results_come_first() {
    let conversation = vec![
        Message::user("one"),
        Message::user("  "),
        Message::user("two"),
        assistant(vec![text(""), call("call/1|x", json!({}))]),
        Message::user("wait"),
        Message::system("Be quick."),
        output("call/1|x", "", false),
        assistant(vec![text("\n")]),
        Message::user("and?"),
    ];
    let body = anthropic().encode("p", "m", &request(conversation));
    let said = |text: &str| json!({"type": "text", "text": text});
    let expected = json!([
        {"role": "user", "content": [said("one"), said("two")]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1_x", "name": "look", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "call_1_x", "content": ""},
            said("wait"), said("Be quick."), said("and?"),
        ]},
    ]);
    assert_eq!((&body["messages"], body.get("system")), (&expected, None));
}

#[test]
fn on_anthropic_thinking_yields_to_what_it_does_not_go_with() {
    let asked = InferenceRequest {
        effort: Some(Effort::High),
        tools: Arc::new([look()]),
        ..request(vec![Message::user("hello")])
    };
    let older =
        Wire::Anthropic(AnthropicOptions { thinking: Thinking::Budget, ..AnthropicOptions::default() });
    // What is thought is a part of what may be said, so that the two together are within the limit of every model.
    for (effort, budget) in [(Effort::Low, 2048), (Effort::Medium, 8192), (Effort::High, 8192)] {
        let body = older.encode("p", "m", &InferenceRequest { effort: Some(effort), ..asked.clone() });
        let tokens = (&body["thinking"]["budget_tokens"], &body["max_tokens"]);
        assert_eq!(tokens, (&json!(budget), &json!(OUTPUT_TOKENS_DEFAULT)), "{effort:?}");
    }
    let body = older.encode("p", "m", &asked);
    assert_eq!(body.get("output_config"), None);

    let short = older.encode("p", "m", &InferenceRequest { output_tokens_max: Some(4096), ..asked.clone() });
    assert_eq!((&short["thinking"]["budget_tokens"], &short["max_tokens"]), (&json!(2048), &json!(4096)));
    for wire in [&anthropic(), &older] {
        for without in [
            InferenceRequest { tool_choice: ToolChoice::Required, ..asked.clone() },
            InferenceRequest { temperature: Some(0.2), ..asked.clone() },
            InferenceRequest { top_p: Some(0.94), ..asked.clone() },
            InferenceRequest { effort: None, ..asked.clone() },
        ] {
            assert_eq!(wire.encode("p", "m", &without).get("thinking"), None);
        }
    }
    let steered = InferenceRequest { top_p: Some(0.95), ..asked.clone() };
    assert!(anthropic().encode("p", "m", &steered).get("thinking").is_some());
    let both = InferenceRequest { temperature: Some(0.2), ..steered };
    let both = anthropic().encode("p", "m", &both);
    assert_eq!((&both["temperature"], both.get("top_p")), (&json!(0.2), None), "newer models refuse both");
    // A turn that began without thinking goes on without.
    let begun = vec![
        Arc::new(Message::user("hello")),
        Arc::new(assistant(vec![call("c", json!({}))])),
        Arc::new(output("c", "ok", false)),
    ];
    let begun = InferenceRequest { messages: begun.into(), ..asked.clone() };
    assert_eq!(older.encode("p", "m", &begun).get("thinking"), None);
    assert!(anthropic().encode("p", "m", &begun).get("thinking").is_some());
    let tiny = InferenceRequest { output_tokens_max: Some(2047), ..asked };
    assert_eq!(older.encode("p", "m", &tiny).get("thinking"), None);
}

#[test]
fn a_tool_without_a_schema_takes_an_object() {
    let bare = ToolSpec { name: "look".into(), description: String::new(), parameters: Value::Null };
    let asked = InferenceRequest { tools: Arc::new([bare]), ..request(vec![Message::user("hello")]) };
    let any = json!({"type": "object", "properties": {}});
    assert_eq!(responses().encode("p", "m", &asked)["tools"][0]["parameters"], any);
    assert_eq!(chat().encode("p", "m", &asked)["tools"][0]["function"]["parameters"], any);
    assert_eq!(anthropic().encode("p", "m", &asked)["tools"][0]["input_schema"], any);
}
