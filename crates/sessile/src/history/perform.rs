//! Making a change and recording it, in step.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use crate::context::approval::revoke_unrecorded;
use crate::context::guard_weakening::authorize;
use crate::error::{Error, FileError, HistoryError, Result, SessionError};
use crate::files::{LockedDir, NO_FOLLOW, create_private_dir};
use crate::history::effect::{Side, decode, encode};
use crate::history::rewrite::{TrustRule, is_untrusted};
use crate::history::{Effect, Undo, recorded};
use crate::process::ProcessId;
use crate::secrets::{has_url_password, is_credential_name, looks_secret};
use crate::settings::{Data, Document, Node};
use crate::state::State;
use crate::store::{EntryKind, OperationRow};

/// Makes a change: checks that this call may (`context::guard_weakening`), records the intent, makes every effect, closes the
/// operation. Returns its number. If a thing is not what the effect says it was, nothing is changed and the error is
/// [`ConcurrentChange`](crate::error::FileError::ConcurrentChange).
pub fn perform(state: &State, command: &str, subject: &str, effects: &[Effect]) -> Result<i64> {
    perform_undoing(state, command, subject, effects, None)
}

pub(super) fn perform_undoing(
    state: &State,
    command: &str,
    subject: &str,
    effects: &[Effect],
    undoes: Option<i64>,
) -> Result<i64> {
    debug_assert!(
        recorded(command).is_none_or(|known| matches!(known.undo, Undo::Yes(_))),
        "the table lists {command} as not undoable"
    );
    // Before the intent is stored: a refused change leaves nothing in the history.
    let removed = authorize(state, effects)?;
    let mut effects = effects.to_vec();
    // An undo brings back what its operation replaced, and that was looked at then.
    let rule = if undoes.is_some() { TrustRule::Keep } else { TrustRule::Extend };
    if undoes.is_none() {
        mark_untrusted(state, &mut effects)?;
    }
    let effects = effects.as_slice();
    // Revoked before the change, no approval opens a successor of that name, whatever happens after.
    for context in removed {
        revoke_unrecorded(state, &context)?;
    }
    let mut store = state.store_for_writing()?;
    let id = store.add_operation(&row(state, command, subject, effects, "intent", undoes))?;
    // One effect is whole or absent by itself; of several, a reader must not see some.
    // After the row and before the first effect: a marker without its row settles nothing.
    let mark = if effects.len() > 1 { Some(Mark::set(state, id)?) } else { None };
    for (index, effect) in effects.iter().enumerate() {
        if let Err(error) = effect.bring_to(state, Side::After, rule) {
            // Backwards, so that each effect finds the state that it left behind.
            for made in effects[..index].iter().rev() {
                made.bring_to(state, Side::Before, TrustRule::Keep)?;
            }
            store.void_operation(id)?;
            // The marker goes after the row: a crash in between costs the next call a look, and hides no
            // half-made change.
            drop(mark);
            return Err(error);
        }
    }
    // The change is made. An intent that stays open, on a full disk for example, is settled by the next writer.
    let _ = store.close_operation(id, "done");
    drop(mark);
    Ok(id)
}

/// Marks the effects that remove, replace or move content of a project's file that is not trusted, so that neither this
/// operation nor an undo makes that content trusted.
fn mark_untrusted(state: &State, effects: &mut [Effect]) -> Result<()> {
    let mut moves_untrusted = false;
    for effect in effects.iter_mut() {
        let is_marked = match effect {
            Effect::Text { path, before: Some(text), .. } => is_untrusted(state, path, text)?,
            Effect::Setting { path, before: Some(_), .. } => match state.read(path)? {
                Some(text) => is_untrusted(state, path, &text)?,
                None => false,
            },
            _ => false,
        };
        if is_marked {
            // A rename is a removed and a new file; the new one has the content of the untrusted one.
            moves_untrusted |= matches!(effect, Effect::Text { .. });
            effect.mark_untrusted();
        }
    }
    let is_new_file = |effect: &&mut Effect| matches!(effect, Effect::Text { before: None, .. });
    if moves_untrusted {
        effects.iter_mut().filter(is_new_file).for_each(Effect::mark_untrusted);
    }
    Ok(())
}

/// Attempts of a change that other processes overtake.
// A bound: a file that something rewrites all the time becomes an error, not a hang.
const TRIES: usize = 50;

/// Retries a change while other processes overtake it.
pub(crate) fn unless_overtaken<T>(mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    for _ in 1..TRIES {
        match attempt() {
            Err(
                Error::File(FileError::ConcurrentChange { .. })
                | Error::Session(SessionError::RevisionConflict { .. }),
            ) => {}
            other => return other,
        }
    }
    attempt()
}

