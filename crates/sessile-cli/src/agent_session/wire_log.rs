//! Log of the requests to an agent and its replies, for `--debug` and for the chat. Credentials never reach it, also where
//! the agent repeats one: in a header, a body, an event, or in pieces over the events of a stream.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use sessile::secrets::looks_secret;
use sessile::text::{shortened, shown};
use ureq::http::HeaderMap;

use crate::a2a::{REDACTED, SentSecrets, is_secret_field};
use crate::http::{HttpRequest, ResponseObserver};

/// Destination of the lines.
pub(crate) type WireSink = Box<dyn Fn(String) + Send + Sync>;

/// Longest line of a body.
const MAX_LINE: usize = 16 << 10;

/// Largest body that is parsed as a whole.
const MAX_BODY: usize = 4 << 20;

/// Most events that wait for the rest of a text that may be a secret.
const MAX_HELD: usize = 256;

/// Length from which the beginning of a secret at the end of a text is redacted.
const SHORTEST_PART: usize = 4;

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

/// Lines of requests with `>` and of replies with `<`, redacted and safe for terminals.
pub(super) struct WireLog {
    sink: WireSink,
    secrets: Arc<SentSecrets>,
    reply: Mutex<Reply>,
}

/// Reply that is being read.
#[derive(Default)]
struct Reply {
    is_stream: bool,
    /// Bytes that are not logged yet: the line of a stream, or a body.
    pending: Vec<u8>,
    /// Data of an event whose end has not come.
    data: Vec<String>,
    /// Events whose texts end with the beginning of a secret.
    held: Vec<Value>,
}

impl WireLog {
    pub(super) fn new(sink: WireSink, secrets: Arc<SentSecrets>) -> Self {
        WireLog { sink, secrets, reply: Mutex::default() }
    }

    fn line(&self, mark: char, text: &str) {
        // Before it is shortened, which could cut a secret in two.
        let text = self.secrets.redact(text);
        (self.sink)(format!("{mark} {}", shown(shortened(&text, MAX_LINE))));
    }

    /// Text that is not JSON, by lines.
    fn plain_lines(&self, mark: char, text: &str) {
        for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
            // A text that escapes a secret in a way of its own.
            match self.secrets.places(&unescaped(line)).len() > self.secrets.places(line).len() {
                true => self.line(mark, REDACTED),
                false => self.line(mark, line),
            }
        }
    }

    fn body_text(&self, mark: char, text: &str) {
        match sessile::json::from_str::<Value>(text) {
            Ok(value) => self.line(mark, &redacted(value).to_string()),
            Err(_) => self.plain_lines(mark, text),
        }
    }

    /// Line of an event stream.
    fn stream_line(&self, reply: &mut Reply, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end();
        match line.strip_prefix("data:") {
            Some(data) => reply.data.push(data.trim_start().to_owned()),
            None if line.is_empty() => self.end_event(reply),
            None => self.plain_lines('<', line),
        }
    }

    fn end_event(&self, reply: &mut Reply) {
        let data = std::mem::take(&mut reply.data);
        match sessile::json::from_str::<Value>(&data.join("\n")) {
            Ok(value) => self.event(reply, redacted(value)),
            Err(_) => data.iter().for_each(|line| self.plain_lines('<', &format!("data: {line}"))),
        }
    }

    /// Logs an event, once its texts are known not to begin a secret that the next events go on with.
    fn event(&self, reply: &mut Reply, event: Value) {
        reply.held.push(event);
        let is_partial = texts_by_artifact(&mut reply.held)
            .iter()
            .any(|texts| self.secrets.partial_end(&joined(texts)) > 0);
        if !is_partial || reply.held.len() >= MAX_HELD {
            self.release(reply);
        }
    }

    /// Logs the events that wait, without the secrets in their texts, which are chunks of one text for each artifact.
    fn release(&self, reply: &mut Reply) {
        for mut texts in texts_by_artifact(&mut reply.held) {
            let whole = joined(&texts);
            let mut places = self.secrets.places(&whole);
            let partial = self.secrets.partial_end(&whole);
            let start = whole.len() - partial;
            match places.last_mut() {
                _ if partial < SHORTEST_PART => {}
                Some(last) if last.end > start => last.end = whole.len(),
                _ => places.push(start..whole.len()),
            }
            cut(&mut texts, &places);
        }
        for event in std::mem::take(&mut reply.held) {
            self.line('<', &format!("data: {event}"));
        }
    }

    fn flush(&self, reply: &mut Reply) {
        let pending = std::mem::take(&mut reply.pending);
        if reply.is_stream {
            self.stream_line(reply, &pending);
            self.end_event(reply);
            self.release(reply);
        } else {
            self.body_text('<', &String::from_utf8_lossy(&pending));
        }
    }
}

