//! Conversations of sessions with agents: the agent's ids, its task, and everything that was said.
//!
//! A conversation belongs to one session and one agent, and the one used last continues. An event is added to the row
//! as it is now, in one transaction: no caller holds a copy that it could write back, and no transaction is
//! held while an agent is asked. Ids of two conversations are never combined: an event with another context id goes to
//! the conversation of that id.
//!
//! Not for talking to agents: the library has no network.

mod conversations;
mod delivery;

pub use conversations::{Conversation, ConversationItem, ConversationUpdate, Conversations};
pub use delivery::DeliveryLock;
pub use sessile_wire::a2a::TaskState;
