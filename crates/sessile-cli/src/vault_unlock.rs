//! Operations on the vault that ask for its passphrase if it is locked.

use sessile::confirm::can_ask;
use sessile::error::VaultError;
use sessile::runtime::RuntimeProblem;
use sessile::{Error, State};

use crate::child::forbid_core_dumps;
use crate::cli::Cx;
use crate::error::{CommandError, Failure};
use crate::terminal_prompt;

/// Attempts an operation; if the vault is locked and a person can answer, asks for the passphrase and attempts it again.
pub(crate) fn with_unlocked_vault<T>(
    cx: &Cx,
    state: &State,
    mut attempt: impl FnMut() -> Result<T, Error>,
) -> Result<T, Failure> {
    // Before the attempt, which may read secrets or a key into memory.
    forbid_core_dumps();
    match attempt() {
        Err(Error::Vault(VaultError::Locked { .. })) if can_ask(&cx.state) => {
            let Some(passphrase) = terminal_prompt::secret("Passphrase of the vault: ") else {
                return Err(CommandError::Declined("opening the vault".into()).into());
            };
            let time = state.duration("vault.unlock")?.unwrap_or_default();
            let is_kept = state.vault()?.unlock(&sessile::vault::Secret::new(passphrase), time)?;
            if let (false, Err(problem @ RuntimeProblem::Exposed { .. })) = (is_kept, state.runtime_dir()) {
                let hint = "the next command asks for the passphrase again";
                state.warn(format!("the vault's key is not cached: {problem}"), Some(hint.to_owned()));
            }
            Ok(attempt()?)
        }
        other => Ok(other?),
    }
}
