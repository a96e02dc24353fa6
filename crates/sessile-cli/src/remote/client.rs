//! Client of a session service: requests with the bound token, retries while the service is unavailable.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use sessile::agents::Agent;
use sessile::error::UsageError;
use sessile::session::SessionId;
use sessile::site::agent_url;
use sessile::vault::Secret;
use sessile::{Error, State};
use sessile_wire::backoff::Backoff;
use sessile_wire::service::{CursorPage, WhoAmI};
use ureq::http::Method;

use super::args::server_of;
use super::error::{RemoteError, ServiceProblem, Subject, unauthorized};
use crate::a2a::{CredentialProvider, RequestCredential};
use crate::agent_session::AgentCredentials;
use crate::cli::Cx;
use crate::error::Failure;
use crate::http::{
    HttpAddress, HttpClient, HttpError, HttpRequest, HttpResponse, Timeouts, TrustRoots, UnreachableReason,
};
use crate::output::Output;
use crate::vault_unlock::with_unlocked_vault;

/// Longest wait for a response, beyond the wait that the request states.
const ANSWER: Duration = Duration::from_secs(30);

/// Time for retries while the service is unavailable.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Time for retries while a server refuses connections that has accepted none from this process: it restarts at best, and
/// more often the address is wrong.
const REFUSED_PATIENCE: Duration = Duration::from_secs(1);

/// Backoff between retries.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(1);

/// Largest response that is read: a page, and some more.
const LARGEST: usize = 16 << 20;

/// Client of a session service, with the token for it.
pub(crate) struct ServiceClient {
    url: String,
    http: HttpClient,
    /// Header that authorizes the user.
    header: (String, Secret),
    /// Output for the progress of retries.
    out: Option<Output>,
    /// Whether the server has accepted a connection.
    was_reached: AtomicBool,
}

/// A request to a session service.
#[derive(Debug)]
pub(crate) struct ServiceRequest {
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    body: Option<String>,
    /// Revision that the changed resource must have.
    revision: Option<i64>,
    /// Idempotency key of a change.
    key: Option<String>,
    /// Time that the service itself may wait before it responds.
    waits: Duration,
    /// Timeout of the whole exchange.
    total: Option<Duration>,
}

impl ServiceRequest {
    pub(crate) fn get(segments: &[&str]) -> Self {
        ServiceRequest {
            method: Method::GET,
            path: segments.iter().map(|segment| format!("/{}", encoded(segment))).collect(),
            query: Vec::new(),
            body: None,
            revision: None,
            key: None,
            waits: Duration::ZERO,
            total: None,
        }
    }

    /// A change, with a new idempotency key.
    fn change(method: Method, segments: &[&str]) -> Result<Self, Error> {
        // Only the random part matters: the key is compared, and not sorted by time.
        let key = SessionId::new(0)?;
        Ok(ServiceRequest { method, key: Some(key.to_string()), ..ServiceRequest::get(segments) })
    }

    pub(crate) fn post(segments: &[&str], body: &impl Serialize) -> Result<Self, Error> {
        Ok(ServiceRequest { body: Some(json(body)?), ..ServiceRequest::change(Method::POST, segments)? })
    }

    /// ServiceRequest of the login, which is not a user's and has no idempotency key.
    pub(crate) fn plain_post(segments: &[&str], body: &impl Serialize) -> Result<Self, Error> {
        Ok(ServiceRequest { method: Method::POST, body: Some(json(body)?), ..ServiceRequest::get(segments) })
    }

    pub(crate) fn patch(segments: &[&str], body: &impl Serialize) -> Result<Self, Error> {
        Ok(ServiceRequest { body: Some(json(body)?), ..ServiceRequest::change(Method::PATCH, segments)? })
    }

    pub(crate) fn put(segments: &[&str], body: &impl Serialize) -> Result<Self, Error> {
        Ok(ServiceRequest { body: Some(json(body)?), ..ServiceRequest::change(Method::PUT, segments)? })
    }

    pub(crate) fn delete(segments: &[&str]) -> Result<Self, Error> {
        ServiceRequest::change(Method::DELETE, segments)
    }

    /// Idempotency key, to send the same change again.
    pub(crate) fn key(&self) -> Option<String> {
        self.key.clone()
    }

    /// Sends the change under the idempotency key of an earlier attempt.
    #[must_use]
    pub(crate) fn under(mut self, key: Option<String>) -> Self {
        self.key = key.or(self.key);
        self
    }

    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: &impl ToString) -> Self {
        self.query.push((name, value.to_string()));
        self
    }

    /// Requires a revision of the resource; 0 requires that it does not exist.
    #[must_use]
    pub(crate) fn at_revision(mut self, revision: Option<i64>) -> Self {
        self.revision = revision;
        self
    }

    /// Lets the service itself wait for so long.
    #[must_use]
    pub(crate) fn waiting(mut self, time: Duration) -> Self {
        self.waits = time;
        self
    }

    /// Limits the whole exchange.
    #[must_use]
    pub(crate) fn within(mut self, time: Option<Duration>) -> Self {
        self.total = time;
        self
    }
}

