//! Settings: files, layers, origins, trust and the editor.

mod config_file;
mod editor;
mod get;
mod precedence;
mod schema;
mod set;
mod show;
mod trust;
mod validate;
