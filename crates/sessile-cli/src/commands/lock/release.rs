//! `sessile lock release`.

use serde_json::json;
use sessile::lock::LockName;

use super::{note_server, token};
use crate::backend::StateBackend;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::remote::ServerArgs;

/// Give a lock back
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile lock release deploy --token 17"))]
pub struct Args {
    /// The lock
    #[arg(value_name = "LOCK")]
    name: String,

    /// The token that acquiring it printed [default: SESSILE_LOCK_TOKEN]
    #[arg(long, value_name = "N")]
    token: Option<i64>,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let name: LockName = args.name.parse()?;
    let token = token(cx, args.token)?;
    let backend = StateBackend::resolve(cx)?;
    backend.release_lock(&name, token)?;
    cx.changed(json!({ "name": name, "token": token }), || format!("lock {name} is free\n"))?;
    note_server(cx, &backend);
    Ok(())
}