impl ResponseObserver for WireLog {
    fn request(&self, request: &HttpRequest<'_>) {
        self.flush(&mut self.reply.lock().unwrap_or_else(PoisonError::into_inner));
        // An address is displayed without its query, which may hold a key.
        self.line('>', &format!("{} {}", request.method, request.address));
        for (name, value) in request.headers {
            let name = name.to_ascii_lowercase();
            let value = if OWN_HEADERS.contains(&name.as_str()) { value } else { REDACTED };
            self.line('>', &format!("{name}: {value}"));
        }
        if let Some(body) = request.body {
            self.body_text('>', &String::from_utf8_lossy(body));
        }
    }

    fn head(&self, status: u16, headers: &HeaderMap) {
        self.line('<', &format!("status {status}"));
        for (name, value) in headers {
            let is_secret = looks_secret(name.as_str()) || name.as_str() == "set-cookie";
            let value = String::from_utf8_lossy(value.as_bytes());
            self.line('<', &format!("{name}: {}", if is_secret { REDACTED } else { &value }));
        }
        let kind = headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let mut reply = self.reply.lock().unwrap_or_else(PoisonError::into_inner);
        reply.is_stream = kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream");
    }

    fn body(&self, bytes: &[u8]) {
        let mut reply = self.reply.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes.is_empty() {
            return self.flush(&mut reply);
        }
        reply.pending.extend_from_slice(bytes);
        if !reply.is_stream && reply.pending.len() <= MAX_BODY {
            return;
        }
        // Whole lines only: a secret could be cut in two.
        while let Some(end) = reply.pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = reply.pending.drain(..=end).collect();
            match reply.is_stream {
                true => self.stream_line(&mut reply, &line),
                false => self.body_text('<', &String::from_utf8_lossy(&line)),
            }
        }
    }
}

impl Drop for WireLog {
    fn drop(&mut self) {
        self.flush(&mut self.reply.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// JSON without the values of fields that are named like secrets.
fn redacted(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| {
                let value = if is_secret_field(&name) { REDACTED.into() } else { redacted(value) };
                (name, value)
            })
            .collect(),
        Value::Array(items) => items.into_iter().map(redacted).collect(),
        other => other,
    }
}

/// Id of the artifact that an event is about.
fn artifact_id(event: &Value) -> Option<&str> {
    match event {
        Value::Object(fields) => match fields.get("artifactId") {
            Some(id) => id.as_str(),
            None => fields.values().find_map(artifact_id),
        },
        _ => None,
    }
}

/// Texts of the parts in events, for each artifact in order.
fn texts_by_artifact(events: &mut [Value]) -> Vec<Vec<&mut String>> {
    let mut texts: BTreeMap<String, Vec<&mut String>> = BTreeMap::new();
    for event in events {
        let artifact = artifact_id(event).unwrap_or_default().to_owned();
        collect_texts(event, texts.entry(artifact).or_default());
    }
    texts.into_values().collect()
}

fn joined(texts: &[&mut String]) -> String {
    texts.iter().map(|text| text.as_str()).collect()
}

/// Texts of parts, in order.
fn collect_texts<'a>(value: &'a mut Value, texts: &mut Vec<&'a mut String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if name != "text" {
                    collect_texts(value, texts);
                } else if let Value::String(text) = value {
                    texts.push(text);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| collect_texts(item, texts)),
        _ => {}
    }
}

/// Replaces places in consecutive texts. The stand-in is in the text in which a place begins.
fn cut(texts: &mut [&mut String], places: &[Range<usize>]) {
    let mut start = 0;
    for text in texts {
        let end = start + text.len();
        let mut out = String::new();
        let mut from = start;
        for place in places.iter().filter(|place| place.start < end && place.end > start) {
            out.push_str(&text[from - start..place.start.max(start) - start]);
            if place.start >= start {
                out.push_str(REDACTED);
            }
            from = place.end.min(end);
        }
        out.push_str(&text[from - start..]);
        **text = out;
        start = end;
    }
}

