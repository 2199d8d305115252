//! The table itself: every code once, with its row.
//!
//! The enum, its list, its words and its rows are all made from the entries below, so a code without a row
//! does not compile. The types of the columns are in the parent module.

use serde::Deserialize;

use super::{Class, Retry, Row};

/// The JSON-RPC numbers in use. JSON-RPC leaves -32000 to -32099 to us, but MCP keeps -32020 to -32099 for
/// itself and has long used -32002 for a missing resource, so those stay free.
pub(super) mod rpc {
    pub(crate) const PARSE: i32 = -32700;
    pub(crate) const INVALID_REQUEST: i32 = -32600;
    pub(crate) const NOT_FOUND: i32 = -32601;
    pub(crate) const INVALID_PARAMS: i32 = -32602;
    pub(crate) const INTERNAL: i32 = -32603;
    pub(crate) const FAILED: i32 = -32000;
    pub(crate) const TIMED_OUT: i32 = -32001;
    pub(crate) const UNAUTHENTICATED: i32 = -32003;
    pub(crate) const DENIED: i32 = -32004;
    pub(crate) const CONFLICT: i32 = -32005;
    pub(crate) const CANCELLED: i32 = -32006;
    pub(crate) const LIMIT: i32 = -32007;
    pub(crate) const UNAVAILABLE: i32 = -32008;
    pub(crate) const BAD_OUTPUT: i32 = -32009;
    pub(crate) const CONFIRM: i32 = -32010;
}

macro_rules! table {
    ($(
        [$group:literal]
        $($variant:ident $code:literal $class:ident $http:literal $exit:literal $rpc:ident $retry:ident
            $recovery:literal)*
    )*) => {
        /// A code of Runyard's own. There are no others: what is not here cannot be emitted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(try_from = "String")]
        pub enum Code {
            $($(
                #[doc = concat!("`", $code, "`. Recovery: ", $recovery)]
                #[cfg_attr(feature = "schema", schemars(rename = $code))]
                $variant,
            )*)*
        }

        impl Code {
            /// Every code, in the order of the document, group by group.
            pub const ALL: &'static [Code] = &[$($(Code::$variant,)*)*];

            /// The word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($(Code::$variant => $code,)*)*
                }
            }

            /// What the code means on every surface.
            pub const fn row(self) -> &'static Row {
                match self {
                    $($(Code::$variant => &Row {
                        class: Class::$class,
                        http: $http,
                        exit: $exit,
                        json_rpc: rpc::$rpc,
                        retry: Retry::$retry,
                        recovery: $recovery,
                    },)*)*
                }
            }

            /// The section of `docs/errors.md` that lists it.
            pub const fn group(self) -> &'static str {
                match self {
                    $($(Code::$variant)|* => $group,)*
                }
            }

            /// The code with this word, if it is one of the table's.
            pub fn parse(text: &str) -> Option<Code> {
                match text {
                    $($($code => Some(Code::$variant),)*)*
                    _ => None,
                }
            }
        }
    };
}

