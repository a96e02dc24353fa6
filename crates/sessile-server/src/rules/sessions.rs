//! Rules of sessions: starting, editing, ending and forking them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::decision::{ChangeResult, Decider};
use super::snapshot::{DirtyFields, LoadedSession};
use super::write::{EventKind, Write};
use crate::change::{ChangeOutcome, Refusal, StoreChange, check_number, check_settings};
use crate::ids::SessionId;
use crate::model::SessionRecord;

/// End reason of a session that expired before another session got its name.
const EXPIRED: &str = "expired";

impl Decider<'_> {
    pub(super) fn start_session(&mut self, change: &StoreChange) -> ChangeResult {
        let StoreChange::StartSession { id, name, context, labels, settings, idle_ms, max_ms } = change
        else {
            return Err(Refusal::NoSession);
        };
        self.free_name()?;
        let session = SessionRecord {
            context: context.clone(),
            labels: labels.clone(),
            idle_ms: *idle_ms,
            max_ms: *max_ms,
            ..self.new_session(id, name.as_deref())
        };
        Ok(self.create(session, settings, json!({})))
    }

    pub(super) fn edit_session(
        &mut self,
        if_revision: Option<i64>,
        name: Option<&String>,
        labels: Option<&BTreeMap<String, String>>,
        settings: &BTreeMap<String, Value>,
    ) -> ChangeResult {
        let mut record = self.live_session()?;
        let revision = record.session.revision;
        if if_revision.is_some_and(|expected| expected != revision) {
            return Err(Refusal::Changed { revision });
        }
        check_settings(&record.session.settings, settings)?;
        self.free_name()?;
        record.mark(DirtyFields::All);
        record.session.revision += 1;
        if let Some(name) = name {
            record.session.name = Some(name.clone());
        }
        // Rewriting the same labels would only cost index writes.
        if let Some(labels) = labels.filter(|labels| **labels != record.session.labels) {
            record.session.labels.clone_from(labels);
            self.writes.push(Write::DeleteLabels { session: record.session.id.clone() });
            self.insert_labels(&record.session);
        }
        for (key, value) in settings {
            self.set_setting(&mut record.session, key, value);
        }
        self.record_event(&mut record, EventKind::SessionEdited, json!({}));
        Ok(ChangeOutcome::Session(self.session.insert(record).session.clone()))
    }

    pub(super) fn end_session(&mut self, reason: &str) -> ChangeResult {
        let mut record = self.session.take().ok_or(Refusal::NoSession)?;
        if record.session.ended_ms.is_none() {
            self.end(&mut record, reason);
        }
        Ok(ChangeOutcome::Session(self.session.insert(record).session.clone()))
    }

    pub(super) fn fork(&mut self, at: Option<i64>, id: &SessionId, name: Option<&str>) -> ChangeResult {
        let record = self.session.take().ok_or(Refusal::NoSession)?;
        // The source itself may hold the name that the fork asks for: it is taken if live, freed if expired.
        if name.is_some() && record.session.name.as_deref() == name && record.session.ended_ms.is_none() {
            self.named = Some(record.clone());
        }
        let source = record.session;
        let at = check_number(at.unwrap_or(source.messages), source.messages)?;
        self.free_name()?;
        let session = SessionRecord {
            context: source.context,
            labels: source.labels,
            idle_ms: source.idle_ms,
            max_ms: source.max_ms,
            messages: at,
            ..self.new_session(id, name)
        };
        let from = source.id;
        self.writes.push(Write::CopyMessages { from: from.clone(), to: id.clone(), last: at });
        Ok(self.create(session, &source.settings, json!({ "forked_from": from, "at": at })))
    }

    /// Frees the name that the change gives: a session that has expired loses it.
    fn free_name(&mut self) -> Result<(), Refusal> {
        let Some(mut named) = self.named.take() else { return Ok(()) };
        if named.session.is_live(self.now) {
            return Err(Refusal::NameTaken);
        }
        self.end(&mut named, EXPIRED);
        self.named = Some(named);
        Ok(())
    }

    fn new_session(&self, id: &SessionId, name: Option<&str>) -> SessionRecord {
        SessionRecord {
            id: id.clone(),
            name: name.map(str::to_owned),
            context: None,
            labels: BTreeMap::new(),
            settings: BTreeMap::new(),
            revision: 1,
            started_ms: self.now,
            used_ms: self.now,
            expires_ms: self.now,
            idle_ms: 0,
            max_ms: 0,
            ended_ms: None,
            end_reason: None,
            messages: 0,
        }
    }

    fn create(
        &mut self,
        mut session: SessionRecord,
        settings: &BTreeMap<String, Value>,
        event: Value,
    ) -> ChangeOutcome {
        session.set_expiry();
        self.insert_labels(&session);
        for (key, value) in settings {
            self.set_setting(&mut session, key, value);
        }
        let mut record = LoadedSession::new(session, 1);
        self.record_event(&mut record, EventKind::SessionStarted, event);
        ChangeOutcome::Session(self.created.insert(record).session.clone())
    }

    fn end(&mut self, record: &mut LoadedSession, reason: &str) {
        record.session.ended_ms = Some(self.now);
        record.session.end_reason = Some(reason.to_owned());
        record.session.revision += 1;
        record.mark(DirtyFields::All);
        // Waiters look again and find the session over; a holder's token counts no more.
        self.writes.push(Write::DeleteTurnPlaces { session: record.session.id.clone() });
        self.record_event(record, EventKind::SessionEnded, json!({ "reason": reason }));
    }

    fn insert_labels(&mut self, session: &SessionRecord) {
        if !session.labels.is_empty() {
            let labels = session.labels.clone().into_iter().collect();
            self.writes.push(Write::InsertLabels { session: session.id.clone(), labels });
        }
    }

    fn set_setting(&mut self, session: &mut SessionRecord, key: &str, value: &Value) {
        let (id, key) = (session.id.clone(), key.to_owned());
        if value.is_null() {
            session.settings.remove(&key);
            self.writes.push(Write::DeleteSetting { session: id, key });
        } else {
            session.settings.insert(key.clone(), value.clone());
            self.writes.push(Write::PutSetting { session: id, key, value: value.clone() });
        }
    }
}
