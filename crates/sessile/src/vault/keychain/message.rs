//! One D-Bus message: a head that says what it is, and a body.

use zeroize::Zeroizing;

use super::reader::Reader;
use super::wire::{Malformed, ObjectPath, Writer};

/// The part of a head that has a fixed size, and says how long the rest is.
pub(super) const PREFIX: usize = 16;

/// The most that is accepted or sent; D-Bus itself would allow 128 MiB.
pub(super) const LARGEST: usize = 16 << 20;

const METHOD_CALL: u8 = 1;
const METHOD_RETURN: u8 = 2;
const ERROR: u8 = 3;

/// What fields of a head are numbered.
mod field {
    pub(super) const PATH: u8 = 1;
    pub(super) const INTERFACE: u8 = 2;
    pub(super) const MEMBER: u8 = 3;
    pub(super) const ERROR_NAME: u8 = 4;
    pub(super) const REPLY_SERIAL: u8 = 5;
    pub(super) const DESTINATION: u8 = 6;
    pub(super) const SIGNATURE: u8 = 8;
}

/// A method to call.
pub(super) struct Call<'a> {
    pub(super) destination: &'a str,
    pub(super) path: &'a ObjectPath,
    pub(super) interface: &'a str,
    pub(super) member: &'a str,
    /// The types of the body.
    pub(super) signature: &'a str,
    pub(super) body: Writer,
}

impl Call<'_> {
    /// The message, with its number.
    pub(super) fn encode(&self, serial: u32) -> Result<Writer, Malformed> {
        let body = self.body.bytes();
        let length = u32::try_from(body.len()).map_err(|_| Malformed("more than a message can hold"))?;
        let mut writer = Writer::default();
        writer.raw(&[b'l', METHOD_CALL, 0, 1]);
        writer.u32(length);
        writer.u32(serial);
        writer.array(8, |writer| {
            let texts = [
                (field::PATH, "o", self.path.as_str()),
                (field::INTERFACE, "s", self.interface),
                (field::MEMBER, "s", self.member),
                (field::DESTINATION, "s", self.destination),
            ];
            for (code, kind, value) in texts {
                writer.align(8);
                writer.raw(&[code]);
                writer.signature(kind)?;
                writer.string(value)?;
            }
            if !self.signature.is_empty() {
                writer.align(8);
                writer.raw(&[field::SIGNATURE]);
                writer.signature("g")?;
                writer.signature(self.signature)?;
            }
            Ok(())
        })?;
        writer.align(8);
        writer.raw(body);
        if writer.bytes().len() > LARGEST {
            return Err(Malformed("a message that is too long"));
        }
        Ok(writer)
    }
}

/// How long a message is that begins so, the beginning included.
pub(super) fn length(prefix: &[u8; PREFIX]) -> Result<usize, Malformed> {
    let mut reader = prefix_reader(prefix)?;
    let body = reader.u32()?;
    let _serial = reader.u32()?;
    let fields = reader.u32()?;
    let too_long = Malformed("a message that is too long");
    let part = |length: u32| usize::try_from(length).ok().filter(|length| *length <= LARGEST).ok_or(too_long);
    let total = PREFIX + part(fields)?.next_multiple_of(8) + part(body)?;
    if total > LARGEST { Err(too_long) } else { Ok(total) }
}

/// A reader behind the first four bytes.
fn prefix_reader(bytes: &[u8]) -> Result<Reader<'_>, Malformed> {
    let big_endian = match bytes.first() {
        Some(b'l') => false,
        Some(b'B') => true,
        _ => return Err(Malformed("not a message")),
    };
    let mut reader = Reader::new(bytes, big_endian);
    reader.u32()?;
    if bytes.get(3) != Some(&1) { Err(Malformed("a message of another version")) } else { Ok(reader) }
}

/// What a method returned.
pub(super) struct Reply {
    bytes: Zeroizing<Vec<u8>>,
    body: usize,
    signature: String,
}

impl Reply {
    /// A reader of the body, which must have these types.
    pub(super) fn body(&self, signature: &str) -> Result<Reader<'_>, Malformed> {
        if self.signature != signature {
            return Err(Malformed("an answer of another type"));
        }
        let body = self.bytes.get(self.body..).ok_or(Malformed("it ends too early"))?;
        Ok(Reader::new(body, self.bytes.first() == Some(&b'B')))
    }
}

