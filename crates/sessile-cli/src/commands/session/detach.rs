//! `sessile session detach`.

use serde_json::json;
use sessile::text::quoted;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;

/// Leave this terminal's session without stopping it
///
/// In a shell with the hook, restores your own variables, or those of the directory's selection. Also deselects the
/// terminal's context.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile session detach"))]
pub struct Args {}

pub(crate) fn run(_: &Args, cx: &Cx) -> Outcome {
    let left = cx.state.detach_session()?;
    cx.changed(json!({ "left": left }), || format!("detached from {}\n", quoted(&left)))
}
