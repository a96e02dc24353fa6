//! Permission for changes that lift the protection of a target.
//!
//! A target is protected as long as only guarded contexts of the user bind it. Binding it in an unguarded context, or no longer
//! binding it in the guarded one, opens it to every session. Binding it in a context with a weaker guard opens it to whoever names
//! that context. Each of these changes weakens the guard of the contexts that protect the target.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::call::ConfigSource;
use crate::context::guard_weakening::{ContextChange, require_authority};
use crate::context::{Context, ContextLocation, Guard};
use crate::error::{Error, GuardError, Protection, Result};
use crate::history::Effect;
use crate::settings::Document;
use crate::state::State;
use crate::text::quoted;
use crate::tool::{GuardedTarget, targets_of};

/// Fails unless this call may lift the protections that the effects lift.
pub(super) fn authorize_unprotecting(state: &State, effects: &[Effect]) -> Result<()> {
    let texts: Vec<(&PathBuf, Option<&str>)> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Text { path, after, .. } => Some((path, after.as_deref())),
            _ => None,
        })
        .collect();
    if texts.is_empty() {
        return Ok(());
    }
    let before = match state.contexts().user_contexts() {
        Ok(before) => before,
        // What the unreadable file protects is unknown, so only the change that repairs it may pass.
        Err(error) => return if repairs(state, &texts) { Ok(()) } else { Err(error) },
    };
    if before.iter().all(|context| context.guard == Guard::None) {
        return Ok(());
    }
    let after = contexts_after(state, &before, &texts);
    let Some(after) = after else { return Ok(()) };
    let still = targets_of(state, &after)?;
    let protected = targets_of(state, &before)?.into_iter().filter(GuardedTarget::is_protected);
    let is_kept = |target: &GuardedTarget| {
        let same = |other: &&GuardedTarget| {
            (&other.tool, &other.key, &other.name) == (&target.tool, &target.key, &target.name)
        };
        let demanded = weakest_guard(target, &before);
        let mut kept = still.iter().filter(same).filter(|other| other.is_protected());
        kept.any(|other| weakest_guard(other, &after) >= demanded)
    };
    for target in protected.filter(|target| !is_kept(target)) {
        let what =
            format!("lifting the protection of {} {} {}", target.tool, target.key, quoted(&target.name));
        state.refuse_in_session(what, "do it outside the session")?;
        let guards = before.iter().filter(|context| target.contexts.contains(&context.name.to_string()));
        for context in guards.filter(|context| context.guard == Guard::Approval) {
            let change = ContextChange::of(context, Some(Guard::None));
            require_authority(state, &change).map_err(|error| match error {
                Error::Guard(GuardError::Weakened(context)) => GuardError::Unprotected(Protection {
                    tool: target.tool.clone(),
                    key: target.key.clone(),
                    target: target.name.clone(),
                    context,
                })
                .into(),
                error => error,
            })?;
        }
    }
    Ok(())
}

/// The guard that opens a target: of the contexts that bind it, the one with the weakest guard is enough.
fn weakest_guard(target: &GuardedTarget, contexts: &[Context]) -> Option<Guard> {
    let binding = contexts.iter().filter(|context| target.contexts.contains(&context.name.to_string()));
    binding.map(|context| context.guard).min()
}

/// Whether a change touches no context of the user that can be read.
fn repairs(state: &State, texts: &[(&PathBuf, Option<&str>)]) -> bool {
    let dir = state.contexts().user_dir();
    let mut own =
        texts.iter().filter(|(path, _)| path.parent().is_some_and(|parent| dir.as_deref() == Some(parent)));
    own.all(|(path, _)| {
        let text = crate::files::read(path).ok().flatten();
        text.is_some_and(|text| parsed(state, path, &text, true).is_empty())
    })
}

/// The user's contexts as they are after a change of files; `None` if the change concerns none of them.
fn contexts_after(
    state: &State,
    before: &[Context],
    texts: &[(&PathBuf, Option<&str>)],
) -> Option<Vec<Context>> {
    let dir = state.contexts().user_dir();
    let file = match state.source() {
        ConfigSource::File(file) => Some(file.clone()),
        _ => None,
    };
    let mut after: Vec<Context> = before.to_vec();
    let mut is_any = false;
    for (path, text) in texts {
        let is_own = dir.as_deref().is_some_and(|dir| path.parent() == Some(dir));
        if !is_own && file.as_ref() != Some(*path) {
            continue;
        }
        is_any = true;
        after.retain(|context| context.path() != path.as_path());
        after.extend(text.map(|text| parsed(state, path, text, is_own)).unwrap_or_default());
    }
    is_any.then_some(after)
}

/// The contexts in the text of a file. A text that does not parse defines none that could be used.
fn parsed(state: &State, path: &Path, text: &str, is_own: bool) -> Vec<Context> {
    let Ok(document) = Document::parse(path, text.to_owned()) else { return Vec::new() };
    let (document, app) = (Rc::new(document), state.app());
    if is_own {
        let name = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
        let read = |name| Context::read(app, name, ContextLocation::User, true, document, Vec::new()).ok();
        return name.and_then(read).into_iter().collect();
    }
    let names = document.root().get("contexts").map(|node| node.members()).unwrap_or_default().iter();
    let read = |name: &String| {
        let within = vec!["contexts".to_owned(), name.clone()];
        let document = Rc::clone(&document);
        Context::read(app, name.parse().ok()?, ContextLocation::File, true, document, within).ok()
    };
    names.filter_map(|(name, _)| read(name)).collect()
}
