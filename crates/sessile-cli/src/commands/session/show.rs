//! `sessile session show`.

use crate::backend::StateBackend;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::picker;
use crate::remote::ServerArgs;

/// Show a session, its copies of tool state and their drift
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile session show deploy" "sessile session show --output json"))]
pub struct Args {
    /// Name, id or prefix of the id; default: the current session
    #[arg(value_name = "SESSION")]
    which: Option<String>,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let which = picker::session_unless_current(cx, args.which.as_deref(), "Session to show:")?;
    let session = StateBackend::resolve(cx)?.show_session(which.as_deref())?;
    cx.out.result(&session, || session.text())
}
