//! `sessile auth rekey`.

use std::path::PathBuf;

use serde_json::json;
use sessile::error::UsageError;
use sessile::vault::KeySource;

use super::refuse_inside;
use super::unlock::passphrase;
use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::vault_unlock::with_unlocked_vault;

/// Minimum length of a passphrase.
const SHORTEST: usize = 8;

/// Change the vault's key
///
/// By default the key is in a file beside the vault. That keeps secrets out of backups and searches, but other programs
/// of yours can read both files. A passphrase protects against that; `auth unlock` caches it for a while. On a desktop
/// the keychain can hold the key.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile auth rekey --to passphrase" "sessile auth rekey --to keychain"))]
pub struct Args {
    /// Source of the new key: passphrase, keychain or file
    #[arg(long, value_name = "SOURCE", value_parser = ["passphrase", "keychain", "file"])]
    to: String,

    /// File with the new passphrase; - for standard input
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    refuse_inside(cx, "changing the key of the vault")?;
    cx.state.vault()?.require_sealed()?;
    // Whoever cannot open it is told before a new passphrase is typed.
    with_unlocked_vault(cx, &cx.state, || cx.state.vault()?.list())?;
    let (source, secret) = match args.to.as_str() {
        "passphrase" => (KeySource::new_passphrase()?, Some(new_passphrase(args, cx)?)),
        "keychain" => (KeySource::Keychain, None),
        _ => (KeySource::File, None),
    };
    cx.state.vault()?.rekey(&source, secret.as_ref())?;
    sessile::history::record(&cx.state, "auth rekey", &args.to, "a key is never recorded")?;
    let status = cx.state.vault()?.status()?;
    cx.changed(json!({ "key": args.to, "vault": status }), || {
        format!("changed the source of the vault's key: {}\n", args.to)
    })
}

fn new_passphrase(args: &Args, cx: &Cx) -> Result<sessile::vault::Secret, Failure> {
    let first = passphrase(cx, args.passphrase_file.as_ref(), "New passphrase: ")?;
    if first.expose().chars().count() < SHORTEST {
        return Err(UsageError::Arguments(format!(
            "the passphrase is too short: at least {SHORTEST} characters are required"
        ))
        .into());
    }
    // A typing mistake would shut the vault for good.
    if args.passphrase_file.is_none() && passphrase(cx, None, "Repeat the passphrase: ")? != first {
        return Err(UsageError::Arguments("the passphrases differ; nothing was changed".into()).into());
    }
    Ok(first)
}
