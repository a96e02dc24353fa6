//! History of a user's changes at a service.

use serde::Serialize;
use sessile::context::approval::time;
use sessile_wire::service::{HistoryEntry, HistoryPage};

use super::error::Subject;
use super::session::{Remote, cursor};
use crate::error::Failure;

impl Remote<'_> {
    /// The user's changes, newest first; if the call names a session, only those of the session.
    pub(crate) fn history(
        &self,
        since_ms: Option<i64>,
        limit: usize,
        after: Option<&str>,
    ) -> Result<Vec<RemoteOperation>, Failure> {
        let session = match self.named() {
            Some((text, false)) => Some(self.find(text, false)?),
            _ => None,
        };
        let mut query = vec![("limit", limit.clamp(1, 1000).to_string())];
        query.extend(session.as_ref().map(|session| ("session", session.id.clone())));
        query.extend(since_ms.map(|since| ("since_ms", since.max(0).to_string())));
        query.extend(after.map(|id| ("cursor", cursor(id))));
        let user = self.server.me()?.user;
        let items =
            self.server.pages::<HistoryPage>(&["v1", "history"], &query, limit, &Subject::default())?;
        Ok(items.into_iter().map(|entry| RemoteOperation::new(entry, user.clone())).collect())
    }
}

/// A change that a service recorded, in the form of a local operation. It cannot be undone.
#[derive(Debug, Serialize)]
pub(crate) struct RemoteOperation {
    pub(crate) id: String,
    pub(crate) at: String,
    user: String,
    pub(crate) session: Option<String>,
    terminal: Option<String>,
    pub(crate) command: String,
    pub(crate) subject: String,
    pub(crate) state: String,
    undoes: Option<i64>,
    undone_by: Option<i64>,
    undoable: bool,
    effects: [(); 0],
}

impl RemoteOperation {
    fn new(entry: HistoryEntry, user: String) -> Self {
        let command = command(&entry).to_owned();
        let HistoryEntry { id, at_ms, session, subject, outcome, .. } = entry;
        RemoteOperation {
            id,
            at: time(at_ms),
            user,
            terminal: None,
            command,
            subject: subject.or_else(|| session.clone()).unwrap_or_default(),
            session,
            state: outcome,
            undoes: None,
            undone_by: None,
            undoable: false,
            effects: [],
        }
    }
}

/// Command that makes a change, as the local history names it; the service's name of the change if no command makes it.
fn command(item: &HistoryEntry) -> &str {
    let is_lock = item.session.is_none() && item.subject.is_some();
    match item.action.as_str() {
        "start_session" => "session start",
        "end_session" => "session stop",
        "set_entry" => "session state set",
        "append" | "commit_turn" => "message send",
        "ask" | "wait" if is_lock => "lock acquire",
        "renew" if is_lock => "lock renew",
        "release" if is_lock => "lock release",
        "user.add" => "user add",
        "user.disable" => "user disable",
        "user.enable" => "user disable --undo",
        "token.create" => "user token create",
        "token.revoke" => "user token revoke",
        "login.approve" => "user approve",
        other => other,
    }
}
