//! Pickers: lists to choose from, where a person left out the name of a context or a session.
//!
//! Each line names the entry and previews what it binds, and typing filters by either. A call without a person keeps its
//! error: nothing is picked for a script.

use inquire::list_option::ListOption;
use inquire::{InquireError, Select, Text};
use sessile::config::write::WriteScope;
use sessile::confirm::can_ask;
use sessile::context::{Bindings, Context, Guard, anonymous};
use sessile::error::UsageError;
use sessile::hook::has_hook_label;
use sessile::names::ContextName;
use sessile::session::lifecycle::Lifecycle;
use sessile::text::{shortened, shown};

use crate::backend::{SessionFilter, StateBackend};
use crate::cli::Cx;
use crate::error::{CommandError, Failure};

/// Lines that are visible at once.
const PAGE: usize = 12;

/// Widest line, so that none wraps on an ordinary terminal.
const WIDEST: usize = 76;

/// Widest name that others are aligned with.
const WIDEST_NAME: usize = 24;

/// Sessions that are offered at most.
const MOST_SESSIONS: usize = 100;

/// Entry of a list: its value, its name and its description.
struct PickerEntry<T> {
    value: T,
    name: String,
    preview: String,
}

/// Lets a person choose a context; `None` without a terminal or without contexts.
pub(crate) fn context(cx: &Cx, question: &str) -> Result<Option<ContextName>, Failure> {
    choose_context(cx, question, |_| true)
}

fn choose_context(
    cx: &Cx,
    question: &str,
    is_offered: impl Fn(&Context) -> bool,
) -> Result<Option<ContextName>, Failure> {
    let entries = contexts(cx, is_offered)?;
    if entries.is_empty() {
        return Ok(None);
    }
    let current = cx.state.selected().ok().flatten().map(|selected| selected.name.clone());
    let start = entries.iter().position(|entry| Some(&entry.value) == current.as_ref());
    pick(question, entries, start.unwrap_or(0)).map(Some)
}

/// The context that an argument names; without one a person chooses it. Otherwise the argument is missing.
pub(crate) fn required_context(
    cx: &Cx,
    argument: Option<&str>,
    question: &str,
    command: &str,
) -> Result<ContextName, Failure> {
    named_or_chosen(cx, argument, question, command, |_| true)
}

/// The same for an approval: only contexts whose guard requires one are offered.
pub(crate) fn required_guarded_context(
    cx: &Cx,
    argument: Option<&str>,
    question: &str,
    command: &str,
) -> Result<ContextName, Failure> {
    named_or_chosen(cx, argument, question, command, |context| context.guard == Guard::Approval)
}

fn named_or_chosen(
    cx: &Cx,
    argument: Option<&str>,
    question: &str,
    command: &str,
    is_offered: impl Fn(&Context) -> bool,
) -> Result<ContextName, Failure> {
    match argument {
        Some(name) => Ok(name.parse()?),
        None => choose_context(cx, question, is_offered)?
            .ok_or_else(|| missing(&format!("{command} requires a CONTEXT"))),
    }
}

/// The new name that an argument gives; without one a person types it. Otherwise the argument is missing.
pub(crate) fn required_name(cx: &Cx, argument: Option<&str>, command: &str) -> Result<String, Failure> {
    if let Some(name) = argument {
        return Ok(name.to_owned());
    }
    if !can_ask(&cx.state) {
        return Err(missing(&format!("{command} requires a NEW name")));
    }
    answered("New name:", Text::new("New name:").prompt())
}

fn missing(what: &str) -> Failure {
    UsageError::Arguments(what.to_owned()).into()
}

/// The same with a last entry for no context. The outer `None` is the same; the inner one is that entry.
pub(crate) fn context_or_none(cx: &Cx, question: &str) -> Result<Option<Option<ContextName>>, Failure> {
    let entries = contexts(cx, |_| true)?;
    if entries.is_empty() {
        return Ok(None);
    }
    let some = entries.into_iter().map(|PickerEntry { value, name, preview }| PickerEntry {
        value: Some(value),
        name,
        preview,
    });
    let none = PickerEntry {
        value: None,
        name: "(none)".to_owned(),
        preview: "copies of your tools' current state".to_owned(),
    };
    pick(question, some.chain([none]).collect(), 0).map(Some)
}

