//! Carrying out the writes of a decision. Every statement is bound to the user.

use rusqlite::{Connection, Params, Result, params};

use super::bulk::{self, SLICE};
use super::heartbeat;
use crate::ids::{FencingToken, SessionId, turn_token};
use crate::json_text::JsonText;
use crate::model::{AgentConversation, Resource, SessionRecord, Ticket};
use crate::rules::{LoadedSession, QueuePlace, StoredEntry, Write};

/// The writes of one change.
pub(super) struct SqliteWrites<'a> {
    pub(super) connection: &'a Connection,
    pub(super) user: &'a str,
    /// Id of this process.
    pub(super) process: &'a str,
    pub(super) now: i64,
}

impl SqliteWrites<'_> {
    /// Carries out a write.
    pub(super) fn carry_out(&self, write: &Write<'_>) -> Result<()> {
        let (user, now) = (self.user, self.now);
        match write {
            Write::InsertSession(record) => self.insert_session(record),
            Write::UpdateSession(record) => self.update_session(record),
            Write::UpdateCounters(record) => {
                let SessionRecord { id, used_ms, messages, .. } = &record.session;
                self.run(
                    "UPDATE session SET used_ms = ?3, next_message = ?4, next_event = ?5 WHERE user = ?1 AND id = ?2",
                    (user, id.as_str(), used_ms, messages + 1, record.next_event),
                )
            }
            Write::DeleteLabels { session } => {
                self.run("DELETE FROM label WHERE user = ?1 AND session = ?2", (user, session.as_str()))
            }
            Write::InsertLabels { session, labels } => labels.iter().try_for_each(|(key, value)| {
                self.run(
                    "INSERT INTO label (user, key, value, session) VALUES (?1, ?2, ?3, ?4)",
                    (user, key, value, session.as_str()),
                )
            }),
            Write::PutSetting { session, key, value } => self.run(
                "INSERT INTO entry (user, session, kind, key, value, revision, changed_ms)
                 VALUES (?1, ?2, 'setting', ?3, ?4, 1, ?5)
                 ON CONFLICT (user, session, kind, key)
                 DO UPDATE SET value = excluded.value, revision = revision + 1, changed_ms = excluded.changed_ms",
                (user, session.as_str(), key, value.to_string(), now),
            ),
            Write::DeleteSetting { session, key } => self.run(
                "DELETE FROM entry WHERE user = ?1 AND session = ?2 AND kind = 'setting' AND key = ?3",
                (user, session.as_str(), key),
            ),
            Write::ReplaceEntry { session, key, value, revision } => {
                self.run(
                    "DELETE FROM entry
                     WHERE user = ?1 AND session = ?2 AND kind IN ('state', 'state-gone') AND key = ?3",
                    (user, session.as_str(), key),
                )?;
                let kind = if value.is_some() { StoredEntry::KIND } else { StoredEntry::REMOVED_KIND };
                let text = value.map_or("null", JsonText::get);
                self.run(
                    "INSERT INTO entry (user, session, kind, key, value, revision, changed_ms)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                    (user, session.as_str(), kind, key, text, revision, now),
                )
            }
            Write::InsertMessages { session, first, token, bodies } => {
                self.insert_messages(session, *first, *token, bodies)
            }
            Write::DeleteMessagesAfter { session, after, last } => {
                // Too many for one transaction: rows behind the new end are never read, and removed later.
                if last - after > SLICE {
                    return bulk::note(self.connection, user, session.as_str(), 0, now);
                }
                self.run(
                    "DELETE FROM message WHERE user = ?1 AND session = ?2 AND number > ?3",
                    (user, session.as_str(), after),
                )
            }
            Write::CopyMessages { from, to, last } => {
                let (from, to) = (from.as_str(), to.as_str());
                let copied = bulk::usable(self.connection, user, from, to)?;
                bulk::copy(self.connection, (user, from, to), copied, *last)
            }
            Write::DeleteConversation { session } => self.run(
                "DELETE FROM entry WHERE user = ?1 AND session = ?2 AND kind = 'conversation'",
                (user, session.as_str()),
            ),
            Write::InsertConversation { session, conversation } => {
                self.insert_conversation(session, conversation)
            }
            Write::InsertEvent { session, number, kind, body } => self.run(
                "INSERT INTO event (user, session, number, kind, body, at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                (user, session.as_str(), number, kind.name(), body.to_string(), now),
            ),
            Write::DeleteTurnPlaces { session } => self.run(
                "DELETE FROM place WHERE user = ?1 AND resource = ?2",
                (user, Resource::Turn { session: session.clone() }.key()),
            ),
            Write::DeletePlaces { resource, positions } => positions.iter().try_for_each(|position| {
                self.run(
                    "DELETE FROM place WHERE user = ?1 AND resource = ?2 AND place = ?3",
                    (user, resource, position.get()),
                )
            }),
            Write::SetNextNumber { resource, next } => self.run(
                "INSERT INTO queue (user, resource, next) VALUES (?1, ?2, ?3)
                 ON CONFLICT (user, resource) DO UPDATE SET next = excluded.next",
                (user, resource, next),
            ),
            Write::PutPlace { resource, place } => self.put_place(resource, place),
            Write::Heartbeat => heartbeat::send(self.connection, self.process, now),
            Write::DeleteAnswer { key } => {
                self.run("DELETE FROM answered WHERE user = ?1 AND key = ?2", (user, key))
            }
            Write::InsertAnswer { key, change, done } => self.run(
                "INSERT INTO answered (user, key, change, done, at_ms) VALUES (?1, ?2, ?3, ?4, ?5)",
                (user, key, change, done, now),
            ),
        }
    }

    fn run(&self, sql: &str, params: impl Params) -> Result<()> {
        self.connection.prepare_cached(sql)?.execute(params).map(drop)
    }

    fn insert_session(&self, record: &LoadedSession) -> Result<()> {
        let session = &record.session;
        self.run(
            "INSERT INTO session (user, id, name, context, owner, labels, idle_ms, max_ms, started_ms, boot,
                                  started_boot_ms, started_awake_ms, check_ms, used_ms, next_message, next_event)
             VALUES (?1, ?2, ?3, ?4, '{}', ?5, ?6, ?7, ?8, '', 0, 0, ?9, ?8, ?10, ?11)",
            params![
                self.user,
                session.id.as_str(),
                session.name,
                session.context,
                labels_column(session),
                session.idle_ms,
                session.max_ms,
                session.started_ms,
                session.expires_ms,
                session.messages + 1,
                record.next_event,
            ],
        )
    }

    fn update_session(&self, record: &LoadedSession) -> Result<()> {
        let session = &record.session;
        self.run(
            "UPDATE session SET name = ?3, labels = ?4, used_ms = ?5, ended_ms = ?6, end_reason = ?7, revision = ?8,
                 next_message = ?9, next_event = ?10
             WHERE user = ?1 AND id = ?2",
            params![
                self.user,
                session.id.as_str(),
                session.name,
                labels_column(session),
                session.used_ms,
                session.ended_ms,
                session.end_reason,
                session.revision,
                session.messages + 1,
                record.next_event,
            ],
        )
    }

    fn insert_messages(
        &self,
        session: &SessionId,
        first: i64,
        token: Option<FencingToken>,
        bodies: &[JsonText],
    ) -> Result<()> {
        let (session, token) = (session.as_str(), turn_token::to_number(token));
        // Rows of rewound messages, which do not count, may still be there.
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO message (user, session, number, token, body, at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (user, session, number)
             DO UPDATE SET token = excluded.token, body = excluded.body, at_ms = excluded.at_ms",
        )?;
        for (number, body) in (first..).zip(bodies) {
            insert.execute((self.user, session, number, token, body.get(), self.now))?;
        }
        Ok(())
    }

    fn insert_conversation(&self, session: &SessionId, conversation: &AgentConversation) -> Result<()> {
        let (session, mark) = (session.as_str(), conversation.mark());
        self.run(
            "INSERT INTO agent_context (context, user, session) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
            (&mark, self.user, session),
        )?;
        let value = serde_json::to_string(conversation).unwrap_or_default();
        self.run(
            "INSERT INTO entry (user, session, kind, key, value, revision, changed_ms)
             SELECT user, session, 'conversation', '', ?4, 1, ?5 FROM agent_context
             WHERE context = ?1 AND user = ?2 AND session = ?3",
            (mark, self.user, session, value, self.now),
        )
    }

    fn put_place(&self, resource: &str, place: &QueuePlace) -> Result<()> {
        let QueuePlace { ticket, process, claim, .. } = place;
        let Ticket { place, token, holder, mode, session, asked_ms, expires_ms } = ticket;
        let token = token.map(FencingToken::get);
        self.run(
            "INSERT INTO place (user, resource, place, token, holder, asked_ms, expires_ms, process, claim, shared, session)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
             ON CONFLICT (user, resource, place)
             DO UPDATE SET token = excluded.token, expires_ms = excluded.expires_ms, process = excluded.process,
                 claim = excluded.claim",
            (
                self.user,
                resource,
                place.get(),
                token,
                holder,
                asked_ms,
                expires_ms,
                process,
                claim,
                mode.is_shared(),
                session,
            ),
        )
    }
}

/// Labels of a session as its row has them.
fn labels_column(session: &SessionRecord) -> String {
    serde_json::to_string(&session.labels).unwrap_or_default()
}
