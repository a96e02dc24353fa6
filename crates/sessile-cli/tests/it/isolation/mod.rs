//! `run`, `shell` and `env`: what isolates a command, with the real tools.

mod coding_agents;
mod context;
mod crash;
mod drift;
mod file_case;
mod leaks;
mod levels;
mod output_log;
mod oversize;
mod pins;
mod pins_files;
pub(crate) mod protected;
mod protected_approval;
mod protected_files;
mod protected_variables;
mod race;
mod reach;
mod reach_clients;
mod reach_files;
mod rooms;
pub(crate) mod run;
mod shells;
mod spare;
mod strict;
mod strict_files;
mod terminal;
mod tool;
