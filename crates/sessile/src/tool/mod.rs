//! Tool profiles, and isolating tools by them.
//!
//! Nothing in the source names a tool; one TOML file per tool in `tools/` does. The profiles are text in the binary
//! (`build.rs`) and are parsed only when a room is prepared or a command lists tools. [`Tools`] finds the profiles,
//! [`prepare`] copies what they name into a session's room and pins what the context binds, [`tool_states`] compares a room's
//! copies with the originals.
//!
//! | module | content |
//! |---|---|
//! | `profile`, `parse_profile` | profile of one tool; its strict parser, because a misspelt key would isolate nothing |
//! | `catalog` | known profiles: built in, the user's, a trusted project's |
//! | `paths` | directories of the user outside any session, and the placeholders of profiles |
//! | `seed`, `symlink_farm`, `gitconfig` | copying into a room; a directory of links that looks like the user's; relocating includes |
//! | `workdir_state` | copies within working directories |
//! | `tree` | YAML and JSON as trees, and paths in them |
//! | `binding` | bindings before they are applied: checks of tools, keys and targets |
//! | `current` | targets that the user's own files and variables select |
//! | `bind`, `target` | bindings of a context, applied to a room; restricting copies to the bound targets |
//! | `protection`, `withheld` | targets that only guarded contexts bind; removing them from the copies of other sessions |
//! | `variable_reach` | variables that reach such a target |
//! | `prepare`, `plan` | preparing a room once per tool; the record of that |
//! | `inputs` | the user's files that a preparation depends on |
//! | `drift` | pinned values that a command of the session has moved |
//! | `tool_states`, `salvage` | content of a room beside the originals; leaving a room for good |
//!
//! A copy is never written back, and its original is only read. A login whose tokens rotate is linked or left shared,
//! never copied. Copies are made under the room's lock and count once the saved plan names them. Each profile lists
//! what it does not isolate.
//!
//! Not for: running commands and their variables, which is [`crate::run`].

mod bind;
mod binding;
mod catalog;
mod current;
mod drift;
mod edit;
pub(crate) mod gitconfig;
mod inputs;
mod oversize;
mod parse_profile;
mod paths;
mod plan;
mod plant;
mod planted_paths;
mod prepare;
mod profile;
mod protection;
mod room_home;
mod salvage;
mod scope;
mod seed;
mod symlink_farm;
mod target;
mod tool_states;
pub(crate) mod tree;
mod variable_reach;
mod withheld;
mod workdir_state;

pub use bind::{AppliedBinding, UncarriedKey};
pub use binding::{UnknownTarget, unknown_targets};
#[cfg(any(test, fuzzing))]
pub(crate) use catalog::built_in_imports;
pub use catalog::{Source, Tools, unknown_bindings};
pub use current::current_bindings;
pub use drift::{Drift, drift};
pub use paths::{Originals, own_values};
pub use plan::{Copies, HomeOnlyState, OversizedState, Plan, PreparedTool, WorkSeed};
pub use prepare::prepare;
pub use profile::{
    Append, Binding, Edit, ExistenceCheck, FileMark, Format, ImportPlace, ImportedThing, Isolation,
    Placeholder, Profile, ProjectFile, Race, ReachVariables, Seed, SharedWhen, TargetReach,
};
pub use protection::{ContextProtection, GuardedTarget, guarded_targets};
pub use scope::{IsolationScope, Level};
pub use seed::SeedCopy;
pub use target::{EntryContent, TargetFormat, TargetPlace, TargetSelection, TargetSet};
pub use tool_states::{Copy, ToolState, changed_copies, tool_states};
pub use withheld::{Withheld, WithheldTarget, WithheldTool};

pub(crate) use bind::filled;
pub(crate) use binding::check_binding;
pub(crate) use inputs::is_unguarded;
pub(crate) use paths::{ORIGINALS, SessionPaths};
pub(crate) use prepare::{prepare_for, restricts, withdraw};
pub(crate) use protection::{OriginalFiles, targets_of};
pub(crate) use salvage::salvage;
pub(crate) use seed::{is_like, is_variable_like, make_dir as make_room_dir};
#[cfg(any(test, fuzzing))]
pub(crate) use target::check_edits;
pub(crate) use target::{ImportEntry, import_entries, target_names_in};
pub(crate) use withheld::{WithheldVariable, own_variables};
pub(crate) use workdir_state::displaced_copies;
