//! Services with a protocol of their own, by templates of requests.

use serde_json::Value;
use ureq::http::Method;

use super::service::{ProbeFailure, ProbeReply, Service, StoredHistory, User};
use super::template::{Escape, RequestLine, Template};
use super::transport::ProbeTransport;

/// Templates of requests to an HTTP service.
pub(crate) struct HttpService {
    pub(crate) wire: ProbeTransport,
    pub(crate) request: RequestLine,
    pub(crate) body: Option<Template>,
    /// JSON pointer of the reply; `None` for the whole response.
    pub(crate) reply: Option<String>,
    pub(crate) history: Option<HistoryTemplate>,
}

/// Template of reading a user's history.
pub(crate) struct HistoryTemplate {
    pub(crate) request: RequestLine,
    /// JSON pointer of the list of messages; `None` for one text.
    pub(crate) items: Option<String>,
    /// JSON pointer of a message's text; `None` for the whole message.
    pub(crate) text: Option<String>,
}

impl Service for HttpService {
    fn say(&self, user: &mut User, message: &str) -> Result<ProbeReply, ProbeFailure> {
        let path = self.request.path.filled(user, message, Escape::Percent);
        let kind = self.wire.headers.value("content-type").unwrap_or("application/json").to_ascii_lowercase();
        let escape = match () {
            () if kind.contains("json") => Escape::Json,
            () if kind.contains("x-www-form-urlencoded") => Escape::Percent,
            () => Escape::Nothing,
        };
        let body = self.body.as_ref().map(|body| body.filled(user, message, escape));
        // Some servers insist on a body, be it empty.
        let body = body.or_else(|| (self.request.method == Method::POST).then(String::new));
        let whole = self.wire.ask((user, message), (&self.request.method, &path), body.as_deref())?;
        let text = match &self.reply {
            None => whole.clone(),
            Some(pointer) => {
                let found = json(&whole)?.pointer(pointer).map(text_of);
                found.ok_or_else(|| {
                    ProbeFailure::unusable(&format!("the response has no {pointer}"), &whole)
                })?
            }
        };
        Ok(ProbeReply { text, whole })
    }

    fn history(&self, user: &User) -> Option<Result<StoredHistory, ProbeFailure>> {
        self.history.as_ref().map(|history| {
            let path = history.request.path.filled(user, "", Escape::Percent);
            let whole = self.wire.ask((user, ""), (&history.request.method, &path), None)?;
            history.read(whole)
        })
    }
}

impl HistoryTemplate {
    fn read(&self, whole: String) -> Result<StoredHistory, ProbeFailure> {
        let Some(pointer) = &self.items else {
            return Ok(StoredHistory { items: vec![whole.clone()], is_users_only: false, whole });
        };
        let answer = json(&whole)?;
        let items = answer.pointer(pointer).and_then(Value::as_array);
        let items = items
            .ok_or_else(|| ProbeFailure::unusable(&format!("the history has no list {pointer}"), &whole))?;
        // If one message has no role, nothing is known about who wrote it.
        let is_users_only = items.iter().all(|item| role(item).is_some());
        let said = items.iter().filter(|item| !is_users_only || role(item).is_some_and(is_user));
        let text = |item: &Value| match &self.text {
            Some(pointer) => item.pointer(pointer).map(text_of).unwrap_or_default(),
            None => text_of(item),
        };
        Ok(StoredHistory { items: said.map(text).collect(), is_users_only, whole })
    }
}

/// Role of a message, by the usual member names.
fn role(item: &Value) -> Option<&str> {
    item.get("role").and_then(Value::as_str)
}

fn is_user(role: &str) -> bool {
    matches!(role.to_ascii_lowercase().as_str(), "user" | "human" | "role_user")
}

fn json(whole: &str) -> Result<Value, ProbeFailure> {
    sessile::json::from_str(whole).map_err(|_| ProbeFailure::unusable("the response is not JSON", whole))
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_count_if_every_message_has_one() {
        let items = |text: &str| {
            let line = RequestLine::parse("GET /").unwrap();
            let history =
                HistoryTemplate { request: line, items: Some("/m".into()), text: Some("/content".into()) };
            history.read(text.to_owned()).map(|stored| (stored.items, stored.is_users_only))
        };
        let both = r#"{"m": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}"#;
        assert_eq!(items(both).unwrap(), (vec!["a".to_owned()], true));
        let neither = r#"{"m": [{"content": "a"}, {"role": "assistant", "content": "b"}, {}]}"#;
        assert_eq!(items(neither).unwrap(), (vec!["a".to_owned(), "b".to_owned(), String::new()], false));
        assert!(items("{}").is_err() && items("<html>").is_err());
    }
}
