//! Backend of a command: the stores of this machine, or a session service.
//!
//! The backend is resolved once per command. Both sides have the same operations and return the same views, so a
//! command prints one view for either.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use sessile::lock::{LockHolder, LockMode, LockName};
use sessile::session::lifecycle::Lifecycle;
use sessile::session::{SessionEntry, SessionName};

use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::local::LocalBackend;
use crate::remote::{Remote, ServiceClient};
use crate::view::{
    ChangeReport, ConversationView, LeaseView, LockView, OperationView, SessionDetailView, SessionListing,
    SessionRenameView, SessionStartView, SessionStopView, ValueChangeView,
};

/// Purpose that commands on state values name when no session is selected.
pub(crate) const STATE_PURPOSE: &str = "session state";

/// Backend of a command.
pub(crate) enum StateBackend<'a> {
    /// Stores of this machine.
    Local(LocalBackend<'a>),
    /// Session service.
    Remote(Remote<'a>),
}

/// A session to start.
pub(crate) struct SessionSpec<'a> {
    pub(crate) name: Option<&'a SessionName>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) agent: Option<&'a str>,
    pub(crate) idle: Duration,
    pub(crate) max: Duration,
}

/// Filter of a list of sessions.
pub(crate) struct SessionFilter<'a> {
    /// State; none for all.
    pub(crate) state: Option<Lifecycle>,
    pub(crate) context: Option<&'a str>,
    /// Labels as `KEY=VALUE`, or `KEY` for any value.
    pub(crate) labels: &'a [String],
    pub(crate) older_than: Option<Duration>,
    pub(crate) newer_than: Option<Duration>,
    pub(crate) limit: usize,
    /// Id of the last session of the page before.
    pub(crate) cursor: Option<&'a str>,
}

/// Page of the messages of a conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MessageRange {
    /// The last items.
    Last(i64),
    /// All messages, for an export.
    All,
}

impl SessionFilter<'_> {
    /// Whether a session matches in all but its state. `age` is in milliseconds.
    pub(crate) fn matches(&self, context: Option<&str>, labels: &BTreeMap<String, String>, age: i64) -> bool {
        let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let has = |pair: &String| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            labels.get(key).is_some_and(|found| value.is_empty() || found == value)
        };
        self.context.is_none_or(|wanted| context == Some(wanted))
            && self.labels.iter().all(has)
            && self.older_than.is_none_or(|limit| age > millis(limit))
            && self.newer_than.is_none_or(|limit| age <= millis(limit))
    }

    /// Whether a session in this state matches.
    pub(crate) fn matches_state(&self, state: Lifecycle) -> bool {
        self.state.is_none_or(|wanted| wanted == state)
    }

    /// Whether no session that has ended matches.
    pub(crate) fn excludes_ended(&self) -> bool {
        matches!(self.state, Some(Lifecycle::Live | Lifecycle::Expired))
    }
}

impl<'a> StateBackend<'a> {
    /// Backend that flags, variables and settings select.
    pub(crate) fn resolve(cx: &'a Cx) -> Result<Self, Failure> {
        Ok(match ServiceClient::of(cx, &cx.state)? {
            Some(server) => StateBackend::Remote(Remote { server, cx }),
            None => StateBackend::Local(LocalBackend { cx }),
        })
    }

    /// Starts a session, after stopping the one that it replaces.
    pub(crate) fn start_session(
        &self,
        spec: SessionSpec<'_>,
        replaced: Option<&str>,
    ) -> Result<ChangeReport<SessionStartView>, Failure> {
        match self {
            StateBackend::Local(local) => local.start_session(spec, replaced),
            StateBackend::Remote(remote) => remote.start_session(spec, replaced),
        }
    }

    /// Sessions that match, newest first.
    pub(crate) fn list_sessions(
        &self,
        filter: &SessionFilter<'_>,
        with_conversations: bool,
    ) -> Result<SessionListing, Failure> {
        match self {
            StateBackend::Local(local) => local.list_sessions(filter, with_conversations),
            StateBackend::Remote(remote) => remote.list_sessions(filter, with_conversations),
        }
    }

    /// The given session, else that of the call.
    pub(crate) fn show_session(&self, given: Option<&str>) -> Result<SessionDetailView, Failure> {
        match self {
            StateBackend::Local(local) => local.show_session(given),
            StateBackend::Remote(remote) => remote.show_session(given),
        }
    }

    /// Stops the given session, else that of the call.
    pub(crate) fn stop_session(&self, given: Option<&str>) -> Result<ChangeReport<SessionStopView>, Failure> {
        match self {
            StateBackend::Local(local) => local.stop_session(given),
            StateBackend::Remote(remote) => remote.stop_session(given),
        }
    }

