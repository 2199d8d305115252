//! What an action is: one typed capability, with all that surfaces need to offer it.

mod builder;
mod words;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use runyard_domain::Surface;
use serde_json::{Value, json};

pub use self::builder::ActionBuilder;
pub use self::words::{
    Concurrency, Deprecation, HttpRoute, Idempotency, ResourceUri, RetryPolicy, SideEffects, TaskUse,
    Visibility,
};
use crate::Schema;
use crate::concurrency::Limiter;
use crate::handler::Handler;

/// The longest name of an action.
pub(crate) const NAME_LENGTH_MAX: usize = 64;
/// The most retries that an action or an invocation may ask for.
pub(crate) const RETRIES_MAX: u32 = 100;
/// The longest time that may be given for a timeout, a deadline or a wait: one day.
pub(crate) const WAIT_MS_MAX: u64 = 24 * 60 * 60 * 1000;

/// What is wrong with a definition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// The name is not lower case letters, digits and underscores.
    #[error(
        "\"{name}\" is not a name for an action: use lower case letters, digits and underscores, a letter first, at most {NAME_LENGTH_MAX}"
    )]
    InvalidName {
        /// The name.
        name: String,
    },
    /// The description is empty.
    #[error("action \"{action}\" has no description: say in one sentence what it does")]
    NoDescription {
        /// The action.
        action: String,
    },
    /// A schema is no valid JSON Schema.
    #[error("the schema is not valid: {reason}")]
    InvalidSchema {
        /// Why.
        reason: String,
    },
    /// A route is not `METHOD /path`.
    #[error(
        "\"{route}\" is not a route: write GET, POST, PUT, PATCH or DELETE and a path, as in \"POST /api/v1/tasks/{{id}}\""
    )]
    InvalidRoute {
        /// The route.
        route: String,
    },
    /// A resource address is not `scheme://path`.
    #[error(
        "\"{uri}\" is not the address of a resource: write scheme://path, as in \"shop://orders/{{id}}\""
    )]
    InvalidResource {
        /// The address.
        uri: String,
    },
    /// A resource or a prompt on an action that changes something.
    #[error("action \"{action}\" has side effects, so it can be neither a resource nor a prompt")]
    UnsafeReading {
        /// The action.
        action: String,
    },
    /// A GET route on an action that changes something.
    #[error("action \"{action}\" has side effects, so its route cannot be GET")]
    UnsafeGet {
        /// The action.
        action: String,
    },
    /// A path parameter that is no input field.
    #[error("action \"{action}\" has {{{field}}} in its route, but its input has no field \"{field}\"")]
    UnknownPathField {
        /// The action.
        action: String,
        /// The parameter.
        field: String,
    },
    /// An input field that stands for something else in the body of a declared route.
    #[error(
        "action \"{action}\" has a declared route, so its input cannot have a field \"{field}\": that word is the call's own"
    )]
    ReservedField {
        /// The action.
        action: String,
        /// The field.
        field: String,
    },
    /// A number that is out of its range.
    #[error("action \"{action}\": {what} is out of range")]
    OutOfRange {
        /// The action.
        action: String,
        /// What.
        what: &'static str,
    },
    /// Two actions of one name.
    #[error("there are two actions with the name \"{name}\"")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// An exposure names an action that does not exist.
    #[error("the exposure names \"{name}\", but there is no such action")]
    UnknownExposed {
        /// The name.
        name: String,
    },
}

/// The words that stand beside the input in the body of a declared route.
pub(crate) const RESERVED_FIELDS: [&str; 5] =
    ["confirm", "idempotencyKey", "timeoutMs", "deadlineMs", "retry"];

