//! From ids to agents, and every way in which that can fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use runyard_agent::phase::TerminationReason;
use runyard_agent::plugin::{InstallError, Plugin, Registrar};
use runyard_agent::remote::HttpBackend;
use runyard_agent::spec::{AgentSpec, EndpointSpec, ModelSpec, ProviderSpec, ToolFilter, WireKind};
use runyard_agent::state::StateError;
use runyard_agent::{AgentResolver, AgentRuntimeBuilder, ResolveError, ResolvedRunPlan, RunRequest};
use runyard_demo_provider::DemoProvider;
use runyard_domain::Code;
use runyard_llm::inference::{
    AtEnd, InterruptCause, Model, RetryPolicy, Script, ScriptedAnswer, ScriptedError, ScriptedFault,
    ScriptedModel, Step,
};
use serde_json::json;
use tokio::time::Instant;

use crate::kit::{Brings, Does, First, Plain, Second, one_agent, saying, scripted};

fn base() -> AgentRuntimeBuilder {
    AgentRuntimeBuilder::new()
        .model("m", saying(["hello"]))
        .tool(Plain::new("search", Does::Say("found")))
        .plugin(First("keys", Brings::TheSharedKey))
        .plugin(Second("more_keys", Brings::TheSharedKey))
}

async fn resolver(builder: AgentRuntimeBuilder) -> AgentResolver {
    builder.build_unresolved().await.unwrap().resolver().clone()
}

fn with_plugins(plugins: &[&str]) -> AgentSpec {
    let plugins = plugins.iter().map(|id| (*id).to_owned()).collect();
    AgentSpec { plugins, ..AgentSpec::new("a", "m") }
}

fn endpoint(backend: &str, url: &str) -> EndpointSpec {
    EndpointSpec { backend: backend.into(), url: url.into(), ..EndpointSpec::default() }
}

#[tokio::test]
async fn d13_every_name_that_stands_for_nothing_has_its_error() {
    for (builder, error, code) in [
        (base(), ResolveError::AgentNotFound("a".into()), "resolve.agent_not_found"),
        (
            base().agent(AgentSpec::new("a", "gone")),
            ResolveError::ModelNotFound("gone".into()),
            "resolve.model_not_found",
        ),
        (
            base().agent(AgentSpec { fallback_models: vec!["gone".into()], ..AgentSpec::new("a", "m") }),
            ResolveError::ModelNotFound("gone".into()),
            "resolve.model_not_found",
        ),
        (
            base().model_spec(ModelSpec::new("n", "gone")).agent(AgentSpec::new("a", "n")),
            ResolveError::ProviderNotFound("gone".into()),
            "resolve.provider_not_found",
        ),
        (
            base()
                .provider_factory("p", |_: &ModelSpec| None::<Arc<dyn Model>>)
                .model_spec(ModelSpec::new("n", "p"))
                .agent(AgentSpec::new("a", "n")),
            ResolveError::ModelNotFound("n".into()),
            "resolve.model_not_found",
        ),
        (
            base().agent(with_plugins(&["gone"])),
            ResolveError::PluginNotFound("gone".into()),
            "resolve.plugin_not_found",
        ),
        (
            base().agent(with_plugins(&["keys", "more_keys"])),
            ResolveError::EnvBuild(StateError::KeyAlreadyRegistered { key: "test.shared".into() }),
            "resolve.env_build",
        ),
        (
            base().plugin(First("twice", Brings::TwiceTheTool("t"))).agent(with_plugins(&["twice"])),
            ResolveError::EnvBuild(StateError::ToolAlreadyRegistered { tool_id: "t".into() }),
            "resolve.env_build",
        ),
    ] {
        let resolver = resolver(builder).await;
        let refused = resolver.resolve("a").unwrap_err();
        assert_eq!(refused, error);
        assert_eq!(refused.code().as_str(), code);
        assert_eq!(resolver.resolve_run("a").unwrap_err(), error);
    }
}

