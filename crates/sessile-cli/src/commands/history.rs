//! `sessile history`: what was changed, when and by whom.

use std::time::Duration;

use clap::Subcommand;
use serde_json::{Value, json};
use sessile::Error;
use sessile::args::parse_duration;
use sessile::error::UsageError;
use sessile::history;
use sessile::settings::Layer;
use sessile::store::OperationFilter;
use sessile::text::shown;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::output::{Table, Tone};
use crate::remote::{Remote, ServerArgs};

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
        let items = remote.history(since_ms, args.limit, args.cursor.as_deref())?;
        return print(&items, cx);
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
    let items: Vec<Value> = operations.iter().map(|operation| json!(operation)).collect();
    print(&items, cx)
}

/// Prints operations, be they of this machine or of a server.
fn print(items: &[Value], cx: &Cx) -> Outcome {
    cx.out.list(items, || {
        if items.is_empty() {
            return "nothing was changed\n".to_owned();
        }
        let mut table = Table::new(&["ID", "WHEN", "COMMAND", "SUBJECT", "WHERE", "NOTE"]);
        for item in items {
            let cell = |key: &str| item[key].as_str().unwrap_or_default().to_owned();
            let place = item["session"].as_str().or(item["terminal"].as_str()).unwrap_or("-").to_owned();
            let id = item["id"].as_str().map_or_else(|| item["id"].to_string(), str::to_owned);
            let tone = item["undone_by"].is_number().then_some(Tone::Faint);
            let cells = [id, cell("at"), cell("command"), cell("subject"), place, note(item)];
            table.row(&cells, tone);
        }
        table.render(&cx.out)
    })
}

fn note(operation: &Value) -> String {
    let state = operation["state"].as_str().unwrap_or_default();
    match (operation["undone_by"].as_i64(), operation["undoes"].as_i64()) {
        (Some(by), _) => format!("undone by {by}"),
        (None, Some(undoes)) => format!("undoes {undoes}"),
        (None, None) if state != "done" => state.to_owned(),
        (None, None) if operation["undoable"] == false => "cannot be undone".to_owned(),
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
        let note = note(&json);
        if !note.is_empty() {
            text.push_str(&format!("  {:<9} {note}\n", "note"));
        }
        for effect in json["effects"].as_array().into_iter().flatten() {
            text.push_str(&format!("  {:<9} {}\n", "effect", shown(effect)));
        }
        text
    })
}