    /// Renames a session.
    pub(crate) fn rename_session(
        &self,
        given: &str,
        new: &SessionName,
    ) -> Result<ChangeReport<SessionRenameView>, Failure> {
        match self {
            StateBackend::Local(local) => local.rename_session(given, new),
            StateBackend::Remote(remote) => remote.rename_session(given, new),
        }
    }

    /// A state value of the call's session.
    pub(crate) fn value(&self, key: &str) -> Result<SessionEntry, Failure> {
        match self {
            StateBackend::Local(local) => local.value(key),
            StateBackend::Remote(remote) => remote.value(key),
        }
    }

    /// All state values of the call's session, ordered by key.
    pub(crate) fn values(&self) -> Result<Vec<SessionEntry>, Failure> {
        match self {
            StateBackend::Local(local) => local.values(),
            StateBackend::Remote(remote) => remote.values(),
        }
    }

    /// Sets a state value, with `expected` only at that revision.
    pub(crate) fn set_value(
        &self,
        key: &str,
        value: Value,
        expected: Option<i64>,
    ) -> Result<ChangeReport<ValueChangeView>, Failure> {
        match self {
            StateBackend::Local(local) => local.set_value(key, value, expected),
            StateBackend::Remote(remote) => remote.set_value(key, value, expected),
        }
    }

    /// Removes a state value, with `expected` only at that revision.
    pub(crate) fn unset_value(
        &self,
        key: &str,
        expected: Option<i64>,
    ) -> Result<ChangeReport<ValueChangeView>, Failure> {
        match self {
            StateBackend::Local(local) => local.unset_value(key, expected),
            StateBackend::Remote(remote) => remote.unset_value(key, expected),
        }
    }

    /// Locks that are held, ordered by name.
    pub(crate) fn locks(&self) -> Result<Vec<LockView>, Failure> {
        match self {
            StateBackend::Local(local) => local.locks(),
            StateBackend::Remote(remote) => remote.locks(),
        }
    }

    /// A lock, if it is held.
    pub(crate) fn lock(&self, name: &LockName) -> Result<Option<LockView>, Failure> {
        match self {
            StateBackend::Local(local) => local.lock(name),
            StateBackend::Remote(remote) => remote.lock(name),
        }
    }

    /// Waits for a lock and acquires it for a time.
    pub(crate) fn acquire_lock(
        &self,
        name: &LockName,
        mode: LockMode,
        ttl: Duration,
    ) -> Result<LeaseView, Failure> {
        match self {
            StateBackend::Local(local) => local.acquire_lock(name, mode, ttl),
            StateBackend::Remote(remote) => remote.acquire_lock(name, mode, ttl),
        }
    }

    /// Renews the lease on a lock.
    pub(crate) fn renew_lock(
        &self,
        name: &LockName,
        token: i64,
        ttl: Duration,
    ) -> Result<LeaseView, Failure> {
        match self {
            StateBackend::Local(local) => local.renew_lock(name, token, ttl),
            StateBackend::Remote(remote) => Ok(remote.server.renew_lock(name, token, ttl)?.into()),
        }
    }

    /// Releases a lock.
    pub(crate) fn release_lock(&self, name: &LockName, token: i64) -> Outcome {
        match self {
            StateBackend::Local(local) => local.release_lock(name, token),
            StateBackend::Remote(remote) => remote.server.release_lock(name, token),
        }
    }

    /// Takes a lock away from the holder with a token.
    pub(crate) fn break_lock(&self, name: &LockName, token: i64, holder: &LockHolder) -> Outcome {
        match self {
            StateBackend::Local(local) => local.break_lock(name, token, holder),
            // A service lets every client of the user release a lock by its token.
            StateBackend::Remote(remote) => remote.server.release_lock(name, token),
        }
    }

    /// Conversation with its messages. A service stores it as a session.
    pub(crate) fn conversation(
        &self,
        given: Option<&str>,
        range: MessageRange,
    ) -> Result<ConversationView, Failure> {
        match self {
            StateBackend::Local(local) => local.conversation(given, range),
            StateBackend::Remote(remote) => remote.conversation(given, range),
        }
    }

    /// Operations, newest first.
    pub(crate) fn history(
        &self,
        since_ms: Option<i64>,
        limit: usize,
        after: Option<&str>,
    ) -> Result<Vec<OperationView>, Failure> {
        match self {
            StateBackend::Local(local) => local.history(since_ms, limit, after),
            StateBackend::Remote(remote) => remote.history(since_ms, limit, after),
        }
    }
}
