//! The vault of one user: looking up, keeping, changing and removing credentials, wherever they are kept.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::call::ConfigSource;
use crate::error::{CredentialConsumer, CredentialError, Error, FileError, Result, UsageError};
use crate::files::{LockedDir, check_state_dir};
use crate::names::{CredentialName, nearest};
use crate::settings::{Layer, Origin};
use crate::state::State;
use crate::vault::backend::{Backend, BackendChoice, CHOSEN, CredentialBackend};
use crate::vault::desktop::Desktop;
use crate::vault::file::{FILE, FileVault};
use crate::vault::helper_backend::Helper;
use crate::vault::sealed::KeySource;
use crate::vault::variables::Variables;
use crate::vault::{Credential, CredentialMetadata, Secret};

/// Time that another process may take for a renewal: a network call, or a command that asks a person.
const RENEWAL_LIMIT: Duration = Duration::from_secs(150);

/// The vault, as this call finds it.
pub struct Vault<'a> {
    pub(crate) state: &'a State,
    /// `None` if this call keeps no state.
    dir: Option<PathBuf>,
    choice: BackendChoice,
}

/// Result of moving credentials to another backend.
#[derive(Clone, Debug, Serialize)]
pub struct CredentialMigration {
    /// Moved credentials.
    pub moved: Vec<CredentialName>,
    /// Credentials that the target already had.
    pub there: Vec<CredentialName>,
}

/// Status of the vault.
#[derive(Clone, Debug, Serialize)]
pub struct VaultStatus {
    /// Backend; `None` until one is chosen.
    pub backend: Option<Backend>,
    /// Origin of the choice.
    pub origin: Origin,
    /// The file, if it is one.
    #[serde(serialize_with = "crate::text::maybe_path_in_json")]
    pub path: Option<PathBuf>,
    /// Source of the key of a file.
    pub key: Option<&'static str>,
    /// Seconds until the vault locks again.
    pub unlocked_seconds: Option<u64>,
}

impl State {
    /// Vault of this state. It is opened on first use.
    pub fn vault(&self) -> Result<Vault<'_>> {
        let dir = match (self.source(), self.dirs().state()) {
            // Without a place for it there is nothing in it; who would put something in is told.
            (ConfigSource::Nothing, _) | (_, Err(Error::File(FileError::NoHome(_)))) => None,
            (_, state) => Some(state?.join("vault")),
        };
        if let Some(dir) = &dir {
            // Before any backend is chosen: the directory also says which one keeps the credentials.
            check_state_dir(dir)?;
        }
        let choice = BackendChoice::of(self, dir.as_deref().unwrap_or(Path::new("/nonexistent")))?;
        Ok(Vault { state: self, dir, choice })
    }
}