// variant, code, class, HTTP status, exit code, JSON-RPC code, retry; then the first recovery action.
table! {
    ["Actions"]
    ActionNotFound "ACTION_NOT_FOUND" Permanent 404 4 NOT_FOUND No
        "List the actions of this surface and call one of them by its exact name."
    UnsupportedSurface "UNSUPPORTED_SURFACE" Permanent 403 1 DENIED No
        "Call the action from one of the surfaces in its `supportedSurfaces`."
    ValidationError "VALIDATION_ERROR" Permanent 400 2 INVALID_PARAMS No
        "Correct the input at each path listed in `issues` and call again."
    ConfirmationRequired "CONFIRMATION_REQUIRED" Permanent 409 1 CONFIRM AfterRecovery
        "Check what the action will do, then repeat the call with the confirmation flag \
         (`confirm: true`, `--confirm`)."
    AuthenticationError "AUTHENTICATION_ERROR" Permanent 401 3 UNAUTHENTICATED AfterRecovery
        "Sign in or send a valid token, then repeat the call."
    AuthorizationError "AUTHORIZATION_ERROR" Permanent 403 3 DENIED AfterRecovery
        "Ask whoever administers this project to allow you this action."
    OutputSerializationError "OUTPUT_SERIALIZATION_ERROR" Permanent 502 1 BAD_OUTPUT AfterRecovery
        "Change the action's handler to return plain JSON within the documented limits."
    OutputValidationError "OUTPUT_VALIDATION_ERROR" Permanent 502 1 BAD_OUTPUT AfterRecovery
        "Make the action's handler and its output schema agree at each path listed in `issues`."
    Timeout "TIMEOUT" Transient 504 124 TIMED_OUT Backoff
        "Repeat the call, with a higher `timeoutMs` if it needs more time."
    Cancelled "CANCELLED" FailFast 499 130 CANCELLED AfterRecovery
        "Check what the call had already done, then repeat it if it is still wanted."
    Conflict "CONFLICT" Conflict 409 1 CONFLICT AfterRecovery
        "Read the current state that the message names and decide again from there."
    ConcurrencyLimit "CONCURRENCY_LIMIT" Transient 429 1 LIMIT Backoff
        "Wait for a running call to end, then repeat this one."
    ExternalServiceError "EXTERNAL_SERVICE_ERROR" Transient 502 5 UNAVAILABLE Backoff
        "Check that the service named in the message is up, then repeat the call."
    InternalError "INTERNAL_ERROR" Permanent 500 1 INTERNAL AfterRecovery
        "Look up the `invocationId` in the log, where the detail is, and correct the handler."
    NotFound "NOT_FOUND" Permanent 404 1 NOT_FOUND No
        "Check the address or the id: list what there is and take one of those."
    InvalidJsonRunnerPayload "INVALID_JSON_RUNNER_PAYLOAD" Permanent 400 1 PARSE No
        "Send the JSON runner one JSON object with `action` and `input`."
    DevServerError "DEV_SERVER_ERROR" Permanent 500 1 INTERNAL AfterRecovery
        "Read the dev server's log for the route that failed, correct it and reload the page."

    ["HTTP requests"]
    InvalidRequest "INVALID_REQUEST" Permanent 400 1 INVALID_REQUEST No
        "Correct the part of the request that the message names, such as a bad percent escape."
    InvalidJsonBody "INVALID_JSON_BODY" Permanent 400 1 PARSE No
        "Send a body that is valid JSON; the message says where it stops being so."
    PayloadTooLarge "PAYLOAD_TOO_LARGE" Permanent 413 1 INVALID_REQUEST No
        "Send a smaller body, within the limit that the message names."
    UnsupportedMediaType "UNSUPPORTED_MEDIA_TYPE" Permanent 415 1 INVALID_REQUEST No
        "Send the body as JSON with the header `Content-Type: application/json`."
    MethodNotAllowed "METHOD_NOT_ALLOWED" Permanent 405 1 INVALID_REQUEST No
        "Use one of the methods in the `Allow` header of the answer."
    HostNotAllowed "HOST_NOT_ALLOWED" Permanent 421 1 DENIED AfterRecovery
        "Use the address the server printed at start, or add this host name to its allowed hosts."
    OriginNotAllowed "ORIGIN_NOT_ALLOWED" Permanent 403 1 DENIED AfterRecovery
        "Open the page from the server's own address, or call with a bearer token instead."
    RequestTimeout "REQUEST_TIMEOUT" Transient 408 1 TIMED_OUT Backoff
        "Check the connection and send the whole body again without a pause."

    ["Backends"]
    SecretUnavailable "secret-unavailable" Permanent 409 1 UNAVAILABLE AfterRecovery
        "Add the profile's missing secret, or make its file readable to the edge, and start a new run."
    ProviderAuthFailed "provider-auth-failed" Permanent 502 1 UNAUTHENTICATED AfterRecovery
        "Renew the credential of this profile at its provider and store the new one."
    ProviderRateLimited "provider-rate-limited" Transient 429 1 LIMIT Backoff
        "Wait until the provider's limit resets, or raise the quota, then start a new run."
    ProviderUnavailable "provider-unavailable" Transient 503 1 UNAVAILABLE Backoff
        "Check the provider's status page and start a new run when it is up again."
    BackendProtocolError "backend-protocol-error" Permanent 502 1 BAD_OUTPUT AfterRecovery
        "Install a version of the agent that this adapter supports."
    BackendJsonParseError "backend-json-parse-error" Permanent 502 1 BAD_OUTPUT AfterRecovery
        "Remove what else prints to the agent's standard output, such as a wrapper script."
    BackendResponseInvalid "backend-response-invalid" Permanent 502 1 BAD_OUTPUT AfterRecovery
        "Install a version of the agent whose answers have the field that the message names."
    BackendSpawnFailed "backend-spawn-failed" Permanent 503 1 UNAVAILABLE AfterRecovery
        "Install the agent's command on the edge and check that it can be executed."
    BackendFailed "backend-failed" Permanent 502 1 FAILED AfterRecovery
        "Read the end of the run's log for the agent's own error and correct its cause."
    BackendTimeout "backend-timeout" Permanent 504 124 TIMED_OUT AfterRecovery
        "Narrow the task or raise the timeout in the execution policy, then start a new run."
    BackendCancelled "cancelled" FailFast 499 130 CANCELLED AfterRecovery
        "Review what the agent had done so far, then start a new run if it is still wanted."

    ["Runs"]
    RuntimeUnavailable "runtime_unavailable" Permanent 503 1 UNAVAILABLE AfterRecovery
        "Check that the agent's command is installed and signed in on the edge."
    WorkspaceOutsideAllowlist "workspace_outside_allowlist" Permanent 403 1 DENIED AfterRecovery
        "Add the path to the edge's allow-list, or choose another workspace."
    PermissionDenied "permission_denied" Permanent 403 1 DENIED AfterRecovery
        "Change the approval policy, or ask for an explicit approval of this step."
    ApprovalRejected "approval_rejected" FailFast 403 1 DENIED No
        "Read the reviewer's reason, change the task and start a new run."
    RunTimeout "run_timeout" Permanent 504 124 TIMED_OUT AfterRecovery
        "Narrow the task or raise the timeout in the execution policy, then start a new run."
    SchemaValidationFailed "schema_validation_failed" Permanent 502 1 BAD_OUTPUT AfterRecovery
        "Correct the adapter's mapping of the event in question before trusting what the run shows."
    TargetOffline "target_offline" Transient 503 1 UNAVAILABLE Backoff
        "Reconnect the target edge, or run the task on the local one."
    RunProviderRateLimited "provider_rate_limited" Transient 429 1 LIMIT Backoff
        "Wait until the provider's limit resets, or raise the quota, then start a new run."
    RunProviderUnavailable "provider_unavailable" Transient 503 1 UNAVAILABLE Backoff
        "Check the provider's status page and start a new run when it is up again."
    BudgetExceeded "budget_exceeded" FailFast 403 1 LIMIT AfterRecovery
        "Raise the budget in the execution policy or narrow the task, then start a new run."
    OutcomeUnknown "outcome_unknown" FailFast 409 1 CONFLICT AfterRecovery
        "Check by hand whether the named step took effect, then start a new run from there."
    SetupFailed "setup_failed" Permanent 502 1 FAILED AfterRecovery
        "Read the step's output in the run's log, correct `[workspace] setup` or what it needs, then start a new run."
    CheckoutsFull "checkouts_full" Permanent 507 1 LIMIT AfterRecovery
        "Run `runyard gc` to collect checkouts of runs that have ended, or raise `checkouts_max_bytes` of `[hub]`, then start a \
         new run."
    CheckoutCollected "checkout_collected" Permanent 410 1 NOT_FOUND AfterRecovery
        "Bring the archived patch that the message names to your files with `git apply`, or start a new run."
    RedactedContent "redacted_content" Permanent 400 1 INVALID_PARAMS No
        "Remove the secret or placeholder from the input and refer to a stored secret by name."

    ["Agent runtime: state"]
    StateRevisionConflict "state.revision_conflict" Conflict 409 1 CONFLICT AfterRecovery
        "Read the state at its current revision and apply the change to that."
    StateMutationBaseRevisionMismatch "state.mutation_base_revision_mismatch" Conflict 409 1 CONFLICT
        AfterRecovery
        "Build both mutation batches from the same revision before merging them."
    StatePluginAlreadyInstalled "state.plugin_already_installed" Permanent 500 1 INTERNAL AfterRecovery
        "Install the named plugin only once."
    StatePluginNotInstalled "state.plugin_not_installed" Permanent 500 1 INTERNAL AfterRecovery
        "Install the named plugin before using its state."
    StateKeyAlreadyRegistered "state.key_already_registered" Permanent 500 1 INTERNAL AfterRecovery
        "Rename the key, or remove one of the two plugins that register it."
    StateUnknownKey "state.unknown_key" Permanent 500 1 INTERNAL AfterRecovery
        "Install the plugin that owns the key, or load the state with the policy `Skip`."
    StateKeyDecode "state.key_decode" Permanent 500 1 INTERNAL AfterRecovery
        "Make the key's type read what is stored, or migrate the stored value."
    StateKeyEncode "state.key_encode" Permanent 500 1 INTERNAL AfterRecovery
        "Change the key's value to one that can be written as JSON."
    StateHandlerAlreadyRegistered "state.handler_already_registered" Permanent 500 1 INTERNAL AfterRecovery
        "Register only one scheduled action handler for the key."
    StateEffectHandlerAlreadyRegistered "state.effect_handler_already_registered" Permanent 500 1 INTERNAL
        AfterRecovery
        "Register only one effect handler for the key."
    StatePhaseRunLoopExceeded "state.phase_run_loop_exceeded" Permanent 500 1 LIMIT AfterRecovery
        "Find the handler that schedules itself again in the named phase and make it stop."
    StateUnknownScheduledActionHandler "state.unknown_scheduled_action_handler" Permanent 500 1 INTERNAL
        AfterRecovery
        "Register a handler for the scheduled action's key before scheduling it."
    StateUnknownEffectHandler "state.unknown_effect_handler" Permanent 500 1 INTERNAL AfterRecovery
        "Register a handler for the effect's key before emitting it."
    StateParallelMergeConflict "state.parallel_merge_conflict" Conflict 409 1 CONFLICT AfterRecovery
        "Let only one parallel step write the exclusive key, or give the key a merge that commutes."
    StateToolAlreadyRegistered "state.tool_already_registered" Permanent 500 1 INTERNAL AfterRecovery
        "Rename one of the two tools with this id."
    StateCancelled "state.cancelled" FailFast 499 1 CANCELLED AfterRecovery
        "Read the last committed revision, then run the phase again if it is still wanted."

    ["Agent runtime: tools"]
    ToolInvalidArguments "tool.invalid_arguments" Permanent 400 1 INVALID_PARAMS No
        "Call the tool with arguments that match its schema."
    ToolExecutionFailed "tool.execution_failed" Permanent 500 1 FAILED AfterRecovery
        "Read the tool's message and correct what made it fail."
    ToolDenied "tool.denied" Permanent 403 1 DENIED AfterRecovery
        "Ask a person to approve this call, or change the policy that refused it."
    ToolNotFound "tool.not_found" Permanent 404 1 NOT_FOUND No
        "Call one of the tools that the agent was given, by its exact id."
    ToolInternal "tool.internal" Permanent 500 1 INTERNAL AfterRecovery
        "Look up the tool call in the log and correct the tool's code."
    ToolCancelled "tool.cancelled" FailFast 499 1 CANCELLED AfterRecovery
        "Check what the tool had already done, then call it again if it is still wanted."

    ["Agent runtime: building"]
    BuildState "build.state" Permanent 500 1 INTERNAL AfterRecovery
        "Follow the recovery of the `state.*` error that it carries, then build again."
    BuildAgentRegistryConflict "build.agent_registry_conflict" Permanent 500 1 INTERNAL AfterRecovery
        "Rename or remove one of the two agents registered under the named id."
    BuildToolRegistryConflict "build.tool_registry_conflict" Permanent 500 1 INTERNAL AfterRecovery
        "Rename or remove one of the two tools registered under the named id."
    BuildModelRegistryConflict "build.model_registry_conflict" Permanent 500 1 INTERNAL AfterRecovery
        "Rename or remove one of the two models registered under the named id."
    BuildProviderRegistryConflict "build.provider_registry_conflict" Permanent 500 1 INTERNAL AfterRecovery
        "Rename or remove one of the two providers registered under the named id."
    BuildPluginRegistryConflict "build.plugin_registry_conflict" Permanent 500 1 INTERNAL AfterRecovery
        "Rename or remove one of the two plugins registered under the named id."
    BuildValidationFailed "build.validation_failed" Permanent 500 1 INTERNAL AfterRecovery
        "Correct the setting that the message names and build again."
    BuildDiscoveryFailed "build.discovery_failed" Permanent 502 1 UNAVAILABLE AfterRecovery
        "Check that the folder or file can be read, or that the address of the remote agent answers, then build again."

    ["Agent runtime: running"]
    RuntimeState "runtime.state" Permanent 500 1 INTERNAL AfterRecovery
        "Follow the recovery of the `state.*` error that it carries."
    RuntimeThreadAlreadyRunning "runtime.thread_already_running" Conflict 409 1 CONFLICT AfterRecovery
        "Wait until the thread's current run ends, or cancel it, then start again; resume or recover a run that was killed."
    RuntimeAgentNotFound "runtime.agent_not_found" Permanent 404 1 NOT_FOUND No
        "Start the run with the id of a registered agent."
    RuntimeResolveFailed "runtime.resolve_failed" Permanent 500 1 FAILED AfterRecovery
        "Correct the part of the agent's definition that the message names."

    ["Agent runtime: inference"]
    InferenceProvider "inference.provider" Transient 502 1 UNAVAILABLE Backoff
        "Repeat the request; if it keeps failing, check the provider's status page."
    InferenceRateLimited "inference.rate_limited" Transient 429 1 LIMIT Backoff
        "Wait as long as the provider's `Retry-After` says, then repeat the request."
    InferenceOverloaded "inference.overloaded" Transient 503 1 UNAVAILABLE Backoff
        "Wait as long as the provider's `Retry-After` says, or use another model meanwhile."
    InferenceTimeout "inference.timeout" Transient 504 1 TIMED_OUT Backoff
        "Repeat the request, with a longer model timeout if answers are long."
    InferenceStreamInterrupted "inference.stream_interrupted" Transient 502 1 UNAVAILABLE Backoff
        "Check the network to the provider and continue from the text that was kept."
    InferenceContextOverflow "inference.context_overflow" Permanent 400 1 INVALID_PARAMS No
        "Shorten or compact the conversation, or choose a model with a larger context."
    InferenceInvalidRequest "inference.invalid_request" Permanent 400 1 INVALID_PARAMS No
        "Correct the model parameter or message that the provider names."
    InferenceUnauthorized "inference.unauthorized" Permanent 502 1 UNAUTHENTICATED AfterRecovery
        "Store a valid key for this provider and check that it may use the model."
    InferenceModelNotFound "inference.model_not_found" Permanent 404 1 NOT_FOUND No
        "Choose a model name that the provider lists."
    InferenceContentFiltered "inference.content_filtered" Permanent 400 1 DENIED No
        "Reword the part of the conversation that the provider's filter refused."
    InferenceAllModelsUnavailable "inference.all_models_unavailable" FailFast 503 1 UNAVAILABLE AfterRecovery
        "Wait until a circuit breaker closes again, or add another model to the agent."
    InferenceCancelled "inference.cancelled" FailFast 499 1 CANCELLED AfterRecovery
        "Start the turn again if it is still wanted."

    ["Agent runtime: storage"]
    StorageValidation "storage.validation" Permanent 400 1 INVALID_PARAMS No
        "Correct the record's field that the message names."
    StorageNotFound "storage.not_found" Permanent 404 1 NOT_FOUND No
        "List the stored records and use an id from there."
    StorageAlreadyExists "storage.already_exists" Conflict 409 1 CONFLICT AfterRecovery
        "Read the record that has this id, and update it or choose another id."
    StorageVersionConflict "storage.version_conflict" Conflict 409 1 CONFLICT AfterRecovery
        "Read the record at its current version and apply the change to that."
    StorageIo "storage.io" Transient 503 1 UNAVAILABLE Backoff
        "Check that the database answers and that its disk has free space, then repeat the call."
    StorageCommitUnknown "storage.commit_unknown" Transient 503 1 UNAVAILABLE SameKey
        "Repeat the call with the same idempotency key; it takes effect only once."
    StorageSerialization "storage.serialization" Permanent 500 1 INTERNAL AfterRecovery
        "Restore the named record from a backup, or report it with the version that wrote it."
    StorageLocked "storage.locked" Conflict 409 1 CONFLICT AfterRecovery
        "Stop the other process that uses this data directory, or choose another directory."
    StorageStaleGeneration "storage.stale_generation" FailFast 409 1 CONFLICT No
        "Stop this process; a newer one owns the run, so follow the run there."
    StorageNewerSchema "storage.newer_schema" Permanent 500 1 INTERNAL AfterRecovery
        "Install the Runyard version that last wrote this data directory, or a newer one."
    StorageDiskFull "storage.disk_full" Transient 503 1 UNAVAILABLE Backoff
        "Free space on the disk of the data directory or of the database, then repeat the call."
    StorageReadOnly "storage.read_only" Permanent 500 1 INTERNAL AfterRecovery
        "Make the data directory and its files writable for the user that runs Runyard."
    StorageCorrupt "storage.corrupt" FailFast 500 1 INTERNAL AfterRecovery
        "Keep a copy of the data directory, check the disk, and restore the last backup that verifies."
    StoragePoisoned "storage.poisoned" FailFast 503 1 UNAVAILABLE AfterRecovery
        "Check the disk for errors, then restart Runyard so that it reads back what is durable."

    ["Agent runtime: resolving"]
    ResolveAgentNotFound "resolve.agent_not_found" Permanent 404 1 NOT_FOUND No
        "Use the id of a registered agent."
    ResolveModelNotFound "resolve.model_not_found" Permanent 404 1 NOT_FOUND AfterRecovery
        "Register the model that the agent names, or give the agent another one."
    ResolveProviderNotFound "resolve.provider_not_found" Permanent 404 1 NOT_FOUND AfterRecovery
        "Register the provider that the model names."
    ResolvePluginNotFound "resolve.plugin_not_found" Permanent 404 1 NOT_FOUND AfterRecovery
        "Register the plugin that the agent names, or remove it from the agent."
    ResolveInvalidPluginConfig "resolve.invalid_plugin_config" Permanent 400 1 INVALID_PARAMS AfterRecovery
        "Correct the named key of the plugin's configuration."
    ResolveUnsupportedRemoteBackend "resolve.unsupported_remote_backend" Permanent 400 1 INVALID_PARAMS
        AfterRecovery
        "Register a factory for the named backend, or give the agent another backend."
    ResolveInvalidRemoteEndpointConfig "resolve.invalid_remote_endpoint_config" Permanent 400 1 INVALID_PARAMS
        AfterRecovery
        "Correct the agent's endpoint settings as the message says."
    ResolveRemoteAgentNotDirectlyRunnable "resolve.remote_agent_not_directly_runnable" Permanent 400 1
        INVALID_PARAMS No
        "Start a run for the remote agent instead of resolving it locally."
    ResolveToolIdConflict "resolve.tool_id_conflict" Permanent 500 1 INTERNAL AfterRecovery
        "Rename the tool in one of the two named sources."
    ResolveEnvBuild "resolve.env_build" Permanent 500 1 INTERNAL AfterRecovery
        "Follow the recovery of the `state.*` error that it carries, then resolve again."
}
