//! `sessile session rename`.

use sessile::session::SessionName;
use sessile::text::quoted;

use crate::backend::StateBackend;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::remote::ServerArgs;

/// Give a session another name
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile session rename 01890a5d release"))]
pub struct Args {
    /// Its name, its id, or the beginning of its id
    #[arg(value_name = "SESSION")]
    which: String,

    /// Its new name
    #[arg(value_name = "NEW")]
    new: String,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let new: SessionName = args.new.parse()?;
    let renamed = StateBackend::resolve(cx)?.rename_session(&args.which, &new)?;
    renamed.print(cx, |renamed| {
        let label = renamed.old.as_ref().unwrap_or(&renamed.id);
        format!("session {} is named {} now\n", quoted(label), quoted(&renamed.new))
    })
}
