//! Approval requests: guarded commands that were refused and wait for a person's decision.
//!
//! They are kept in one small file beside the store, because each table of the store costs every reader. A request opens nothing:
//! it says who wanted what, and ends by itself.

use std::ffi::OsString;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::clock::rfc3339;
use crate::error::{GuardError, Result};
use crate::files::LockedDir;
use crate::secrets::{has_url_password, looks_secret};
use crate::state::State;
use crate::text::{HIDDEN, shortened};

/// File in the state directory.
pub(crate) const FILE: &str = "requests.json";
/// Requests that are kept; the oldest goes first.
const MOST_REQUESTS: usize = 20;
/// How long a request waits.
const LIFETIME_MS: i64 = 24 * 3600 * 1000;
/// Words of a command that are kept, and characters of a word.
const MOST_WORDS: usize = 20;
const LONGEST_WORD: usize = 120;

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
    let (command, session) = (redacted(words), session.map(str::to_owned));
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

/// A command as it may be shown: values whose name or form says that they are secrets are hidden.
fn redacted(words: &[OsString]) -> Vec<String> {
    let mut shown = Vec::new();
    let mut is_value_of_secret = false;
    for word in words.iter().take(MOST_WORDS) {
        let word = word.to_string_lossy();
        let (name, value) =
            word.split_once('=').map_or((word.as_ref(), None), |(name, value)| (name, Some(value)));
        let is_named = looks_secret(name.trim_start_matches('-'));
        shown.push(match value {
            _ if is_value_of_secret || has_url_password(&word) => HIDDEN.to_owned(),
            Some(_) if is_named => format!("{}={HIDDEN}", shortened(name, LONGEST_WORD)),
            // A script may hold anything.
            _ if word.contains(char::is_whitespace) && looks_secret(&word) => HIDDEN.to_owned(),
            _ => shortened(&word, LONGEST_WORD),
        });
        // `--token VALUE` and `--token=VALUE` are both common, so the word after such a flag is hidden too.
        is_value_of_secret = value.is_none() && is_named && name.starts_with('-');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_a_command_are_hidden() {
        let words =
            ["deploy", "--token", "t0p", "--password=hunter2", "API_KEY=k", "https://a:b@c/", "-v", "x=1"];
        let shown = redacted(&words.map(OsString::from));
        for secret in ["t0p", "hunter2", "=k", "a:b"] {
            assert!(!shown.iter().any(|word| word.contains(secret)), "{secret}: {shown:?}");
        }
        assert_eq!(shown.first().map(String::as_str), Some("deploy"));
        assert_eq!(shown[6..], ["-v", "x=1"]);
    }
}
