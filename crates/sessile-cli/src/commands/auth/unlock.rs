//! `sessile auth unlock`.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use sessile::args::parse_duration;
use sessile::confirm::can_ask;
use sessile::error::UsageError;
use sessile::vault::Secret;

use crate::cli::Cx;
use crate::commands::input;
use crate::error::{CommandError, Failure, Outcome};
use crate::help::examples;
use crate::terminal_prompt;

/// Unlock a vault that has a passphrase
///
/// The key derived from the passphrase is cached in the runtime directory, which is deleted when you log out of the
/// machine. Until the unlock time ends, commands and agents use credentials without a prompt.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile auth unlock" "sessile auth unlock --for 8h" "sessile auth unlock --end"))]
pub struct Args {
    /// Keep the vault unlocked this long; default: the setting vault.unlock
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    time: Option<Duration>,

    /// File with the passphrase; - for standard input
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,

    /// Lock the vault now
    #[arg(long, conflicts_with_all = ["time", "passphrase_file"])]
    end: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let vault = cx.state.vault()?;
    vault.require_sealed()?;
    if args.end {
        let was_open = vault.lock_up()?;
        return cx.changed(json!({ "unlocked": false, "was_unlocked": was_open }), || {
            if was_open {
                "locked the vault\n".to_owned()
            } else {
                "the vault is already locked\n".to_owned()
            }
        });
    }
    if vault.status()?.key != Some("passphrase") {
        let what = "the vault has no passphrase; set one with `auth rekey --to passphrase`";
        return Err(UsageError::Arguments(what.into()).into());
    }
    let passphrase = passphrase(cx, args.passphrase_file.as_ref(), "Passphrase of the vault: ")?;
    let usual = cx.state.duration("vault.unlock")?.unwrap_or_default();
    let time = args.time.unwrap_or(usual);
    // False without a private runtime directory: the key is written nowhere else.
    if !vault.unlock(&passphrase, time)? {
        let problem = cx.state.runtime_dir().err().map(|problem| problem.to_string()).unwrap_or_default();
        return Err(CommandError::NoRuntimeDir("the vault's key", problem).into());
    }
    let text = sessile::duration::short(time);
    cx.changed(json!({ "unlocked": true, "seconds": time.as_secs() }), || {
        format!("unlocked the vault for {text}\n")
    })
}

/// A passphrase, from a file or a person.
pub(super) fn passphrase(cx: &Cx, file: Option<&PathBuf>, prompt: &str) -> Result<Secret, Failure> {
    if let Some(file) = file {
        let (_, text) = input::read(cx, file, 4096)?;
        return Ok(Secret::new(text.trim_end_matches(['\r', '\n'])));
    }
    if !can_ask(&cx.state) {
        let instead = "pass --passphrase-file FILE, or - for standard input".to_owned();
        return Err(UsageError::TerminalRequired { what: "typing a passphrase".into(), instead }.into());
    }
    let typed = terminal_prompt::secret(prompt)
        .ok_or_else(|| CommandError::Declined("typing the passphrase".into()))?;
    Ok(Secret::new(typed))
}