impl Vault<'_> {
    /// A credential that may be there.
    pub fn get(&self, name: &CredentialName) -> Result<Option<Credential>> {
        self.keeper()?.map_or(Ok(None), |keeper| keeper.get(name))
    }

    /// All credentials, by name.
    pub fn list(&self) -> Result<Vec<Credential>> {
        self.keeper()?.map_or(Ok(Vec::new()), |keeper| keeper.all())
    }

    /// A credential that must be there.
    pub fn require(
        &self,
        name: &CredentialName,
        wanted_by: impl Into<CredentialConsumer>,
    ) -> Result<Credential> {
        if let Some(found) = self.get(name)? {
            return Ok(found);
        }
        // They may be on the way to another place.
        let now = self.state.vault()?;
        if now.choice.backend != self.choice.backend
            && let Some(found) = now.get(name)?
        {
            return Ok(found);
        }
        let all = self.list()?;
        let near = nearest(name.as_str(), all.iter().map(|one| one.about.name.as_str()));
        Err(CredentialError::NotFound { name: name.to_string(), wanted_by: wanted_by.into(), near }.into())
    }

    /// Changes one credential: the closure gets the current one and returns the new one. The vault is locked
    /// meanwhile.
    pub fn change(
        &self,
        name: &CredentialName,
        change: impl FnOnce(Option<Credential>) -> Result<Option<Credential>>,
    ) -> Result<Option<Credential>> {
        // One lock for all backends: a keychain or a helper cannot compare and set by itself.
        let dir = self.lock()?;
        // Another may have decided meanwhile.
        let choice = BackendChoice::of(self.state, dir.path())?;
        let backend = choice.backend.unwrap_or_else(|| BackendChoice::decide(self.state));
        let keeper = self.keeper_of(backend, dir.path())?;
        let before = keeper.get(name)?;
        let had = before.is_some();
        match change(before)? {
            Some(after) => {
                if !had {
                    // Only for a new name: a known one has its variable already.
                    self.refuse_twin(&*keeper, name)?;
                }
                // Before the choice is remembered: a failed first write must not decide for a backend.
                keeper.put(&dir, &after)?;
                if choice.backend.is_none() {
                    BackendChoice::remember(&dir, backend)?;
                }
                Ok(Some(after))
            }
            None if had => keeper.remove(&dir, name).map(|()| None),
            None => Ok(None),
        }
    }

    /// Fails if another credential uses the same variable.
    fn refuse_twin(&self, keeper: &dyn CredentialBackend, name: &CredentialName) -> Result<()> {
        let variable = self.state.app().credential_variable(name);
        let twin = keeper.all()?.into_iter().map(|one| one.about.name);
        match twin.into_iter().find(|other| self.state.app().credential_variable(other) == variable) {
            Some(twin) => Err(UsageError::InvalidName {
                what: "credential",
                name: name.to_string(),
                reason: format!("credential {twin} already uses the variable {variable}").into(),
            }
            .into()),
            None => Ok(()),
        }
    }

    /// Puts a credential in, in the place of one of its name.
    pub fn put(&self, credential: Credential) -> Result<()> {
        let name = credential.about.name.clone();
        self.change(&name, |_| Ok(Some(credential))).map(drop)
    }

    /// Takes a credential out.
    pub fn remove(&self, name: &CredentialName) -> Result<Option<Credential>> {
        let mut removed = None;
        self.change(name, |before| {
            removed = before;
            Ok(None)
        })?;
        if self.has_leftover() {
            // What is taken out is not to come back by a move that was cut short and is made again.
            let dir = self.lock()?;
            FileVault::new(self.state, dir.path()).remove(&dir, name)?;
        }
        Ok(removed)
    }

    /// Moves all credentials to the backend of the settings, or to the default one. `from` is the old backend if it
    /// cannot be detected. A credential of the same name with other content is an error. Credentials are deleted from
    /// the old backend last, so that an interrupted move can be repeated.
    pub fn move_to(&self, to: Backend, from: Option<Backend>) -> Result<CredentialMigration> {
        let dir = self.lock()?;
        let said = BackendChoice::of(self.state, dir.path())?;
        let is_said = said.origin.layer != Layer::Default && said.backend == Some(to);
        let is_free = said.origin.layer == Layer::Default && matches!(to, Backend::Keychain | Backend::File);
        if !is_said && !is_free {
            return Err(UsageError::Arguments(format!(
                "the setting vault.backend names another backend; set it to {} first",
                to.as_str()
            ))
            .into());
        }
        let found = if is_said { BackendChoice::remembered(dir.path()) } else { said.backend };
        let Some(from) = from.or(found) else {
            return Err(UsageError::Arguments(
                "no credentials to move; pass --from BACKEND if they are elsewhere".into(),
            )
            .into());
        };
        if from == to {
            return Err(
                UsageError::Arguments(format!("credentials are already in the {}", to.as_str())).into()
            );
        }
        if from == Backend::Env || to == Backend::Env {
            return Err(UsageError::Arguments(
                "the env backend is read-only: credentials cannot be moved to or from it".into(),
            )
            .into());
        }
        let (old, new) = (self.keeper_of(from, dir.path())?, self.keeper_of(to, dir.path())?);
        let all = old.all()?;
        // All are compared before the first is written, so that a conflict changes nothing.
        for one in &all {
            // One that an earlier move has left is the same.
            if new.get(&one.about.name)?.is_some_and(|there| there != *one) {
                return Err(
                    CredentialError::Exists { name: one.about.name.to_string(), place: to.as_str() }.into()
                );
            }
        }
        for one in &all {
            new.put(&dir, one)?;
        }
        // After the copies and before the removal: a crash leaves the credentials in a place that is looked
        // in.
        BackendChoice::remember(&dir, to)?;
        for one in &all {
            old.remove(&dir, &one.about.name)?;
        }
        if from == Backend::File {
            // A sealed file that stays would look like a move that was cut short.
            dir.remove(Path::new(FILE))?;
        }
        let moved: Vec<CredentialName> = all.into_iter().map(|one| one.about.name).collect();
        let there =
            new.all()?.into_iter().map(|one| one.about.name).filter(|name| !moved.contains(name)).collect();
        Ok(CredentialMigration { moved, there })
    }

    /// Whether a sealed file exists although the credentials are elsewhere: a move was interrupted.
    pub fn has_leftover(&self) -> bool {
        let file = self.dir.as_ref().map(|dir| dir.join(FILE));
        self.choice.backend == Some(Backend::Keychain) && file.is_some_and(|file| file.exists())
    }

    /// Backend, if one is chosen.
    pub fn backend(&self) -> Option<Backend> {
        self.choice.backend
    }

    /// Status of the vault, without decrypting or opening a keychain.
    pub fn status(&self) -> Result<VaultStatus> {
        let file = self.file();
        let key = file.as_ref().map(FileVault::key_source).transpose()?.flatten();
        let unlocked = match &key {
            Some(KeySource::Passphrase { .. }) => {
                file.as_ref().map(FileVault::unlocked_for).transpose()?.flatten()
            }
            _ => None,
        };
        Ok(VaultStatus {
            backend: self.choice.backend,
            origin: self.choice.origin.clone(),
            path: file.as_ref().map(FileVault::path),
            key: key.as_ref().map(KeySource::as_str),
            unlocked_seconds: unlocked.map(|left| left.as_secs()),
        })
    }

    /// Opens a vault that has a passphrase, for this call and for a time; whether it stays open after this call.
    pub fn unlock(&self, passphrase: &Secret, time: Duration) -> Result<bool> {
        self.require_file()?.unlock(passphrase, time)
    }

    /// Shuts a vault that a passphrase has opened; whether it was open.
    pub fn lock_up(&self) -> Result<bool> {
        self.require_file()?.lock_up()
    }

    /// Fails unless the vault is a sealed file, because only that has a key.
    pub fn require_sealed(&self) -> Result<()> {
        self.require_file().map(drop)
    }

    /// Reseals the file under another key.
    pub fn rekey(&self, to: &KeySource, passphrase: Option<&Secret>) -> Result<()> {
        let dir = self.lock()?;
        // It may have moved while the lock was waited for.
        self.state.vault()?.require_file()?.rekey(&dir, to, passphrase)
    }

    /// The files it keeps, with what they are for.
    pub fn files(&self) -> Vec<(PathBuf, &'static str)> {
        let Some(dir) = &self.dir else { return Vec::new() };
        let mut files = vec![
            (dir.join(FILE), "vault: encrypted credentials"),
            (dir.join(CHOSEN), "marker: credentials are in the desktop's keychain"),
            (dir.join("renewing"), "locks for renewals of credentials"),
        ];
        if let Ok(key) = crate::vault::keys::key_file(self.state, dir) {
            files.push((key, "the vault's key"));
        }
        let kept = self.file().and_then(|file| file.kept_file());
        files.extend(kept.map(|kept| (kept, "the vault's key, cached until the vault is locked")));
        files
    }

    /// Keeps everyone else from renewing a credential until it is dropped.
    pub fn alone(&self, name: &CredentialName) -> Result<impl Sized + use<>> {
        self.lock_for_renewal(name)
    }

    /// Takes the lock under which one process at a time renews a credential.
    pub(crate) fn lock_for_renewal(&self, name: &CredentialName) -> Result<std::fs::File> {
        let dir = self.require_dir()?.join("renewing");
        crate::files::create_dir(&dir, 0o700)?;
        // One file per credential, so that two renewals of different ones do not wait for each other.
        let path = dir.join(name.as_str());
        let file = crate::files::open_lock_file(&path)?;
        // A renewal is a call over the network: it may take longer than other locks are held.
        let locker = self.state.locker()?;
        let timeout = locker.timeout().max(RENEWAL_LIMIT);
        locker.with_timeout(timeout).lock(file, &path)
    }

    fn lock(&self) -> Result<LockedDir> {
        let dir = LockedDir::lock(&self.state.locker()?, self.require_dir()?, 0o700)?;
        // Another user may have made the state directory since it was found missing.
        self.state.dirs().state()?;
        Ok(dir)
    }

    fn require_dir(&self) -> Result<&Path> {
        match self.state.source() {
            ConfigSource::Nothing => {
                Err(UsageError::Arguments("the vault cannot be used with --no-config".into()).into())
            }
            _ => {
                self.state.dirs().state_for_writing()?;
                self.dir.as_deref().ok_or(Error::File(FileError::NoHome("the vault")))
            }
        }
    }

    fn file(&self) -> Option<FileVault<'_>> {
        let dir = self.dir.as_deref().filter(|_| self.choice.backend == Some(Backend::File))?;
        Some(FileVault::new(self.state, dir))
    }

    fn require_file(&self) -> Result<FileVault<'_>> {
        self.file()
            .ok_or_else(|| Error::Usage(UsageError::Arguments("only the file backend has a key".into())))
    }

    fn keeper(&self) -> Result<Option<Box<dyn CredentialBackend + '_>>> {
        match (self.choice.backend, &self.dir) {
            (Some(Backend::Env), _) => Ok(Some(Box::new(Variables::new(self.state)))),
            (Some(backend), Some(dir)) => self.keeper_of(backend, dir).map(Some),
            _ => Ok(None),
        }
    }

    fn keeper_of(&self, backend: Backend, dir: &Path) -> Result<Box<dyn CredentialBackend + '_>> {
        Ok(match backend {
            Backend::Keychain => Box::new(Desktop::connect(self.state)?),
            Backend::File => Box::new(FileVault::new(self.state, dir)),
            Backend::Helper => {
                let vault = self.state.dirs().state()?.to_string_lossy().into_owned();
                Box::new(Helper::new(self.state, vault)?)
            }
            Backend::Env => Box::new(Variables::new(self.state)),
        })
    }
}

/// Whether a credential shares the login of another.
pub fn uses_login(about: &CredentialMetadata, login: &CredentialName) -> bool {
    matches!(&about.kind, crate::vault::CredentialKind::OAuth2(oauth) if oauth.login.as_ref() == Some(login))
}
