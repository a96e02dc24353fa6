//! `sessile context import`.

use std::path::PathBuf;

use serde_json::json;
use sessile::context::transfer;

use crate::cli::Cx;
use crate::commands::input;
use crate::error::Outcome;
use crate::help::examples;

/// Take contexts in from a file
///
/// Reads what `context export` writes, TOML or JSON. Nothing is written unless all of it is valid; a context that
/// exists is replaced only with --yes.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile context import contexts.toml"
    "sessile context import - < contexts.toml"
))]
pub struct Args {
    /// The file, or - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Take them into this project, for everyone who works on it
    #[arg(long)]
    project: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let (path, text) = input::read(cx, &args.file, sessile::files::LIMIT)?;
    let contexts = transfer::read(cx.state.app(), &path, text)?;
    let imported = cx.state.contexts().import(&contexts, args.project, cx.state.args().yes)?;
    let names: Vec<_> = imported.iter().map(|context| &context.name).collect();
    cx.changed(json!({ "contexts": names }), || {
        imported.iter().map(|context| format!("imported context {}\n", context.name)).collect()
    })
}
