//! Failures of a store.

/// Failure of a store. Whether the change was made is not known, unless the variant says so.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ServiceStoreError {
    /// The store is unreachable or too busy. A retry may succeed; with an idempotency key nothing is done twice.
    #[error("cannot reach the store: {0}")]
    Unavailable(String),
    /// The store failed.
    #[error("the store failed: {0}")]
    Failed(String),
    /// The database refused the role or the password.
    #[error("PostgreSQL refused the login of the role: {0}")]
    Refused(String),
    /// The database requires a password, and the configuration has none.
    #[error("the store requires a password")]
    NoPassword,
    /// A newer version of this program has changed the tables.
    #[error("{store} has schema version {found}; this program supports versions up to {known}")]
    TooNew {
        /// The store: a path, or `the database`.
        store: String,
        /// Schema version.
        found: i64,
        /// The newest schema version that this program knows.
        known: i64,
    },
    /// The address is invalid, or the database must not be used.
    #[error("invalid store: {0}")]
    Unfit(String),
}
