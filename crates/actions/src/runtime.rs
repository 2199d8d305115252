//! The runtime: the ten steps of an invocation, in order, in one place.
//!
//! Whatever happens on the way, an invocation ends with an envelope: errors, panics, timeouts, a caller that goes away.

mod builder;

use std::sync::Arc;
use std::time::Duration;

use runyard_domain::{Actor, Code, InvocationId, Surface};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::builder::{BuildError, IntoAction, RuntimeBuilder};
use crate::attempt::{Running, run_with_retries};
use crate::caught::caught;
use crate::context::{Call, Services};
use crate::fresh::id_parts;
use crate::handler::{Prepared, unsafe_output};
use crate::hook::{tell_ended, tell_started};
use crate::idempotency::{Claim, IdempotencyScope, Keyed, once, settle};
use crate::middleware::run_chain;
use crate::permission::authorise;
use crate::registry::{Registry, supports};
use crate::safe_json::{
    INPUT_BYTES_MAX, OUTPUT_BYTES_MAX, check_limits, dismantle, whole_floats_to_integers,
};
use crate::{
    Action, ActionError, ActionRef, CallGate, Context, Deprecation, Envelope, Failure, Hook,
    IdempotencyStore, Invocation, InvocationOptions, InvocationStream, Issue, Meta, Middleware,
    MiddlewareCall, PermissionChecker, PermissionRequest, Replayed, SideEffects, fields,
};

/// Runs actions. Cloning is cheap.
#[derive(Clone)]
pub struct Runtime(Arc<Inner>);

struct Inner {
    registry: Registry,
    services: Arc<Services>,
    checker: Option<Arc<dyn PermissionChecker>>,
    gate: Option<Arc<dyn CallGate>>,
    middleware: Vec<Arc<dyn Middleware>>,
    hooks: Vec<Arc<dyn Hook>>,
    idempotency: Arc<dyn IdempotencyStore>,
}

/// What the steps lead to.
enum Outcome {
    Data(Value),
    /// A call with an idempotency key: its envelope is complete, or is another call's.
    Keyed(Box<Keyed>),
}

impl Runtime {
    /// Starts a runtime without actions.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }

