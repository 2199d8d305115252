//! Calls of agents of a definition: what their tools get, and how they are made.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use runyard_agent::phase::TerminationReason;
use runyard_agent::spec::AgentSpec;
use runyard_agent::tool::{Tool, ToolContext, ToolDescriptor, ToolError, ToolOutput, ToolResult};
use runyard_agent::{AgentRuntimeBuilder, CallOrder, RunRequest};
use runyard_llm::inference::{InterruptCause, Message, Model, ScriptedAnswer, ScriptedFault, Step, ToolCall};
use runyard_store::{RunStore, ThreadRunStore, ThreadStore};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::flaky::Flaky;
use crate::kit::{Does, Plain, one_agent, scripted, thread};

/// Keeps what it is shown and what it gets.
struct Keeps {
    descriptor: ToolDescriptor,
    shown: Mutex<Vec<Value>>,
    got: Mutex<Vec<Value>>,
}

#[async_trait]
impl Tool for Keeps {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn validate_args(&self, args: &Value) -> Result<(), ToolError> {
        self.shown.lock().unwrap().push(args.clone());
        Ok(())
    }

    async fn execute(&self, args: Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.got.lock().unwrap().push(args);
        Ok(ToolResult::success("kept").into())
    }
}

// clause: D02
#[tokio::test]
async fn d02_a_tool_gets_the_defaults_of_what_the_model_left_out_and_the_journal_what_it_said() {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": { "type": "string" },
            "lines": { "type": "integer", "default": 10 },
            "filters": { "type": "array", "items": {
                "type": "object",
                "properties": { "word": { "type": "string" }, "case": { "type": "boolean", "default": false } },
                "required": ["word", "case"],
            } },
            "output": {
                "type": "object",
                "properties": { "format": { "type": "string", "default": "text" } },
                "required": ["format"],
                "default": {},
            },
        },
        "required": ["path", "lines", "output"],
        "additionalProperties": false,
    });
    let descriptor = ToolDescriptor::new("read", "Reads a file.", schema).unwrap();
    let tool = Arc::new(Keeps { descriptor, shown: Mutex::default(), got: Mutex::default() });
    let said = json!({ "path": "a", "filters": [{ "word": "x" }] });
    let call = ToolCall { id: "c1".into(), name: "read".into(), arguments: said.clone() };
    let store = Flaky::timed();
    let model = scripted([ScriptedAnswer::calls([call]), ScriptedAnswer::text("Read.")]);
    let builder = one_agent(model).tool(Arc::clone(&tool) as Arc<dyn Tool>);
    let runtime = builder.store(Arc::clone(&store) as Arc<dyn ThreadRunStore>).build().await.unwrap();
    let outcome = runtime.run(RunRequest::new("a", "t", "Read.")).await.unwrap();
    assert_eq!(outcome.reason, TerminationReason::NaturalEnd);

    let filled = json!({
        "path": "a",
        "lines": 10,
        "filters": [{ "word": "x", "case": false }],
        "output": { "format": "text" },
    });
    for seen in [&tool.shown, &tool.got] {
        assert_eq!(*seen.lock().unwrap(), std::slice::from_ref(&filled));
    }
    let run = store.agent_runs(&thread("t"), None, 1).await.unwrap().remove(0).id;
    let journal = store.tool_calls(&run, 0, 10).await.unwrap();
    let intent: ToolCall = serde_json::from_slice(&journal[0].intent).unwrap();
    assert_eq!(intent.arguments, said);
    let answer = store.messages(&thread("t"), 1, 1).await.unwrap().remove(0);
    let answer: Message = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(answer.tool_calls().next().unwrap().arguments, said);
}

// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_a_whole_call_of_a_stream_that_broke_off_is_made_and_the_words_before_it_are_stored() {
    let broken = ScriptedAnswer::steps([
        Step::Text("Now.".into()),
        Step::CallStarted { index: 0, id: "c1".into(), name: "count".into() },
        Step::CallEnded { index: 0 },
        Step::Fault(ScriptedFault::Interrupted(InterruptCause::ConnectionReset)),
    ]);
    let model = scripted([broken, ScriptedAnswer::text("One.")]);
    let (store, tool) = (Flaky::timed(), Plain::new("count", Does::Say("one")));
    let builder = one_agent(Arc::clone(&model)).tool(tool.clone());
    let runtime = builder.store(Arc::clone(&store) as Arc<dyn ThreadRunStore>).build().await.unwrap();
    let outcome = runtime.run(RunRequest::new("a", "t", "Count.")).await.unwrap();
    assert_eq!((outcome.text().as_str(), outcome.reason), ("One.", TerminationReason::NaturalEnd));
    assert_eq!((tool.called(), model.asked()), (1, 2));
    let answer = store.messages(&thread("t"), 1, 1).await.unwrap().remove(0);
    let answer: Message = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!((answer.said().as_str(), answer.tool_calls().count()), ("Now.", 1));
}

/// Ends when so many calls of it are under way at once.
struct Meets {
    descriptor: ToolDescriptor,
    barrier: Barrier,
}

#[async_trait]
impl Tool for Meets {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    async fn execute(&self, _: Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.barrier.wait().await;
        Ok(ToolResult::success("met").into())
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_whose_definition_says_so_makes_its_calls_side_by_side() {
    for calls in [CallOrder::OneByOne, CallOrder::Parallel] {
        let both =
            ["c1", "c2"].map(|id| ToolCall { id: id.into(), name: "meet".into(), arguments: json!({}) });
        let model = scripted([ScriptedAnswer::calls(both), ScriptedAnswer::text("Met.")]);
        let descriptor = ToolDescriptor::new("meet", "Meets.", json!({ "type": "object" })).unwrap();
        let spec = AgentSpec { calls, ..AgentSpec::new("a", "m") };
        let builder = AgentRuntimeBuilder::new().model("m", model as Arc<dyn Model>).agent(spec);
        let tool = Meets { descriptor, barrier: Barrier::new(2) };
        let runtime = builder.tool(Arc::new(tool)).build().await.unwrap();
        let run = runtime.run(RunRequest::new("a", "t", "Meet."));
        let met = tokio::time::timeout(Duration::from_secs(60), run).await;
        assert_eq!(met.is_ok(), calls == CallOrder::Parallel, "{calls:?}");
        assert!(met.is_err() || met.unwrap().unwrap().text() == "Met.");
    }
}