/// Records something that happened and cannot be undone this way. An error says that it happened all the same.
pub fn record(state: &State, command: &str, subject: &str, reason: &str) -> Result<i64> {
    debug_assert!(
        recorded(command).is_none_or(|known| matches!(known.undo, Undo::No(_))),
        "the table lists {command} as undoable or not recorded"
    );
    let effects = [Effect::Event { reason: reason.to_owned() }];
    let row = row(state, command, subject, &effects, "done", None);
    state.store_for_writing().and_then(|mut store| store.add_operation(&row)).map_err(|source| {
        Error::History(HistoryError::NotRecorded {
            command: command.to_owned(),
            subject: subject.to_owned(),
            source: Box::new(source),
        })
    })
}

/// An operation as it goes into the store.
pub(crate) fn row(
    state: &State,
    command: &str,
    subject: &str,
    effects: &[Effect],
    outcome: &str,
    undoes: Option<i64>,
) -> OperationRow {
    let kept: Vec<Effect> = effects.iter().map(without_secrets).collect();
    OperationRow {
        id: 0,
        at_ms: state.now_ms(),
        user: state.account(),
        session: state.session().ok().flatten().map(|current| current.session.id.to_string()),
        terminal: state.call().interactive_terminal().map(crate::terminal::Terminal::key),
        command: command.to_owned(),
        subject: subject.to_owned(),
        effects: encode(&kept),
        state: outcome.to_owned(),
        // Pid, start time and boot id: a reused pid does not keep the intent of a dead process open.
        process: serde_json::to_string(&ProcessId::own()).unwrap_or_default(),
        undoes,
        undone_by: None,
    }
}

/// Settles the intents of dead processes: complete changes are confirmed, partial ones are rolled back.
/// Every change calls it before it reads the current state.
pub fn settle(state: &State) -> Result<()> {
    // A read without a lock: almost always nothing is open.
    let open = state.fresh_store()?.map(|store| store.open_operations()).transpose()?.unwrap_or_default();
    let is_dead = |operation: &OperationRow| {
        let process: Option<ProcessId> = serde_json::from_str(&operation.process).unwrap_or_default();
        !process.is_some_and(|process| process.is_alive())
    };
    let left: Vec<i64> = open.iter().filter(|operation| is_dead(operation)).map(|one| one.id).collect();
    if left.is_empty() {
        return Ok(());
    }
    // One settles at a time, and looks again: a process may have closed its operation before it ended, and what is
    // there now may be another's.
    let _alone = LockedDir::lock(&state.locker()?, &Mark::dir(state)?, 0o700)?;
    let mut store = state.store_for_writing()?;
    for operation in store.open_operations()?.into_iter().filter(|operation| left.contains(&operation.id)) {
        let effects = decode(&operation.effects);
        // Such an operation is from another history, and nothing of it is made or taken back.
        if effects.iter().any(|effect| effect.unmanaged_file(state).is_some()) {
            store.close_operation(operation.id, "unknown")?;
            Mark::remove(state, operation.id);
            continue;
        }
        let is_event = |effect: &Effect| matches!(effect, Effect::Event { .. });
        // What cannot be looked at now is left for later.
        let seen: Result<Vec<bool>> = effects.iter().map(|effect| effect.is_at(state, Side::After)).collect();
        let Ok(seen) = seen else { continue };
        let outcome = if effects.iter().all(is_event) {
            // Nothing of it was recorded, so nothing can be looked at.
            Some("unknown")
        } else if seen.iter().all(|made| *made) {
            Some("done")
        } else {
            // In the reverse order of the change.
            let made = effects.iter().zip(seen).rev().filter(|(effect, made)| *made && !is_event(effect));
            let take_back = |effect: &Effect| match effect.file_of_missing_project(state) {
                Some(path) => Err(FileError::NotFound(path.to_owned()).into()),
                None => effect.bring_to(state, Side::Before, TrustRule::Keep),
            };
            let taken_back: Result<Vec<()>> = made.map(|(effect, _)| take_back(effect)).collect();
            // What cannot be taken back is at least not lost: it stays in the history.
            taken_back.err().map(|_| "unknown")
        };
        match outcome {
            Some(outcome) => store.close_operation(operation.id, outcome)?,
            None => store.void_operation(operation.id)?,
        }
        Mark::remove(state, operation.id);
    }
    Ok(())
}

