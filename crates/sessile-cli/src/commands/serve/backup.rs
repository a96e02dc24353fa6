//! `sessile serve backup`.

use std::path::PathBuf;

use serde_json::json;
use sessile::text::{shell_quoted, shown};
use sessile_server::store::backup::back_up;

use crate::cli::Cx;
use crate::commands::service_store::{StoreArgs, StoreLocation, backup_failed, not_sqlite};
use crate::error::Outcome;
use crate::help::examples;

/// Back up the service's store while services use it
///
/// The backup is consistent while services write, is checked for integrity, and never replaces a file. It contains
/// the hashes of tokens and all data of users in plain text; its mode is 0600. For PostgreSQL use pg_dump.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile serve backup"
    "sessile serve backup /backup/service.db"
    "sessile serve backup --store /srv/sessile/service.db /backup/service.db"
))]
pub(super) struct Args {
    /// Write the backup to this file; default: a new file beside the store
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    #[command(flatten)]
    store: StoreArgs,
}

pub(super) fn run(args: &Args, cx: &Cx) -> Outcome {
    let store = match args.store.existing(cx)? {
        StoreLocation::File(path) => path,
        StoreLocation::Postgres { url, .. } => {
            let command = format!("pg_dump --format=custom --file=sessile.dump {}", shell_quoted(&url));
            return Err(not_sqlite("serve backup", format!("back it up with PostgreSQL: {command}")));
        }
    };
    let target = args.file.as_deref().map(|file| cx.state.absolute(file));
    let now_ms = cx.state.world().now().as_millisecond();
    let path = back_up(&store, target.as_deref(), now_ms).map_err(backup_failed)?;
    let size = path.metadata().map(|found| found.len()).unwrap_or(0);
    let json = json!({ "store": store.to_string_lossy(), "path": path.to_string_lossy(), "size": size });
    cx.changed(json, || {
        let (store, path) = (shown(store.display()), shown(path.display()));
        format!("backed up store {store} to {path} ({size} bytes)\n")
    })
}