    /// Every action, in the order of names; for code and documents, not for a surface.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        self.0.registry.all()
    }

    /// The actions that an actor may see on a surface, in the order of names.
    pub fn listed<'a>(&'a self, surface: Surface, actor: &'a Actor) -> impl Iterator<Item = &'a Action> {
        self.0.registry.listed(surface, actor)
    }

    /// Whether a surface may know of an action at all.
    pub fn exposes(&self, action: &Action, surface: Surface) -> bool {
        self.0.registry.exposes(action.spec(), surface)
    }

    /// Invokes an action and returns its envelope. Never panics. Dropping the future ends the invocation.
    pub async fn invoke(&self, mut invocation: Invocation) -> Envelope {
        let context = self.context(&invocation);
        self.run(&context, &mut invocation).await
    }

    /// Invokes an action and follows it live.
    pub fn stream(&self, mut invocation: Invocation) -> InvocationStream {
        let (runtime, context) = (self.clone(), self.context(&invocation));
        InvocationStream::new(context.clone(), async move { runtime.run(&context, &mut invocation).await })
    }

    /// Whether an invocation would be begun if everybody who is asked said yes. Nothing is done and nobody is asked.
    pub async fn check(&self, mut invocation: Invocation) -> Result<(), ActionError> {
        let context = self.context(&invocation);
        let action = self.resolve(&invocation)?;
        check_surface(&action, invocation.surface)?;
        let Invocation { input, options, .. } = &mut invocation;
        drop(validate(&action, input, options)?);
        check_people_only(&action, &context)?;
        self.check_permissions(PermissionRequest { action: &action, input, context: &context }).await
    }

    async fn check_permissions(&self, request: PermissionRequest<'_>) -> Result<(), ActionError> {
        if self.0.checker.is_none() && request.action.spec().permissions.is_empty() {
            return Ok(());
        }
        Box::pin(authorise(self.0.checker.as_deref(), request)).await
    }

    fn context(&self, invocation: &Invocation) -> Context {
        let action = match &invocation.action {
            ActionRef::Name(name) => Arc::clone(name),
            ActionRef::Action(action) => Arc::clone(&action.spec().name),
        };
        Context(Arc::new(Call {
            action,
            id: new_id(),
            surface: invocation.surface,
            actor: Arc::clone(&invocation.actor),
            services: Arc::clone(&self.0.services),
            idempotency_key: invocation.options.idempotency_key.clone(),
            caller: invocation.caller.clone(),
            programs: invocation.programs.clone(),
            record: Default::default(),
        }))
    }

    // An async function's future is moved whole each time it is awaited by another, so what is rarely needed on the way
    // (hooks, a checker, keys) is boxed: it keeps every call's future small.
    async fn run(&self, context: &Context, invocation: &mut Invocation) -> Envelope {
        let started = Instant::now();
        let mut abandoned = Abandoned { runtime: self, context, started, armed: true };
        let outcome = match caught(self.steps(context, invocation, started)).await {
            Ok(outcome) => outcome,
            Err(panicked) => Err(panicked.into()),
        };
        abandoned.armed = false;
        let (envelope, claim) = match outcome {
            Ok(Outcome::Data(data)) => (envelope(context, started, Ok(data)), None),
            Ok(Outcome::Keyed(keyed)) => match *keyed {
                Keyed::Ran(envelope, claim) => (envelope, Some(claim)),
                Keyed::Replayed(earlier) => (replay(context, started, earlier), None),
            },
            Err(error) => (envelope(context, started, Err(error)), None),
        };
        log_end(context, &envelope);
        if claim.is_some() || !self.0.hooks.is_empty() {
            Box::pin(self.conclude(&envelope, claim)).await;
        }
        envelope
    }

    /// Keeps the result and tells the hooks, in a task of its own: a caller who leaves now cannot cut that short.
    async fn conclude(&self, envelope: &Envelope, claim: Option<Box<dyn Claim>>) {
        let (runtime, envelope) = (self.clone(), envelope.clone());
        let concluded = async move {
            if let Some(claim) = claim {
                settle(claim, &envelope).await;
            }
            tell_ended(&runtime.0.hooks, &envelope).await;
        };
        match tokio::runtime::Handle::try_current() {
            Ok(handle) => drop(handle.spawn(concluded).await),
            Err(_) => concluded.await,
        }
    }

    /// Steps 1 to 3, then the rest under the invocation's cancellation and deadline.
    async fn steps(
        &self,
        context: &Context,
        invocation: &mut Invocation,
        started: Instant,
    ) -> Result<Outcome, ActionError> {
        let action = &self.resolve(invocation)?;
        if !self.0.hooks.is_empty() {
            Box::pin(tell_started(&self.0.hooks, context)).await;
        }
        check_surface(action, invocation.surface)?;
        let Invocation { input, options, cancel, within_ms, approved, .. } = invocation;
        let prepared = validate(action, input, options)?;

        let deadlines = [options.deadline_ms.filter(|ms| *ms > 0), action.spec().deadline_ms, *within_ms];
        let deadline_ms = deadlines.into_iter().flatten().min();
        let stage = Stage { action, input, options, context, started, approved: *approved };
        if cancel.is_none() && deadline_ms.is_none() {
            return self.guarded_steps(stage, prepared).await;
        }
        Box::pin(async {
            tokio::select! {
                biased;
                () = cancelled(cancel.as_ref()) => Err(ActionError::cancelled()),
                () = passed(started, deadline_ms) => Err(past_deadline(deadline_ms)),
                outcome = self.guarded_steps(stage, prepared) => outcome,
            }
        })
        .await
    }

    /// Step 1. What a surface may not see is as if it did not exist.
    fn resolve(&self, invocation: &Invocation) -> Result<Action, ActionError> {
        let found = match &invocation.action {
            ActionRef::Name(name) => self.0.registry.get(name).cloned(),
            ActionRef::Action(action) => Some(action.clone()),
        };
        let asked = || match &invocation.action {
            ActionRef::Name(name) => name.chars().take(128).collect::<String>(),
            ActionRef::Action(action) => action.name().to_owned(),
        };
        found.filter(|action| self.0.registry.exposes(action.spec(), invocation.surface)).ok_or_else(|| {
            ActionError::new(Code::ActionNotFound, format!("Action \"{}\" was not found.", asked()))
        })
    }

    /// Steps 4 to 9.
    async fn guarded_steps(&self, stage: Stage<'_>, prepared: Prepared) -> Result<Outcome, ActionError> {
        let Stage { action, input, options, context, started, approved } = stage;
        let spec = action.spec();
        check_people_only(action, context)?;
        // An agent's own confirmation never counts; where there is a gate, its answer does.
        let gate = self.0.gate.as_deref().filter(|_| context.actor().is_agent() && !approved);
        if !approved && gate.is_none() {
            confirm(action, options, context)?;
        }
        self.check_permissions(PermissionRequest { action, input, context }).await?;
        // Last, since it may ask a person: nobody is asked about what is not permitted anyway.
        if let Some(gate) = gate {
            Box::pin(gate.pass(action, input, context)).await?;
        }
        if let Some(deprecation) = &spec.deprecation {
            let Deprecation { message, since, replacement } = deprecation;
            let fields = fields! { message: message, since: since, replacement: replacement };
            context.logger().warn("Action is deprecated.", fields);
        }
        let key = options.idempotency_key.as_deref();
        match key.filter(|_| spec.side_effects != SideEffects::Read && !spec.owns_idempotency_key) {
            None => self.run_and_check(stage, prepared).await.map(Outcome::Data),
            Some(key) => {
                let scope = IdempotencyScope::new(&spec.name, context.actor(), key);
                // A panic may come after the effect like any other failure, so it settles the key as well.
                let run = || async {
                    let ran = caught(self.run_and_check(stage, prepared)).await;
                    envelope(context, started, ran.unwrap_or_else(|panicked| Err(panicked.into())))
                };
                let keyed = Box::pin(once(&*self.0.idempotency, scope, input, run)).await?;
                Ok(Outcome::Keyed(Box::new(keyed)))
            }
        }
    }

    /// Steps 6 to 9: the middleware around the handler with its timeout and retries, then the checks of what comes out.
    async fn run_and_check(&self, stage: Stage<'_>, prepared: Prepared) -> Result<Value, ActionError> {
        let Stage { action, input, options, context, .. } = stage;
        let spec = action.spec();
        let _place = match action.limiter() {
            Some(limiter) => Some(Box::pin(limiter.enter()).await?),
            None => None,
        };
        let timeout_ms = options.timeout_ms.or(spec.timeout_ms).filter(|ms| *ms > 0);
        let running = Running { timeout_ms, retry: options.retry.unwrap_or(spec.retry) };
        let handler = || run_with_retries(action, input, context, prepared, running);
        let output = if self.0.middleware.is_empty() {
            handler().await?
        } else {
            let call = MiddlewareCall { action, input, context };
            Box::pin(run_chain(&self.0.middleware, call, handler())).await?
        };
        check_output(action, output)
    }
}

