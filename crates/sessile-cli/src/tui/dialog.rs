//! Overlays: help, opened things, questions and the palette.

use std::time::Duration;

use sessile::text::quoted;
use zeroize::Zeroizing;

use super::action::{ApprovalQuestion, TuiAction};
use super::keys::{BINDINGS, KeyBinding};
use super::model::{Detail, DetailKey};
use super::text_input::{Echo, TextInput};

/// Time that an approval is offered for.
const USUAL_APPROVAL: &str = "10m";

/// Something in front of the panes.
#[derive(Debug)]
pub(crate) enum TuiOverlay {
    /// The keys.
    Help { scroll: usize },
    /// One thing in full; none while it is read.
    Detail { key: DetailKey, detail: Option<Result<Detail, String>>, scroll: usize },
    /// A question that `y` answers with yes.
    Confirm { question: String, note: String, effect: ConfirmEffect },
    /// Something to read, until a key closes it.
    Notice { title: &'static str, text: String },
    /// Fields to fill in.
    Form(DialogForm),
    /// Commands by name.
    Palette { input: TextInput, selected: usize },
}

/// Effect of a yes.
#[derive(Debug)]
pub(crate) enum ConfirmEffect {
    /// Make a change.
    Change(TuiAction),
    /// Leave the TUI.
    Quit,
}

/// Purpose of a form.
#[derive(Debug)]
enum FormPurpose {
    StartSession { context: Option<String> },
    Approve(ApprovalQuestion),
}

/// A field of a form.
#[derive(Debug)]
pub(crate) struct FormField {
    pub(crate) label: &'static str,
    pub(crate) input: TextInput,
}

/// Fields to fill in, one after the other.
#[derive(Debug)]
pub(crate) struct DialogForm {
    pub(crate) title: String,
    pub(crate) fields: Vec<FormField>,
    pub(crate) current: usize,
    pub(crate) error: Option<String>,
    purpose: FormPurpose,
}

/// Result of Enter in a form.
#[derive(Debug)]
pub(crate) enum FormOutcome {
    /// A field is still missing or invalid.
    Unfinished,
    /// The change to make.
    Ready(TuiAction),
}

impl DialogForm {
    /// DialogForm of a session to start.
    pub(crate) fn start_session(context: Option<&str>) -> Self {
        let field = |label, text: &str| FormField { label, input: TextInput::with_text(text) };
        let mut fields = vec![field("Name: ", "")];
        if context.is_none() {
            fields.push(field("Context (empty: the selected one): ", ""));
        }
        let of = context.map_or_else(String::new, |name| format!(" in context {}", quoted(name)));
        DialogForm {
            title: format!("Start a session{of}"),
            fields,
            current: 0,
            error: None,
            purpose: FormPurpose::StartSession { context: context.map(str::to_owned) },
        }
    }

    /// DialogForm of an approval.
    pub(crate) fn approve(question: ApprovalQuestion) -> Self {
        let mut fields = vec![FormField {
            label: "For (such as 10m or 2h): ",
            input: TextInput::with_text(USUAL_APPROVAL),
        }];
        if question.requires_pin {
            fields.push(FormField { label: "PIN: ", input: TextInput::new(Echo::Stars) });
        }
        DialogForm {
            title: format!("Approve context {}", quoted(&question.context)),
            fields,
            current: 0,
            error: None,
            purpose: FormPurpose::Approve(question),
        }
    }

    /// Field that is being filled in.
    pub(crate) fn input(&mut self) -> Option<&mut TextInput> {
        self.fields.get_mut(self.current).map(|field| &mut field.input)
    }

    /// Goes to the next field, or finishes.
    pub(crate) fn submit(&mut self) -> FormOutcome {
        if self.current + 1 < self.fields.len() {
            self.current += 1;
            return FormOutcome::Unfinished;
        }
        let text = |at: usize| self.fields.get(at).map(|field| field.input.text().trim().to_owned());
        match &self.purpose {
            FormPurpose::StartSession { context } => {
                let context = context.clone().or_else(|| text(1)).filter(|context| !context.is_empty());
                FormOutcome::Ready(TuiAction::StartSession { name: text(0).unwrap_or_default(), context })
            }
            FormPurpose::Approve(question) => {
                let parsed: Option<Duration> = sessile::duration::parse(&text(0).unwrap_or_default());
                let Some(time) = parsed else {
                    self.error = Some("invalid time: expected such as 10m, 2h or 90s".to_owned());
                    self.current = 0;
                    return FormOutcome::Unfinished;
                };
                let pin = self.fields.get(1).map(|field| Zeroizing::new(field.input.text().to_owned()));
                FormOutcome::Ready(TuiAction::Approve {
                    context: question.context.clone(),
                    time,
                    digest: question.digest.clone(),
                    pin,
                })
            }
        }
    }
}

/// Commands of the palette that a text matches.
pub(crate) fn palette_rows(text: &str) -> Vec<&'static KeyBinding> {
    let wanted = text.trim().to_lowercase();
    let mut rows: Vec<&KeyBinding> = BINDINGS
        .iter()
        .filter(|row| row.name.contains(&wanted) || row.help.to_lowercase().contains(&wanted))
        .collect();
    // A command whose name begins with the text comes first.
    rows.sort_by_key(|row| !row.name.starts_with(&wanted));
    rows
}
