//! `sessile serve restore`.

use std::path::PathBuf;

use serde_json::json;
use sessile::text::{shell_quoted, shown};
use sessile_server::store::backup::ServiceBackup;

use crate::cli::Cx;
use crate::commands::service_store::{StoreArgs, StoreLocation, backup_failed, not_sqlite};
use crate::counted::counted;
use crate::error::Outcome;
use crate::help::examples;
use crate::terminal_prompt;

/// Restore a backup, and keep the replaced store beside it
///
/// Stop every service that uses the store first. Sessions, messages, values and users come from the backup. A token
/// stays valid only if it is valid in the backup and in the replaced store. Disabled users stay disabled, ended
/// sessions stay ended, and held locks stay held. Fencing tokens, revisions and event numbers continue after the
/// highest number ever used. For PostgreSQL use pg_restore.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile serve restore /backup/service.db"
    "sessile serve restore --store /srv/sessile/service.db /backup/service.db"
    "sessile serve restore --keep-tokens /backup/service.db      onto a new machine"
))]
pub(super) struct Args {
    /// Restore this backup
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Accept tokens of the backup that the replaced store does not have
    #[arg(long)]
    keep_tokens: bool,

    #[command(flatten)]
    store: StoreArgs,
}

pub(super) fn run(args: &Args, cx: &Cx) -> Outcome {
    cx.state.refuse_in_session("restoring a store", "run the command outside the session")?;
    let file = cx.state.absolute(&args.file);
    let store = match args.store.existing_or_new(cx)? {
        StoreLocation::File(path) => path,
        StoreLocation::Postgres { url, .. } => {
            let file = shell_quoted(&file.to_string_lossy());
            let command = format!("pg_restore --clean --if-exists --dbname={} {file}", shell_quoted(&url));
            let hint = format!("stop every service, then restore it with PostgreSQL: {command}");
            return Err(not_sqlite("serve restore", hint));
        }
    };
    if file.exists() {
        // A backup that others can write could bring users and tokens of theirs.
        sessile::files::check_trusted_database(&file)?;
    }
    // Read and checked before the question is asked.
    let backup = ServiceBackup::read(&file).map_err(backup_failed)?;
    let (to, from) = (shown(store.display()), shown(file.display()));
    terminal_prompt::confirm(&cx.state, &format!("replace store {to} with {from}"))?;
    let now_ms = cx.state.world().now().as_millisecond();
    let restored = backup.restore(&store, args.keep_tokens, now_ms).map_err(backup_failed)?;
    let kept = restored.kept.as_deref().map(|path| path.to_string_lossy());
    let json = json!({
        "store": store.to_string_lossy(),
        "restored": file.to_string_lossy(),
        "kept": kept,
        "revoked_tokens": restored.revoked_tokens,
    });
    cx.changed(json, || {
        let kept = kept
            .as_deref()
            .map_or_else(String::new, |path| format!("; the replaced store was kept as {}", shown(path)));
        let revoked = match restored.revoked_tokens {
            0 => String::new(),
            count => format!("revoked {} not valid in both stores\n", counted(count, "token")),
        };
        format!("restored store {to} from {from}{kept}\n{revoked}")
    })
}
