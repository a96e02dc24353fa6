//! Prefixes of results that earlier replies delivered.

/// Offset basis and prime of FNV-1a. The digest is incremental, so delivered text does not have to be stored; an agent that
/// finds a collision only spoils its own replies.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

/// Prefix of a result that an earlier reply delivered: length and digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeliveredPrefix {
    pub(super) bytes: usize,
    digest: u64,
}

impl DeliveredPrefix {
    pub(super) const NOTHING: DeliveredPrefix = DeliveredPrefix { bytes: 0, digest: FNV_OFFSET };

    /// Prefix extended by more text.
    pub(super) fn extended(self, more: &str) -> Self {
        let next = |digest: u64, byte: u8| (digest ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
        DeliveredPrefix { bytes: self.bytes + more.len(), digest: more.bytes().fold(self.digest, next) }
    }

    /// Rest of a text that begins with this prefix.
    pub(super) fn rest(self, text: &str) -> Option<&str> {
        let (prefix, rest) = text.split_at_checked(self.bytes)?;
        (DeliveredPrefix::NOTHING.extended(prefix) == self).then_some(rest)
    }

    /// Key and value in the stored conversation: the digest is part of the key.
    pub(super) fn to_stored(self, id: &str) -> (String, usize) {
        (format!("{:016x} {id}", self.digest), self.bytes)
    }

    /// Id and prefix of a stored entry.
    pub(super) fn from_stored((key, bytes): (&String, &usize)) -> Option<(String, Self)> {
        let (digest, id) = key.split_once(' ')?;
        let digest = u64::from_str_radix(digest, 16).ok()?;
        Some((id.to_owned(), DeliveredPrefix { bytes: *bytes, digest }))
    }
}
