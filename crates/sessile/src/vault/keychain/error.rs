//! How a keychain can fail.

use super::wire::Malformed;

/// Why the keychain did not do what it was asked to.
#[derive(Debug)]
pub(crate) enum KeychainError {
    /// There is no bus, nobody on it that keeps secrets, or no answer in time.
    Unreachable(String),
    /// The user has to unlock it first.
    Locked,
    /// The service answered with an error.
    Refused(String),
    /// The other side does not speak as it should.
    Protocol(String),
}

impl From<Malformed> for KeychainError {
    fn from(Malformed(what): Malformed) -> Self {
        KeychainError::Protocol(what.to_owned())
    }
}
