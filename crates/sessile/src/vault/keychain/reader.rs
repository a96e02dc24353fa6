//! Reading D-Bus's format.
//!
//! A message may come from anyone. Every length is looked at before it is believed, nothing is copied, and what is not
//! known is stepped over without looking into it.

use super::wire::{Malformed, ObjectPath};

/// How deep types and variants may be nested; D-Bus's own limit.
const DEEPEST: u32 = 64;

/// Reads values from a message.
#[derive(Clone)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    big_endian: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], big_endian: bool) -> Self {
        Reader { bytes, at: 0, big_endian }
    }

    /// How far it has read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let end = self.at.checked_add(length).ok_or(Malformed("a length beyond all bounds"))?;
        let taken = self.bytes.get(self.at..end).ok_or(Malformed("it ends too early"))?;
        self.at = end;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.align(N)?;
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| Malformed("it ends too early"))
    }

    pub(super) fn align(&mut self, to: usize) -> Result<(), Malformed> {
        self.take(self.at.next_multiple_of(to) - self.at).map(drop)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        self.fixed::<1>().map(|[byte]| byte)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        let bytes = self.fixed()?;
        Ok(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        let bytes = self.fixed()?;
        Ok(if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    pub(super) fn bool(&mut self) -> Result<bool, Malformed> {
        match self.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed("a truth value that is neither")),
        }
    }

    fn length(&mut self) -> Result<usize, Malformed> {
        usize::try_from(self.u32()?).map_err(|_| Malformed("a length beyond all bounds"))
    }

    fn text(&mut self, length: usize) -> Result<&'a str, Malformed> {
        let text = self.take(length)?;
        if self.take(1)? != [0] || text.contains(&0) {
            return Err(Malformed("a text that does not end where it says"));
        }
        std::str::from_utf8(text).map_err(|_| Malformed("a text that is not UTF-8"))
    }

    pub(super) fn string(&mut self) -> Result<&'a str, Malformed> {
        let length = self.length()?;
        self.text(length)
    }

    pub(super) fn path(&mut self) -> Result<ObjectPath, Malformed> {
        ObjectPath::parse(self.string()?)
    }

    pub(super) fn signature(&mut self) -> Result<&'a str, Malformed> {
        let length = usize::from(self.byte()?);
        self.text(length)
    }

    /// An array of bytes.
    pub(super) fn blob(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.length()?;
        self.take(length)
    }

    /// An array whose elements begin at multiples of `to`. Each is read by `element`, which cannot leave the array.
    pub(super) fn array(
        &mut self,
        to: usize,
        mut element: impl FnMut(&mut Self) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        let length = self.length()?;
        self.align(to)?;
        let start = self.at;
        self.take(length)?;
        let mut inner = Reader { bytes: &self.bytes[..self.at], at: start, big_endian: self.big_endian };
        while inner.at < inner.bytes.len() {
            inner.align(to)?;
            let before = inner.at;
            element(&mut inner)?;
            if inner.at == before {
                return Err(Malformed("an element of no size"));
            }
        }
        Ok(())
    }

    /// An array of object paths.
    pub(super) fn paths(&mut self) -> Result<Vec<ObjectPath>, Malformed> {
        let mut paths = Vec::new();
        self.array(4, |reader| {
            paths.push(reader.path()?);
            Ok(())
        })?;
        Ok(paths)
    }

    /// The head of a variant, which must hold this type; its value is read next.
    pub(super) fn variant(&mut self, signature: &str) -> Result<(), Malformed> {
        if self.signature()? == signature { Ok(()) } else { Err(Malformed("a value of another type")) }
    }

    /// Steps over a variant, whatever it holds.
    pub(super) fn skip_variant(&mut self) -> Result<(), Malformed> {
        self.skip_value(b"v", 0).map(drop)
    }

    /// Steps over a value of the first type in the signature, and says what follows that type.
    fn skip_value<'s>(&mut self, signature: &'s [u8], depth: u32) -> Result<&'s [u8], Malformed> {
        let (&kind, rest) = signature.split_first().ok_or(Malformed("a signature that is too short"))?;
        if depth > DEEPEST {
            return Err(Malformed("values nested too deep"));
        }
        match kind {
            b's' | b'o' => self.string().map(drop)?,
            b'g' => self.signature().map(drop)?,
            b'v' => {
                let held = self.signature()?;
                if !self.skip_value(held.as_bytes(), depth + 1)?.is_empty() {
                    return Err(Malformed("a variant of several values"));
                }
            }
            b'a' => {
                let after = after_type(rest, depth + 1)?;
                let length = self.length()?;
                self.align(alignment(rest[0])?)?;
                self.take(length)?;
                return Ok(after);
            }
            b'(' => {
                self.align(8)?;
                let mut rest = rest;
                while rest.first() != Some(&b')') {
                    rest = self.skip_value(rest, depth + 1)?;
                }
                return Ok(&rest[1..]);
            }
            basic => {
                let size = alignment(basic)?;
                self.align(size)?;
                self.take(size)?;
            }
        }
        Ok(rest)
    }
}

