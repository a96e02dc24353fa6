//! Credentials that variables hold: read, never written.

use jiff::Timestamp;

use crate::error::{CredentialError, Error, Result, VaultError};
use crate::files::LockedDir;
use crate::names::CredentialName;
use crate::state::State;
use crate::vault::backend::CredentialBackend;
use crate::vault::credential::CredentialMetadata;
use crate::vault::{Credential, CredentialKind, Secret};

/// Credentials in variables that are named after them.
pub(crate) struct Variables<'a> {
    state: &'a State,
}

impl<'a> Variables<'a> {
    pub(crate) fn new(state: &'a State) -> Self {
        Variables { state }
    }
}

impl CredentialBackend for Variables<'_> {
    fn get(&self, name: &CredentialName) -> Result<Option<Credential>> {
        let variable = self.state.app().credential_variable(name);
        let Some(value) = self.state.world().variable(&variable) else { return Ok(None) };
        let Some(text) = value.to_str() else {
            return Err(CredentialError::Unusable {
                name: name.to_string(),
                reason: format!("{variable} is not text"),
            }
            .into());
        };
        let mut about =
            CredentialMetadata::new(name.clone(), CredentialKind::Env { variable }, Timestamp::UNIX_EPOCH);
        about.expires_at = crate::vault::jwt_expiry(text);
        Ok(Some(Credential::new(about, Some(Secret::new(text)))))
    }

    fn all(&self) -> Result<Vec<Credential>> {
        let prefix = self.state.app().variable("CREDENTIAL_");
        let names = self.state.world().variables_with_prefix(&prefix);
        let names = names
            // The mapping is not invertible; `-` is what names usually have.
            .filter_map(|(name, _)| name[prefix.len()..].to_ascii_lowercase().replace('_', "-").parse().ok());
        let found: Vec<CredentialName> = names.collect();
        found.iter().filter_map(|name| self.get(name).transpose()).collect()
    }

    fn put(&self, _dir: &LockedDir, credential: &Credential) -> Result<()> {
        Err(self.read_only(&credential.about.name))
    }

    fn remove(&self, _dir: &LockedDir, name: &CredentialName) -> Result<()> {
        Err(self.read_only(name))
    }
}

impl Variables<'_> {
    fn read_only(&self, name: &CredentialName) -> Error {
        Error::Vault(VaultError::ReadOnly { variable: self.state.app().credential_variable(name) })
    }
}
