//! A change as it is handed to a store, and what the audit log says of accesses.

use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::ids::{TokenId, UserName};

/// A change, by whom, and how it is told from others.
#[derive(Clone, Debug)]
pub struct Request {
    /// Whose.
    pub user: UserName,
    /// What.
    pub change: Change,
    /// The same key and the same change come to the same, however often they are sent.
    pub key: Option<String>,
    /// What the record of accesses says of it.
    pub access: Access,
}

/// Who did it, for the record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// An id of the access, which no other has.
    pub id: String,
    /// The id of the token that it was done with.
    pub token: Option<TokenId>,
}

/// Something that was read, or done by who administers the store, for the record.
#[derive(Clone, Debug)]
pub struct Read {
    /// By whom.
    pub user: UserName,
    /// With what.
    pub access: Access,
    /// What: the name of the query.
    pub action: String,
    /// The session it was about.
    pub session: Option<String>,
    /// `done`, or why not.
    pub outcome: String,
    /// When.
    pub at_ms: i64,
}
