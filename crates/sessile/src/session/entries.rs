//! A session's small values: JSON with a revision, changed by compare-and-set; and its settings, kept the same way.

use serde::Serialize;
use serde_json::Value;

use crate::error::{Result, SessionError, UsageError};
use crate::session::{Session, Sessions};
use crate::store::{EntryChange, EntryKind, EntryPlace, EntryRow, OperationRow, Store};
use crate::text::quoted;

/// The largest value.
pub const LARGEST: usize = 64 * 1024;
/// The longest key.
const LONGEST_KEY: usize = 256;

/// A value with its revision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionEntry {
    /// The key.
    pub key: String,
    /// The value.
    pub value: Value,
    /// Revision, which never decreases.
    pub revision: i64,
}

impl SessionEntry {
    fn of_row(store: &Store, row: EntryRow) -> Result<Self> {
        let damaged = |_| store.damaged(format!("the value of {} is not JSON", quoted(&row.key)));
        let value = crate::json::from_str(&row.value).map_err(damaged)?;
        Ok(SessionEntry { key: row.key, value, revision: row.revision })
    }
}

/// A change that was made.
#[derive(Clone, Debug)]
pub struct EntryUpdate {
    /// Previous entry.
    pub old: Option<SessionEntry>,
    /// The new revision; none after a removal.
    pub revision: Option<i64>,
}

/// Fails unless this can be an entry.
pub(super) fn check(key: &str, text: Option<&str>) -> Result<()> {
    // Control characters would act on the terminal that lists the keys.
    if key.is_empty() || key.len() > LONGEST_KEY || key.chars().any(char::is_control) {
        return Err(UsageError::InvalidName {
            what: "key",
            name: crate::text::shortened(key, 80),
            reason: "a key has 1 to 256 bytes and no control characters".into(),
        }
        .into());
    }
    // What is there already can be read and removed.
    let reason = match crate::json::is_reserved(key) {
        true => Some("the name is reserved"),
        false => crate::names::deceptive(key),
    };
    if let Some(reason) = text.and(reason) {
        let name = crate::text::shortened(key, 80);
        return Err(UsageError::InvalidName { what: "key", name, reason: reason.into() }.into());
    }
    match text.map(str::len).filter(|size| *size > LARGEST) {
        Some(size) => Err(UsageError::InvalidValue {
            place: key.to_owned(),
            value: format!("a value of {size} bytes"),
            expected: format!("a value of at most {LARGEST} bytes"),
        }
        .into()),
        None => Ok(()),
    }
}

impl Sessions {
    /// An entry.
    pub fn entry(&self, session: &Session, kind: EntryKind, key: &str) -> Result<Option<SessionEntry>> {
        let row = self.store.entry(self.place(session, kind), key)?;
        row.map(|row| SessionEntry::of_row(&self.store, row)).transpose()
    }

    /// All entries of a kind, in the order of their keys.
    pub fn entries(&self, session: &Session, kind: EntryKind) -> Result<Vec<SessionEntry>> {
        let rows = self.store.entries(self.place(session, kind))?.into_iter();
        rows.map(|row| SessionEntry::of_row(&self.store, row)).collect()
    }

    /// Sets an entry, or removes it with `None`. If `expected` is set, the current revision must be equal; 0 means
    /// that the entry must not exist.
    pub fn change_entry(
        &mut self,
        session: &Session,
        kind: EntryKind,
        key: &str,
        value: Option<&Value>,
        expected: Option<i64>,
    ) -> Result<EntryUpdate> {
        self.change_entry_recorded(session, kind, key, value, expected, |_| None)
    }

    /// The same, with what `record` makes of the old entry in the history.
    pub(crate) fn change_entry_recorded(
        &mut self,
        session: &Session,
        kind: EntryKind,
        key: &str,
        value: Option<&Value>,
        expected: Option<i64>,
        record: impl FnOnce(Option<&EntryRow>) -> Option<OperationRow>,
    ) -> Result<EntryUpdate> {
        let text = value.map(Value::to_string);
        check(key, text.as_deref())?;
        let now = self.now_ms();
        let place = EntryPlace { user: &self.user, session: session.id.as_str(), kind: kind.as_str() };
        match self.store.change_entry(place, key, text.as_deref(), expected, now, record)? {
            EntryChange::Made { old, revision } => {
                // The change is made; a mark of use that is lost does not undo it.
                let _ = session.room().touch(&self.world);
                // The new value replaces a damaged one, which counts as null.
                let old = old.map(|row| SessionEntry {
                    value: crate::json::from_str(&row.value).unwrap_or_default(),
                    key: row.key,
                    revision: row.revision,
                });
                Ok(EntryUpdate { old, revision })
            }
            EntryChange::Conflict(found) => Err(SessionError::RevisionConflict {
                key: key.to_owned(),
                expected: expected.unwrap_or_default(),
                found,
            }
            .into()),
            EntryChange::NoSession => Err(session.over(true)),
        }
    }

    fn place<'a>(&'a self, session: &'a Session, kind: EntryKind) -> EntryPlace<'a> {
        EntryPlace { user: &self.user, session: session.id.as_str(), kind: kind.as_str() }
    }
}
