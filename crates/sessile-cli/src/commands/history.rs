//! `sessile history`: what was changed, when and by whom.

use std::time::Duration;

use clap::Subcommand;
use serde::Serialize;
use serde_json::json;
use sessile::Error;
use sessile::args::parse_duration;
use sessile::error::UsageError;
use sessile::history::{self, Operation};
use sessile::settings::Layer;
use sessile::store::OperationFilter;
use sessile::text::shown;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::output::{Table, Tone};
use crate::remote::{Remote, RemoteOperation, ServerArgs};

/// Show what was changed, when and by whom
///
/// Every change of state is an operation with what was and what is. With --session only those of that session.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = examples!(
        "sessile history --since 1h"
        "sessile history --session deploy"
        "sessile history show 12"
    )
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// Only what is not older than this
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    since: Option<Duration>,

    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,

    /// Go on after this one, the last id of the page before
    #[arg(long, value_name = "ID")]
    cursor: Option<String>,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show one operation whole
    #[command(after_help = examples!("sessile history show 12"))]
    Show {
        /// The operation
        #[arg(value_name = "ID")]
        id: i64,
    },
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    if let Some(Command::Show { id }) = args.command {
        return show(id, cx);
    }
    let now = cx.state.world().now().as_millisecond();
    let since_ms = args.since.map(|since| now - i64::try_from(since.as_millis()).unwrap_or(now));
    if let Some(remote) = Remote::of(cx)? {
        let operations = remote.history(since_ms, args.limit, args.cursor.as_deref())?;
        return print(&operations.into_iter().map(HistoryView::Remote).collect::<Vec<_>>(), cx);
    }
    let cursor = args.cursor.as_ref().map(|text| {
        text.parse::<i64>().map_err(|_| {
            Error::Usage(UsageError::InvalidValue {
                place: "--cursor".into(),
                value: text.clone(),
                expected: "the id of an operation".into(),
            })
        })
    });
    let named = cx.state.session()?.filter(|current| current.origin.layer == Layer::Flag);
    let session = named.map(|current| current.session.id.to_string());
    let operations = history::list(
        &cx.state,
        &OperationFilter {
            session: session.as_deref(),
            terminal: None,
            since_ms,
            before: cursor.transpose()?,
            limit: Some(args.limit),
        },
    )?;
    print(&operations.into_iter().map(HistoryView::Local).collect::<Vec<_>>(), cx)
}

/// An operation of this machine or of a service.
#[derive(Serialize)]
#[serde(untagged)]
enum HistoryView {
    Local(Operation),
    Remote(RemoteOperation),
}

impl HistoryView {
    /// Id, time, command, subject, place and note.
    fn cells(&self) -> [String; 6] {
        let place = |session: Option<&String>| session.map_or_else(|| "-".to_owned(), String::clone);
        match self {
            HistoryView::Local(one) => [
                one.id.to_string(),
                one.at.clone(),
                one.command.clone(),
                one.subject.clone(),
                place(one.session.as_ref().or(one.terminal.as_ref())),
                note(one),
            ],
            HistoryView::Remote(one) => {
                let note = if one.state == "done" { "cannot be undone" } else { &one.state };
                let (id, at) = (one.id.clone(), one.at.clone());
                let (command, subject) = (one.command.clone(), one.subject.clone());
                [id, at, command, subject, place(one.session.as_ref()), note.to_owned()]
            }
        }
    }

    fn is_undone(&self) -> bool {
        matches!(self, HistoryView::Local(Operation { undone_by: Some(_), .. }))
    }
}

fn print(items: &[HistoryView], cx: &Cx) -> Outcome {
    cx.out.list(items, || {
        if items.is_empty() {
            return "nothing was changed\n".to_owned();
        }
        let mut table = Table::new(&["ID", "WHEN", "COMMAND", "SUBJECT", "WHERE", "NOTE"]);
        for item in items {
            table.row(&item.cells(), item.is_undone().then_some(Tone::Faint));
        }
        table.render(&cx.out)
    })
}

fn note(operation: &Operation) -> String {
    match (operation.undone_by, operation.undoes) {
        (Some(by), _) => format!("undone by {by}"),
        (None, Some(undoes)) => format!("undoes {undoes}"),
        (None, None) if operation.state != "done" => operation.state.clone(),
        (None, None) if !operation.undoable => "cannot be undone".to_owned(),
        (None, None) => String::new(),
    }
}

fn show(id: i64, cx: &Cx) -> Outcome {
    let operation = history::find(&cx.state, id)?;
    let json = json!(operation);
    cx.out.result(&json, || {
        let mut text = format!("operation {id}\n");
        for key in ["at", "user", "session", "terminal", "command", "subject", "state"] {
            text.push_str(&format!(
                "  {key:<9} {}\n",
                json[key].as_str().map_or_else(|| "-".to_owned(), shown)
            ));
        }
        let note = note(&operation);
        if !note.is_empty() {
            text.push_str(&format!("  {:<9} {note}\n", "note"));
        }
        for effect in json["effects"].as_array().into_iter().flatten() {
            text.push_str(&format!("  {:<9} {}\n", "effect", shown(effect)));
        }
        text
    })
}
