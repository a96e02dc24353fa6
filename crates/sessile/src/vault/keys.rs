//! Keys of sealed files: storage, and derivation from a passphrase.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use argon2::{Algorithm, Argon2, Params, Version};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::error::{Error, Result, UsageError, VaultError};
use crate::files::{LIMIT, LockedDir, NoFollowDir, read_checked};
use crate::state::State;
use crate::vault::Secret;
use crate::vault::sealed::KeySource;
use crate::vault_key::VaultKey;
use crate::world::World;
use sessile_wire::hex::{hex, unhex};

/// Cost of deriving a key from a new passphrase: 64 MiB and three passes.
const MEMORY: u32 = 64 * 1024;
const PASSES: u32 = 3;
/// Largest cost that a file may ask for, because its header is read before it is authenticated.
const MOST_MEMORY: u32 = 1024 * 1024;
const MOST_PASSES: u32 = 16;

/// Salts of new passphrases, and key derivation.
impl KeySource {
    /// A passphrase with a new salt.
    pub fn new_passphrase() -> Result<Self> {
        let salt = hex(&crate::random::bytes::<16>()?);
        Ok(KeySource::Passphrase { salt, memory: MEMORY, passes: PASSES })
    }

    /// Key derived from a passphrase; `None` for another source or invalid parameters.
    pub(crate) fn derive(&self, passphrase: &Secret) -> Option<VaultKey> {
        let KeySource::Passphrase { salt, memory, passes } = self else { return None };
        // The parameters come from a file that is not authenticated yet: a hostile one could exhaust memory.
        if *memory > MOST_MEMORY || *passes > MOST_PASSES {
            return None;
        }
        let salt = unhex(salt)?;
        let argon2 =
            // One lane, which the format implies: a file states memory and passes only.
            Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::new(*memory, *passes, 1, None).ok()?);
        let mut key = Zeroizing::new([0u8; 32]);
        argon2.hash_password_into(passphrase.expose().as_bytes(), &salt, key.as_mut()).ok()?;
        Some(VaultKey::of_bytes(*key))
    }

    /// The word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            KeySource::File => "file",
            KeySource::Keychain => "keychain",
            KeySource::Passphrase { .. } => "passphrase",
        }
    }
}

/// Keys in a key file: one, or two while the key changes. The file is refused if other users can read it.
pub(crate) fn read_key_file(path: &Path, world: &World) -> Result<Option<Vec<VaultKey>>> {
    let Some(text) = read_private(path, world)? else { return Ok(None) };
    let keys: Option<Vec<VaultKey>> = text.lines().map(VaultKey::of_text).collect();
    match keys.filter(|keys| !keys.is_empty()) {
        Some(keys) => Ok(Some(keys)),
        None => Err(VaultError::InvalidKeyFile { path: path.to_owned() }.into()),
    }
}

/// The text of a file that only its owner can read.
pub(crate) fn read_private(path: &Path, world: &World) -> Result<Option<Zeroizing<String>>> {
    let text = read_checked(path, LIMIT, |found| {
        // Root can read every file anyway.
        let is_own = found.uid() == world.uid() || found.uid() == 0;
        match found.mode() & 0o077 {
            0 if is_own => Ok(()),
            _ => {
                Err(VaultError::KeyFileExposed { path: path.to_owned(), mode: found.mode() & 0o7777 }.into())
            }
        }
    })?;
    Ok(text.map(Zeroizing::new))
}

/// The file with the key, as the settings say.
pub(crate) fn key_file(state: &State, dir: &Path) -> Result<PathBuf> {
    let said = state.settings()?.get("vault.key-file")?;
    match said.as_ref().and_then(|found| found.value.as_str()).map(Path::new) {
        None => Ok(dir.join("key")),
        Some(path) if path.is_absolute() => Ok(path.to_owned()),
        // One that depended on the working directory would be another file in each.
        Some(path) => Err(UsageError::InvalidValue {
            place: "vault.key-file".into(),
            value: path.to_string_lossy().into_owned(),
            expected: "an absolute path".into(),
        }
        .into()),
    }
}

/// A key file and the lock on its directory, under which it is changed.
pub(crate) struct KeyFile<'a> {
    path: PathBuf,
    /// Name in the directory that really holds it.
    name: PathBuf,
    dir: DirLock<'a>,
    world: &'a World,
}

