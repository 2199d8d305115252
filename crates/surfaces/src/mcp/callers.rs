//! The ways back to a client while an action runs.
//!
//! On the older wire the server asks its client and waits. On the newer one it cannot: the call ends with the questions, and the
//! client calls again with the answers, so the action begins anew and finds them here.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use rmcp::model::{
    ClientCapabilities, ClientResult, CreateMessageRequest, ElicitRequest, ElicitRequestParams, InputRequest,
    ListRootsRequest, ProtocolVersion, ServerRequest,
};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use runyard_actions::{ActionError, Answer, Caller, Question, QuestionKind};
use runyard_domain::Code;
use serde_json::json;
use tokio::sync::Notify;

use super::rounds::Answers;

/// Which way of asking the negotiated revision has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    /// Up to 2025-11-25: a session in which the server may ask.
    Session,
    /// From 2026-07-28: a call ends with questions.
    Rounds,
}

impl Wire {
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Wire {
        let version = context.protocol_version();
        let newer = version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        if newer { Wire::Rounds } else { Wire::Session }
    }
}

/// What a client says it can answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Abilities(ClientCapabilities);

impl Abilities {
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Self {
        Abilities(context.client_capabilities().unwrap_or_default())
    }

    pub(super) fn follows_tasks(&self) -> bool {
        self.0.supports_tasks()
    }

    pub(super) fn can_answer(&self, kind: QuestionKind) -> bool {
        match kind {
            // A client that names no mode means forms.
            QuestionKind::Form => {
                self.0.elicitation.as_ref().is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
            }
            QuestionKind::Completion => self.0.sampling.is_some(),
            QuestionKind::Folders => self.0.roots.is_some(),
        }
    }
}

/// What a client would have to be able to.
pub(super) fn needed(kind: QuestionKind) -> ClientCapabilities {
    let mut needed = ClientCapabilities::default();
    match kind {
        QuestionKind::Form => needed.elicitation = Some(Default::default()),
        QuestionKind::Completion => needed.sampling = Some(Default::default()),
        QuestionKind::Folders => needed.roots = Some(Default::default()),
    }
    needed
}

/// The failure of an action that asks what its client cannot answer.
pub(super) fn unable() -> ActionError {
    ActionError::new(Code::UnsupportedSurface, "The client cannot answer such a question.")
}

/// A question in the protocol's words.
pub(super) fn input_request(question: &Question) -> Result<InputRequest, ActionError> {
    let unfit = |error: serde_json::Error| {
        ActionError::internal(format!("a question does not fit the protocol: {error}"))
    };
    Ok(match question {
        Question::Form { message, schema } => {
            let requested_schema = serde_json::from_value(schema.clone()).map_err(unfit)?;
            InputRequest::Elicitation(ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
                meta: None,
                message: message.clone(),
                requested_schema,
            }))
        }
        Question::Completion { request } => {
            let params = serde_json::from_value(request.clone()).map_err(unfit)?;
            InputRequest::CreateMessage(CreateMessageRequest::new(params))
        }
        Question::Folders => InputRequest::ListRoots(ListRootsRequest::default()),
    })
}

/// Asks while the call runs, on the older wire.
pub(super) struct SessionCaller {
    pub(super) peer: Peer<RoleServer>,
    pub(super) abilities: Abilities,
}

#[async_trait]
impl Caller for SessionCaller {
    fn can_answer(&self, kind: QuestionKind) -> bool {
        self.abilities.can_answer(kind)
    }

    async fn ask(
        &self,
        questions: BTreeMap<String, Question>,
    ) -> Result<BTreeMap<String, Answer>, ActionError> {
        let mut answers = BTreeMap::new();
        for (key, question) in questions {
            if !self.can_answer(question.kind()) {
                return Err(unable());
            }
            let request = match input_request(&question)? {
                InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
                InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
                InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
                _ => return Err(ActionError::internal("a question of an unknown kind")),
            };
            let unanswered = |error| ActionError::internal(format!("the client did not answer: {error}"));
            let result = self.peer.send_request(request).await.map_err(unanswered)?;
            let answer = match result {
                ClientResult::ElicitResult(result) => json!(result),
                ClientResult::CreateMessageResult(result) => json!(result),
                ClientResult::ListRootsResult(result) => json!(result),
                _ => return Err(ActionError::internal("the client answered something else")),
            };
            let answer = Answer(answer);
            if !question.takes(&answer) {
                let message = "The client's answer is not what was asked for.";
                return Err(ActionError::new(Code::ValidationError, message));
            }
            answers.insert(key, answer);
        }
        Ok(answers)
    }
}

/// Why a call on the newer wire ends without an envelope.
#[derive(Clone, Debug)]
pub(super) enum Unanswered {
    /// These are to be answered first.
    Asked(BTreeMap<String, Question>),
    /// The client cannot answer such a question.
    Unable(QuestionKind),
}

/// Knows the answers so far, and holds the action where it asks for more.
pub(super) struct RoundCaller {
    abilities: Abilities,
    answers: Answers,
    asked: Mutex<Answers>,
    unanswered: Mutex<Option<Unanswered>>,
    stopped: Notify,
}

impl RoundCaller {
    pub(super) fn new(abilities: Abilities, answers: Answers) -> Self {
        let (asked, unanswered) = (Mutex::default(), Mutex::default());
        RoundCaller { abilities, answers, asked, unanswered, stopped: Notify::new() }
    }

    /// What was asked in this round, with the answers that were taken.
    pub(super) fn asked(&self) -> Answers {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the action asks something that is not answered yet.
    pub(super) async fn unanswered(&self) -> Unanswered {
        loop {
            self.stopped.notified().await;
            if let Some(unanswered) = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return unanswered;
            }
        }
    }

    async fn stop<T>(&self, unanswered: Unanswered) -> T {
        *self.unanswered.lock().unwrap_or_else(PoisonError::into_inner) = Some(unanswered);
        self.stopped.notify_one();
        // The call ends here: whoever waits for `unanswered` drops it.
        pending().await
    }
}

#[async_trait]
impl Caller for RoundCaller {
    fn can_answer(&self, kind: QuestionKind) -> bool {
        self.abilities.can_answer(kind)
    }

    async fn ask(
        &self,
        questions: BTreeMap<String, Question>,
    ) -> Result<BTreeMap<String, Answer>, ActionError> {
        let (mut answers, mut open) = (BTreeMap::new(), BTreeMap::new());
        for (key, question) in questions {
            let answer = self.answers.to(&key, &question).cloned();
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            asked.note(key.clone(), &question, answer.clone());
            match answer {
                Some(answer) => drop(answers.insert(key, answer)),
                None => drop(open.insert(key, question)),
            }
        }
        if let Some(question) = open.values().find(|question| !self.can_answer(question.kind())) {
            return self.stop(Unanswered::Unable(question.kind())).await;
        }
        if !open.is_empty() {
            return self.stop(Unanswered::Asked(open)).await;
        }
        Ok(answers)
    }
}