/// What follows the first type of a signature.
fn after_type(signature: &[u8], depth: u32) -> Result<&[u8], Malformed> {
    let (&kind, mut rest) = signature.split_first().ok_or(Malformed("a signature that is too short"))?;
    if depth > DEEPEST {
        return Err(Malformed("types nested too deep"));
    }
    match kind {
        b'a' => after_type(rest, depth + 1),
        b'(' | b'{' => {
            let end = if kind == b'(' { b')' } else { b'}' };
            while rest.first() != Some(&end) {
                rest = after_type(rest, depth + 1)?;
            }
            Ok(&rest[1..])
        }
        _ => alignment(kind).map(|_| rest),
    }
}

/// What the values of a type are aligned to, which for numbers is their size too.
fn alignment(kind: u8) -> Result<usize, Malformed> {
    match kind {
        b'y' | b'g' | b'v' => Ok(1),
        b'n' | b'q' => Ok(2),
        b'b' | b'i' | b'u' | b'h' | b's' | b'o' | b'a' => Ok(4),
        b'x' | b't' | b'd' | b'(' | b'{' => Ok(8),
        _ => Err(Malformed("a type that there is not")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::Writer;
    use super::*;
    use proptest::prelude::*;

    /// Bytes that look like messages more often than mere chance would have it.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![3 => Just(0), 2 => 0..16_u8, 2 => proptest::sample::select(b"a(){}sovgyu".to_vec()), 1 => any::<u8>()];
        proptest::collection::vec(byte, 0..200)
    }

    proptest! {
        #[test]
        fn nothing_that_comes_makes_it_panic(bytes in bytes(), big in any::<bool>(), lead in 0..9_usize) {
            let reader = || {
                let mut reader = Reader::new(&bytes, big);
                let _ = reader.take(lead);
                reader
            };
            let _ = reader().u64();
            let _ = reader().bool();
            let _ = reader().string();
            let _ = reader().path();
            let _ = reader().signature();
            let _ = reader().blob();
            let _ = reader().paths();
            let _ = reader().variant("s");
            let _ = reader().skip_variant();
            let _ = reader().array(8, |reader| reader.skip_variant());
            let _ = reader().array(8, |_| Ok(()));
        }

        #[test]
        fn any_signature_is_stepped_over_or_rejected(signature in "[a(){}sovgyuxtnqbidhz]{0,40}", bytes in bytes()) {
            let mut writer = Writer::default();
            writer.signature(&signature).unwrap();
            writer.raw(&bytes);
            let _ = Reader::new(writer.bytes(), false).skip_variant();
        }
    }

    #[test]
    fn a_variant_is_stepped_over_whatever_it_holds() {
        let mut writer = Writer::default();
        writer.signature("(ya{sv}vsaat)").unwrap();
        writer.align(8);
        writer.raw(&[1]);
        writer
            .array(8, |writer| {
                writer.string("key")?;
                writer.signature("u")?;
                writer.u32(7);
                Ok(())
            })
            .unwrap();
        writer.signature("as").unwrap();
        writer.array(4, |writer| writer.string("x")).unwrap();
        writer.string("y").unwrap();
        writer.array(4, |writer| writer.array(8, |_| Ok(()))).unwrap();
        writer.string("after").unwrap();
        let mut reader = Reader::new(writer.bytes(), false);
        reader.skip_variant().unwrap();
        assert_eq!(reader.string(), Ok("after"));
    }

    #[test]
    fn lengths_are_not_believed() {
        let huge = [0xff, 0xff, 0xff, 0xff, b'a', 0];
        assert!(Reader::new(&huge, false).string().is_err());
        assert!(Reader::new(&huge, false).blob().is_err());
        assert!(Reader::new(&huge, false).paths().is_err());
        // Variants in variants, as deep as the message is long.
        let deep = b"\x01v\0".repeat(100_000);
        assert_eq!(Reader::new(&deep, false).skip_variant(), Err(Malformed("values nested too deep")));
    }

    #[test]
    fn the_other_byte_order_is_read() {
        assert_eq!(Reader::new(&[0, 0, 1, 2], true).u32(), Ok(258));
        assert_eq!(Reader::new(&[0, 0, 0, 2, b'o', b'k', 0], true).string(), Ok("ok"));
    }
}
