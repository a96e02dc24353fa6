//! `sessile prompt`: session and context in a few characters.

use serde_json::json;
use sessile::State;
use sessile::hook::prompt_label;
use sessile::session::Session;

use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples;

/// Print the session and the context for a prompt, such as `deploy:staging`
///
/// Nothing is printed if there is neither. It is quick enough for every prompt.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "PS1='$(sessile prompt) \\$ '"
    "sessile prompt --output json"
))]
pub struct Args {}

/// Label of the prompt: session and context.
pub(crate) struct PromptLabel {
    pub(crate) session: Option<String>,
    pub(crate) context: Option<String>,
    /// Text for a session that the shell hook started.
    hook: Option<String>,
    /// Whether the session has no name, so that its label is its id.
    is_unnamed: bool,
}

impl PromptLabel {
    pub(crate) fn of(state: &State) -> Result<Self, Failure> {
        let current = state.session()?;
        let context = state.selected()?.map(|selected| selected.name.to_string());
        let Some(current) = current else {
            return Ok(PromptLabel { session: None, context, hook: None, is_unnamed: false });
        };
        Ok(PromptLabel { context, ..Self::of_session(&current.session) })
    }

    /// Label of a session.
    pub(crate) fn of_session(session: &Session) -> Self {
        PromptLabel {
            session: Some(session.label().to_owned()),
            context: session.context.clone(),
            hook: prompt_label(session).map(str::to_owned),
            is_unnamed: session.name.is_none(),
        }
    }

    /// As people see it; `None` if there is nothing to see.
    pub(crate) fn text(&self) -> Option<String> {
        if self.hook.is_some() {
            return self.hook.clone();
        }
        match (&self.session, &self.context) {
            (Some(session), Some(context)) => Some(format!("{}:{context}", self.shortened(session))),
            (Some(session), None) => Some(self.shortened(session).to_owned()),
            (None, Some(context)) => Some(context.clone()),
            (None, None) => None,
        }
    }

    /// A name in full, and an id by its random end; the beginning is the time, and the same for all of one morning.
    fn shortened<'l>(&self, label: &'l str) -> &'l str {
        if self.is_unnamed { label.get(28..).unwrap_or(label) } else { label }
    }
}

pub(crate) fn run(_: &Args, cx: &Cx) -> Outcome {
    let mark = PromptLabel::of(&cx.state)?;
    cx.out.result(&json!({ "session": mark.session, "context": mark.context }), || {
        mark.text().map_or_else(String::new, |text| text + "\n")
    })
}