#[tokio::test]
async fn d13_a_tool_that_comes_from_two_sources_names_both() {
    let conflict = |source_a: &str, source_b: &str| ResolveError::ToolIdConflict {
        tool_id: "search".into(),
        source_a: source_a.into(),
        source_b: source_b.into(),
    };
    let builder = || {
        base().plugin(First("web", Brings::ATool("search"))).plugin(Second("files", Brings::ATool("search")))
    };
    let against_application = resolver(builder().agent(with_plugins(&["web"]))).await.resolve("a");
    let error = against_application.unwrap_err();
    assert_eq!(error, conflict("application", "web"));
    assert_eq!(error.code(), Code::ResolveToolIdConflict);

    let builder = AgentRuntimeBuilder::new()
        .model("m", saying(["hello"]))
        .plugin(First("web", Brings::ATool("search")))
        .plugin(Second("files", Brings::ATool("search")))
        .agent(with_plugins(&["web", "files"]));
    assert_eq!(resolver(builder).await.resolve("a").unwrap_err(), conflict("web", "files"));
}

#[tokio::test]
async fn d13_a_section_that_its_plugin_does_not_take_names_plugin_key_and_fault() {
    let with = |section: serde_json::Value| {
        let sections = serde_json::from_value(json!({ "told": section })).unwrap();
        base()
            .plugin(First("listener", Brings::Config))
            .agent(AgentSpec { sections, ..with_plugins(&["listener"]) })
    };
    assert!(resolver(with(json!({ "level": 3 }))).await.resolve("a").is_ok());
    let error = resolver(with(json!({ "level": "loud" }))).await.resolve("a").unwrap_err();
    assert_eq!(error.code(), Code::ResolveInvalidPluginConfig);
    let ResolveError::InvalidPluginConfig { plugin, key, message } = error else { panic!("{error}") };
    assert_eq!((plugin.as_str(), key.as_str()), ("listener", "told"));
    assert!(message.contains("level"), "{message}");
}

#[tokio::test]
async fn d14_a_remote_agent_is_not_resolved_directly_and_runs_through_its_backend() {
    let remote = |endpoint| base().agent(AgentSpec::remote("a", endpoint));
    let unsupported = resolver(remote(endpoint("pigeon", "http://h"))).await;
    let error = unsupported.resolve("a").unwrap_err();
    assert_eq!(error, ResolveError::RemoteAgentNotDirectlyRunnable("a".into()));
    assert_eq!(error.code(), Code::ResolveRemoteAgentNotDirectlyRunnable);
    let error = unsupported.resolve_run("a").unwrap_err();
    assert_eq!(
        error,
        ResolveError::UnsupportedRemoteBackend { agent_id: "a".into(), backend: "pigeon".into() }
    );
    assert_eq!(error.code(), Code::ResolveUnsupportedRemoteBackend);

    let options = serde_json::from_value(json!({ "headMs": 1, "colour": "red" })).unwrap();
    let strange = EndpointSpec { options, ..endpoint("http", "http://h/run") };
    for wrong in [endpoint("http", "h/run"), endpoint("http", "http://u:Sorrel64@h/run"), strange] {
        let error =
            resolver(remote(wrong).backend(HttpBackend::default())).await.resolve_run("a").unwrap_err();
        assert_eq!(error.code(), Code::ResolveInvalidRemoteEndpointConfig);
        assert!(!error.to_string().contains("Sorrel64"), "{error}");
        assert!(matches!(
            error,
            ResolveError::InvalidRemoteEndpointConfig { agent_id, backend, .. }
                if agent_id == "a" && backend == "http"
        ));
    }

    let fine = resolver(remote(endpoint("http", "http://h/run")).backend(HttpBackend::default())).await;
    assert!(matches!(fine.resolve("a"), Err(ResolveError::RemoteAgentNotDirectlyRunnable(_))));
    let ResolvedRunPlan::Remote(agent) = fine.resolve_run("a").unwrap() else { panic!("it runs elsewhere") };
    assert_eq!((&*agent.id, &*agent.backend), ("a", "http"));
}

#[tokio::test]
async fn d13_an_agent_has_what_its_definition_says_and_is_resolved_once() {
    let spec = AgentSpec {
        instructions: "Be brief.".into(),
        tools: ToolFilter::only(["se*"]),
        plugins: vec!["keys".into()],
        fallback_models: vec!["n".into()],
        ..AgentSpec::new("a", "m")
    };
    let chat = ProviderSpec::new("p", WireKind::Chat, "http://127.0.0.1:1/v1");
    let model = ModelSpec { name: Some("large".into()), ..ModelSpec::new("n", "p") };
    let runtime = base()
        .tool(Plain::new("other", Does::Say("x")))
        .provider_with_key(chat, "Sorrel64")
        .model_spec(model)
        .agent(spec)
        .build()
        .await
        .unwrap();
    let agent = runtime.resolver().resolve("a").unwrap();
    assert_eq!(&*agent.instructions, "Be brief.");
    assert_eq!(agent.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["search"]);
    assert_eq!(agent.environment.plugins().collect::<Vec<_>>(), ["keys"]);
    let models: Vec<&str> = agent.inference.pool().members().iter().map(|member| member.name()).collect();
    assert_eq!(models, ["scripted", "p/large"]);
    assert!(!format!("{runtime:?}").contains("Sorrel64"));

    let again = runtime.resolver().resolve("a").unwrap();
    assert!(Arc::ptr_eq(&agent.environment, &again.environment));
}

