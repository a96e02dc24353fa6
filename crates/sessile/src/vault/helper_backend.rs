//! A vault that another program keeps: one JSON object to it, one back.
//!
//! The requests are `{"version":1,"action":"get","vault":...,"name":...}` and the like for `list`, `put` (with
//! `credential`, an opaque object that `get` must return unchanged) and `remove`. A response has `credential`,
//! `credentials`, or nothing; a missing credential is a response without `credential`. Any exit status except 0 is a
//! failure.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use crate::error::{Error, Result, UsageError, VaultError};
use crate::files::LockedDir;
use crate::names::CredentialName;
use crate::state::State;
use crate::vault::backend::CredentialBackend;
use crate::vault::{Credential, program};

// A helper may have to ask a person.
const LIMIT: Duration = Duration::from_secs(60);

/// A program that keeps credentials.
pub(crate) struct Helper<'a> {
    state: &'a State,
    command: Vec<String>,
    vault: String,
}

#[derive(Deserialize)]
struct HelperReply<'a> {
    #[serde(borrow)]
    credential: Option<&'a RawValue>,
    #[serde(borrow, default)]
    credentials: Vec<&'a RawValue>,
    error: Option<String>,
}

impl<'a> Helper<'a> {
    /// The helper of the settings: a path, or a word for the program `APP-vault-WORD`.
    pub(crate) fn new(state: &'a State, vault: String) -> Result<Self> {
        let said = state.settings()?.get("vault.helper")?;
        let Some(word) = said.as_ref().and_then(|found| found.value.as_str()) else {
            return Err(UsageError::Arguments(
                "vault.backend is \"helper\", but vault.helper is not set".into(),
            )
            .into());
        };
        let program = if word.starts_with('/') {
            word.to_owned()
        } else if word.contains('/') {
            // One that depended on the working directory could be anybody's.
            return Err(UsageError::InvalidValue {
                place: "vault.helper".into(),
                value: word.to_owned(),
                expected: "an absolute path, or a word".into(),
            }
            .into());
        } else {
            let name = format!("{}-vault-{word}", state.app().name());
            // The caller's PATH counts, not that of this process.
            let path = state.world().variable("PATH").unwrap_or_default();
            let mut places = std::env::split_paths(path).map(|dir| dir.join(&name));
            // A relative entry of PATH would run a program of the working directory.
            let found = places.find(|place| place.is_absolute() && place.is_file());
            found
                .ok_or_else(|| VaultError::HelperFailed { helper: name, reason: "not found in PATH".into() })?
                .to_string_lossy()
                .into_owned()
        };
        Ok(Helper { state, command: vec![program], vault })
    }

    /// The program.
    pub(crate) fn program(&self) -> &str {
        self.command.first().map_or("", String::as_str)
    }

    fn failed(&self, reason: impl Into<String>) -> Error {
        Error::Vault(VaultError::HelperFailed { helper: self.program().to_owned(), reason: reason.into() })
    }

    fn ask<T>(&self, action: &str, rest: &str, read: impl FnOnce(HelperReply<'_>) -> Result<T>) -> Result<T> {
        let vault = serde_json::to_string(&self.vault).unwrap_or_default();
        let question =
            // The request can hold the secrets of a credential.
            Zeroizing::new(format!("{{\"version\":1,\"action\":\"{action}\",\"vault\":{vault}{rest}}}\n"));
        let answer = program::ask(self.state.world(), &self.command, Some(&question), LIMIT)
            .map_err(|reason| self.failed(reason))?;
        let text =
            std::str::from_utf8(&answer.output).map_err(|_| self.failed("the answer is not valid UTF-8"))?;
        // A helper with nothing to say may print nothing.
        let parsed = if text.trim().is_empty() { "{}" } else { text };
        let parsed: Result<HelperReply<'_>, _> = serde_json::from_str(parsed);
        match parsed {
            // Before the status: its own words say more than a number.
            Ok(HelperReply { error: Some(error), .. }) => {
                Err(self.failed(crate::text::shortened(&error, 200)))
            }
            _ if !answer.succeeded => Err(self.failed(answer.status)),
            Ok(parsed) => read(parsed),
            Err(error) => Err(self.failed(crate::vault::credential::unreadable(&error))),
        }
    }

    fn read(&self, text: &str) -> Result<Credential> {
        Credential::of_text(text).map_err(|reason| self.failed(format!("invalid credential: {reason}")))
    }
}

fn named(name: &CredentialName) -> String {
    // A credential's name has no character that JSON escapes.
    format!(",\"name\":\"{name}\"")
}

impl CredentialBackend for Helper<'_> {
    fn get(&self, name: &CredentialName) -> Result<Option<Credential>> {
        let found = self.ask("get", &named(name), |answer| {
            answer.credential.map(|one| self.read(one.get())).transpose()
        })?;
        match found {
            // Otherwise a faulty helper could give a command the secret of another credential.
            Some(other) if other.about.name != *name => {
                Err(self.failed("the answer contains another credential"))
            }
            found => Ok(found),
        }
    }

    fn all(&self) -> Result<Vec<Credential>> {
        self.ask("list", "", |answer| answer.credentials.iter().map(|one| self.read(one.get())).collect())
    }

    fn put(&self, _dir: &LockedDir, credential: &Credential) -> Result<()> {
        let rest = Zeroizing::new(format!(
            "{},\"credential\":{}",
            named(&credential.about.name),
            credential.to_text().as_str()
        ));
        self.ask("put", &rest, |_| Ok(()))
    }

    fn remove(&self, _dir: &LockedDir, name: &CredentialName) -> Result<()> {
        self.ask("remove", &named(name), |_| Ok(()))
    }
}
