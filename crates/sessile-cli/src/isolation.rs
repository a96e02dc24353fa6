//! Isolated commands on the command line: prompts for a locked vault, warnings, and the end of their sessions.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use sessile::State;
use sessile::run::{PreparedRun, RunSession};
use sessile::text::shown;
use sessile::tool::{Plan, changed_copies};

use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::output::SlowStep;
use crate::renewer::Renewer;
use crate::vault_unlock::with_unlocked_vault;

/// All variables of a prepared command, its secrets among them. Prints the warnings so far.
pub(crate) fn variables(
    cx: &Cx,
    prepared: &PreparedRun<'_>,
) -> Result<BTreeMap<OsString, OsString>, Failure> {
    let state = prepared.run().state();
    warn_once(cx, state);
    for (tool, target) in prepared.plan.withheld_targets() {
        let (key, name, context) = (&target.key, &target.name, &target.context);
        cx.out.detail(&format!("withheld {tool} {key} {name}, protected by context {context}"));
    }
    for (tool, path) in prepared.plan.linked() {
        cx.out.detail(&format!("linked {} of {tool}, which is too large to copy", shown(path.display())));
    }
    let renewer = Renewer::new();
    let variables = with_unlocked_vault(cx, state, || prepared.variables(&renewer))?;
    cx.out.warnings(&state.take_warnings());
    Ok(variables)
}

/// Prints the warnings of the call and of the started session's state, which resolves the same files again.
fn warn_once(cx: &Cx, state: &State) {
    if std::ptr::eq(state, &cx.state) {
        cx.out.warnings(&state.take_warnings());
        return;
    }
    let mut warnings = cx.state.take_warnings();
    for warning in state.take_warnings() {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    cx.out.warnings(&warnings);
}

/// Names the context and the session of a run with their origins, for `--verbose`.
pub(crate) fn describe_run(cx: &Cx, run: &RunSession<'_>) {
    if run.is_ephemeral() {
        cx.describe_call_with(|| format!("started session {} for this command", run.session().id));
    } else {
        cx.describe_call();
    }
}

/// Progress of the preparation of a room, unless the room is prepared already, which is quick.
pub(crate) fn preparation(cx: &Cx, run: &RunSession<'_>) -> Option<SlowStep> {
    // On the hot path standard error is not a terminal, or the room has a plan.
    let is_slow = cx.out.shows_progress() && !Plan::path(run.session().room().dir()).exists();
    is_slow.then(|| cx.out.slow_step(|| "preparing room"))
}

/// How many discarded copies a note names.
const MAX_NAMED_COPIES: usize = 3;

/// Note that changes of copies are deleted with the room of their session.
fn discarded(room: &Path, changed: &[PathBuf]) -> String {
    let name = |path: &PathBuf| shown(path.strip_prefix(room).unwrap_or(path).display());
    let mut names: Vec<String> = changed.iter().take(MAX_NAMED_COPIES).map(name).collect();
    if changed.len() > MAX_NAMED_COPIES {
        names.push(format!("{} more", changed.len() - MAX_NAMED_COPIES));
    }
    let files = names.join(", ");
    format!(
        "discarded changes to {files}: the session was for this command only; pass --session NAME to keep them"
    )
}

/// Ends the session of a command if it was for that command alone, or the command did not even start.
pub(crate) fn close(cx: &Cx, run: &RunSession<'_>, outcome: &Outcome) {
    let id = &run.session().id;
    let has_run = !outcome.as_ref().is_err_and(Failure::is_before_start);
    let is_told = run.is_ephemeral() && has_run && !run.state().args().quiet && !run.is_unchanged();
    // Before the room is removed by `close`.
    let changed = if is_told { changed_copies(run.session()).unwrap_or_default() } else { Vec::new() };
    match run.close(has_run) {
        Ok(true) if changed.is_empty() => {}
        Ok(true) => cx.out.note(&discarded(run.session().room().dir(), &changed)),
        // What the command left running keeps the room; it goes when that has ended and the next call tidies up.
        Ok(false) => cx.out.detail(&format!("session {id} stays alive: a process still runs in it")),
        // A note and not a failure: the status is the command's.
        Err(error) => cx.out.note(&format!("cannot remove session {id}: {error}")),
    }
}
