//! One step of a hooked shell: from the session that it is in to the selection that counts.

use crate::args::StateArgs;
use crate::call::StateCall;
use crate::context::{Guard, approval};
use crate::error::{Result, UsageError};
use crate::hook::selection::{Selection, outside};
use crate::hook::sessions::{BlockedSelection, start, start_blocked};
use crate::hook::{EnteredBy, EnteredSession, HookedShell, Watch, is_of_hook};
use crate::names::SessionId;
use crate::process::ProcessId;
use crate::run::shell::Shell;
use crate::run::{IsolationArgs, RunRequest, RunSession, RunSessionArgs, VariableChange};
use crate::secrets::is_secret;
use crate::session::{Lifecycle, Session};
use crate::state::State;
use crate::text::quoted;
use crate::tool::own_values;
use crate::warning::Warning;

/// Changes that a shell makes before its prompt.
#[derive(Debug, Default)]
pub struct HookStep {
    /// Changes of its variables.
    pub changes: Vec<VariableChange>,
    /// Variables among them whose values the shell itself keeps: secrets, which travel nowhere.
    pub keeps: Vec<String>,
    /// Whether the shell has its own variables again, with those that it kept.
    pub leaves: bool,
    /// Session that it is in afterwards.
    pub session: Option<Session>,
    /// Conditions under which the next prompt needs no step.
    pub watch: Option<Watch>,
    /// Messages for the person at the prompt.
    pub notes: Vec<Warning>,
}

enum NextStep {
    Stay,
    Leave,
    Enter,
    /// The session of the shell is over.
    Empty,
}

/// Takes the step of a shell, by its kind and pid. A subshell gets the changes for itself, and the shell's record stays.
pub fn follow(state: &State, kind: Shell, pid: i32, is_subshell: bool) -> Result<HookStep> {
    // Before anything is read: a deadline that is too early costs a step, one that is too late shows an ended approval.
    let (begun, begun_since_boot) = (state.world().now(), state.world().since_boot());
    let is_own = crate::process::lineage().contains(&pid);
    let process = ProcessId::of(pid).filter(|_| is_own).ok_or_else(|| UsageError::InvalidValue {
        place: "--shell-pid".into(),
        value: pid.to_string(),
        expected: "the pid of the shell that makes this call".into(),
    })?;
    if !state.call().is_interactive() {
        // The selection of the terminal is not this call's to read, so the shell stays where it is.
        return Ok(HookStep::default());
    }
    let outside = outside(state)?;
    let known = HookedShell::load(state, pid);
    let is_first = known.is_none();
    let mut shell = known.unwrap_or_else(|| HookedShell::new(state, process, kind));
    if is_first {
        end_left_sessions(state);
    }
    let is_requested = !is_subshell && HookedShell::take_request(state, pid)?;
    let selection = Selection::of(&outside)?;
    let (entered, session) = current(state, &shell, &selection);
    let mut step = Step { state, outside: &outside, shell: &mut shell, done: HookStep::default() };
    let is_live = session.as_ref().is_some_and(|found| found.life(state.world()) == Lifecycle::Live);
    match next(entered.as_ref(), &selection, is_requested, is_live) {
        NextStep::Stay => step.stay(entered, session, is_first)?,
        NextStep::Leave => step.leave(),
        NextStep::Enter => step.enter(selection)?,
        NextStep::Empty => step.empty(entered.as_ref(), session.as_ref())?,
    }
    let mut done = step.done;
    if let Some(session) = &done.session {
        // Someone sits here, so the session is in use.
        let _ = session.room().touch(state.world());
    }
    if !is_subshell {
        let stamp = shell.save(state)?;
        Watch::set_stamp(&stamp, begun)?;
        let guarded = outside.context().ok().flatten().filter(|context| context.guard == Guard::Approval);
        let approvals = guarded.map(|context| approval::in_force_of(&outside, context)).transpose()?;
        let approved = approvals.into_iter().flatten().map(|approval| approval.time_left).max();
        let room = done.session.as_ref().map(|session| session.room().dir());
        let left = done.session.as_ref().map(|session| session.remaining_life(state.world()));
        let left = left.into_iter().chain(approved).min();
        let clock = (begun_since_boot, left);
        done.watch = Some(Watch::of(&outside, stamp, pid, room, guarded.is_some(), clock)?);
    }
    Ok(done)
}

/// Whether the next step of a shell leads elsewhere. A selection that cannot be read changes nothing.
pub(super) fn is_pending(state: &State, shell: &HookedShell) -> bool {
    let Ok(outside) = outside(state) else { return false };
    let Ok(selection) = Selection::of(&outside) else { return false };
    let is_requested = HookedShell::has_request(state, shell.process.pid);
    let (entered, session) = current(state, shell, &selection);
    // A context whose use failed is tried again at each prompt.
    let is_tried = |entered: &EnteredSession| {
        entered.by == EnteredBy::Blocked && selection.selects(entered.context.as_deref())
    };
    if !is_requested && entered.as_ref().is_some_and(is_tried) {
        return false;
    }
    let is_live = session.as_ref().is_some_and(|found| found.life(state.world()) == Lifecycle::Live);
    !matches!(next(entered.as_ref(), &selection, is_requested, is_live), NextStep::Stay)
}

