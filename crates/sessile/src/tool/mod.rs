//! Tool profiles: what is known about other command-line tools, as data.
//!
//! Nothing in the source names a tool; one TOML file per tool in `tools/` does.

mod profile;

pub use profile::{Profile, Race};
