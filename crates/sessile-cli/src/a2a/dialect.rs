//! The three ways in which agents write the same things.

/// How an interface writes JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Version 1.0, over any binding.
    One,
    /// Version 0.3 over JSON-RPC: objects say their kind.
    Kinds,
    /// Version 0.3 over HTTP+JSON: made from protocol buffers, with names of its own.
    Buffers,
}
