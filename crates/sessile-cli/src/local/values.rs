//! State values of a session of this machine.

use serde_json::Value;
use sessile::session::{EntryKind, SessionEntry};

use super::LocalBackend;
use crate::backend::STATE_PURPOSE;
use crate::error::{CommandError, Failure};
use crate::view::{ChangeReport, ValueChangeView};

impl LocalBackend<'_> {
    pub(crate) fn value(&self, key: &str) -> Result<SessionEntry, Failure> {
        let session = self.cx.state.require_session(STATE_PURPOSE)?;
        let (sessions, session) = self.cx.state.look_up_session(session.id.as_str())?;
        let entry = sessions.entry(&session, EntryKind::State, key)?;
        Ok(entry.ok_or_else(|| CommandError::EntryNotFound(key.to_owned()))?)
    }

    pub(crate) fn values(&self) -> Result<Vec<SessionEntry>, Failure> {
        let session = self.cx.state.require_session(STATE_PURPOSE)?;
        let (sessions, session) = self.cx.state.look_up_session(session.id.as_str())?;
        Ok(sessions.entries(&session, EntryKind::State)?)
    }

    pub(crate) fn set_value(
        &self,
        key: &str,
        value: Value,
        expected: Option<i64>,
    ) -> Result<ChangeReport<ValueChangeView>, Failure> {
        let session = self.cx.state.require_session(STATE_PURPOSE)?;
        let changed = self.cx.state.change_session_state(&session, key, Some(&value), expected)?;
        let change = ValueChangeView {
            key: key.to_owned(),
            old: changed.old.map(|old| old.value),
            new: Some(value),
            revision: changed.revision,
        };
        Ok(ChangeReport { change, place: self.cx.place(None) })
    }

    pub(crate) fn unset_value(
        &self,
        key: &str,
        expected: Option<i64>,
    ) -> Result<ChangeReport<ValueChangeView>, Failure> {
        let session = self.cx.state.require_session(STATE_PURPOSE)?;
        let changed = self.cx.state.change_session_state(&session, key, None, expected)?;
        let old = changed.old.ok_or_else(|| CommandError::EntryNotFound(key.to_owned()))?;
        let change = ValueChangeView { key: key.to_owned(), old: Some(old.value), new: None, revision: None };
        Ok(ChangeReport { change, place: self.cx.place(None) })
    }
}
