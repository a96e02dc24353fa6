//! The statements that carry out the writes of a decision.

use super::heartbeat;
use super::sql::Sql;
use super::transaction::{Step, params};
use crate::change::PRESENT_MS;
use crate::ids::{FencingToken, Position, SessionId, turn_token};
use crate::json_text::JsonText;
use crate::model::{Resource, SessionRecord, Ticket};
use crate::rules::{LoadedSession, QueuePlace, StoredEntry, Write};

/// The writes of one change.
pub(super) struct PostgresWrites<'a> {
    pub(super) user: &'a str,
    /// Id of this process.
    pub(super) process: &'a str,
    pub(super) now: i64,
}

/// Writes of an append, which one statement carries out.
#[derive(Default)]
struct AppendedMessages<'c> {
    messages: Option<(i64, Option<FencingToken>, &'c [JsonText])>,
    event: Option<(i64, &'static str, String)>,
    counters: Option<Box<LoadedSession>>,
}

impl PostgresWrites<'_> {
    /// Adds the one statement of the writes that an append consists of. Returns the others, or all if it is another change.
    pub(super) fn add_appended<'c>(
        &self,
        writes: Vec<Write<'c>>,
        steps: &mut Vec<Step<'c>>,
    ) -> Vec<Write<'c>> {
        let is = |wanted: fn(&Write<'c>) -> bool| writes.iter().filter(|write| wanted(write)).count() == 1;
        let is_append = is(|write| matches!(write, Write::DeleteConversation { .. }))
            && is(|write| matches!(write, Write::InsertMessages { .. }))
            && is(|write| matches!(write, Write::InsertEvent { .. }))
            && is(|write| matches!(write, Write::UpdateCounters(_)));
        if !is_append {
            return writes;
        }
        let (mut appended, mut others) = (AppendedMessages::default(), Vec::new());
        for write in writes {
            match write {
                Write::DeleteConversation { .. } => {}
                Write::InsertMessages { first, token, bodies, .. } => {
                    appended.messages = Some((first, token, bodies));
                }
                Write::InsertEvent { number, kind, body, .. } => {
                    appended.event = Some((number, kind.name(), body.to_string()));
                }
                Write::UpdateCounters(record) => appended.counters = Some(record),
                other => others.push(other),
            }
        }
        let AppendedMessages { messages, event, counters } = appended;
        if let (Some((first, token, bodies)), Some((number, kind, event)), Some(record)) =
            (messages, event, counters)
        {
            let LoadedSession { session: SessionRecord { id, used_ms, messages, .. }, next_event, .. } =
                *record;
            let (user, session) = (self.user.to_owned(), String::from(id));
            let token = turn_token::to_number(token);
            let texts: Vec<&'c str> = bodies.iter().map(JsonText::get).collect();
            let params = params![
                user,
                session,
                first,
                token,
                self.now,
                texts,
                number,
                kind,
                event,
                used_ms,
                messages + 1,
                next_event
            ];
            steps.push(Step::Run(Sql::AppendMessages, params));
        }
        others
    }

    /// Adds the statements of a write.
    pub(super) fn add<'c>(&self, write: Write<'c>, steps: &mut Vec<Step<'c>>) {
        let (user, now) = (self.user.to_owned(), self.now);
        let text = |session: SessionId| String::from(session);
        let step = match write {
            Write::InsertSession(record) => insert_session(user, *record),
            Write::UpdateSession(record) => update_session(user, *record),
            Write::UpdateCounters(record) => {
                let LoadedSession {
                    session: SessionRecord { id, used_ms, messages, .. }, next_event, ..
                } = *record;
                Step::Run(Sql::UpdateCounters, params![user, text(id), used_ms, messages + 1, next_event])
            }
            Write::DeleteLabels { session } => Step::Run(Sql::DropLabels, params![user, text(session)]),
            Write::InsertLabels { session, labels } => {
                let (keys, values): (Vec<String>, Vec<String>) = labels.into_iter().unzip();
                Step::Run(Sql::InsertLabels, params![user, text(session), keys, values])
            }
            Write::PutSetting { session, key, value } => {
                Step::Run(Sql::PutSetting, params![user, text(session), key, value.to_string(), now])
            }
            Write::DeleteSetting { session, key } => {
                Step::Run(Sql::DropSetting, params![user, text(session), key])
            }
            Write::ReplaceEntry { session, key, value, revision } => {
                let session = text(session);
                // The kind is part of the primary key, so an update in place cannot change it.
                steps.push(Step::Run(Sql::DropEntry, params![user.clone(), session.clone(), key]));
                let kind = if value.is_some() { StoredEntry::KIND } else { StoredEntry::REMOVED_KIND };
                let value = value.map_or("null", JsonText::get);
                Step::Run(Sql::InsertEntry, params![user, session, kind, key, value, revision, now])
            }
            Write::InsertMessages { session, first, token, bodies } => {
                let texts: Vec<&'c str> = bodies.iter().map(JsonText::get).collect();
                let token = turn_token::to_number(token);
                Step::Run(Sql::InsertMessages, params![user, text(session), first, token, now, texts])
            }
            Write::DeleteMessagesAfter { session, after, .. } => {
                Step::Run(Sql::CutMessages, params![user, text(session), after])
            }
            Write::CopyMessages { from, to, last } => {
                Step::Run(Sql::CopyMessages, params![user, text(from), text(to), last])
            }
            Write::DeleteConversation { session } => {
                Step::Run(Sql::DropConversation, params![user, text(session)])
            }
            Write::InsertConversation { session, conversation } => {
                let (session, mark) = (text(session), conversation.mark());
                let claim = params![user.clone(), mark.clone(), session.clone()];
                steps.push(Step::Run(Sql::ClaimContext, claim));
                let value = serde_json::to_string(conversation).unwrap_or_default();
                Step::Run(Sql::PutConversation, params![user, mark, session, value, now])
            }
            Write::InsertEvent { session, number, kind, body } => Step::Run(
                Sql::InsertEvent,
                params![user, text(session), number, kind.name(), body.to_string(), now],
            ),
            Write::DeleteTurnPlaces { session } => {
                Step::Run(Sql::DropQueue, params![user, Resource::Turn { session }.key()])
            }
            Write::DeletePlaces { resource, positions } => {
                let positions: Vec<i64> = positions.into_iter().map(Position::get).collect();
                Step::Run(Sql::DropPlaces, params![user, resource, positions])
            }
            Write::SetNextNumber { resource, next } => {
                Step::Run(Sql::SetQueue, params![user, resource, next])
            }
            Write::PutPlace { resource, place } => put_place(user, resource, place),
            Write::Heartbeat => {
                Step::Other(heartbeat::SEND_IF_DUE, params![self.process.to_owned(), PRESENT_MS])
            }
            Write::DeleteAnswer { key } => Step::Run(Sql::DropAnswered, params![user, key]),
            Write::InsertAnswer { key, change, done } => {
                Step::Run(Sql::InsertAnswered, params![user, key, change, done, now])
            }
        };
        steps.push(step);
    }
}

