//! What a session remembers about its agents: conversations, each with the agent's ids and all that was said.
//!
//! A conversation belongs to one session and one agent. The one that was used last is the one that goes on. Whatever an
//! agent says is added to what is stored now, in one transaction: nobody holds a copy that could be written back.
//!
//! Not for talking to agents: the library knows no network.

mod conversations;

pub use conversations::{Conversation, Conversations, Heard, Item};
pub use sessile_wire::a2a::TaskState;
