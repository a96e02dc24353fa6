//! Serialization of secrets, for the fields that name it.
//!
//! Nothing else serializes one. Its output is sealed, or goes to a keychain or a helper.

pub use sessile_wire::secret::Secret;

/// Writes secrets as they are: only for what is sealed afterwards, or handed to a keychain or a helper.
pub(crate) mod exposed {
    use serde::{Serialize, Serializer};

    use super::Secret;

    /// A field that may hold one.
    pub(crate) fn maybe<S: Serializer>(secret: &Option<Secret>, serializer: S) -> Result<S::Ok, S::Error> {
        secret.as_ref().map(Secret::expose).serialize(serializer)
    }
}