impl ServiceClient {
    /// The server that a call means, with the token that is bound to it; `None` if it means this machine.
    pub(crate) fn of(cx: &Cx, state: &State) -> Result<Option<Self>, Failure> {
        let Some(url) = server_of(state)? else { return Ok(None) };
        let url = checked_url(&url)?;
        let agent = Agent::at(url.clone());
        let credentials = AgentCredentials::new(state, &agent);
        let found = with_unlocked_vault(cx, state, || credentials.credentials_for(&url))?;
        let header = found.into_iter().find_map(|one| match one {
            RequestCredential::Header(name, value) => Some((name, value)),
            _ => None,
        });
        // Last: what the vault binds to the server was chosen for it.
        let header = header.or_else(|| token_variable(state).map(|token| bearer(&token)));
        let missing = || unauthorized(&url, format!("no token found for {url}"));
        let header = header.ok_or_else(missing)?;
        Ok(Some(ServiceClient {
            http: HttpClient::new(TrustRoots::System),
            url,
            header,
            out: Some(cx.out.clone()),
            was_reached: AtomicBool::new(false),
        }))
    }

    /// A server with a token that is not in the vault yet, or none at all.
    pub(crate) fn with_token(url: &str, token: Option<&Secret>) -> Result<Self, Error> {
        Ok(ServiceClient {
            http: HttpClient::new(TrustRoots::System),
            url: checked_url(url)?,
            header: bearer(token.unwrap_or(&Secret::new(""))),
            out: None,
            was_reached: AtomicBool::new(false),
        })
    }

    /// With progress of retries on a terminal.
    #[must_use]
    pub(crate) fn with_progress(self, out: &Output) -> Self {
        ServiceClient { out: Some(out.clone()), ..self }
    }

    /// URL, in the one form in which addresses are compared.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Sends a request, with retries while the service is unavailable.
    pub(crate) fn ask<T: DeserializeOwned>(
        &self,
        request: &ServiceRequest,
        about: &Subject<'_>,
    ) -> Result<T, Failure> {
        self.try_ask(request, PATIENCE).map_err(|error| error.into_failure(&self.url, about))
    }

    /// Sends a request that changes something and discards the response.
    pub(crate) fn tell(&self, request: &ServiceRequest, about: &Subject<'_>) -> Result<(), Failure> {
        self.ask::<IgnoredAny>(request, about).map(drop)
    }

