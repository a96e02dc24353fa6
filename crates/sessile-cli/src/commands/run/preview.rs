//! `sessile run --dry-run`: context, targets, variables and copies of a command.

use std::borrow::Cow;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Value, json};
use sessile::run::{PreparedRun, RunSession};
use sessile::secrets::{has_url_password, looks_secret};
use sessile::text::{shortened, shown};
use sessile::tool::Plan;

use super::Args;
use crate::cli::Cx;
use crate::counted::counted;
use crate::error::{Failure, Outcome};
use crate::isolation::{close, describe_run, preparation};
use crate::output::{Table, Tone, labelled};
use crate::view::ChangePlace;

/// Widest value in the table of variables; JSON has all of it.
const WIDEST: usize = 120;

/// Width of the column of labels.
const LABELS: usize = 10;

/// Prepares an ephemeral session like the real one, prints its plan, and removes it.
pub(super) fn dry_run(args: &Args, cx: &Cx) -> Outcome {
    let target = cx.state.session()?.map(|current| current.session.room().dir().display().to_string());
    let target = target.unwrap_or_else(|| "ROOM".to_owned());
    let request = args.request();
    let run = RunSession::open_ephemeral(&cx.state, &request)?;
    describe_run(cx, &run);
    let step = preparation(cx, &run);
    let prepared = run.prepare(&request);
    drop(step);
    let result = prepared.map_err(Failure::from).and_then(|prepared| preview(args, cx, &prepared, &target));
    close(cx, &run, &result);
    result
}

/// Variable of a command.
#[derive(Serialize)]
struct VariableView {
    name: String,
    /// Value; `None` if the variable is unset.
    value: Option<String>,
    origin: String,
}

/// Copy that a room would hold.
#[derive(Serialize)]
struct CopyView {
    tool: String,
    from: Vec<PathBuf>,
    to: String,
}

/// Target that the context binds.
#[derive(Serialize)]
struct TargetView {
    tool: String,
    key: String,
    value: Value,
}

/// Tool whose state stays shared.
#[derive(Serialize)]
struct SharedToolView {
    tool: String,
    reason: String,
}

/// Protected target that a room would not hold.
#[derive(Serialize)]
struct WithheldView<'a> {
    tool: &'a str,
    key: &'a str,
    name: &'a str,
    aliases: &'a [String],
    /// Guarded context that protects it.
    context: &'a str,
}

