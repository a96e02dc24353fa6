//! Undoing an operation, which is an operation too.

use crate::error::{Error, Result};
use crate::history::effect::Side;
use crate::history::perform::perform_undoing;
use crate::history::{Operation, operation, settle};
use crate::state::State;
use crate::store::OperationFilter;

/// How far back the last operation that can be undone is looked for.
const LOOK_BACK: usize = 200;

/// Undoes an operation: the one with this number, else the last one of this session or terminal. Returns what was
/// undone and the number of the operation that did it.
pub fn undo(state: &State, id: Option<i64>) -> Result<(Operation, i64)> {
    settle(state)?;
    let target = match id {
        Some(id) => operation::find(state, id)?,
        None => last(state)?,
    };
    if !target.undoable {
        let reason = target
            .effects
            .first()
            .map_or_else(|| "nothing of it is known".to_owned(), |effect| effect.subject());
        return Err(Error::UndoRefused { id: target.id, reason });
    }
    if !in_effect(state, &target)? {
        let by = target.undone_by.unwrap_or_default();
        return Err(Error::UndoRefused {
            id: target.id,
            reason: format!("operation {by} has undone it already"),
        });
    }
    for effect in &target.effects {
        if !effect.is_at(state, Side::After)? {
            let reason = format!("{} was changed since", effect.subject());
            return Err(Error::UndoRefused { id: target.id, reason });
        }
    }
    let effects: Vec<_> = target.effects.iter().rev().map(super::Effect::reversed).collect();
    let subject = format!("{} {}", target.command, target.subject);
    let done =
        perform_undoing(state, "undo", &subject, &effects, Some(target.id)).map_err(|error| match error {
            Error::ConcurrentChange { path, .. } => {
                Error::UndoRefused { id: target.id, reason: format!("{} was changed since", path.display()) }
            }
            other => other,
        })?;
    Ok((target, done))
}

/// The last operation of this session or terminal that is in effect and is not itself an undo.
fn last(state: &State) -> Result<Operation> {
    let session = state.session()?.map(|current| current.session.id.to_string());
    let terminal = state.world().terminal().map(crate::terminal::Terminal::key);
    let filter = match (&session, &terminal) {
        (Some(session), _) => OperationFilter { session: Some(session), ..OperationFilter::default() },
        (None, Some(terminal)) => OperationFilter { terminal: Some(terminal), ..OperationFilter::default() },
        (None, None) => {
            return Err(Error::Usage(
                "there is no session and no terminal here whose last operation could be meant: give its id"
                    .into(),
            ));
        }
    };
    let filter = OperationFilter { limit: Some(LOOK_BACK), ..filter };
    for operation in operation::list(state, &filter)? {
        if operation.undoes.is_none() && operation.undoable && in_effect(state, &operation)? {
            return Ok(operation);
        }
    }
    Err(Error::OperationNotFound("that could be undone".to_owned()))
}

/// Whether an operation is in effect: it was not undone, or its undoing was undone.
fn in_effect(state: &State, operation: &Operation) -> Result<bool> {
    match operation.undone_by {
        None => Ok(true),
        Some(by) => Ok(!in_effect(state, &operation::find(state, by)?)?),
    }
}
