//! Errors of the vault, its keys and its backends.

use std::path::PathBuf;

use crate::app::App;
use crate::code::Code;
use crate::error::Diagnostic;
use crate::text::{shell_quoted, shown};

/// Errors of the vault, its keys and its backends.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// A vault that is not as it was written.
    #[error("the vault {} is damaged: {reason}", shown(path.display()))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Noticed damage.
        reason: String,
    },
    /// A vault of a newer version.
    #[error("the vault {} has version {found}; this program knows {known}", shown(path.display()))]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Version.
        found: u64,
        /// The newest that is known.
        known: u64,
    },
    /// Not the vault's key.
    #[error("{what} does not open the vault {}", shown(path.display()))]
    WrongKey {
        /// The file.
        path: PathBuf,
        /// Attempted action.
        what: String,
    },
    /// No key for a vault that is there.
    #[error("the vault {} is there, and its key is not ({})", shown(path.display()), shown(key.display()))]
    KeyMissing {
        /// The file.
        path: PathBuf,
        /// Expected key file.
        key: PathBuf,
    },
    /// A vault that needs its passphrase.
    #[error("the vault {} needs its passphrase", shown(path.display()))]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// A vault that cannot be written.
    #[error("credentials are read from variables, which nobody can set for you")]
    ReadOnly {
        /// The variable that would hold it.
        variable: String,
    },
    /// A helper that did not help.
    #[error("the vault's helper {}: {}", shown(helper), shown(reason))]
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
        if mode & 0o077 == 0 { "belongs to another user, who knows the secret in it".to_owned() }
        else { format!("has mode {mode:04o}: others can read the secret in it") }
    )]
    KeyFileExposed {
        /// The file.
        path: PathBuf,
        /// Mode.
        mode: u32,
    },
    /// A key file with something else in it.
    #[error("{} does not hold a key: 64 hexadecimal digits", shown(path.display()))]
    InvalidKeyFile {
        /// The file.
        path: PathBuf,
    },
    /// No keychain to talk to.
    #[error("the keychain cannot be reached: {}", shown(reason))]
    KeychainUnreachable {
        /// Reason.
        reason: String,
    },
    /// A keychain that its user must open.
    #[error("the keychain is locked")]
    KeychainLocked,
    /// A keychain that refused.
    #[error("the keychain refused: {}", shown(reason))]
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
                "nothing was changed; put a copy of the file from a backup in its place, or move it away and set the credentials anew".to_owned()
            }
Self::TooNew { .. } => {
                format!("install the newer {name}, or set {prefix}_STATE_DIR to another directory")
            }
Self::WrongKey { .. } => "nothing was changed; give the right one".to_owned(),
Self::KeyMissing { .. } => {
                "no key is made in its place: put the right one back, or move the vault away and set the credentials anew".to_owned()
            }
Self::Locked { .. } => format!(
                "a person opens it on a terminal: {name} auth unlock; a program gives a file: {prefix}_VAULT_PASSPHRASE_FILE"
            ),
Self::ReadOnly { variable } => {
                format!("set {variable} before the call, or choose another place: --set vault.backend=file")
            }
Self::HelperFailed { .. } => "run it by hand to see what it says; the setting is vault.helper".to_owned(),
Self::KeyFileExposed { path, mode } if mode & 0o077 == 0 => {
                format!("it belongs to another user: chown it, or make your own: {}", shown(path.display()))
            }
Self::KeyFileExposed { path, .. } => {
                format!("make it private: chmod 600 {}", shell_quoted(&path.to_string_lossy()))
            }
Self::InvalidKeyFile { .. } => "is vault.key-file the right file?".to_owned(),
Self::KeychainUnreachable { .. } => {
                "call it where the desktop's D-Bus session is known (DBUS_SESSION_BUS_ADDRESS); `auth move --to file` there \
                 makes a vault that needs none"
                    .to_owned()
            }
Self::KeychainLocked => "unlock it on the desktop, then try again".to_owned(),
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
