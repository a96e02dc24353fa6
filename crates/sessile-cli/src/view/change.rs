//! Changes, and the place they were made in.

use serde::Serialize;
use sessile::context::anonymous;
use sessile::settings::Origin;

use crate::cli::Cx;
use crate::error::Outcome;

/// Session and context that a change was made in.
#[derive(Debug)]
pub(crate) struct ChangePlace {
    /// Id of the session.
    pub(crate) session: Option<String>,
    /// Name of the context.
    pub(crate) context: Option<String>,
    /// Origin of the context.
    pub(crate) context_origin: Option<Origin>,
    /// The same in words, for people.
    pub(crate) words: String,
    /// Whether the change was made on this machine.
    pub(crate) is_local: bool,
}

impl ChangePlace {
    /// Context in words: `context staging (flag)`.
    pub(crate) fn context_words(context: Option<&str>, origin: Option<&Origin>) -> String {
        let context = context
            .map_or_else(|| "no context".to_owned(), |name| format!("context {}", anonymous::label(name)));
        let origin = origin.map_or_else(String::new, |origin| format!(" ({origin})"));
        format!("{context}{origin}")
    }

    /// Selected context in words, unless the call or its session names it: `in context staging`.
    pub(crate) fn selected_words(&self) -> Option<String> {
        let is_selected = self.context_origin.as_ref().is_some_and(|origin| !origin.layer.is_explicit());
        let name = self.context.as_deref().filter(|_| is_selected)?;
        Some(format!("in context {}", anonymous::label(name)))
    }
}

/// A change as programs read it: its own fields, then the session and the context.
#[derive(Debug, Serialize)]
pub(crate) struct ChangeView<'a, T> {
    #[serde(flatten)]
    pub(crate) change: &'a T,
    pub(crate) session: Option<&'a str>,
    pub(crate) context: Option<&'a str>,
    pub(crate) context_origin: Option<&'a Origin>,
}

/// A change that was made, with its place.
#[derive(Debug)]
pub(crate) struct ChangeReport<T> {
    pub(crate) change: T,
    pub(crate) place: ChangePlace,
}

impl<T: Serialize> ChangeReport<T> {
    /// Prints the change.
    pub(crate) fn print(&self, cx: &Cx, text: impl FnOnce(&T) -> String) -> Outcome {
        cx.changed_at(&self.place, &self.change, || text(&self.change))
    }
}
