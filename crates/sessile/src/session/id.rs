//! How a session is named: by an id that is never used twice, and by a name if it has one.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A session's id: a UUID of version 7, so ids sort by the time of their making.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(String);

impl SessionId {
    /// A new one, at this time.
    pub fn new(now_ms: i64) -> Result<Self> {
        let mut bytes = [0u8; 16];
        bytes[..6].copy_from_slice(&now_ms.to_be_bytes()[2..]);
        bytes[6..].copy_from_slice(&crate::random::bytes::<10>()?);
        bytes[6] = bytes[6] & 0x0f | 0x70;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(SessionId(format!(
            "{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        )))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SessionId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let groups: Vec<usize> = text.split('-').map(str::len).collect();
        let hex = text.chars().all(|c| c == '-' || matches!(c, '0'..='9' | 'a'..='f'));
        if groups == [8, 4, 4, 4, 12] && hex {
            Ok(SessionId(text.to_owned()))
        } else {
            Err(Error::SessionNotFound(crate::text::shortened(text, 80)))
        }
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A session's name, unique among a user's live sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionName(String);

impl SessionName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SessionName {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        crate::names::check(name, "session").map(|()| SessionName(name.to_owned()))
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids_of_version_7_that_sort_by_time() {
        let early = SessionId::new(1_700_000_000_000).unwrap();
        let late = SessionId::new(1_700_000_000_001).unwrap();
        assert!(early < late);
        assert_eq!(early.as_str().as_bytes()[14], b'7');
        assert!(matches!(early.as_str().as_bytes()[19], b'8' | b'9' | b'a' | b'b'));
        assert_eq!(early.as_str().parse::<SessionId>().unwrap(), early);
        assert!(early.as_str().parse::<SessionName>().is_err(), "a name cannot look like an id");
    }
}
