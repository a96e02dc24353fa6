//! JSON dialects of the protocol.

/// Spelling of the same objects in JSON, which depends on version and binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Version 1.0, over any binding.
    V1,
    /// Version 0.3 over JSON-RPC: objects name their kind.
    V03JsonRpc,
    /// Version 0.3 over HTTP+JSON: generated from protocol buffers, with field names of its own.
    V03Rest,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Dialect; 3] = [Dialect::V1, Dialect::V03JsonRpc, Dialect::V03Rest];
}
