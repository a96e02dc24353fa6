//! Typed ids. Each is parsed where it comes in, so that a value of another kind cannot pass for it.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sessile::session::SessionName;
use sessile::vault::Secret;
use sessile_wire::hex::hex;
use sessile_wire::id::is_uuid;
use sessile_wire::service::TOKEN_PREFIX;
use sha2::{Digest, Sha256};

pub use sessile::session::SessionId;

use crate::clock;

/// Id of a new session.
pub(crate) fn new_session_id() -> Result<SessionId, sessile::Error> {
    clock::new_id()?.try_into()
}

/// Text that is not an id of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidId(&'static str);

/// Ids that are text: their rule, and how they are read and written.
macro_rules! text_ids {
    ($($(#[doc = $doc:literal])+ $name:ident, $fits:path, $rule:literal;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(String);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                if $fits(&text) { Ok($name(text)) } else { Err(InvalidId($rule)) }
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                text.to_owned().try_into()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )+};
}

text_ids! {
    /// Name of a user. Every change and every query carries one, and a store sees only the rows of that user.
    UserName, is_user_name,
        "invalid user name: 1 to 64 letters, digits, `.`, `_`, `-` or `@` required, beginning with a letter or digit";
    /// Id of an access token. It opens nothing: the secret of the token does.
    TokenId, is_uuid, "invalid token id: a UUID is required";
}

impl TokenId {
    /// Id of a new token.
    pub(crate) fn generate() -> Result<Self, sessile::Error> {
        clock::new_id().map(TokenId)
    }
}

/// Length of a user's name, at most.
const MAX_USER_NAME: usize = 64;

fn is_user_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.len() <= MAX_USER_NAME
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@'))
}

/// Ids that are numbers of a queue. A position and a fencing token are counted by the same counter, and are not the same.
macro_rules! number_ids {
    ($($(#[doc = $doc:literal])+ $name:ident;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub struct $name(i64);

        impl $name {
            /// The id with a number.
            pub const fn new(number: i64) -> Self {
                $name(number)
            }

            /// The number.
            pub const fn get(self) -> i64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )+};
}

number_ids! {
    /// Position of a place in a queue.
    Position;
    /// Fencing token of a turn or lock: larger than that of every earlier holder. Only the store knows which one is
    /// valid, so requests may contain any number.
    FencingToken;
}

/// Fencing token of a message as it is stored and sent: 0 for a message that no turn wrote.
pub(crate) mod turn_token {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::FencingToken;

    pub(crate) fn from_number(number: i64) -> Option<FencingToken> {
        (number != 0).then(|| FencingToken::new(number))
    }

    pub(crate) fn to_number(token: Option<FencingToken>) -> i64 {
        token.map_or(0, FencingToken::get)
    }

    pub(crate) fn serialize<S: Serializer>(token: &Option<FencingToken>, to: S) -> Result<S::Ok, S::Error> {
        to_number(*token).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<FencingToken>, D::Error> {
        i64::deserialize(from).map(from_number)
    }
}

/// A session as a request names it: by its id, or by the name of a live one. A name never has the form of an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionRef {
    /// Id of a session.
    Id(SessionId),
    /// Name of a live session.
    Name(String),
}

impl SessionRef {
    /// The id or name as text.
    pub fn as_str(&self) -> &str {
        match self {
            SessionRef::Id(id) => id.as_str(),
            SessionRef::Name(name) => name,
        }
    }
}

impl FromStr for SessionRef {
    type Err = sessile::Error;

    fn from_str(text: &str) -> Result<Self, sessile::Error> {
        match text.parse() {
            Ok(id) => Ok(SessionRef::Id(id)),
            Err(_) => text.parse::<SessionName>().map(|name| SessionRef::Name(name.to_string())),
        }
    }
}

impl From<SessionId> for SessionRef {
    fn from(id: SessionId) -> Self {
        SessionRef::Id(id)
    }
}

/// Secret of an access token, as a client sends it. It is not printed, and only its hash is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenSecret(Secret);

impl TokenSecret {
    /// A new random secret.
    pub(crate) fn generate() -> Result<Self, sessile::Error> {
        let random = URL_SAFE_NO_PAD.encode(sessile::random::bytes::<32>()?);
        Ok(TokenSecret(Secret::new(format!("{TOKEN_PREFIX}{random}"))))
    }

    /// A secret that a client sent, if it has the form of one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        // Anything else costs no hash and no look-up.
        text.starts_with(TOKEN_PREFIX).then(|| TokenSecret(Secret::new(text)))
    }

    /// The text itself, for its owner.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// The hash by which the store finds the token.
    pub fn hash(&self) -> SecretHash {
        SecretHash::of(self.expose())
    }
}

/// SHA-256 hash of a token or code; the secret itself is not stored. A plain hash is enough, because random secrets
/// cannot be guessed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SecretHash(String);

impl SecretHash {
    /// Hash of a secret.
    pub fn of(secret: &str) -> Self {
        SecretHash(hex(&Sha256::digest(secret.as_bytes())))
    }

    /// Hash as it was stored.
    pub(crate) fn stored(hash: String) -> Self {
        SecretHash(hash)
    }

    /// The hash in hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::{SessionRef, TokenId, TokenSecret, UserName};

    #[test]
    fn user_names_begin_with_a_letter_or_digit_and_are_short() {
        for name in ["a", "ann.lee@example.org", "7of9", &"a".repeat(64)] {
            assert_eq!(name.parse::<UserName>().unwrap().as_str(), name);
        }
        for name in ["", "-a", "a b", "\u{e4}", "a\n", &"a".repeat(65)] {
            assert!(name.parse::<UserName>().is_err(), "{name:?}");
            assert!(serde_json::from_value::<UserName>(name.into()).is_err(), "{name:?}");
        }
    }

    #[test]
    fn session_is_named_by_its_id_or_its_name() {
        let id = "0199aaaa-0000-7000-8000-000000000001";
        assert!(matches!(id.parse(), Ok(SessionRef::Id(_))));
        assert!(matches!("web".parse(), Ok(SessionRef::Name(_))));
        assert!("a/b".parse::<SessionRef>().is_err());
        assert!("web".parse::<TokenId>().is_err() && id.parse::<TokenId>().is_ok());
    }

    #[test]
    fn token_secret_is_random_and_not_printed() {
        let (one, other) = (TokenSecret::generate().unwrap(), TokenSecret::generate().unwrap());
        assert_ne!(one.hash(), other.hash());
        assert_eq!(TokenSecret::parse(one.expose()), Some(one.clone()));
        assert_eq!(format!("{one:?}"), "TokenSecret(********)");
        assert_eq!(TokenSecret::parse("Bearer"), None);
    }
}