    /// Sends a request, with retries for as long as `patience` allows.
    pub(crate) fn try_ask<T: DeserializeOwned>(
        &self,
        request: &ServiceRequest,
        patience: Duration,
    ) -> Result<T, RemoteError> {
        let (begun, mut backoff) = (Instant::now(), Backoff::new(FIRST_DELAY, MAX_DELAY));
        let mut progress = None;
        loop {
            let error = match self.once(request) {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            let mut patience = patience;
            let delay = match &error {
                // Safe for a change too: its idempotency key makes it once.
                RemoteError::Http(HttpError::Unreachable { reason, .. }) if reason.is_transient() => {
                    let is_refused = matches!(reason, UnreachableReason::Refused(_));
                    if is_refused && !self.was_reached.load(Ordering::Relaxed) {
                        patience = patience.min(REFUSED_PATIENCE);
                    }
                    Some(backoff.next_delay())
                }
                RemoteError::Refused(problem) if problem.status == 503 || problem.status == 429 => {
                    Some(problem.retry_after.unwrap_or_else(|| backoff.next_delay()))
                }
                _ => None,
            };
            match delay {
                // Fails now instead of sleeping towards a deadline that is certain to pass.
                Some(delay) if begun.elapsed() + delay <= patience => {
                    tracing::info!(server = %self.url, ?delay, "retrying request");
                    if progress.is_none() {
                        let text = || format!("retrying {}", self.url);
                        progress = self.out.as_ref().map(|out| out.slow_step(text));
                    }
                    std::thread::sleep(delay);
                }
                _ => return Err(error),
            }
        }
    }

    fn once<T: DeserializeOwned>(&self, request: &ServiceRequest) -> Result<T, RemoteError> {
        let mut coming = self.send(request, "application/json")?;
        let body = coming.read_all(LARGEST).map_err(RemoteError::Http)?;
        if !(200..300).contains(&coming.status) {
            return Err(refused(&coming, &body));
        }
        // 204 has no body, and whoever asks for it expects nothing.
        let body = if body.is_empty() { b"null" } else { &body[..] };
        sessile::json::from_slice(body).map_err(RemoteError::InvalidResponse)
    }

    /// Requests a stream of events.
    pub(super) fn stream(&self, request: &ServiceRequest) -> Result<HttpResponse, RemoteError> {
        let mut coming = self.send(request, "text/event-stream")?;
        if (200..300).contains(&coming.status) {
            return Ok(coming);
        }
        let body = coming.read_all(LARGEST).map_err(RemoteError::Http)?;
        Err(refused(&coming, &body))
    }

    fn send(&self, request: &ServiceRequest, accept: &str) -> Result<HttpResponse, RemoteError> {
        let mut url = format!("{}{}", self.url, request.path);
        if !request.query.is_empty() {
            let pairs: Vec<(&str, &str)> =
                request.query.iter().map(|(name, value)| (*name, value.as_str())).collect();
            url = format!("{url}?{}", *crate::http::form(&pairs));
        }
        let address = HttpAddress::parse(&url).map_err(RemoteError::Http)?;
        let revision = request.revision.map(|revision| format!("\"{revision}\""));
        let mut headers = vec![("accept", accept)];
        if !self.header.1.is_empty() {
            headers.push((self.header.0.as_str(), self.header.1.expose()));
        }
        if request.body.is_some() {
            headers.push(("content-type", "application/json"));
        }
        if let Some(key) = &request.key {
            headers.push(("idempotency-key", key));
        }
        match (request.revision, &revision) {
            (Some(0), _) => headers.push(("if-none-match", "*")),
            (_, Some(tag)) => headers.push(("if-match", tag)),
            _ => {}
        }
        let sending = HttpRequest {
            method: request.method.clone(),
            address: &address,
            headers: &headers,
            body: request.body.as_deref().map(str::as_bytes),
        };
        let patience =
            Timeouts { write: None, head: ANSWER + request.waits, silence: ANSWER, total: request.total };
        let coming = self.http.exchange(&sending, patience).map_err(RemoteError::Http)?;
        self.was_reached.store(true, Ordering::Relaxed);
        Ok(coming)
    }

    /// Items of all pages of a list, up to a number.
    pub(crate) fn pages<P: CursorPage + DeserializeOwned>(
        &self,
        segments: &[&str],
        query: &[(&'static str, String)],
        most: usize,
        about: &Subject<'_>,
    ) -> Result<Vec<P::Item>, Failure> {
        let (mut found, mut cursor): (Vec<P::Item>, Option<String>) = (Vec::new(), None);
        while found.len() < most {
            let mut request = ServiceRequest::get(segments);
            request.query = query.to_vec();
            if let Some(cursor) = &cursor {
                // The caller's cursor is that of the first page.
                request.query.retain(|(name, _)| *name != "cursor");
                request = request.with("cursor", cursor);
            }
            let (items, next) = self.ask::<P>(&request, about)?.into_parts();
            found.extend(items);
            // The same cursor twice would go on for ever.
            if next.is_none() || next == cursor {
                break;
            }
            cursor = next;
        }
        found.truncate(most);
        Ok(found)
    }

    /// User and token that requests are made with.
    pub(crate) fn me(&self) -> Result<WhoAmI, Failure> {
        self.ask(&ServiceRequest::get(&["v1", "me"]), &Subject::default())
    }
}

/// The token that a variable gives for the server, where the vault has none.
pub(super) fn token_variable(state: &State) -> Option<Secret> {
    let token = state.world().variable(&state.app().variable("TOKEN"))?.to_str()?.trim();
    (!token.is_empty()).then(|| Secret::new(token))
}

/// Authorization header; empty without a token.
fn bearer(token: &Secret) -> (String, Secret) {
    let value = if token.is_empty() { String::new() } else { format!("Bearer {}", token.expose()) };
    ("authorization".to_owned(), Secret::new(value))
}

fn json(body: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(body)
        .map_err(|error| UsageError::Arguments(format!("cannot encode the request: {error}")).into())
}

fn refused(coming: &HttpResponse, body: &[u8]) -> RemoteError {
    RemoteError::Refused(ServiceProblem::from_response(coming.status, body, coming.retry_after()))
}

/// A URL that a token may be sent to, in the one form in which they are compared.
pub(crate) fn checked_url(url: &str) -> Result<String, Error> {
    let url = agent_url(url)?;
    match HttpAddress::parse(&url) {
        Ok(_) => Ok(url),
        Err(error) => Err(UsageError::Arguments(error.to_string()).into()),
    }
}

/// A part of a path. Dots alone would lead upwards.
fn encoded(segment: &str) -> String {
    let is_dots = segment.bytes().all(|byte| byte == b'.');
    if is_dots { "%2E".repeat(segment.len()) } else { sessile_wire::percent::encode(segment) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_segment_is_escaped() {
        let request = ServiceRequest::get(&["v1", "a/b c", "..?x#\u{e9}", ".."]);
        assert_eq!(request.path, "/v1/a%2Fb%20c/..%3Fx%23%C3%A9/%2E%2E");
    }

    #[test]
    fn a_token_goes_to_https_or_this_machine_only() {
        assert_eq!(checked_url("https://S.example:443/x/").unwrap(), "https://s.example/x");
        assert!(checked_url("http://127.0.0.1:8737").is_ok());
        for url in ["http://s.example", "ftp://s.example", "s.example", "https://ann:pw@s.example"] {
            assert!(checked_url(url).is_err(), "{url}");
        }
    }
}
