//! Messages that the service replies to.

use std::time::Duration;

use serde::de::DeserializeOwned;
use sessile_wire::service::{
    AppendRequest, ChatMessage, NumberedMessage, ProblemDetails, ReplyDelta, ReplyResponse, ServiceSession,
};
use sessile_wire::sse::{SseEvent, SseReader};

use super::client::{PATIENCE, ServiceClient, ServiceRequest};
use super::error::{RemoteError, ServiceProblem, Subject};
use crate::error::{Failure, RequestError};
use crate::http::{HttpError, HttpResponse};
use crate::view::ReplyView;

/// Longest wait for the beginning of a reply by default: a model may think for long.
const LONGEST: Duration = Duration::from_secs(600);

/// Time for retries after a stream broke off.
const AWAY: Duration = Duration::from_secs(30);

/// Largest event that is read.
const LARGEST: usize = 4 << 20;

/// Sends a text and waits for the reply; `on_piece` gets its deltas.
///
/// If the connection breaks, the request is repeated under the same key, and the service returns the same reply.
pub(crate) fn reply(
    server: &ServiceClient,
    session: &ServiceSession,
    text: &str,
    timeout: Option<Duration>,
    on_piece: Option<&mut dyn FnMut(&str)>,
) -> Result<ReplyView<NumberedMessage>, Failure> {
    let body = AppendRequest { messages: vec![ChatMessage::new("user", text).to_body()], if_last: None };
    let request = ServiceRequest::post(&["v1", "sessions", &session.id, "messages"], &body)?
        .with("reply", &true)
        .waiting(timeout.unwrap_or(LONGEST))
        .within(timeout);
    let about = Subject { session: session.label(), ..Subject::default() };
    let failure = |error: RemoteError| error.into_failure(server.url(), &about);
    let Some(on_piece) = on_piece else {
        return read(server, server.try_ask(&request, PATIENCE).map_err(failure)?);
    };
    let mut shown = String::new();
    let streamed = server.stream(&request).and_then(|coming| {
        follow(coming, &mut |piece| {
            on_piece(piece);
            shown.push_str(piece);
        })
    });
    let answer = match streamed {
        Err(RemoteError::Http(HttpError::Unreachable { .. } | HttpError::TimedOut { .. }))
            // With a timeout its time is used up.
            if timeout.is_none() =>
        {
            server.try_ask(&request, AWAY).map_err(failure)?
        }
        streamed => streamed.map_err(failure)?,
    };
    let reply = read(server, answer)?;
    // What broke off is shown to its end.
    if let Some(rest) = reply.text.strip_prefix(shown.as_str()).filter(|rest| !rest.is_empty()) {
        on_piece(rest);
    }
    Ok(reply)
}

fn read(server: &ServiceClient, response: ReplyResponse) -> Result<ReplyView<NumberedMessage>, Failure> {
    let reply = response.reply.and_then(|message| {
        let text = ChatMessage::of_body(&message.body).content?;
        Some(ReplyView::new(server.url(), text, Some(message)))
    });
    match reply {
        Some(reply) => Ok(reply),
        None => Err(RequestError::unreachable(server.url(), "the response contains no reply").into()),
    }
}

/// Data of an event.
fn event<T: DeserializeOwned>(data: &str) -> Result<T, RemoteError> {
    sessile::json::from_str(data).map_err(RemoteError::InvalidResponse)
}

/// Passes on the pieces of a reply, until the response at its end.
fn follow(mut coming: HttpResponse, on_piece: &mut dyn FnMut(&str)) -> Result<ReplyResponse, RemoteError> {
    let (mut reader, mut events) = (SseReader::new(LARGEST), Vec::new());
    let mut buffer = vec![0; 1 << 14];
    loop {
        let count = coming.read(&mut buffer).map_err(RemoteError::Http)?;
        let url = || coming.address().to_string();
        if count == 0 {
            let reason = "the connection was closed early".into();
            return Err(RemoteError::Http(HttpError::Unreachable { url: url(), reason }));
        }
        let pushed = reader.push(&buffer[..count], &mut events);
        pushed.map_err(|_| RemoteError::Http(HttpError::TooLarge { url: url() }))?;
        for SseEvent { kind, data } in events.drain(..) {
            match kind.as_str() {
                "delta" => on_piece(&event::<ReplyDelta>(&data)?.content),
                "done" => return event(&data),
                "error" => {
                    let details: ProblemDetails = event(&data)?;
                    let problem = ServiceProblem::from_details(details.status, &details, None);
                    return Err(RemoteError::Refused(problem));
                }
                // A newer service may send events of other kinds.
                _ => {}
            }
        }
    }
}
