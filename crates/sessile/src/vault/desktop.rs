//! The vault in the desktop's keychain: an item for each credential.

use std::cell::RefCell;
use std::time::Duration;

use crate::error::{Error, Result, VaultError};
use crate::files::LockedDir;
use crate::names::CredentialName;
use crate::state::State;
use crate::vault::backend::CredentialBackend;
use crate::vault::keychain::{Keychain, KeychainEndpoint, KeychainError};
use crate::vault::{Credential, Secret};
use crate::vault_key::VaultKey;

/// Timeout of the keychain, which may have to be started first.
const LIMIT: Duration = Duration::from_secs(10);

/// Schema of the items, shown by keychain viewers.
const SCHEMA: &str = "org.sessile.Vault";

/// The keychain, opened for this application and this state directory.
pub(crate) struct Desktop {
    keychain: RefCell<Box<dyn Keychain>>,
    application: String,
    vault: String,
}

impl Desktop {
    pub(crate) fn connect(state: &State) -> Result<Self> {
        let world = state.world();
        let said = world.variable("DBUS_SESSION_BUS_ADDRESS").and_then(|address| address.to_str());
        let usual = || {
            let dir = world.path_variable("XDG_RUNTIME_DIR")?;
            // In a directory that is open to others, anybody can listen.
            crate::runtime::require_private(dir, world.uid()).ok()?;
            let socket = dir.join("bus");
            socket.exists().then(|| format!("unix:path={}", socket.display()))
        };
        let Some(connect) = state.app().keychain() else {
            let reason = "this program is built without keychain support".into();
            return Err(VaultError::KeychainUnreachable { reason }.into());
        };
        let bus = said.map(str::to_owned).or_else(usual);
        let endpoint = KeychainEndpoint { bus: bus.as_deref(), uid: world.uid(), timeout: LIMIT };
        let keychain = connect(&endpoint).map_err(failed)?;
        Ok(Desktop {
            keychain: RefCell::new(keychain),
            application: state.app().name().to_owned(),
            // Two state directories of one user, of a test for example, must not share their items.
            vault: state.dirs().state()?.to_string_lossy().into_owned(),
        })
    }

    /// Fails unless the keychain can store a secret without a prompt.
    pub(crate) fn require_unlocked(&self) -> Result<()> {
        self.keychain.borrow_mut().require_unlocked().map_err(failed)
    }

    /// Attributes of every item of this vault. Items of one kind have the same names, so that one replaces only its
    /// like.
    fn attributes<'a>(&'a self, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let own = [("xdg:schema", SCHEMA), ("application", &*self.application), ("vault", &*self.vault)];
        own.iter().chain(more).copied().collect()
    }

    fn find(&self, more: &[(&str, &str)]) -> Result<Vec<Secret>> {
        let found = self.keychain.borrow_mut().find(&self.attributes(more)).map_err(failed)?;
        if found.is_empty() {
            // One that was never opened since it was started does not even tell what is in it.
            self.require_unlocked()?;
        }
        Ok(found.into_iter().map(|(_, secret)| secret).collect())
    }

    fn credentials(&self, more: &[(&str, &str)]) -> Result<Vec<Credential>> {
        let read = |secret: Secret| {
            Credential::of_text(secret.expose()).map_err(|reason| {
                Error::Vault(VaultError::KeychainRefused { reason: format!("invalid item: {reason}") })
            })
        };
        self.find(more)?.into_iter().map(read).collect()
    }

    fn put_item(&self, label: &str, more: &[(&str, &str)], secret: &Secret) -> Result<()> {
        self.keychain.borrow_mut().put(label, &self.attributes(more), secret).map_err(failed)
    }

    /// The key of a sealed file that is kept here, by its id.
    pub(crate) fn key(&self, id: &str) -> Result<Option<VaultKey>> {
        Ok(self.find(&key_attributes(id))?.first().and_then(|text| VaultKey::of_text(text.expose())))
    }

    /// Keeps such a key, beside others.
    pub(crate) fn keep_key(&self, key: &VaultKey) -> Result<()> {
        let label = format!("{} vault key", self.application);
        self.put_item(&label, &key_attributes(&key.id()), &Secret::new(key.to_text().as_str()))
    }

    /// Deletes a key that is no longer needed.
    pub(crate) fn forget_key(&self, id: &str) -> Result<()> {
        self.keychain.borrow_mut().remove(&self.attributes(&key_attributes(id))).map(drop).map_err(failed)
    }
}

fn key_attributes(id: &str) -> [(&str, &str); 2] {
    [("purpose", "vault-key"), ("key", id)]
}

fn failed(error: KeychainError) -> Error {
    match error {
        KeychainError::Unreachable(reason) => Error::Vault(VaultError::KeychainUnreachable { reason }),
        KeychainError::Locked => Error::Vault(VaultError::KeychainLocked),
        KeychainError::Refused(reason) | KeychainError::Protocol(reason) => {
            Error::Vault(VaultError::KeychainRefused { reason })
        }
    }
}

impl CredentialBackend for Desktop {
    fn get(&self, name: &CredentialName) -> Result<Option<Credential>> {
        Ok(self.credentials(&[("credential", name.as_str())])?.pop())
    }

    fn all(&self) -> Result<Vec<Credential>> {
        let mut all = self.credentials(&[("purpose", "credential")])?;
        // Keychains return items in no particular order.
        all.sort_by(|a, b| a.about.name.cmp(&b.about.name));
        Ok(all)
    }

    fn put(&self, _dir: &LockedDir, credential: &Credential) -> Result<()> {
        let name = credential.about.name.as_str();
        let label = format!("{} credential {name}", self.application);
        let attributes = [("purpose", "credential"), ("credential", name)];
        self.put_item(&label, &attributes, &Secret::new(credential.to_text().as_str()))
    }

    fn remove(&self, _dir: &LockedDir, name: &CredentialName) -> Result<()> {
        self.keychain
            .borrow_mut()
            .remove(&self.attributes(&[("credential", name.as_str())]))
            .map(drop)
            .map_err(failed)
    }
}
