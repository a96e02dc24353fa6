//! Configuration files of users and projects: changes, checks and trust, as the commands `config` and `trust` make them.
//!
//! [`mod@write`] puts a setting where its scope says, [`validate`] finds everything wrong in the files, [`trust`] lets the
//! files of a project take effect.
//!
//! Not for: reading settings (see [`crate::settings`]).

pub mod trust;
pub mod validate;
pub mod write;