/// Text with the escapes of JSON resolved, as far as it has any.
fn unescaped(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = &rest[at + 1..];
        let code = escape.strip_prefix('u').and_then(|digits| digits.get(..4));
        let letter = code.and_then(|digits| char::from_u32(u32::from_str_radix(digits, 16).ok()?));
        if let Some(letter) = letter {
            out.push(letter);
            rest = &escape[5..];
        } else {
            rest = escape;
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Log of a reply of this media type, which came in these pieces after a request with the secret `hunter2-hunter2`.
    fn logged(kind: &str, pieces: &[&str]) -> String {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let secrets = Arc::new(SentSecrets::default());
        secrets.add_header("Authorization", "Bearer hunter2-hunter2");
        let sink = Arc::clone(&lines);
        let log = WireLog::new(Box::new(move |line| sink.lock().unwrap().push(line)), secrets);
        let mut headers = HeaderMap::new();
        headers.insert("content-type", kind.parse().unwrap());
        headers.insert("x-echo", "Bearer hunter2-hunter2".parse().unwrap());
        log.head(200, &headers);
        for piece in pieces {
            log.body(piece.as_bytes());
        }
        log.body(b"");
        drop(log);
        let lines = lines.lock().unwrap();
        lines.join("\n")
    }

    fn chunk(artifact: &str, text: &str) -> String {
        let update =
            json!({"artifactUpdate": {"artifact": {"artifactId": artifact, "parts": [{"text": text}]}}});
        format!("data: {update}\n\n")
    }

    #[test]
    fn fields_named_like_secrets_are_redacted() {
        let body = json!({"token": "hunter2", "authentication": {"scheme": "Bearer", "credentials": "hunter2"},
            "pageToken": "p", "list": [{"apiKey": "hunter2"}]});
        let shown = redacted(body).to_string();
        assert!(!shown.contains("hunter2") && shown.contains("\"pageToken\":\"p\""), "{shown}");
    }

    #[test]
    fn secret_that_a_body_repeats_is_redacted() {
        for pieces in [
            &["you sent hunter2-hunter2."][..],
            &["you sent hunt", "er2-hunt", "er2."],
            &[r#"{"a":"x hunter2-hunter2 y","#, r#""hunter2-hunter2":1}"#],
            &["{\n  \"a\": \"h\\u0075nter2-hunter\\u0032\"\n}"],
            &["{\"a\": \"h\\u0075nter2-hunter2"],
            &[r#"{"a":"{\"b\":\"hunter2-hunter2\"}"}"#],
            &["{\n  \"token\": \"other\",\n  \"b\": \"hunter2-hunter2\"\n}"],
            &["aHVudGVyMi1odW50ZXIy"],
        ] {
            for kind in ["application/json", "text/event-stream", "text/html"] {
                let log = logged(kind, pieces);
                let is_clean = ["hunter2", "u0075nter2", "aHVudGVy"].iter().all(|text| !log.contains(text));
                // A field is known by its name only where the body is JSON.
                let is_field_clean = kind == "text/event-stream" || !log.contains("\"other\"");
                assert!(is_clean && is_field_clean && log.contains(REDACTED), "{kind} {pieces:?}\n{log}");
            }
        }
    }

    #[test]
    fn secret_in_pieces_over_the_events_of_a_stream_is_redacted() {
        let pieces = ["it is h", "unter2", "-hunt", "er2", ", ok?"];
        let other = chunk("b", "and h");
        let all: Vec<String> =
            pieces.iter().map(|piece| chunk("a", piece)).flat_map(|one| [one, other.clone()]).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let log = logged("text/event-stream", &all);
        assert!(!log.contains("unter2") && !log.contains("er2"), "{log}");
        assert!(log.contains("it is [redacted]") && log.contains("\"text\":\", ok?\""), "{log}");
        // Every event is there, in its place.
        let order: Vec<bool> =
            log.lines().filter(|line| line.contains("data:")).map(|line| line.contains("\"a\"")).collect();
        assert_eq!(order, [true, false].repeat(5));
        // A secret that a longer one begins with.
        let log = logged(
            "text/event-stream",
            &[&chunk("a", "Bearer "), &chunk("a", "hunter2-hunter2"), &chunk("a", "!")],
        );
        assert!(log.contains("\"text\":\"[redacted]\"") && !log.contains("Bearer"), "{log}");
        // A stream that ends in the middle of it.
        let log = logged("text/event-stream", &[&chunk("a", "it is hunter2"), &chunk("a", "-hun")]);
        assert!(!log.contains("hunter2") && !log.contains("-hun"), "{log}");
    }

    #[test]
    fn login_in_pieces_is_redacted_around_the_password_in_it() {
        let (lines, secrets) = (Arc::new(Mutex::new(Vec::new())), Arc::new(SentSecrets::default()));
        // ann:hunter2-hunter3
        let login = "Basic YW5uOmh1bnRlcjItaHVudGVyMw==";
        secrets.add_header("Authorization", login);
        let sink = Arc::clone(&lines);
        let log = WireLog::new(Box::new(move |line| sink.lock().unwrap().push(line)), secrets);
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "text/event-stream".parse().unwrap());
        log.head(200, &headers);
        for at in (0..login.len()).step_by(3) {
            log.body(chunk("a", login.get(at..at + 3).unwrap_or(&login[at..])).as_bytes());
        }
        log.body(b"");
        let log = lines.lock().unwrap().join("\n");
        assert!(
            log.contains("[redacted]") && !["YW5", "uOm", "Mw="].iter().any(|piece| log.contains(piece)),
            "{log}"
        );
    }

    #[test]
    fn event_that_begins_no_secret_is_logged_at_once() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (sink, secrets) = (Arc::clone(&lines), Arc::new(SentSecrets::default()));
        secrets.add("hunter2-hunter2");
        let log = WireLog::new(Box::new(move |line| sink.lock().unwrap().push(line)), secrets);
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "text/event-stream; charset=utf-8".parse().unwrap());
        log.head(200, &headers);
        log.body(chunk("a", "word").as_bytes());
        assert_eq!(lines.lock().unwrap().len(), 3, "{lines:?}");
    }
}
