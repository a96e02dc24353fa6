//! Asking a session service.

use std::time::{Duration, Instant};

use serde_json::Value;
use sessile::agents::Agent;
use sessile::error::UsageError;
use sessile::session::SessionId;
use sessile::vault::{Secret, agent_url};
use sessile::{Error, State};
use sessile_wire::backoff::Backoff;
use ureq::http::Method;

use super::args::server_of;
use super::trouble::{Problem, Subject, Trouble, not_let_in};
use crate::a2a::{Authorize, Credential};
use crate::cli::Cx;
use crate::error::Failure;
use crate::http::{Address, Coming, Http, Patience, Roots, Sending};
use crate::talk::Credentials;
use crate::unlocked::unlocked;

/// How long an answer may take, beside what the service was told to wait.
const ANSWER: Duration = Duration::from_secs(30);

/// For how long one that is away is asked again.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Backoff between retries.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(1);

/// The largest answer that is read: a page of a service, and some more.
const LARGEST: usize = 16 << 20;

/// A session service, with a token for it.
pub(crate) struct Server {
    url: String,
    http: Http,
    /// The header that lets this user in.
    header: (String, Secret),
}

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Request {
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    body: Option<Value>,
    /// The revision that a change is only to be made at.
    revision: Option<i64>,
    /// Under which a change is known again.
    key: Option<String>,
    /// How long the service may wait before it answers.
    waits: Duration,
    /// How long all of it may take, if there is an end to that.
    total: Option<Duration>,
}

