//! Credential of a call.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{CredentialError, ExpiredCredential, FileError, Result, VaultError};
use crate::names::{CredentialName, without_name};
use crate::settings::{Layer, Origin, Value};
use crate::state::State;
use crate::vault::credential::CredentialMetadata;
use crate::vault::{CredentialKind, LoadedCredential, Secret, TokenRefresher, jwt_account, jwt_expiry};

/// Selected credential and its origin.
#[derive(Clone, Debug)]
pub struct SelectedCredential {
    /// Source of the credential.
    pub what: CredentialSource,
    /// Origin of the selection.
    pub origin: Origin,
}

/// A credential that is selected.
#[derive(Clone, Debug)]
pub enum CredentialSource {
    /// One of the vault's.
    Named(CredentialName),
    /// A bearer token in a file, for this call.
    TokenFile(PathBuf),
    /// A bearer token in the file given with `--config`, for this call.
    Token(Secret),
}

impl State {
    /// The credential that this call acts with, if one is selected: by flag, by variable, by the `--config` file, else
    /// by the settings.
    pub fn selected_credential(&self) -> Result<Option<SelectedCredential>> {
        let said = self.settings()?.get("credential")?;
        let named = said.map(|found| (found.value, found.origin));
        let named = match named {
            Some((Value::Text(name), origin)) => {
                let is_typed = matches!(origin.layer, Layer::Flag | Layer::Environment);
                let name = name.parse::<CredentialName>().map_err(|error| match is_typed {
                    true => error,
                    // The file can be any of the user's.
                    false => without_name(error, &origin),
                })?;
                Some((name, origin))
            }
            _ => None,
        };
        let at = |layer: Layer| named.as_ref().is_some_and(|(_, origin)| origin.layer == layer);
        // A flag is stronger than a variable.
        if !at(Layer::Flag) {
            let variable = self.app().variable("TOKEN_FILE");
            if let Some(path) = self.world().variable(&variable) {
                let what = CredentialSource::TokenFile(self.absolute(Path::new(path)));
                return Ok(Some(SelectedCredential {
                    what,
                    origin: Origin::named(Layer::Environment, variable),
                }));
            }
            if !at(Layer::Environment)
                && let Some((Value::Secret(token), origin)) =
                    self.settings()?.get("token")?.map(|found| (found.value, found.origin))
            {
                return Ok(Some(SelectedCredential { what: CredentialSource::Token(token), origin }));
            }
        }
        Ok(named.map(|(name, origin)| SelectedCredential { what: CredentialSource::Named(name), origin }))
    }
}

impl SelectedCredential {
    /// Loads the credential for use.
    pub fn load_credential(&self, state: &State, renew: &dyn TokenRefresher) -> Result<LoadedCredential> {
        if let CredentialSource::Named(name) = &self.what {
            return state.vault()?.load_credential(name, self.origin.to_string(), renew);
        }
        let (about, token) = self.for_this_call(state)?;
        if let Some(end) = about.expires_at.filter(|end| *end <= state.world().now()) {
            return Err(CredentialError::Expired(Box::new(ExpiredCredential {
                name: "for this call".into(),
                kind: "bearer",
                wanted_by: self.origin.to_string().into(),
                is_for_this_call: true,
                expired_at: Some(end.to_string()),
                login: None,
                reason: None,
                refused: false,
                variable: state.app().variable("TOKEN_FILE"),
            }))
            .into());
        }
        Ok(LoadedCredential::new(about, token, true))
    }

    /// Stored metadata, without a renewal, command or check. `None` if the credential does not exist.
    pub fn about(&self, state: &State) -> Result<Option<CredentialMetadata>> {
        match &self.what {
            CredentialSource::Named(name) => {
                let vault = state.vault()?;
                let found = match vault.credential_from_variable(name)? {
                    None => vault.get(name)?,
                    said => said,
                };
                Ok(found.map(|mut found| {
                    if found.about.account.is_none() {
                        found.about.account = found.account();
                    }
                    found.about
                }))
            }
            _ => self.for_this_call(state).map(|(about, _)| Some(about)),
        }
    }

    /// Token that was passed for this call.
    fn for_this_call(&self, state: &State) -> Result<(CredentialMetadata, Secret)> {
        let token = match &self.what {
            CredentialSource::Named(_) => Secret::new(""),
            CredentialSource::TokenFile(path) => {
                require_private(path)?;
                let text = crate::files::read(path)?.ok_or_else(|| FileError::NotFound(path.clone()))?;
                Secret::new(zeroize::Zeroizing::new(text).trim())
            }
            CredentialSource::Token(token) => {
                // A token in a `--config` file is as good as a token file, and held to the same rule.
                self.origin.path.as_deref().map_or(Ok(()), require_private)?;
                token.clone()
            }
        };
        if token.is_empty() {
            let reason = format!("{} contains no token", self.origin);
            return Err(CredentialError::Unusable { name: "for this call".into(), reason }.into());
        }
        let mut about =
            CredentialMetadata::new("this-call".parse()?, CredentialKind::Bearer, state.world().now());
        about.expires_at = jwt_expiry(token.expose());
        about.account = jwt_account(token.expose());
        Ok((about, token))
    }
}

/// Fails if other users can read or replace a file with a token. A pipe has one reader.
fn require_private(path: &Path) -> Result<()> {
    let can_others_read = crate::files::check_trusted(path)?;
    match path.metadata() {
        Ok(found) if can_others_read && found.is_file() => {
            Err(VaultError::KeyFileExposed { path: path.to_owned(), mode: found.mode() & 0o7777 }.into())
        }
        _ => Ok(()),
    }
}
