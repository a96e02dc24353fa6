//! Values of a session of a service.

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use sessile::Error;
use sessile::error::SessionError;
use sessile::session::SessionEntry;
use sessile_wire::service::{ServiceSession, StateEntry, StatePage};

use super::client::ServiceRequest;
use super::error::Subject;
use super::session::Remote;
use crate::backend::STATE_PURPOSE;
use crate::error::{CommandError, Failure};
use crate::view::{ChangeReport, ValueChangeView};

/// Retries of a change that conflicts with another.
const TRIES: u32 = 20;

impl Remote<'_> {
    pub(crate) fn value(&self, key: &str) -> Result<SessionEntry, Failure> {
        self.value_of(&self.require(STATE_PURPOSE)?, key)
    }

    pub(crate) fn values(&self) -> Result<Vec<SessionEntry>, Failure> {
        self.values_of(&self.require(STATE_PURPOSE)?)
    }

    fn value_of(&self, session: &ServiceSession, key: &str) -> Result<SessionEntry, Failure> {
        let about = Subject { session: session.label(), key, ..Subject::default() };
        let answer: StateEntry =
            self.server.ask(&ServiceRequest::get(&["v1", "sessions", &session.id, "state", key]), &about)?;
        Ok(entry(&answer))
    }

    fn value_if_any(&self, session: &ServiceSession, key: &str) -> Result<Option<SessionEntry>, Failure> {
        match self.value_of(session, key) {
            Ok(entry) => Ok(Some(entry)),
            Err(Failure::Command(CommandError::EntryNotFound(_))) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// All values, in the order of their keys.
    pub(super) fn values_of(&self, session: &ServiceSession) -> Result<Vec<SessionEntry>, Failure> {
        let about = Subject { session: session.label(), ..Subject::default() };
        let (path, query) = (["v1", "sessions", &session.id, "state"], [("limit", "1000".to_owned())]);
        let found = self.server.pages::<StatePage>(&path, &query, usize::MAX, &about)?;
        Ok(found.iter().map(entry).collect())
    }

    pub(crate) fn set_value(
        &self,
        key: &str,
        value: Value,
        expected: Option<i64>,
    ) -> Result<ChangeReport<ValueChangeView>, Failure> {
        let session = self.require(STATE_PURPOSE)?;
        let path = ["v1", "sessions", session.id.as_str(), "state", key];
        let (old, new): (_, StateEntry) = self.change_value(&session, key, expected, |_, revision| {
            Ok(ServiceRequest::put(&path, &value)?.at_revision(Some(revision)))
        })?;
        let change = ValueChangeView {
            key: key.to_owned(),
            old: old.map(|old| old.value),
            new: Some(value),
            revision: Some(new.revision),
        };
        Ok(ChangeReport { change, place: self.place(&session) })
    }

    pub(crate) fn unset_value(
        &self,
        key: &str,
        expected: Option<i64>,
    ) -> Result<ChangeReport<ValueChangeView>, Failure> {
        let session = self.require(STATE_PURPOSE)?;
        let path = ["v1", "sessions", session.id.as_str(), "state", key];
        let missing = || CommandError::EntryNotFound(key.to_owned());
        let (old, IgnoredAny) = self.change_value(&session, key, expected, |old, revision| match old {
            Some(_) => Ok(ServiceRequest::delete(&path)?.at_revision(Some(revision))),
            None => Err(missing().into()),
        })?;
        let old = old.ok_or_else(missing)?;
        let change = ValueChangeView { key: key.to_owned(), old: Some(old.value), new: None, revision: None };
        Ok(ChangeReport { change, place: self.place(&session) })
    }

    /// Reads a value and changes it at that revision, so that the reported old value is right.
    fn change_value<T: DeserializeOwned>(
        &self,
        session: &ServiceSession,
        key: &str,
        expected: Option<i64>,
        change: impl Fn(Option<&SessionEntry>, i64) -> Result<ServiceRequest, Failure>,
    ) -> Result<(Option<SessionEntry>, T), Failure> {
        let mut tries = 0;
        loop {
            let old = self.value_if_any(session, key)?;
            let found = old.as_ref().map(|old| old.revision);
            let revision = found.unwrap_or(0);
            if let Some(expected) = expected.filter(|expected| *expected != revision) {
                return Err(SessionError::RevisionConflict { key: key.to_owned(), expected, found }.into());
            }
            let about =
                Subject { session: session.label(), key, expected: Some(revision), ..Subject::default() };
            match self.server.ask(&change(old.as_ref(), revision)?, &about) {
                Ok(answer) => return Ok((old, answer)),
                // Only who said at which revision is told.
                Err(Failure::Library(Error::Session(SessionError::RevisionConflict { .. })))
                    if expected.is_none() && tries < TRIES =>
                {
                    tries += 1;
                }
                Err(failure) => return Err(failure),
            }
        }
    }
}

fn entry(entry: &StateEntry) -> SessionEntry {
    SessionEntry {
        key: entry.key.clone(),
        revision: entry.revision,
        value: sessile::json::from_str(entry.value.get()).unwrap_or_default(),
    }
}
