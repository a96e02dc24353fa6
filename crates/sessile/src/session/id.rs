//! How a session is named: by an id that is never used twice, and by a name if it has one.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sessile_wire::id::{is_uuid, uuid_v7};

use crate::error::{Error, Result, SessionError};

/// Id of a session: a UUID of version 7, so that ids sort by the time at which they were generated.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct SessionId(String);

impl SessionId {
    /// A new one, at this time.
    pub fn new(now_ms: i64) -> Result<Self> {
        Ok(SessionId(uuid_v7(now_ms, crate::random::bytes()?)))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SessionId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if is_uuid(text) {
            Ok(SessionId(text.to_owned()))
        } else {
            Err(SessionError::NotFound(crate::text::shortened(text, 80)).into())
        }
    }
}

impl TryFrom<String> for SessionId {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> String {
        id.0
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