/// All that is known of an action without running it.
#[derive(Debug)]
pub struct ActionSpec {
    /// Unique in its registry.
    pub name: Arc<str>,
    /// A name for people.
    pub title: String,
    /// What it does.
    pub description: String,
    /// Its version.
    pub version: String,
    /// What it does to the world.
    pub side_effects: SideEffects,
    /// What happens when the same call is made twice.
    pub idempotency: Idempotency,
    /// Whether the handler takes care of idempotency keys itself, so that a key commits with its effect.
    pub owns_idempotency_key: bool,
    /// Who may see it at all.
    pub visibility: Visibility,
    /// Whether agents are refused, whatever a rule says.
    pub people_only: bool,
    /// The permissions that an actor needs.
    pub permissions: Vec<String>,
    /// Where it can be called from.
    pub surfaces: BTreeSet<Surface>,
    /// How long one attempt may take.
    pub timeout_ms: Option<u64>,
    /// How long the whole invocation may take, waits included.
    pub deadline_ms: Option<u64>,
    /// Whether retryable failures are tried again.
    pub retry: RetryPolicy,
    /// Whether a caller must say that it means it.
    pub requires_confirmation: bool,
    /// How many may run at once.
    pub concurrency: Option<Concurrency>,
    /// Why it should no longer be used.
    pub deprecation: Option<Deprecation>,
    /// Inputs that work.
    pub examples: Vec<Value>,
    /// Its own HTTP route.
    pub http: Option<HttpRoute>,
    /// The address under which its result can be read as a resource.
    pub resource: Option<ResourceUri>,
    /// Whether its result is a prompt for a model, and it is offered as one instead of as a tool.
    pub prompt: bool,
    /// Whether a call is served as a task, where the caller can follow one.
    pub task: TaskUse,
    /// What it takes.
    pub input: Schema,
    /// What it gives.
    pub output: Option<Schema>,
}

/// A defined action: its specification and its handler. Cloning is cheap and shares the concurrency limit.
#[derive(Clone)]
pub struct Action(Arc<Inner>);

struct Inner {
    spec: ActionSpec,
    handler: Handler,
    limiter: Option<Limiter>,
}

impl Action {
    /// Starts a definition.
    pub fn define(name: impl Into<String>, description: impl Into<String>) -> ActionBuilder {
        ActionBuilder::new(name.into(), description.into())
    }

    /// All that is known of it without running it.
    pub fn spec(&self) -> &ActionSpec {
        &self.0.spec
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.spec.name
    }

    /// Whether a caller on this surface must say that it means it.
    ///
    /// Where a model may write the call, a person's own token does not tell that it was the person: what only people may do, and
    /// what changes something, is asked about there as well.
    pub fn asks_to_confirm(&self, surface: Surface) -> bool {
        let spec = self.spec();
        let written_by_model = matches!(surface, Surface::Mcp | Surface::AiSdk);
        let persons_deed = spec.people_only && spec.side_effects != SideEffects::Read;
        surface.enforces_confirmation() && (spec.requires_confirmation || (persons_deed && written_by_model))
    }

    pub(crate) fn handler(&self) -> &Handler {
        &self.0.handler
    }

    pub(crate) fn limiter(&self) -> Option<&Limiter> {
        self.0.limiter.as_ref()
    }

    /// The same action with another handler, for tests.
    pub(crate) fn with_handler(&self, handler: Handler) -> Action {
        let spec = &self.0.spec;
        Action(Arc::new(Inner {
            spec: ActionSpec {
                name: spec.name.clone(),
                title: spec.title.clone(),
                description: spec.description.clone(),
                version: spec.version.clone(),
                permissions: spec.permissions.clone(),
                surfaces: spec.surfaces.clone(),
                deprecation: spec.deprecation.clone(),
                examples: spec.examples.clone(),
                http: spec.http.clone(),
                resource: spec.resource.clone(),
                input: spec.input.duplicate(),
                output: spec.output.as_ref().map(Schema::duplicate),
                ..*spec
            },
            handler,
            limiter: spec.concurrency.map(Limiter::new),
        }))
    }

    /// The action as it stands in a manifest.
    pub fn manifest(&self) -> Value {
        let spec = self.spec();
        let mut manifest = json!({
            "name": spec.name,
            "version": spec.version,
            "title": spec.title,
            "description": spec.description,
            "inputSchema": spec.input.json(),
            "outputSchema": spec.output.as_ref().map(Schema::json),
            "visibility": spec.visibility,
            "sideEffects": spec.side_effects,
            "idempotency": spec.idempotency,
            "peopleOnly": spec.people_only,
            "permissions": spec.permissions,
            "supportedSurfaces": spec.surfaces,
            "timeoutMs": spec.timeout_ms,
            "deadlineMs": spec.deadline_ms,
            "retry": spec.retry,
            "requiresConfirmation": spec.requires_confirmation,
            "concurrency": spec.concurrency,
            "deprecated": spec.deprecation.is_some(),
            "deprecation": spec.deprecation,
            "http": spec.http.as_ref().map(ToString::to_string),
            "examples": spec.examples,
        });
        // Few actions have these.
        if let Some(resource) = &spec.resource {
            manifest["resource"] = json!(resource.to_string());
        }
        if spec.prompt {
            manifest["prompt"] = json!(true);
        }
        if spec.task != TaskUse::Never {
            manifest["task"] = json!(spec.task);
        }
        manifest
    }
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Action").field(&self.name()).finish()
    }
}
