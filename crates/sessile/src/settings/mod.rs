//! Settings: a key with a value *and an origin*.
//!
//! Order of precedence: flag, environment, session, terminal, directory, context, user, system, default.
//! [`Definition`] describes a setting, [`Document`] is one parsed file, [`Stack`] applies the order, [`edit`] changes
//! a file and keeps its comments, [`trust`] decides which project files take effect.
//!
//! Not for contexts (see [`crate::context`]) or writing files (see [`crate::files`]).

mod base;
mod definition;
mod document;
pub mod edit;
pub(crate) mod json;
mod key;
mod origin;
pub mod project;
pub(crate) mod rules;
pub mod schema;
mod stack;
pub mod trust;
mod value;

pub use base::{BASE, DEFAULT_LOCK_TIMEOUT};
pub use definition::{Definition, SettingKind};
pub(crate) use document::StaticData;
pub use document::{Data, Document, Node};
pub(crate) use document::{Disclosure, empty_text};
pub use key::SettingKey;
pub use origin::{Layer, Origin};
pub(crate) use stack::definition;
pub use stack::{Candidate, IgnoreReason, SettingSource, Stack, UnknownSetting};
pub use value::Value;
