//! Making a change and recording it, in step.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use crate::context::transfer::looks_secret;
use crate::error::{Error, Result};
use crate::files::create_dir;
use crate::history::Effect;
use crate::history::effect::Side;
use crate::process::ProcessId;
use crate::settings::{Data, Document, Node};
use crate::state::State;
use crate::store::OperationRow;

/// Makes a change: records the intent, makes every effect, closes the operation. Returns its number. If a thing is
/// not what the effect says it was, nothing is changed and the error is
/// [`ConcurrentChange`](crate::Error::ConcurrentChange).
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
    let mut store = state.store_for_writing()?;
    let id = store.add_operation(&row(state, command, subject, effects, "intent", undoes))?;
    // One effect is whole or absent by itself; of several, a reader must not see some.
    let mark = if effects.len() > 1 { Some(Mark::set(state, id)?) } else { None };
    for (index, effect) in effects.iter().enumerate() {
        if let Err(error) = effect.bring_to(state, Side::After) {
            for made in effects[..index].iter().rev() {
                made.bring_to(state, Side::Before)?;
            }
            store.void_operation(id)?;
            drop(mark);
            return Err(error);
        }
    }
    store.close_operation(id, "done")?;
    drop(mark);
    Ok(id)
}

/// Records something that happened by itself and cannot be undone this way.
pub fn record(state: &State, command: &str, subject: &str, reason: &str) -> Result<i64> {
    let mut store = state.store_for_writing()?;
    store.add_operation(&row(
        state,
        command,
        subject,
        &[Effect::Event { reason: reason.to_owned() }],
        "done",
        None,
    ))
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
        terminal: state.world().terminal().map(crate::terminal::Terminal::key),
        command: command.to_owned(),
        subject: subject.to_owned(),
        effects: serde_json::to_string(&kept).unwrap_or_default(),
        state: outcome.to_owned(),
        process: serde_json::to_string(&ProcessId::own()).unwrap_or_default(),
        undoes,
        undone_by: None,
    }
}

/// Brings the intents of processes that died to an end: what was done whole is done, anything less is taken back.
/// Whoever is about to change something calls it before it looks at what there is.
pub fn settle(state: &State) -> Result<()> {
    let open = state.fresh_store()?.map(|store| store.open_operations()).transpose()?.unwrap_or_default();
    if open.is_empty() {
        return Ok(());
    }
    let mut store = state.store_for_writing()?;
    for operation in open {
        let process: Option<ProcessId> = serde_json::from_str(&operation.process).unwrap_or_default();
        if process.is_some_and(|process| process.is_alive()) {
            continue;
        }
        let effects: Vec<Effect> = serde_json::from_str(&operation.effects).unwrap_or_default();
        let is_event = |effect: &Effect| matches!(effect, Effect::Event { .. });
        let at = |effect: &Effect, side| effect.is_at(state, side).unwrap_or(false);
        let outcome = if effects.iter().all(is_event) {
            // Nothing of it was recorded, so nothing can be looked at.
            Some("unknown")
        } else if effects.iter().all(|effect| at(effect, Side::After)) {
            Some("done")
        } else {
            let made = effects.iter().rev().filter(|effect| !is_event(effect) && at(effect, Side::After));
            let taken_back: Result<Vec<()>> =
                made.map(|effect| effect.bring_to(state, Side::Before)).collect();
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

/// Settles what a process that died left half done, if there is any sign of it. Every call begins with this, so that
/// nobody sees a half; without a sign it costs a look at one directory. Returns whether there was a sign: what the
/// state has read until then may be that half, and it has to be opened again.
pub fn settle_if_marked(state: &State) -> Result<bool> {
    let Ok(dir) = Mark::dir(state) else { return Ok(false) };
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
        create_dir(&dir, 0o700)?;
        let path = dir.join(id.to_string());
        let made = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        made.map_err(|error| Error::io("write", &path, error))?;
        Ok(Mark(path))
    }

    #[expect(clippy::disallowed_methods, reason = "a sign is worth nothing once its operation is closed")]
    fn remove(state: &State, id: i64) {
        if let Ok(dir) = Self::dir(state) {
            let _ = std::fs::remove_file(dir.join(id.to_string()));
        }
    }
}

impl Drop for Mark {
    #[expect(clippy::disallowed_methods, reason = "a sign is worth nothing once its operation is closed")]
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The effect as it may be kept: a text with what looks like a secret is not.
fn without_secrets(effect: &Effect) -> Effect {
    let hides = match effect {
        Effect::Text { path, before, after } => {
            [before, after].into_iter().flatten().any(|text| text_hides(path, text))
        }
        Effect::Setting { key, .. } | Effect::Entry { key, .. } => {
            looks_secret(key.rsplit('.').next().unwrap_or(key))
        }
        _ => false,
    };
    if hides {
        Effect::Event {
            reason: format!("{} holds what looks like a secret, so it was not recorded", effect.subject()),
        }
    } else {
        effect.clone()
    }
}

fn text_hides(path: &std::path::Path, text: &str) -> bool {
    match Document::parse(path, text.to_owned()) {
        Ok(document) => node_hides(document.root()),
        // What cannot be parsed cannot be looked through.
        Err(_) => true,
    }
}

fn node_hides(node: &Node) -> bool {
    node.members().iter().any(|(name, node)| match &node.data {
        Data::Text(text) => !text.is_empty() && (looks_secret(name) || name == "token"),
        _ => node_hides(node),
    })
}
