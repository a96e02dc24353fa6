//! The selection that counts for a hooked shell: as if the hook had entered no session.

use std::rc::Rc;

use crate::args::StateArgs;
use crate::call::{Mode, StateCall, WithheldSelection};
use crate::error::{ContextError, Error, GuardError, ProjectError, Result};
use crate::hook::{EnteredBy, EnteredSession, HOOK};
use crate::names::ContextName;
use crate::session::Session;
use crate::settings::Layer;
use crate::state::State;
use crate::tool::{ORIGINALS, Originals};

/// Selection of a terminal and directory.
pub(super) enum Selection {
    /// No session and no context.
    Nothing,
    /// The terminal's session.
    Session(Rc<Session>),
    /// A context.
    Context {
        /// Name.
        name: ContextName,
        /// Selection.
        by: EnteredBy,
    },
    /// A selection that may not be used.
    Refused {
        /// Context.
        context: Option<String>,
        /// Reason, as the prompt shows it.
        reason: String,
        /// Error.
        error: Box<Error>,
        /// Whether the terminal has it.
        is_of_terminal: bool,
    },
}

impl Selection {
    /// Selection of a state that is outside the hook's session.
    pub(super) fn of(outside: &State) -> Result<Self> {
        let session = outside.session()?.map(|current| Rc::clone(&current.session));
        let usable = outside.usable_context();
        // An untrusted project may refuse the selection of a weaker layer.
        let selected = outside.selected()?;
        let is_of_terminal =
            session.is_some() || selected.is_some_and(|selected| selected.origin.layer == Layer::Terminal);
        match (usable, session) {
            (Ok(_), Some(session)) => Ok(Selection::Session(session)),
            (Ok(None), None) => Ok(Selection::Nothing),
            (Ok(Some(context)), None) => {
                let by = if is_of_terminal { EnteredBy::Terminal } else { EnteredBy::Directory };
                Ok(Selection::Context { name: context.name.clone(), by })
            }
            (Err(error), _) => Self::refused(error, is_of_terminal),
        }
    }

    /// A selection that an error forbids. Any other error says nothing about it.
    pub(super) fn refused(error: Error, is_of_terminal: bool) -> Result<Self> {
        let (context, reason) = match &error {
            Error::Guard(GuardError::ApprovalRequired(name)) => (name.clone(), "not approved"),
            Error::Guard(GuardError::NotExplicit { name, .. }) => (name.clone(), "must be named"),
            Error::Project(ProjectError::UntrustedSelection { context, .. }) => {
                (context.clone(), "untrusted project")
            }
            Error::Context(ContextError::NotFound { name, .. }) => (name.clone(), "not found"),
            _ => return Err(error),
        };
        let reason = format!("{context}: {reason}");
        Ok(Selection::Refused { context: Some(context), reason, error: Box::new(error), is_of_terminal })
    }

    /// Whether the terminal has it, and not only the directory.
    pub(super) fn is_of_terminal(&self) -> bool {
        match self {
            Selection::Nothing => false,
            Selection::Session(_) => true,
            Selection::Context { by, .. } => *by == EnteredBy::Terminal,
            Selection::Refused { is_of_terminal, .. } => *is_of_terminal,
        }
    }

    /// Whether a shell in this session is in step with it.
    pub(super) fn is(&self, entered: &EnteredSession) -> bool {
        match self {
            Selection::Nothing => false,
            Selection::Session(session) => {
                entered.by == EnteredBy::Session && entered.session == session.id.as_str()
            }
            Selection::Context { name, by } => {
                entered.by == *by && entered.context.as_deref() == Some(name.as_str())
            }
            Selection::Refused { reason, .. } => entered.reason.as_ref() == Some(reason),
        }
    }

    /// Whether it selects a context.
    pub(super) fn selects(&self, context: Option<&str>) -> bool {
        match self {
            Selection::Context { name, .. } => context == Some(name.as_str()),
            Selection::Refused { context: refused, .. } => refused.as_deref() == context,
            Selection::Session(_) | Selection::Nothing => false,
        }
    }
}

/// State of a call in the same place with the user's own variables, outside the session of its variable.
pub fn outside(state: &State) -> Result<State> {
    let app = state.app();
    let mut world = state.world().clone();
    let originals = Originals::of(app, &world);
    for (name, value) in originals.replaced() {
        world = match value {
            Some(value) => world.with_variable(name, value),
            None => world.without_variable(name),
        };
    }
    for name in ["SESSION", HOOK, ORIGINALS] {
        world = world.without_variable(&app.variable(name));
    }
    let mode =
        Mode { tolerates_stale_session: true, withheld_selection: WithheldSelection::Ignore, ..Mode::STRICT };
    Ok(State::from(StateCall::new(app, world, StateArgs::default())?.with_mode(mode)))
}
