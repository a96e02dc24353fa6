//! The context of a command: the state and the output, and how changes are reported.

use serde::Serialize;
use sessile::State;
use sessile::call::{Mode, SessionMode, WithheldSelection};
use sessile::hook::outside;
use sessile::session::Session;

use crate::error::Outcome;
use crate::output::Output;
use crate::view::{ChangePlace, ChangeView};

/// State and output of a command.
pub struct Cx {
    /// The state.
    pub state: State,
    /// The output.
    pub out: Output,
}

impl Cx {
    /// Prints a change that was made in the session and the context of the call.
    pub(crate) fn changed(&self, change: impl Serialize, text: impl FnOnce() -> String) -> Outcome {
        self.changed_at(&self.place(None), &change, text)
    }

    /// Place of a change on this machine; `made` is the session that the change started.
    pub(crate) fn place(&self, made: Option<&Session>) -> ChangePlace {
        let state = &self.state;
        if let Some(made) = made {
            // An imported session brings its context along, whatever is selected here.
            let selected = state.selected().ok().flatten();
            let chosen = selected.filter(|selected| Some(selected.name.as_str()) == made.context.as_deref());
            let context = ChangePlace::context_words(made.context.as_deref(), None);
            return ChangePlace {
                session: Some(made.id.to_string()),
                context: made.context.clone(),
                context_origin: chosen.map(|selected| selected.origin.clone()),
                words: format!("{context}, session {}", made.id),
                is_local: true,
            };
        }
        // The change may have been one of the selection itself, so it is resolved again.
        // A person at the prompt of a hooked shell changes what the shell enters next.
        let outside = if state.is_at_hooked_prompt() { outside(state).ok() } else { None };
        let is_outside = outside.is_some();
        let fresh = outside.unwrap_or_else(|| State::from(state.call().clone().with_mode(Mode::STRICT)));
        let selected = fresh.selected().ok().flatten();
        let context = selected.map(|selected| selected.name.to_string());
        let context_origin = selected.map(|selected| selected.origin.clone());
        let resolved = if is_outside { &fresh } else { state };
        let session = resolved.session().ok().flatten().map(|current| current.session.id.to_string());
        let words = ChangePlace::context_words(context.as_deref(), context_origin.as_ref());
        let in_session =
            session.as_ref().map_or_else(|| "no session".to_owned(), |id| format!("session {id}"));
        ChangePlace {
            session,
            context,
            context_origin,
            words: format!("{words}, {in_session}"),
            is_local: true,
        }
    }

    /// Names the context and the session of the call with their origins, for `--verbose`.
    pub(crate) fn describe_call(&self) {
        self.describe_call_with(|| match self.state.call().mode().session {
            SessionMode::Remote => {
                let named = self.state.args().session.as_deref().unwrap_or("none named");
                format!("session of the server ({})", sessile::text::shown(named))
            }
            _ => "no session".to_owned(),
        });
    }

    /// The same with other words where the call has no session.
    pub(crate) fn describe_call_with(&self, without_session: impl FnOnce() -> String) {
        if !self.out.is_verbose() {
            return;
        }
        let context = match self.state.selected() {
            Ok(selected) => {
                let name = selected.map(|selected| selected.name.as_str());
                ChangePlace::context_words(name, selected.map(|selected| &selected.origin))
            }
            Err(_) => return,
        };
        let session = match self.state.session() {
            Ok(Some(current)) => format!("session {} ({})", current.session.label(), current.origin),
            Ok(None) => without_session(),
            Err(_) => return,
        };
        self.out.detail(&format!("{context}, {session}"));
    }

    /// Prints a change with the place it was made in.
    pub(crate) fn changed_at(
        &self,
        place: &ChangePlace,
        change: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> Outcome {
        let mut names_context = false;
        self.reply(place, change, || {
            let text = text();
            names_context = place.context.as_deref().is_some_and(|name| text.contains(name));
            text
        })?;
        // A caller that passes a context, or works in a session, knows it. Some commands do the same in every context.
        let acts_on_selection = self.state.call().mode().withheld_selection != WithheldSelection::Ignore;
        if acts_on_selection && !self.out.is_verbose() && self.out.is_text() && !names_context {
            place.selected_words().into_iter().for_each(|words| self.out.note(&words));
        }
        Ok(())
    }

    /// Prints a change; its place only with `--verbose`.
    pub(crate) fn reply(
        &self,
        place: &ChangePlace,
        change: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> Outcome {
        let view = ChangeView {
            change,
            session: place.session.as_deref(),
            context: place.context.as_deref(),
            context_origin: place.context_origin.as_ref(),
        };
        self.out.result(&view, text)?;
        self.out.detail(&format!("in {}", place.words));
        if place.is_local {
            // What has expired goes with the next change; if that fails, the one after it tries again.
            let _ = self.state.tidy();
        }
        Ok(())
    }
}
