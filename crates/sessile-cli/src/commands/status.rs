//! `sessile status`: where am I, and why.

use std::path::Path;

use serde::Serialize;
use sessile::Status;
use sessile::status::StateFile;

use crate::cli::Cx;
use crate::commands::service_store;
use crate::error::Outcome;
use crate::help::examples_and_precedence;
use crate::output::{Output, Table, Tone};
use crate::remote::ServerStatus;

/// Show the current context, account and session with their origins
#[derive(Debug, clap::Args)]
#[command(after_help = examples_and_precedence!(
    "sessile status"
    "sessile status --output json"
    "sessile status --show-state-files"
))]
pub struct Args {
    /// Also list every file that Sessile reads or keeps, with mode and size
    #[arg(long)]
    show_state_files: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let mut status = Status::of(&cx.state, args.show_state_files)?;
    if let Some(files) = &mut status.state_files
        && let Some(store) = service_store::default_path(&cx.state)
    {
        files.extend(StateFile::of_database(&store, "store of the session service"));
        files.sort_by(|a, b| a.path.cmp(&b.path));
    }
    let all = StatusView { status: &status, server: ServerStatus::of(&cx.state) };
    cx.out.result(&all, || text(&all, &cx.out, cx.state.world().home()))
}

/// Status from the library, with fields of this program.
#[derive(Serialize)]
struct StatusView<'a> {
    #[serde(flatten)]
    status: &'a Status,
    server: Option<ServerStatus>,
}

fn text(StatusView { status, server }: &StatusView<'_>, out: &Output, home: Option<&Path>) -> String {
    let mut text = String::new();
    let server = server.as_ref().map(|server| ("server", server.line()));
    for (label, value) in status.lines().into_iter().chain(server) {
        // What a value is comes first, where it comes from behind it.
        let (value, origin) = value.split_at(value.find("  from ").unwrap_or(value.len()));
        let tone = match label {
            "context" if !status.context_exists && status.current_context.is_some() => Some(Tone::Bad),
            "context" => Some(Tone::Strong),
            "guard" if status.guard.as_ref().is_some_and(|guard| guard.satisfied) => Some(Tone::Good),
            "guard" => Some(Tone::Bad),
            _ => None,
        };
        let value = tone.map_or_else(|| value.to_owned(), |tone| out.toned(value, tone));
        text.push_str(&format!("{label:<9} {value}{}\n", out.toned(origin, Tone::Faint)));
    }
    if let Some(files) = &status.state_files {
        let mut table = Table::new(&["MODE", "SIZE", "PATH", "PURPOSE"]);
        for file in files {
            let none = || "-".to_owned();
            let mode = file.mode.clone().unwrap_or_else(none);
            let size = file.size.map_or_else(none, |size| size.to_string());
            let tone = (!file.exists).then_some(Tone::Faint);
            let path = shown_path(&file.path, home);
            table.row(&[mode, size, path, file.purpose.to_owned()], tone);
        }
        text.push('\n');
        text.push_str(&table.render_wrapped(out));
    }
    text
}

/// A path with `~` for the home directory, which shells understand.
fn shown_path(path: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}
