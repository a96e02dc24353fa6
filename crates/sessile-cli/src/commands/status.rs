//! `sessile status`: where am I, and why.

use sessile::Status;
use sessile::context::Guard;
use sessile::status::SessionStatus;
use sessile::text::shown;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples_and_precedence;
use crate::output::{Output, Table, Tone};

/// Show the current context, account and session, and where each comes from
#[derive(Debug, clap::Args)]
#[command(after_help = examples_and_precedence!(
    "sessile status"
    "sessile status --output json"
    "sessile status --show-state-files"
))]
pub struct Args {
    /// Also list every file that is read or kept, with its mode and size
    #[arg(long)]
    show_state_files: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let status = Status::of(&cx.state, args.show_state_files)?;
    cx.out.result(&status, || text(&status, &cx.out))
}

fn describe(session: &SessionStatus, out: &Output) -> String {
    let name = session.name.as_ref().map_or_else(String::new, |name| format!("{} ", shown(name)));
    let until = session
        .expires_at
        .as_ref()
        .map_or_else(|| session.state.as_str().to_owned(), |at| format!("expires {at}"));
    let origin = out.toned(&format!("from {}", session.origin), Tone::Faint);
    format!("{name}{} ({until})  {origin}", session.id)
}

fn text(status: &Status, out: &Output) -> String {
    let mut text = String::new();
    let mut line = |label: &str, value: String| text.push_str(&format!("{label:<9} {value}\n"));
    let context = match (&status.current_context, &status.context_origin) {
        (Some(name), Some(origin)) => {
            let missing =
                if status.context_exists { String::new() } else { out.toned(" does not exist", Tone::Bad) };
            format!(
                "{}{missing}  {}",
                out.toned(&shown(name), Tone::Strong),
                out.toned(&format!("from {origin}"), Tone::Faint)
            )
        }
        _ => "none".to_owned(),
    };
    line("context", context);
    if let Some(guard) = status.guard.as_ref().filter(|guard| guard.guard != Guard::None) {
        let state = match (guard.satisfied, &guard.approved_until) {
            (true, Some(until)) => out.toned(&format!("open until {until}"), Tone::Good),
            (true, None) => out.toned("open", Tone::Good),
            (false, _) => out.toned("shut", Tone::Bad),
        };
        line("guard", format!("{} ({state})", guard.guard.as_str()));
    }
    line(
        "session",
        status.session.as_ref().map_or_else(|| "none".to_owned(), |session| describe(session, out)),
    );
    let login = if status.logged_in { "logged in" } else { "no credential selected" };
    line("user", format!("{} ({login})", shown(&status.user)));
    if let Some(project) = &status.project {
        let trust = if project.trusted { "trusted" } else { "not trusted" };
        line("project", format!("{} ({trust})", shown(project.path.display())));
    }
    if let Some(config) = &status.config {
        line("config", shown(config.display()));
    }
    if let Some(files) = &status.state_files {
        let mut table = Table::new(&["MODE", "SIZE", "PATH", "PURPOSE"]);
        for file in files {
            let none = || "-".to_owned();
            let mode = file.mode.clone().unwrap_or_else(none);
            let size = file.size.map_or_else(none, |size| size.to_string());
            let tone = (!file.exists).then_some(Tone::Faint);
            table.row(&[mode, size, file.path.display().to_string(), file.purpose.to_owned()], tone);
        }
        text.push('\n');
        text.push_str(&table.render(out));
    }
    text
}
