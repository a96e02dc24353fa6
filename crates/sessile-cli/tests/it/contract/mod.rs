//! What holds for every command: output, flags, help, exit statuses.

mod color;
mod completions;
mod completions_in_shells;
mod demo;
mod global_flags;
mod help;
mod logging;
mod man;
mod manifest;
mod no_input;
pub(crate) mod output;
mod progress;
mod setup;
mod skill;
mod status;
mod tables;
mod verbose;
