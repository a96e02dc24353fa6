//! Changes that the TUI makes, by the functions that the commands use: guards, history and authorization are theirs.

use std::collections::BTreeMap;
use std::time::Duration;

use sessile::context::approval;
use sessile::context::is_pin_set;
use sessile::duration::short;
use sessile::error::LockError;
use sessile::history::{check_undo, undo};
use sessile::lock::LockName;
use sessile::names::ContextName;
use sessile::session::SessionName;
use sessile::text::quoted;
use zeroize::Zeroizing;

use super::call_source::CallSource;
use crate::backend::SessionSpec;
use crate::cli::Cx;
use crate::error::Failure;
use crate::local::LocalBackend;
use crate::remote::{Remote, ServiceClient};
use crate::settings::app;

/// Operations that are checked for one that can be undone.
const MOST_CHECKED: usize = 20;

/// A change that a person has confirmed.
#[derive(Clone, Debug)]
pub(crate) enum TuiAction {
    /// Stop a session of this machine.
    StopSession { id: String },
    /// Stop a session of the service.
    StopServiceSession { id: String },
    /// Make a session this terminal's.
    AttachSession { id: String },
    /// Start a session.
    StartSession { name: String, context: Option<String> },
    /// Approve a context for a time.
    Approve { context: String, time: Duration, digest: String, pin: Option<Zeroizing<String>> },
    /// Revoke the approvals of a context.
    Revoke { context: String },
    /// Break a lock that the holder with a token has.
    BreakLock { name: String, token: i64 },
    /// Undo an operation.
    Undo { number: i64 },
}

/// Question of an approval.
#[derive(Clone, Debug)]
pub(crate) struct ApprovalQuestion {
    pub(crate) context: String,
    /// Digest of the context that the person sees.
    pub(crate) digest: String,
    pub(crate) requires_pin: bool,
}

impl ApprovalQuestion {
    /// Fails for what the approval would fail for in any case: inside a session, without a person, an unknown context.
    pub(crate) fn new(calls: &CallSource, context: &str) -> Result<Self, Failure> {
        let cx = calls.call("context approve")?;
        let name: ContextName = context.parse()?;
        let digest = approval::check_grant(&cx.state, &name, Duration::from_secs(60))?.digest();
        Ok(ApprovalQuestion { context: context.to_owned(), digest, requires_pin: is_pin_set(&cx.state)? })
    }
}

/// Question of an undo.
#[derive(Clone, Debug)]
pub(crate) struct UndoQuestion {
    pub(crate) number: i64,
    /// Why the operation cannot be undone; none if it can.
    pub(crate) refusal: Option<String>,
    /// Operation that can be undone instead.
    pub(crate) instead: Option<i64>,
}

impl UndoQuestion {
    /// Checks an operation, and if it cannot be undone some of the others, in their order.
    pub(crate) fn new(calls: &CallSource, number: i64, others: &[i64]) -> Self {
        let check = |number: i64| {
            let cx = calls.call("undo")?;
            check_undo(&cx.state, number).map(drop).map_err(Failure::from)
        };
        match check(number) {
            Ok(()) => UndoQuestion { number, refusal: None, instead: None },
            Err(failure) => UndoQuestion {
                number,
                refusal: Some(failure_message(&failure)),
                instead: others.iter().take(MOST_CHECKED).copied().find(|other| check(*other).is_ok()),
            },
        }
    }
}

