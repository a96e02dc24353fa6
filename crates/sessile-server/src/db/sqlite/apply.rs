//! Changes, carried out. What a refused one did is taken back by the caller.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Result};
use serde_json::{Value, json};

use super::leftover::{self, SLICE};
use super::queue::{self, Queue, Waited};
use super::rows::{self, Found};
use crate::change::{Change, Done, Refusal, check_number, check_settings};
use crate::db::record::{self, Noted};
use crate::db::{Read, Request};
use crate::json_text::JsonText;
use crate::model::{Conversation, Entry, Resource, Session, Ticket};

type Outcome = Result<std::result::Result<Done, Refusal>>;

/// Hands a refusal on, as `?` does with an error.
macro_rules! or_refuse {
    ($outcome:expr) => {
        match $outcome {
            Ok(value) => value,
            Err(refusal) => return Ok(Err(refusal)),
        }
    };
}

/// Makes a change, unless the same one was made before under its key.
pub(super) fn apply(connection: &Connection, process: &str, request: &Request, now: i64) -> Outcome {
    let make = Make { connection, user: request.user.0.as_str(), process, now };
    let user = make.user;
    let Some(key) = &request.key else { return make.change(&request.change) };
    let failed = |error: serde_json::Error| rusqlite::Error::ToSqlConversionFailure(error.into());
    let change = record::written(&request.change).map_err(failed)?;
    let answered: Option<(String, String)> = connection
        .prepare_cached("SELECT change, done FROM answered WHERE user = ?1 AND key = ?2")?
        .query_row((user, key), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    if let Some((before, done)) = answered {
        let done = or_refuse!(record::again(&before, &change, &done));
        return make.again(&request.change, done);
    }
    let outcome = make.change(&request.change)?;
    if let Ok(done) = &outcome {
        let done = serde_json::to_string(done).map_err(failed)?;
        connection
            .prepare_cached(
                "INSERT INTO answered (user, key, change, done, at_ms) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute((user, key, change, done, now))?;
    }
    Ok(outcome)
}

/// Puts a change, made or refused, on the record.
pub(super) fn record(connection: &Connection, request: &Request, outcome: &Outcome, now: i64) -> Result<()> {
    if outcome.as_ref().is_ok_and(|outcome| !record::is_noted(request, outcome)) {
        return Ok(());
    }
    let word = outcome.as_ref().map_or_else(|_| "failed".to_owned(), record::word);
    let Noted { action, session, subject } = record::noted(request);
    connection
        .prepare_cached(
            "INSERT INTO audit (user, id, at_ms, token, action, session, subject, outcome)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute((
            &request.user.0,
            &request.access.id,
            now,
            &request.access.token,
            action,
            session,
            subject,
            word,
        ))
        .map(drop)
}

/// Puts on the record what was read.
pub(super) fn record_reads(connection: &Connection, reads: &[Read]) -> Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO audit (user, id, at_ms, token, action, session, outcome) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for read in reads {
        let Read { user, access, action, session, outcome, at_ms } = read;
        insert.execute((&user.0, &access.id, at_ms, &access.token, action, session, outcome))?;
    }
    Ok(())
}

struct Make<'a> {
    connection: &'a Connection,
    user: &'a str,
    process: &'a str,
    now: i64,
}

