//! D-Bus's own format: values laid out one after the other, each at a multiple of its size.
//!
//! Here it is written, little-endian; [`reader`](super::reader) reads it. What is in a message may be secret, so the
//! buffer is overwritten when it goes.

use std::fmt;

use zeroize::Zeroizing;

/// What was wrong with bytes that were read, or with values that were to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

/// The name of an object, which is known to be well-formed: a bus hangs up on who says another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ObjectPath(String);

impl ObjectPath {
    pub(super) fn parse(text: &str) -> Result<Self, Malformed> {
        let names = text.strip_prefix('/').ok_or(Malformed("an object path without a slash"))?;
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        if !names.is_empty() && !names.split('/').all(is_name) {
            return Err(Malformed("an object path with a wrong name"));
        }
        Ok(ObjectPath(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// `/` stands where there is no object.
    pub(super) fn is_none(&self) -> bool {
        self.0 == "/"
    }
}

impl fmt::Display for ObjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Lays values out.
#[derive(Default)]
pub(super) struct Writer {
    bytes: Zeroizing<Vec<u8>>,
}

impl Writer {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        let needed = self.bytes.len() + bytes.len();
        if needed > self.bytes.capacity() {
            // A vector that grows by itself would leave its old content behind.
            let mut larger = Zeroizing::new(Vec::with_capacity(needed.max(256) * 2));
            larger.extend_from_slice(&self.bytes);
            self.bytes = larger;
        }
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn align(&mut self, to: usize) {
        let length = self.bytes.len();
        self.raw(&[0; 8][..length.next_multiple_of(to) - length]);
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.align(4);
        self.raw(&value.to_le_bytes());
    }

    pub(super) fn bool(&mut self, value: bool) {
        self.u32(u32::from(value));
    }

    pub(super) fn string(&mut self, value: &str) -> Result<(), Malformed> {
        if value.contains('\0') {
            return Err(Malformed("a text with a zero byte"));
        }
        self.u32(length(value.len())?);
        self.raw(value.as_bytes());
        self.raw(&[0]);
        Ok(())
    }

    pub(super) fn path(&mut self, value: &ObjectPath) -> Result<(), Malformed> {
        self.string(value.as_str())
    }

    pub(super) fn signature(&mut self, value: &str) -> Result<(), Malformed> {
        let length = u8::try_from(value.len()).map_err(|_| Malformed("a signature that is too long"))?;
        self.raw(&[length]);
        self.raw(value.as_bytes());
        self.raw(&[0]);
        Ok(())
    }

    /// An array of bytes.
    pub(super) fn blob(&mut self, value: &[u8]) -> Result<(), Malformed> {
        self.u32(length(value.len())?);
        self.raw(value);
        Ok(())
    }

    /// An array whose elements begin at multiples of `to`: 8 for structures and dictionaries.
    pub(super) fn array(
        &mut self,
        to: usize,
        elements: impl FnOnce(&mut Self) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
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
    pub(super) fn texts(&mut self, entries: &[(&str, &str)]) -> Result<(), Malformed> {
        self.array(8, |writer| {
            for (name, value) in entries {
                writer.align(8);
                writer.string(name)?;
                writer.string(value)?;
            }
            Ok(())
        })
    }
}

fn length(length: usize) -> Result<u32, Malformed> {
    u32::try_from(length).map_err(|_| Malformed("more than a message can hold"))
}

#[cfg(test)]
mod tests {
    use super::super::reader::Reader;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            lead in any::<u8>(),
            number in any::<u32>(),
            truth in any::<bool>(),
            texts in proptest::collection::vec(("[^\0]{0,20}", "[^\0]{0,20}"), 0..5),
            paths in proptest::collection::vec("(/[A-Za-z0-9_]{1,9}){1,3}", 0..4),
            blob in proptest::collection::vec(any::<u8>(), 0..700),
        ) {
            let pairs: Vec<(&str, &str)> = texts.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
            let paths: Vec<_> = paths.iter().map(|path| ObjectPath::parse(path).unwrap()).collect();
            let mut writer = Writer::default();
            writer.raw(&[lead]);
            writer.u32(number);
            writer.bool(truth);
            writer.signature("a{ss}").unwrap();
            writer.texts(&pairs).unwrap();
            writer.blob(&blob).unwrap();
            writer.array(4, |writer| paths.iter().try_for_each(|path| writer.path(path))).unwrap();
            writer.string("end").unwrap();

            let mut reader = Reader::new(writer.bytes(), false);
            prop_assert_eq!(reader.byte(), Ok(lead));
            prop_assert_eq!(reader.u32(), Ok(number));
            prop_assert_eq!(reader.bool(), Ok(truth));
            reader.variant("a{ss}").unwrap();
            let mut read = Vec::new();
            reader.array(8, |reader| {
                read.push((reader.string()?, reader.string()?));
                Ok(())
            }).unwrap();
            prop_assert_eq!(read, pairs);
            prop_assert_eq!(reader.blob(), Ok(blob.as_slice()));
            prop_assert_eq!(reader.paths(), Ok(paths));
            prop_assert_eq!(reader.string(), Ok("end"));
            prop_assert!(reader.byte().is_err());
        }
    }

    #[test]
    fn the_layout_is_that_of_the_specification() {
        let mut writer = Writer::default();
        writer.raw(&[7]);
        writer.texts(&[("a", "bc")]).unwrap();
        // A byte, up to 4; the length without the filling after it; the entry at 8.
        let expected = b"\x07\0\0\0\x0f\0\0\0\x01\0\0\0a\0\0\0\x02\0\0\0bc\0";
        assert_eq!(writer.bytes(), expected);
    }

    #[test]
    fn what_a_bus_would_hang_up_on_is_not_written() {
        assert!(Writer::default().string("a\0b").is_err());
        for wrong in ["", "a", "/a/", "//", "/a//b", "/a-b", "/\u{e4}"] {
            assert!(ObjectPath::parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(ObjectPath::parse("/").unwrap().is_none());
        assert!(!ObjectPath::parse("/a/b_9").unwrap().is_none());
    }
}
