//! Text that is used and never printed.

use std::fmt;

use serde::{Deserialize, Deserializer};
use zeroize::Zeroizing;

/// Secret text. It cannot be printed or serialized; its memory is overwritten when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

/// Placeholder of a secret in output.
pub const MASK: &str = "********";

impl Secret {
    /// Secret of this text.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(Zeroizing::new(text.into()))
    }

    /// Text itself, for its recipient.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Secret::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_of_secret_is_masked() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "******** Some(********)");
        assert_eq!(secret.expose(), "hunter2");
    }
}
