//! Sealed file: authenticated encryption with one key.
//!
//! The file is a line of JSON: format, version, key source, a nonce that is new at every write, and the sealed
//! content. Everything before the content is authenticated with it. Only one encoding is valid and readers refuse any
//! other, so every changed byte is detected.

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key as CipherKey, XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::error::Result;
use crate::vault_key::VaultKey;
use sessile_wire::hex::{hex, unhex};

/// The version that is written, and the newest that is understood.
pub const VERSION: u64 = 1;
const FORMAT: &str = "sessile vault";

/// Source of a file's key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "kebab-case", deny_unknown_fields)]
pub enum KeySource {
    /// From a key file.
    File,
    /// From the desktop's keychain.
    Keychain,
    /// From a passphrase, by Argon2id.
    Passphrase {
        /// The salt, in hexadecimal.
        salt: String,
        /// The memory it takes, in KiB.
        memory: u32,
        /// Number of passes.
        passes: u32,
    },
}

/// Header of a sealed file. The order of the fields is the order in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    format: String,
    version: u64,
    /// Source of the key.
    pub key: KeySource,
    /// Id of the key.
    pub key_id: String,
    nonce: String,
}

/// Sealed file, read and not yet decrypted.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SealedFile {
    /// Header.
    pub header: Header,
    sealed: String,
}

/// Reason why a text cannot be unsealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnsealError {
    /// Written by a newer version.
    TooNew(u64),
    /// Damaged.
    Damaged(String),
    /// Sealed with another key.
    OtherKey,
}

impl SealedFile {
    /// Seals a content under a key.
    pub fn seal(content: &str, key: &VaultKey, source: KeySource) -> Result<Self> {
        // 24 random bytes, which XChaCha20 takes, do not repeat in practice, so no counter has to be stored.
        let nonce: [u8; 24] = crate::random::bytes()?;
        let header = Header {
            format: FORMAT.to_owned(),
            version: VERSION,
            key: source,
            key_id: key.id(),
            nonce: hex(&nonce),
        };
        let payload = Payload { msg: content.as_bytes(), aad: &header.to_authenticate() };
        // It fails only for contents of many gigabytes.
        let sealed = key.cipher().encrypt(&XNonce::from(nonce), payload).unwrap_or_default();
        Ok(SealedFile { header, sealed: hex(&sealed) })
    }

    /// The text of the file.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }

    /// Reads the text of a file, and opens nothing yet.
    pub fn of_text(text: &str) -> Result<Self, UnsealError> {
        #[derive(Deserialize)]
        struct FileHeader {
            header: Stamp,
        }
        #[derive(Deserialize)]
        struct Stamp {
            format: String,
            version: u64,
        }
        let damaged = |reason: &str| UnsealError::Damaged(reason.to_owned());
        let unreadable =
            |error: serde_json::Error| UnsealError::Damaged(crate::vault::credential::unreadable(&error));
        // The version first: what a newer one wrote may look different in everything else.
        let FileHeader { header: Stamp { format, version } } =
            serde_json::from_str(text).map_err(unreadable)?;
        if format != FORMAT {
            return Err(damaged("not a vault file"));
        }
        if version > VERSION {
            return Err(UnsealError::TooNew(version));
        }
        let sealed: SealedFile = serde_json::from_str(text).map_err(unreadable)?;
        // Whitespace, key order and letter case of hex are not authenticated, so any other spelling is refused.
        if version < VERSION || sealed.to_text() != text {
            return Err(damaged("the file was modified"));
        }
        Ok(sealed)
    }

    /// The content, if this is the key and nothing was changed.
    pub fn open(&self, key: &VaultKey) -> Result<Zeroizing<String>, UnsealError> {
        let damaged = |reason: &str| UnsealError::Damaged(reason.to_owned());
        // Tells a wrong key from damage, which decryption alone cannot.
        if self.header.key_id != key.id() {
            return Err(UnsealError::OtherKey);
        }
        let nonce = unhex(&self.header.nonce).and_then(|nonce| <[u8; 24]>::try_from(nonce).ok());
        let (Some(nonce), Some(sealed)) = (nonce, unhex(&self.sealed)) else {
            return Err(damaged("the file was modified"));
        };
        let payload = Payload { msg: &sealed, aad: &self.header.to_authenticate() };
        let content = key
            .cipher()
            .decrypt(&XNonce::from(nonce), payload)
            .map_err(|_| damaged("authentication of the content failed"))?;
        match String::from_utf8(content) {
            Ok(content) => Ok(Zeroizing::new(content)),
            Err(_) => Err(damaged("the content is not valid UTF-8")),
        }
    }
}

impl Header {
    fn to_authenticate(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl VaultKey {
    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&CipherKey::from(*self.bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sealed(content: &str) -> (VaultKey, String) {
        let key = VaultKey::generate().unwrap();
        let text = SealedFile::seal(content, &key, KeySource::File).unwrap().to_text();
        (key, text)
    }

    fn opened(text: &str, key: &VaultKey) -> Result<Zeroizing<String>, UnsealError> {
        SealedFile::of_text(text)?.open(key)
    }

    #[test]
    fn sealed_file_opens_with_its_key_only() {
        let (key, text) = sealed("content");
        assert_eq!(opened(&text, &key).unwrap().as_str(), "content");
        assert_eq!(opened(&text, &VaultKey::generate().unwrap()).unwrap_err(), UnsealError::OtherKey);
        assert!(!text.contains("content"));
        assert_ne!(text, SealedFile::seal("content", &key, KeySource::File).unwrap().to_text());
    }

    #[test]
    fn no_flipped_bit_goes_unnoticed() {
        let (key, text) = sealed("content");
        for at in 0..text.len() {
            for bit in 0..8 {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                let Ok(flipped) = String::from_utf8(bytes) else { continue };
                assert!(opened(&flipped, &key).is_err(), "byte {at}, bit {bit}: {flipped}");
            }
        }
    }

    #[test]
    fn no_missing_or_added_end_goes_unnoticed() {
        let (key, text) = sealed("content");
        for at in 0..text.len() {
            assert!(matches!(opened(&text[..at], &key), Err(UnsealError::Damaged(_))), "{at}");
        }
        for more in ["\n", " ", "x", "{}"] {
            assert!(opened(&format!("{text}{more}"), &key).is_err());
        }
    }

    #[test]
    fn newer_version_is_reported_first() {
        let text = r#"{"header":{"format":"sessile vault","version":2,"shape":[]},"parts":[1]}"#;
        assert_eq!(SealedFile::of_text(text).unwrap_err(), UnsealError::TooNew(2));
    }

    proptest! {
        #[test]
        fn any_content_comes_back(content in ".{0,200}") {
            let (key, text) = sealed(&content);
            let back = opened(&text, &key).unwrap();
            prop_assert_eq!(back.as_str(), content.as_str());
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in ".{0,200}|[{}\":,a-z0-9]{0,200}") {
            let _ = opened(&text, &VaultKey::of_bytes([7; 32]));
        }
    }
}
