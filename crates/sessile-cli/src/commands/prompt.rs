//! `sessile prompt`: session and context in a few characters.

use serde_json::json;
use sessile::State;
use sessile::error::SessionEnd;
use sessile::hook::prompt_label;
use sessile::session::Session;

use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples;

/// Print the session and the context for a prompt, such as `deploy:staging`
///
/// Prints nothing outside of a session and a context. Fast enough for every prompt.
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
    /// Text for a session that the shell hook started, or that is over.
    hook: Option<String>,
    /// Whether the session has no name, so that its label is its id.
    is_unnamed: bool,
}

impl PromptLabel {
    pub(crate) fn of(state: &State) -> Result<Self, Failure> {
        let current = state.session()?;
        let context = state.selected()?.map(|selected| selected.name.to_string());
        let Some(current) = current else {
            let hook = state.ended_selection()?.map(|ended| {
                let word = if ended.end == SessionEnd::Expired { "expired" } else { "stopped" };
                format!("{}: {word}", ended.session)
            });
            return Ok(PromptLabel { session: None, context, hook, is_unnamed: false });
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

    /// Displayed text; `None` if empty.
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

    /// Full name, or the random end of an id; ids of the same time share their beginning.
    fn shortened<'l>(&self, label: &'l str) -> &'l str {
        if self.is_unnamed { label.get(28..).unwrap_or(label) } else { label }
    }
}

pub(crate) fn run(_: &Args, cx: &Cx) -> Outcome {
    let mark = PromptLabel::of(&cx.state)?;
    if cx.state.ended_selection()?.is_some() {
        // The label says it, at every prompt.
        cx.state.take_warnings();
    }
    cx.out.result(&json!({ "session": mark.session, "context": mark.context }), || {
        mark.text().map_or_else(String::new, |text| text + "\n")
    })
}
