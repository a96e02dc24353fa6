//! Problems: why a request failed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a request failed (RFC 9457), with the error codes of the command line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub struct ProblemDetails {
    /// Kind of error, as a URN.
    #[serde(rename = "type")]
    pub kind: String,
    /// Meaning of the code.
    pub title: String,
    /// HTTP status.
    #[schemars(range(min = 100, max = 599))]
    pub status: u16,
    /// Description of this occurrence.
    pub detail: String,
    /// Stable error code, shared with the command line.
    pub code: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// Milliseconds to wait before the retry.
    pub retry_after_ms: Option<i64>,
    /// Current revision of the resource, if the request expected another; 0 if the resource does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// Reason that the code leaves open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ProblemReason>,
}

/// Reason of a failure, if one code has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemReason {
    /// The service has no upstream, which writes replies.
    NoUpstream,
    /// A reason that this version does not know.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl ProblemDetails {
    /// Media type of a problem.
    pub const MEDIA_TYPE: &str = "application/problem+json";
}
