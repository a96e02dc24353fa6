//! D-Bus messages: a header and a body.

use zeroize::Zeroizing;

use crate::decode::Decoder;
use crate::encode::{Encoder, ObjectPath, WireError};

/// The part of a head that has a fixed size, and says how long the rest is.
pub(crate) const PREFIX: usize = 16;

/// The most that is accepted or sent; D-Bus itself would allow 128 MiB.
pub(crate) const MAX_MESSAGE_SIZE: usize = 16 << 20;

const METHOD_CALL: u8 = 1;
const METHOD_RETURN: u8 = 2;
const ERROR: u8 = 3;

/// Codes of header fields.
mod field {
    pub(crate) const PATH: u8 = 1;
    pub(crate) const INTERFACE: u8 = 2;
    pub(crate) const MEMBER: u8 = 3;
    pub(crate) const ERROR_NAME: u8 = 4;
    pub(crate) const REPLY_SERIAL: u8 = 5;
    pub(crate) const DESTINATION: u8 = 6;
    pub(crate) const SIGNATURE: u8 = 8;
}

/// A method to call.
pub(crate) struct MethodCall<'a> {
    pub(crate) destination: &'a str,
    pub(crate) path: &'a ObjectPath,
    pub(crate) interface: &'a str,
    pub(crate) member: &'a str,
    /// The types of the body.
    pub(crate) signature: &'a str,
    pub(crate) body: Encoder,
}

impl MethodCall<'_> {
    /// The message, with its number.
    pub(crate) fn encode(&self, serial: u32) -> Result<Encoder, WireError> {
        let body = self.body.bytes();
        let length = u32::try_from(body.len()).map_err(|_| WireError("message is too long"))?;
        let mut encoder = Encoder::default();
        // Little-endian, a call, no flags, version 1 of the protocol.
        encoder.raw(&[b'l', METHOD_CALL, 0, 1]);
        encoder.u32(length);
        encoder.u32(serial);
        encoder.array(8, |encoder| {
            let texts = [
                (field::PATH, "o", self.path.as_str()),
                (field::INTERFACE, "s", self.interface),
                (field::MEMBER, "s", self.member),
                (field::DESTINATION, "s", self.destination),
            ];
            for (code, kind, value) in texts {
                encoder.align(8);
                encoder.raw(&[code]);
                encoder.signature(kind)?;
                encoder.string(value)?;
            }
            // Without this field the body is empty (D-Bus specification).
            if !self.signature.is_empty() {
                encoder.align(8);
                encoder.raw(&[field::SIGNATURE]);
                encoder.signature("g")?;
                encoder.signature(self.signature)?;
            }
            Ok(())
        })?;
        encoder.align(8);
        encoder.raw(body);
        if encoder.bytes().len() > MAX_MESSAGE_SIZE {
            return Err(WireError("message is too long"));
        }
        Ok(encoder)
    }
}

/// Length of a message, from its fixed header.
pub(crate) fn length(prefix: &[u8; PREFIX]) -> Result<usize, WireError> {
    let mut decoder = prefix_decoder(prefix)?;
    let body = decoder.u32()?;
    let _serial = decoder.u32()?;
    let fields = decoder.u32()?;
    let too_long = WireError("message is too long");
    let part = |length: u32| {
        // Each part is bounded by itself, so that their sum cannot overflow.
        usize::try_from(length).ok().filter(|length| *length <= MAX_MESSAGE_SIZE).ok_or(too_long)
    };
    let total = PREFIX + part(fields)?.next_multiple_of(8) + part(body)?;
    if total > MAX_MESSAGE_SIZE { Err(too_long) } else { Ok(total) }
}

/// A decoder behind the first four bytes.
fn prefix_decoder(bytes: &[u8]) -> Result<Decoder<'_>, WireError> {
    let big_endian = match bytes.first() {
        Some(b'l') => false,
        Some(b'B') => true,
        _ => return Err(WireError("not a D-Bus message")),
    };
    let mut decoder = Decoder::new(bytes, big_endian);
    // Steps over the first four bytes, which are single bytes and no number.
    decoder.u32()?;
    if bytes.get(3) != Some(&1) { Err(WireError("unsupported protocol version")) } else { Ok(decoder) }
}

/// Reply of a method.
pub(crate) struct MethodReply {
    bytes: Zeroizing<Vec<u8>>,
    body: usize,
    signature: String,
}