/// What the later steps of an invocation work on.
#[derive(Clone, Copy)]
struct Stage<'a> {
    action: &'a Action,
    input: &'a Value,
    options: &'a InvocationOptions,
    context: &'a Context,
    started: Instant,
    approved: bool,
}

fn new_id() -> InvocationId {
    let (unix_ms, random) = id_parts();
    InvocationId::from_parts(unix_ms, &random)
}

/// Step 2.
fn check_surface(action: &Action, surface: Surface) -> Result<(), ActionError> {
    if supports(action.spec(), surface) {
        return Ok(());
    }
    let message = format!("Action \"{}\" does not support surface \"{surface}\".", action.name());
    Err(ActionError::new(Code::UnsupportedSurface, message))
}

/// Step 3. The input comes out with its defaults, read into the handler's own type.
fn validate(
    action: &Action,
    input: &mut Value,
    options: &InvocationOptions,
) -> Result<Prepared, ActionError> {
    if let Err(reason) = check_limits(input, INPUT_BYTES_MAX) {
        dismantle(std::mem::take(input));
        return Err(ActionError::invalid_input(vec![Issue::root(format!("Input is refused: {reason}."))]));
    }
    let schema = &action.spec().input;
    schema.apply_defaults(input);
    let mut issues = options.issues();
    issues.extend(schema.issues(input).map_err(broken_schema)?);
    if !issues.is_empty() {
        return Err(ActionError::invalid_input(issues));
    }
    match (action.handler())(input) {
        Ok(prepared) => Ok(prepared),
        // The schema takes 1.0 for an integer, Rust's integers do not.
        Err(_) if whole_floats_to_integers(input) => (action.handler())(input),
        Err(issue) => Err(issue),
    }
    .map_err(|issue| ActionError::invalid_input(vec![issue]))
}

fn check_people_only(action: &Action, context: &Context) -> Result<(), ActionError> {
    if !(action.spec().people_only && context.actor().is_agent()) {
        return Ok(());
    }
    let message = "Action is for people only; an agent may not call it.";
    Err(ActionError::new(Code::AuthorizationError, message))
}

/// Step 4. An agent's own flag never counts: what it wants to do is for a person to confirm.
fn confirm(action: &Action, options: &InvocationOptions, context: &Context) -> Result<(), ActionError> {
    if !action.asks_to_confirm(context.surface()) || (options.confirm && !context.actor().is_agent()) {
        return Ok(());
    }
    let message = format!("Action \"{}\" requires explicit confirmation.", action.name());
    Err(ActionError::new(Code::ConfirmationRequired, message))
}

