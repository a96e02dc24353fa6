//! `sessile auth move`.

use serde_json::json;
use sessile::vault::Backend;

use super::refuse_inside;
use crate::cli::Cx;
use crate::counted::counted;
use crate::error::Outcome;
use crate::help::examples;
use crate::vault_unlock::with_unlocked_vault;

/// Move the credentials to another backend
///
/// Each credential is written to the new backend before it is deleted from the old one. Later calls use the new
/// backend unless the setting vault.backend names another. Set vault.backend first to move to a helper or back from
/// one.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile auth move --to keychain" "sessile auth move --to file --from helper"))]
pub struct Args {
    /// New backend: keychain, file or helper
    #[arg(long, value_name = "BACKEND", value_parser = ["keychain", "file", "helper"])]
    to: String,

    /// Old backend, if it cannot be detected
    #[arg(long, value_name = "BACKEND", value_parser = ["keychain", "file", "helper"])]
    from: Option<String>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    refuse_inside(cx, "moving the vault")?;
    let named = |word: &str| match word {
        "keychain" => Backend::Keychain,
        "helper" => Backend::Helper,
        _ => Backend::File,
    };
    let (to, from) = (named(&args.to), args.from.as_deref().map(named));
    let moved = with_unlocked_vault(cx, &cx.state, || cx.state.vault()?.move_to(to, from))?;
    sessile::history::record(&cx.state, "auth move", to.as_str(), "move them back")?;
    if !moved.there.is_empty() {
        let names: Vec<&str> = moved.there.iter().map(|name| name.as_str()).collect();
        cx.out.note(&format!("already moved: {}", names.join(", ")));
    }
    cx.changed(json!({ "moved": moved.moved, "there": moved.there, "to": to }), || {
        format!("moved {} to the {}\n", counted(moved.moved.len(), "credential"), to.as_str())
    })
}
