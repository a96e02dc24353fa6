//! Sessions that the hook starts: one for each context of a shell, and blocked ones.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::hook::{EnteredBy, EnteredSession};
use crate::names::ContextName;
use crate::session::{NewSession, Owner, Session};
use crate::state::State;

/// Label of a session that the hook started, with the word of the selection.
const LABEL: &str = "hook";
/// Labels of a blocked session: the reason, the context that was selected, and the selection whose session ended.
const REASON: &str = "reason";
const SELECTED: &str = "selected";
const OVER: &str = "over";

/// Whether the hook started a session.
pub fn is_of_hook(session: &Session) -> bool {
    has_hook_label(&session.labels)
}

/// Whether the labels are those of a session that the hook started.
pub fn has_hook_label(labels: &BTreeMap<String, String>) -> bool {
    labels.contains_key(LABEL)
}

/// Whether a session is blocked: its selection may not be used, and its room has no targets.
pub(crate) fn is_blocked(session: &Session) -> bool {
    session.labels.get(LABEL).map(String::as_str) == EnteredBy::Blocked.word()
}

/// Text of a prompt for a session of the hook: its context, or the reason why it is blocked.
pub fn prompt_label(session: &Session) -> Option<&str> {
    if is_blocked(session) {
        return session.labels.get(REASON).map(String::as_str);
    }
    session.context.as_deref().filter(|_| is_of_hook(session))
}

/// Blocked session to start.
pub(super) struct BlockedSelection {
    /// Reason, as the prompt shows it.
    pub(super) reason: String,
    /// Context that was selected.
    pub(super) context: Option<String>,
    /// Selection whose session ended.
    pub(super) over: Option<EnteredBy>,
}

impl EnteredSession {
    /// A session that a shell is in, by its labels and by the selection that led to it.
    pub(super) fn of(session: &Session, by: EnteredBy) -> Self {
        let label = |name: &str| session.labels.get(name).cloned().filter(|_| by == EnteredBy::Blocked);
        EnteredSession {
            session: session.id.to_string(),
            context: label(SELECTED).or_else(|| session.context.clone()),
            by,
            adopted: false,
            over: label(OVER).as_deref().and_then(EnteredBy::of_word),
            reason: label(REASON),
        }
    }
}

/// Starts a session of a context for a hooked shell.
pub(super) fn start(outside: &State, context: &ContextName, by: EnteredBy) -> Result<Session> {
    let labels = [(LABEL.to_owned(), by.word().unwrap_or_default().to_owned())];
    start_with(outside, Some(context.clone()), labels.into())
}

/// Starts a session without any target for a hooked shell.
pub(super) fn start_blocked(outside: &State, blocked: &BlockedSelection) -> Result<Session> {
    let word = |by: EnteredBy| by.word().unwrap_or_default().to_owned();
    let mut labels = BTreeMap::from([
        (LABEL.to_owned(), word(EnteredBy::Blocked)),
        (REASON.to_owned(), blocked.reason.clone()),
    ]);
    labels.extend(blocked.context.clone().map(|context| (SELECTED.to_owned(), context)));
    labels.extend(blocked.over.map(|over| (OVER.to_owned(), word(over))));
    start_with(outside, None, labels)
}

fn start_with(
    outside: &State,
    context: Option<ContextName>,
    labels: BTreeMap<String, String>,
) -> Result<Session> {
    let (idle, max) = outside.session_lifetime(None, None)?;
    let owner = Owner::of(outside.world(), None);
    outside.sessions()?.start(NewSession { name: None, context, owner, labels, idle, max })
}
