//! Fuzz targets of the program: what agents, MCP clients, authorization servers and probed services send, and the settings of
//! coding agents.
//!
//! Compiled for tests, where a deterministic campaign runs them, and under libFuzzer (`--cfg fuzzing`, `scripts/fuzz`).

pub use crate::a2a::fuzz::{a2a_card, a2a_frame, card_signature, sse_stream};
pub use crate::chat::screen::fuzz::chat_markdown;
pub use crate::commands::agent::listen::fuzz::notification_jwt;
pub use crate::commands::setup::fuzz::setup_edit;
pub use crate::http::fuzz::address;
pub use crate::mcp::fuzz::{mcp_arguments, mcp_frame};
pub use crate::oauth::fuzz::token_response;

#[cfg(test)]
mod tests {
    testkit::fuzz_tests!(
        a2a_card,
        a2a_frame,
        card_signature,
        sse_stream,
        chat_markdown,
        notification_jwt,
        setup_edit,
        address,
        mcp_arguments,
        mcp_frame,
        token_response,
    );
}
