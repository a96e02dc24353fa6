//! Questions to the person behind the client, and their answers. An answer counts once, and only for its own call.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientResult, ElicitRequest, ElicitRequestParams,
    ElicitResult, ElicitationAction, InputRequest, InputRequests, InputRequiredResult, ProtocolVersion,
    ServerRequest,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use sessile_wire::hex::hex;

/// Timeout of a person's answer.
const PATIENCE: Duration = Duration::from_secs(600);

/// Limit of questions that are open at once; the oldest is dropped.
const OPEN: usize = 256;

/// Question to a person: a choice among words.
pub(super) struct Question<'a> {
    /// Key of the answer.
    pub(super) key: String,
    pub(super) message: String,
    /// Name of the choice in the answer.
    pub(super) field: &'static str,
    pub(super) title: &'static str,
    pub(super) choices: &'a [&'static str],
    /// State on which the question depends: an answer is void once it has changed.
    pub(super) condition: String,
    /// Whether the person has already allowed the command of this call.
    pub(super) is_run_allowed: bool,
}

/// Outcome of a question.
pub(super) enum Answer {
    /// Chosen word.
    Chosen(&'static str),
    /// No, nothing, or no choice that was offered.
    Declined,
    /// The client cannot ask anybody.
    Unable,
    /// The client is to ask, and to call again with the answer.
    Ask(Box<InputRequiredResult>),
}

/// Questions that clients are to ask since revision 2026-07-28, where the answer comes with the next call.
///
/// The client gets an unguessable `requestState` with each. It is known in this process alone, is bound to the tool, its
/// arguments and the question, and is forgotten with its first answer.
#[derive(Debug, Default)]
pub(super) struct OpenQuestions(Mutex<VecDeque<OpenQuestion>>);

#[derive(Debug)]
struct OpenQuestion {
    state: String,
    /// Call that the question is about.
    call: String,
    key: String,
    condition: String,
    is_run_allowed: bool,
    asked: Instant,
}

/// Call that can prompt the person behind the client.
pub(super) struct Asker<'a> {
    pub(super) questions: &'a OpenQuestions,
    pub(super) request: &'a CallToolRequestParams,
    pub(super) context: &'a RequestContext<RoleServer>,
    /// Question that this call answers.
    redeemed: Option<OpenQuestion>,
}

/// Whether a client can put a question with choices to its person.
pub(super) fn can_ask(capabilities: Option<ClientCapabilities>) -> bool {
    capabilities.and_then(|can| can.elicitation).is_some_and(|elicitation| {
        // A client that does not say which kind has forms: they came first.
        elicitation.form.is_some() || elicitation.url.is_none()
    })
}

impl OpenQuestions {
    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<OpenQuestion>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes and returns the open question of this call with this state.
    fn redeem(&self, state: &str, call: &str) -> Option<OpenQuestion> {
        let mut open = self.lock();
        open.retain(|question| question.asked.elapsed() < PATIENCE);
        // One of another call stays: its own answer may still come.
        let at = open.iter().position(|question| question.state == state && question.call == call)?;
        open.remove(at)
    }

    fn open(&self, question: &Question<'_>, call: String) -> Option<String> {
        let state = hex(&sessile::random::bytes::<16>().ok()?);
        let mut open = self.lock();
        if open.len() >= OPEN {
            open.pop_front();
        }
        open.push_back(OpenQuestion {
            state: state.clone(),
            call,
            key: question.key.clone(),
            condition: question.condition.clone(),
            is_run_allowed: question.is_run_allowed,
            asked: Instant::now(),
        });
        Some(state)
    }
}

impl<'a> Asker<'a> {
    pub(super) fn new(
        questions: &'a OpenQuestions,
        request: &'a CallToolRequestParams,
        context: &'a RequestContext<RoleServer>,
    ) -> Self {
        let state = request.request_state.as_deref();
        let redeemed = state.and_then(|state| questions.redeem(state, &call_text(request)));
        Asker { questions, request, context, redeemed }
    }

    /// Whether the person has allowed the command of this call, in an answer before.
    pub(super) fn is_run_allowed(&self) -> bool {
        self.redeemed.as_ref().is_some_and(|question| question.is_run_allowed)
    }

    /// Asks the person, or takes the answer that came with the call.
    pub(super) async fn ask(&mut self, question: &Question<'_>) -> Answer {
        if !can_ask(self.context.client_capabilities()) {
            return Answer::Unable;
        }
        let is_inline =
            self.context.protocol_version().is_some_and(|version| version >= ProtocolVersion::NO_INITIALIZE);
        let answer = if is_inline {
            let redeemed = self
                .redeemed
                .take_if(|redeemed| redeemed.key == question.key && redeemed.condition == question.condition);
            let answers = self.request.input_responses.as_ref().filter(|_| redeemed.is_some());
            let Some(answer) = answers.and_then(|answers| answers.get(&question.key)) else {
                return self.to_be_asked(question);
            };
            serde_json::from_value(answer.clone()).ok()
        } else {
            self.put(question).await
        };
        chosen(question, answer).map_or(Answer::Declined, Answer::Chosen)
    }

    /// From revision 2026-07-28 on the question is the result, and the answer comes with the next call.
    fn to_be_asked(&self, question: &Question<'_>) -> Answer {
        let state = self.questions.open(question, call_text(self.request));
        let (Some(request), Some(state)) = (question.request(), state) else { return Answer::Unable };
        let requests = InputRequests::from([(question.key.clone(), InputRequest::Elicitation(request))]);
        Answer::Ask(Box::new(InputRequiredResult::new(Some(requests), Some(state))))
    }

    /// Before, the server asks while the call waits.
    async fn put(&self, question: &Question<'_>) -> Option<ElicitResult> {
        let asked = self.context.peer.send_request(ServerRequest::ElicitRequest(question.request()?));
        let answer = tokio::select! {
            answer = asked => answer.ok()?,
            () = tokio::time::sleep(PATIENCE) => return None,
        };
        match answer {
            ClientResult::ElicitResult(result) => Some(result),
            _ => None,
        }
    }
}

/// The tool and the arguments of a call, as text to compare.
fn call_text(request: &CallToolRequestParams) -> String {
    json!([request.name, request.arguments]).to_string()
}

/// The chosen word, if it is one that was offered: the client may send anything.
fn chosen(question: &Question<'_>, answer: Option<ElicitResult>) -> Option<&'static str> {
    let answer = answer.filter(|answer| answer.action == ElicitationAction::Accept)?;
    let content: Value = answer.content?;
    let word = content[question.field].as_str()?;
    question.choices.iter().copied().find(|choice| *choice == word)
}

impl Question<'_> {
    fn request(&self) -> Option<ElicitRequest> {
        let schema = json!({
            "type": "object",
            "properties": {
                self.field: { "type": "string", "title": self.title, "enum": self.choices },
            },
            "required": [self.field],
        });
        let requested_schema = serde_json::from_value(schema).ok()?;
        let message = self.message.clone();
        let params = ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema };
        Some(ElicitRequest::new(params))
    }
}
