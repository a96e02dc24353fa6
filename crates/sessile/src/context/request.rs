//! Approval requests: guarded commands that were refused and wait for a person's decision.
//!
//! Requests are in one small file beside the store, because each table of the store slows down every reader. A
//! request grants nothing: it records the requester, the context and the command, and expires.

use std::ffi::OsString;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::clock::rfc3339;
use crate::error::{GuardError, Result};
use crate::files::LockedDir;
use crate::secrets::redacted_words;
use crate::state::State;

/// File in the state directory.
pub(crate) const FILE: &str = "requests.json";
/// Requests that are kept; the oldest goes first.
const MOST_REQUESTS: usize = 20;
/// How long a request waits.
const LIFETIME_MS: i64 = 24 * 3600 * 1000;

/// A command that was refused because its context needs an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// Number of the request.
    pub id: u64,
    /// Context that the command needs.
    pub context: String,
    /// Command, without what looks like a secret.
    pub command: Vec<String>,
    /// OS user.
    pub requested_by: String,
    /// Session of the command, by name or id.
    pub session: Option<String>,
    /// Working directory.
    pub directory: Option<String>,
    /// Time of the refusal.
    pub requested_at: String,
    /// End of the request.
    pub expires_at: String,
    expires_ms: i64,
}

/// The requests that wait, the newest first.
pub fn pending(state: &State) -> Result<Vec<ApprovalRequest>> {
    let mut requests = load(state, state.dirs().state()?)?;
    requests.reverse();
    Ok(requests)
}

/// A request by its number.
pub fn get(state: &State, id: u64) -> Result<ApprovalRequest> {
    let found = pending(state)?.into_iter().find(|request| request.id == id);
    found.ok_or_else(|| GuardError::RequestNotFound(id).into())
}

/// Leaves a request for a command. The same command of the same session replaces its earlier one.
pub(crate) fn leave(state: &State, context: &str, words: &[OsString], session: Option<&str>) -> Result<()> {
    let now = state.now_ms();
    let expires_ms = now.saturating_add(LIFETIME_MS);
    let directory = state.world().cwd().map(|dir| dir.to_string_lossy().into_owned());
    let (command, session) = (redacted_words(words), session.map(str::to_owned));
    change(state, |requests| {
        let id = requests.iter().map(|request| request.id).max().unwrap_or(0) + 1;
        // A script that retries would otherwise push the requests of others out.
        requests.retain(|old| {
            (old.context.as_str(), &old.command, &old.session, &old.directory)
                != (context, &command, &session, &directory)
        });
        requests.push(ApprovalRequest {
            id,
            context: context.to_owned(),
            command,
            requested_by: state.world().user_name(),
            session,
            directory,
            requested_at: rfc3339(now),
            expires_at: rfc3339(expires_ms),
            expires_ms,
        });
        let over = requests.len().saturating_sub(MOST_REQUESTS);
        requests.drain(..over);
    })
}

/// Removes the requests of a context, which was approved.
pub(super) fn settle(state: &State, context: &str) -> Result<()> {
    // Without a request nothing is locked or written, which is the usual case.
    if load(state, state.dirs().state()?)?.iter().any(|request| request.context == context) {
        change(state, |requests| requests.retain(|request| request.context != context))?;
    }
    Ok(())
}

fn change(state: &State, make: impl FnOnce(&mut Vec<ApprovalRequest>)) -> Result<()> {
    let dir = LockedDir::lock(&state.locker()?, state.dirs().state()?, 0o700)?;
    // Read again under the lock.
    let mut requests = load(state, state.dirs().state()?)?;
    make(&mut requests);
    let text = serde_json::to_string(&requests).unwrap_or_default();
    // A request that a power cut loses is left again by the next refused command.
    dir.replace_for_now(Path::new(FILE), &text, 0o600)
}

/// The requests that have not ended, the oldest first. A file that means nothing holds none.
fn load(state: &State, dir: &Path) -> Result<Vec<ApprovalRequest>> {
    let text = crate::files::read(&dir.join(FILE))?.unwrap_or_default();
    let mut requests: Vec<ApprovalRequest> = serde_json::from_str(&text).unwrap_or_default();
    let now = state.now_ms();
    requests.retain(|request| now < request.expires_ms);
    Ok(requests)
}
