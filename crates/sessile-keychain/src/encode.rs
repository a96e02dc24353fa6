//! Encoding of D-Bus values, little-endian; [`decode`](crate::decode) is the counterpart.
//!
//! A message may hold a secret, so the buffer is overwritten when it is dropped.

use std::fmt;

use sessile::vault::KeychainError;
use zeroize::Zeroizing;

/// Bytes that cannot be decoded, or a value that cannot be encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WireError(pub(crate) &'static str);

impl From<WireError> for KeychainError {
    fn from(WireError(what): WireError) -> Self {
        KeychainError::Protocol(what.to_owned())
    }
}

/// Valid path of a D-Bus object: a bus disconnects a client that sends an invalid one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectPath(String);

impl ObjectPath {
    pub(crate) fn parse(text: &str) -> Result<Self, WireError> {
        let names = text.strip_prefix('/').ok_or(WireError("object path without a leading slash"))?;
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        if !names.is_empty() && !names.split('/').all(is_name) {
            return Err(WireError("invalid name in an object path"));
        }
        Ok(ObjectPath(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the path is `/`, which means that no object exists.
    pub(crate) fn is_none(&self) -> bool {
        self.0 == "/"
    }
}

impl fmt::Display for ObjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Buffer that values are encoded into.
#[derive(Default)]
pub(crate) struct Encoder {
    bytes: Zeroizing<Vec<u8>>,
}

impl Encoder {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        let needed = self.bytes.len() + bytes.len();
        if needed > self.bytes.capacity() {
            // A vector that grows by itself would leave its old content behind.
            let mut larger = Zeroizing::new(Vec::with_capacity(needed.max(256) * 2));
            larger.extend_from_slice(&self.bytes);
            self.bytes = larger;
        }
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn align(&mut self, to: usize) {
        let length = self.bytes.len();
        self.raw(&[0; 8][..length.next_multiple_of(to) - length]);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.align(4);
        self.raw(&value.to_le_bytes());
    }

    pub(crate) fn bool(&mut self, value: bool) {
        self.u32(u32::from(value));
    }

    pub(crate) fn string(&mut self, value: &str) -> Result<(), WireError> {
        // A bus disconnects a client whose string has one.
        if value.contains('\0') {
            return Err(WireError("string contains a NUL byte"));
        }
        self.u32(length(value.len())?);
        self.raw(value.as_bytes());
        self.raw(&[0]);
        Ok(())
    }

    pub(crate) fn path(&mut self, value: &ObjectPath) -> Result<(), WireError> {
        self.string(value.as_str())
    }

    pub(crate) fn signature(&mut self, value: &str) -> Result<(), WireError> {
        let length = u8::try_from(value.len()).map_err(|_| WireError("signature is too long"))?;
        self.raw(&[length]);
        self.raw(value.as_bytes());
        self.raw(&[0]);
        Ok(())
    }

    /// An array of bytes.
    pub(crate) fn blob(&mut self, value: &[u8]) -> Result<(), WireError> {
        self.u32(length(value.len())?);
        self.raw(value);
        Ok(())
    }

    /// An array whose elements begin at multiples of `to`: 8 for structures and dictionaries.
    pub(crate) fn array(
        &mut self,
        to: usize,
        elements: impl FnOnce(&mut Self) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        // The length is known only after the elements; its place is filled in below.
        self.u32(0);
        let place = self.bytes.len() - 4;
        self.align(to);
        let start = self.bytes.len();
        elements(self)?;
        let length = length(self.bytes.len() - start)?;
        self.bytes[place..place + 4].copy_from_slice(&length.to_le_bytes());
        Ok(())
    }

    /// A dictionary of texts.
    pub(crate) fn texts(&mut self, entries: &[(&str, &str)]) -> Result<(), WireError> {
        self.array(8, |encoder| {
            for (name, value) in entries {
                encoder.align(8);
                encoder.string(name)?;
                encoder.string(value)?;
            }
            Ok(())
        })
    }
}

fn length(length: usize) -> Result<u32, WireError> {
    u32::try_from(length).map_err(|_| WireError("message is too long"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Decoder;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn encoded_values_decode(
            lead in any::<u8>(),
            number in any::<u32>(),
            truth in any::<bool>(),
            texts in proptest::collection::vec(("[^\0]{0,20}", "[^\0]{0,20}"), 0..5),
            paths in proptest::collection::vec("(/[A-Za-z0-9_]{1,9}){1,3}", 0..4),
            blob in proptest::collection::vec(any::<u8>(), 0..700),
        ) {
            let pairs: Vec<(&str, &str)> = texts.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
            let paths: Vec<_> = paths.iter().map(|path| ObjectPath::parse(path).unwrap()).collect();
            let mut encoder = Encoder::default();
            encoder.raw(&[lead]);
            encoder.u32(number);
            encoder.bool(truth);
            encoder.signature("a{ss}").unwrap();
            encoder.texts(&pairs).unwrap();
            encoder.blob(&blob).unwrap();
            encoder.array(4, |encoder| paths.iter().try_for_each(|path| encoder.path(path))).unwrap();
            encoder.string("end").unwrap();

            let mut decoder = Decoder::new(encoder.bytes(), false);
            prop_assert_eq!(decoder.byte(), Ok(lead));
            prop_assert_eq!(decoder.u32(), Ok(number));
            prop_assert_eq!(decoder.bool(), Ok(truth));
            decoder.variant("a{ss}").unwrap();
            let mut read = Vec::new();
            decoder.array(8, |decoder| {
                read.push((decoder.string()?, decoder.string()?));
                Ok(())
            }).unwrap();
            prop_assert_eq!(read, pairs);
            prop_assert_eq!(decoder.blob(), Ok(blob.as_slice()));
            prop_assert_eq!(decoder.paths(), Ok(paths));
            prop_assert_eq!(decoder.string(), Ok("end"));
            prop_assert!(decoder.byte().is_err());
        }
    }

    #[test]
    fn layout_follows_the_specification() {
        let mut encoder = Encoder::default();
        encoder.raw(&[7]);
        encoder.texts(&[("a", "bc")]).unwrap();
        // A byte, up to 4; the length without the filling after it; the entry at 8.
        let expected = b"\x07\0\0\0\x0f\0\0\0\x01\0\0\0a\0\0\0\x02\0\0\0bc\0";
        assert_eq!(encoder.bytes(), expected);
    }

    #[test]
    fn invalid_value_is_not_encoded() {
        assert!(Encoder::default().string("a\0b").is_err());
        for wrong in ["", "a", "/a/", "//", "/a//b", "/a-b", "/\u{e4}"] {
            assert!(ObjectPath::parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(ObjectPath::parse("/").unwrap().is_none());
        assert!(!ObjectPath::parse("/a/b_9").unwrap().is_none());
    }
}
