//! A change with its user and idempotency key, and the entries of the audit log.

use serde::{Deserialize, Serialize};

use crate::change::StoreChange;
use crate::ids::{TokenId, UserName};

/// A change to make, with what identifies it.
#[derive(Clone, Debug)]
pub struct Request {
    /// User who makes the change.
    pub user: UserName,
    /// The change.
    pub change: StoreChange,
    /// Idempotency key: the same change under the same key is made once, however often it is sent.
    pub key: Option<String>,
    /// Access that the audit log names.
    pub access: Access,
}

/// Identity of an access in the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Id of the access, which is unique.
    pub id: String,
    /// Id of the token that was used.
    pub token: Option<TokenId>,
}

/// Read or administrative change, for the audit log.
#[derive(Clone, Debug)]
pub struct AuditedRead {
    /// User that it is about.
    pub user: UserName,
    /// Access that the audit log names.
    pub access: Access,
    /// Name of the query or change.
    pub action: String,
    /// Session that it was about, as the request named it.
    pub session: Option<String>,
    /// `done`, or the reason of the refusal.
    pub outcome: String,
    /// Time of the access.
    pub at_ms: i64,
}