enum DirLock<'a> {
    Own(LockedDir),
    Vault(&'a LockedDir),
}

impl<'a> KeyFile<'a> {
    /// The file that the settings say. The vault's directory, where it usually is, is locked already.
    pub(crate) fn of(state: &'a State, vault: &'a LockedDir) -> Result<Self> {
        let path = key_file(state, vault.path())?;
        // The directory that really holds the file is the one to lock.
        let real = crate::files::resolve_links(&path)?;
        let inode = |dir: &Path| dir.metadata().ok().map(|found| (found.dev(), found.ino()));
        let parent = real.parent().unwrap_or(Path::new("/"));
        // By inode, because two paths can lead to one directory, and locking it twice would deadlock.
        let is_in_vault = inode(parent).is_some_and(|found| Some(found) == inode(vault.path()));
        let (dir, name) = if is_in_vault {
            (DirLock::Vault(vault), PathBuf::from(real.file_name().unwrap_or_default()))
        } else {
            let (dir, name) = LockedDir::of_file(&state.locker()?, &path, 0o700)?;
            (DirLock::Own(dir), name)
        };
        Ok(KeyFile { path, name, dir, world: state.world() })
    }

    /// Key, made first if it is not there.
    pub(crate) fn key(&self) -> Result<VaultKey> {
        match read_key_file(&self.path, self.world)?.and_then(|keys| keys.into_iter().next()) {
            Some(key) => Ok(key),
            None => {
                let key = VaultKey::generate()?;
                self.write(&[&key])?;
                Ok(key)
            }
        }
    }

    /// Adds a new key. The existing keys still open what they have sealed.
    pub(crate) fn add_new(&self) -> Result<VaultKey> {
        let (old, new) = (read_key_file(&self.path, self.world)?.unwrap_or_default(), VaultKey::generate()?);
        // The old keys stay until the file is resealed: a crash in between must not lose the vault.
        let all: Vec<&VaultKey> = [&new].into_iter().chain(&old).collect();
        self.write(&all)?;
        Ok(new)
    }

    /// Takes a key out that is no longer needed; with the last one the file goes, if it is the vault's own. Others in a
    /// file that vaults share stay.
    pub(crate) fn drop_key(&self, id: &str) -> Result<()> {
        let keys = read_key_file(&self.path, self.world)?.unwrap_or_default();
        let left: Vec<&VaultKey> = keys.iter().filter(|key| key.id() != id).collect();
        match &self.dir {
            _ if left.len() == keys.len() => Ok(()),
            DirLock::Vault(dir) if left.is_empty() => dir.remove(&self.name).map(drop),
            // An empty file would be one without a key.
            DirLock::Own(_) if left.is_empty() => Ok(()),
            _ => self.write(&left),
        }
    }

    fn write(&self, keys: &[&VaultKey]) -> Result<()> {
        let mut text = Zeroizing::new(String::new());
        for key in keys {
            text.push_str(&key.to_text());
            text.push('\n');
        }
        let dir = match &self.dir {
            DirLock::Own(dir) => dir,
            DirLock::Vault(dir) => dir,
        };
        dir.replace(&self.name, &text, 0o600)
    }
}

/// A key that a passphrase has opened, kept for a while in the runtime directory.
#[derive(Serialize, Deserialize)]
struct CachedKey {
    key: String,
    /// On the clock that cannot be set back.
    until_ms: u64,
    boot: String,
}

impl Drop for CachedKey {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.key);
    }
}

/// The directory and the name of a kept key; none where no runtime directory is safe to use.
fn kept_place<'a>(state: &'a State, key_id: &str) -> Option<(&'a Path, String)> {
    // The id is from a file that anybody may have written.
    let is_id = key_id.len() == 16 && unhex(key_id).is_some();
    let dir = state.runtime_dir().ok().filter(|_| is_id)?;
    Some((dir, format!("vault-key-{key_id}")))
}

/// The path of a kept key.
pub(crate) fn kept_file(state: &State, key_id: &str) -> Option<PathBuf> {
    kept_place(state, key_id).map(|(dir, name)| dir.join(name))
}

