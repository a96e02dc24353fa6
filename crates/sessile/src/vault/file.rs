//! The vault as one sealed file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use zeroize::Zeroizing;

use crate::error::{Error, FileError, Result, UsageError, VaultError};
use crate::files::{LockedDir, check_private, read_checked};
use crate::names::CredentialName;
use crate::state::State;
use crate::vault::backend::CredentialBackend;
use crate::vault::desktop::Desktop;
use crate::vault::keys::KeyFile;
use crate::vault::sealed::{Header, KeySource, SealedFile, UnsealError};
use crate::vault::{Credential, Secret, credential, keys};
use crate::vault_key::VaultKey;

/// The file's name in the vault's directory.
pub(crate) const FILE: &str = "credentials";
/// The largest vault.
const LIMIT: u64 = 16 * 1024 * 1024;

/// The sealed file. Its key, once it is known, is kept with the state for the rest of the call.
pub(crate) struct FileVault<'a> {
    state: &'a State,
    dir: PathBuf,
}

impl<'a> FileVault<'a> {
    pub(crate) fn new(state: &'a State, dir: &Path) -> Self {
        FileVault { state, dir: dir.to_owned() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.join(FILE)
    }

    /// Sealed file, if it exists.
    fn sealed(&self) -> Result<Option<SealedFile>> {
        let path = self.path();
        // On the opened file: a check of the path could be of another one.
        let text = match read_checked(&path, LIMIT, |found| check_private(&path, found)) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(None),
            Err(Error::File(FileError::NotUtf8 { offset, .. })) => {
                let reason = format!("not valid UTF-8 (first bad byte at offset {offset})");
                return Err(VaultError::Damaged { path, reason }.into());
            }
            Err(other) => return Err(other),
        };
        SealedFile::of_text(&text).map(Some).map_err(|reason| self.unsealable(reason))
    }

    fn unsealable(&self, reason: UnsealError) -> Error {
        let path = self.path();
        match reason {
            UnsealError::TooNew(found) => {
                Error::Vault(VaultError::TooNew { path, found, known: crate::vault::sealed::VERSION })
            }
            UnsealError::Damaged(reason) => Error::Vault(VaultError::Damaged { path, reason }),
            UnsealError::OtherKey => Error::Vault(VaultError::WrongKey { path, what: "the key".into() }),
        }
    }

    /// Source of the key; `None` without a file.
    pub(crate) fn key_source(&self) -> Result<Option<KeySource>> {
        Ok(self.sealed()?.map(|sealed| sealed.header.key))
    }

    /// Key of an existing file. A missing key is never created, because a new key cannot open the file.
    fn key_of(&self, sealed: &SealedFile) -> Result<VaultKey> {
        // Deriving a key from a passphrase takes 64 MiB and three passes, so it is done once per call.
        if let Some(key) =
            self.state.vault_key().borrow().as_ref().filter(|key| key.id() == sealed.header.key_id)
        {
            return Ok(key.clone());
        }
        let key = match &sealed.header.key {
            KeySource::File => {
                let path = keys::key_file(self.state, &self.dir)?;
                let keys = keys::read_key_file(&path, self.state.world())?;
                let keys = keys.ok_or(VaultError::KeyMissing { path: self.path(), key: path })?;
                // A key of another id makes `open` report that the key is wrong.
                let meant = keys.iter().find(|key| key.id() == sealed.header.key_id).or(keys.first());
                meant.cloned().ok_or_else(|| self.unsealable(UnsealError::OtherKey))?
            }
            KeySource::Keychain => {
                Desktop::connect(self.state)?.key(&sealed.header.key_id)?.ok_or_else(|| {
                    Error::Vault(VaultError::KeyMissing {
                        path: self.path(),
                        key: PathBuf::from("the keychain"),
                    })
                })?
            }
            KeySource::Passphrase { .. } => match keys::kept(self.state, &sealed.header.key_id)? {
                Some((key, _)) => key,
                None => self.key_of_passphrase_file(sealed)?,
            },
        };
        *self.state.vault_key().borrow_mut() = Some(key.clone());
        Ok(key)
    }

    fn key_of_passphrase_file(&self, sealed: &SealedFile) -> Result<VaultKey> {
        let variable = self.state.app().variable("VAULT_PASSPHRASE_FILE");
        let Some(path) = self.state.world().variable(&variable).map(PathBuf::from) else {
            return Err(VaultError::Locked { path: self.path() }.into());
        };
        let path = self.state.absolute(&path);
        let text = keys::read_private(&path, self.state.world())?.ok_or(FileError::NotFound(path))?;
        // Editors end a file with a line break, which is not part of the passphrase.
        self.derived(sealed, &Secret::new(text.trim_end_matches(['\r', '\n'])))
    }

    fn derived(&self, sealed: &SealedFile, passphrase: &Secret) -> Result<VaultKey> {
        let damaged = || {
            Error::Vault(VaultError::Damaged {
                path: self.path(),
                reason: "the header does not name a key".into(),
            })
        };
        let key = sealed.header.key.derive(passphrase).ok_or_else(damaged)?;
        // The id tells a wrong passphrase from a damaged file.
        if key.id() != sealed.header.key_id {
            return Err(VaultError::WrongKey { path: self.path(), what: "the passphrase".into() }.into());
        }
        Ok(key)
    }

    /// Opens it with a passphrase, for this call and, where that is possible, for a time; whether it was.
    pub(crate) fn unlock(&self, passphrase: &Secret, time: Duration) -> Result<bool> {
        let Some(sealed) = self.sealed()? else { return Ok(false) };
        let key = self.derived(&sealed, passphrase)?;
        // Before the key is kept: only a file that it opens proves the key.
        sealed.open(&key).map_err(|reason| self.unsealable(reason))?;
        let kept = keys::keep(self.state, &key, time)?;
        *self.state.vault_key().borrow_mut() = Some(key);
        Ok(kept)
    }

