//! What one invocation costs. Each figure is for one call: fifty are made per sample on one executor, few enough to stay in the cache.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark that cannot start has nothing to measure")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use runyard_actions::{
    Action, ActionBuilder, ActionError, Context, Fields, Invocation, InvocationOptions, Middleware,
    MiddlewareCall, Next, Runtime, RuntimeBuilder, Schema, SideEffects, fields,
};
use runyard_domain::{Actor, Surface};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const CALLS: usize = 50;

#[derive(Deserialize, JsonSchema)]
struct CreateTask {
    #[schemars(length(min = 1, max = 200))]
    title: String,
    #[serde(default)]
    priority: Priority,
    #[allow(dead_code, reason = "it is read from the input and not used")]
    estimate: Option<i64>,
    #[allow(dead_code, reason = "it is read from the input and not used")]
    labels: Option<Vec<String>>,
}

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Priority {
    Low,
    #[default]
    Normal,
    High,
}

#[derive(Serialize, JsonSchema)]
struct Task {
    id: String,
    title: String,
    status: String,
}

async fn create(input: CreateTask, _: Context) -> Result<Task, ActionError> {
    let status = if matches!(input.priority, Priority::High) { "urgent" } else { "open" };
    Ok(Task { id: "task_1".to_owned(), title: input.title, status: status.to_owned() })
}

async fn create_and_log(input: CreateTask, ctx: Context) -> Result<Task, ActionError> {
    ctx.logger().info("creating", fields! { title: input.title });
    ctx.logger().debug("checking", fields! { step: 2 });
    ctx.logger().info("created", Fields::new());
    create(input, ctx).await
}

fn input() -> Value {
    json!({"title": "Write the benchmark", "estimate": 3, "labels": ["a", "b"]})
}

fn define() -> ActionBuilder {
    Action::define("create_task", "Creates a task.")
}

struct PassOn;

#[async_trait]
impl Middleware for PassOn {
    async fn call(&self, _: MiddlewareCall<'_>, next: Next<'_>) -> Result<Value, ActionError> {
        next.run().await
    }
}

/// The calls of a sample are made before the clock starts.
fn measure(
    bencher: Bencher<'_, '_>,
    builder: RuntimeBuilder,
    call: impl Fn(Arc<Actor>) -> Invocation + Sync,
) {
    let executor = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (runtime, actor) = (builder.build().unwrap(), Arc::new(Actor::owner("bench")));
    let first = executor.block_on(runtime.invoke(call(Arc::clone(&actor))));
    assert!(first.is_ok(), "{:?}", first.outcome);
    bencher
        .counter(ItemsCount::new(CALLS))
        .with_inputs(|| (0..CALLS).map(|_| call(Arc::clone(&actor))).collect::<Vec<_>>())
        .bench_local_values(|calls| {
            executor.block_on(async {
                for call in calls {
                    black_box(runtime.invoke(call).await);
                }
            });
        });
}

fn plain(actor: Arc<Actor>) -> Invocation {
    Invocation::new("create_task", input(), Surface::Json, actor)
}

fn with_options(actor: Arc<Actor>, set: impl FnOnce(&mut InvocationOptions)) -> Invocation {
    let mut call = plain(actor);
    set(&mut call.options);
    call
}

#[divan::bench]
fn no_schemas_no_op(bencher: Bencher<'_, '_>) {
    let action = define().input_schema(json!({})).handler(|_, _| async { Ok(Value::Null) });
    measure(bencher, Runtime::builder().action(action), |actor| {
        Invocation::new("create_task", json!({}), Surface::Json, actor)
    });
}

#[divan::bench]
fn input_and_output_schema(bencher: Bencher<'_, '_>) {
    measure(bencher, Runtime::builder().action(define().typed(create)), plain);
}

#[divan::bench]
fn three_middleware(bencher: Bencher<'_, '_>) {
    let builder = Runtime::builder().action(define().typed(create));
    measure(bencher, builder.middleware(PassOn).middleware(PassOn).middleware(PassOn), plain);
}

#[divan::bench]
fn three_log_lines(bencher: Bencher<'_, '_>) {
    measure(bencher, Runtime::builder().action(define().typed(create_and_log)), plain);
}

#[divan::bench]
fn three_middleware_three_log_lines(bencher: Bencher<'_, '_>) {
    let builder = Runtime::builder().action(define().typed(create_and_log));
    measure(bencher, builder.middleware(PassOn).middleware(PassOn).middleware(PassOn), plain);
}

#[divan::bench]
fn with_timeout(bencher: Bencher<'_, '_>) {
    let builder = Runtime::builder().action(define().typed(create));
    measure(bencher, builder, |actor| with_options(actor, |options| options.timeout_ms = Some(10_000)));
}

#[divan::bench]
fn with_cancel_token(bencher: Bencher<'_, '_>) {
    let builder = Runtime::builder().action(define().typed(create));
    measure(bencher, builder, |actor| plain(actor).cancel_with(CancellationToken::new()));
}

#[divan::bench]
fn write_with_a_new_key_each(bencher: Bencher<'_, '_>) {
    let number = AtomicU64::new(0);
    let builder = Runtime::builder().action(define().side_effects(SideEffects::Write).typed(create));
    measure(bencher, builder, |actor| {
        let key = format!("key-{}", number.fetch_add(1, Ordering::Relaxed));
        with_options(actor, |options| options.idempotency_key = Some(key))
    });
}

#[divan::bench]
fn write_replayed(bencher: Bencher<'_, '_>) {
    let builder = Runtime::builder().action(define().side_effects(SideEffects::Write).typed(create));
    measure(bencher, builder, |actor| {
        with_options(actor, |options| options.idempotency_key = Some("key".to_owned()))
    });
}

#[divan::bench]
fn stream_three_log_lines(bencher: Bencher<'_, '_>) {
    let executor = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let runtime = Runtime::builder().action(define().typed(create_and_log)).build().unwrap();
    let actor = Arc::new(Actor::owner("bench"));
    bencher
        .counter(ItemsCount::new(CALLS))
        .with_inputs(|| (0..CALLS).map(|_| plain(Arc::clone(&actor))).collect::<Vec<_>>())
        .bench_local_values(|calls| {
            executor.block_on(async {
                for call in calls {
                    let mut stream = runtime.stream(call);
                    while let Some(event) = stream.next().await {
                        black_box(event);
                    }
                }
            });
        });
}

/// The schema alone, on a value that satisfies it or on one that does not.
fn validate(bencher: Bencher<'_, '_>, value: &Value, issues: usize) {
    let schema = Schema::of_input::<CreateTask>();
    assert_eq!(schema.issues(value).unwrap().len(), issues);
    bencher.counter(ItemsCount::new(CALLS)).bench_local(|| {
        for _ in 0..CALLS {
            let _ = black_box(schema.issues(black_box(value)));
        }
    });
}

#[divan::bench]
fn validation_of_a_valid_input(bencher: Bencher<'_, '_>) {
    validate(bencher, &input(), 0);
}

#[divan::bench]
fn validation_of_an_input_with_two_issues(bencher: Bencher<'_, '_>) {
    validate(bencher, &json!({"title": "", "priority": "urgent"}), 2);
}

/// The allocator of the `runyard` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    divan::main();
}