impl Request {
    pub(crate) fn get(segments: &[&str]) -> Self {
        Request {
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

    /// A change, with a key of its own.
    fn change(method: Method, segments: &[&str]) -> Result<Self, Error> {
        // What is random in it is enough.
        let key = SessionId::new(0)?;
        Ok(Request { method, key: Some(key.to_string()), ..Request::get(segments) })
    }

    pub(crate) fn post(segments: &[&str], body: Value) -> Result<Self, Error> {
        Ok(Request { body: Some(body), ..Request::change(Method::POST, segments)? })
    }

    /// What is no change of a user's, and has no key.
    pub(crate) fn plain_post(segments: &[&str], body: Value) -> Self {
        Request { method: Method::POST, body: Some(body), ..Request::get(segments) }
    }

    pub(crate) fn patch(segments: &[&str], body: Value) -> Result<Self, Error> {
        Ok(Request { body: Some(body), ..Request::change(Method::PATCH, segments)? })
    }

    pub(crate) fn put(segments: &[&str], body: Value) -> Result<Self, Error> {
        Ok(Request { body: Some(body), ..Request::change(Method::PUT, segments)? })
    }

    pub(crate) fn delete(segments: &[&str]) -> Result<Self, Error> {
        Request::change(Method::DELETE, segments)
    }

    /// The key of a change, under which the same one can be asked for again.
    pub(crate) fn key(&self) -> Option<String> {
        self.key.clone()
    }

    /// The same change as the one with this key, if there is one.
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

    /// Only at this revision; 0 means that there must be none.
    #[must_use]
    pub(crate) fn at_revision(mut self, revision: Option<i64>) -> Self {
        self.revision = revision;
        self
    }

    /// The service waits for so long by itself.
    #[must_use]
    pub(crate) fn waiting(mut self, time: Duration) -> Self {
        self.waits = time;
        self
    }
}

impl Request {
    /// All of it takes no longer than this.
    #[must_use]
    pub(crate) fn within(mut self, time: Option<Duration>) -> Self {
        self.total = time;
        self
    }
}

impl Server {
    /// The server that a call means, with the token that is bound to it; `None` if it means this machine.
    pub(crate) fn of(cx: &Cx, state: &State) -> Result<Option<Self>, Failure> {
        let Some(url) = server_of(state)? else { return Ok(None) };
        let url = checked_url(&url)?;
        let agent = Agent { name: None, url: url.clone(), credential: None, origin: None };
        let credentials = Credentials::new(state, &agent);
        let found = unlocked(cx, state, || credentials.credentials_for(&url))?;
        let header = found.into_iter().find_map(|one| match one {
            Credential::Header(name, value) => Some((name, value)),
            _ => None,
        });
        let missing = || not_let_in(&url, format!("there is no token for {url}"));
        let header = header.ok_or_else(missing)?;
        Ok(Some(Server { http: Http::new(Roots::System), url, header }))
    }

    /// A server with a token that is not in the vault yet, or none at all.
    pub(crate) fn with_token(url: &str, token: Option<&Secret>) -> Result<Self, Error> {
        let value =
            token.map_or_else(|| Secret::new(""), |token| Secret::new(format!("Bearer {}", token.expose())));
        Ok(Server {
            http: Http::new(Roots::System),
            url: checked_url(url)?,
            header: ("authorization".to_owned(), value),
        })
    }

    /// Its URL, in the one form in which addresses are compared.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Asks, and again while it is away; what it answers.
    pub(crate) fn ask(&self, request: &Request, about: &Subject<'_>) -> Result<Value, Failure> {
        self.try_ask(request, PATIENCE).map_err(|trouble| trouble.told(&self.url, about))
    }

    /// The same, with patience of one's own, and with the failure as it is.
    pub(crate) fn try_ask(&self, request: &Request, patience: Duration) -> Result<Value, Trouble> {
        let (begun, mut backoff) = (Instant::now(), Backoff::new(FIRST_DELAY, MAX_DELAY));
        loop {
            let trouble = match self.once(request) {
                Ok(answer) => return Ok(answer),
                Err(trouble) => trouble,
            };
            let delay = match &trouble {
                Trouble::Http(crate::http::HttpError::Unreachable { .. }) => Some(backoff.next_delay()),
                Trouble::Refused(problem) if problem.status == 503 || problem.status == 429 => {
                    Some(problem.retry_after.unwrap_or_else(|| backoff.next_delay()))
                }
                _ => None,
            };
            match delay {
                Some(delay) if begun.elapsed() + delay <= patience => std::thread::sleep(delay),
                _ => return Err(trouble),
            }
        }
    }

    fn once(&self, request: &Request) -> Result<Value, Trouble> {
        let mut coming = self.send(request, "application/json")?;
        let body = coming.read_all(LARGEST).map_err(Trouble::Http)?;
        if !(200..300).contains(&coming.status) {
            return Err(Trouble::Refused(Problem::of(coming.status, &body, coming.retry_after())));
        }
        if body.is_empty() {
            return Ok(Value::Null);
        }
        sessile::json::from_slice(&body).map_err(|_| Trouble::Refused(Problem::of(coming.status, b"", None)))
    }

    /// Asks for a stream of events; anything else is the trouble that it tells of.
    pub(super) fn stream(&self, request: &Request) -> Result<Coming, Trouble> {
        let mut coming = self.send(request, "text/event-stream")?;
        if (200..300).contains(&coming.status) {
            return Ok(coming);
        }
        let body = coming.read_all(LARGEST).map_err(Trouble::Http)?;
        Err(Trouble::Refused(Problem::of(coming.status, &body, coming.retry_after())))
    }

    fn send(&self, request: &Request, accept: &str) -> Result<Coming, Trouble> {
        let mut url = format!("{}{}", self.url, request.path);
        if !request.query.is_empty() {
            let pairs: Vec<(&str, &str)> =
                request.query.iter().map(|(name, value)| (*name, value.as_str())).collect();
            url = format!("{url}?{}", *crate::http::form(&pairs));
        }
        let address = Address::parse(&url).map_err(Trouble::Http)?;
        let body = request.body.as_ref().map(ToString::to_string);
        let revision = request.revision.map(|revision| format!("\"{revision}\""));
        let mut headers = vec![("accept", accept)];
        if !self.header.1.is_empty() {
            headers.push((self.header.0.as_str(), self.header.1.expose()));
        }
        if body.is_some() {
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
        let sending = Sending {
            method: request.method.clone(),
            address: &address,
            headers: &headers,
            body: body.as_ref().map(String::as_bytes),
        };
        let patience = Patience { head: ANSWER + request.waits, silence: ANSWER, total: request.total };
        self.http.exchange(&sending, patience).map_err(Trouble::Http)
    }

    /// All pages of a list, up to so many things.
    pub(crate) fn pages(
        &self,
        segments: &[&str],
        query: &[(&'static str, String)],
        list: &str,
        most: usize,
        about: &Subject<'_>,
    ) -> Result<Vec<Value>, Failure> {
        let (mut found, mut cursor): (Vec<Value>, Option<String>) = (Vec::new(), None);
        while found.len() < most {
            let mut request = Request::get(segments);
            request.query = query.to_vec();
            if let Some(cursor) = &cursor {
                request.query.retain(|(name, _)| *name != "cursor");
                request = request.with("cursor", cursor);
            }
            let mut page = self.ask(&request, about)?;
            if let Value::Array(items) = page[list].take() {
                found.extend(items);
            }
            // The same place twice would go on for ever.
            let next = page["next"].as_str().map(str::to_owned);
            if next.is_none() || next == cursor {
                break;
            }
            cursor = next;
        }
        found.truncate(most);
        Ok(found)
    }

    /// Who one is there.
    pub(crate) fn me(&self) -> Result<Value, Failure> {
        self.ask(&Request::get(&["v1", "me"]), &Subject::default())
    }
}

/// A URL that a token may be sent to, in the one form in which they are compared.
pub(crate) fn checked_url(url: &str) -> Result<String, Error> {
    let url = agent_url(url)?;
    match Address::parse(&url) {
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
    fn what_stands_in_a_path_stays_in_its_part() {
        let request = Request::get(&["v1", "a/b c", "..?x#\u{e9}", ".."]);
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
