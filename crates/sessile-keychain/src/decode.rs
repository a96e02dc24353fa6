//! Decoding of D-Bus values from an untrusted peer.
//!
//! Every length is checked before it is used, nothing is copied, and a value of no interest is skipped unread.

use crate::encode::{ObjectPath, WireError};

/// Nesting limit of types and variants, which is D-Bus's own.
const MAX_DEPTH: u32 = 64;

/// Cursor over the values of a message.
#[derive(Clone)]
pub(crate) struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
    big_endian: bool,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8], big_endian: bool) -> Self {
        Decoder { bytes, at: 0, big_endian }
    }

    /// Offset of the next byte.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], WireError> {
        let end = self.at.checked_add(length).ok_or(WireError("length out of range"))?;
        let taken = self.bytes.get(self.at..end).ok_or(WireError("unexpected end of data"))?;
        self.at = end;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        self.align(N)?;
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| WireError("unexpected end of data"))
    }

    pub(crate) fn align(&mut self, to: usize) -> Result<(), WireError> {
        self.take(self.at.next_multiple_of(to) - self.at).map(drop)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, WireError> {
        self.fixed::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, WireError> {
        let bytes = self.fixed()?;
        Ok(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    pub(crate) fn u64(&mut self) -> Result<u64, WireError> {
        let bytes = self.fixed()?;
        Ok(if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    pub(crate) fn bool(&mut self) -> Result<bool, WireError> {
        match self.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(WireError("invalid boolean")),
        }
    }

    fn length(&mut self) -> Result<usize, WireError> {
        usize::try_from(self.u32()?).map_err(|_| WireError("length out of range"))
    }

    fn text(&mut self, length: usize) -> Result<&'a str, WireError> {
        let text = self.take(length)?;
        // The terminating zero byte is not counted in the length (D-Bus specification, "Marshaling").
        if self.take(1)? != [0] || text.contains(&0) {
            return Err(WireError("string without terminator"));
        }
        std::str::from_utf8(text).map_err(|_| WireError("string is not valid UTF-8"))
    }

    pub(crate) fn string(&mut self) -> Result<&'a str, WireError> {
        let length = self.length()?;
        self.text(length)
    }

    pub(crate) fn path(&mut self) -> Result<ObjectPath, WireError> {
        ObjectPath::parse(self.string()?)
    }

    pub(crate) fn signature(&mut self) -> Result<&'a str, WireError> {
        let length = usize::from(self.byte()?);
        self.text(length)
    }

    /// An array of bytes.
    pub(crate) fn blob(&mut self) -> Result<&'a [u8], WireError> {
        let length = self.length()?;
        self.take(length)
    }

    /// An array whose elements begin at multiples of `to`. Each is read by `element`, which cannot leave the array.
    pub(crate) fn array(
        &mut self,
        to: usize,
        mut element: impl FnMut(&mut Self) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        let length = self.length()?;
        // Padding before the first element is not counted in the length, also in an empty array.
        self.align(to)?;
        let start = self.at;
        self.take(length)?;
        // Cut off at the end and not at the start: alignment counts from the start of the bytes.
        let mut inner = Decoder { bytes: &self.bytes[..self.at], at: start, big_endian: self.big_endian };
        while inner.at < inner.bytes.len() {
            inner.align(to)?;
            let before = inner.at;
            element(&mut inner)?;
            // Otherwise an element without a size would loop for ever.
            if inner.at == before {
                return Err(WireError("element of size 0"));
            }
        }
        Ok(())
    }

    /// An array of object paths.
    pub(crate) fn paths(&mut self) -> Result<Vec<ObjectPath>, WireError> {
        let mut paths = Vec::new();
        self.array(4, |decoder| {
            paths.push(decoder.path()?);
            Ok(())
        })?;
        Ok(paths)
    }

    /// The head of a variant, which must hold this type; its value is read next.
    pub(crate) fn variant(&mut self, signature: &str) -> Result<(), WireError> {
        if self.signature()? == signature { Ok(()) } else { Err(WireError("unexpected type of value")) }
    }

    /// Steps over a variant, whatever it holds.
    pub(crate) fn skip_variant(&mut self) -> Result<(), WireError> {
        self.skip_value(b"v", 0).map(drop)
    }

    /// Steps over a value of the first type in the signature, and says what follows that type.
    fn skip_value<'s>(&mut self, signature: &'s [u8], depth: u32) -> Result<&'s [u8], WireError> {
        let (&kind, rest) = signature.split_first().ok_or(WireError("signature is too short"))?;
        if depth > MAX_DEPTH {
            return Err(WireError("values are nested too deeply"));
        }
        match kind {
            b's' | b'o' => self.string().map(drop)?,
            b'g' => self.signature().map(drop)?,
            b'v' => {
                let held = self.signature()?;
                if !self.skip_value(held.as_bytes(), depth + 1)?.is_empty() {
                    return Err(WireError("variant with several values"));
                }
            }
            b'a' => {
                let after = after_type(rest, depth + 1)?;
                let length = self.length()?;
                // Also in an empty array the padding is there.
                self.align(alignment(rest[0])?)?;
                // Skipped as a whole, so that a large array costs nothing.
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

/// Rest of a signature after its first type.
fn after_type(signature: &[u8], depth: u32) -> Result<&[u8], WireError> {
    let (&kind, mut rest) = signature.split_first().ok_or(WireError("signature is too short"))?;
    if depth > MAX_DEPTH {
        return Err(WireError("types are nested too deeply"));
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
        // Also refuses letters that do not name a type.
        _ => alignment(kind).map(|_| rest),
    }
}

/// Alignment of a type, which is also the size of a number.
fn alignment(kind: u8) -> Result<usize, WireError> {
    match kind {
        b'y' | b'g' | b'v' => Ok(1),
        b'n' | b'q' => Ok(2),
        b'b' | b'i' | b'u' | b'h' | b's' | b'o' | b'a' => Ok(4),
        b'x' | b't' | b'd' | b'(' | b'{' => Ok(8),
        _ => Err(WireError("unknown type")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::Encoder;
    use proptest::prelude::*;

    /// Bytes that look like messages more often than mere chance would have it.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![3 => Just(0), 2 => 0..16_u8, 2 => proptest::sample::select(b"a(){}sovgyu".to_vec()), 1 => any::<u8>()];
        proptest::collection::vec(byte, 0..200)
    }

    proptest! {
        #[test]
        fn malformed_value_does_not_panic(bytes in bytes(), big in any::<bool>(), lead in 0..9_usize) {
            let decoder = || {
                let mut decoder = Decoder::new(&bytes, big);
                let _ = decoder.take(lead);
                decoder
            };
            let _ = decoder().u64();
            let _ = decoder().bool();
            let _ = decoder().string();
            let _ = decoder().path();
            let _ = decoder().signature();
            let _ = decoder().blob();
            let _ = decoder().paths();
            let _ = decoder().variant("s");
            let _ = decoder().skip_variant();
            let _ = decoder().array(8, |decoder| decoder.skip_variant());
            let _ = decoder().array(8, |_| Ok(()));
        }

        #[test]
        fn any_signature_is_skipped_or_rejected(signature in "[a(){}sovgyuxtnqbidhz]{0,40}", bytes in bytes()) {
            let mut encoder = Encoder::default();
            encoder.signature(&signature).unwrap();
            encoder.raw(&bytes);
            let _ = Decoder::new(encoder.bytes(), false).skip_variant();
        }
    }

    #[test]
    fn variant_of_any_type_is_skipped() {
        let mut encoder = Encoder::default();
        encoder.signature("(ya{sv}vsaat)").unwrap();
        encoder.align(8);
        encoder.raw(&[1]);
        encoder
            .array(8, |encoder| {
                encoder.string("key")?;
                encoder.signature("u")?;
                encoder.u32(7);
                Ok(())
            })
            .unwrap();
        encoder.signature("as").unwrap();
        encoder.array(4, |encoder| encoder.string("x")).unwrap();
        encoder.string("y").unwrap();
        encoder.array(4, |encoder| encoder.array(8, |_| Ok(()))).unwrap();
        encoder.string("after").unwrap();
        let mut decoder = Decoder::new(encoder.bytes(), false);
        decoder.skip_variant().unwrap();
        assert_eq!(decoder.string(), Ok("after"));
    }

    #[test]
    fn length_beyond_the_message_is_rejected() {
        let huge = [0xff, 0xff, 0xff, 0xff, b'a', 0];
        assert!(Decoder::new(&huge, false).string().is_err());
        assert!(Decoder::new(&huge, false).blob().is_err());
        assert!(Decoder::new(&huge, false).paths().is_err());
        // Variants in variants, as deep as the message is long.
        let deep = b"\x01v\0".repeat(100_000);
        assert_eq!(Decoder::new(&deep, false).skip_variant(), Err(WireError("values are nested too deeply")));
    }

    #[test]
    fn big_endian_is_decoded() {
        assert_eq!(Decoder::new(&[0, 0, 1, 2], true).u32(), Ok(258));
        assert_eq!(Decoder::new(&[0, 0, 0, 2, b'o', b'k', 0], true).string(), Ok("ok"));
    }
}