fn update_session<'c>(user: String, record: LoadedSession) -> Step<'c> {
    let LoadedSession { session, next_event, .. } = record;
    let labels = serde_json::to_string(&session.labels).unwrap_or_default();
    let SessionRecord { id, name, used_ms, ended_ms, end_reason, revision, messages, .. } = session;
    let (id, next_message) = (String::from(id), messages + 1);
    let params =
        params![user, id, name, labels, used_ms, ended_ms, end_reason, revision, next_message, next_event];
    Step::Run(Sql::UpdateSession, params)
}

fn insert_session<'c>(user: String, record: LoadedSession) -> Step<'c> {
    let LoadedSession { session, next_event, .. } = record;
    let labels = serde_json::to_string(&session.labels).unwrap_or_default();
    let SessionRecord { id, name, context, started_ms, idle_ms, max_ms, messages, .. } = session;
    let (id, next_message) = (String::from(id), messages + 1);
    let params =
        params![user, id, name, context, labels, idle_ms, max_ms, started_ms, next_message, next_event];
    Step::Run(Sql::InsertSession, params)
}

fn put_place<'c>(user: String, resource: String, place: QueuePlace) -> Step<'c> {
    let QueuePlace { ticket, process, claim, .. } = place;
    let Ticket { place, token, holder, mode, session, asked_ms, expires_ms } = ticket;
    let (place, token) = (place.get(), token.map(FencingToken::get));
    let is_shared = mode.is_shared();
    let params = params![
        user, resource, place, token, holder, asked_ms, expires_ms, process, claim, is_shared, session
    ];
    Step::Run(Sql::PutPlace, params)
}