fn preview(args: &Args, cx: &Cx, prepared: &PreparedRun<'_>, target: &str) -> Outcome {
    let PreparedRun { plan, environment, .. } = prepared;
    let run = prepared.run();
    let room = run.session().room().dir().display().to_string();
    let (id, label) = (run.session().id.to_string(), target_label(cx));
    // A dry run has a room of its own, but shows the one that a real run would use.
    let moved = |text: &str| text.replace(&room, target).replace(&id, &label);
    let changes: Vec<_> = environment
        .changes
        .iter()
        // It only repeats the others, for commands that are run inside.
        .filter(|change| change.name != run.state().app().variable("ORIGINALS"))
        .map(|change| {
            let value = change.value.as_deref().map(moved);
            // A value that leads into the room is a path, not a secret, even if the name of the variable looks like one.
            let hidden = value.as_deref().is_some_and(|value| {
                !value.starts_with(target) && looks_secret(&change.name) || has_url_password(value)
            });
            VariableView {
                name: change.name.clone(),
                value: if hidden { Some("********".to_owned()) } else { value },
                origin: moved(&change.origin),
            }
        })
        .collect();
    let bound = environment.credentials.iter().map(|bound| {
        let origin = format!("{}, credential {}", bound.origin, bound.credential);
        VariableView { name: bound.name.clone(), value: Some("********".to_owned()), origin }
    });
    let changes: Vec<_> = changes.into_iter().chain(bound).collect();
    let copied = Plan::copies(run.session().room().dir())?;
    let copies: Vec<_> = copied
        .iter()
        .flat_map(|(tool, seeds)| seeds.iter().map(move |seeded| (tool, seeded)))
        .filter(|(_, seeded)| !seeded.from.is_empty())
        .map(|(tool, seeded)| CopyView {
            tool: tool.clone(),
            from: seeded.from.clone(),
            to: moved(&seeded.to.display().to_string()),
        })
        .collect();
    let targets: Vec<_> = plan
        .bound
        .iter()
        .flat_map(|bound| bound.bindings.iter().map(move |(key, value)| (&bound.tool, key, value)))
        .map(|(tool, key, value)| {
            let has_password = value.as_str().is_some_and(has_url_password);
            let value = if has_password { Value::from("********") } else { value.clone() };
            TargetView { tool: tool.clone(), key: key.clone(), value }
        })
        .collect();
    let shared: Vec<_> = plan
        .tools
        .iter()
        .filter_map(|tool| {
            Some(SharedToolView { tool: tool.tool.clone(), reason: moved(tool.shared.as_ref()?) })
        })
        .collect();
    let withheld: Vec<_> = plan
        .withheld_targets()
        .map(|(tool, target)| WithheldView {
            tool,
            key: &target.key,
            name: &target.name,
            aliases: &target.aliases,
            context: &target.context,
        })
        .collect();
    let json = json!({
        "command": args.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>(),
        "session": cx.state.session()?.map(|current| &current.session.id),
        "context": run.session().context,
        "targets": targets,
        "room": target,
        "variables": changes,
        "copies": copies,
        "shared": shared,
        "withheld": withheld,
    });
    cx.out.result(&json, || {
        let mut text = labelled("context", LABELS, &shown(context_words(cx, run)));
        text.push_str(&labelled("session", LABELS, &shown(session_words(cx))));
        let lines = targets.iter().map(|TargetView { tool, key, value }| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            format!("{tool} {key} {value}")
        });
        text.push_str(&section("targets", lines));
        let lines = withheld.iter().map(|WithheldView { tool, key, name, context, .. }| {
            format!("{tool} {key} {name}, protected by context {context}")
        });
        text.push_str(&section("withheld", lines));
        let lines = shared.iter().map(|SharedToolView { tool, reason }| format!("{tool}: {reason}"));
        text.push_str(&section("shared", lines));
        let lines = plan
            .linked()
            .map(|(tool, path)| format!("{} of {tool}, which is too large to copy", path.display()));
        text.push_str(&section("linked", lines));
        if args.shows_variables || cx.out.is_verbose() {
            text.push_str(&variables_text(cx, &changes, &copies));
        } else {
            let counts =
                format!("{} and {}", counted(changes.len(), "variable"), counted(copies.len(), "copy"));
            text.push_str(&format!("\n{counts}; print them: --variables\n"));
        }
        text
    })
}

/// Lines under one label; nothing without lines.
fn section(label: &str, lines: impl Iterator<Item = String>) -> String {
    let mut labels = std::iter::once(label).chain(std::iter::repeat(""));
    lines.map(|line| labelled(labels.next().unwrap_or_default(), LABELS, &shown(line))).collect()
}

/// The variables as a table, and the copies. In 80 columns, unless `--verbose` asks for long values.
fn variables_text(cx: &Cx, changes: &[VariableView], copies: &[CopyView]) -> String {
    let mut table = Table::new(&["VARIABLE", "VALUE", "FROM"]);
    for change in changes {
        let cell = |text: &str| shown(shortened(text, WIDEST));
        let value = change.value.as_deref();
        let tone = value.is_none().then_some(Tone::Faint);
        table.row(&[cell(&change.name), cell(value.unwrap_or("(unset)")), cell(&change.origin)], tone);
    }
    let mut text = format!("\n{}", table.render_fitted(&cx.out, cx.out.is_verbose()));
    for CopyView { from, to, .. } in copies {
        let from: Vec<Cow<'_, str>> = from.iter().map(|path| path.to_string_lossy()).collect();
        text.push_str(&format!("copy {} to {}\n", shown(from.join(", ")), shown(to)));
    }
    text
}

/// The context of the run with its origin.
fn context_words(cx: &Cx, run: &RunSession<'_>) -> String {
    let Some(context) = run.session().context.as_deref() else { return "none".to_owned() };
    let selected = cx.state.selected().ok().flatten();
    let origin = selected.filter(|selected| selected.name.as_str() == context).map(|one| &one.origin);
    let words = ChangePlace::context_words(Some(context), origin);
    words.strip_prefix("context ").map_or_else(|| words.clone(), str::to_owned)
}

/// The session that a real run would use.
fn session_words(cx: &Cx) -> String {
    let named = cx.state.args().session.as_deref();
    match (cx.state.session().ok().flatten(), named) {
        (Some(current), _) => current.session.label().to_owned(),
        (None, Some(name)) => format!("{name}, which does not exist yet"),
        (None, None) => "a new one, deleted after the command".to_owned(),
    }
}

fn target_label(cx: &Cx) -> String {
    let current = cx.state.session().ok().flatten();
    current.map_or_else(|| "SESSION".to_owned(), |current| current.session.id.to_string())
}