/// The session that a shell is in: as its record says, or inherited from the shell that started it.
fn current(
    state: &State,
    shell: &HookedShell,
    selection: &Selection,
) -> (Option<EnteredSession>, Option<Session>) {
    let Some(id) = state.enclosing_session() else { return (None, None) };
    let session = state.look_up_session(id).ok().map(|(_, session)| session);
    if let Some(entered) = shell.entered.as_ref().filter(|entered| entered.session == id) {
        return (Some(entered.clone()), session);
    }
    let by = state.entered_by().unwrap_or(EnteredBy::Started);
    let entered = match &session {
        Some(session) => {
            let is_of_another = matches!(by, EnteredBy::Session | EnteredBy::Terminal);
            let adopted = is_of_another && !selection.is_of_terminal();
            EnteredSession { adopted, ..EnteredSession::of(session, by) }
        }
        // It ended and was forgotten.
        None => EnteredSession {
            session: id.to_owned(),
            context: None,
            by,
            adopted: false,
            over: None,
            reason: None,
        },
    };
    (Some(entered), session)
}

fn next(
    entered: Option<&EnteredSession>,
    selection: &Selection,
    is_requested: bool,
    is_live: bool,
) -> NextStep {
    let follow = match selection {
        Selection::Nothing => NextStep::Leave,
        _ => NextStep::Enter,
    };
    let Some(entered) = entered else {
        return if matches!(selection, Selection::Nothing) { NextStep::Stay } else { follow };
    };
    let is_same = selection.is(entered);
    if entered.by == EnteredBy::Started || (is_same && is_live) {
        return NextStep::Stay;
    }
    if is_requested {
        return follow;
    }
    let by = entered.over.unwrap_or(entered.by);
    // The end of a session leads nowhere else, unless the directory that selected it is left.
    let is_kept = by != EnteredBy::Directory || selection.selects(entered.context.as_deref());
    match (entered.over, is_live) {
        (Some(_), true) if is_kept => NextStep::Stay,
        (Some(_), false) if is_kept => NextStep::Empty,
        (None, false) if is_kept && entered.by != EnteredBy::Blocked => NextStep::Empty,
        (None, true) if entered.adopted && !selection.is_of_terminal() => NextStep::Stay,
        _ => follow,
    }
}

struct Step<'a> {
    state: &'a State,
    outside: &'a State,
    shell: &'a mut HookedShell,
    done: HookStep,
}

