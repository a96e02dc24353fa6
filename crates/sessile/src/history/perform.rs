//! Making a change and recording it, in step.

use crate::context::transfer::looks_secret;
use crate::error::Result;
use crate::history::Effect;
use crate::history::effect::Side;
use crate::process::ProcessId;
use crate::settings::{Data, Document, Node};
use crate::state::State;
use crate::store::{OperationRow, Store};

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
    close_what_died(state, &mut store)?;
    let id = store.add_operation(&row(state, command, subject, effects, "intent", undoes))?;
    for (index, effect) in effects.iter().enumerate() {
        if let Err(error) = effect.bring_to(state, Side::After) {
            for made in effects[..index].iter().rev() {
                made.bring_to(state, Side::Before)?;
            }
            store.close_operation(id, "void")?;
            return Err(error);
        }
    }
    store.close_operation(id, "done")?;
    Ok(id)
}

/// Records something that happened by itself and cannot be undone this way.
pub fn record(state: &State, command: &str, subject: &str, reason: &str) -> Result<i64> {
    let mut store = state.store_for_writing()?;
    close_what_died(state, &mut store)?;
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

/// Brings the intents of processes that died to an end: what was begun is finished, what was not is void.
fn close_what_died(state: &State, store: &mut Store) -> Result<()> {
    for operation in store.open_operations()? {
        let process: Option<ProcessId> = serde_json::from_str(&operation.process).unwrap_or_default();
        if process.is_some_and(|process| process.is_alive()) {
            continue;
        }
        let effects: Vec<Effect> = serde_json::from_str(&operation.effects).unwrap_or_default();
        let at = |effect: &Effect, side| effect.is_at(state, side).unwrap_or(false);
        let begun =
            effects.iter().any(|effect| !matches!(effect, Effect::Event { .. }) && at(effect, Side::After));
        if begun {
            for effect in effects.iter().filter(|effect| at(effect, Side::Before)) {
                // What cannot be finished is at least not lost: the effect stays in the history.
                let _ = effect.bring_to(state, Side::After);
            }
        }
        let is_hidden = effects.iter().all(|effect| matches!(effect, Effect::Event { .. }));
        let outcome = match (begun, is_hidden) {
            (true, _) => "done",
            // Nothing of it was recorded, so nothing can be looked at.
            (false, true) => "unknown",
            (false, false) => "void",
        };
        store.close_operation(operation.id, outcome)?;
    }
    Ok(())
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
