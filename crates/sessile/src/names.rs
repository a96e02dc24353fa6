//! Names from outside, parsed on construction, so that a wrong one cannot exist.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sessile_wire::id::{is_uuid, uuid_v7};

use crate::error::{Error, SessionError, UsageError};

macro_rules! names {
    ($($(#[doc = $doc:literal])+ $name:ident, $what:literal;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(name: &str) -> Result<Self, Error> {
                check(name, $what).map(|()| $name(name.to_owned()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = Error;

            fn try_from(name: String) -> Result<Self, Error> {
                check(&name, $what).map(|()| $name(name))
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )+};
}

names! {
    /// The name of a context: part of a file name, a flag's value and a variable's value.
    ContextName, "context";
    /// The name of a credential: also part of a variable's name.
    CredentialName, "credential";
    /// The name of a session, unique among the live sessions of a user.
    SessionName, "session";
}

impl ContextName {
    /// The name of an anonymous context: a list of bindings, as [`crate::context::anonymous`] writes it. No context with a file can
    /// have such a name.
    pub(crate) fn of_bindings(text: String) -> Self {
        ContextName(text)
    }

    /// Whether the context consists of bindings only, without a file.
    pub fn is_anonymous(&self) -> bool {
        is_anonymous(&self.0)
    }

    /// The context that a session is pinned to.
    pub(crate) fn of_session(text: &str) -> Result<Self, Error> {
        if is_anonymous(text) { crate::context::anonymous::parse(text) } else { text.parse() }
    }
}

/// Whether a session's context consists of bindings only, by its name.
pub fn is_anonymous(name: &str) -> bool {
    name.contains('=')
}

/// Id of a session: a UUID of version 7, so that ids sort by the time at which they were generated.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct SessionId(String);

impl SessionId {
    /// A new one, at this time.
    pub fn new(now_ms: i64) -> Result<Self, Error> {
        Ok(SessionId(uuid_v7(now_ms, crate::random::bytes()?)))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SessionId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if is_uuid(text) {
            Ok(SessionId(text.to_owned()))
        } else {
            // For the caller an invalid id is the same as a session that does not exist.
            Err(SessionError::NotFound(crate::text::shortened(text, 80)).into())
        }
    }
}

impl TryFrom<String> for SessionId {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
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

const LONGEST: usize = 64;

/// Fails unless the text can be a name: part of a path, a flag's value and a variable's value alike.
pub(crate) fn check(name: &str, what: &'static str) -> Result<(), Error> {
    let refuse = |reason: &'static str| {
        Err(UsageError::InvalidName { what, name: crate::text::shortened(name, 80), reason: reason.into() }
            .into())
    };
    // A name becomes part of a path, a flag and a variable, so it has no separator and no quote.
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._@-".contains(c);
    match name {
        "" => refuse("must not be empty"),
        _ if name.len() > LONGEST => refuse("must not be longer than 64 characters"),
        // A leading `-` would be read as a flag, a leading `.` hides a file.
        _ if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) => {
            refuse("must begin with a letter or a digit")
        }
        _ if !name.chars().all(allowed) => refuse("only letters, digits, '.', '_', '@' and '-' are allowed"),
        _ if name.contains("..") || name.ends_with('.') => refuse("must not look like a path"),
        // Sessions are found by name or id, and a name must not stand for the id of another.
        _ if looks_like_id(name) => refuse("must not look like an id"),
        _ => Ok(()),
    }
}

/// Error without the invalid name, for a name from a file whose content may not be disclosed.
pub(crate) fn without_name(error: Error, place: impl fmt::Display) -> Error {
    match error {
        Error::Usage(UsageError::InvalidName { what, reason, .. }) => {
            let reason = format!("{reason} ({place})").into();
            UsageError::InvalidName { what, name: crate::text::HIDDEN.to_owned(), reason }.into()
        }
        other => other,
    }
}

/// Fails unless the text can be the name of an agent.
pub fn agent_name(name: &str) -> Result<(), Error> {
    check(name, "agent")
}

/// Reason why a text can be confused with another: invisible or reordering characters, and letters with several
/// encodings. `None` for all others.
pub fn deceptive(text: &str) -> Option<&'static str> {
    use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};
    let is_hidden = |c: char| {
        matches!(
            c.general_category(),
            GeneralCategory::Control
                | GeneralCategory::Format
                | GeneralCategory::LineSeparator
                | GeneralCategory::ParagraphSeparator
        )
    };
    // Most names are ASCII, which needs no look at the tables of Unicode.
    if text.is_ascii() && !text.contains(|c: char| c.is_ascii_control()) {
        None
    } else if text.chars().any(is_hidden) {
        Some("control, format and direction characters are not allowed")
    } else if !unicode_normalization::is_nfc(text) {
        Some("not in Unicode normalization form C (NFC)")
    } else {
        None
    }
}

/// Whether the text looks like a UUID or a prefix of one that people would type.
fn looks_like_id(text: &str) -> bool {
    let hex = |part: &str| part.chars().all(|c| c.is_ascii_hexdigit());
    match text.split_once('-') {
        Some((first, rest)) => first.len() == 8 && hex(first) && rest.split('-').all(hex),
        None => text.len() == 32 && hex(text),
    }
}

/// Candidate most similar to a name that was not found, if one is similar enough.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().max(name.len()).div_ceil(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ordinary_names_are_names() {
        for name in ["staging", "prod-eu.1", "team_a@eu", "1st", "deadbeef"] {
            assert_eq!(name.parse::<ContextName>().unwrap().as_str(), name);
        }
    }

    #[test]
    fn names_like_paths_flags_ids_or_escapes_are_refused() {
        for name in [
            "",
            "-",
            "-x",
            ".hidden",
            "../../x",
            "a/b",
            "a\nb",
            "a\x1b[31m",
            "a b",
            "a..b",
            "a.",
            "caf\u{e9}",
            "01890a5d-ac96-774b-bcce-b302099a8057",
            "01890a5d-ac96",
            "01890a5dac96774bbcceb302099a8057",
            &"x".repeat(65),
        ] {
            assert!(name.parse::<ContextName>().is_err(), "{name:?}");
        }
    }

    proptest! {
        /// A name becomes `NAME.toml` in a directory, a flag's value, and a line of output.
        #[test]
        fn every_valid_name_is_one_plain_file(text in "[A-Za-z0-9._@/-]{0,70}|\\PC{0,12}|[\\x00-\\x7f]{1,4}") {
            let Ok(name) = text.parse::<ContextName>() else { return Ok(()) };
            prop_assert_eq!(name.as_str(), &text);
            let path = std::path::Path::new("dir").join(format!("{name}.toml"));
            prop_assert_eq!(path.components().count(), 2);
            prop_assert_eq!(path.file_stem().and_then(|stem| stem.to_str()), Some(text.as_str()));
            prop_assert!(!text.starts_with(['-', '.']) && text.bytes().all(|byte| byte.is_ascii_graphic()));
        }
    }

    #[test]
    fn the_nearest_name_is_near() {
        assert_eq!(nearest("prdo", ["prod", "staging"]), Some("prod".into()));
        assert_eq!(nearest("xyz", ["prod", "staging"]), None);
    }

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
