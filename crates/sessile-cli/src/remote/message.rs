//! Messages that the service replies to.

use std::time::Duration;

use serde_json::{Value, json};
use sessile::Code;
use sessile::error::RequestError;
use sessile_wire::sse::{SseEvent, SseReader};

use super::server::{PATIENCE, Request, Server};
use super::session::RemoteSession;
use super::trouble::{Problem, Subject, Trouble};
use crate::error::Failure;
use crate::http::{Coming, HttpError};

/// How long a reply may take to begin, if nothing else is said: whoever thinks long is not away.
const LONGEST: Duration = Duration::from_secs(600);

/// For how long a service that broke off is asked what became of the reply.
const AWAY: Duration = Duration::from_secs(30);

/// The largest event.
const LARGEST: usize = 4 << 20;

/// What was replied.
#[derive(Debug)]
pub(crate) struct Reply {
    /// Its text.
    pub(crate) text: String,
    /// The message, with its number.
    pub(crate) message: Value,
}

/// Sends a text and waits for the reply; with `on_piece` what comes of it is handed on as it comes.
///
/// If the connection breaks, the service is asked again under the same key, and finds what it has replied.
pub(crate) fn reply(
    server: &Server,
    session: &RemoteSession,
    text: &str,
    timeout: Option<Duration>,
    on_piece: Option<&mut dyn FnMut(&str)>,
) -> Result<Reply, Failure> {
    let body = json!({ "messages": [{ "role": "user", "content": text }] });
    let request = Request::post(&["v1", "sessions", &session.id, "messages"], body)?
        .with("reply", &true)
        .waiting(timeout.unwrap_or(LONGEST))
        .within(timeout);
    let about = Subject { session: session.label(), ..Subject::default() };
    let told = |trouble: Trouble| not_replied(trouble, server.url(), &about);
    let Some(on_piece) = on_piece else {
        return read(server, &server.try_ask(&request, PATIENCE).map_err(told)?);
    };
    let mut shown = String::new();
    let streamed = server.stream(&request).and_then(|coming| {
        follow(coming, &mut |piece| {
            on_piece(piece);
            shown.push_str(piece);
        })
    });
    let answer = match streamed {
        Err(Trouble::Http(HttpError::Unreachable { .. } | HttpError::TimedOut { .. }))
            if timeout.is_none() =>
        {
            server.try_ask(&request, AWAY).map_err(told)?
        }
        streamed => streamed.map_err(told)?,
    };
    let reply = read(server, &answer)?;
    // What broke off is shown to its end.
    if let Some(rest) = reply.text.strip_prefix(shown.as_str()).filter(|rest| !rest.is_empty()) {
        on_piece(rest);
    }
    Ok(reply)
}

/// The failure of a message. A service that only keeps messages says so, and what it would take is said beside it.
fn not_replied(trouble: Trouble, url: &str, about: &Subject<'_>) -> Failure {
    let writes_none = matches!(&trouble, Trouble::Refused(Problem { code: Some(Code::Usage), detail, .. }) if detail.contains("upstream"));
    let mut failure = trouble.told(url, about);
    if let Failure::Service { report, .. } = &mut failure
        && writes_none
    {
        report.hint = Some("who runs it says who writes replies: sessile serve --upstream URL".to_owned());
    }
    failure
}

fn read(server: &Server, answer: &Value) -> Result<Reply, Failure> {
    let message = answer["reply"].clone();
    match message["body"]["content"].as_str() {
        Some(text) => Ok(Reply { text: text.to_owned(), message }),
        None => {
            let reason = "its answer holds no reply".to_owned();
            Err(RequestError::Unreachable { what: server.url().to_owned(), reason }.into())
        }
    }
}

/// Hands on what comes, to the answer at its end.
fn follow(mut coming: Coming, on_piece: &mut dyn FnMut(&str)) -> Result<Value, Trouble> {
    let (mut reader, mut events) = (SseReader::new(LARGEST), Vec::new());
    let mut buffer = vec![0; 1 << 14];
    loop {
        let count = coming.read(&mut buffer).map_err(Trouble::Http)?;
        let url = || coming.address().to_string();
        if count == 0 {
            let reason = "it broke off".to_owned();
            return Err(Trouble::Http(HttpError::Unreachable { url: url(), reason }));
        }
        let pushed = reader.push(&buffer[..count], &mut events);
        pushed.map_err(|_| Trouble::Http(HttpError::TooLarge { url: url() }))?;
        for SseEvent { kind, data } in events.drain(..) {
            let data: Value = sessile::json::from_str(&data).unwrap_or_default();
            match kind.as_str() {
                "delta" => on_piece(data["content"].as_str().unwrap_or_default()),
                "done" => return Ok(data),
                "error" => {
                    let status = data["status"].as_u64().and_then(|status| u16::try_from(status).ok());
                    return Err(Trouble::Refused(Problem::of_json(status.unwrap_or(500), &data, None)));
                }
                _ => {}
            }
        }
    }
}
