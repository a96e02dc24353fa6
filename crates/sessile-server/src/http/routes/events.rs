//! Events of a session, as they happen.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;

use sessile::Code;

use super::super::app::AppState;
use super::super::caller::{ApiCaller, UserStore};
use super::super::feeds;
use super::super::input::{self, QueryParams, SessionSegment};
use super::super::metrics::{Gauge, GaugeGuard};
use super::super::parameters::{AFTER, LAST_EVENT_ID};
use super::super::problem::ApiProblem;
use super::super::queue::unexpected;
use super::super::reply;
use super::super::route::{READ, ResponseBody, Route};
use crate::ids::SessionId;
use crate::model::SessionEvent;
use crate::query::{EventPage, Query, QueryAnswer};

/// Interval of keep-alive comments in a silent stream, at which the token is checked too.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Chunks that are buffered for a slow client.
const BUFFERED: usize = 2;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/sessions/{session}/events", READ, follow)
            .about(
                "followSession",
                "Stream events (server-sent events) after Last-Event-ID or `after`; 204 if no events will follow, 410 EVENTS_GONE if the next event is no longer kept",
            )
            .params(&[&AFTER, &LAST_EVENT_ID])
            .replies_with(200, ResponseBody::EventStream)
            .refuses(&[204, 404, 410]),
    ]
}

async fn follow(
    State(app): State<AppState>,
    caller: ApiCaller,
    mut params: QueryParams,
    headers: HeaderMap,
    SessionSegment(session): SessionSegment,
) -> Result<Response, ApiProblem> {
    let after = params.number("after", 0, input::MAX_INTEGER)?;
    params.done()?;
    let seen = match input::header(&headers, "last-event-id")? {
        Some(id) => id.parse().ok().filter(|id| *id >= 0),
        None => Some(after.unwrap_or(0)),
    };
    // Without a position the stream begins at the first event that is kept.
    let takes_what_is_there = after.is_none() && !headers.contains_key("last-event-id");
    let Some(mut seen) = seen else { return Err(ApiProblem::invalid("Last-Event-ID must be a number")) };
    // Before the store is asked, so that a client over its limit costs no reads.
    let permit = caller.stream()?;
    let found = match caller.ask(Query::Session { session: session.clone().into() }).await? {
        QueryAnswer::Session(found) => found,
        other => return Err(unexpected(&other)),
    };
    let bound = caller.bound();
    let first = feeds::events(&bound, &session, seen).await?;
    if takes_what_is_there {
        seen = first.events.first().map_or(first.last, |event| event.number - 1);
    } else if seen > first.last {
        // Nobody has seen what has not happened; waiting for it would pass over what happens before.
        let detail = format!("invalid event number {seen}: the session's last event is {}", first.last);
        return Err(ApiProblem::invalid(detail));
    } else if first.has_gap_after(seen) {
        let detail = format!(
            "events after {seen} are no longer kept; read the session again, then follow it without Last-Event-ID"
        );
        return Err(ApiProblem::new(StatusCode::GONE, Code::EventsGone, detail));
    }
    // 204 tells an `EventSource` not to reconnect (HTML, server-sent events).
    if first.events.is_empty() && found.ended_ms.is_some() {
        return Ok(reply::empty(StatusCode::NO_CONTENT));
    }
    let (pieces, body) = mpsc::channel(BUFFERED);
    let stream = EventStream {
        app: app.clone(),
        bound,
        session,
        seen,
        pieces,
        _permit: permit,
        _counted: app.metrics.up(Gauge::Streams),
    };
    tokio::spawn(stream.run(first));
    Ok(reply::events(body))
}

struct EventStream {
    app: AppState,
    bound: UserStore,
    session: SessionId,
    seen: i64,
    pieces: mpsc::Sender<Bytes>,
    _permit: OwnedSemaphorePermit,
    _counted: GaugeGuard,
}

impl EventStream {
    async fn run(mut self, first: EventPage) {
        let (app, pieces) = (self.app.clone(), self.pieces.clone());
        tokio::select! {
            () = app.closed() => {}
            () = pieces.closed() => {}
            _ = self.send_all(first) => {}
        }
    }

    /// Sends events until the session ends or the client disconnects.
    async fn send_all(&mut self, first: EventPage) -> Option<()> {
        // Something at once, so that a client knows that it is connected.
        self.send(": following\n\n".to_owned()).await?;
        // The page that the request was accepted by: read again, it could have lost events to a sweep.
        self.send_page(&first).await?;
        if !feeds::is_last(&first) {
            self.catch_up().await?;
        }
        let feed = self.bound.feeds().follow(&self.bound, &self.session, self.seen);
        let mut alive = Instant::now() + KEEP_ALIVE;
        loop {
            tokio::select! {
                next = feed.next(self.seen) => match next {
                    Some(events) => {
                        // Bounds one chunk of the body, of which a few are buffered per client.
                        for page in events.chunks(64) {
                            self.send_events(page.iter().map(|event| &**event)).await?;
                        }
                    }
                    None => self.catch_up().await?,
                },
                () = tokio::time::sleep_until(alive) => {
                    alive = Instant::now() + KEEP_ALIVE;
                    // A stream outlives its request, so a revoked token would otherwise keep it forever.
                    if !self.bound.is_token_valid().await {
                        return None;
                    }
                    self.send(":\n\n".to_owned()).await?;
                }
            }
        }
    }

    /// Sends the events until now.
    async fn catch_up(&mut self) -> Option<()> {
        loop {
            match feeds::events(&self.bound, &self.session, self.seen).await {
                Ok(page) => {
                    self.send_page(&page).await?;
                    if feeds::is_last(&page) {
                        return Some(());
                    }
                }
                // The client comes again and says where it was.
                Err(_) => return None,
            }
        }
    }

    async fn send_page(&mut self, page: &EventPage) -> Option<()> {
        if page.has_gap_after(self.seen) {
            return None;
        }
        self.send_events(page.events.iter()).await
    }

    /// Sends events up to the first gap. There the stream ends: the client reconnects and gets `EVENTS_GONE`.
    async fn send_events<'e>(&mut self, events: impl Iterator<Item = &'e SessionEvent>) -> Option<()> {
        let mut text = String::new();
        let (before, mut over) = (self.seen, false);
        for event in events.filter(|event| event.number > before) {
            if event.number != self.seen + 1 {
                over = true;
                break;
            }
            let data = serde_json::to_string(event).ok()?;
            text.push_str(&format!("id: {}\nevent: {}\ndata: {data}\n\n", event.number, event.kind));
            self.seen = event.number;
            over = event.kind == "session.ended";
        }
        if !text.is_empty() {
            self.send(text).await?;
        }
        // Nothing comes after that.
        (!over).then_some(())
    }

    async fn send(&self, text: String) -> Option<()> {
        self.pieces.send(Bytes::from(text)).await.ok()
    }
}
