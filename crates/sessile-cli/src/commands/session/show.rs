//! `sessile session show`.

use crate::backend::StateBackend;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::remote::ServerArgs;

/// Show a session, with what it holds of the tools' state and whether that differs from your own
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile session show deploy" "sessile session show --output json"))]
pub struct Args {
    /// Its name, its id, or the beginning of its id; the current session if none is given
    #[arg(value_name = "SESSION")]
    which: Option<String>,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let session = StateBackend::resolve(cx)?.show_session(args.which.as_deref())?;
    cx.out.result(&session, || session.text())
}