impl TuiAction {
    /// Command whose work the action does.
    fn command(&self) -> &'static str {
        match self {
            TuiAction::StopSession { .. } | TuiAction::StopServiceSession { .. } => "session stop",
            TuiAction::AttachSession { .. } => "session attach",
            TuiAction::StartSession { .. } => "session start",
            TuiAction::Approve { .. } | TuiAction::Revoke { .. } => "context approve",
            TuiAction::BreakLock { .. } => "lock break",
            TuiAction::Undo { .. } => "undo",
        }
    }

    /// Makes the change. Returns a line that says what was done.
    pub(crate) fn perform(&self, calls: &CallSource) -> Result<String, Failure> {
        let calls = match self {
            TuiAction::StartSession { context, .. } => &calls.in_context(context.clone()),
            _ => calls,
        };
        let cx = calls.call(self.command())?;
        sessile::history::settle_if_marked(&cx.state)?;
        let mut line = self.perform_in(&cx)?;
        for warning in cx.state.take_warnings() {
            line.push_str(&format!("; warning: {}", warning.message));
        }
        // As after a command: what has expired goes with the change.
        let _ = cx.state.tidy();
        Ok(line)
    }

    fn perform_in(&self, cx: &Cx) -> Result<String, Failure> {
        let (state, local) = (&cx.state, LocalBackend { cx });
        Ok(match self {
            TuiAction::StopSession { id } => {
                let stopped = local.stop_session(Some(id))?.change;
                let label = quoted(stopped.name.as_ref().unwrap_or(&stopped.id));
                match stopped.ended_processes.len() {
                    0 => format!("stopped session {label}"),
                    count => format!("stopped session {label} and {count} process(es)"),
                }
            }
            TuiAction::StopServiceSession { id } => {
                let server = ServiceClient::of(cx, state)?.ok_or_else(|| no_server(id))?;
                let stopped = Remote { server, cx }.stop_session(Some(id))?.change;
                format!(
                    "stopped session {} of the service",
                    quoted(stopped.name.as_ref().unwrap_or(&stopped.id))
                )
            }
            TuiAction::AttachSession { id } => {
                let (session, _) = state.attach_session(id)?;
                format!("attached to session {} in this terminal", quoted(session.label()))
            }
            TuiAction::StartSession { name, .. } => {
                let name: Option<SessionName> =
                    Some(name.trim()).filter(|name| !name.is_empty()).map(str::parse).transpose()?;
                let (idle, max) = state.session_lifetime(None, None)?;
                let spec =
                    SessionSpec { name: name.as_ref(), labels: BTreeMap::new(), agent: None, idle, max };
                let started = local.start_session(spec, None)?.change;
                let label = started.session.name.as_ref().unwrap_or(&started.session.id);
                format!("started session {} and selected it for this terminal", quoted(label))
            }
            TuiAction::Approve { context, time, digest, pin } => {
                let name: ContextName = context.parse()?;
                // The context may have been edited while the person read the question.
                approval::check_unchanged(state, &name, digest)?;
                approval::grant(state, &name, *time, pin.as_deref().map(String::as_str))?;
                format!("approved context {} for {}", quoted(context), short(*time))
            }
            TuiAction::Revoke { context } => {
                approval::revoke(state, &context.parse()?)?;
                format!("revoked the approvals of context {}", quoted(context))
            }
            TuiAction::BreakLock { name, token } => {
                let lock: LockName = name.parse()?;
                let found = local.lock(&lock)?.ok_or_else(|| LockError::NotFound(name.clone()))?;
                let holder = found
                    .holder_with(*token)
                    .ok_or_else(|| LockError::OtherHolder { name: name.clone(), token: *token })?;
                local.break_lock(&lock, *token, holder)?;
                format!("broke lock {}, held by {}", quoted(name), holder.short())
            }
            TuiAction::Undo { number } => {
                let (undone, _) = undo(state, Some(*number))?;
                format!("undid operation {}: {} {}", undone.id, undone.command, undone.subject)
            }
        })
    }
}

fn no_server(id: &str) -> sessile::Error {
    sessile::error::SessionError::NotFound(id.to_owned()).into()
}

/// A failure in one line, without its hint.
fn failure_message(failure: &Failure) -> String {
    failure.report(&app()).map_or_else(|| failure_line(failure), |report| report.message)
}

/// A failure in one line, with its hint.
pub(crate) fn failure_line(failure: &Failure) -> String {
    match failure.report(&app()) {
        Some(report) => {
            let hint = report.hint.map_or_else(String::new, |hint| format!("; {hint}"));
            format!("{}{hint}", report.message)
        }
        None => "the command was interrupted".to_owned(),
    }
}
