//! Log of the requests to an agent and its replies, for `--debug` and for the chat. Credentials never reach it.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use sessile::secrets::looks_secret;
use sessile::text::{shortened, shown};
use ureq::http::HeaderMap;

use crate::http::{HttpRequest, ResponseObserver};

/// Destination of the lines.
pub(crate) type WireSink = Box<dyn Fn(String) + Send + Sync>;

/// Stand-in for a value that may be a secret.
const REDACTED: &str = "[redacted]";

/// Longest line of a body.
const MAX_LINE: usize = 16 << 10;

/// Request headers whose values the client makes itself. A credential may travel in any other.
const OWN_HEADERS: [&str; 7] = [
    "accept",
    "a2a-version",
    "a2a-extensions",
    "x-a2a-extensions",
    "cache-control",
    "content-type",
    "if-none-match",
];

/// Fields of the protocol that are named like secrets and hold none.
const PLAIN_FIELDS: [&str; 4] = ["pageToken", "nextPageToken", "tokenUrl", "securitySchemes"];

/// Lines of requests with `>` and of replies with `<`, redacted and safe for terminals.
pub(super) struct WireLog {
    sink: WireSink,
    /// Line of a body that has not ended.
    pending: Mutex<Vec<u8>>,
}

impl WireLog {
    pub(super) fn new(sink: WireSink) -> Self {
        WireLog { sink, pending: Mutex::default() }
    }

    fn line(&self, mark: char, text: &str) {
        (self.sink)(format!("{mark} {}", shown(shortened(text, MAX_LINE))));
    }

    fn body_line(&self, mark: char, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        if text.is_empty() {
            return;
        }
        // An item of an event stream is JSON after the name of its field.
        let (field, json) =
            text.strip_prefix("data:").map_or(("", text), |json| ("data: ", json.trim_start()));
        match sessile::json::from_str::<Value>(json) {
            Ok(value) => self.line(mark, &format!("{field}{}", redacted(value))),
            Err(_) => self.line(mark, text),
        }
    }

    fn flush(&self) {
        let pending = std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        self.body_line('<', &pending);
    }
}

impl ResponseObserver for WireLog {
    fn request(&self, request: &HttpRequest<'_>) {
        self.flush();
        // An address is displayed without its query, which may hold a key.
        self.line('>', &format!("{} {}", request.method, request.address));
        for (name, value) in request.headers {
            let name = name.to_ascii_lowercase();
            let value = if OWN_HEADERS.contains(&name.as_str()) { value } else { REDACTED };
            self.line('>', &format!("{name}: {value}"));
        }
        if let Some(body) = request.body {
            self.body_line('>', body);
        }
    }

    fn head(&self, status: u16, headers: &HeaderMap) {
        self.line('<', &format!("status {status}"));
        for (name, value) in headers {
            let is_secret = looks_secret(name.as_str()) || name.as_str() == "set-cookie";
            let value = String::from_utf8_lossy(value.as_bytes());
            self.line('<', &format!("{name}: {}", if is_secret { REDACTED } else { &value }));
        }
    }

    fn body(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return self.flush();
        }
        let mut lines = Vec::new();
        {
            let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            pending.extend_from_slice(bytes);
            // Whole lines only: a secret could be cut in two.
            while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                lines.push(pending.drain(..=end).collect::<Vec<u8>>());
            }
        }
        for line in lines {
            self.body_line('<', &line);
        }
    }
}

impl Drop for WireLog {
    fn drop(&mut self) {
        self.flush();
    }
}

/// JSON without the values of fields that are named like secrets.
fn redacted(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| {
                let is_secret = looks_secret(&name) && !PLAIN_FIELDS.contains(&name.as_str());
                let value = if is_secret { REDACTED.into() } else { redacted(value) };
                (name, value)
            })
            .collect(),
        Value::Array(items) => items.into_iter().map(redacted).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_named_like_secrets_are_redacted() {
        let body = json!({"token": "hunter2", "authentication": {"scheme": "Bearer", "credentials": "hunter2"},
            "pageToken": "p", "list": [{"apiKey": "hunter2"}]});
        let shown = redacted(body).to_string();
        assert!(!shown.contains("hunter2") && shown.contains("\"pageToken\":\"p\""), "{shown}");
    }
}