/// Lets a person choose a live session and returns its id; `None` without a terminal or without sessions.
pub(crate) fn session(cx: &Cx, question: &str) -> Result<Option<String>, Failure> {
    if !can_ask(&cx.state) {
        return Ok(None);
    }
    let filter = SessionFilter {
        state: Some(Lifecycle::Live),
        context: None,
        labels: &[],
        older_than: None,
        newer_than: None,
        limit: MOST_SESSIONS,
        cursor: None,
    };
    let live = StateBackend::resolve(cx)?.list_sessions(&filter, false)?;
    let entries: Vec<PickerEntry<String>> = live
        .sessions
        .into_iter()
        // A hooked shell's own session has no name, and only that shell uses it.
        .filter(|view| !has_hook_label(&view.labels))
        .map(|view| {
            let context =
                view.context.as_deref().map(anonymous::label).unwrap_or_else(|| "no context".to_owned());
            let current = if live.current.as_ref() == Some(&view.id) { ", this terminal's" } else { "" };
            let running = view.running_words();
            PickerEntry {
                name: view.name.unwrap_or_else(|| view.id.clone()),
                preview: format!("{context}{running}{current}"),
                value: view.id,
            }
        })
        .collect();
    if entries.is_empty() {
        return Ok(None);
    }
    pick(question, entries, 0).map(Some)
}

/// The session that an argument names; without one and without a current session, one that a person chooses.
pub(crate) fn session_unless_current(
    cx: &Cx,
    argument: Option<&str>,
    question: &str,
) -> Result<Option<String>, Failure> {
    match argument {
        Some(which) => Ok(Some(which.to_owned())),
        None if cx.state.session()?.is_some() => Ok(None),
        None => session(cx, question),
    }
}

/// Lets a person choose the scope of a setting; `None` without a terminal.
pub(crate) fn write_scope(cx: &Cx, question: &str) -> Result<Option<WriteScope>, Failure> {
    if !can_ask(&cx.state) {
        return Ok(None);
    }
    let entry = |value, name: &str, preview: &str| PickerEntry {
        value,
        name: name.to_owned(),
        preview: preview.to_owned(),
    };
    let entries = vec![
        entry(WriteScope::Global, "this user", "everywhere (--global)"),
        entry(WriteScope::Directory, "this directory", "for you, in .sessile/local.toml (--dir)"),
        entry(WriteScope::Project, "this project", "for everybody, in .sessile/config.toml (--project)"),
    ];
    pick(question, entries, 0).map(Some)
}

fn contexts(
    cx: &Cx,
    is_offered: impl Fn(&Context) -> bool,
) -> Result<Vec<PickerEntry<ContextName>>, Failure> {
    if !can_ask(&cx.state) {
        return Ok(Vec::new());
    }
    let all = cx.state.contexts().list()?.into_iter();
    // One that cannot be read can still be edited and deleted.
    Ok(all
        .filter(|(_, context)| context.as_ref().map_or(true, &is_offered))
        .map(|(value, context)| PickerEntry {
            name: value.to_string(),
            preview: context.map_or_else(|_| "cannot be read".to_owned(), |context| preview(&context)),
            value,
        })
        .collect())
}

/// The guard, the bindings and the description of a context.
fn preview(context: &Context) -> String {
    let guard = (context.guard > Guard::None).then(|| format!("({})", context.guard.as_str()));
    let bound = |(tool, bindings): &(String, Bindings)| {
        let values = bindings.iter().map(|(key, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            format!("{tool}.{key}={value}")
        });
        values.collect::<Vec<_>>().join(" ")
    };
    let words = guard.into_iter().chain(context.tools.iter().map(bound)).chain(context.shown_description());
    words.collect::<Vec<_>>().join(" ")
}

fn pick<T>(question: &str, entries: Vec<PickerEntry<T>>, start: usize) -> Result<T, Failure> {
    let width = entries.iter().map(|entry| entry.name.chars().count()).max().unwrap_or(0).min(WIDEST_NAME);
    let line = |entry: &PickerEntry<T>| {
        let text = format!("{:width$}  {}", shown(&entry.name), shown(&entry.preview));
        shortened(text.trim_end(), WIDEST)
    };
    let lines: Vec<String> = entries.iter().map(line).collect();
    let chosen = |option: ListOption<&String>| {
        entries.get(option.index).map_or_else(String::new, |entry| shown(&entry.name))
    };
    let picked = Select::new(question, lines)
        .with_formatter(&chosen)
        .with_starting_cursor(start)
        .with_page_size(PAGE)
        .with_help_message("type to filter, arrows move, enter chooses, esc cancels")
        .raw_prompt();
    let index = answered(question, picked)?.index;
    entries
        .into_iter()
        .nth(index)
        .map(|entry| entry.value)
        .ok_or_else(|| CommandError::Declined(question.to_owned()).into())
}

fn answered<T>(question: &str, answer: Result<T, InquireError>) -> Result<T, Failure> {
    match answer {
        Ok(answer) => Ok(answer),
        Err(InquireError::OperationInterrupted) => Err(Failure::Interrupted),
        Err(_) => Err(CommandError::Declined(question.trim_end_matches(':').to_lowercase()).into()),
    }
}
