//! `sessile auth move`.

use serde_json::json;
use sessile::settings::Layer;
use sessile::vault::Backend;

use super::refuse_inside;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::unlocked::unlocked;

/// Move the vault to another place: the keychain, a file or a helper
///
/// Every credential is put into its new place before it leaves the old one. From then on they are looked for there,
/// unless the setting vault.backend says otherwise.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile auth move --to keychain" "sessile auth move --to file"))]
pub struct Args {
    /// Where to: keychain, file or helper
    #[arg(long, value_name = "BACKEND", value_parser = ["keychain", "file", "helper"])]
    to: String,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    refuse_inside(cx, "moving the vault")?;
    let to = match args.to.as_str() {
        "keychain" => Backend::Keychain,
        "helper" => Backend::Helper,
        _ => Backend::File,
    };
    let moved = unlocked(cx, &cx.state, || cx.state.vault()?.move_to(to))?;
    sessile::history::record(&cx.state, "auth move", to.as_str(), "move them back")?;
    let status = cx.state.vault()?.status()?;
    let is_overruled = status.origin.layer != Layer::Default && status.backend != Some(to);
    if is_overruled || to == Backend::Helper && status.origin.layer == Layer::Default {
        cx.out.note(&format!(
            "vault.backend still says otherwise ({}): sessile config set vault.backend {} --global",
            status.origin,
            to.as_str()
        ));
    }
    cx.changed(json!({ "moved": moved, "to": to }), || {
        format!("moved {} credential(s) to the {}\n", moved.len(), to.as_str())
    })
}
