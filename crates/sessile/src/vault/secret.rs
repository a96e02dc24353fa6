//! Serialization of secrets, for the fields that name it.
//!
//! The only serialization of a secret. The output is sealed, or goes to a keychain or a helper.

pub use sessile_wire::secret::Secret;

/// Serialization in plain text, for content that is sealed or handed to a keychain or a helper.
pub(crate) mod exposed {
    use serde::{Serialize, Serializer};

    use super::Secret;

    /// A field that may hold one.
    pub(crate) fn maybe<S: Serializer>(secret: &Option<Secret>, serializer: S) -> Result<S::Ok, S::Error> {
        secret.as_ref().map(Secret::expose).serialize(serializer)
    }
}
