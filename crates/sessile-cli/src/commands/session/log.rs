//! `sessile session log`.

use std::io::IsTerminal;

use serde_json::json;
use sessile::error::{FileError, UsageError};
use sessile::session::plain_output;
use sessile::text::{quoted, shown_lines};

use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::local::LocalBackend;
use crate::output::Table;
use crate::picker;
use crate::view::LoggedCommand;

/// Print the output that `run --log` kept
///
/// Prints the last 1 MiB of the newest such command, or of the one that --pid names, without colors, cursor movements and
/// overwritten text. Other control characters are escaped. The session keeps the output of its last 8 commands until it
/// ends.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile session log deploy"
    "sessile session log deploy --list"
    "sessile session log deploy --raw > typescript"
))]
pub struct Args {
    /// Name, id or prefix of the id; default: the current session
    #[arg(value_name = "SESSION")]
    which: Option<String>,

    /// Print the output of this process instead of the newest one
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,

    /// List the commands whose output is kept
    #[arg(long, conflicts_with_all = ["pid", "raw"])]
    list: bool,

    /// Print the bytes unchanged; refused on a terminal
    #[arg(long)]
    raw: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let which = picker::session_unless_current(cx, args.which.as_deref(), "Session of the output:")?;
    let session = LocalBackend { cx }.session(which.as_deref(), "reading its output")?;
    let logs = session.room().logged_outputs();
    if args.list {
        let items: Vec<LoggedCommand> = logs.iter().map(LoggedCommand::from).collect();
        return cx.out.list(&items, || {
            let mut table = Table::new(&LoggedCommand::COLUMNS);
            items.iter().for_each(|item| table.row(&item.cells(), None));
            table.render(&cx.out)
        });
    }
    let found = logs.iter().find(|log| args.pid.is_none_or(|pid| log.command.pid == pid));
    if let (Some(pid), None) = (args.pid, found) {
        let what = format!("--pid {pid}: session {} has no output of process {pid}", quoted(session.label()));
        return Err(UsageError::Arguments(what).into());
    }
    let bytes = found.map_or(Ok(Vec::new()), |log| log.read_last(u64::MAX));
    let bytes = bytes.map_err(|source| {
        Failure::from(sessile::Error::File(FileError::Io {
            action: "read",
            path: session.room().dir().join("output"),
            source,
        }))
    })?;
    if args.raw {
        if std::io::stdout().is_terminal() {
            let what = "--raw: standard output is a terminal; redirect it to a file".to_owned();
            return Err(UsageError::Arguments(what).into());
        }
        return cx.out.print_bytes(&bytes);
    }
    if found.is_none() {
        cx.out.note(&format!("session {} has no output; pass --log to run", quoted(session.label())));
    }
    let text = plain_output(&bytes);
    let json = json!({
        "session": session.id,
        "command": found.map(LoggedCommand::from),
        "output": text,
    });
    cx.out.result(&json, || {
        let mut shown = shown_lines(&text);
        if !shown.is_empty() && !shown.ends_with('\n') {
            shown.push('\n');
        }
        shown
    })
}
