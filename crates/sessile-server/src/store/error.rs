//! Failures of a store.

/// A store could not do what it was asked; whether the change was made is then not known, unless it says so.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ServiceStoreError {
    /// It cannot be reached, or is too busy. Trying again may help; with an idempotency key nothing is done twice.
    #[error("the store cannot be reached: {0}")]
    Unavailable(String),
    /// Something is wrong with it.
    #[error("the store failed: {0}")]
    Failed(String),
    /// It does not let this program in: the role or the password is not one of its own.
    #[error("the store lets nobody in with this role and password: {0}")]
    Refused(String),
    /// It wants a password, and none was given.
    #[error("the store wants a password, and none was given")]
    NoPassword,
    /// A newer version of this program has changed the tables.
    #[error("{store} has schema version {found}; this program supports versions up to {known}")]
    TooNew {
        /// The store: a path, or `the database`.
        store: String,
        /// Its schema version.
        found: i64,
        /// The newest schema version that this program knows.
        known: i64,
    },
    /// The address is none, or leads to what must not be used.
    #[error("the store cannot be used: {0}")]
    Unfit(String),
}
