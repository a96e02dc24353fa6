//! `sessile backup`: a copy of the store, made while others write.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::json;
use sessile::Error;
use sessile::history::record;
use sessile::text::shown;

use crate::ask;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;

/// Copy the state database, or restore a copy
///
/// The copy is consistent whatever others write meanwhile, and never written over another file. Contexts, settings and
/// the sessions' rooms are files of their own and are not in it.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = examples!("sessile backup" "sessile backup state.backup" "sessile backup restore state.backup")
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// Where the copy goes; beside the database if none is given
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Put a copy into the place of the database; what it replaces is kept beside it
    #[command(after_help = examples!("sessile backup restore state.backup"))]
    Restore {
        /// The copy
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

fn beside(cx: &Cx, ending: &str) -> Result<PathBuf, Error> {
    let stamp = cx.state.world().now().as_second();
    let store = cx.state.dirs().store()?;
    let free = |path: &PathBuf| !path.exists();
    let names = (0..).map(|count| PathBuf::from(format!("{}.{ending}-{stamp}-{count}", store.display())));
    Ok(names.take(1000).find(free).unwrap_or(store))
}

fn copy(file: Option<&Path>, cx: &Cx) -> Outcome {
    let path = match file {
        Some(file) => cx.state.absolute(file),
        None => beside(cx, "backup")?,
    };
    if path.exists() {
        return Err(Error::FileExists(path).into());
    }
    cx.state.store_for_writing()?.back_up_to(&path)?;
    let size = path.metadata().map(|found| found.len()).unwrap_or(0);
    cx.changed(json!({ "path": path.to_string_lossy(), "size": size }), || {
        format!("copied the state database to {} ({size} bytes)\n", shown(path.display()))
    })
}

fn restore(file: &Path, cx: &Cx) -> Outcome {
    let path = cx.state.absolute(file);
    let mut store = cx.state.store_for_writing()?;
    store.check_copy(&path)?;
    ask::confirm(&cx.state, &format!("replace the state database by {}", shown(path.display())))?;
    let kept = beside(cx, "replaced")?;
    store.restore_from(&path, &kept)?;
    drop(store);
    // A session that is back from the dead has no room any more.
    for session in cx.state.sessions()?.list(None, true, usize::MAX)? {
        if !session.room().exists() {
            session.room().create(cx.state.world())?;
        }
    }
    record(
        &cx.state,
        "backup restore",
        &path.display().to_string(),
        "restore the copy of what it replaced instead",
    )?;
    cx.changed(json!({ "restored": path, "kept": kept }), || {
        format!("restored {}; what it replaced is {}\n", shown(path.display()), shown(kept.display()))
    })
}
