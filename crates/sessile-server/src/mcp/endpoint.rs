//! The endpoint: a message comes in by a POST, and its answer goes out with it, as JSON or, after notifications of progress,
//! as the last of server-sent events.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts as _, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::post;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use sessile::Code;
use sessile::text::{quoted, shortened};
use tokio::sync::mpsc;

use super::protocol::{
    CallParams, INVALID_PARAMS, INVALID_REQUEST, McpHeaders, McpMessage, McpRequest, PARSE_ERROR,
    ProtocolEra, ProtocolError, discovery_result, era, initialize_result, instructions, method_not_found,
    progress, response, with_ttl,
};
use super::tool::{self, ServiceTool};
use super::{call, origin};
use crate::account::TokenScope;
use crate::http::{
    AlreadyCharged, ApiCaller, ApiProblem, AppState, PeerAddress, RequestId, network_router, process_router,
    read, reply, taken,
};
use crate::limits::Limits;

/// Largest batch.
const TOGETHER: usize = 20;

/// Interval of progress notifications.
const PROGRESS: Duration = Duration::from_secs(1);

/// Bytes of an item beyond those that count for the end of a page: names, labels, numbers, and times.
const BESIDE_BYTES: usize = 32 << 10;

/// Routes of the API, plus the endpoint for agents, whose calls are requests of the same routes. `has_name` states
/// whether the host name of a request can be trusted.
pub(crate) fn router(app: AppState, has_name: bool) -> Router {
    let mcp = Mcp::new(process_router(app.clone()), app.upstream.is_some(), has_name);
    let handler =
        post(move |State(app): State<AppState>, request: Request| answer(app, mcp.clone(), request));
    network_router(app, "/mcp", handler)
}

/// State of the endpoint.
#[derive(Clone, Debug)]
struct Mcp(Arc<EndpointState>);

#[derive(Debug)]
struct EndpointState {
    /// Router that carries out the calls.
    api: Router,
    tools: Vec<ServiceTool>,
    /// Whether the host name of a request can be trusted.
    has_name: bool,
}

impl Mcp {
    /// Endpoint over an API. Tools that need an upstream are offered only with one.
    fn new(api: Router, has_upstream: bool, has_name: bool) -> Self {
        let tools = tool::all().into_iter().filter(|tool| has_upstream || !tool.asks_upstream).collect();
        Mcp(Arc::new(EndpointState { api, tools, has_name }))
    }
}

/// Response to a POST.
async fn answer(app: AppState, mcp: Mcp, request: Request) -> Result<Response, ApiProblem> {
    let (mut parts, body) = request.into_parts();
    // First: a page must not even learn whether a token is valid.
    origin::check(&parts.headers, mcp.0.has_name)?;
    let caller = ApiCaller::from_request_parts(&mut parts, &app).await?;
    if !takes_json(&parts.headers)? {
        let detail = "not acceptable: send `Accept: application/json, text/event-stream`";
        return Err(ApiProblem::new(StatusCode::NOT_ACCEPTABLE, Code::Usage, detail));
    }
    let bytes = taken(&parts.headers, body, &app).await?;
    let head = McpHeaders::of(&parts.headers)?;
    let scopes = caller.token().scopes.clone();
    // The calls have places of their own among those who are served at once: who waits must not take one away.
    drop(caller);
    let room = ResponseBudget::of(&app.limits);
    let takes_events = accepts(&parts.headers, &["text/event-stream"])? == Some(true);
    let mut conversation = Exchange { mcp, parts, head, scopes, is_paid: true, room };
    let message = match serde_json::from_slice(&bytes) {
        Ok(message) => message,
        Err(error) => {
            let why = format!("the body is not JSON: {}", shortened(&error.to_string(), 200));
            return error_response(ProtocolError::bad(PARSE_ERROR, why), None);
        }
    };
    match message {
        Value::Array(messages) => conversation.batch(messages).await,
        message => {
            let message = McpMessage::of(message);
            if takes_events
                && let McpMessage::Request(request) = &message
                && request.method == "tools/call"
                // A refusal has a status of its own, which a stream has not.
                && era(request, &conversation.head).is_ok()
                && let Some(token) = request.progress_token()
            {
                return Ok(streamed(conversation, message, token));
            }
            let answered = conversation.one(message).await;
            answered.map_or_else(accepted, |(status, answer)| reply::json(status, &answer))
        }
    }
}

