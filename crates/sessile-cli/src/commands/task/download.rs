//! `sessile task download`.

use std::path::PathBuf;

use serde_json::json;
use sessile::text::shown;

use super::get::save;
use super::{TaskArgs, resolve_task};
use crate::agent_session::agent_error;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;

/// Save a task's artifacts as files
///
/// Each part becomes one file in the directory. No file is overwritten.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile task download --dir out"
    "sessile task download 3f2a --url http://localhost:8738"
))]
pub struct Args {
    #[command(flatten)]
    target: TaskArgs,

    /// Directory of the files
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let (named, id) = resolve_task(cx, args.target.id(), args.target.reach.url.as_deref())?;
    let connection = args.target.reach.connection(cx, &named)?;
    let task = connection.agent(cx)?.task(&id, Some(0));
    let task = task.map_err(|error| agent_error(&named.url, Some(&id), error))?;
    let saved = save(cx, &args.dir, &task)?;
    cx.out.result(&json!({ "task_id": id, "saved": saved }), || match saved.as_slice() {
        [] => "the task has no artifacts\n".to_owned(),
        saved => saved.iter().map(|path| format!("saved {}\n", shown(path))).collect(),
    })
}
