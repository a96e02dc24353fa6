//! Import: contexts for the targets that the user's tools already have.
//!
//! [`scan`] reads the tools' own files, and other places that the profiles name, and changes none of them. [`propose`] groups the targets into contexts, and
//! [`new_contexts`] leaves out what contexts bind already. The result is an ordinary file of contexts, which a person can
//! edit before [`apply`] creates them.
//!
//! Not for: `context import`, which takes contexts from another machine.

mod agents;
mod found;
mod grouping;
mod places;
mod plan;
mod scan;

pub use agents::{
    add_agents, add_conversations, new_agents, new_conversations, new_credentials, store_credentials,
};
pub use found::{FoundAgent, FoundConversation, FoundCredential, FoundVariables, ProposedVariable};
pub use grouping::{FoundTarget, ProposedContext, propose, propose_all, unnamed};
#[cfg(any(test, fuzzing))]
pub(crate) use places::fuzz_entries;
pub use plan::{ImportResult, ImportedContext, apply, contexts_of, new_contexts, plan_text};
pub use scan::{Scan, UnreadableTool, binding_values, scan};