/// Settles the intents of dead processes if a marker exists. Every call begins with this, so that no call reads half
/// a change. Without a marker it costs one look at a directory. Returns whether a marker existed: the state must then
/// be opened again, because it may have read half a change.
pub fn settle_if_marked(state: &State) -> Result<bool> {
    let Ok(dir) = Mark::dir(state) else { return Ok(false) };
    // One entry is enough; the rest costs nothing on the path of every command.
    let marked = std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
    if marked {
        settle(state)?;
    }
    Ok(marked)
}

/// A sign that an operation of several effects is being made.
struct Mark(PathBuf);

impl Mark {
    fn dir(state: &State) -> Result<PathBuf> {
        Ok(state.dirs().state()?.join("intents"))
    }

    fn set(state: &State, id: i64) -> Result<Self> {
        let dir = Self::dir(state)?;
        create_private_dir(&dir)?;
        let path = dir.join(id.to_string());
        let made = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(NO_FOLLOW)
            .open(&path);
        made.map_err(|error| Error::io("write", &path, error))?;
        Ok(Mark(path))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the marker is useless after its operation is closed, so it needs no sync"
    )]
    fn remove(state: &State, id: i64) {
        if let Ok(dir) = Self::dir(state) {
            let _ = std::fs::remove_file(dir.join(id.to_string()));
        }
    }
}

impl Drop for Mark {
    #[expect(
        clippy::disallowed_methods,
        reason = "the marker is useless after its operation is closed, so it needs no sync"
    )]
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The effect as it may be kept: a text with what looks like a secret is not.
fn without_secrets(effect: &Effect) -> Effect {
    let hides = match effect {
        Effect::Text { path, before, after, .. } => {
            [before, after].into_iter().flatten().any(|text| text_hides(path, text))
        }
        Effect::Setting { key, .. } | Effect::Entry { entry: EntryKind::Setting, key, .. }
            // The setting `credential` holds the name of a credential, not its secret.
            if is_credential_name(key) =>
        {
            false
        }
        Effect::Setting { key, before, after, .. } | Effect::Entry { key, before, after, .. } => {
            [before, after].into_iter().flatten().any(|value| entry_hides(key, value))
        }
        _ => false,
    };
    if hides {
        Effect::Event {
            reason: format!("{} may contain a secret, so its content was not recorded", effect.subject()),
        }
    } else {
        effect.clone()
    }
}

/// Whether a key or something inside its value looks like a secret.
pub(crate) fn entry_hides(key: &str, value: &serde_json::Value) -> bool {
    looks_secret(key.rsplit('.').next().unwrap_or(key)) || json_hides(value)
}

fn json_hides(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Object(members) => {
            // A null under such a name hides nothing.
            members.iter().any(|(name, value)| !value.is_null() && is_secret_name(name) || json_hides(value))
        }
        serde_json::Value::Array(values) => values.iter().any(json_hides),
        serde_json::Value::String(text) => has_url_password(text),
        _ => false,
    }
}

fn is_secret_name(name: &str) -> bool {
    looks_secret(name) || name == "token"
}

fn text_hides(path: &std::path::Path, text: &str) -> bool {
    match Document::parse(path, text.to_owned()) {
        Ok(document) => node_hides(document.root(), &mut Vec::new()),
        // What cannot be parsed cannot be looked through.
        Err(_) => true,
    }
}

/// `within` are the tables around it: `credential` is the name of one at the top and in the tables that say so.
fn node_hides<'a>(node: &'a Node, within: &mut Vec<&'a str>) -> bool {
    node.members().iter().any(|(name, node)| match &node.data {
        Data::Text(text) if name == "credential" && names_credential(within) => has_url_password(text),
        Data::Text(text) => !text.is_empty() && (is_secret_name(name) || has_url_password(text)),
        _ => {
            within.push(name);
            let hides = node_hides(node, within);
            within.pop();
            hides
        }
    })
}

fn names_credential(within: &[&str]) -> bool {
    matches!(within, [] | [.., "settings"] | [.., "env" | "agents", _])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(key: &str, after: serde_json::Value) -> Effect {
        let session = "s".to_owned();
        Effect::Entry { session, entry: EntryKind::State, key: key.into(), before: None, after: Some(after) }
    }

    #[test]
    fn nested_secrets_are_not_recorded() {
        for effect in [
            entry("api_token", json!("x")),
            entry("plan", json!({ "token": "x" })),
            entry("plan", json!({ "steps": [{ "password": "x" }] })),
        ] {
            let kept = serde_json::to_string(&without_secrets(&effect)).unwrap();
            assert!(!kept.contains(r#""x""#), "{kept}");
        }
        let harmless = entry("plan", json!({ "step": 2, "name": "x" }));
        assert_eq!(without_secrets(&harmless), harmless);
    }
}
