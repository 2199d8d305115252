//! The protocol's requests, each handed to the part that knows about it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::request::Parts;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams,
    CompleteResult, CreateTaskResult, CustomRequest, CustomResult, ErrorCode, GetPromptRequestParams,
    GetPromptResponse, GetTaskParams, GetTaskResult, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, Reference, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
    UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use runyard_actions::{ActionError, Answer, Envelope};
use runyard_domain::{Actor, Code, Surface};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::answers::{failed, not_found, prompt_result, resource_result, tool_result};
use super::callers::{Abilities, Wire};
use super::calls::{Asked, Ended, Request, is_tool};
use super::changes::{Coming, WATCHED_MAX, Watched};
use super::listeners::NO_ROOM;
use super::tasks::{FollowedTasks, Looked, sealed_id};
use super::tools::{LIST_FRESH_MS, WRAPPED, page, takes_object, tool};
use super::{McpApi, Shared, prompts, resources};

/// So many listens of a connection may be accepted and not yet heard of.
const BEGUN_MAX: usize = 32;

/// One connection, or one request where there are no connections.
#[derive(Clone)]
pub(super) struct McpServer {
    shared: Arc<Shared>,
    /// Who calls, where the connection says it; else the request does.
    actor: Option<Arc<Actor>>,
    session: Arc<Session>,
}

/// What a session of the older wire holds.
#[derive(Default)]
struct Session {
    log_level: Mutex<Option<LoggingLevel>>,
    watched: Arc<Watched>,
    /// Ends with the session.
    telling: Mutex<JoinSet<()>>,
    /// Of listens that are accepted and not yet heard of, the oldest last.
    begun: Mutex<VecDeque<Coming>>,
}

impl McpServer {
    pub(super) fn new(api: &McpApi, actor: Option<Arc<Actor>>) -> Self {
        McpServer { shared: Arc::clone(&api.0), actor, session: Arc::default() }
    }

    /// Who calls: over HTTP the guard has put it into the request.
    fn actor(&self, context: &RequestContext<RoleServer>) -> Result<Arc<Actor>, ErrorData> {
        let of_request = || context.extensions.get::<Parts>()?.extensions.get::<Arc<Actor>>().cloned();
        let actor = self.actor.clone().or_else(of_request);
        actor.ok_or_else(|| {
            ErrorData::new(
                ErrorCode(Code::AuthenticationError.row().json_rpc),
                "A valid token is needed.",
                None,
            )
        })
    }

    fn request<'a>(&'a self, context: &'a RequestContext<RoleServer>) -> Result<Request<'a>, ErrorData> {
        let log_level = match Wire::of(context) {
            Wire::Rounds => context.meta.log_level(),
            Wire::Session => {
                let chosen = *self.session.log_level.lock().unwrap_or_else(PoisonError::into_inner);
                Some(chosen.unwrap_or(LoggingLevel::Info))
            }
        };
        Ok(Request { shared: &self.shared, actor: self.actor(context)?, context, log_level })
    }

    /// Which task an id names. Whether it is one of this caller's is decided where it lives.
    fn task(&self, actor: &Actor, id: &str) -> TaskRef {
        let own = self.shared.seal.open(&["task", &actor.to_string()], id);
        match own.and_then(|own| String::from_utf8(own).ok()) {
            Some(own) => TaskRef::Here(own),
            None => TaskRef::Elsewhere(id.to_owned()),
        }
    }

    /// A task as the client of this request is to see it.
    async fn look(
        &self,
        actor: &Arc<Actor>,
        task: &TaskRef,
        context: &RequestContext<RoleServer>,
    ) -> Result<Looked, ErrorData> {
        let looked = match task {
            TaskRef::Here(id) => self.shared.tasks.look(actor, id).map(Looked::here),
            TaskRef::Elsewhere(id) => self.followed()?.look(actor, id).await.map(Looked::elsewhere),
        };
        Ok(looked.ok_or_else(no_task)?.shown_to(&Abilities::of(context)))
    }

