//! Backends of the vault, and the choice between them.
//!
//! The choice of `auto` is stored, so that the same credentials are found with and without a desktop. A second vault,
//! created in an ssh session, would look like a loss of the first.

use std::path::Path;

use serde::Serialize;

use crate::call::ConfigSource;
use crate::error::Result;
use crate::files::LockedDir;
use crate::names::CredentialName;
use crate::settings::{Layer, Origin};
use crate::state::State;
use crate::vault::Credential;
use crate::vault::desktop::Desktop;
use crate::vault::file::FILE;

/// Backend of the vault. A change holds the lock on the vault's directory, so that reading and
/// changing are one step, whatever keeps them.
pub(crate) trait CredentialBackend {
    fn get(&self, name: &CredentialName) -> Result<Option<Credential>>;
    fn all(&self) -> Result<Vec<Credential>>;
    fn put(&self, dir: &LockedDir, credential: &Credential) -> Result<()>;
    fn remove(&self, dir: &LockedDir, name: &CredentialName) -> Result<()>;
}

/// A place for credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// The desktop's keychain.
    Keychain,
    /// A sealed file.
    File,
    /// Another program.
    Helper,
    /// Variables.
    Env,
}

impl Backend {
    /// Name.
    pub fn as_str(self) -> &'static str {
        match self {
            Backend::Keychain => "keychain",
            Backend::File => "file",
            Backend::Helper => "helper",
            Backend::Env => "env",
        }
    }
}

/// Chosen backend and the origin of the choice.
#[derive(Clone, Debug)]
pub(crate) struct BackendChoice {
    /// `None` until a setting or the first stored credential decides.
    pub(crate) backend: Option<Backend>,
    pub(crate) origin: Origin,
}

/// The name of the file that says that the keychain was chosen.
pub(crate) const CHOSEN: &str = "keychain";

impl BackendChoice {
    /// Backend of the settings, else the one that was used before, so that the credentials do not depend on a running
    /// desktop.
    pub(crate) fn of(state: &State, dir: &Path) -> Result<Self> {
        let said = state.settings()?.get("vault.backend")?;
        let origin = said
            .as_ref()
            .map_or_else(|| Origin::named(Layer::Default, "default"), |found| found.origin.clone());
        let backend = match said.as_ref().and_then(|found| found.value.as_str()) {
            Some("keychain") => Some(Backend::Keychain),
            Some("file") => Some(Backend::File),
            Some("helper") => Some(Backend::Helper),
            Some("env") => Some(Backend::Env),
            // One file stands for everything there: so does the directory beside it.
            _ if matches!(state.source(), ConfigSource::File(_)) => Some(Backend::File),
            _ => BackendChoice::remembered(dir),
        };
        Ok(BackendChoice { backend, origin })
    }

    /// Backend that an earlier call chose.
    pub(crate) fn remembered(dir: &Path) -> Option<Backend> {
        match () {
            () if dir.join(CHOSEN).exists() => Some(Backend::Keychain),
            () if dir.join(FILE).exists() => Some(Backend::File),
            () => None,
        }
    }

    /// Backend for the first credential: the keychain if it is available and unlocked, else a file.
    pub(crate) fn decide(state: &State) -> Backend {
        let usable = Desktop::connect(state).and_then(|desktop| desktop.require_unlocked());
        // A locked keychain needs a person, and a script may store the first credential.
        if usable.is_ok() { Backend::Keychain } else { Backend::File }
    }

    /// Remembers where credentials are, for those who say nothing about it.
    pub(crate) fn remember(dir: &LockedDir, backend: Backend) -> Result<()> {
        match backend {
            Backend::Keychain => {
                dir.replace(Path::new(CHOSEN), "credentials are in the desktop's keychain\n", 0o600)
            }
            // That its file is there says it.
            _ => dir.remove(Path::new(CHOSEN)).map(drop),
        }
    }
}