/// Response that tells every second that a request goes on, and then its answer.
fn streamed(mut conversation: Exchange, message: McpMessage, token: Value) -> Response {
    let (pieces, body) = mpsc::channel(1);
    tokio::spawn(async move {
        let begun = Instant::now();
        let mut answer = std::pin::pin!(conversation.one(message));
        let mut interval = tokio::time::interval_at((begun + PROGRESS).into(), PROGRESS);
        loop {
            let (message, is_last) = tokio::select! {
                answer = &mut answer => (answer.map(|(_, answer)| answer), true),
                _ = interval.tick() => (Some(progress(&token, begun.elapsed().as_secs_f64())), false),
                // Whoever has gone is not waited for, as without a stream.
                () = pieces.closed() => return,
            };
            let event = message.map(|message| Bytes::from(format!("event: message\ndata: {message}\n\n")));
            if let Some(event) = event {
                // A client that does not read gets the answer later, or none.
                let _ = pieces.send(event).await;
            }
            if is_last {
                return;
            }
        }
    });
    reply::events(body)
}

/// Whether a client accepts JSON.
fn takes_json(headers: &HeaderMap) -> Result<bool, ApiProblem> {
    // No Accept header means anything (RFC 9110, 12.5.1).
    Ok(accepts(headers, &["application/json", "application/*", "*/*"])?.unwrap_or(true))
}

/// Whether a client accepts one of these media types; nothing if it does not say. The header is a list, which may come in
/// several lines.
fn accepts(headers: &HeaderMap, media: &[&str]) -> Result<Option<bool>, ApiProblem> {
    let mut accepted = None;
    for line in headers.get_all(header::ACCEPT) {
        let line = line.to_str().map_err(|_| ApiProblem::usage("the header accept is not plain text"))?;
        let line = line.to_ascii_lowercase();
        let is_accepted = media.iter().any(|media| line.contains(media));
        accepted = Some(accepted == Some(true) || is_accepted);
    }
    Ok(accepted)
}

/// Response without content.
fn accepted() -> Result<Response, ApiProblem> {
    Ok(reply::empty(StatusCode::ACCEPTED))
}

fn error_response(refused: ProtocolError, id: Option<&Value>) -> Result<Response, ApiProblem> {
    reply::json(refused.status, &refused.into_response(id))
}

/// Request and its caller.
struct Exchange {
    mcp: Mcp,
    parts: Parts,
    head: McpHeaders,
    scopes: Vec<TokenScope>,
    /// Whether the admitted request still covers one call: every further call of a batch is charged by itself.
    is_paid: bool,
    room: ResponseBudget,
}

/// Budget for the responses of one request.
#[derive(Debug)]
struct ResponseBudget {
    /// The bytes of all answers together after which nothing more is called.
    enough: usize,
    /// The most bytes of one.
    most: usize,
    held: usize,
}

impl ResponseBudget {
    /// Budget of one page, whose last item may exceed it.
    fn of(limits: &Limits) -> Self {
        let things = usize::try_from(limits.page).unwrap_or_default().saturating_mul(BESIDE_BYTES);
        let most = limits.page_bytes.saturating_add(limits.body_bytes).saturating_add(things);
        ResponseBudget { enough: limits.page_bytes, most, held: 0 }
    }
}

impl Exchange {
    async fn batch(&mut self, messages: Vec<Value>) -> Result<Response, ApiProblem> {
        let wrong = |why: &str| error_response(ProtocolError::bad(INVALID_REQUEST, why), None);
        if !self.head.allows_batches() {
            return wrong("this protocol revision has no batches: send one message");
        }
        if messages.is_empty() || messages.len() > TOGETHER {
            return wrong(&format!("invalid batch: 1 to {TOGETHER} messages required"));
        }
        // What is refused as a whole is not begun.
        if messages.iter().any(|message| message["method"] == "initialize") {
            return wrong("`initialize` is not allowed in a batch");
        }
        let mut answers = Vec::new();
        // One after the other, because the budget counts the sizes of the answers before.
        for message in messages {
            answers.extend(self.one(McpMessage::of(message)).await.map(|(_, answer)| answer));
        }
        if answers.is_empty() { accepted() } else { reply::json(StatusCode::OK, &answers) }
    }

