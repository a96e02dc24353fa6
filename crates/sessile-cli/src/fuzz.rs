//! Fuzz targets of the program: what agents, MCP clients, authorization servers and probed services send.
//!
//! Compiled for tests, where a deterministic campaign runs them, and under libFuzzer (`--cfg fuzzing`, `scripts/fuzz`).

pub use crate::a2a::fuzz::{a2a_card, a2a_frame, sse_stream};
pub use crate::http::fuzz::address;
pub use crate::mcp::fuzz::{mcp_arguments, mcp_frame};
pub use crate::oauth::fuzz::token_response;

#[cfg(test)]
mod tests {
    testkit::fuzz_tests!(a2a_card, a2a_frame, sse_stream, address, mcp_arguments, mcp_frame, token_response,);
}
