//! Tool profiles, and isolating tools by them.
//!
//! Nothing in the source names a tool; one TOML file per tool in `tools/` does. [`Tools`] finds the profiles,
//! [`prepare`] copies what they name into a session's room and pins what the context binds, [`held`] tells what a room
//! holds.
//!
//! Not for: running commands and their variables, which is [`crate::run`].

mod bind;
mod catalog;
mod farm;
pub(crate) mod gitconfig;
mod held;
mod leave;
mod places;
mod plan;
mod prepare;
mod profile;
mod read;
mod seed;
mod target;
pub(crate) mod tree;
mod work;

pub use bind::Bound;
pub use catalog::{Source, Tools, unknown_bindings};
pub use held::{Copy, Held, held};
pub use places::Originals;
pub use plan::{Copies, Plan, Prepared, WorkSeed};
pub use prepare::{IsolationScope, Level, prepare, wanted_profiles};
pub use profile::{Append, Binding, Edit, Exists, Format, Isolation, Make, Profile, Race, Seed, SharedWhen};
pub use seed::Seeded;
pub use target::{EntryContent, TargetFormat, TargetPlace, TargetSet};

pub(crate) use leave::leave;
pub(crate) use places::ORIGINALS;
pub(crate) use seed::is_like;
pub(crate) use work::displaced_copies;
