//! `sessile config schema`.

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::settings::app;

/// Print a JSON Schema of the settings file, for editors
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile config schema > sessile.schema.json"))]
pub struct Args {}

pub(crate) fn run(_: &Args, cx: &Cx) -> Outcome {
    let schema = sessile::settings::schema::settings(&app());
    // A schema is JSON whatever the format of other results.
    cx.out.result(&schema, || format!("{schema:#}\n"))
}
