//! Messages that the upstream replies to.

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use sessile_wire::service::{ChatMessage, ReplyDelta, ReplyResponse};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};

use super::super::app::AppState;
use super::super::caller::ApiCaller;
use super::super::completion::Completion;
use super::super::input::{self, QueryParams};
use super::super::metrics::{Gauge, GaugeGuard};
use super::super::problem::ApiProblem;
use super::super::reply;
use super::events::KEEP_ALIVE;
use super::turns;
use crate::account::TokenScope;
use crate::change::Busy;
use crate::ids::SessionId;
use crate::json_text::JsonText;

/// Options of a reply.
pub(super) struct ReplyOptions {
    busy: Busy,
    wait_ms: i64,
    history: i64,
}

/// Options of the reply, if the request asks for one.
pub(super) fn wanted(app: &AppState, params: &mut QueryParams) -> Result<Option<ReplyOptions>, ApiProblem> {
    let is_wanted = params.flag("reply")?.unwrap_or(false);
    let busy = params.text("busy");
    let wait_ms = params.number("wait_ms", 0, app.limits.wait_ms)?;
    let history = params.number("history", 0, app.limits.page)?;
    if !is_wanted {
        if busy.is_some() || wait_ms.is_some() || history.is_some() {
            return Err(ApiProblem::usage("`busy`, `wait_ms` and `history` require `reply=true`"));
        }
        return Ok(None);
    }
    let busy = match busy.as_deref() {
        None | Some("enqueue") => Busy::Enqueue,
        Some("reject") => Busy::Reject,
        Some("interrupt") => Busy::Interrupt,
        Some(_) => return Err(ApiProblem::invalid("busy must be enqueue, reject or interrupt")),
    };
    let wait_ms = turns::wait(app, wait_ms)?;
    Ok(Some(ReplyOptions { busy, wait_ms, history: history.unwrap_or(app.limits.page) }))
}

/// Appends messages and the upstream's reply to them.
pub(super) async fn complete(
    app: AppState,
    caller: ApiCaller,
    session: SessionId,
    (messages, if_last): (Vec<JsonText>, Option<i64>),
    wanted: ReplyOptions,
    headers: &HeaderMap,
) -> Result<Response, ApiProblem> {
    // A reply says what the history says.
    if !caller.token().scopes.contains(&TokenScope::Read) {
        return Err(ApiProblem::out_of_scope(TokenScope::Read));
    }
    let Some(upstream) = app.upstream.clone() else {
        return Err(ApiProblem::no_upstream());
    };
    let accept = input::header(headers, header::ACCEPT.as_str())?.unwrap_or_default();
    let streams = accept.to_ascii_lowercase().contains("text/event-stream");
    // Before the upstream is asked, which may cost money.
    let permit = streams.then(|| caller.stream()).transpose()?;
    let ReplyOptions { busy, wait_ms, history } = wanted;
    let (app, counted) = (app.clone(), streams.then(|| app.metrics.up(Gauge::Streams)));
    let completing =
        Completion { app, caller, upstream, session, messages, if_last, busy, wait_ms, history, streams };
    let (mut coming, mut told) = completing.start();
    let answer = if streams {
        // The head waits for the first token, so that what fails before it has a status of its own.
        tokio::select! {
            biased;
            // A reply under a key that was answered before comes without any text.
            answer = &mut told => Some(answer),
            Ok(()) = coming.changed() => None,
            else => None,
        }
    } else {
        Some((&mut told).await)
    };
    let answer =
        answer.map(|answer| answer.unwrap_or_else(|_| Err(ApiProblem::closing_down()))).transpose()?;
    if !streams {
        return reply::json(StatusCode::CREATED, &answer);
    }
    let (pieces, body) = mpsc::channel(1);
    // The select above has seen the first text; it is sent by the stream.
    coming.mark_changed();
    let stream = ReplyStream { coming, told, pieces, sent: 0, _permit: permit, _counted: counted };
    tokio::spawn(stream.run(answer));
    Ok(reply::events(body))
}

/// Stream of a reply. A slow client gets larger pieces, so that the buffer holds at most the reply.
struct ReplyStream {
    coming: watch::Receiver<String>,
    told: oneshot::Receiver<Result<ReplyResponse, ApiProblem>>,
    pieces: mpsc::Sender<Bytes>,
    sent: usize,
    _permit: Option<OwnedSemaphorePermit>,
    _counted: Option<GaugeGuard>,
}

impl ReplyStream {
    async fn run(mut self, answer: Option<ReplyResponse>) -> Option<()> {
        let answer = match answer {
            Some(answer) => Ok(answer),
            None => self.follow().await?,
        };
        match answer {
            Ok(answer) => {
                // Also for who gets it a second time, when no token came.
                let whole = answer.reply.as_ref().and_then(|reply| ChatMessage::of_body(&reply.body).content);
                let whole = whole.unwrap_or_default();
                let more = {
                    let sent = self.coming.borrow();
                    // An agent may think better of what it has said; then only the whole counts.
                    let more = whole.strip_prefix(sent.get(..self.sent).unwrap_or_default());
                    more.unwrap_or_default().to_owned()
                };
                self.delta(&more).await?;
                self.event("done", &answer).await
            }
            Err(problem) => self.event("error", &problem.details()).await,
        }
    }

    /// Forwards deltas until the outcome is known.
    async fn follow(&mut self) -> Option<Result<ReplyResponse, ApiProblem>> {
        loop {
            tokio::select! {
                biased;
                answer = &mut self.told => {
                    return Some(answer.unwrap_or_else(|_| Err(ApiProblem::closing_down())));
                }
                Ok(()) = self.coming.changed() => {
                    let piece = self.coming.borrow_and_update().get(self.sent..).unwrap_or_default().to_owned();
                    self.delta(&piece).await?;
                    self.sent += piece.len();
                }
                () = tokio::time::sleep(KEEP_ALIVE) => self.send(":\n\n".to_owned()).await?,
            }
        }
    }

    async fn delta(&self, text: &str) -> Option<()> {
        if text.is_empty() {
            return Some(());
        }
        self.event("delta", &ReplyDelta { content: text.to_owned() }).await
    }

    async fn event(&self, kind: &str, data: &impl Serialize) -> Option<()> {
        let data = serde_json::to_string(data).ok()?;
        self.send(format!("event: {kind}\ndata: {data}\n\n")).await
    }

    async fn send(&self, text: String) -> Option<()> {
        self.pieces.send(Bytes::from(text)).await.ok()
    }
}
