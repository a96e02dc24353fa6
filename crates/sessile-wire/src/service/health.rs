//! Health of the service.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Answer of a health check that passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HealthStatus {
    /// `ok`.
    pub status: String,
}
