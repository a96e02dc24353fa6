//! `sessile session import`.

use std::path::PathBuf;

use serde_json::json;
use sessile::session::transfer;

use crate::cli::Cx;
use crate::commands::input;
use crate::error::Outcome;
use crate::help::examples;

/// Start a session from an exported one
///
/// The new session has a new id, and the context, settings, state, messages and conversations of the exported one.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile session import deploy.json"
    "sessile session import - --name copy < deploy.json"
))]
pub struct Args {
    /// File to import, or - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Name of the new session; default: the exported name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// Maximum size of an exported session.
const LIMIT: u64 = 256 * 1024 * 1024;

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let name = args.name.as_deref().map(str::parse).transpose()?;
    let (path, text) = input::read(cx, &args.file, LIMIT)?;
    let exported = transfer::read(&path, &text)?;
    let session = cx.state.import_session(&exported, name)?;
    let json = json!({ "id": session.id, "name": session.name, "from": exported.id });
    cx.changed_at(&cx.place(Some(&session)), &json, || format!("{}\n", session.id))
}
