//! Parts of a call that need a credential.

use std::fmt;

/// Part of a call that needs a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialConsumer {
    /// Command with the credential's name as an argument.
    Command,
    /// Renewal of the credential of this name, which uses the login of another.
    Login(String),
    /// Flag, setting or step, in words.
    Other(String),
}

impl fmt::Display for CredentialConsumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CredentialConsumer::Command => f.write_str("this command"),
            CredentialConsumer::Login(name) => write!(f, "the login of credential {name}"),
            CredentialConsumer::Other(words) => f.write_str(words),
        }
    }
}

impl From<String> for CredentialConsumer {
    fn from(words: String) -> Self {
        CredentialConsumer::Other(words)
    }
}

impl From<&str> for CredentialConsumer {
    fn from(words: &str) -> Self {
        CredentialConsumer::Other(words.to_owned())
    }
}
