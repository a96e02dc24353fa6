//! `sessile context import`.

use std::path::PathBuf;

use serde_json::json;
use sessile::context::transfer;
use sessile::error::FileError;
use sessile::text::{quoted, shell_quoted};
use sessile::{Error, Report};

use crate::cli::Cx;
use crate::commands::input;
use crate::error::{Failure, Outcome};
use crate::help::examples;

/// Import contexts from a file
///
/// Reads files of `context export`, TOML or JSON, and files of other tools with a table `contexts`. Unknown keys become
/// values of the context. Nothing is written unless the whole file is valid. Existing contexts are replaced only with
/// --yes. If the file selects a context, its name is printed, but it is not selected.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile context import contexts.toml"
    "sessile context import - < contexts.toml"
))]
pub struct Args {
    /// File to import, or - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Import into this project, for all its users
    #[arg(long)]
    project: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let (path, text) = input::read(cx, &args.file, sessile::files::LIMIT)?;
    let read = transfer::read(cx.state.app(), &path, text).map_err(|error| with_import_hint(cx, error))?;
    let imported = cx.state.contexts().import(&read.contexts, args.project, cx.state.args().yes)?;
    imported.iter().for_each(|context| super::warn_about_targets(cx, context));
    let names: Vec<_> = imported.iter().map(|context| &context.name).collect();
    cx.changed(json!({ "contexts": names, "current_context": read.current }), || {
        imported.iter().map(|context| format!("imported context {}\n", context.name)).collect()
    })?;
    // Selecting it would switch this terminal because of a file from elsewhere.
    if let Some(current) = read.current.filter(|_| cx.out.is_text()) {
        cx.out.note(&format!(
            "the file selects context {}; select it: sessile context use {}",
            quoted(&current),
            shell_quoted(&current)
        ));
    }
    Ok(())
}

/// A failure to parse the file, with the command that reads the files of tools.
fn with_import_hint(cx: &Cx, error: Error) -> Failure {
    let Error::File(syntax @ FileError::Syntax { .. }) = &error else { return error.into() };
    let name = cx.state.app().name();
    let hint =
        format!("context import reads files of context export; for the files of your tools: {name} import");
    Failure::Remote(Box::new(Report {
        hint: Some(hint),
        fix_command: Some(format!("{name} import")),
        ..Report::of(syntax, cx.state.app())
    }))
}
