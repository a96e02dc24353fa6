//! `sessile context import`.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::json;
use sessile::Error;
use sessile::context::transfer;

use crate::cli::Cx;
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
    let (path, text) = read(args, cx)?;
    let contexts = transfer::read(cx.state.app(), &path, text)?;
    let imported = cx.state.contexts().import(&contexts, args.project, cx.state.args().yes)?;
    let names: Vec<_> = imported.iter().map(|context| &context.name).collect();
    cx.changed(json!({ "contexts": names }), || {
        imported.iter().map(|context| format!("imported context {}\n", context.name)).collect()
    })
}

fn read(args: &Args, cx: &Cx) -> Result<(PathBuf, String), Error> {
    if args.file != Path::new("-") {
        let path = cx.state.absolute(&args.file);
        let text = sessile::files::read(&path)?.ok_or_else(|| Error::FileNotFound(path.clone()))?;
        return Ok((path, text));
    }
    if cx.state.world().streams().stdin {
        let instead = "give a file, or redirect one: < FILE".to_owned();
        return Err(Error::TerminalRequired { what: "importing from standard input".into(), instead });
    }
    let mut bytes = Vec::new();
    let path = PathBuf::from("standard input");
    let limit = sessile::files::LIMIT;
    std::io::stdin().take(limit + 1).read_to_end(&mut bytes).map_err(|source| Error::Io {
        action: "read",
        path: path.clone(),
        source,
    })?;
    if bytes.len() as u64 > limit {
        return Err(Error::FileTooLarge { path, size: bytes.len() as u64, limit });
    }
    let text = String::from_utf8(bytes).map_err(|error| Error::FileNotUtf8 {
        path: path.clone(),
        offset: error.utf8_error().valid_up_to(),
    })?;
    // JSON begins with a brace, which TOML never does.
    let is_json = text.trim_start().starts_with('{');
    Ok((if is_json { PathBuf::from("standard input.json") } else { path }, text))
}
