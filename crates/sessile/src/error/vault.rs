//! Errors of the vault, its keys and its backends.

use std::path::PathBuf;

use crate::app::App;
use crate::code::Code;
use crate::error::Diagnostic;
use crate::text::{shell_quoted, shown};

/// Errors of the vault, its keys and its backends.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// Damaged vault.
    #[error("vault {} is damaged: {reason}", shown(path.display()))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Noticed damage.
        reason: String,
    },
    /// A vault of a newer version.
    #[error("vault {} has format version {found}; this program supports up to {known}", shown(path.display()))]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Version.
        found: u64,
        /// The newest that is known.
        known: u64,
    },
    /// Not the vault's key.
    #[error("{what} does not match vault {}", shown(path.display()))]
    WrongKey {
        /// The file.
        path: PathBuf,
        /// Attempted action.
        what: String,
    },
    /// Missing key of an existing vault.
    #[error("vault {} exists, but its key file {} is missing", shown(path.display()), shown(key.display()))]
    KeyMissing {
        /// The file.
        path: PathBuf,
        /// Expected key file.
        key: PathBuf,
    },
    /// A vault that needs its passphrase.
    #[error("vault {} is locked: passphrase required", shown(path.display()))]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// A vault that cannot be written.
    #[error("the vault is read-only: its backend reads credentials from environment variables")]
    ReadOnly {
        /// The variable that would hold it.
        variable: String,
    },
    /// Failed vault helper.
    #[error("vault helper {} failed: {}", shown(helper), shown(reason))]
    HelperFailed {
        /// The program.
        helper: String,
        /// Failure.
        reason: String,
    },
    /// A file with a secret that others can read.
    #[error(
        "{} {}",
        shown(path.display()),
        // A private file that is refused can only be another user's.
        if mode & 0o077 == 0 { "belongs to another user, who can read the secret".to_owned() }
        else { format!("has mode {mode:04o}: other users can read the secret") }
    )]
    KeyFileExposed {
        /// The file.
        path: PathBuf,
        /// Mode.
        mode: u32,
    },
    /// A key file with something else in it.
    #[error("{} is not a valid key file: 64 hexadecimal digits expected", shown(path.display()))]
    InvalidKeyFile {
        /// The file.
        path: PathBuf,
    },
    /// No keychain to talk to.
    #[error("cannot reach the keychain: {}", shown(reason))]
    KeychainUnreachable {
        /// Reason.
        reason: String,
    },
    /// A keychain that its user must open.
    #[error("the keychain is locked")]
    KeychainLocked,
    /// A keychain that refused.
    #[error("the keychain refused the request: {}", shown(reason))]
    KeychainRefused {
        /// Backend's message.
        reason: String,
    },
}

impl Diagnostic for VaultError {
    fn code(&self) -> Code {
        match self {
            Self::Damaged { .. } => Code::VaultDamaged,
            Self::TooNew { .. } => Code::VaultTooNew,
            Self::WrongKey { .. } => Code::VaultWrongKey,
            Self::KeyMissing { .. } => Code::VaultKeyMissing,
            Self::Locked { .. } => Code::VaultLocked,
            Self::ReadOnly { .. } => Code::VaultReadOnly,
            Self::HelperFailed { .. } => Code::VaultHelper,
            Self::KeyFileExposed { .. } => Code::KeyFileExposed,
            Self::InvalidKeyFile { .. } => Code::KeyFileInvalid,
            Self::KeychainUnreachable { .. } => Code::KeychainUnreachable,
            Self::KeychainLocked => Code::KeychainLocked,
            Self::KeychainRefused { .. } => Code::KeychainRefused,
        }
    }

    fn hint(&self, app: &App) -> Option<String> {
        let name = app.name();
        let prefix = app.prefix();
        Some(match self {
Self::Damaged { .. } => {
                "nothing was changed; restore the file from a backup, or move it away and set the credentials again".to_owned()
            }
Self::TooNew { .. } => {
                format!("upgrade {name}, or set {prefix}_STATE_DIR to another directory")
            }
Self::WrongKey { .. } => "nothing was changed; pass the right passphrase or key".to_owned(),
Self::KeyMissing { .. } => {
                "restore the key file from a backup, or move the vault away and set the credentials again".to_owned()
            }
Self::Locked { .. } => format!(
                "unlock it on a terminal: {name} auth unlock; in a script set {prefix}_VAULT_PASSPHRASE_FILE"
            ),
Self::ReadOnly { variable } => {
                format!("set {variable} before the call, or choose another backend: --set vault.backend=file")
            }
Self::HelperFailed { .. } => "run the helper by hand to see its error; the setting is vault.helper".to_owned(),
Self::KeyFileExposed { path, mode } if mode & 0o077 == 0 => {
                format!("change the owner, or create a file of your own: {}", shown(path.display()))
            }
Self::KeyFileExposed { path, .. } => {
                format!("restrict the mode: chmod 600 {}", shell_quoted(&path.to_string_lossy()))
            }
Self::InvalidKeyFile { .. } => "check the setting vault.key-file".to_owned(),
Self::KeychainUnreachable { .. } => {
                "run the command where DBUS_SESSION_BUS_ADDRESS is set, or move the credentials to a file from there: sessile auth move --to file"
                    .to_owned()
            }
Self::KeychainLocked => "unlock the keychain on the desktop, then try again".to_owned(),
_ => return None,
})
    }

    fn fix_command(&self, app: &App) -> Option<String> {
        let name = app.name();
        Some(match self {
            Self::Locked { .. } => format!("{name} auth unlock"),
            Self::KeyFileExposed { path, mode } if mode & 0o077 != 0 => {
                format!("chmod 600 {}", shell_quoted(&path.to_string_lossy()))
            }
            _ => return None,
        })
    }
}