    /// The status and the answer to a message, if it has one.
    async fn one(&mut self, message: McpMessage) -> Option<(StatusCode, Value)> {
        let mut asked = match message {
            McpMessage::Request(asked) => asked,
            McpMessage::Silent => return None,
            McpMessage::Wrong(id, refused) => {
                return Some((refused.status, refused.into_response(id.as_ref())));
            }
        };
        let answer = match era(&asked, &self.head) {
            Ok(era) => self.result(&mut asked, era).await.map(|result| response(&asked.id, result, era)),
            Err(refused) => Err(refused),
        };
        Some(match answer {
            Ok(answer) => (StatusCode::OK, answer),
            Err(refused) => (refused.status, refused.into_response(Some(&asked.id))),
        })
    }

    async fn result(&mut self, asked: &mut McpRequest, era: ProtocolEra) -> Result<Value, ProtocolError> {
        match (asked.method.as_str(), era) {
            ("initialize", ProtocolEra::Greeting) => {
                initialize_result(asked, &instructions(|name| self.has(name)))
            }
            ("ping", ProtocolEra::Greeting) => Ok(json!({})),
            ("server/discover", _) => Ok(discovery_result(&instructions(|name| self.has(name)))),
            ("tools/list", ProtocolEra::Greeting) => Ok(self.tools()),
            ("tools/list", ProtocolEra::Inline) => Ok(with_ttl(self.tools())),
            ("tools/call", _) => self.call(asked).await,
            (method, era) => Err(method_not_found(method, era)),
        }
    }

    /// Tools that the token allows.
    fn allowed(&self) -> impl Iterator<Item = &ServiceTool> {
        self.mcp.0.tools.iter().filter(|tool| tool.scopes.iter().all(|scope| self.scopes.contains(scope)))
    }

    fn has(&self, name: &str) -> bool {
        self.allowed().any(|tool| tool.name == name)
    }

    fn tools(&self) -> Value {
        json!({ "tools": self.allowed().map(ServiceTool::listed).collect::<Vec<_>>() })
    }

    async fn call(&mut self, request: &mut McpRequest) -> Result<Value, ProtocolError> {
        let CallParams { name, arguments } =
            request.take_params("`name` is text, and `arguments` is an object")?;
        let name = name.as_str();
        let tools = &self.mcp.0.tools;
        let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
            let near = sessile::names::nearest(name, tools.iter().map(|tool| tool.name));
            let meant = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
            let why = format!("tool {} not found{meant}", quoted(shortened(name, 60)));
            return Err(ProtocolError::new(INVALID_PARAMS, why));
        };
        if self.room.held > self.room.enough {
            let why = "the response to the batch is too large; this call was not executed";
            return Ok(call::error_result(&ApiProblem::too_large(why).details()));
        }
        match call::request(tool, arguments.unwrap_or_default(), &self.parts.headers) {
            Ok(request) => Ok(self.carried_out(request).await),
            Err(problem) => Ok(call::error_result(&problem.details())),
        }
    }

    /// Has the API carry a request out, as one of the same client.
    async fn carried_out(&mut self, mut request: Request) -> Value {
        let from = &self.parts.extensions;
        if let Some(peer) = from.get::<PeerAddress>() {
            request.extensions_mut().insert(*peer);
        }
        if let Some(RequestId(id)) = from.get()
            && let Ok(id) = HeaderValue::from_str(id)
        {
            // The log lines of a batch's calls share the id of their HTTP request.
            request.headers_mut().insert(RequestId::HEADER, id);
        }
        // The HTTP request was charged already; its first call must not be charged twice.
        if std::mem::take(&mut self.is_paid) {
            request.extensions_mut().insert(AlreadyCharged);
        }
        let api = TowerToHyperService::new(self.mcp.0.api.clone());
        let response = api.call(request).await.unwrap_or_else(|never| match never {});
        let status = response.status();
        let body: Body = response.into_body();
        match read(body, self.room.most).await {
            Ok(body) => {
                self.room.held = self.room.held.saturating_add(body.len());
                call::tool_result(status, &body)
            }
            Err(_) => {
                let why =
                    format!("the response is larger than {} bytes: request a smaller page", self.room.most);
                call::error_result(&ApiProblem::too_large(why).details())
            }
        }
    }
}
