//! Conversations with agents: the agent's ids, its task and all messages.
//!
//! A conversation belongs to an account, to the context it was held in, and to one agent. It outlives its session: a
//! later session of the context adopts it. In a session the one used last continues. A transaction adds each event to
//! the current row. No caller holds a copy that it could write back, and no transaction stays open during a request
//! to an agent. Ids of two conversations are never combined: an event with another context id goes to the
//! conversation of that id.
//!
//! Not for talking to agents: the library has no network.

mod conversations;
mod delivery;

pub use conversations::{Conversation, ConversationItem, ConversationUpdate, Conversations, SETTINGS};
pub(crate) use delivery::DELIVERIES;
pub use delivery::DeliveryLock;
pub use sessile_wire::a2a::TaskState;