    fn followed(&self) -> Result<&Arc<dyn FollowedTasks>, ErrorData> {
        self.shared.followed.as_ref().ok_or_else(no_task)
    }
}

/// A task, by its id where it lives.
enum TaskRef {
    /// One of this process, whose id is sealed for its caller.
    Here(String),
    /// One that lives elsewhere and outlives this process: its id is known as it is.
    Elsewhere(String),
}

fn no_task() -> ErrorData {
    ErrorData::invalid_params("There is no such task.", None)
}

fn done(result: Option<Result<(), ActionError>>) -> Result<(), ErrorData> {
    let result = result.ok_or_else(no_task)?;
    result.map_err(|error| failed(&Envelope::refusal(Surface::Mcp, None, error)))
}

fn cursor(request: Option<&PaginatedRequestParams>) -> Option<&str> {
    request?.cursor.as_deref()
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_resources_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_completions()
            .enable_logging()
            .enable_tasks()
            .build();
        let Shared { name, version, about, .. } = &*self.shared;
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new(name.clone(), version.clone());
        info.instructions.clone_from(about);
        info
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let mut telling = self.session.telling.lock().unwrap_or_else(PoisonError::into_inner);
        // A client that says it again is told once all the same.
        if telling.is_empty() {
            let changes = self.shared.changes.coming();
            telling.spawn(changes.tell_session(context.peer, Arc::clone(&self.session.watched)));
        }
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *self.session.log_level.lock().unwrap_or_else(PoisonError::into_inner) = Some(request.level);
        Ok(())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let (actor, wire) = (self.actor(&context)?, Wire::of(&context));
        let listed = self.shared.runtime.listed(Surface::Mcp, &actor).filter(|action| is_tool(action));
        let tools = listed.map(|action| (action.name().to_owned(), tool(action, wire))).collect();
        let (tools, next) = page(tools, cursor(request.as_ref()))?;
        let mut result = ListToolsResult::with_all_items(tools);
        result.next_cursor = next;
        Ok(result.with_ttl_ms(LIST_FRESH_MS).with_cache_scope(CacheScope::Private))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let wire = Wire::of(&context);
        let name = request.name.to_string();
        let action = self.shared.runtime.actions().find(|action| action.name() == name);
        if action.is_some_and(|action| !is_tool(action)) {
            let missing = ActionError::new(Code::ActionNotFound, format!("Action \"{name}\" was not found."));
            let refused = Envelope::refusal(Surface::Mcp, Some(&name), missing);
            return Ok(tool_result(&refused, wire).into());
        }
        let mut input = Value::Object(request.arguments.unwrap_or_default());
        if action.is_some_and(|action| !takes_object(action)) {
            input = input.get(WRAPPED).cloned().unwrap_or(Value::Null);
        }
        let asked = Asked {
            method: "tools/call",
            action: name.clone(),
            name,
            input,
            state: request.request_state,
            answers: request.input_responses,
        };
        let call = self.request(&context)?;
        Ok(match call.call(asked).await? {
            Ended::Done(envelope) => tool_result(&envelope, wire).into(),
            Ended::InputRequired(result) => result.into(),
            Ended::Task(id) => {
                let id = match self.shared.tasks.look(&call.actor, &id) {
                    Some(_) => sealed_id(&self.shared.seal, &call.actor, &id),
                    None => id,
                };
                let looked = self.look(&call.actor, &self.task(&call.actor, &id), &context).await?;
                CreateTaskResult::new(looked.task(id)).into()
            }
        })
    }

    /// Arguments that are headers, too, are compared with those before a call comes here.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let runtime = &self.shared.runtime;
        let action = runtime.actions().find(|action| action.name() == name && is_tool(action))?;
        runtime.exposes(action, Surface::Mcp).then(|| tool(action, Wire::Rounds))
    }

    /// What rmcp could not read as the request that it is named as.
    ///
    /// Arguments that are no object are an input like any other that is not valid, and a model should read why.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        const METHODS: [&str; 12] = [
            "tools/call",
            "tools/list",
            "resources/list",
            "resources/read",
            "resources/templates/list",
            "prompts/list",
            "prompts/get",
            "completion/complete",
            "tasks/get",
            "tasks/update",
            "tasks/cancel",
            "subscriptions/listen",
        ];
        let CustomRequest { method, params, .. } = request;
        if !METHODS.contains(&method.as_str()) {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None));
        }
        let named = params
            .as_ref()
            .and_then(|params| Some((params.get("name")?.as_str()?, params.get("arguments")?)))
            .filter(|_| method == "tools/call")
            // Only the arguments may be what could not be read: whatever else it was, the call is not carried out.
            .filter(|(name, input)| !input.is_object() && self.could_take_object(name));
        let Some((name, input)) = named else {
            return Err(ErrorData::invalid_params(
                format!("The parameters of {method} are not valid."),
                None,
            ));
        };
        let (name, input) = (name.to_owned(), input.clone());
        let asked =
            Asked { method: "tools/call", action: name.clone(), name, input, state: None, answers: None };
        let wire = Wire::of(&context);
        match self.request(&context)?.call(asked).await? {
            Ended::Done(envelope) => {
                let mut result = tool_result(&envelope, wire);
                if wire == Wire::Session {
                    result.result_type = None;
                }
                Ok(CustomResult::new(json!(result)))
            }
            Ended::InputRequired(_) | Ended::Task(_) => {
                Err(ErrorData::invalid_params("The arguments are no object.", None))
            }
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let all = resources::resources(&self.shared.runtime, &*self.actor(&context)?);
        let (resources, next) = page(all, cursor(request.as_ref()))?;
        let mut result = ListResourcesResult::with_all_items(resources);
        result.next_cursor = next;
        Ok(result.with_ttl_ms(LIST_FRESH_MS).with_cache_scope(CacheScope::Private))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let all = resources::templates(&self.shared.runtime, &*self.actor(&context)?);
        let (templates, next) = page(all, cursor(request.as_ref()))?;
        let mut result = ListResourceTemplatesResult::with_all_items(templates);
        result.next_cursor = next;
        Ok(result.with_ttl_ms(LIST_FRESH_MS).with_cache_scope(CacheScope::Private))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let call = self.request(&context)?;
        let uri = request.uri;
        let Some((action, input)) = resources::reading(&self.shared.runtime, &call.actor, &uri) else {
            return Err(not_found(&uri));
        };
        let input = match &self.shared.describes {
            Some(describes) => describes.reading(&action, input).await,
            None => input,
        };
        let asked = Asked {
            method: "resources/read",
            name: uri.clone(),
            action,
            input,
            state: request.request_state,
            answers: request.input_responses,
        };
        match call.call(asked).await? {
            Ended::Done(envelope) => Ok(resource_result(&envelope, &uri)?.into()),
            Ended::InputRequired(result) => Ok(result.into()),
            Ended::Task(_) => Err(ErrorData::internal_error("A resource is read at once.", None)),
        }
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let all = prompts::prompts(&self.shared.runtime, &*self.actor(&context)?);
        let (prompts, next) = page(all, cursor(request.as_ref()))?;
        let mut result = ListPromptsResult::with_all_items(prompts);
        result.next_cursor = next;
        Ok(result.with_ttl_ms(LIST_FRESH_MS).with_cache_scope(CacheScope::Private))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let call = self.request(&context)?;
        let action = prompts::named(&self.shared.runtime, &call.actor, &request.name);
        let action = action.ok_or_else(|| ErrorData::invalid_params("There is no such prompt.", None))?;
        let asked = Asked {
            method: "prompts/get",
            name: request.name.clone(),
            action: request.name,
            input: prompts::input(action, request.arguments),
            state: request.request_state,
            answers: request.input_responses,
        };
        match call.call(asked).await? {
            Ended::Done(envelope) => Ok(prompt_result(&envelope, &action.spec().description)?.into()),
            Ended::InputRequired(result) => Ok(result.into()),
            Ended::Task(_) => Err(ErrorData::internal_error("A prompt is given at once.", None)),
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let actor = self.actor(&context)?;
        let runtime = &self.shared.runtime;
        let unknown = || ErrorData::invalid_params("There is nothing of that name to complete.", None);
        let action = match &request.r#ref {
            Reference::Prompt(prompt) => prompts::named(runtime, &actor, &prompt.name),
            Reference::Resource(resource) => runtime.listed(Surface::Mcp, &actor).find(|action| {
                action.spec().resource.as_ref().is_some_and(|uri| uri.to_string() == resource.uri)
            }),
            _ => None,
        };
        let action = action.ok_or_else(unknown)?;
        let argument = &request.argument;
        Ok(CompleteResult::new(prompts::completion(action, &argument.name, &argument.value)))
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.truncate(WATCHED_MAX);
        }
        // The client is told next that it is listened to; what changes from now on it is to hear of.
        let mut begun = self.session.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.truncate(BEGUN_MAX - 1);
        begun.push_front(self.shared.changes.coming());
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        // Any that was begun before this one was acknowledged does.
        let begun = self.session.begun.lock().unwrap_or_else(PoisonError::into_inner).pop_back();
        let changes = begun.unwrap_or_else(|| self.shared.changes.coming());
        let actor = self.actor(context.request_context())?;
        let code = ErrorCode(Code::ConcurrencyLimit.row().json_rpc);
        let room = self.shared.listeners.enter(&actor);
        let _room = room.ok_or_else(|| ErrorData::new(code, NO_ROOM, None))?;
        for uri in context.accepted().resource_subscriptions.iter().flatten() {
            self.check_watchable(&actor, uri, context.request_context()).await?;
        }
        changes.tell_subscription(&context).await;
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let actor = self.actor(&context)?;
        self.check_watchable(&actor, &request.uri, &context).await?;
        if self.session.watched.add(request.uri) {
            Ok(())
        } else {
            Err(ErrorData::invalid_params("Too many resources are watched.", None))
        }
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.session.watched.remove(&request.uri);
        Ok(())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let actor = self.actor(&context)?;
        let task = self.task(&actor, &request.task_id);
        let looked = self.look(&actor, &task, &context).await?;
        Ok(GetTaskResult::new(looked.detailed(request.task_id)?))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let actor = self.actor(&context)?;
        let answers: std::collections::BTreeMap<_, _> =
            request.input_responses.into_iter().map(|(key, answer)| (key, Answer(answer))).collect();
        done(match self.task(&actor, &request.task_id) {
            TaskRef::Here(id) => self.shared.tasks.answer(&actor, &id, answers).map(Ok),
            TaskRef::Elsewhere(id) => self.followed()?.answer(&actor, &id, answers).await,
        })
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let actor = self.actor(&context)?;
        done(match self.task(&actor, &request.task_id) {
            TaskRef::Here(id) => self.shared.tasks.cancel(&actor, &id).map(Ok),
            TaskRef::Elsewhere(id) => self.followed()?.cancel(&actor, &id).await,
        })
    }
}

impl McpServer {
    /// Whether there may be a tool of this name that takes an object; of one that is not there the call itself says so.
    fn could_take_object(&self, name: &str) -> bool {
        let action = self.shared.runtime.actions().find(|action| action.name() == name);
        action.is_none_or(|action| is_tool(action) && takes_object(action))
    }

    /// Nobody watches what they may not read, and no agent what changes with what is not its own.
    async fn check_watchable(
        &self,
        actor: &Arc<Actor>,
        uri: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if actor.is_agent() && self.shared.for_people.contains(uri) {
            let code = ErrorCode(Code::AuthorizationError.row().json_rpc);
            let message = format!("An agent may read {uri}, and may not watch it.");
            return Err(ErrorData::new(code, message, None));
        }
        let (action, input) =
            resources::reading(&self.shared.runtime, actor, uri).ok_or_else(|| not_found(uri))?;
        let call = runyard_actions::Invocation::new(action, input, Surface::Mcp, Arc::clone(actor))
            .cancel_with(context.ct.clone());
        let envelope = self.shared.runtime.invoke(call).await;
        resource_result(&envelope, uri).map(drop)
    }
}
