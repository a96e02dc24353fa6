//! Undoing an operation, which is an operation too.

use crate::context::guard_weakening::authorize;
use crate::error::{Error, FileError, HistoryError, Result, UsageError};
use crate::history::effect::Side;
use crate::history::perform::perform_undoing;
use crate::history::{Effect, Operation, operation, settle};
use crate::state::State;
use crate::store::{OperationFilter, Scope};
use crate::terminal::Terminal;
use crate::text::shown;

/// Number of operations searched for one that can be undone.
const LOOK_BACK: usize = 200;

/// Undoes an operation: the one with this number, else the last one of this session or terminal. Returns what was
/// undone and the number of the operation that did it.
pub fn undo(state: &State, id: Option<i64>) -> Result<(Operation, i64)> {
    // The operation to undo may be one that a killed process left half-done.
    settle(state)?;
    let target = match id {
        Some(id) => operation::find(state, id)?,
        None => last(state)?,
    };
    let effects = reversed_effects(state, &target)?;
    let subject = format!("{} {}", target.command, target.subject);
    let done =
        perform_undoing(state, "undo", &subject, &effects, Some(target.id)).map_err(|error| match error {
            Error::File(FileError::ConcurrentChange { path, .. }) => {
                Error::History(HistoryError::UndoRefused {
                    id: target.id,
                    reason: format!("{} was changed later", path.display()),
                })
            }
            other => other,
        })?;
    Ok((target, done))
}

/// Checks whether an operation can be undone now, without undoing it. The error is the one that [`undo`] would return.
pub fn check_undo(state: &State, id: i64) -> Result<Operation> {
    let target = operation::find(state, id)?;
    reversed_effects(state, &target)?;
    Ok(target)
}

/// Effects that undo an operation, if it can be undone now.
fn reversed_effects(state: &State, target: &Operation) -> Result<Vec<Effect>> {
    if !target.undoable {
        let reason = target
            .effects
            .first()
            .map_or_else(|| "the effects of the operation are unknown".to_owned(), |effect| effect.subject());
        return Err(HistoryError::UndoRefused { id: target.id, reason }.into());
    }
    refuse_what_the_session_may_not(state, target)?;
    require_terminal(state, target)?;
    // Redoing is undoing the undo, so the chain of undos decides.
    if !in_effect(state, target)? {
        let by = target.undone_by.unwrap_or_default();
        return Err(HistoryError::UndoRefused {
            id: target.id,
            reason: format!("already undone by operation {by}"),
        }
        .into());
    }
    require_live_sessions(state, target)?;
    if let Some((later, subject)) = changed_later(state, target)? {
        let reason = format!("{subject} was changed later by operation {later}");
        return Err(HistoryError::UndoRefused { id: target.id, reason }.into());
    }
    for effect in &target.effects {
        if !effect.is_at(state, Side::After)? {
            let reason = format!("{} was changed later", effect.subject());
            return Err(HistoryError::UndoRefused { id: target.id, reason }.into());
        }
    }
    // In the reverse order, as later effects may depend on earlier ones.
    let mut effects: Vec<_> = target.effects.iter().rev().map(Effect::reversed).collect();
    if target.is_restored() {
        if effects.iter().any(Effect::grants_trust) {
            let reason = "a backup does not restore trust; review the project and trust it again";
            return Err(HistoryError::UndoRefused { id: target.id, reason: reason.to_owned() }.into());
        }
        effects.iter_mut().for_each(Effect::mark_untrusted);
    }
    authorize(state, &effects)?;
    if let Some(path) = effects.iter().find_map(|effect| effect.unmanaged_file(state)) {
        let reason =
            format!("{} is not a settings or context file of yours or of a project", shown(path.display()));
        return Err(HistoryError::UndoRefused { id: target.id, reason }.into());
    }
    if let Some(path) = effects.iter().find_map(|effect| effect.file_of_missing_project(state)) {
        let reason = format!("the project of {} no longer exists", shown(path.display()));
        return Err(HistoryError::UndoRefused { id: target.id, reason }.into());
    }
    Ok(effects)
}

/// Refuses to undo a terminal's selection except from an interactive call on that terminal.
fn require_terminal(state: &State, target: &Operation) -> Result<()> {
    let here = state.call().selectable_terminal().map(Terminal::key);
    let elsewhere = |effect: &Effect| match effect {
        Effect::Pointer { scope: Scope::Terminal, place, .. } if here.as_ref() != Some(place) => {
            Some(Terminal::key_device(place).to_owned())
        }
        _ => None,
    };
    // What also changed something else, such as a deleted context, takes its selections along.
    let Some(device) = target.effects.first().and_then(elsewhere).filter(|_| target.effects.len() == 1)
    else {
        return Ok(());
    };
    let reason = format!(
        "the operation changed the selection of terminal {device}; undo it there, without a pipe or a script"
    );
    Err(HistoryError::UndoRefused { id: target.id, reason }.into())
}