/// Steps 8 and 9.
fn check_output(action: &Action, output: Value) -> Result<Value, ActionError> {
    if let Err(reason) = check_limits(&output, OUTPUT_BYTES_MAX) {
        dismantle(output);
        return Err(unsafe_output(reason));
    }
    let Some(schema) = &action.spec().output else { return Ok(output) };
    match schema.issues(&output) {
        Ok(issues) if issues.is_empty() => Ok(output),
        Ok(issues) => Err(ActionError::new(Code::OutputValidationError, "Action returned invalid output.")
            .with_issues(issues)),
        Err(reason) => Err(broken_schema(reason)),
    }
}

fn broken_schema(reason: &str) -> ActionError {
    ActionError::internal(format!("the schema does not compile: {reason}"))
}

async fn cancelled(token: Option<&CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => std::future::pending().await,
    }
}

async fn passed(started: Instant, deadline_ms: Option<u64>) {
    match deadline_ms {
        Some(ms) => tokio::time::sleep_until(started + Duration::from_millis(ms)).await,
        None => std::future::pending().await,
    }
}

fn past_deadline(deadline_ms: Option<u64>) -> ActionError {
    let message = format!("Action did not end within its deadline of {}ms.", deadline_ms.unwrap_or_default());
    ActionError::new(Code::Timeout, message).retryable()
}

/// Step 10. Seals the record, so that nothing later can change the envelope.
fn envelope(context: &Context, started: Instant, outcome: Result<Value, ActionError>) -> Envelope {
    let call = &context.0;
    let outcome = outcome.map_err(|error| failure(error, call.id, &call.action));
    let (logs, artifacts) = call.record.seal();
    Envelope { outcome, artifacts, logs, meta: meta(context, started) }
}

/// One line a call for whoever runs the process: who called what from where, and how it ended.
fn log_end(context: &Context, envelope: &Envelope) {
    tracing::info!(
        action = %context.0.action.escape_debug(),
        surface = %context.surface(),
        actor = %context.actor(),
        outcome = envelope.error().map_or("ok", |failure| failure.code.as_str()),
        duration_ms = envelope.meta.duration_ms,
        invocation = %context.0.id,
        "invoked"
    );
}

/// The failure that a caller sees; what it must not see goes to the log, without credentials.
fn failure(error: ActionError, invocation: InvocationId, action: &str) -> Failure {
    if let Some(detail) = error.detail() {
        let detail = runyard_redact::process::text(detail);
        tracing::error!(%invocation, action, detail, "the action failed with an internal error");
    }
    let mut failure = Failure::from(error);
    failure.message = runyard_redact::process::text(&failure.message);
    for issue in &mut failure.issues {
        issue.message = runyard_redact::process::text(&issue.message);
    }
    failure
}

fn meta(context: &Context, started: Instant) -> Meta {
    let call = &context.0;
    Meta {
        action: Some(Arc::clone(&call.action)),
        invocation_id: call.id,
        surface: call.surface,
        duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        idempotent: None,
    }
}

/// An earlier call's envelope as this call's own.
fn replay(context: &Context, started: Instant, earlier: Envelope) -> Envelope {
    context.0.record.seal();
    Envelope { meta: Meta { idempotent: Some(Replayed::Replayed), ..meta(context, started) }, ..earlier }
}

impl Envelope {
    /// The envelope of a call that never reached the runtime, such as a payload that is no JSON.
    pub fn refusal(surface: Surface, action: Option<&str>, error: ActionError) -> Envelope {
        let id = new_id();
        Envelope::outside(surface, action, id, Err(failure(error, id, action.unwrap_or_default())))
    }

    /// The envelope of an answer that an entry point gives by itself, such as the list of actions.
    pub fn of_data(surface: Surface, data: Value) -> Envelope {
        Envelope::outside(surface, None, new_id(), Ok(data))
    }

    fn outside(
        surface: Surface,
        action: Option<&str>,
        invocation_id: InvocationId,
        outcome: Result<Value, Failure>,
    ) -> Envelope {
        let meta =
            Meta { action: action.map(Arc::from), invocation_id, surface, duration_ms: 0, idempotent: None };
        Envelope { outcome, artifacts: Vec::new(), logs: Vec::new(), meta }
    }
}

/// Tells the hooks of an invocation whose caller went away before it ended.
struct Abandoned<'a> {
    runtime: &'a Runtime,
    context: &'a Context,
    started: Instant,
    armed: bool,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let envelope = envelope(self.context, self.started, Err(ActionError::cancelled()));
        log_end(self.context, &envelope);
        if let (false, Ok(handle)) = (self.runtime.0.hooks.is_empty(), tokio::runtime::Handle::try_current())
        {
            let runtime = self.runtime.clone();
            handle.spawn(async move { tell_ended(&runtime.0.hooks, &envelope).await });
        }
    }
}