/// What is of interest among messages.
pub(super) enum Incoming {
    /// To the call of this number.
    Returned(u32, Reply),
    /// To the call of this number: the error's name and text.
    Failed(u32, String, String),
    /// A signal, or whatever else was sent to everyone.
    Other,
}

impl Incoming {
    /// Takes a whole message apart.
    pub(super) fn decode(bytes: Zeroizing<Vec<u8>>) -> Result<Self, Malformed> {
        let mut reader = prefix_reader(&bytes)?;
        let kind = bytes.get(1).copied();
        let body_length = reader.u32()?;
        let _serial = reader.u32()?;
        let (mut to, mut error, mut signature) = (None, "", "");
        reader.array(8, |reader| {
            match reader.byte()? {
                field::REPLY_SERIAL => {
                    reader.variant("u")?;
                    to = Some(reader.u32()?);
                }
                field::ERROR_NAME => {
                    reader.variant("s")?;
                    error = reader.string()?;
                }
                field::SIGNATURE => {
                    reader.variant("g")?;
                    signature = reader.signature()?;
                }
                _ => reader.skip_variant()?,
            }
            Ok(())
        })?;
        reader.align(8)?;
        let body = bytes.len().checked_sub(body_length as usize).filter(|body| *body == reader.at());
        let body = body.ok_or(Malformed("a message of another length than it says"))?;
        match (kind, to) {
            (Some(METHOD_RETURN), Some(to)) => {
                let signature = signature.to_owned();
                Ok(Incoming::Returned(to, Reply { bytes, body, signature }))
            }
            (Some(ERROR), Some(to)) => {
                let error = error.to_owned();
                // The text is a custom, not a rule.
                let reply = Reply { signature: signature.to_owned(), bytes, body };
                let text = if reply.signature.starts_with('s') {
                    reply.body(&reply.signature)?.string()?.to_owned()
                } else {
                    String::new()
                };
                Ok(Incoming::Failed(to, error, text))
            }
            (Some(METHOD_RETURN | ERROR), None) => Err(Malformed("an answer to nothing")),
            _ => Ok(Incoming::Other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn prefix(bytes: &[u8]) -> [u8; PREFIX] {
        bytes[..PREFIX].try_into().unwrap()
    }

    fn call(body: Writer) -> Writer {
        let path = ObjectPath::parse("/a").unwrap();
        let call =
            Call { destination: "b.c", path: &path, interface: "d.e", member: "F", signature: "s", body };
        call.encode(7).unwrap()
    }

    #[test]
    fn a_call_says_how_long_it_is() {
        let mut body = Writer::default();
        body.string("hello").unwrap();
        let message = call(body);
        assert_eq!(length(&prefix(message.bytes())), Ok(message.bytes().len()));
        let incoming = Incoming::decode(Zeroizing::new(message.bytes().to_vec())).unwrap();
        assert!(matches!(incoming, Incoming::Other), "a call is no answer");
    }

    #[test]
    fn what_is_too_long_is_neither_sent_nor_awaited() {
        let mut body = Writer::default();
        body.blob(&vec![0; LARGEST]).unwrap();
        let path = ObjectPath::parse("/").unwrap();
        let call = Call { destination: "", path: &path, interface: "", member: "", signature: "ay", body };
        assert!(call.encode(1).is_err());
        for at in [4, 12] {
            let mut head = prefix(b"l\x02\0\x01\0\0\0\0\x01\0\0\0\0\0\0\0");
            assert_eq!(length(&head), Ok(PREFIX));
            head[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
            assert!(length(&head).is_err());
        }
    }

    proptest! {
        #[test]
        fn nothing_that_comes_makes_it_panic(
            kind in 0..5_u8,
            patches in proptest::collection::vec((0..90_usize, any::<u8>()), 0..12),
            cut in 0..90_usize,
        ) {
            let mut body = Writer::default();
            body.string("text").unwrap();
            let mut bytes = call(body).bytes().to_vec();
            bytes[1] = kind;
            for (at, byte) in patches {
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            let _ = length(&prefix(&bytes));
            bytes.truncate(bytes.len() - cut.min(bytes.len()));
            if let Ok(Incoming::Returned(_, reply)) = Incoming::decode(Zeroizing::new(bytes)) {
                let _ = reply.body("s").map(|mut body| body.string().map(str::len));
            }
        }
    }
}
