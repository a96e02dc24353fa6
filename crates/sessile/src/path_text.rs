//! Paths as text without loss, for the history, the store's keys and JSON that is read back.
//!
//! A path that is UTF-8 is its own text. Any other path is `bytes:` and the hexadecimal digits of its bytes; absolute
//! paths never begin like that, so no two paths have the same text.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serializer};

use sessile_wire::hex::{hex, unhex};

const BYTES: &str = "bytes:";

/// Encodes a path as text without loss.
pub fn encode(path: &Path) -> String {
    match path.to_str() {
        Some(text) => text.to_owned(),
        None => format!("{BYTES}{}", hex(path.as_os_str().as_bytes())),
    }
}

/// Decodes a path from its text.
pub fn decode(text: &str) -> PathBuf {
    match text.strip_prefix(BYTES).and_then(unhex) {
        Some(bytes) => PathBuf::from(OsString::from_vec(bytes)),
        None => PathBuf::from(text),
    }
}

/// Serializes a path as its text, for `#[serde(with = "path_text")]`.
pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&encode(path))
}

/// Deserializes a path from its text, for `#[serde(with = "path_text")]`.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    String::deserialize(deserializer).map(|text| decode(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_absolute_path_survives_encoding() {
        for bytes in
            [&b"/home/ann"[..], b"/home/caf\xe9", "/home/caf\u{e9}".as_bytes(), b"/bytes:00", b"/\xff"]
        {
            let path = PathBuf::from(OsString::from_vec(bytes.to_vec()));
            assert_eq!(decode(&encode(&path)), path);
        }
        assert_eq!(encode(Path::new("/home/ann")), "/home/ann");
    }
}
