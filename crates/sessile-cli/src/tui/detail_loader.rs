//! Reads one thing in full.

use sessile::history::{self, Effect, OperationFilter};
use sessile::text::quoted;
use sessile::tool::ContextProtection;

use super::model::{Detail, DetailKey, DetailSection, line_diff};
use crate::backend::MessageRange;
use crate::cli::Cx;
use crate::error::Failure;
use crate::local::LocalBackend;
use crate::view::operation_fields;

/// Commands of a session that are listed, the last ones.
const MOST_COMMANDS: usize = 50;

/// Changes of a session that are listed, the last ones.
const MOST_CHANGES: usize = 50;

/// Number of bytes and lines at the end of a command's output that the pane shows.
const MOST_OUTPUT: u64 = 64 * 1024;
const MOST_LINES: usize = 200;

/// Number of messages of a conversation, the last ones.
const MOST_MESSAGES: i64 = 100;

pub(super) fn load(cx: &Cx, key: &DetailKey) -> Result<Detail, Failure> {
    let (title, sections) = match key {
        DetailKey::Session(id) => session(cx, id)?,
        DetailKey::Context(name) => context(cx, name)?,
        DetailKey::Operation(number) => {
            let operation = history::find(&cx.state, *number)?;
            let fields = operation_fields(&operation).into_iter();
            let mut sections =
                vec![section("Operation", fields.map(|(label, value)| format!("{label:<9} {value}")))];
            sections.extend(operation.effects.iter().map(effect));
            (format!("Operation {number}"), sections)
        }
        DetailKey::Conversation(id) => {
            let view = LocalBackend { cx }.conversation(Some(id), MessageRange::Last(MOST_MESSAGES))?;
            let title = format!("Conversation {}", quoted(view.name.as_ref().unwrap_or(&view.id)));
            (title, vec![section("Messages", view.text().lines().map(str::to_owned))])
        }
    };
    Ok(Detail { key: key.clone(), title, sections })
}

fn section(title: &str, lines: impl IntoIterator<Item = String>) -> DetailSection {
    DetailSection { title: title.to_owned(), lines: lines.into_iter().collect(), is_diff: false }
}

/// An effect, as the difference that it made.
fn effect(effect: &Effect) -> DetailSection {
    let lines = match effect.texts() {
        _ if matches!(effect, Effect::Event { .. }) => Vec::new(),
        (before, after) => line_diff(&before.unwrap_or_default(), &after.unwrap_or_default()),
    };
    DetailSection { title: effect.subject(), lines, is_diff: true }
}

fn session(cx: &Cx, id: &str) -> Result<(String, Vec<DetailSection>), Failure> {
    let view = LocalBackend { cx }.show_session(Some(id))?;
    let (_, session) = cx.state.look_up_session(id)?;
    let commands = session.room().commands();
    let recent = commands.iter().rev().take(MOST_COMMANDS).map(|one| {
        let at = sessile::clock::rfc3339(one.at_ms);
        let words: Vec<String> = one.words.iter().map(|word| sessile::text::shell_quoted(word)).collect();
        format!("{at}  {}", words.join(" "))
    });
    let logs = session.room().logged_outputs();
    let output = logs.first().and_then(|log| Some((log, log.read_last(MOST_OUTPUT).ok()?)));
    let output = output.map(|(log, bytes)| {
        let words: Vec<String> =
            log.command.words.iter().map(|word| sessile::text::shell_quoted(word)).collect();
        let title = format!("Output of {} (pid {})", words.join(" "), log.command.pid);
        let text = sessile::session::plain_output(&bytes);
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let first = lines.len().saturating_sub(MOST_LINES);
        section(&title, lines.into_iter().skip(first))
    });
    let output = output.or_else(|| {
        let session = sessile::text::shell_quoted(session.label());
        let hint = format!("not logged; log it: sessile run --log --session {session} -- COMMAND");
        (!commands.is_empty()).then(|| section("Output", [hint]))
    });
    let running = view.session.running.iter().map(|one| format!("{} (pid {})", one.program, one.process.pid));
    let of_session = OperationFilter {
        session: Some(&view.session.id),
        limit: Some(MOST_CHANGES),
        ..OperationFilter::default()
    };
    let changes = history::list(&cx.state, &of_session)?;
    let changes = changes.iter().map(|one| {
        let undone = one.undone_by.map_or_else(String::new, |by| format!(" (undone by {by})"));
        format!("{}  {} {}, operation {}{undone}", one.at, one.command, one.subject, one.id)
    });
    // Conversations, drift and copies have sections of their own.
    let facts = view.facts();
    let mut sections = vec![
        section("Session", facts),
        section("Running", running),
        section("Drift", view.drift.iter().map(ToString::to_string)),
        section("Changed copies", view.changed.iter().cloned()),
        section("Changes, the newest first", changes),
        section("Conversations", view.conversations.iter().map(crate::view::ConversationSummary::words)),
        section("Commands, the newest first", recent),
    ];
    sections.extend(output);
    let title = format!("Session {}", quoted(session.label()));
    Ok((title, sections.into_iter().filter(|section| !section.lines.is_empty()).collect()))
}

fn context(cx: &Cx, name: &str) -> Result<(String, Vec<DetailSection>), Failure> {
    let context = cx.state.contexts().get(&name.parse()?)?;
    let content = context.content(cx.state.app())?;
    let mut facts = vec![
        format!("guard        {}", context.guard.as_str()),
        format!("file         {}", context.path().display()),
        format!("trusted      {}", if context.trusted { "yes" } else { "no" }),
    ];
    facts.extend(context.shown_description().map(|text| format!("description  {text}")));
    let tables = [
        ("Tools", &content.tools),
        ("Settings", &content.settings),
        ("Values", &content.values),
        ("Variables", &content.env),
        ("Agents", &content.agents),
    ];
    let mut sections = vec![section("Context", facts)];
    for (title, pairs) in tables {
        sections.push(section(title, pairs.iter().map(|(key, value)| format!("{key} = {value}"))));
    }
    let protection = ContextProtection::of(&cx.state, &context)?;
    let protected =
        protection.protected.iter().map(|one| format!("{} {} {}", one.tool, one.key, quoted(&one.name)));
    sections.push(section("Protected targets", protected));
    sections.push(section("Not protected", protection.not_protected.iter().cloned()));
    let title = format!("Context {}", quoted(name));
    Ok((title, sections.into_iter().filter(|section| !section.lines.is_empty()).collect()))
}