/// Keeps a key for a time; `false` if no runtime directory is safe to use.
pub(crate) fn keep(state: &State, key: &VaultKey, time: Duration) -> Result<bool> {
    let Some((dir, name)) = kept_place(state, &key.id()) else { return Ok(false) };
    // The wall clock can be set back, and the key would then stay open.
    let until = state.world().since_boot() + time;
    let until_ms = u64::try_from(until.as_millis()).unwrap_or(u64::MAX);
    let kept = CachedKey { key: key.to_text().to_string(), until_ms, boot: crate::process::boot_id() };
    let text = Zeroizing::new(serde_json::to_string(&kept).unwrap_or_default());
    let locked = LockedDir::lock(&state.locker()?, dir, 0o700)?;
    // It may have been made by someone else since it was looked at.
    if crate::runtime::require_private(dir, state.world().uid()).is_err() {
        return Ok(false);
    }
    // A file that is replaced keeps its owner and mode; this one must be new.
    locked.remove(Path::new(&name))?;
    // A kept key counts within one boot only, so a crash may lose it.
    locked.replace_for_now(Path::new(&name), &text, 0o600)?;
    Ok(true)
}

/// The key with this id, while it is kept, and for how much longer.
pub(crate) fn kept(state: &State, key_id: &str) -> Result<Option<(VaultKey, Duration)>> {
    let Some((dir, name)) = kept_place(state, key_id) else { return Ok(None) };
    let Some(text) = read_own(dir, &name, state.world().uid())? else {
        // A file that is exposed or not ours must not be found again as a key.
        return forget(state, key_id).map(|_| None);
    };
    let kept: Option<CachedKey> =
        serde_json::from_str(&text).ok().filter(|kept: &CachedKey| kept.boot == crate::process::boot_id());
    let left = kept.as_ref().and_then(|kept| {
        Duration::from_millis(kept.until_ms)
            .checked_sub(state.world().since_boot())
            .filter(|left| !left.is_zero())
    });
    let key = kept.as_ref().and_then(|kept| VaultKey::of_text(&kept.key)).filter(|key| key.id() == key_id);
    match (key, left) {
        (Some(key), Some(left)) => Ok(Some((key, left))),
        _ => forget(state, key_id).map(|_| None),
    }
}

/// Deletes a kept key; returns whether it existed.
pub(crate) fn forget(state: &State, key_id: &str) -> Result<bool> {
    let Some((dir, name)) = kept_place(state, key_id) else { return Ok(false) };
    // Without a kept key nothing is locked or written.
    if dir.join(&name).symlink_metadata().is_err() {
        return Ok(false);
    }
    LockedDir::lock(&state.locker()?, dir, 0o700)?.remove(Path::new(&name))
}

/// The text of a file that this user alone can read. Anything else in its place, a link for example, counts as none.
fn read_own(dir: &Path, name: &str, uid: u32) -> Result<Option<Zeroizing<String>>> {
    const LARGEST: u64 = 4096;
    let fail = |error| Error::io("read", dir.join(name), error);
    let Ok(file) = NoFollowDir::open(dir).and_then(|dir| dir.open_file(name.as_ref())) else {
        return Ok(None);
    };
    let found = file.metadata().map_err(fail)?;
    // On the opened file, so that it cannot be exchanged after the check.
    if found.mode() & 0o077 != 0 || found.uid() != uid {
        return Ok(None);
    }
    let mut text = Zeroizing::new(String::new());
    file.take(LARGEST).read_to_string(&mut text).map_err(fail)?;
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn salt_determines_the_key_of_a_passphrase() {
        let small = |salt: &str| KeySource::Passphrase { salt: salt.into(), memory: 64, passes: 1 };
        let id = |salt: &str, words: &str| small(salt).derive(&Secret::new(words)).unwrap().id();
        let (one, two) = ("00112233445566778899aabbccddeeff", "ff112233445566778899aabbccddeeff");
        assert_eq!(id(one, "open sesame"), id(one, "open sesame"));
        assert_ne!(id(one, "open sesame"), id(one, "open sesame!"));
        assert_ne!(id(one, "open sesame"), id(two, "open sesame"));
    }

    #[test]
    fn a_file_cannot_ask_for_all_memory_or_all_day() {
        let salt = "00112233445566778899aabbccddeeff".to_owned();
        for (memory, passes) in [(u32::MAX, 1), (64, u32::MAX), (1, 1)] {
            let source = KeySource::Passphrase { salt: salt.clone(), memory, passes };
            assert!(source.derive(&Secret::new("x")).is_none());
        }
        assert!(KeySource::File.derive(&Secret::new("x")).is_none());
    }
}
