//! `run`, `shell` and `env`: what isolates a command, with the real tools.

mod context;
mod crash;
mod drift;
mod file_case;
mod leaks;
mod levels;
mod oversize;
mod pins;
mod pins_files;
pub(crate) mod protected;
mod protected_approval;
mod protected_files;
mod race;
mod reach;
mod reach_files;
mod rooms;
pub(crate) mod run;
mod shells;
mod strict;
mod strict_files;
mod terminal;
mod tool;
