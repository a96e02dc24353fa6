//! Contexts: creating, selecting, guarding and moving them.

mod approve;
mod bind;
mod create;
mod delete;
mod edit;
mod guards;
mod import_others;
mod import_real_inputs;
mod import_tools;
mod names;
mod pickers;
mod rename;
mod selection;
mod transfer;
mod values;