/// Counts how often it is installed.
struct Counting(Arc<AtomicU32>);

impl Plugin for Counting {
    fn id(&self) -> &str {
        "counting"
    }

    fn register(&self, _registrar: &mut Registrar<'_>) -> Result<(), InstallError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[tokio::test]
async fn d13_an_agent_is_put_together_once_for_all_of_its_runs() {
    let installed = Arc::new(AtomicU32::new(0));
    let runtime = base()
        .plugin(Counting(Arc::clone(&installed)))
        .agent(with_plugins(&["counting"]))
        .build()
        .await
        .unwrap();
    for _ in 0..3 {
        let _ = runtime.run(RunRequest::new("a", "t", "hi")).await.unwrap();
    }
    assert_eq!(installed.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn d13_the_smallest_window_of_its_models_bounds_what_an_agent_reads() {
    let model = |id: &str, window| ModelSpec { context_window: window, ..ModelSpec::new(id, "p") };
    let with_fallback = |fallback: &str| AgentSpec {
        fallback_models: vec![fallback.into()],
        ..AgentSpec::new(format!("with_{fallback}"), "large")
    };
    let builder = AgentRuntimeBuilder::new()
        .provider(ProviderSpec::new("p", WireKind::Chat, "http://127.0.0.1:1/v1"))
        .model_spec(model("large", Some(200_000)))
        .model_spec(model("small", Some(100_000)))
        .model_spec(model("unknown", None))
        .agent(with_fallback("small"))
        .agent(with_fallback("unknown"));
    let resolver = builder.build().await.unwrap().resolver().clone();
    assert_eq!(resolver.resolve("with_small").unwrap().context.tokens_max, Some(100_000 - 16_384 - 20_000));
    assert_eq!(resolver.resolve("with_unknown").unwrap().context.tokens_max, None);
}

#[tokio::test]
async fn d07_agents_of_one_runtime_share_the_circuit_breaker_of_a_model() {
    let failing: Vec<ScriptedAnswer> =
        (0..8).map(|_| ScriptedAnswer::failing(ScriptedError::Provider { message: "no".into() })).collect();
    let model = scripted(failing);
    let spec = |id: &str| AgentSpec { retry: RetryPolicy::never(), ..AgentSpec::new(id, "m") };
    let asked = |model: &ScriptedModel| model.asked();
    let runtime = AgentRuntimeBuilder::new()
        .model("m", Arc::clone(&model) as Arc<dyn Model>)
        .agent(spec("a"))
        .agent(spec("b"))
        .build()
        .await
        .unwrap();
    for turn in 0..5 {
        let _ = runtime.run(RunRequest::new("a", format!("t{turn}"), "hi")).await.unwrap();
    }
    let before = asked(&model);
    let outcome = runtime.run(RunRequest::new("b", "t", "hi")).await.unwrap();
    assert_eq!(asked(&model), before, "the breaker is open for the other agent too");
    let TerminationReason::Failed { code, message } = outcome.reason else { panic!("{:?}", outcome.reason) };
    assert_eq!(code, Code::InferenceAllModelsUnavailable);
    let said = "no model is available; scripted is left alone for a while, since it failed too often in a row, last with inference.provider";
    assert_eq!(message, said);
}

// clause: D07, D09
#[tokio::test(start_paused = true)]
async fn d10_each_agent_of_a_runtime_asks_again_and_waits_as_its_own_definition_says() {
    let retry = |retries: u32, stream_retries: u32, idle_s: u64| {
        json!({
            "retriesMax": retries, "streamRetriesMax": stream_retries, "idleLimitMs": idle_s * 1_000,
            "baseMs": 0, "overloadedBaseMs": 0, "capMs": 0,
        })
    };
    let agents = [("hasty", retry(0, 1, 3)), ("patient", retry(3, 2, 70))];
    let hm = || Step::Text("Hm".into());
    // How often each of them asks, and for how many seconds.
    let table = [
        (ScriptedAnswer::failing(ScriptedError::Timeout { message: "late".into() }), [(1, 0), (4, 0)]),
        (
            ScriptedAnswer::steps([hm(), Step::Fault(ScriptedFault::Interrupted(InterruptCause::GoAway))]),
            [(2, 0), (3, 0)],
        ),
        (ScriptedAnswer::steps([hm(), Step::Stall]), [(2, 2 * 3), (3, 3 * 70)]),
    ];
    for (answer, expected) in table {
        let mut builder = AgentRuntimeBuilder::new();
        let models = agents.clone().map(|(id, retry)| {
            let script = Script { name: id.to_owned(), at_end: AtEnd::Last, answers: vec![answer.clone()] };
            (id, retry, Arc::new(ScriptedModel::new(script)))
        });
        for (id, retry, model) in &models {
            let spec = json!({ "id": id, "model": id, "retry": retry });
            builder = builder.model(*id, Arc::clone(model) as Arc<dyn Model>);
            builder = builder.agent(serde_json::from_value(spec).unwrap());
        }
        let runtime = builder.build().await.unwrap();
        for ((id, _, model), expected) in models.iter().zip(expected) {
            let begun = Instant::now();
            let outcome = runtime.run(RunRequest::new(*id, *id, "hi")).await.unwrap();
            assert!(matches!(outcome.reason, TerminationReason::Failed { .. }), "{:?}", outcome.reason);
            assert_eq!((model.asked(), begun.elapsed().as_secs()), expected, "{id} {answer:?}");
        }
    }
}

#[tokio::test]
async fn d13_a_model_of_a_described_provider_is_asked_over_its_wire_with_its_key() {
    let provider = DemoProvider::start().await.unwrap();
    for (wire, path) in [
        (WireKind::Responses, "/responses"),
        (WireKind::Chat, "/chat/completions"),
        (WireKind::Messages, "/messages"),
    ] {
        let runtime = AgentRuntimeBuilder::new()
            .provider_with_key(ProviderSpec::new("demo", wire, provider.url()), "Sorrel64-Dipper")
            .model_spec(ModelSpec { name: Some("m-1".into()), ..ModelSpec::new("m", "demo") })
            .agent(AgentSpec { instructions: "Be brief.".into(), ..AgentSpec::new("a", "m") })
            .build()
            .await
            .unwrap();
        let outcome = runtime.run(RunRequest::new("a", "t", "[[scenario:text]]")).await.unwrap();
        assert_eq!(outcome.text(), "Hello from the demo provider.");
        let asked = provider.requests().pop().unwrap();
        assert!(asked.path.ends_with(path) && asked.body.contains("m-1") && asked.body.contains("Be brief."));
        assert!(asked.headers.iter().any(|(_, value)| value.ends_with("Sorrel64-Dipper")));
    }
}

#[tokio::test]
async fn d03_an_agent_of_a_runtime_that_was_built_runs() {
    let runtime = one_agent(saying(["hello"])).build().await.unwrap();
    assert_eq!(runtime.run(RunRequest::new("a", "t", "hi")).await.unwrap().text(), "hello");
}

// clause: D05
#[tokio::test(start_paused = true)]
async fn d05_a_run_for_which_no_model_is_left_says_what_went_wrong_with_the_last_one() {
    let busy = || ScriptedError::RateLimited { message: "later".into(), retry_after_ms: None };
    let failing = || scripted(vec![ScriptedAnswer::failing(busy()); 9]);
    let spec = AgentSpec { fallback_models: vec!["n".into()], ..AgentSpec::new("a", "m") };
    let builder = AgentRuntimeBuilder::new().model("m", failing()).model("n", failing()).agent(spec);
    let outcome = builder.build().await.unwrap().run(RunRequest::new("a", "t", "hi")).await.unwrap();
    let said = "no model is available; the last one failed with inference.rate_limited";
    let TerminationReason::Failed { code, message } = outcome.reason else { panic!("{:?}", outcome.reason) };
    assert_eq!((code, message.as_str()), (Code::InferenceAllModelsUnavailable, said));
}