/// Refuses an undo in an expired session.
fn require_live_sessions(state: &State, target: &Operation) -> Result<()> {
    for effect in &target.effects {
        if let Effect::Entry { session, .. } | Effect::SessionName { session, .. } = effect {
            state.sessions()?.get_live(session)?;
        }
    }
    Ok(())
}

/// A later operation in effect that changed the same thing, even if it is the same again by now.
fn changed_later(state: &State, target: &Operation) -> Result<Option<(i64, String)>> {
    let later = OperationFilter { after: Some(target.id), ..OperationFilter::default() };
    for later in operation::list(state, &later)? {
        // What a later one did and what undid that again cancel each other out.
        let counts = later.undoes.is_none() && in_effect(state, &later)?;
        let touches = |effect: &Effect| target.effects.iter().any(|own| own.is_about_the_same(effect));
        let touched = later.effects.iter().find(|effect| touches(effect));
        if let Some(effect) = touched.filter(|_| counts) {
            return Ok(Some((later.id, effect.subject())));
        }
    }
    Ok(None)
}

/// Refuses to undo changes outside the session, unless the session made them.
fn refuse_what_the_session_may_not(state: &State, target: &Operation) -> Result<()> {
    let own = state.session()?.map(|current| current.session.id.to_string());
    let is_theirs = |effect: &Effect| !matches!(effect, Effect::Entry { session, .. } | Effect::SessionName { session, .. } if Some(session) == own.as_ref());
    if target.session == own || !target.effects.iter().any(is_theirs) {
        return Ok(());
    }
    let what = format!("undoing operation {} ({}), which was made outside it,", target.id, target.command);
    state.refuse_in_session(what, "undo it outside the session")
}

/// The last operation of this session or terminal that is in effect and is not itself an undo.
fn last(state: &State) -> Result<Operation> {
    let session = state.session()?.map(|current| current.session.id.to_string());
    let terminal = state.call().interactive_terminal().map(Terminal::key);
    let filter = match (&session, &terminal) {
        (Some(session), _) => OperationFilter { session: Some(session), ..OperationFilter::default() },
        (None, Some(terminal)) => OperationFilter { terminal: Some(terminal), ..OperationFilter::default() },
        (None, None) => {
            return Err(UsageError::Arguments(
                "the id of the operation is required outside of a session and a terminal; list ids with `history`"
                    .into(),
            ).into());
        }
    };
    let filter = OperationFilter { limit: Some(LOOK_BACK), ..filter };
    for operation in operation::list(state, &filter)? {
        if operation.undoes.is_none() && in_effect(state, &operation)? {
            return Ok(operation);
        }
    }
    Err(HistoryError::NotFound("that could be undone".to_owned()).into())
}

/// Whether an operation is in effect: it was not undone, or its undoing was undone.
fn in_effect(state: &State, operation: &Operation) -> Result<bool> {
    let mut is_in_effect = true;
    let (mut id, mut undone_by) = (operation.id, operation.undone_by);
    while let Some(by) = undone_by {
        // An operation is undone by a later one. A restored history may say otherwise, and then has no end.
        if by <= id {
            let reason =
                format!("the history is inconsistent: the earlier operation {by} claims to have undone it");
            return Err(HistoryError::UndoRefused { id: operation.id, reason }.into());
        }
        is_in_effect = !is_in_effect;
        (id, undone_by) = (by, operation::find(state, by)?.undone_by);
    }
    Ok(is_in_effect)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::trust;
    use crate::settings::project::Project;
    use crate::{App, Code, StateArgs, World};
    use std::path::Path;
    use std::time::Duration;

    fn open(dir: &Path, session: &str) -> State {
        let world = World::empty()
            .with_variable("SESSILE_CONFIG_DIR", dir.join("config"))
            .with_variable("SESSILE_STATE_DIR", dir.join("state"))
            .with_variable("SESSILE_SESSION", session);
        State::open(&App::new("sessile"), world, StateArgs::default()).unwrap()
    }

    #[test]
    fn session_cannot_undo_revoked_trust() {
        let dir = tempfile::tempdir().unwrap();
        let outside = open(dir.path(), "");
        let project = Project::at(outside.app(), outside.world(), dir.path());
        trust::grant(&outside, "project", &[(project.settings(), "a = 1".to_owned())]).unwrap();
        trust::revoke(&outside, "project", &project).unwrap();
        let time = Duration::from_secs(60);
        let (session, _) = outside.start_session(None, None, Default::default(), time, time).unwrap();

        let inside = open(dir.path(), session.id.as_str());
        let error = undo(&inside, Some(2)).unwrap_err();
        assert_eq!(error.code(), Code::InSession, "{error}");
        assert!(undo(&open(dir.path(), ""), Some(2)).is_ok(), "outside it is undone");
    }
}
