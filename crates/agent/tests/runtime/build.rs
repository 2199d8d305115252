//! What keeps a runtime from being built, variant by variant.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use runyard_actions::{ActionError, Context, action};
use runyard_agent::remote::HttpBackend;
use runyard_agent::run::Limits;
use runyard_agent::spec::{
    AgentSpec, EndpointSpec, ModelSpec, ProviderSpec, ThinkingForm, ToolFilter, WireKind,
};
use runyard_agent::state::StateError;
use runyard_agent::{AgentRuntime, AgentRuntimeBuilder, BuildError, DiscoveryError, RunRequest};
use runyard_domain::Code;
use runyard_llm::inference::{Model, ScriptedModel};
use serde_json::json;
use tempfile::TempDir;

use crate::kit::{Brings, Does, First, Plain, Second, call, one_agent, saying, scripted};
use crate::remote::Loopback;

async fn refused(builder: AgentRuntimeBuilder) -> BuildError {
    builder.build().await.map(|_| "a runtime").unwrap_err()
}

fn model() -> Arc<ScriptedModel> {
    saying(["hello"])
}

#[tokio::test]
async fn d03_an_id_that_is_there_twice_is_a_conflict_of_its_registry() {
    let chat = || ProviderSpec::new("p", WireKind::Chat, "http://h/v1");
    let tool = || Plain::new("t", Does::Say("x"));
    let builder = || AgentRuntimeBuilder::new().model("m", model());
    for (builder, expected) in [
        (
            builder().agent(AgentSpec::new("a", "m")).agent(AgentSpec::new("a", "m")),
            Code::BuildAgentRegistryConflict,
        ),
        (builder().tool(tool()).tool(tool()), Code::BuildToolRegistryConflict),
        (builder().model_spec(ModelSpec::new("m", "p")), Code::BuildModelRegistryConflict),
        (builder().provider(chat()).provider_with_key(chat(), "k"), Code::BuildProviderRegistryConflict),
        (
            builder().provider(chat()).provider_factory("p", |_: &ModelSpec| None::<Arc<dyn Model>>),
            Code::BuildProviderRegistryConflict,
        ),
        (
            builder().plugin(First("p", Brings::Nothing)).plugin(Second("p", Brings::Nothing)),
            Code::BuildPluginRegistryConflict,
        ),
    ] {
        let error = refused(builder).await;
        assert_eq!(error.code(), expected, "{error}");
        let id = match &error {
            BuildError::AgentRegistryConflict(id)
            | BuildError::ToolRegistryConflict(id)
            | BuildError::ModelRegistryConflict(id)
            | BuildError::ProviderRegistryConflict(id)
            | BuildError::PluginRegistryConflict(id) => id.as_str(),
            other => panic!("{other}"),
        };
        assert!(["a", "t", "m", "p"].contains(&id) && error.to_string().contains(id));
    }
}

#[tokio::test]
async fn d03_plugins_that_do_not_go_together_are_an_error_of_state() {
    let spec = AgentSpec { plugins: vec!["one".into(), "two".into()], ..AgentSpec::new("b", "m") };
    let builder = one_agent(model())
        .plugin(First("one", Brings::TheSharedKey))
        .plugin(Second("two", Brings::TheSharedKey))
        .agent(spec);
    let error = refused(builder).await;
    assert!(
        matches!(&error, BuildError::State(StateError::KeyAlreadyRegistered { key }) if key == "test.shared")
    );
    assert_eq!(error.code(), Code::BuildState);
}

