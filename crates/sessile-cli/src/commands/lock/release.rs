//! `sessile lock release`.

use serde_json::json;

use super::{HeldLockArgs, note_server};
use crate::backend::StateBackend;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::remote::ServerArgs;

/// Release a lock
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile lock release deploy --token 17"))]
pub struct Args {
    #[command(flatten)]
    held: HeldLockArgs,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let (name, token) = args.held.resolve(cx)?;
    let backend = StateBackend::resolve(cx)?;
    backend.release_lock(&name, token)?;
    cx.changed(json!({ "name": name, "token": token }), || format!("released lock {name}\n"))?;
    note_server(cx, &backend);
    Ok(())
}
