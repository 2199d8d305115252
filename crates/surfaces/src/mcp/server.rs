//! The protocol's requests, each handed to the part that knows about it.

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
use super::callers::Wire;
use super::calls::{Asked, Ended, Request, is_tool};
use super::changes::{WATCHED_MAX, Watched};
use super::tasks::{TaskView, detailed, sealed_id, task_of};
use super::tools::{LIST_FRESH_MS, WRAPPED, page, takes_object, tool};
use super::{McpApi, Shared, prompts, resources};

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

    /// The id of a task as this caller's, or that there is none.
    fn task_id(&self, actor: &Actor, sealed: &str) -> Result<String, ErrorData> {
        let id = self.shared.seal.open(&["task", &actor.to_string()], sealed);
        id.and_then(|id| String::from_utf8(id).ok()).ok_or_else(no_task)
    }

    async fn look(&self, actor: &Arc<Actor>, id: &str) -> Result<TaskView, ErrorData> {
        if let Some(view) = self.shared.tasks.look(actor, id) {
            return Ok(view);
        }
        match &self.shared.followed {
            Some(followed) => followed.look(actor, id).await.ok_or_else(no_task),
            None => Err(no_task()),
        }
    }
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
        let told = self.shared.changes.coming().tell_session(context.peer, Arc::clone(&self.session.watched));
        self.session.telling.lock().unwrap_or_else(PoisonError::into_inner).spawn(told);
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
                let view = self.look(&call.actor, &id).await?;
                let sealed = sealed_id(&self.shared.seal, &call.actor, &id);
                CreateTaskResult::new(task_of(&view, sealed)).into()
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
            .and_then(|params| Some((params.get("name")?.as_str()?, params.get("arguments")?)));
        let Some((name, input)) = named.filter(|_| method == "tools/call") else {
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
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        // The client was told already that it is listened to.
        let changes = self.shared.changes.coming();
        let actor = self.actor(context.request_context())?;
        for uri in context.accepted().resource_subscriptions.iter().flatten() {
            self.check_readable(&actor, uri, context.request_context()).await?;
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
        self.check_readable(&actor, &request.uri, &context).await?;
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
        let id = self.task_id(&actor, &request.task_id)?;
        Ok(GetTaskResult::new(detailed(&self.look(&actor, &id).await?, request.task_id)?))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let actor = self.actor(&context)?;
        let id = self.task_id(&actor, &request.task_id)?;
        let answers: std::collections::BTreeMap<_, _> =
            request.input_responses.into_iter().map(|(key, answer)| (key, Answer(answer))).collect();
        if self.shared.tasks.look(&actor, &id).is_some() {
            return done(self.shared.tasks.answer(&actor, &id, answers).map(Ok));
        }
        match &self.shared.followed {
            Some(followed) => done(followed.answer(&actor, &id, answers).await),
            None => Err(no_task()),
        }
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let actor = self.actor(&context)?;
        let id = self.task_id(&actor, &request.task_id)?;
        if self.shared.tasks.cancel(&actor, &id).is_some() {
            return Ok(());
        }
        match &self.shared.followed {
            Some(followed) => done(followed.cancel(&actor, &id).await),
            None => Err(no_task()),
        }
    }
}

impl McpServer {
    /// Nobody watches what they may not read.
    async fn check_readable(
        &self,
        actor: &Arc<Actor>,
        uri: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let (action, input) =
            resources::reading(&self.shared.runtime, actor, uri).ok_or_else(|| not_found(uri))?;
        let call = runyard_actions::Invocation::new(action, input, Surface::Mcp, Arc::clone(actor))
            .cancel_with(context.ct.clone());
        let envelope = self.shared.runtime.invoke(call).await;
        resource_result(&envelope, uri).map(drop)
    }
}
