//! Defining an action, and what is checked when it is defined.

use std::future::Future;
use std::sync::Arc;

use runyard_domain::Surface;
use serde_json::Value;

use super::{
    Action, ActionSpec, Concurrency, DefinitionError, Deprecation, HttpRoute, Idempotency, Inner,
    NAME_LENGTH_MAX, RESERVED_FIELDS, ResourceUri, RetryPolicy, SideEffects, TaskUse, Visibility,
    WAIT_MS_MAX,
};
use crate::concurrency::Limiter;
use crate::handler::{self, Handler};
use crate::{ActionError, ActionInput, ActionOutput, Context, Schema};

/// A definition in the making. Every step has a sensible default but the handler.
#[derive(Debug)]
pub struct ActionBuilder {
    spec: ActionSpec,
    confirmation: Option<bool>,
    error: Option<DefinitionError>,
}

impl ActionBuilder {
    pub(super) fn new(name: String, description: String) -> Self {
        let spec = ActionSpec {
            title: title_of(&name),
            name: name.into(),
            description,
            version: "1.0.0".to_owned(),
            side_effects: SideEffects::Read,
            idempotency: Idempotency::Unspecified,
            owns_idempotency_key: false,
            visibility: Visibility::Public,
            people_only: false,
            permissions: Vec::new(),
            surfaces: Surface::DEFAULT.into(),
            timeout_ms: None,
            deadline_ms: None,
            retry: RetryPolicy::NONE,
            requires_confirmation: false,
            concurrency: None,
            deprecation: None,
            examples: Vec::new(),
            http: None,
            resource: None,
            prompt: false,
            task: TaskUse::Never,
            input: Schema::empty_object(),
            output: None,
        };
        ActionBuilder { spec, confirmation: None, error: None }
    }

    /// A name for people; by default the name's words, capitalised.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.spec.title = title.into();
        self
    }

    /// The version; by default 1.0.0.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.spec.version = version.into();
        self
    }

    /// What it does to the world; by default nothing.
    #[must_use]
    pub fn side_effects(mut self, side_effects: SideEffects) -> Self {
        self.spec.side_effects = side_effects;
        self
    }

    /// What happens when the same call is made twice.
    #[must_use]
    pub fn idempotency(mut self, idempotency: Idempotency) -> Self {
        self.spec.idempotency = idempotency;
        self
    }

    /// The handler takes care of idempotency keys itself, so that a key commits with its effect.
    #[must_use]
    pub fn owns_idempotency_key(mut self) -> Self {
        self.spec.owns_idempotency_key = true;
        self
    }

    /// Who may see it at all; by default everybody.
    #[must_use]
    pub fn visibility(mut self, visibility: Visibility) -> Self {
        self.spec.visibility = visibility;
        self
    }

    /// Refuses agents, whatever a rule says.
    #[must_use]
    pub fn people_only(mut self) -> Self {
        self.spec.people_only = true;
        self
    }

    /// The permissions that an actor needs.
    #[must_use]
    pub fn permissions<P: Into<String>>(mut self, permissions: impl IntoIterator<Item = P>) -> Self {
        self.spec.permissions = permissions.into_iter().map(Into::into).collect();
        self
    }

    /// Where it can be called from; by default everywhere.
    #[must_use]
    pub fn surfaces(mut self, surfaces: impl IntoIterator<Item = Surface>) -> Self {
        self.spec.surfaces = surfaces.into_iter().collect();
        self
    }

    /// How long one attempt may take; 0 is no limit.
    #[must_use]
    pub fn timeout_ms(mut self, timeout_ms: u64) -> Self {
        self.spec.timeout_ms = (timeout_ms > 0).then_some(timeout_ms);
        self
    }

    /// How long the whole invocation may take, waits included; 0 is no limit.
    #[must_use]
    pub fn deadline_ms(mut self, deadline_ms: u64) -> Self {
        self.spec.deadline_ms = (deadline_ms > 0).then_some(deadline_ms);
        self
    }

    /// Whether retryable failures are tried again; by default not.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.spec.retry = retry;
        self
    }

    /// Whether a caller must say that it means it; by default only where the action is destructive.
    #[must_use]
    pub fn requires_confirmation(mut self, required: bool) -> Self {
        self.confirmation = Some(required);
        self
    }

    /// How many may run at once; by default any number.
    #[must_use]
    pub fn concurrency(mut self, max: u32, wait_ms: u64) -> Self {
        self.spec.concurrency = Some(Concurrency { max, wait_ms });
        self
    }

    /// Says why it should no longer be used.
    #[must_use]
    pub fn deprecated(mut self, deprecation: Deprecation) -> Self {
        self.spec.deprecation = Some(deprecation);
        self
    }

    /// An input that works.
    #[must_use]
    pub fn example(mut self, input: Value) -> Self {
        self.spec.examples.push(input);
        self
    }

    /// Its own HTTP route, as in `POST /api/v1/tasks/{id}`.
    #[must_use]
    pub fn http(mut self, route: &str) -> Self {
        match route.parse() {
            Ok(route) => self.spec.http = Some(route),
            Err(error) => self.error = self.error.or(Some(error)),
        }
        self
    }

    /// The address under which its result can be read as a resource, as in `shop://orders/{id}`.
    #[must_use]
    pub fn resource(mut self, uri: &str) -> Self {
        match uri.parse() {
            Ok(uri) => self.spec.resource = Some(uri),
            Err(error) => self.error = self.error.or(Some(error)),
        }
        self
    }

    /// Its result is a prompt for a model: a text, or `{"messages": […]}`. It is offered as one instead of as a tool.
    #[must_use]
    pub fn prompt(mut self) -> Self {
        self.spec.prompt = true;
        self
    }

    /// Whether a call is served as a task, where the caller can follow one; by default never.
    #[must_use]
    pub fn task(mut self, task: TaskUse) -> Self {
        self.spec.task = task;
        self
    }

    /// What it takes, as JSON Schema.
    #[must_use]
    pub fn input_schema(mut self, schema: Value) -> Self {
        match Schema::new(schema) {
            Ok(schema) => self.spec.input = schema,
            Err(error) => self.error = self.error.or(Some(error)),
        }
        self
    }

    /// What it gives, as JSON Schema.
    #[must_use]
    pub fn output_schema(mut self, schema: Value) -> Self {
        match Schema::new(schema) {
            Ok(schema) => self.spec.output = Some(schema),
            Err(error) => self.error = self.error.or(Some(error)),
        }
        self
    }

    /// Ends the definition with a handler on plain JSON; the schemas are those given before.
    pub fn handler<F, Fut>(self, run: F) -> Result<Action, DefinitionError>
    where
        F: Fn(Value, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, ActionError>> + Send + 'static,
    {
        self.finish(handler::dynamic(run))
    }

    /// Ends the definition with a typed handler; the schemas are those of its types.
    pub fn typed<I, O, E, F, Fut>(mut self, run: F) -> Result<Action, DefinitionError>
    where
        I: ActionInput,
        O: ActionOutput,
        E: Into<ActionError>,
        F: Fn(I, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, E>> + Send + 'static,
    {
        self.spec.input = Schema::of_input::<I>();
        self.spec.output = Some(Schema::of_output::<O>());
        self.finish(handler::typed(run))
    }

    /// Ends the definition with a typed handler that takes no input.
    pub fn typed_without_input<O, E, F, Fut>(mut self, run: F) -> Result<Action, DefinitionError>
    where
        O: ActionOutput,
        E: Into<ActionError>,
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, E>> + Send + 'static,
    {
        self.spec.input = Schema::empty_object();
        self.spec.output = Some(Schema::of_output::<O>());
        self.finish(handler::typed_without_input(run))
    }

    fn finish(mut self, handler: Handler) -> Result<Action, DefinitionError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let spec = &mut self.spec;
        spec.requires_confirmation =
            self.confirmation.unwrap_or(spec.side_effects == SideEffects::Destructive);
        check(spec)?;
        let limiter = spec.concurrency.map(Limiter::new);
        Ok(Action(Arc::new(Inner { spec: self.spec, handler, limiter })))
    }
}

