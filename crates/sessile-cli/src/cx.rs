//! The context of a command: the state and the output, and how changes are reported.

use serde_json::{Value, json};
use sessile::State;
use sessile::call::Mode;
use sessile::session::Session;
use sessile::settings::Origin;

use crate::error::Outcome;
use crate::output::Output;

/// State and output of a command.
pub struct Cx {
    /// The state.
    pub state: State,
    /// The output.
    pub out: Output,
}

impl Cx {
    /// Prints what a change did, with the context and the session it was done in.
    pub(crate) fn changed(&self, json: Value, text: impl FnOnce() -> String) -> Outcome {
        self.changed_in(None, json, text)
    }

    /// The same for a change that made a session of its own.
    pub(crate) fn changed_in(
        &self,
        made: Option<&Session>,
        mut json: Value,
        text: impl FnOnce() -> String,
    ) -> Outcome {
        // The change may have been one of the selection itself, so it is resolved again.
        let fresh = self.state.call().clone().with_mode(Mode::STRICT).open();
        let selected = fresh.selected().ok().flatten();
        let session = made
            .map(|session| session.id.to_string())
            .or_else(|| self.state.session().ok().flatten().map(|current| current.session.id.to_string()));
        json["session"] = json!(session);
        if let Some(made) = made {
            // An imported session brings its context along, whatever is selected here.
            let selected = self.state.selected().ok().flatten();
            let chosen = selected.filter(|selected| Some(selected.name.as_str()) == made.context.as_deref());
            json["context"] = json!(made.context);
            json["context_origin"] = json!(chosen.map(|selected| &selected.origin));
        } else {
            json["context"] = json!(selected.map(|selected| &selected.name));
            json["context_origin"] = json!(selected.map(|selected| &selected.origin));
        }
        self.out.result(&json, text)?;
        if self.out.is_text() {
            let context = json["context"]
                .as_str()
                .map_or_else(|| "no context".to_owned(), |name| format!("context {name}"));
            let session = session.map_or_else(|| "no session".to_owned(), |id| format!("session {id}"));
            let origin = selected
                .filter(|_| made.is_none())
                .map_or_else(String::new, |found| format!(" ({})", found.origin));
            self.out.note(&format!("in {context}{origin}, {session}"));
        }
        // What has expired goes with the next change; if that fails, the one after it tries again.
        let _ = self.state.tidy();
        Ok(())
    }

    /// The same for a change that was made on a server: `place` is the session, and where it is.
    pub(crate) fn changed_there(
        &self,
        session: &str,
        context: Option<&str>,
        origin: Option<&Origin>,
        place: &str,
        mut json: Value,
        text: impl FnOnce() -> String,
    ) -> Outcome {
        json["session"] = json!(session);
        json["context"] = json!(context);
        json["context_origin"] = json!(origin);
        self.out.result(&json, text)?;
        if self.out.is_text() {
            let context = context.map_or_else(|| "no context".to_owned(), |name| format!("context {name}"));
            let origin = origin.map_or_else(String::new, |origin| format!(" ({origin})"));
            self.out.note(&format!("in {context}{origin}, {place}"));
        }
        Ok(())
    }
}