impl Step<'_> {
    fn note(&mut self, message: impl Into<String>, hint: Option<String>) {
        self.done.notes.push(Warning { message: message.into(), hint });
    }

    fn stay(
        &mut self,
        entered: Option<EnteredSession>,
        session: Option<Session>,
        is_first: bool,
    ) -> Result<()> {
        let by = entered.as_ref().map(|entered| entered.by);
        match (&entered, session) {
            // Start-up files may have set what the outer shell had in step.
            (Some(entered), Some(session)) if is_first && by != Some(EnteredBy::Started) => {
                let entered = entered.clone();
                if let Some(context) = entered.context.clone().filter(|_| is_of_hook(&session)) {
                    self.shell.started.insert(context, entered.session.clone());
                }
                self.apply(&session, entered)
            }
            (_, session) => {
                self.shell.entered = entered;
                self.done.session = session;
                Ok(())
            }
        }
    }

    fn leave(&mut self) {
        self.done.changes = own_values(self.state);
        self.done.leaves = true;
        self.shell.entered = None;
        self.shell.variables.clear();
    }

    fn enter(&mut self, selection: Selection) -> Result<()> {
        match selection {
            Selection::Nothing => {
                self.leave();
                Ok(())
            }
            Selection::Session(session) => {
                let entered = EnteredSession::of(&session, EnteredBy::Session);
                self.apply_or_block(&session, entered)
            }
            Selection::Context { name, by } => {
                let session = match self.started(name.as_str()) {
                    Some(session) => session,
                    None => start(self.outside, &name, by)?,
                };
                self.shell.started.insert(name.to_string(), session.id.to_string());
                let entered = EnteredSession::of(&session, by);
                self.apply_or_block(&session, entered)
            }
            Selection::Refused { context, reason, error, .. } => {
                self.note(
                    format!("{error}; commands in this shell have no target"),
                    error.hint(self.state.app()),
                );
                self.block(&BlockedSelection { reason, context, over: None })
            }
        }
    }

    /// A session that the hook started for this shell and that is still live.
    fn started(&self, key: &str) -> Option<Session> {
        let (_, session) = self.state.look_up_session(self.shell.started.get(key)?).ok()?;
        (session.life(self.state.world()) == Lifecycle::Live).then_some(session)
    }

    /// The session of the shell was stopped or has expired: the shell goes on without any target.
    fn empty(&mut self, entered: Option<&EnteredSession>, session: Option<&Session>) -> Result<()> {
        let Some(entered) = entered else { return Ok(()) };
        let over = Some(entered.over.unwrap_or(entered.by));
        let context = entered.context.clone();
        let reason = match (&entered.reason, session) {
            (Some(reason), _) => reason.clone(),
            (None, Some(session)) => {
                let word = if session.ended.is_some() { "stopped" } else { "expired" };
                let name = match &context {
                    Some(context) if is_of_hook(session) => context.clone(),
                    _ => session.label().to_owned(),
                };
                self.note(
                    format!("session {} {word}; commands in this shell have no target", quoted(&name)),
                    Some(format!("leave it: {} session detach", self.state.app().name())),
                );
                format!("{name}: {word}")
            }
            (None, None) => "session: gone".to_owned(),
        };
        self.block(&BlockedSelection { reason, context, over })
    }

    fn block(&mut self, blocked: &BlockedSelection) -> Result<()> {
        let key = format!("!{}", blocked.reason);
        let session = match self.started(&key) {
            Some(session) => session,
            None => start_blocked(self.outside, blocked)?,
        };
        self.shell.started.insert(key, session.id.to_string());
        let entered = EnteredSession::of(&session, EnteredBy::Blocked);
        self.apply(&session, entered)
    }

    /// Enters a session; if its context turns out to be unusable, a blocked one instead.
    fn apply_or_block(&mut self, session: &Session, entered: EnteredSession) -> Result<()> {
        let context = entered.context.clone();
        let is_of_terminal = entered.by != EnteredBy::Directory;
        let Err(error) = self.apply(session, entered) else { return Ok(()) };
        let hint = error.hint(self.state.app());
        self.note(format!("{error}; commands in this shell have no target"), hint);
        let name = context.clone().unwrap_or_else(|| session.label().to_owned());
        let reason = match Selection::refused(error, is_of_terminal) {
            Ok(Selection::Refused { reason, .. }) => reason,
            _ => format!("{name}: cannot be used"),
        };
        self.block(&BlockedSelection { reason, context, over: None })
    }

    /// Prepares a session's room and takes its variables.
    fn apply(&mut self, session: &Session, entered: EnteredSession) -> Result<()> {
        let changes = variables(self.state, &session.id, entered.by)?;
        let world = self.state.world();
        let is_kept = |change: &&VariableChange| {
            let value = world.variable(&change.name).map(|value| value.to_string_lossy());
            change.value.is_none() && value.is_some_and(|value| is_secret(&change.name, &value))
        };
        self.done.keeps = changes.iter().filter(is_kept).map(|change| change.name.clone()).collect();
        let isolating = changes.iter().filter(|change| change.isolates);
        self.shell.variables = isolating.map(|change| (change.name.clone(), change.value.clone())).collect();
        self.done.changes = changes;
        self.done.session = Some(session.clone());
        self.shell.entered = Some(entered);
        Ok(())
    }
}

/// Changes that bring the variables of a shell into a session.
fn variables(state: &State, id: &SessionId, by: EnteredBy) -> Result<Vec<VariableChange>> {
    // The context of the variable is what the hook follows, or what a stronger session replaces. It stays in the shell.
    let world = state.world().clone().without_variable(&state.app().variable("CONTEXT"));
    let call = StateCall::new(state.app(), world, StateArgs::default())?.with_mode(state.call().mode());
    let inside = State::from(call.in_session(id));
    let request = RunRequest {
        operation: "hook",
        words: &[],
        session: &RunSessionArgs::default(),
        isolation: &IsolationArgs::default(),
    };
    let run = RunSession::open(&inside, &request)?;
    let environment = run.prepare_for_hook(&request, by)?;
    inside.contexts().recheck(false)?;
    let mut changes = environment.changes;
    // Secrets reach commands through `run` and `shell` only, and the value of another context must not act instead.
    changes.extend(environment.credentials.into_iter().map(|variable| VariableChange {
        name: variable.name,
        value: None,
        origin: variable.origin,
        isolates: true,
    }));
    // The note of a blocked session has named the reason.
    if by != EnteredBy::Blocked {
        for warning in inside.take_warnings() {
            state.warn(warning.message, warning.hint);
        }
    }
    Ok(changes)
}

/// Ends the sessions that the hook started for shells that have ended. If that fails, they expire.
fn end_left_sessions(state: &State) {
    for id in HookedShell::prune(state).unwrap_or_default() {
        let session = state.look_up_session(&id).ok().map(|(_, session)| session);
        let is_left = |session: &Session| {
            is_of_hook(session) && !session.room().is_busy() && !session.room().is_looked_at()
        };
        if let Some(session) = session.filter(is_left) {
            let _ = state.end_run(&session);
        }
    }
}
