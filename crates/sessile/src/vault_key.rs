//! The key of a sealed vault.

use sessile_wire::hex::{hex, unhex};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::error::Result;

/// Key of a vault, which does not print.
#[derive(Clone)]
pub struct VaultKey(Zeroizing<[u8; 32]>);

impl VaultKey {
    /// A new one.
    pub(crate) fn generate() -> Result<Self> {
        Ok(VaultKey::of_bytes(crate::random::bytes()?))
    }

    /// The key of these bytes.
    pub fn of_bytes(bytes: [u8; 32]) -> Self {
        VaultKey(Zeroizing::new(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Text of the key in a key file, a keychain or the runtime directory.
    pub(crate) fn to_text(&self) -> Zeroizing<String> {
        Zeroizing::new(hex(self.0.as_slice()))
    }

    /// The key of such a text.
    pub(crate) fn of_text(text: &str) -> Option<Self> {
        // Key files may have been edited or copied with a line break.
        let bytes = Zeroizing::new(unhex(text.trim_end_matches(['\r', '\n']))?);
        Some(VaultKey::of_bytes(<[u8; 32]>::try_from(bytes.as_slice()).ok()?))
    }

    /// Id that identifies the key without revealing it.
    pub(crate) fn id(&self) -> String {
        // A prefix of its own: the id must not be usable as another digest of the key.
        let digest = Sha256::new().chain_update(b"sessile vault key id\0").chain_update(*self.0).finalize();
        // 64 bits tell keys apart and reveal nothing that helps to guess 256 bits.
        hex(&digest[..8])
    }
}

impl std::fmt::Debug for VaultKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VaultKey({})", self.id())
    }
}