fn check(spec: &ActionSpec) -> Result<(), DefinitionError> {
    let action = || spec.name.to_string();
    let mut characters = spec.name.chars();
    let starts_well = characters.next().is_some_and(|first| first.is_ascii_lowercase());
    let goes_on_well = characters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if !starts_well || !goes_on_well || spec.name.len() > NAME_LENGTH_MAX {
        return Err(DefinitionError::InvalidName { name: action() });
    }
    if spec.description.trim().is_empty() {
        return Err(DefinitionError::NoDescription { action: action() });
    }
    let waits = [spec.timeout_ms, spec.deadline_ms, spec.concurrency.map(|limit| limit.wait_ms)];
    if waits.into_iter().flatten().any(|wait| wait > WAIT_MS_MAX) {
        return Err(DefinitionError::OutOfRange { action: action(), what: "a timeout, deadline or wait" });
    }
    if spec.retry.check().is_err() {
        return Err(DefinitionError::OutOfRange { action: action(), what: "retry" });
    }
    if spec.concurrency.is_some_and(|limit| limit.max == 0) {
        return Err(DefinitionError::OutOfRange { action: action(), what: "the concurrency limit" });
    }
    if (spec.prompt || spec.resource.is_some()) && spec.side_effects != SideEffects::Read {
        return Err(DefinitionError::UnsafeReading { action: action() });
    }
    spec.resource.as_ref().map_or(Ok(()), |uri| check_resource(spec, uri))?;
    spec.http.as_ref().map_or(Ok(()), |route| check_route(spec, route))
}

fn check_resource(spec: &ActionSpec, uri: &ResourceUri) -> Result<(), DefinitionError> {
    let fields = spec.input.property_names();
    match uri.fields().find(|field| !fields.contains(field)) {
        None => Ok(()),
        Some(field) => {
            Err(DefinitionError::UnknownPathField { action: spec.name.to_string(), field: field.to_owned() })
        }
    }
}

fn check_route(spec: &ActionSpec, route: &HttpRoute) -> Result<(), DefinitionError> {
    let action = || spec.name.to_string();
    if route.method == "GET" && spec.side_effects != SideEffects::Read {
        return Err(DefinitionError::UnsafeGet { action: action() });
    }
    let fields = spec.input.property_names();
    if let Some(field) = RESERVED_FIELDS.into_iter().find(|field| fields.contains(field)) {
        return Err(DefinitionError::ReservedField { action: action(), field: field.to_owned() });
    }
    match route.path_fields().find(|field| !fields.contains(field)) {
        None => Ok(()),
        Some(field) => Err(DefinitionError::UnknownPathField { action: action(), field: field.to_owned() }),
    }
}

/// `create_task` is "Create Task".
fn title_of(name: &str) -> String {
    let capitalised = name.split('_').filter(|word| !word.is_empty()).map(|word| {
        let mut characters = word.chars();
        characters
            .next()
            .map(|first| first.to_ascii_uppercase())
            .into_iter()
            .chain(characters)
            .collect::<String>()
    });
    capitalised.collect::<Vec<_>>().join(" ")
}
