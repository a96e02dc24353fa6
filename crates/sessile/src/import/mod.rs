//! Import: contexts for the targets that the user's tools already have.
//!
//! [`scan`] reads the tools' own files and changes none of them. [`propose`] groups the targets into contexts, and
//! [`new_contexts`] leaves out what contexts bind already. The result is an ordinary file of contexts, which a person can
//! edit before [`apply`] creates them.
//!
//! Not for: `context import`, which takes contexts from another machine.

mod grouping;
mod plan;
mod scan;

pub use grouping::{FoundTarget, ProposedContext, propose};
pub use plan::{ImportResult, ImportedContext, apply, contexts_of, new_contexts, plan_text};
pub use scan::{Scan, UnreadableTool, binding_values, scan};
