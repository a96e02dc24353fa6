//! `sessile backup`: back up the store while others write, and restore a backup.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::json;
use sessile::backup::StateBackup;
use sessile::text::{shell_quoted, shown};
use sessile_server::store::backup::is_service_store;

use crate::cli::Cx;
use crate::commands::service_store;
use crate::error::Outcome;
use crate::help::examples;
use crate::terminal_prompt;

/// Back up the state database, or restore a backup
///
/// A backup is consistent while other processes write, and never replaces a file. It does not contain contexts,
/// settings, credentials or the rooms of sessions.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = examples!("sessile backup" "sessile backup state.backup" "sessile backup restore state.backup")
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// Write the backup to this file; default: a new file beside the database
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Restore a backup, and keep the replaced database beside it
    ///
    /// Restores sessions, messages, history and conversations. Revokes all approvals, and keeps the current PIN. A
    /// project stays trusted only if it is trusted now and in the backup. Stopped sessions stay stopped. Refused inside
    /// a session.
    #[command(after_help = examples!("sessile backup restore state.backup"))]
    Restore {
        /// Restore this backup
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    match &args.command {
        Some(Command::Restore { file }) => restore(file, cx),
        None => copy(args.file.as_deref(), cx),
    }
}

fn copy(file: Option<&Path>, cx: &Cx) -> Outcome {
    let target = file.map(|file| cx.state.absolute(file));
    // A target that is a service's store was most likely meant as the source.
    if let Some(path) = target.as_deref().filter(|path| is_service_store(path)) {
        let store = shell_quoted(&path.to_string_lossy());
        let hint =
            format!("back up a service's store: {} serve backup --store {store} FILE", cx.state.app().name());
        return Err(service_store::is_service_store(path, hint));
    }
    let step = cx.out.slow_step(|| "backing up the state database");
    let path = cx.state.back_up(target.as_deref())?;
    drop(step);
    let database = shown(cx.state.dirs().store()?.display());
    let size = path.metadata().map(|found| found.len()).unwrap_or(0);
    cx.changed(json!({ "path": path.to_string_lossy(), "size": size }), || {
        format!("backed up the state database {database} to {} ({size} bytes)\n", shown(path.display()))
    })
}

fn restore(file: &Path, cx: &Cx) -> Outcome {
    cx.state.refuse_in_session("restoring a backup", "run the command outside the session")?;
    let path = cx.state.absolute(file);
    if is_service_store(&path) {
        let backup = shell_quoted(&path.to_string_lossy());
        let hint = format!("restore a service's store: {} serve restore {backup}", cx.state.app().name());
        return Err(service_store::is_service_store(&path, hint));
    }
    // Checked before the question is asked.
    let backup = StateBackup::read(&cx.state, &path)?;
    terminal_prompt::confirm(
        &cx.state,
        &format!("replace the state database with {}", shown(path.display())),
    )?;
    let step = cx.out.slow_step(|| "restoring the backup");
    let kept = backup.restore(&cx.state)?;
    drop(step);
    let json = json!({ "restored": path.to_string_lossy(), "kept": kept.to_string_lossy() });
    cx.changed(json, || {
        let (restored, kept) = (shown(path.display()), shown(kept.display()));
        format!("restored {restored}; the replaced database was kept as {kept}\n")
    })
}