impl Make<'_> {
    /// What is answered to a change that was made before. A place that was asked for may have come up, or be gone.
    fn again(&self, change: &Change, done: Done) -> Outcome {
        match (change, done) {
            (Change::Ask { resource, claim, ttl_ms, wait_ms, history, .. }, Done::Ticket { ticket, .. }) => {
                queue::keep(self.connection, self.process, self.now)?;
                self.queue(&resource.key()).claim(ticket.place, claim, *wait_ms)?;
                self.wait(resource, ticket.place, claim, *ttl_ms, *history)
            }
            (_, done) => Ok(Ok(done)),
        }
    }

    fn wait(&self, resource: &Resource, place: i64, claim: &str, ttl_ms: i64, history: i64) -> Outcome {
        let session = or_refuse!(self.session_of(resource)?);
        let waited = or_refuse!(self.queue(&resource.key()).wait(place, claim, ttl_ms)?);
        self.placed(session.as_ref(), waited, history)
    }

    fn change(&self, change: &Change) -> Outcome {
        match change {
            Change::StartSession { id, name, context, labels, settings, idle_ms, max_ms } => {
                or_refuse!(self.free_name(name.as_deref(), None)?);
                self.insert_session(id, name.as_deref(), context.as_deref(), labels, *idle_ms, *max_ms)?;
                for (key, value) in settings {
                    self.set_setting(id, key, value)?;
                }
                self.event(id, "session.started", &json!({}))?;
                self.now_is(id)
            }
            Change::EditSession { session, if_revision, name, labels, settings } => {
                let found = or_refuse!(self.live(session)?);
                if let Some(expected) = if_revision
                    && *expected != found.revision
                {
                    return Ok(Err(Refusal::Changed { revision: found.revision }));
                }
                or_refuse!(check_settings(&found.settings, settings));
                or_refuse!(self.free_name(name.as_deref(), Some(session))?);
                if let Some(labels) = labels.as_ref().filter(|labels| **labels != found.labels) {
                    self.index_labels(session, labels)?;
                }
                let labels =
                    serde_json::to_string(labels.as_ref().unwrap_or(&found.labels)).unwrap_or_default();
                self.connection
                    .prepare_cached(
                        "UPDATE session SET name = ?3, labels = ?4, revision = revision + 1 WHERE user = ?1 AND id = ?2",
                    )?
                    .execute((self.user, session, name.as_ref().or(found.name.as_ref()), labels))?;
                for (key, value) in settings {
                    self.set_setting(session, key, value)?;
                }
                self.event(session, "session.edited", &json!({}))?;
                self.now_is(session)
            }
            Change::EndSession { session, reason } => {
                let Some(found) = rows::session(self.connection, self.user, session)? else {
                    return Ok(Err(Refusal::NoSession));
                };
                if found.session.ended_ms.is_none() {
                    self.end(session, reason)?;
                }
                self.now_is(session)
            }
            Change::Append { session, bodies, if_last } => {
                let found = or_refuse!(self.live(session)?);
                if let Some(held) = self.turn(session).holder()? {
                    return Ok(Err(Refusal::Held { holder: held.holder, expires_ms: held.expires_ms }));
                }
                if if_last.is_some_and(|last| last != found.messages) {
                    return Ok(Err(Refusal::Changed { revision: found.messages }));
                }
                self.append(session, 0, bodies).map(Ok)
            }
            Change::Rewind { session, to } => {
                let found = or_refuse!(self.live(session)?);
                if let Some(held) = self.turn(session).holder()? {
                    return Ok(Err(Refusal::Held { holder: held.holder, expires_ms: held.expires_ms }));
                }
                let to = or_refuse!(check_number(*to, found.messages));
                self.forget_conversation(session)?;
                if found.messages - to > SLICE {
                    leftover::note(self.connection, self.user, session, 0, self.now)?;
                } else {
                    self.connection
                        .prepare_cached(
                            "DELETE FROM message WHERE user = ?1 AND session = ?2 AND number > ?3",
                        )?
                        .execute((self.user, session, to))?;
                }
                self.connection
                    .prepare_cached("UPDATE session SET next_message = ?3 + 1 WHERE user = ?1 AND id = ?2")?
                    .execute((self.user, session, to))?;
                self.event(session, "messages.rewound", &json!({ "to": to }))?;
                Ok(Ok(Done::Rewound { removed: found.messages - to }))
            }
            Change::Fork { session, at, id, name } => self.fork(session, *at, id, name.as_deref()),
            Change::SetEntry { session, key, value, if_revision } => {
                or_refuse!(self.live(session)?);
                self.set_entry(session, key, value.as_ref(), *if_revision)
            }
            Change::Ask { resource, holder, claim, busy, ttl_ms, wait_ms, history } => {
                let session = or_refuse!(self.session_of(resource)?);
                queue::keep(self.connection, self.process, self.now)?;
                let times = (*ttl_ms, *wait_ms);
                let ticket = or_refuse!(self.queue(&resource.key()).ask(holder, claim, *busy, times)?);
                let begins = ticket.token.is_some();
                self.placed(session.as_ref(), Waited { ticket, begins }, *history)
            }
            Change::Wait { resource, place, claim, ttl_ms, history } => {
                self.wait(resource, *place, claim, *ttl_ms, *history)
            }
            Change::Renew { resource, token, ttl_ms } => {
                or_refuse!(self.session_of(resource)?);
                let ticket = or_refuse!(self.queue(&resource.key()).renew(*token, *ttl_ms)?);
                Ok(Ok(Done::Ticket { ticket, history: None }))
            }
            Change::Leave { resource, place, claim, key } => {
                if !self.queue(&resource.key()).leave(*place, claim)? {
                    return Ok(Err(Refusal::Lost { token: place.unwrap_or(0) }));
                }
                self.connection
                    .prepare_cached("DELETE FROM answered WHERE user = ?1 AND key = ?2")?
                    .execute((self.user, key))?;
                Ok(Ok(Done::Left))
            }
            Change::StepAside { resource, claim } => {
                if !self.queue(&resource.key()).step_aside(claim)? {
                    return Ok(Err(Refusal::Lost { token: 0 }));
                }
                Ok(Ok(Done::Left))
            }
            Change::Release { resource, token } => {
                if !self.queue(&resource.key()).release(*token)? {
                    return Ok(Err(Refusal::Lost { token: *token }));
                }
                Ok(Ok(Done::Left))
            }
            Change::CommitTurn { session, token, bodies, conversation } => {
                or_refuse!(self.live(session)?);
                if !self.queue(&self.queue_of_turn(session)).release(*token)? {
                    return Ok(Err(Refusal::Lost { token: *token }));
                }
                let done = self.append(session, *token, bodies)?;
                if let Some(conversation) = conversation {
                    self.keep_conversation(session, conversation)?;
                }
                Ok(Ok(done))
            }
            Change::TakeConversation { session, token } => {
                or_refuse!(self.live(session)?);
                let queue = self.queue_of_turn(session);
                if self.queue(&queue).held_with(*token)?.is_none() {
                    return Ok(Err(Refusal::Lost { token: *token }));
                }
                let kept: Option<String> = self
                    .connection
                    .prepare_cached(
                        "SELECT value FROM entry WHERE user = ?1 AND session = ?2 AND kind = 'conversation'",
                    )?
                    .query_row((self.user, session), |row| row.get(0))
                    .optional()?;
                self.forget_conversation(session)?;
                let conversation = kept.and_then(|kept| serde_json::from_str(&kept).ok());
                Ok(Ok(Done::Conversation(conversation)))
            }
        }
    }

    /// A session that changes can be made in; its being used is one.
    fn live(&self, id: &str) -> Result<std::result::Result<Session, Refusal>> {
        let Some(found) = rows::session(self.connection, self.user, id)? else {
            return Ok(Err(Refusal::NoSession));
        };
        if !found.is_live(self.now) {
            return Ok(Err(Refusal::SessionOver));
        }
        self.connection
            .prepare_cached("UPDATE session SET used_ms = ?3 WHERE user = ?1 AND id = ?2")?
            .execute((self.user, id, self.now))?;
        Ok(Ok(found.session))
    }

    /// The session whose turn is asked for; a lock is nobody's but the user's.
    fn session_of(&self, resource: &Resource) -> Result<std::result::Result<Option<Session>, Refusal>> {
        match resource {
            Resource::Turn { session } => Ok(self.live(session)?.map(Some)),
            Resource::Lock { .. } => Ok(Ok(None)),
        }
    }

    fn now_is(&self, id: &str) -> Outcome {
        let found = rows::session(self.connection, self.user, id)?;
        Ok(found.map(|Found { session }| Done::Session(session)).ok_or(Refusal::NoSession))
    }

    /// Whether a name can be given. One that only an expired session has is free: that session is ended.
    fn free_name(&self, name: Option<&str>, to: Option<&str>) -> Result<std::result::Result<(), Refusal>> {
        let Some(name) = name else { return Ok(Ok(())) };
        match rows::named(self.connection, self.user, name)? {
            Some(found) if Some(found.session.id.as_str()) == to => Ok(Ok(())),
            Some(found) if found.is_live(self.now) => Ok(Err(Refusal::NameTaken)),
            Some(found) => self.end(&found.session.id, "expired").map(Ok),
            None => Ok(Ok(())),
        }
    }

    fn insert_session(
        &self,
        id: &str,
        name: Option<&str>,
        context: Option<&str>,
        labels: &BTreeMap<String, String>,
        idle_ms: i64,
        max_ms: i64,
    ) -> Result<()> {
        self.index_labels(id, labels)?;
        let labels = serde_json::to_string(labels).unwrap_or_default();
        self.connection
            .prepare_cached(
                "INSERT INTO session (user, id, name, context, owner, labels, idle_ms, max_ms, started_ms, boot,
                                      started_boot_ms, started_awake_ms, check_ms, used_ms)
                 VALUES (?1, ?2, ?3, ?4, '{}', ?5, ?6, ?7, ?8, '', 0, 0, ?9, ?8)",
            )?
            .execute((self.user, id, name, context, labels, idle_ms, max_ms, self.now, self.now + idle_ms.min(max_ms)))
            .map(drop)
    }

    /// Replaces what a session is found by.
    fn index_labels(&self, id: &str, labels: &BTreeMap<String, String>) -> Result<()> {
        self.connection
            .prepare_cached("DELETE FROM label WHERE user = ?1 AND session = ?2")?
            .execute((self.user, id))?;
        let mut insert = self
            .connection
            .prepare_cached("INSERT INTO label (user, key, value, session) VALUES (?1, ?2, ?3, ?4)")?;
        for (key, value) in labels {
            insert.execute((self.user, key, value, id))?;
        }
        Ok(())
    }

    fn end(&self, id: &str, reason: &str) -> Result<()> {
        self.connection
            .prepare_cached("UPDATE session SET ended_ms = ?3, end_reason = ?4, revision = revision + 1 WHERE user = ?1 AND id = ?2")?
            .execute((self.user, id, self.now, reason))?;
        self.connection
            .prepare_cached("DELETE FROM place WHERE user = ?1 AND resource = ?2")?
            .execute((self.user, self.queue_of_turn(id)))?;
        self.event(id, "session.ended", &json!({ "reason": reason }))
    }

    fn append(&self, session: &str, token: i64, bodies: &[JsonText]) -> Result<Done> {
        self.forget_conversation(session)?;
        let count = i64::try_from(bodies.len()).unwrap_or(0);
        let next: i64 = self
            .connection
            .prepare_cached(
                "UPDATE session SET next_message = next_message + ?3 WHERE user = ?1 AND id = ?2 RETURNING next_message",
            )?
            .query_row((self.user, session, count), |row| row.get(0))?;
        let first = next - count;
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO message (user, session, number, token, body, at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (user, session, number)
             DO UPDATE SET token = excluded.token, body = excluded.body, at_ms = excluded.at_ms",
        )?;
        // Where messages were rewound, rows that do not count may still be there.
        for (number, body) in (first..).zip(bodies) {
            insert.execute((self.user, session, number, token, body.get(), self.now))?;
        }
        let last = next - 1;
        self.event(session, "messages.appended", &json!({ "first": first, "last": last, "token": token }))?;
        Ok(Done::Appended { first, last })
    }

    fn forget_conversation(&self, session: &str) -> Result<()> {
        self.connection
            .prepare_cached("DELETE FROM entry WHERE user = ?1 AND session = ?2 AND kind = 'conversation'")?
            .execute((self.user, session))
            .map(drop)
    }

    /// Keeps it if the context is this session's, or nobody's until now.
    fn keep_conversation(&self, session: &str, conversation: &Conversation) -> Result<()> {
        let mark = conversation.mark();
        self.connection
            .prepare_cached(
                "INSERT INTO agent_context (context, user, session) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
            )?
            .execute((&mark, self.user, session))?;
        let value = serde_json::to_string(conversation).unwrap_or_default();
        self.connection
            .prepare_cached(
                "INSERT INTO entry (user, session, kind, key, value, revision, changed_ms)
                 SELECT user, session, 'conversation', '', ?4, 1, ?5 FROM agent_context
                 WHERE context = ?1 AND user = ?2 AND session = ?3",
            )?
            .execute((mark, self.user, session, value, self.now))
            .map(drop)
    }

    fn fork(&self, session: &str, at: Option<i64>, id: &str, name: Option<&str>) -> Outcome {
        let Some(Found { session: from }) = rows::session(self.connection, self.user, session)? else {
            return Ok(Err(Refusal::NoSession));
        };
        let at = or_refuse!(check_number(at.unwrap_or(from.messages), from.messages));
        or_refuse!(self.free_name(name, None)?);
        let (idle, max): (i64, i64) = self
            .connection
            .prepare_cached("SELECT idle_ms, max_ms FROM session WHERE user = ?1 AND id = ?2")?
            .query_row((self.user, session), |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.insert_session(id, name, from.context.as_deref(), &from.labels, idle, max)?;
        for (key, value) in &from.settings {
            self.set_setting(id, key, value)?;
        }
        let copied = leftover::usable(self.connection, self.user, session, id)?;
        leftover::copy(self.connection, (self.user, session, id), copied, at)?;
        self.connection
            .prepare_cached("UPDATE session SET next_message = ?3 + 1 WHERE user = ?1 AND id = ?2")?
            .execute((self.user, id, at))?;
        self.event(id, "session.started", &json!({ "forked_from": session, "at": at }))?;
        self.now_is(id)
    }

    fn set_setting(&self, session: &str, key: &str, value: &Value) -> Result<()> {
        if value.is_null() {
            return self
                .connection
                .prepare_cached(
                    "DELETE FROM entry WHERE user = ?1 AND session = ?2 AND kind = 'setting' AND key = ?3",
                )?
                .execute((self.user, session, key))
                .map(drop);
        }
        self.connection
            .prepare_cached(
                "INSERT INTO entry (user, session, kind, key, value, revision, changed_ms)
                 VALUES (?1, ?2, 'setting', ?3, ?4, 1, ?5)
                 ON CONFLICT (user, session, kind, key)
                 DO UPDATE SET value = excluded.value, revision = revision + 1, changed_ms = excluded.changed_ms",
            )?
            .execute((self.user, session, key, value.to_string(), self.now))
            .map(drop)
    }

    /// A removed value leaves its revision behind, so that none comes twice.
    fn set_entry(
        &self,
        session: &str,
        key: &str,
        value: Option<&JsonText>,
        expected: Option<i64>,
    ) -> Outcome {
        let last: Option<(String, i64)> = self
            .connection
            .prepare_cached(
                "SELECT kind, revision FROM entry
                 WHERE user = ?1 AND session = ?2 AND kind IN ('state', 'state-gone') AND key = ?3",
            )?
            .query_row((self.user, session, key), |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let there = last.as_ref().filter(|(kind, _)| kind == "state").map_or(0, |(_, revision)| *revision);
        if expected.is_some_and(|expected| expected != there) {
            return Ok(Err(Refusal::Changed { revision: there }));
        }
        if value.is_none() && there == 0 {
            return Ok(Ok(Done::Entry(None)));
        }
        let revision = last.map_or(1, |(_, revision)| revision + 1);
        self.connection
            .prepare_cached(
                "DELETE FROM entry WHERE user = ?1 AND session = ?2 AND kind IN ('state', 'state-gone') AND key = ?3",
            )?
            .execute((self.user, session, key))?;
        let kind = if value.is_some() { "state" } else { "state-gone" };
        let text = value.map_or("null", JsonText::get);
        self.connection
            .prepare_cached(
                "INSERT INTO entry (user, session, kind, key, value, revision, changed_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute((self.user, session, kind, key, text, revision, self.now))?;
        self.event(session, "state.changed", &json!({ "key": key, "revision": revision }))?;
        let entry = value.map(|value| Entry { key: key.to_owned(), value: value.clone(), revision });
        Ok(Ok(Done::Entry(entry)))
    }

    fn placed(&self, session: Option<&Session>, waited: Waited, history: i64) -> Outcome {
        let Waited { ticket, begins } = waited;
        let history = match (session, ticket.token) {
            (Some(session), Some(token)) => {
                if begins {
                    self.event(&session.id, "turn.began", &json!({ "token": token }))?;
                }
                Some(rows::last_messages(self.connection, self.user, session, history, i64::MAX)?)
            }
            _ => None,
        };
        Ok(Ok(Done::Ticket { ticket, history }))
    }

    fn event(&self, session: &str, kind: &str, body: &Value) -> Result<()> {
        let number: i64 = self
            .connection
            .prepare_cached(
                "UPDATE session SET next_event = next_event + 1 WHERE user = ?1 AND id = ?2 RETURNING next_event - 1",
            )?
            .query_row((self.user, session), |row| row.get(0))?;
        self.connection
            .prepare_cached("INSERT INTO event (user, session, number, kind, body, at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
            .execute((self.user, session, number, kind, body.to_string(), self.now))
            .map(drop)
    }

    fn queue_of_turn(&self, session: &str) -> String {
        Resource::Turn { session: session.to_owned() }.key()
    }

    fn turn(&self, session: &str) -> TurnQueue<'_> {
        TurnQueue { make: self, resource: self.queue_of_turn(session) }
    }

    fn queue<'q>(&'q self, resource: &'q str) -> Queue<'q> {
        Queue { connection: self.connection, user: self.user, resource, process: self.process, now: self.now }
    }
}

/// The queue of a session's turns, which only looks.
struct TurnQueue<'a> {
    make: &'a Make<'a>,
    resource: String,
}

impl TurnQueue<'_> {
    fn holder(&self) -> Result<Option<Ticket>> {
        self.make.queue(&self.resource).holder()
    }
}