impl MethodReply {
    /// A decoder of the body, which must have these types.
    pub(crate) fn body(&self, signature: &str) -> Result<Decoder<'_>, WireError> {
        // Checked once here, so that the readers below need no type of their own.
        if self.signature != signature {
            return Err(WireError("unexpected type of reply"));
        }
        let body = self.bytes.get(self.body..).ok_or(WireError("unexpected end of data"))?;
        Ok(Decoder::new(body, self.bytes.first() == Some(&b'B')))
    }
}

/// Received message, if of interest.
pub(crate) enum IncomingMessage {
    /// To the call of this number.
    MethodReturn(u32, MethodReply),
    /// To the call of this number: the error's name and text.
    Error(u32, String, String),
    /// A signal, or whatever else was sent to everyone.
    Other,
}

impl IncomingMessage {
    /// Takes a whole message apart.
    pub(crate) fn decode(bytes: Zeroizing<Vec<u8>>) -> Result<Self, WireError> {
        let mut decoder = prefix_decoder(&bytes)?;
        let kind = bytes.get(1).copied();
        let body_length = decoder.u32()?;
        let _serial = decoder.u32()?;
        let (mut to, mut error, mut signature) = (None, "", "");
        decoder.array(8, |decoder| {
            match decoder.byte()? {
                field::REPLY_SERIAL => {
                    decoder.variant("u")?;
                    to = Some(decoder.u32()?);
                }
                field::ERROR_NAME => {
                    decoder.variant("s")?;
                    error = decoder.string()?;
                }
                field::SIGNATURE => {
                    decoder.variant("g")?;
                    signature = decoder.signature()?;
                }
                // Fields that this version does not know are to be ignored (D-Bus specification).
                _ => decoder.skip_variant()?,
            }
            Ok(())
        })?;
        decoder.align(8)?;
        // The lengths must agree exactly, or the next message would begin in the wrong place.
        let body = bytes.len().checked_sub(body_length as usize).filter(|body| *body == decoder.at());
        let body = body.ok_or(WireError("length of the message differs from its header"))?;
        match (kind, to) {
            (Some(METHOD_RETURN), Some(to)) => {
                let signature = signature.to_owned();
                Ok(IncomingMessage::MethodReturn(to, MethodReply { bytes, body, signature }))
            }
            (Some(ERROR), Some(to)) => {
                let error = error.to_owned();
                // The text is a custom, not a rule.
                let reply = MethodReply { signature: signature.to_owned(), bytes, body };
                let text = if reply.signature.starts_with('s') {
                    reply.body(&reply.signature)?.string()?.to_owned()
                } else {
                    String::new()
                };
                Ok(IncomingMessage::Error(to, error, text))
            }
            (Some(METHOD_RETURN | ERROR), None) => Err(WireError("reply without a request")),
            _ => Ok(IncomingMessage::Other),
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

    fn call(body: Encoder) -> Encoder {
        let path = ObjectPath::parse("/a").unwrap();
        let call = MethodCall {
            destination: "b.c",
            path: &path,
            interface: "d.e",
            member: "F",
            signature: "s",
            body,
        };
        call.encode(7).unwrap()
    }

    #[test]
    fn method_call_carries_its_length() {
        let mut body = Encoder::default();
        body.string("hello").unwrap();
        let message = call(body);
        assert_eq!(length(&prefix(message.bytes())), Ok(message.bytes().len()));
        let incoming = IncomingMessage::decode(Zeroizing::new(message.bytes().to_vec())).unwrap();
        assert!(matches!(incoming, IncomingMessage::Other), "a call is not a reply");
    }

    #[test]
    fn oversized_message_is_refused_both_ways() {
        let mut body = Encoder::default();
        body.blob(&vec![0; MAX_MESSAGE_SIZE]).unwrap();
        let path = ObjectPath::parse("/").unwrap();
        let call =
            MethodCall { destination: "", path: &path, interface: "", member: "", signature: "ay", body };
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
        fn malformed_message_does_not_panic(
            kind in 0..5_u8,
            patches in proptest::collection::vec((0..90_usize, any::<u8>()), 0..12),
            cut in 0..90_usize,
        ) {
            let mut body = Encoder::default();
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
            if let Ok(IncomingMessage::MethodReturn(_, reply)) = IncomingMessage::decode(Zeroizing::new(bytes)) {
                let _ = reply.body("s").map(|mut body| body.string().map(str::len));
            }
        }
    }
}