    /// Time that the file stays open without a passphrase.
    pub(crate) fn unlocked_for(&self) -> Result<Option<Duration>> {
        let Some(sealed) = self.sealed()? else { return Ok(None) };
        Ok(keys::kept(self.state, &sealed.header.key_id)?.map(|(_, left)| left))
    }

    /// File of the key while the vault is unlocked.
    pub(crate) fn kept_file(&self) -> Option<PathBuf> {
        let header = self.sealed().ok().flatten()?.header;
        keys::kept_file(self.state, &header.key_id)
            .filter(|_| matches!(header.key, KeySource::Passphrase { .. }))
    }

    /// Deletes the cached key of a passphrase; returns whether one existed.
    pub(crate) fn lock_up(&self) -> Result<bool> {
        let sealed = self.sealed()?;
        sealed.map_or(Ok(false), |sealed| keys::forget(self.state, &sealed.header.key_id))
    }

    /// Seals it under another key: from a file, the keychain, or this passphrase.
    pub(crate) fn rekey(&self, dir: &LockedDir, to: &KeySource, passphrase: Option<&Secret>) -> Result<()> {
        // Before a new key is made: a vault that cannot be opened must not get one.
        let all = self.read()?;
        let old = self.sealed()?.map(|sealed| sealed.header);
        let file = KeyFile::of(self.state, dir)?;
        let key = match to {
            KeySource::File => file.add_new()?,
            KeySource::Keychain => self.new_desktop_key()?,
            KeySource::Passphrase { .. } => passphrase
                .and_then(|passphrase| to.derive(passphrase))
                .ok_or_else(|| UsageError::Arguments("a passphrase is required".into()))?,
        };
        // The kept key is named after the old key's id, which is unknown once the file is sealed anew.
        let _ = self.lock_up()?;
        self.write(dir, &all, &key, to.clone())?;
        *self.state.vault_key().borrow_mut() = Some(key);
        // The old key last: until the vault is sealed anew, only that one opens it.
        match old {
            Some(Header { key: KeySource::File, key_id, .. }) => file.drop_key(&key_id),
            Some(Header { key: KeySource::Keychain, key_id, .. }) => {
                Desktop::connect(self.state)?.forget_key(&key_id)
            }
            _ => Ok(()),
        }
    }

    fn new_desktop_key(&self) -> Result<VaultKey> {
        let desktop = Desktop::connect(self.state)?;
        desktop.require_unlocked()?;
        let key = VaultKey::generate()?;
        desktop.keep_key(&key)?;
        Ok(key)
    }

    /// Content of the file. Reads again if another process changed the key between reading the file and its key.
    fn read(&self) -> Result<Vec<Credential>> {
        let Some(sealed) = self.sealed()? else { return Ok(Vec::new()) };
        match self.opened(&sealed) {
            Err(
                error @ (Error::Vault(VaultError::WrongKey { .. })
                | Error::Vault(VaultError::KeyMissing { .. })),
            ) => match self.sealed()? {
                Some(now) if now.header.key_id != sealed.header.key_id => self.opened(&now),
                _ => Err(error),
            },
            opened => opened,
        }
    }

    fn opened(&self, sealed: &SealedFile) -> Result<Vec<Credential>> {
        let content = sealed.open(&self.key_of(sealed)?).map_err(|reason| self.unsealable(reason))?;
        credential::list_of_text(&content)
            .map_err(|reason| Error::Vault(VaultError::Damaged { path: self.path(), reason }))
    }

    fn write(&self, dir: &LockedDir, all: &[Credential], key: &VaultKey, source: KeySource) -> Result<()> {
        let content: Zeroizing<String> = credential::list_to_text(all);
        // The sealed content is in hexadecimal; the rest of the file takes less than 4 KiB.
        if content.len() as u64 * 2 > LIMIT - 4096 {
            let size = content.len() as u64 * 2;
            return Err(FileError::TooLarge { path: self.path(), size, limit: LIMIT }.into());
        }
        dir.replace(Path::new(FILE), &SealedFile::seal(&content, key, source)?.to_text(), 0o600)
    }

    /// Changes the list and writes it. A file that cannot be opened is never overwritten.
    fn change(&self, dir: &LockedDir, change: impl FnOnce(&mut Vec<Credential>)) -> Result<()> {
        let (key, source) = match self.sealed()? {
            Some(sealed) => (self.key_of(&sealed)?, sealed.header.key),
            None => (KeyFile::of(self.state, dir)?.key()?, KeySource::File),
        };
        let mut all = self.read()?;
        change(&mut all);
        all.sort_by(|a, b| a.about.name.cmp(&b.about.name));
        self.write(dir, &all, &key, source)
    }
}

impl CredentialBackend for FileVault<'_> {
    fn get(&self, name: &CredentialName) -> Result<Option<Credential>> {
        Ok(self.read()?.into_iter().find(|credential| credential.about.name == *name))
    }

    fn all(&self) -> Result<Vec<Credential>> {
        self.read()
    }

    fn put(&self, dir: &LockedDir, credential: &Credential) -> Result<()> {
        self.change(dir, |all| {
            all.retain(|other| other.about.name != credential.about.name);
            all.push(credential.clone());
        })
    }

    fn remove(&self, dir: &LockedDir, name: &CredentialName) -> Result<()> {
        self.change(dir, |all| all.retain(|other| other.about.name != *name))
    }
}