#[tokio::test]
async fn d03_what_cannot_be_meant_so_fails_validation_and_is_named() {
    let agent = |spec: AgentSpec| one_agent(model()).agent(spec);
    let b = || AgentSpec::new("b", "m");
    let endpoint = EndpointSpec { backend: "pigeon".into(), url: "http://h".into(), ..Default::default() };
    let limits = |limits: Limits| agent(AgentSpec { limits, ..b() });
    let thinking =
        runyard_agent::spec::WireOptions { thinking: Some(ThinkingForm::Budget), ..Default::default() };
    let chat = || ProviderSpec::new("p", WireKind::Chat, "http://h/v1");
    for (builder, said) in [
        (
            limits(Limits { stop_on_content: Some("(".into()), ..Limits::default() }),
            "limits.stopOnContent of agent \"b\"",
        ),
        (
            limits(Limits { stop_on_tools: ["gone".to_owned()].into(), ..Limits::default() }),
            "limits.stopOnTools of agent \"b\"",
        ),
        (agent(AgentSpec::new("b", "gone")), "agent \"b\": there is no model \"gone\""),
        (
            agent(AgentSpec { plugins: vec!["gone".into()], ..b() }),
            "agent \"b\": there is no plugin \"gone\"",
        ),
        (agent(AgentSpec { tools: ToolFilter::without(["shel"]), ..b() }), "tools of agent \"b\""),
        (
            agent(AgentSpec { sections: serde_json::from_value(json!({ "typo": {} })).unwrap(), ..b() }),
            "sections of agent \"b\"",
        ),
        (agent(AgentSpec::remote("b", endpoint)), "\"pigeon\", which is not registered"),
        (agent(AgentSpec::new("", "m")), "the id of an agent"),
        (
            one_agent(model()).backend(HttpBackend::default()).backend(HttpBackend::default()),
            "two backends \"http\"",
        ),
        (
            one_agent(model()).provider(ProviderSpec::new("p", WireKind::Chat, "h/v1")),
            "baseUrl of provider \"p\"",
        ),
        (one_agent(model()).provider_with_key(chat(), ""), "the key of provider \"p\""),
        // Providers take no such name, and refuse every question in which it is.
        (one_agent(model()).tool(Plain::new("fs.read", Does::Say("x"))), "the id of tool \"fs.read\""),
        (
            agent(AgentSpec { plugins: vec!["p".into()], ..b() })
                .plugin(First("p", Brings::ATool("fs.read"))),
            "the id of tool \"fs.read\"",
        ),
        (
            one_agent(model())
                .provider(chat())
                .model_spec(ModelSpec { options: thinking, ..ModelSpec::new("n", "p") }),
            "options of model \"n\"",
        ),
    ] {
        let error = refused(builder).await;
        assert_eq!(error.code(), Code::BuildValidationFailed, "{error}");
        assert!(matches!(&error, BuildError::ValidationFailed(message) if message.contains(said)), "{error}");
    }
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

async fn from_folder(folder: &Path) -> Result<AgentRuntime, BuildError> {
    one_agent(model()).agent_folder(folder).build().await
}

#[tokio::test]
async fn d03_agents_are_found_in_the_files_of_a_folder() {
    let folder = folder(&[
        (
            "helper.toml",
            "id = \"helper\"\nmodel = \"m\"\ninstructions = \"Help.\"\n[limits]\nroundsMax = 3\n",
        ),
        ("clerk.json", r#"{ "id": "clerk", "model": "m", "tools": { "allow": [] } }"#),
        ("notes.md", "no agent"),
        (".hidden.toml", "no agent either"),
    ]);
    let runtime = from_folder(folder.path()).await.unwrap();
    let ids: Vec<&str> = runtime.resolver().agents().map(|spec| spec.id.as_str()).collect();
    assert_eq!(ids, ["a", "clerk", "helper"]);
    let helper = runtime.resolver().resolve("helper").unwrap();
    assert_eq!((&*helper.instructions, helper.limits.rounds_max), ("Help.", 3));
    let outcome = runtime.run(RunRequest::new("helper", "t", "hi")).await.unwrap();
    assert_eq!(outcome.text(), "hello");
}

#[tokio::test]
async fn d03_a_folder_that_cannot_be_read_and_a_file_that_is_no_agent_fail_the_discovery() {
    let missing = from_folder(Path::new("/nowhere/agents")).await.unwrap_err();
    assert!(matches!(&missing, BuildError::DiscoveryFailed(DiscoveryError::Unreadable { .. })), "{missing}");
    assert_eq!(missing.code(), Code::BuildDiscoveryFailed);
    for (name, text) in [
        ("a.toml", "id = "),
        ("a.json", "{"),
        ("a.toml", "id = \"b\"\nmodel = \"m\"\ncolour = \"red\"\n"),
        ("a.toml", "id = \"b\"\n"),
        ("a.toml", "id = \"b\"\nmodel = \"m\"\n[limits]\nstopOnContent = \"(\"\n"),
    ] {
        let folder = folder(&[(name, text)]);
        let error = from_folder(folder.path()).await.unwrap_err();
        assert_eq!(error.code(), Code::BuildDiscoveryFailed);
        let BuildError::DiscoveryFailed(DiscoveryError::InvalidFile { path, .. }) = error else {
            panic!("{error}");
        };
        assert_eq!(path.file_name().unwrap(), name);
    }
    let twice = folder(&[("a.toml", "id = \"a\"\nmodel = \"m\"\n")]);
    let error = from_folder(twice.path()).await.unwrap_err();
    assert!(matches!(error, BuildError::AgentRegistryConflict(id) if id == "a"));
}

async fn from_card(url: &str) -> Result<AgentRuntime, BuildError> {
    one_agent(model()).backend(HttpBackend::default()).agent_card(url).build().await
}

#[tokio::test]
async fn d03_an_agent_is_found_by_its_card_and_one_that_cannot_be_read_fails_the_discovery() {
    let server = Loopback::start(|request, base| {
        let card = |id: &str, url: String| {
            json!({ "id": id, "label": "Far", "endpoint": { "backend": "http", "url": url } }).to_string()
        };
        match request.target.as_str() {
            "/card.json?v=1" => Loopback::json(&card("far", format!("{base}/run"))),
            "/elsewhere.json" => Loopback::json(&card("far", "http://127.0.0.2:1/run".into())),
            "/broken.json" => Loopback::json("{"),
            "/nameless.json" => Loopback::json(&card("", format!("{base}/run"))),
            _ => Loopback::status(404),
        }
    })
    .await;
    let runtime = from_card(&server.url("/card.json?v=1")).await.unwrap();
    let far = runtime.resolver().agents().find(|spec| spec.id == "far").unwrap();
    assert_eq!(far.label.as_deref(), Some("Far"));
    assert_eq!(far.endpoint.as_ref().unwrap().url, server.url("/run"));

    for (path, invalid) in [
        ("/elsewhere.json", true),
        ("/broken.json", true),
        ("/nameless.json", true),
        ("/gone.json?token=Sorrel64", false),
    ] {
        let error = from_card(&server.url(path)).await.unwrap_err();
        assert_eq!(error.code(), Code::BuildDiscoveryFailed);
        assert!(!error.to_string().contains("Sorrel64"));
        match error {
            BuildError::DiscoveryFailed(DiscoveryError::InvalidCard { .. }) => assert!(invalid, "{path}"),
            BuildError::DiscoveryFailed(DiscoveryError::CardUnreachable { .. }) => {
                assert!(!invalid, "{path}")
            }
            other => panic!("{other}"),
        }
    }
    let nobody = from_card("http://127.0.0.1:1/card.json").await.unwrap_err();
    assert!(matches!(nobody, BuildError::DiscoveryFailed(DiscoveryError::CardUnreachable { .. })));
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// Says where the town hall is.
#[action(crate = "runyard_actions", side_effects = "read")]
async fn town_hall(_input: Nothing, _ctx: &Context) -> Result<String, ActionError> {
    Ok("at the market".to_owned())
}

#[tokio::test]
async fn d03_actions_are_tools_and_one_that_is_not_there_fails_validation() {
    let actions = runyard_actions::Runtime::builder().action(town_hall()).build().unwrap();
    let name = actions.actions().next().unwrap().name().to_owned();
    let model = scripted([call(&name), runyard_llm::inference::ScriptedAnswer::text("There.")]);
    let runtime = one_agent(Arc::clone(&model)).actions_of(&actions).build().await.unwrap();
    let outcome = runtime.run(RunRequest::new("a", "t", "Where?")).await.unwrap();
    assert_eq!(outcome.text(), "There.");
    let last = model.requests().pop().unwrap();
    assert!(format!("{:?}", last.messages.last().unwrap()).contains("at the market"));

    let twice = refused(one_agent(saying([])).action(town_hall()).actions_of(&actions)).await;
    assert!(matches!(twice, BuildError::ToolRegistryConflict(id) if id == name));
    let error = refused(one_agent(saying([])).action_of(&actions, "gone")).await;
    assert!(matches!(error, BuildError::ValidationFailed(message) if message.contains("\"gone\"")));
}
