//! Responses of the API, made from what the store returns.

use sessile_wire::service::{
    AppendResponse, HeldLock, LeaseTicket, NumberedMessage, ReplyResponse, ServiceLock, ServiceMessage,
    ServiceSession, StateEntry,
};

use super::problem::ApiProblem;
use super::queue::unexpected;
use crate::change::ChangeOutcome;
use crate::ids::turn_token;
use crate::json_text::JsonText;
use crate::model::{EntryRecord, MessageRecord, SessionRecord, Ticket};
use crate::query::LockRecord;

impl From<SessionRecord> for ServiceSession {
    fn from(session: SessionRecord) -> Self {
        ServiceSession {
            id: session.id.into(),
            name: session.name,
            context: session.context,
            labels: session.labels,
            settings: session.settings,
            revision: session.revision,
            started_ms: session.started_ms,
            used_ms: session.used_ms,
            expires_ms: session.expires_ms,
            idle_ms: session.idle_ms,
            max_ms: session.max_ms,
            ended_ms: session.ended_ms,
            end_reason: session.end_reason,
            messages: session.messages,
        }
    }
}

impl From<MessageRecord> for ServiceMessage {
    fn from(message: MessageRecord) -> Self {
        let MessageRecord { number, token, body, at_ms } = message;
        ServiceMessage { number, token: turn_token::to_number(token), body: body.into(), at_ms }
    }
}

impl From<EntryRecord> for StateEntry {
    fn from(entry: EntryRecord) -> Self {
        let EntryRecord { key, value, revision } = entry;
        StateEntry { key, value: value.into(), revision }
    }
}

/// Lease of a place that is held. A place that still waits is an error: clients get no answer before they hold it.
pub(super) fn lease(ticket: Ticket) -> Result<LeaseTicket, ApiProblem> {
    let Ticket { place, token: Some(token), holder, asked_ms, expires_ms, .. } = ticket else {
        return Err(unexpected(&ticket));
    };
    Ok(LeaseTicket { token: token.get(), place: place.get(), holder, asked_ms, expires_ms })
}

/// Lock that is held, with its queue.
pub(super) fn held_lock(lock: LockRecord) -> Result<HeldLock, ApiProblem> {
    let LockRecord { name, ticket, others, waiting } = lock;
    let (mode, session, ticket) = (ticket.mode, ticket.session.clone(), lease(ticket)?);
    let others = others.into_iter().map(lease);
    let holders = std::iter::once(Ok(ticket.clone())).chain(others).collect::<Result<_, _>>()?;
    Ok(HeldLock { lock: ServiceLock { name, mode, session, ticket }, waiting, holders })
}

/// Numbers of the messages that a change appended.
pub(super) fn appended(done: &ChangeOutcome) -> Result<AppendResponse, ApiProblem> {
    match *done {
        ChangeOutcome::Appended { first, last } => Ok(AppendResponse { first, last }),
        ref other => Err(unexpected(other)),
    }
}

/// Messages with their numbers from `first` on. The last one is the reply to the others.
pub(super) fn replied(first: i64, bodies: Vec<JsonText>) -> ReplyResponse {
    let numbered = |(number, body): (i64, JsonText)| NumberedMessage { number, body: body.into() };
    let mut messages: Vec<NumberedMessage> = (first..).zip(bodies).map(numbered).collect();
    let reply = messages.pop();
    let last = reply.as_ref().map_or(first, |reply| reply.number);
    ReplyResponse { first, last, messages, reply }
}
